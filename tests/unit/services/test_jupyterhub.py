"""What JupyterHub 6.1.1 and a kernel of it have answered, whole, cut and hostile."""

import hashlib
import json

import pytest
from rows import rows
from served import MARK

from siteproof.services import jupyterhub
from siteproof.services.jupyterhub import Server, answer_to, failure, listed, notebook, task
from siteproof.services.steps import StepFailed

OPTIONS = {"siteproof": MARK, "siteproof_before": 1795612636.0}
BEFORE, AFTER = "2026-11-25T13:16:50.405108Z", "2026-11-25T13:17:16.405108Z"  # that start


def server(**keys):
    """A running one, as the hub lists it."""
    return {
        "name": "",
        "started": BEFORE,
        "pending": None,
        "ready": True,
        "stopped": False,
        "url": "/user/alice/",
        "user_options": OPTIONS,
        **keys,
    }


def one(name="", **keys):
    (found,) = listed({"name": "alice", "servers": {name: server(**keys)}})
    return found


def test_a_server_that_a_test_started_is_its_own():
    assert one("siteproof-0123") == Server("siteproof-0123", MARK, ready=True, active=True)
    assert one() == Server("", MARK, ready=True, active=True)


def test_a_named_server_that_has_ended_is_still_to_be_removed():
    ended = one("siteproof-0123", ready=False, stopped=True, started=None)
    assert (ended.mark, ended.active) == (MARK, False)


def test_a_default_server_that_has_ended_is_gone():
    assert one(ready=False, stopped=True, started=None).mark == ""


def test_a_default_server_that_its_user_has_started_since_is_not_ours():
    """The hub keeps the options of a server for the next start."""
    assert one(started=AFTER).mark == ""


@rows("started", [None, "", "yesterday", 5, "2026-11-25T13:17:16.405108"])
def test_a_default_server_without_a_known_start_is_not_ours(started):
    assert one(started=started).mark == ""


@rows(
    "options",
    [
        None,
        {},
        [],
        {"siteproof": "x"},
        {"siteproof": 5},
        {"siteproof": MARK, "siteproof_before": "5"},
    ],
)
def test_a_server_with_other_options_is_not_ours(options):
    assert one(user_options=options).mark == ""


def test_a_server_that_starts_is_active():
    starting = one("a", ready=False, pending="spawn")
    assert (starting.ready, starting.active) == (False, True)


@rows("model", [None, [], {}, {"servers": []}, {"servers": None}, "garbage"])
def test_an_answer_without_servers_is_generic(model):
    with pytest.raises(StepFailed, match="has no servers") as caught:
        listed(model)
    assert caught.value.status == "generic"


def test_the_reason_of_a_failed_start_is_in_the_last_event():
    told = "Spawn failed: [Errno 2] No such file or directory: '/nonexistent/x'"
    events = [{"progress": 0, "message": "Server requested"}, {"failed": True, "message": told}]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    assert failure(text.encode()) == f": {told}"


@rows("events", [b"", b"data: {", b"data: []\n\n", b'data: {"message": 5}', b"\xff\xfe", b"x: {}"])
def test_events_that_are_not_understood_have_no_reason(events):
    assert failure(events) == ""


def test_the_cells_compute_what_is_expected_of_them(capsys):
    cells, expected = task("seed")
    place = {}
    for cell in cells:
        exec(cell, place)
    assert capsys.readouterr().out.strip() == expected
    assert place["hashlib"] is hashlib
    assert task("another")[1] != expected


def test_a_notebook_has_its_cells_in_order():
    made = notebook(["a = 1", "print(a)"])
    assert [cell["source"] for cell in made["cells"]] == ["a = 1", "print(a)"]
    assert jupyterhub._sources({"content": made}) == ["a = 1", "print(a)"]


STREAM = {
    "header": {"msg_id": "9", "msg_type": "stream", "version": "5.3"},
    "parent_header": {"msg_id": "1"},
    "metadata": {},
    "content": {"name": "stdout", "text": "42\n"},
    "buffers": [],
    "channel": "iopub",
}


def test_a_message_that_answers_our_request_is_taken():
    assert answer_to("1", json.dumps(STREAM)) == ("stream", {"name": "stdout", "text": "42\n"})


@rows("parent", [{}, {"msg_id": "2"}, {"msg_id": None}])
def test_a_message_that_answers_another_request_is_passed_over(parent):
    assert answer_to("1", json.dumps({**STREAM, "parent_header": parent})) == ("", {})


@rows(
    "text",
    [
        "",
        b"\xff",
        "[]",
        "{}",
        "[" * 9999,
        json.dumps(STREAM)[:-20],
        json.dumps({**STREAM, "parent_header": []}),
        json.dumps({**STREAM, "header": {"msg_type": 5}}),
        json.dumps({**STREAM, "content": "42"}),
    ],
)
def test_a_message_that_is_not_understood_is_generic(text):
    with pytest.raises(StepFailed) as caught:
        answer_to("1", text)
    assert caught.value.status == "generic"
