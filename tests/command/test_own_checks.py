"""Plain ReFrame tests of a centre, with the real ReFrame: history, trend, report and verdict."""

import json
import shutil
from pathlib import Path

import pytest
from clone import World, copy_clone

OWN = Path(__file__).resolve().parents[1] / "support/own_tests"
SIMULATE = "printf 'Performance: {} ns/day\\nloops 40\\nfinished\\n'"
ALLOCATE = "printf '4096 MB, allocation time 0.12\\n'"
CRITERIA = """\
OWN-TRIAD: {description: Memory, metric: stream_test.triad_bw, at_least: 1 MB/s, source: s,
  conditions: {mode: acceptance}}
OWN-MD: {description: Simulation, metric: CENTRE_Simulation.perf, at_least: 10 ns/day, source: s,
  conditions: {mode: acceptance, scale: 2_cores}}
OWN-ALLOC: {description: Huge pages, metric: AllocSpeedTest.time, at_most: 300 ms, source: s,
  conditions: {mode: acceptance, hugepages: 2M}}
"""
TEST = """
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class {name}(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["system"]
    executable = "{executable}"
    executable_opts = ["{words}"]

    @sanity_function
    def fine(self):
        return sn.assert_found("fine", self.stdout)

    @performance_function("{unit}")
    def rate(self):
        return sn.extractsingle(r"rate (\\S+)", self.stdout, 1, float)
"""


def centre(world, criteria=CRITERIA):
    """A site with a folder of its own tests outside the clone, and the programs that they run."""
    folder = world.folder / "centre"
    shutil.copytree(OWN, folder)
    world.edit("system", "mode: quick", "mode: quick\nchecks: [../../centre]")
    world.site(criteria=criteria)
    world.fake("simulate", SIMULATE.format("12.5"))
    world.fake("allocate", ALLOCATE)
    return folder


def write(folder, name, executable="echo", words="fine rate 5.5", unit="MB/s"):
    """A plain test in a file of its own."""
    path = folder / f"{name.lower()}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(TEST.format(name=name, executable=executable, words=words, unit=unit))
    return path


def held(world):
    """Every sample: metric and parameters to value and unit, or status; and the headers."""
    values, headers = {}, {}
    for path in world.samples():
        head, *lines = map(json.loads, path.read_text().splitlines())
        for line in lines:
            dims = " ".join(line.get("dims", {}).values())
            shown = " ".join(filter(None, (line["metric"], dims)))
            values[shown] = line.get("status") or f"{line['value']} {line['unit']}"
            headers[shown] = head
    return values, headers


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Everything that `-c checks/` loads of the centre's own, in one run."""
    world = World(tmp_path_factory.mktemp("centre"))
    world.site()
    centre(world)
    own = "stream_test|CENTRE_Simulation|AllocSpeedTest"
    stored = {"RFM_ENABLE_RESULTS_STORAGE": "1"}
    done = world.reframe("-r", "--mode", "acceptance", "-n", own, **stored)
    assert done.code == 0, done
    yield world
    world.end_processes()


def test_the_values_of_plain_tests_are_samples_with_unit_parameters_and_reference(ran):
    values, headers = held(ran)
    rates = {name: values.pop(f"stream_test.{name}") for name in ("copy_bw", "triad_bw")}
    assert values == {
        "CENTRE_Simulation.perf 1_core": "12.5 ns/day",
        "CENTRE_Simulation.perf 2_cores": "12.5 ns/day",
        "CENTRE_Simulation.loops 1_core": "40 loops",
        "CENTRE_Simulation.loops 2_cores": "40 loops",
        "AllocSpeedTest.time no": "0.12 s",
        "AllocSpeedTest.time 2M": "0.12 s",
    }
    assert all(float(rate.removesuffix(" MB/s")) > 1 for rate in rates.values())
    head = headers["AllocSpeedTest.time no"]
    assert (head["mode"], head["expected"], head["place"]) == ("acceptance", "localhost", 1)
    assert (head["partition"], head["environment"]) == ("node", "system")
    assert head["provenance"]["reference time"] == "0.14 (l=null, u=0.15) s"
    assert head["provenance"]["plain_test"] == str(ran.folder / "centre/per_system_test.py")
    assert head["conditions"] == {"num_tasks": "1", "program": "allocate"}
    two = headers["CENTRE_Simulation.perf 2_cores"]["conditions"]
    assert two["num_cpus_per_task"] == "2"


