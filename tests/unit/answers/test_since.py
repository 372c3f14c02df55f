"""What nobody has measured, what Slurm reports of a node, and since when a node is as it is."""

import json
import random
import re
import shutil
from datetime import UTC, datetime, timedelta

import fleets
import pytest
from asked import ask
from fleets import names, run_of
from rows import rows

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.record import samples
from siteproof.record.samples import Sample
from siteproof.slurm import client, records
from siteproof.slurm.records import Node, Reservation
from siteproof.slurm.spelling import node_state

BROKE = int(datetime(2026, 11, 12, 8, tzinfo=UTC).timestamp())
LOGIN = "\nnodes: {compute: {set: 'n[001-008]'}, login: {set: login1}}\npartitions:\n"
LOGIN += "  login: {description: L, role: login, scheduler: local, environments: [system]}\n"


def answer(command):
    text = ask(command, "--json")[1]
    return json.loads(text[text.index("{") :])


def codes():
    return tuple(ask(command)[0] for command in ("verdict", "nodes", "gate"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Makes a site of eight nodes; `keep` writes what a job measured."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))

    def site(criteria="{}\n", scheduler="local", login=False):
        shutil.rmtree(tmp_path / "perflogs", ignore_errors=True)  # of an earlier row
        (tmp_path / "perflogs").mkdir()
        path = fleets.write_site(tmp_path / "sites", criteria=criteria) / "here/system.yaml"
        text = path.read_text().replace("scheduler: local", f"scheduler: {scheduler}")
        if login:
            head, tail = text.split("\nnodes:")
            text = head + LOGIN + tail.split("partitions:\n")[1]
        path.write_text(text)
        monkeypatch.setenv("SITEPROOF_SITES", str(path.parents[1]))

    site.folder = tmp_path
    site.keep = lambda found: samples.write(tmp_path / "perflogs", found[0].header, found)
    return site


# ---- what nobody has measured


@rows("criteria", ["{}\n", fleets.CRITERIA])
def test_nodes_of_which_nothing_was_measured_are_untested(here, criteria):
    here(criteria)
    assert codes() == (3, 3, 3)
    assert {node["state"] for node in answer("nodes")["nodes"]} == {"UNTESTED"}


def test_a_role_of_which_nothing_was_measured_is_untested_whatever_others_have(here):
    here(login=True)
    here.keep(run_of(dict.fromkeys(names(8), 100)))
    found = {node["node"]: node["state"] for node in answer("nodes")["nodes"]}
    assert found == {**dict.fromkeys(names(8), "OK"), "login1": "UNTESTED"}
    assert ask("why", "login1")[0] == 3


# ---- what Slurm reports of a node


def slurm_of(monkeypatch, *nodes):
    """Slurm has these nodes, and no reservation."""
    monkeypatch.setattr(client, "is_here", lambda: True)
    monkeypatch.setattr(client, "all_nodes", lambda: {node.name: node for node in nodes})
    monkeypatch.setattr(client, "reservations", dict)
    monkeypatch.setattr(client, "jobs_on", lambda _nodes: [])


@rows(
    "state, reason, shown",
    [
        ("DOWN", "Not responding", "down: Not responding, since 2026-11-12"),
        ("IDLE+DRAIN", "bad DIMM", "drain+idle by ann: bad DIMM, since 2026-11-12"),
        ("IDLE+DRAIN", "NHC: disk", "drain+idle: NHC: disk, since 2026-11-12 (by Slurm or a"),
    ],
)
def test_what_slurm_reports_of_a_node_is_shown_with_its_time(
    here, monkeypatch, state, reason, shown
):
    here(scheduler="slurm")
    others = [Node(name) for name in names(8) if name != "n003"]
    node = Node("n003", node_state(state), reason, by="ann", since=BROKE)
    slurm_of(monkeypatch, *others, node, Node("elsewhere", node_state("DOWN")))
    for command in (["nodes"], ["why", "n003"]):
        text = ask(*command)[1]
        assert f"n003  in Slurm: {shown}" in text, text
        assert "elsewhere" not in text
    assert [why["subject"] for why in answer("nodes")["in_slurm"]] == ["n003"]
    here.keep(run_of(dict.fromkeys(names(8), 100)))
    assert shown in ask("gate")[1]


def test_where_slurm_does_not_answer_that_is_named_and_the_nodes_are_listed(here, monkeypatch):
    here(scheduler="slurm")

    def silent():
        raise UserError("scontrol", "no answer")

    monkeypatch.setattr(client, "is_here", lambda: True)
    monkeypatch.setattr(client, "all_nodes", silent)
    for command in (["nodes"], ["why", "n003"]):
        code, text = ask(*command)
        assert code == 3
        assert "here  in Slurm: cannot be read, so it does not count: scontrol: no answer" in text


@rows("stamp, since", [("1794470400", 1794470400), ("2026-11-12T08:00:00", 0), ("9" * 40, 0)])
def test_the_time_of_a_reason_is_read(stamp, since):
    text = f"NodeName=n1 State=DOWN Reason=gone [slurm@{stamp}] Comment=x\n"
    assert records.parse_nodes(text)["n1"].since == since


# ---- a missing measurement is no repair


def in_quarantine(monkeypatch, folder, nodes, put_in):
    """The gate has put these nodes into its reservation."""
    name = "siteproof-compute"
    slurm_of(monkeypatch, *map(Node, names(8)))
    held = Reservation(name, put_in, nodesets.parse(nodes))
    monkeypatch.setattr(client, "reservations", lambda: {name: held})
    record = {"what": "create", "reservation": name, "phase": "after", "start": put_in}
    record |= {"nodes": nodes, "added": nodes, "unix": put_in, "error": ""}
    (folder / "perflogs/here/gate.jsonl").write_text(f"{json.dumps(record)}\n")


@rows("check", ["HostParameters.mismatches", "Health.problems"])
def test_untested_nodes_are_the_same_in_the_quarantine_and_outside(here, monkeypatch, check):
    here(fleets.CRITERIA, scheduler="slurm")
    found = run_of(dict.fromkeys(names(8), 0), 2, check, "count")
    here.keep(found)
    before = datetime.fromisoformat(found[0].header.time).timestamp() - 3600
    in_quarantine(monkeypatch, here.folder, "n[001-002]", int(before))
    text = ask("gate")[1]
    assert "8 of 8 nodes stay out" in " ".join(text.split())
    assert "repair" not in text
    assert text.splitlines()[-1].startswith("next: reframe -c checks/ -r")
    may = ("--keep-out", "FAILED", "--release")
    assert "2 of 2 nodes may be released" in ask("gate", *may)[1]
    text = ask("gate", *may[:-1])[1]
    assert text.splitlines()[-2:] == [
        "none of 8 nodes stays out",
        "next: siteproof gate --system here --keep-out FAILED --release --apply",
    ]


def test_what_failed_is_repaired_and_what_lacks_a_value_is_measured(here, monkeypatch):
    here(fleets.CRITERIA, scheduler="slurm")
    values = dict.fromkeys(names(8)[1:], 100)
    found = run_of({**values, "n002": 20}, 2)
    here.keep(found)
    before = datetime.fromisoformat(found[0].header.time).timestamp() - 3600
    in_quarantine(monkeypatch, here.folder, "n[001-002]", int(before))
    *_, repair, command = ask("gate")[1].splitlines()
    assert repair == "first repair n002"
    assert command.endswith("--retest --apply")


# ---- one since


def years_of(here, monkeypatch, runs, loss, first, criteria="{}\n", better=100, **keys):
    """Daily runs to yesterday; n003 is worse by a share from a run on. The day of that run."""
    here(criteria)
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=runs)
    monkeypatch.setattr(fleets, "START", begin)
    chance = random.Random(1)
    for run in range(runs):
        values = {name: better * (1 + chance.gauss(0, 0.002)) for name in names(8)}
        values["n003"] *= 1 - loss * (run >= first)
        here.keep(run_of(values, run, **keys))
    return f"{begin + timedelta(days=first):%Y-%m-%d}"


BOUND = fleets.CRITERIA.replace("60 MB/s", "95 MB/s")


@rows(
    "runs, first, criteria, metric, unit",
    [
        (70, 20, "{}\n", "Stream.triad", "MB/s"),  # longer ago than the runs that are compared
        (70, 20, BOUND, "Stream.triad", "MB/s"),
        (70, 50, "{}\n", "Hpl.gflops", "GFLOPS"),
        (30, 28, BOUND, "Stream.triad", "MB/s"),  # too short for the search
    ],
)
@pytest.mark.deep
def test_every_command_and_the_page_have_one_since(
    here, monkeypatch, runs, first, criteria, metric, unit
):
    day = years_of(here, monkeypatch, runs, 0.1, first, criteria, metric=metric, unit=unit)
    found = {
        "nodes": next(n["findings"] for n in answer("nodes")["nodes"] if n["node"] == "n003"),
        "gate": next(n["findings"] for n in answer("gate")["nodes"] if n["node"] == "n003"),
        "why": json.loads(ask("why", "n003", "--json")[1])["state_findings"],
        "export": next(
            n["findings"]
            for n in json.loads(ask("export", "json")[1])["fleet"]["nodes"]
            if n["node"] == "n003"
        ),
    }
    for command, findings in found.items():
        assert {why["since"][:10] for why in findings} == {day}, command
        assert {why["details"]["lasting"] for why in findings} == {runs - first}, command
    page = here.folder / "page.html"
    assert ask("report", "--output", str(page))[0] in (0, 1, 3)
    text = page.read_text()
    assert set(re.findall(r"since (\d{4}-\d\d-\d\d) \(\d+ runs\)", text)) == {day}
    if runs > 30:
        (change,) = {why["alert"] for why in found["nodes"]}
        assert f"since {day}, {runs - first} runs  change {change}" in ask("nodes")[1]
        assert change in ask("trend")[1]


@rows("status", ["timeout", "invalid", "node_lost"])
def test_a_failure_besides_the_criteria_is_so_since_the_first_session_of_its_stretch(
    here, monkeypatch, status
):
    here(fleets.CRITERIA)
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=9)
    monkeypatch.setattr(fleets, "START", begin)
    here.keep(run_of(dict.fromkeys(names(8), 100), 1))
    for run in (2, 4, 5, 6):
        broken(here, run, status, metric="Hpl.gflops", unit="GFLOPS")
        if run == 2:
            good = run_of(dict.fromkeys(names(8), 100), 3, "Hpl.gflops", "GFLOPS")
            here.keep(good)
    (why,) = state_of()["findings"]
    day = f"{begin + timedelta(days=4):%Y-%m-%d}"
    assert (why["check"], why["since"][:10], why["details"]["lasting"]) == ("Hpl", day, 3)
    assert f"since {day} (3 runs)" in ask("why", "n003")[1]


