"""UdpCheck: what checks of UDP between two nodes share: programs, runs in order, their script."""

from __future__ import annotations

from typing import NamedTuple

from reframe.core.builtins import variable

from siteproof.checks.per_pair import ONE, PerPairCheck
from siteproof.parsers import iperf3, nuttcp

WINDOW = 4 * 2**20  # bytes of the sockets' buffers: the -w4m of the contracts' commands
FILL = "fill"  # the datagram that fills the MTU
POWER = "power"  # nuttcp's default: 8192 B, halved until it fits; 1024 B at an MTU of 1500
AROUND_RUN = 4  # seconds that a tool needs in addition to those it sends; nuttcp takes 2 to 3


class UdpRun(NamedTuple):
    """One run in one direction.

    kind: what it is for. mbps: the requested rate; 0: no limit. burst: packets sent in a row.
    window: bytes; 0: the host's default. until_loss: after a loss no further run is of use.
    """

    kind: str
    seconds: int
    datagram: str = FILL
    mbps: int = 0
    burst: int = 1
    window: int = WINDOW
    until_loss: bool = False

    def line(self) -> str:
        """As the script reads it."""
        *fields, until_loss = self
        return " ".join(map(str, [*fields, "until_loss" if until_loss else "always"]))


class UdpCheck(PerPairCheck, special=True):
    """A check defines which `runs()` it makes in either direction, in the mode that was chosen."""

    tags = {"network"}
    script = "udp_runs.sh"
    parsers = {"nuttcp": nuttcp, "iperf3": iperf3}
    patterns = ("star", "all", "random")  # on a shared uplink, full rates only lose
    by_mode = {**PerPairCheck.by_mode, "trials": ONE}  # the median of several would hide a loss

    program = variable(str, value="")  # nuttcp, iperf3; empty: the first that can do it

    def runs(self) -> list[UdpRun]:
        """The runs of one direction, in the order of time."""
        raise NotImplementedError

    def turn(self) -> int:
        """All runs, in both directions."""
        return 2 * sum(run.seconds + AROUND_RUN for run in self.runs())

    def settings(self) -> dict[str, str]:
        """The runs, one a line, and by which program."""
        lines = [run.line() for run in self.runs()]
        return {
            **super().settings(),
            "PROGRAM": self.program,
            "RUNS": "\n".join(lines),
            "AROUND_RUN": str(AROUND_RUN),
        }
