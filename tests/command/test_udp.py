"""UDP between two ends: real nuttcp and iperf3 on loopback, and what may count of them."""

import os
import shutil
import socket
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from clone import OUTPUTS, PATIENCE, TOP, before_others, wait_for
from left_in import left_in

from siteproof.collect.derive import Measured, network
from siteproof.collect.outcome import parse
from siteproof.collect.raw import Execution, Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading, nuttcp

SHARED = TOP / "siteproof/checks/on_node"
FULL = "full 1 fill 0 1 4194304 always"
NOBODY_SAID = Raw({}, {}, "", "")


def needs(*tools):
    """The test runs these for real; skipped, loudly, where one is missing."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    return [
        pytest.mark.tool(*tools),
        pytest.mark.skipif(bool(missing), reason=f"NOT TESTED: no {missing}"),
    ]


def shell(folder, line, *path):
    """Run a line of sh with the functions that measuring scripts have; path: first on PATH."""
    env = os.environ | {"PATH": ":".join([*map(str, path), os.environ["PATH"]])}
    (folder / "facts").touch()
    return subprocess.run(
        ["sh", "-c", f". {SHARED}/account.sh; . {SHARED}/network.sh; {line}"],
        cwd=folder,
        env=env,
        text=True,
        capture_output=True,
        timeout=PATIENCE,
    )


def called(folder, version):
    """A folder for PATH with a nuttcp that says this of itself."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin" / "nuttcp"
    program.write_text(f"#!/bin/sh\necho nuttcp-{version}\n")
    program.chmod(0o755)
    return program.parent


# ---- which program


VERSIONS = {"6.1.2": False, "6.2.6": False, "6.2.7": True, "6.10.1": True, "8.2.2": True}


def test_the_version_of_nuttcp_is_compared_as_numbers(tmp_path):
    for version, new in VERSIONS.items():
        done = shell(tmp_path, "nuttcp_since 6.2.7", called(tmp_path, version))
        assert (done.returncode == 0) is new, version


def test_the_first_program_that_is_installed_is_chosen(tmp_path):
    done = shell(tmp_path, "choose_program no-such-tool sh ls")
    assert (done.returncode, (tmp_path / "facts").read_text()) == (0, "program=sh\n")


def test_a_program_that_is_asked_for_by_name_has_no_substitute(tmp_path):
    done = shell(tmp_path, "PROGRAM=no-such-tool; choose_program sh")
    assert (done.returncode, done.stderr) == (127, "no-such-tool is not installed\n")
    assert not (tmp_path / "facts").read_text()


def at_once(folder, program):
    """A folder for PATH in which this program gets its processor when it needs it.

    Bursts at a rate that was asked for are what a sender cannot make on a busy machine.
    """
    (folder / "bin").mkdir()
    path = folder / "bin" / program
    path.write_text(f'#!/bin/sh\nexec {" ".join(before_others())} {shutil.which(program)} "$@"\n')
    path.chmod(0o755)
    return path.parent


def measure(folder, runs, program="", side="client", port=0, path=()):
    """One side's script on loopback, as pair.sh runs it."""
    words = {
        "SIDE": side,
        "ADDRESS": "127.0.0.1",
        "PORT": port,
        "PROGRAM": program,
        "LINK_MTU": 9000,
        "AROUND_RUN": 4,
        "RUNS": "\n".join(runs),
    }
    said = "".join(f"{key}='{value}'; " for key, value in words.items())
    return shell(folder, f"{said} . {TOP}/checks/network/udp_runs.sh", *path)


def test_an_old_nuttcp_is_not_asked_for_bursts(tmp_path):
    burst = "small 1 power 300 20 0 until_loss"
    done = measure(tmp_path, [burst], "nuttcp", path=[called(tmp_path, "6.1.2")])
    assert (done.returncode, done.stderr) == (
        127,
        "nuttcp 6.1.2 knows no bursts; 6.2.7 or later does\n",
    )
    measure(tmp_path, [burst], path=[called(tmp_path, "6.1.2")], port=1)
    assert "program=iperf3\n" in (tmp_path / "facts").read_text()


