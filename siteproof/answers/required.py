"""What criteria require of a run: the metrics that answer them, the settings of its check, points.

A derived metric is answered by its inputs, whose samples a criterion selects as its own. A
criterion sets the runs of the modes that it names, or of acceptance where it names none. Of trials
it sets all runs that may answer it: one with fewer trials would replace its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from siteproof.answers.attempts import may_answer
from siteproof.record.pair_units import LINK
from siteproof.record.samples import EMULATED, Header
from siteproof.sites import Criterion, Expected, Site
from siteproof.sites.catalogue import Setting
from siteproof.sites.promise import SCOPES, Subject

CAMPAIGN, ROLE = "campaign", "nodes"  # keys of `against` that are no conditions
BOUNDS = ("at_least", "at_most", "equals")


def of_check(site: Site, check: str, *, deciding: bool = False) -> list[Criterion]:
    """The criteria that a check answers, and inputs of derived ones.

    deciding: without those that are reported only.
    """
    wanted = (c for c in site.owed.values() if not (deciding and c.report_only))
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
    subject: Subject = known.subject if known else "node"
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


WHOLE = "sweep"  # condition of what only a whole sweep has
TRIALS = "trials"  # a setting that is a key of the criterion, too


def settings(site: Site, check: str) -> dict[str, Setting]:
    """What criteria may set of a check, by the name of the condition."""
    own = (metric.settings for metric in site.catalogue.values() if metric.check == check)
    return {name: setting for each in own for name, setting in each.items()}


def one(site: Site, job: Header, name: str, default: str = "") -> str:
    """The value of a setting that all units of a run share; the default one where that will do.

    Where no value meets all criteria, one that most of them can be answered with. job: what its
    attempts share, as far as that is known.
    """
    setting = settings(site, job.check).get(name)
    if setting is None:
        return default
    rules = [rule for criterion in _criteria(site, job) for rule in _rules(criterion, job, name)]
    able = dict.fromkeys([default, *(text for rule in rules for text in setting.able(rule))])
    return max(able, key=lambda text: sum(rule.met_by(text) for rule in rules))


def each(site: Site, job: Header, name: str, default: Sequence[str]) -> list[str]:
    """The values of a setting of which a run measures each: the default, and those"""
    found = list(default)
    setting = settings(site, job.check)[name]
    for criterion in _criteria(site, job):
        for rule in _rules(criterion, job, name):
            if not any(map(rule.met_by, found)):
                found += setting.able(rule)[:1]
    return found


def points(site: Site, job: Header) -> list[dict[str, str]]:
    """The values of settings that criteria require together, each combination once."""
    found = [point for _, point in set_by(site, job)]
    return [point for number, point in enumerate(found) if point not in found[:number]]


def set_by(site: Site, job: Header) -> list[tuple[str, dict[str, str]]]:
    """Each criterion that sets a job, by its key, with the values that it requires."""
    known = settings(site, job.check)
    found = [
        (key, _point(known, one, job))
        for key, criterion in site.owed.items()
        for one in answering(site, criterion)
        if one.metric.partition(".")[0] == job.check
        and may_answer(one, job)
        and WHOLE not in site.catalogue[one.metric].conditions
    ]
    return [(key, point) for key, point in found if point]


def _point(known: Mapping[str, Setting], criterion: Criterion, job: Header) -> dict[str, str]:
    """The values that a criterion requires of the settings; none where one of them cannot be."""
    point: dict[str, str] = {}
    for name, setting in known.items():
        for rule in _rules(criterion, job, name):
            able = setting.able(rule)
            if not able:
                return {}
            point[name] = able[0]
    return point


def _criteria(site: Site, job: Header) -> Iterator[Criterion]:
    """The criteria, and inputs of derived ones, that a job of the check may answer."""
    return (one for one in of_check(site, job.check) if may_answer(one, job))


def _rules(criterion: Criterion, job: Header, name: str) -> Iterable[Expected]:
    """What a criterion requires of a setting in the mode of a job."""
    if name == TRIALS and criterion.trials:
        yield Expected(at_least=str(criterion.trials))
    if name in criterion.conditions and criterion.sets(job.mode):
        yield criterion.conditions[name]
