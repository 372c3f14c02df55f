"""`siteproof report --brief`: one paragraph, whose numbers are those of the verdict's JSON."""

import json
import random
import re
from dataclasses import replace

import pytest
from asked import ask
from fleets import broken, header, names, run_of, write_site
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from siteproof import nodesets
from siteproof.gate.decision import KEEP_OUT
from siteproof.record import samples
from siteproof.record.finding import UNDECIDED
from siteproof.record.samples import Sample
from siteproof.report import brief

CRITERIA = """\
C-TRIAD: {description: d, metric: Stream.triad, at_least: 100 MB/s, source: s, scope: every node,
  max_age: none}
C-READ: {description: d, metric: RandomIo.read, at_least: 1 MB/s, source: s, scope: every node,
  max_age: none}
C-MANY: {description: d, metric: BlockStorage.undirected, at_least: 1 MB/s, subject: system,
  source: s}
"""


def furnish(folder, monkeypatch, count, values, run=1, **keys):
    """A site of so many nodes, of which `values` (by node) were measured in one run."""
    if run == 1:
        write_site(folder / "sites", count, criteria=CRITERIA)
    for name, path in (("SITES", "sites"), ("DATA", "data"), ("CACHE", "cache")):
        monkeypatch.setenv(f"SITEPROOF_{name}", str(folder / path))
    (folder / "data/perflogs").mkdir(parents=True, exist_ok=True)
    measured = {node: value for node, value in values.items() if value is not None}
    found = [*run_of(measured, run=run, **keys)]
    head = header(run, **keys)
    failed = sorted(values.keys() - measured.keys())
    found += [Sample(head, node, "Stream.*", status="timeout", why="because") for node in failed]
    found = [replace(one, header=head) for one in found]
    samples.write(folder / "data/perflogs", head, found)


def said(*words):
    code, text = ask("report", "--brief", *words)
    assert code == 0, text
    return text.strip()


def document(command, *words):
    return json.loads(ask(command, "--json", *words)[1])


def agrees(paragraph):
    """The numbers of the paragraph are those of the verdict, of the nodes and of the gate."""
    judged, fleet = document("verdict"), document("nodes")
    counts = {verdict: number for verdict, number in judged["counts"].items() if number}
    found = re.search(r"(\d+) criteria: ([^.]*)\.", paragraph)
    assert int(found[1]) == len(judged["criteria"])
    parts = (part.split() for part in found[2].split(", "))
    assert {word: int(number) for number, word in parts} == counts
    out = {node["node"] for node in fleet["nodes"] if node["state"] in KEEP_OUT}
    if out:
        stay = re.search(r"(\d+) of (\d+) nodes? stays? out, (\S+)( and (\d+) more)?;", paragraph)
        assert (int(stay[1]), int(stay[2])) == (len(out), len(fleet["nodes"]))
        named = set(nodesets.parse(stay[3]))
        assert named <= out
        assert len(named) + int(stay[5] or 0) == len(out)
    lacking = {node["node"] for node in fleet["nodes"] if node["untested"]}
    number = re.search(r"(\d+) nodes? lacks? some value, ", paragraph)
    assert int(number[1] if number else 0) == len(lacking)
    undecided = sum(counts.get(verdict, 0) for verdict in UNDECIDED)
    number = re.search(r"Not tested: (\d+) criteri[^,]*\. ", paragraph)
    assert int(number[1] if number else 0) == undecided


def test_it_says_verdict_counts_nodes_and_the_next_command(tmp_path, monkeypatch):
    values = {**dict.fromkeys(names(8), 110.5), "n002": 70, "n003": None}
    furnish(tmp_path, monkeypatch, 8, values)
    paragraph = said()
    assert paragraph.startswith("here: ")
    assert ": FAIL." in paragraph
    assert "n002" in paragraph
    assert "Next: reframe -c checks/ -r --system here" in paragraph
    assert "\n" not in paragraph
    assert not list(tmp_path.glob("**/*.html"))
    agrees(paragraph)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from([110.5, 70, 99.9, None]), min_size=8, max_size=8).filter(
        lambda values: any(values)
    )
)
def test_its_numbers_are_those_of_the_json(tmp_path_factory, values):
    with pytest.MonkeyPatch.context() as patch:
        furnish(
            tmp_path_factory.mktemp("brief"), patch, 8, dict(zip(names(8), values, strict=True))
        )
        agrees(said())


@pytest.mark.parametrize("count", [1, 1200])
def test_it_stays_short_for_a_fleet_of_any_size(count, tmp_path, monkeypatch):
    draw = random.Random(7)
    values = {node: draw.choice([110.5, 70, None]) for node in names(count)}
    values[names(count)[0]] = 70
    furnish(tmp_path, monkeypatch, count, values)
    paragraph = said()
    assert len(paragraph) < brief.MAX_CHARACTERS
    agrees(paragraph)


def test_what_became_worse_is_named_with_the_last_time(tmp_path, monkeypatch):
    furnish(tmp_path, monkeypatch, 8, dict.fromkeys(names(8), 150), campaign="spring")
    furnish(tmp_path, monkeypatch, 8, dict.fromkeys(names(8), 110), run=2, campaign="autumn")
    paragraph = said("--campaign", "autumn")
    assert "Worse since campaign spring of " in paragraph
    assert "Stream.triad" in paragraph.partition("Worse since")[2]


def test_the_last_session_has_its_day_and_each_metric_is_counted_once(tmp_path, monkeypatch):
    furnish(
        tmp_path, monkeypatch, 8, dict.fromkeys(names(8), 150), session="20260101T020000Z-00000ef"
    )
    furnish(tmp_path, monkeypatch, 8, {**dict.fromkeys(names(8), 110), "n002": 70}, run=2)
    worse = said().partition("Worse since session 20260101T020000Z-00000ef of ")[2]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC: Stream.triad -\S+ %\. ", worse), worse


def test_a_tool_that_writes_control_characters_steers_no_terminal(tmp_path, monkeypatch):
    furnish(tmp_path, monkeypatch, 8, dict.fromkeys(names(8), 110))
    nasty = broken("n001", "generic", run=2, why="\x1b[31mred\nand more")
    samples.write(tmp_path / "data/perflogs", nasty.header, [nasty])
    assert said().isprintable()


def test_before_the_first_run_it_says_that_nothing_was_measured(tmp_path, monkeypatch):
    write_site(tmp_path / "sites", 8, criteria=CRITERIA)
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    answer, following = said().splitlines()
    assert (
        answer
        == "here: no session yet that could answer a criterion; 3 criteria, nothing to report"
    )
    assert following.startswith("next: reframe -c checks/ -r --system here")


def test_a_page_and_a_paragraph_are_not_asked_for_together():
    code, text = ask("report", "--brief", "--output", "x.html")
    assert code == 2
    assert text == "--brief: writes no page. Allowed: --brief without --output."
