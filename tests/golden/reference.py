#!/usr/bin/env python3
"""The reference in the docs, made of schemas, catalogues and the help of the commands.

    python tests/golden/reference.py            compare; exit code 1 if a page differs
    python tests/golden/reference.py --write    write the pages anew

An example is what the fullest site of the tests, or a shipped catalogue or sweep, has at a key.
"""

from __future__ import annotations

import ast
import csv
import functools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from record import CLONE, forget_help

from siteproof import cli, errors
from siteproof.analysis import slow_nodes
from siteproof.cli.sites import FILES, axes
from siteproof.export import sql
from siteproof.record import finding, samples
from siteproof.sites import catalogue, manual
from siteproof.sites.catalogue import Metric
from siteproof.sites.manual import Key
from siteproof.sweeps.keys import TOOLS

sys.path[:0] = [str(CLONE / "setup")]

import man  # noqa: E402

DOCS = CLONE / "docs"
FULLEST = CLONE / "tests/unit/sites/sites/fullest"
MADE = "<!-- Made by 'make golden' (tests/golden/reference.py): do not edit. -->"
WIDTH = 100
LONGEST = 60  # characters of an example
NONE = "-"
BELONGS_TO = {  # what a value belongs to, by the base of its check
    "ApplicationCheck": "node",
    "FileSystemCheck": "node",
    "PerNodeCheck": "node",
    "PerPairCheck": "node, peer",
    "UdpCheck": "node, peer",
    "FileSystemSweep": "point",
    "SweepCheck": "point",
    "TogetherCheck": "point",
    "ServiceCheck": "service",
}
RULES = (  # of the options of all commands
    "- `--apply`: a command that changes nodes, jobs, services or a site's files, or imports",
    "  values, shows what it would do, and does it with `--apply`: calibrate, evening, gate,",
    "  import, port, services clean, sites new.",
    "- A command that only adds records to `perflogs/` does so at once: accept, availability",
    "  --fetch, collect, evidence, probe, repaired, trend ack, trend unack. So does one whose",
    "  result can be made again: build, export, history, report.",
    "- `--system NAME` is the system; without it, that of this machine. Only lint, port,",
    "  sites and sites new have systems as arguments, for these commands are about sites.",
    "- `--by NAME` is who states what is recorded; without it, you.",
    "- `--list` lists, and changes nothing. `--all` shows everything, `--brief` only the",
    "  answer; `--json`, `--plain` and `--csv` are for programs.",
)
NEXT = (
    (
        "`verdict`, `report --brief`",
        "a value is missing: the run that measures it; a node fails: "
        "`nodes`; else `why CRITERION`; all is met: `report`",
    ),
    ("`nodes`", "only values are missing: the run that measures them; else `gate`"),
    (
        "`gate`",
        "nodes to put in, test or free: `gate` with `--apply`, `--retest` or `--release`; "
        "refused: `why CRITERION`, or the higher limits; no Slurm: `why NODE`; all nodes go back: "
        "`accept`, or `report`",
    ),
    (
        "`why CRITERION`",
        "missed by pairs: `matrix METRIC`; by nodes: `why NODE`; a value is "
        "missing: the run that measures it; met: none",
    ),
    (
        "`why NODE`, `why PAIR`",
        "the run that measures it again, in its quarantine "
        "`gate --retest --apply`; all is met: none",
    ),
    ("`matrix`", "`why NODE` or `why PAIR` of what explains the bad pairs; else `verdict`"),
    ("`trend`", "`trend why ID` of what got worse; else `report`"),
    ("`trend why`", "`why NODE`; of the whole fleet or a link: `trend ack`"),
    ("`compare`", "`trend --metric METRIC` of what is worse; else `compare --all`, then `report`"),
    ("`availability`", "what records more: `availability --fetch` or `probe`; else `verdict`"),
    ("`describe`", "nodes differ: `nodes`; else `describe --facts`; of a node: `why NODE`"),
    ("`repaired`", "`why NODE`; of several nodes: `nodes`"),
)
WHERE = {  # where the forms of VALUE and FACT are used
    "VALUE": "ID.conditions.NAME",
    "FACT": "hardware.NAME.facts.NAME.fields.NAME",
}


def pages() -> dict[Path, str]:
    """All pages of the reference, by path."""
    return {DOCS / name: text for name, text in _texts().items()}


@functools.cache
def _texts() -> dict[str, str]:
    made = {
        "reference.md": _answers(),
        "reference/keys.md": _keys(),
        "reference/metrics.md": _metrics(),
        "reference/commands.md": _commands(),
        "reference/tables.md": _tables(),
    }
    return {name: "\n".join([MADE, *text]) + "\n" for name, text in made.items()}


