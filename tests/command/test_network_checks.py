"""Round trip, path MTU and MPI between two ends: the real scripts, and what may count of them."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from decimal import Decimal

import nets
import pytest
from clone import OUTPUTS, PATIENCE, TOP
from left_in import left_in

from siteproof.collect import outcome
from siteproof.collect.derive import Measured, network
from siteproof.collect.derive.network import mpi_ping_pong
from siteproof.collect.raw import Execution, Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading, netperf
from siteproof.record.manifest import Manifest
from siteproof.verdict import judgement

SHARED = TOP / "siteproof/checks/on_node"
CHECKS = {
    "latency": (
        "Latency",
        ["round_trip", "loss"],
        {"ping": "ping", "qperf": "qperf"},
        "network.latency",
    ),
    "path_mtu": ("PathMtu", ["mtu"], {"ping": "path_mtu"}, "network.path_mtu"),
    "mpi_ping_pong": (
        "MpiPingPong",
        ["latency", "bandwidth"],
        {"osu": "osu"},
        "network.mpi_ping_pong",
    ),
    "netperf": ("Netperf", ["throughput", "service_demand"], {"netperf": "netperf"}, ""),
}
LATENCY = {"SIZE": "56", "INTERVAL": "0.2", "PACKETS": "3", "SECONDS_OF_TCP": "1"}
MPI = {
    "PROGRAM": "osu",
    "LAUNCH": "",
    "SMALLEST": "1",
    "LARGEST": "4194304",
    "ITERATIONS": "100",
    "SECONDS_OF_TURN": "20",
    "SITEPROOF_JOB": "7",
    "SITEPROOF_MPI": "",
}


def needs(*tools):
    """The test runs these for real; skipped, loudly, where one is missing."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    return pytest.mark.skipif(bool(missing), reason=f"NOT TESTED: no {missing}")


ping, ping_and_qperf = pytest.mark.tool("ping"), pytest.mark.tool("ping", "qperf")


class Turn:
    """The client's side of a turn, in a folder of its own, with programs first on PATH."""

    def __init__(self, folder):
        self.folder, self.bin = folder / "turn", folder / "bin"
        self.folder.mkdir()
        self.bin.mkdir()

    def fake(self, name, script):
        """A program that lies first on PATH."""
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def line(self, name, side):
        """The shell's words for the script of a check."""
        return (
            f"set -- '{SHARED}'; . '{SHARED}/account.sh'; . '{SHARED}/network.sh'; "
            + (f"begin_account {side} 7 60; " if side == "client" else "")
            + f". '{TOP}/checks/network/{name}.sh'"
        )

    def environment(self, **settings):
        path = f"{self.bin}:{os.environ['PATH']}"
        return (
            os.environ
            | {
                "PATH": path,
                "LC_ALL": "C",
                "SIDE": "client",
                "PEER": "server",
                "ADDRESS": "127.0.0.1",
                "PORT": "5399",
            }
            | settings
        )

    def measure(self, name, **settings):
        """Run a check's script as client, and read what it leaves as the collector does."""
        done = subprocess.run(
            ["sh", "-c", self.line(name, "client")],
            cwd=self.folder,
            text=True,
            env=self.environment(**settings),
            capture_output=True,
            timeout=PATIENCE,
        )
        (self.folder / "stdout").write_text(done.stdout)
        (self.folder / "stderr").write_text(done.stderr)
        return left_in(self.folder)

    def judge(self, name, facts=None, **settings):
        """Conditions, and the readings as {metric: value} without those of each size."""
        check, metrics, parsers, derive = CHECKS[name]
        job = Manifest(
            "s",
            "here",
            "p",
            "e",
            check,
            "quick",
            "client",
            metrics,
            parsers,
            derive=derive,
            facts=facts or {},
        )
        left = self.measure(name, **settings)
        conditions, readings, _ = outcome.judge(left, left.runs, job)
        return conditions, {r.metric: (r.value, r.unit) for r in readings if not r.dims}

    @contextmanager
    def server(self, name, port):
        """The other side of the turn, until the block ends."""
        folder = self.folder.parent / "server"
        folder.mkdir()
        (folder / "facts").touch()
        process = subprocess.Popen(
            ["sh", "-c", self.line(name, "server")],
            cwd=folder,
            env=self.environment(SIDE="server", PORT=str(port)),
        )
        try:
            end = time.monotonic() + PATIENCE
            while process.poll() is None and time.monotonic() < end:
                with socket.socket() as knock:
                    if knock.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def turn(tmp_path):
    return Turn(tmp_path)


