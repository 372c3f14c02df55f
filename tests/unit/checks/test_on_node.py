"""node.sh, pair.sh and sweep.sh under the shells, tools and settings of real nodes."""

import hashlib
import os
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from clone import PATIENCE, wait_for
from left_in import left_in
from rows import rows

from siteproof.checks import job
from siteproof.collect import cause, raw

pytestmark = pytest.mark.command
SCRIPTS = Path(job.__file__).with_name("on_node")
TOOLS = (
    *("awk", "cat", "chmod", "cut", "date", "env", "grep", "id", "ls", "mkdir", "mktemp", "mv"),
    *("nproc", "printf", "rm", "sed", "sha256sum", "sleep", "sort", "stat", "tail", "timeout"),
    *("touch", "tr", "true", "xargs"),
)
BUSYBOX = shutil.which("busybox")
SHELLS = {
    "dash": ["dash"],
    "bash": ["bash"],
    "bash --posix": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
}
MEASURE = """echo program=probe >>facts
echo "threads=$(nproc)" >>facts
run size=1,5 trial=1 -- printf '%s\\n' '1.5 MB/s'
run size=2 -- sh -c 'echo to stdout; echo to stderr >&2; exit 3'
awk 'BEGIN { printf "%.1f\\n", 1.5 }'
echo "last words" >&2
"""


