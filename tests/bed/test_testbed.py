"""The testbed itself: what a cluster of namespaces must do, and that nothing stays of it."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clone import PATIENCE, TOP
from testbed_fixture import until

pytestmark = pytest.mark.testbed

NODES = [f"node{number:03}" for number in range(1, 9)]
WAIT = "until [ -e go ]; do sleep 0.2; done"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def job_state(testbed, job):
    out = testbed.run(["scontrol", "-o", "show", "job", job]).stdout
    return re.search(r"JobState=(\w+)", out).group(1)


def submit(testbed, *words, user=None):
    out = testbed.run(["sbatch", "--parsable", *words], user=user).stdout.strip()
    until(lambda: job_state(testbed, out) == "RUNNING", f"job {out} to run")
    return out


def all_idle(testbed):
    until(lambda: testbed.command("status").returncode == 0, "idle nodes")


@pytest.fixture
def program(testbed):
    """The program at a place where an ordinary user can read it."""
    copy = testbed.path / "program"
    shutil.copytree(testbed.program.parent, copy, dirs_exist_ok=True)
    return copy / "testbed"


# A cluster


def test_no_rank_leaves_a_fence_of_pmix_before_all_have_come(testbed):
    """OpenMPI's ranks of nodes that were still in MPI_Init crashed by what came in too early."""
    program = testbed.path / "fence"
    source = Path(__file__).parents[1] / "support/pmix_fence.c"
    (library,) = Path("/usr/lib").glob("*/libpmix.so.2")
    headers = f"-I{library.parent}/pmix2/include"
    subprocess.run(["cc", headers, source, "-o", program, library], check=True)
    done = testbed.run(["srun", "-N4", "-n8", "--overcommit", "--mpi=pmix", program])
    assert done.returncode == 0, done.stderr
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("fence ")]
    assert len(rows) == 2 * 8
    for number in "01":
        times = [(float(entered), float(left)) for n, _, entered, left in rows if n == number]
        assert max(entered for entered, _ in times) <= min(left for _, left in times)


def test_status_names_eight_idle_nodes(testbed):
    all_idle(testbed)
    first, idle, versions = testbed.must("status").splitlines()
    assert (first, idle.split()) == ("up, 8 nodes", ["idle", "8", "node[001-008]"])
    slurm = testbed.run(["sinfo", "--version"]).stdout.split()[1]
    assert versions.startswith(f"versions     Slurm {slurm}, munge ")


def test_the_login_node_is_no_compute_node(testbed):
    assert testbed.run(["hostname"]).stdout == "login\n"
    assert testbed.run(["sinfo", "-hN", "-o", "%N"]).stdout.split() == NODES


def test_every_node_is_a_host_of_its_own(testbed):
    script = (
        "echo $(hostname) $(cat /etc/hostname) $(cat /sys/class/net/eth0/mtu)"
        " $(ip -o -4 addr show eth0 | cut -d' ' -f7) $(ps -e -o comm= | head -1)"
    )
    lines = testbed.run(["srun", "-N8", "sh", "-c", script]).stdout.splitlines()
    assert sorted(lines) == [
        f"{node} {node} 9000 10.77.1.{number}/32 sleep" for number, node in enumerate(NODES, 1)
    ]


def test_a_node_keeps_its_temporary_files_to_itself(testbed):
    marks = [f"{folder}/siteproof-{os.getpid()}" for folder in ("/tmp", "/dev/shm")]
    testbed.run(["touch", *marks], node="node001")
    script = f"ls {' '.join(marks)} 2>/dev/null && hostname"
    found = testbed.run(["srun", "-N8", "sh", "-c", script]).stdout
    assert sorted(found.split()) == sorted([*marks, "node001"])
    assert not any(Path(mark).exists() for mark in marks)


def test_nodes_reach_each_other_with_whole_packets_of_9000_bytes(testbed):
    receive = f"import socket as s; r = s.socket(s.AF_INET, s.SOCK_DGRAM); r.settimeout({PATIENCE})"
    receive += "; r.bind(('', 5001)); print('ready', flush=True); print(len(r.recv(9999)))"
    send = "import socket as s; o = s.socket(s.AF_INET, s.SOCK_DGRAM); o.setsockopt(0, 10, 2)"
    send += "; o.sendto(bytes(8972), ('node008', 5001))"  # IP_MTU_DISCOVER = DO: no fragments
    words = [testbed.program, "run", "--node", "node008", "python3", "-c", receive]
    env = os.environ | testbed.environment
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env, cwd="/") as receiver:
        assert receiver.stdout.readline() == "ready\n"
        assert testbed.run(["python3", "-c", send], node="node001").returncode == 0
        assert receiver.stdout.read() == "8972\n"


