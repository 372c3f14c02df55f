"""Fluid dynamics of every node: OpenFOAM's icoFoam in a square cavity under a moving lid."""

import reframe as rfm

from siteproof.checks import ApplicationCheck
from siteproof.parsers import openfoam

EDGE = {"quick": 64, "maintenance": 128, "acceptance": 256}  # cells along it
STEPS_A_CELL = 25  # in all of the time: a Courant number of .6, and the flow no longer changes

TOLERANCE = "0.005"  # finer grids than that of the source give up to .003 more


@rfm.simple_test
class OpenFoam(ApplicationCheck):
    """Reynolds number 100, until the flow is steady.

    The velocities along the lid, at half its length and at .4531 and .6172 of the height:
    Ghia, Ghia and Shin, J. Comput. Phys. 48, 387 (1982), Table I.
    """

    descr = "Flow in a lid-driven cavity on every node"
    tags = {"apps"}
    script = "openfoam.sh"
    features = ("openfoam",)
    parsers = {"icoFoam": openfoam}
    metrics = ("rate", "time", *openfoam.VELOCITIES)
    headline = ("rate",)
    problems = {
        mode: {"EDGE": str(edge), "STEPS": str(edge * STEPS_A_CELL)} for mode, edge in EDGE.items()
    }
    solved = {
        mode: {"cells": str(edge**2), "steps": str(edge * STEPS_A_CELL)}
        for mode, edge in EDGE.items()
    }
    references = {
        "velocity_middle": ("-0.21090", TOLERANCE),
        "velocity_upper": ("-0.13641", TOLERANCE),
    }
