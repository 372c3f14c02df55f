"""rdma_ports.sh and rdma_write.sh on real folders in the form of /sys/class/infiniband.

The folders are composed after the Linux kernel's Documentation/ABI/stable/sysfs-class-infiniband,
as no machine here has such a device; perftest is the real one where it is installed.
"""

import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from clone import TOP

from siteproof.collect.derive import Measured, network
from siteproof.collect.raw import Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading, health, perftest
from siteproof.parsers import rdma_ports as parser

SHARED = TOP / "siteproof/checks/on_node"
SYSFS = "/sys/class/infiniband"
INTERFACES = "/sys/class/net"


class Node:
    """A folder as sysfs, and a stage with the scripts that read it."""

    def __init__(self, folder):
        self.sysfs, self.here = folder / "infiniband", folder / "here"
        self.interfaces = folder / "net"
        self.sysfs.mkdir()
        self.interfaces.mkdir()
        self.here.mkdir()
        for name in ("account.sh", "network.sh", "rdma.sh", "other_tools.sh"):
            self.copy(SHARED / name)
        (self.here / "meta").write_text("node=n1\n")

    def copy(self, script):
        text = script.read_text().replace(SYSFS, str(self.sysfs))
        text = text.replace(INTERFACES, str(self.interfaces))
        (self.here / script.name).write_text(text)

    def port(
        self, name, state="4: ACTIVE", rate="100 Gb/sec (4X EDR)", layer="InfiniBand", **counts
    ):
        device, _, number = name.rpartition("_")
        port = self.sysfs / device / "ports" / number
        fields = {
            "state": state,
            "phys_state": "5: LinkUp" if "ACTIVE" in state else "3: Disabled",
            "rate": rate,
            "link_layer": layer,
        }
        for kind in ("counters", "hw_counters"):
            (port / kind).mkdir(parents=True)
        for field, text in fields.items():
            (port / field).write_text(f"{text}\n")
        for counter, value in counts.items():
            of_link = counter.startswith(("symbol", "link", "port", "local_link", "excessive"))
            (port / ("counters" if of_link else "hw_counters") / counter).write_text(f"{value}\n")

    def run(self, script, **environ):
        self.copy(script)
        text = f". ./account.sh; . ./network.sh; . ./{script.name}"
        known = {"PATH": os.environ["PATH"], "STATED": "", **environ}
        command = ["sh", "-c", text, "measure", str(self.here)]
        return subprocess.run(command, cwd=self.here, env=known, capture_output=True, text=True)

    def ports(self, **stated):
        done = self.run(TOP / "checks/network/rdma_ports.sh", STATED=" ".join(stated))
        assert done.returncode == 0, done
        raw = Raw({}, {}, done.stdout, "")
        facts = {"stated": {name: str(rate) for name, rate in stated.items()}}
        readings, _ = network.rdma_ports(Measured(parser.parse(done.stdout), {}, raw, facts))
        return readings


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def values(readings, metric):
    return [r.value for r in readings if r.metric == metric]


def test_a_node_without_a_device_says_so_and_is_no_failure(node):
    done = node.run(TOP / "checks/network/rdma_ports.sh")
    assert done.returncode == 127
    assert done.stderr.strip() == f"no InfiniBand or RoCE device in {node.sysfs}"


def test_ports_have_state_rate_width_and_errors(node):
    node.port("mlx5_0_1", symbol_error=4, out_of_sequence=6, port_xmit_wait=999, np_cnp_sent=12)
    node.port("mlx5_0_2", rate="25 Gb/sec (1X EDR)", layer="Ethernet")
    node.port("mlx5_1_1", state="1: DOWN")
    found = node.ports()
    assert values(found, "ports") == [3]
    assert values(found, "ports_active") == [2]
    assert values(found, "errors") == [10]  # congestion is none
    assert values(found, "lowest_rate") == [25]
    assert values(found, "lowest_width") == [1]
    assert values(found, "not_active") == ["1: DOWN, 3: Disabled"]
    assert values(found, "ports_below") == []  # the site states no rate


