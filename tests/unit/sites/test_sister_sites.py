"""The sister systems: every criterion of every report, and what a copy must not inherit."""

import re
import shutil
from collections import Counter
from decimal import Decimal

import pytest
import shipped
from click.testing import CliRunner
from clone import TOP
from rows import rows

from siteproof.cli import group
from siteproof.collect.derive import Measured, host
from siteproof.errors import UserError, UserErrors
from siteproof.parsers import Reading
from siteproof.sites import load, machine, pairs

LISTED = [
    line.split()
    for line in (TOP / "tests/unit/sites/data/criteria.txt").read_text().splitlines()
    if not line.startswith("#")
]
REPORTS = sorted({site for _, *sites in LISTED for site in sites})


def is_part_of(key, listed):
    """A criterion of several figures is one of several ids: X-READ and X-WRITE are X."""
    return key == listed or key.startswith(f"{listed}-")


def test_the_list_has_every_criterion_once():
    assert len(LISTED) == len({key for key, *_ in LISTED}) == 182


@rows("name", REPORTS)
def test_a_site_has_every_criterion_of_its_report_and_no_other(name):
    wanted = [key for key, *sites in LISTED if name in sites]
    found = list(shipped.site(name).criteria)
    assert [k for k in wanted if not any(is_part_of(f, k) for f in found)] == []
    assert [f for f in found if not any(is_part_of(f, k) for k in wanted)] == []


@rows("name", shipped.NAMES)
def test_every_node_is_in_one_place_and_every_parameter_has_a_partition(name):
    site = shipped.site(name)
    measured = {role for p in site.system.partitions.values() for role in p.measured}
    assert set(site.system.parameters) <= measured
    for partition in site.system.partitions.values():
        overlapping = [r for r in partition.measured if site.system.nodes[r].overlaps]
        assert not overlapping or name == "testbed-wan"  # its partition has both of its sites


@rows("name", shipped.NAMES)
def test_who_measures_alone_is_no_partition_twice(name):
    """A node in two partitions that measure each node would be measured twice."""
    site, seen = shipped.site(name), Counter()
    for partition in site.system.partitions.values():
        seen.update(site.having(partition.measured))
    assert [node for node, count in seen.items() if count > 1] == []


@rows("name", shipped.NAMES)
def test_what_instances_see_is_asked_of_no_host(name):
    criteria = shipped.site(name).criteria.values()
    asked = [c.nodes for c in criteria if c.metric.startswith("Instance.")]
    assert all(nodes == ["instances"] for nodes in asked)


def test_every_site_mounts_the_file_system_of_extenci_on_a_host_of_its_own():
    site = shipped.site("extenci")
    named = site.criteria["EXT-ASSESS-ACCESS"].conditions["service"].one_of
    partitions = [site.system.services[service].partition for service in named]
    hosts = [str(site.nodes_of(partition)) for partition in partitions]
    assert hosts == ["bigred", "j-wan", "lonestar"]


def test_the_inventories():
    for name, counts in {
        "sc11-wan": [31, 16, 1, 31, 16, 1, 96],
        "magellan": [504, 200, 15, 133, 8, 15, 10, 3, 28],
        "extenci": [4, 1, 2, 3, 2, 6, 1, 1, 1, 1, 12],
        "nebula-sriov": [2, 2, 2, 2],
        "testbed-wan": [4, 4, 8],
    }.items():
        site = shipped.site(name)
        assert [len(site.expected(role)) for role in site.system.nodes] == counts, name


@rows(
    "name, link, count",
    [
        ("jetstream-iu", "ethernet", 2 * 347),  # every host of the criterion, both directions
        ("jetstream-tacc", "ethernet", 2 * 347),
        ("sc11-wan", "wan", 2 * 30),
        ("sc11-wan", "wan-together", 2 * 30),
        ("magellan", "esnet-together", 2 * 10),
        ("extenci", "psc", 7 * 6),
        ("nebula-sriov", "sriov", 2),
        ("testbed-wan", "wan", 2 * 4),
    ],
)
def test_the_pairs_of_a_link(name, link, count):
    site = shipped.site(name)
    assert len(pairs.directed(site, site.system.links[link])) == count