# ---- the real tools


@pytest.fixture
def server(tmp_path):
    """Start a program as the script's server does; returns its port."""
    started = []

    def start(program):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = 20_000 + probe.getsockname()[1] % 20_000
        serve = {"iperf3": ["iperf3", "-s", "-p"], "nuttcp": ["nuttcp", "-S", "--nofork", "-P"]}
        words = [*(before_others() if program == "iperf3" else []), *serve[program], str(port)]
        started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        wait_for(
            lambda: (
                f":{port:04X} "
                in Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
            )
        )
        return port

    yield start
    for process in started:
        process.kill()
        process.wait()


def read(folder):
    """The runs of a folder: dimensions with direction, and readings, by direction."""
    (folder / "meta").touch()
    (folder / "stdout").touch()
    (folder / "stderr").touch()
    left = left_in(folder)
    found = {}
    for run in left.runs:
        assert run.exit == 0, run.stderr
        plain = {k: v for k, v in run.dims.items() if k != "direction"}
        _, readings = parse(Execution(plain, 0, run.stdout, run.stderr), left, Job)
        found.setdefault(run.dims["direction"], []).extend(readings)
    return left, found


class Job:
    """What parse needs of a manifest."""

    check, parsers = "Udp", {"nuttcp": "nuttcp", "iperf3": "iperf3"}


@pytest.mark.parametrize(
    "program",
    [pytest.param("nuttcp", marks=needs("nuttcp")), pytest.param("iperf3", marks=needs("iperf3"))],
)
def test_udp_goes_both_ways_in_datagrams_that_fill_the_link_and_each_end_is_known(
    tmp_path, server, program
):
    first = [at_once(tmp_path, program)] if program == "iperf3" else []  # as its server is
    done = measure(tmp_path, [FULL], program, port=server(program), path=first)
    assert done.returncode == 0, done.stderr
    left, found = read(tmp_path)
    assert [run.dims["direction"] for run in left.runs] == ["out", "in"]
    assert ["discarded" in run.dims for run in left.runs] == [False, True]
    for way in ("out", "in"):
        readings, conditions = network.udp_bandwidth(Measured(found[way], left.facts, left, {}))
        rates = {r.metric: Decimal(r.value) for r in readings}
        assert 0 < rates["throughput"] <= rates["sent"] * Decimal("1.1")
        assert 0 <= rates["loss"] < 100
        assert (conditions["datagram"], conditions["program"]) == ("8972", program)
        assert int(conditions["window"]) <= 4194304


@pytest.mark.parametrize("program", [pytest.param("iperf3", marks=needs("iperf3"))])
def test_bursts_are_sent_at_the_rate_that_was_asked_for(tmp_path, server, program):
    runs = [
        "small 1 power 300 20 0 always",
        "large 1 fill 300 100 4194304 always",
        "step 1 fill 300 1200 4194304 until_loss",
    ]
    bin_ = at_once(tmp_path, program)
    done = measure(tmp_path, runs, program, port=server(program), path=[bin_])
    assert done.returncode == 0, done.stderr
    left, found = read(tmp_path)
    assert [r.dims["burst"] for r in left.runs] == ["20", "100"] * 2, "iperf3 takes up to 1000"
    for way in ("out", "in"):
        readings, conditions = network.udp_burst(Measured(found[way], left.facts, left, {}))
        told = {r.metric: r for r in readings}
        assert told["loss_small"].dims["datagram"] == "8192"
        assert told["loss_large"].dims["datagram"] == "8972"
        largest = told["largest_lossless"]
        assert largest.dims["burst_bound"] == "100"
        assert int(largest.value) == (100 if told["loss_large"].value == 0 else 0)
        assert conditions["rate"] == "300 Mb/s"


