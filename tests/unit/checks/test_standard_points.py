"""Which points Ior and Mdtest measure without a sweep file, and what servers may hold."""

import pytest
from rows import rows

from siteproof.checks import selection, standard
from siteproof.record.point import Point
from siteproof.sites import load
from siteproof.slurm.records import Node
from siteproof.slurm.spelling import node_state


@pytest.fixture(autouse=True)
def shipped(monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)


def usable(name, partition, nodes="all"):
    site = load(name)
    chosen = selection.select(nodes, site.nodes_of(partition))
    return standard.usable(site.partition(partition), chosen)


@rows("where", ["seattle", "indianapolis"])
def test_criteria_ask_for_the_points_of_which_they_speak_each_once(where):
    found = standard.of_criteria(load("sc11-wan"), "ior", where)
    thirty = {"tasks": "30", "tasks_per_node": "1", "api": "POSIX", "layout": "file_a_task"}
    assert found == [thirty, {"tasks": "1"}, {"tasks": "30"}]  # the last two: of the retention


def test_a_criterion_on_another_file_system_asks_for_nothing():
    found = standard.of_criteria(load("sc11-wan"), "ior", "elsewhere")
    assert found == []


def test_a_criterion_without_a_number_of_tasks_asks_for_no_point_of_its_own():
    assert standard.of_criteria(load("extenci"), "mdtest", "jwan") == []


def test_without_slurm_a_partition_has_the_nodes_of_the_inventory(monkeypatch):
    standard.client.first_look.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    assert usable("sc11-wan", "seattle") == 31
    assert usable("sc11-wan", "seattle", "sea-c[01-04]") == 4
    assert usable("thishost", "node") == 1


def test_nodes_that_take_no_job_are_not_waited_for(monkeypatch):
    states = {f"sea-c{n:02}": Node(f"sea-c{n:02}") for n in range(1, 30)}
    states["sea-c07"] = Node("sea-c07", node_state("drained"), "memory")
    monkeypatch.setattr(standard.client, "first_look", lambda: states)
    assert usable("sc11-wan", "seattle") == 28


def test_the_memory_of_servers_is_that_of_their_role_where_the_site_knows_it():
    assert load("jetstream-iu").server_memory("volume") == 20 * 64 * 2**30  # 20 servers of 64 GiB
    assert load("jetstream-iu").server_memory("benchmarks") is None
    assert load("thishost").server_memory("temporary") == 0


def test_a_partition_is_not_measured_at_the_size_of_a_smaller_one():
    points = dict(
        enumerate(
            (Point({"tasks": str(n), "tasks_per_node": "1"}, ("tasks",)) for n in (1, 16, 30, 31)),
            1,
        )
    )
    kept = standard.narrowed(points, {1, 16, 31}, 31)
    assert [point.tasks for point in kept.values()] == [30, 31]
    assert standard.narrowed(points, set(), 31) == points
