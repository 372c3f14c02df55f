"""The model of Slurm beside the real one, and a client that dies, on the test bed."""

import sys

import pytest
from clone import TOP
from test_gate_slurm import NAME, gate  # noqa: F401 - the fixture

pytestmark = pytest.mark.testbed
# Ends before or after what the real one does; without an answer.
SCONTROL = """#!/bin/sh
if [ "$1" = create ]; then
    {}
    kill -9 $$
fi
exec {} "$@"
"""


@pytest.mark.parametrize("seeds", [3, pytest.param(200, marks=pytest.mark.long)])
def test_the_model_answers_as_slurm_does(testbed, tmp_path, seeds):
    """The plays of tests/unit/gate/test_gate_faults.py; a difference stops them."""
    path = f"PYTHONPATH={TOP}/tests/support:{TOP}"
    program = [sys.executable, TOP / "tests/support/slurm_beside.py", tmp_path, 0, seeds]
    done = testbed.run(["env", path, *map(str, program)], timeout=3600)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-5000:]
    assert done.stdout.count("seed ") == seeds


@pytest.mark.parametrize("done_before", [False, True])
def test_a_client_that_is_killed_costs_no_node(gate, testbed, tmp_path, done_before):  # noqa: F811
    real = testbed.run(["sh", "-c", "command -v scontrol"]).stdout.strip()
    client = tmp_path / "bin" / "scontrol"
    client.parent.mkdir()
    client.write_text(SCONTROL.format(f'{real} "$@"' if done_before else ":", real))
    client.chmod(0o755)
    gate.measured(bad=["node003"])
    gate.program = f"env PATH={client.parent}:$PATH siteproof"
    gate("--apply", code=1)
    assert gate.reservations() == ({NAME: "node003"} if done_before else {})
    ends = [r for r in gate.log if r.get("what") == "create" and r["phase"] == "after"]
    assert [("start" in end, "perhaps" in end) for end in ends] == [(done_before, not done_before)]
    gate.program = "siteproof"
    gate("--apply", code=1)
    assert gate.reservations() == {NAME: "node003"}
    assert "Comment=siteproof: FAILED" in gate.node("node003")
