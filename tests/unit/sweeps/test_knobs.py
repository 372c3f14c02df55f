"""Knobs of a tuning sweep: set, read back and restored, also after a crash.

In a network namespace of its own, where the kernel has parameters and an interface that nobody else
uses. Lustre cannot run here: lctl and lnetctl are stand-ins that answer as the manual says.
"""

import os
import shutil
import signal
import subprocess
import warnings

import pytest
from clone import PATIENCE, TOP, wait_for

from siteproof.sweeps import keys

pytestmark = pytest.mark.command  # a network and a process of its own each

SCRIPTS = TOP / "siteproof/checks/on_node"
PARAMETER = "/proc/sys/net/ipv4/tcp_rmem"
RMEM = "knob.sysctl.net.ipv4.tcp_rmem"
ASKED = "4096 87380 67108864"
WALK = """stage=$(pwd) SITEPROOF_ATTEMPT=1
. ./knob.sh
"""


class Node:
    """A network namespace with one interface, d0, that leads to 10.9.9.2; and a stage directory."""

    def __init__(self, stage):
        self.stage, self.name = stage, f"knobs-{os.getpid()}-{stage.name}"[:60]
        for script in ("knob.sh", "knob_hold.sh", "knob_kinds.sh"):
            shutil.copy(SCRIPTS / script, stage)
        (stage / "bin").mkdir()
        # The scripts look once a second, and wait 2 s for a step that is about to end.
        self.stand_in("sleep", 'case $1 in 1 | 2) set -- "0.$1" ;; esac\nexec /bin/sleep "$@"\n')
        self.environment = os.environ | {
            "SITEPROOF_KNOB_RECORDS": str(stage / "records"),
            "KNOB_PEERS": "10.9.9.1 10.9.9.2",
            "SLURM_JOB_ID": "",
            "SITEPROOF_JOB": "",
            "PATH": f"{stage}/bin:{os.environ['PATH']}",
        }
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        batch = "link add d0 type veth peer name d1\naddr add 10.9.9.1/24 dev d0\n"
        (stage / "net").write_text(f"{batch}link set d0 up\nlink set d1 up\n")
        self.must("ip", "-batch", stage / "net")

    def run(self, *words, **options):
        return subprocess.run(
            self.inside(*words),
            capture_output=True,
            text=True,
            cwd=self.stage,
            env=self.environment,
            timeout=PATIENCE,
            **options,
        )

    def inside(self, *words):
        return ["nsenter", f"--net=/run/netns/{self.name}", "--", *words]

    def must(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    def combinations(self, *each):
        every = list(dict.fromkeys(knob for values in each for knob in values))
        text = "".join(f"{line}\n" for line in keys.lines(each, every))
        (self.stage / "knobs").write_text(text)

    def walk(self, script):
        return self.run("sh", "-c", WALK + script)

    def start(self, script):
        """A walker in a group of its own, once n1 has set its knobs."""
        walker = subprocess.Popen(
            self.inside("sh", "-c", WALK + script),
            cwd=self.stage,
            env=self.environment,
            start_new_session=True,
        )
        self.wait_for("set")
        return walker

    def wait_for(self, name):
        wait_for(lambda: [*self.stage.glob(f"knobs.d/*/n1.{name}")])

    def holder(self):
        record = (self.stage / "records" / "n1").read_text()
        return int(record.split("holder ")[1].split()[0])

    def stand_in(self, name, script):
        """A program of this name, in the stage directory, with its state in `state`."""
        path = self.stage / "bin" / name
        path.write_text(f"#!/bin/sh\ncd {self.stage}\n{script}")
        path.chmod(0o755)


@pytest.fixture
def node(tmp_path):
    if os.geteuid() != 0:
        warnings.warn("NOT ROOT, KNOBS NOT TESTED", stacklevel=2)
        pytest.skip("knobs are set by root")
    made = Node(tmp_path)
    yield made
    subprocess.run(["ip", "netns", "del", made.name], check=True)


def test_a_knob_is_set_read_back_and_restored(node):
    before = node.must("cat", PARAMETER)
    node.combinations({RMEM: ASKED}, {RMEM: "4096 87380 1048576"})
    done = node.walk(
        f"knobs_set 1 n1 && knobs_facts && cat {PARAMETER} && knobs_set 2 n1 &&"
        f" cat {PARAMETER} && knobs_restore"
    )
    assert done.stdout.split() == [
        f"{RMEM}=4096",
        "87380",
        "67108864",
        *ASKED.split(),
        "4096",
        "87380",
        "1048576",
    ]
    assert (done.returncode, node.must("cat", PARAMETER)) == (0, before)
    assert keys.not_restored(node.stage) == {}
    assert not (node.stage / "records" / "n1").exists()


def test_points_with_the_same_knobs_keep_one_holder(node):
    node.combinations({RMEM: ASKED})
    done = node.walk("knobs_set 1 n1 && knobs_set 1 n1 && knobs_restore")
    assert done.returncode == 0
    assert len([*node.stage.glob("knobs.d/*")]) == 1


def test_the_interface_that_leads_to_the_other_node_is_found(node):
    mtu, queue = ("knob.nic.{interface}.mtu", "knob.nic.{interface}.txqueuelen")
    node.must("ip", "link", "set", "d0", "mtu", "1500", "txqueuelen", "777")
    node.combinations({mtu: "9000", queue: "10000"}, {queue: "500"})
    read = "cat /sys/class/net/d0/mtu /sys/class/net/d0/tx_queue_len"
    show = "ip -o link show d0 | sed 's/.*mtu \\([0-9]*\\).*qlen \\([0-9]*\\).*/\\1 \\2/'"
    # /sys is the namespace's own only where it is mounted there
    script = (
        f"mount -t sysfs none /sys; {WALK}knobs_set 1 n1 && {show} && knobs_set 2 n1 && "
        f"knobs_facts && knobs_restore && {read}"
    )
    done = node.run("unshare", "-m", "sh", "-c", script)
    assert done.stdout.splitlines() == ["9000 10000", f"{mtu}=1500", f"{queue}=500", "1500", "777"]


def test_a_refused_value_leaves_everything_as_it_was(node):
    before = node.must("cat", PARAMETER)
    node.combinations({RMEM: ASKED, "knob.sysctl.net.ipv4.ip_default_ttl": "999"})
    done = node.walk("knobs_set 1 n1")
    assert done.returncode == 1
    assert done.stderr == "n1: knob.sysctl.net.ipv4.ip_default_ttl: '999' was refused\n"
    assert node.must("cat", PARAMETER) == before


def test_a_value_that_reads_back_as_another_is_no_point(node):
    node.combinations({"knob.sysctl.net.ipv4.tcp_retries2": "010"})  # octal, for the kernel
    done = node.walk("knobs_set 1 n1")
    assert done.returncode == 1
    assert done.stderr == (
        "n1: knob.sysctl.net.ipv4.tcp_retries2: requested '010', read back '8' "
        "(sysctl net/ipv4/tcp_retries2)\n"
    )


def test_an_unknown_parameter_is_told(node):
    node.combinations({"knob.sysctl.net.ipv4.nonsense": "7"})
    done = node.walk("knobs_set 1 n1")
    assert (done.returncode, done.stderr) == (
        1,
        "n1: net.ipv4.nonsense: this kernel has no such parameter here\n",
    )


def test_without_root_nothing_is_tried(node):
    node.combinations({RMEM: ASKED})
    node.stage.chmod(0o777)
    for folder in [*node.stage.parents][:3]:
        folder.chmod(folder.stat().st_mode | 0o055)
    done = node.run(
        "setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", WALK + "knobs_set 1 n1"
    )
    assert (done.returncode, done.stderr) == (
        1,
        "n1: knobs are set by root, and this job is not root's\n",
    )


def test_a_killed_holder_is_mended_when_the_knobs_are_restored(node):
    before = node.must("cat", PARAMETER)
    node.combinations({RMEM: ASKED})
    walker = node.start("knobs_set 1 n1; while [ ! -e go ]; do sleep 0.1; done; knobs_restore")
    os.kill(node.holder(), signal.SIGKILL)
    assert node.must("cat", PARAMETER) == ASKED
    (node.stage / "go").touch()
    assert walker.wait(20) == 0
    assert node.must("cat", PARAMETER) == before
    assert keys.not_restored(node.stage) == {}


def test_a_holder_that_is_ended_restores(node):
    before = node.must("cat", PARAMETER)
    node.combinations({RMEM: ASKED})
    for sent in (signal.SIGTERM, signal.SIGHUP):
        shutil.rmtree(node.stage / "knobs.d", ignore_errors=True)
        walker = node.start("knobs_set 1 n1; sleep 60")
        os.kill(node.holder(), sent)
        node.wait_for("restored")
        assert node.must("cat", PARAMETER) == before, sent
        os.killpg(walker.pid, signal.SIGKILL)
        walker.wait()


def test_a_holder_whose_walker_has_died_restores(node):
    before = node.must("cat", PARAMETER)
    node.combinations({RMEM: ASKED})
    walker = node.start("knobs_set 1 n1; sleep 60")
    walker.kill()
    walker.wait()
    node.wait_for("restored")
    assert node.must("cat", PARAMETER) == before


def test_after_a_crash_of_all_the_next_sweep_restores_first(node):
    before = node.must("cat", PARAMETER)
    node.combinations({RMEM: ASKED}, {RMEM: ""})
    walker = node.start("knobs_set 1 n1; sleep 60")
    os.killpg(walker.pid, signal.SIGKILL)
    walker.wait()
    assert node.must("cat", PARAMETER) == ASKED
    told = keys.not_restored(node.stage)["n1"]
    assert told.startswith("may not be restored (sysctl net/ipv4/tcp_rmem was " + before)
    shutil.rmtree(node.stage / "knobs.d")
    done = node.walk("knobs_set 2 n1 && knobs_facts && knobs_restore")
    assert done.stdout == f"{RMEM}={before}\n"
    assert node.must("cat", PARAMETER) == before


def test_a_full_disk_does_not_keep_a_node_from_being_restored(node):
    before = node.must("cat", PARAMETER)
    folder = node.stage / "knobs.d"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
    try:
        node.combinations({RMEM: ASKED})
        walker = node.start("knobs_set 1 n1; while [ ! -e go ]; do sleep 0.1; done; knobs_restore")
        with pytest.raises(OSError, match="No space"):
            (folder / "full").write_bytes(bytes(2**20))
        assert node.must("cat", PARAMETER) == ASKED
        (node.stage / "go").touch()
        assert walker.wait(20) == 0
        assert node.must("cat", PARAMETER) == before
        assert keys.not_restored(node.stage) == {}
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_two_sweeps_on_one_node_are_refused(node):
    node.combinations({RMEM: ASKED})
    walker = node.start("knobs_set 1 n1; sleep 60; :")
    done = node.run("sh", "-c", WALK.replace("ATTEMPT=1", "ATTEMPT=2") + "knobs_set 1 n1")
    assert (done.returncode, done.stderr) == (1, "n1: another sweep holds knobs of this node\n")
    assert node.must("cat", PARAMETER) == ASKED
    os.kill(node.holder(), signal.SIGTERM)
    node.wait_for("restored")
    os.killpg(walker.pid, signal.SIGKILL)
    walker.wait()


LCTL = """[ -e a ] || { echo 8 >a; echo 16 >b; }
case $1,$2,$3 in
get_param,-n,*OST0000*) cat a ;;
get_param,-n,*OST0001*) cat b ;;
get_param,osc.*,) echo osc.f-OST0000-osc.max_rpcs_in_flight=$(cat a)
    echo osc.f-OST0001-osc.max_rpcs_in_flight=$(cat b) ;;
set_param,*OST0000*=*,) echo "${2#*=}" >a ;;
set_param,*OST0001*=*,) [ -e stubborn ] || echo "${2#*=}" >b ;;
*) exit 2 ;;
esac
"""
RPCS = "knob.lustre.osc.*.max_rpcs_in_flight"


def test_of_a_lustre_parameter_every_device_is_set_and_gets_its_own_value_back(node):
    node.stand_in("lctl", LCTL)
    node.combinations({RPCS: "64"}, {RPCS: ""})
    done = node.walk(
        "knobs_set 1 n1 && knobs_facts && cat a b; knobs_set 2 n1 && knobs_facts &&"
        " knobs_restore && cat a b"
    )
    assert done.stdout.split() == [f"{RPCS}=64", "64", "64", f"{RPCS}=8", "|", "16", "8", "16"]


def test_one_lustre_device_with_another_value_is_no_point(node):
    node.stand_in("lctl", LCTL)
    (node.stage / "stubborn").touch()
    node.combinations({RPCS: "64"})
    done = node.walk("knobs_set 1 n1")
    assert (done.returncode, done.stderr) == (
        1,
        f"n1: {RPCS}: requested '64', read back '16' "
        "(lustre osc.f-OST0001-osc.max_rpcs_in_flight)\n",
    )
    assert (node.stage / "a").read_text() == "8\n"


LNETCTL = """[ -e state ] || echo "8 256" >state
case "$*" in "net show -v") [ ! -e out ] || exit 0 ;; "net del"*) [ ! -e out ] || exit 1 ;; esac
read -r peer credits <state
case "$*" in
"net show -v") cat <<END
net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          statistics:
              send_count: 0
    - net type: tcp
      local NI(s):
        - nid: 10.9.9.1@tcp
          status: up
          interfaces:
              0: d0
          statistics:
              send_count: 12
          tunables:
              peer_timeout: 180
              peer_credits: $peer
              peer_buffer_credits: 0
              credits: $credits
          lnd tunables:
              conns_per_peer: 1
END
;;
"net del --net tcp --if d0") touch out ;;
"net add --net tcp --if d0 "*)
    while [ $# -gt 0 ]; do
        case $1 in --peer-credits) peer=$2 ;; --credits) credits=$2 ;; esac
        shift
    done
    [ "$credits" -le 9999 ] || exit 22
    rm out
    echo "$peer $credits" >state ;;
*) exit 2 ;;
esac
"""


def test_lnet_credits_are_set_by_adding_the_interface_again(node):
    node.stand_in("lnetctl", LNETCTL)
    node.combinations({"knob.lnet.peer_credits": "64", "knob.lnet.credits": "2048"})
    done = node.walk("knobs_set 1 n1 && knobs_facts && cat state && knobs_restore && cat state")
    assert done.stdout.splitlines() == [
        "knob.lnet.peer_credits=64",
        "knob.lnet.credits=2048",
        "64 2048",
        "8 256",
    ]


def test_an_interface_that_lnet_did_not_take_again_is_added_as_it_was(node):
    node.stand_in("lnetctl", LNETCTL)
    node.combinations({"knob.lnet.credits": "10000"})
    done = node.walk("knobs_set 1 n1 || cat state")
    assert done.stdout == "8 256\n"
    assert not (node.stage / "out").exists()
    assert keys.not_restored(node.stage) == {}


def test_an_option_of_a_module_needs_a_reload(node):
    node.stand_in("lnetctl", LNETCTL)
    node.combinations({"knob.lnet.peer_credits_hiw": "64"})
    assert node.walk("knobs_set 1 n1").stderr == (
        "n1: lnet.peer_credits_hiw: cannot be changed at run time: an option of the module, "
        "needs a reload\n"
    )


def test_without_lustre_the_missing_program_is_named(node):
    if shutil.which("lctl"):
        pytest.skip("this machine has Lustre")
    node.combinations({RPCS: "64"})
    assert node.walk("knobs_set 1 n1").stderr == "n1: lctl is not installed: no Lustre client\n"
