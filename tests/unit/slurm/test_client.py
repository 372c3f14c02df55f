"""The client beside programs that are made up: time-outs, errors, and how often it asks."""

import os
import pwd
import sys

import pytest
from rows import rows

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.slurm import client
from siteproof.slurm.client import Cause, Failure


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Makes a program of Slurm's; `calls` keeps its words."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    client.first_look.cache_clear()
    monkeypatch.setattr(client, "_recent", None)
    client.reserved.cache_clear()

    def program(name, text):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "$SLURM_TIME_FORMAT $*" >> {tmp_path}/calls\n{text}\n')
        path.chmod(0o755)

    program.calls = lambda: (tmp_path / "calls").read_text().splitlines()
    return program


RESERVATION = "ReservationName=a StartTime=17 x=y Nodes=n[1-2] NodeCnt=2"
QUESTIONS = {
    "sinfo": [client.node_states],
    "squeue": [lambda: client.jobs_on("n1")],
    "scontrol": [client.all_nodes, client.reservations, lambda: client.reserved("x")],
}
ALL = [(name, ask) for name, asks in QUESTIONS.items() for ask in asks]


@rows("name, ask", ALL)
def test_an_error_is_told_in_one_line(name, ask, slurm):
    slurm(name, "printf 'no \\033[31mcontroller\\n  here\\n' >&2; exit 1")
    with pytest.raises(UserError) as told:
        ask()
    assert str(told.value) == f"{name}: no ?[31mcontroller; here"


def test_an_error_that_scontrol_reports_on_stdout_is_told(slurm):
    slurm("scontrol", "echo 'Not authorised'; exit 1")
    with pytest.raises(UserError, match="^scontrol: Not authorised"):
        client.reservations()


@rows("name, ask", ALL)
def test_an_error_without_a_word_is_told(name, ask, slurm):
    slurm(name, "exit 3")
    with pytest.raises(UserError, match=f"^{name}: failed"):
        ask()


