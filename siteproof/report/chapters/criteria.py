"""Every criterion: what was promised, where it is written, what was found, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from siteproof.judge.criterion import CriterionVerdict
from siteproof.judge.severity import NOT_KEPT, Verdict
from siteproof.report.material import Material
from siteproof.report.phrases import counted, few
from siteproof.report.sections import Section, Table
from siteproof.sites import Criterion
from siteproof.sites.promise import CONTRACT_MODES
from siteproof.units import count
from siteproof.wording.findings import warning
from siteproof.wording.verdicts import age, bound, reason, value

COLUMNS = (
    "criterion",
    "verdict",
    "promised",
    "asked",
    "worst value",
    "kept by",
    "age",
    "source",
    "see",
)
DEFAULT_MODE = ("mode", " or ".join(CONTRACT_MODES))  # told once
MAX_CRITERIA = 5  # criteria in a sentence


def chapter(material: Material) -> Section:
    """All criteria, and what no criterion covers."""
    judged = material.judged
    rows = [_row(material, r) for v in Verdict for r in judged.verdicts if r.verdict is v]
    tables = [
        Table(
            COLUMNS,
            rows,
            "The newest figure that meets the conditions counts; where the "
            "contract rounds, the rounded figure is after the arrow. Owed is mode "
            "maintenance or acceptance, unless another is named. Age is that of the oldest answer.",
        )
    ]
    points = [f"Warning for {warning(why)}" for why in judged.warnings]
    points += [f"Measured, and no criterion covers it: {metric}" for metric in judged.unjudged]
    points += [
        f"Set aside, not collected: {stage}"
        for stage in (judged.sessions.set_aside if judged.sessions else ())
    ]
    return Section("criteria", "Criteria", brief(material), tables if rows else [], points=points)


def brief(material: Material) -> str:
    """How many criteria have which verdict, and which are not kept."""
    verdicts = material.judged.verdicts
    if not verdicts:
        return "The site promises nothing: there is no criterion in criteria.yaml."
    told = f"{count(len(verdicts), 'criterion', 'criteria')}: {counts(material)}."
    bad = [f"{r.id} ({r.verdict})" for r in verdicts if r.verdict in NOT_KEPT]
    return f"{told} Not kept: {few(bad, MAX_CRITERIA)}." if bad else told


def counts(material: Material) -> str:
    """`2 FAIL, 9 PASS`."""
    return counted(
        (word, sum(r.verdict is word for r in material.judged.verdicts)) for word in Verdict
    )


def _row(material: Material, result: CriterionVerdict) -> tuple[str, ...]:
    criterion, worst = result.criterion, result.worst
    note = (
        f"{criterion.description}. Note: {criterion.note}"
        if criterion.note
        else criterion.description
    )
    return (
        result.id,
        str(result.verdict),
        note,
        "; ".join(_asked(material, result)),
        value(worst, criterion) if worst else "-",
        "; ".join(_kept(result)) or "-",
        age(result),
        criterion.source,
        criterion.metric,
    )


def _kept(result: CriterionVerdict) -> Iterator[str]:
    """How many keep it, and the worst of them or why not."""
    if result.nodes:
        yield f"{result.ok} of {count(len(result.nodes), *_units(result.criterion))}"
    if told := reason(result):
        yield told


def _asked(material: Material, result: CriterionVerdict) -> Iterator[str]:
    """The bound, of whom, and the conditions under which a figure counts."""
    criterion = result.criterion
    yield f"{criterion.metric} {bound(material.judged, result)}"
    whom = (
        f"over {' or '.join(criterion.links)}"
        if criterion.links
        else f"of {' and '.join(criterion.nodes)}"
        if criterion.nodes
        else ""
    )
    yield f"{criterion.scope} {whom}".rstrip()
    yield from (
        f"{key} {rule}"
        for key, rule in criterion.conditions.items()
        if (key, str(rule)) != DEFAULT_MODE
    )
    if criterion.programs:
        yield f"program {' or '.join(criterion.programs)}"
    if criterion.trials:
        yield count(criterion.trials, "trial")


def _units(criterion: Criterion) -> Collection[str]:
    """What is counted: nodes, pairs, links, or the system's one figure."""
    if criterion.links:
        return ("link",) if criterion.subject == "system" else ("pair",)
    return ("figure",) if criterion.scope in ("system", "median", "mean") else ("node",)
