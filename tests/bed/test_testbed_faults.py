"""Every fault alone: injected, seen by a plain command on the node, mended, gone."""

import contextlib
import os
import re
import subprocess
import time

import pytest
from bed_suite import all_idle
from clone import PATIENCE, before_others, rises_above
from testbed_fixture import until

pytestmark = pytest.mark.testbed

NODE = "node005"
TCP = ("/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem")
SACK = "net.ipv4.tcp_sack=0"
BUFFERS = "4096\t16384\t32768\n"
KERNEL = ["cut", "-d ", "-f-3", "/proc/sys/kernel/osrelease", "/proc/version"]
DPKG = ["dpkg-query", "-W", "-f", "${Version}", "munge"]
MEMORY = ["awk", "/^MemTotal/ {print $2}", "/proc/meminfo"]

SEND = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(0, 10, 2)  # IP_MTU_DISCOVER = DO: no fragments
for number in range(int(sys.argv[3])):
    out.sendto(bytes(int(sys.argv[2])), (sys.argv[1], 5003))
    if number % 20 == 0:
        time.sleep(0.001)
"""
RECEIVE = """
import select, socket, sys, time
into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
into.setsockopt(1, 33, 16 << 20)  # SO_RCVBUFFORCE
into.bind(("", 5003))
print("ready", flush=True)
got, sources = [], [into, sys.stdin]
# The end of stdin is that of the sender; half a second later nothing is under way.
while ready := select.select(sources, [], [], None if sys.stdin in sources else 0.5)[0]:
    if into in ready:
        into.recv(9999)
        got.append(time.monotonic())
    else:
        sources.remove(sys.stdin)
