"""Other threads, ranks or sizes than before, or than the sisters have: nobody takes it for good."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import fleets
import pytest
from asked import ask
from clone import TOP
from fleets import names
from rows import rows

from siteproof.record import samples
from siteproof.record.samples import Sample

EIGHT = names(8)
OF_CHECK = {"Stream": ("triad", "MB/s"), "Hpl": ("gflops", "GFLOPS"), "Latency": ("min", "us")}


def kept(tmp_path, monkeypatch):
    """What writes jobs of eight nodes with a criterion on Stream.triad; a session a day."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    fleets.load(tmp_path / "sites", monkeypatch, criteria=fleets.CRITERIA)
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=30)
    monkeypatch.setattr(fleets, "START", begin)

    def job(run, nodes=EIGHT, value=100, check="Stream", own=None, number="1", **conditions):
        """own: the conditions of n005 alone. value: None where the run was interrupted."""
        keys = {k: conditions.pop(k) for k in ("mode", "environment") if k in conditions}
        keys |= {"expected": ",".join(nodes), "job": number}
        head = fleets.header(run, check, conditions={"program": "stream", **conditions}, **keys)
        if value is None:
            lost = [Sample(head, n, f"{check}.*", status="interrupted", why="?") for n in nodes]
            samples.write(tmp_path / "perflogs", head, lost)
            return
        name, unit = OF_CHECK[check]
        of_nodes = [
            Sample(
                *(head, node, f"{check}.{name}", Decimal(value), unit),
                own_conditions=own or {} if node == "n005" else {},
            )
            for node in nodes
        ]
        samples.write(tmp_path / "perflogs", head, of_nodes)

    return job


def says(node="n005"):
    """The exit codes of verdict, nodes and gate, the state of a node, and why."""
    codes = tuple(int(ask(one, "--json")[0]) for one in ("verdict", "nodes", "gate"))
    text = ask("nodes", "--json")[1]
    found = json.loads(text[text.index("{") :])
    of_node = next(one for one in found["nodes"] if one["node"] == node)
    return codes, of_node["state"], " ".join(of_node["reasons"])


FREE, ODD = ((0, 0, 0), "OK"), ((0, 1, 1), "ODD")

# ---- a node that differs from its sisters


@rows(
    "check, key, usual, other",
    [
        ("Stream", "threads", "32", "24"),
        ("Hpl", "n", "90000", "45000"),
        ("Latency", "size", "56", "8"),
    ],
)
@pytest.mark.deep
def test_a_node_that_is_measured_again_alone_still_differs_from_its_sisters(
    tmp_path, monkeypatch, check, key, usual, other
):
    keep = kept(tmp_path, monkeypatch)
    keep(0)
    keep(1, check=check, own={key: other}, **{key: usual})
    keep(2, check=check, nodes=["n005"], **{key: other})
    assert says()[:2] == ODD
    assert f"{key} {other}" in says()[2]
    keep(3, check=check, nodes=["n005"], **{key: usual})
    assert says()[:2] == FREE


def test_nodes_that_have_a_job_each_are_compared(tmp_path, monkeypatch):
    keep = kept(tmp_path, monkeypatch)
    for number, node in enumerate(EIGHT):
        keep(1, nodes=[node], number=str(number), threads="24" if node == "n005" else "32")
    assert says()[:2] == ODD


def test_what_takes_no_setting_back(tmp_path, monkeypatch):
    """A run that was interrupted, and an older one of a weaker mode or of what is gone."""
    keep = kept(tmp_path, monkeypatch)
    keep(0)
    keep(1, check="Hpl", threads="32", n="9")
    keep(2, check="Hpl", nodes=["n005"], threads="24", n="9")
    keep(3, check="Hpl", value=None)
    assert says()[:2] == ODD
    keep(4, check="Hpl", threads="32", n="9")
    assert says()[:2] == FREE
    keep(5, check="Hpl", mode="quick", threads="32", n="1")
    keep(6, check="Hpl", mode="quick", nodes=["n005"], threads="24", n="1")
    assert says()[:2] == ODD
    keep(7, check="Hpl", threads="32", n="9")
    assert says()[:2] == FREE
    keep(8, check="Hpl", environment="gone", threads="32")
    keep(9, check="Hpl", environment="gone", nodes=["n005"], threads="24")
    assert says()[:2] == FREE


def test_a_past_that_begins_with_a_failure_is_that_of_the_first_value(tmp_path, monkeypatch):
    keep = kept(tmp_path, monkeypatch)
    keep(1, value=None)
    keep(2, threads="64", ntimes="10")
    keep(3, threads="32", ntimes="10")
    assert "threads 64 -> 32" in " ".join(ask("nodes")[1].split())


def test_three_that_never_were_alike_are_odd_until_they_are_accepted(tmp_path, monkeypatch):
    keep = kept(tmp_path, monkeypatch)
    keep(0, nodes=EIGHT[3:], threads="32")
    keep(0, nodes=EIGHT[:3], number="2", threads="24")
    assert says("n002")[:2] == ODD
    keep(1, nodes=EIGHT[3:], threads="32")
    keep(1, nodes=EIGHT[:3], number="2", threads="24")
    assert ask("accept", "s0001", "--why", "another kind of node")[0] == 0
    assert says("n002")[:2] == FREE


