"""NWChem's SCF energy of a closed shell: text in, readings out. Energies are in hartree."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "the whole output of NWChem"

SECONDS_AN_HOUR = 3600
ROUNDING = Decimal("0.000001")  # hartree: of the parts' sum

_TITLE = values.row(r" +Northwest Computational Chemistry Package \(NWChem\) ([!-~]{1,40})")
_TASK = values.row(r" Task +times +cpu: +\S{1,20}s +wall: +([0-9.]{1,20})s")
_END = values.row(r" Total times +cpu: +\S{1,20}s +wall: +([0-9.]{1,20})s")
_ENERGIES = values.row(r" +(Total SCF|One-electron|Two-electron) energy = +(\S{1,40})")
_REPULSION = values.row(r" *Nuclear repulsion energy = +(\S{1,40})")
_ERROR = re.compile(
    r"^ There is an error in|^ *[0-9]*:? ?(?:Received an Error|.{1,100}:Received)", re.M
)
_NOT_CONVERGED = "Calculation failed to converge"
_CONDITIONS = {
    "functions": values.row(r" +functions +=[ ]+([0-9]{1,9})"),
    "basis": re.compile(r"^ +\* +([!-~]{1,40}) +on all atoms", re.MULTILINE),
    "tasks": values.row(r" +nproc +=[ ]+([0-9]{1,9})"),
    "version": _TITLE,
}


def parse(text: str) -> list[Reading]:
    """rate (energies/h), time (s) of the one task, and its energy (hartree).

    Raises OutputError: `invalid` where it did not converge, or its parts have another sum.
    """
    if _NOT_CONVERGED in text:
        raise OutputError("nwchem: the calculation did not converge", "invalid")
    if _ERROR.search(text):
        raise OutputError("nwchem: it ended with an error", "generic")
    values.one("nwchem: title", _TITLE, text)
    whole = values.figure("nwchem: 'Total times'", _END, text)
    time = values.figure("nwchem: 'Task times'", _TASK, text)
    if time > whole:
        raise OutputError(f"nwchem: a task of {time} s in a run of {whole} s")
    return [
        Reading("rate", values.rate("nwchem", SECONDS_AN_HOUR, time), "energies/h"),
        Reading("time", time, "s"),
        Reading("energy", _energy(text), "hartree"),
    ]


def conditions(text: str) -> dict[str, str]:
    """Basis functions, tasks and the version."""
    return values.printed(_CONDITIONS, text)


def _energy(text: str) -> Decimal:
    """The total energy, which must be the sum of its parts."""
    rows = _ENERGIES.findall(text)
    if sorted(name for name, _ in rows) != ["One-electron", "Total SCF", "Two-electron"]:
        raise OutputError("nwchem: no SCF energy with its parts")
    found = {name: values.signed(f"nwchem: {name} energy", value) for name, value in rows}
    (repulsion,) = values.one("nwchem: nuclear repulsion", _REPULSION, text)
    parts = found["One-electron"] + found["Two-electron"]
    parts += values.number("nwchem: nuclear repulsion", repulsion)
    total = found["Total SCF"]
    if abs(parts - total) > ROUNDING:
        raise OutputError(f"nwchem: the energy {total} is not the sum of its parts", "invalid")
    return total
