"""A value that cannot be right is an error of its node, pair or run, whatever bound it meets."""

from decimal import Decimal
from types import SimpleNamespace

import fleets
import pytest
from asked import ask
from rows import rows
from test_nothing_goes_free import EIGHT, EVERYBODY, FREE, Here, page_agrees

from siteproof import sites
from siteproof.answers import implausible
from siteproof.checks import missing
from siteproof.record.samples import Sample

BLADE = """\
hardware:
  blade: {sockets: 2, cores_per_socket: 12, peak: 806.4 GFLOPS, avx_base: 2.1 GHz%s}
links:
  lan: {description: d, partition: compute, servers: n001, clients: n002, speed: 10 Gb/s}
  made: {description: d, partition: compute, servers: n001, clients: n002, speed: 10 Gb/s,
         emulated: netem}
"""
TURBO = ", highest_clock: 3.3 GHz"
BANDWIDTH = ", memory_bandwidth: 136 GB/s"
CANNOT = ((1, 1, 1), "FAILED")


def on_blades(here, folder, more=""):
    """The site with hardware, and with criteria on HPL and its share of the peak."""
    (folder / "sites/here/system.yaml").write_text(
        fleets.SYSTEM.format(nodes=fleets.node_set(8), more=BLADE % more)
        .replace("set: '", "hardware: blade, set: '")
        .replace("scheduler: local", "scheduler: slurm")
    )
    return here


def job_of(metric, unit, value, odd, run=2, nodes=EVERYBODY, **keys):
    """A job of all nodes in which n003 has another value."""
    head = fleets.header(run, metric.partition(".")[0], expected=EIGHT)
    return [
        Sample(head, node, metric, Decimal(odd if node == "n003" else value), unit, **keys)
        for node in nodes
    ]


@rows(
    "metric, unit, more, value, odd, words",
    [
        ("Hpl.gflops", "GFLOPS", "", "700", "5645", "2 x peak 806.4 GFLOPS = 1613 GFLOPS"),
        ("Hpl.gflops", "TFLOPS", "", "0.7", "5.645", "5.645 TFLOPS cannot be right"),
        ("Hpl.gflops", "GFLOPS", TURBO, "1200", "1400", "1.65 x peak 806.4 GFLOPS = 1331 GFLOPS"),
        ("Hpcg.gflops", "GFLOPS", "", "20", "1700", "2 x peak 806.4 GFLOPS"),
        ("Stream.triad", "MB/s", BANDWIDTH, "90000", "150000", "136 GB/s = 1.428e+05 MB/s"),
        ("Stream.copy", "GB/s", "", "90", "5000", "24 x a core's 200 GB/s = 4.8e+06 MB/s"),
        (
            "Stream.triad",
            "MB/s",
            "",
            "100",
            "100000",
            "100 times better than the median of 8, 100 MB/s",
        ),
        (
            "RandomIo.read_iops",
            "IOPS",
            "",
            "900",
            "900000",
            "100 times better than the median of 8",
        ),
        ("Lammps.time", "s", "", "60", "0.01", "100 times better than the median of 8, 60 s"),
        ("Lammps.time", "s", "", "60", "0.00", "100 times better than the median of 8, 60 s"),
    ],
)
@pytest.mark.deep
def test_a_value_that_cannot_be_right_keeps_its_node_out(
    tmp_path, monkeypatch, metric, unit, more, value, odd, words
):
    here = on_blades(Here(tmp_path, monkeypatch), tmp_path, more)
    here.passed(1)
    assert here.says() == FREE
    here.keep(job_of(metric, unit, value, odd))
    assert here.says() == CANNOT
    told = " ".join(ask("why", "n003")[1].split())
    assert "cannot be right" in told and words in told, told
    agrees, told = page_agrees(tmp_path)
    assert agrees, told
    here.keep(job_of(metric, unit, value, value, run=3))
    assert here.says() == FREE


@rows(
    "metric, unit, more, value, odd",
    [
        ("Hpl.gflops", "GFLOPS", "", "700", "1600"),  # at the highest clock, which nobody states
        ("Hpl.gflops", "GFLOPS", TURBO, "1200", "1300"),
        ("Stream.triad", "MB/s", BANDWIDTH, "90000", "137000"),  # a data sheet is rounded
        ("Stream.triad", "MB/s", "", "100", "10000"),
        ("Stream.triad", "MB/s", "", "100", "0.01"),  # slow is no error of the measurement
        ("Lammps.time", "s", "", "0.00", "0.60"),
        ("Health.problems", "count", "", "0", "0"),
        ("HostParameters.mismatches", "count", "", "1000", "0"),  # a count is no speed
    ],
)
def test_a_value_that_may_be_right_counts(tmp_path, monkeypatch, metric, unit, more, value, odd):
    site = sites_of(tmp_path, monkeypatch, more)
    found = job_of(metric, unit, value, odd)
    assert implausible.checked(site, found) == found


