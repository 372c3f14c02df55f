"""A criterion's numbers: they add up, and page, terminal, --plain and JSON show the same."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from asked import ask
from fleets import broken, names, run_of, write_site
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from siteproof.record import samples
from siteproof.record.finding import NOT_KEPT, Verdict
from siteproof.report import material
from siteproof.report.chapters import criteria
from siteproof.report.summary import begin

NODES = names(8)
STANDINGS = {  # the keys of JSON, and their words
    "passed": "passed",
    "below_baseline": "below baseline",
    "failed": "failed",
    "no_value": "without a value",
}
CRITERION = """\
C-TRIAD:
  description: d
  metric: Stream.triad
  source: s
  scope: every node
  max_age: none
"""
BASELINE = """\
system: here
B:
  metric: Stream.triad
  {kind}: {usual}
  tolerance: 5 %
  source: us
  taken: 2026-01-01
"""
WAIVER = """\
W-ONE:
  nodes: {node}
  waives: C-TRIAD
  problem: fan
  owner: A. Colleague
  expires: 2099-01-01
"""


def tenths(low, high):
    return st.integers(low, high).map(lambda n: n / 10)


CAMPAIGNS = st.fixed_dictionaries(
    {
        "values": st.lists(
            st.one_of(tenths(50, 150), tenths(95, 105), st.none(), st.just("invalid")),
            min_size=8,
            max_size=8,
        ),
        "kind": st.just("at_least"),
        "bound": tenths(95, 105),
        "step": st.sampled_from(["", "1", "0.1", "0.5"]),
        "unit": st.sampled_from(["GB/s", "MB/s", "GiB/s"]),
        "waived": st.sampled_from(["", "n001", "n[002-004]"]),
        "baseline": st.booleans(),
    }
)


def furnish(folder, case):
    """A site and its perflogs. The bound is in the drawn unit, the values are in MB/s."""
    factor = {"GB/s": 1000, "MB/s": 1, "GiB/s": Fraction(2**30, 10**6)}[case["unit"]]
    unit = case["unit"]
    text = CRITERION + f"  {case['kind']}: {case['bound']} {unit}\n"
    text += f"  rounding: nearest {case['step']} {unit}\n" if case["step"] else ""
    write_site(folder / "sites", criteria=text)
    site = folder / "sites/here"
    if case["baseline"]:
        usual = case["bound"] * (1.2 if case["kind"] == "at_least" else 0.8)
        usual = f"{usual:.2f} {unit}"
        (site / "baselines.yaml").write_text(BASELINE.format(kind=case["kind"], usual=usual))
    if case["waived"]:
        (site / "waivers.yaml").write_text(WAIVER.format(node=f"'{case['waived']}'"))
    now = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="seconds")
    found = []
    for node, value in zip(NODES, case["values"], strict=True):
        if value == "invalid":
            found.append(broken(node, "invalid", time=now))
        elif value is not None:
            found += run_of({node: float(Fraction(value) * factor)}, time=now)
    if found:
        samples.write(folder / "perflogs", found[0].header, found)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Asks a campaign of its own by the four ways."""
    number = iter(range(10**6))

    def ways(case):
        folder = tmp_path / str(next(number))
        (folder / "perflogs").mkdir(parents=True)
        furnish(folder, case)
        monkeypatch.setenv("SITEPROOF_SITES", str(folder / "sites"))
        monkeypatch.setenv("SITEPROOF_DATA", str(folder))
        monkeypatch.setenv("COLUMNS", "80")
        (table,) = criteria.chapter(material.gather("here")).tables
        terminal = ask("verdict")[1]
        plain = next(csv.DictReader(io.StringIO(ask("verdict", "--plain")[1]), delimiter="\t"))
        (told,) = json.loads(ask("verdict", "--json")[1])["criteria"]
        return told, plain, terminal, " | ".join(table.rows[0])

    return ways


