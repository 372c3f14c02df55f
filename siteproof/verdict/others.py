"""Criteria that no check answers by itself: derived values, and a person's evidence.

The criteria of a system that consists of others, from the verdicts on each of these.

A member is judged by the same rules as any system, with these criteria in place of its own. Only
the times when the system was up are computed from what the members' records show together.

Why a value misses its bound: what differs from the site, or from the other nodes of its job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from siteproof.answers import expected
from siteproof.answers.attempts import SERVICE, Freshness
from siteproof.answers.criterion import CriterionVerdict, judge, of_members
from siteproof.collect.derive.host import leaf
from siteproof.errors import UserError
from siteproof.record import evidence_records, finding, series
from siteproof.record.evidence_records import Evidence
from siteproof.record.finding import Finding, Kind, Verdict, note
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header, Sample
from siteproof.sites import Criterion, Expected, Hardware, Site
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


def asked(site: Site, member: Site) -> Site:
    """A member with the criteria of the system in place of its own, and no baseline and waiver."""
    own = {key: one.like(over="") for key, one in site.criteria.items() if one.over}
    return replace(member, criteria=own, baselines={}, waivers={})


def verdicts(
    site: Site,
    each: Mapping[str, Mapping[str, CriterionVerdict]],
    evidence: Sequence[Evidence],
    material: Basis,
    fresh: Freshness,
    made: Made,
) -> list[CriterionVerdict]:
    """The verdict on each criterion. each: those of every member, by its name and the criterion.

    evidence: all records of the system. material: of the system, without samples.
    """
    found = []
    for key, criterion in site.criteria.items():
        if not criterion.over:
            found.append(by_evidence(key, criterion, site, evidence, made, fresh))
            continue
        of_each = {name: results[key] for name, results in each.items()}
        result = of_members(key, criterion, site.name, of_each)
        if not criterion.combines:
            result = _together(key, result, material, fresh, made)
        found.append(result)
    return found


def _together(
    key: str, known: CriterionVerdict, material: Basis, fresh: Freshness, made: Made
) -> CriterionVerdict:
    """The verdict on the times of all members together, with that on each. known: of these."""
    name = material.site.name

    def judged(
        criterion: Criterion, samples: Sequence[Sample], lacks: Mapping[str, Finding]
    ) -> CriterionVerdict:
        return judge(key, criterion, samples, {name: Hardware()}, fresh=fresh, lacks=lacks)

    result = derived(key, known.criterion, material, made, judged)
    members = known.nodes[0].members
    return replace(result, nodes=[replace(one, members=members) for one in result.nodes])


Job = tuple[str, str, str]  # node, session, job
PARAMETER, PARAMETERS = "HostParameters.mismatch", "HostParameters.mismatches"
MAX_SHOWN = 5  # differing fields, and mismatches, of a node


class Missed:
    """What explains that samples of a site miss their bounds."""

    def __init__(self, site: Site, found: Iterable[Sample]) -> None:
        self._site = site
        self._parameters = grouped(
            (job_of(sample), _parameter(sample))
            for sample in found
            if sample.metric == PARAMETER and "parameter" in sample.dims
        )

    def why(self, sample: Sample) -> tuple[Finding, ...]:
        """The steps of a service that failed, or what else is not as it should be."""
        if sample.why and SERVICE in sample.conditions:
            return (note("{message}", metric=sample.metric, message=sample.why),)
        named = self.parameters(sample)
        more = {"count": len(named) - MAX_SHOWN}
        rest = [finding.of(Kind.FIELDS_DIFFER, more)] if len(named) > MAX_SHOWN else []
        return (*named[:MAX_SHOWN], *rest, *unlike(sample), *self._steered(sample))

    def parameters(self, sample: Sample) -> list[Finding]:
        """The parameters of a node that a count of mismatches, or of one kind of them, is about."""
        check, _, name = sample.metric.partition(".")
        kind = name.removesuffix("mismatches").removesuffix("_")
        if check != PARAMETERS.partition(".")[0] or not name.endswith("mismatches"):
            return []
        of_job = self._parameters.get(job_of(sample), [])
        return [why for why in of_job if kind in ("", leaf(str(why["parameter"])))]

    def _steered(self, sample: Sample) -> Iterator[Finding]:
        """The variables that controlled a library, but for those that the site's own file sets."""
        own = self._set_by_site(sample.header)
        names = {name: name.removeprefix(series.VARIABLE) for name in sample.conditions}
        shown = [
            f"{plain}={sample.conditions[name]}"
            for name, plain in sorted(names.items())
            if name != plain and plain not in own
        ]
        if shown:
            variables = " ".join(shown)
            yield note("measured with {variables}", metric=sample.metric, variables=variables)

    def _set_by_site(self, header: Header) -> set[str]:
        """The words of what the site sets for a partition and an environment."""
        system, texts = self._site.system, list[object]()
        if partition := system.partitions.get(header.partition):
            texts += [partition.variables, partition.prepare_cmds]
        if environment := system.environments.get(header.environment):
            texts += [environment.variables, environment.prepare_cmds, environment.reframe]
        return set(re.findall(r"\w+", str(texts)))


def unlike(sample: Sample) -> Iterator[Finding]:
    """The conditions in which a node differs from most nodes of its job."""
    own, common = series.conditions(sample), sample.header.conditions
    for key in sorted(sample.own_conditions.keys() & common.keys() & own.keys()):
        if own[key] != common[key]:
            details = {"condition": key, "found": own[key], "majority": common[key]}
            yield finding.of(Kind.CONDITION_DIFFERS, details)


def _parameter(sample: Sample) -> Finding:
    found = finding.of(Kind.PARAMETER_DIFFERS, {"parameter": sample.dims["parameter"]})
    return replace(found, check=sample.header.check, metric=PARAMETERS, value=str(sample.value))


def job_of(sample: Sample) -> Job:
    """The job that measured a node: each job has its own parameters."""
    return sample.node, sample.header.session, sample.header.job
