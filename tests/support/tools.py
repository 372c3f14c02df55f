"""Which tools a run of the tests has run for real, and which parsers read recorded outputs only.

    python tests/support/tools.py LOG [--write docs/tools.md]
    python tests/support/tools.py --layouts docs/tools.md

LOG: what the plugin below has written, a tool a line. Prints the table; with --write puts it into
docs/tools.md between its two marks. --layouts puts the table of what parsers read there, which is
made from the recorded outputs alone.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import recorded
import yaml

LOG = "SITEPROOF_TOOLS_LOG"
OWN = "scripts of Siteproof itself"
HERE = Path(__file__).parent
MARKS = "<!-- tools -->\n", "<!-- /tools -->\n"
MARKS_OF_LAYOUTS = "<!-- layouts -->\n", "<!-- /layouts -->\n"
# Outputs that no tool prints: damage that a person has made.
_DAMAGED = re.compile(r"\b(?:edited|twice|by hand|cut (?:off|in)|one after the other)\b")
_OWN_WORDS = re.compile(r"'[^']*'|\"[^\"]*\"|/\S+|[0-9]+(?:[.,][0-9]+)*")  # of one output


def all_known() -> dict[str, dict[str, Any]]:
    """tools.yaml without its `OWN`, and each folder of outputs that it does not name."""
    known = yaml.safe_load((HERE / "tools.yaml").read_text())
    own = known.pop(OWN)["outputs"]
    named = {*own, *(folder for tool in known.values() for folder in tool.get("outputs", []))}
    others = sorted({output.tool for output in recorded.all_of()} - named)
    return known | {folder: {"outputs": [folder]} for folder in others}


def pytest_runtest_setup(item) -> None:
    """Let the report of a test carry the tools that it is marked with."""
    marks = list(item.iter_markers("tool"))
    known = all_known() if marks else {}  # only then: it reads a folder, and there are many tests
    for mark in marks:
        for name in mark.args:
            assert name in known, f"tests/support/tools.yaml knows no '{name}'"
            item.user_properties.append(("tool", name))


def pytest_runtest_logreport(report) -> None:
    """Note the tools of a test that has passed; of a skipped or failed one, nothing."""
    if report.when == "call" and report.passed and os.environ.get(LOG):
        with Path(os.environ[LOG]).open("a") as log:
            log.writelines(f"{name}\n" for key, name in report.user_properties if key == "tool")


def table(ran: Iterable[str]) -> str:
    """The table in Markdown: tool, run for real, parser on recorded output, not run, by hand."""
    ran, rows = set(ran), []
    for name, known in all_known().items():
        parsed = any((recorded.OUTPUTS / folder).is_dir() for folder in known.get("outputs", []))
        cells = ["x" if yes else "" for yes in (name in ran, parsed, name not in ran)]
        rows.append(f"| {name} | {' | '.join([*cells, known.get('by_hand', '')])} |")
    head = [
        "| tool | run for real | parser on recorded output | not run | last run by hand |",
        "|---|---|---|---|---|",
    ]
    return "".join(f"{row}\n" for row in head + rows)


def layouts() -> str:
    """The table in Markdown: parser, versions, layouts that are read, words of a refusal."""
    rows = [
        "| parser | versions | layouts read, by the names of the recorded outputs | refused with |",
        "|---|---|---|---|",
    ]
    known = all_known().values()
    for folder in sorted({folder for tool in known for folder in tool.get("outputs", [])}):
        outputs = recorded.all_of(folder)
        names = [o.path.stem.partition("-") for o in outputs if o.good]
        versions = dict.fromkeys(version for version, dash, _ in names if dash)
        read = dict.fromkeys(name or version for version, _, name in names)
        bad = [o for o in outputs if not o.good and not _DAMAGED.search(o.said("origin")[0])]
        refused = dict.fromkeys(_refusal(o.expected) for o in bad)
        cells = (folder, _listed(versions), _listed(read).replace("_", " "), "<br>".join(refused))
        rows.append(f"| {' | '.join(cells)} |")
    return "".join(f"{row}\n" for row in rows)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _refusal(expected: str) -> str:
    """The words of a refusal without those of one output."""
    words = expected.partition(": ")[2].strip()
    return _OWN_WORDS.sub("…", words.partition(": ")[2] or words).replace("|", "\\|")


def write(readme: Path, text: str, marks: tuple[str, str] = MARKS) -> bool:
    """Put a table between its marks; false where it stood there already."""
    old = readme.read_text()
    before, rest = old.split(marks[0])
    new = before + marks[0] + text + marks[1] + rest.split(marks[1])[1]
    readme.write_text(new)
    return new != old


def main(words: list[str]) -> None:
    """Print the table of a log, or write it; or write that of the layouts."""
    if words[0] == "--layouts":
        write(Path(words[1]), layouts(), MARKS_OF_LAYOUTS)
        return
    log = Path(words[0])
    text = table(log.read_text().split("\n") if log.exists() else [])
    print(text, end="")
    if words[1:2] == ["--write"]:
        write(Path(words[2]), text)
    elif text not in (HERE.parents[1] / "docs/tools.md").read_text():
        print("docs/tools.md is of another run: setup/test --write-table writes this one")


if __name__ == "__main__":
    main(sys.argv[1:])
