"""Nodes as roles: by hardware, each reached by one partition, none twice."""

import scontrol_made as made
from rows import rows

from siteproof.porting.grouping import group
from siteproof.porting.new_site import gpus as gpus_of
from siteproof.slurm import configured


def grouped(nodes, partitions):
    return group(configured.parse_nodes(nodes), configured.parse_partitions(partitions))


def roles(found):
    return {one.name: (str(one.nodes), one.partition) for one in found.roles}


def test_partitions_over_the_same_nodes_are_one_role():
    parts = made.partition("long", "n[1-8]", limit="7-00:00:00")
    parts += made.partition("batch", "n[1-8]", default=True)
    parts += made.partition("debug", "n[1-2]", limit="00:30:00")
    found = grouped(made.nodes("n[1-8]"), parts)
    assert roles(found) == {"batch": ("n[1-8]", "batch")}
    assert found.roles[0].others == {"long": 8, "debug": 2}


def test_nodes_with_gpus_are_a_role_of_their_own():
    nodes = made.nodes("n[1-8]") + made.nodes("g[1-2]", gres="gpu:a100:4")
    parts = made.partition("all", "n[1-8],g[1-2]", default=True) + made.partition("gpu", "g[1-2]")
    found = grouped(nodes, parts)
    assert roles(found) == {"all": ("n[1-8]", "all"), "gpu": ("g[1-2]", "gpu")}
    assert {one.name: gpus_of(one.kind) for one in found.roles} == {"all": 0, "gpu": 4}


def test_a_short_partition_is_not_preferred():
    parts = made.partition("debug", "n[1-4]", limit="00:30:00") + made.partition("all", "n[1-8]")
    found = grouped(made.nodes("n[1-4]") + made.nodes("n[5-8]", cores=32), parts)
    assert {one.partition for one in found.roles} == {"all"}


def test_memory_that_differs_a_little_is_the_same():
    nodes = made.nodes("n[1-4]", memory=lambda n: 257_000 + 12 * n)
    nodes += made.nodes("n[5-6]", memory=515_000)
    found = grouped(nodes, made.partition("batch", "n[1-6]"))
    assert sorted(one.kind.memory for one in found.roles) == [257_000, 515_000]
    assert set(roles(found)) == {"batch-251g", "batch-503g"}


def test_numbered_features_are_places_and_divide_no_role():
    nodes = made.nodes("n[1-8]", features=lambda n: f"milan,rack{n // 2 + 1}")
    found = grouped(nodes, made.partition("batch", "n[1-8]"))
    assert list(roles(found)) == ["batch"]
    assert {name: str(nodes) for name, nodes in found.places.items()} == {
        f"rack{n}": f"n[{2 * n - 1}-{2 * n}]" for n in range(1, 5)
    }


@rows(
    "features, places",
    [
        (lambda n: f"milan,{n // 4 + 1}", {"nodes-1": "n[1-4]", "nodes-2": "n[5-8]"}),
        (lambda n: f"milan,row-{'ab'[n // 4]}", {"row-a": "n[1-4]", "row-b": "n[5-8]"}),
        (lambda n: f"rack{'AB'[n // 4]}", {"racka": "n[1-4]", "rackb": "n[5-8]"}),
        (lambda n: f"x1000c{n // 4}", {"x1000c0": "n[1-4]", "x1000c1": "n[5-8]"}),
        (lambda n: f"milan,u{n}", {}),
        (lambda n: f"milan,r1n{n}", {}),
        (lambda n: "milan" if n > 3 else f"milan,desk-of-{'abcd'[n]}", {}),
        (lambda n: f"n{n + 1}", {}),
    ],
)
def test_features_that_name_a_place_or_one_node_divide_no_role(features, places):
    found = grouped(made.nodes("n[1-8]", features=features), made.partition("batch", "n[1-8]"))
    assert list(roles(found)) == ["batch"]
    assert {name: str(nodes) for name, nodes in found.places.items()} == places


