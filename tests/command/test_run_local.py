"""Runs of the real ReFrame on one machine: what goes right, and every way to go wrong."""

import json
import re
import sys
from pathlib import Path

import pytest
from clone import CORE, OUTPUTS, SLOW_LIKWID, reason, wait_for


def likwid(world, name):
    """likwid-bench prints a recorded output, good or bad, in its first call."""
    world.fake("likwid-bench", f"[ $2 = copy ] && cat '{OUTPUTS}/likwid/{name}.txt'")


def stream(world, name):
    """A STREAM that prints a recorded output."""
    world.fake("stream_c", f"# STREAM version\ncat '{OUTPUTS}/stream/{name}.txt'")


# ---- what goes right


def test_a_healthy_machine_passes_and_every_value_is_kept(passed):
    told = passed.done.out
    assert "Ran 3/4" in told and "1 skipped" in told, told  # the fourth is Hpl on MKL
    decided = {"HERE-HPL": "PASS", "HERE-STREAM": "PASS", "HERE-PARAMETERS": "PASS"}
    assert passed.verdicts() == decided
    assert passed.process("verdict").code == 0
    assert len(passed.samples()) == 3
    assert not passed.processes()
    rows = (passed.data / "perflogs/thishost/node/Stream.log").read_text().splitlines()
    assert "|pass|triad|5.28804|GB/s|2" in rows[-1]


@pytest.mark.slow
@pytest.mark.tool("ReFrame", "HPCC", "likwid-bench")
def test_the_real_benchmarks_pass_on_this_machine(real):
    assert real.siteproof("verdict").code == 0


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


def test_a_data_folder_whose_name_reframe_would_take_apart_is_refused(world):
    for name in ("$HOME", "`id`", "a b", "it's", "{a}"):
        world.data = world.folder / name
        assert "ReFrame cannot use a path with" in world.reframe("-r").refused(), name


def test_a_data_folder_that_does_not_exist_is_made_by_a_run(good):
    good.checks = "checks/host"
    good.data = good.folder / "a" / "b"
    assert good.reframe("-r", "-n", "HostParameters").code == 0
    assert good.verdicts()["HERE-PARAMETERS"] == "PASS"


def test_each_mode_runs_and_stands_in_the_samples(good):
    good.checks = "checks/host"
    for mode in ("quick", "maintenance", "acceptance"):
        good.data = good.folder / mode
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


MISTAKES = [
    (["-r", "--mode", "fast"], "--mode: unknown mode 'fast'. Allowed: quick, maintenance"),
    (["-l", "--mode=fast"], "--mode: unknown mode 'fast'"),
    (["-r", "-S", "mode=fast"], "-S mode: unknown mode 'fast'"),
    (["-r", "-S", "nodes=node[1-"], "-S nodes: 'node[1-' is not a node set"),
    (["-r", "-S", "nodes=elsewhere"], "elsewhere is not in the inventory"),
    (["-r", "-S", "nodes=0"], "0 nodes requested"),
    (["-r", "-S", "nodes=2"], "2 nodes requested"),
    (["-r", "-n", "Strem"], "-n Strem: no such check (did you mean 'Stream'?). Allowed: "),
    (["-r", "-t", "untagged"], "nothing to run"),
    (["-r", "-S", "Hpl.memory_share=much"], "hpl.py: cannot be loaded: could not convert"),
    (["-r", "-S", "Stream.time_limit=@none"], "-S time_limit: a job without a limit can hang"),
    (["-r", "--system", "nowhere"], "no site 'nowhere'"),
]


def test_a_mistake_on_the_command_line_is_refused(good):
    for words, told in MISTAKES:
        assert told in good.reframe(*words).refused(), words
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
    for path in map(Path, sys.path):  # the first of a name counts
        for held in path.iterdir() if path.name == "site-packages" else ():
            link = library / held.name
            if not held.name.lower().startswith(ours) and not link.is_symlink():
                link.symlink_to(held)
    program = (
        f"import sys; sys.path.insert(0, {str(library)!r}); sys.argv[0] = 'reframe'; "
        "from reframe.frontend.cli import main; sys.exit(main())"
    )
    foreign = ["python3", "-S", "-c", program, "-c", "checks/", "-r"]
    for settings in ({}, {"RFM_CONFIG_FILES": "UNSET"}):
        assert ". ./activate" in good.run(*foreign, PYTHONPATH="UNSET", **settings).refused()


