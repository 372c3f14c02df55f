"""Checks in virtual machines: the same as on bare nodes, by the same criteria.

Two bare nodes, and two guests of QEMU without KVM, one with a paravirtual card and one with an
emulated one; a volume of a real Ceph is a disk of the first. One session measures all of it. The
figures are those of an emulated processor, so only their meaning is tested, and which criteria
they answer. Links are long: where other tests run beside, the turns of a pair are too short for a
guest.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from clone import TOP
from test_run_slurm import Suite
from testbed_fixture import Testbed

from siteproof.record import descriptions
from siteproof.record.finding import broke

pytestmark = [
    pytest.mark.testbed,
    pytest.mark.cloud,
    pytest.mark.tool("ReFrame", "Slurm", "QEMU", "Ceph"),
]

ROLES = {"bare": "node[001-002]", "virtio": "node003", "e1000": "node004"}
LINKS = {"bare": "node002", "virtio": "node003", "e1000": "node004"}  # each with node001
GUESTS = "node003:virtio,node004:e1000"
TOOLS = ("qemu-system-x86_64", "busybox", "ceph-osd", "ceph-mon", "ceph-mgr", "rbd", "fio")
CEPH = "/run/siteproof-cloud-pytest"
VOLUME = f"rbd:volumes/first:conf={CEPH}/ceph/ceph.conf"
# What bare nodes have by this machine's kernel, and guests by theirs, is made the same.
SAME_TCP = """
cd /proc/sys/net/ipv4 && echo reno >tcp_congestion_control
for file in tcp_rmem tcp_wmem; do echo '4096 131072 6291456' >$file; done
"""
# The kernel of a guest needs a moment for a disk that is attached.
DISK = (
    "for i in $(seq 60); do test -b /dev/vda && break; sleep 1; done;"
    " test -b /dev/vda || { echo 'no /dev/vda after 60 s' >&2; exit 1; };"
)
FORMAT = f"{DISK} mkfs.ext4 -q /dev/vda && mount /dev/vda /mnt"
CHECKS = "^(BlockStorage|RandomIo).*volume|^SystemDescription"
TCP, SESSIONS = "^TcpBandwidth", 3
SMALL = ("BlockStorage.size=16", "RandomIo.size=8", "TcpBandwidth.duration=4")
NEEDED = [tool for tool in TOOLS if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin")]
if NEEDED:
    pytestmark.append(pytest.mark.skip(reason=f"NOT TESTED: no {', '.join(NEEDED)}"))


def system():
    """The site: its partitions are the kinds of nodes, and one of all for the links."""
    hardware = "sockets: 1, cores_per_socket: 1, nics: {eth0: {speed: 10 Gb/s, mtu: 9000}}"
    lines = ["system: testbed", "description: Bare nodes and guests", "mode: maintenance"]
    lines += ["recognise: {cluster: testbed}", "hardware:"]
    lines += [f"  {kind}: {{description: A node, {hardware}}}" for kind in ("host", "guest")]
    lines += ["nodes:"]
    for role, nodes in ROLES.items():
        kind = "host" if role == "bare" else "guest"
        lines += [f"  {role}: {{set: '{nodes}', hardware: {kind}}}"]
    lines += ["file_systems:", "  volume: {path: /mnt, kind: ext4, roles: [virtio]}", "links:"]
    for name, client in LINKS.items():
        ends = f"servers: node001, clients: {client}, speed: 100 Gb/s, mtu: 9000"
        lines += [f"  {name}: {{description: A way, partition: all, {ends}}}"]
    lines += ["partitions:"]
    for name, measures in ({role: role for role in ROLES} | {"all": ""}).items():
        keys = f"measures: [{measures}], access: ['--partition=compute'], environments: [system]"
        role = name if measures else ", ".join(ROLES)
        lines += [f"  {name}: {{description: Nodes, role: [{role}], {keys}}}"]
    lines += ["environments:", "  system: {description: The distribution, features: [fio, iperf3]}"]
    return "\n".join(lines) + "\n"


def criteria():
    """Each twice: as a contract has it, and as one that an emulated processor may answer."""
    ratio = "TcpBandwidth.share_of_native, subject: system, against: {link: bare}"
    block = "subject: vm, nodes: [virtio]"
    of_volume = "inside: vm, file_system: volume"
    rows = {
        "READ": (f"BlockStorage.read, {block}, at_least: 200 MB/s", of_volume),
        "WRITE": (f"BlockStorage.write, {block}, at_least: 100 MB/s", of_volume),
        "RANDOM": (f"RandomIo.read, {block}, at_least: 100 MB/s", f"{of_volume}, block: 4096"),
        "VIRTIO": (f"{ratio}, links: [virtio], at_least: 0.95 x", ""),
        "E1000": (f"{ratio}, links: [e1000], at_least: 0.95 x", ""),
        "FLAGS": (
            "Instance.missing_flags, nodes: [virtio], against: {nodes: bare}, at_most: 0 count",
            "",
        ),
        "DRIVER": ("Instance.driver, nodes: [virtio], equals: virtio_net", ""),
        "BARE": ("TcpBandwidth.throughput, subject: pair, links: [bare], at_least: 2 Mb/s", ""),
    }
    lines = []
    for key, (row, rules) in rows.items():
        for prefix, emulated in (("", ""), ("EMU-", "emulated: processor")):
            conditions = ", ".join(filter(None, ["mode: maintenance", rules, emulated]))
            what = f"description: {key}, metric: {row}, conditions: {{{conditions}}}"
            lines += [f"{prefix}{key}: {{{what}, source: test bed}}"]
    return "\n".join(lines) + "\n"


def cloud(bed, *words):
    """A command of `testbed/cloud` on the login node."""
    program = TOP / "testbed" / "cloud"
    done = bed.run(["env", f"SITEPROOF_CLOUD_STATE={CEPH}", str(program), *words])
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    """The nodes, and the Ceph on the login node with a volume that is a disk of a guest."""
    made = Testbed("-guests")
    try:
        made.up("4", "--guests", GUESTS, "--share", tmp_path_factory.getbasetemp())
        cloud(made, "up", "ceph", "--at", "10.77.0.1")
        made.must("attach", "node003", VOLUME)
        made.run(["srun", "-N4", "sh", "-c", SAME_TCP])
        done = made.run(["srun", "-w", "node003", "sh", "-c", FORMAT])
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        if made.state.exists():
            made.command(
                "run", "env", f"SITEPROOF_CLOUD_STATE={CEPH}", TOP / "testbed/cloud", "down"
            )
            made.down()


@pytest.fixture(scope="module")
def suite(bed, tmp_path_factory):
    """The session of all that is no link."""
    found = Suite(bed, tmp_path_factory.mktemp("suite"))
    site = found.folder / "sites" / "testbed"
    site.mkdir(parents=True)
    (site / "system.yaml").write_text(system())
    (site / "criteria.yaml").write_text(criteria())
    (site / "baselines.yaml").write_text("{}\n")
    found.sites = f"SITEPROOF_SITES='{site.parent}'"
    words = [word for setting in SMALL for word in ("-S", setting)]
    # One job at a time: four kernels share this machine's processors.
    words += ["--exec-policy", "serial"]

    def measure(checks):
        done = found.reframe("-n", checks, *words, mode="maintenance", before=found.sites)
        return done.stdout + done.stderr

    found.measure, found.printed = measure, ""
    for _ in range(SESSIONS):  # where the machine is busy, a guest may be too slow for a check
        found.printed += measure(CHECKS)
        newest = max(s.header.session for s in found.samples())
        if not any(broke(s.status) for s in found.samples() if s.header.session == newest):
            break
    return found


@pytest.fixture(scope="module")
def linked(suite):
    """The session, with the links."""
    for _ in range(SESSIONS):  # where the machine is busy, a turn may be too short for a guest
        suite.printed += suite.measure(TCP)
        if set(links_measured(suite)) == {(link, way) for link in LINKS for way in (0, 1)}:
            break
    return suite


def links_measured(suite):
    """Each link and whether it is the way back of which the newest session has a value."""
    newest = max(s.header.session for s in suite.samples() if s.header.check == "TcpBandwidth")
    for sample in of(suite, "TcpBandwidth.throughput"):
        if sample.header.session == newest:
            yield sample.conditions["link"], int(sample.node == "node001")


@pytest.fixture(scope="module")
def verdicts(suite):
    return judged(suite)


@pytest.fixture(scope="module")
def verdicts_on_links(linked):
    return judged(linked)


def judged(suite):
    """The criteria of the verdict, by their ids."""
    line = f"cd '{TOP}' && . ./activate && export {suite.sites} SITEPROOF_DATA='{suite.data}'"
    done = suite.testbed.run(["sh", "-c", f"{line} && siteproof verdict --json"])
    assert done.stdout, done.stderr
    return {one["id"]: one for one in json.loads(done.stdout)["criteria"]}


def of(suite, metric):
    return [s for s in suite.samples() if s.metric == metric and s.status == "ok"]


def test_every_check_measures_bare_nodes_and_guests_alike(suite):
    lost = {s.node: s.why for s in suite.samples() if s.status != "ok"}
    nodes = {s.node for s in of(suite, "SystemDescription.fields")}
    assert nodes == {"node001", "node002", "node003", "node004"}, (lost, suite.printed)


def test_what_a_guest_measured_on_a_volume_of_ceph_was_measured_inside_a_virtual_machine(suite):
    for metric in ("BlockStorage.read", "BlockStorage.write", "RandomIo.read"):
        (conditions,) = {json.dumps(s.conditions, sort_keys=True) for s in of(suite, metric)}
        found = json.loads(conditions)
        assert (found["inside"], found["kind"]) == ("vm", "ext4")
        assert found["emulated"] == "processor"
        assert found["direct"] == "yes"


@pytest.mark.long
def test_a_pair_is_emulated_if_one_of_its_ends_is(linked):
    assert {link for link, _ in links_measured(linked)} == set(LINKS), linked.printed
    for sample in of(linked, "TcpBandwidth.throughput"):
        guest = {sample.node, sample.dims["peer"]} & {"node003", "node004"}
        assert ("emulated" in sample.conditions) == bool(guest), sample


REFUSED = {"READ", "WRITE", "RANDOM", "FLAGS", "DRIVER"}


def test_no_figure_of_an_emulated_processor_answers_a_contract(verdicts):
    for key in sorted(REFUSED):
        must_be_refused(verdicts[key])


def must_be_refused(verdict):
    assert verdict["verdict"] == "INCOMPLETE", verdict
    assert "emulated" in json.dumps(verdict)
    assert "processor" in json.dumps(verdict)


@pytest.mark.long
def test_no_share_of_an_emulated_way_answers_a_contract(verdicts_on_links):
    for key in ("VIRTIO", "E1000"):
        must_be_refused(verdicts_on_links[key])


def test_it_answers_a_criterion_that_allows_it(verdicts):
    for key in sorted(REFUSED):
        allowed = verdicts[f"EMU-{key}"]
        assert allowed["verdict"] in {"PASS", "FAIL"}, json.dumps(allowed, indent=1)


@pytest.mark.long
def test_the_real_thing_answers_both(verdicts_on_links):
    both = [verdicts_on_links[key]["verdict"] for key in ("BARE", "EMU-BARE")]
    assert both == ["PASS", "PASS"]


@pytest.mark.long
def test_the_ways_into_a_guest_have_their_share_of_the_bare_one(verdicts_on_links, record_property):
    both = {key: verdicts_on_links[f"EMU-{key}"] for key in ("VIRTIO", "E1000")}
    assert all(one["worst"] for one in both.values()), both
    shares = {key: one["worst"]["number"] for key, one in both.items()}
    shown = " ".join(f"{key.lower()} {share:.4f}" for key, share in shares.items())
    record_property("told", f"QEMU (TCG), TCP as a share of the bare path: {shown}")
    assert all(0 < share < 0.95 for share in shares.values())


def test_a_description_names_driver_and_processor(suite):
    sample = next(s for s in of(suite, "SystemDescription.fields") if s.node == "node003")
    found = descriptions.read(descriptions.path_of(suite.data / "perflogs", sample.header))
    assert "QEMU TCG" in found["node003"]["cpu.model"]
    assert found["node003"]["nic.eth0.driver"] == "virtio_net"


def test_a_guest_without_power_comes_back(bed):
    bed.power_off("node004")
    bed.power_on("node004")
    done = bed.run(["srun", "-w", "node004", "uname", "-n"])
    assert done.stdout.split() == ["node004"], done.stderr


def test_a_volume_moves_to_another_guest_with_what_is_on_it(bed):
    note = "echo kept >/mnt/note && umount /mnt"
    assert bed.run(["srun", "-w", "node003", "sh", "-c", note]).returncode == 0
    bed.must("detach", "node003")
    bed.must("attach", "node004", VOLUME)
    read = f"{DISK} mount /dev/vda /mnt && cat /mnt/note"
    done = bed.run(["srun", "-w", "node004", "sh", "-c", read])
    assert done.stdout.split() == ["kept"], done.stderr


def test_what_a_guest_cannot_have_is_refused(bed):
    wrong = {}
    for words, why in (
        (("run", "--node", "node003", "true"), "srun"),
        (("fault", "wrong-mtu", "node003"), "is a guest"),
        (("attach", "node002", "/nowhere"), "is no guest"),
        (("attach", "node003", "/nowhere"), "No such file"),
    ):
        done = bed.command(*words)
        if done.returncode not in (1, 2) or why not in done.stderr:
            wrong[words] = done
    assert not wrong


@pytest.mark.skipif(Path("/dev/vhost-net").exists(), reason="there is a /dev/vhost-net")
def test_a_card_that_the_hosts_kernel_serves_is_refused_with_the_reason():
    done = Testbed("-vhost").command("up", "2", "--guests", "node002:vhost")
    assert (done.returncode, "needs /dev/vhost-net" in done.stderr) == (2, True)


def test_nothing_is_left_of_guests(bed):
    """The last one: it takes the bed away."""
    mark = bed.mark
    command = ["pgrep", "-f", f"qemu.*{mark}"]
    assert len(subprocess.run(command, capture_output=True, text=True).stdout.split()) >= 2
    bed.command("run", "env", f"SITEPROOF_CLOUD_STATE={CEPH}", TOP / "testbed/cloud", "down")
    bed.down()
    assert subprocess.run(command, capture_output=True, text=True).stdout == ""
