"""file_system.sh as nodes run it: whose turn it is on a file system, and where a node is."""

import os
import subprocess

from clone import PATIENCE, TOP

SHARED = TOP / "siteproof/checks/on_node/file_system.sh"


def shell(folder, node, script, **settings):
    """A script that knows file_system.sh, started as a node does it."""
    here = folder / node
    here.mkdir()
    (here / "meta").write_text(f"node={node}\n")
    (folder / "turns").mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "SITEPROOF_ATTEMPT": "1", "SITEPROOF_LIMIT": "60"}
    line = f'. "{SHARED}"\n{script}'
    return subprocess.Popen(
        ["sh", "-c", line, "measure", folder],
        cwd=here,
        env=env | settings,
        stdout=subprocess.PIPE,
        text=True,
    )


def turns(folder, alive, **settings):
    """When each node's turns began and ended: (begin, end) by node and turn."""
    script = """
        for n in 0 1; do turn $n; date "+$n begin %s.%N"; sleep 0.6; date "+$n end %s.%N"; done
        turn_over"""
    running = {node: shell(folder, node, script, **settings) for node in alive}
    found = {}
    for node, process in running.items():
        for line in process.communicate(timeout=PATIENCE)[0].splitlines():
            number, what, moment = line.split()
            found.setdefault((node, number), {})[what] = float(moment)
    return {key: (t["begin"], t["end"]) for key, t in found.items()}


def most_at_once(spans):
    return max(sum(a <= begin < b for a, b in spans) for begin, _ in spans)


def test_never_more_nodes_than_allowed_have_their_turn_and_reading_follows_writing(tmp_path):
    nodes = [f"n{number}" for number in range(5)]
    spans = turns(tmp_path, nodes, NODES=" ".join(nodes), AT_ONCE="2", TURN="20")
    assert len(spans) == 10
    assert most_at_once(list(spans.values())) == 2


def test_a_node_that_died_holds_nobody_up_longer_than_its_turn(tmp_path):
    nodes = ["n0", "dead", "n2"]
    spans = turns(tmp_path, ["n0", "n2"], NODES=" ".join(nodes), AT_ONCE="1", TURN="3")
    assert len(spans) == 4
    assert spans["n2", "0"][0] - spans["n0", "0"][0] < 2 * 3 + 3
    assert most_at_once(list(spans.values())) == 1


def test_where_all_may_go_at_once_nobody_waits(tmp_path):
    nodes = ["n0", "n1", "n2"]
    spans = turns(tmp_path, nodes, NODES=" ".join(nodes), AT_ONCE="3", TURN="20")
    assert max(begin for begin, _ in spans.values()) - min(b for b, _ in spans.values()) < 5


PLACES = [
    ({"proc/cpuinfo": "flags\t: fpu hypervisor lahf"}, "vm"),
    ({"proc/cpuinfo": "flags\t: fpu vmx"}, "node"),
    (
        {
            "proc/cpuinfo": "Features : asimd",
            "sys/class/dmi/id/product_name": "KVM Virtual Machine",
        },
        "vm",
    ),
    ({"proc/cpuinfo": "Features : asimd", "sys/class/dmi/id/product_name": "PowerEdge"}, "node"),
    ({"proc/cpuinfo": "flags\t: hypervisor", ".dockerenv": ""}, "container"),
    ({"proc/cpuinfo": "flags\t: fpu", "run/systemd/container": "lxc"}, "container"),
]


def test_where_a_node_is(tmp_path):
    for number, (files, expected) in enumerate(PLACES):
        top = tmp_path / f"{number}"
        for name, text in files.items():
            (top / "root" / name).parent.mkdir(parents=True, exist_ok=True)
            (top / "root" / name).write_text(text + "\n")
        done = shell(top, "n", f"inside '{top}/root'").communicate()
        assert done[0] == f"{expected}\n", files
