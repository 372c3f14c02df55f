"""What a person would see in the plot, `siteproof trend --json` says by default."""

import json
from datetime import timedelta

import fleets
import pytest
import years
from asked import ask
from years import Drift, Gap, Scatter, Season, Step

TRIAD, IOPS, IO = "Stream.triad", "RandomIo.write_iops", "RandomIo.read"  # CV 1, 5 and 3 %
FEW = years.names(3)  # of so few nodes there is no fleet


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Writes a history and gives what the command answers."""
    fleets.write_site(tmp_path / "sites", count=18)
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path / "cache"))

    def answer(metrics, nodes=18, **planted):
        years.write(tmp_path / "perflogs", nodes=nodes, metrics=metrics, **planted)
        code, text = ask("trend", "--json")
        assert code in (0, 1, 3), text
        return json.loads(text)

    return answer


def items(answer):
    return [*answer["fleet"], *answer["alerts"], *answer["drifts"]]


def only(answer):
    assert len(items(answer)) == 1, items(answer)
    return items(answer)[0]


def run_of(moment, every=timedelta(days=1)):
    begin = f"{moment['time']:.19}"
    return next(n for n in range(2000) if f"{years.time_of(n, every):%Y-%m-%dT%H:%M:%S}" == begin)


# ---- steps


@pytest.mark.parametrize(("times", "loss"), [(0.4, 0.05), (1, 0.1), (2, 0.2)])
def test_a_lasting_loss_is_told_that_is_within_the_scatter_of_a_run(told, times, loss):
    scatters = [Scatter(IOPS, 0, times)]
    found = only(
        told([IOPS], runs=200, scatters=scatters, steps=[Step(IOPS, 100, -loss, ["n003"])])
    )
    assert (found["kind"], found["nodes"], found["worse"]) == ("step", "n003", True)
    assert found["relative"] == pytest.approx(-loss, rel=0.35)
    assert found["severity"] == pytest.approx(loss / (0.05 * times), rel=0.4)
    assert run_of(found["first_after"]) == pytest.approx(100, abs=4)


def test_noise_that_grows_hides_no_step(told):
    answer = told(
        [TRIAD],
        nodes=1,
        runs=240,
        scatters=[Scatter(TRIAD, 120, 5)],
        steps=[Step(TRIAD, 120, -0.08)],
    )
    assert {found["kind"] for found in items(answer)} == {"step", "scatter"}


# ---- episodes


@pytest.mark.parametrize("lasts", [3, 5, 8, 10, 20])
def test_days_at_half_speed_are_told_with_begin_end_and_depth(told, lasts):
    half = Step(IO, 60, -0.5, ["n002"], last=59 + lasts)
    found = only(told([IO], runs=200, steps=[half]))
    assert (found["kind"], found["nodes"], found["open"]) == ("episode", "n002", False)
    assert run_of(found["first_after"]) == 60 and run_of(found["made_good"]) == 60 + lasts
    assert found["relative"] == pytest.approx(-0.5, abs=0.05) and found["n_after"] == lasts


def test_two_episodes_of_a_node_are_two_items(told):
    halves = [Step(IO, run, -0.5, ["n002"], last=run + 9) for run in (50, 120)]
    assert [found["kind"] for found in items(told([IO], runs=200, steps=halves))] == ["episode"] * 2


# ---- calendars


@pytest.mark.parametrize("hours", [12, 8, 6])
def test_a_step_is_found_beside_a_daily_swing_of_the_right_width(told, hours):
    period = 2 * hours / 24 if hours == 12 else 1.0
    shifted = Season(TRIAD, 0.05, period)
    answer = told(
        [TRIAD],
        nodes=2,
        runs=200,
        every=timedelta(hours=hours),
        seasons=[shifted],
        steps=[Step(TRIAD, 110, -0.05, ["n001"])],
    )
    assert only(answer)["nodes"] == "n001" and only(answer)["kind"] == "step"
    if hours < 12:
        assert answer["seasons"][0]["size"] == pytest.approx(0.1 if hours == 6 else 0.087, rel=0.2)


# ---- other shapes


def test_a_change_of_scatter_alone_is_told(told):
    found = only(told([TRIAD], runs=200, scatters=[Scatter(TRIAD, 100, 5, ["n004"])]))
    assert (found["kind"], found["nodes"], found["worse"]) == ("scatter", "n004", True)
    assert found["after"] / found["before"] == pytest.approx(5, rel=0.4)


@pytest.mark.parametrize("factor", [1000, 1024, 1.048576, 1 / 1.048576])
def test_a_jump_by_the_factor_of_a_unit_is_asked_about(told, factor):
    steps = [Step(TRIAD, 60, factor - 1)]
    found = only(told([TRIAD], runs=120, steps=steps))
    assert found["of_fleet"] and found["unit_factor"] == pytest.approx(factor)


def test_a_ramp_and_then_a_step_is_a_drift_and_a_step_of_one_node(told):
    answer = told(
        [TRIAD], nodes=1, runs=365, drifts=[Drift(TRIAD, -0.1)], steps=[Step(TRIAD, 200, 0.06)]
    )
    assert {found["kind"] for found in items(answer)} == {"drift", "step"}


def test_lost_runs_hide_no_step(told):
    gaps = [Gap(run, run, ["n003"]) for run in range(0, 200, 3)]
    found = only(told([IO], runs=200, gaps=gaps, steps=[Step(IO, 100, -0.1, ["n003"])]))
    assert found["nodes"] == "n003" and found["kind"] == "step"


# ---- false items


@pytest.mark.parametrize("seed", range(3))
def test_of_thirty_runs_and_one_step_only_the_step_is_told(told, seed):
    steps = [Step(TRIAD, 15, -0.1, ["n002"])]
    found = only(told(years.ORDINARY, runs=30, seed=seed, steps=steps))
    assert (found["metric"], found["kind"], found["nodes"]) == (TRIAD, "step", "n002")


def test_a_drift_is_told_over_the_time_that_was_seen(told):
    found = only(told([TRIAD], runs=60, nodes=1, drifts=[Drift(TRIAD, -0.5)]))
    assert found["kind"] == "drift" and found["confidence"].startswith("over 59 days")
    assert "year" not in found["confidence"]