# ---- a repair that a person records


def repair(*words, nodes="n003"):
    return ask("repaired", nodes, "--by", "J. Doe", "--why", "new DIMM", *words)


def broken(here, run, status="timeout", **keys):
    values = {name: 100 for name in names(8) if name != "n003"}
    found = run_of(values, run, expected="n[001-008]", **keys)
    head = found[0].header
    here.keep([*found, Sample(head, "n003", f"{head.check}.*", status=status, why="because")])


def state_of(node="n003"):
    return next(one for one in answer("nodes")["nodes"] if one["node"] == node)


@rows("status", ["timeout", "invalid", "node_lost"])
@pytest.mark.deep
def test_a_repair_ends_flapping_and_clears_no_failure(here, monkeypatch, status):
    here(fleets.CRITERIA)
    monkeypatch.setattr(
        fleets, "START", datetime.now(UTC).replace(microsecond=0) - timedelta(days=9)
    )
    for run in (1, 3):
        broken(here, run, status)
        here.keep(run_of(dict.fromkeys(names(8), 100), run + 1))
    assert (ask("nodes")[0], state_of()["state"]) == (1, "FLAPPING")
    assert repair("--ticket", "HW-17")[0] == 0
    assert (ask("nodes")[0], ask("gate")[0], state_of()["state"]) == (0, 0, "OK")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    line = f"repaired on {today} by J. Doe: new DIMM (HW-17)"
    assert line in ask("why", "n003")[1]
    page = here.folder / "page.html"
    ask("report", "--output", str(page))
    assert line in page.read_text()
    broken(here, 5, status)  # measured before the repair, and not cleared by it
    assert state_of()["state"] == "FAILED"
    assert line in ask("nodes")[1]
    here.keep(run_of(dict.fromkeys(names(8), 100), 6))
    assert state_of()["state"] == "OK"
    for run in (10, 11):  # after the repair
        broken(here, run, status, time=datetime.now(UTC).isoformat())
    last = datetime.now(UTC).isoformat()
    here.keep(run_of(dict.fromkeys(names(8), 100), 12, time=last))
    assert state_of()["state"] == "FLAPPING"


