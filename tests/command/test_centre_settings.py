"""A centre's own settings, read before ours: its checks and ours in one run, and its logs kept."""

import json

import pytest
from clone import TOP

SETTINGS = """
site_configuration = {
    "systems": [{"name": "thishost", "hostnames": ["far"], "partitions": [
        {"name": "node", "scheduler": "local", "launcher": "local", "environs": ["theirs"]},
        {"name": "other", "scheduler": "local", "launcher": "local", "environs": ["theirs"]}]}],
    "environments": [{"name": "theirs", "target_systems": ["thishost"]}],
    "modes": [{"name": "quick", "options": ["--skip-sanity-check"]}],
    "general": [{"clean_stagedir": False, "report_junit": "FOLDER/junit.xml"}],
    "logging": [{
        "target_systems": ["thishost"],
        "handlers": [
            {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
            {"type": "file", "name": "FOLDER/centre.out", "level": "info", "format": "%(message)s"},
        ],
        "handlers_perflog": [{
            "type": "filelog", "prefix": "%(check_system)s", "basedir": "FOLDER/logs",
            "level": "info", "format": "%(check_name)s|%(check_perfvalues)s|%(check_result)s",
            "format_perfvars": "%(check_perf_value)s|%(check_perf_unit)s|",
        }],
    }],
}
"""
CHECK = """
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class Centres(rfm.RunOnlyRegressionTest):
    valid_systems = ["thishost:node"]
    valid_prog_environs = ["system"]
    executable = "echo rate 5 and 6"

    @sanity_function
    def fine(self):
        return sn.assert_found("rate", self.stdout)

    @performance_function("MB/s")
    def first(self):
        return sn.extractsingle(r"rate (\\S+)", self.stdout, 1, float)

    @performance_function("MB/s")
    def second(self):
        return sn.extractsingle(r"and (\\S+)", self.stdout, 1, float)
"""


@pytest.fixture
def centre(world):
    """thishost with a centre's settings and one check of its own; its folder."""
    world.site()
    folder = world.folder / "centre"
    (folder / "tests").mkdir(parents=True)
    (folder / "settings.py").write_text(SETTINGS.replace("FOLDER", str(folder)))
    (folder / "tests/centres.py").write_text(CHECK)
    return folder


def test_a_centres_check_and_ours_run_together_and_its_logs_are_kept(world, centre):
    both = f"{centre / 'settings.py'}:{TOP / 'reframe_settings.py'}"
    words = ["-c", "checks/", "-c", centre / "tests", "-r", "-n", "HostParameters|Centres"]
    done = world.run("reframe", *words, RFM_CONFIG_FILES=both)
    assert done.code == 0, done.said
    assert "redefinition" not in done.said
    assert done.out.count("[  PASSED  ]") == 1
    checks = {json.loads(path.read_text().splitlines()[0])["check"] for path in world.samples()}
    assert checks == {"HostParameters", "Centres"}
    ours = (world.data / "perflogs/thishost/node/Centres.log").read_text().splitlines()
    assert len(ours) == 3  # the line of names, and one of each variable
    [names, theirs] = (centre / "logs/thishost/Centres.log").read_text().splitlines()
    assert names.startswith("name|") and theirs.startswith("Centres|5.0|MB/s|6.0|MB/s|")
    assert (centre / "logs/thishost/HostParameters.log").exists()
    assert "[  PASSED  ]" in (centre / "centre.out").read_text()


def test_a_centres_settings_do_not_bring_what_an_option_may_not(world, centre):
    settings = ["-C", centre / "settings.py", "-C", TOP / "reframe_settings.py"]
    shown = world.reframe("--mode", "quick", "--show-config", *settings).out
    assert "skip-sanity-check" not in shown and "clean_stagedir" not in shown
    assert f"{centre}/junit.xml" in shown


def test_ours_must_be_the_last_file_of_settings(world, centre):
    settings = ["-C", TOP / "reframe_settings.py", "-C", centre / "settings.py"]
    done = world.reframe("-l", *settings)
    assert f"{centre / 'settings.py'} comes after reframe_settings.py" in done.refused()
