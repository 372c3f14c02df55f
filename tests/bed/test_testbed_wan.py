"""Two sites joined by a WAN: its round trip, its rate, a small window on it, its loss."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import warnings
from pathlib import Path

import pytest
from clone import rises_above, wait_for

pytestmark = [pytest.mark.testbed, pytest.mark.long]

RTT = 50.5  # ms
BUFFERS = "4096 131072 268435456"


@contextlib.contextmanager
def sites(testbed, wan, name="-wan-2"):
    """Four nodes: node001 and node002 at site a, node003 and node004 at site b."""
    bed = type(testbed)(name)
    bed.up("4", "--sites", "2", "--wan", wan)
    try:
        yield bed
    finally:
        bed.down()


@pytest.fixture(scope="module")
def bed(testbed):
    with sites(testbed, f"{RTT}ms,10gbit", "-wan") as bed:
        yield bed


def round_trips(bed, source, target, count=20):
    """Milliseconds, as ping measures them; skips where there is no ping."""
    done = bed.run(["ping", "-i", "0.02", "-c", str(count), target], node=source)
    if done.returncode == 127:
        skip("NO PING (Debian: iputils-ping), WAN NOT TESTED")
    return sorted(float(word) for word in re.findall(r"time=([\d.]+)", done.stdout))


def skip(reason):
    warnings.warn(reason, stacklevel=2)
    pytest.skip(reason)


def big_buffers(bed, *nodes):
    for node in nodes:
        for file in ("tcp_rmem", "tcp_wmem"):
            line = f"echo {BUFFERS} > /proc/sys/net/ipv4/{file}"
            assert bed.run(["sh", "-c", line], node=node).returncode == 0


def stream(bed, source, target, *words):
    """Bits per second of one cubic TCP stream, at its receiver."""
    if not shutil.which("iperf3"):
        skip("NO IPERF3, WAN NOT TESTED")
    server = [bed.program, "run", "--node", target, "iperf3", "-s", "-1"]
    client = ["iperf3", "-c", target, "-C", "cubic", "-J", *words]
    env = os.environ | bed.environment
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, env=env, cwd="/") as process:
        try:
            for _ in range(50):
                report = json.loads(bed.run(client, node=source).stdout)
                if "end" in report and report["end"]:
                    return report["end"]["sum_received"]["bits_per_second"]
                time.sleep(0.1)  # the server does not listen yet
        finally:
            process.terminate()
    raise AssertionError(report)


def test_half_the_nodes_are_at_each_site(bed):
    lines = ["login a", "node001 a", "node002 a", "node003 b", "node004 b"]
    assert bed.must("sites").splitlines() == lines
    status = bed.must("status")
    assert "wan          50.5ms,10gbit\n" in status
    assert re.search(r"site +2  b  node003,node004\n", status)


@pytest.mark.parametrize(("source", "target"), [("node001", "node004"), ("node003", "login")])
def test_the_round_trip_between_sites_is_the_wans(bed, source, target):
    def close():
        times = round_trips(bed, source, target)
        assert len(times) == 20
        assert times[0] >= RTT
        return times[0] < RTT * 1.02 and times[10] < RTT * 1.05

    wait_for(close)  # a busy machine can make them longer, and nothing shorter


def test_within_a_site_no_packet_crosses_the_wan(bed):
    for pair in (("node001", "node002"), ("node003", "node004")):
        wait_for(lambda pair=pair: round_trips(bed, *pair)[10] < 5)


def test_slurm_works_across(bed):
    out = bed.run(["srun", "-N4", "hostname"]).stdout.split()
    assert sorted(out) == ["node001", "node002", "node003", "node004"]
    assert bed.command("status").returncode == 0


def test_a_small_window_fills_a_small_part_of_the_wan(bed):
    limit = 2 * 2**20 * 8 / (RTT / 1000)  # the whole buffer in flight; the kernel keeps some back
    words = (bed, "node002", "node003", "-t", "4", "-O", "1")
    for node in ("node002", "node003"):
        bed.fault("small-buffers", node, value="2MiB")
    try:
        rises_above(0.2 * limit, lambda: stream(*words), 1.02 * limit)
    finally:
        bed.mend("node002", "node003")


def test_one_stream_with_big_buffers_fills_much_of_the_wan(bed):
    big_buffers(bed, "node001", "node004")
    words = (bed, "node001", "node004", "-t", "8", "-O", "3")
    # On two idle cores 8e9; what is tested is that a window grows.
    rises_above(1.5e9, lambda: stream(*words), 10e9)


def test_the_rate_is_a_cap_and_loss_is_lost(testbed):
    with sites(testbed, "10ms,100mbit,5%") as bed:
        # Each way 5 %: of the round trips .95 squared arrive, here with five standard deviations.
        assert 0.82 * 400 < len(round_trips(bed, "node001", "node003", 400)) < 0.98 * 400
        assert len(round_trips(bed, "node003", "node004")) == 20
        send = ["-u", "-b", "200M", "-l", "8000", "-t", "2"]
        rises_above(80e6, lambda: datagram_rate(bed, "node001", "node004", send), 100e6)


def datagram_rate(bed, source, target, words):
    """Bits per second that arrive of a UDP stream."""
    if not shutil.which("iperf3"):
        skip("NO IPERF3, WAN NOT TESTED")
    server = [bed.program, "run", "--node", target, "iperf3", "-s", "-1", "-J"]
    env = os.environ | bed.environment
    report = {"end": {}}
    for _ in range(5):  # the connection that controls a test loses packets, too, and may break
        with subprocess.Popen(server, stdout=subprocess.PIPE, env=env, cwd="/") as process:
            while process.poll() is None:
                if bed.run(["iperf3", "-c", target, *words], node=source).returncode == 0:
                    break
                time.sleep(0.1)
            report = json.loads(process.stdout.read())
        if "sum" in report["end"]:
            break
    seconds = report["end"]["sum"]["seconds"]
    lost, all_sent = (report["end"]["sum"][key] for key in ("lost_packets", "packets"))
    return (all_sent - lost) * 8000 * 8 / seconds


def test_status_tells_that_the_wan_has_died(testbed):
    with sites(testbed, "5ms,1gbit") as bed:
        program = next(iter(wan_programs(bed)), None)
        if program is None:
            pytest.skip("the kernel's netem is the WAN here, and cannot die")
        os.kill(program, signal.SIGKILL)
        wait_for(lambda: "wan          5ms,1gbit  DEAD\n" in bed.command("status").stdout)
        assert bed.command("status").returncode == 1


def wan_programs(bed):
    """Pids of this testbed's WAN programs."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes().startswith(f"{bed.state}/wan\0".encode()):
                yield int(process.name)


def test_down_leaves_nothing_of_the_wan(testbed):
    def surroundings():
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
        rules = subprocess.run(["ip", "rule"], capture_output=True, text=True).stdout
        return re.findall(r"^\d+: ([^:]+)", links, re.MULTILINE), rules

    before = surroundings()
    with sites(testbed, "5ms,1gbit,0.1%") as bed:
        mark = bed.mark
        bed.fault("lossy-link", "node004")
        bed.fault("capped-link", "node001")
    assert not bed.state.exists()
    assert list(wan_programs(bed)) == []
    assert not [*Path("/var/tmp").glob(f"*{mark}*")]
    assert surroundings() == before
