"""The log of GROMACS' mdrun with three-site water: text in, readings out."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "the whole md.log of GROMACS' mdrun"

SECONDS_A_DAY = 86400
ATOMS_A_MOLECULE = 3
WIDTH = 15  # of a column of energies
AVERAGES = "A V E R A G E S"

_VERSION = values.row(r"GROMACS version:[ ]+([!-~]{1,60})")
_END = re.compile(r"^Finished mdrun on rank ([0-9]{1,9}) ", re.MULTILINE)
_TIME = values.row(r" +Time: +\S{1,30} +(\S{1,30}) +\S{1,30}")
_RATE = values.row(r"Performance: +(\S{1,30}) +\S{1,30}")
_STEPS = re.compile(r"^\tStatistics over ([0-9]{1,12}) steps using", re.MULTILINE)
_LENGTH = values.row(r" +dt +=[ ]+(\S{1,30})")
_ATOMS = re.compile(r"^There are: ([0-9]{1,12}) Atoms\b", re.MULTILINE)
_DRIFT = values.row(r" +Conserved energy drift: (\S{1,30}) kJ/mol/ps per atom")
_ERROR = re.compile(r"^(?:Fatal|Input|Software|System I/O) error:[ \r]*\n([ -~]{1,200})", re.M)
_ENERGIES = re.compile(r"^   Energies \(kJ/mol\)[ \r]*\n((?:.*\S.*\n)+)", re.MULTILINE)
_CONDITIONS = {
    "version": _VERSION,
    "atoms": _ATOMS,
    "steps": _STEPS,
    "precision": re.compile(r"^Precision: +([a-z]{1,20})", re.MULTILINE),
    "simd": re.compile(r"^SIMD instructions(?: selected at compile time)?: +([!-~]{1,40})", re.M),
    "tasks": re.compile(r"^On ([0-9]{1,9}) MPI ranks?\b", re.MULTILINE),
    "threads": values.row(r"On [0-9]{1,9} MPI ranks?, each using ([0-9]{1,9}) OpenMP threads?"),
}


def parse(text: str) -> list[Reading]:
    """rate (ns/day), time (s), potential (kJ/mol of a molecule), drift (kJ/mol/ps of an atom).

    potential: the mean over the run. drift: that of the conserved energy.
    Raises OutputError: `invalid` where an energy is not a number.
    """
    if error := _ERROR.search(text):
        raise OutputError(f"gromacs: {error[1]}", "generic")
    values.one("gromacs: 'GROMACS version'", _VERSION, text)
    values.one("gromacs: 'Finished mdrun'", _END, text)
    time = values.figure("gromacs: 'Time'", _TIME, text)
    rate = values.figure("gromacs: 'Performance'", _RATE, text)
    (steps,) = values.one("gromacs: number of steps", _STEPS, text)
    simulated = int(steps) * values.figure("gromacs: dt", _LENGTH, text) / 1000  # ns
    values.must_agree("gromacs: ns/day", rate, simulated * SECONDS_A_DAY, time)
    (drift,) = values.one("gromacs: 'Conserved energy drift'", _DRIFT, text)
    return [
        Reading("rate", rate, "ns/day"),
        Reading("time", time, "s"),
        Reading("potential", _potential(text), "kJ/mol"),
        Reading("drift", values.signed("gromacs: drift", drift), "kJ/mol/ps"),
    ]


def conditions(text: str) -> dict[str, str]:
    """Atoms, steps, tasks, threads of a task, precision, SIMD instructions and the version."""
    return values.printed(_CONDITIONS, text)


def _potential(text: str) -> Decimal:
    """The mean potential energy of a molecule. Raises OutputError."""
    (atoms,) = values.one("gromacs: number of atoms", _ATOMS, text)
    molecules, rest = divmod(int(atoms), ATOMS_A_MOLECULE)
    if rest or not molecules:
        raise OutputError(f"gromacs: {atoms} atoms are not molecules of {ATOMS_A_MOLECULE}")
    (table,) = values.one("gromacs: averages", _ENERGIES, text.partition(AVERAGES)[2])
    lines = table.splitlines()
    found: dict[str, str] = {}
    for names, row in zip(lines[::2], lines[1::2], strict=False):
        found |= dict(zip(_columns(names), _columns(row), strict=False))
    if "Potential" not in found:
        raise OutputError("gromacs: no mean of the potential energy")
    potential = values.signed("gromacs: potential", found["Potential"])
    return values.quotient(potential, Decimal(molecules))


def _columns(line: str) -> list[str]:
    return [line[at : at + WIDTH].strip() for at in range(0, len(line), WIDTH)]