@pytest.mark.parametrize("program", [pytest.param("iperf3", marks=needs("iperf3"))])
def test_the_first_loss_ends_the_search_and_is_the_receivers(tmp_path, server, program):
    narrow = "fill 300 100 16384 until_loss"  # room for hardly one of a hundred datagrams
    runs = [
        "small 1 power 300 20 0 always",
        f"large 4 {narrow}",
        "step 1 fill 300 200 4194304 until_loss",
    ]
    bin_ = at_once(tmp_path, program)
    done = measure(tmp_path, runs, program, port=server(program), path=[bin_])
    assert done.returncode == 0, done.stderr
    left, found = read(tmp_path)
    assert [r.dims["kind"] for r in left.runs] == ["small", "large"] * 2
    readings, conditions = network.udp_burst(Measured(found["in"], left.facts, left, {}))
    largest = readings[-1]
    assert (largest.value, largest.dims["burst_bound"]) == (0, "200")
    assert "found the receiver's socket full" in conditions["receiver_warning"]


# ---- what may count


def run_of(kind="full", readings=None, **dims):
    """The readings of one run: sent, throughput and loss, with the dimensions of the script."""
    found = {
        "throughput": "290",
        "sent": "300",
        "loss": "0",
        "cpu_sender": "20",
        "cpu_receiver": "20",
    } | (readings or {})
    units = {"throughput": "Mb/s", "sent": "Mb/s"}
    told = {
        "kind": kind,
        "burst": "100",
        "datagram": "8972",
        "duration": "5",
        "window": "4194304",
        "discarded": "0",
    } | dims
    told = {key: value for key, value in told.items() if value is not None}
    return [
        Reading(name, Decimal(value), units.get(name, "%"), told) for name, value in found.items()
    ]


def burst(*steps, bound="800", small=None, large=None):
    """Derive from small, large and these steps, each with what differs in its readings."""
    readings = run_of("small", small, burst="20", datagram="8192", window="0")
    readings += run_of("large", large)
    for packets, changed in steps:
        readings += run_of("step", changed, burst=packets)
    return network.udp_burst(
        Measured(readings, {"program": "nuttcp", "burst_bound": bound}, NOBODY_SAID, {})
    )


def test_bursts_that_were_not_sent_as_asked_are_invalid():
    for kind in ("small", "large"):
        assert all(burst(**{kind: {"sent": sent}}) for sent in ("285", "315"))
        for sent in ("284.9", "315.1"):
            with pytest.raises(OutputError, match=f"{sent} Mb/s, expected 300 Mb/s") as caught:
                burst(**{kind: {"sent": sent}})
            assert caught.value.status == "invalid", (kind, sent)


def test_what_nuttcp_6_1_2_makes_of_a_burst_is_invalid():
    text = (OUTPUTS / "nuttcp/6.1.2-udp_burst_misread.txt").read_text()
    misread = {r.metric: str(r.value) for r in nuttcp.parse(text)}
    with pytest.raises(OutputError, match=r"were sent at 0\.3 Mb/s") as caught:
        burst(large=misread)
    assert caught.value.status == "invalid"


def test_what_nuttcp_8_2_2_makes_of_a_burst_counts():
    text = (OUTPUTS / "nuttcp/8.2.2-udp_burst_parse.txt").read_text()
    sent = {r.metric: str(r.value) for r in nuttcp.parse(text)}
    loss_large = burst(large=sent)[0][1]
    assert (loss_large.metric, loss_large.value) == ("loss_large", 0)


LOST = {"loss": "0.001"}
SLOW = {"sent": "200"}


BURSTS = [
    ({}, [("200", {}), ("400", {}), ("800", {})], "800", "800"),  # no end was found
    ({}, [("200", {}), ("400", LOST)], "200", "800"),
    (LOST, [], "0", "800"),
    ({}, [("200", LOST)], "100", "800"),
    ({}, [("200", {}), ("400", SLOW)], "200", "200"),  # nobody knows what 400 would lose
]


def test_the_largest_lossless_burst_is_one_that_was_measured():
    for large, steps, value, bound in BURSTS:
        readings, conditions = burst(*steps, large=large)
        last = readings[-1]
        told = (last.metric, str(last.value), last.dims["burst_bound"])
        assert told == ("largest_lossless", value, bound), steps
        warned = "burst_warning" in conditions
        assert warned is any(step[1] is SLOW for step in steps), steps


