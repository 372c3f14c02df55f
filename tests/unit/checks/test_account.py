"""A node's account of memory, processors and kills: by the kernel, cgroups v1 and v2, and Slurm."""

import shutil
import subprocess

import pytest
from clone import TOP
from ClusterShell.NodeSet import NodeSet
from rows import rows

from siteproof.checks import progress
from siteproof.slurm.records import parse_memory

SCRIPT = TOP / "siteproof/checks/on_node/account.sh"
V1_OOM = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"  # recorded, kernel 6.18
V2_EVENTS = "low 0\nhigh 0\nmax 312\noom 4\noom_kill {}\noom_group_kill 0\n"  # kernel 6.1
NO_LIMIT = "9223372036854771712\n"  # v1's
GIB = 2**30
SHELLS = [s for s in ("sh", "bash --posix", "busybox sh") if shutil.which(s.split()[0])]


class Node:
    """A node's /proc and /sys/fs/cgroup."""

    def __init__(self, folder):
        self.folder = folder
        self.proc, self.groups = folder / "proc", folder / "cgroup"
        self.write(self.proc / "meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n")
        self.write(self.proc / "vmstat", "pswpout 0\noom_kill 7\n")
        self.write(self.proc / "self/cgroup", "0::/\n")

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{str(text).rstrip()}\n")

    def v1(self, path, controller="memory"):
        """This process is in a group of cgroup v1."""
        self.write(self.proc / "self/cgroup", f"4:{controller}:{path}\n3:cpuset:/\n0::/\n")

    def v2(self, path):
        """This process is in a group of cgroup v2."""
        self.write(self.proc / "self/cgroup", f"0::{path}\n")

    def run(self, line, shell="sh", **variables):
        """The pairs that functions of account.sh print."""
        done = subprocess.run(
            [*shell.split(), "-uc", f". '{SCRIPT}'; slurm_memory; {line}"],
            cwd=self.folder,
            env={
                "PATH": "/usr/bin:/bin",
                "SITEPROOF_TEST_PROC": str(self.proc),
                "SITEPROOF_TEST_CGROUPS": str(self.groups),
                **variables,
            },
            text=True,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return dict(one.split("=", 1) for one in done.stdout.splitlines())

    def memory(self, **variables):
        """MiB given, and by whom."""
        found = self.run("account memory", **variables)
        return int(found["memory_given_kib"]) // 1024, found["memory_given_by"]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@rows("shell", SHELLS)
def test_without_a_limit_a_job_has_what_the_kernel_has(tmp_path, shell):
    node = Node(tmp_path)
    found = node.run("account memory", shell)
    assert found == {"memory_given_kib": "16777216", "memory_given_by": "kernel"}


@rows("shell", SHELLS)
def test_the_least_limit_of_all_groups_above_counts_in_v2(tmp_path, shell):
    node = Node(tmp_path)
    node.v2("/system.slice/slurmstepd.scope/job_5/step_0/user/task_0")
    node.write(node.groups / "system.slice/slurmstepd.scope/job_5/memory.max", 2 * GIB)
    node.write(node.groups / "system.slice/slurmstepd.scope/job_5/step_0/memory.max", "max\n")
    node.write(node.groups / "system.slice/memory.max", 3 * GIB)
    found = node.run("account memory", shell)
    assert found == {"memory_given_kib": str(2 * 1024**2), "memory_given_by": "cgroup"}


def test_the_least_limit_of_all_groups_above_counts_in_v1(node):
    node.v1("/slurm/uid_0/job_5/step_0")
    node.write(node.groups / "memory/slurm/uid_0/job_5/step_0/memory.limit_in_bytes", NO_LIMIT)
    node.write(node.groups / "memory/slurm/uid_0/job_5/memory.limit_in_bytes", 4 * GIB)
    node.write(node.groups / "memory/memory.limit_in_bytes", NO_LIMIT)
    assert node.memory() == (4096, "cgroup")


def test_a_container_sees_its_own_limit_at_the_root_of_the_groups(node):
    node.v1("/docker/0123456789abcdef")
    node.write(node.groups / "memory/memory.limit_in_bytes", GIB)
    assert node.memory() == (1024, "cgroup")
    node.v2("/")
    node.write(node.groups / "memory.max", GIB // 2)
    assert node.memory() == (512, "cgroup")


def test_a_limit_above_what_the_kernel_has_limits_nothing(node):
    node.v2("/a")
    node.write(node.groups / "a/memory.max", 2**60)
    assert node.memory(SLURM_MEM_PER_NODE="999999") == (16384, "kernel")


@rows(
    "variables, mib",
    [
        ({"SLURM_MEM_PER_NODE": "3000"}, 3000),
        ({"SLURM_MEM_PER_CPU": "500", "SLURM_CPUS_ON_NODE": "4"}, 2000),
        ({"SLURM_MEM_PER_NODE": "0", "SLURMD_NODENAME": "n2"}, 1500),  # --mem=0: all of the node
        ({"SLURMD_NODENAME": "n2"}, 1500),
        ({"SLURMD_NODENAME": "n3"}, 16384),  # RealMemory=1: not configured
        ({"SLURMD_NODENAME": "n4"}, 16384),
        ({"SLURM_MEM_PER_NODE": "a[0$(id)]", "SLURM_MEM_PER_CPU": "x"}, 16384),
        ({"SLURM_MEM_PER_CPU": "500"}, 16384),
        ({"SLURM_MEM_PER_NODE": "9" * 30}, 16384),
    ],
)
def test_what_slurm_gives_is_asked_for_or_configured(tmp_path, variables, mib):
    node = Node(tmp_path)
    node.write(node.folder / "memory_of_nodes", "n1 900\nn2 1500\nn3 1\n")
    assert node.memory(**variables) == (mib, "Slurm" if mib < 16384 else "kernel")


def test_the_least_of_slurm_and_cgroup_counts(node):
    node.v2("/job_5")
    node.write(node.groups / "job_5/memory.max", GIB)
    assert node.memory(SLURM_MEM_PER_NODE="3000") == (1024, "cgroup")
    assert node.memory(SLURM_MEM_PER_NODE="300") == (300, "Slurm")


@rows("shell", SHELLS)
def test_the_jobs_own_kills_are_counted_beside_those_of_the_node(tmp_path, shell):
    node = Node(tmp_path)
    node.v2("/slurm/job_5/step_0/task_0")
    node.write(node.groups / "slurm/job_5/step_0/task_0/memory.events", V2_EVENTS.format(1))
    node.write(node.groups / "slurm/job_5/memory.events", V2_EVENTS.format(2))
    node.write(node.groups / "slurm/memory.events", V2_EVENTS.format(9))  # those of other jobs, too
    found = node.run("account before kills", shell)
    assert found == {"oom_kills_before": "7", "job_oom_kills_before": "2"}


def test_in_v1_each_group_counts_its_own_kills(node):
    node.v1("/slurm/uid_0/job_5/step_0", "cpu,memory")
    top = node.groups / "cpu,memory/slurm"
    node.write(top / "uid_0/job_5/step_0/memory.oom_control", V1_OOM.format(1))
    node.write(top / "uid_0/job_5/memory.oom_control", V1_OOM.format(2))
    node.write(top / "memory.oom_control", V1_OOM.format(40))
    assert node.run("account after kills")["job_oom_kills_after"] == "3"


def test_a_process_outside_of_jobs_counts_its_innermost_group(node):
    node.v2("/user.slice/session")
    node.write(node.groups / "user.slice/session/memory.events", V2_EVENTS.format(0))
    node.write(node.groups / "user.slice/memory.events", V2_EVENTS.format(5))
    assert node.run("account after kills")["job_oom_kills_after"] == "0"


def test_an_old_kernel_counts_nothing(node):
    node.v1("/slurm/job_5")
    node.write(node.proc / "vmstat", "pswpout 0\n")
    node.write(node.groups / "memory/slurm/job_5/memory.oom_control", "oom_kill_disable 0\n")
    assert node.run("account after kills") == {}


def fake(node, name, script):
    path = node.folder / "bin" / name
    node.write(path, f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"{path.parent}:/usr/bin:/bin"


@rows(
    "quota, cpus",
    [("max 100000", 8), ("250000 100000", 3), ("50000 100000", 1), ("900000 100000", 8)],
)
def test_a_quota_leaves_fewer_processors(tmp_path, quota, cpus):
    node = Node(tmp_path)
    node.v2("/job_5")
    node.write(node.groups / "job_5/cpu.max", quota + "\n")
    path = fake(node, "nproc", "echo 8")
    assert node.run("account cpus", PATH=path) == {"cpus": str(cpus)}


@rows("quota, cpus", [(-1, 8), (400000, 4)])
def test_a_quota_of_v1_does_as_well(tmp_path, quota, cpus):
    node = Node(tmp_path)
    node.v1("/job_5", "cpu")
    node.write(node.groups / "cpu/job_5/cpu.cfs_quota_us", f"{quota}\n")
    node.write(node.groups / "cpu/job_5/cpu.cfs_period_us", "100000\n")
    path = fake(node, "nproc", "echo 8")
    assert node.run("account cpus", PATH=path) == {"cpus": str(cpus)}


LOG = """\
[  100.5] Out of memory: Killed process 11 (old) total-vm:1kB
[13130.2] oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=27780,uid=0
[13130.3] Memory cgroup out of memory: Killed process 27780 (python3) total-vm:323756kB
"""


def test_the_kernels_line_is_kept_if_it_is_of_this_time(node):
    path = fake(node, "dmesg", f"cat <<'E'\n{LOG}E")
    told = "Memory cgroup out of memory: Killed process 27780 (python3) total-vm:323756kB"
    assert node.run("oom_log 13000.00", PATH=path) == {"oom_log": told}
    assert node.run("oom_log 14000.00", PATH=path) == {}


def test_a_log_that_users_may_not_read_stops_nothing(node):
    path = fake(node, "dmesg", "echo 'dmesg: Operation not permitted' >&2; exit 1")
    assert node.run("oom_log 0", PATH=path) == {}


def test_the_account_holds_what_was_before_and_after(node):
    path = fake(node, "dmesg", "exit 1")
    line = "mkdir r; cd r; begin_account n1 5 60; end_account 137; cat meta"
    node.write(node.proc / "uptime", "5.0 1.0\n")
    found = node.run(line, PATH=path)
    assert found["oom_kills_before"] == found["oom_kills_after"] == "7"
    assert {"memory_given_kib", "cpus", "start", "end", "exit"} <= set(found)


# ---- measured, and not ended


def test_nodes_that_failed_are_not_counted_as_measured(monkeypatch):
    monkeypatch.setattr(progress, "REPORT_EVERY", 0)
    watcher = progress.Watcher(NodeSet("n[1-8]"), 1000)
    ends = {"n1": True, "n2": False, "n3": True}
    assert watcher.progress(ends.keys(), ends.get) == "2 of 8 nodes measured, 1 failed"


# ---- what is made of it


@rows(
    "variables, bytes_of_matrix",
    [
        ({}, GIB),
        ({"MEMORY": str(2 * GIB + 2**28)}, GIB + 2**27),  # what was bought, a little more
        ({"MEMORY": str(16 * GIB)}, GIB),  # far more than the job has
        ({"MEMORY": str(GIB)}, GIB),
    ],
)
def test_the_matrix_of_hpl_fits_into_what_the_job_has(tmp_path, variables, bytes_of_matrix):
    node = Node(tmp_path)
    node.write(node.folder / "meta", f"cpus=2\nmemory_kib=99999999\nmemory_given_kib={2 * 2**20}")
    fake(node, "xhpl", ":")
    path = fake(node, "mpirun", "sed -n 6p HPL.dat")
    done = subprocess.run(
        ["sh", TOP / "checks/cpu/hpl.sh"],
        cwd=node.folder,
        env={"PATH": path, "SHARE": "0.5", "NB": "192", **variables},
        text=True,
        capture_output=True,
        check=False,
    )
    n = int(done.stdout.split()[0])
    assert bytes_of_matrix <= 8 * n**2 < 8 * (n + 192) ** 2 < 1.1 * bytes_of_matrix


def solve(node, mpirun, **variables):
    """Facts and standard error of HPL's script, with a program mpirun of the test's own."""
    node.write(node.folder / "meta", "cpus=4\nmemory_given_kib=8000000")
    (node.folder / "facts").unlink(missing_ok=True)
    fake(node, "xhpl", ":")
    path = fake(node, "mpirun", mpirun)
    done = subprocess.run(
        ["sh", TOP / "checks/cpu/hpl.sh"],
        cwd=node.folder,
        env={"PATH": path, "N": "1000", "NB": "192", "CLONE_MKL": str(node.folder), **variables},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (node.folder / "facts").read_text().splitlines(), done.stderr


@rows(
    "threads, grid, each",
    [("0", "2 2", "1"), ("1", "2 2", "1"), ("2", "1 2", "2"), ("4", "1 1", "4")],
)
def test_ranks_and_threads_of_hpl_fill_the_cores_and_are_facts(tmp_path, threads, grid, each):
    """Without a BLAS that is known to have threads, a rank a core."""
    node = Node(tmp_path)
    facts, said = solve(node, 'echo "$OMP_NUM_THREADS threads" >&2', THREADS=threads)
    assert f"asked=1000 192 {grid}" in facts
    assert f"threads={each}" in facts
    assert f"{each} threads" in said


def test_the_fastest_blas_of_a_trial_is_taken_and_each_trial_is_kept(node):
    library = node.folder / "lib/libmkl_rt.so.3"
    library.parent.mkdir()
    library.touch()
    rates = 'case "$*" in *libmkl*) rate=9.5e+01 ;; *) rate=1.5e+00 ;; esac'
    facts, said = solve(node, f'{rates}\necho "WR11C2R4 1500 192 2 2 1.0 $rate"', BLAS="fastest")
    assert "blas_choice=fastest" in facts
    assert f"blas trial: 95.000 GFLOPS {library}" in said
    assert "asked=1000 192 2 2" in facts  # the trial's own problem is smaller


def test_slurm_says_the_memory_of_nodes_or_nothing():
    text = "n1|4096\nn2|1\nn3|0\nn4|\nn5|1e9\nn6\nn7|" + "9" * 40 + "\nn1|4096\n"
    assert parse_memory(text) == {"n1": 4096}


def test_what_is_measured_dies_before_the_script_that_accounts_for_it(node):
    node.write(node.proc / "self/oom_score_adj", "0")
    node.run("first_to_go")
    assert (node.proc / "self/oom_score_adj").read_text() == "500\n"
    node.run("first_to_go", SITEPROOF_TEST_PROC="/nowhere")


# ---- a processor that is software


@rows("shell", SHELLS)
@rows(
    "model, machine, emulated",
    [
        ("QEMU TCG CPU version 2.5+", "none", "yes"),
        ("AMD EPYC Processor", "qemu", "yes"),  # a model that QEMU was given; by CPUID it is QEMU
        ("AMD EPYC Processor", "kvm", "no"),
        ("AMD EPYC Processor", "none", "no"),
    ],
)
def test_a_node_whose_processor_is_software_reports_it(tmp_path, shell, model, machine, emulated):
    node = Node(tmp_path)
    node.write(node.proc / "cpuinfo", f"processor\t: 0\nmodel name\t: {model}\n")
    program = node.folder / "bin" / "systemd-detect-virt"
    node.write(program, f"#!/bin/sh\necho {machine}")
    program.chmod(0o755)
    line = "if processor_is_emulated; then echo emulated=yes; else echo emulated=no; fi"
    found = node.run(line, shell, PATH=f"{program.parent}:/usr/bin:/bin")
    assert found["emulated"] == emulated
