"""The values of a link as a whole, from turns that ran at the same time.

A check has such values if collect.derive has a function of its name and `_of_link`. There is one
outcome for each trial and each kind of run, such as direction=out streams=4, and values only where
every pair of the trial has one: what some pairs carry is not what the link carries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from siteproof.collect import outcome
from siteproof.collect.outcome import Outcome
from siteproof.collect.raw import Execution, Raw
from siteproof.parsers import Reading
from siteproof.record import samples
from siteproof.record.manifest import Manifest

MAX_KINDS = 100
NO_FAULT_OF_THE_LINK = ("node_lost", samples.INTERRUPTED)
Kind = tuple[tuple[str, str], ...]  # dimensions that runs of all pairs have in common


@dataclass(frozen=True)
class Way:
    """One direction of a turn, or both where neither was measured.

    direction: `out`, `in`, or empty. left, runs: what it was read from, as far as that went.
    """

    trial: int
    pair: str
    direction: str
    outcome: Outcome
    left: Raw | None = None
    runs: Sequence[Execution] = ()

    @cached_property
    def kinds(self) -> dict[Kind, Execution]:
        """Its runs by direction and dimensions; also of a failure, to name what has no value."""
        way = {"direction": self.direction} if self.direction else {}
        found = {}
        for run in self.runs:
            dims = {key: value for key, value in run.dims.items() if key != "program"}
            found[tuple(sorted({**dims, **way}.items()))] = run
        return found


def wanted(job: Manifest) -> Callable[..., list[Reading]] | None:
    """What makes such values, if a job has them."""
    return outcome.derived(job, "_of_link") if job.together else None


def outcomes(job: Manifest, ways: Iterable[Way]) -> list[tuple[str, Outcome]]:
    """The link's outcome of each trial and kind of run; its node is empty."""
    of_link = wanted(job)
    if of_link is None:
        return []
    trials: dict[int, list[Way]] = {}
    for way in ways:
        trials.setdefault(way.trial, []).append(way)
    found = []
    for trial, of_trial in trials.items():
        kinds = list(dict.fromkeys(kind for way in of_trial for kind in way.kinds))
        if len(kinds) > MAX_KINDS:
            why = f"{len(kinds)} kinds of runs in one trial, at most {MAX_KINDS} are added up"
            found.append(("", Outcome(status="parse", why=why, dims=_dims(job, trial, {}))))
            continue
        for kind in kinds or [()]:
            found.append(("", _of_kind(job, of_link, trial, dict(kind), of_trial)))
    return found


def _of_kind(
    job: Manifest,
    of_link: Callable[..., list[Reading]],
    trial: int,
    kind: Mapping[str, str],
    ways: Sequence[Way],
) -> Outcome:
    dims = _dims(job, trial, kind)
    pairs = {way.pair for way in ways}
    key = tuple(sorted(kind.items()))
    good = {way.pair: way for way in ways if way.outcome.status == "ok" and key in way.kinds}
    if len(good) < len(pairs):
        status, why = _lacking([way for way in ways if way.pair not in good])
        why = f"{len(good)} of {len(pairs)} pairs gave a value; {why}"
        return Outcome(status=status, why=why, dims=dims)
    try:
        moved = {
            pair: outcome.intervals(way.kinds[key], way.left, job)
            for pair, way in good.items()
            if way.left
        }
        readings = of_link(moved, job.facts)
        outcome.must_be_short(readings, {})
    except Exception as error:  # an error in one result must not stop the others
        wrong = outcome.reason(error)
        return Outcome(status=wrong.status, why=str(wrong), dims=dims)
    each = [way.outcome for way in good.values()]
    # What one pair alone is emulated by, the sum is.
    emulated = {k: v for o in each for k, v in o.conditions.items() if k == samples.EMULATED}
    return Outcome(
        readings,
        outcome.agreed([o.conditions for o in each]) | emulated,
        host=outcome.agreed([o.host for o in each]),
        dims=dims,
    )


def _dims(job: Manifest, trial: int, kind: Mapping[str, str]) -> dict[str, str]:
    dims = {**kind, "link": job.conditions.get("link", "")}
    return dims | ({"trial": str(trial)} if trial else {})


def _lacking(ways: Sequence[Way]) -> tuple[str, str]:
    """Status and reason for the pairs without a value: the first with a cause of its own.

    A pair that measured other kinds of runs has no failure to show.
    """
    failed = [way for way in ways if way.outcome.status != "ok"]
    if not failed:
        return "generic", f"{ways[0].pair} has no such run"
    of_the_link = [way for way in failed if way.outcome.status not in NO_FAULT_OF_THE_LINK]
    first = (of_the_link or failed)[0]
    status = first.outcome.status if of_the_link else samples.INTERRUPTED
    return status, f"{first.pair}: {first.outcome.status}: {first.outcome.why}"
