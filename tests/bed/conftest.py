"""The fixtures of all tests on the Slurm test bed: `testbed` and `suite`, of tests/support."""


def pytest_configure(config):
    """As `pytest_plugins` in each module, which a conftest.py of a folder must not have."""
    for plugin in ("testbed_fixture", "bed_suite"):
        config.pluginmanager.import_plugin(plugin)
