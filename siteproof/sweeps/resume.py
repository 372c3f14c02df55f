"""The points of a sweep that a session has not measured, from its samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from siteproof.errors import UserError
from siteproof.record import manifest, samples
from siteproof.record.point import Point
from siteproof.record.samples import Order, Sample
from siteproof.sweeps import caps
from siteproof.sweeps.reading import SweepFile

LAST = "last"
OPEN = ("interrupted", "node_lost")  # statuses that do not depend on the point


@dataclass(frozen=True)
class Resumed:
    """The samples of a session and of those that it has resumed itself."""

    session: str
    samples: list[Sample]

    def on(self, partition: str, environment: str = "") -> Resumed:
        """What of it was measured there. environment: empty for any."""
        there = [s for s in self.samples if s.header.partition == partition]
        if environment:
            there = [s for s in there if s.header.environment == environment]
        return Resumed(self.session, there)

    def missing(
        self, points: Mapping[int, Point], where: Mapping[str, str], *, again: bool
    ) -> dict[int, Point]:
        """The points without a value. where: conditions of the samples that count.

        again: those that have failed are missing, too.
        """

        def settles(sample: Sample) -> bool:
            """Whether its point need not be measured again."""
            if any(sample.conditions.get(key) != value for key, value in where.items()):
                return False
            return sample.status == "ok" or not again and sample.status not in OPEN

        done = settled(points, filter(settles, self.samples))
        return {number: point for number, point in points.items() if number not in done}


def settled(points: Mapping[int, Point], found: Iterable[Sample]) -> set[int]:
    """The points that these samples belong to; a sample may have dimensions beyond its point's."""
    by_dims: dict[tuple[int, frozenset[tuple[str, str]]], int] = {}
    names: set[tuple[str, ...]] = set()
    for number, point in points.items():
        own = point.own_dims
        by_dims[point.trial, frozenset(own.items())] = number
        names.add(tuple(own))
    fullest = sorted(names, key=len, reverse=True)  # a union's points may have fewer axes
    return {number for sample in found if (number := _of(sample, by_dims, fullest))}


def _of(
    sample: Sample,
    by_dims: Mapping[tuple[int, frozenset[tuple[str, str]]], int],
    names: Iterable[tuple[str, ...]],
) -> int:
    for wanted in names:
        if all(name in sample.dims for name in wanted):
            own = frozenset((name, sample.dims[name]) for name in wanted)
            if number := by_dims.get((sample.trial, own)):
                return number
    return 0


def find(
    folder: Path,
    system: str,
    sweep: SweepFile,
    session: str,
    mode: str,
    capped: Mapping[str, str] = MappingProxyType({}),
) -> Resumed:
    """The session, or the last one, of a sweep in this mode and with these caps.

    Raises UserError.
    """
    where = f"-S resume={session}"
    files_of: dict[str, list[Path]] = {}
    for path in samples.files(folder / "perflogs", system):
        files_of.setdefault(path.name.partition(".")[0], []).append(path)
    running = _running(folder / "stage", sweep.name)
    name = max([_last(files_of, sweep.name), *running]) if session == LAST else session
    if name in running:
        raise UserError(
            where, f"a job of session {name} still runs", hint="Resume it when that job has ended"
        )
    found = _of_sweep(files_of.get(name, []), sweep.name)
    if not found:
        known = [s for s in reversed(files_of) if _of_sweep(files_of[s], sweep.name)]
        what = f"no samples of {sweep.test} in that session"
        if session == LAST:
            what = f"{sweep.test} has never been measured here"
        raise UserError(where, what, known[:5], hint="Without -S resume a new run starts")
    total: list[Sample] = []
    chain = name
    seen: set[str] = set()
    while chain and chain not in seen:
        seen.add(chain)
        found = _of_sweep(files_of.get(chain, []), sweep.name)
        total += found
        chain = next((s.header.provenance.get("resumes", "") for s in found), "")
    if other := {s.header.conditions["sweep_hash"] for s in total} - {sweep.hash}:
        raise UserError(
            where,
            f"{sweep.path.name} has changed since that session (hash "
            f"{min(other)}, now {sweep.hash})",
            hint="Start a new run, without -S resume",
        )
    if other := {s.header.mode for s in total} - {mode}:  # a quick point does not answer a contract
        raise UserError(
            where,
            f"that session has mode {min(other)}, this run has mode {mode}",
            hint=f"Use --mode {min(other)}",
        )
    _must_have_caps(where, total, caps.text(capped))
    return Resumed(name, total)


def _must_have_caps(where: str, total: Iterable[Sample], own: str) -> None:
    if other := {s.header.conditions.get(caps.CAP, "") for s in total} - {own}:
        before = min(other)
        raise UserError(
            where,
            f"that session has {f'the caps {before}' if before else 'no caps'}, this run has "
            f"{own or 'none'}",
            hint="Use the same -S, or start a new run",
        )


def _running(stages: Path, sweep: str) -> list[str]:
    """The sessions of which a job of the sweep has not been collected to its end."""
    jobs = []
    for stage in manifest.pending(stages):
        with suppress(UserError):  # a broken manifest is reported elsewhere
            jobs.append(manifest.load(stage, stages))
    return [job.session for job in jobs if job.conditions.get("sweep") == sweep]


def _last(files_of: Mapping[str, list[Path]], sweep: str) -> str:
    newest_first = sorted(files_of, key=lambda name: _order(files_of[name]), reverse=True)
    return next((name for name in newest_first if _of_sweep(files_of[name], sweep)), "")


def _order(paths: Iterable[Path]) -> Order:
    """The sort key of a session's files; broken ones have only their name."""
    found = []
    for path in paths:
        try:
            found.append(samples.read_header(path).order)
        except UserError:
            found.append((0, "", path.name))
    return min(found)


def _of_sweep(paths: Iterable[Path], sweep: str) -> list[Sample]:
    return [
        s for path in paths for s in samples.read(path) if s.header.conditions.get("sweep") == sweep
    ]
