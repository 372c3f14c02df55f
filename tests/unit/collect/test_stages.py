"""From what the nodes left to samples: every expected node is accounted for, whatever it left."""

import json
import os
import socket
import subprocess
import time
from decimal import Decimal
from pathlib import Path

import pytest
from clone import OUTPUTS, wait_for
from rows import rows

from siteproof.collect import stages
from siteproof.errors import UserError
from siteproof.record import manifest, samples
from siteproof.record.manifest import Manifest
from siteproof.record.sessions import Sessions

GOOD = {
    "exit": "0",
    "limit": "100",
    "start": "1000",
    "end": "1010",
    "kernel": "6.1",
    "cpus": "2",
    "memory_kib": "16000000",
    "swap_before": "7",
    "swap_after": "7",
}
FACTS = {"program": "likwid-bench", "array_bytes": "80000000", "last_level_cache": "1000"}
LIKWID = (OUTPUTS / "likwid/5.2.2-copy_and_stream.txt").read_text()


class Job:
    """A job's stage directory, as nodes leave it."""

    def __init__(self, folder, **changed):
        self.stages, self.perflogs = folder / "stage", folder / "perflogs"
        self.stage = self.stages / "s1" / "here" / changed.get("check", "Stream")
        (self.stage / "raw").mkdir(parents=True)
        self.plan = Manifest(
            **{
                "session": "s1",
                "system": "here",
                "partition": "all",
                "environment": "system",
                "check": "Stream",
                "mode": "quick",
                "expected": "n[1-2]",
                "metrics": ["copy", "triad"],
                "parsers": {"likwid-bench": "likwid"},
                "derive": "cpu.stream",
                "jobs": ["17"],
                "started": 900.0,
                **changed,
            }
        )
        self.plan.save(self.stage)

    def node(self, name="n1", out=LIKWID, err="", facts=None, **meta):
        """What a node leaves; a fact or an entry of its account that is None is left out."""
        folder = self.stage / "raw" / name
        folder.mkdir()
        for file, held in (("meta", {**GOOD, **meta}), ("facts", FACTS | (facts or {}))):
            lines = [f"{key}={value}" for key, value in held.items() if value is not None]
            (folder / file).write_text("\n".join(lines) + "\n")
        (folder / "stdout").write_bytes(out if isinstance(out, bytes) else out.encode())
        (folder / "stderr").write_text(err)
        return folder

    def collect(self, **keys):
        """The samples by node and metric."""
        found = stages.collect(self.stage, self.perflogs, **keys)
        assert len({s.key for s in found}) == len(found)
        return {(s.node, s.metric): s for s in found}

    def failure(self, node="n1", **keys):
        """Status and reason of a node without a value."""
        found = self.collect(**keys)[node, f"{self.plan.check}.*"]
        assert found.value is None
        return found.status, found.why


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


def test_recorded_outputs_become_samples_with_conditions_and_provenance(job):
    job.node("n1")
    job.node("n2")
    found = job.collect()
    triad = found["n1", "Stream.triad"]
    assert (triad.value, triad.unit, triad.status) == (Decimal("68231.34"), "MB/s", "ok")
    assert triad.conditions["program"] == "likwid-bench"
    assert triad.conditions["array_bytes"] == "80000000"
    assert triad.header.provenance["kernel"] == "6.1"
    assert set(found) == {(n, f"Stream.{m}") for n in ("n1", "n2") for m in ("copy", "triad")}


def test_a_node_that_differs_keeps_its_own_conditions_in_its_own_line(job):
    job.node("n1")
    job.node("n2", facts={"array_bytes": "90000000"})
    found = job.collect()
    sizes = {node: s.conditions["array_bytes"] for (node, _), s in found.items()}
    assert sizes == {"n1": "80000000", "n2": "90000000"}


def test_an_expected_node_that_left_nothing_is_lost_by_name(job):
    job.node("n1")
    assert job.failure("n2") == ("node_lost", "left no result (job ended)")


def test_a_node_without_a_result_in_a_job_at_its_limit_timed_out(job):
    assert job.failure("n2", ended="TIMEOUT")[0] == "timeout"