# ---- netperf, which Debian has in non-free


@pytest.mark.tool("netperf")
@needs("netperf", "netserver")
def test_netperf_measures_both_ways_with_the_time_of_the_processors(turn):
    keys = ",".join(netperf.KEYS)
    with turn.server("netperf", 5396):
        left = turn.measure("netperf", PORT="5396", SECONDS_OF_RUN="2", BLOCK="128000", KEYS=keys)
    found = {run.dims["direction"]: netperf.parse(run.stdout) for run in left.runs}
    assert found.keys() == {"out", "in"}
    metrics = {"throughput", "cpu_sender", "cpu_receiver", "service_demand"}
    assert all({reading.metric for reading in each} == metrics for each in found.values())
    assert [netperf.conditions(run.stdout)["duration"] for run in left.runs] == ["2", "2"]


@pytest.mark.skipif(bool(shutil.which("netperf")), reason="netperf is installed")
def test_without_netperf_it_says_so(turn):
    left = turn.measure("netperf")
    assert (turn.folder / "stderr").read_text() == "netperf is not installed\n"
    assert not left.runs


# ---- latency


@ping_and_qperf
@needs("ping", "qperf")
def test_a_round_trip_is_in_us_with_that_of_tcp_beside_it(turn):
    with turn.server("latency", 5397):
        conditions, found = turn.judge("latency", PORT="5397", **LATENCY)
    assert {found[name][1] for name in ("round_trip", "min", "mean", "max", "tcp")} == {"us"}
    assert found["min"][0] <= found["round_trip"][0] <= found["max"][0]
    assert found["loss"] == (0, "%")
    assert conditions == {"program": "ping", "interval": "0.2", "size": "56", "packets": "3"}


@ping_and_qperf
@needs("ping", "qperf")
def test_without_a_qperf_at_the_other_end_ping_counts_and_it_is_told(turn):
    conditions, found = turn.judge("latency", PORT="5398", **LATENCY)
    assert "round_trip" in found
    assert "tcp" not in found
    assert conditions["tcp_warning"] == "tcp not measured: no qperf answers"


@ping
@needs("ping")
def test_a_host_that_does_not_answer_is_no_round_trip_of_zero(turn):
    with pytest.raises(OutputError, match=r"ping exited with [12]"):
        turn.judge("latency", ADDRESS="127.0.0.1.invalid", **LATENCY)


UNDIRECTED = [
    ("Latency.round_trip", 51, "us"),
    ("PathMtu.mtu", 9000, "B"),
    ("MpiPingPong.latency", 3, "us"),
]


def test_a_pair_owes_one_figure_of_what_has_no_direction(tmp_path, monkeypatch):
    for metric, value, unit in UNDIRECTED:
        rule = (
            f"C: {{description: It, metric: {metric}, subject: pair, links: [lan], "
            f"equals: {value} {unit}, source: contract}}\n"
        )
        (tmp_path / metric).mkdir()
        site = nets.load(tmp_path / metric, monkeypatch, criteria=rule)
        found = [nets.ok(f"n{i}>s1", value, metric=metric, unit=unit) for i in range(1, 7)]
        (whole,) = judgement.judge_samples(site, found, "all").verdicts
        assert (whole.verdict, len(whole.nodes)) == ("PASS", 6), metric
        (short,) = judgement.judge_samples(site, found[:-1], "all").verdicts
        assert (short.verdict, short.nodes[0].node) == ("INCOMPLETE", "n6>s1"), metric