def test_each_loss_tells_the_burst_that_it_is_of():
    readings, _ = burst(("200", {}))
    assert {
        r.metric: (r.dims.get("burst"), r.dims["datagram"], r.dims["window"]) for r in readings
    } == {
        "loss_small": ("20", "8192", "default"),
        "loss_large": ("100", "8972", "4194304"),
        "largest_lossless": (None, "8972", "4194304"),
    }


def full(facts, readings=None, **dims):
    """Conditions that derive makes of a run at full rate on an MTU of 9000."""
    given = {"program": "nuttcp", "mtu": "9000", "rmem_max": "1", "streams": "1"}
    return network.udp_bandwidth(
        Measured(run_of("full", readings, **dims), given, NOBODY_SAID, facts)
    )[1]


def test_a_sender_that_does_not_fill_the_link_is_named_as_the_limit():
    # 8972 of 9038 bytes on the wire: 9.927 of 10 Gb/s, and 95 % of that are 9.431
    facts = {"speed": "10000000000"}
    assert "sender_warning" not in full(facts, {"sent": "9431"})
    assert full(facts, {"sent": "9430"})["sender_warning"] == (
        "the sender did not fill the link: it is the limit, and not the network"
    )
    assert (
        "processor was busy" in full(facts, {"sent": "5000", "cpu_sender": "99"})["sender_warning"]
    )


def test_without_a_speed_only_a_busy_sender_may_be_the_limit():
    assert "sender_warning" not in full({})
    assert "may be the limit" in full({}, {"cpu_sender": "90"})["sender_warning"]


WHOSE = [
    ({}, {"discarded": None}, ""),
    (LOST, {"discarded": "0"}, ""),
    (LOST, {"discarded": "7"}, "found the receiver's socket full"),
    (LOST | {"cpu_receiver": "95"}, {}, "the receiver's processor was busy"),
    (LOST, {"discarded": None}, "not known"),
]


def test_a_loss_that_is_the_receivers_is_not_laid_on_the_network():
    for changed, dims, words in WHOSE:
        told = full({}, changed, **dims).get("receiver_warning", "")
        assert words in told if words else not told, (changed, dims)


def test_conditions_are_those_that_decide_and_no_others():
    assert full({}) == {
        "program": "nuttcp",
        "mtu": "9000",
        "datagram": "8972",
        "duration": "5",
        "window": "4194304",
    }


# ---- a user's mistakes


SETTINGS = [
    (
        ["UdpBurst.bursts=many"],
        "-S UdpBurst.bursts: 'many' is not a list of burst sizes. Allowed: whole numbers",
    ),
    (["UdpBurst.bursts=50"], "-S UdpBurst.bursts: '50' is not a list of burst sizes"),
    (["UdpBandwidth.program=ls"], "-S UdpBandwidth.program: unknown value 'ls'. Allowed: nuttcp"),
    (["MpiPingPong.program=ls"], "-S MpiPingPong.program: unknown value 'ls'. Allowed: osu"),
    (["TcpBandwidth.program=ls"], "-S TcpBandwidth.program: unknown value 'ls'"),
    (["TcpBandwidth.streams=1000"], "-S TcpBandwidth.streams: 1000 is out of range. Allowed: 0 to"),
    (["Latency.size=-1"], "-S Latency.size: -1 is out of range. Allowed: 0, or 16 to 65507"),
    (["BlockStorage.size=-1"], "-S BlockStorage.size: -1 is out of range. Allowed: 0 to"),
    (["BlockStorage.trials=-1"], "-S BlockStorage.trials: -1 is out of range"),
    (["RandomIo.depth=-1"], "-S RandomIo.depth: -1 is out of range. Allowed: 0 to"),
]


def test_a_wrong_setting_ends_the_run_in_one_line(world):
    world.site("testbed")
    for words, told in SETTINGS:
        check = words[0].partition(".")[0]
        settings = [part for word in words for part in ("-S", word)]
        done = world.reframe("-l", "--system=testbed", "-n", check, *settings)
        assert done.code == 2, words
        assert told in done.err, words
        assert "Traceback" not in done.said, words
