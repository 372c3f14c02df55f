"""Every criterion: what it requires, its source, what was found, and why; and a sheet to sign."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from siteproof.answers.criterion import CriterionVerdict
from siteproof.record.finding import NOT_KEPT, RANKS, Kind
from siteproof.record.pair_units import grouped
from siteproof.report import past, value_tables
from siteproof.report.chapters import samples
from siteproof.report.figure import marked
from siteproof.report.figure.marked import Mark
from siteproof.report.material import Material
from siteproof.report.sections import (
    NOTHING,
    Drawn,
    Link,
    Section,
    Table,
    anchor,
    few,
    period,
    when,
)
from siteproof.report.summary import BAD, NONE, OK, SLOW
from siteproof.sites.promise import CONTRACT_MODES
from siteproof.units import count, with_unit
from siteproof.verdict.derived.given import DerivedSample
from siteproof.verdict.tally import Standing, Tally
from siteproof.wording import tallies
from siteproof.wording.findings import stated, warning
from siteproof.wording.verdicts import age, answered_line, numbers

COLUMNS = (
    *("criterion", "verdict", "description", "required", "worst value", "margin", "counts", "why"),
    *("spread", "age", "source", "waived", "see"),
)
DEFAULT_MODE = ("mode", " or ".join(CONTRACT_MODES))  # in the note of the table
NOTE = (
    "The newest value that meets the conditions counts; that of a median or mean is of all nodes. "
    "Where the contract rounds, the value from which it passes is in parentheses; the margin is to "
    "that value. Required is mode maintenance or acceptance, unless another is named. A waived "
    "node misses its limit, and its owner answers for it up to the day given."
)
SUMS_NOTE = (
    "jobs.csv has the SHA-256 of each file of samples and evidence, as the chapter on the samples "
    "has it. recompute.py applies bounds and rounding to the tables again; 'sha256sum' on what is "
    "saved from the page, and on the files below perflogs, must give these sums."
)
LOOKS = {  # of the page's style
    Standing.PASSED: OK,
    Standing.BELOW_BASELINE: SLOW,
    Standing.FAILED: BAD,
    Standing.NO_VALUE: NONE,
}
LEAST = 2  # values that make a spread
MAX_CRITERIA = 5  # in a sentence
MAX_WAIVERS, MAX_SUITES = 6, 4
DECISIONS = ("accepted", "accepted with reservations", "refused")
PARTIES = ("the vendor", "the operator")
BOX, LINE = "[   ]", "_" * 24


def chapter(material: Material) -> Section:
    """All criteria, what no criterion covers, and the sheet, where there is a criterion."""
    judged = material.judged
    rows = [_row(material, result) for result in by_severity(judged.verdicts)]
    of = f" on {when(judged.as_of)}" if judged.as_of else ""
    note = f"{NOTE} Age is that of the oldest answer{of}."
    ids = [anchor("criterion", row[0]) for row in rows]
    tables = [Table(COLUMNS, rows, note, ids=ids)]
    warnings = [why for why in judged.warnings if why.kind is not Kind.WAIVER_EXPIRED]
    points = [f"Warning for {warning(why)}" for why in warnings]  # waivers have their own table
    points += [f"Measured, and no criterion covers it: {metric}" for metric in judged.unjudged]
    points += [f"Set aside, not collected: {stage}" for stage in judged.set_aside]
    points += [
        f"{name} has criteria of its own: siteproof report --system {name}"
        for name in judged.members
    ]
    parts = [_sheet(material)] if rows else []
    return Section("criteria", "Criteria", brief(material), tables, points=points, sections=parts)


def brief(material: Material) -> str:
    """How many criteria have which verdict, and which are not met."""
    verdicts = material.judged.verdicts
    if not verdicts:
        return "The site has no criteria: there is none in criteria.yaml."
    text = f"{answered_line(material.judged)}; {numbers(verdicts)}."
    bad = [f"{r.id} ({r.verdict})" for r in by_severity(verdicts) if r.verdict in NOT_KEPT]
    return f"{text} Not met: {few(bad, MAX_CRITERIA)}." if bad else text


def by_severity(verdicts: Iterable[CriterionVerdict]) -> list[CriterionVerdict]:
    """The most severe first, those of one verdict as the site lists them."""
    return sorted(verdicts, key=lambda result: RANKS[result.verdict])


def _row(material: Material, result: CriterionVerdict) -> tuple[str, ...]:
    criterion, tally = result.criterion, Tally.of(material.site, result)
    by_rounding = ["passes only by rounding"] if result.by_rounding else []
    note = f". Note: {criterion.note}" if criterion.note else ""
    values = material.once(samples.of_units)
    own = [row for (key, _), rows in values.items() if key == result.id for row in rows]
    jobs = [(f"job {job}", place) for job, place in samples.jobs_of(material, own)]
    return (
        Link([(result.id, anchor("values", result.id))]),
        str(result.verdict),
        f"{criterion.description}{note}",
        "; ".join(required(tally)),
        ", ".join(filter(None, (tallies.value(tally), tallies.worst(tally)))),
        tallies.margin(tally),
        "; ".join(tallies.counts(tally)) or NOTHING,
        "; ".join(
            [*tallies.members(tally), *tallies.reasons(tally), *by_rounding, *_of_tool(tally)]
        )
        or NOTHING,
        _spread(material, tally),
        age(result),
        criterion.source,
        "; ".join(_waived(material, result)) or NOTHING,
        Link([*jobs, ("", criterion.metric)], NOTHING),
    )


def required(tally: Tally) -> Iterator[str]:
    """The bound, the nodes or links, and the conditions under which a value counts."""
    criterion = tally.criterion
    yield f"{criterion.metric} {tallies.limit(tally)}"
    links, of_nodes = " or ".join(criterion.links or ()), " and ".join(criterion.nodes or ())
    where = f" over {links}" if links else f" of {of_nodes}" if of_nodes else ""
    yield f"{criterion.scope}{where}"
    if criterion.over:
        yield f"over its members: {criterion.over}"
    for key, rule in criterion.conditions.items():
        if (key, str(rule)) != DEFAULT_MODE:
            yield f"{key} {rule}"
    if criterion.programs:
        yield f"program {' or '.join(criterion.programs)}"
    if criterion.trials:
        yield count(criterion.trials, "trial")


def _of_tool(tally: Tally) -> Iterator[str]:
    """What the tool itself printed where the limit is missed, as a vendor asks for that."""
    sample = tally.worst.sample if tally.worst else None
    if tally.result.verdict not in NOT_KEPT or sample is None or sample.status != "ok":
        return
    if not isinstance(sample, DerivedSample):
        program = sample.conditions.get("program", sample.header.check)
        printed = sample.line or with_unit(sample.value, sample.unit)
        where = f" on {sample.node}" if sample.node else ""
        yield f"{program}{where}: {printed}"


def _spread(material: Material, tally: Tally) -> str:
    """A drawing of the values of all units with a value, in the bound's unit; none of one alone."""
    values: dict[str, list[float]] = {look: [] for look in LOOKS.values()}
    for standing, units in tally.standings.items():
        found = [value for unit in units if (value := tally.value(unit)) is not None]
        values[LOOKS[standing]] += map(float, found)
    known = sum(map(len, values.values()))
    if known < LEAST:
        return NOTHING
    text = f"{known} values in {tally.unit}"
    title = f"{tally.result.id}: {text}"
    return Drawn(marked.spread(title, tally.unit, values, list(_marks(material, tally))), text)


