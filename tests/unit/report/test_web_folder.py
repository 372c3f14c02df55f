"""The folder of pages: names, what is made again, and a whole folder whatever happens."""

import itertools
import json
import os
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from siteproof.errors import UserError
from siteproof.report import web_folder
from siteproof.report.sections import Report
from siteproof.report.summary import Summary
from siteproof.report.web_folder import Page

NOW = datetime(2026, 11, 29, tzinfo=UTC)
ODD = [
    "../../etc",
    ".hidden",
    "a b;touch x",
    "$(id)",
    "<b>",
    "a/b",
    "a=2Fb",
    "\udcff",
    "ä",
    "x" * 300,
]
WORDS = {"inputs": "old", "first": NOW.isoformat(), "last": NOW.isoformat(), "place": 1}


def text_of(words):
    return web_folder.MARK + words.encode()


def page(campaign="winter", text="page", *, system="here", mark="PASS", **keys):
    """A page that was made, and its text."""
    asked = Page(system, campaign, "2026-11-29", campaign, **{**WORDS, **keys})
    shown = Report(system, Summary("", "", "8 nodes", "", mark, "1 of 1", "All is well."), ())
    return asked.of(shown, text_of(text), NOW), text_of(text)


def put(folder, found, before=None):
    return web_folder.put(folder, *found, before)


def links(folder):
    """The pages to which the index leads."""
    text = (folder / web_folder.INDEX).read_text()
    return set(re.findall(r'href="([^"#]+)"', text))


def is_whole(folder):
    """Whether the index, where there is one, leads to whole pages only."""
    known = web_folder.read(folder)
    shown = links(folder) if (folder / web_folder.INDEX).exists() else set()
    return shown <= known.keys() and all((folder / name).exists() for name in known)


def test_no_name_leads_out_of_the_folder_and_no_two_share_a_file():
    names = [page(name)[0].file for name in ODD] + [page(system=name)[0].file for name in ODD]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9=_][A-Za-z0-9=._-]*/[A-Za-z0-9=_][A-Za-z0-9=._@-]*", name)
        assert max(map(len, name.split("/"))) < 200


def test_the_index_leads_to_each_page_and_shows_odd_names_as_they_are(tmp_path):
    pages = [page(name, system=ODD[4]) for name in ODD]
    assert all(put(tmp_path, one) for one in pages)
    assert links(tmp_path) == {one.file for one, _ in pages}
    text = (tmp_path / web_folder.INDEX).read_text()
    assert "$(id)" in text and "&lt;b&gt;" in text and "<b>" not in text.partition("</header>")[2]
    assert {path.parent.parent for path in tmp_path.rglob("*.html")} == {tmp_path, tmp_path.parent}


def test_a_page_is_current_until_its_inputs_or_its_file_change(tmp_path):
    made, text = page()
    put(tmp_path, (made, text))
    known = web_folder.read(tmp_path)[made.file]
    assert known == made and web_folder.is_current(tmp_path, known, made)
    assert not web_folder.is_current(tmp_path, known, replace(made, inputs="new"))
    assert not web_folder.is_current(tmp_path, replace(known, removed=made.made), made)
    for spoilt in (text[:-1], text + b"x"):
        (tmp_path / made.file).write_bytes(spoilt)
        assert not web_folder.is_current(tmp_path, known, made)
    (tmp_path / made.file).unlink()
    assert not web_folder.is_current(tmp_path, known, made)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: {**one, "place": "1"},
        lambda one: {**one, "more": ""},
        lambda one: {**one, "system": ""},  # its page would be in /
        lambda one: {**one, "campaign": "\ud800"},
        lambda one: {**one, "last": "yesterday"},
        lambda one: {**one, "last": "0001-01-01T00:00:00+14:00"},
        lambda one: [one],
        lambda _: None,
    ],
)
def test_what_is_known_of_pages_is_dropped_where_it_is_damaged(change, tmp_path):
    put(tmp_path, page())
    state = tmp_path / web_folder.STATE
    state.write_text(json.dumps([change(one) for one in json.loads(state.read_text())]))
    assert web_folder.read(tmp_path) == {}
    state.write_bytes(state.read_bytes()[:-5])
    assert web_folder.read(tmp_path) == {}
    assert put(tmp_path, page(text="again"))  # the page there is replaced
    assert is_whole(tmp_path) and web_folder.read(tmp_path)


def test_the_strip_has_the_most_severe_verdict_of_a_day_and_nothing_where_no_day_is_known(tmp_path):
    put(tmp_path, page("", mark="PUBLISHED", first="", last=""))
    assert "<svg" not in (tmp_path / web_folder.INDEX).read_text()
    for name, mark in (("winter", "PASS"), ("spring", "FAIL"), ("summer", "INCOMPLETE")):
        put(tmp_path, page(name, mark=mark))
    put(tmp_path, page("autumn", mark="PASS", last="2026-11-20T23:00:00+00:00"))
    strip = re.search("<svg.*?</svg>", (tmp_path / web_folder.INDEX).read_text())[0]
    bars = re.findall(r'<rect class="(\w+)" x="(\d+)" \S+ width="(\d)"', strip)
    assert bars == [("ok", "353", "3"), ("bad", "362", "3")]


