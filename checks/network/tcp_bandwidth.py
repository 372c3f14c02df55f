"""TCP between two nodes: one stream and several, in both directions."""

import reframe as rfm
from reframe.core.builtins import run_after, variable

from siteproof.answers import expected
from siteproof.checks import PerPairCheck, loading, session
from siteproof.checks.per_pair import ONE
from siteproof.checks.timetable import PORTS
from siteproof.parsers import iperf3, nuttcp


@rfm.simple_test
class TcpBandwidth(PerPairCheck):
    """iperf3 or nuttcp, whichever is there; -S TcpBandwidth.program chooses."""

    descr = "TCP goodput between two nodes, both ways"
    tags = {"network"}
    script = "tcp_bandwidth.sh"
    parsers = {"iperf3": iperf3, "nuttcp": nuttcp}
    derive = "network.tcp_bandwidth"
    metrics = ("throughput", "cpu_sender", "cpu_receiver")
    headline = ("throughput", "aggregate")  # the second where all pairs run together

    program = variable(str, value="")  # iperf3, nuttcp; empty: the first that is installed
    streams = variable(int, value=0)  # of the second run; 0: as below, 1: no second run
    duration = variable(int, value=0)  # seconds of each run; 0: as below

    # Short where a star of hundreds of nodes has to end before the users come back.
    by_mode = {
        **PerPairCheck.by_mode,
        "trials": ONE,
        "duration": {"quick": 3, "maintenance": 5, "acceptance": 15},
    }
    streams_of = {"quick": 1, "maintenance": 1, "acceptance": 4}
    shortest_together = 8  # seconds: where all run at once, some at either end do not count
    omitted = 1  # seconds of slow start that do not count

    @run_after("init")
    def refuse_wrong_streams(self) -> None:
        """Each may take a port of the server's."""
        loading.refuse_number(self, "streams", 0, PORTS)

    def turn(self) -> int:
        """Both directions of each number of streams, even if all take as long as they may."""
        runs = 2 * len(self.numbers_of_streams())
        return runs * (self.seconds_each() + self.omitted + 3) + 1

    def known_before(self) -> dict[str, str]:
        """With how long a run counts."""
        return {**super().known_before(), "duration": str(self.seconds_each())}

    def seconds_each(self) -> int:
        """How long a run counts."""
        shortest = self.shortest_together if self.pattern == "together" else 0
        return max(int(self.value_of("duration")), shortest)

    def numbers_of_streams(self) -> list[int]:
        """One stream always; several at once if -S or a criterion sets them."""
        if self.streams:
            return sorted({1, self.streams})
        default = ["1", str(self.streams_of[self.mode])]
        site = session.current().site
        return sorted(set(map(int, expected.each(site, self.planned_job(), "streams", default))))

    def settings(self) -> dict[str, str]:
        """For how long, with how many streams, and by which program."""
        return {
            **super().settings(),
            "PROGRAM": self.program,
            "STREAMS": " ".join(map(str, self.numbers_of_streams())),
            "SECONDS_OF_RUN": str(self.seconds_each()),
            "OMIT": str(self.omitted),
        }
