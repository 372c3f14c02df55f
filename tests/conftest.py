"""What the tests of runs and verdicts share: a world of their own (tests/support/clone.py)."""

import os
import signal

import pytest
from clone import World
from hypothesis import HealthCheck, settings

os.environ.pop("SITEPROOF_CAMPAIGN", None)
os.environ["COLUMNS"] = "132"  # tables; records have tests of their own
# A shell's '&' lets what it starts, and all that that starts, ignore Ctrl-C, and nohup a lost
# terminal: then no test that sends such a signal would ever see it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# An example may take long where the machine is busy; that is no defect.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("patient"), max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "patient"))
WHOLE = {"world", "good"}  # fixtures of tests that run whole commands, wherever they lie
pytest_plugins = ["tools"]


def pytest_collection_modifyitems(items):
    """Leave whole commands, and many random cases, to 'make test'."""
    for item in items:
        if WHOLE & set(item.fixturenames):
            item.add_marker("command")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Derived files of a test are nobody else's."""
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def world(tmp_path):
    """Sites, data and programs of one test; nothing that it starts outlives it."""
    made = World(tmp_path)
    made.site()
    yield made
    made.end_processes()


@pytest.fixture
def good(world):
    """A machine on which every benchmark gives what was once recorded."""
    world.recorded_likwid()
    world.recorded_hpcc()
    return world


def pytest_terminal_summary(terminalreporter):
    """Print what tests have counted or timed, also where xdist runs them."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "told":
                terminalreporter.write_line(value)
