"""Applications, alone and as a mix: a rate counts only where the answer is the known one.

Of a mix: what the nodes moved while all of them ran, and how much slower each one was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import median
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, cast

from siteproof.collect.derive import Derived, Measured, cpu, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading, counters, gromacs, lammps, minimap2, nwchem, openfoam, values
from siteproof.parsers.counters import Node

if TYPE_CHECKING:
    from siteproof.collect.raw import Execution

PARSERS: Mapping[str, ModuleType] = {
    "lammps": lammps,
    "gromacs": gromacs,
    "nwchem": nwchem,
    "icoFoam": openfoam,
    "minimap2": minimap2,
}
COUNTERS = "counters"
OF_SPEED = ("gflops", "rate", "time")
OWN = "own"  # the program that is a command of the site's, over several nodes
SHORTEST = 3  # seconds in which all applications must run, for a rate to be sustained
GIGA = 10**9
FIGURE = (  # a whole number: no digits of it are left before or after
    r"[ \t]*(?<![0-9])(?<![0-9][.eE])(?<![0-9][eE][-+])"
    r"([-+]?[0-9]{1,15}(?:\.[0-9]{1,17})?(?:[eE][-+]?[0-9]{1,2})?)"
    r"(?!\.?[0-9]|[eE][-+]?[0-9])[ \t]*?"
)


def application(given: Measured) -> Derived:
    """The readings and conditions as they are, if the answer is the known one.

    Raises OutputError (invalid) where an answer differs from its reference by more than the
    tolerance, where another problem was solved, or where the node has fewer processors than cores
    by the site.
    """
    given.must_offer_cores()
    must_be_known(given.readings, given.conditions, given.facts)
    return given.readings, dict(given.conditions)


def must_be_known(
    readings: Sequence[Reading], conditions: Mapping[str, str], facts: Mapping[str, object]
) -> None:
    """Raises OutputError (invalid) unless the problem and its answers are the known ones.

    facts: `solved`, conditions that must be met; `references`, of a metric its value and tolerance.
    """
    for key, wanted in cast("Mapping[str, str]", facts["solved"]).items():
        must_be(key, conditions.get(key, "not printed"), wanted)
    answers = {reading.metric: reading for reading in readings}
    references = cast("Mapping[str, tuple[str, str]]", facts["references"])
    for metric, (known, tolerance) in references.items():
        if metric not in answers:
            raise OutputError(f"no {metric}, which must be {known}")
        found, unit = Decimal(answers[metric].value), answers[metric].unit
        if not abs(found - Decimal(known)) <= Decimal(tolerance):
            raise OutputError(
                f"{metric}: {found} {unit}, expected {known} within {tolerance}", "invalid"
            )


def scaling(given: Measured) -> Derived:
    """Of a program over several nodes: its readings as in the check of it alone, with its answer.

    energy (J): of its step, where Slurm has accounted it.
    Of a command of the site's: time (s), and what it prints, or else speed: problems of one node an
    hour. Raises OutputError (invalid) where the answer is not right, or other tasks have run.
    """
    facts, conditions = given.facts, dict(given.conditions)
    seconds = values.positive("seconds", conditions.pop("seconds", ""))
    given = replace(given, conditions=conditions)
    joules = cast("Mapping[str, int]", facts.get("energy", {})).get(given.fact("nodes"), 0)
    energy = [Reading("energy", Decimal(joules), "J")] if joules else []
    if conditions.get("program") == OWN:
        return [*_own(given, seconds), *energy], conditions
    if "references" not in facts:
        readings, conditions = cpu.hpl(given)
        tasks = int(conditions["p"]) * int(conditions["q"])
    else:
        tasks, solved = int(conditions.pop("tasks", "0")), cast("dict[str, str]", facts["solved"])
        if "atoms" in solved:  # of each node's part
            solved = {**solved, "atoms": str(int(solved["atoms"]) * _parts(given))}
        must_be_known(given.readings, conditions, {**facts, "solved": solved})
        readings = [reading for reading in given.readings if reading.metric in OF_SPEED]
    must_be("tasks", tasks, facts["tasks"])
    return [*readings, *energy], conditions


def _parts(given: Measured) -> int:
    """How many nodes' worth the problem is."""
    return int(given.fact("smallest") or given.fact("nodes"))


