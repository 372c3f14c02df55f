"""The figures of a link as a whole, from turns that ran at the same time.

A check has such figures if its module in siteproof.derive has `of_link`. There is one outcome for
each trial and each kind of run, such as direction=out streams=4, and figures only where every pair
of the trial has one: what some pairs carry is not what the link carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from siteproof.collect import outcome
from siteproof.collect.outcome import Outcome
from siteproof.collect.raw import Raw, Run
from siteproof.errors import OutputError
from siteproof.parsers import Reading
from siteproof.record import samples
from siteproof.record.manifest import Manifest

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
    runs: Sequence[Run] = ()

    def kinds(self) -> dict[Kind, Run]:
        """Its runs by direction and dimensions; also of a failure, to tell what has no figure."""
        way = {"direction": self.direction} if self.direction else {}
        found = {}
        for run in self.runs:
            told = {key: value for key, value in run.dims.items() if key != "program"}
            found[tuple(sorted({**told, **way}.items()))] = run
        return found


def outcomes(job: Manifest, ways: Iterable[Way]) -> list[tuple[str, Outcome]]:
    """The link's outcome of each trial and kind of run; its node is empty."""
    if not job.together or not job.derive or not hasattr(_derive(job), "of_link"):
        return []
    trials: dict[int, list[Way]] = {}
    for way in ways:
        trials.setdefault(way.trial, []).append(way)
    found = []
    for trial, of_trial in trials.items():
        kinds = dict.fromkeys(kind for way in of_trial for kind in way.kinds())
        found += [("", _of_kind(job, trial, dict(kind), of_trial)) for kind in kinds or [()]]
    return found


def _of_kind(job: Manifest, trial: int, kind: Mapping[str, str], ways: Sequence[Way]) -> Outcome:
    dims = {"link": job.conditions.get("link", ""), **kind}
    if trial:
        dims["trial"] = str(trial)
    pairs = {way.pair for way in ways}
    key = tuple(sorted(kind.items()))
    good = {way.pair: way for way in ways if way.outcome.status == "ok" and key in way.kinds()}
    if len(good) < len(pairs):
        status, why = _lacking([way for way in ways if way.pair not in good])
        told = f"{len(good)} of {len(pairs)} pairs gave a figure; {why}"
        return Outcome(status=status, why=told, dims=dims)
    try:
        moved = {
            pair: outcome.intervals(way.kinds()[key], way.left, job)
            for pair, way in good.items()
            if way.left
        }
        readings: list[Reading] = _derive(job).of_link(moved, job.facts)
    except OutputError as error:
        return Outcome(status=error.status, why=str(error), dims=dims)
    each = [way.outcome for way in good.values()]
    return Outcome(
        readings,
        outcome.agreed([o.conditions for o in each]),
        host=outcome.agreed([o.host for o in each]),
        dims=dims,
    )


def _lacking(ways: Sequence[Way]) -> tuple[str, str]:
    """Status and words for the pairs without a figure: the first that says more than that it ended.

    A pair that measured other kinds of runs has no failure to show.
    """
    failed = [way for way in ways if way.outcome.status != "ok"]
    if not failed:
        return "generic", f"{ways[0].pair} has no such run"
    first = next((way for way in failed if way.outcome.status not in NO_FAULT_OF_THE_LINK), None)
    told = first or failed[0]
    status = told.outcome.status if first else samples.INTERRUPTED
    return status, f"{told.pair}: {told.outcome.status}: {told.outcome.why}"


def _derive(job: Manifest) -> ModuleType:
    return import_module(f"siteproof.derive.{job.derive}")
