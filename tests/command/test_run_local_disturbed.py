"""Runs of the real ReFrame on one machine, disturbed: hostile values, disks, sessions, users."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from clone import CORE, PATIENCE, SLOW_LIKWID, copy_clone, reason, wait_for

ROOT = os.geteuid() == 0


# ---- hostile values and outputs


def test_hostile_values_of_a_site_are_never_run(good):
    mark = good.folder / "was-run"
    good.edit(
        "system",
        "    features: [hpcc, likwid]",
        f"""\
    features: [hpcc, likwid]
    variables: {{A: 'x y; touch {mark}', D: "a'\\"b", E: '$HOME/x'}}""",
    )
    good.fake("likwid-bench", f"echo \"$A|$D|$E\" >'{good.folder}/seen'\n{SLOW_LIKWID}")
    good.reframe("-r", *CORE)
    assert not mark.exists()
    seen = (good.folder / "seen").read_text()
    assert seen == f"x y; touch {mark}|a'\"b|{good.folder}/home/x\n"


def each(world, old, texts):
    """The answer of a run with each text instead of `old` in the site's file."""
    path = world.site() / "system.yaml"
    whole = path.read_text()
    assert old in whole
    for text in texts:
        path.write_text(whole.replace(old, text))
        yield text, world.reframe("-r")


def test_an_interface_that_is_no_name_is_refused(good):
    names = ("eth0; id", "$(id)", "`id`", "eth'0\\nid", "* ü")
    lines = [f'      "{name}": {{mtu: 65536}}' for name in names]
    for line, done in each(good, "      lo: {mtu: 65536}", lines):
        assert done.code == 2, line
        assert "is not valid" in done.err, line


def test_a_variable_that_reframe_would_run_is_refused(good):
    values = ("$(touch x)", "a `touch x`")
    lines = [f"likwid]\n    variables: {{A: '{value}'}}" for value in values]
    for line, done in each(good, "likwid]", lines):
        assert "is not valid in environments.system.variables.A" in done.refused(), line
        assert not (good.clone / "x").exists()


def test_a_sysctl_that_is_no_name_is_refused(good):
    keys = ("$(touch x)", "a b", "kernel.ostype; id", "a\\nb", "é.x", "'")
    for line, done in each(good, "kernel.ostype: Linux", [f'"{key}": Linux' for key in keys]):
        assert done.code == 2, line
        assert "is not valid in parameters.node.sysctl" in done.err, line
        assert not good.processes()


def control_characters(text):
    return {c for c in text if not c.isprintable() and c != "\n"}


def test_hostile_output_reaches_no_terminal(world):
    world.checks = "checks/cpu"
    world.fake(
        "likwid-bench",
        r"""
        printf '\033]0;owned\007\033[2J\000\377 cannot\n\r\033[1mmeasure' >&2
        printf 'program=\033[31mred\n' >>facts
        exit 4""",
    )
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1
    assert not control_characters(reason(done))
    for words in (["verdict"], ["why", "localhost"], ["why", "HERE-STREAM"]):
        assert not control_characters(world.siteproof(*words).said)
    assert not control_characters(world.samples()[0].read_text())


def test_fifty_megabytes_of_output_are_read_and_told_in_a_line(world):
    world.checks = "checks/cpu"
    world.fake("likwid-bench", "head -c 50000000 /dev/zero; exit 1")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1
    assert len(reason(done)) < 1000
    assert len(world.samples()[0].read_text()) < 5000


def test_a_node_whose_account_is_garbage_is_an_error_and_no_traceback(good):
    good.checks = "checks/cpu"
    good.fake("awk", "exit 1")  # so that swap and memory cannot be told
    done = good.reframe("-r", "-n", "Hpl")
    assert done.code == 1
    assert "Traceback" not in done.said


# ---- disks


def mount(path, *options):
    if not ROOT:
        pytest.skip("NOT TESTED: a full disk needs root")
    path.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(path)])
    if done.returncode:
        pytest.skip("NOT TESTED: no tmpfs can be mounted here")