def test_a_data_folder_that_is_a_file_is_refused(world):
    a_file = world.data
    a_file.write_text("a file")
    for world.data in (a_file, a_file / "data"):
        assert "cannot be created: " in world.reframe("-r").refused()
        assert "cannot be created: " in world.reframe("--dry-run").refused()
        assert "is not a folder" in world.siteproof("verdict").refused()


# ---- tools that fail


def without_tools(world):
    world.without("likwid-bench", "stream", "stream_c", "mpirun", "hpcc", "xhpl")
    return world.reframe("-r", *CORE)


@pytest.fixture
def bare(measured, tmp_path):
    """A copy of a world on whose machine no tool is installed."""
    world, done = measured("bare", without_tools, tmp_path)
    assert done.code == 0, done
    world.done = done
    return world


def test_a_missing_tool_is_skipped_with_its_reason(bare):
    world, done = bare, bare.done
    assert "SKIP" in done.out
    assert "[tool missing: mpirun is not installed: 'setup/packages run' brings it]" in done.out
    assert world.verdicts() == {
        "HERE-HPL": "SKIP",
        "HERE-STREAM": "SKIP",
        "HERE-PARAMETERS": "PASS",
    }
    verdict = world.siteproof("verdict")
    assert "cannot be measured here: mpirun is not installed" in " ".join(verdict.out.split())
    assert verdict.code == 3
    skipped = "could not be measured here: HERE-HPL, HERE-STREAM; if that"
    assert skipped in " ".join(verdict.out.split())
    page = world.folder / "page.md"
    assert world.siteproof("report", "--output", str(page)).code == 0
    assert "2 SKIP, 1 PASS of 3" in page.read_text()
    refused = world.siteproof("accept", "latest", "--why", "x")
    assert (refused.code, "HERE-HPL SKIP, HERE-STREAM SKIP" in refused.out) == (1, True)


def test_what_the_site_says_is_not_here_may_be_missing_and_is_named(bare):
    world = bare
    path = world.sites / "thishost/criteria.yaml"
    text = path.read_text().replace("  source:", "  not_here: no compiler\n  source:")
    path.write_text(text)
    done = world.siteproof("verdict")
    assert done.code == 0, done.said
    assert "2 criteria" in done.out and done.out.count("not here: no compiler") == 1
    findings = json.loads(world.siteproof("verdict", "--json").out)["findings"]
    text = "was measured, although the criterion has not_here: no compiler"
    told = [why["criterion"] for why in findings if why.get("text") == text]
    assert told == ["HERE-PARAMETERS"]
    assert "warning: " in done.out
    assert world.siteproof("accept", "latest", "--why", "x").code == 0


def test_when_no_tool_is_there_nothing_was_decided(bare):
    (path,) = [path for path in bare.samples() if "HostParameters" in path.name]
    path.unlink()
    assert bare.siteproof("verdict").code == 3


@pytest.fixture
def tools(world):
    """A world that loads only the checks of tools, as nothing else is looked at."""
    world.checks = "checks/cpu"
    return world


def test_a_failing_tool_is_an_error_with_its_last_words(tools):
    tools.fake("likwid-bench", "echo 'no memory left' >&2; exit 9")
    done = tools.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "localhost: likwid-bench exited with 9: no memory left" in reason(done)
    assert tools.verdicts()["HERE-STREAM"] == "ERROR"
    assert tools.siteproof("verdict").code == 1


def test_a_killed_tool_did_not_hang(tools):
    tools.fake("likwid-bench", "kill -9 $$")
    done = tools.reframe("-r", "-n", "Stream")
    assert "killed: signal 9 (SIGKILL) ended likwid-bench" in reason(done)


def test_a_hanging_tool_is_ended_and_named_within_its_limit(tools):
    tools.fake("likwid-bench", "sleep 1000")
    # The last quarter of the limit is for all that is not the tool, on a busy machine too.
    done = tools.reframe("-r", "-n", "Stream", "-S", "Stream.time_limit=24s")
    assert done.code == 1, done
    assert "timeout: likwid-bench hung: ended after its time limit" in reason(done)
    assert tools.verdicts()["HERE-STREAM"] == "ERROR"
    wait_for(lambda: not tools.processes())