def test_trap_S4_thirty_streams_are_thirty_hosts_at_the_same_time():
    site = shipped.site("sc11-wan")
    link = site.system.links["wan-together"]
    [together] = pairs.rounds(link.pattern, pairs.servers(site, link), pairs.clients(site, link), 0)
    assert len({client for client, _ in together}) == 30
    assert site.criteria["SC11-IPERF30-WAN"].conditions["at_once"].met_by("30")


@rows(
    "name, key, value, unit, passes",
    [
        ("sc11-wan", "SC11-RTT-LAN", "240", "us", True),
        ("sc11-wan", "SC11-RTT-WAN", "50.5", "ms", True),
        ("sc11-wan", "SC11-RTT-WAN", "50.6", "ms", False),
        ("sc11-wan", "SC11-IPERF1-WAN", "9.75", "Gb/s", True),
        ("sc11-wan", "SC11-IPERF1-WAN", "9.74", "Gb/s", False),
        ("sc11-wan", "SC11-IPERF30-LAN", "97.5", "Gb/s", True),
        ("sc11-wan", "SC11-WANRATIO-IPERF30", "97.96", "%", True),  # 96 of 98
        ("sc11-wan", "SC11-WANRATIO-PEAK", "70.45", "%", True),  # 6.2 of 8.8
        ("sc11-wan", "SC11-WINDOW", "20.1", "h", False),
        ("magellan", "MAG-NET-AGG", "94.4", "Gb/s", False),
        ("magellan", "MAG-NET-GBS", "95", "Gb/s", True),  # 11.875 GB/s
        ("magellan", "MAG-NET-SINGLE", "3.24", "Gb/s", False),
        ("extenci", "EXT-IPERF-INT", "990", "Mb/s", True),
        ("extenci", "EXT-IPERF-INT", "940", "Mb/s", False),  # line rate at an MTU of 1500
        ("nebula-sriov", "NASA-NUTTCP-BM", "9415.2675", "Mb/s", True),
        ("nebula-sriov", "NASA-NUTTCP-BM", "9403.7", "Mb/s", False),
        ("nebula-sriov", "NASA-RATIO-SRIOV", "0.9795", "x", True),
        ("nebula-sriov", "NASA-RATIO-SRIOV", "0.9494", "x", False),
        ("jetstream", "JS-4.3-GALAXYTIME", "1.26", "x", False),  # of the time
        ("jetstream", "JS-4.3-GWAVAIL", "2", "pp", True),  # percentage points
        ("jetstream", "JS-4.2-CAP640", "639", "VMs", False),
        ("jetstream-iu", "JS-2-TOTALS-CORES-M630", "15360", "count", False),
        ("jetstream", "JS-2-TOTALS-CORES-M630", "15360", "count", True),  # both sites
    ],
)
def test_bound(name, key, value, unit, passes):
    assert shipped.site(name).criteria[key].met(Decimal(value), unit) == passes


@rows("name", shipped.NAMES)
def test_totals_follow_from_the_inventory(name):
    site = shipped.site(name)
    for criterion in site.criteria.values():
        figure = criterion.metric.removeprefix("Inventory.")
        if criterion.kind != "equals" or figure not in ("nodes", "cores", "memory", "total_peak"):
            continue
        [role], parts = criterion.nodes, list(site.members.values()) or [site]
        count = sum(len(one.expected(role)) for one in parts)
        hardware = parts[0].hardware_of(role)
        if figure == "nodes":
            total, unit = count, "nodes"
        elif figure == "cores":
            total, unit = count * hardware.sockets * hardware.cores_per_socket, "count"
        else:
            fact = hardware.memory if figure == "memory" else hardware.peak
            total, unit = count * fact.value, fact.unit
        assert criterion.met(Decimal(total), unit), criterion.description