@rows(
    "ended",
    [
        "CANCELLED",
        "CANCELLED by 0",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "lost with its session",
        "job cancelled because it was blocked in pending state: ReqNodeNotAvail",
    ],
)
def test_a_job_that_was_ended_holds_nothing_against_a_node(tmp_path, ended):
    job = Job(tmp_path)
    job.node("n1")
    assert job.failure("n2", ended=ended) == ("interrupted", f"left no result (job {ended})")


@rows(
    "code, ended, status",
    [
        ("143", "CANCELLED by 0", "interrupted"),
        ("137", "lost with its session", "interrupted"),
        ("143", "COMPLETED", "generic"),
        ("143", "TIMEOUT", "generic"),
        ("1", "CANCELLED", "generic"),
        ("124", "CANCELLED", "timeout"),
    ],
)
def test_what_a_signal_ended_with_its_job_is_no_failure_of_the_node(tmp_path, code, ended, status):
    job = Job(tmp_path)
    job.node("n1", exit=code)
    assert job.failure("n1", ended=ended)[0] == status


@rows("ended", ["COMPLETED", "FAILED", "OUT_OF_MEMORY", ""])
def test_a_node_that_alone_left_nothing_in_a_job_that_ended_by_itself_is_lost(tmp_path, ended):
    job = Job(tmp_path)
    job.node("n1")
    assert job.failure("n2", ended=ended)[0] == "node_lost"


def test_where_no_node_of_several_left_a_result_no_node_is_accused(tmp_path):
    job = Job(tmp_path / "a")
    assert job.failure("n2", ended="FAILED")[0] == "interrupted"
    job = Job(tmp_path / "b", expected="n2")
    assert job.failure("n2", ended="FAILED")[0] == "node_lost"


def test_a_node_that_slurm_calls_down_is_lost_however_its_job_ended(tmp_path):
    job = Job(tmp_path, lost={"n2": "down*: Not responding"})
    found = job.collect(ended="lost with its session")
    assert [found[n, "Stream.*"].status for n in ("n1", "n2")] == ["interrupted", "node_lost"]


def test_nodes_that_could_not_be_asked_keep_the_reason(tmp_path):
    job = Job(tmp_path, lost={"n2": "drained: bad memory"})
    job.node("n1")
    assert job.failure("n2") == ("node_lost", "drained: bad memory")


def test_nodes_that_were_not_asked_for_no_fault_of_theirs_are_not_lost(tmp_path):
    why = "reserved: in a reservation, and -J reservation=NAME is not given"
    job = Job(tmp_path, lost={"n2": why}, spared=["n2"])
    job.node("n1")
    assert job.failure("n2", ended="COMPLETED") == ("interrupted", why)


def test_a_half_written_result_is_no_result(job):
    job.node("n2")
    job.node("n1").rename(job.stage / "raw" / ".n1.1")
    assert job.failure("n1")[0] == "node_lost"
    assert stages.measured(job.stage, ["n1", "n2", "n3"]) == {"n2"}


def test_results_of_strangers_are_left_out(job):
    for name in ("n1", "n2", "stranger"):
        job.node(name)
    assert {node for node, _ in job.collect()} == {"n1", "n2"}