def _own(given: Measured, seconds: Decimal) -> list[Reading]:
    text = given.raw.stdout
    _must_have(text, given.fact("answer"))
    found = [Reading("time", seconds, "s")]
    if prints := given.fact("prints", ""):
        found.append(Reading("printed", _figure("prints", text, prints), "count"))
    else:
        speed = values.rate("speed", 3600 * _parts(given), seconds)
        found.append(Reading("speed", speed, "problems/h"))
    if result := given.fact("result", ""):
        found.append(Reading("result", _figure("result", text, result), "x"))
    return found


@dataclass(frozen=True)
class Ran:
    """An application on all of its nodes, in one phase. begin, end: seconds since 1970."""

    begin: float
    end: float
    nodes: frozenset[str]
    figure: Decimal | None = None  # what it prints; of several nodes each by itself the lowest


def workload(given: Measured) -> Derived:
    """nodes, time_together; slowdown, times and figures by application; rates of storage, network.

    Rates are those of the seconds in which all applications ran: the sum over all counters, once
    each. moved: what the nodes of an application read and wrote, where no others share a counter.
    Raises OutputError (invalid) where an application's answer is not the known one, it did not run
    on its nodes, or the applications did not run at the same time.
    """
    programs = cast("Mapping[str, Mapping[str, object]]", given.facts["programs"])
    wanted = cast("Mapping[str, tuple[str, int]]", given.facts["workload"])
    members = [run for run in given.raw.runs if run.dims.get("program") != COUNTERS]
    for run in members:
        _must_be_right(run, programs)
    shown = {program: str(known.get("prints", "")) for program, known in programs.items()}
    alone, mix = (
        {name: _ran(members, phase, name, *of, shown.get(of[0], "")) for name, of in wanted.items()}
        for phase in ("alone", "mix")
    )
    begin = int(max(ran.begin for ran in mix.values())) + 1
    end = int(min(ran.end for ran in mix.values()))
    if end - begin < SHORTEST:
        raise OutputError(
            f"all applications ran at the same time for {max(0, end - begin)} s, "
            f"at least {SHORTEST} s are needed",
            "invalid",
        )
    every = {node for ran in mix.values() for node in ran.nodes}
    readings = [
        Reading("nodes", Decimal(len(every)), "nodes"),
        Reading("time_together", Decimal(end - begin), "s"),
    ]
    for name, ran in mix.items():
        readings += _of_application(name, alone[name], ran)
    for prefix, of_nodes in _counted(given).items():
        readings += _rates(prefix, of_nodes, begin, end)
        readings += _moved(f"{prefix}moved", of_nodes, mix)
    conditions = {k: v for k, v in given.conditions.items() if k != "program"}
    return readings, conditions


class _Counter(NamedTuple):
    """A counter that a node has read. of: what it is of, which several nodes may share."""

    node: Node
    of: str
    bytes_at: list[int]

    def moved(self, begin: int, end: int) -> Mapping[int, float]:
        """Bytes by second."""
        return counters.of_each_second(self.node.times, self.bytes_at, begin, end)


def _must_be_right(run: Execution, programs: Mapping[str, Mapping[str, object]]) -> None:
    """As the check of the program alone. Raises OutputError with the application and its node."""
    program = run.dims["program"]
    known = programs[program]
    try:
        if "answer" in known:
            _must_have(run.stdout, str(known["answer"]))
        else:
            parser = PARSERS[program]
            must_be_known(parser.parse(run.stdout), parser.conditions(run.stdout), known)
    except OutputError as error:
        where = " ".join(run.dims.get(key, "?") for key in ("application", "phase", "member"))
        raise OutputError(f"{where}: {error}", error.status) from None


def _must_have(text: str, answer: str) -> None:
    """Raises OutputError unless a line is as the site states; only * is any text."""
    if _line_as(text, answer) is None:
        raise OutputError(f"no line '{answer}'", "invalid")


def _line_as(text: str, stated: str, figure: str = r"\#") -> re.Match[str] | None:
    """The first line that is as the site states. figure: the pattern of a #.

    A part between two * is looked for once: its first place is kept, so that no line of a node
    takes long.
    """
    parts = [re.escape(part).replace(r"\#", figure) for part in stated.split("*")]
    pattern = re.compile(f"(?>{')(?>.*?'.join(parts)}\\Z)")
    return next(filter(None, map(pattern.match, values.filled(text))), None)


