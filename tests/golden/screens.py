#!/usr/bin/env python3
"""The screens of the docs: each is what its command prints on one of the five data sets.

    python tests/golden/screens.py            compare; exit code 1 if a screen differs
    python tests/golden/screens.py --write    write the screens anew

A screen is a block of the language `console` below a line `<!-- data: SET -->`; its commands begin
with `$ siteproof`. A block below `<!-- not run: REASON -->` is left as it is.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from pathlib import Path

from record import CLONE, World

DOCS = [CLONE / "README.md", *sorted((CLONE / "docs").glob("*.md"))]
SCREEN = re.compile(
    r"(?P<head><!-- (?P<kind>data|not run): (?P<what>[^\n]+) -->\n)```console\n(?P<body>.*?)```",
    re.DOTALL,
)
CONSOLE = re.compile(r"^```console$", re.MULTILINE)  # each such block is a screen
PROMPT = "$ siteproof "


def renewed(text: str) -> str:
    """A page with each screen as its commands print it now; the commands of a set in one folder."""
    if len(CONSOLE.findall(text)) != len(SCREEN.findall(text)):
        raise SystemExit("a console block without '<!-- data: SET -->' or '<!-- not run: WHY -->'")
    worlds: dict[str, World] = {}
    minute = 0
    with tempfile.TemporaryDirectory() as folder:

        def screen(found: re.Match[str]) -> str:
            nonlocal minute
            if found["kind"] != "data":
                return found[0]
            name = found["what"]
            if name not in worlds:
                worlds[name] = World(name, Path(folder) / name)
            body = ""
            for line in found["body"].splitlines():
                if line.startswith(PROMPT):
                    words = tuple(shlex.split(line.removeprefix(PROMPT)))
                    body += f"{line}\n{_printed(worlds[name].told(words, minute))}"
                    minute += 1
            return f"{found['head']}```console\n{body}```"

        return SCREEN.sub(screen, text)


def _printed(told: str) -> str:
    """What a command printed, without the lines that `record.py` adds."""
    _, _, printed = told.partition("\n")
    return re.sub(r"^--- std(out|err)\n", "", printed, flags=re.MULTILINE)


def main() -> int:
    """Compare or write; the exit code."""
    differ = []
    for path in DOCS:
        text = path.read_text(encoding="utf-8")
        now = renewed(text)
        if now != text:
            differ.append(str(path.relative_to(CLONE)))
            if "--write" in sys.argv:
                path.write_text(now, encoding="utf-8")
    print(f"{len(DOCS)} pages, screens differ in: {', '.join(differ) or 'none'}")
    return int(bool(differ) and "--write" not in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
