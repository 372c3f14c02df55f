"""What was not tested: criteria without an answer, nodes, checks, links, file systems, sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from siteproof.judge.criterion import CriterionVerdict
from siteproof.judge.gravity import UNDECIDED
from siteproof.record.pair_units import link_of
from siteproof.record.samples import PUBLISHED
from siteproof.report.material import Material
from siteproof.report.phrases import count, few, nodes, when
from siteproof.report.sections import Section, Table
from siteproof.sweeps import reading
from siteproof.wording.findings import fulls
from siteproof.wording.verdicts import reason

NAMED = 4  # things of a kind that a sentence names
MOST = 100  # lines of a table
NEVER = "never"


def chapter(material: Material) -> Section:
    """A table for each kind of thing that was not tested."""
    tables = [
        _table(
            ("verdict", "why", "count", "criteria"),
            _by_reason(material),
            "Criteria without an answer",
            ("count",),
        ),
        _table(("nodes", "count", "lack"), _nodes(material), "Nodes without a figure", ("count",)),
        _table(
            ("check", "status", "count", "where", "why"),
            _failed(material),
            "Checks that gave no value",
            ("count",),
        ),
        _table(
            ("criteria that wait", "last measured", "checks"),
            _by_need(material),
            "Checks that were not run",
        ),
        _table(
            ("what", "name", "why"),
            _places(material),
            "Roles, links and file systems without a figure",
        ),
        _table(("last measured", "sweeps"), _by_time(material), "Sweeps that were not run"),
    ]
    return Section(
        "untested",
        "What was not tested",
        brief(material),
        [table for table in tables if table.rows],
    )


def brief(material: Material) -> str:
    """What is missing, in a sentence: first what is owed, then what nobody asks for."""
    checks, owed = _checks(material), []
    for one, many, names in (
        ("criterion", "criteria", [r.id for r in _criteria(material)]),
        ("check", "checks", [name for name, waiting, _ in checks if waiting]),
        (
            "part of the site",
            "parts of the site",
            [f"{kind} {name}" for kind, name, _ in _places(material)],
        ),
    ):
        owed += [f"{count(len(names), one, many)} ({few(names, NAMED)})"] if names else []
    if lacking := [n.node for n in material.fleet.nodes.values() if n.untested]:
        owed.insert(0, f"{count(len(lacking), 'node')} ({nodes(lacking)})")
    told = (
        [f"Not tested: {'; '.join(owed)}."]
        if owed
        else ["Everything that the site promises was tested."]
    )
    free = [
        (sum(not waiting for _, waiting, _ in checks), "check"),
        (len(_sweeps(material)), "sweep"),
    ]
    rest = " and ".join(count(number, word) for number, word in free if number)
    return " ".join(
        told
        + (
            [f"Beside these {rest} of the suite, for which no criterion waits, were not run."]
            if rest
            else []
        )
    )


def _table(
    columns: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    title: str,
    numeric: tuple[str, ...] = (),
) -> Table:
    held = list(rows)
    left = f"{len(held) - MOST} more lines are left out." if len(held) > MOST else ""
    return Table(columns, held[:MOST], left, numeric, title)


def _criteria(material: Material) -> list[CriterionVerdict]:
    """INCOMPLETE, PENDING, and what no tool could measure."""
    return [
        r
        for r in material.judged.verdicts
        if r.verdict in UNDECIDED and not r.criterion.report_only
    ]


def _by_reason(material: Material) -> Iterator[tuple[str, str, str, str]]:
    """Criteria that lack an answer for the same reason in one line."""
    held: dict[tuple[str, str], list[str]] = {}
    for result in _criteria(material):
        why = reason(result).replace(result.criterion.metric, "its figure")
        held.setdefault((str(result.verdict), why or "-"), []).append(result.id)
    for (verdict, why), names in held.items():
        yield verdict, why, str(len(names)), ", ".join(names)


def _nodes(material: Material) -> Iterator[tuple[str, str, str]]:
    """What nodes lack: a line for each set of nodes that lack the same."""
    lack: dict[tuple[str, ...], list[str]] = {}
    for node in material.fleet.nodes.values():
        if node.untested:
            lack.setdefault(tuple(fulls(node.findings)), []).append(node.node)
    for reasons, names in sorted(lack.items(), key=lambda item: -len(item[1])):
        yield nodes(names), str(len(names)), few(reasons, NAMED, "; ")


def _failed(material: Material) -> Iterator[tuple[str, str, str, str, str]]:
    """Jobs that gave no value: skipped for want of a tool, timed out, and the like."""
    held: dict[tuple[str, str, str], list[str]] = {}
    for s in material.judged.samples:
        if s.status != "ok":
            held.setdefault((s.header.check, s.status, s.why), []).append(
                s.node or link_of(s) or "the system"
            )
    for (check, status, why), names in sorted(held.items()):
        yield check, status, str(len(names)), few(_named(material, names), NAMED), why or "-"


def _named(material: Material, names: Iterable[str]) -> list[str]:
    """Nodes as a set; links and the system by their names."""
    own = [name for name in names if material.site.role_of(name)]
    rest = sorted({name for name in names if not material.site.role_of(name)})
    return ([nodes(own)] if own else []) + rest


def _by_need(material: Material) -> Iterator[tuple[str, str, str]]:
    """The checks that nobody waits for, and that were run at the same time, in one line."""
    held: dict[tuple[str, str], list[str]] = {}
    for name, waiting, last in _checks(material):
        held.setdefault((waiting, last), []).append(name)
    for (waiting, last), names in held.items():
        yield waiting or "none", last, ", ".join(names)


def _by_time(material: Material) -> Iterator[tuple[str, str]]:
    held: dict[str, list[str]] = {}
    for name, number, last in _sweeps(material):
        held.setdefault(last, []).append(f"{name} ({count(number, 'point')})")
    for last, names in held.items():
        yield last, ", ".join(names)


def _checks(material: Material) -> list[tuple[str, str, str]]:
    """Checks of the suite of which nothing is judged: the criteria that wait, the last run."""
    return material.once(_not_run)


def _not_run(material: Material) -> list[tuple[str, str, str]]:
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
        (name, few(waiting.get(name, ()), NAMED), when(last[name]) if name in last else NEVER)
        for name in known
    ]
    return sorted(rows, key=lambda row: (not row[1], row[0]))


def _places(material: Material) -> list[tuple[str, str, str]]:
    """Roles, links and file systems of the site on which nothing has a value."""
    return material.once(_not_seen)


def _not_seen(material: Material) -> list[tuple[str, str, str]]:
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


def _sweeps(material: Material) -> list[tuple[str, int, str]]:
    """Sweep files of which no point is judged."""
    return material.once(_not_swept)


def _not_swept(material: Material) -> list[tuple[str, int, str]]:
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