def test_criteria_are_decided_by_plain_tests(ran):
    assert ran.verdicts() == dict.fromkeys(("OWN-TRIAD", "OWN-MD", "OWN-ALLOC"), "PASS")
    assert ran.siteproof("verdict").code == 0
    assert "12.5 ns/day" in ran.siteproof("why", "OWN-MD").out


def test_history_trend_and_report_have_them(ran):
    query = "SELECT metric, value, unit, source FROM samples WHERE metric LIKE '%perf' LIMIT 1"
    rows = ran.siteproof("history", "--csv", "--sql", query).out.splitlines()
    assert rows[-1] == "CENTRE_Simulation.perf,12.5,ns/day,siteproof"
    seen = ran.siteproof("trend", "--all")
    assert "too little history" in seen.out
    # The unit loops is unknown to Siteproof, and the trend names it.
    assert "CENTRE_Simulation.loops: 1 value in the unknown unit 'loops'" in seen.out
    assert "in the catalogue" not in seen.said  # stream_test.copy_bw is a series without it
    page = ran.folder / "page.md"
    assert ran.siteproof("report", "--output", page).code == 0
    text = page.read_text().replace("\\", "")
    listed = "Not in the catalogue: CENTRE_Simulation, 1 metric; stream_test, 1 metric."
    assert listed in text
    assert "| CENTRE_Simulation.loops | scale 1_core | node+system | 40 loops |" in text


def test_their_own_perflog_holds_nothing_that_is_not_in_the_samples(ran):
    log = ran.data / "perflogs/thishost/node/AllocSpeedTest.log"
    done = ran.siteproof("import", log, "--system", "thishost", "--apply")
    assert done.code == 0, done
    assert "not imported: 2 lines of Siteproof's runs, whose values are in its samples" in done.out
    assert not (ran.data / "perflogs/thishost/imported").exists()


def test_the_results_database_of_the_run_is_read_and_is_in_the_samples_too(ran):
    [path] = ran.data.glob("output/*/results.db")
    done = ran.siteproof("import", path, "--system", "thishost", "--apply")
    assert done.code == 0, done
    assert "not imported: 5 lines of Siteproof's runs, whose values are in its samples" in done.out


def test_a_slower_machine_fails_the_same_criterion(world):
    centre(world)
    world.fake("simulate", SIMULATE.format("9.5"))
    done = world.reframe("-r", "--mode", "acceptance", "-n", "CENTRE_Simulation")
    assert done.code == 0, done  # ReFrame's own reference allows it
    assert world.verdicts()["OWN-MD"] == "FAIL"
    assert world.siteproof("verdict").code == 1


def test_a_test_without_a_value_keeps_its_status(world):
    folder = world.folder / "tests"
    write(folder, "Unsound", words="rate 5.5")
    write(folder, "Silent", words="fine")
    write(folder, "NotFinite", words="fine rate nan")
    write(folder, "Gone", executable="no-such-program")
    text = write(folder, "Slow", "sleep", "60").read_text()
    (folder / "slow.py").write_text(text.replace("executable =", "time_limit = '1s'; executable ="))
    text = write(folder, "Unbuilt").read_text().replace("RunOnly", "")
    (folder / "unbuilt.py").write_text(text)
    done = world.run("reframe", "-c", folder, "-r")
    assert done.code == 1
    values, headers = held(world)
    assert values == {
        "Unsound.rate": "invalid",
        "Silent.rate": "parse",
        "NotFinite.rate": "invalid",
        "Gone.rate": "invalid",  # its output has nothing that the test looks for
        "Slow.rate": "timeout",
        "Unbuilt.rate": "generic",
    }
    assert headers["Unbuilt.rate"]["job"].endswith(".system")
    query = "SELECT DISTINCT status FROM samples WHERE why = '' AND status <> 'ok'"
    assert "0 rows" in world.siteproof("history", "--sql", query).out


BROKEN = {
    "syntax.py": ("class (", "syntax.py:2: cannot be loaded: invalid syntax"),
    "nul.py": ("\0", "nul.py: cannot be loaded: "),
    "missing.py": (
        "from eessi.testsuite.eessi_mixin import EESSI_Mixin",
        "missing.py: cannot be loaded: ModuleNotFoundError: No module named 'eessi'",
    ),
    "key.py": ("{}['x']", "key.py: cannot be loaded: KeyError: 'x'"),
    "exits.py": ("raise SystemExit(3)", "exits.py: cannot be loaded: SystemExit: 3"),
    "name.py": ("not_defined", "name.py: cannot be loaded: NameError"),
}