def first_screen():
    """The numbers of nodes, and the row of the one criterion where it is not met."""
    found = material.gather("here")
    return list(begin.node_cards(found)), next(iter(begin.not_met(found).rows), None)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=CAMPAIGNS)
def test_page_terminal_plain_json_and_first_screen_agree_and_add_up(asked, case):
    told, plain, terminal, row = asked(case)
    cards, line = first_screen()
    all_four_agree(told, plain, terminal, row)
    the_first_screen_has_the_numbers_of_verdict_and_gate(told, plain, cards, line)
    a_shown_value_and_its_limit_do_not_contradict_the_verdict(told, plain, case)


def all_four_agree(told, plain, terminal, row):
    counts = told["counts"]
    assert counts["expected"] == 8 == sum(counts[name] for name in STANDINGS)
    assert {words: str(counts[name]) for name, words in STANDINGS.items()} == {
        words: plain[words] for words in STANDINGS.values()
    }
    assert (plain["expected"], plain["waived"]) == ("8", str(counts["waived"]))
    for text in (" ".join(terminal.split()), row):
        for name in STANDINGS:
            shown = re.search(rf"(\d+) {STANDINGS[name]}\b", text)
            assert int(shown[1] if shown else 0) == counts[name], (name, text)
    if told["worst"]:
        shown = f"{told['worst']['value']} {told['worst']['unit']}"
        assert plain["worst value"] == shown
        for cell in (shown, plain["limit"], plain["margin"]):
            assert cell in " ".join(terminal.split())
            assert cell in row
    assert told["verdict"] in terminal.split() and f"| {told['verdict']} |" in row


def the_first_screen_has_the_numbers_of_verdict_and_gate(told, plain, cards, line):
    rulings = json.loads(ask("gate", "--json")[1])["nodes"]
    numbers = {card.label: card.number for card in cards}
    assert sum(numbers.values()) == 8
    back = sum(number for label, number in numbers.items() if label.startswith(("go", "back into")))
    assert back == sum(one["back"] for one in rulings)
    for label, state in (("failed", "FAILED"), ("slow", "SLOW"), ("untested", "UNTESTED")):
        out = [one for one in rulings if not one["back"] and one["state"] == state]
        assert numbers[label] == len(out)
    assert (line is not None) is (told["verdict"] in NOT_KEPT)
    if line:
        _, verdict, why, worst, limit, margin = line
        assert (verdict, margin, limit) == (told["verdict"], plain["margin"], plain["limit"])
        assert worst.startswith(plain["worst value"])
        assert why != "-" or told["margin"] < 0, "a missed limit or a reason"


def a_shown_value_and_its_limit_do_not_contradict_the_verdict(told, plain, case):
    worst = told["worst"]
    if worst is None:
        return
    node = next(one for one in told["nodes"] if one["node"] == worst["node"])
    fails = node["verdict"] == Verdict.FAIL
    shown = Fraction(worst["value"])
    bracket = re.search(r"\((from|above|up to|below) ([-0-9.]+)\)", plain["limit"])
    word, limit = bracket.groups() if bracket else ("", plain["limit"].split()[1])
    gap = (shown - Fraction(limit)) * (1 if case["kind"] == "at_least" else -1)
    passes = gap > 0 or gap == 0 and word not in ("above", "below")
    assert passes is not fails, (worst, plain["limit"])
    assert (told["margin"] < 0) <= fails
    assert worst["unit"] == case["unit"]


def test_each_node_that_did_not_pass_is_in_one_of_the_reasons(asked):
    values = [120, 120, 120, 120, 120, 50, 60, "invalid"]
    keys = {"kind": "at_least", "bound": 100, "step": "", "unit": "MB/s", "waived": ""}
    _, _, terminal, row = asked({"values": values, "baseline": False, **keys})
    why = "n[006-007]: the limit is missed; n008: wrong answer: invalid: because"
    assert why in row
    for reason in why.split("; "):
        assert reason in " ".join(terminal.split())