def test_ports_below_the_rate_that_the_site_states_are_named(node):
    node.port("mlx5_0_1")
    node.port("mlx5_1_1", rate="50 Gb/sec (2X EDR)")
    node.port("mlx5_2_1", state="2: INIT")
    found = node.ports(mlx5_0=100 * 10**9, mlx5_1=100 * 10**9, mlx5_2=100 * 10**9)
    assert values(found, "ports_below") == [2]
    assert values(found, "below") == ["50 Gb/s, stated 100 Gb/s", "not active, stated 100 Gb/s"]


def test_a_device_that_the_site_states_and_the_node_lacks_is_below_its_rate(node):
    node.port("mlx5_0_1")
    (node.interfaces / "eth0").mkdir()
    found = node.ports(mlx5_0=100 * 10**9, mlx5_1=100 * 10**9, eth0=10 * 10**9)
    assert values(found, "ports_below") == [1]
    assert values(found, "below") == ["no such device, stated 100 Gb/s"]
    assert [r.dims["port"] for r in found if r.metric == "below"] == ["mlx5_1"]


def test_a_node_that_lost_its_only_device_is_no_skip_where_the_site_states_it(node):
    found = node.ports(mlx5_0_1=100 * 10**9)
    assert [values(found, m) for m in ("ports", "ports_active", "ports_below")] == [[0], [0], [1]]
    (node.interfaces / "mlx5_0_1").mkdir()  # an interface with that name
    assert node.run(TOP / "checks/network/rdma_ports.sh", STATED="mlx5_0_1").returncode == 127


def test_a_device_that_keeps_no_counters_has_no_errors_rather_than_none(node):
    node.port("efa_0_1", rate="100 Gb/sec (4X EDR)", layer="Unspecified")
    node.port("bnxt_re0_1", layer="Ethernet", symbol_error="N/A (no PMA)", np_cnp_sent=4)
    found = node.ports()
    assert values(found, "ports_active") == [2]
    assert values(found, "errors") == []
    assert values(found, "counter") == [4]


def test_a_port_that_cannot_be_read_gives_no_value(node):
    node.port("mlx5_0_1")
    (node.sysfs / "mlx5_0/ports/1/rate").unlink()
    done = node.run(TOP / "checks/network/rdma_ports.sh")
    with pytest.raises(OutputError, match="rate '' of an active port"):
        parser.parse(done.stdout)


def test_a_counter_that_holds_something_else_is_refused(node):
    node.port("mlx5_0_1", symbol_error="-1")
    done = node.run(TOP / "checks/network/rdma_ports.sh")
    with pytest.raises(OutputError, match="no field in"):
        parser.parse(done.stdout)


def test_health_counts_what_the_ports_count(node):
    node.port("mlx5_0_1", symbol_error=4, local_link_integrity_errors=2, rnr_nak_retry_err=5)
    done = node.run(TOP / "checks/system/health.sh")
    found = {(r.metric, r.dims.get("nic")): r.value for r in health.parse(done.stdout)}
    assert found["nic_symbol_error", "mlx5_0_1"] == 4
    assert found["nic_local_link_integrity_errors", "mlx5_0_1"] == 2
    assert found["nic_rnr_nak_retry_err", "mlx5_0_1"] == 5


def pair(node, **environ):
    """The client's side of a turn."""
    settings = {"DEVICE": "", "DEVICE_PORT": "1", "GID_INDEX": "", "LARGEST": "1048576"}
    settings |= {"SMALLEST": "8", "ITERATIONS": "1000", "SIDE": "client", "PORT": "18515"}
    return node.run(
        TOP / "checks/network/rdma_write.sh", **{**settings, "ADDRESS": "127.0.0.1", **environ}
    )


def test_a_pair_without_a_device_or_without_the_links_own_says_so(node):
    done = pair(node)
    assert (done.returncode, done.stderr.strip()) == (
        127,
        f"no InfiniBand or RoCE device in {node.sysfs}",
    )
    node.port("mlx5_0_1")
    done = pair(node, DEVICE="mlx5_9", DEVICE_PORT="2")
    assert done.returncode == 127
    assert "no port 2 of a device mlx5_9" in done.stderr