@pytest.fixture
def disk(good):
    """Mounts a small disk in the data folder."""
    mounted = []

    def make(name, *options):
        mounted.append(good.data / name)
        mount(mounted[-1], *options)
        return mounted[-1]

    yield make
    for path in mounted:
        subprocess.run(["umount", "-l", str(path)])


def test_a_full_disk_under_perflogs_fails_and_loses_nothing(good, disk):
    good.checks = "checks/cpu"
    perflogs = disk("perflogs", "-o", "size=8k")
    (perflogs / "fill").write_bytes(b"x" * 8192)
    done = good.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "Traceback" not in done.said
    assert "samples cannot be written" in reason(done)
    assert not [path for path in perflogs.rglob("*") if path.name.endswith((".jsonl", ".tmp"))]
    assert "No space left" in good.siteproof("collect").refused()
    (perflogs / "fill").unlink()
    assert good.siteproof("collect").code == 0
    assert good.verdicts()["HERE-STREAM"] == "PASS"


@pytest.mark.parametrize("kilobytes", [4, 16, 24, 28])
def test_a_full_disk_under_stage_is_no_traceback_and_no_figure(good, disk, kilobytes):
    good.checks = "checks/cpu"
    disk("stage", "-o", f"size={kilobytes}k")
    done = good.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "Traceback" not in done.said
    assert good.siteproof("collect").code == 0
    assert good.verdicts()["HERE-STREAM"] in ("ERROR", "INCOMPLETE")


@pytest.mark.parametrize("name", ["perflogs", "stage", "output"])
def test_a_read_only_folder_is_refused(good, disk, name):
    disk(name, "-o", "ro")
    assert f"{name}: not writable for" in good.reframe("-r").refused()


# ---- sessions that end too early, and two at once


def start_slow(world, script="sleep 1000"):
    """Start all checks; the last benchmark hangs, and ReFrame watches it, when this returns."""
    world.recorded_hpcc()
    world.fake("likwid-bench", f"touch {world.folder}/runs; {script}")
    checks = ("-c", "checks/cpu", "-c", "checks/host")
    process = world.start("reframe", *checks, "-r", "--exec-order=name", *CORE)
    wait_for((world.folder / "runs").exists)
    job = next((world.data / "stage").glob("*/thishost/node/system/Stream/siteproof-job.json"))
    wait_for(lambda: json.loads(job.read_text())["jobs"])
    return process


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process_and_can_be_restored(world, end):
    process = start_slow(world)
    process.send_signal(end)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    wait_for(lambda: not world.processes())
    world.recorded_likwid()
    done = world.run("reframe", "--restore-session", "--failed", "-r")
    assert done.code == 0, done
    assert "Stream" in done.out
    assert set(world.verdicts().values()) == {"PASS"}, world.siteproof("why", "localhost")


