"""Molecular dynamics of every node: GROMACS with water."""

import reframe as rfm

from siteproof.checks import ApplicationCheck
from siteproof.parsers import gromacs

EDGE = {"quick": "3.7", "maintenance": "5.6", "acceptance": "9.3"}  # of the box, nm
STEPS = {"quick": 4000, "maintenance": 5000, "acceptance": 20000}  # of 2 fs


@rfm.simple_test
class Gromacs(ApplicationCheck):
    """SPC/E water at 300 K in a cube, with particle mesh Ewald.

    A molecule's potential energy: Berendsen, Grigera and Straatsma, J. Phys. Chem. 91, 6269 (1987):
    -41.5 kJ/mol with a correction for polarisation of 5.2 that no run has. The box is fresh, so the
    run is still a little above that. The conserved energy must not drift faster than the thermal
    energy in a nanosecond.
    """

    descr = "Molecular dynamics of water on every node"
    tags = {"apps"}
    script = "gromacs.sh"
    features = ("gromacs",)
    parsers = {"gromacs": gromacs}
    metrics = ("rate", "time", "potential", "drift")
    headline = ("rate",)
    problems = {mode: {"EDGE": EDGE[mode], "STEPS": str(STEPS[mode])} for mode in EDGE}
    solved = {mode: {"steps": str(STEPS[mode] + 1)} for mode in EDGE}  # it counts step 0
    references = {"potential": ("-46.7", "1.4"), "drift": ("0", "0.0025")}