def test_all_nodes_see_the_shared_folders_under_tmp(testbed, tmp_path):
    (tmp_path / "seen").write_text("yes\n")
    assert testbed.run(["srun", "-N8", "cat", "seen"], cwd=tmp_path).stdout == "yes\n" * 8


@pytest.mark.tool("MariaDB and slurmdbd")
def test_accounting_knows_the_jobs(testbed):
    testbed.run(["srun", "-J", "accounted", "true"])
    words = ["sacct", "-nPX", "-a", "--name=accounted", "-o", "state"]
    until(lambda: testbed.run(words, user="nobody").stdout == "COMPLETED\n", "accounting")


# run


def command(testbed, *words, **kw):
    """`testbed run`, which the tests themselves do without a process of its own."""
    return testbed.command("run", "--", *words, **{"cwd": testbed.path} | kw)


def test_run_passes_input_output_and_exit_code(testbed):
    script = 'cat; echo "$1" >&2; exit 7'
    words = ["sh", "-c", script, "sh", "two  words"]
    for run in (command(testbed, *words, input="in\n"), testbed.run(words, input="in\n")):
        assert (run.stdout, run.stderr, run.returncode) == ("in\n", "two  words\n", 7)


def test_run_stays_in_the_callers_folder(testbed):
    assert command(testbed, "pwd", cwd="/usr/share").stdout == "/usr/share\n"


def test_run_says_when_the_callers_folder_is_not_shared(testbed):
    Path("/dev/shm/siteproof-unshared").mkdir(exist_ok=True)
    try:
        done = command(testbed, "true", cwd="/dev/shm/siteproof-unshared")
    finally:
        Path("/dev/shm/siteproof-unshared").rmdir()
    assert done.returncode == 127
    assert done.stderr.startswith("testbed: /dev/shm/siteproof-unshared on login (see 'up --share'")


def test_run_tells_a_missing_command_and_a_death_by_signal_as_a_shell_does(testbed):
    assert command(testbed, "no-such-command").returncode == 127
    assert command(testbed, "sh", "-c", "kill -9 $$").returncode == 137


def test_control_c_reaches_the_command(testbed):
    script = "sleep 60 & trap 'kill $!; exit 9' INT; echo ready; wait"
    pid, terminal = pty.fork()
    if pid == 0:
        words = [str(testbed.program), "run", "sh", "-c", script]
        os.execve(testbed.program, words, os.environ | testbed.environment)
    output = b""
    while b"ready" not in output:
        output += os.read(terminal, 100)
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    os.close(terminal)


def test_a_command_does_not_outlive_its_killed_caller(testbed):
    with pytest.raises(subprocess.TimeoutExpired):
        command(testbed, "sleep", "98765", timeout=1)
    until(lambda: "98765" not in testbed.run(["ps", "-ef"]).stdout, "the end of the command")


# Ordinary users


def test_root_can_run_as_a_user(testbed):
    done = testbed.run(["sh", "-c", "id -un; id -Gn; echo $USER"], user="nobody")
    assert done.stdout == "nobody\nnogroup\nnobody\n"


def test_a_user_runs_as_just_that_user(testbed, program):
    words = [program, "run", "sh", "-c", "id -u; id -g; id -G; hostname; echo $SLURM_CONF"]
    who = {"user": 65534, "group": 65534, "extra_groups": [7, 9]}
    env = os.environ | testbed.environment
    done = subprocess.run(words, cwd="/", env=env, text=True, capture_output=True, **who)
    expected = f"65534\n65534\n65534 7 9\nlogin\n{testbed.state}/etc/slurm.conf\n"
    assert (done.stdout, done.stderr) == (expected, "")


def test_a_user_submits_a_job_that_runs_as_that_user(testbed, program):
    folder = testbed.path / "of-nobody"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    words = [program, "run", "sbatch", "--wait", "-N2", "-o", "out", "--wrap", "srun id -un"]
    env = os.environ | testbed.environment
    subprocess.run(words, cwd=folder, env=env, check=True, timeout=PATIENCE, **NOBODY)
    assert (folder / "out").read_text() == "nobody\nnobody\n"
    assert (folder / "out").owner() == "nobody"