def _marks(material: Material, tally: Tally) -> Iterator[Mark]:
    """The limits where a value passes, and the baselines of the same metric."""
    sides = ("from", "up to") if tally.limit is None else ("limit", "limit")
    for side, limit in zip(sides, tally.limits, strict=True):
        if limit is not None:
            value = float(limit.value)
            yield Mark("bound", value, f"{side} {stated(value, tally.unit)}")
    if tally.shared or tally.unit == "text":
        return
    site, own = material.site, tally.criterion
    found = {
        mark
        for role in site.roles_of(own)
        for mark in past.baselines(site, own.metric, role, tally.unit, own.links)
    }
    yield from sorted(found, key=lambda mark: (mark.value, mark.text))


def _waived(material: Material, result: CriterionVerdict) -> list[str]:
    """The waivers that excuse a node of a criterion: nodes, key, owner and last day."""
    excused = {(result.id, node.node) for node in result.nodes if node.waived}
    rows = material.once(value_tables.rows_of)["units"]
    by_key = grouped(
        (key, row["unit"])
        for row in rows
        if (row["criterion"], row["unit"]) in excused
        for key in row["waivers"].split()
    )
    waivers = material.site.waivers
    texts = [
        f"{tallies.units(units)}: {key}, {waivers[key].owner}, until {waivers[key].expires}"
        for key, units in by_key.items()
    ]
    return texts[:MAX_WAIVERS]


def _sheet(material: Material) -> Section:
    """What is signed with the criteria: system, campaign, decision, sessions, and the values."""
    signed = ("for", "name", "role", "date", "signature")
    sessions = ("session", "first job", "last job", "jobs")
    jobs = material.once(value_tables.rows_of)["jobs"]
    times = grouped((str(job["session"]), str(job["time"])) for job in jobs)
    spans = [(key, when(min(of)), when(max(of)), str(len(of))) for key, of in sorted(times.items())]
    sums = []  # of what the page carries, so that a signature covers it
    for one in material.once(value_tables.attached):
        digest = hashlib.sha256(one.text.encode("utf-8", "backslashreplace")).hexdigest()
        sums.append((f"{one.name} of this page", digest))
    found = [
        Table(("decision", "mark", "remarks"), [(one, BOX, LINE) for one in DECISIONS]),
        Table(sessions, spans, title="Sessions", numeric={"jobs"}),
        Table(signed, [(party, *[LINE] * 4) for party in PARTIES], title="Signatures"),
        Table(("of", "SHA-256"), sums, SUMS_NOTE, title="Evidence"),
    ]
    heads = [sample.header for sample in material.own]
    suites = sorted({head.provenance.get("suite", "") for head in heads} - {""})
    verdict = material.judged.most_severe or "undecided"
    lead = (
        f"System {material.system}, {material.judged.chosen}: {verdict}. "
        f"{count(len(material.judged.verdicts), 'requirement')}, those above; measured "
        f"{period([head.time for head in heads])}; suite revision "
        f"{few(suites, MAX_SUITES) or 'not recorded'}; made {when(material.now)}."
    )
    return Section("sheet", "Acceptance sheet", lead, found)
