"""Molecular dynamics of every node: LAMMPS with a Lennard-Jones fluid that melts."""

import reframe as rfm

from siteproof.checks import ApplicationCheck
from siteproof.parsers import lammps

CELLS = {"quick": 30, "maintenance": 50, "acceptance": 100}  # of the lattice, along an edge
STEPS = "250"  # the fluid has melted, and its energy has not drifted yet
ATOMS_A_CELL = 4


@rfm.simple_test
class Lammps(ApplicationCheck):
    """Density .8442, first temperature 1.44, cut off at 2.5, at constant energy.

    The energies are those of LAMMPS' own benchmark of this fluid: -6.7733681 in the lattice, and
    after 100 steps -5.7585 and -4.6223 (bench/log.*.lj). Until step 250 the last two change to
    -5.754 and -4.6226; the tolerances are more than four times what seed and size change.
    """

    descr = "Molecular dynamics of a Lennard-Jones fluid on every node"
    tags = {"apps"}
    script = "lammps.sh"
    features = ("lammps",)
    parsers = {"lammps": lammps}
    metrics = ("rate", "time", "lattice_energy", "potential", "energy")
    headline = ("rate",)
    problems = {mode: {"CELLS": str(CELLS[mode]), "STEPS": STEPS} for mode in CELLS}
    solved = {
        mode: {"atoms": str(ATOMS_A_CELL * CELLS[mode] ** 3), "steps": STEPS} for mode in CELLS
    }
    references = {
        "lattice_energy": ("-6.7733681", "0.000001"),
        "potential": ("-5.754", "0.02"),
        "energy": ("-4.6226", "0.001"),
    }
