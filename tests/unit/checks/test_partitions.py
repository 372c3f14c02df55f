"""Several roles in a partition, several partitions over the same nodes: who measures what, once."""

import json
import shlex
from collections import Counter
from types import SimpleNamespace

import fleets
import pytest
from clone import World

from siteproof import nodesets, sites
from siteproof.answers import expected
from siteproof.checks import selection, session, settings
from siteproof.curves import run_findings
from siteproof.errors import UserErrors
from siteproof.record.descriptions import Updates

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
  old: {description: o, role: thin, environments: [system], measures: []}
environments:
  system: {description: Installed, features: [hpl, hpcc, likwid, fio]}
"""


def write(folder, text=SYSTEM):
    """A world with the site `mixed`."""
    folder.mkdir(exist_ok=True)
    made = World(folder)
    where = made.sites / "mixed"
    where.mkdir()
    (where / "system.yaml").write_text(text)
    (where / "criteria.yaml").write_text("{}\n")
    (where / "baselines.yaml").write_text("{}\n")
    return made


@pytest.fixture
def world(tmp_path):
    return write(tmp_path)


@pytest.fixture
def site(world, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    return sites.load("mixed")


SHARED = SYSTEM.replace(
    "file_systems:\n", "file_systems:\n  all: {path: /all, kind: lustre, shared: true}\n"
).replace("likwid, fio]", "likwid, fio, ior]")


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """`siteproof plan` with options: of each row that runs partition, nodes, jobs and note."""
    made = write(tmp_path_factory.mktemp("planned"), SHARED)

    def ask(*options, system="mixed"):
        done = made.inside("plan", "--system", system, *options, "--json")
        assert done.code == 0, str(done)
        found, rows = json.loads(done.out), {}
        for row in found["rows"]:
            if row["jobs"]:
                what = row["partition"], row["node_set"], row["jobs"], row["note"]
                rows.setdefault(row["check"], []).append(what)
        return rows, (found["jobs"], found["nodes"])

    return ask


# Which partition measures


@pytest.mark.command
def test_a_run_measures_each_node_on_one_partition(planned):
    rows, _ = planned("-n", "Stream|RandomIo|Ior")
    assert rows.pop("Stream") == [
        ("mixed:batch", "n[001-103]", 3, ""),
        ("mixed:gpu", "n[104-105]", 1, ""),
    ]
    # by the roles that may use the file system
    assert rows.pop("RandomIo local") == [
        ("mixed:batch", "n[101-103]", 1, ""),
        ("mixed:gpu", "n[104-105]", 1, ""),
    ]
    # a point on the whole of one partition is not left out of another
    assert [(row[0], row[-1]) for row in rows["Ior all"]] == [
        ("mixed:batch", "3 points"),
        ("mixed:gpu", "3 points"),
    ]
    for nodes, where, jobs in (("n[100-102]", "batch", 2), ("n104", "gpu", 1)):
        rows, _ = planned("-n", "Stream", "-S", f"nodes={nodes}")
        assert rows["Stream"] == [(f"mixed:{where}", nodes, jobs, "")]


@pytest.mark.command
def test_a_partition_that_is_named_measures_all_of_its_nodes(planned):
    rows, last = planned("-n", "Stream", system="mixed:debug")
    assert rows["Stream"] == [("mixed:debug", "n[001-105]", 4, "")]
    assert last == (4, 105)


def test_a_partition_measures_the_roles_that_it_names_or_all(site):
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
    world.edit(
        "system",
        "role: thin, environments: [system], measures: []",
        "role: thin, environments: [system]",
        name="mixed",
    )
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
    world.edit("system", "roles: [fat, gpu]", "roles: []", name="mixed")
    done = world.reframe("--system", "mixed", "-n", "Hpl|RandomIo", "--dry-run")
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
    # and a file system that no role may use is skipped and named
    assert "the site lets no node of role gpu use local" in done.said


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


def test_the_bound_of_a_partition_is_the_network_of_its_fastest_role(site, monkeypatch):
    def bound(*roles):
        monkeypatch.setitem(site.system.partitions, "p", SimpleNamespace(roles=roles))
        run, link = SimpleNamespace(partition="p"), SimpleNamespace()
        return run_findings._of_clients(site, run, link, None)

    assert bound("thin", "fat") == bound("fat") != bound("thin")
    assert bound("thin", "gpu") is None, "that of one role is not known"


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
