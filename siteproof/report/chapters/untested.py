"""What was not tested: criteria without an answer, nodes, checks, links, file systems, sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from siteproof.judge.criterion import CriterionVerdict
from siteproof.judge.severity import UNDECIDED, Verdict
from siteproof.record.pair_units import link_of
from siteproof.record.samples import PUBLISHED
from siteproof.report.material import Material
from siteproof.report.phrases import few, nodes, when
from siteproof.report.sections import Section, limited
from siteproof.sweeps import reading
from siteproof.units import count
from siteproof.wording.findings import fulls
from siteproof.wording.verdicts import reason

MAX_NAMES = 4  # things of a kind in a sentence
MAX_ROWS = 100  # of a table
NEVER = "never"


def chapter(material: Material) -> Section:
    """A table for each kind of thing that was not tested."""
    every: tuple[tuple[str, tuple[str, ...], Iterable[tuple[str, ...]]], ...] = (
        (
            "Criteria without an answer",
            ("verdict", "why", "count", "criteria"),
            _by_reason(material),
        ),
        ("Nodes without a value", ("nodes", "count", "missing"), _nodes(material)),
        (
            "Checks that gave no value",
            ("check", "status", "count", "where", "why"),
            _failed(material),
        ),
        (
            "Checks that were not run",
            ("criteria that wait", "last measured", "checks"),
            _by_need(material),
        ),
        (
            "Roles, links and file systems without a value",
            ("what", "name", "why"),
            _places(material),
        ),
        ("Sweeps that were not run", ("last measured", "sweeps"), _by_time(material)),
    )
    tables = [
        limited(columns, list(rows), MAX_ROWS, numeric={"count"} & set(columns), title=title)
        for title, columns, rows in every
    ]
    filled = [table for table in tables if table.rows]
    return Section("untested", "What was not tested", brief(material), filled)


def brief(material: Material) -> str:
    """What is missing, in a sentence: first what is promised, then what nothing requires."""
    checks = material.once(_not_run)
    missing = []
    if lacking := [n.node for n in material.fleet.nodes.values() if n.untested]:
        missing.append(f"{count(len(lacking), 'node')} ({nodes(lacking)})")
    for one, many, names in (
        ("criterion", "criteria", [r.id for r in _criteria(material)]),
        ("check", "checks", [name for name, waiting, _ in checks if waiting]),
        (
            "part of the site",
            "parts of the site",
            [f"{kind} {name}" for kind, name, _ in _places(material)],
        ),
    ):
        if names:
            missing.append(f"{count(len(names), one, many)} ({few(names, MAX_NAMES)})")
    told = "Everything that the site promises was tested."
    if missing:
        told = f"Not tested: {'; '.join(missing)}."
    free = [
        (sum(not waiting for _, waiting, _ in checks), "check"),
        (len(material.once(_not_swept)), "sweep"),
    ]
    rest = " and ".join(count(number, word) for number, word in free if number)
    if not rest:
        return told
    return f"{told} In addition {rest} of the suite were not run; no criterion waits for them."


def _criteria(material: Material) -> list[CriterionVerdict]:
    """INCOMPLETE, PENDING, and what no tool could measure."""
    return [
        r
        for r in material.judged.verdicts
        if r.verdict in UNDECIDED and not r.criterion.report_only
    ]


def _by_reason(material: Material) -> Iterator[tuple[str, str, str, str]]:
    """Criteria that lack an answer on the same nodes for the same reason in one row."""
    groups: dict[object, list[CriterionVerdict]] = {}
    for result in map(_without_names, _criteria(material)):
        missing = frozenset(n.node for n in result.nodes if n.verdict is not Verdict.PASS)
        kinds = tuple(finding.alike for finding in result.findings)
        groups.setdefault((result.verdict, kinds, missing), []).append(result)
    for results in groups.values():
        names = [result.id for result in results]
        why = reason(results[0]) or "-"
        yield str(results[0].verdict), why, str(len(names)), ", ".join(names)


def _without_names(result: CriterionVerdict) -> CriterionVerdict:
    """The same without its metric's name in the findings, for a row of several criteria."""
    findings = tuple(
        replace(finding, criterion="", metric="the metric" if finding.metric else "")
        for finding in result.findings
    )
    return replace(result, findings=findings)