def test_a_problem_size_that_differs_by_a_block_is_the_same(tmp_path, monkeypatch):
    keep = kept(tmp_path, monkeypatch)
    keep(0)
    keep(1, check="Hpl", n="90000")
    keep(2, check="Hpl", nodes=["n005"], n="89808")
    assert says()[:2] == FREE


def test_settings_of_the_same_session_are_points(tmp_path, monkeypatch):
    keep = kept(tmp_path, monkeypatch)
    for run in (1, 2):
        keep(run, threads="32")
        keep(run, number="2", threads="64")
    assert says()[:2] == FREE


def test_a_lone_node_that_changed_against_its_past_is_odd_until_it_is_accepted(
    tmp_path, monkeypatch
):
    keep = kept(tmp_path, monkeypatch)
    fleets.write_site(tmp_path / "sites", count=1, criteria=fleets.CRITERIA)
    keep(1, nodes=["n001"], threads="32")
    for run in (2, 3):
        keep(run, nodes=["n001"], threads="24")
        assert says("n001")[:2] == ODD
    assert "threads 32 -> 24" in says("n001")[2]
    assert ask("accept", "s0003", "--why", "half of the cores are reserved")[0] == 0
    assert says("n001")[:2] == FREE
    keep(4, nodes=["n001"], threads="24")
    assert says("n001")[:2] == FREE
    keep(5, nodes=["n001"], threads="16")
    assert says("n001")[:2] == ODD


# ---- a setting that changed on three nodes or more


@rows(
    "key, before, after, named",
    [
        ("threads", "64", "32", True),
        ("ntimes", "10", "20", False),
        ("program", "stream", "likwid-bench", True),
    ],
)
@pytest.mark.deep
def test_a_baseline_is_undecided_under_other_settings_until_they_are_accepted(
    tmp_path, monkeypatch, key, before, after, named
):
    keep = kept(tmp_path, monkeypatch)
    rule = f"programs: [{before}]" if key == "program" else f"conditions: {{{key}: {before}}}"
    condition = f", {rule}" if named else ""
    rest = f"tolerance: 5 %, nodes: [compute], taken: 2026-01-01, source: s{condition}"
    baseline = f"B: {{description: d, metric: Stream.triad, at_least: 99 MB/s, {rest}}}"
    (tmp_path / "sites/here/baselines.yaml").write_text(f"system: here\n{baseline}\n")
    keep(1, **{key: before})
    assert says()[:2] == FREE
    keep(2, value=70, **{key: after})
    codes, state, _ = says()
    assert (codes[0], state) == (3, "OK")
    assert f"{key} {before} -> {after}" in " ".join(ask("verdict")[1].split())
    keep(3, value=70, **{key: after})  # which is compared with the session before
    assert "1 waits for the acceptance of a setting" in ask("verdict")[1]
    assert f"on n[001-008], {key} {before} -> {after}" in " ".join(ask("nodes")[1].split())
    assert "not known, Stream" in ask("report", "--brief")[1]
    page = tmp_path / "page.html"
    assert ask("report", "--output", str(page))[0] == 0
    words = (sys.executable, TOP / "siteproof/report/recompute.py", page)
    assert subprocess.run(words, capture_output=True).returncode == 0
    assert ask("accept", "s0003", "--why", "NPS 4")[0] == (0 if named else 1)
    assert ask("accept", "s0003", "--despite", "--why", "NPS 4")[0] == 0
    assert ask("verdict")[0] == (0 if named else 1)  # a baseline without the setting is to be made
    keep(4, value=50, **{key: after})
    assert ask("verdict")[0] == 1  # the contract decides at any time


def test_without_a_baseline_the_contract_decides_and_the_change_is_named(tmp_path, monkeypatch):
    keep = kept(tmp_path, monkeypatch)
    keep(1, threads="64")
    keep(2, value=70, threads="32")
    assert says()[:2] == FREE
    assert "threads 64 -> 32" in " ".join(ask("nodes")[1].split())


def test_nodes_that_were_not_measured_since_the_change_are_not_odd(tmp_path, monkeypatch):
    keep = kept(tmp_path, monkeypatch)
    keep(1, threads="64")
    keep(2, nodes=EIGHT[:6], threads="32")
    assert says("n007")[:2] == FREE
    keep(3, nodes=["n007"], threads="64")
    assert says("n007")[:2] == ODD


@rows("changed", [EIGHT, EIGHT[4:]])
def test_what_other_settings_hide_is_not_called_the_same(tmp_path, monkeypatch, changed):
    keep = kept(tmp_path, monkeypatch)
    keep(1, threads="64")
    if changed != EIGHT:
        keep(2, nodes=EIGHT[:4], threads="64")
    keep(2, nodes=changed, value=70, number="2", threads="32")
    code, text = ask("compare")
    assert (code, "threads 64 vs 32" in " ".join(text.split())) == (3, True)
    assert "only in" not in text
    code, text = ask("report", "--brief")
    assert "not known" in text and "threads 64 vs 32" in text
