"""Bursts of UDP between two nodes of the test bed. Their bandwidth: test_network_slurm.py."""

import pytest
from clone import before_others

pytestmark = [pytest.mark.testbed, pytest.mark.long, pytest.mark.tool("ReFrame", "Slurm", "iperf3")]
WAYS = {("node001", "node002"), ("node002", "node001")}
PAIR = ("-S", "nodes=node[001-002]")
LOST = 2  # % of the packets, each way
# What is told of an iperf3 whose first datagram, or the answer to it, or its end was lost.
NOT_WHOLE = (
    "hung: ended after its time limit",
    "unable to read from stream socket",
    "the receiver did not count the last",
)


def by_way(suite, metric):
    """The newest session's values of a metric, by sender and receiver; all are there."""
    newest = max(s.header.session for s in suite.samples())
    samples = [s for s in suite.samples() if s.header.session == newest]
    assert [s.why for s in samples if s.status != "ok"] == []
    found = {(s.node, s.dims["peer"]): s for s in samples if s.metric == metric}
    assert set(found) == WAYS
    return found


def test_bursts_over_a_lossy_link_lose_and_none_is_called_lossless(suite):
    urgent = suite.programs / "iperf3"  # a busy machine would slow the bursts
    urgent.write_text(f'#!/bin/sh\nexec {" ".join(before_others())} /usr/bin/iperf3 "$@"\n')
    urgent.chmod(0o755)
    suite.testbed.fault("lossy-link", "node002", value=f"{LOST}%")
    try:
        for _ in range(8):  # the link may lose the datagrams with which iperf3 begins, or ends
            done = suite.reframe("-n", "UdpBurst", "-S", "UdpBurst.bursts=100", *PAIR)
            if done.returncode == 0 or not any(words in done.stdout for words in NOT_WHOLE):
                break
    finally:
        suite.testbed.mend("node002")
    assert done.returncode == 0, done.stdout + done.stderr
    for metric in ("UdpBurst.loss_small", "UdpBurst.loss_large"):
        assert all(s.value > LOST / 2 for s in by_way(suite, metric).values())
    for sample in by_way(suite, "UdpBurst.largest_lossless").values():
        assert (sample.value, sample.dims["burst_bound"]) == (0, "100")
