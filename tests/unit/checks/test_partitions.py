"""Several roles in a partition, several partitions over the same nodes: who measures what, once."""

import json
import shlex
from collections import Counter

import fleets
import pytest
from click.testing import CliRunner
from clone import TOP, World

from siteproof import nodesets, sites
from siteproof.checks import selection, session, settings
from siteproof.cli.plan import plan
from siteproof.curves import bounds
from siteproof.errors import UserErrors
from siteproof.judge import expected
from siteproof.record.updates import Updates

SYSTEM = """\
system: mixed
description: Thin, fat and GPU nodes in four partitions
recognise: {cluster: mixed}
hardware:
  thin: {sockets: 2, cores_per_socket: 32, memory: 256 GiB, nics: {ib0: {speed: 100 Gb/s}}}
  fat: {sockets: 4, cores_per_socket: 32, memory: 2048 GiB, nics: {ib0: {speed: 200 Gb/s}}}
  gpu: {sockets: 1, cores_per_socket: 64, threads_per_core: 2, memory: 512 GiB}
nodes:
  thin: {set: 'n[001-100]', hardware: thin}
  fat: {set: 'n[101-103]', hardware: fat}
  gpu: {set: 'n[104-105]', hardware: gpu}
file_systems:
  local: {path: /local, kind: xfs, roles: [fat, gpu]}
partitions:
  debug: {description: d, role: [thin, fat, gpu], environments: [system], measures: []}
  batch: {description: b, role: [thin, fat, gpu], environments: [system], measures: [thin, fat]}
  gpu: {description: g, role: gpu, environments: [system]}
  old: {description: o, role: thin, environments: [system], links_only: true}
environments:
  system: {description: Installed, features: [hpl, hpcc, likwid, fio]}
"""


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    where = made.sites / "mixed"
    where.mkdir()
    (where / "system.yaml").write_text(SYSTEM)
    (where / "criteria.yaml").write_text("{}\n")
    (where / "baselines.yaml").write_text("{}\n")
    return made


