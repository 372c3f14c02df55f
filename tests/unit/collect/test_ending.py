"""How a node ended: by its own exit, its own times and the kernel's count, before its job's end."""

import pytest
from rows import rows
from test_stages import Job

from siteproof.collect import cause
from siteproof.record.finding import Verdict, of_status

KILLED_BY_KERNEL = {"job_oom_kills_before": "2", "job_oom_kills_after": "3"}
ON_NODE = {"oom_kills_before": "7", "oom_kills_after": "9"}
CANCELLED = "CANCELLED by 0"
OOM_LINES = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=17.0. "
    "Some of the step tasks have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory\n"
)


def of_two(folder):
    """A job of n1 and n2, and what n2 has left."""
    job = Job(folder)
    job.node("n2")
    return job


@pytest.fixture
def job(tmp_path):
    return of_two(tmp_path)


def test_killed_is_an_error_and_no_missing_answer():
    assert of_status("killed") is Verdict.ERROR


@rows("evidence", [KILLED_BY_KERNEL, ON_NODE])
@rows("ended", ["COMPLETED", "", "NODE_FAIL", CANCELLED, "TIMEOUT", "lost with its session"])
def test_a_node_whose_program_the_kernel_killed_ran_out_of_memory_however_its_job_ended(
    tmp_path, evidence, ended
):
    job = of_two(tmp_path)
    job.node("n1", exit="137", out="", **evidence)
    status, why = job.failure(ended=ended)
    assert status == "killed"
    assert why.startswith("out of memory: the kernel killed ")


def test_what_the_kernel_counts_in_the_jobs_own_group_goes_before_the_node(job):
    job.node("n1", exit="137", **KILLED_BY_KERNEL, **ON_NODE)
    assert "killed 1 process of the job" in job.failure()[1]


def test_the_kernels_own_line_is_told(job):
    line = "Memory cgroup out of memory: Killed process 17 (xhpl)"
    job.node("n1", exit="137", oom_log=line, **KILLED_BY_KERNEL)
    assert line in job.failure()[1]


def test_a_kill_elsewhere_on_the_node_explains_no_other_failure(job):
    job.node("n1", exit="1", err="no such file", **ON_NODE)
    assert job.failure() == ("generic", "likwid-bench exited with 1: no such file")


@rows("code", ["1", "3", "127", "143"])
def test_a_kill_in_the_jobs_own_group_explains_whatever_followed(tmp_path, code):
    job = of_two(tmp_path)
    job.node("n1", exit=code, err="a rank is gone", **KILLED_BY_KERNEL)
    assert job.failure()[0] == "killed"


def test_an_output_that_a_killed_process_cut_short_is_explained(job):
    job.node("n1", out="", **KILLED_BY_KERNEL)
    status, why = job.failure()
    assert status == "killed"
    assert why.startswith("out of memory: the kernel killed 1 process of the job")
    assert "no output of likwid-bench" in why


def test_a_whole_answer_counts_whatever_else_was_killed(job):
    job.node("n1", **KILLED_BY_KERNEL)
    assert ("n1", "Stream.triad") in job.collect()


@rows(
    "kills",
    [
        {"oom_kills_before": "7"},
        {"oom_kills_after": "7"},
        {"oom_kills_before": "9", "oom_kills_after": "7"},
        {"oom_kills_before": "x", "oom_kills_after": "9"},
        {"oom_kills_before": "7", "oom_kills_after": "9" * 5000},
        {"oom_kills_before": "7", "oom_kills_after": "-8"},
    ],
)
def test_a_count_that_is_none_is_no_evidence(tmp_path, kills):
    job = of_two(tmp_path)
    job.node("n1", exit="137", **kills)
    assert "out of memory" not in job.failure()[1]


@rows(
    "code, name",
    [
        ("132", "4 (SIGILL)"),
        ("134", "6 (SIGABRT)"),
        ("135", "7 (SIGBUS)"),
        ("136", "8 (SIGFPE)"),
        ("137", "9 (SIGKILL)"),
        ("139", "11 (SIGSEGV)"),
        ("152", "24 (SIGXCPU)"),
        ("159", "31 (SIGSYS)"),
    ],
)
def test_a_signal_that_nobody_sent_on_purpose_is_named(tmp_path, code, name):
    job = of_two(tmp_path)
    job.node("n1", exit=code, out="")
    status, why = job.failure()
    assert (status, f"signal {name} ended likwid-bench" in why) == ("killed", True)