def test_a_pair_without_perftest_names_the_tool(node):
    node.port("mlx5_0_1")
    bin_ = node.here / "bin"
    bin_.mkdir()
    for tool in ("sh", "sed", "cat", "getent", "awk", "ip", "mkdir"):
        if found := shutil.which(tool):
            (bin_ / tool).symlink_to(found)
    done = pair(node, PATH=str(bin_))
    assert (done.returncode, done.stderr.strip()) == (127, "ib_write_bw is not installed")


@pytest.mark.skipif(not shutil.which("ib_write_bw"), reason="NOT TESTED: no ib_write_bw")
@pytest.mark.skipif(Path(SYSFS).is_dir(), reason="this machine has a device of its own")
def test_perftests_own_refusal_is_the_reason(node):
    node.port("mlx5_0_1")  # the real tool asks the kernel, which has none
    done = pair(node)
    assert done.returncode != 0
    run = node.here / "run.2"
    assert (run / "dims").read_text() == "program=ib_write_bw\n"
    said = (run / "stdout").read_text() + (run / "stderr").read_text()
    with pytest.raises(OutputError) as error:
        perftest.parse(said)
    assert error.value.status == "generic"
    assert "perftest: " in str(error.value)


def test_options_name_the_device_its_port_and_the_gid(node):
    node.port("mlx5_3_2")
    bin_ = node.here / "bin"
    bin_.mkdir()
    for tool in ("ib_write_bw", "ib_write_lat"):  # stand-ins that print how they were called
        (bin_ / tool).write_text('#!/bin/sh\necho "${0##*/} $*"\n')
        (bin_ / tool).chmod(0o755)
    path = f"{bin_}:{os.environ['PATH']}"
    done = pair(node, DEVICE="mlx5_3", DEVICE_PORT="2", GID_INDEX="3", PATH=path)
    assert done.returncode == 0, done
    called = [(node.here / f"run.{n}/stdout").read_text().strip() for n in (2, 3)]
    assert called == [
        "ib_write_bw -p 18515 -s 1048576 -n 1000 --report_gbits -F -i 2 -d mlx5_3 -x 3 127.0.0.1",
        "ib_write_lat -p 18516 -s 8 -n 1000 -F -i 2 -d mlx5_3 -x 3 127.0.0.1",
    ]


def counted(phase, **counters):
    dims = {"port": "mlx5_0_1", "phase": phase}
    return [
        Reading("counter", Decimal(n), "count", {**dims, "counter": c}) for c, n in counters.items()
    ]


def measured():
    size, small = {"size": "1048576"}, {"size": "8"}
    return [
        Reading("bandwidth", Decimal("98.75"), "Gb/s", size),
        Reading("message_rate", Decimal("0.011772"), "MIOPS", size),
        *(
            Reading(name, Decimal(us), "us", small)
            for name, us in (
                ("typical", "1.84"),
                ("min", "1.79"),
                ("mean", "1.85"),
                ("p99", "1.98"),
                ("p999", "3.12"),
                ("max", "6.25"),
            )
        ),
    ]


def derived(readings):
    found, conditions = network.rdma_write(Measured(readings, {}, None, {}))
    return {(r.metric, r.dims.get("counter")): r.value for r in found}, conditions


def test_errors_that_grew_while_a_pair_was_measured_are_counted_and_named():
    found, conditions = derived(
        [
            *measured(),
            *counted("before", symbol_error=3, out_of_sequence=10, np_cnp_sent=1, link_downed=9),
            *counted("after", symbol_error=3, out_of_sequence=14, np_cnp_sent=50, link_downed=0),
        ]
    )
    assert found["errors_grown", None] == 4  # no congestion, and no counter that was reset
    assert found["error_grown", "out_of_sequence"] == 4
    assert found["latency", None] == Decimal("1.84")
    assert found["bandwidth", None] == Decimal("98.75")
    assert conditions == {"bandwidth_size": "1048576", "latency_size": "8"}


def test_without_counters_of_errors_none_can_have_grown():
    found, _ = derived(
        [*measured(), *counted("before", np_cnp_sent=1), *counted("after", np_cnp_sent=2)]
    )
    assert ("errors_grown", None) not in found


def test_a_turn_without_its_latency_is_refused():
    with pytest.raises(OutputError, match="values of typical"):
        derived(measured()[:2])
