"""What `siteproof nodes --json` tells by default, with no option: many fleets of each class."""

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from itertools import product

import fleets
import pytest
from asked import ask
from fleets import names, run_of

from siteproof import nodesets
from siteproof.record import samples


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Makes a site and its sessions, the newest of today; gives what the command tells."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)

    def tell(runs, criteria="{}\n", command="nodes", more="", update=None, **keys):
        shutil.rmtree(tmp_path / "perflogs", ignore_errors=True)  # of an earlier fleet
        count = len(runs[0])
        fleets.load(tmp_path / "sites", monkeypatch, count=count, criteria=criteria, more=more)
        monkeypatch.setattr(fleets, "START", now - timedelta(days=len(runs)))
        tell.days = [now - timedelta(days=len(runs) - 1 - run) for run in range(len(runs))]
        for run, values in enumerate(runs):
            kernel = {"kernel": "6.1.0-13" if update is not None and run >= update else "6.1.0-12"}
            found = run_of(values, run + 1, provenance=kernel, **keys)
            if found:
                samples.write(tmp_path / "perflogs", found[0].header, found)
        _, out = ask(command, "--json")
        return json.loads(out)

    return tell


def fleet(count, runs, cv=0.01, own=0.5, seed=1, level=1000.0):
    """The values of each run: nodes differ from each other for good, and from run to run."""
    chance = random.Random(f"{count} {runs} {cv} {own} {seed}")
    mine = {n: chance.gauss(0, cv * own**0.5) for n in names(count)}
    noise = cv * (1 - own) ** 0.5
    return [
        {n: level * (1 + mine[n] + chance.gauss(0, noise)) for n in names(count)}
        for _ in range(runs)
    ]


def lose(runs, nodes, share, since):
    """These nodes lack a share from one run on."""
    for values in runs[since:]:
        for node in nodes:
            values[node] *= 1 - share
    return runs


def state(found, node):
    return next(one for one in found["nodes"] if one["node"] == node)


def in_state(found, *states):
    return {one["node"] for one in found["nodes"] if one["state"] in states}


# ---- three sessions, and since when


@pytest.mark.deep
def test_a_slow_node_is_slow_in_daily_use_with_the_day_when_it_began(told):
    for loss, days in product((0.06, 0.1, 0.3), (2, 3, 7)):
        found = told(lose(fleet(32, 12), ["n005"], loss, 12 - days))
        assert in_state(found, "SLOW") == {"n005"}, (loss, days)
        why = next(f for f in state(found, "n005")["findings"] if f["kind"] == "slow")
        details = {"slow": min(3, days), "runs": 3, "rule": "confirmed", "lasting": days}
        assert details.items() <= why["details"].items(), (loss, days)
        assert why["since"][:10] == f"{told.days[12 - days]:%Y-%m-%d}", (loss, days)
        reason = state(found, "n005")["reasons"][0]
        assert f"since {why['since'][:10]} ({days} runs)" in reason
        assert "seen once" not in reason


@pytest.mark.deep
def test_a_node_that_has_always_been_slow_says_so_from_the_first_run_that_is_seen(told):
    found = told(lose(fleet(32, 9), ["n005"], 0.1, 0))
    (why,) = state(found, "n005")["findings"]
    assert (why["details"]["lasting"], why["since"][:10]) == (9, f"{told.days[0]:%Y-%m-%d}")


def test_a_node_that_was_repaired_is_ok_and_its_past_is_a_note(told):
    runs = lose(fleet(16, 12), ["n005"], 0.3, 8)
    runs[-1]["n005"] /= 0.7
    found = told(runs)
    assert in_state(found, "SLOW") == set()
    assert [note["kind"] for note in state(found, "n005")["note_findings"]] == ["slow_before"]
    assert found["retest"] == "n005"


@pytest.mark.deep
def test_six_nodes_that_are_slow_for_twenty_days_are_not_ok(told):
    for count, cv in product((16, 24, 40), (0.01, 0.02)):
        bad = names(count)[:6]
        found = told(lose(fleet(count, 31, cv), bad, 0.08, 11))
        assert in_state(found, "SLOW") == set(bad), (count, cv)
        for node in bad:
            fell = next(f for f in state(found, node)["findings"] if f["kind"] == "fell")
            assert abs(fell["details"]["lasting"] - 20) <= 1, (count, cv, node)


# ---- few nodes


@pytest.mark.deep
def test_of_three_sisters_a_gross_deficit_is_slow(told):
    for count, runs in product((3, 4, 5, 7), (1, 3, 10)):
        found = told(lose(fleet(count, runs, 0.02), ["n002"], 0.3, 0))
        assert in_state(found, "SLOW") == {"n002"}, (count, runs)
        assert in_state(found, "OK") == set(names(count)) - {"n002"}, (count, runs)