# ---- path MTU

PATH_OF = """
while [ $# -gt 1 ]; do [ "$1" != -s ] || size=$2; shift; done
echo "$size" >>"$0.asked"
[ $((size + 28)) -gt {mtu} ] || exit 0
{refusal}
exit 1"""
TOO_BIG = "echo 'ping: local error: message too long, mtu={mtu}' >&2"


MTUS = (68, 576, 1400, 1500, 1501, 8999, 9000, 9001, 9216, 65535)
REFUSALS = {TOO_BIG: MTUS, "": (68, 1501, 9000, 65535), "echo 'Frag needed and DF set'": (1400,)}


def test_the_search_finds_every_mtu_whatever_the_site_says(tmp_path):
    wrong = []
    rows = [(refusal, mtu) for refusal, mtus in REFUSALS.items() for mtu in mtus]
    for number, (refusal, mtu) in enumerate(rows):
        (tmp_path / f"{number}").mkdir()
        turn = Turn(tmp_path / f"{number}")
        turn.fake("ping", PATH_OF.format(mtu=mtu, refusal=refusal.format(mtu=mtu)))
        conditions, found = turn.judge("path_mtu", LINK_MTU="9000")
        silent = not refusal and mtu != 65535
        if (found["mtu"], "silent_warning" in conditions) != ((mtu, "B"), silent):
            wrong.append((mtu, refusal, found, conditions))
    assert not wrong, wrong


def test_an_mtu_as_the_site_says_takes_three_probes(turn):
    turn.fake("ping", PATH_OF.format(mtu=9000, refusal=TOO_BIG))
    turn.judge("path_mtu", LINK_MTU="9000")
    assert (turn.bin / "ping.asked").read_text().split() == ["40", "8972", "8973"]


def test_a_probe_that_is_lost_once_is_asked_again(turn):
    lossy = 'mkdir "$0.${12}" 2>/dev/null && exit 1\n'
    turn.fake("ping", lossy + PATH_OF.format(mtu=9000, refusal=TOO_BIG))
    assert turn.judge("path_mtu", LINK_MTU="9000")[1]["mtu"] == (9000, "B")


def test_nothing_that_comes_through_is_no_mtu(turn):
    turn.fake("ping", "echo 'ping: unknown host' >&2; exit 2")
    with pytest.raises(OutputError, match="no packet of any size came through"):
        turn.judge("path_mtu", LINK_MTU="9000")


@ping
@needs("ping", "ip")
def test_loopback_carries_the_largest_packet_of_ipv4(turn):
    conditions, found = turn.judge("path_mtu")
    assert found == {"mtu": (65535, "B"), "device": (65536, "B")}
    assert conditions == {"program": "ping"}


def test_an_own_device_smaller_than_the_link_is_told(turn):
    readings, conditions = network.path_mtu(
        Measured(
            [Reading("mtu", Decimal(1500), "B")],
            {"mtu": "1500", "rmem_max": "1", "silent": "no"},
            Raw({}, {}, "", ""),
            {"mtu": "9000"},
        )
    )
    assert [(r.metric, r.value) for r in readings] == [("mtu", 1500), ("device", 1500)]
    assert conditions == {"device_warning": "the client's own MTU is 1500, expected 9000"}


# ---- MPI


@pytest.fixture
def mpi(turn):
    """OSU as it was recorded, and an srun that starts it as two ranks on these nodes."""
    for name, recorded in (("latency", "7.4-latency_validated"), ("bw", "7.4-bw_validated")):
        turn.fake(f"osu_{name}", f'[ "$1" = -h ] || cat {OUTPUTS}/osu/{recorded}.txt')
    turn.fake("ldd", "echo 'libmpi.so.40 => /usr/lib/libmpi.so.40.30.4 (0x0)'")

    def _start(*nodes, **settings):
        ranks = "\n".join(f"echo 'rank {i} on {node}'" for i, node in enumerate(nodes))
        turn.fake(
            "srun",
            f'echo "$*" >>"$0.asked"\n{ranks}\n'
            'while [ "$1" != rank ]; do shift; done\nshift; exec "$@"',
        )
        facts = {"smallest": "8", "largest": "4194304"}
        return turn.judge("mpi_ping_pong", facts, **(MPI | settings))

    return _start