@rows(
    "changes, status, told",
    [
        ({"exit": "124"}, "timeout", "likwid-bench hung: ended after its time limit"),
        ({"exit": "137", "end": "1100"}, "timeout", "hung"),
        ({"exit": "137", "err": "Killed"}, "killed", "signal 9 (SIGKILL) ended likwid-bench"),
        (
            {"exit": "127", "err": "likwid-bench is not installed"},
            "tool_missing",
            "is not installed",
        ),
        (
            {"exit": "1", "err": "Segmentation fault"},
            "generic",
            "exited with 1: Segmentation fault",
        ),
        ({"exit": "1", "out": "said on stdout"}, "generic", "exited with 1: said on stdout"),
        ({"exit": "1", "out": ""}, "generic", "exited with 1: no message"),
        ({"exit": None}, "parse", "account has exit ''"),
        ({"exit": "-1"}, "parse", "account has exit '-1'"),
        ({"exit": "zero"}, "parse", "account has exit 'zero'"),
        ({"exit": "9" * 5000}, "parse", "account has exit"),
        ({"out": LIKWID[:700]}, "parse", "cut off"),
        ({"out": ""}, "parse", "no output of likwid-bench"),
        ({"out": b"\xff\xfe\0garbage\x1b[2J"}, "parse", "no output of likwid-bench"),
        ({"out": LIKWID.replace("68231.34", "68231,34")}, "parse", "'68231,34' is not a number"),
        (
            {"facts": {"program": "dd"}},
            "parse",
            "measured by 'dd', which no parser of Stream reads",
        ),
        ({"facts": {"program": None}}, "parse", "measured by ''"),
        ({"facts": {"array_bytes": None}}, "parse", "array_bytes '' is not a number"),
        ({"facts": {"last_level_cache": "much"}}, "parse", "'much' is not a number"),
        ({"facts": {"last_level_cache": "80000000"}}, "invalid", "less than 4 times the caches"),
    ],
)
def test_what_went_wrong_is_a_status_and_a_reason(tmp_path, changes, status, told):
    job = Job(tmp_path)
    job.node("n2")
    job.node("n1", **changes)
    found = job.failure("n1")
    assert found[0] == status
    assert told in found[1]
    assert ("n2", "Stream.triad") in job.collect()


def test_a_metric_that_the_catalogue_promises_and_the_output_lacks_is_an_error(tmp_path):
    job = Job(tmp_path, metrics=["copy", "triad", "quad"])
    job.node("n1")
    assert job.failure() == ("parse", "the output has no quad, expected by the catalogue")


def of_hpl(folder, facts=None, **accounts):
    """A job of HPL, and what each node has left; accounts: of a node, entries that differ."""
    job = Job(
        folder,
        check="Hpl",
        metrics=["gflops"],
        parsers={"xhpl": "hpl"},
        derive="cpu.hpl",
        facts=facts or {},
    )
    for node, meta in accounts.items():
        out = (OUTPUTS / "hpl/2.0-n3000.txt").read_text()
        job.node(node, out=out, facts={"program": "xhpl"}, **meta)
    return job


@rows("key", ["swap_before", "swap_after", "memory_kib"])
@rows("value", [None, "", "many", "1.5"])
def test_an_hpl_node_that_cannot_account_for_itself_is_an_error(tmp_path, key, value):
    assert of_hpl(tmp_path, n1={key: value}).failure()[0] == "parse"


@rows("given, share", [("100000", "0.7031"), (None, "0.0044"), ("16000000", "0.0044")])
def test_the_share_of_memory_is_of_what_the_job_has(tmp_path, given, share):
    found = of_hpl(tmp_path, n1={"memory_given_kib": given}).collect()
    assert found["n1", "Hpl.gflops"].conditions["memory_share"] == share


@rows("given", ["0", "16000001", "-1", "much", "9" * 5000])
def test_a_node_cannot_have_been_given_more_memory_than_it_has(tmp_path, given):
    assert of_hpl(tmp_path, n1={"memory_given_kib": given}).failure()[0] == "parse"


def test_an_hpl_node_that_swapped_or_lacks_cores_gave_no_valid_answer(tmp_path):
    job = of_hpl(tmp_path, {"cores": "24"}, n1={"swap_after": "9"}, n2={})
    assert job.failure("n1") == ("invalid", "the node swapped 2 pages out during HPL")
    assert "2 processors, expected 24 cores" in job.failure("n2")[1]


def test_a_result_that_cannot_be_read_is_an_error(job):
    (job.node("n1") / "stdout").unlink()
    assert job.failure()[0] == "generic"


def test_control_characters_of_a_node_reach_no_sample(job):
    job.node("n1", exit="3", err="\x1b]0;owned\x07 \x9b1m", facts={"program": "\x1b[2Jx"})
    assert all(c.isprintable() for c in job.failure()[1])
    job.node("n2", facts={"note": "\x1b[31mred"}, kernel="\x1b[1m6.1")
    for sample in job.collect().values():
        held = f"{sample.conditions}{sample.header.provenance}"
        assert "\x1b" not in held
        assert "\\x1b" not in held