@pytest.mark.deep
def test_one_or_two_nodes_are_compared_with_their_own_past(told):
    for count, days in product((1, 2, 3), (1, 3, 10)):
        found = told(lose(fleet(count, 20, 0.01), ["n001"], 0.15, 20 - days))
        assert in_state(found, "SLOW") == {"n001"}, (count, days)
        (fell,) = (f for f in state(found, "n001")["findings"] if f["kind"] == "fell")
        assert fell["details"]["lasting"] == days, (count, days)
        assert fell["details"]["change"] == pytest.approx(-0.15, abs=0.02), (count, days)


def test_one_or_two_nodes_without_a_past_are_not_ranked_and_say_so(told):
    for count, nodes in ((1, "1 node"), (2, "2 nodes")):
        found = told(fleet(count, 1))
        noted = [n["kind"] for node in found["nodes"] for n in node["note_findings"]]
        assert noted == ["not_ranked"] * count
        assert any(f"not ranked: {nodes}" in text for text in found["warnings"])
        assert found["retest"] == ""  # another run of two nodes ranks them no better
        past = told(fleet(count, 8))
        assert not [n for node in past["nodes"] for n in node["note_findings"]]
        assert not past["warnings"]


def test_two_nodes_with_a_contract_are_judged_by_it(told):
    contract = """\
C-TRIAD: {description: d, metric: Stream.triad, at_least: 900 MB/s, source: s, scope: every node}
"""
    found = told([{"n001": 1000, "n002": 800}], contract)
    assert in_state(found, "FAILED") == {"n002"}
    assert not found["warnings"]


@pytest.mark.deep
def test_few_healthy_nodes_are_not_accused(told):
    for seed, count in product(range(4), (1, 2, 3, 4, 6)):
        found = told(fleet(count, 14, 0.03, seed=seed))
        assert in_state(found, "SLOW") == set(), (seed, count)


# ---- two kinds of nodes in a role


@pytest.mark.deep
def test_another_kind_of_node_is_told_and_nobody_accused(told):
    large = [(320, 0.15, 0.06), (320, 0.5, 0.3)]
    for row in [*product((24, 64), (0.15, 0.3, 0.5), (0.06, 0.1, 0.3)), *large]:
        count, share, difference = row
        kind = names(count)[:: max(2, round(1 / share))][: round(share * count)]
        found = told(lose(fleet(count, 10), kind, difference, 0))
        assert in_state(found, "OK") == set(names(count)), row
        (why,) = (f for f in found["findings"] if "ranked apart" in f.get("text", ""))
        assert set(nodesets.parse(why["subject"])) in (set(kind), set(names(count)) - set(kind))
        assert why["details"]["of"] == count, row
        assert any("make them a role of their own" in text for text in found["warnings"]), row


@pytest.mark.deep
def test_a_bad_node_of_each_kind_is_found_among_its_own(told):
    every = names(64)
    for share in (0.15, 0.3, 0.5):
        kind = every[: round(share * 64)]
        runs = lose(fleet(64, 10), kind, 0.12, 0)
        found = told(lose(runs, [kind[1], every[-1]], 0.08, 0))
        assert in_state(found, "SLOW") == {kind[1], every[-1]}, share


@pytest.mark.deep
def test_with_many_bad_the_past_finds_them(told):
    for count, bad in [*product((16, 64), (0.3, 0.4)), (320, 0.4)]:
        sick = set(random.Random(count).sample(names(count), round(bad * count)))
        found = told(lose(fleet(count, 14), sick, 0.06, 11))
        assert len(in_state(found, "SLOW") & sick) >= 0.9 * len(sick), (count, bad)
        assert in_state(found, "SLOW") <= sick, (count, bad)


def test_a_step_of_the_whole_fleet_accuses_nobody(told):
    for count in (3, 8, 40):
        found = told(lose(fleet(count, 14), names(count), 0.1, 11))
        assert in_state(found, "SLOW") == set()
        (why,) = found["findings"]
        assert why["text"].startswith("compute as a whole fell ")


@pytest.mark.deep
def test_a_scatter_that_hides_a_loss_of_a_tenth_is_told(told):
    text = "Stream.triad: 10 runs cannot show a loss of 10 %: nodes of compute scatter by "
    for cv, hides in ((0.03, False), (0.04, False), (0.06, True), (0.1, True)):
        found = told(fleet(16, 20, cv=cv, own=0))
        assert len(found["findings"]) == hides, cv
        assert not hides or text in found["warnings"][0], cv


def now_and_then(count, runs, often=0.1):
    """Healthy nodes, each of which loses 30 % in some runs, in no order."""
    chance = random.Random(7)
    made = fleet(count, runs)
    for values in made:
        for node in values:
            values[node] *= 0.7 if chance.random() < often else 1
    return made