def test_latency_is_of_the_smallest_and_bandwidth_of_the_largest_message(mpi, turn):
    conditions, found = mpi("client", "server")
    assert found == {"latency": (Decimal("0.21"), "us"), "bandwidth": (Decimal("3930.35"), "MB/s")}
    assert (
        conditions.items()
        >= {
            "program": "osu",
            "validated": "yes",
            "mpi": "libmpi.so.40.30.4",
            "latency_size": "8",
            "bandwidth_size": "4194304",
            "iterations": "100",
        }.items()
    )
    assert "server" not in conditions


@pytest.mark.parametrize(
    "nodes",
    [
        ("client", "client"),
        ("server", "client"),
        ("client", "other"),
        ("client",),
        (),
        ("client", "server", "client"),
    ],
)
def test_ranks_that_are_not_one_on_each_node_are_invalid(mpi, nodes):
    with pytest.raises(OutputError, match="ranks: ") as refused:
        mpi(*nodes)
    assert refused.value.status == "invalid"


@pytest.mark.parametrize(
    ("library", "settings", "kind"),
    [
        ("libmpi.so.40", {}, "pmix"),
        ("libmpi.so.40", {"SITEPROOF_MPI": "none"}, "pmix"),
        ("libmpi.so.12", {}, "pmi2"),
        ("libmpich.so.12", {"SITEPROOF_MPI": "none"}, "pmi2"),
        ("libmpi.so.12", {"SITEPROOF_MPI": "cray_shasta"}, "cray_shasta"),
        ("libmpi.so.40", {"SITEPROOF_MPI": "pmix", "LAUNCH": "pmix_v4"}, "pmix_v4"),
    ],
)
def test_ranks_are_told_of_each_other_as_user_system_or_library_have_it(
    mpi, turn, library, settings, kind
):
    turn.fake("ldd", f"echo '{library} => /usr/lib/{library} (0x0)'")
    mpi("client", "server", **settings)
    assert f" --mpi={kind} " in (turn.bin / "srun.asked").read_text()


def test_two_ranks_that_do_not_know_of_each_other_have_no_figure(mpi, turn):
    turn.fake("osu_latency", f"cat {OUTPUTS}/osu/7.0-one_process.txt")
    turn.fake("osu_bw", f"cat {OUTPUTS}/osu/7.0-one_process.txt")
    with pytest.raises(OutputError, match="requires exactly two processes"):
        mpi("client", "server")


def test_a_latency_in_seconds_keeps_its_digits(turn):
    run = Execution({}, 0, "rank 0 on a\nrank 1 on b\n", "")
    sizes = {"size": "8"}
    readings = [
        Reading("latency", Decimal("1.1084384e-03"), "s", sizes),
        Reading("bandwidth", Decimal("0.01"), "MB/s", sizes),
    ]
    found, conditions = mpi_ping_pong(
        Measured(
            readings,
            {"server": "b"},
            Raw({"node": "a"}, {}, "", "", [run]),
            {"smallest": "8", "largest": "8"},
        )
    )
    assert str(found[0].value) == "1108.4384"
    assert [r.metric for r in found] == [
        "latency",
        "bandwidth",
        "latency_by_size",
        "bandwidth_by_size",
    ]
    with pytest.raises(OutputError, match="values of bandwidth at 16 bytes: 0"):
        mpi_ping_pong(
            Measured(
                readings,
                {"server": "b"},
                Raw({"node": "a"}, {}, "", "", [run]),
                {"smallest": "8", "largest": "16"},
            )
        )
