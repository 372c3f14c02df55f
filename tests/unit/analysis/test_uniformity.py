"""Which node is unlike the others, and what has changed: one sentence a test."""

from __future__ import annotations

import time

from siteproof.analysis.uniformity import Change, Majority, Odd, drift, vote


def fleet(count, **fields):
    return {f"node{n:03}": dict(fields) for n in range(1, count + 1)}


def are_alike(same):
    """Whether no node is odd and every field has a majority."""
    return not same.differing and not same.undecided


def test_no_node_gives_no_odd_one():
    same = vote({})
    assert are_alike(same)
    assert same.nodes == ()


def test_nodes_that_are_equal_are_alike():
    for count in (1, 2, 8, 320):
        same = vote(fleet(count, a="1", b="2"))
        assert are_alike(same), count
        assert same.majority == {"a": Majority("1", 1.0), "b": Majority("2", 1.0)}, count


def test_the_odd_one_is_named_with_field_found_and_majority():
    for count in (3, 8, 320):
        nodes = fleet(count, a="1", b="2")
        nodes["node003"]["b"] = "9"
        same = vote(nodes)
        assert same.differing == {"node003": (Odd("b", "9", "2"),)}, count
        assert same.majority["b"] == Majority("2", (count - 1) / count), count
        assert not same.undecided, count


def test_two_nodes_that_differ_have_no_majority_and_none_is_odd():
    same = vote({"a": {"x": "1"}, "b": {"x": "2"}})
    assert same.undecided == {"x": {"1": ("a",), "2": ("b",)}}
    assert not same.differing
    assert not are_alike(same)


def test_half_of_the_nodes_is_no_majority():
    nodes = fleet(8, x="1") | {f"other{n}": {"x": "2"} for n in range(8)}
    assert list(vote(nodes).undecided) == ["x"]


def test_a_plurality_below_half_is_no_majority():
    nodes = {f"n{i}": {"x": value} for i, value in enumerate("aaabbcc")}
    assert set(vote(nodes).undecided["x"]) == {"a", "b", "c"}


def test_a_field_that_one_node_lacks_makes_it_odd():
    nodes = fleet(8, package="1")
    del nodes["node005"]["package"]
    assert vote(nodes).differing == {"node005": (Odd("package", None, "1"),)}


def test_a_field_that_only_one_node_has_makes_it_odd():
    nodes = fleet(8)
    nodes["node005"]["package"] = "1"
    same = vote(nodes)
    assert same.differing == {"node005": (Odd("package", "1", None),)}
    assert same.majority["package"].value is None


def test_who_could_not_read_a_field_has_no_vote_and_is_not_odd():
    nodes = fleet(3, **{"nic.eth0.speed": "1"})
    nodes["node001"].clear()
    same = vote(nodes, {"node001": ["nic.eth0"]})
    assert are_alike(same)
    assert vote(nodes, {"node001": ["nic.eth"]}).differing


def test_most_of_the_fleet_being_down_changes_nothing_for_the_rest():
    nodes = fleet(3, x="1")
    nodes["node002"]["x"] = "2"
    assert vote(nodes).differing == {"node002": (Odd("x", "2", "1"),)}


def test_identity_is_no_oddity():
    for name in (
        *("nic.eth0.mac", "system.product.serial", "system.product.uuid", "host.name"),
        *("sysctl.kernel.hostname", "ib.mlx5_0.address", "memory.dimm.1_A1.serial"),
        "packages.digest",
    ):
        assert are_alike(vote({"a": {name: "1"}, "b": {name: "2"}})), name


