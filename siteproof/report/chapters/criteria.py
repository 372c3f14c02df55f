"""Every criterion: what it requires, its source, what was found, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from siteproof.judge.criterion import CriterionVerdict
from siteproof.record.finding import Kind
from siteproof.report.material import Material
from siteproof.report.phrases import counted, few, when
from siteproof.report.sections import Section, Table, filled
from siteproof.severity import NOT_KEPT, RANKS, Verdict
from siteproof.sites.promise import CONTRACT_MODES
from siteproof.units import count
from siteproof.verdict.tally import Tally
from siteproof.wording import tallies
from siteproof.wording.findings import warning
from siteproof.wording.verdicts import age, answered_line

COLUMNS = (
    "criterion",
    "verdict",
    "description",
    "required",
    "worst value",
    "margin",
    "counts",
    "why",
    "age",
    "source",
    "see",
)
DEFAULT_MODE = ("mode", " or ".join(CONTRACT_MODES))  # in the note of the table
NOTE = (
    "The newest value that meets the conditions counts. Where the contract rounds, the value from "
    "which it passes is in parentheses; the margin is to that value. Required is mode maintenance "
    "or acceptance, unless another is named."
)
MAX_CRITERIA = 5  # in a sentence


def chapter(material: Material) -> Section:
    """All criteria, and what no criterion covers."""
    judged = material.judged
    rows = [_row(material, result) for result in by_severity(judged.verdicts)]
    of = f" on {when(judged.as_of)}" if judged.as_of else ""
    note = f"{NOTE} Age is that of the oldest answer{of}."
    tables = filled(Table(COLUMNS, rows, note, rows_are="criterion"))
    warnings = [why for why in judged.warnings if why.kind is not Kind.WAIVER_EXPIRED]
    points = [f"Warning for {warning(why)}" for why in warnings]  # waivers have their own table
    points += [f"Measured, and no criterion covers it: {metric}" for metric in judged.unjudged]
    points += [
        f"Set aside, not collected: {stage}"
        for stage in (judged.sessions.set_aside if judged.sessions else ())
    ]
    return Section("criteria", "Criteria", brief(material), tables, points=points)


def brief(material: Material) -> str:
    """How many criteria have which verdict, and which are not met."""
    verdicts = material.judged.verdicts
    if not verdicts:
        return "The site has no criteria: there is none in criteria.yaml."
    text = f"{answered_line(material.judged)}; {counts(material)}."
    bad = [f"{r.id} ({r.verdict})" for r in by_severity(verdicts) if r.verdict in NOT_KEPT]
    return f"{text} Not met: {few(bad, MAX_CRITERIA)}." if bad else text


def by_severity(verdicts: Iterable[CriterionVerdict]) -> list[CriterionVerdict]:
    """The most severe first, those of one verdict as the site lists them."""
    return sorted(verdicts, key=lambda result: RANKS[result.verdict])


def counts(material: Material) -> str:
    """`2 FAIL, 9 PASS`."""
    number = Counter(result.verdict for result in material.judged.verdicts)
    return counted((verdict, number[verdict]) for verdict in Verdict)


def _row(material: Material, result: CriterionVerdict) -> tuple[str, ...]:
    criterion, tally = result.criterion, Tally.of(material.site, result)
    by_rounding = ["passes only by rounding"] if result.by_rounding else []
    note = f". Note: {criterion.note}" if criterion.note else ""
    return (
        result.id,
        str(result.verdict),
        f"{criterion.description}{note}",
        "; ".join(required(tally)),
        ", ".join(filter(None, (tallies.value(tally), tallies.worst(tally)))),
        tallies.margin(tally),
        "; ".join(tallies.counts(tally)) or "-",
        "; ".join([*tallies.reasons(tally), *by_rounding]) or "-",
        age(result),
        criterion.source,
        criterion.metric,
    )


def required(tally: Tally) -> Iterator[str]:
    """The bound, the nodes or links, and the conditions under which a value counts."""
    criterion = tally.criterion
    yield f"{criterion.metric} {tallies.limit(tally)}"
    where = ""
    if criterion.links:
        where = f"over {' or '.join(criterion.links)}"
    elif criterion.nodes:
        where = f"of {' and '.join(criterion.nodes)}"
    yield f"{criterion.scope} {where}".rstrip()
    for key, rule in criterion.conditions.items():
        if (key, str(rule)) != DEFAULT_MODE:
            yield f"{key} {rule}"
    if criterion.programs:
        yield f"program {' or '.join(criterion.programs)}"
    if criterion.trials:
        yield count(criterion.trials, "trial")