# ---- again, and by whom


def test_collecting_twice_gives_the_same_bytes_whenever_it_is_done(job, monkeypatch):
    job.node("n1")
    job.collect()
    path = next(samples.files(job.perflogs, "here"))
    before = path.read_bytes()
    now = time.time()
    monkeypatch.setattr(stages.time, "time", lambda: now + 1e6)
    job.collect()
    assert path.read_bytes() == before
    assert len(list(samples.files(job.perflogs, "here"))) == 1


def test_a_sample_is_as_old_as_its_measurement(job):
    job.node("n1", end="1010")
    job.node("n2", end="1020")
    assert job.collect()["n1", "Stream.triad"].header.time == "1970-01-01T00:17:00+00:00"


def test_no_clock_of_a_node_runs_ahead(job):
    job.node("n1", end="99999999999")
    assert job.collect()["n1", "Stream.triad"].header.time < "2100"


def test_jobs_that_never_started_keep_files_of_their_own(tmp_path):
    for nodes in ("n[1-64]", "n[65-70]"):
        job = Job(tmp_path / nodes, jobs=[], expected=nodes, lost={"n1": "down"})
        stages.collect(job.stage, tmp_path / "perflogs")
    found = Sessions(tmp_path / "perflogs", "here").of(lambda _: True)
    assert len(found) == 70
    assert len({s.key for s in found}) == 70


def lost(tmp_path, name, **changed):
    """A job of a session whose process is gone."""
    return Job(tmp_path / name, **{"pid": 2**22 + 7, **changed})


def orphans(job):
    return [stage for stage, _ in stages.orphans(job.stages)]


def test_a_lost_session_is_an_orphan_until_it_is_collected(tmp_path):
    job = lost(tmp_path, "a")
    job.node("n1")
    assert orphans(job) == [job.stage]
    assert list(stages.collect_lost(job.stages, job.perflogs)) == [(job.stage, 3)]
    assert orphans(job) == []


def test_a_session_that_lives_is_no_orphan(tmp_path):
    with subprocess.Popen(["reframe", "60"], executable="/bin/sleep") as session:
        job = Job(tmp_path, pid=session.pid)
        try:
            wait_for(lambda: orphans(job) == [])
        finally:
            session.kill()
    assert orphans(job) == [job.stage]


def test_a_process_that_is_no_reframe_does_not_keep_a_session_alive(job):
    assert job.plan.pid == os.getpid()
    assert orphans(job) == [job.stage]


def test_a_session_on_another_login_node_is_left_for_a_day(tmp_path):
    young = lost(tmp_path, "a", host="elsewhere", started=time.time(), limit=60)
    old = lost(tmp_path, "b", host="elsewhere", started=time.time() - 2 * 86400, limit=60)
    assert orphans(young) == []
    assert orphans(old) == [old.stage]


@rows("jobs", [[], ["17"]])
def test_a_job_that_outlives_its_session_is_no_orphan_yet(tmp_path, jobs):
    job = lost(tmp_path, "a", jobs=jobs, host=socket.gethostname())
    script = job.stage / "rfm_job.sh"
    script.write_text("read -r line\n")
    with subprocess.Popen(["bash", script], stdin=subprocess.PIPE) as process:
        wait_for(lambda: orphans(job) == [])
        process.communicate(b"\n")
    assert orphans(job) == [job.stage]


