"""Which points Ior and Mdtest measure without a sweep file, and what servers may hold."""

import pytest

from siteproof.checks import selection
from siteproof.record.manifest import Point
from siteproof.sites import load
from siteproof.slurm.records import Node
from siteproof.slurm.spelling import node_state


@pytest.fixture(autouse=True)
def shipped(monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)


def usable(name, partition, nodes="all"):
    site = load(name)
    chosen = selection.select(nodes, site.nodes_of(partition))
    return selection.usable(site.partition(partition), chosen)


def test_without_slurm_a_partition_has_the_nodes_of_the_inventory(monkeypatch):
    selection.client.first_look.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    assert usable("sc11-wan", "seattle") == 31
    assert usable("sc11-wan", "seattle", "sea-c[01-04]") == 4
    assert usable("thishost", "node") == 1


def test_nodes_that_take_no_job_are_not_waited_for(monkeypatch):
    states = {f"sea-c{n:02}": Node(f"sea-c{n:02}") for n in range(1, 30)}
    states["sea-c07"] = Node("sea-c07", node_state("drained"), "memory")
    monkeypatch.setattr(selection.client, "first_look", lambda: states)
    assert usable("sc11-wan", "seattle") == 28


def test_the_memory_of_servers_is_that_of_their_role_where_the_site_knows_it():
    assert load("jetstream-iu").server_memory("volume") == 20 * 64 * 2**30  # 20 servers of 64 GiB
    assert load("jetstream-iu").server_memory("benchmarks") is None
    assert load("thishost").server_memory("temporary") == 0


def test_a_partition_is_not_measured_at_the_size_of_another_one():
    points = dict(
        enumerate(
            (Point({"tasks": str(n), "tasks_per_node": "1"}, ("tasks",)) for n in (1, 16, 30, 31)),
            1,
        )
    )
    assert [point.tasks for point in selection.narrowed(points, {1, 16}).values()] == [30, 31]
    assert selection.narrowed(points, ()) == points
    many = {1: Point({"tasks": "32", "tasks_per_node": "2", "nodes": "16"}, ("tasks",))}
    assert selection.narrowed(many, {16}) == {} and selection.narrowed(many, {32}) == many