def test_a_user_cannot_act_as_root(testbed, program):
    env = os.environ | testbed.environment
    for words in (["run", "--user", "root", "id"], ["power-off", "node001"]):
        done = subprocess.run([program, *words], cwd="/", env=env, capture_output=True, **NOBODY)
        assert done.returncode == 2, words
        assert b"needs root" in done.stderr, words


FORGED = """
import contextlib, json, socket, sys
request = {"node": "login", "cwd": "/", "umask": 18, "argv": ["id"], "environment": {}}
body = json.dumps(request | json.loads(sys.argv[2])).encode()
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
socket.send_fds(connection, [len(body).to_bytes(4, "big")], list(range(int(sys.argv[3]))))
with contextlib.suppress(BrokenPipeError):  # refused already
    connection.sendall(body)
print(connection.recv(999).decode())
"""


def test_the_run_server_refuses_a_forged_request(testbed):
    for change, fds in (
        ({"user": "root"}, 3),
        ({"uid": 0}, 3),
        ({"node": "../../secrets/munged"}, 3),
        ({"node": ["login"]}, 3),
        ({"argv": []}, 3),
        ({"argv": ["a\0b"]}, 3),
        ({"environment": 5}, 3),
        ({}, 2),
    ):
        server = testbed.state / "run.socket"
        words = ["python3", "-c", FORGED, server, json.dumps(change), str(fds)]
        done = subprocess.run(
            words, cwd="/", text=True, capture_output=True, timeout=PATIENCE, **NOBODY
        )
        assert re.match(r'{"error": "(not a request|no node)', done.stdout), (change, fds, done)


# Faults


@pytest.mark.long  # until Slurm itself has noticed
def test_a_power_loss_requeues_the_job_and_power_on_gives_an_empty_node(testbed):
    testbed.run(["touch", "/tmp/before"], node="node003")
    job = submit(testbed, "--requeue", "-w", "node003", "--wrap", "sleep 600")
    testbed.power_off("node003")
    done = testbed.run(["true"], node="node003")
    assert (done.returncode, done.stderr) == (1, "testbed: node003 is off\n")
    testbed.power_on("node003")
    assert testbed.run(["ls", "/tmp/before"], node="node003").returncode == 2
    assert testbed.run(["srun", "-w", "node003", "hostname"]).stdout == "node003\n"
    out = testbed.run(["scontrol", "-o", "show", "job", job]).stdout
    assert "Restarts=1" in out
    testbed.run(["scancel", job])
    all_idle(testbed)


def test_jobs_survive_a_dead_slurmd_and_a_restart_of_slurmctld(testbed):
    job = submit(testbed, "-w", "node004", "-o", "survivor", "--wrap", f"{WAIT}; echo alive")
    testbed.must("kill-slurmd", "node004")
    assert "slurmd" not in testbed.run(["ps", "-e", "-o", "comm="], node="node004").stdout.split()
    testbed.restart_slurmctld()
    testbed.power_on("node004")
    (testbed.path / "go").touch()
    until(lambda: job_state(testbed, job) == "COMPLETED", "the end of the job")
    assert (testbed.path / "survivor").read_text() == "alive\n"
    all_idle(testbed)


def test_power_on_of_a_node_that_runs_does_nothing(testbed):
    first = testbed.run(["stat", "-c", "%i", "/proc/1/ns/pid"], node="node002").stdout
    testbed.power_on("node002")
    assert testbed.run(["stat", "-L", "-c", "%i", "/proc/1/ns/net"], node="node002").returncode == 0
    assert testbed.run(["stat", "-c", "%i", "/proc/1/ns/pid"], node="node002").stdout == first


@pytest.mark.long
def test_a_quota_slows_a_node_now_and_after_its_next_boot(testbed):
    done = testbed.command("quota", "node005", "0.2")
    if done.returncode == 2:
        pytest.skip(f"NO CPU QUOTA, NOT TESTED: {done.stderr.strip()}")
    spin = "import time\nend = time.time() + 2\nwhile time.time() < end: pass\n"
    spin += "print(time.process_time() < 1)"
    words = ["srun", "-w", "node005", "python3", "-c", spin]
    assert testbed.run(words).stdout == "True\n"  # its slurmd was there before the quota
    testbed.power_off("node005")
    testbed.power_on("node005")
    assert testbed.run(words).stdout == "True\n"
    testbed.must("quota", "node005", "none")
    limits = {path.read_text().split()[0] for path in _cgroups(testbed.mark, "cpu.*quota*", "*max")}
    assert limits in ({"-1"}, {"max"})  # of all nodes that ever had one


