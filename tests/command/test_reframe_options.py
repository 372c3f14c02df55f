"""ReFrame's own options: each does what it says, or is refused in one line before anything runs."""

import json

import pytest


def listed(done):
    """The test cases that a list of ReFrame's holds."""
    assert done.code == 0, done
    return [line for line in done.out.splitlines() if line.startswith("- ")]


# ---- together with --mode


SELECTIONS = [
    ("-p", "mkl"),
    ("--prg", "system"),
    ("-p", "mkl", "-p", "io"),
    ("-n", "Stream"),
    ("-x", "Stream"),
    ("-t", "cpu", "-t", "memory"),
    ("-T", "network", "-T", "storage"),
    ("-E", "'cpu' in tags"),
    ("-S", "nodes=localhost", "-n", "Stream"),
    ("--system", "thishost:node"),
    ("--exec-order", "name"),
]


@pytest.mark.parametrize("words", SELECTIONS)
def test_an_option_selects_the_same_with_a_mode(good, words):
    alone = listed(good.reframe("-lC", *words))
    assert listed(good.reframe("-lC", "--mode=quick", *words)) == alone


def test_a_run_in_a_mode_measures_only_in_the_environment_that_is_asked_for(good):
    done = good.reframe("-r", "--mode", "quick", "-n", "Hpl", "-p", "mkl")
    assert "Hpl" in done.out
    assert "+cpu-openblas" not in done.out and "+system" not in done.out


def test_what_no_environment_is_called_leaves_nothing_to_run_in_a_mode_too(good):
    said = good.reframe("-r", "--mode", "quick", "-p", "mlk").refused()
    assert "-p mlk: no environment (did you mean 'mkl'?)" in said


def test_a_variable_of_the_command_line_outranks_the_mode(good):
    good.checks = "checks/host"
    done = good.reframe("-r", "-n", "HostParameters", "-S", "mode=acceptance", "--mode", "quick")
    assert done.code == 0, done
    assert json.loads(good.samples()[0].read_text().splitlines()[0])["mode"] == "acceptance"


# ---- shortened as ReFrame allows


def test_a_shortened_run_is_a_run(good):
    good.checks = "checks/host"
    done = good.reframe("--ru", "-n", "HostParameters")
    assert done.code == 0, done
    assert list((good.data / "output").glob("reframe-*.log"))


def test_a_shortened_system_is_the_system(good):
    assert "no site 'nowhere'" in good.reframe("-l", "--sys", "nowhere").refused()


def test_a_session_that_is_restored_by_a_shortened_option_goes_on(good):
    good.checks = "checks/host"
    assert good.reframe("-r", "-n", "HostParameters").code == 0
    assert good.run("reframe", "--restore", "-r").code == 0
    assert len({path.name.split(".")[0] for path in good.samples()}) == 1


# ---- what would give a wrong answer, or none


REFUSED = [
    (["-S", "nodse=idle"], "-S nodse: no check has this variable (did you mean 'nodes'?)"),
    (["-S", "Stream.nodse=idle"], "-S Stream.nodse: Stream has no such variable"),
    (["-P", "nodse=all,idle"], "-P nodse: no check has this variable"),
    (["-x", "Strem"], "-x Strem: no such check (did you mean 'Stream'?)"),
    (["-n", "Hpl", "-n", "Strem"], "-n Strem: no such check"),
    (["-T", "netwrok"], "-T netwrok: no check has this tag"),
    (["-p", "system", "-p", "mlk"], "-p mlk: no environment"),
    (["--system", "thishost:nodes"], "--system thishost:nodes: no partition 'nodes'"),
    (["--skip-san"], "--skip-sanity-check: no samples would be collected"),
    (["--disable-hook=nosuch"], "--disable-hook: "),
    (["--distribute"], "--distribute: every node measures itself in one job"),
    (["-s", "/nonexistent"], "--stage: "),
    (["--prefix=/nonexistent"], "--prefix: "),
    (["--timestamp"], "--timestamp: "),
    (["--dont-restage"], "--dont-restage: "),
    (["-m", "gcc"], "--module: the site has no modules system"),
    (["-J", "mem=1G"], "-J mem: no scheduler"),
]


def test_an_option_that_would_do_nothing_or_harm_is_refused(good):
    for words, told in REFUSED:
        assert told in good.reframe("-r", "--mode", "quick", *words).refused(), words
    assert not (good.data / "perflogs").exists() or not good.samples()


def test_a_variable_of_the_environment_is_refused_by_its_own_name(good):
    done = good.reframe("-r", "-n", "HostParameters", RFM_STAGE_DIR=str(good.folder))
    assert "RFM_STAGE_DIR: lost sessions" in done.refused()


def test_a_job_option_that_is_the_checks_to_say_is_refused_and_another_is_not(world):
    world.site("testbed")
    words = ("-l", "--system", "testbed", "-n", "Stream")
    assert "is set by the check" in world.reframe(*words, "-J", "nodelist=node001").refused()
    assert world.reframe(*words, "-J", "reservation=night").code == 0


# ---- what ReFrame does, and may go on doing


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        (["--repeat", "2"], 2),
        (["--reruns", "1"], 2),
        (["-P", "nodes=all,idle"], 2),
        (["--exec-policy", "serial"], 1),
        (["--max-retries", "1"], 1),
        (["--keep-stage-files"], 1),
        (["--skip-performance-check"], 1),
        (["--skip-system-check"], 1),
        (["--mode", "quick", "--exec-policy", "serial", "--max-retries", "1"], 1),
    ],
)
def test_an_option_that_is_honoured_leaves_a_sample_for_each_job(good, words, jobs):
    good.checks = "checks/host"
    done = good.reframe("-r", "-n", "HostParameters", *words)
    assert done.code == 0, done
    assert len(good.samples()) == jobs
    assert "nothing left to collect" in good.siteproof("collect").out