def test_a_tool_that_ignores_its_end_goes_with_its_job(tools):
    tools.fake("likwid-bench", "trap '' TERM; sleep 1000 & wait; sleep 1000")
    done = tools.reframe("-r", "-n", "Stream", "-S", "Stream.time_limit=4s")
    assert done.code == 1, done
    wait_for(lambda: not tools.processes())


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
def test_an_output_that_cannot_count_fails_and_is_never_a_figure(tools, name, status, told):
    likwid(tools, name)
    tools.fake("likwid-bench", f"[ $2 = stream ] || cat '{OUTPUTS}/likwid/{name}.txt'")
    done = tools.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert told in reason(done)
    assert tools.statuses() == {"Stream.*": status}
    assert tools.verdicts()["HERE-STREAM"] == ("FAIL" if status == "invalid" else "ERROR")


def test_no_output_at_all_is_no_figure(tools):
    tools.fake("likwid-bench", "exit 0")
    done = tools.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "no output of likwid-bench" in reason(done)
    assert tools.statuses() == {"Stream.*": "parse"}


def test_a_foreign_locale_of_the_user_does_not_reach_the_tool(tools):
    tools.fake("likwid-bench", f'[ "$LC_ALL" = C ] || exit 1\n{SLOW_LIKWID}')
    done = tools.reframe(
        "-r", "-n", "Stream", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8", LC_NUMERIC="de_DE.UTF-8"
    )
    assert done.code == 0, done


def test_a_wrong_answer_with_the_best_figure_fails_and_is_no_figure_anywhere(tools):
    tools.recorded_hpcc("1.5.0-failed_residual", edit="-e 's/3[0-9]\\.[0-9]*$/9999.9/'")
    done = tools.reframe("-r", "-n", "Hpl")
    assert done.code == 1, done
    assert "invalid: hpl: the residual check FAILED" in reason(done)
    assert tools.verdicts()["HERE-HPL"] == "FAIL"
    assert tools.siteproof("verdict").code == 1
    assert "9999" not in "".join(path.read_text() for path in tools.samples())
    for log in (tools.data / "perflogs").rglob("*.log"):
        assert "|pass|" not in log.read_text()


def test_a_wrong_answer_after_a_right_one_is_what_counts(good):
    assert good.reframe("-r", "-n", "Hpl", SITEPROOF_CAMPAIGN="c").code == 0
    good.recorded_hpcc("1.5.0-failed_residual")
    assert good.reframe("-r", "-n", "Hpl", SITEPROOF_CAMPAIGN="c").code == 1
    assert good.verdicts()["HERE-HPL"] == "FAIL"


def test_a_stream_that_failed_its_validation_fails(tools):
    stream(tools, "5.10-failed_validation")
    done = tools.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "failed STREAM's validation" in reason(done)
    assert tools.verdicts()["HERE-STREAM"] == "FAIL"


def test_arrays_that_fit_into_the_caches_fail(tools):
    stream(tools, "5.10-2_threads")
    tools.edit(
        "system",
        "description: Whatever this machine is",
        "last_level_cache: 100 MiB\n    description: Whatever this machine is",
    )
    done = tools.reframe("-r", "-n", "Stream")
    assert done.code == 1, done
    assert "is less than 4 times the caches" in reason(done)


def test_another_problem_than_the_one_asked_for_fails(tools):
    tools.recorded_hpcc("1.5.0-other_problem_than_asked_for")
    done = tools.reframe("-r", "-n", "Hpl")
    assert done.code == 1, done
    assert "invalid: solved N NB P Q: 2560 80 1 1, expected 3000 192 1 2" in reason(done)
    assert tools.verdicts()["HERE-HPL"] == "FAIL"


def test_hpcc_that_solves_its_own_problem_is_told(tools):
    tools.fake("hpcc", "exit 3")
    tools.fake("mpirun", f"cat '{OUTPUTS}/hpcc/1.5.0-n3000_openblas.txt' >hpccoutf.txt")
    done = tools.reframe("-r", "-n", "Hpl")
    assert "invalid: solved N NB P Q: 3000 128 1 2, expected 3000 192 1 2" in reason(done)
    assert tools.verdicts()["HERE-HPL"] == "FAIL"
