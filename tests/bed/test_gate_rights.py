"""Which AdminLevel of a real slurmdbd the commands of the gate need: docs/shared-data.md."""

import pytest
from test_gate_slurm import NAME, Gate, answer, as_another_user

pytest_plugins = ["testbed_fixture"]
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


@pytest.mark.parametrize(
    ("words", "none", "operator"),
    [
        (CREATE, False, True),
        (("update", "ReservationName=rights", "Nodes=node[003-004]"), False, True),
        (("update", "ReservationName=rights", "Users+=games"), False, True),
        (("delete", "ReservationName=rights"), False, True),
        (("update", "NodeName=node003", "Comment=rights"), False, False),
        (("update", "NodeName=node003", "State=DRAIN", "Reason=rights"), False, False),
        (("update", "NodeName=node003", "State=RESUME"), False, False),
    ],
    ids=["create", "nodes", "users", "delete", "comment", "drain", "resume"],
)
def test_what_each_level_may(testbed, users, clean, words, none, operator):
    if words is not CREATE and "ReservationName=rights" in words:
        assert may(testbed, None, *CREATE)
    if "State=RESUME" in words:
        assert may(testbed, None, "update", "NodeName=node003", "State=DRAIN", "Reason=rights")
    found = {level: may(testbed, users[level], *words) for level in ("none", "operator")}
    assert found == {"none": none, "operator": operator}
    if operator and (words is CREATE or words[0] == "delete"):
        testbed.run(["scontrol", "delete", "ReservationName=rights"])
        assert words is CREATE or may(testbed, None, *CREATE)
    assert may(testbed, users["administrator"], *words)


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