def _figure(name: str, text: str, prints: str) -> Decimal:
    """What its line shows. Raises OutputError (parse) where no line does."""
    if (found := _line_as(text, prints, FIGURE)) is None:
        raise OutputError(f"{name}: no line '{prints}'")
    return Decimal(found[1])


def _ran(
    members: Iterable[Execution], phase: str, name: str, program: str, count: int, prints: str
) -> Ran:
    """An application in a phase. Raises OutputError unless its program ran on so many nodes."""
    which = (phase, name)
    runs = [r for r in members if (r.dims.get("phase"), r.dims.get("application")) == which]
    own = [run.dims for run in runs]
    all_nodes = [node for dims in own for node in dims.get("member", "").split()]
    nodes = frozenset(all_nodes)
    if len(all_nodes) != count or len(nodes) != count:
        raise OutputError(f"{name} {phase}: on {len(nodes)} nodes, expected {count}", "invalid")
    for dims in own:
        must_be(f"{name} {phase}: program", dims.get("program"), program)
    begins = [float(values.positive(f"{name}: begin", dims.get("begin", ""))) for dims in own]
    ends = [float(values.positive(f"{name}: end", dims.get("end", ""))) for dims in own]
    if min(end - begin for begin, end in zip(begins, ends, strict=True)) <= 0:
        raise OutputError(f"{name} {phase}: it ended before it began", "invalid")
    figure = min(_figure(name, run.stdout, prints) for run in runs) if prints else None
    return Ran(min(begins), max(ends), nodes, figure)


def _of_application(name: str, alone: Ran, mix: Ran) -> list[Reading]:
    dims = {"application": name}
    slowdown = (mix.end - mix.begin) / (alone.end - alone.begin)
    found = [Reading("slowdown", Decimal(f"{slowdown:.4f}"), "x", dims)]
    for phase, ran in (("alone", alone), ("mix", mix)):
        seconds = Decimal(f"{ran.end - ran.begin:.2f}")
        found.append(Reading(f"time_{phase}", seconds, "s", dims))
        if ran.figure is not None:
            found.append(Reading(f"printed_{phase}", ran.figure, "count", dims))
    return found


def _counted(given: Measured) -> dict[str, list[_Counter]]:
    """The counters of storage and network that all nodes have. Raises OutputError."""
    runs = [run for run in given.raw.runs if run.dims.get("program") == COUNTERS]
    nodes = counters.nodes(values.only("workload", "outputs of the counters", runs).stdout)
    stored = [_Counter(node, node.storage, node.stored) for node in nodes]
    carried = [_Counter(node, node.network, node.carried) for node in nodes]
    each = {"": stored, "network_": carried}
    return {name: own for name, own in each.items() if all(one.bytes_at for one in own)}


def _rates(prefix: str, of_nodes: list[_Counter], begin: int, end: int) -> list[Reading]:
    """Highest second and median of all counters together, in GB/s; one that is shared once."""
    total = dict.fromkeys(range(begin, end), 0.0)
    for one in {one.of: one for one in reversed(of_nodes)}.values():
        for second, moved in one.moved(begin, end).items():
            total[second] += moved
    peak, sustained = max(total.values()) / GIGA, median(total.values()) / GIGA
    return [
        Reading(f"{prefix}peak", Decimal(f"{peak:.6f}"), "GB/s"),
        Reading(f"{prefix}sustained", Decimal(f"{sustained:.6f}"), "GB/s"),
    ]


def _moved(metric: str, of_nodes: list[_Counter], mix: Mapping[str, Ran]) -> list[Reading]:
    """GB of the nodes of each application while it ran; nothing where nodes share a counter."""
    if len({one.of for one in of_nodes}) < len(of_nodes):
        return []
    found = []
    for name, ran in mix.items():
        own = [one for one in of_nodes if one.node.name in ran.nodes]
        moved = sum(sum(one.moved(int(ran.begin), int(ran.end) + 1).values()) for one in own)
        found.append(Reading(metric, Decimal(f"{moved / GIGA:.6f}"), "GB", {"application": name}))
    return found
