"""Quantum chemistry of every node: NWChem, the Hartree-Fock energy of a molecule of water."""

from collections.abc import Mapping

import reframe as rfm

from siteproof.checks import ApplicationCheck
from siteproof.parsers import nwchem

BASIS = {"quick": "cc-pvqz", "maintenance": "cc-pvqz", "acceptance": "cc-pv5z"}
FUNCTIONS = {"cc-pvqz": "115", "cc-pv5z": "201"}
# PySCF 2 computes the same for this geometry, to all eight digits.
ENERGY = {"cc-pvqz": "-76.0647917", "cc-pv5z": "-76.0670470"}
TOLERANCE = "0.000001"  # hartree


@rfm.simple_test
class Nwchem(ApplicationCheck):
    """Integrals are computed anew in each iteration (direct), so that no disk decides."""

    descr = "Hartree-Fock energy of water on every node"
    tags = {"apps"}
    script = "nwchem.sh"
    features = ("nwchem",)
    parsers = {"nwchem": nwchem}
    metrics = ("rate", "time", "energy")
    headline = ("rate",)
    problems = {mode: {"BASIS": basis} for mode, basis in BASIS.items()}
    solved = {mode: {"functions": FUNCTIONS[basis]} for mode, basis in BASIS.items()}

    @classmethod
    def known(cls, mode: str) -> Mapping[str, tuple[str, str]]:
        """The energy in the basis of the mode."""
        return {"energy": (ENERGY[BASIS[mode]], TOLERANCE)}
