"""What criteria require of a run: the settings of its check, and the points that it measures.

A criterion sets the runs of the modes that it names, or of acceptance where it names none. Of
trials it sets all runs that may answer it: one with fewer trials would replace its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from siteproof.answers import inputs
from siteproof.answers.attempts import may_answer
from siteproof.record.samples import Header
from siteproof.sites import Criterion, Expected, Site
from siteproof.sites.catalogue import Setting

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
    """The values of a setting of which a run measures each: the default, and those required."""
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
        for key, criterion in site.criteria.items()
        for one in inputs.answering(site, criterion)
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
    return (one for one in inputs.of_check(site, job.check) if may_answer(one, job))


def _rules(criterion: Criterion, job: Header, name: str) -> Iterable[Expected]:
    """What a criterion requires of a setting in the mode of a job."""
    if name == TRIALS and criterion.trials:
        yield Expected(at_least=str(criterion.trials))
    if name in criterion.conditions and criterion.sets(job.mode):
        yield criterion.conditions[name]
