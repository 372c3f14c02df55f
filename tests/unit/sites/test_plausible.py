"""What lint warns of: possible, not plausible, and with the arithmetic; and what it does not."""

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


@rows(
    "hardware, arithmetic",
    [
        ("{sockets: 2, cores_per_socket: 12, peak: 80 GFLOPS, flops_per_cycle: 16}", "0.2083 GHz"),
        ("{sockets: 2, cores_per_socket: 12, peak: 8 TFLOPS, avx_base: 2 GHz}", "166.7 a cycle"),
        ("{sockets: 2, cores_per_socket: 12, peak: 806.4 TFLOPS}", "GFLOPS a core"),
        ("{avx_base: 2.1 MHz}", "0.8 to 6 GHz"),
        ("{flops_per_cycle: 12}", "12 is not a power of two"),
        ("{threads_per_core: 3}", "3, and cores have 1, 2, 4, 8"),
        ("{sockets: 2, cores_per_socket: 12, memory: 128 MiB}", "24 cores = 0.005208 GiB"),
        ("{memory: 1 GiB, last_level_cache: 512 MiB}", "50 % of the memory"),
        ("{nics: {em1: {mtu: 90000}}}", "MTU of 90000"),
    ],
)
def test_hardware_that_no_node_has(warned, hardware, arithmetic):
    (line,) = warned(hardware=hardware, link="mtu: 1500")
    assert arithmetic in line


@rows(
    "pattern, why",
    [
        ("login[1-4]", ""),
        ("login[0-9]+", ""),
        (r"login\d{1,2}", ""),
        ("(login|gw).*", ""),
        ("nid00[0-9]{4}", ""),
        ("node[1-16]", "is not a node set"),
        ("login*", "is not a glob"),
        (r"login1\.example\.org", "no domain"),
        ("login1.example.org", "no domain"),
        ("login1, login2", "no host name has ','"),
        ("https://login1", "no host name has ':'"),
        ("^login", "matches the one name login"),
        ("^login$", ""),
        ("^login.*", ""),
    ],
)
def test_a_pattern_of_host_names_that_cannot_match(warned, pattern, why):
    lines = warned(recognise=f"{{hostname: '{pattern}'}}")
    assert [why in line for line in lines] == [True] * bool(why)


def test_a_link_faster_than_its_interfaces(warned):
    (line,) = warned(link="speed: 100 Gb/s")
    assert line == "100 Gb/s, and the interfaces of role 'compute' have 10 Gb/s"
    assert warned(link="speed: 40 Gb/s, pattern: together") == [
        "40 Gb/s, and the interfaces of role 'compute' have 10 Gb/s"  # the one server
    ]
    assert "have 9000" in warned(link="mtu: 9216")[0]
    assert "not below" in warned(link="speed: 10 Gb/s, slow_below: 2 GB/s")[0]


@rows(
    "there, why",
    [
        ("{path: /scratch, kind: lustre, shared: true}", ""),
        ("{path: /dev/shm, kind: tmpfs}", ""),
        ("{path: /etc, kind: xfs}", "operating system"),
        ("{path: /, kind: xfs}", "operating system"),
        ("{path: /scratch//a, kind: xfs}", "shortest"),
        ("{path: /scratch, kind: lustre}", "without 'shared: true'"),
        ("{path: /scratch, kind: fuse.glusterfs}", "without 'shared: true'"),
    ],
)
def test_file_systems_in_an_unusual_place(warned, there, why):
    lines = warned(file_systems=f"{{f: {there}}}")
    assert [why in line for line in lines] == [True] * bool(why)


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
        ("metric: Inventory.cores, subject: system, equals: 192 count", "4 x 24 count"),
    ],
)
def test_bounds_that_everybody_or_nobody_meets(warned, keys, why):
    lines = warned(f"{CRITERION}{keys}}}", hardware=PEAK)
    assert [why in line for line in lines] == [True] * bool(why), lines


@rows(
    "keys, why",
    [
        (
            "metric: Stream.triad, at_least: 60 MB/s}",
            "any node meets it: 60 MB/s / 24 cores of role 'compute' = 0.0025 GB/s",
        ),
        (
            "metric: Stream.triad, at_least: 6000 GB/s}",
            "no node can meet it: 6000 GB/s / 24 cores of role 'compute' = 250 GB/s",
        ),
        (
            "metric: Hpl.gflops, at_least: 700 TFLOPS}",
            "no node can meet it: 700 TFLOPS / 24 cores of role 'compute' = 29167 GFLOPS",
        ),
        (
            "metric: Inventory.cores, subject: system, equals: 97 count}",
            "97, and the site has 4 x 24 count",
        ),
    ],
)
def test_bounds_that_no_figure_of_the_hardware_limits(warned, keys, why):
    assert warned(f"{CRITERION}{keys}") == [why]


