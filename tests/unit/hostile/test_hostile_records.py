"""Every record below perflogs, spoilt key by key: one line and exit code 2, or an answer.

Never a traceback, and never a better answer than without the record.
"""

import copy
import gzip
import json
import os
import random
from decimal import Decimal

import clone
import pytest
from asked import ask
from fleets import header, names, run_of

from siteproof import nodesets
from siteproof.compare import accepted
from siteproof.errors import UserError
from siteproof.gate import decision
from siteproof.record import clocks, descriptions, samples
from siteproof.record.finding import Kind
from siteproof.record.samples import Sample
from siteproof.slurm.records import Reservation
from siteproof.trend import alerts
from siteproof.wording.findings import full

pytestmark = pytest.mark.deep

DEEP = "[" * 5000 + "]" * 5000
NAMED = "\x1b[31m\u202e<script>|\n=cmd()"
REPLACED = {
    "null": "null",
    "list": "[]",
    "object": "{}",
    "empty": '""',
    "long": json.dumps("x" * 100_000),
    "hostile": json.dumps(NAMED),
    "huge": "1" + "0" * 4200,
    "endless": "1" + "0" * 5000,
    "infinite": "1e999",
    "nan": "NaN",
    "negative": "-1",
    "true": "true",
    "nested": "[" * 40 + "]" * 40,
    "deep": DEEP,
    "year 1": '"0001-01-01T00:00:00+14:00"',
    "year 9999": '"9999-12-31T23:59:59-14:00"',
    "nodes": '"n[1-999999999]"',
    "bomb": '"n[1-10]x[1-100000]y[1-100000]"',
    "surrogate": '"\\ud800"',
    "path": '"../../../etc/passwd"',
}
MARK = "@@here@@"
ALERT = (
    {name: {str: "x", bool: True}.get(kind, 1) for name, kind in alerts._PLAIN.items()}
    | dict.fromkeys(alerts._MOMENTS, {"time": "2026-11-01T00:00:00Z", "session": "s0001"})
    | {"nodes": "n001", "changed": [{"kind": "change_unknown", "message": "kernel"}]}
    | {"series": {"dims": {}, "conditions": {}}}
)
ACK = {
    "siteproof": 1,
    "ack": "x",
    "who": "anna",
    "why": "because",
    "when": "2026-11-01T00:00:00+00:00",
    "takes_back": False,
    "alert": ALERT,
}


def places(record, path=()):
    """Each key of a record, and of what stands in it."""
    if path:
        yield path
    inside = record.items() if isinstance(record, dict) else ()
    for key, value in enumerate(record[:1]) if isinstance(record, list) else inside:
        yield from places(value, (*path, key))


def spoilt(record):
    """Texts of the record with one thing wrong: a key is missing, or holds something else."""
    for path in places(record):
        broken = copy.deepcopy(record)
        held = broken
        for key in path[:-1]:
            held = held[key]
        held[path[-1]] = MARK
        text = json.dumps(broken)
        for word, other in REPLACED.items():
            yield f"{path} {word}", text.replace(json.dumps(MARK), other)
        if isinstance(held, dict):
            del held[path[-1]]
            yield f"{path} missing", json.dumps(broken)
    for word, other in REPLACED.items():
        yield f"all {word}", other
    yield "empty", ""
    yield "cut", json.dumps(record)[:-3]


def some(texts, count):
    """The same of them each time, and others every night."""
    found = list(texts)
    random.Random(os.environ["SITEPROOF_SEED"]).shuffle(found)
    return found[:count]


def test_an_acceptance_with_anything_wrong_in_it_is_a_line_or_an_acceptance(here):
    record = {
        "siteproof": 1,
        "name": "s0001",
        "sessions": ["s0001"],
        "who": "anna",
        "why": "because",
        "when": "2026-11-01T00:00:00+00:00",
        "verdicts": {"PASS": 1},
        "suite": ["1"],
        "despite": [],
    }
    path = accepted.folder(here, "here") / "20261101T000000.000000Z.json"
    path.parent.mkdir()
    path.write_text(json.dumps(record))
    assert ask("compare", "accepted", "latest")[0] == 1
    for what, text in some(spoilt(record), 150):
        path.write_text(text)
        for words in (("accept", "--list"), ("compare", "accepted", "latest")):
            code, told = ask(*words)
            assert code in (0, 1, 2) if words[0] == "accept" else code in (1, 2), (what, told)
            assert "\x1b" not in told and "\u202e" not in told, what


