"""What lint warns of: keys that contradict one another, with the arithmetic."""

import shutil

import pytest
from click.testing import CliRunner
from clone import SITES
from rows import rows

from siteproof.cli.lint import lint
from siteproof.sites.site import examine

SYSTEM = """
system: s
description: Four nodes
recognise: {recognise}
hardware:
  blade: {hardware}
nodes:
  compute: {{set: 'n[1-4]', hardware: blade}}
parameters: {parameters}
file_systems: {file_systems}
links:
  lan: {{description: d, partition: all, servers: n1, clients: compute, {link}}}
partitions:
  all: {{description: All nodes, role: compute, access: {access}, environments: [system]}}
environments:
  system: {{description: d, features: [hpl]}}
"""
PLAIN = {
    "recognise": "{cluster: s}",
    "hardware": "{sockets: 2, cores_per_socket: 12, memory: 128 GiB, "
    "nics: {em1: {speed: 10 Gb/s, mtu: 9000}}}",
    "access": "[]",
    "parameters": "{}",
    "file_systems": "{}",
    "link": "speed: 10 Gb/s, round_trip: 0.1 ms",
}
CRITERION = "C: {description: d, source: 'contract, 4.1', "


@pytest.fixture
def warned(tmp_path, monkeypatch):
    """The warnings of a site, without their places."""
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))

    def of(criteria="", baselines="{}", **changed):
        folder = tmp_path / "s"
        folder.mkdir(exist_ok=True)
        (folder / "system.yaml").write_text(SYSTEM.format(**(PLAIN | changed)))
        (folder / "criteria.yaml").write_text(criteria or "{}")
        (folder / "baselines.yaml").write_text(baselines)
        _, documents = examine("s")
        mistakes = [str(one) for document in documents for one in document.sorted_mistakes()]
        assert mistakes == []
        return [
            one.what.rpartition(" in ")[0] for document in documents for one in document.warnings
        ]

    return of


def test_a_plausible_site_has_no_warning(warned):
    good = CRITERION + "metric: Hpl.gflops, at_least: 80 % of peak}"
    hardware = "{sockets: 2, cores_per_socket: 12, peak: 806.4 GFLOPS, avx_base: 2.1 GHz}"
    assert warned(good, hardware=hardware) == []


def test_a_link_faster_than_its_interfaces(warned):
    (line,) = warned(link="speed: 100 Gb/s")
    assert line == "100 Gb/s, and the interfaces of role 'compute' have 10 Gb/s"
    assert warned(link="speed: 40 Gb/s, pattern: together") == [
        "40 Gb/s, and the interfaces of role 'compute' have 10 Gb/s"  # the one server
    ]
    assert "have 9000" in warned(link="mtu: 9216")[0]
    assert "not below" in warned(link="speed: 10 Gb/s, critical: 2 GB/s")[0]


def test_two_file_systems_with_one_path(warned):
    one = "{path: /scratch, kind: xfs}"
    assert "measured twice" in warned(file_systems=f"{{a: {one}, b: {one}}}")[0]


def test_parameters_that_contradict_the_hardware(warned):
    lines = warned(parameters="{compute: {nic: {em1: {mtu: 1500, speed: 1000}}}}")
    assert sorted(lines) == [
        "1000 Mb/s, and `hardware` has 10 Gb/s",
        "1500, and `hardware` has 9000",
    ]


PEAK = "{peak: 800 GFLOPS, memory: 128 GiB, sockets: 2, cores_per_socket: 12}"


