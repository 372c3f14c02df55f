"""`siteproof trend` and its acknowledgements: what is printed, kept and taken back."""

import json
from dataclasses import replace
from importlib import import_module

import pytest
import years
from click.testing import CliRunner
from documents_checked import check
from test_trend import GFLOPS, IO, TRIAD, Here, only
from years import Change, Drift, Gap, Step

from siteproof import cli
from siteproof.errors import UserError, UserErrors
from siteproof.trend import alerts

pytestmark = pytest.mark.command  # acknowledged by the command, and asked again


@pytest.fixture
def here(tmp_path, monkeypatch):
    return Here(tmp_path, monkeypatch)


def ask(*words):
    """What a command prints, and its exit code; a user's mistake is raised."""
    done = CliRunner().invoke(cli.group, [*words, "--system", "here"], prog_name="siteproof")
    if isinstance(done.exception, (UserError, UserErrors)):
        raise done.exception
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.output


def words(told):
    """What is printed, in one line."""
    return " ".join(told.split())


def changes():
    """The changes that are told, as data, with the exit code."""
    code, told = ask("trend", "--json")
    told = check("trend", told)
    assert told["exit_code"] == code
    return told


def test_a_change_is_told_with_place_size_runs_and_cause(here):
    here.year(
        (TRIAD, GFLOPS),
        steps=[Step(TRIAD, 30, -0.1, years.names(6))],
        changes=[Change(30, "kernel", "6.1.0-13")],
    )
    code, told = ask("trend")
    assert code == 1
    for text in (
        "worse Stream.triad",
        "rack1",
        "n[001-006]",
        "GB/s",
        "kernel:",
        f"{years.time_of(30):%Y-%m-%d}",
    ):
        assert text in words(told)
    assert told.splitlines()[-1] == (
        "36 series with 2160 runs of here: 1 change for the worse, not acknowledged; "
        f"next: siteproof trend why {only(changes()['alerts'])['id']} --system here"
    )


def test_nothing_worse_is_exit_code_0_and_an_improvement_is_told(here):
    here.year(steps=[Step(TRIAD, 30, 0.1, ["n001"])])
    code, told = ask("trend")
    assert code == 0 and "better" in told
    assert "nothing proven got worse; next: siteproof report" in told.splitlines()[-1]


def test_too_little_history_is_exit_code_3_and_nothing_of_it_is_changed_by_looking(here):
    here.year(runs=6)
    before = {p: p.read_bytes() for p in here.perflogs.rglob("*") if p.is_file()}
    code, told = ask("trend")
    assert code == 3 and "too little history, a step needs 10 runs of a node" in told
    assert {p: p.read_bytes() for p in here.perflogs.rglob("*") if p.is_file()} == before


def test_what_is_provisional_is_exit_code_3_and_says_how_far_it_is(here):
    here.year(steps=[Step(TRIAD, 57, -0.1, ["n001"])])
    code, told = ask("trend")
    assert code == 3 and "1 provisional; next: " in told.splitlines()[-1]
    assert "3 of 5 runs" in words(told)


def test_why_shows_the_runs_around_a_change_and_how_it_was_acknowledged_and_taken_back(here):
    here.year(steps=[Step(TRIAD, 30, -0.1, ["n001", "n002"])])
    name = only(changes()["alerts"])["id"]
    code, told = ask("trend", "why", name.upper())
    assert code == 0
    for text in (
        "n001",
        "n002",
        "median of 16 others",
        "conditions   mode maintenance, program",
        f"first after  {years.time_of(30):%Y-%m-%d %H:%M} UTC, session {years.session_of(30)}",
        "nothing that is recorded changed",
        f"{years.time_of(26):%Y-%m-%d %H:%M}",
        f"{years.time_of(34):%Y-%m-%d %H:%M}",
    ):
        assert text in told
    code, told = ask("trend", "ack", name, "--why", "new [red]DIMM[/red]", "--by", "ada")
    assert code == 0 and told.startswith(f"acknowledged by ada: {name} Stream.triad of n[001-002]")
    code, told = ask("trend")
    assert code == 0
    assert f"acknowledged: {name}" in told and "by ada on " in words(told)
    assert "new [red]DIMM[/red]" in words(told)
    kept = only(changes()["acknowledged"])
    assert kept["ack"]["who"] == "ada" and kept["open"] is False
    assert "acknowledged" in ask("trend", "why", name)[1]
    code, told = ask("trend", "unack", name, "--why", "it was not that", "--by", "bob")
    assert code == 0 and told.startswith(f"taken back by bob: {name}")
    assert [a["id"] for a in changes()["alerts"]] == [name]
    assert len(list((here.perflogs / "here" / "trend").glob("*.json"))) == 2
    assert "taken back" in ask("trend", "why", name)[1]


