"""The threat model names a test for each of its lines, and each of these tests exists."""

import re
from pathlib import Path

from clone import TOP

PAGE = TOP / "docs/threat-model.md"
TEST = re.compile(r"`(test_\w+)`")


def lines_that_are_proven() -> list[str]:
    """The rows of the tables whose last column is "test"."""
    found, inside = [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.rstrip("| ").endswith("| test"):
            inside = True
        elif inside and not line.startswith("|---"):
            found.append(line)
    return found


def existing_tests() -> set[str]:
    sources = (path.read_text(encoding="utf-8") for path in Path(TOP, "tests").rglob("test_*.py"))
    return {name for text in sources for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}


def test_every_line_of_the_threat_model_names_a_test():
    rows = lines_that_are_proven()
    assert len(rows) > 20
    assert [row for row in rows if not TEST.search(row.rsplit("|", 2)[1])] == []


def test_every_test_that_the_threat_model_names_exists():
    named = set(TEST.findall(PAGE.read_text(encoding="utf-8")))
    assert sorted(named - existing_tests()) == []
