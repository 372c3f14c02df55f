"""Caps on a run of a sweep (`-S tasks=8 -S size=1GiB`): which of its points the run measures.

A cap on an axis leaves out the points above it; one on a value that all points share lowers it. The
numbers of the points stay those of the file, so a capped run is part of the whole sweep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from siteproof.errors import Mistake, UserError, hint
from siteproof.record.point import Point, Values
from siteproof.sweeps.keys import Sweep, plain, whole
from siteproof.sweeps.tools import COMMON, SIZES, TOOLS, Axis, shown
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
