"""The criteria of a system that consists of others, from the verdicts on each of these.

A member is judged by the same rules as any system, with these criteria in place of its own. Only
the times when the system was up are computed from what the members' records show together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from siteproof.answers.age import Freshness
from siteproof.answers.criterion import CriterionVerdict, judge, of_members
from siteproof.record.evidence_records import Evidence
from siteproof.record.finding import Finding
from siteproof.record.samples import Sample
from siteproof.sites import Criterion, Hardware, Site
from siteproof.verdict import others
from siteproof.verdict.derived.given import Basis


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
    made: others.Made,
) -> list[CriterionVerdict]:
    """The verdict on each criterion. each: those of every member, by its name and the criterion.

    evidence: all records of the system. material: of the system, without samples.
    """
    found = []
    for key, criterion in site.criteria.items():
        if not criterion.over:
            found.append(others.by_evidence(key, criterion, site, evidence, made, fresh))
            continue
        of_each = {name: results[key] for name, results in each.items()}
        result = of_members(key, criterion, site.name, of_each)
        if not criterion.combines:
            result = _together(key, result, material, fresh, made)
        found.append(result)
    return found


def _together(
    key: str, known: CriterionVerdict, material: Basis, fresh: Freshness, made: others.Made
) -> CriterionVerdict:
    """The verdict on the times of all members together, with that on each. known: of these."""
    name = material.site.name

    def judged(
        criterion: Criterion, samples: Sequence[Sample], lacks: Mapping[str, Finding]
    ) -> CriterionVerdict:
        return judge(key, criterion, samples, {name: Hardware()}, fresh=fresh, lacks=lacks)

    result = others.derived(key, known.criterion, material, made, judged)
    members = known.nodes[0].members
    return replace(result, nodes=[replace(one, members=members) for one in result.nodes])
