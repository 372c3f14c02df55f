"""The keys of a sweep file, each with the description that the manual prints; and its constraints.

A constraint is A OP B, where A and B are products of axes and numbers.

Knobs: settings of the nodes that a tuning sweep changes, and whether they are restored.

`knob.KIND.NAME`; on the nodes checks/on_node/knob_kinds.sh finds, reads and sets them. The values
are free text, because a kernel parameter may have several numbers, so the walker of the points
reads them from their own file (`lines`), as text and never as words of a shell.

The tools that a sweep may use, each with its class and its axes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from siteproof import files, nodesets, units
from siteproof.errors import Mistake, UserError, harmless, hint
from siteproof.record.manifest import KNOB, OWN, Point
from siteproof.sites.key_types import Budget, Model, blanks
from siteproof.units import size

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_SPLIT = re.compile(r"(.+?)\s*(<=|>=|==|!=|<|>)\s*(.+)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.{}-]*")
_ALLOWED = "A OP B such as 'transfer <= block' or 'tasks * block >= 4 GiB'; OP: " + ", ".join(
    _OPERATORS
)


class Constraint:
    """One constraint. Raises a mistake of pydantic's if the text is not one."""

    def __init__(self, text: str) -> None:
        found = _SPLIT.fullmatch(text.strip())
        if not found or len(text) > 200:
            raise Mistake(f"'{text}' is not a constraint", _ALLOWED)
        self.text, self.holds_between = text, _OPERATORS[found[2]]
        self.left, self.right = (
            [_factor(part.strip(), text) for part in side.split("*")]
            for side in (found[1], found[3])
        )

    def check_names(self, known: Iterable[str]) -> None:
        """Raises a mistake if it names an axis that no point has."""
        names = set(known)
        for factor in (*self.left, *self.right):
            if isinstance(factor, str) and factor not in names:
                what = f"'{factor}' in '{self.text}' is not an axis{hint(factor, names)}"
                raise Mistake(what, ", ".join(sorted(names)))

    def holds(self, point: Mapping[str, str]) -> bool:
        """Whether a point meets it; a constraint on an axis that the point lacks is met."""
        left, right = _product(self.left, point), _product(self.right, point)
        return left is None or right is None or self.holds_between(left, right)


_constraint = cache(Constraint)  # a sweep has thousands of points


def _factor(part: str, text: str) -> str | Fraction:
    """An axis' name, a number, or the bytes of a size."""
    if re.fullmatch(r"[0-9]{1,19}", part):
        return Fraction(part)
    if _NAME.fullmatch(part):
        return part
    try:
        return units.parse(part).to("B")
    except UserError:
        raise Mistake(f"'{part}' in '{text}' is neither an axis nor a number", _ALLOWED) from None


def _product(factors: Iterable[str | Fraction], point: Mapping[str, str]) -> Fraction | None:
    """The value of a side; None if the point lacks an axis, or its value is not a number."""
    values = [point.get(one, "") if isinstance(one, str) else one for one in factors]
    if any(isinstance(one, str) and not re.fullmatch(r"[0-9]+", one) for one in values):
        return None
    return prod((Fraction(one) for one in values), start=Fraction(1))