# Words


def test_wrong_usage_is_one_line_and_exit_code_2(testbed):
    wrong = {}
    for words in (
        [],
        ["up", "0"],
        ["up", "401"],
        ["up", "--cpu-quota", "much"],
        ["up", "--share", "/no/such/folder"],
        ["up", "--share", "/tmp"],
        ["run"],
        ["run", "--user", "no-such-user", "id"],
        ["run", "--node", "node009", "id"],
        ["power-off", "login"],
        ["power-on"],
        ["quota", "node001", "-1"],
        ["quota", "node999", "1"],
        ["up"],
        ["up", "4", "--wan", "50ms,10gbit"],
        ["up", "4", "--sites", "3"],
        ["up", "4", "--sites", "2", "--wan", "50ms"],
        ["up", "4", "--sites", "2", "--wan", "10gbit,50ms"],
        ["up", "4", "--sites", "2", "--wan", "50ms,10gbit,2"],
    ):
        done = testbed.command(*words)
        line = re.fullmatch(r"testbed: .+\n", done.stderr)
        if (done.returncode, done.stdout, bool(line)) != (2, "", True):
            wrong[" ".join(words)] = done
    assert not wrong


# Nothing stays. These have a testbed of their own.


@pytest.fixture
def spare(testbed):
    """A second testbed, not up. The first proves that it is left alone."""
    bed = type(testbed)("-spare")
    yield bed
    bed.down()
    assert testbed.run(["hostname"]).stdout == "login\n"
    all_idle(testbed)


def _cgroups(mark, *names):
    tops = Path("/sys/fs/cgroup")
    groups = [group for top in (tops, *tops.iterdir()) for group in top.glob(f"*{mark}*")]
    return [path for group in groups for name in names for path in group.glob(name)]


def _family(room):
    """(pid, start time) of the room's first process and of all that descend from it."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent, *rest = (process / "stat").read_text().rpartition(")")[2].split()
            if state not in "ZX":
                parents[int(process.name)] = (int(parent), rest[17])
    family = {room}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    return {(pid, parents[pid][1]) for pid in family if pid in parents}


def _alive(family):
    return [pid for pid, start in family if (pid, start) in _family(pid)]


def _surroundings():
    """What a testbed must leave as it was."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
    spaces = subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout
    mounts = Path("/proc/self/mountinfo").read_text()
    names = re.findall(r"^\d+: ([^:]+)", links, re.MULTILINE)
    spaces = [space for space in spaces.splitlines() if not space.startswith("knobs-")]  # of others
    return names, spaces, [line for line in mounts.splitlines() if "siteproof" in line]


def _traces(bed, mark):
    """Files and cgroups of a testbed."""
    found = [*Path("/var/tmp").glob(f"*{mark}*"), *_cgroups(mark, ".")]
    return found + [bed.state] * bed.state.exists()


def test_down_leaves_nothing_of_jobs_and_faults(spare):
    before = _surroundings()
    spare.up("2", "--cpu-quota", "0.5") if _has_quota() else spare.up("2")
    submit(spare, "-N2", "--wrap", "sleep 600")
    for name in (line.split()[0] for line in spare.must("fault").splitlines()):
        if name not in ("restarted-slurmctld", "power-loss", "flapping", "hung"):
            spare.command("fault", name, "node001")
    spare.fault("flapping", "node002", value="1s")
    spare.fault("hung", "node001")
    mark, room = spare.mark, int((spare.state / "room").read_text().split()[0])
    family = _family(room)
    assert len(family) > 10
    assert spare.command("up").returncode == 2
    spare.down()
    assert (_alive(family), _traces(spare, mark)) == ([], [])
    assert _surroundings() == before
    assert spare.command("status").stdout == "down\n"
    spare.down()


def _has_quota():
    return any(Path("/sys/fs/cgroup").glob("cpu*/cpu.shares")) or "cpu" in "".join(
        path.read_text() for path in Path("/sys/fs/cgroup").glob("cgroup.controllers")
    )


