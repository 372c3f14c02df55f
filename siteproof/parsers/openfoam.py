"""OpenFOAM's icoFoam in a lid-driven cavity: text in, readings out.

The text is the log of blockMesh, the lines of icoFoam's log that are not of a linear solver, the
probes, and `elapsed SECONDS s` of checks/apps/openfoam.sh: ExecutionTime is processor time.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "the whole output of icoFoam"

VELOCITIES = ("velocity_middle", "velocity_upper")  # in the order of the probes

_CELLS = values.row(r"  nCells: ([0-9]{1,12})")
_SOLVER = re.compile(r"^Exec   : icoFoam\b(.*)$", re.MULTILINE)
_BUILD = re.compile(r"^Build  : ([!-~]{1,60})", re.MULTILINE)
_TASKS = values.row(r"nProcs : ([0-9]{1,9})")
_STEP = values.row(r"Time = ([!-~]{1,30})")
_CLOCK = values.row(r"ExecutionTime = (\S{1,30}) s  ClockTime = ([0-9]{1,12}) s")
_PROBES = values.row(
    r"# +Probe +0 +1[ \r]*\n# +Time[ \r]*\n"
    r" +(\S{1,30}) +\((\S{1,30}) \S{1,30} \S{1,30}\) +\((\S{1,30}) \S{1,30} \S{1,30}\)"
)
_ELAPSED = values.row(r"elapsed ([0-9.]{1,20}) s")
_ERROR = re.compile(r"FOAM FATAL (?:IO )?ERROR ?:[ \r]*\n?[ ]*([ -~]{0,200})")
_END = values.row(r"End")
SECOND = Decimal(2)  # a clock that counts whole seconds, at both ends


def parse(text: str) -> list[Reading]:
    """rate (cell-updates/s), time (s), and the velocity along the lid at the two probes (x).

    Velocities are relative to the lid's. Raises OutputError.
    """
    if error := _ERROR.search(text):
        raise OutputError(f"openfoam: {error[1] or 'fatal error'}", "generic")
    values.one("openfoam: runs of icoFoam", _SOLVER, text)
    cells = int(values.one("openfoam: number of cells", _CELLS, text)[0])
    steps, clocks = _STEP.findall(text), _CLOCK.findall(text)
    if len(steps) != len(clocks) or not steps or not _END.search(text):
        raise OutputError(f"openfoam: {len(clocks)} of {len(steps)} time steps are whole")
    time = values.figure("openfoam: elapsed", _ELAPSED, text)
    clock = Decimal(clocks[-1][1])
    if not clock - SECOND <= time <= clock + max(SECOND, clock):  # MPI's start is not in the clock
        raise OutputError(f"openfoam: elapsed {time} s, by its own clock {clock} s")
    at, *found = values.one("openfoam: probes", _PROBES, text)
    if at != steps[-1]:
        raise OutputError(f"openfoam: the probes are of time {at}, the last step is {steps[-1]}")
    return [
        Reading("rate", values.rate("openfoam", cells * len(steps), time), "cell-updates/s"),
        Reading("time", time, "s"),
        *(
            Reading(name, values.signed(f"openfoam: {name}", value), "x")
            for name, value in zip(VELOCITIES, found, strict=True)
        ),
    ]


def conditions(text: str) -> dict[str, str]:
    """Cells, time steps, simulated time, tasks and the build."""
    found = {}
    for key, pattern in {"cells": _CELLS, "version": _BUILD, "tasks": _TASKS}.items():
        matches = pattern.findall(text)
        if matches:  # that of icoFoam, which comes last
            found[key] = str(matches[-1])
    if steps := _STEP.findall(text):
        found |= {"steps": str(len(steps)), "end": steps[-1]}
    return found
