"""The samples from which a derived metric follows: which a criterion on it selects, and how."""

from __future__ import annotations

from siteproof.record.pair_units import LINK
from siteproof.record.samples import EMULATED
from siteproof.sites import Criterion, Expected, Site
from siteproof.sites.promise import SCOPES, Subject

CAMPAIGN, ROLE = "campaign", "nodes"  # keys of `against` that are no conditions
PAIRS = ("TcpBandwidth", "PathMtu", "MpiPingPong")
WHOLE = ("Ior", "Lnet", "Service", "Workload")
OF_LINKS = ("TcpBandwidth.aggregate",)
BOUNDS = ("at_least", "at_most", "equals")


def of_check(site: Site, check: str, *, deciding: bool = False) -> list[Criterion]:
    """The criteria that a check answers, and inputs of derived ones.

    deciding: without those that are reported only.
    """
    wanted = (c for c in site.criteria.values() if not (deciding and c.report_only))
    answered = (one for criterion in wanted for one in answering(site, criterion))
    return [one for one in answered if one.metric.partition(".")[0] == check]


def answering(site: Site, criterion: Criterion) -> list[Criterion]:
    """What answers a criterion: itself; of a derived metric the inputs, of both sides.

    None of what a person's evidence answers.
    """
    if criterion.answered_by == "evidence":
        return []
    entry = site.catalogue[criterion.metric]
    if entry.check or not entry.derived_from:
        return [criterion]
    return [
        select(site, criterion, name, against=against)
        for name in entry.derived_from
        if name in site.catalogue
        for against in ([False, True] if criterion.against else [False])
    ]


def _subject(metric: str) -> Subject:
    """What a value of a metric belongs to."""
    check = metric.partition(".")[0]
    if check in WHOLE or metric in OF_LINKS:
        return "system"
    return "pair" if check in PAIRS else "node"


def select(site: Site, criterion: Criterion, metric: str, *, against: bool = False) -> Criterion:
    """A criterion without a bound that selects an input's samples as this one selects its own.

    against: those of the other side.
    """
    known = site.catalogue.get(metric)  # None: a value that no criterion may name
    names = ("mode", EMULATED, *(known.conditions if known else ()))
    rules = {name: rule for name, rule in criterion.conditions.items() if name in names}
    changes: dict[str, object] = {}
    for name, text in criterion.against.items() if against else ():
        if name == LINK:
            changes["links"] = [text]
        elif name == ROLE:
            changes["nodes"] = [text]
        elif name in names:
            rules[name] = Expected(exact=text)
    subject = _subject(metric)
    return criterion.like(
        metric=metric,
        subject=subject,
        scope=SCOPES.get(subject, "system"),
        conditions=rules,
        programs=[p for p in criterion.programs if known and p in known.programs],
        **dict.fromkeys(BOUNDS),
        report_only=f"an input of {criterion.metric}",
        **changes,
    )