def test_a_link_without_a_speed_is_limited_by_its_interfaces(warned):
    pair = "metric: TcpBandwidth.throughput, subject: pair, links: [lan], at_least:"
    assert warned(f"{CRITERION}{pair} 2 GB/s}}", link="mtu: 9000") == [
        "no pair can meet it: 2 GB/s against the interfaces of the nodes of link 'lan', 10 Gb/s"
    ]
    assert warned(f"{CRITERION}{pair} 20 Mb/s}}", link="mtu: 9000") == []


@rows(
    "options, why",
    [
        ("[--gpus-per-node=2]", ["requests 2 GPUs, and nodes of role 'compute' have 4"]),
        ("['--gres=gpu:a100:2']", ["requests 2 GPUs, and nodes of role 'compute' have 4"]),
        ("[--gpus-per-node=4, -A staff, --qos=night, --const=gpu, --spank-of-a-site]", []),
    ],
)
def test_options_of_jobs_that_lack_gpus(warned, options, why):
    hardware = PLAIN["hardware"].replace("{sockets", "{devices: {gpu: {count: 4}}, sockets", 1)
    assert warned(hardware=hardware, access=options) == why


@rows("name", ["GPU", "gpus"])
def test_a_type_of_device_that_nothing_compares(warned, name):
    (line,) = warned(hardware=f"{{devices: {{{name}: {{count: 4}}}}}}")
    assert line == f"'{name}' is a type of device that nothing compares (did you mean 'gpu'?)"


@rows("kind, meant", [("Lustre", "lustre"), ("luster", "lustre"), ("nfs3", "nfs"), ("XFS", "xfs")])
def test_a_file_system_that_the_kernel_does_not_name_so(warned, kind, meant):
    found = warned(file_systems=f"{{a: {{path: /a, kind: {kind}}}}}")
    assert f"'{kind}' is not a type as the kernel names it (did you mean '{meant}'?)" in found


@rows(
    "there, why",
    [
        (
            "path: /a/$USER, kind: nfs, shared: true",
            "'/a/$USER' is taken as it is: nothing replaces '$'",
        ),
        ("path: /a, kind: xfs, most_full: 50", "no effect, as kind is xfs, not lustre"),
        ("path: /a, kind: xfs, at_once: 2", "no effect without 'shared: true'"),
        ("path: /a, kind: lustre, shared: true, most_full: 50, at_once: 2", ""),
    ],
)
def test_a_key_of_a_file_system_without_an_effect(warned, there, why):
    assert warned(file_systems=f"{{a: {{{there}}}}}") == ([why] if why else [])


def test_a_tolerance_that_forgives_everything(warned):
    baseline = "system: s\nB: {metric: Stream.triad, at_least: 65 GB/s, tolerance: 60 %, "
    assert warned(baselines=f"{baseline}source: s, taken: 2026-01-01}}") == [
        "a value that misses the bound by 60 % passes"
    ]


def test_a_warning_is_no_mistake(warned):
    warned(hardware="{flops_per_cycle: 12}")
    done = CliRunner().invoke(lint, ["s"])
    assert done.exit_code == 0
    first, answer = done.output.splitlines()
    assert first.startswith("siteproof: warning: ")
    assert first.endswith("a power of two up to 64 in hardware.blade.flops_per_cycle")
    assert answer == "1 site, no mistake, 1 warning"


@rows(
    "condition, allowed",
    [
        ("{direct: ja}", "yes, no"),
        ("{file_system: scrach}", "(did you mean 'scratch'?)"),
        ("{emulated: netm}", "unknown emulated 'netm'"),
    ],
)
def test_a_condition_with_a_closed_list_of_values(tmp_path, monkeypatch, condition, allowed):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    folder = shutil.copytree(SITES / "example", tmp_path / "example")
    keys = "metric: IorSingle.read, at_least: 1 GB/s"
    (folder / "criteria.yaml").write_text(f"{CRITERION}{keys}, conditions: {condition}}}")
    _, documents = examine("example")
    (line,) = [str(one) for document in documents for one in document.sorted_mistakes()]
    assert allowed in line
