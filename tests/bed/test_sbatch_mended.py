"""Two evenings after maintenance: a bad node stays out, and goes back once it is mended."""

import pytest
from asked import unwrapped
from test_run_slurm import suite  # noqa: F401 - the fixture
from test_sbatch import script
from test_sbatch_evening import SHORT, evening, wrong_mtu  # noqa: F401 - the fixture

pytest_plugins = ["testbed_fixture"]


@pytest.mark.testbed
def test_an_evening_keeps_the_bad_node_out_and_frees_it_once_it_is_mended(evening):  # noqa: F811
    wrong_mtu(evening.testbed, "1500", "node003")
    words = ("--campaign", "e2", "--mode", "quick", "--limit", "20%", "--apply", *SHORT)
    done = script(evening, "evening", *words)
    assert done.returncode == 1, done.stdout + done.stderr
    moved, out, repair, after = unwrapped(done.stdout)[-4:]
    assert moved.endswith("before, on these samples: quarantined node003")
    assert out.startswith("1 of 8 nodes stay out: node003 FAILED (")
    assert repair == "first repair node003"
    assert after.startswith("next: siteproof gate --campaign e2 ")
    assert "--limit 20%" in after
    shown = evening.testbed.run(["scontrol", "show", "reservation", "siteproof-compute"]).stdout
    assert "Nodes=node003 " in shown
    wrong_mtu(evening.testbed, "9000", "node003")
    done = script(evening, "evening", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    moved, out, after = unwrapped(done.stdout)[-3:]
    assert moved.endswith("before, on these samples: quarantined node003, released node003")
    assert out == "none of 8 nodes stays out"
    assert "--apply" not in after
    assert "siteproof" not in evening.testbed.run(["scontrol", "show", "reservation"]).stdout
