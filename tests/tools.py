"""Which tools a run of the tests has run for real, and which parsers read recorded outputs only.

    python tests/tools.py LOG [--write README.md]

LOG: what the plugin below has written, a tool a line. Prints the table; with --write puts it into
the README between its two marks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

LOG = "SITEPROOF_TOOLS_LOG"
HERE = Path(__file__).parent
BEGIN, END = "<!-- tools -->\n", "<!-- /tools -->\n"


def pytest_runtest_setup(item) -> None:
    """Let the report of a test carry the tools that it is marked with."""
    known = yaml.safe_load((HERE / "tools.yaml").read_text())
    for mark in item.iter_markers("tool"):
        for name in mark.args:
            assert name in known, f"tests/tools.yaml knows no '{name}'"
            item.user_properties.append(("tool", name))


def pytest_runtest_logreport(report) -> None:
    """Note the tools of a test that has passed; of a skipped or failed one, nothing."""
    if report.when == "call" and report.passed and os.environ.get(LOG):
        with Path(os.environ[LOG]).open("a") as log:
            log.writelines(f"{name}\n" for key, name in report.user_properties if key == "tool")


def table(ran: Iterable[str]) -> str:
    """The table in Markdown: tool, run for real, parser on recorded output, not run."""
    ran, rows = set(ran), []
    for name, known in yaml.safe_load((HERE / "tools.yaml").read_text()).items():
        recorded = any((HERE / "outputs" / folder).is_dir() for folder in known.get("outputs", []))
        cells = ["x" if yes else "" for yes in (name in ran, recorded, name not in ran)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    head = ["| tool | run for real | parser on recorded output | not run |", "|---|---|---|---|"]
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
    elif text not in (HERE.parent / "README.md").read_text():
        print("README's table is of another run: setup/test --write-table writes this one")


if __name__ == "__main__":
    main(sys.argv[1:])