def test_a_parameter_that_differs_fails_its_own_criterion_and_no_other():
    site = shipped.site("sc11-wan")
    expected = site.parameters("seattle_clients").by_name()
    found = {name: rule.exact for name, rule in expected.items()} | {"nic.eth2.mtu": "1500"}
    readings = [Reading(name, value, "text") for name, value in found.items()]
    readings = [
        r if "flow" not in r.metric else Reading(r.metric, "rx=off tx=off", "text")
        for r in readings
    ]
    facts = {"parameters": {n: rule.model_dump(exclude_none=True) for n, rule in expected.items()}}

    class Raw:
        stdout = "end host parameters\n"

    given, _ = host.host_parameters(Measured(readings, {}, Raw(), facts))
    counts = {f"HostParameters.{r.metric}": r.value for r in given if r.unit == "count"}
    failed = [
        key
        for key, c in site.criteria.items()
        if c.metric in counts and not c.met(counts[c.metric], "count")
    ]
    assert failed == ["SC11-TUNE-MTU"]
    assert {c.metric for k, c in site.criteria.items() if k.startswith("SC11-TUNE-")} <= set(counts)


@pytest.mark.deep
@rows("name", shipped.NAMES)
def test_nothing_measured_is_nothing_decided(name, tmp_path, monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    (tmp_path / "perflogs").mkdir()
    told = CliRunner().invoke(group, ["verdict", "--system", name])
    assert told.exit_code == 3, told.output
    assert told.exception is None or isinstance(told.exception, SystemExit)


# A new system is a copy of a sister with another name and other nodes


def a_copy(tmp_path, monkeypatch):
    """A copy of Jetstream at IU with the name and the nodes of another system."""
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    folder = shutil.copytree(TOP / "site-config" / "jetstream-iu", tmp_path / "newcloud")
    path = folder / "system.yaml"
    text = path.read_text().replace("system: jetstream-iu", "system: newcloud")
    text = text.replace("cluster: jetstream-iu", "cluster: newcloud")
    path.write_text(re.sub(r"iu-c\[001-320\]", "nc[01-04]", text))
    return folder


copy = pytest.fixture(name="copy")(a_copy)


def test_a_copy_is_refused_as_long_as_it_has_the_baselines_of_its_sister(copy):
    with pytest.raises(UserErrors, match="baselines of 'jetstream-iu' in system. Allowed: newcl"):
        load("newcloud")


def test_a_copy_is_refused_once_as_long_as_it_has_what_was_published_of_its_sister(copy):
    (copy / "baselines.yaml").write_text("{}\n")
    with pytest.raises(UserErrors, match="published values of 'jetstream-iu' in system") as refused:
        load("newcloud")
    told = str(refused.value).splitlines()
    assert ["published.csv" in told[0], "timeline.csv" in told[1], len(told)] == [True, True, 2]


def without_its_sisters_figures(copy):
    (copy / "baselines.yaml").write_text("{}\n")
    (copy / "published.csv").unlink()
    (copy / "timeline.csv").unlink()


def test_a_copy_with_no_baselines_is_a_system(copy):
    without_its_sisters_figures(copy)
    site = load("newcloud")
    assert str(site.expected("compute")) == "nc[01-04]"
    assert site.baselines == {}
    assert len(pairs.directed(site, site.system.links["ethernet"])) == 2 * (4 + 7 + 20)


@rows("cluster, refused", [("newcloud", False), ("jetstream-iu", True)])
def test_a_copy_is_measured_on_its_own_machines_only(cluster, refused, tmp_path, monkeypatch):
    copy = a_copy(tmp_path, monkeypatch)
    without_its_sisters_figures(copy)
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"ClusterName={cluster}\n")
    monkeypatch.setenv("SLURM_CONF", str(conf))
    rule = load("newcloud").system.recognise
    if not refused:
        machine.refuse_stranger("newcloud", rule)
        assert machine.recognise() == "newcloud"
        return
    with pytest.raises(UserError, match=r"is not this system.*newcloud"):
        machine.refuse_stranger("newcloud", rule)
