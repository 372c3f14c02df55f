"""What the site has besides docs/: README.md, and each file of the clone that a page links to.

A file that is no page is shown on one. Links are written as GitHub and GitLab follow them, from
file to file, and changed here: once, by this rule.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

TOP = Path(__file__).resolve().parents[2]
LINK = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[ \t]*$"  # code, whose brackets are no links
    r"|`[^`\n]*`"
    r"|(?<=\]\()(?![a-z]+:|#)(?P<target>[^)\s#]+)",
    re.MULTILINE | re.DOTALL,
)
WAY = re.compile(r"^\| ([^|]+) \| (\[.+\]\(docs/.+) \|$", re.MULTILINE)  # a reader's, in README.md
CELL = re.compile(r"<td.*?</td>", re.DOTALL)
NAME = re.compile(r"(?<=<code>)[^<]+")
LANGUAGES = {".py": "python", ".sh": "bash", ".yaml": "yaml", ".yml": "yaml"}


def on_config(config: MkDocsConfig) -> None:
    """The ways of the four readers come first, as README.md has them."""
    ways = []
    for who, row in WAY.findall(_text("README.md")):
        pages = [_page(path) for path in _links("README.md", row) if path.endswith(".md")]
        ways.append({who[0].upper() + who[1:]: pages})
    config.nav = ["README.md", *ways, *config.nav]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add what is outside docs/."""
    todo = ["README.md", *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    known: set[str] = set()
    while todo:
        path = todo.pop()
        if path in known or not (TOP / path).is_file():  # a link to no file is mkdocs' to name
            continue
        known.add(path)
        if not path.startswith("docs/"):
            files.append(_file(path, config))
        if path.endswith(".md"):
            todo += _links(path, _text(path))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead each link to the page or the file that the site has for it."""
    folder = posixpath.dirname(page.file.src_uri)
    path = _path(page.file.src_uri)

    def changed(found: re.Match[str]) -> str:
        if not found["target"]:
            return found[0]
        return posixpath.relpath(_page(_joined(path, found["target"])), folder or ".")

    return LINK.sub(changed, markdown)


def on_page_content(html: str, **_: object) -> str:
    """A long name in a table may go on in the next line after a point, a slash or an underscore."""
    return CELL.sub(lambda cell: NAME.sub(_breakable, cell[0]), html)


def _breakable(name: re.Match[str]) -> str:
    return re.sub(r"([._/])(?=[A-Za-z])", r"\1<wbr>", name[0])


def _file(path: str, config: MkDocsConfig) -> File:
    """A page of the clone as it is; any other file as code, which no search finds."""
    if path.endswith(".md"):
        file = File.generated(config, path, abs_src_path=str(TOP / path))
    else:
        language = LANGUAGES.get(Path(path).suffix, "text")
        head = f"---\nsearch: {{exclude: true}}\ntitle: {path}\n---\n# `{path}`\n\n"
        code = f"`````{language}\n{_text(path).rstrip()}\n`````\n"
        file = File.generated(config, _page(path), content=head + code)
    file.inclusion = InclusionLevel.NOT_IN_NAV
    return file


def _links(path: str, text: str) -> Iterator[str]:
    """The files of the clone that a text of this file links to."""
    return (_joined(path, one["target"]) for one in LINK.finditer(text) if one["target"])


def _joined(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _page(path: str) -> str:
    """Where the site has a file of the clone."""
    inside = path.removeprefix("docs/")
    return inside if path.startswith("docs/") or path.endswith(".md") else f"{path}.md"


def _path(page: str) -> str:
    """Of which file of the clone a page is."""
    found = (path for path in (f"docs/{page}", page) if (TOP / path).is_file())
    return next(found, page.removesuffix(".md"))


def _text(path: str) -> str:
    return (TOP / path).read_text(encoding="utf-8")
