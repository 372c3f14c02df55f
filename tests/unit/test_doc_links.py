"""Every relative link of the documentation leads to a file, and every anchor to a heading."""

import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

TOP = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(TOP.glob("*.md")),
    *sorted((TOP / "docs").rglob("*.md")),
    TOP / "spack-envs/README.md",
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
README_LINES = 90


def prose(page: Path) -> str:
    """A page without its blocks of code, whose brackets are no links."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        text = LINK.sub(lambda link: link[0][1:].split("]")[0], heading).strip().casefold()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = 0
        while (made := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(made)
    return found


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    bad = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            bad.append(target)
    return bad


def test_every_page_is_in_the_lists_of_the_site_that_make_docs_makes():
    """Its build ends without one; this needs no mkdocs."""
    ways = re.findall(r"^\| .+\]\(docs/.+\|$", (TOP / "README.md").read_text(), re.MULTILINE)
    listed = "".join(ways) + (TOP / "setup/mkdocs/mkdocs.yml").read_text()
    pages = {str(page.relative_to(TOP / "docs")) for page in PAGES if TOP / "docs" in page.parents}
    missing = {page for page in pages if not re.search(rf"(?<![\w-]){re.escape(page)}\b", listed)}
    assert missing == {page for page in pages if page.startswith("upstream/")}


def test_every_relative_link_and_anchor_exists():
    for page in PAGES:
        assert broken(page) == [], page


OUTSIDE = sorted({link for page in PAGES for link in LINK.findall(prose(page)) if "://" in link})


@pytest.mark.long
@pytest.mark.parametrize("link", OUTSIDE)
def test_a_link_to_another_host_is_not_gone(link):
    try:
        urlopen(Request(link, method="HEAD", headers={"User-Agent": "siteproof"}), timeout=60)
    except HTTPError as error:
        assert error.code not in (404, 410)
        pytest.skip(f"NOT TESTED: {error}")
    except OSError as error:
        pytest.skip(f"NOT TESTED: {error}")


def test_a_link_to_no_file_and_an_anchor_of_no_heading_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n[x](no.md) [y](#a-b-c) [z](#d)\n```\n# d\n[w](no2.md)\n```\n")
    assert broken(page) == ["no.md", "#d"]


def test_every_file_below_docs_can_be_reached_from_the_readme():
    reached, todo = set(), [TOP / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        if page.suffix != ".md":
            continue
        files = (link.partition("#")[0] for link in LINK.findall(prose(page)))
        todo += [(page.parent / file).resolve() for file in files if ":" not in file]
    below = {path for path in (TOP / "docs").rglob("*") if path.is_file()}
    assert below - reached == set()


def test_the_readme_stays_short():
    assert len((TOP / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES
