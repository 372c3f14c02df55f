"""`siteproof calibrate`: baselines from made-up years, and a file that stays its author's."""

from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import fleets
import pytest
import yaml
import years
from refusals import refusal
from test_trend import IO, TRIAD, Here
from test_trend_ack import ask, changes
from years import Change, Drift, Gap, Step

from siteproof import sites
from siteproof.errors import UserError, UserErrors
from siteproof.record.samples import Sample
from siteproof.trend import baselines
from siteproof.trend.baselines import Change as Edit
from siteproof.trend.propose import LEAST, STEPS, WIDEST

FILE = Path("baselines.yaml")


@pytest.fixture
def here(tmp_path, monkeypatch):
    made = Here(tmp_path, monkeypatch)
    made.file = tmp_path / "sites" / "here" / "baselines.yaml"
    made.criteria = tmp_path / "sites" / "here" / "criteria.yaml"
    made.read = lambda: yaml.safe_load(made.file.read_text())
    return made


OLD = """\
# Ours, since the winter.

system: here  # nobody else's

BASE-TRIAD:  # Stream
  metric: Stream.triad
  nodes: [compute]
  at_least: 100 GB/s  # guessed
  source: a guess
  taken: 2024-01-01

BASE-ADD: {metric: Stream.add, nodes: [compute], at_least: 1 MB/s, source: s, taken: 2024-01-01}
"""


def test_the_median_and_the_scatter_become_a_baseline(here):
    here.year((TRIAD, IO))
    code, told = ask("calibrate", "--apply")
    assert code == 0 and "2 new, 0 changed" in told
    found = here.read()
    triad, io = (found[f"BASE-{name}-COMPUTE"] for name in ("STREAM-TRIAD", "RANDOMIO-READ"))
    assert found["system"] == "here"
    assert (triad["metric"], triad["nodes"], triad["programs"]) == (TRIAD, ["compute"], ["stream"])
    assert float(triad["at_least"].split()[0]) == pytest.approx(181_000, rel=0.005)
    # Nodes differ by half of a run's noise: 4.5 * 1.118 * 1 % and 3 %, rounded up
    assert float(triad["tolerance"].split()[0]) == pytest.approx(5.03, abs=0.6)
    assert float(io["tolerance"].split()[0]) == pytest.approx(15.1, abs=1.6)
    assert str(triad["taken"]) == f"{years.time_of(59):%Y-%m-%d}"
    assert (
        "# calibrated: 1080 values of 18 nodes in 60 runs from 2025-11-21 to 2026-01-19: median"
        in here.file.read_text()
    )
    assert set(sites.load("here").baselines) == set(found) - {"system"}


@pytest.mark.deep
def test_a_fleet_that_is_as_ever_keeps_its_baseline(here):
    here.year(runs=200)
    ask("calibrate", "--apply")
    limit, _ = sites.load("here").baselines["BASE-STREAM-TRIAD-COMPUTE"].limits("MB/s")
    values = [v for line in here.lines(TRIAD) for v in line.values]
    assert sum(v < limit.value for v in values) == 0 < len(values)


def flat(text):
    """A text in one line, wherever it was wrapped."""
    return " ".join(text.split())


def test_nothing_is_written_without_being_asked(here):
    before = here.year().file.read_bytes()
    code, told = ask("calibrate")
    assert code == 0 and "+BASE-STREAM-TRIAD-COMPUTE:" in told
    assert told.endswith("; nothing was changed\nnext: siteproof calibrate --system here --apply\n")
    assert here.file.read_bytes() == before


def test_a_second_calibration_changes_nothing(here):
    here.year()
    ask("calibrate", "--apply")
    before = here.file.read_bytes()
    assert "0 new, 0 changed, 1 unchanged" in flat(ask("calibrate", "--apply")[1])
    assert here.file.read_bytes() == before


def test_a_baseline_of_any_tolerance_holds_once_it_is_written(here):
    steps = range(round(LEAST / STEPS), round(WIDEST / STEPS) + 1)
    here.file.write_text(
        "system: here\n"
        + "".join(
            f"B-{n}: {{metric: Stream.triad, nodes: [compute], at_least: 100 MB/s, source: s, "
            f"taken: 2026-01-01, tolerance: {100 * n * STEPS:.3g} %}}\n"
            for n in steps
        )
    )
    found = sites.load("here").baselines
    for n in steps:
        again = SimpleNamespace(
            median=100.0, tolerance=n * STEPS, group=SimpleNamespace(unit="MB/s")
        )
        assert baselines._holds(found[f"B-{n}"], again), n


def test_an_entry_gets_new_values_and_keeps_its_comments_and_its_unit(here):
    here.file.write_text(OLD)
    here.year()
    assert "0 new, 1 changed" in flat(ask("calibrate", "--apply")[1])
    text, found = here.file.read_text(), here.read()
    assert found["BASE-TRIAD"]["at_least"].endswith(" GB/s")
    assert float(found["BASE-TRIAD"]["at_least"].split()[0]) == pytest.approx(181, rel=0.005)
    assert found["BASE-TRIAD"]["source"] == "siteproof calibrate"
    for kept in (
        "# Ours, since the winter.\n\nsystem: here  # nobody else's\n",
        "BASE-TRIAD:  # Stream\n",
        " GB/s  # guessed\n",
        OLD[OLD.index("BASE-ADD") :],
    ):
        assert kept in text


