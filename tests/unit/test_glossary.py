"""docs/glossary.md has each term once, and words that it has retired do not come back."""

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
RETIRED = {  # pattern: what to write instead
    WORD.format("told"): "what it is: lines, text, warnings, rows; 'reported'",
    WORD.format("tells?"): "reports, prints, shows, names",
    WORD.format("says"): "reports, prints, shows, names",
    r"(?<!--)" + WORD.format("beside") + "(?!=)": "with, next to, compared with, in addition to",
    WORD.format("asked"): "required, expected, requested",
    WORD.format("sp(?:eaks?|oken) of"): "covers, applies to, belongs to",
    WORD.format("grav(?:e|er|est|ity)"): "worst, severe",
    WORD.format("usual"): "baseline, typical, default",
    WORD.format("unlike the others"): "differs from the majority",
    r"(?<!left )(?<!leave )(?<!leaves )" + WORD.format("behind"): "cause, responsible node or link",
    WORD.format("in vain"): "without success",
    WORD.format("of whom"): "whose",
    WORD.format("is no time"): "is not a valid time",
    r"(?<![A-Za-z_])_?(?:MOST|SHOWN|NAMED)(?![A-Za-z])": "MAX_ and what is limited",
    WORD.format("(?:[Tt]rap|[Gg]ap) [A-Z][0-9]+"): "the fact, and the source's section",
}
NAMES = ("gone", "held", "mine", "odd", "ours", "word")  # as names of variables
# What most files have not: cheaper to look for than each word with what must not stand next to it.
ROUGHLY = re.compile("|".join(re.sub(r"\(\?<?!.*?\)", "", pattern) for pattern in RETIRED))
A_NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")

# Occurrences that are left, room by room. A number here only ever becomes smaller.
ALLOWED: dict[str, int] = {
    "checks": 1,
    "siteproof/cli": 1,
    "siteproof/collect": 1,
    "siteproof/export": 1,
    "siteproof/record": 1,
}
TEXTS = (".md", ".py", ".sh", ".j2", ".yaml", ".css", ".json")


def places() -> Iterator[tuple[str, Path]]:
    """Each file that is searched, and its room."""
    yield "README.md", TOP / "README.md"
    for top in ("siteproof", "checks", "docs"):
        for path in sorted((TOP / top).rglob("*")):
            if path.suffix in TEXTS:
                parts = path.relative_to(TOP).parts
                room = "/".join(parts[:2]) if top == "siteproof" and len(parts) > 2 else top
                yield room, path


def variables(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, parameter and attribute that a module makes."""
    for node in sources.nodes(path):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def occurrences(path: Path) -> list[str]:
    """Every retired word of a file, with its line and what to write instead."""
    text = sources.text(path)
    where = path.relative_to(TOP)
    if path == GLOSSARY:  # the last column names the older words
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


def test_no_room_has_more_retired_words_than_it_had():
    found: dict[str, list[str]] = {}
    for room, path in places():
        found.setdefault(room, []).extend(occurrences(path))
    too_many = {room: lines for room, lines in found.items() if len(lines) > ALLOWED.get(room, 0)}
    assert not too_many, "\n".join(line for lines in too_many.values() for line in lines)


def test_the_glossary_has_each_term_once_in_alphabetical_order():
    assert len(terms()) > 50
    assert [term for term, count in Counter(terms()).items() if count > 1] == []
    assert terms() == sorted(terms())


def test_the_glossary_is_linked_from_the_pages_that_are_read_first():
    for page in ("README.md", "docs/design.md"):
        assert "glossary.md" in (TOP / page).read_text(encoding="utf-8"), page