@rows("code", ["128", "129", "130", "143", "160", "200", "255"])
def test_what_is_no_signal_or_one_by_which_somebody_asks_is_an_exit_code(tmp_path, code):
    job = of_two(tmp_path)
    job.node("n1", exit=code, out="")
    assert job.failure() == ("generic", f"likwid-bench exited with {code}: no message")


@rows("code", ["132", "139", "1"])
def test_a_fault_is_the_nodes_own_however_its_job_ended(tmp_path, code):
    job = of_two(tmp_path)
    job.node("n1", exit=code)
    assert job.failure(ended=CANCELLED)[0] in ("killed", "generic")


def test_a_rank_that_crashed_is_told_and_not_that_the_launcher_ended_the_others(job):
    said = (
        "srun: error: n2: task 1: Segmentation fault\nsrun: error: n1: task 0: Terminated\n"
        "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2026-03-01T10:27:43 ***\n"
    )
    job.node("n1", exit="143", err=said)
    for ended in ("COMPLETED", CANCELLED):
        assert job.failure(ended=ended) == (
            "killed",
            "signal 11 (SIGSEGV) ended likwid-bench, rank 1 on n2",
        )


def test_hydra_gives_the_bare_signal_for_an_exit_code(job):
    text = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
    job.node("n1", exit="9", out=text)
    assert job.failure()[0] == "killed"


# ---- before or with the end of its job


@rows(
    "end, over, status",
    [
        (1010, 2210.0, "killed"),  # 20 minutes before
        (1010, 1071.0, "killed"),
        (1010, 1070.0, "interrupted"),  # within the time in which Slurm ends a job
        (1010, 1005.0, "interrupted"),
        (1010, 0.0, "interrupted"),  # nobody knows when the job ended
    ],
)
@rows("ended", [CANCELLED, "NODE_FAIL", "PREEMPTED"])
def test_the_nodes_own_end_decides_where_it_came_before_that_of_its_job(
    tmp_path, end, over, status, ended
):
    job = Job(tmp_path, over=over)
    job.node("n1", exit="137", end=str(end))
    assert job.failure(ended=ended)[0] == status


def test_a_time_that_is_none_does_not_come_before(tmp_path):
    job = Job(tmp_path, over=9999.0)
    job.node("n1", exit="143", end="soon")
    assert job.failure(ended=CANCELLED)[0] == "interrupted"


# ---- without an account


@rows("ended", [CANCELLED, "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "FAILED"])
def test_a_node_whose_script_the_kernel_killed_is_told_by_slurm(tmp_path, ended):
    job = of_two(tmp_path)
    (job.stage / "rfm_job.err").write_text(OOM_LINES)
    assert job.failure(ended=ended) == ("killed", "out of memory, reported by Slurm for n1")


def test_a_node_that_slurm_saw_killed_and_that_went_down_later_was_killed(tmp_path):
    job = Job(tmp_path, lost={"n1": "down*: Not responding"})
    (job.stage / "rfm_job.err").write_text(OOM_LINES)
    assert job.failure(ended="NODE_FAIL")[0] == "killed"


@rows("ended, status", [("FAILED", "killed"), ("COMPLETED", "killed"), (CANCELLED, "interrupted")])
def test_a_script_that_was_killed_without_its_job_is_no_lost_node(tmp_path, ended, status):
    job = of_two(tmp_path)
    (job.stage / "rfm_job.err").write_text("srun: error: n1: task 0: Killed\n")
    assert job.failure(ended=ended)[0] == status


def test_a_node_that_had_begun_in_a_job_without_memory_ran_out_of_it(job):
    job.node("n1").rename(job.stage / "raw" / ".n1.1")
    status, why = job.failure(ended="OUT_OF_MEMORY")
    assert (status, why.partition(":")[0]) == ("killed", "out of memory")


def test_a_job_output_that_is_no_file_of_ours_stops_nothing(job):
    (job.stage / "rfm_job.err").symlink_to("/dev/zero")
    assert job.failure()[0] == "node_lost"


def test_a_hang_after_a_kill_is_a_hang_that_tells_of_the_kill(job):
    job.node("n1", exit="124", **KILLED_BY_KERNEL)
    status, why = job.failure()
    assert status == "timeout"
    assert why.endswith("; the kernel killed 1 process of the job")


@rows("code", range(1, 256))
def test_every_exit_code_has_a_status(code):
    failed = cause.failure(code, "", "", {}, "x")
    status, why = failed.status, str(failed)
    assert status in ("killed", "generic", "timeout", "tool_missing")
    assert why
