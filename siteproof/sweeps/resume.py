"""The points of a sweep that a session has not measured, from its samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from siteproof.errors import UserError
from siteproof.record import manifest
from siteproof.record.point import Point
from siteproof.record.samples import SWEEP, Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sweeps import caps
from siteproof.sweeps.reading import SweepFile

LAST = "last"
SWEEP_HASH, RESUMES = "sweep_hash", "resumes"  # condition; provenance
OPEN = ("interrupted", "node_lost")  # statuses that do not depend on the point


@dataclass(frozen=True)
class Resumed:
    """The samples of a session and of those that it has resumed itself."""

    session: str
    samples: list[Sample]

    def missing(
        self,
        points: Mapping[int, Point],
        where: Mapping[str, str],
        partition: str,
        environment: str = "",
        *,
        again: bool,
    ) -> dict[int, Point]:
        """The points without a value there. where: conditions of the samples that count.

        environment: empty for any. again: those that have failed are missing, too.
        """

        def settles(sample: Sample) -> bool:
            """Whether its point need not be measured again."""
            if sample.header.partition != partition:
                return False
            if environment not in ("", sample.header.environment):
                return False
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

    What cannot be read is measured again. Raises UserError.
    """
    where = f"-S resume={session}"
    sessions = Sessions(folder / "perflogs", system)
    jobs = [header for header in sessions.headers if header.conditions.get(SWEEP) == sweep.name]
    known = list(dict.fromkeys(header.session for header in jobs))
    running = _running(folder / "stage", sweep.name)
    name = max([*known[-1:], *running], default="") if session == LAST else session
    if name in running:
        what = f"a job of session {name} still runs"
        raise UserError(where, what, hint="Resume it when that job has ended")
    if name not in known:
        what = f"{sweep.test} has no samples of session {session}"
        raise UserError(where, what, known[:-6:-1], hint="Without -S resume a new run starts")
    before = {one.session: one.provenance[RESUMES] for one in jobs if RESUMES in one.provenance}
    resumed = [one for one in jobs if one.session in chain(name, before)]
    for header in resumed:
        _must_fit(where, header, sweep, mode, caps.text(capped))
    return Resumed(name, sessions.of(resumed.__contains__, needed=False))


def chain(session: str, before: Mapping[str, str]) -> list[str]:
    """A session, and those that it continues, the first one last. before: by session."""
    found = [session]
    while (older := before.get(found[-1])) and older not in found:
        found.append(older)
    return found


def _must_fit(where: str, header: Header, sweep: SweepFile, mode: str, capped: str) -> None:
    """Points of another file, mode or other caps are no part of this run."""
    theirs = header.conditions
    for what, recorded, wanted, hint in (
        (f"{sweep.path.name} of hash", theirs[SWEEP_HASH], sweep.hash, "Start a new run"),
        ("mode", header.mode, mode, f"Use --mode {header.mode}"),
        ("caps", theirs.get(caps.CAP), capped, "Use the same -S, or start a new run"),
    ):
        if (recorded or "") != wanted:
            text = f"that session has {what} {recorded or 'none'}, this run has {wanted or 'none'}"
            raise UserError(where, text, hint=hint)


def _running(stages: Path, sweep: str) -> list[str]:
    """The sessions of which a job of the sweep has not been collected to its end."""
    jobs = []
    for stage in manifest.pending(stages):
        with suppress(UserError):  # a broken manifest is reported elsewhere
            jobs.append(manifest.load(stage, stages))
    return [job.session for job in jobs if job.conditions.get(SWEEP) == sweep]