def _answers() -> Iterator[str]:
    yield from ("# Reference", "")
    yield from (
        "- [Keys](reference/keys.md) of a site's files, of catalogues and of sweeps;",
        "- [Metrics](reference/metrics.md), features and tools of sweeps;",
        "- [Commands](reference/commands.md) with their options;",
        "- [Tables](reference/tables.md) of a database that `siteproof export sql` fills;",
        "- [Files](files.md) on the disk, and environment variables;",
        "- below: options, next commands, verdicts, exit codes, states, statuses.",
        "",
        "`siteproof sites` prints most of it, too: `--keys`, `--metrics`, `--features`, `--tools`,",
        "`--statuses`, `--files`, `--variables`. Terms are in [glossary.md](glossary.md).",
        "",
    )
    yield from ("## Options", "", *RULES, "")
    yield from ("## The next command", "")
    yield "The last line of a command names the one that comes next, with the same `--system`,"
    yield "`--since`, `--campaign` and `--as-of` where that takes them. Of a moment of the past"
    yield "(`--as-of`) nothing is measured or applied."
    yield ""
    yield from _table(("after", "next"), NEXT)
    yield "## Verdicts"
    yield from ("", "The most severe first; of several, the most severe one decides.", "")
    yield from _meanings("verdict", finding.MEANINGS)
    yield from ("## Exit codes", "")
    yield "Of `siteproof verdict`; the help of each [command](reference/commands.md) has its own."
    yield from ("", "2 goes before 1, 1 before 3, 3 before 0.", "")
    yield from _meanings("exit code", {int(k): v for k, v in errors.MEANINGS.items()})
    yield from ("## States of a node", "", "The most severe first.", "")
    yield from _meanings("state", slow_nodes.MEANINGS)
    yield from ("## Statuses of a sample", "")
    rows = [
        (f"`{status}`", sentence, finding.OF_STATUS.get(status, NONE))
        for status, sentence in samples.MEANINGS.items()
    ]
    yield from _table(("status", "meaning", "verdict"), rows)


def _keys() -> Iterator[str]:
    yield from ("# Keys", "")
    yield "Choose NAME and ID yourself."
    yield ""
    for file in FILES:
        raw = list(_raw(file))
        yield from _key_table(file, manual.keys(file, FILES), raw)
    for title, found in (
        ("VALUE: of a parameter or condition", manual.forms()["VALUE"]),
        ("FACT: of a field in facts", manual.forms()["FACT"]),
    ):
        file = "criteria.yaml" if title.startswith("VALUE") else "system.yaml"
        yield from _key_table(title, found, list(_raw(file)))
    for tool, own in axes().items():
        yield from _key_table(f"axes of a sweep: {tool}", own, [])


def _key_table(title: str, found: Sequence[Key], raw: Sequence[Any]) -> Iterator[str]:
    yield from (f"## {title}", "")
    yield from _table(
        ("key", "type", "default", "example", "meaning"),
        [
            (
                f"`{key.place}`" + " (required)" * key.required,
                f"one of {', '.join(key.choices)}" if key.choices else key.kind,
                _code(key.default),
                _code(next(_examples(raw, _place(key)), None)),
                key.sentence,
            )
            for key in found
        ],
    )


def _place(key: Key) -> list[str]:
    first, dot, rest = key.place.partition(".")
    return [part for part in f"{WHERE.get(first, first)}{dot}{rest}".split(".") if part]


def _examples(raw: Any, place: Sequence[str]) -> Iterator[Any]:
    """Short values at a place; ID and NAME are any key, and a list's items are looked through."""
    if isinstance(raw, list) and place:
        for one in raw:
            yield from _examples(one, place)
    elif not place:
        if not isinstance(raw, dict) and len(_plain(raw)) <= LONGEST:
            yield raw
    elif isinstance(raw, dict):
        within = raw.values() if place[0] in ("ID", "NAME") else [raw.get(place[0])]
        for one in within:
            if one is not None:
                yield from _examples(one, place[1:])


def _raw(file: str) -> Iterator[Any]:
    """What the examples' files hold, as they are written."""
    below = FULLEST if "/" not in file else CLONE
    for path in sorted(below.glob(file.replace("NAME", "*"))):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            lines = (line for line in text.splitlines() if not line.startswith("#"))
            yield from ({k: v for k, v in row.items() if v} for row in csv.DictReader(lines))
        else:
            yield yaml.safe_load(text)