def test_why_shows_all_runs_of_a_node_that_has_several_lines_of_alike_settings(here, capsys):
    here.year(nodes=4, runs=12, steps=[Step(TRIAD, 6, -0.2, ["n001"])])
    (alert,) = here.survey().alerts
    lines = [line for line in here.lines(alert.metric) if line.node == "n001"]
    parts = [
        replace(line, times=line.times[part], values=line.values[part])
        for line in lines
        for part in (slice(None, 6), slice(6, None))
    ]
    shown = []
    for found in (lines, parts):
        import_module("siteproof.cli.trend").explain(here.site, alert, found, [])
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_an_acknowledgement_outlives_the_runs_that_it_is_of(here):
    here.year(nodes=4, runs=12, steps=[Step(TRIAD, 6, -0.2, ["n001"])])
    name = only(changes()["alerts"])["id"]
    ask("trend", "ack", name, "--why", "known")
    for path in here.perflogs.rglob("*.jsonl"):
        path.unlink()
    assert [a["id"] for a in changes()["acknowledged"]] == [name]
    assert "no longer in the history" in ask("trend", "why", name)[1]


def test_after_an_acknowledgement_a_new_step_alerts_again(here):
    steps = [Step(TRIAD, 30, -0.1, ["n001"])]
    here.year(steps=steps)
    ask("trend", "ack", only(changes()["alerts"])["id"], "--why", "known")
    here.year(runs=100, first=60, steps=[*steps, Step(TRIAD, 70, -0.1, ["n001"])])
    found = only(changes()["alerts"])
    assert found["first_after"]["session"] == years.session_of(70)
    assert found["n_before"] == 40  # the new control region, and nothing of before


def test_changes_of_one_run_are_acknowledged_one_after_the_other(here):
    here.year(steps=[Step(TRIAD, 30, -0.1, ["n001"]), Step(TRIAD, 30, -0.3, ["n002"])])
    second, first = (alert["id"] for alert in changes()["alerts"])
    ask("trend", "ack", first, "--why", "fan")
    assert only(changes()["alerts"])["id"] == second
    ask("trend", "ack", second, "--why", "fan, too")
    told = changes()
    assert told["alerts"] == [] and [a["id"] for a in told["acknowledged"]] == [first, second]


def test_a_step_of_nodes_or_of_the_fleet_and_a_drift_stay_acknowledged_as_a_whole(here):
    """Also of a node that fell a little earlier, and of each node where the fleet has a step."""
    here.year(
        (TRIAD, GFLOPS, IO),
        runs=120,
        steps=[
            *(Step(TRIAD, 30, -0.1, years.names(6)[1:]), Step(TRIAD, 28, -0.1, ["n001"])),
            Step(GFLOPS, 30, -0.1),
        ],
        drifts=[Drift(IO, -0.6, ["n003"])],
    )
    told = changes()
    for kind, metric in (("alerts", TRIAD), ("fleet", GFLOPS), ("drifts", IO)):
        assert only(told[kind])["metric"] == metric
        ask("trend", "ack", told[kind][0]["id"], "--why", "known")
    told = changes()
    assert told["fleet"] == told["alerts"] == told["drifts"] == [] and told["exit_code"] == 0


def test_what_fell_on_after_its_first_runs_were_acknowledged_alerts_again(here):
    steps = [Step(TRIAD, 30, -0.1, ["n001", "n002"]), Step(TRIAD, 33, -0.2, ["n001"])]
    here.year(runs=33, steps=steps)
    assert only(changes()["alerts"])["provisional"]
    ask("trend", "ack", only(changes()["alerts"])["id"], "--why", "fan")
    here.year(first=33, steps=steps)
    found = only(changes()["alerts"])
    assert found["nodes"] == "n001" and found["relative"] == pytest.approx(-0.28, abs=0.02)
    ask("trend", "ack", found["id"], "--why", "fan, broken")
    assert changes()["alerts"] == []


def test_an_id_stays_the_same_when_more_runs_come(here):
    steps = [Step(TRIAD, 30, -0.1, years.names(6))]
    before = only(here.year(steps=steps).survey().all).id
    assert only(here.year(runs=90, first=60, steps=steps).survey().all).id == before


def test_every_alert_is_plain_data(here):
    found = only(here.year(steps=[Step(TRIAD, 30, -0.1, ["n001"])]).survey().all)
    assert json.loads(json.dumps(alerts.as_record(found)))["nodes"] == "n001"


MISTAKES = [
    (("trend", "ack", "nothere", "--why", "x"), "ID: no change 'nothere'. Allowed: "),
    (("trend", "ack", "nothere"), "trend ack: missing: --why"),
    (("trend", "unack", "nothere", "--why", "x"), "ID: no change 'nothere'"),
    (("trend", "why", "nothere"), "ID: no change 'nothere'"),
    (
        ("trend", "--metric", "Strem.triad"),
        "--metric: no sample has 'Strem.triad' (did you mean 'Stream.triad'?)",
    ),
    (("trend", "--since", "yore"), "--since: 'yore' is not a valid time"),
    (("trend", "--node", "n005"), "--node: no sample has 'n005' (did you mean 'n00"),
    (("trend", "--since", "7d", "why", "x"), "siteproof trend why: takes none of --since"),
]


def test_a_mistake_is_one_line(here):
    here.year(nodes=4, runs=12, steps=[Step(TRIAD, 6, -0.2, ["n001"])])
    for asked, told in MISTAKES:
        with pytest.raises(UserError) as mistake:
            ask(*asked)
        assert str(mistake.value).startswith(told)


def test_a_broken_record_is_named(here):
    here.year(nodes=4, runs=12, steps=[Step(TRIAD, 6, -0.2, ["n001"])])
    ask("trend", "ack", only(changes()["alerts"])["id"], "--why", "known")
    path = next((here.perflogs / "here" / "trend").glob("*.json"))
    text = path.read_text()
    for broken in (
        text[:100],
        "{}",
        "[1]",
        text.replace('"n001"', '"n[1"'),
        text.replace('"who"', '"whom"'),
        text.replace("true", '"yes"'),
        text.replace('"before": ', '"before": "" , "x": '),
        text.replace('"first_after": {', '"first_after": null, "x": {'),
    ):
        assert broken != text
        path.write_text(broken)
        with pytest.raises(UserError, match=path.name):
            alerts.acknowledgements(here.perflogs, "here")
    with pytest.raises(UserError, match=path.name):
        ask("trend")


def test_what_steers_a_terminal_reaches_none(here):
    evil = "\x1b]0;owned\x07"
    here.year(
        runs=12,
        steps=[Step(TRIAD, 6, -0.2, ["n001"])],
        gaps=[Gap(3, 3, ["n002"], "", "parse")],
        changes=[Change(6, "kernel", f"6{evil}")],
    )
    name = only(changes()["alerts"])["id"]
    ask("trend", "ack", name, "--why", f"x{evil}", "--by", f"m{evil}")
    told = ask("trend")[1] + ask("trend", "why", name)[1]
    assert "owned" in told
    assert "\x1b" not in told and "\x07" not in told
