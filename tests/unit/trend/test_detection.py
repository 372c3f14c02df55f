"""What a person would see in the plot, `siteproof trend --json` says by default."""

import json
from datetime import timedelta
from itertools import count

import fleets
import numpy as np
import pytest
import years
from asked import ask
from years import Drift, Gap, Scatter, Season, Step

from siteproof import nodesets
from siteproof.record.series import Series
from siteproof.trend import finds
from siteproof.trend.finds import Region
from siteproof.trend.lines import RoleSeries

TRIAD, IOPS, IO = "Stream.triad", "RandomIo.write_iops", "RandomIo.read"  # CV 1, 5 and 3 %
FEW = years.names(3)  # of so few nodes there is no fleet


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Writes a history and gives what the command answers."""
    fleets.write_site(tmp_path / "sites", count=18)
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    folders = (tmp_path / str(number) for number in count())

    def answer(metrics, nodes=18, **planted):
        folder = next(folders)
        monkeypatch.setenv("SITEPROOF_DATA", str(folder))
        monkeypatch.setenv("SITEPROOF_CACHE", str(folder / "cache"))
        years.write(folder / "perflogs", nodes=nodes, metrics=metrics, **planted)
        code, text = ask("trend", "--json")
        assert code in (0, 1, 3), text
        return json.loads(text)

    return answer


def items(answer):
    return [*answer["fleet"], *answer["alerts"], *answer["drifts"]]


def only(answer):
    assert len(items(answer)) == 1, items(answer)
    return items(answer)[0]


def one_each(answer, metrics):
    """The only change of each metric, with its name."""
    found = {one["metric"]: one for one in items(answer)}
    assert len(items(answer)) == len(found) == len(metrics), items(answer)
    return found.items()


def run_of(moment, every=timedelta(days=1)):
    begin = f"{moment['time']:.19}"
    return next(n for n in range(2000) if f"{years.time_of(n, every):%Y-%m-%dT%H:%M:%S}" == begin)


# ---- steps


@pytest.mark.deep
def test_a_lasting_loss_is_told_that_is_within_the_scatter_of_a_run(told):
    cases = {IOPS: (0.4, 0.05), "Mdtest.create": (1, 0.1), "Mdtest.stat": (2, 0.2)}
    scatters = [Scatter(metric, 0, times) for metric, (times, _) in cases.items()]
    steps = [Step(metric, 100, -loss, ["n003"]) for metric, (_, loss) in cases.items()]
    for metric, found in one_each(told(cases, runs=200, scatters=scatters, steps=steps), cases):
        times, loss = cases[metric]
        assert (found["kind"], found["nodes"], found["worse"]) == ("step", "n003", True), metric
        assert found["relative"] == pytest.approx(-loss, rel=0.35), metric
        assert found["severity"] == pytest.approx(loss / (0.05 * times), rel=0.4), metric
        assert run_of(found["first_after"]) == pytest.approx(100, abs=4), metric


def test_noise_that_grows_hides_no_step(told):
    answer = told(
        [TRIAD],
        nodes=1,
        runs=240,
        scatters=[Scatter(TRIAD, 120, 5)],
        steps=[Step(TRIAD, 120, -0.08)],
    )
    assert {found["kind"] for found in items(answer)} == {"step", "scatter"}


HALF = years.names(9)  # of a fleet of 18


def test_half_of_a_fleet_that_loses_a_twentieth_is_one_change(told):
    metrics = ["Lnet.read", "Lnet.write", IO, "RandomIo.write"]  # CV 2 and 3 %
    steps = [Step(metric, 30, -0.05, HALF) for metric in metrics]
    for metric, found in one_each(told(metrics, runs=60, steps=steps), metrics):
        assert (found["kind"], found["of_fleet"], found["worse"]) == ("step", False, True), metric
        nodes = nodesets.parse(found["nodes"])
        assert nodes <= nodesets.of(HALF) and len(nodes) >= 5, metric
        assert found["relative"] == pytest.approx(-0.05, abs=0.01), metric
        assert run_of(found["first_after"]) == pytest.approx(30, abs=2), metric


def test_a_fleet_that_loses_a_twentieth_is_one_change_whether_its_nodes_lose_alike_or_not(told):
    metrics = ["Lnet.read", "Lnet.write"]
    steps = [Step(metric, 30, -0.05) for metric in metrics]
    steps += [Step("Lnet.read", 30, by, HALF[at::2]) for at, by in enumerate((-0.01, 0.01))]
    for metric, found in one_each(told(metrics, runs=60, steps=steps), metrics):
        assert (found["kind"], found["of_fleet"]) == ("step", True), metric


def test_two_parts_of_a_fleet_that_lose_a_week_apart_are_two_changes(told):
    steps = [Step("Lnet.read", 30 + 7 * at, -0.1, HALF[at:8:2]) for at in (0, 1)]
    found = items(told(["Lnet.read"], runs=60, steps=steps))
    assert {(one["kind"], run_of(one["first_after"])) for one in found} == {
        ("step", 30),
        ("step", 37),
    }
    assert len(found) == 2


def test_a_change_stays_until_it_is_acknowledged_however_many_runs_follow(told):
    found = only(told([TRIAD], nodes=1, runs=1100, steps=[Step(TRIAD, 40, -0.1)]))
    assert (found["kind"], run_of(found["first_after"]), found["open"]) == ("step", 40, True)


# ---- episodes


@pytest.mark.deep
def test_days_at_half_speed_are_told_with_begin_end_and_depth(told):
    lasts = {
        IO: 3,
        "RandomIo.write": 5,
        "BlockStorage.read": 8,
        "BlockStorage.write": 10,
        TRIAD: 20,
    }
    halves = [Step(metric, 60, -0.5, ["n002"], last=59 + days) for metric, days in lasts.items()]
    for metric, found in one_each(told(lasts, runs=200, steps=halves), lasts):
        assert (found["kind"], found["nodes"], found["open"]) == ("episode", "n002", False), metric
        assert run_of(found["first_after"]) == 60, metric
        assert run_of(found["made_good"]) == 60 + lasts[metric], metric
        assert found["relative"] == pytest.approx(-0.5, abs=0.05), metric
        assert found["n_after"] == lasts[metric], metric


def test_two_episodes_of_a_node_are_two_items(told):
    halves = [Step(IO, run, -0.5, ["n002"], last=run + 9) for run in (50, 120)]
    assert [found["kind"] for found in items(told([IO], runs=200, steps=halves))] == ["episode"] * 2


# ---- the newest runs


def alone(values, times, role="compute"):
    """The line of a lone node."""
    runs, ends = np.arange(values.size), np.array([0, values.size])
    key, sessions = Series(TRIAD, (), "system", role, ()), [""] * values.size
    group = RoleSeries(key, "MB/s", "higher", ["n1"], ends, runs, values, times, sessions)
    return Region(group, 0, runs, values, values)


def share_told(runs, loss):
    """Of lone nodes with a CV of 1 %, on one page, whose last three runs lack a share."""
    chance = np.random.default_rng(runs)
    times = np.datetime64("2026-01-01T00", "us") + np.arange(runs) * np.timedelta64(1, "D")
    lines = []
    for number in range(30):
        values = 100 * (1 + 0.01 * chance.standard_normal(runs))
        values[-3:] *= 1 - loss
        lines.append(alone(values, times, f"r{number}"))
    found = finds.look(lines).reported()
    return len({id(find.stretch) for find in found if find.relative < 0}) / len(lines)


def test_a_larger_loss_and_one_after_more_runs_are_at_least_as_certain():
    found = np.array(
        [[share_told(runs, loss) for loss in (0, 0.05, 0.2, 0.8)] for runs in (8, 12, 20, 40)]
    )
    assert (np.diff(found, axis=1) >= -0.05).all(), found
    assert (np.diff(found[:, 1:], axis=0) >= -0.05).all(), found
    assert (found[:, 0] == 0).all() and (found[1:, 2:] > 0.9).all(), found


def test_a_drift_is_found_though_runs_of_one_time_go_the_other_way():
    days, of_day = np.divmod(np.arange(33), 14)
    chance = np.random.default_rng(58).standard_normal(33)
    values = 100 + 2 * (chance + days - 0.2 * of_day)
    times = np.datetime64("2026-01-01", "us") + days * np.timedelta64(14, "D")
    (found,) = finds.look([alone(values, times)]).reported()
    assert found.kind == "drift" and found.relative > 0.05


# ---- calendars


@pytest.mark.deep
def test_a_step_is_found_beside_a_daily_swing_of_the_right_width(told):
    for hours in (12, 8, 6):
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
        assert only(answer)["nodes"] == "n001" and only(answer)["kind"] == "step", hours
        if hours < 12:
            assert answer["seasons"][0]["size"] == pytest.approx(
                0.1 if hours == 6 else 0.087, rel=0.2
            ), hours


# ---- other shapes


def test_a_change_of_scatter_alone_is_told(told):
    found = only(told([TRIAD], runs=200, scatters=[Scatter(TRIAD, 100, 5, ["n004"])]))
    assert (found["kind"], found["nodes"], found["worse"]) == ("scatter", "n004", True)
    assert found["after"] / found["before"] == pytest.approx(5, rel=0.4)


@pytest.mark.deep
def test_a_jump_by_the_factor_of_a_unit_is_asked_about(told):
    metrics = [TRIAD, "Stream.copy", "Stream.scale", "Stream.add"]
    factors = dict(zip(metrics, (1000, 1024, 1.048576, 1 / 1.048576), strict=True))
    steps = [Step(metric, 60, factor - 1) for metric, factor in factors.items()]
    steady = [Scatter(metric, 0, 0.3) for metric in metrics]
    answer = told(metrics, runs=120, steps=steps, scatters=steady)
    for metric, found in one_each(answer, metrics):
        assert found["of_fleet"], metric
        assert found["unit_factor"] == pytest.approx(factors[metric]), metric


GAINS = (0.05, 0.05, -0.05, 0.05)


def test_a_gain_or_loss_of_a_twentieth_of_a_whole_fleet_is_not_asked_about(told):
    metrics = ["Hpl.gflops", TRIAD, "Stream.copy", "Lnet.read"]
    steps = [Step(metric, 60, by) for metric, by in zip(metrics, GAINS, strict=True)]
    steady = [Scatter(metric, 0, 0.3) for metric in metrics[:1]]
    answer = told(metrics, runs=120, steps=steps, scatters=steady)
    for metric, found in one_each(answer, metrics):
        assert (found["of_fleet"], found["unit_factor"]) == (True, 0), metric


def test_a_change_of_the_unit_of_one_node_has_its_run_and_nothing_beside_it(told):
    metrics = [IO, "RandomIo.write", "BlockStorage.read", "BlockStorage.write"]
    steps = [Step(metric, 60, 0.001 - 1, ["n002"]) for metric in metrics]
    for metric, found in one_each(told(metrics, runs=120, steps=steps), metrics):
        assert (found["kind"], found["nodes"], found["unit_factor"]) == ("step", "n002", 0.001)
        assert run_of(found["first_after"]) == 60, metric
        assert found["after"] / found["before"] == pytest.approx(0.001, rel=0.02), metric


def test_a_node_at_half_speed_scatters_by_half_as_much_which_is_no_change_of_its_own(told):
    metrics = [IO, "RandomIo.write", "BlockStorage.read", "BlockStorage.write"]
    steps = [Step(metric, 100, -0.5, ["n002"]) for metric in metrics]
    for metric, found in one_each(told(metrics, runs=200, steps=steps), metrics):
        assert (found["kind"], run_of(found["first_after"])) == ("step", 100), metric
        assert found["relative"] == pytest.approx(-0.5, abs=0.02), metric


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


@pytest.mark.deep
def test_of_thirty_runs_and_one_step_only_the_step_is_told(told):
    for seed in range(3):
        steps = [Step(TRIAD, 15, -0.1, ["n002"])]
        found = only(told(years.ORDINARY, runs=30, seed=seed, steps=steps))
        assert (found["metric"], found["kind"], found["nodes"]) == (TRIAD, "step", "n002"), seed


def test_a_drift_is_told_over_the_time_that_was_seen(told):
    found = only(told([TRIAD], runs=60, nodes=1, drifts=[Drift(TRIAD, -0.5)]))
    assert found["kind"] == "drift" and found["confidence"].startswith("over 59 days")
    assert "year" not in found["confidence"]