def test_only_series_that_are_asked_for_or_are_headlines_are_proposed(here):
    here.year((TRIAD, "Stream.copy"))
    assert "STREAM-COPY" not in ask("calibrate")[1]
    assert "+BASE-STREAM-COPY-COMPUTE:" in ask("calibrate", "--metric", "Stream.copy")[1]


def test_the_values_since_a_day_count(here):
    here.year()
    told = ask("calibrate", "--since", f"{years.time_of(40):%Y-%m-%d}")[1]
    assert "360 values of 18 nodes in 20 runs from 2025-12-31" in told


def test_that_day_has_a_zone_and_nodes_that_were_not_measured_since_then_do_not_count(here):
    here.year(gaps=[Gap(40, 59, ["n001"])])
    since = years.time_of(40).astimezone(ZoneInfo("Pacific/Auckland")).isoformat()
    assert (
        "340 values of 17 nodes in 20 runs from 2025-12-31" in ask("calibrate", "--since", since)[1]
    )


def test_a_step_before_that_day_is_no_matter(here):
    here.year(steps=[Step(TRIAD, 30, -0.1)])
    code, told = ask("calibrate", "--since", f"{years.time_of(30):%Y-%m-%d}")
    assert code == 0 and "540 values of 18 nodes in 30 runs" in told


def test_too_few_values_are_refused_with_what_is_needed(here):
    here.year(runs=9)
    code, told = ask("calibrate")
    assert code == 3
    assert (
        "no baseline for Stream.triad of compute: too few: 9 runs with 162 values; 10 runs and "
        "20 values are needed"
    ) in told


def test_quick_runs_are_no_baseline(here):
    before = here.year(nodes=4, runs=30, mode="quick").file.read_bytes()
    code, told = ask("calibrate", "--apply")
    assert code == 3
    assert "; the metric was not measured in maintenance or acceptance mode next: " in flat(told)
    assert here.file.read_bytes() == before


@pytest.mark.deep
def test_what_is_not_stable_has_no_baseline(here):
    for planted, told in (
        ({"steps": [Step(TRIAD, 30, -0.1)]}, "the fleet as a whole is not stable: step of -"),
        ({"drifts": [Drift(TRIAD, -0.6)]}, "the fleet as a whole is not stable: drift of -"),
        (
            {"steps": [Step(TRIAD, 30, -0.1, years.names(4))]},
            "4 of 18 series cannot count; n001 is not stable: step of -",
        ),
    ):
        here.year(**planted)
        code, said = ask("calibrate")
        assert code == 3 and f"no baseline for Stream.triad of compute: {told}" in said, told


def test_one_unstable_node_is_left_out_and_named(here):
    here.year(steps=[Step(TRIAD, 30, -0.1, ["n001"])])
    code, told = ask("calibrate")
    assert code == 0 and "values of 17 nodes" in told
    assert "left out of Stream.triad of compute: n001 is not stable: step of -" in told


@pytest.mark.deep
def test_after_an_acknowledged_change_the_new_level_counts(here):
    here.year(steps=[Step(TRIAD, 30, -0.1)], changes=[Change(30, "kernel", "6.2")])
    ask("trend", "ack", changes()["fleet"][0]["id"], "--why", "mitigations")
    for alert in changes()["alerts"]:
        ask("trend", "ack", alert["id"], "--why", "mitigations")
    assert "540 values of 18 nodes in 30 runs" in ask("calibrate", "--apply")[1]
    bound = here.read()["BASE-STREAM-TRIAD-COMPUTE"]["at_least"]
    assert float(bound.split()[0]) == pytest.approx(162_900, rel=0.01)


@pytest.mark.deep
def test_nodes_that_the_baseline_would_accuse_from_its_first_day_are_named(here):
    here.year(steps=[Step(TRIAD, 30, -0.1, ["n001"])])
    (alert,) = changes()["alerts"]
    ask("trend", "ack", alert["id"], "--why", "a slower mainboard")
    code, told = ask("calibrate")
    assert code == 0 and "values of 18 nodes" in told
    assert "Stream.triad of compute: n001 would miss this baseline now" in told


def test_values_that_fail_the_contract_do_not_count(here):
    here.criteria.write_text(
        "C-1: {description: d, metric: Stream.triad, at_least: 170 GB/s, "
        "scope: every node, source: s}\n"
    )
    here.year(slow={"n001": 0.2})
    told = ask("calibrate")[1]
    assert "left out of Stream.triad of compute: n001 failed C-1 in 60 of 60 runs" in told
    assert "values of 17 nodes" in told
    here.criteria.write_text(here.criteria.read_text().replace("170", "190"))
    code, told = ask("calibrate")
    assert code == 3 and "18 of 18 series cannot count; n001 failed C-1 in" in told