def test_a_job_that_slurm_still_holds_is_no_orphan(tmp_path, monkeypatch):
    job = lost(tmp_path, "a", scheduler="slurm", jobs=["5"])
    program = tmp_path / "squeue"
    program.write_text("#!/bin/sh\necho 5\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert orphans(job) == []
    program.write_text("#!/bin/sh\nexit 1\n")
    assert orphans(job) == []
    told = "slurm_load_jobs error: Invalid job id specified"
    program.write_text(f"#!/bin/sh\necho '{told}' >&2\nexit 1\n")
    assert orphans(job) == [job.stage]


@rows("text", ["", "{", "[]", "{}", '{"session": "s"}', "\0", '{"expected": "n["}'])
def test_a_broken_manifest_is_named_and_stops_no_other(tmp_path, text):
    broken = lost(tmp_path, "a", check="Broken")
    (broken.stage / manifest.NAME).write_text(text)
    other = Job(tmp_path / "a", pid=2**22 + 7)
    found = dict(stages.collect_lost(other.stages, other.perflogs))
    assert isinstance(found[broken.stage], UserError)
    assert manifest.NAME in str(found[broken.stage])
    assert found[other.stage] == 2


@rows("changed", [{"expected": "n["}, {"pid": "x"}, {"jobs": 5}, {"facts": []}])
def test_a_manifest_with_values_of_another_kind_is_named(tmp_path, changed):
    job = lost(tmp_path, "a")
    record = json.loads((job.stage / manifest.NAME).read_text())
    (job.stage / manifest.NAME).write_text(json.dumps(record | changed))
    [(stage, error)] = stages.collect_lost(job.stages, job.perflogs)
    assert isinstance(error, UserError)
    assert "\n" not in str(error)


def test_perflogs_that_cannot_be_written_are_told_and_nothing_is_marked(tmp_path):
    job = lost(tmp_path, "a")
    job.perflogs.write_text("a file")
    [(_, error)] = stages.collect_lost(job.stages, job.perflogs)
    assert "samples cannot be written" in str(error)
    assert orphans(job) == [job.stage]


# ---- the command


def test_the_command_collects_what_it_can_and_names_the_rest(world):
    job = Job(world.data, pid=2**22 + 7, system="thishost")
    job.node("n1")
    broken = world.data / "stage/s2/here/Broken"
    broken.mkdir(parents=True)
    (broken / manifest.NAME).write_text("{")
    done = world.siteproof("collect")
    assert "not a valid manifest" in done.refused()
    assert "3 samples from" in done.out
    assert done.out.splitlines()[-1].startswith("3 samples collected; not collected: ")


def test_the_next_run_warns_of_a_broken_manifest_and_goes_on(good):
    broken = good.data / "stage/s2/here/Broken"
    broken.mkdir(parents=True)
    (broken / manifest.NAME).write_text("{")
    done = good.reframe("-r", "-n", "HostParameters")
    assert done.code == 0, done
    assert done.err.count("siteproof: ") == 1
    assert "not a valid manifest" in done.err


def test_the_command_names_a_lost_session_whose_job_still_runs(world):
    job = lost(world.data.parent, "data", host=socket.gethostname())
    assert job.stages == world.data / "stage"
    job.node("n1")
    script = job.stage / "rfm_job.sh"
    script.write_text("read -r line\n")
    with subprocess.Popen(["bash", script], stdin=subprocess.PIPE) as process:
        wait_for(lambda: orphans(job) == [])
        done = world.siteproof("collect")
        process.communicate(b"\n")
    assert done.code == 0
    assert str(job.stage) in done.out
    assert "nothing left" not in done.out
    assert "3 samples collected" in world.siteproof("collect").out
    assert "nothing left" in world.siteproof("collect").out


def test_a_process_that_ends_while_processes_are_looked_at_stops_nothing(tmp_path, monkeypatch):
    job = lost(tmp_path, "a", host=socket.gethostname())
    job.node("n1")
    look = Path.stat

    def ended(path, **keys):
        if path.name == "cmdline":
            raise ProcessLookupError(3, "No such process", str(path))
        return look(path, **keys)

    monkeypatch.setattr(Path, "stat", ended)
    assert orphans(job) == [job.stage]


# ---- clocks


@rows(
    "start, end, told",
    [
        (900, 1000, None),
        (841, 1000, None),
        (100, 200, "n2 800 s behind"),
        (1000, 10**10, "s ahead"),
        (1000, "9" * 5000, None),
        ("٩", "١٠٠", None),
    ],
)
def test_a_node_whose_clock_is_off_is_named_and_dates_nothing(tmp_path, start, end, told):
    job = Job(tmp_path)
    job.node("n1", start=950, end=1000)
    job.node("n2", start=start, end=end)
    (head, *_) = (s.header for s in job.collect().values())
    assert head.time == "1970-01-01T00:16:40+00:00"
    off = head.provenance.get("clocks", "")
    assert told in off if told else not off
