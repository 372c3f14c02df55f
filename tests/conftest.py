"""What the tests of runs and verdicts share: a world of their own (tests/clone.py)."""

import os

import pytest
from clone import World

os.environ.pop("SITEPROOF_CAMPAIGN", None)
pytest_plugins = ["tools"]


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
