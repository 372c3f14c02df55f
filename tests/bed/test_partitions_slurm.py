"""Two partitions of Slurm over the same nodes, and two roles in one: each node is measured once."""

import json
from collections import Counter

import pytest
import yaml
from bed_suite import HONEST, NODES, PARAMETERS, Suite, all_idle

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
THIN, FAT = NODES[:5], NODES[5:]


@pytest.fixture(scope="module")
def suite(testbed, tmp_path_factory):
    """The test bed with the partitions compute, debug (all nodes) and fat, measured whole.

    Its site has thin and fat nodes, and a criterion for each of them.
    """
    made = Suite(testbed, tmp_path_factory.mktemp("partitions"))
    describe(made.own_site())
    made.likwid(HONEST)
    for name, nodes in (("debug", "node[001-008]"), ("fat", "node[006-008]")):
        words = ["scontrol", "create", f"PartitionName={name}", f"Nodes={nodes}", "State=UP"]
        done = testbed.run(words)
        assert done.returncode == 0, done.stderr
    try:
        done = made.reframe("-n", "Stream|HostParameters")
        assert done.returncode == 1, "fat nodes have another value than theirs"
        yield made
    finally:
        made.end()
        for name in ("debug", "fat"):
            testbed.run(["scontrol", "delete", f"PartitionName={name}"])
        all_idle(testbed)


def describe(folder):
    system = yaml.safe_load((folder / "system.yaml").read_text())
    kind = system["hardware"]["namespace"]
    system["hardware"] = {"thin": {**kind, "memory": "1 GiB"}, "fat": {**kind, "memory": "2 GiB"}}
    system["nodes"] = {
        "thin": {"set": "node[001-005]", "hardware": "thin"},
        "fat": {"set": "node[006-008]", "hardware": "fat"},
    }
    system["parameters"] = {
        "thin": {"sysctl": {"net.ipv4.tcp_sack": 1}},
        "fat": {"sysctl": {"net.ipv4.tcp_sack": 0}},
    }
    system["links"]["lan"]["clients"] = "node[001-008]"
    entry = system["partitions"]["compute"] | {"role": ["thin", "fat"]}
    system["partitions"] = {
        "debug": entry | {"access": ["--partition=debug"], "measures": []},
        "compute": entry,
        "fat": entry | {"access": ["--partition=fat"], "role": "fat", "measures": []},
    }
    (folder / "system.yaml").write_text(yaml.safe_dump(system, sort_keys=False))
    promise = {"description": "d", "source": "s", "conditions": {"mode": "quick"}}
    criteria = {
        f"TB-{role.upper()}": promise
        | {"metric": PARAMETERS, "nodes": [role], "at_most": "0 count"}
        for role in ("thin", "fat")
    }
    (folder / "criteria.yaml").write_text(yaml.safe_dump(criteria))
    (folder / "baselines.yaml").write_text("{}\n")


def jobs(suite, metric):
    """Of each node, how often it was measured; and of each job its partition and nodes."""
    found = [s for s in suite.samples() if s.metric == metric]
    placed = {}
    for sample in found:
        key = (sample.header.partition, sample.header.job)
        placed.setdefault(key, []).append(sample.node)
    return Counter(s.node for s in found), sorted((p, sorted(n)) for (p, _), n in placed.items())


def verdict(suite):
    done = suite.siteproof("verdict", "--json")
    return {c["id"]: c for c in json.loads(done.stdout)["criteria"]}


def test_a_run_measures_each_node_once_and_each_job_has_one_role(suite):
    for metric in ("Stream.triad", PARAMETERS):
        counts, placed = jobs(suite, metric)
        assert counts == dict.fromkeys(NODES, 1)
        assert placed == [("compute", THIN), ("compute", FAT)]


def test_each_node_is_judged_by_the_parameters_of_its_own_role(suite):
    found = verdict(suite)
    assert {key: one["verdict"] for key, one in found.items()} == {
        "TB-THIN": "PASS",
        "TB-FAT": "FAIL",
    }
    assert [n["node"] for n in found["TB-FAT"]["nodes"] if n["verdict"] == "FAIL"] == FAT


def test_nodes_that_were_measured_on_two_partitions_count_once(suite, tmp_path):
    again = suite.copy(tmp_path)
    words = ("--system", "testbed:debug", "-n", "HostParameters", "-S", "nodes=node[003-008]")
    assert again.reframe(*words).returncode == 1
    counts, placed = jobs(again, PARAMETERS)
    assert placed == [("compute", THIN), ("compute", FAT), ("debug", THIN[2:]), ("debug", FAT)]
    assert counts == {n: 1 if n in THIN[:2] else 2 for n in NODES}
    found = verdict(again)
    assert [found[key]["verdict"] for key in ("TB-THIN", "TB-FAT")] == ["PASS", "FAIL"]
    assert [len(found[key]["nodes"]) for key in ("TB-THIN", "TB-FAT")] == [5, 3]
    shown = json.loads(again.siteproof("nodes", "--json").stdout)
    assert sorted(n["node"] for n in shown["nodes"]) == NODES