def test_a_page_of_older_samples_never_replaces_a_newer_one(tmp_path):
    newer, older = page(inputs="new", text="newer"), page(inputs="old", text="older")
    assert put(tmp_path, newer)
    assert not put(tmp_path, older)  # its maker had seen no page
    assert (tmp_path / newer[0].file).read_bytes() == newer[1]
    assert put(tmp_path, page(text="newest"), newer[0])


def test_the_index_of_one_operator_has_the_pages_of_the_other(tmp_path):
    put(tmp_path, page("winter"))
    before = web_folder.read(tmp_path)
    put(tmp_path, page("spring"))
    web_folder.settle(tmp_path, "here", before, {page("winter")[0].file})  # listed before spring
    assert links(tmp_path) == {page("winter")[0].file, page("spring")[0].file}
    assert not [one for one in web_folder.read(tmp_path).values() if one.removed]


def test_a_campaign_without_samples_is_named_and_its_page_stays(tmp_path):
    winter, newest = page("winter", mark="FAIL"), page("")
    put(tmp_path, winter)
    put(tmp_path, newest)
    put(tmp_path, page("summer", system="there"))
    web_folder.settle(tmp_path, "here", web_folder.read(tmp_path), ())
    index = (tmp_path / web_folder.INDEX).read_text()
    assert "no samples any more" in index and (tmp_path / winter[0].file).exists()
    assert not (tmp_path / newest[0].file).exists()  # of a session that is not the newest now
    assert [one.removed != "" for one in web_folder.read(tmp_path).values()] == [True, False]


def test_nothing_is_written_where_nothing_changed_and_a_spoilt_index_is_made_again(tmp_path):
    put(tmp_path, page())
    index, known = tmp_path / web_folder.INDEX, web_folder.read(tmp_path)
    text, times = index.read_bytes(), {path: path.stat() for path in tmp_path.rglob("*")}
    web_folder.settle(tmp_path, "here", known, known)
    assert {path: path.stat() for path in tmp_path.rglob("*")} == times
    index.write_bytes(text[:400])
    web_folder.settle(tmp_path, "here", known, known)
    assert index.read_bytes() == text


@pytest.mark.parametrize("name", ["index.html", "here/winter@2026-11-29.html", "here"])
def test_a_foreign_file_stays(name, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("<html>My own page</html>")
    with pytest.raises(UserError, match="is not of 'siteproof report --site'"):
        put(tmp_path, page())
    assert (tmp_path / name).read_text() == "<html>My own page</html>"


def stop_at(number, signal):
    """Stop at this call of what changes a name; a kill leaves no time to tidy up."""
    calls = itertools.count()

    def step(real, *words, **keys):
        if next(calls) == number:
            if signal == "kill":
                os._exit(9)
            raise KeyboardInterrupt
        return real(*words, **keys)

    for name in ("rename", "link", "replace"):
        setattr(os, name, partial(step, getattr(os, name)))


def is_stopped(number, signal, folder, pages):
    """Put pages in a process that is stopped then."""
    if (child := os.fork()) == 0:
        with suppress(KeyboardInterrupt):
            stop_at(number, signal)
            for one in pages:
                put(folder, one, web_folder.read(folder).get(one[0].file))
            os._exit(0)
        os._exit(9)
    return os.waitpid(child, 0)[1] != 0


@pytest.mark.parametrize("signal", ["Ctrl-C", "kill"])
def test_a_folder_is_whole_at_whatever_step_an_operator_is_stopped(signal, tmp_path):
    pages = [page("spring", "new"), page("summer")]
    for number in itertools.count():
        folder = tmp_path / str(number)
        put(folder, page("winter"))
        put(folder, page("spring", "old"))
        stopped = is_stopped(number, signal, folder, pages)
        assert is_whole(folder), number
        for one in pages:  # the next run
            put(folder, one, web_folder.read(folder).get(one[0].file))
        assert is_whole(folder) and len(links(folder)) == 3
        if not stopped:
            break
    assert number > 8  # the page, what is known, the index and the lock, of each page


def test_a_draft_of_a_killed_operator_is_removed_after_an_hour(tmp_path):
    put(tmp_path, page())
    old, own, new = (tmp_path / f"here/.{n}.tmp" for n in ("0" * 16, "mine", "1" * 16))
    for path in (old, own, new):
        path.touch()
    for path in (old, own):
        os.utime(path, (1, 1))
    put(tmp_path, page("spring"))
    assert not old.exists() and own.exists() and new.exists()


@pytest.mark.parametrize("place", ["a link", "a foreign page"])
def test_a_page_that_is_gone_removes_no_file_of_others(place, tmp_path):
    folder, other = tmp_path / "www", tmp_path / "other"
    put(folder, page(""))
    put(folder, page("winter"))
    own = folder / "here"
    if place == "a link":
        own.rename(other)
        own.symlink_to(other)
    else:
        other.symlink_to(own)
        (own / "newest.html").write_text("My own page")
    draft = other / f".{'0' * 16}.tmp"
    draft.touch()
    os.utime(draft, (0, 0))
    before = web_folder.read(folder)
    web_folder.settle(folder, "here", before, ())
    assert (other / "newest.html").exists()
    assert [*web_folder.read(folder)] == ["here/winter@2026-11-29.html"]
    assert draft.exists() == (place == "a link")