def test_nodes_that_all_have_bad_runs_now_and_then_are_not_accused(told):
    assert in_state(told(now_and_then(40, 30)), "SLOW") == set()


def test_among_such_nodes_one_that_is_always_bad_is_found(told):
    bad = {"n003"}
    assert in_state(told(lose(now_and_then(40, 30), bad, 0.3, 20)), "SLOW") == bad


def test_of_three_runs_nothing_is_told_of_the_scatter(told):
    assert told(fleet(16, 3, cv=0.1, own=0))["findings"] == []


TAIL = """\
C-TRIAD: {description: d, metric: Stream.triad, at_least: 955 MB/s, source: s, scope: every node}
"""


@pytest.mark.parametrize("shape", ["step", "drift"])
@pytest.mark.parametrize("count", [8, 32])
@pytest.mark.deep
def test_the_tail_of_a_fleet_wide_event_is_not_taken_out_and_the_gate_names_the_event(
    told, count, shape
):
    runs = fleet(count, 26)
    for run, values in enumerate(runs):
        for node in values:
            values[node] *= (0.95 if run >= 18 else 1) if shape == "step" else 1 - 0.05 * run / 25
    runs = lose(runs, ["n003"], 0.3, 22)
    update = 18 if shape == "step" else None
    found = told(runs, TAIL, update=update)
    short = in_state(found, "FAILED") - {"n003"}
    assert short
    for node in short:
        why = next(f for f in state(found, node)["findings"] if f["kind"] == "misses_bound")
        assert why["details"]["event"] == shape
        assert why["details"]["change"] == pytest.approx(-0.05, abs=0.015)
        if shape == "step":
            assert why["details"]["cause"] == "kernel 6.1.0-12 -> 6.1.0-13"
            assert why["details"]["began"][:10] == f"{told.days[18]:%Y-%m-%d}"
    gate = told(runs, TAIL, command="gate", update=update)
    assert gate["out"] == "n003"
    for node in gate["nodes"]:
        kinds = [why["kind"] for why in node["waived"]]
        assert kinds == (["fleet_event"] if node["node"] in short else [])


# ---- other states say since when, too


def test_a_node_below_the_contract_says_since_when(told):
    contract = """\
C-TRIAD: {description: d, metric: Stream.triad, at_least: 900 MB/s, source: s, scope: every node}
"""
    found = told(lose(fleet(8, 12), ["n002"], 0.3, 7), contract)
    (why, *_) = state(found, "n002")["findings"]
    assert (why["kind"], why["details"]["lasting"]) == ("misses_bound", 5)
    assert why["since"][:10] == f"{told.days[7]:%Y-%m-%d}"
    assert "since" in state(found, "n002")["reasons"][0]


def test_a_node_that_is_not_measured_any_more_says_since_when(told):
    runs = fleet(8, 12)
    for values in runs[7:]:
        del values["n002"]
    (why,) = state(told(runs), "n002")["findings"]
    assert (why["kind"], why["details"]["lasting"]) == ("not_measured", 5)
    assert why["since"][:10] == f"{told.days[7]:%Y-%m-%d}"


# ---- why a node is in its state


@pytest.mark.deep
def test_why_a_node_begins_with_its_state_and_reasons_and_ends_with_what_to_do(told):
    contract = """\
C-TRIAD: {description: d, metric: Stream.triad, at_least: 1 MB/s, source: s, scope: every node}
"""
    told(lose(fleet(16, 12), ["n005"], 0.1, 9), contract)
    rows = [line.split("\t") for line in ask("nodes", "--plain")[1].splitlines()]
    (reasons,) = (row[-1].split("; ") for row in rows if row[0] == "n005")
    code, text = ask("why", "n005")
    header, first, *lines, repair, last = text.splitlines()
    joined = " ".join(" ".join(lines).split())
    assert header.endswith("; ages count from now")
    assert (code, first) == (1, "n005: SLOW")
    record = "siteproof repaired n005 --why TEXT --system here"
    assert repair == f"first repair n005; '{record}' records it"
    assert all(reason in joined for reason in reasons)
    assert joined.index(reasons[0]) < joined.index("C-TRIAD: PASS")
    assert last.startswith(
        "n005: SLOW, 1 of 1 criteria are met; next: reframe -c checks/ -r --system here "
    )
    _, out = ask("why", "n005", "--json")
    answer = json.loads(out)
    assert (answer["exit_code"], answer["state"]) == (1, "SLOW")
    assert [why["kind"] for why in answer["state_findings"]][0] == "slow"
    code, text = ask("why", "n001")
    assert (code, text.splitlines()[1]) == (0, "n001: OK")