@rows(
    "keys, why",
    [
        ("metric: Hpl.gflops, at_least: 20 GFLOPS", "2.5 % of the peak of role 'compute'"),
        ("metric: Hpl.gflops, at_least: 900 GFLOPS", "112.5 % of the peak of role 'compute'"),
        ("metric: Hpl.gflops, at_least: 400 GFLOPS", ""),
        ("metric: Hpl.gflops, at_least: 1 % of peak", "any node meets it"),
        ("metric: Hpl.gflops, at_least: 120 % of peak", "no node can meet it: 120 % of peak"),
        ("metric: Hpcg.gflops, at_least: 8 GFLOPS", ""),
        ("metric: Stream.triad, at_least: 65 GB/s, rounding: nearest 100 GB/s", "50 GB/s"),
        ("metric: Stream.triad, at_least: 65 GB/s, rounding: nearest 1 GB/s", ""),
        (
            "metric: TcpBandwidth.throughput, subject: pair, links: [lan], at_least: 100 Mb/s",
            "any pair meets it: 100 Mb/s against the speed of link 'lan', 10 Gb/s",
        ),
        (
            "metric: TcpBandwidth.throughput, subject: pair, links: [lan], at_least: 2 GB/s",
            "no pair can meet it",
        ),
        (
            "metric: Latency.round_trip, subject: pair, links: [lan], at_most: 10 ms",
            "any pair meets it",
        ),
        ("metric: Hpl.gflops, report_only: why, conditions: {n: 200000}", "does not fit"),
        (
            "metric: Hpl.gflops, report_only: why, "
            "conditions: {n: 40000, memory_share: {at_least: 0.5}}",
            "9.313 % of the 128 GiB",
        ),
        ("metric: Inventory.nodes, subject: system, equals: 320 nodes", "has 4 nodes"),
        ("metric: Inventory.cores, subject: system, equals: 96 count", ""),
        ("metric: Inventory.cores, subject: system, equals: 192 count", "has 96 count"),
    ],
)
def test_bounds_that_everybody_or_nobody_meets(warned, keys, why):
    lines = warned(f"{CRITERION}{keys}}}", hardware=PEAK)
    assert [why in line for line in lines] == [True] * bool(why), lines


def test_a_link_without_a_speed_is_limited_by_its_interfaces(warned):
    pair = "metric: TcpBandwidth.throughput, subject: pair, links: [lan], at_least:"
    assert warned(f"{CRITERION}{pair} 2 GB/s}}", link="mtu: 9000") == [
        "no pair can meet it: 2 GB/s against the interfaces of link 'lan', 10 Gb/s"
    ]
    assert warned(f"{CRITERION}{pair} 20 Mb/s}}", link="mtu: 9000") == []


@rows(
    "there, why",
    [
        (
            "path: /a, kind: lustre",
            "lustre without 'shared: true', so all nodes write to it at once",
        ),
        (
            "path: /a, kind: fuse.glusterfs",
            "fuse.glusterfs without 'shared: true', so all nodes write to it at once",
        ),
        ("path: /a, kind: xfs, most_full: 50", "no effect, as kind is xfs, not lustre"),
        ("path: /a, kind: xfs, at_once: 2", "no effect without 'shared: true'"),
        ("path: /a, kind: lustre, shared: true, most_full: 50, at_once: 2", ""),
    ],
)
def test_a_key_of_a_file_system_without_an_effect(warned, there, why):
    assert warned(file_systems=f"{{a: {{{there}}}}}") == ([why] if why else [])


def test_a_warning_is_no_mistake(warned):
    warned(link="speed: 100 Gb/s")
    done = CliRunner().invoke(lint, ["--system", "s"])
    assert done.exit_code == 0
    first, answer = done.output.splitlines()
    assert first.startswith("siteproof: warning: ")
    assert first.endswith("of role 'compute' have 10 Gb/s in links.lan.speed")
    assert answer == "1 site, no mistake, 1 warning"


def test_a_section_that_the_site_does_not_have(warned):
    keys = "metric: SystemDescription.section_drift, at_most: 0 count, conditions: {section: '9'}}"
    assert warned(CRITERION + keys) == ["section '9', which system.yaml does not have"]


@rows(
    "metric, condition, allowed",
    [
        ("IorSingle.read", "{direct: ja}", "yes, no"),
        ("IorSingle.read", "{file_system: scrach}", "(did you mean 'scratch'?)"),
        ("IorSingle.read", "{emulated: netm}", "unknown emulated 'netm'"),
    ],
)
def test_a_condition_with_a_closed_list_of_values(
    tmp_path, monkeypatch, metric, condition, allowed
):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    folder = shutil.copytree(SITES / "example", tmp_path / "example")
    keys = f"metric: {metric}, report_only: d"
    (folder / "criteria.yaml").write_text(f"{CRITERION}{keys}, conditions: {condition}}}")
    _, documents = examine("example")
    (line,) = [str(one) for document in documents for one in document.sorted_mistakes()]
    assert allowed in line