def test_each_link_has_a_baseline_and_a_contract_of_its_own(tmp_path, monkeypatch):
    more = """\
links:
  wan: {description: w, partition: compute, servers: 'n001', clients: 'n002'}
  lan: {description: l, partition: compute, servers: 'n001', clients: 'n002'}
"""
    folder = fleets.write_site(
        tmp_path / "sites",
        4,
        more,
        """\
C-LAN: {description: d, metric: TcpBandwidth.throughput, at_least: 8 Gb/s, subject: pair,
        scope: every pair, links: [lan], source: s}
C-WAN: {description: d, metric: TcpBandwidth.throughput, at_least: 6 Gb/s, subject: pair,
        scope: every pair, links: [wan], source: s}
""",
    )
    site = folder / "here" / "system.yaml"
    site.write_text(site.read_text().replace("scheduler: local", "scheduler: slurm"))
    monkeypatch.setattr("test_trend.RACKS", "")
    monkeypatch.setattr(fleets, "write_site", lambda *_, **__: folder)
    here = Here(tmp_path, monkeypatch)
    for run in range(12):
        for number, (link, level) in enumerate((("wan", 7.0), ("lan", 9.0))):
            head = fleets.header(
                run, "TcpBandwidth", job=str(number), conditions={"link": link, "program": "iperf3"}
            )
            here.keep(
                head,
                *(
                    Sample(
                        head,
                        a,
                        "TcpBandwidth.throughput",
                        Decimal(f"{level + (run * 7 % 5) / 100:.3f}"),
                        "Gb/s",
                        dims={"peer": b},
                    )
                    for a, b in (("n001", "n002"), ("n002", "n001"))
                ),
            )
    ask("calibrate", "--apply")
    found = yaml.safe_load((folder / "here" / "baselines.yaml").read_text())
    assert {k: (v["links"], v["scope"]) for k, v in found.items() if k != "system"} == {
        "BASE-TCPBANDWIDTH-THROUGHPUT-LAN": (["lan"], "every pair"),
        "BASE-TCPBANDWIDTH-THROUGHPUT-WAN": (["wan"], "every pair"),
    }


def test_a_file_with_a_mistake_is_not_made_worse(here):
    here.year()
    here.file.write_text("system: here\nBASE-X: {metric: Nothing.known}\n")
    with pytest.raises(UserErrors):
        ask("calibrate", "--apply")
    assert here.file.read_text() == "system: here\nBASE-X: {metric: Nothing.known}\n"


NEW = Edit(
    "B", {"metric": "M.f", "nodes": ["a"], "conditions": {"n": {"at_least": "5"}}}, "why", True
)


def test_a_new_entry_is_added_to_any_file():
    for text, start in (
        ("{}\n", "system: here\n\n# calibrated: why\nB:\n"),
        ("{}  # nothing yet\n", "# nothing yet\n\nsystem: here\n\n# calibrated: why\nB:\n"),
        ("# x\n{}\n", "# x\n\nsystem: here\n\n# calibrated"),
        ("system: here\nA: {b: c}", "system: here\nA: {b: c}\n\n# calibrated: why\nB:\n"),
        ("A: {b: c}\n", "system: here\nA: {b: c}\n\n# calibrated: why\nB:\n"),
    ):
        made = baselines.apply(FILE, text, "here", [NEW])
        assert made.startswith(start), (text, start)
        assert yaml.safe_load(made)["B"]["conditions"] == {"n": {"at_least": 5}}, (text, start)


def test_a_value_is_put_where_the_old_one_stood():
    for text in (
        "B:\n  x: 1\n  taken: 2024-01-01  # old\n",
        "B: {x: 1, taken: 2024-01-01}  # old\n",
        "# calibrated: long ago\nB:\n    taken: '2024-01-01' # old\n    x: 1\n",
        "# mine\nB:\n  taken:\n    2024-01-01 # old\n  x: 1\n",
    ):
        change = Edit("B", {"taken": "2026-01-01", "note": "a: b # c", "y": "on"}, "new", False)
        made = baselines.apply(FILE, f"system: here\n\n{text}", "here", [change])
        held = yaml.safe_load(made)["B"]
        assert held == {"x": 1, "taken": held["taken"], "note": "a: b # c", "y": "on"}, text
        assert str(held["taken"]) == "2026-01-01" and "# old" in made, text
        assert made.count("# calibrated: new\nB:") == 1 and "long ago" not in made, text
        assert ("# mine" in text) == ("# mine" in made), text


def test_what_cannot_be_changed_in_place_is_refused():
    for text in (
        "{system: here, B: {taken: 2024-01-01}}\n",
        "system: here\nB: &b {taken: 2024-01-01}\nC: *b\n",
        "system: here\nA: &d 2024-01-01\nB: {taken: *d}\n",
        *("system: here\nB: {taken: [1]}\n", "system: here\nB: {taken: |\n  x\n}\n", "[]\n"),
        "system: here\nB: 5\n",
    ):
        edits = [Edit("B", {"taken": "2026-01-01"}, "new", False)]
        errors = UserError, yaml.YAMLError
        assert refusal(baselines.apply, FILE, text, "here", edits, error=errors), text
