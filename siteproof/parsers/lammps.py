"""LAMMPS with a Lennard-Jones fluid: text in, readings out. Energies are reduced, of an atom."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "the whole output of LAMMPS with thermo_style one"

TITLE = "LAMMPS ("
COLUMNS = ["Step", "Temp", "E_pair", "E_mol", "TotEng", "Press"]  # thermo_style one

_LOOP = values.row(
    r"Loop time of (\S{1,30}) on ([0-9]{1,9}) procs for ([0-9]{1,12}) steps with "
    r"([0-9]{1,15}) atoms"
)
_RATE = re.compile(r"^Performance: \S{1,30} tau/day, (\S{1,30}) timesteps/s\b", re.MULTILINE)
_END = values.row(r"Total wall time: ([0-9]{1,6}:[0-9]{2}:[0-9]{2})")
_ERROR = re.compile(r"^ERROR(?: on proc [0-9]{1,9})?: ([ -~]{1,200})", re.MULTILINE)
_TABLE = re.compile(rf"^[ \t]*{'[ ]+'.join(COLUMNS)}[ \r]*\n((?:[ ]*[0-9].*\n)+)", re.MULTILINE)
_CREATED = values.row(r"Created ([0-9]{1,15}) atoms")
_VERSION = values.row(r"LAMMPS \(([ -~]{1,60}?)\)")
_THREADS = re.compile(r"^[ ]*using ([0-9]{1,6}) OpenMP thread", re.MULTILINE)


def parse(text: str) -> list[Reading]:
    """rate (atom-steps/s) and time (s) of the loop; lattice_energy, potential and energy (x).

    lattice_energy: the potential energy of an atom before the first step. potential, energy: the
    potential and the total energy of an atom after the last one.
    Raises OutputError: `invalid` where an energy is not a number, or atoms are lost.
    """
    if error := _ERROR.search(text):
        raise OutputError(f"lammps: {error[1]}", "generic")
    values.only("lammps", "outputs of LAMMPS", re.findall(re.escape(TITLE), text))
    values.one("lammps: 'Total wall time'", _END, text)
    seconds, _, steps, atoms = values.one("lammps: 'Loop time'", _LOOP, text)
    (created,) = values.one("lammps: 'Created'", _CREATED, text)
    if created != atoms:  # LAMMPS can lose some, and goes on if thermo_modify allows it
        raise OutputError(f"lammps: {atoms} of {created} atoms are left", "invalid")
    time = values.positive("lammps: time", seconds)
    per_second = values.figure("lammps: timesteps/s", _RATE, text)
    values.must_agree("lammps: timesteps/s", per_second, Decimal(steps), time)
    first, last = _ends(text, steps)
    return [
        Reading("rate", values.rate("lammps", int(atoms) * int(steps), time), "atom-steps/s"),
        Reading("time", time, "s"),
        Reading("lattice_energy", values.signed("lammps: E_pair", first["E_pair"]), "x"),
        Reading("potential", values.signed("lammps: E_pair", last["E_pair"]), "x"),
        Reading("energy", values.signed("lammps: TotEng", last["TotEng"]), "x"),
    ]


def conditions(text: str) -> dict[str, str]:
    """Atoms, steps, tasks, threads of a task, and the version."""
    found = values.printed({"version": _VERSION, "threads": _THREADS}, text)
    if loop := _LOOP.search(text):
        found |= {"tasks": loop[2], "steps": loop[3], "atoms": loop[4]}
    return found


def _ends(text: str, steps: str) -> tuple[dict[str, str], dict[str, str]]:
    """The first and the last row of the table of energies. Raises OutputError."""
    (table,) = values.one("lammps: table of energies", _TABLE, text)
    rows = [dict(zip(COLUMNS, line.split(), strict=False)) for line in table.splitlines()]
    if any(len(row) != len(COLUMNS) for row in rows):
        raise OutputError("lammps: a row of energies has not all columns")
    if (rows[0]["Step"], rows[-1]["Step"]) != ("0", steps):
        raise OutputError("lammps: the energies are not those of the first and the last step")
    return rows[0], rows[-1]