@rows(
    "features",
    [
        lambda n: ("e5-2680v4", "e5-2690v4")[n // 4],
        lambda n: ("milan", "genoa")[n // 4],
        lambda n: "milan,vis" if n == 0 else "milan",
        lambda n: ("a100", "v100")[n // 4],
        lambda n: ("racks", "rows")[n // 4],
    ],
)
def test_features_that_may_be_hardware_divide_roles(features):
    found = grouped(made.nodes("n[1-8]", features=features), made.partition("batch", "n[1-8]"))
    assert len(found.roles) == 2


def test_features_that_divide_hardware_divide_roles():
    nodes = made.nodes("n[1-4]", features="milan") + made.nodes("n[5-8]", features="genoa")
    found = grouped(nodes, made.partition("batch", "n[1-8]"))
    assert set(roles(found)) == {"batch-milan", "batch-genoa"}


def test_many_combinations_of_features_divide_nothing():
    nodes = made.nodes("n[1-20]", features=lambda n: f"team-{'abcdefghijklmnopqrst'[n]}")
    assert list(roles(grouped(nodes, made.partition("batch", "n[1-20]")))) == ["batch"]


def test_nodes_that_no_partition_reaches_are_named():
    nodes = made.nodes("n[1-4]") + made.nodes("c[1-2]", state="IDLE+CLOUD+POWERED_DOWN")
    found = grouped(nodes, made.partition("batch", "n[1-3]"))
    assert {why: str(nodes) for why, nodes in found.left_out.items()} == {
        "in no partition": "n4",
        "not there now (FUTURE, or a cloud's node that is powered down)": "c[1-2]",
    }


def test_a_cloud_node_that_is_up_is_there():
    nodes = made.nodes("c[1-2]", state="ALLOCATED+CLOUD")
    found = grouped(nodes, made.partition("queue", "c[1-2]"))
    assert roles(found) == {"queue": ("c[1-2]", "queue")}


def test_a_node_in_no_partition_is_in_no_place():
    nodes = made.nodes("n[1-4]", features=lambda n: f"rack{n + 1}")
    found = grouped(nodes, made.partition("batch", "n[1-3]"))
    assert set(found.places) == {"rack1", "rack2", "rack3"}


def test_a_partition_that_needs_two_nodes_is_the_last_choice_and_says_so():
    wide = made.partition("wide", "n[1-5]").replace("MinNodes=0", "MinNodes=2")
    found = grouped(made.nodes("n[1-5]"), wide + made.partition("one", "n[1-4]"))
    assert {one.partition: list(one.restricted) for one in found.roles} == {
        "one": [],
        "wide": ["MinNodes=2"],
    }


@rows(
    "old, new",
    [
        ("AllowAccounts=ALL", "AllowAccounts=physics"),
        ("AllowGroups=ALL", "AllowGroups=root"),
        ("AllowQos=ALL", "AllowQos=high"),
        ("RootOnly=NO", "RootOnly=YES"),
        ("Hidden=NO", "Hidden=YES"),
        ("ReqResv=NO", "ReqResv=YES"),
    ],
)
def test_a_partition_that_most_users_may_not_use_is_the_last_choice_and_says_so(old, new):
    closed = made.partition("closed", "n[1-5]").replace(old, new)
    found = grouped(made.nodes("n[1-5]"), closed + made.partition("open", "n[1-4]"))
    asked = {one.partition: list(one.restricted) for one in found.roles}
    assert asked == {"open": [], "closed": [new]}


def test_no_node_is_in_two_roles():
    nodes = made.nodes("n[1-6]")
    parts = made.partition("a", "n[1-4]") + made.partition("b", "n[3-6]")
    found = grouped(nodes, parts)
    members = [node for one in found.roles for node in one.nodes]
    assert sorted(members) == [f"n{number}" for number in range(1, 7)]
    assert {one.hardware for one in found.roles} == {found.roles[0].name}


def test_a_partition_that_is_down_or_closed_is_the_last_choice():
    parts = made.partition("a", "n[1-4]", state="DOWN")
    parts += made.partition("b", "n[1-4]", accounts="physics") + made.partition("c", "n[1-5]")
    found = grouped(made.nodes("n[1-4]") + made.nodes("n5", cores=8), parts)
    assert {one.partition for one in found.roles} == {"c"}
