"""docs/glossary.md has each term once, and terms that it has replaced do not come back.

Ordinary English words are not banned.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import sources
from clone import TOP

GLOSSARY = TOP / "docs/glossary.md"
WORD = (
    r"(?<![A-Za-z]){}(?![A-Za-z])"  # '_' separates words, so that names in code are searched, too
)
RETIRED = {  # a term that the project has replaced, or a name that hides what it is: what to write
    WORD.format("usual values?"): "baseline",
    WORD.format("grav(?:ity|est)"): "severity, worst",
    WORD.format("foreign perflogs?"): "plain ReFrame perflogs",
    WORD.format("unlike the others"): "differs from the majority",
    r"(?<![A-Za-z_])_?(?:MOST|SHOWN|NAMED)(?![A-Za-z])": "MAX_ and what is limited",
    WORD.format("(?:[Tt]rap|[Gg]ap) [A-Z][0-9]+"): "the fact, and the source's section",
}
NAMES = ("gone", "held", "mine", "odd", "ours", "word")  # as names of variables
# What most files have not: cheaper to look for than each word with what must not stand next to it.
ROUGHLY = re.compile("|".join(re.sub(r"\(\?<?!.*?\)", "", pattern) for pattern in RETIRED))
A_NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")
TEXTS = (".md", ".py", ".sh", ".j2", ".yaml", ".css", ".json")


def pages_and_modules() -> Iterator[Path]:
    """Each file that is searched."""
    yield TOP / "README.md"
    for top in ("siteproof", "checks", "docs"):
        yield from (p for p in sorted((TOP / top).rglob("*")) if p.suffix in TEXTS)


def variables(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, parameter and attribute that a module makes."""
    for node in sources.nodes(path):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def occurrences(path: Path) -> list[str]:
    """Every retired term of a file, with its line and what to write instead."""
    text = sources.text(path)
    where = path.relative_to(TOP)
    if path == GLOSSARY:  # the last column names the older terms
        text = "\n".join(line.rsplit("|", 2)[0] for line in text.splitlines())
    found = [
        f"{where}:{text.count(chr(10), 0, match.start()) + 1}: '{match[0]}': {instead}"
        for pattern, instead in (RETIRED.items() if ROUGHLY.search(text) else ())
        for match in re.finditer(pattern, text)
    ]
    if path.suffix == ".py" and A_NAME.search(text):
        found += [
            f"{where}:{line}: variable '{name}': name what it holds"
            for line, name in variables(path)
            if name in NAMES
        ]
    return found


def terms() -> list[str]:
    """The terms of the glossary, in the order of its table."""
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return [row.casefold() for row in rows]


def test_no_retired_term_comes_back():
    found = [line for path in pages_and_modules() for line in occurrences(path)]
    assert not found, "\n".join(found)


def test_the_glossary_has_each_term_once_in_alphabetical_order():
    assert len(terms()) > 50
    assert [term for term, count in Counter(terms()).items() if count > 1] == []
    assert terms() == sorted(terms())


def test_the_glossary_is_linked_from_the_pages_that_are_read_first():
    for page in ("README.md", "docs/design.md"):
        assert "glossary.md" in (TOP / page).read_text(encoding="utf-8"), page