@pytest.mark.deep
def test_a_repair_is_a_new_beginning(here, monkeypatch):
    years_of(here, monkeypatch, 70, 0.1, 20)
    assert repair()[0] == 0
    found = state_of()
    assert found["state"] == "SLOW"
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert {why["since"][:10] for why in found["findings"]} == {today}
    assert found["repair"]["message"] == "new DIMM"
    assert state_of("n001")["repair"] is None


@rows(
    "words, said",
    [
        (("n009",), "no node of the site: 'n009'"),
        (("n[00",), "siteproof repaired"),
        (("",), "no node of the site"),
        (("n003", "--by", " "), "repaired: missing: --by"),
        (("n003", "--why", "a\x1bb"), "--why: is not a valid text"),
    ],
)
def test_a_repair_that_names_no_node_or_nobody_is_refused(here, words, said):
    here()
    code, text = repair(*words[1:], nodes=words[0])
    assert (code, said in text) == (2, True), text
    assert not (here.folder / "perflogs/here/repairs").exists()


def test_a_broken_record_of_a_repair_is_named_and_stops_no_answer(here):
    here()
    repair()
    (path,) = (here.folder / "perflogs/here/repairs").iterdir()
    path.write_text(path.read_text().replace("n003", ""))
    assert ask("nodes")[0] == 3  # of no node
    for text in ("{}", path.read_text().replace('"nodes": ""', '"nodes": "n[00"')):
        path.write_text(text)
        code, said = ask("nodes")
        assert (code, path.name in said) == (3, True), said