def sites_of(folder, monkeypatch, more=""):
    fleets.load(folder / "sites", monkeypatch)
    on_blades(None, folder, more)
    return sites.load("here")


def test_two_of_three_others_are_no_fleet(tmp_path, monkeypatch):
    site = sites_of(tmp_path, monkeypatch)
    for count, wrong in ((3, 0), (4, 1)):
        found = job_of("Stream.triad", "MB/s", "1", "999", nodes=EVERYBODY[:count])
        assert sum(s.status != "ok" for s in implausible.checked(site, found)) == wrong


def test_other_points_are_other_values_and_one_run_is_wrong_as_a_whole(tmp_path, monkeypatch):
    site = sites_of(tmp_path, monkeypatch)
    small = job_of("RandomIo.read_iops", "IOPS", "900", "900000", dims={"block": "4k"})
    large = job_of("RandomIo.read_iops", "IOPS", "900", "900", dims={"block": "1m"})
    speed = job_of("RandomIo.read_latency", "ms", "1", "1", dims={"block": "4k"})
    found = implausible.checked(site, [*small, *large, *speed])
    wrong = {(s.node, s.metric, s.dims["block"]) for s in found if s.status != "ok"}
    assert wrong == {("n003", "RandomIo.read_iops", "4k"), ("n003", "RandomIo.read_latency", "4k")}


@rows(
    "metric, link, value, wrong",
    [
        ("TcpBandwidth.throughput", "lan", "9.9", False),
        ("TcpBandwidth.throughput", "lan", "10.4", False),
        ("TcpBandwidth.throughput", "lan", "12", True),
        ("TcpBandwidth.throughput", "made", "12", False),
        ("TcpBandwidth.throughput", "gone", "12", False),
        ("RdmaWrite.bandwidth", "lan", "12", True),
        ("RdmaWrite.bandwidth_peak", "lan", "12", False),  # a burst into the card's memory
    ],
)
def test_no_pair_is_faster_than_its_link(tmp_path, monkeypatch, metric, link, value, wrong):
    site = sites_of(tmp_path, monkeypatch)
    head = fleets.header(1, metric.partition(".")[0], conditions={"link": link})
    pair = Sample(head, "n002", metric, Decimal(value), "Gb/s", dims={"peer": "n001"})
    (found,) = implausible.checked(site, [pair])
    assert (found.status == "implausible") is wrong
    assert not wrong or "(1.05 x the link's 10 Gb/s = 10.5 Gb/s)" in found.why


def test_a_waiver_covers_it_as_any_error(tmp_path, monkeypatch):
    here = on_blades(Here(tmp_path, monkeypatch), tmp_path)
    here.passed(1)
    here.keep(job_of("Hpl.gflops", "GFLOPS", "700", "5645"))
    waiver = "W: {nodes: n003, waives: all, problem: p, owner: o, expires: 2199-01-01}\n"
    (tmp_path / "sites/here/waivers.yaml").write_text(waiver)
    assert here.says()[0][0] == 0


def test_every_node_is_looked_at_where_only_some_are_read(tmp_path, monkeypatch):
    """The others of a job decide, though only the node that lacks an answer is read."""
    here = Here(tmp_path, monkeypatch)
    here.keep(job_of("Stream.triad", "MB/s", "100", "100000", run=1))
    nodes = [name for name in EVERYBODY if name != "n003"]
    here.passed(2, nodes=nodes, expected="n[001-002,004-008]")
    assert here.says() == CANNOT


def test_a_run_of_what_is_missing_measures_the_node_again(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.keep(job_of("Stream.triad", "MB/s", "100", "100000"))
    monkeypatch.setattr(missing.session, "current", lambda: SimpleNamespace(campaign=""))
    planned = missing.Planned("Stream", "maintenance")
    missing._sessions.cache_clear()
    try:
        assert missing.nodes(sites.load("here"), ["compute"], planned) == {"n003"}
    finally:
        missing._sessions.cache_clear()


def test_what_cannot_be_right_is_not_compared(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.keep(job_of("Stream.triad", "MB/s", "100", "100000"))
    _, text = ask("compare", "s0001", "s0002")
    assert "only in A: Stream.triad: n003" in text


def test_a_share_of_the_peak_is_that_of_the_same_run(tmp_path, monkeypatch):
    site = sites_of(tmp_path, monkeypatch)
    found = job_of("Hpl.gflops", "GFLOPS", "700", "5645")
    found += job_of("Hpl.share_of_peak", "%", "86.8", "700")
    assert [s.metric for s in implausible.checked(site, found) if s.status != "ok"] == [
        "Hpl.gflops",
        "Hpl.share_of_peak",
    ]
