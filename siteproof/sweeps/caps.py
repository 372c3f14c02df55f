"""Caps on a run of a sweep (`-S tasks=8 -S size=1GiB`): which of its points the run measures.

A cap on an axis leaves out the points above it; one on a value that all points share lowers it. The
numbers of the points stay those of the file, so a capped run is part of the whole sweep.

The points of a sweep that a session has not measured, from its samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from siteproof.errors import Mistake, UserError, hint
from siteproof.record import manifest
from siteproof.record.manifest import Point, Values
from siteproof.record.samples import SWEEP, Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sweeps.keys import COMMON, SIZES, TOOLS, Axis, Sweep, plain, shown, whole
from siteproof.sweeps.reading import SweepFile
from siteproof.units import size

CAP = "cap"  # the condition: axes and values that bind, `block=1073741824 tasks=8`
SIZE, REPETITIONS = "size", "repetitions"
LENGTH = "seconds"  # of a run: shorter is another measurement, and no part of the sweep
_AXES = {name: axis for tool in TOOLS.values() for name, axis in tool.all_axes.items()}
NAMES = sorted({*_AXES, SIZE, REPETITIONS} - {LENGTH})
WORDS = {name for name, axis in _AXES.items() if axis.kind == "word"}
_VALUES = {True: re.compile(r"[\w.,+-]{1,200}"), False: re.compile("[0-9]{1,19}")}  # words, numbers
_TIMES = Axis("number", "How often each point is measured.")


def of_options(test: str, sweep: Sweep, given: Mapping[str, str]) -> Values:
    """The caps by axis: numbers, bytes, or words with commas between them.

    given: the text of each `-S`. Raises UserError where one is no axis of the sweep, or no value.
    """
    known = _axes(sweep)
    amount = TOOLS[sweep.tool].amount
    found: Values = {}
    for name, text in given.items():
        axis = amount if name == SIZE and SIZE not in known else name
        where = f"-S {name}={text}"
        if axis not in known:
            near = hint(name, known)
            raise UserError(where, f"{test} cannot be capped by it{near}", names_of(sweep))
        if axis in found:
            raise UserError(where, f"{test} has both {SIZE} and {axis}, which are the same there")
        found[axis] = _value(where, axis, text, known[axis])
    return found


def names_of(sweep: Sweep) -> list[str]:
    """What `-S` may cap of a sweep. Knobs are none: each point has its own setting of them."""
    amount = TOOLS[sweep.tool].amount
    return sorted({*_axes(sweep), SIZE} if amount else _axes(sweep))


def _axes(sweep: Sweep) -> dict[str, Axis]:
    """What a run of the sweep may be capped by: its values and its repetitions."""
    set_here = {*sweep.fixed, *(name for axes in sweep.axes for name in axes)}
    known, names = TOOLS[sweep.tool].all_axes, {*set_here, *COMMON}.intersection(NAMES)
    each = {name: axis for name, axis in known.items() if name in names}
    return {**each, REPETITIONS: _TIMES}


def _value(where: str, name: str, text: str, axis: Axis) -> str:
    if axis.kind == "size" and text.isdigit():
        raise UserError(where, "a size without its unit", "a size such as 64MiB or 1GiB")
    chosen = text.split(",") if axis.kind == "word" else [text]
    try:
        return ",".join(sorted(plain(name, one, axis) for one in chosen))
    except Mistake as error:
        raise UserError(where, str(error), error.allowed) from None


def apply(sweep: Sweep, points: Mapping[int, Point], caps: Mapping[str, str]) -> dict[int, Point]:
    """The points within the caps, by their number; shared values above a cap are lowered to it.

    Raises UserError if a lowered size is no whole number of requests.
    """
    lowered = {name for name in caps if _is_lowered(sweep, name)}
    found: dict[int, Point] = {}
    for number, point in points.items():
        if any(_exceeds(point, name, cap) for name, cap in caps.items() if name not in lowered):
            continue
        new = {name: caps[name] for name in lowered if _exceeds(point, name, caps[name])}
        one = replace(point, values={**point.values, **new})
        if not new or sweep.keeps(one):
            _must_divide(sweep, new, one.values)
            found[number] = one
    return found


def _is_lowered(sweep: Sweep, name: str) -> bool:
    """A number that all points share, or that one run covers up to its value by itself."""
    tool = TOOLS[sweep.tool]
    axis = tool.all_axes.get(name)
    if axis is None or axis.kind == "word" or name in tool.for_knobs:
        return False
    return axis.one or name in sweep.fixed


def _exceeds(point: Point, name: str, cap: str) -> bool:
    if name == REPETITIONS:
        return point.trial > int(cap)
    value = point.values.get(name)
    if value is None:
        return False
    if cap.isdigit() and value.isdigit():
        return int(value) > int(cap)
    return value not in cap.split(",")


def _must_divide(sweep: Sweep, new: Mapping[str, str], values: Mapping[str, str]) -> None:
    """IOR takes whole requests only; a sweep file of which this is not true is its author's."""
    amount, piece = TOOLS[sweep.tool].amount, values.get("transfer", "")
    if amount in new and piece and int(new[amount]) % int(piece):
        what = f"{size(int(new[amount]))} is not a whole number of requests of {size(int(piece))}"
        raise UserError(f"-S {SIZE} or {amount}", what, f"a multiple of {size(int(piece))}")