def _nodes(material: Material) -> Iterator[tuple[str, str, str]]:
    """What nodes lack: a line for each set of nodes that lack the same."""
    lack: dict[tuple[str, ...], list[str]] = {}
    for node in material.fleet.nodes.values():
        if node.untested:
            lack.setdefault(tuple(fulls(node.findings)), []).append(node.node)
    for reasons, names in sorted(lack.items(), key=lambda item: -len(item[1])):
        yield nodes(names), str(len(names)), few(reasons, MAX_NAMES, "; ")


def _failed(material: Material) -> Iterator[tuple[str, str, str, str, str]]:
    """Jobs that gave no value: skipped for want of a tool, timed out, and the like."""
    held: dict[tuple[str, str, str], list[str]] = {}
    for s in material.judged.samples:
        if s.status != "ok":
            held.setdefault((s.header.check, s.status, s.why), []).append(
                s.node or link_of(s) or "the system"
            )
    for (check, status, why), names in sorted(held.items()):
        yield check, status, str(len(names)), few(_named(material, names), MAX_NAMES), why or "-"


def _named(material: Material, names: Iterable[str]) -> list[str]:
    """Nodes as a set; links and the system by their names."""
    own = [name for name in names if material.site.role_of(name)]
    rest = sorted({name for name in names if not material.site.role_of(name)})
    return ([nodes(own)] if own else []) + rest


def _by_need(material: Material) -> Iterator[tuple[str, str, str]]:
    """The checks that nobody waits for, and that were run at the same time, in one line."""
    held: dict[tuple[str, str], list[str]] = {}
    for name, waiting, last in material.once(_not_run):
        held.setdefault((waiting, last), []).append(name)
    for (waiting, last), names in held.items():
        yield waiting or "none", last, ", ".join(names)


def _by_time(material: Material) -> Iterator[tuple[str, str]]:
    held: dict[str, list[str]] = {}
    for name, number, last in material.once(_not_swept):
        held.setdefault(last, []).append(f"{name} ({count(number, 'point')})")
    for last, names in held.items():
        yield last, ", ".join(names)


def _not_run(material: Material) -> list[tuple[str, str, str]]:
    """Checks of the suite without a judged value: the criteria that wait, and the last run."""
    run = {s.header.check for s in material.judged.samples if s.header.mode != PUBLISHED}
    last: dict[str, str] = {}
    for header in material.sessions.headers:
        if header.mode != PUBLISHED:
            last[header.check] = max(last.get(header.check, ""), header.time)
    waiting: dict[str, list[str]] = {}
    for key, criterion in material.site.criteria.items():
        if not (criterion.report_only or criterion.not_here):
            waiting.setdefault(criterion.metric.partition(".")[0], []).append(key)
    known = {m.check for m in material.site.catalogue.values() if m.check} - run
    rows = [
        (name, few(waiting.get(name, ()), MAX_NAMES), when(last[name]) if name in last else NEVER)
        for name in known
    ]
    return sorted(rows, key=lambda row: (not row[1], row[0]))


def _places(material: Material) -> list[tuple[str, str, str]]:
    """Roles, links and file systems of the site on which nothing has a value."""
    system, found = material.site.system, [s for s in material.good if s.header.mode != PUBLISHED]
    roles = {material.site.role_of(node) for node in material.measured}
    links = {link_of(s) for s in found}
    used = {s.conditions.get("file_system", s.dims.get("file_system")) for s in found}
    run_on = {partition.role for partition in system.partitions.values()}
    told = [
        ("role", role, "no value of its nodes" if role in run_on else "no partition runs on it")
        for role in system.nodes
        if role not in roles and not _shared(material, role, roles)
    ]
    told += [("link", name, "no value over it") for name in system.links if name not in links]
    return told + [
        ("file system", name, "no value on it") for name in system.file_systems if name not in used
    ]


def _shared(material: Material, role: str, roles: set[str | None]) -> bool:
    """Whether some of a role's nodes were measured in another role that they have, too."""
    mine = material.site.expected(role)
    return any(mine & material.site.expected(other) for other in roles if other)


def _not_swept(material: Material) -> list[tuple[str, int, str]]:
    """Sweep files of which no point is judged: name, points, and the last run."""
    run = {s.conditions.get("sweep", "") for s in material.judged.samples}
    last: dict[str, str] = {}
    for header in material.sessions.headers:
        name = header.conditions.get("sweep", "")
        last[name] = max(last.get(name, ""), header.time)
    return [
        (name, len(sweep.points), when(last[name]) if name in last else NEVER)
        for name, sweep in sorted(reading.examine()[0].items())
        if name not in run
    ]
