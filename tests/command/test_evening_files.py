"""What an evening leaves beside its output: a page, and files for other tools."""

import json
from pathlib import Path

import pytest
from fleets import furnish
from fleets import good as fine


@pytest.fixture
def here(world):
    return furnish(world)


LEFT = ["junit.xml", "report.html", "siteproof.prom", "verdict.json"]


def test_an_evening_leaves_its_files_below_output_whatever_the_campaign_is_called(here):
    campaign, folder = "../a b;touch x", "_._a_b_touch_x"
    here.keep(fine(run=3, campaign=campaign))
    done = here.run(
        *("bash", "-c", '. sbatch/lib.sh; leave "$1"', "bash", campaign),
        SITEPROOF_SYSTEM="here",
        SITEPROOF_PAGES=str(here.folder / "www"),
    )
    assert done.code == 0, str(done)
    left = here.data / "output/reports"
    assert sorted(path.relative_to(left) for path in left.rglob("*") if path.is_file()) == [
        Path(folder, name) for name in LEFT
    ], str(done)
    assert json.loads((left / folder / "verdict.json").read_text())["exit_code"] == 0
    assert (here.folder / "www/index.html").exists()