def binding(sweep: Sweep, points: Mapping[int, Point], caps: Mapping[str, str]) -> Values:
    """The caps that change anything: a run below all of its caps is a whole one."""
    return {
        name: cap
        for name, cap in caps.items()
        if any(_exceeds(point, name, cap) for point in points.values())
    }


def text(caps: Mapping[str, str]) -> str:
    """The caps as the condition has them."""
    return " ".join(f"{name}={value}" for name, value in sorted(caps.items()))


def of_text(recorded: str) -> Values:
    """The caps that a sample's condition has. Raises UserError where they are none."""
    found: Values = {}
    for part in recorded.split():
        name, _, value = part.partition("=")
        if name not in NAMES or not _VALUES[name in WORDS].fullmatch(value):
            raise UserError(CAP, f"'{recorded[:60]}' is not a cap", "tasks=8 and the like")
        found[name] = value
    return found


def as_options(caps: Mapping[str, str]) -> list[str]:
    """The caps as -S takes them again: block=1GiB, tasks=8."""
    return [f"{name}={_given(name, value)}" for name, value in sorted(caps.items())]


def _given(name: str, value: str) -> str:
    """Bytes without a blank, exactly."""
    if name not in SIZES:
        return value
    short = size(int(value)).replace(" ", "")
    return short if whole(short, sizes=True) == int(value) else f"{value}B"


def in_words(caps: Mapping[str, str]) -> str:
    """tasks 8, block 1 GiB"""
    return ", ".join(shown(name, value) for name, value in sorted(caps.items()))


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
        _must_fit(where, header, sweep, mode, text(capped))
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
    for what, recorded, wanted, advice in (
        (f"{sweep.path.name} of hash", theirs[SWEEP_HASH], sweep.hash, "Start a new run"),
        ("mode", header.mode, mode, f"Use --mode {header.mode}"),
        ("caps", theirs.get(CAP), capped, "Use the same -S, or start a new run"),
    ):
        if (recorded or "") != wanted:
            why = f"that session has {what} {recorded or 'none'}, this run has {wanted or 'none'}"
            raise UserError(where, why, hint=advice)


def _running(stages: Path, sweep: str) -> list[str]:
    """The sessions of which a job of the sweep has not been collected to its end."""
    jobs = []
    for stage in manifest.pending(stages):
        with suppress(UserError):  # a broken manifest is reported elsewhere
            jobs.append(manifest.load(stage, stages))
    return [job.session for job in jobs if job.conditions.get(SWEEP) == sweep]
