"""What was not tested: nodes, checks, links, file systems, sweeps; and how many criteria."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from siteproof.answers import expected
from siteproof.answers.criterion import CriterionVerdict
from siteproof.errors import UserError, UserErrors
from siteproof.nodes.states import NodeReport
from siteproof.record.finding import UNDECIDED, Finding, Kind
from siteproof.record.pair_units import grouped, link_of
from siteproof.record.samples import PUBLISHED, Header
from siteproof.report.chapters import changes
from siteproof.report.chapters.criteria import by_severity
from siteproof.report.chapters.nodes import common, kinds
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, few, nodes, when
from siteproof.sweeps import reading
from siteproof.units import count

MAX_NAMES = 4  # things of a kind in a sentence
MAX_ROWS = 100  # of a table
NEVER = "never"
WITHOUT_VALUE = (
    *(Kind.NOT_MEASURED, Kind.NO_VALUE, Kind.NODE_LOST, Kind.INTERRUPTED, Kind.PAIRS_WITHOUT_VALUE),
    *(Kind.TOO_OLD, Kind.AGE_UNKNOWN, Kind.REPLACED, Kind.UPDATED_SINCE),  # it does not count now
    *(Kind.OTHER_CONDITION, Kind.OTHER_PROGRAM, Kind.SETTING_CHANGED, Kind.TRIALS_MISSING),
)


def chapter(material: Material) -> Section:
    """A table for each kind of thing that was not tested."""
    not_run = grouped(
        ((waiting or "none", last), name) for name, waiting, last in material.once(_not_run)
    )
    not_swept = grouped(
        (last, f"{name} ({count(number, 'point')})")
        for name, number, last in material.once(_not_swept)
    )
    by_need = [(*key, ", ".join(names)) for key, names in not_run.items()]
    by_time = [(last, ", ".join(names)) for last, names in not_swept.items()]
    only_once = "Measured at only one of the times that are compared"
    parts: list[tuple[str, str, Iterable[Sequence[str]]]] = [
        ("Nodes that lack some value", "nodes, count, missing", _nodes(material)),
        ("Checks that gave no value", "check, status, count, where, why", _failed(material)),
        ("Checks that were not run", "needed by, last measured, checks", by_need),
        ("Roles, links and file systems without a value", "what, name, why", _places(material)),
        ("Sweeps that were not run", "last measured, sweeps", by_time),
        (only_once, "when, nodes, count, metrics", _only_once(material)),
    ]
    tables = []
    for title, names, rows in parts:
        columns = names.split(", ")
        numeric = {"count"} & set(columns)
        tables.append(Table(columns, list(rows), numeric=numeric, title=title, most=MAX_ROWS))
    return Section("untested", "What was not tested", brief(material), tables)


def brief(material: Material) -> str:
    """What is missing, in a sentence: first what is promised, then what nothing requires."""
    found = [f"{what} ({few(names, MAX_NAMES)})" for what, names in missing(material)]
    text = f"Not tested: {'; '.join(found)}." if found else "All that the site promises was tested."
    checks_left = sum(not waiting for _, waiting, _ in material.once(_not_run))
    left = {"check": checks_left, "sweep": len(material.once(_not_swept))}
    rest = " and ".join(count(number, thing) for thing, number in left.items() if number)
    if rest:
        text += f" In addition {rest} of the suite were not run; no criterion waits for them."
    return text


def missing(material: Material) -> list[tuple[str, list[str]]]:
    """How many criteria, nodes, checks and parts of the site have no value, and which."""
    waiting = [name for name, criteria, _ in material.once(_not_run) if criteria]
    places = [f"{kind} {name}" for kind, name, _ in _places(material)]
    found = [
        (("criterion", "criteria"), [r.id for r in _criteria(material)]),
        (("check", "checks"), waiting),
        (("part of the site", "parts of the site"), places),
    ]
    rows = [(count(len(names), *words), names) for words, names in found if names]
    if lack := lacking(material):
        rows.append((lack_some_value(lack), [nodes(lack)]))
    return rows


def lacking(material: Material) -> list[str]:
    """The nodes that lack some value, whatever else is wrong with them."""
    return [node.node for node in material.fleet.nodes.values() if node.untested]


def lack_some_value(found: Sequence[str]) -> str:
    """`1 node lacks some value`; the state UNTESTED is that of nodes with no other fault."""
    return f"{count(len(found), 'node')} {'lacks' if len(found) == 1 else 'lack'} some value"


def _criteria(material: Material) -> list[CriterionVerdict]:
    """INCOMPLETE, PENDING, and what no tool could measure."""
    return [
        r
        for r in by_severity(material.judged.verdicts)
        if r.verdict in UNDECIDED and not r.criterion.report_only
    ]


def _nodes(material: Material) -> Iterator[tuple[str, str, str]]:
    """Nodes that lack some value: a row for those whose findings differ in numbers only."""
    untested = (node for node in material.fleet.nodes.values() if node.untested)
    groups = grouped((kinds(_missing(node)), node) for node in untested)
    for alike in sorted(groups.values(), key=len, reverse=True):
        reasons = common(map(_missing, alike))
        yield nodes(n.node for n in alike), str(len(alike)), few(reasons, MAX_NAMES, "; ")


def _only_once(material: Material) -> Iterator[tuple[str, str, str, str]]:
    """Metrics that were measured now or the last time only, those of the same nodes in a row."""
    try:
        since = material.once(changes.last_time)
    except (UserError, UserErrors):
        return  # the chapter on what changed has the reason
    if since is None:
        return
    for title, findings in (("then", since.result.only_a), ("now", since.result.only_b)):
        metrics = grouped(dict.fromkeys((found.subject, found.metric) for found in findings))
        for subject, names in metrics.items():
            yield f"only {title}", subject, str(len(names)), few(names, MAX_NAMES)


def _missing(node: NodeReport) -> list[Finding]:
    """The findings on values that a node does not have."""
    return [finding for finding in node.findings if finding.kind in WITHOUT_VALUE]


def _failed(material: Material) -> Iterator[tuple[str, str, str, str, str]]:
    """Jobs that gave no value: a tool was missing, the time was over, and the like."""
    groups = grouped(
        ((s.header.check, s.status, s.why), s.node or link_of(s) or "the system")
        for s in material.judged.samples
        if s.status != "ok"
    )
    for (check, status, why), names in sorted(groups.items()):
        own = {name for name in names if material.site.role_of(name)}  # else links, the system
        named = [*filter(None, [nodes(own)]), *sorted(set(names) - own)]
        yield check, status, str(len(names)), few(named, MAX_NAMES), why or "-"


def _not_run(material: Material) -> list[tuple[str, str, str]]:
    """Checks of the suite without a judged value: the criteria that wait, and the last run."""
    run = {sample.header.check for sample in material.own}
    last = _last_runs(material, lambda header: header.check)
    waiting = grouped(
        (one.metric.partition(".")[0], key)
        for key, criterion in material.site.criteria.items()
        if not (criterion.report_only or criterion.not_here)
        for one in expected.answering(material.site, criterion)
    )
    known = {m.check for m in material.site.catalogue.values() if m.check} - run
    rows = [
        (name, few(list(dict.fromkeys(waiting.get(name, ()))), MAX_NAMES), last.get(name, NEVER))
        for name in known
    ]
    return sorted(rows, key=lambda row: (not row[1], row[0]))


def _last_runs(material: Material, name_of: Callable[[Header], str]) -> dict[str, str]:
    """When each check or sweep was last run. name_of: the name for a header."""
    last: dict[str, str] = {}
    for header in sorted(material.sessions.headers, key=lambda header: header.time):
        if header.mode != PUBLISHED:
            last[name_of(header)] = when(header.time)
    return last


def _places(material: Material) -> list[tuple[str, str, str]]:
    """Roles, links and file systems of the site on which nothing has a value."""
    system, found = material.site.system, [s for s in material.own if s.status == "ok"]
    links = {link_of(s) for s in found}
    used = {s.conditions.get("file_system", s.dims.get("file_system")) for s in found}
    rows = list(_roles(material))
    rows += [("link", name, "no value over it") for name in system.links if name not in links]
    rows += [
        ("file system", name, "no value on it") for name in system.file_systems if name not in used
    ]
    return rows


def _roles(material: Material) -> Iterator[tuple[str, str, str]]:
    """Roles without a value, unless some of their nodes were measured in another role."""
    system, expected = material.site.system, material.site.expected
    measured = {role for node in material.measured if (role := material.site.role_of(node))}
    elsewhere = {node for role in measured for node in expected(role)}
    run_on = {role for partition in system.partitions.values() for role in partition.roles}
    for role in system.nodes:
        if role not in measured and elsewhere.isdisjoint(expected(role)):
            why = "no value of its nodes" if role in run_on else "no partition runs on it"
            yield "role", role, why


def _not_swept(material: Material) -> list[tuple[str, int, str]]:
    """Sweep files of which no point is judged: name, points, and the last run."""
    run = {s.conditions.get("sweep", "") for s in material.judged.samples}
    last = _last_runs(material, lambda header: header.conditions.get("sweep", ""))
    sweeps = sorted(reading.examine()[0].items())
    return [
        (name, len(sweep.points), last.get(name, NEVER))
        for name, sweep in sweeps
        if name not in run
    ]
