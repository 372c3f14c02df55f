"""HPL's block NB: 192, or the site's for its hardware, or that of -S; one of a closed list."""

import pytest
from clone import World

from siteproof.record import samples


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.checks = "checks/cpu"
    made.site()
    return made


@pytest.mark.parametrize(
    ("site", "options", "nb"),
    [("", (), "192"), ("hpl_nb: 232", (), "232"), ("hpl_nb: 232", ("-S", "Hpl.nb=384"), "384")],
)
def test_the_block_is_that_of_the_option_or_the_site_and_a_condition(world, site, options, nb):
    if site:
        world.edit("system", "  host:\n", f"  host:\n    {site}\n")
    world.recorded_hpcc(edit=f"-e 's/\\b192\\b/{nb}/'")
    done = world.reframe("-n", "Hpl", "-p", "system", "-r", *options)
    assert done.code == 0, done
    found = [sample for file in world.samples() for sample in samples.read(file)]
    rates = [sample for sample in found if sample.metric == "Hpl.gflops"]
    assert {sample.conditions["nb"] for sample in rates} == {nb}  # asked and solved agree


def test_another_block_is_refused_with_the_list(world):
    done = world.reframe("-n", "Hpl", "-r", "-S", "Hpl.nb=100")
    assert done.code == 2
    assert "-S Hpl.nb: unknown value '100'" in done.err
    assert ". Allowed: 0, 64, 80, 96, 112, 128, " in done.err