@pytest.mark.parametrize(
    "lines", [0, *(pytest.param(lines, marks=pytest.mark.long) for lines in range(1, 6))]
)
def test_down_after_up_was_killed_leaves_nothing(spare, lines):
    before = _surroundings()
    env = os.environ | spare.environment
    with subprocess.Popen([spare.program, "up", "4"], stderr=subprocess.PIPE, env=env) as up:
        if lines == 0:
            until((spare.state / "testbed.json").exists, "testbed.json", every=0.01)
        for _ in range(lines):
            assert up.stderr.readline()
        up.kill()
    mark = spare.mark
    room = spare.state / "room"
    words = room.read_text().split() if room.exists() else []  # empty: killed before it was written
    family = _family(int(words[0])) if words else set()
    if lines:
        assert spare.command("status").returncode == 1
    spare.down()
    assert (_alive(family), _traces(spare, mark)) == ([], [])
    assert _surroundings() == before


def test_an_interrupted_up_cleans_up_after_itself(spare):
    env = os.environ | spare.environment
    with subprocess.Popen([spare.program, "up", "4"], stderr=subprocess.PIPE, env=env) as up:
        assert up.stderr.readline()
        mark = spare.mark
        up.send_signal(signal.SIGINT)
    assert up.returncode == 130
    assert _traces(spare, mark) == []


INTERRUPT = """
import signal, sys
sys.path.insert(0, {program!r})
sys.dont_write_bytecode = True
import cli, room, state
holder, name = {{"create": (state.State, "create"), "inside": (room, "inside")}}[{step!r}]
step = getattr(holder, name)
def interrupted(*words):
    step(*words)
    signal.raise_signal(signal.SIGINT)
setattr(holder, name, interrupted)
sys.exit(cli.main())
"""


@pytest.mark.parametrize("step", ["create", pytest.param("inside", marks=pytest.mark.long)])
def test_an_up_that_is_interrupted_between_two_steps_cleans_up_after_itself(spare, step):
    code = INTERRUPT.format(program=str(TOP / "testbed"), step=step)
    words = [sys.executable, "-c", code, "up", "2"]
    done = subprocess.run(words, env=os.environ | spare.environment, capture_output=True, text=True)
    assert done.returncode == 130, done.stderr
    assert not spare.state.exists()
    assert not _leftovers(spare)


def _leftovers(bed):
    """Processes of a testbed of which nobody knows the mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(bed.state).encode() in (process / "environ").read_bytes():
                found.append(process.name)
    return found


@pytest.mark.long
def test_down_during_up_ends_it(spare):
    env = os.environ | spare.environment
    with subprocess.Popen([spare.program, "up", "4"], stderr=subprocess.PIPE, env=env) as up:
        assert up.stderr.readline()
        mark = spare.mark
        spare.down()
    assert up.returncode == 1
    assert _traces(spare, mark) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--slurm-from", "../etc"], "'../etc' is not a suite of Debian"),
        (["--slurm-from", "sid", "--guests", "node001:e1000"], "guests have this machine's Slurm"),
    ],
)
def test_a_suite_that_cannot_be_had_is_one_line(spare, words, why):
    done = spare.command("up", "2", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert why in done.stderr
    assert not spare.state.exists()


@pytest.mark.long
def test_the_slurm_of_another_debian_runs_jobs_and_leaves_only_the_cache(spare, tmp_path):
    cache = {"SITEPROOF_TESTBED_CACHE": str(tmp_path)}
    spare.must("up", "2", "--slurm-from", "trixie", env=cache)
    assert spare.versions().startswith("Slurm 24.11.")
    assert spare.run(["sinfo", "--version"]).stdout == "slurm-wlm 24.11.5\n"
    assert len(spare.run(["srun", "-N2", "hostname"]).stdout.split()) == 2
    spare.down()
    assert {path.name[:12] for path in tmp_path.iterdir()} == {"lock", "suite-trixie"}


def test_down_does_not_touch_a_folder_that_is_no_testbeds(spare, tmp_path):
    (tmp_path / "precious").touch()
    done = spare.command("down", env={"SITEPROOF_TESTBED_STATE": str(tmp_path)})
    assert done.returncode == 2
    assert (tmp_path / "precious").exists()