def test_nothing_is_written_through_a_folder_that_a_colleague_made_a_link(here, tmp_path):
    (tmp_path / "outside").mkdir()
    for name in ("accepted", "trend", "imported", "published", ".sessions"):
        (here / "here" / name).symlink_to(tmp_path / "outside")
    (here / "other").symlink_to(tmp_path / "outside")
    log_of_reframe = next((clone.FOREIGN / "4.10-default").rglob("*.log"))
    accept = ("accept", "s0001", "--why", "because", "--despite")
    for words in (accept, ("import", log_of_reframe, "--apply")):
        code, told = ask(*map(str, words))
        assert code == 2, told
        assert "link" in told
    for write in (
        lambda: alerts.acknowledge(here, "here", alerts._alert(ALERT), "anna", "because"),
        lambda: clocks.take(here, "here", "s0003"),
        lambda: clocks.take(here, "other", "s0003"),
        lambda: decision.held(here / "other" / decision.NAME).__enter__(),
    ):
        with pytest.raises(UserError):
            write()
    assert list((tmp_path / "outside").iterdir()) == []


def test_an_acknowledgement_with_anything_wrong_in_it_is_a_line_or_a_record(here):
    path = alerts.folder(here, "here") / "20261101T000000.000000Z.json"
    path.parent.mkdir()
    path.write_text(json.dumps(ACK))
    assert len(alerts.acknowledgements(here, "here")) == 1
    for what, text in spoilt(ACK):
        path.write_text(text)
        try:
            (found,) = alerts.acknowledgements(here, "here")
        except UserError as error:
            assert str(error).startswith(str(path)), what
            continue
        assert len(found.alert.nodes) <= nodesets.MAX_NODES
        str(found), alerts.as_record(found.alert), alerts.standing([found])
    for what, text in some(spoilt(ACK), 10):
        path.write_text(text)
        code, told = ask("trend")
        assert code in (0, 1, 2, 3), (what, told)
        assert "\x1b" not in told and "\u202e" not in told, what


def test_a_cause_without_its_details_is_refused_or_shown(here):
    path = alerts.folder(here, "here") / "20261101T000000.000000Z.json"
    path.parent.mkdir()
    shown = set()
    for kind in (*Kind, "unheard of"):
        changed = {"alert": ALERT | {"changed": [{"kind": str(kind)}]}}
        path.write_text(json.dumps(ACK | changed))
        try:
            (found,) = alerts.acknowledgements(here, "here")
        except UserError as error:
            assert str(error).startswith(str(path)), kind
            continue
        assert [isinstance(full(why), str) for why in found.alert.changed] == [True], kind
        shown.add(kind)
    assert Kind.NOTHING_CHANGED in shown and "unheard of" not in shown


def test_no_line_of_the_gates_log_makes_the_gate_less_careful(tmp_path):
    path = tmp_path / "here" / decision.NAME
    path.parent.mkdir()
    create = {"what": "create", "reservation": "r", "unix": 1000, "start": 1010, "added": "n[1-2]"}
    for phase in ("before", "after"):
        record = {**create, "phase": phase}
        for what, text in spoilt(record):
            path.write_text(text + "\n")
            found = decision.read(path)
            assert not decision.made_by_us(
                found, Reservation("r", 10**9, nodesets.parse("n[1-2]"))
            ), what
            assert not decision.made_by_us(
                found, Reservation("other", 1010, nodesets.parse("n[1-2]"))
            ), what
            if not what.startswith("('added',)"):
                assert set(decision.put_in(found, "r")) <= {"n1", "n2"}, what


def test_a_pipe_or_a_link_in_place_of_the_gates_log_is_one_line(tmp_path):
    path = tmp_path / "here" / decision.NAME
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(UserError, match="regular file"):
        decision.read(path)
    with pytest.raises(UserError, match="regular file"), decision.held(path) as journal:
        journal({})
    path.unlink()
    (tmp_path / "victim").write_text("")
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(UserError, match="link"):
        decision.read(path)
    with pytest.raises(UserError), decision.held(path) as journal:
        journal({})
    assert (tmp_path / "victim").read_text() == ""