def test_a_session_is_restored_from_the_report_that_is_named(good):
    good.fake("likwid-bench", "exit 1")
    assert good.reframe("-r", *CORE).code == 1
    report = next((good.data / "output").rglob("run-report-*.json"))
    moved = report.rename(good.folder / "report.json")
    good.recorded_likwid()
    # Jobs of one session are ordered by the second in which they ended.
    wait_for(lambda: time.time() // 1 > moved.stat().st_mtime // 1)
    done = good.run("reframe", f"--restore-session={moved}", "--failed", "-r")
    assert done.code == 0, done
    assert "Ran 1/1" in done.out
    assert set(good.verdicts().values()) == {"PASS"}


def test_a_broken_report_is_no_traceback(good):
    report = good.folder / "report.json"
    for text in ("", "{", "{}", '{"session_info": 5}'):
        report.write_text(text)
        done = good.run("reframe", f"--restore-session={report}", "-r")
        assert done.code in (1, 2), done
        assert "siteproof/checks" not in done.said, text


def test_a_restored_session_without_failures_has_nothing_to_run(good):
    good.checks = "checks/host"
    assert good.reframe("-r", "-n", "HostParameters").code == 0
    done = good.run("reframe", "--restore-session", "--failed", "-r")
    assert "nothing to run" in done.refused()


def test_restoring_with_a_search_path_is_refused_where_reframe_passes_nothing(world):
    world.fake("likwid-bench", "exit 1")
    assert world.reframe("-r", "-n", "Stream").code == 1
    done = world.reframe("--restore-session", "--failed", "-r")
    assert "use --restore-session without -c" in done.refused()


def test_a_killed_session_is_waited_for_and_collected_by_the_next(world):
    go = world.folder / "go"
    process = start_slow(world, f"until [ -e {go} ]; do sleep 0.1; done; {SLOW_LIKWID}")
    process.kill()
    process.communicate()
    following = world.start("reframe", "-c", "checks/host", "-r", "-n", "HostParameters")
    told = following.stderr.readline()
    assert "a lost session still measures on this machine; waiting until it ends" in told
    go.touch()
    out, err = following.communicate(timeout=PATIENCE)
    assert following.returncode == 0, out + err
    assert "collected 2 samples of a lost session" in err
    assert set(world.verdicts("--since", "1h").values()) == {"PASS"}


def test_two_sessions_at_once_take_turns_and_lose_nothing(world):
    world.fake("likwid-bench", SLOW_LIKWID)
    words = ("reframe", "-c", "checks/cpu", "-r", "-n", "Stream")
    both = [world.start(*words) for _ in range(2)]
    told = [process.communicate(timeout=PATIENCE) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    waited = [err for _, err in told if "another session measures on this machine" in err]
    assert len(waited) == 1, told
    assert len(world.samples()) == 2


def test_two_collectors_at_once_leave_each_sample_once(world):
    process = start_slow(world)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    both = [world.start("siteproof", "collect") for _ in range(4)]
    told = [process.communicate(timeout=PATIENCE) for process in both]
    assert [process.returncode for process in both] == [0] * 4, told
    assert len(world.samples()) == 2 + 1  # HostParameters, Hpl, and the Stream that was lost
    assert world.siteproof("collect").out == "nothing left to collect\n"


# ---- two users


def test_a_second_user_is_refused_in_one_line_and_may_still_read(shared):
    shared.checks = "checks/cpu"
    assert shared.reframe("-r", "-n", "Stream").code == 0
    shared.as_nobody = True
    assert "perflogs: not writable for nobody" in shared.reframe("-r", "-n", "Stream").refused()
    assert shared.reframe("-l").code == 0
    assert shared.verdicts()["HERE-STREAM"] == "PASS"


def group_writable(world):
    for path in (world.data, *(world.data / n for n in ("perflogs", "stage", "output"))):
        path.mkdir()
        shutil.chown(path, 0, "nogroup")
        path.chmod(0o2775)


def test_two_users_of_a_group_work_in_one_data_folder(shared):
    shared.checks = "checks/cpu"
    group_writable(shared)
    for shared.as_nobody in (False, True, False):
        done = shared.reframe("-r", "-n", "Stream")
        assert done.code == 0, done
        assert not done.err
    assert len(shared.samples()) == 3


def test_a_partition_that_somebody_else_made_for_himself_is_told_before_the_run(shared):
    group_writable(shared)
    (shared.data / "perflogs/thishost/node").mkdir(parents=True)
    shared.as_nobody = True
    assert "thishost/node: not writable for nobody" in shared.reframe("-r").refused()


def test_the_lost_session_of_another_user_is_left_to_him(shared):
    group_writable(shared)
    process = start_slow(shared)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    for path in [shared.data / "stage", *(shared.data / "stage").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (shared.data / "stage").chmod(0o2775)
    shared.as_nobody = True
    done = shared.siteproof("collect")
    assert done.code == 2, done
    assert all("belongs to root" in line for line in done.err.splitlines())
    done = shared.reframe("-r", "-n", "HostParameters")
    assert done.code == 0, done
    assert "belongs to root" in done.err


def test_the_copy_of_a_clone_runs_as_the_clone_does(good):
    good.clone = copy_clone(good.folder / "clone")
    done = good.reframe("-r", *CORE)
    assert done.code == 0, done
    assert str(good.clone / "checks") in done.out
