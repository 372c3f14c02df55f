"""What the tests of runs and verdicts share: a world of their own (tests/support/clone.py)."""

import os
import random
import signal

import pytest
from clone import World
from hypothesis import HealthCheck, settings

from siteproof import files
from siteproof.slurm import client

os.environ.pop("SITEPROOF_CAMPAIGN", None)
os.environ["COLUMNS"] = "132"  # tables; records have tests of their own
# A shell's '&' lets what it starts, and all that that starts, ignore Ctrl-C, and nohup a lost
# terminal: then no test that sends such a signal would ever see it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# An example may take long where the machine is busy; that is no defect. What failed once is a test
# of its own and not an entry of a database, so that two runs of one commit are equal.
settings.register_profile(
    "patient", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("patient"), max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "patient"))
WHOLE = {"world", "good"}  # fixtures of tests that run whole commands, wherever they lie
pytest_plugins = ["tools"]
SEED = "SITEPROOF_SEED"  # of random cases: a number (1 by default), or 'random' for another one


def pytest_configure(config):
    """Random cases are the same in every run; workers of xdist inherit what was drawn."""
    asked = os.environ.get(SEED, "1")
    if asked != "random" and not asked.isdecimal():
        raise pytest.UsageError(f"{SEED} is a number or 'random', not '{asked}'")
    seed = random.SystemRandom().randrange(10**9) if asked == "random" else int(asked)
    os.environ[SEED] = str(seed)
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = seed


def pytest_collection_modifyitems(items):
    """Leave whole commands, and many random cases, to 'make test'."""
    for item in items:
        if WHOLE & set(item.fixturenames):
            item.add_marker("command")


@pytest.fixture(autouse=True)
def of_its_own(tmp_path_factory, monkeypatch):
    """Derived files, the users that a site trusts and what Slurm answered are of one test."""
    files._trusted.clear()
    files.left_out.clear()
    for asked_once in (client.settings, client.cluster_name, client.switches):
        asked_once.cache_clear()
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
    """Print the seed, with which a failure comes again, and what tests have counted or timed."""
    terminalreporter.write_line(f"random cases: {SEED}={os.environ[SEED]}")
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "told":
                terminalreporter.write_line(value)