@pytest.fixture
def site(world, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    return sites.load("mixed")


@pytest.fixture
def planned(site, tmp_path, monkeypatch):
    """`siteproof plan` with options: check, partition, nodes and jobs of each row that runs."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("RFM_CONFIG_FILES", str(TOP / "reframe_settings.py"))

    def ask(*options, system="mixed"):
        done = CliRunner().invoke(plan, ["--system", system, *options, "--json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        rows = [
            (row["check"], row["partition"], row["node_set"], row["jobs"])
            for row in found["rows"]
            if row["jobs"]
        ]
        return rows, (found["jobs"], found["nodes"])

    return ask


# Which partition measures


def test_a_run_measures_each_node_on_one_partition(planned):
    rows, last = planned("-n", "Stream")
    assert rows == [
        ("Stream", "mixed:batch", "n[001-103]", 3),
        ("Stream", "mixed:gpu", "n[104-105]", 1),
    ]
    assert last == (4, 105)


def test_a_partition_that_is_named_measures_all_of_its_nodes(planned):
    rows, last = planned("-n", "Stream", system="mixed:debug")
    assert rows == [("Stream", "mixed:debug", "n[001-105]", 4)]
    assert last == (4, 105)


def test_nodes_that_are_selected_are_measured_where_their_role_is(planned):
    assert planned("-n", "Stream", "-S", "nodes=n[100-102]")[0] == [
        ("Stream", "mixed:batch", "n[100-102]", 2)
    ]
    assert planned("-n", "Stream", "-S", "nodes=n104")[0] == [("Stream", "mixed:gpu", "n104", 1)]


def test_a_file_system_is_measured_by_the_roles_that_may_use_it(planned):
    rows, _ = planned("-n", "RandomIo")
    assert rows == [
        ("RandomIo local", "mixed:batch", "n[101-103]", 1),
        ("RandomIo local", "mixed:gpu", "n[104-105]", 1),
    ]


def test_a_point_on_the_whole_of_one_partition_is_not_left_out_of_another(
    world, monkeypatch, tmp_path
):
    shared = "  all: {path: /all, kind: lustre, shared: true}\n"
    world.edit("system", "file_systems:\n", f"file_systems:\n{shared}", name="mixed")
    world.edit("system", "likwid, fio]", "likwid, fio, ior]", name="mixed")
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("RFM_CONFIG_FILES", str(TOP / "reframe_settings.py"))
    done = CliRunner().invoke(plan, ["--system", "mixed", "-n", "Ior", "--json"])
    assert done.exit_code == 0, done.output
    rows = {
        row["partition"]: row
        for row in json.loads(done.stdout)["rows"]
        if row["check"] == "Ior all"
    }
    assert {where: row["note"] for where, row in rows.items()} == {
        "mixed:batch": "3 points",
        "mixed:gpu": "3 points",
    }


def test_a_file_system_that_no_role_may_use_is_skipped_and_named(world):
    world.edit("system", "roles: [fat, gpu]", "roles: []", name="mixed")
    done = world.reframe("--system", "mixed:gpu", "-n", "RandomIo", "--dry-run")
    assert "the site lets no node of role gpu use local" in done.out + done.err


def test_links_only_of_an_older_site_is_an_empty_list_of_measured_roles(site):
    partitions = site.system.partitions
    assert {name: one.measured for name, one in partitions.items()} == {
        "debug": [],
        "batch": ["thin", "fat"],
        "gpu": ["gpu"],
        "old": [],
    }
    assert partitions["gpu"].roles == ["gpu"]


def test_partitions_that_measure_the_same_nodes_are_refused_with_the_nodes(world, monkeypatch):
    world.edit("system", ", measures: [thin, fat]", "", name="mixed")
    world.edit("system", ", links_only: true", "", name="mixed")
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    with pytest.raises(UserErrors) as refused:
        sites.load("mixed")
    told = [str(error) for error in refused.value.errors]
    assert [line.partition(" ")[2].partition(" in ")[0] for line in told] == [
        "n[104-105] measured by batch and gpu",
        "n[001-100] measured by batch and old",
    ]


# Jobs of one role


def test_a_job_has_nodes_of_one_role_and_each_node_once():
    nodes, roles = nodesets.parse("n[1-80]"), ["n[1-70]", "n[60-75]", "n[76-80]"]
    jobs = selection.jobs(nodes, [nodesets.parse(role) for role in roles])
    assert [len(job) for job in jobs] == [64, 6, 5, 5]
    assert Counter(node for job in jobs for node in job) == dict.fromkeys(nodes, 1)
    assert jobs[2] == [f"n{n}" for n in range(71, 76)], "a node of two roles is of the first"


def test_each_job_has_the_memory_and_the_cores_of_its_role(world):
    done = world.reframe("--system", "mixed", "-n", "Hpl", "--dry-run")
    assert done.code == 0, done.out + done.err
    found = {}
    for path in world.data.glob("stage/*/mixed/*/*/*/settings"):
        lines = [shlex.split(line.rpartition(";")[0]) for line in path.read_text().splitlines()]
        values = dict(words[0].partition("=")[::2] for words in lines if words)
        partition = path.parts[-4]
        gibibytes = int(values["MEMORY"]) // 2**30
        found[partition, values["SITEPROOF_NODE"]] = gibibytes, int(values["CORES"])
    assert found == {
        ("batch", "n001"): (256, 64),
        ("batch", "n065"): (256, 64),
        ("batch", "n101"): (2048, 128),
        ("gpu", "n104"): (512, 64),
    }


def test_reframe_gets_as_many_jobs_as_the_roles_need_and_the_smallest_processor(site, tmp_path):
    active = session.Session(site, tmp_path)
    made = {
        name: settings._partition(active, name, one, False)
        for name, one in site.system.partitions.items()
    }
    assert {name: one["max_jobs"] for name, one in made.items()} == {
        "debug": 4,
        "batch": 4,
        "gpu": 1,
        "old": 2,
    }
    assert made["batch"]["processor"]["num_cpus"] == 64
    assert made["gpu"]["processor"]["num_cpus"] == 128


# What the samples say


def test_a_node_of_two_roles_is_judged_as_one_of_the_first(world, monkeypatch):
    world.edit(
        "system",
        "'n[101-103]', hardware: fat",
        "'n[100-103]', hardware: fat, overlaps: [thin]",
        name="mixed",
    )
    (world.sites / "mixed" / "criteria.yaml").write_text(
        "X-HPL: {description: d, metric: Hpl.gflops, at_least: 1 GFLOPS, source: s}\n"
    )
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    site = sites.load("mixed")
    found = expected.nodes(site, site.criteria["X-HPL"])
    assert len(found) == 105
    assert found["n100"] == site.hardware_of("thin") and site.role_of("n100") == "thin"
    assert found["n101"] == site.hardware_of("fat")


def test_the_bound_of_a_partition_is_the_network_of_its_fastest_role(site):
    assert bounds._of_roles(site, ["thin", "fat"]) == bounds._of_roles(site, ["fat"])
    assert bounds._of_roles(site, ["thin", "gpu"]) is None, "that of one role is not known"


def test_the_kernel_of_guests_ages_no_answer_of_their_hosts(tmp_path):
    hosts = fleets.header(1, expected="n[001-008]", provenance={"kernel": "6.1.0-13"})
    guests = fleets.header(2, expected="v[001-008]", provenance={"kernel": "6.1.0-14"})
    both = {"n001", "v001"}  # those of a derived value
    assert Updates([hosts, guests], tmp_path).after(hosts, both) is None


def test_a_new_kernel_that_another_partition_has_recorded_ages_an_answer(tmp_path):
    old = fleets.header(1, expected="n[001-008]", provenance={"kernel": "6.1.0-13"})
    later = {"expected": "n[003-004]", "provenance": {"kernel": "6.1.0-14"}}
    new = fleets.header(2, partition="debug", **later)
    updates = Updates([old, new], tmp_path)
    assert updates.after(old, ["n003"]) is not None
    assert updates.after(old, ["n001"]) is None