def described(head):
    return [
        Sample(head, "n001", descriptions.COUNT, Decimal(1), "count"),
        Sample(head, "n001", descriptions.DIGEST, descriptions.digest({"a": "b"}), "text"),
    ]


def test_descriptions_with_anything_wrong_in_them_are_a_line_or_those_measured(tmp_path):
    head = header(1, "SystemDescription")
    path = descriptions.write(tmp_path, head, {"n001": {"a": "b"}})
    record = json.loads(gzip.decompress(path.read_bytes()))
    assert descriptions.of(described(head), tmp_path) == {"n001": {"a": "b"}}
    for what, text in spoilt(record):
        path.write_bytes(gzip.compress(text.encode(), 1))
        try:
            found = descriptions.of(described(head), tmp_path)
        except UserError as error:
            assert "n001" in str(error) or str(path) in str(error), what
            continue
        assert found == {"n001": {"a": "b"}}, what


def test_what_is_packed_small_and_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(descriptions, "LARGEST", 1 << 20)
    head = header(1, "SystemDescription")
    path = descriptions.write(tmp_path, head, {"n001": {"a": "b"}})
    path.write_bytes(gzip.compress(b" " * (1 << 24)))
    with pytest.raises(UserError, match="too large"):
        descriptions.of(described(head), tmp_path)


def test_samples_with_anything_wrong_in_them_are_never_a_better_answer(here):
    """A node is slow: no change of its file makes a PASS of it."""
    slow = run_of({**dict.fromkeys(names(7), 80.0), "n008": 1.0}, 3)
    path = samples.write(here, slow[0].header, slow)
    head, *lines = path.read_text().splitlines()
    assert ask("verdict")[0] == 1
    another = ("('session',)", "('check',)", "('conditions'", "('mode',)")  # of another run
    for what, text in some(spoilt(json.loads(head)), 150):
        path.write_text("\n".join([text, *lines]) + "\n")
        code, told = ask("verdict")
        assert code in (1, 2, 3) or what.startswith(another), (what, told)
        assert "\x1b" not in told and "\u202e" not in told, what
    for what, text in some(spoilt(json.loads(lines[-1])), 150):
        path.write_text("\n".join([head, *lines[:-1], text]) + "\n")
        code, told = ask("verdict")
        # Of another metric or of no node it is another figure, and what was there before stands.
        better = what.startswith(("('value',)", "('unit',)", "('metric',)", "('node',)"))
        assert code in ((1, 2, 3) if not better else (0, 1, 2, 3)), (what, told)
        assert "\x1b" not in told and "\u202e" not in told, what


def test_a_time_that_no_calendar_holds_is_a_broken_line_for_every_command(here):
    (path,) = here.rglob("s0002*.jsonl")
    head, *lines = path.read_text().splitlines()
    for time in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        path.write_text("\n".join([json.dumps(json.loads(head) | {"time": time}), *lines]) + "\n")
        for words in (["verdict"], ["nodes"]):
            code, told = ask(*words)
            assert code == 3, (time, words, told)
            assert "lost" in told, (time, words, told)
        code, told = ask("history")
        assert code == 3, time
        told = " ".join(told.split())
        assert "clock can show" in told or "is not a time" in told, time


def test_a_condition_beyond_all_measure_is_another_condition(here):
    for size in ("9e999999", "-9e999999", "1e-999999999", "sNaN", "Infinity"):
        for run, sizes in ((3, ("9e999999", size)), (4, (size, "9e999999"))):
            found = run_of(dict.fromkeys(names(8), 100.0), run, conditions={"n": sizes[0]})
            own = [Sample(**{**vars(s), "own_conditions": {"n": sizes[1]}}) for s in found[:3]]
            samples.write(here, found[0].header, [*own, *found[3:]])
        for words in (("nodes",), ("trend",), ("compare", "s0003", "s0004")):
            code, told = ask(*words)
            assert code in (0, 1, 2, 3), (size, words, told)
