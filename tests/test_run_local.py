"""Runs of the real ReFrame on one machine: what goes right, and every way to go wrong."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from clone import OUTPUTS, World, copy_clone, wait_for

ROOT = os.geteuid() == 0
CORE = ("-n", "Hpl|Stream|HostParameters")  # the checks of thishost's criteria
SLOW_LIKWID = f"""
    case $2 in copy) sleep 1; cat '{OUTPUTS}/likwid/5.2.2-copy_avx.txt' ;;
    stream) cat '{OUTPUTS}/likwid/5.2.2-stream_avx.txt' ;; esac"""


def likwid(world, name):
    """likwid-bench prints a recorded output, good or bad, in its first call."""
    world.fake("likwid-bench", f"[ $2 = copy ] && cat '{OUTPUTS}/likwid/{name}.txt'")


def stream(world, name):
    """A STREAM that prints a recorded output."""
    world.fake("stream_c", f"# STREAM version\ncat '{OUTPUTS}/stream/{name}.txt'")


def reason(done):
    """The reason that ReFrame tells, in one line."""
    return next(line for line in done.out.splitlines() if "* Reason:" in line)


# ---- what goes right


def test_a_healthy_machine_passes_and_every_value_is_kept(good):
    done = good.reframe("-r", *CORE)
    assert done.code == 0, done
    assert "Ran 3/4" in done.out and "1 skipped" in done.out  # the fourth is Hpl on MKL
    assert good.verdicts() == {
        "HERE-HPL": "PASS", "HERE-STREAM": "PASS", "HERE-PARAMETERS": "PASS"}
    assert good.siteproof("verdict").code == 0
    assert len(good.samples()) == 3
    assert not good.processes()
    rows = (good.data / "perflogs/thishost/node/Stream.log").read_text().splitlines()
    assert "|pass|triad|5288.04|MB/s|2000" in rows[-1]


@pytest.mark.slow
@pytest.mark.tool("ReFrame", "HPCC", "likwid-bench")
def test_the_real_benchmarks_pass_on_this_machine(tmp_path):
    for program in ("hpcc", "mpirun", "likwid-bench"):
        if not shutil.which(program):
            pytest.skip(f"REAL BENCHMARKS NOT TESTED: no {program}")
    world = World(tmp_path)
    world.site()
    (world.bin / "nproc").unlink()
    done = world.reframe("-r", *CORE)
    assert done.code == 0, done
    assert world.siteproof("verdict").code == 0


def test_data_may_lie_in_a_folder_with_an_odd_name(good):
    good.data = good.folder / "[für;alle&%(x)s#*"
    done = good.reframe("-r", *CORE)
    assert done.code == 0, done
    assert set(good.verdicts().values()) == {"PASS"}


@pytest.mark.parametrize("name", ["$HOME", "`id`", "a b", "it's", "{a}"])
def test_a_data_folder_whose_name_reframe_would_take_apart_is_refused(good, name):
    good.data = good.folder / name
    assert "ReFrame cannot work below a name with" in good.reframe("-r").refused()


def test_a_data_folder_that_does_not_exist_is_made_by_a_run(good):
    good.data = good.folder / "a" / "b"
    assert good.reframe("-r", "-n", "HostParameters").code == 0
    assert good.verdicts()["HERE-PARAMETERS"] == "PASS"


@pytest.mark.parametrize("mode", ["quick", "maintenance", "acceptance"])
def test_each_mode_runs_and_stands_in_the_samples(good, mode):
    done = good.reframe("-r", "-n", "HostParameters", "--mode", mode)
    assert done.code == 0, done
    header = json.loads(good.samples()[0].read_text().splitlines()[0])
    assert header["mode"] == mode


@pytest.mark.parametrize("words", [["-l"], ["-L"], ["--dry-run"], ["--describe"]])
def test_what_does_not_measure_leaves_no_samples_and_nothing_to_collect(good, words):
    done = good.reframe(*words)
    assert done.code == 0, done
    assert all(check in done.out for check in ("Hpl", "Stream", "HostParameters"))
    assert not (good.data / "perflogs").exists() or not good.samples()
    good.data.mkdir(exist_ok=True)
    assert "nothing left to collect" in good.siteproof("collect").out


def test_checks_can_be_chosen_by_name_and_variables_set(good):
    done = good.reframe("-r", "-n", "Stream", "-S", "nodes=localhost", "-S", "Stream.time_limit=5m")
    assert done.code == 0, done
    assert "Ran 1/1" in done.out
    assert good.verdicts()["HERE-HPL"] == "INCOMPLETE"


# ---- refusals: one line, exit code 2, nothing run


@pytest.mark.parametrize(("words", "told"), [
    (["-r", "--mode", "fast"], "--mode: unknown mode 'fast'. Allowed: quick, maintenance"),
    (["-l", "--mode=fast"], "--mode: unknown mode 'fast'"),
    (["-r", "-S", "mode=fast"], "-S mode: unknown mode 'fast'"),
    (["-r", "-S", "nodes=node[1-"], "-S nodes: 'node[1-' is no node set"),
    (["-r", "-S", "nodes=elsewhere"], "elsewhere is not in the inventory"),
    (["-r", "-S", "nodes=0"], "0 of 1 nodes"),
    (["-r", "-S", "nodes=2"], "2 of 1 nodes"),
    (["-r", "-n", "Strem"], "nothing to run: the options leave no check"),
    (["-r", "-t", "untagged"], "nothing to run"),
    (["-r", "-S", "Hpl.share=much"], "hpl.py: cannot be loaded: could not convert"),
    (["-r", "-S", "Stream.time_limit=@none"], "-S time_limit: a job without a limit can hang"),
    (["-r", "--system", "nowhere"], "no site 'nowhere'"),
])
def test_a_mistake_on_the_command_line_is_refused(good, words, told):
    assert told in good.reframe(*words).refused()
    assert not (good.data / "perflogs").exists() or not good.samples()


def test_without_our_settings_nothing_runs(good):
    done = good.reframe("-r", RFM_CONFIG_FILES="UNSET")
    assert "this is not ReFrame with Siteproof's settings" in done.refused()


def test_a_single_check_without_our_settings_is_refused_too(good):
    done = good.run("reframe", "-c", "checks/cpu/stream.py", "-r", RFM_CONFIG_FILES="UNSET")
    assert "this is not ReFrame with Siteproof's settings" in done.refused()


def test_a_foreign_reframe_without_our_libraries_is_refused(good):
    library = good.folder / "library"
    library.mkdir()
    ours = ("pydantic", "siteproof", "__editable__")
    for path in (Path(os.__file__).parent / "site-packages", *map(Path, site_packages())):
        for held in path.iterdir() if path.is_dir() else ():
            link = library / held.name
            if not held.name.lower().startswith(ours) and not link.is_symlink():
                link.symlink_to(held)
    program = f"import sys; sys.path.insert(0, {str(library)!r}); sys.argv[0] = 'reframe'; " \
        "from reframe.frontend.cli import main; sys.exit(main())"
    foreign = ["python3", "-S", "-c", program, "-c", "checks/", "-r"]
    for settings in ({}, {"RFM_CONFIG_FILES": "UNSET"}):
        assert "make venv" in good.run(*foreign, PYTHONPATH="UNSET", **settings).refused()


def site_packages():
    """Where the libraries of this Python are."""
    import site
    return site.getsitepackages()


@pytest.mark.parametrize("inside", ["", "data"])
def test_a_data_folder_that_is_a_file_is_refused(good, inside):
    good.data.write_text("a file")
    good.data = good.data / inside if inside else good.data
    assert "cannot be made: " in good.reframe("-r").refused()
    assert "cannot be made: " in good.reframe("--dry-run").refused()
    assert "is no folder" in good.siteproof("verdict").refused()


# ---- checks that are not what the catalogue says


def broken(text, old, new):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(("old", "new", "told"), [
    ("import reframe as rfm", "import reframe as rfm\nimport not_there", "yields no Stream"),
    ("class Stream(", "class Strem(", "yields no Stream"),
    ("@rfm.simple_test", "", "yields no Stream"),
    ('("copy", "triad")', '("copy", "quad")', "yields no Stream"),
    ("class Stream(", "class Stream(:", "stream.py:10: cannot be loaded: invalid syntax"),
    ("class Stream(", "\0", "cannot be loaded"),
    ("@rfm", "raise ValueError('no')\n@rfm", "yields no Stream"),
], ids=["import", "renamed", "unmarked", "metric", "syntax", "nul", "raises"])
def test_a_broken_check_ends_the_run(good, old, new, told):
    good.clone = copy_clone(good.folder / "clone")
    path = good.clone / "checks/cpu/stream.py"
    path.write_text(broken(path.read_text(), old, new))
    assert told in good.reframe("-r").refused()
    assert told in good.reframe("-l").refused()


def test_a_check_that_is_gone_is_told_by_the_verdict(good):
    good.clone = copy_clone(good.folder / "clone")
    (good.clone / "checks/cpu/stream.py").unlink()
    assert good.reframe("-r", "-n", "Hpl|HostParameters").code == 0
    assert good.verdicts()["HERE-STREAM"] == "INCOMPLETE"


# ---- tools that fail


def test_a_missing_tool_is_skipped_with_its_reason(world):
    world.without("likwid-bench", "stream", "stream_c", "mpirun", "hpcc", "xhpl")
    done = world.reframe("-r", *CORE)
    assert done.code == 0, done
    assert "SKIP" in done.out
    assert "[tool missing: mpirun is not installed]" in done.out
    assert world.verdicts() == {
        "HERE-HPL": "SKIP", "HERE-STREAM": "SKIP", "HERE-PARAMETERS": "PASS"}
    verdict = world.siteproof("verdict")
    assert "tool_missing: mpirun is not installed" in verdict.out


def test_when_no_tool_is_there_nothing_was_decided(world):
    world.without("likwid-bench", "stream", "stream_c", "mpirun", "hpcc", "xhpl")
    world.reframe("-r", "-n", "Hpl|Stream")
    assert world.siteproof("verdict").code == 3


def test_a_failing_tool_is_an_error_with_its_last_words(world):
    world.fake("likwid-bench", "echo 'no memory left' >&2; exit 9")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "generic: likwid-bench exited with 9: no memory left" in reason(done)
    assert world.verdicts()["HERE-STREAM"] == "ERROR"
    assert world.siteproof("verdict").code == 1


def test_a_killed_tool_did_not_hang(world):
    world.fake("likwid-bench", "kill -9 $$")
    assert "generic: likwid-bench exited with 137" in reason(world.reframe("-r", "-n", "Stream"))


def test_a_hanging_tool_is_ended_and_named_within_its_limit(world):
    world.fake("likwid-bench", "sleep 1000")
    begun = time.monotonic()
    done = world.reframe("-r", "-n", "Stream", "-S", "Stream.time_limit=4s")
    assert time.monotonic() - begun < 60
    assert done.code == 1, done
    assert "timeout: likwid-bench hung: ended after its time limit" in reason(done)
    assert world.verdicts()["HERE-STREAM"] == "ERROR"
    wait_for(lambda: not world.processes(), 5)


def test_a_tool_that_ignores_its_end_goes_with_its_job(world):
    world.fake("likwid-bench", "trap '' TERM; sleep 1000 & wait; sleep 1000")
    done = world.reframe("-r", "-n", "Stream", "-S", "Stream.time_limit=4s")
    assert done.code == 1, done
    wait_for(lambda: not world.processes(), 5)


@pytest.mark.parametrize(("name", "status", "told"), [
    ("5.2.2-truncated", "parse", "cut off"),
    ("5.2.2-decimal_comma", "parse", "is no number"),
    ("5.2.2-nan_rate", "invalid", "nan"),
    ("5.2.2-rate_is_not_of_its_time", "parse", "does not agree with its time"),
    ("garbage", "parse", ""),
    ("empty", "parse", "no output of likwid-bench"),
])
def test_an_output_that_cannot_count_fails_and_is_never_a_figure(world, name, status, told):
    likwid(world, name)
    world.fake("likwid-bench", f"[ $2 = stream ] || cat '{OUTPUTS}/likwid/{name}.txt'")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert told in reason(done)
    assert world.statuses() == {"Stream.*": status}
    assert world.verdicts()["HERE-STREAM"] == ("FAIL" if status == "invalid" else "ERROR")


def test_a_foreign_locale_of_the_user_does_not_reach_the_tool(world):
    world.fake("likwid-bench", f'[ "$LC_ALL" = C ] || exit 1\n{SLOW_LIKWID}')
    done = world.reframe("-r", "-n", "Stream", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8",
                         LC_NUMERIC="de_DE.UTF-8")
    assert done.code == 0, done


def test_a_wrong_answer_with_the_best_figure_fails_and_is_no_figure_anywhere(world):
    world.recorded_hpcc("1.5.0-failed_residual", edit="-e 's/3[0-9]\\.[0-9]*$/9999.9/'")
    done = world.reframe("-r", "-n", "Hpl")
    assert done.code == 1, done
    assert "invalid: hpl: the residual check FAILED" in reason(done)
    assert world.verdicts()["HERE-HPL"] == "FAIL"
    assert world.siteproof("verdict").code == 1
    assert "9999" not in "".join(path.read_text() for path in world.samples())
    for log in (world.data / "perflogs").rglob("*.log"):
        assert "|pass|" not in log.read_text()


def test_a_wrong_answer_after_a_right_one_is_what_counts(good):
    assert good.reframe("-r", "-n", "Hpl", SITEPROOF_CAMPAIGN="c").code == 0
    good.recorded_hpcc("1.5.0-failed_residual")
    assert good.reframe("-r", "-n", "Hpl", SITEPROOF_CAMPAIGN="c").code == 1
    assert good.verdicts()["HERE-HPL"] == "FAIL"


def test_a_stream_that_failed_its_validation_fails(world):
    stream(world, "5.10-failed_validation")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "failed STREAM's validation" in reason(done)
    assert world.verdicts()["HERE-STREAM"] == "FAIL"


def test_arrays_that_fit_into_the_caches_fail(world):
    stream(world, "5.10-2_threads")
    world.edit("system", "description: Whatever this machine is",
               "last_level_cache: 100 MiB\n    description: Whatever this machine is")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "is less than 4 times the caches" in reason(done)


def test_another_problem_than_the_one_asked_for_fails(world):
    world.recorded_hpcc("1.5.0-other_problem_than_asked_for")
    done = world.reframe("-r", "-n", "Hpl")
    assert done.code == 1, done
    assert "invalid: solved N NB P Q 2560 80 1 1, asked was 3000 192 1 2" in reason(done)
    assert world.verdicts()["HERE-HPL"] == "FAIL"


def test_hpcc_that_solves_its_own_problem_is_told(world):
    world.fake("hpcc", "exit 3")
    world.fake("mpirun", f"cat '{OUTPUTS}/hpcc/1.5.0-n3000_openblas.txt' >hpccoutf.txt")
    done = world.reframe("-r", "-n", "Hpl")
    assert "invalid: solved N NB P Q 3000 128 1 2, asked was 3000 192 1 2" in reason(done)
    assert world.verdicts()["HERE-HPL"] == "FAIL"


# ---- hostile values and outputs


def test_hostile_values_of_a_site_are_never_run(good):
    mark = good.folder / "was-run"
    good.edit("system", "    features: [hpcc, likwid]", f"""\
    features: [hpcc, likwid]
    variables: {{A: 'x y; touch {mark}', D: "a'\\"b", E: '$HOME/x'}}""")
    good.fake("likwid-bench", f"echo \"$A|$D|$E\" >'{good.folder}/seen'\n{SLOW_LIKWID}")
    good.reframe("-r", *CORE)
    assert not mark.exists()
    seen = (good.folder / "seen").read_text()
    assert seen == f"x y; touch {mark}|a'\"b|{good.folder}/home/x\n"


@pytest.mark.parametrize("name", ["eth0; id", "$(id)", "`id`", "eth'0\\nid", "* ü"])
def test_an_interface_that_is_no_name_is_refused(good, name):
    good.edit("system", "      lo: {mtu: 65536}", f'      "{name}": {{mtu: 65536}}')
    done = good.reframe("-r")
    assert done.code == 2
    assert "is no name of an interface" in done.err


@pytest.mark.parametrize("value", ["$(touch x)", "a `touch x`"])
def test_a_variable_that_reframe_would_run_is_refused(good, value):
    good.edit("system", "likwid]", f"likwid]\n    variables: {{A: '{value}'}}")
    assert "A holds a command" in good.reframe("-r").refused()
    assert not (good.clone / "x").exists()


@pytest.mark.parametrize("key", ["$(touch x)", "a b", "kernel.ostype; id", "a\\nb", "é.x", "'"])
def test_a_sysctl_that_is_no_name_is_refused(good, key):
    good.edit("system", "kernel.ostype: Linux", f'"{key}": Linux')
    done = good.reframe("-r")
    assert done.code == 2
    assert "is no sysctl" in done.err
    assert not good.processes()


def control_characters(text):
    return {c for c in text if not c.isprintable() and c != "\n"}


def test_hostile_output_reaches_no_terminal(world):
    world.fake("likwid-bench", r"""
        printf '\033]0;owned\007\033[2J\000\377 cannot\n\r\033[1mmeasure' >&2
        printf 'program=\033[31mred\n' >>facts
        exit 4""")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1
    assert not control_characters(reason(done))
    for words in (["verdict"], ["why", "localhost"], ["why", "HERE-STREAM"]):
        assert not control_characters(world.siteproof(*words).said)
    assert not control_characters(world.samples()[0].read_text())


def test_fifty_megabytes_of_output_are_read_and_told_in_a_line(world):
    world.fake("likwid-bench", "head -c 50000000 /dev/zero; exit 1")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1
    assert len(reason(done)) < 1000
    assert len(world.samples()[0].read_text()) < 5000


def test_a_node_whose_account_is_garbage_is_an_error_and_no_traceback(good):
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
    process = world.start("reframe", "-c", "checks/", "-r", "--exec-order=name", *CORE)
    wait_for((world.folder / "runs").exists)
    job = next((world.data / "stage").glob("*/thishost/node/system/Stream/siteproof-job.json"))
    wait_for(lambda: json.loads(job.read_text())["jobs"])
    return process


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process_and_can_be_restored(world, end):
    process = start_slow(world)
    process.send_signal(end)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1, out + err
    assert "Traceback" not in out + err
    wait_for(lambda: not world.processes(), 5)
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
    done = good.run("reframe", f"--restore-session={moved}", "--failed", "-r")
    assert done.code == 0, done
    assert "Ran 1/1" in done.out
    assert set(good.verdicts().values()) == {"PASS"}


@pytest.mark.parametrize("text", ["", "{", "{}", '{"session_info": 5}'])
def test_a_broken_report_is_no_traceback(good, text):
    report = good.folder / "report.json"
    report.write_text(text)
    done = good.run("reframe", f"--restore-session={report}", "-r")
    assert done.code in (1, 2), done
    assert "siteproof/checks" not in done.said


def test_a_restored_session_without_failures_has_nothing_to_run(good):
    assert good.reframe("-r", "-n", "HostParameters").code == 0
    done = good.run("reframe", "--restore-session", "--failed", "-r")
    assert "nothing to run" in done.refused()


def test_restoring_with_a_search_path_is_refused_where_reframe_passes_nothing(world):
    world.fake("likwid-bench", "exit 1")
    assert world.reframe("-r", "-n", "Stream").code == 1
    done = world.reframe("--restore-session", "--failed", "-r")
    assert "--restore-session goes without -c" in done.refused()


def test_a_killed_session_is_waited_for_and_collected_by_the_next(world):
    go = world.folder / "go"
    process = start_slow(world, f"until [ -e {go} ]; do sleep 0.1; done; {SLOW_LIKWID}")
    process.kill()
    process.communicate()
    following = world.start("reframe", "-c", "checks/", "-r", "-n", "HostParameters")
    told = following.stderr.readline()
    assert "a lost session still measures on this machine; waiting for its end" in told
    go.touch()
    out, err = following.communicate(timeout=60)
    assert following.returncode == 0, out + err
    assert "collected 2 samples of a lost session" in err
    assert set(world.verdicts("--since", "1h").values()) == {"PASS"}


def test_two_sessions_at_once_take_turns_and_lose_nothing(world):
    world.fake("likwid-bench", SLOW_LIKWID)
    both = [world.start("reframe", "-c", "checks/", "-r", "-n", "Stream") for _ in range(2)]
    told = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    waited = [err for _, err in told if "another session measures on this machine" in err]
    assert len(waited) == 1, told
    assert len(world.samples()) == 2


def test_two_collectors_at_once_leave_each_sample_once(world):
    process = start_slow(world)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    both = [world.start("siteproof", "collect") for _ in range(4)]
    told = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0] * 4, told
    assert len(world.samples()) == 2 + 1  # HostParameters, Hpl, and the Stream that was lost
    assert world.siteproof("collect").out == "nothing left to collect\n"


