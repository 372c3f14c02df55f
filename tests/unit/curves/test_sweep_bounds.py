"""Which network bounds a file system: a disk of the nodes' own, NFS, and one with servers."""

import pytest
import sweeps_made
from rows import rows
from sweeps_made import of

from siteproof import sites
from siteproof.curves import run_findings, sweep_runs
from siteproof.record.finding import Kind
from siteproof.report.chapters import sweeps

MIB_OF_10_GBPS = 10e9 / 8 / 2**20
FAST = {"Ior.write": lambda tasks, per_node: 3450.0 * tasks}  # MiB/s: 289 % of 10 Gb/s
STORE = "  store: {path: /store, shared: true, kind: KIND}\n"


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """The report on a sweep of a file system `store`, given its kind and further keys."""

    def run(kind, figures=FAST, links="", file=sweeps_made.TASKS):
        text = sweeps_made.SYSTEM.replace(
            "file_systems:\n", "file_systems:\n" + STORE.replace("KIND", kind)
        )
        folder = sweeps_made.write_site(tmp_path / "sites")
        (folder / "here" / "system.yaml").write_text(text + links)
        monkeypatch.setenv("SITEPROOF_SITES", str(folder))
        site = sites.load("here")
        swept = sweeps_made.write_sweep(tmp_path / "sweeps", monkeypatch, file)
        [of_run] = sweep_runs.collect(of(swept, figures, place="store"))
        [report] = run_findings.reports(site, of_run, swept)
        return report

    return run


def bounds(report, tasks=1):
    """Part and limit in MiB/s of each bound where so many tasks ran, one a node."""
    [curve] = [c for c in report.groups[0] if c.line_name.endswith(" 1")]
    [row] = [row for row in curve.rows if row.tasks == tasks]
    found = report.bounds_of(curve, row)
    return [(one.bound.part.value, round(one.limit)) for one in found]


CLIENT = round(2 * MIB_OF_10_GBPS)  # em1 and em2 in a bond
ONE = round(MIB_OF_10_GBPS)
SERVERS = round(2 * 4 * MIB_OF_10_GBPS)


@rows("kind", ["xfs", "any", "ext4", "tmpfs", "overlay", "zfs"])
def test_a_disk_that_all_nodes_of_one_machine_see_is_bound_by_no_network(measured, kind):
    report = measured(kind)
    assert bounds(report) == []
    assert Kind.ABOVE_BOUND not in {why.kind for why in run_findings.of_curves(report)}


@rows("kind", ["nfs", "nfs4", "lustre", "ceph", "fuse.ceph", "gpfs", "beegfs"])
@pytest.mark.deep
def test_a_shared_file_system_of_a_network_kind_is_bound_by_the_clients(measured, kind):
    assert bounds(measured(kind)) == [("clients", CLIENT)]
    assert bounds(measured(kind), 128) == [("clients", round(128 * 2 * MIB_OF_10_GBPS))]


def test_servers_bound_it_as_well_whatever_its_kind(measured):
    report = measured("xfs, servers: storage")
    assert bounds(report) == [("clients", CLIENT), ("servers", SERVERS)]
    assert bounds(report, 128)[0] == ("servers", SERVERS)


def test_the_link_that_the_site_names_bounds_each_node_and_a_shared_one_all_of_them(measured):
    slow = (
        "  slow: {description: x, partition: compute, servers: n001, clients: n002, speed: 1 Gb/s"
    )
    alone = measured("nfs, network: slow", links=f"{slow}}}\n")
    assert bounds(alone) == [("clients", round(MIB_OF_10_GBPS / 10))]
    assert bounds(alone, 128) == [("clients", round(128 * MIB_OF_10_GBPS / 10))]
    together = measured("nfs, network: slow", links=f"{slow}, pattern: together}}\n")
    assert ("link", round(MIB_OF_10_GBPS / 10)) in bounds(together, 128)


def test_a_link_that_is_faster_than_a_nodes_interfaces_bounds_nothing_more(measured):
    ends = "partition: compute, servers: n001, clients: n002"
    fast = f"  fast: {{description: x, {ends}, speed: 400 Gb/s}}\n"
    assert bounds(measured("lustre, network: fast", links=fast)) == [("clients", CLIENT)]


def test_network_none_takes_the_bound_away(measured):
    assert bounds(measured("nfs, network: none")) == []


def test_a_value_above_a_bound_is_named_where_it_exceeds_it_most(measured):
    # Above the link of one client, and below that of all of them at the best point.
    report = measured(
        "nfs", {"Ior.write": lambda tasks, _: 6891.0 if tasks == 1 else 2000.0 * tasks}
    )
    [above] = [why for why in run_findings.of_curves(report) if why.kind is Kind.ABOVE_BOUND]
    assert (above.get("at"), above.get("part")) == ("1", "clients")
    assert above.get("share") == pytest.approx(2.89, abs=0.01)


def test_a_figure_with_an_exceeded_bound_says_so(measured):
    [plot] = sweeps.plots([("run", measured("nfs"))])
    assert plot.bound.name.startswith("exceeded bound: at the end")
    below = {"Ior.write": lambda tasks, _: 100.0 * tasks}
    [plot] = sweeps.plots([("run", measured("nfs", below))])
    assert plot.bound.name.startswith("bound: at the end")
