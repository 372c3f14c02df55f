"""The largest packet that reaches the other node unfragmented."""

import reframe as rfm

from siteproof.checks import PerPairCheck
from siteproof.checks.per_pair import ONE
from siteproof.parsers import path_mtu


@rfm.simple_test
class PathMtu(PerPairCheck):
    """Packets that may not be fragmented, from client to server; ping reports which arrived.

    One way only: the echo has the same size, but the server may send it in fragments.
    """

    descr = "Largest packet between two nodes that need not be fragmented"
    tags = {"network"}
    script = "path_mtu.sh"
    parsers = {"ping": path_mtu}
    derive = "network.path_mtu"
    metrics = ("mtu",)
    headline = ("mtu",)

    # Two probes where all is well; a search in which every second probe is lost takes longest.
    light = True
    seconds_of_turn = {"quick": 25, "maintenance": 30, "acceptance": 45}
    by_mode = {**PerPairCheck.by_mode, "trials": ONE}  # it does not vary
