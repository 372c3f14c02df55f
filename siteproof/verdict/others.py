"""Criteria that no check answers by itself: derived values, and a person's evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from siteproof.answers import expected
from siteproof.answers.age import Freshness
from siteproof.answers.criterion import CriterionVerdict, judge
from siteproof.errors import UserError
from siteproof.record import evidence_records
from siteproof.record.evidence_records import Evidence
from siteproof.record.finding import Finding, note
from siteproof.record.samples import Header, Sample
from siteproof.record.severity import Verdict
from siteproof.sites import Criterion, Expected, Site
from siteproof.units import parse
from siteproof.verdict.derived.given import Basis, derive

Made = dict[str, Sequence[Sample]]  # derived values and evidence, by the criterion's key
Judge = Callable[[Criterion, Sequence[Sample], Mapping[str, Finding]], CriterionVerdict]


def derived(
    key: str, criterion: Criterion, material: Basis, made: Made, judged: Judge
) -> CriterionVerdict:
    """The verdict on a criterion whose metric follows from others; none is published."""
    values, lacks = derive(material, criterion)
    samples = [replace(sample, own_conditions=_met(criterion, sample)) for sample in values]
    made[key] = samples
    result = judged(criterion.like(trials=None), samples, lacks)
    return replace(result, criterion=criterion)


def _met(criterion: Criterion, sample: Sample) -> dict[str, str]:
    """Conditions by which a value meets the rules that its inputs have met already."""
    known = {**sample.dims, **sample.header.conditions}
    rules = {k: v for k, v in criterion.conditions.items() if k != "mode"}
    met = {name: _example(rule) for name, rule in rules.items() if name not in known}
    if criterion.programs and known.get("program", "") not in criterion.programs:
        met["program"] = criterion.programs[0]
    return met


def _example(rule: Expected) -> str:
    """A value that meets a rule."""
    given = rule.texts or rule.pattern or [rule.about or rule.at_least or rule.at_most or ""]
    return given[0]


def by_evidence(
    key: str,
    criterion: Criterion,
    site: Site,
    records: Sequence[Evidence],
    made: Made,
    fresh: Freshness,
) -> CriterionVerdict:
    """The verdict on a criterion that a person's evidence answers; without any it is PENDING."""
    taken_back = evidence_records.withdrawn(records)
    found = evidence_records.of_criterion(records, key)
    valid = [record for record in found if record.name not in taken_back]
    due = note("the evidence of a person is due", criterion=key)
    if found and not valid:
        back = taken_back[found[-1].name]
        text = "evidence of {since:day} withdrawn by {by}: {message}; new one is due"
        due = note(text, criterion=key, since=found[-1].on, message=back.note, by=back.by)
    system = criterion.like(subject="system", scope="system", nodes=[], links=[], programs=[])
    samples = [_sample(site, criterion, record) for record in valid[-1:]]
    made[key] = samples
    whole = expected.nodes(site, system)
    result = judge(key, system, samples, whole, fresh=fresh)
    why = result.findings
    if valid and result.verdict in (Verdict.PASS, Verdict.FAIL):
        why = (_finding(valid[-1]),)
    if result.verdict is Verdict.INCOMPLETE:
        why = why if valid else (due,)
        result = replace(result, verdict=Verdict.PENDING)
    if not result.excused:
        nodes = [replace(node, verdict=result.verdict, findings=why) for node in result.nodes]
        result = replace(result, findings=why, nodes=nodes)
    return replace(result, criterion=criterion)


def _finding(record: Evidence) -> Finding:
    return note(
        "shown by {by} on {on}, {file}{message:: %s}",
        criterion=record.criterion,
        message=record.note,
        by=record.by,
        on=record.on,
        file=f"{record.file} (SHA-256 {record.sha256[:12]}…)",
    )


def _sample(site: Site, criterion: Criterion, record: Evidence) -> Sample:
    """Evidence as a sample of the whole system, measured on its day."""
    check = criterion.metric.partition(".")[0]
    head = Header(
        evidence_records.FOLDER,
        site.system.system,
        "",
        "",
        check,
        record.name,
        f"{record.on}T00:00:00+00:00",
        "acceptance",
    )
    value, unit = value_of(site, criterion, record.shows)
    own = {name: _example(rule) for name, rule in criterion.conditions.items() if name != "mode"}
    why = f"by {record.by}: {record.file}, SHA-256 {record.sha256}"
    return Sample(head, "", criterion.metric, value, unit, why=why, own_conditions=own)


def value_of(site: Site, criterion: Criterion, shows: str) -> tuple[Decimal | str, str]:
    """What evidence shows, as a value of the criterion's metric with its unit. Raises UserError."""
    unit = site.catalogue[criterion.metric].unit
    if unit == "text":
        return shows, unit
    if unit == "count" and shows in (evidence_records.YES, evidence_records.NO):
        return Decimal(shows == evidence_records.YES), unit
    quantity = parse(shows, "--shows")
    quantity.to(unit)
    return quantity.value, quantity.unit


def refused(site: Site, key: str) -> None:
    """Raises UserError for a criterion that evidence does not answer, or that is not there."""
    if key not in site.criteria:
        named = [name for name, c in site.criteria.items() if c.answered_by == "evidence"]
        raise UserError("evidence", f"unknown criterion '{key}'", named)
    if site.criteria[key].answered_by != "evidence":
        what = f"{key} is answered by measurement, not by evidence"
        hint = "Only a criterion with 'answered_by: evidence' takes a person's word"
        raise UserError("evidence", what, hint=hint)