class Node:
    """A stage directory, and a PATH that holds only what a node has."""

    def __init__(self, folder, shell="dash", applets=False, without=(), script="node.sh", more=()):
        self.stage, self.programs = folder / "stage", folder / "programs"
        (self.stage / "raw").mkdir(parents=True)
        self.programs.mkdir()
        for path in SCRIPTS.glob("*.sh"):
            shutil.copy(path, self.stage)
        first, *options = SHELLS[shell]
        words = " ".join([shutil.which(first), *options])
        self.program("sh", f'#!/bin/sh\nexec {words} "$@"\n')
        for tool in {*TOOLS, *more} - set(without):
            (self.programs / tool).symlink_to(BUSYBOX if applets else shutil.which(tool))
        self.script = script
        self.values = {"SITEPROOF_NODE": "n1", "SITEPROOF_ATTEMPT": 1, "SITEPROOF_LIMIT": 60}
        self.measure(MEASURE)

    def program(self, name, text):
        """A tool of the node's."""
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def measure(self, text):
        (self.stage / "measure.sh").write_text(text)

    def start(self, **env):
        """The script, as a step of Slurm starts it."""
        settings = "".join(f"{k}='{v}'; export {k}\n" for k, v in self.values.items())
        (self.stage / "settings").write_text(settings)
        return subprocess.Popen(
            [self.programs / "sh", f"./{self.script}"],
            cwd=self.stage,
            env={"PATH": str(self.programs), "SLURMD_NODENAME": "n1", "SLURM_JOB_ID": "7", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def run(self, **env):
        """What the script said itself; then `left` is there."""
        return self.start(**env).communicate(timeout=PATIENCE)[0]

    def left(self, name="n1"):
        return left_in(self.stage / "raw" / name)

    def again(self, **env):
        """The same once more, without what it left before."""
        shutil.rmtree(self.stage / "raw/n1", ignore_errors=True)
        return self.run(**env)


def together(nodes):
    """Nodes that wait most of the time, all at once; each with what its script said."""
    running = [(node, node.start()) for node in nodes]
    return [(node, process.communicate(timeout=PATIENCE)[0]) for node, process in running]


def is_whole(left, swap=("swap_before", "swap_after")):
    """Whether the account of MEASURE is complete and nothing else is in it."""
    assert left.meta.keys() >= {"node", "host", "kernel", "job", "cpus", "memory_kib", "flags"}
    assert left.meta.keys() >= {*swap, "limit", "start", "exit", "end"}
    assert (left.meta["node"], left.meta["job"], left.number("exit")) == ("n1", "7", 0)
    assert left.number("cpus") == len(os.sched_getaffinity(0))
    assert abs(left.number("end") - time.time()) < 600
    assert (left.facts["program"], left.facts["threads"]) == ("probe", left.meta["cpus"])
    assert left.stdout == "1.5\n"
    assert left.stderr == "last words\n"
    assert [run.exit for run in left.runs] == [0, 3]
    assert [run.stdout for run in left.runs] == ["1.5 MB/s\n", "to stdout\n"]
    assert [dict(run.dims) for run in left.runs] == [{"size": "1,5", "trial": "1"}, {"size": "2"}]
    return True


@pytest.fixture(params=SHELLS)
def shell(request):
    if not shutil.which(SHELLS[request.param][0]):
        pytest.skip(f"NOT TESTED: no {SHELLS[request.param][0]}")
    return request.param


def kinds(folder, make, both=True):
    """A node of each shell that is here, with coreutils and (both) with busybox's applets."""
    for shell, words in SHELLS.items():
        for applets in (False, True) if both else (False,):
            if shutil.which(words[0]) and (BUSYBOX or not applets):
                where = folder / f"{shell} {applets}".replace(" ", "_")
                where.mkdir()
                yield make(where, shell, applets)


def test_each_shell_leaves_the_whole_account(tmp_path):
    for node, said in together(kinds(tmp_path, Node)):
        assert is_whole(node.left()), (said, node.stage)
        assert said == "", node.stage
        assert [path.name for path in (node.stage / "raw").iterdir()] == ["n1"], node.stage


def test_each_shell_does_without_a_tool_that_a_node_may_lack(shell, tmp_path):
    node = Node(tmp_path, shell)
    for missing in ("timeout", "nproc", "mktemp"):
        (node.programs / missing).rename(tmp_path / missing)
        said = node.again()
        assert is_whole(node.left()), (missing, said)
        (tmp_path / missing).rename(node.programs / missing)


def test_the_account_of_a_node_starts_few_programs(shell, tmp_path):
    node = Node(tmp_path, shell)
    for tool in {*TOOLS, "sh"}:  # each notes that it was started
        real = (node.programs / tool).readlink() if tool != "sh" else shutil.which(SHELLS[shell][0])
        (node.programs / tool).unlink()
        options = " ".join(SHELLS[shell][1:]) if tool == "sh" else ""
        node.program(tool, f'#!/bin/sh\necho {tool} >>{tmp_path}/log\nexec {real} {options} "$@"\n')
    node.measure("echo program=probe >>facts")
    said = node.run()
    assert node.left().number("exit") == 0, said
    started = Counter((tmp_path / "log").read_text().split())
    twice = {
        "awk": "before and after",
        "sh": "node.sh and what measures",
        "timeout": "whether it knows its options, and the limit",
    }
    assert {tool for tool, count in started.items() if count > 1} <= twice.keys(), started
    assert max(started.values()) <= 2, started


def test_an_awk_without_a_clock_leaves_the_whole_account(shell, tmp_path):
    node = Node(tmp_path, shell, without=["awk"])
    node.program(
        "awk",
        '#!/bin/sh\ncase "$*" in *systime*) exit 2 ;; esac\n'  # as mawk before 1.3.4
        f'exec {shutil.which("awk")} "$@"\n',
    )
    said = node.run()
    assert is_whole(node.left()), said
    assert said == ""


def test_no_variable_becomes_a_part_of_the_awk_program(shell, tmp_path):
    node = Node(tmp_path, shell)
    node.values |= {"SITEPROOF_CLEAN": "yes", "SITEPROOF_STEERING": "MKL_*"}
    harm = f'system("echo harm >{tmp_path}/harm")'
    said = node.run(clock=harm, MKL_X=f'" {harm} "', groups=harm, cpus=harm)
    assert is_whole(node.left()), said
    assert not (tmp_path / "harm").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: mount needs root")
def test_a_full_disk_leaves_no_result(shell, tmp_path):
    node, small = Node(tmp_path, shell), tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], check=True)
    try:
        node.stage = shutil.copytree(node.stage, small / "stage")
        fill_page = (
            'awk -v n="$(stat -c %s meta)" "BEGIN { for (; n % 4096; n++) printf 9 }" >>meta'
        )
        node.measure(f"{fill_page}; cat /dev/zero >filled 2>/dev/null || :")
        node.run()
        assert not (node.stage / "raw/n1").exists()
    finally:
        subprocess.run(["umount", small], check=True)