print(len(got), got[-1] - got[0] if got else 0)
"""


def state_of(testbed, node=NODE):
    return testbed.run(["sinfo", "-hn", node, "-o", "%T"]).stdout.strip()


def job(testbed, *argv):
    """What a job on the node prints."""
    return testbed.run(["srun", "-w", NODE, *argv]).stdout


def faults_in(status):
    return re.findall(r"^fault +\d+  (.*)", status, re.MULTILINE)


@contextlib.contextmanager
def faulty(testbed, name, value=None):
    """With this fault; afterwards status says that it is gone."""
    testbed.fault(name, NODE, value=value)
    try:
        assert faults_in(testbed.command("status").stdout) == [
            f"{NODE}  {name}" + (f" {value}" if value else "")
        ]
        yield
    finally:
        testbed.mend(NODE)
    status = testbed.command("status").stdout
    assert faults_in(status) == []
    all_idle(testbed)


def datagrams(testbed, source, target, size, count):
    """(how many of count arrived, seconds between the first and the last)."""
    python = [*before_others(), "python3", "-c"]
    with running(testbed, target, *python, RECEIVE) as receiver:
        assert receiver.stdout.readline() == "ready\n"
        sent = testbed.run([*python, SEND, target, str(size), str(count)], node=source)
        assert sent.returncode == 0, sent.stderr
        receiver.stdin.close()
        got, duration = receiver.stdout.read().split()
    return int(got), float(duration)


@contextlib.contextmanager
def running(testbed, node, *argv):
    """A process on a node, meanwhile."""
    words = [testbed.program, "run", "--node", node, *argv]
    env = os.environ | testbed.environment
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd="/"
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


# What a file says, in a job that started after the fault


def test_a_node_tells_the_wrong_things_until_it_is_mended(testbed):
    wrong = {
        "wrong-mtu": ("1400", ["cat", "/sys/class/net/eth0/mtu"], "1400\n"),
        "wrong-sysctl": (SACK, ["cat", "/proc/sys/net/ipv4/tcp_sack"], "0\n"),
        "small-buffers": ("32KiB", ["cat", *TCP], BUFFERS * 2),
        "wrong-memory": ("2GiB", MEMORY, "2097152\n"),
        "other-kernel": ("5.4.0-1", KERNEL, "5.4.0-1\nLinux version 5.4.0-1\n"),
        "other-package": ("munge=0.0.1", DPKG, "0.0.1"),
    }
    looks = {name: look for name, (_, look, _) in wrong.items()}
    before = {name: job(testbed, *look) for name, look in looks.items()}
    here = {name: testbed.run(look).stdout for name, look in looks.items()}
    for name, (value, _, _) in wrong.items():
        testbed.fault(name, NODE, value=value)
    try:
        told = {f"{NODE}  {name} {value}" for name, (value, _, _) in wrong.items()}
        assert set(faults_in(testbed.command("status").stdout)) == told
        for name, (_, look, seen) in wrong.items():
            assert seen not in (before[name], here[name]), name
            assert job(testbed, *look) == seen, name
            assert testbed.run(look, node=NODE).stdout == seen, name
            assert testbed.run(look).stdout == here[name], name
    finally:
        testbed.mend(NODE)
    assert faults_in(testbed.command("status").stdout) == []
    assert {name: job(testbed, *look) for name, look in looks.items()} == before


# Links and disks


def test_packets_above_a_wrong_mtu_are_lost_without_a_word(testbed):
    with faulty(testbed, "wrong-mtu", "1500"):
        assert datagrams(testbed, "node001", NODE, 1472, 5)[0] == 5
        assert datagrams(testbed, "node001", NODE, 8972, 5)[0] == 0
    assert datagrams(testbed, "node001", NODE, 8972, 5)[0] == 5


WAYS = [("node001", NODE), (NODE, "node001")]


def test_a_lossy_link_loses_its_share_each_way(testbed):
    with faulty(testbed, "lossy-link", "20%"):
        for way in WAYS:
            got, _ = datagrams(testbed, *way, 100, 4000)
            assert 0.77 < got / 4000 < 0.83, way  # five standard deviations
    for way in WAYS:
        assert datagrams(testbed, *way, 100, 500)[0] == 500, way


def test_a_capped_link_is_slow_each_way(testbed):
    def rate(*way):
        got, duration = datagrams(testbed, *way, 8000, 200)
        return got * 8000 * 8 / duration / 1e6

    with faulty(testbed, "capped-link", "50mbit"):
        for way in WAYS:
            # The queue holds 20 ms; of 256 ms at 50 Mbit/s the rest is lost: the rate is the cap.
            rises_above(40, lambda way=way: rate(*way), 70)
    for way in WAYS:
        rises_above(200, lambda way=way: rate(*way))


def test_a_full_disk_takes_no_byte_and_loses_none(testbed):
    testbed.run(["sh", "-c", "echo kept > /tmp/kept"], node=NODE)
    write = ["dd", "if=/dev/zero", "of=/tmp/more", "bs=4096", "count=1", "status=none"]
    with faulty(testbed, "full-disk", "0"):
        done = testbed.run(write, node=NODE)
        assert (done.returncode, "No space left" in done.stderr) == (1, True)
        assert job(testbed, "df", "--output=avail", "/tmp").split() == ["Avail", "0"]
        assert testbed.run(write, node="node004").returncode == 0
    assert testbed.run(write, node=NODE).returncode == 0
    assert testbed.run(["cat", "/tmp/kept"], node=NODE).stdout == "kept\n"


@pytest.mark.long
def test_a_slow_disk_is_slow_for_jobs_and_only_there(testbed):
    write = ["dd", "if=/dev/zero", f"of={testbed.path}/slow", "bs=1M", "count=8", "oflag=direct"]

    def seconds(node):
        start = time.monotonic()
        done = testbed.run(["srun", "-w", node, *write])
        if "Invalid argument" in done.stderr:
            pytest.skip("NO DIRECT INPUT AND OUTPUT, NOT TESTED")
        return time.monotonic() - start

    done = testbed.command("fault", "slow-disk", NODE, "--value", "4MB/s")
    if done.returncode == 2:
        pytest.skip(f"NO SLOW DISK, NOT TESTED: {done.stderr.strip()}")
    try:
        assert seconds(NODE) > 1.8
        until(lambda: seconds("node004") < 1.5, "a fast disk elsewhere")
        until(lambda: 1.8 < seconds(NODE) < 6, "a slow disk that still writes")
    finally:
        testbed.mend(NODE)
    until(lambda: seconds(NODE) < 1.5, "a fast disk again")


@pytest.mark.long
def test_a_slow_cpu_gives_a_job_its_share(testbed):
    if (done := testbed.command("fault", "slow-cpu", NODE, "--value", "0.2")).returncode == 2:
        pytest.skip(f"NO CPU QUOTA, NOT TESTED: {done.stderr.strip()}")
    testbed.mend(NODE)
    spin = "import time\nend = time.time() + 1\nwhile time.time() < end: pass\n"
    spin += "print(time.process_time())"
    with faulty(testbed, "slow-cpu", "0.2"):
        share = float(job(testbed, "python3", "-c", spin))
    assert share < 0.4
    rises_above(1.2 * share, lambda: float(job(testbed, "python3", "-c", spin)))


def test_a_slow_cpu_by_default_has_a_quarter_of_a_nodes_part_of_the_processors(testbed):
    if (done := testbed.command("fault", "slow-cpu", NODE)).returncode == 2:
        pytest.skip(f"NO CPU QUOTA, NOT TESTED: {done.stderr.strip()}")
    try:
        status = testbed.must("status")
        assert faults_in(status) == [f"{NODE}  slow-cpu 25%"]
        cores = float((testbed.state / f"nodes/{NODE}.quota").read_text())
    finally:
        testbed.mend(NODE)
    nodes = int(re.search(r"^up, (\d+) nodes", status)[1])
    assert cores == pytest.approx(max(len(os.sched_getaffinity(0)) / nodes / 4, 0.01))


# Outages


def test_a_hung_node_stands_still_and_goes_on_where_it_was(testbed):
    def beats(node):
        file = testbed.path / f"beat-{node}"
        return file.read_text().count("\n") if file.exists() else 0

    def until_beats(node, more):
        least = beats(node) + more
        until(lambda: beats(node) >= least, f"{more} beats of {node}", lambda: beats(node))

    with contextlib.ExitStack() as both:
        for node in (NODE, "node004"):
            # No job of Slurm's, which gives the node up and ends its jobs if this takes long.
            script = f"while :; do echo >>{testbed.path}/beat-{node}; sleep 0.1; done"
            both.enter_context(running(testbed, node, "sh", "-c", script))
            until_beats(node, 1)
        with faulty(testbed, "hung"):
            before = beats(NODE)
            done = testbed.run(["true"], node=NODE)
            assert (done.returncode, done.stderr) == (1, f"testbed: {NODE} hangs\n")
            ping = ["ping", "-c1", f"-W{PATIENCE}", NODE]
            assert testbed.run(ping).returncode in (0, 127)  # 127: no ping here
            until_beats("node004", 5)
            assert beats(NODE) == before
        until_beats(NODE, 1)


@pytest.mark.long
def test_slurm_gives_up_a_hung_node_and_takes_it_back(testbed):
    with faulty(testbed, "hung"):
        # MessageTimeout, 30 s, for an answer; SlurmdTimeout, 15 s, beside it; and it asks again.
        until(lambda: state_of(testbed) == "down*", "down*", lambda: state_of(testbed))


def test_a_node_without_power_is_off_until_it_is_mended(testbed):
    testbed.fault("wrong-mtu", NODE)  # this goes with the power
    with faulty(testbed, "power-loss"):
        assert testbed.run(["true"], node=NODE).stderr == f"testbed: {NODE} is off\n"
    assert job(testbed, "cat", "/sys/class/net/eth0/mtu") == "9000\n"


def test_the_older_commands_are_faults_too(testbed):
    testbed.power_off(NODE)
    testbed.must("kill-slurmd", "node006")
    status = testbed.command("status").stdout
    assert faults_in(status) == [f"{NODE}  power-loss", "node006  killed-slurmd"]
    testbed.mend(NODE)
    testbed.power_on("node006")
    assert faults_in(testbed.must("status")) == []


def test_a_killed_slurmd_is_gone_until_it_is_mended(testbed):
    daemons = ["ps", "-e", "-o", "comm="]
    with faulty(testbed, "killed-slurmd"):
        assert "slurmd" not in testbed.run(daemons, node=NODE).stdout.split()
    assert "slurmd" in testbed.run(daemons, node=NODE).stdout.split()


def test_a_restarted_slurmctld_is_another_process(testbed):
    find = ["pgrep", "-x", "slurmctld"]
    before = testbed.run(find).stdout
    testbed.fault("restarted-slurmctld")
    assert before != testbed.run(find).stdout != ""
    assert faults_in(testbed.must("status")) == []


def test_a_flapping_node_loses_its_slurmd_again_and_again(testbed):
    find = ["pgrep", "-x", "slurmd"]
    seen = set()  # a look may come between its end and its start, or not

    def three():
        seen.add(testbed.run(find, node=NODE).stdout)
        return len(seen - {""}) > 2

    with faulty(testbed, "flapping", "1s"):
        until(three, "a third slurmd", lambda: seen)
    assert testbed.run(find, node=NODE).stdout != ""


# Words


def test_two_faults_of_two_nodes_are_mended_one_by_one(testbed):
    testbed.fault("wrong-mtu", "node002", "node003", value="1400")
    testbed.fault("small-buffers", "node003")
    assert faults_in(testbed.must("status")) == [
        "node002,node003  wrong-mtu 1400",
        "node003  small-buffers 64KiB",
    ]
    testbed.must("mend", "node003", "wrong-mtu")
    assert faults_in(testbed.must("status"))[0] == "node002  wrong-mtu 1400"
    testbed.mend("node002", "node003")
    assert faults_in(testbed.must("status")) == []


def test_fault_alone_lists_every_fault_in_one_line_each(testbed):
    lines = testbed.must("fault").splitlines()
    assert len(lines) == 17
    assert all(re.match(r"[a-z-]+ +\S.{20,}", line) for line in lines)


def test_a_wrong_fault_is_one_line_and_exit_code_2_and_changes_nothing(testbed):
    wrong = {}
    for words in (
        ["fault", "no-such-fault", "node001"],
        ["fault", "hung"],
        ["fault", "hung", "node999"],
        ["fault", "hung", "login"],
        ["fault", "hung", "node001", "--value", "1"],
        ["fault", "restarted-slurmctld", "node001"],
        ["fault", "slow-cpu", "node001", "--value", "-1"],
        ["fault", "slow-cpu", "node001", "--value", "101%"],
        ["fault", "capped-link", "node001", "--value", "fast"],
        ["fault", "lossy-link", "node001", "--value", "101%"],
        ["fault", "wrong-mtu", "node001", "--value", "9"],
        ["fault", "wrong-sysctl", "node001", "--value", "kernel.panic=1"],
        ["fault", "wrong-sysctl", "node001", "--value", "net.ipv4.../../kernel/panic=1"],
        ["fault", "wrong-sysctl", "node001", "--value", "net.ipv4.no_such=1"],
        ["fault", "other-package", "node001", "--value", "no-such-package=1"],
        ["mend"],
        ["mend", "hung"],
        ["mend", "node001", "hung"],
        ["mend", "node999"],
    ):
        done = testbed.command(*words)
        line = re.fullmatch(r"testbed: .+\n", done.stderr)
        if (done.returncode, done.stdout, bool(line)) != (2, "", True):
            wrong[" ".join(words)] = done
    assert not wrong
    assert faults_in(testbed.command("status").stdout) == []


def test_a_fault_is_not_injected_twice(testbed):
    with faulty(testbed, "wrong-mtu", "1500"):
        done = testbed.command("fault", "wrong-mtu", "node001", NODE)
        assert done.returncode == 2
        assert "'testbed mend node005' undoes it" in done.stderr