# ---- two users


@pytest.fixture
def shared(tmp_path_factory):
    """A folder that other users can reach, as tmp_path is not."""
    if not ROOT or not shutil.which("setpriv"):
        pytest.skip("NOT TESTED: two users need root and setpriv")
    folder = Path("/var/tmp") / f"siteproof-test-{os.getpid()}-{time.time_ns()}"
    folder.mkdir(mode=0o755)
    world = World(folder)
    world.site()
    world.recorded_likwid()
    (folder / "home").chmod(0o777)
    yield world
    world.end_processes()
    shutil.rmtree(folder)


def test_a_second_user_is_refused_in_one_line_and_may_still_read(shared):
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
    process.communicate(timeout=30)
    for path in [shared.data / "stage", *(shared.data / "stage").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (shared.data / "stage").chmod(0o2775)
    shared.as_nobody = True
    done = shared.siteproof("collect")
    assert done.code == 2, done
    assert all("left to root, whose lost session" in line for line in done.err.splitlines())
    done = shared.reframe("-r", "-n", "HostParameters")
    assert done.code == 0, done
    assert "left to root" in done.err


def test_the_copy_of_a_clone_runs_as_the_clone_does(good):
    good.clone = copy_clone(good.folder / "clone")
    done = good.reframe("-r", *CORE)
    assert done.code == 0, done
    assert str(good.clone / "checks") in done.out