ENVIRONMENTS = {  # no two of one environment can hide each other
    "a user's": {
        **{"USER": "nobody", "LC_ALL": "xx_YY.absurd", "LANG": "no/where"},
        **{"CDPATH": "/tmp:/usr:/", "ENV": "/nowhere/env", "BASH_ENV": "/nowhere/bash_env"},
        **{"GREP_OPTIONS": "--color=always -v", "GREP_COLOR": "1"},
    },
    "comma and digits": {
        **{"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"},
        **{"IFS": "0123456789", "TZ": "Nowhere/Else", "PATH_SEPARATOR": ";"},
    },
    "several lines and odd names": {
        "PS4": "a\nSLURM_FAKE=1\n'\"$(false)`x\\",
        "SLURM_STEP": "one\ntwo\nPATH=/nowhere\n",
        "SLURM_STEP_LAUNCHER": "'\n\"\n`",
        **{"A-B": "1", "SLURM_WITH-DASH": "x", "1": "2", "SLURM_": "y"},
        "TMPDIR": "/nowhere/at all",
    },
    "functions": {
        "BASH_FUNC_ml%%": "() {  SLURM_INSIDE=1\n echo function;\n}",
        "BASH_FUNC_cd%%": "() {  builtin cd /tmp;\n}",
        "BASH_FUNC_module()": "() {  :;\n}",
    },
    "options": {"SHELLOPTS": "braceexpand:errexit:hashall:noclobber:noglob:nounset:verbose"},
    "traced": {"SHELLOPTS": "braceexpand:hashall:xtrace", "POSIXLY_CORRECT": "1"},
}


def test_no_setting_of_the_environment_reaches_the_account(shell, tmp_path):
    node = Node(tmp_path, shell)
    for name, variables in ENVIRONMENTS.items():
        if shell.startswith("bash"):  # it obeys this one, and so would sbatch's own
            variables = {key: v for key, v in variables.items() if key != "BASH_FUNC_cd%%"}
        said = node.again(**variables)
        assert is_whole(node.left()), (name, said)


def test_the_step_is_forgotten_whatever_the_environment_holds(shell, tmp_path):
    node = Node(tmp_path, shell)
    node.measure("env >seen; cat seen")
    node.run(SLURM_STEP_ID="0", SLURM_X="a\nb=c\n", PMIX_RANK="0", PMI_FD="3", SLURM_CONF="/c")
    names = {line.partition("=")[0] for line in node.left().stdout.splitlines() if "=" in line}
    assert {n for n in names if n.startswith(("SLURM", "PMI"))} == {"SLURM_CONF"}


def test_no_umask_lets_others_write_a_result(tmp_path):
    node = Node(tmp_path)
    for mask in (0o077, 0o000):
        before = os.umask(mask)
        try:
            node.again()
        finally:
            os.umask(before)
        assert is_whole(node.left())
        everything = [node.stage / "raw/n1", *(node.stage / "raw/n1").rglob("*")]
        assert not [path for path in everything if path.stat().st_mode & 0o002], mask


def hanging(folder, shell, applets):
    """A node whose program hangs; with coreutils it lacks timeout, busybox has another one."""
    node = Node(folder, shell, applets, [] if applets else ["timeout"])
    node.mark = f"9{os.getpid()}{time.time_ns() % 10**9}"  # of a process, to find it again
    node.measure(f"echo program=probe >>facts; echo began; sleep {node.mark} && echo never")
    node.values["SITEPROOF_LIMIT"] = 2
    return node


def deaf(folder):
    node = Node(folder, without=["timeout"])
    node.measure(". ./../../account.sh; trap '' TERM; timeout -k 1 1 sh -c "
                 "'trap \"\" TERM; while :; do sleep 0.2; done'; echo \"code $?\"")  # fmt: skip
    return node


def test_a_program_that_hangs_or_ignores_its_end_is_ended_without_the_usual_timeout(tmp_path):
    *ended, (killed, _) = together([*kinds(tmp_path, hanging), deaf(tmp_path / "deaf")])
    for node, said in ended:
        left = node.left()
        assert (left.number("exit"), left.stdout) == (raw.ENDED, "began\n"), (node.stage, said)
        assert cause.timed_out(left.number("exit"), left.meta)
        wait_for(lambda node=node: not alive(node.mark))
    assert killed.left().stdout == "code 124\n"