def test_values_that_differ_in_what_is_a_nodes_own_mean_the_same():
    for name, one, other in (
        (
            "kernel.cmdline",
            "root=UUID=2f9c0d5e-93f1-4b5a-8b1e-6d1c7a5b0f11 quiet",
            "root=UUID=00000000-93f1-4b5a-8b1e-6d1c7a5b0f12 quiet",
        ),
        (
            "kernel.cmdline",
            "BOOTIF=01-24-6e-96-00-00-01 ip=10.0.0.1:::",
            "BOOTIF=01-24-6e-96-00-00-02 ip=10.0.0.2:::",
        ),
        (
            "mount./home",
            "nfs4 srv:/home rw,clientaddr=10.0.0.1,addr=10.0.0.9",
            "nfs4 srv:/home rw,clientaddr=10.0.0.2,addr=10.0.0.9",
        ),
        ("memory.total", "131923412 kB", "131919000 kB"),
        ("mount./dev/shm", "tmpfs rw,size=65961704k", "tmpfs rw,size=65961700k"),
        ("sysctl.net.ipv4.tcp_mem", "100000 200000 300000", "100001 200003 300009"),
    ):
        assert are_alike(vote({"a": {name: one}, "b": {name: other}})), (name, one, other)


def test_values_that_mean_something_else_differ():
    for name, one, other in (
        ("kernel.cmdline", "quiet mitigations=off", "quiet mitigations=auto"),
        ("mount./home", "nfs4 srv1:/home rw,addr=10.0.0.9", "nfs4 srv1:/home ro,addr=10.0.0.9"),
        ("memory.total", "131923412 kB", "115000000 kB"),
        ("mount./tmp", "tmpfs rw,size=65961704k", "tmpfs rw,size=32980852k"),
        ("mount./home", "nfs4 srv1:/home rw,addr=10.0.250.9", "nfs4 srv1:/home rw,addr=10.0.251.9"),
        (
            "memory.numa.node0",
            "65961704 kB cpus 0-23 distance 10 21",
            "65961704 kB cpus 0-22 distance 10 21",
        ),
        ("sysctl.vm.swappiness", "60", "61"),
        ("nic.eth0.firmware", "4.41 0x8000186a", "4.42 0x8000186a"),
    ):
        assert not are_alike(vote({"a": {name: one}, "b": {name: other}})), (name, one, other)


def test_the_majority_of_nearly_equal_values_is_the_commonest_of_them():
    nodes = {f"n{i}": {"memory.total": f"{v} kB"} for i, v in enumerate((1000, 1001, 1001, 500))}
    same = vote(nodes)
    assert same.majority["memory.total"] == Majority("1001 kB", 0.75)
    assert list(same.differing) == ["n3"]


def test_a_fleet_of_320_nodes_with_3000_fields_takes_seconds():
    nodes = fleet(320, **{f"f{n}": "value" for n in range(3000)})
    for number, fields in enumerate(nodes.values()):
        fields |= {"memory.total": f"{10**8 + number} kB", "nic.eth0.mac": str(number)}
    begun = time.process_time()
    assert are_alike(vote(nodes))
    assert time.process_time() - begun < 20


def test_nothing_has_drifted_between_equal_descriptions():
    assert drift(fleet(3, x="1"), fleet(3, x="1")) == []


def test_a_change_of_all_nodes_is_told_once_and_before_that_of_one():
    before, after = fleet(3, x="1", y="1"), fleet(3, x="2", y="1")
    after["node002"]["a"] = "new"
    del after["node003"]["y"]
    assert drift(before, after) == [
        Change("x", "1", "2", frozenset(before)),
        Change("a", None, "new", frozenset({"node002"})),
        Change("y", "1", None, frozenset({"node003"})),
    ]


def test_another_serial_number_is_a_drift_and_another_kilobyte_is_none():
    before = {"a": {"disk.sda.serial": "1", "memory.total": "1000000 kB", "packages.digest": "1"}}
    after = {"a": {"disk.sda.serial": "2", "memory.total": "1000001 kB", "packages.digest": "2"}}
    assert [c.field for c in drift(before, after)] == ["disk.sda.serial"]


def test_nodes_of_only_one_description_have_not_drifted():
    assert drift({"a": {"x": "1"}}, {"b": {"x": "2"}}) == []
