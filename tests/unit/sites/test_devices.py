"""The GPUs that a kind of node has are compared with what 'siteproof describe' reads of a node."""

from clone import SITES
from rows import rows

from siteproof.sites import bought, load


@rows("found, outcome", [("2", "as stated"), ("0", "different")])
def test_the_number_of_gpus_on_a_node_is_compared_with_its_hardware(monkeypatch, found, outcome):
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))
    site = load("fullest")
    (results,) = bought.of_nodes(site, {"iu-c002": {"gpu.count": found}}, {}).values()
    (gpus,) = [result for result in results if result.field == "gpu.count"]
    assert (gpus.outcome.value, gpus.expected, gpus.section) == (outcome, "2", "devices")


def test_a_kind_of_node_without_devices_states_nothing_of_gpus(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))
    site = load("example")
    assert bought.of_nodes(site, {"node001": {"gpu.count": "3"}}, {}) == {}