def test_the_fallback_of_timeout_hands_on_input_output_and_code(shell, tmp_path):
    node = Node(tmp_path, shell, without=["timeout"])
    node.measure("echo in | timeout 9 sh -c 'cat; echo err >&2; exit 7' 2>&1; echo \"code $?\"")
    node.run()
    assert node.left().stdout == "in\nerr\ncode 7\n"


def test_a_job_that_is_ended_leaves_nothing_without_the_usual_timeout(shell, tmp_path):
    node = Node(tmp_path, shell, without=["timeout"])
    mark = f"8{os.getpid()}{time.time_ns() % 10**9}"
    node.measure(f"sleep {mark}")
    process = node.start()
    wait_for(lambda: alive(mark))
    os.killpg(process.pid, 15)
    assert process.wait(60) != 0
    wait_for(lambda: not alive(mark))
    assert not (node.stage / "raw/n1").exists()


def alive(mark):
    """Whether a process with this word runs."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_a_result_that_is_there_is_never_written_into(tmp_path):
    node = Node(tmp_path, without=["mv"])
    node.program("mv", '#!/bin/sh\n[ "$1" != -T ] || exit 1\nexec /bin/mv "$@"\n')
    node.measure("mkdir ../n1; echo theirs >../n1/meta")
    node.run()
    assert (node.stage / "raw/n1/meta").read_text() == "theirs\n"
    assert [path.name for path in (node.stage / "raw/n1").iterdir()] == ["meta"]


def test_an_mv_without_T_brings_a_result_into_place(tmp_path):
    node = Node(tmp_path, without=["mv"])
    node.program("mv", '#!/bin/sh\n[ "$1" != -T ] || exit 1\nexec /bin/mv "$@"\n')
    node.run()
    assert is_whole(node.left())


def test_what_programs_keep_in_tmp_has_a_name_that_nobody_can_take_first(tmp_path):
    node = Node(tmp_path)
    node.measure('echo "$TMPDIR"; stat -c %a "$TMPDIR"; : >"$TMPDIR/mine"')
    node.run(TMPDIR=str(tmp_path))
    place, mode = node.left().stdout.split()
    assert Path(place).parent == tmp_path
    assert mode == "700"
    assert not Path(place).exists()


# ---- the other two


def sealing(node):
    """A node with a munge that says what it was asked."""
    node.program("munge", '#!/bin/sh\nprintf "MUNGE:%s\\n" "$*"\n')
    node.values |= {"SITEPROOF_NONCE": "abc"}
    return node


def is_sealed(node):
    """Whether turns and points bear credentials, too."""
    for path in (node.stage / "raw").glob("0*"):
        left = left_in(path)
        assert left.origin == f"MUNGE:-s siteproof abc n1 {path.name} {left.digest}"
    return True


def pair(folder, shell, applets):
    node = sealing(Node(folder, shell, applets, script="pair.sh"))
    node.values |= {
        "SITEPROOF_TURN": 6, "SITEPROOF_LEAD": 1, "SITEPROOF_LATE": 3, "SITEPROOF_KILL": 1,
        "SECONDS_OF_TURN": 1, "SIDE_OF": "x",
    }  # fmt: skip
    (node.stage / "timetable").write_text("0 00000 n1 n2 5201 n2\n0 00001 n2 n1 5202 n1\n")
    (node.stage / "begin.1").write_text(f"{int(time.time()) + 2}\n")
    node.measure(f'[ "$SIDE" = client ] || exec sleep 60\n{MEASURE}')
    return node


def test_each_shell_walks_a_timetable(tmp_path):
    for node, said in together(kinds(tmp_path, pair)):
        assert is_whole(node.left("00000")), (node.stage, said)
        assert node.left("00001.server").number("exit") == raw.ENDED, (node.stage, said)
        assert is_sealed(node)


def sweep(folder, shell, applets):
    node = sealing(Node(folder, shell, applets, script="sweep.sh"))
    node.values |= {"JOB_NODES": "n1", "SWEEP_SRUN": "", "SWEEP_PATIENCE": 0, "LAUNCH": ""}
    node.values["SITEPROOF_LIMIT"] = 600
    (node.stage / "points").write_text("00001 30 1 1 1 1 0 DEPTH=1\n00002 2 1 1 1 1 0 DEPTH=2\n")
    node.measure(f'[ "$POINT_DEPTH" = 1 ] || exec sleep 60\n{MEASURE}')
    return node


def test_each_shell_walks_a_sweep(tmp_path):
    for node, said in together(kinds(tmp_path, sweep)):
        assert is_whole(node.left("00001"), swap=()), (node.stage, said)
        assert node.left("00002").number("exit") == raw.ENDED, (node.stage, said)
        assert is_sealed(node)


def knob(folder, shell, applets):
    """A node that sets a TTL of its own and holds it, and what it runs."""
    node = Node(folder, shell, applets, more=("dirname", "tac"))
    node.knobs = node.stage / "knobs.d"
    node.knobs.mkdir()
    (node.knobs / "wanted").write_text("knob.sysctl.net.ipv4.ip_default_ttl\t77\n")
    (node.knobs / "peers").write_text("")
    node.program("ttl", "#!/bin/sh\ncat /proc/sys/net/ipv4/ip_default_ttl\n")
    node.program("all", "#!/bin/sh\nttl; sh ./knob_hold.sh hold ./knobs.d; ttl\n")
    node.walk = subprocess.Popen(
        [shutil.which("unshare"), "--net", node.programs / "all"],
        cwd=node.stage,
        env={"PATH": str(node.programs), "SITEPROOF_NODE": "n1"}
        | {"SITEPROOF_KNOB_RECORDS": str(folder / "records")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return node


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: knobs are set by root")
def test_each_shell_sets_a_knob_reads_it_back_and_restores_it(tmp_path):
    nodes = [*kinds(tmp_path, knob)]
    for node in nodes:
        held = [node.knobs / "n1.set", node.knobs / "n1.failed"]
        wait_for(lambda held=held: any(path.exists() for path in held))
        (node.knobs / "release").touch()
    for node in nodes:
        said = node.walk.communicate(timeout=PATIENCE)[0]
        assert (node.knobs / "n1.set").read_text() == "knob.sysctl.net.ipv4.ip_default_ttl=77\n", (
            said
        )
        assert said == "64\n64\n", node.stage
        assert (node.knobs / "n1.restored").exists(), node.stage


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: mount needs root")
def test_each_shell_measures_where_nothing_below_tmp_and_the_stage_may_be_executed(shell, tmp_path):
    node, strict = Node(tmp_path, shell), tmp_path / "noexec"
    strict.mkdir()
    node.measure(f'{MEASURE}\n: >"$TMPDIR/x"; chmod 755 "$TMPDIR/x"; "$TMPDIR/x"; echo "$?"')
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=16m", "tmpfs", strict], check=True)
    try:
        node.stage = shutil.copytree(node.stage, strict / "stage")
        (strict / "tmp").mkdir()
        said = node.run(TMPDIR=str(strict / "tmp"))
        left = node.left()
        assert left.stdout == "1.5\n126\n", said  # 126: it may not be executed
        assert [run.exit for run in left.runs] == [0, 3], said
        assert left.meta.keys() >= {"node", "start", "exit", "end"}
    finally:
        subprocess.run(["umount", strict], check=True)


# ---- what proves whose result it is


def test_a_result_bears_a_credential_over_its_own_digest(shell, tmp_path):
    node = sealing(Node(tmp_path, shell))
    node.values |= {"SITEPROOF_MUNGE": "/run/m"}
    node.run()
    left = node.left()
    assert left.origin == f"MUNGE:-S /run/m -s siteproof abc n1 n1 {left.digest}"
    names = ["facts", "meta", *(f"run.{n}/{f}" for n in (1, 2) for f in ("dims", "exit"))]
    names += ["stderr", "stdout", *(f"run.{n}/{f}" for n in (1, 2) for f in ("stdout", "stderr"))]
    sums = "".join(
        f"{hashlib.sha256((node.stage / 'raw/n1' / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(names)
    )
    assert left.digest == hashlib.sha256(sums.encode()).hexdigest()


@rows(
    "tool, told", [(None, "none: munge is not installed on the node"), ("exit 6", "no credential")]
)
def test_a_node_that_has_no_credential_says_why(tool, told, tmp_path):
    node = Node(tmp_path)
    if tool:
        node.program("munge", f"#!/bin/sh\necho cannot reach munged\n{tool}\n")
    node.values |= {"SITEPROOF_NONCE": "abc"}
    node.run()
    assert told in node.left().origin
    assert not node.left().origin.startswith("MUNGE:")