MAX_SECONDS = 86400  # of a point
MAX_VALUES = 1000  # of an axis
_WORD = re.compile(r"[A-Za-z0-9._:/+-]{1,64}")
_LIMIT = re.compile(r"([1-9][0-9]{0,4})\s*(s|m|min|h)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def _seconds(text: object) -> int:
    found = _LIMIT.fullmatch(str(text))
    if not found:
        raise Mistake(f"'{text}' is not a duration", "whole numbers such as 30s, 5m, 1h")
    seconds = int(found[1]) * _SECONDS[found[2]]
    if seconds > MAX_SECONDS:
        raise Mistake(f"'{text}' is longer than a day")
    return seconds


def _list(raw: object) -> object:
    """A single value or mapping stands for a list of one."""
    return [raw] if isinstance(raw, str | dict) else raw


OneOrMore = Annotated[list[str], BeforeValidator(_list), Field(max_length=MAX_VALUES)]
Limit = Annotated[
    int, BeforeValidator(_seconds), WithJsonSchema({"type": "string", "examples": ["5m"]})
]


class Knobs(Model):
    """Tuning axes of which only one at a time leaves the machine's own value."""

    one_at_a_time: Annotated[dict[str, OneOrMore], Field(min_length=1)]
    """Each of these knobs alone, at each of its values; the others stay as they are."""
    corners: bool = False
    """Also all combinations of each knob's first and last value."""


class Sweep(Model):
    """A parallel sweep: one tool over all points of its axes. It names no system."""

    description: str
    """What it shows, for the report."""
    tool: Literal[tuple(TOOLS)]  # type: ignore[valid-type]
    """What measures a point."""
    axes: Annotated[list[dict[str, OneOrMore]], BeforeValidator(_list)]
    """Values by axis: every combination is a point. A list of such mappings: the points of all of
    them. knob.KIND.NAME is a setting of the nodes."""
    fixed: dict[str, str] = {}
    """Values that all points share, by axis; that of a knob may take numbers from axes: '4096 87380
    {buffer}'."""
    constraints: list[str] = []
    """What every point must keep: A OP B, where A and B are products (*) of axes and numbers; other
    points are left out."""
    against: str
    """The axis of the figure."""
    lines: str = ""
    """An axis of which each value is a curve of its own."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often each point is measured."""
    order: Literal["ascending", "random"] = "random"
    """In which order; random: within each repetition, and another one in each session."""
    point_limit: Limit
    """Longest time of a point: 30s, 5m, 1h."""
    budget: Budget | None = None
    """Most node-hours of a run, such as 500 node-hours; more is refused."""
    knobs: Knobs | None = None
    """Tuning, one knob at a time."""

    @field_validator("axes", "fixed", "knobs")
    @classmethod
    def _known_axes(cls, found: Any, info: ValidationInfo) -> Any:
        """Each axis is one of the tool's, and each value one that it can have."""
        if "tool" in info.data:
            place = found.one_at_a_time if isinstance(found, Knobs) else found or {}
            for axes in place if isinstance(place, list) else [place]:
                _check_values(axes, TOOLS[info.data["tool"]].all_axes)
        return found

    @model_validator(mode="after")
    def _points(self) -> Sweep:
        """The keys agree with each other."""
        axes = {name for axes in self.axes for name in axes}
        check_fixed(self.fixed, axes, TOOLS[self.tool].for_knobs)
        self._must_vary()
        self._must_turn_alone(axes)
        names = {*self.varied, *self.fixed, "nodes", "tasks", "tasks_per_node"}
        for text in self.constraints:
            _constraint(text).check_names(names)
        return self

    def _must_vary(self) -> None:
        """The axes have values, those of the figure exist, and the tool has what it needs."""
        values = [each for axes in self.axes for each in axes.values()]
        if not all(self.axes) or not values or not all(values):
            raise Mistake("an axis without a value", "at least one value an axis")
        for name in filter(None, (self.against, self.lines)):
            if name not in self.varied:
                what = f"'{name}' is not an axis of this sweep{hint(name, self.varied)}"
                raise Mistake(what, ", ".join(self.varied))
        for name, axis in TOOLS[self.tool].axes.items():
            self._must_suit(name, axis)

    def _must_suit(self, name: str, axis: Axis) -> None:
        """An axis of the tool has as many values as the tool can take."""
        values = {value for axes in self.axes for value in axes.get(name, [])}
        if axis.one and len(values) > 1:
            raise Mistake(f"several values of '{name}'", f"only the largest; {axis.sentence}")
        everywhere = name in self.fixed or all(name in axes for axes in self.axes)
        if axis.needed and not everywhere:
            raise Mistake(f"{self.tool} needs '{name}'", "a value in axes or fixed")

    def _must_turn_alone(self, axes: Collection[str]) -> None:
        """Each key of one_at_a_time is a knob, and not an axis."""
        for name in self.knobs.one_at_a_time if self.knobs else ():
            if name in axes or not name.startswith(KNOB):
                raise Mistake(f"'{name}' in knobs", "knob.KIND.NAME, and none of axes")

    def keeps(self, point: Point) -> bool:
        """Whether a point meets all constraints."""
        place = {**point.values, "nodes": str(point.nodes)}
        return all(_constraint(text).holds(place) for text in self.constraints)

    @property
    def varied(self) -> list[str]:
        """The axes, in the order of the file; tasks and tasks_per_node always."""
        alone = self.knobs.one_at_a_time if self.knobs else {}
        found = [name for axes in (*self.axes, alone) for name in axes]
        return list(dict.fromkeys(["tasks", "tasks_per_node", *found]))

    @property
    def turns_knobs(self) -> bool:
        """Whether it changes settings of the nodes."""
        return any(name.startswith(KNOB) for name in (*self.varied, *self.fixed))


def _check_values(axes: Mapping[str, Any], known: Mapping[str, Axis]) -> None:
    for name, values in axes.items():
        if name.startswith(KNOB):
            check_name(name)
        elif name not in known:
            allowed = f"{', '.join(known)}, knob.KIND.NAME"
            raise Mistake(f"unknown axis '{name}'{hint(name, known)}", allowed)
        for value in [values] if isinstance(values, str) else values:
            plain(name, value, known.get(name))


def plain(name: str, text: str, axis: Axis | None) -> str:
    """A value as points have it: sizes in bytes, numbers without leading zeros; words as they are.

    axis: None for a knob. Raises a mistake of pydantic's.
    """
    if axis is None:
        return plain_knob(name, text)
    what = f"{name}: unknown value '{text}'"
    if axis.kind == "word":
        if text not in axis.words if axis.words else not _WORD.fullmatch(text):
            allowed = ", ".join(axis.words) or "letters, digits and . _ : / + -"
            raise Mistake(f"{what}{hint(text, axis.words)}", allowed)
        return text
    number = whole(text, sizes=axis.kind == "size")
    if number is None or not 1 <= number <= 2**63 - 1:
        raise Mistake(what, "a size such as 64MiB or 1GiB" if axis.kind == "size" else "1, 2, 3 …")
    return str(number)


def whole(text: str, *, sizes: bool) -> int | None:
    """The whole number in a text, or the bytes of a size."""
    if re.fullmatch(r"[0-9]{1,19}", text):
        return int(text)
    if not sizes:
        return None
    try:
        value: Fraction = units.parse(text).to("B")
    except UserError:
        return None
    return int(value) if value.denominator == 1 else None


LONGEST = 200  # characters of a value
MAX_FILES = 200_000  # of one combination: some for each node
_KINDS = {
    "sysctl": r"[a-z0-9_]+([./][A-Za-z0-9_.:-]+)+",
    "nic": r"(\{interface\}|[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14})\.(mtu|txqueuelen)",
    "lustre": r"[A-Za-z0-9_*-]+(\.[A-Za-z0-9_*-]+)+",
    "lnet": r"[a-z_]+",
}
ALLOWED = (
    "knob.sysctl.KERNEL.PARAMETER, knob.nic.INTERFACE.mtu, knob.nic.INTERFACE.txqueuelen "
    "(INTERFACE may be {interface}, the one that leads to the other node), "
    "knob.lustre.PARAMETER such as osc.*.max_dirty_mb, knob.lnet.TUNABLE"
)
_AXIS = re.compile(r"\{([^{}]+)\}")  # that a fixed value takes a number from: {buffer}


def check_name(name: str) -> None:
    """Raises a mistake of pydantic's if it is not the name of a knob."""
    kind, _, rest = name.removeprefix(KNOB).partition(".")
    if kind not in _KINDS or not re.fullmatch(_KINDS[kind], rest):
        raise Mistake(f"'{name}' is not a knob", ALLOWED)


def plain_knob(name: str, text: str) -> str:
    """A value with each run of blanks as one. Raises a mistake of pydantic's."""
    value = blanks(text)
    if not value or not value.isprintable() or len(value) > LONGEST:
        allowed = f"one line of text, at most {LONGEST} characters"
        raise Mistake(f"{name}: unknown value '{harmless(text[:LONGEST])}'", allowed)
    return value


def check_fixed(fixed: Mapping[str, str], axes: Collection[str], for_knobs: Iterable[str]) -> None:
    """Raises a mistake if a fixed knob names an unknown axis, or no knob uses an axis that only
    knobs can use."""
    knobs = [text for name, text in fixed.items() if name.startswith(KNOB)]
    used = set(_AXIS.findall(" ".join(knobs)))
    if strange := sorted(used - set(axes)):
        what = f"'{{{strange[0]}}}' in fixed is not an axis of this sweep"
        raise Mistake(what, ", ".join(sorted(axes)))
    if idle := sorted(set(for_knobs) & set(axes) - used):
        allowed = f"knob.sysctl.net.ipv4.tcp_rmem: '4096 87380 {{{idle[0]}}}'"
        raise Mistake(f"no fixed knob uses the axis '{idle[0]}'", allowed)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A fixed value with the values of the axes that it names; `own` if one of them is.

    Raises KeyError if an axis is missing.
    """
    if OWN in (values[axis] for axis in _AXIS.findall(text)):
        return OWN
    return _AXIS.sub(lambda found: values[found[1]], text)


def lines(combinations: Iterable[Mapping[str, str]], every: Sequence[str]) -> list[str]:
    """What the walker reads: NUMBER, KNOB and VALUE with tabs between, numbers from 1 on.

    combinations: the values that are set, by knob. every: all knobs of the sweep; those that are
    not set have no value and are only read, so that each point records them.
    """
    return [
        f"{number}\t{knob}\t{values.get(knob, '')}"
        for number, values in enumerate(combinations, 1)
        for knob in every
    ]


def not_restored(stage: Path) -> dict[str, str]:
    """What a tuning job has set and not restored, as a sentence by node."""
    turns = [
        stage / "knobs.d" / turn / name
        for turn in _names(stage / "knobs.d", stage)
        for name in _names(stage / "knobs.d" / turn, stage)
        if name.endswith(".was") and not name.startswith(".")
    ]
    turns.sort(key=lambda path: path.lstat().st_mtime)
    last: dict[str, Path] = {path.stem: path for path in turns}
    found = {}
    for node, was in sorted(last.items()):
        if nodesets.is_name(node) and (left := _what_is_left(was, stage)):
            found[node] = left
    return found


def _what_is_left(was: Path, stage: Path) -> str:
    originals = _text(was, stage)
    if not originals or was.with_suffix(".restored").exists():
        return ""
    if stuck := _text(was.with_suffix(".stuck"), stage):
        return harmless(f"not restored: {'; '.join(stuck.splitlines())}")
    values = "; ".join(line.replace("\t", " was ", 1) for line in originals.splitlines())
    return harmless(
        f"may not be restored ({values}): its job was lost; a reboot or the next tuning sweep on "
        "that node restores it"
    )


def _names(folder: Path, stage: Path) -> list[str]:
    try:
        return files.names(folder, below=stage, most=MAX_FILES)
    except (OSError, UserError):
        return []


def _text(path: Path, stage: Path) -> str:
    """What a node has written into the stage directory; or why it cannot be read."""
    try:
        return files.read_text(path, below=stage, owners={files.owner(stage)}).strip()
    except FileNotFoundError:
        return ""
    except UserError as error:
        return error.what


@dataclass(frozen=True)
class Axis:
    """What a tool lets a sweep vary.

    kind: number (whole), size (bytes, or with a unit) or word. words: those allowed; empty: all.
    needed: the tool has no default. one: a run gives all values up to it by itself.
    """

    kind: Literal["number", "size", "word"]
    sentence: str
    words: tuple[str, ...] = ()
    needed: bool = False
    one: bool = False


@dataclass(frozen=True)
class Tool:
    """A program in its class of checks. module: where the class is, below the clone.

    plain: the class also runs without a sweep, under checks/.
    """

    module: str
    check: str
    sentence: str
    axes: Mapping[str, Axis] = field(default_factory=dict)
    plain: bool = False
    for_knobs: tuple[str, ...] = ()  # axes that only give a fixed knob its numbers
    tasks: str = "1"  # if a sweep sets none: a number, or the axis that has it
    amount: str = ""  # the axis that `-S size` caps, where none is called size

    @property
    def all_axes(self) -> dict[str, Axis]:
        """Those of all tools, and its own."""
        return {**COMMON, **self.axes}


COMMON = {
    "tasks": Axis("number", "Ranks in all; 1, if not given."),
    "tasks_per_node": Axis("number", "Ranks on each node; 1, if not given."),
}
_REQUEST = Axis("size", "Bytes of a request.", needed=True)
_MESSAGE = Axis("size", "Bytes of a message; one run gives all sizes up to it.", one=True)

TOOLS = {
    "ior": Tool(
        "checks.storage.ior",
        "Ior",
        "Bandwidth of a file system from many ranks.",
        {
            "api": Axis("word", "How files are written.", ("POSIX", "MPIIO")),
            "layout": Axis(
                "word",
                "One file a task; one for all; one in which requests alternate.",
                ("file_a_task", "shared", "interleaved"),
            ),
            "transfer": _REQUEST,
            "block": Axis("size", "Bytes that a task writes.", needed=True),
            "reorder": Axis("word", "Whether a task reads what another node wrote.", ("yes", "no")),
        },
        plain=True,
        amount="block",
    ),
    "mdtest": Tool(
        "checks.storage.mdtest",
        "Mdtest",
        "Rates of metadata from many ranks.",
        {
            "variant": Axis(
                "word", "easy: a folder a task; hard: one folder for all.", ("easy", "hard")
            ),
            "files": Axis("number", "Files of a task.", needed=True),
        },
        plain=True,
    ),
    "fio": Tool(
        "checks.storage.fio_sweep",
        "FioSweep",
        "Requests of one node to a file system.",
        {
            "block": _REQUEST,
            "depth": Axis("number", "Requests at a time."),
            "pattern": Axis(
                "word",
                "What is read or written.",
                ("randread", "randwrite", "read", "write"),
                needed=True,
            ),
        },
    ),
    "messages": Tool(
        "checks.network.message_sweep",
        "MessageSweep",
        "Messages of MPI by size.",
        {"size": _MESSAGE},
    ),
    "collectives": Tool(
        "checks.network.collectives",
        "Collectives",
        "Collectives of MPI by number of ranks.",
        {"size": _MESSAGE},
        plain=True,
    ),
    "tcp": Tool(
        "checks.network.tcp_sweep",
        "TcpSweep",
        "TCP between two nodes.",
        {
            "streams": Axis("number", "Connections at a time."),
            "window": Axis("size", "Bytes of the socket buffers; the system's own, if not given."),
            "seconds": Axis("number", "Seconds of a run."),
            "buffer": Axis(
                "size", "Largest socket buffer; for fixed knobs: '4096 87380 {buffer}'."
            ),
        },
        for_knobs=("buffer",),
        tasks="2",
    ),
    "lst": Tool(
        "checks.network.lnet",
        "Lnet",
        "LNET selftest between clients and servers.",
        {
            "clients": Axis("number", "Nodes that ask: the first of the job.", needed=True),
            "servers": Axis(
                "number", "Nodes that answer: the first that serve the file system.", needed=True
            ),
            "concurrency": Axis("number", "Requests of each client at a time; 8, if not given."),
            "size": _REQUEST,
            "direction": Axis("word", "What the clients do.", ("read", "write"), needed=True),
        },
        tasks="clients",
        plain=True,
    ),
    "openstack": Tool(
        "checks.service.cloud_sweep",
        "Cloud",
        "Virtual machines that a cloud runs at a time.",
        {
            "servers": Axis("number", "Servers that are requested, and are to run.", needed=True),
            "batch": Axis("number", "Servers of a request, at most; 1, if not given."),
            "rate": Axis(
                "word", "Requests a minute: a number, or unlimited, which it is if not given."
            ),
            "networks": Axis("number", "Networks over which they are spread; 1, if not given."),
        },
    ),
}

SWEEPS_ONLY = {tool.check for tool in TOOLS.values() if not tool.plain}
_ALL = [item for tool in TOOLS.values() for item in tool.all_axes.items()]
SIZES = {name for name, axis in _ALL if axis.kind == "size"}
OF_ONE_RUN = {
    tool.check: {name for name, axis in tool.all_axes.items() if axis.one}
    for tool in TOOLS.values()
}


def shown(name: str, value: str) -> str:
    """An axis with its value as printed: block 4 KiB, depth 16."""
    return f"{name} {size(int(value)) if name in SIZES and value.isdigit() else value}"