def _metrics() -> Iterator[str]:
    yield from ("# Metrics, features, tools", "", "## Metrics", "")
    yield "A criterion names a metric as `Check.name`; its file is `checks/*/catalogue.yaml`."
    yield "A value belongs to a node, to a pair (node, peer), or to a point of a sweep."
    yield ""
    by_check: dict[str, list[tuple[str, Metric]]] = {}
    for name, metric in sorted(catalogue.read()[0].items()):
        by_check.setdefault(name.partition(".")[0], []).append((name, metric))
    for check, found in by_check.items():
        yield from (f"### {check}", "", _source([metric for _, metric in found]), "")
        heads = ("metric", "unit", "better", "conditions", "meaning")
        yield from _table(heads, [_metric(name, metric) for name, metric in found])
    yield from ("## Features", "", "What an environment may offer.", "")
    yield from _table(
        ("feature", "meaning", "programs"),
        [
            (f"`{name}`", one.description, ", ".join(one.programs) or NONE)
            for name, one in sorted(catalogue.read().features.items())
        ],
    )
    yield from ("## Tools of sweeps", "")
    rows = [(f"`{name}`", tool.sentence, tool.check) for name, tool in TOOLS.items()]
    yield from _table(("tool", "meaning", "check"), rows)


def _metric(name: str, metric: Metric) -> tuple[str, ...]:
    derived = f"; from {', '.join(metric.derived_from)}" if metric.derived_from else ""
    return (
        f"`{name}`",
        metric.unit,
        metric.better,
        ", ".join(metric.conditions) or NONE,
        f"{metric.description}{derived}" + "; no check yields it yet" * (not metric.answerable),
    )


def _source(metrics: Sequence[Metric]) -> str:
    """Which file measures them, and what a value belongs to."""
    own = next((metric for metric in metrics if metric.file), None)
    if own is None or own.file is None:
        return "No check of its own: computed when it is read, or evidence."
    tree = ast.parse((CLONE / own.file).read_text(encoding="utf-8"))
    bases = [
        ast.unparse(one.bases[-1])  # a mixin comes first
        for one in tree.body
        if isinstance(one, ast.ClassDef) and one.name == own.check
    ]
    owner = BELONGS_TO[bases[0]] if bases else "point"  # what sweeps/sweeps.py makes has no class
    return f"[{own.file}](../../{own.file}); a value belongs to: {owner}."


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", "What `siteproof COMMAND --help` prints.", "")
    forget_help()
    for words, context in man.commands(cli.group, ["siteproof"]):
        context.terminal_width = context.max_content_width = WIDTH
        help_text = context.command.get_help(context)
        yield from (f"## {' '.join(words)}", "", "```text", *help_text.splitlines())
        yield from ("```", "")


def _tables() -> Iterator[str]:
    yield from ("# Tables", "")
    yield "What `siteproof export sql` writes to the schema `siteproof` of a PostgreSQL:"
    yield "[shared-data.md](../shared-data.md#one-database-for-several-centres)."
    yield ""
    for table in sql.tables():
        yield from (f"## {table.name}", "", " ".join(table.about.split()), "")
        yield from (f"Key: {', '.join(f'`{name}`' for name in table.key)}.", "")
        rows = [(f"`{one.name}`", one.kind, one.meaning) for one in table.columns]
        yield from _table(("column", "type", "meaning"), rows)


def _meanings(head: str, known: Mapping[Any, str]) -> Iterator[str]:
    return _table((head, "meaning"), [(f"`{name}`", text) for name, text in known.items()])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(map(_cell, cells))} |"
    yield ""


def _cell(text: object) -> str:
    """A cell of a table; outside of code, what Markdown would take for markup is escaped."""
    parts = str(text).replace("|", r"\|").split("`")
    parts[::2] = [re.sub(r"([*<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _code(value: Any) -> str:
    text = _plain(value)
    return f"`{text}`" if text else NONE


def _plain(value: Any) -> str:
    """A value as YAML has it in one line; empty for nothing."""
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, (bool, dict, list)):
        text: str = yaml.safe_dump(value, default_flow_style=True, width=1000)
        return text.strip().removesuffix("...").strip()
    return str(value)


def differing() -> list[Path]:
    """The pages that are not what they would be now; a page that nothing makes, too."""
    made = pages()
    there = {*(DOCS / "reference").glob("*"), *made}
    return sorted(
        path
        for path in there
        if path not in made or not path.exists() or path.read_text(encoding="utf-8") != made[path]
    )


def main() -> int:
    """Compare or write; the exit code."""
    found = differing()
    if "--write" in sys.argv:
        for path, text in pages().items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    names = ", ".join(str(path.relative_to(CLONE)) for path in found) or "none"
    print(f"pages of the reference that differ: {names}")
    return int(bool(found) and "--write" not in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
