"""`siteproof report --site`: a folder of pages, kept up to date by several operators."""

import json
import os
import re
import shutil
import subprocess

import browser
import pytest
from asked import ask
from clone import TOP, wait_for
from fleets import CRITERIA, header, names, run_of, write_site
from record import shared

from siteproof.record import samples
from siteproof.report import web_folder

NOBODY = 65534


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A site of two nodes; keeps the samples of sessions."""
    write_site(tmp_path / "sites", 2, criteria=CRITERIA)
    for name, path in (("SITES", "sites"), ("DATA", "data"), ("CACHE", "cache")):
        monkeypatch.setenv(f"SITEPROOF_{name}", str(tmp_path / path))
    (tmp_path / "data/perflogs").mkdir(parents=True)

    def keep(run, campaign="", value=100):
        keys = {"campaign": campaign, "place": run + 100}
        head, found = header(run, **keys), run_of(dict.fromkeys(names(2), value), run, **keys)
        return samples.write(tmp_path / "data/perflogs", head, found)

    return keep


def kept(folder, *words):
    """The pages that were made, and the last line."""
    code, text = ask("report", "--site", str(folder), *words)
    assert code == 0, text
    *made, last = text.splitlines()
    return [line.partition(".html:")[0] for line in made if ".html:" in line], last


def times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_only_what_changed_is_made_again(here, tmp_path):
    folder = tmp_path / "www"
    here(1, "autumn")
    here(2, "winter", 50)
    autumn, winter = "here/autumn@2026-11-02", "here/winter@2026-11-03"
    made = kept(folder)
    assert made == ([winter, autumn], f"{folder}/index.html: 2 pages of here, 2 made")
    before = times(folder)
    assert kept(folder) == ([], f"{folder}/index.html: 2 pages of here, 0 made")
    assert times(folder) == before
    again = here(3, "winter")
    assert kept(folder)[0] == [winter]
    changed = {path.name for path, at in times(folder).items() if before.get(path, at) != at}
    assert changed >= {f"{winter.partition('/')[2]}.html", "index.html", ".siteproof.json"}
    assert f"{autumn.partition('/')[2]}.html" not in changed
    last = here(4)
    assert kept(folder)[0] == ["here/newest"]
    last.unlink()
    assert kept(folder)[0] == [] and not (folder / "here/newest.html").exists()
    criteria = tmp_path / "sites/here/criteria.yaml"
    criteria.write_text(criteria.read_text().replace("60 MB/s", "70 MB/s"))
    assert kept(folder)[0] == [winter, autumn]
    assert ask("accept", "winter", "--why", "all is well")[0] == 0
    assert kept(folder)[0] == [winter, autumn]
    for path in (again, again.with_name(again.name.replace("s0003", "s0002"))):
        path.unlink()
    assert kept(folder)[0] == []
    index = (folder / "index.html").read_text()
    assert "no samples any more" in index and f'href="{winter}.html"' in index


def test_a_name_that_is_used_again_and_an_odd_one_have_pages_of_their_own(here, tmp_path):
    for run, name in ((-60, "daily"), (1, "daily"), (2, "../a b;$(touch x)<i>")):
        here(run, name)
    made = kept(tmp_path / "www")[0]
    odd = "here/=2E.=2Fa=20b=3B=24=28touch=20x=29=3Ci=3E@2026-11-03"
    assert made == [odd, "here/daily@2026-11-02", "here/daily@2026-09-02"]
    for name, campaign in zip(made, ("touch", "daily", "daily@2026-09-02"), strict=True):
        assert campaign in (tmp_path / "www" / f"{name}.html").read_text()
    text = (tmp_path / "www/index.html").read_text()
    assert "../a b;$(touch x)&lt;i&gt;" in text and "<i>" not in text


def test_a_campaign_that_cannot_be_read_is_named_and_the_others_have_pages(here, tmp_path):
    broken = here(1, "autumn")
    here(2, "winter")
    broken.write_text(broken.read_text() + "{\n")
    code, text = ask("report", "--site", str(tmp_path / "www"))
    assert code == 2 and broken.name in text
    assert [path.name for path in (tmp_path / "www/here").iterdir()] == ["winter@2026-11-03.html"]
    assert 'href="here/winter@2026-11-03.html"' in (tmp_path / "www/index.html").read_text()


def test_a_folder_of_others_and_options_of_one_page_are_refused(here, tmp_path):
    here(1, "autumn")
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    cases = {"file": "is not a folder", "open": "everybody may write to it"}
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.html").write_text("My own page")
    cases["pages"] = "is not of 'siteproof report --site'"
    if os.geteuid() == 0:
        (tmp_path / "strange").mkdir()
        os.chown(tmp_path / "strange", NOBODY, NOBODY)
        cases["strange"] = "belongs to nobody"
    for name, words in cases.items():
        code, text = ask("report", "--site", str(tmp_path / name))
        assert code == 2 and words in text
        assert len(list((tmp_path / name).glob("*"))) == (name == "pages")
    for more in (("--brief",), ("--output", "a.html"), ("--campaign", "autumn"), ("--since", "7d")):
        code, text = ask("report", "--site", str(tmp_path / "www"), *more)
        assert code == 2 and "--site with --system" in text


@pytest.mark.parametrize("place", ["data/perflogs", "data/perflogs/here", "data/stage", "sites"])
def test_no_page_is_kept_where_samples_or_sites_are(place, here, tmp_path):
    here(1, "autumn")
    (tmp_path / "link").symlink_to(tmp_path / place)
    before = sorted(tmp_path.rglob("*"))
    for name in (place, "link"):
        code, text = ask("report", "--site", str(tmp_path / name))
        assert code == 2 and "from which the pages are made" in text
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("place", ["data", ".", TOP])
def test_no_page_is_kept_in_the_folder_of_data_the_clone_or_what_holds_them(place, here, tmp_path):
    code, text = ask("report", "--site", str(tmp_path / place))
    assert code == 2 and "and not pages alone" in text and "\n" not in text
    assert not (tmp_path / place / "index.html").exists()


def test_two_operators_at_once_end_with_a_whole_folder(here, tmp_path):
    for run, name in enumerate(("autumn", "winter"), start=1):
        here(run, name)
    words = ["siteproof", "report", "--system", "here", "--site", str(tmp_path / "www")]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [one.communicate()[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], told
    assert all(": 2 pages of here, " in text for text in told)
    state = json.loads((tmp_path / "www" / web_folder.STATE).read_text())
    index = (tmp_path / "www/index.html").read_text()
    shown = set(re.findall(r'href="(here[^"]+)"', index))
    assert len(state) == 2 and shown == {web_folder.Page(**one).file for one in state}
    assert kept(tmp_path / "www")[0] == []
    assert not list((tmp_path / "www").rglob("*.tmp"))


@pytest.mark.skipif(not browser.CHROMIUM, reason="NOT TESTED: no Chromium")
def test_the_index_has_its_width_on_each_screen_and_leads_to_the_pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("www")
    shared("year").asked(("report", "--system", "here", "--site", str(folder)))
    with browser.opened(folder) as page:
        for screen in browser.SCREENS:
            browser.show(page, folder / "index.html", screen)
            found = page.evaluate(browser.SHAPE)
            assert (found["out"], found["low"]) == ([], [])
            assert found["width"] == found["room"]
            assert page.evaluate(browser.SORT) == []
            assert page.evaluate("errors") == []
        assert len(browser.sheets(browser.pdf(page))) == 1 or not shutil.which("pdftotext")
        page.evaluate("document.querySelector('main a').click()")
        wait_for(lambda: page.evaluate("document.title").startswith("here"))
