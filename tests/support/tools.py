"""Which tools a run of the tests has run for real, and which parsers read recorded outputs only.

    python tests/support/tools.py LOG [--write docs/tools.md]

LOG: what the plugin below has written, a tool a line. Prints the table; with --write puts it into
docs/tools.md between its two marks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import recorded
import yaml

LOG = "SITEPROOF_TOOLS_LOG"
OWN = "scripts of Siteproof itself"
HERE = Path(__file__).parent
BEGIN, END = "<!-- tools -->\n", "<!-- /tools -->\n"


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


def write(readme: Path, text: str) -> bool:
    """Put the table between the marks; false where it stood there already."""
    old = readme.read_text()
    before, rest = old.split(BEGIN)
    new = before + BEGIN + text + END + rest.split(END)[1]
    readme.write_text(new)
    return new != old


def main(words: list[str]) -> None:
    """Print the table of a log, or write it."""
    log = Path(words[0])
    text = table(log.read_text().split("\n") if log.exists() else [])
    print(text, end="")
    if words[1:2] == ["--write"]:
        write(Path(words[2]), text)
    elif text not in (HERE.parents[1] / "docs/tools.md").read_text():
        print("docs/tools.md is of another run: setup/test --write-table writes this one")


if __name__ == "__main__":
    main(sys.argv[1:])