@rows("name, ask", ALL)
@pytest.mark.deep
def test_a_controller_that_does_not_answer_is_told(name, ask, slurm, monkeypatch, capsys):
    monkeypatch.setattr(client, "TIMEOUT", 0.2)
    monkeypatch.setattr(client, "SILENT", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    slurm(name, "exec sleep 20")
    with pytest.raises(UserError, match="no answer from Slurm within"):
        ask()
    assert capsys.readouterr().err.startswith(f"siteproof: {name}: no answer from Slurm yet")


@rows("name, ask", ALL)
def test_a_machine_without_slurm_is_told(name, ask, slurm, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=f"^{name}: not found"):
        ask()


def test_bytes_that_are_no_text_are_no_traceback(slurm):
    slurm("sinfo", "printf 'n1|idle|\\377\\376\\n'")
    assert client.node_states()["n1"].state.usable


def test_an_answer_without_a_node_is_no_cluster_whose_nodes_are_all_usable(slurm):
    slurm("sinfo", "echo 'Cluster: x'")
    with pytest.raises(UserError, match="lists no node"):
        client.node_states()


def test_each_question_is_one_call_with_times_in_seconds(slurm):
    slurm("sinfo", "echo 'n1|idle|none'")
    node, reservation = "NodeName=n1 State=IDLE x", RESERVATION
    both = f"{reservation}\\n{reservation.replace('=a', '=b')}"
    slurm("scontrol", f"case $3 in nodes) echo '{node}' ;; *) printf '{both}\\n' ;; esac")
    client.node_states()
    client.first_look()
    client.first_look()
    client.all_nodes()
    assert str(client.reserved("a,b")) == "n[1-2]"
    client.reserved("a,b")
    assert slurm.calls() == [
        "%s -h -N -o %N|%T|%E",
        "%s -h -N -o %N|%T|%E",
        "%s -o show nodes",
        "%s -o show reservations",
    ]


def test_a_job_is_asked_for_since_it_was_submitted_as_numbers_are_used_again(slurm):
    slurm("sacct", "true")
    client.accounted(["7"], 1000.5)
    client.nodes_of("7", 100)
    client.energy("7", 1000)
    since = [call.partition(" -S ")[2].split()[0] for call in slurm.calls()]
    assert since == ["uts700", "uts0", "uts700"]


def test_slurms_settings_are_asked_for_once_also_for_the_name_of_the_cluster(slurm):
    slurm("scontrol", "echo 'ClusterName = here'")
    assert (client.cluster_name(), client.settings()["ClusterName"]) == ("here", "here")
    assert len(slurm.calls()) == 1


def test_a_slurm_that_does_not_answer_is_asked_for_the_name_of_the_cluster_once(slurm):
    slurm("scontrol", "exit 1")
    assert (client.cluster_name(), client.cluster_name()) == ("", "")
    assert len(slurm.calls()) == 1


def test_the_switches_of_nodes_are_the_lowest_ones_of_the_topology(slurm):
    below = "SwitchName={} Level=0 LinkSpeed=1 Nodes=n[{}]"
    above = "SwitchName=core Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]"
    lines = [below.format("leaf1", "1-2"), below.format("leaf2", "3-4"), above]
    slurm("scontrol", f"printf '%s\\n' {' '.join(map(repr, lines))}")
    assert {name: str(on) for name, on in client.switches().items()} == {
        "leaf1": "n[1-2]",
        "leaf2": "n[3-4]",
    }


def test_who_this_user_is_is_no_variable(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody")
    assert client.user() == pwd.getpwuid(os.getuid()).pw_name


@rows(
    "script, left",
    [
        ("echo 5", {"5"}),
        ("exit 1", {"5", "6"}),
        ("true", set()),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", set()),
    ],
)
def test_jobs_that_slurm_still_holds(script, left, slurm):
    slurm("squeue", script)
    assert client.queued(["5", "6"]) == left


def test_without_jobs_slurm_is_not_asked(slurm):
    slurm("squeue", "echo 5")
    assert client.queued([]) == set()
    with pytest.raises(FileNotFoundError):
        slurm.calls()


@rows(
    "script, failure",
    [
        ("true", None),
        ("echo 'Invalid user id' >&2; exit 1", Failure(Cause.DENIED, "Invalid user id")),
        *(
            (f"echo '{words}' >&2; exit 1", Failure(Cause.FAILED, words))
            for words in (
                "Error creating the reservation: Duplicate reservation name",
                "Error updating the reservation: Invalid node name specified",
                "delete_reservation ReservationName=q: Requested reservation is in use",
                "slurm_update error: Invalid node state specified",
                "slurm_update error: Invalid node state transition",  # 26.05
                "Reservation q not found",
            )
        ),
        # Anything else may have come after the request was sent.
        *(
            (script, Failure(Cause.UNSURE, words))
            for script, words in (
                ("exit 4", "exit code 4"),
                ("echo a; exit 1", "a"),
                ("kill -9 $$", "exit code -9"),
                ("echo Killed >&2; exit 137", "Killed"),
                ("echo 'slurm_update error: Protocol authentication error' >&2; exit 1",)
                + ("slurm_update error: Protocol authentication error",),
                ("echo 'Unable to contact slurm controller (connect failure)'; exit 1",)
                + ("Unable to contact slurm controller (connect failure)",),
            )
        ),
    ],
)
def test_a_change_that_fails_has_its_cause(script, failure, slurm):
    slurm("scontrol", script)
    assert client.change(["scontrol", "update"]) == failure


def test_a_client_that_cannot_be_started_has_done_nothing(slurm, tmp_path, monkeypatch):
    slurm("scontrol", "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "scontrol").chmod(0o644)
    assert client.change(["scontrol", "update"]) == Failure(Cause.FAILED, "Permission denied")
    with pytest.raises(UserError, match="scontrol: cannot be run: Permission denied"):
        client.all_nodes()


@rows("script", ["true", "echo what", "printf 'NodeName=n1 State=IDLE x'", "echo 'NodeName=n1 St'"])
def test_part_of_an_answer_is_not_the_cluster(script, slurm):
    slurm("scontrol", script)
    with pytest.raises(UserError, match="scontrol: does not list all nodes"):
        client.all_nodes()


@rows(
    "script",
    [
        "true",
        "echo what",
        f"printf '{RESERVATION}'",
        f"echo '{RESERVATION}'; echo ReservationName=b",
        "echo 'ReservationName=a StartTime=17'",
    ],
)
def test_part_of_an_answer_is_not_that_nothing_is_reserved(script, slurm):
    """The gate would overlap the reservations of others."""
    slurm("scontrol", script)
    with pytest.raises(UserError, match="scontrol: does not list all reservations"):
        client.reservations()


def test_slurm_says_that_nothing_is_reserved(slurm):
    slurm("scontrol", "echo 'No reservations in the system'")
    assert client.reservations() == {}


def test_jobs_that_are_laid_out_together_look_at_the_nodes_once(slurm, monkeypatch):
    slurm("sinfo", "echo 'n1|idle|none'")
    assert client.recent_states() is client.recent_states()
    assert len(slurm.calls()) == 1
    monkeypatch.setattr(client, "RECENT", 0)
    client.recent_states()
    assert len(slurm.calls()) == 2


def test_nodes_that_a_new_slurmctld_does_not_know_yet_are_asked_for_again(slurm, monkeypatch):
    monkeypatch.setattr(client, "LOOK_AGAIN", 0.01)
    slurm("sinfo", "[ -e known ] && echo 'n1|idle|none' || echo 'n1|unknown*|none'; touch known")
    assert client.recent_states()["n1"].state.idle
    slurm("sinfo", "echo 'n1|unknown|none'")
    monkeypatch.setattr(client, "RECENT", 0)
    monkeypatch.setattr(client, "_patience", 0.03)
    assert not client.recent_states()["n1"].state.usable
    assert len(slurm.calls()) < 8


@pytest.mark.deep
def test_answers_of_nodes_are_read_when_there_are_more(slurm):
    slurm("srun", "echo n1 seen; sleep 0.4; echo n2 seen; sleep 0.4")
    texts = []
    client.on_each(nodesets.of(["n1", "n2"]), [], ["true"], lambda text: texts.append(text) or 0)
    assert texts == sorted(set(texts), key=len)
    assert texts[-1] == "n1 seen\nn2 seen\n"