@pytest.mark.parametrize("where", ["their folder", "checks"])
def test_a_file_that_does_not_load_names_itself_and_ends_nothing(world, where):
    folder = world.folder / "tests"
    if where == "checks":
        world.clone = copy_clone(world.folder / "clone")
        folder = world.clone / "checks/centre"
    write(folder, "Whole")
    for name, (text, _) in BROKEN.items():
        (folder / name).write_text(f"import reframe as rfm\n{text}\n")
    searched = folder if where != "checks" else "checks/"
    done = world.run("reframe", "-c", searched, "-r", "-n", "Whole")
    assert done.code == 0, done
    lines = [line for line in done.err.splitlines() if line.startswith("siteproof: ")]
    for name, (_, told) in BROKEN.items():
        (line,) = [line for line in lines if f"/{name}:" in line]
        assert told in line
        assert line.endswith("Its tests are not run.")
    assert "Traceback" not in done.said
    assert held(world)[0] == {"Whole.rate": "5.5 MB/s"}


def test_a_criterion_whose_test_does_not_load_is_incomplete(world):
    folder = centre(world)
    (folder / "mixin_test.py").write_text("import reframe as rfm\nimport eessi\n")
    done = world.reframe("-r", "--mode", "acceptance", "-n", "AllocSpeedTest")
    assert done.code == 0, done
    assert "mixin_test.py: cannot be loaded" in done.err
    assert world.verdicts()["OWN-MD"] == "INCOMPLETE"
    assert world.siteproof("verdict").code == 3


def test_a_test_for_other_systems_is_named(world):
    folder = world.folder / "tests"
    write(folder, "Whole")
    text = write(folder, "Elsewhere").read_text()
    (folder / "elsewhere.py").write_text(text.replace('["*"]', '["daint:gpu"]'))
    done = world.run("reframe", "-c", folder, "-l")
    assert done.code == 0, done
    told = "Elsewhere is not run: no partition and environment of thishost is one of valid_systems"
    assert f"elsewhere.py: {told} ['daint:gpu']" in done.err
    assert "Whole" not in done.err
    assert not world.run("reframe", "-c", folder, "-l", "-n", "Whole").err


def test_a_plain_test_with_the_name_of_our_check_answers_nothing(world):
    folder = world.folder / "tests"
    write(folder, "Stream", words="fine rate 99999")
    done = world.run("reframe", "-c", folder, "-r")
    assert "stream.py: Stream is a check of Siteproof, so values of this test are not" in done.err
    assert not world.samples()
    assert world.verdicts()["HERE-STREAM"] == "INCOMPLETE"


def test_a_value_in_another_unit_than_the_catalogues_decides_nothing(world):
    folder = centre(world)
    text = (folder / "mixin_test.py").read_text()
    (folder / "mixin_test.py").write_text(text.replace('rate, "ns/day"', 'rate, "furlongs"'))
    done = world.reframe("-r", "--mode", "acceptance", "-n", "CENTRE_Simulation")
    why = "its unit is 'furlongs', and that of the site's catalogue is ns/day"
    assert f"CENTRE_Simulation.perf: {why}" in done.err
    assert held(world)[0]["CENTRE_Simulation.perf 2_cores"] == "parse"
    assert world.verdicts()["OWN-MD"] == "ERROR"


def test_parameters_may_be_lists_and_an_executable_may_have_words(world):
    """As in CSCS's tests; a set of the parameters' values ended the run."""
    folder = world.folder / "tests"
    text = write(folder, "Listed", "echo fine").read_text()
    text = text.replace("executable =", "sizes = parameter([[1, 2], [3]])\n    executable =")
    (folder / "listed.py").write_text(text)
    done = world.run("reframe", "-c", folder, "-r", "-S", "Listed.time_limit=5m")
    assert done.code == 0, done
    values, headers = held(world)
    assert len(values) == 2
    assert {head["conditions"]["program"] for head in headers.values()} == {"echo"}
    done = world.run("reframe", "-c", folder, "-l", "-P", "Listed.size=1")
    assert "-P Listed.size: Listed has no such variable (did you mean 'sizes'?)" in done.refused()


def test_an_unknown_mode_is_refused_for_plain_tests_too(world):
    folder = world.folder / "tests"
    write(folder, "Whole")
    done = world.run("reframe", "-c", folder, "-r", "-S", "mode=fast")
    assert "-S mode: unknown mode 'fast'" in done.refused()
