"""Runs of the real ReFrame on one machine: what goes right, and every way to go wrong."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from clone import CORE, OUTPUTS, SLOW_LIKWID, World, copy_clone, reason, wait_for


def likwid(world, name):
    """likwid-bench prints a recorded output, good or bad, in its first call."""
    world.fake("likwid-bench", f"[ $2 = copy ] && cat '{OUTPUTS}/likwid/{name}.txt'")


def stream(world, name):
    """A STREAM that prints a recorded output."""
    world.fake("stream_c", f"# STREAM version\ncat '{OUTPUTS}/stream/{name}.txt'")


# ---- what goes right


def test_a_healthy_machine_passes_and_every_value_is_kept(good):
    done = good.reframe("-r", *CORE)
    assert done.code == 0, done
    assert "Ran 3/4" in done.out and "1 skipped" in done.out  # the fourth is Hpl on MKL
    assert good.verdicts() == {"HERE-HPL": "PASS", "HERE-STREAM": "PASS", "HERE-PARAMETERS": "PASS"}
    assert good.siteproof("verdict").code == 0
    assert len(good.samples()) == 3
    assert not good.processes()
    rows = (good.data / "perflogs/thishost/node/Stream.log").read_text().splitlines()
    assert "|pass|triad|5.28804|GB/s|2" in rows[-1]


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


def test_a_run_without_slurm_says_that_nothing_proves_its_origin_and_keeps_its_secret(good):
    assert good.reframe("-r", "--keep-stage-files", "-n", "HostParameters").code == 0
    (path,) = good.samples()
    header = json.loads(path.read_text().splitlines()[0])
    assert header["provenance"]["origin"] == "none: no Slurm"
    assert not [key for key in header["conditions"] if "origin" in key]
    (settings,) = (good.data / "stage").rglob("settings")
    assert settings.stat().st_mode & 0o777 == 0o600
    (secret,) = re.findall(r"^SITEPROOF_SECRET=([0-9a-f]+);", settings.read_text(), re.MULTILINE)
    assert len(secret) * 4 >= 64
    kept = [p for p in good.data.rglob("*") if p.is_file() and p != settings]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]


def test_data_may_lie_in_a_folder_with_an_odd_name(good):
    good.data = good.folder / "[für;alle&%(x)s#*"
    done = good.reframe("-r", *CORE)
    assert done.code == 0, done
    assert set(good.verdicts().values()) == {"PASS"}


@pytest.mark.parametrize("name", ["$HOME", "`id`", "a b", "it's", "{a}"])
def test_a_data_folder_whose_name_reframe_would_take_apart_is_refused(good, name):
    good.data = good.folder / name
    assert "ReFrame cannot use a path with" in good.reframe("-r").refused()


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-r", "--mode", "fast"], "--mode: unknown mode 'fast'. Allowed: quick, maintenance"),
        (["-l", "--mode=fast"], "--mode: unknown mode 'fast'"),
        (["-r", "-S", "mode=fast"], "-S mode: unknown mode 'fast'"),
        (["-r", "-S", "nodes=node[1-"], "-S nodes: 'node[1-' is not a node set"),
        (["-r", "-S", "nodes=elsewhere"], "elsewhere is not in the inventory"),
        (["-r", "-S", "nodes=0"], "0 nodes requested"),
        (["-r", "-S", "nodes=2"], "2 nodes requested"),
        (["-r", "-n", "Strem"], "nothing to run: the options select no check"),
        (["-r", "-t", "untagged"], "nothing to run"),
        (["-r", "-S", "Hpl.share=much"], "hpl.py: cannot be loaded: could not convert"),
        (["-r", "-S", "Stream.time_limit=@none"], "-S time_limit: a job without a limit can hang"),
        (["-r", "--system", "nowhere"], "no site 'nowhere'"),
    ],
)
def test_a_mistake_on_the_command_line_is_refused(good, words, told):
    assert told in good.reframe(*words).refused()
    assert not (good.data / "perflogs").exists() or not good.samples()


def test_without_our_settings_nothing_runs(good):
    done = good.reframe("-r", RFM_CONFIG_FILES="UNSET")
    assert "ReFrame runs without Siteproof's settings" in done.refused()


def test_a_single_check_without_our_settings_is_refused_too(good):
    done = good.run("reframe", "-c", "checks/cpu/stream.py", "-r", RFM_CONFIG_FILES="UNSET")
    assert "ReFrame runs without Siteproof's settings" in done.refused()


def test_a_foreign_reframe_without_our_libraries_is_refused(good):
    library = good.folder / "library"
    library.mkdir()
    ours = ("pydantic", "siteproof", "__editable__")
    for path in (Path(os.__file__).parent / "site-packages", *map(Path, site_packages())):
        for held in path.iterdir() if path.is_dir() else ():
            link = library / held.name
            if not held.name.lower().startswith(ours) and not link.is_symlink():
                link.symlink_to(held)
    program = (
        f"import sys; sys.path.insert(0, {str(library)!r}); sys.argv[0] = 'reframe'; "
        "from reframe.frontend.cli import main; sys.exit(main())"
    )
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
    assert "cannot be created: " in good.reframe("-r").refused()
    assert "cannot be created: " in good.reframe("--dry-run").refused()
    assert "is not a folder" in good.siteproof("verdict").refused()


# ---- checks that are not what the catalogue says


LESS = (  # root reads everything
    ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0
    else []
)
STREAM = "checks/cpu/stream.py"


def broken(text, old, new):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "import reframe as rfm",
            "import reframe as rfm\nimport not_there",
            "No module named 'not_there'",
        ),
        ("class Stream(", "class Strem(", "has no check Stream"),
        ("@rfm.simple_test", "", "has no check Stream"),
        ('("copy", "triad")', '("copy", "quad")', "has no check Stream"),
        ("class Stream(", "class Stream(:", "stream.py:{line}: cannot be loaded: invalid"),
        ("class Stream(", "\0", "cannot be loaded"),
        ("@rfm", "raise ValueError('no')\n@rfm", "ValueError: no"),
    ],
    ids=["import", "renamed", "unmarked", "metric", "syntax", "nul", "raises"],
)
def test_a_broken_check_ends_the_run(good, old, new, told):
    good.clone = copy_clone(good.folder / "clone")
    path = good.clone / STREAM
    text = path.read_text()
    path.write_text(broken(text, old, new))
    told = told.format(line=1 + text[: text.index(old)].count("\n"))
    assert told in good.reframe("-r").refused()
    assert told in good.reframe("-l").refused()


def test_a_check_that_is_gone_is_told_by_the_verdict(good):
    good.clone = copy_clone(good.folder / "clone")
    (good.clone / "checks/cpu/stream.py").unlink()
    done = good.reframe("-r", "-n", "Hpl|HostParameters")
    assert done.code == 0
    assert f"siteproof: {STREAM} does not exist: Stream is not run" in done.err
    judged = json.loads(good.siteproof("verdict", "--json").out)
    (criterion,) = [found for found in judged["criteria"] if found["id"] == "HERE-STREAM"]
    assert criterion["verdict"] == "INCOMPLETE"
    reasons = {found["kind"]: found for found in criterion["findings"]}
    assert reasons.keys() == {"not_measured", "check_missing"}
    found = reasons["check_missing"]
    assert found["check"] == "Stream"
    assert found["details"]["file"] == STREAM
    assert "older" not in found["details"]
    assert STREAM in good.siteproof("why", "HERE-STREAM").out


def gone(path):
    path.unlink()


def to_nowhere(path):
    path.unlink()
    path.symlink_to("/nowhere/stream.py")


def folder(path):
    path.unlink()
    path.mkdir()


def renamed(path):
    path.rename(path.with_suffix(".py.old"))


@pytest.mark.parametrize(
    ("lose", "problem"),
    [
        (gone, "does not exist"),
        (to_nowhere, "is a link to a file that does not exist"),
        (folder, "is a folder"),
        (renamed, "does not exist"),
    ],
    ids=["gone", "to_nowhere", "folder", "renamed"],
)
def test_a_check_file_that_reframe_passes_over_is_told_in_one_line(world, lose, problem):
    world.clone = copy_clone(world.folder / "clone")
    lose(world.clone / "checks/cpu/stream.py")
    done = world.reframe("-l")
    assert done.code == 0, done
    (line,) = done.err.splitlines()
    assert line.startswith(f"siteproof: {STREAM} {problem}: Stream is not run")
    assert "HERE-STREAM of thishost" in line


def test_a_check_file_that_the_user_may_not_read_ends_the_run(world):
    world.clone = copy_clone(world.folder / "clone")
    (world.clone / "checks/cpu/stream.py").chmod(0)
    line = world.run(*LESS, "reframe", "-c", "checks/", "-l").refused()
    assert line == f"siteproof: {STREAM}: cannot be read: Permission denied"


def test_lint_names_a_check_file_that_is_gone(world):
    world.clone = copy_clone(world.folder / "clone")
    (world.clone / "checks/cpu/stream.py").unlink()
    done = world.siteproof("lint", "thishost")
    assert done.code == 2
    (line,) = [line for line in done.out.splitlines() if line.startswith("siteproof: ")]
    assert line.startswith("siteproof: checks/cpu/catalogue.yaml:")
    assert f"{STREAM} does not exist, so nothing measures Stream.triad" in line
    assert "HERE-STREAM of thishost" in line


def test_a_check_that_only_other_sites_need_is_a_warning(world):
    world.clone = copy_clone(world.folder / "clone")
    (world.clone / "checks/storage/mdtest.py").unlink()
    (line,) = world.reframe("-l").err.splitlines()
    assert line.startswith("siteproof: warning: checks/storage/mdtest.py does not exist: Mdtest")
    assert line in world.siteproof("plan", "-n", "Hpl").err


@pytest.mark.parametrize("chosen", ["checks/network", "checks/cpu/hpl.py"])
def test_nothing_is_told_of_checks_that_were_not_asked_for(world, chosen):
    world.clone = copy_clone(world.folder / "clone")
    (world.clone / "checks/cpu/stream.py").unlink()
    assert world.run("reframe", "-c", chosen, "-l").err == ""


def test_a_check_that_moved_to_another_file_is_still_run(world):
    world.clone = copy_clone(world.folder / "clone")
    path = world.clone / "checks/cpu/stream.py"
    path.rename(path.with_name("memory.py"))
    done = world.reframe("-l", "-n", "Stream")
    assert "- Stream" in done.out
    assert done.err == ""


def test_an_older_answer_of_a_check_that_is_gone_stands_with_a_warning(good):
    good.clone = copy_clone(good.folder / "clone")
    good.recorded_likwid()
    assert good.reframe("-r", "-n", "Stream").code == 0
    (good.clone / "checks/cpu/stream.py").unlink()
    assert good.verdicts()["HERE-STREAM"] == "PASS"
    (warning,) = json.loads(good.siteproof("verdict", "--json").out)["warnings"]
    found = warning["finding"]
    assert (found["kind"], found["check"]) == ("check_missing", "Stream")
    assert (found["subject"], found["details"]["file"]) == ("localhost", STREAM)
    assert found["details"]["older"] == 1
    assert STREAM in " ".join(good.siteproof("verdict").out.split())


# ---- tools that fail


def test_a_missing_tool_is_skipped_with_its_reason(world):
    world.without("likwid-bench", "stream", "stream_c", "mpirun", "hpcc", "xhpl")
    done = world.reframe("-r", *CORE)
    assert done.code == 0, done
    assert "SKIP" in done.out
    assert "[tool missing: mpirun is not installed: 'setup/packages run' brings it]" in done.out
    assert world.verdicts() == {
        "HERE-HPL": "SKIP",
        "HERE-STREAM": "SKIP",
        "HERE-PARAMETERS": "PASS",
    }
    verdict = world.siteproof("verdict")
    assert "tool_missing: mpirun is not installed" in " ".join(verdict.out.split())
    assert verdict.code == 3
    skipped = "could not be measured here: HERE-HPL, HERE-STREAM; if that"
    assert skipped in " ".join(verdict.out.split())
    page = world.folder / "page.md"
    assert world.siteproof("report", "--output", str(page)).code == 0
    assert "SKIP\n\nNothing failed, and something could not be measured here." in page.read_text()
    refused = world.siteproof("accept", "latest", "--why", "x")
    assert (refused.code, "HERE-HPL SKIP, HERE-STREAM SKIP" in refused.out) == (1, True)


def test_what_the_site_says_is_not_here_may_be_missing_and_is_named(world):
    world.without("likwid-bench", "stream", "stream_c", "mpirun", "hpcc", "xhpl")
    path = world.sites / "thishost/criteria.yaml"
    text = path.read_text().replace("  source:", "  not_here: no compiler\n  source:")
    path.write_text(text)
    assert world.reframe("-r", *CORE).code == 0
    done = world.siteproof("verdict")
    assert done.code == 0, done.said
    assert "2 criteria" in done.out and done.out.count("not here: no compiler") == 1
    warnings = json.loads(world.siteproof("verdict", "--json").out)["warnings"]
    assert [
        (warning["finding"]["criterion"], warning["finding"]["message"])
        for warning in warnings
        if warning["finding"]["kind"] == "here_after_all"
    ] == [("HERE-PARAMETERS", "no compiler")]
    assert "warning: " in done.out
    assert world.siteproof("accept", "latest", "--why", "x").code == 0


def test_when_no_tool_is_there_nothing_was_decided(world):
    world.without("likwid-bench", "stream", "stream_c", "mpirun", "hpcc", "xhpl")
    world.reframe("-r", "-n", "Hpl|Stream")
    assert world.siteproof("verdict").code == 3


def test_a_failing_tool_is_an_error_with_its_last_words(world):
    world.fake("likwid-bench", "echo 'no memory left' >&2; exit 9")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "localhost: likwid-bench exited with 9: no memory left" in reason(done)
    assert world.verdicts()["HERE-STREAM"] == "ERROR"
    assert world.siteproof("verdict").code == 1


def test_a_killed_tool_did_not_hang(world):
    world.fake("likwid-bench", "kill -9 $$")
    done = world.reframe("-r", "-n", "Stream")
    assert "killed: signal 9 (SIGKILL) ended likwid-bench" in reason(done)


def test_a_hanging_tool_is_ended_and_named_within_its_limit(world):
    world.fake("likwid-bench", "sleep 1000")
    done = world.reframe("-r", "-n", "Stream", "-S", "Stream.time_limit=4s")
    assert done.code == 1, done
    assert "timeout: likwid-bench hung: ended after its time limit" in reason(done)
    assert world.verdicts()["HERE-STREAM"] == "ERROR"
    wait_for(lambda: not world.processes())


def test_a_tool_that_ignores_its_end_goes_with_its_job(world):
    world.fake("likwid-bench", "trap '' TERM; sleep 1000 & wait; sleep 1000")
    done = world.reframe("-r", "-n", "Stream", "-S", "Stream.time_limit=4s")
    assert done.code == 1, done
    wait_for(lambda: not world.processes())


@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("5.2.2-truncated", "parse", "cut off"),
        ("5.2.2-decimal_comma", "parse", "is not a number"),
        ("5.2.2-nan_rate", "invalid", "nan"),
        ("5.2.2-rate_is_not_of_its_time", "parse", "does not agree with its time"),
        ("garbage", "parse", ""),
    ],
)
def test_an_output_that_cannot_count_fails_and_is_never_a_figure(world, name, status, told):
    likwid(world, name)
    world.fake("likwid-bench", f"[ $2 = stream ] || cat '{OUTPUTS}/likwid/{name}.txt'")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert told in reason(done)
    assert world.statuses() == {"Stream.*": status}
    assert world.verdicts()["HERE-STREAM"] == ("FAIL" if status == "invalid" else "ERROR")


def test_no_output_at_all_is_no_figure(world):
    world.fake("likwid-bench", "exit 0")
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "no output of likwid-bench" in reason(done)
    assert world.statuses() == {"Stream.*": "parse"}


def test_a_foreign_locale_of_the_user_does_not_reach_the_tool(world):
    world.fake("likwid-bench", f'[ "$LC_ALL" = C ] || exit 1\n{SLOW_LIKWID}')
    done = world.reframe(
        "-r", "-n", "Stream", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8", LC_NUMERIC="de_DE.UTF-8"
    )
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
    world.edit(
        "system",
        "description: Whatever this machine is",
        "last_level_cache: 100 MiB\n    description: Whatever this machine is",
    )
    done = world.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "is less than 4 times the caches" in reason(done)


def test_another_problem_than_the_one_asked_for_fails(world):
    world.recorded_hpcc("1.5.0-other_problem_than_asked_for")
    done = world.reframe("-r", "-n", "Hpl")
    assert done.code == 1, done
    assert "invalid: solved N NB P Q: 2560 80 1 1, expected 3000 192 1 2" in reason(done)
    assert world.verdicts()["HERE-HPL"] == "FAIL"


def test_hpcc_that_solves_its_own_problem_is_told(world):
    world.fake("hpcc", "exit 3")
    world.fake("mpirun", f"cat '{OUTPUTS}/hpcc/1.5.0-n3000_openblas.txt' >hpccoutf.txt")
    done = world.reframe("-r", "-n", "Hpl")
    assert "invalid: solved N NB P Q: 3000 128 1 2, expected 3000 192 1 2" in reason(done)
    assert world.verdicts()["HERE-HPL"] == "FAIL"
