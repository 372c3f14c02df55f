"""Which AdminLevel of a real slurmdbd the commands of the gate need: docs/shared-data.md."""

import pytest
from test_gate_slurm import NAME, Gate, answer, as_another_user

pytestmark = [pytest.mark.testbed, pytest.mark.tool("Slurm")]
USERS = {"none": "nobody", "operator": "games", "administrator": "news"}


@pytest.fixture(scope="module")
def users(testbed):
    """Users of each AdminLevel, in one account."""
    testbed.run(["sacctmgr", "-i", "add", "account", "rights"])
    for level, user in USERS.items():
        words = ["sacctmgr", "-i", "add", "user", user, "account=rights", f"adminlevel={level}"]
        assert testbed.run(words).returncode == 0
    yield USERS
    for user in USERS.values():
        testbed.run(["sacctmgr", "-i", "delete", "user", user])
    testbed.run(["sacctmgr", "-i", "delete", "account", "rights"])


@pytest.fixture
def clean(testbed):
    yield
    testbed.run(["scontrol", "delete", "ReservationName=rights"])
    testbed.run(["scontrol", "delete", f"ReservationName={NAME}"])
    for words in (["State=RESUME"], ["Comment="]):
        testbed.run(["scontrol", "update", "NodeName=node003", *words])


def may(testbed, user, *words):
    done = testbed.run(["scontrol", *words], user=user)
    said = (done.stdout + done.stderr).lower()
    assert done.returncode == 0 or "invalid user id" in said or "access" in said, said
    return done.returncode == 0


CREATE = (
    *("create", "reservation", "ReservationName=rights", "StartTime=now", "Duration=60"),
    *("Users=root", "Nodes=node003", "Flags=maint,ignore_jobs"),
)


REMOVE = ("delete", "ReservationName=rights")
DRAIN = ("update", "NodeName=node003", "State=DRAIN", "Reason=rights")
RESUME = ("update", "NodeName=node003", "State=RESUME")


def test_what_each_level_may(testbed, users, clean):
    """Each command by everybody: first by those who may not, and undone where two of them may."""
    of_reservations = {
        CREATE: (None, REMOVE),  # command: what comes before it, and what undoes it
        ("update", "ReservationName=rights", "Nodes=node[003-004]"): (CREATE, None),
        ("update", "ReservationName=rights", "Users+=games"): (None, None),
        REMOVE: (None, CREATE),
    }
    of_nodes = {
        ("update", "NodeName=node003", "Comment=rights"): (None, None),
        DRAIN: (None, None),
        RESUME: (DRAIN, None),
    }
    wrong = {}
    for words, (before, undo) in (of_reservations | of_nodes).items():
        if before == CREATE:
            testbed.run(["scontrol", *REMOVE])
        assert before is None or may(testbed, None, *before)
        found = {}
        for level, user in users.items():
            found[level] = may(testbed, user, *words)
            if found[level] and undo and level != "administrator":
                assert may(testbed, None, *undo)
        if found != {"none": False, "operator": words in of_reservations, "administrator": True}:
            wrong[words] = found
    assert not wrong


def test_an_administrator_who_is_not_root_does_all_of_the_gate(testbed, users, clean, tmp_path):
    gate = Gate(testbed, tmp_path)
    as_another_user(gate, testbed, users["administrator"])
    told = gate("--apply", "--drain", code=1, user=users["administrator"])
    assert "refused to you" not in told
    assert answer(told)[0] == "quarantined node003"
    assert "DRAIN" in gate.node("node003") and gate.reservations() == {NAME: "node003"}
    gate.measured(bad=[], session="s2")
    testbed.run(["chown", "-R", f"{users['administrator']}:", str(gate.data)])
    told = gate("--release", "--apply", code=0, user=users["administrator"])
    assert answer(told)[0] == "released node003"
    assert "DRAIN" not in gate.node("node003") and gate.reservations() == {}
