"""Steps: found where they are, and nowhere else; whatever a series holds, there is an answer."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ruptures import KernelCPD
from scipy.stats import false_discovery_control

from siteproof.analysis import screen, segments, shape, spread, steps

pytestmark = pytest.mark.filterwarnings("error")  # no division by a spread of 0
NUMBERS = st.floats() | st.sampled_from([0.0, 1.0, 100.0, 100.1, np.nan, np.inf, 1e-300, 1e300])
SERIES = hnp.arrays(float, st.integers(0, 40), elements=NUMBERS)


def find(values):
    return shape.explain(None, values).steps


def noise(seed, size=365, cv=1.0):
    return np.random.default_rng(seed).normal(100, cv, size)


def stepped(seed, *sizes, size=365, gap=60):
    """Noise of one sd with steps of these sizes, `gap` runs apart, the last 100 from the end."""
    values = noise(seed, size)
    places = [size - 100 - gap * back for back in range(len(sizes))][::-1]
    for at, step in zip(places, sizes, strict=True):
        values[at:] += step
    return values, places


def resembling(seed, share, size=365):
    """AR(1)."""
    values = np.random.default_rng(seed).normal(0, 1, size)
    for at in range(1, size):
        values[at] += share * values[at - 1]
    return 100 + values


# ---- the screen


def test_the_screen_flags_steps_and_drift_but_no_noise():
    table = np.array(
        [noise(1), stepped(2, 3)[0], noise(3) + np.linspace(0, 5, 365), np.full(365, 7.0), noise(4)]
    )
    assert screen.screen(table).tolist() == [False, True, True, False, False]


def test_the_screen_sees_steps_that_make_most_of_the_scatter_of_a_short_series():
    to_and_fro = 5 * (np.arange(64) // 16 % 2)
    assert screen.screen(np.array([noise(seed, 64) + to_and_fro for seed in range(10)])).all()


def test_the_screen_sees_a_step_in_the_middle_of_few_runs():
    for size in (12, 20, 30, 45):
        values = np.array([noise(seed, size) for seed in range(10)])
        values[:, size // 2 :] += 6
        among_years = np.hstack([np.full((10, 365 - size), np.nan), values])
        assert screen.screen(values).mean() >= 0.9, size
        assert (screen.screen(values) == screen.screen(among_years)).mean() >= 0.9, size


def test_the_screen_sees_a_step_between_values_that_are_all_equal():
    for size in (12, 30, 70):
        assert screen.screen(np.repeat([[100.0, 50.0]], size // 2, axis=1))[0], size


def test_a_series_is_screened_alike_alone_and_among_thousands():
    table = np.array([stepped(seed, 3)[0] if seed % 3 else noise(seed) for seed in range(30)])
    many = np.tile(table, (2 * screen.BATCH // 30, 1))
    assert (screen.screen(many) == np.tile(screen.screen(table), len(many) // 30)).all()


def test_gaps_are_no_values():
    table = np.array([noise(1), stepped(2, 5)[0]])
    table[:, ::7] = np.nan
    table[1, 100:140] = np.nan
    assert screen.screen(table).tolist() == [False, True]
    assert screen.screen(np.full((2, 50), np.nan)).tolist() == [False, False]


def test_a_few_outliers_flag_nothing_and_a_few_runs_at_another_level_do():
    constant = np.full((2, 365), 100.0)
    constant[0, [40, 200, 300]] = 50.0
    constant[1, 360:] = 90.0
    assert screen.screen(constant).tolist() == [False, True]


# ---- the search


def test_steps_are_found_where_they_are():
    for sizes in ((5,), (-5,), (3, 3), (5, -5), (5, -5, 5)):
        values, places = stepped(7, *sizes)
        found = find(values)
        assert len(found) == len(places), sizes
        assert np.abs(np.array(found) - places).max() <= 2, sizes


def test_noise_has_no_step():
    for seed in range(20):
        assert find(noise(seed)) == [], seed


@pytest.mark.deep
def test_runs_that_resemble_their_neighbours_have_no_step():
    for share in (0.4, 0.8):
        alarmed = [seed for seed in range(40) if find(resembling(seed, share))]
        assert len(alarmed) <= 1, share
        rising = [
            seed for seed in range(40) if find(resembling(seed, share) + np.linspace(0, 8, 365))
        ]
        assert len(rising) <= 2, share
        values = resembling(3, share)
        values[200:] += 10
        assert len(find(values)) == 1, share


def test_the_last_runs_are_a_step_when_they_are_three():
    for after in (3, 4, 5, 6, 10):
        values = noise(5, 60, 0.5)
        values[-after:] -= 5
        assert find(values) == [60 - after], after
        assert find(values[: 60 - after + 1]) == [], after


def test_a_dip_is_an_episode_with_its_begin_its_end_and_its_depth():
    for lasts in (3, 5, 8, 12, 20):
        values = noise(6)
        values[200 : 200 + lasts] -= 12
        [found] = shape.explain(None, values).changes
        assert (found.at, found.end, found.n_after) == (200, 200 + lasts, lasts), lasts
        assert found.after - found.before == pytest.approx(-12, abs=1.5), lasts


def test_a_dip_before_a_step_is_an_episode_and_a_step():
    values = noise(6)
    values[200:210] -= 12
    values[210:] -= 3
    episode, step = shape.explain(None, values).changes
    assert (episode.at, episode.end, step.at, step.end) == (200, 210, 210, None)
    assert step.after - step.before == pytest.approx(-3, abs=0.5)


def test_three_outliers_in_a_row_are_no_dip_where_there_are_many():
    values = noise(7)
    values[np.random.default_rng(8).choice(365, 18, replace=False)] -= 8
    values[200:203] = 92
    assert shape.explain(None, values).changes == []


def test_noise_that_grows_hides_no_step_and_is_told_beside_it():
    chance = np.random.default_rng(9)
    values = 100 + chance.normal(0, 1, 365)
    values[180:] = 94 + chance.normal(0, 5, 185)
    found = shape.explain(None, values)
    assert found.steps == [pytest.approx(180, abs=3)]
    [scatter] = found.scatter
    assert scatter.at == pytest.approx(180, abs=6)
    assert scatter.after / scatter.before == pytest.approx(5, rel=0.3)


def test_noise_scatters_alike():
    for seed in range(10):
        assert shape.explain(None, noise(seed)).scatter == [], seed


def test_a_gap_moves_no_index():
    values, places = stepped(7, 5)
    values[[3, 50, 120, 250]] = [np.nan, np.inf, -np.inf, np.nan]
    assert abs(find(values)[0] - places[0]) <= 2


def test_coarse_figures_have_steps_and_equal_ones_have_none():
    values = np.round(stepped(7, 5)[0])
    assert len(find(values)) == 1
    assert find(np.repeat([100.0, 99.0], 50)) == [50]
    assert find(np.full(100, 3.25)) == []
    assert find(np.full(100, 0.1) + 1e-17 * np.arange(100)) == []


def test_the_unit_changes_nothing():
    for scale in (1e-9, 1e-3, 1e6, 1e12):
        values, _ = stepped(7, 4, -4)
        assert find(values * scale) == find(values), scale
        assert screen.screen((values * scale)[None])[0], scale


def test_a_series_that_flips_between_two_levels_has_modes_and_no_steps():
    levels = np.repeat([100.0, 80.0] * 6, [20, 35, 15, 40, 22, 18, 30, 25, 19, 33, 28, 20])
    values = levels + np.random.default_rng(1).normal(0, 1, levels.size)
    found = shape.explain(None, values)
    assert found.changes == find(values) == []
    assert found.modes == pytest.approx((80, 100), abs=1)


def test_all_of_a_long_series_is_searched():
    values = noise(1, 3000)
    values[200:] += 10
    values[2900:] -= 10
    assert shape.explain(None, values).steps == [200, 2900]


def test_a_drift_is_no_staircase_and_a_step_in_a_drift_is_one_step():
    values = noise(1) + np.linspace(0, 20, 365)
    assert find(values) == []
    values[200:] -= 8
    [at] = find(values)
    assert abs(at - 200) <= 2


# ---- what is said of a step


def test_a_step_is_certain_by_its_standard_errors_and_not_by_the_scatter_of_a_run():
    for cv, loss in ((2, 0.05), (5, 0.1), (10, 0.2)):
        for seed in range(10):
            values = noise(seed, 200, cv)
            values[100:] *= 1 - loss
            [change] = shape.explain(None, values).changes
            assert steps.share(change.before, change.after) == pytest.approx(-loss, rel=0.5), (
                cv,
                loss,
            )
            assert change.severity == pytest.approx(100 * loss / cv, rel=0.4), (cv, loss)
            assert steps.confidence(change.chance) == "above 99.9 %", (cv, loss)


def test_what_series_of_the_same_kind_do_decides_about_a_short_one():
    short = noise(1, 12, 0.01)
    short[6:] -= 1
    assert find(short) == [6]
    scattering = spread.Typical(noise=0.02, factor=1.0, count=5000)
    assert shape.explain(None, short, scattering).changes == []


def test_of_a_page_without_any_change_hardly_anything_is_told():
    chance = np.random.default_rng(1)
    pages = [steps.reported(np.sort(chance.random(500))[:5].tolist(), 500) for _ in range(200)]
    assert sum(page.any() for page in pages) <= 0.05 * 200


def test_of_a_page_with_many_changes_those_are_told_that_stand_out():
    assert steps.reported([1e-9, 1e-7, 1e-4, 0.5], 1000).tolist() == [True, True, False, False]
    assert steps.reported([1e-4] * 300, 1000).all()
    assert steps.reported([], 10).size == 0


def test_the_factor_of_a_unit_is_known():
    for factor in (1000, 1024, 1.048576, 1 / 1000, 1 / 1024, 1 / 1.048576):
        values = noise(2, 100, 0.1)
        values[50:] *= factor
        [change] = shape.explain(None, values).changes
        assert steps.unit_factor(change) == factor, factor


def test_no_other_factor_is_a_units_nor_one_that_the_scatter_hides():
    others = ((1.05, 0.01), (1.05, 0.3), (0.95, 0.3), (1.06, 0.3), (0.9, 0.3), (500, 0.3))
    for factor, cv in (*others, (1.048576, 1), (1.048576, 3)):
        values = noise(2, 400, cv)
        values[200:] *= factor
        assert [steps.unit_factor(one) for one in shape.explain(None, values).changes] == [0.0], (
            factor
        )


# ---- whatever comes


@given(SERIES, st.sampled_from([0.0, 3600.0, 86400.0, 1e9]))
def test_any_series_has_an_answer(values, apart):
    times = np.arange(values.size) * apart
    found = shape.explain(times, values)
    assert found.steps == sorted(set(found.steps))
    assert all(0 < at < values.size for at in found.steps)
    assert all(one.n_after > 0 for one in found.changes)
    told = steps.slope(times, values)
    assert np.isfinite([told.per_year, told.total, told.low, told.high, told.chance]).all()


def test_the_libraries_are_loaded_by_those_who_search_only():
    code = (
        "import sys; from siteproof.analysis import steps, screen; import numpy;"
        "screen.screen(numpy.ones((2, 50))); print({'ruptures', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_search_is_that_of_ruptures():
    random = np.random.default_rng(4)
    for size in (4, 5, 30, 200):
        for jump in (0.0, 2.0, 8.0):
            values = random.normal(100, 1, size) + jump * (np.arange(size) >= size // 2)
            search = KernelCPD("linear", min_size=segments.LEAST).fit(values[:, None])
            ends = [size]
            while ends[0]:
                starts = segments._pelt()(values[:, None], segments.PENALTY, segments.LEAST)
                ends.insert(0, int(starts[ends[0]]))
            assert ends[1:] == search.predict(pen=segments.PENALTY)


def test_what_a_page_reports_is_by_benjamini_and_yekutieli():
    random = np.random.default_rng(5)
    for number, series in ((1, 1), (3, 40), (40, 40), (40, 500), (200, 100)):
        chances = 10.0 ** random.uniform(-8, 0.5, number)
        page = np.ones(max(series, number))
        page[:number] = np.minimum(chances, 1)
        expected = false_discovery_control(page, method="by")[:number] <= steps.FALSE
        assert steps.reported(chances.tolist(), series).tolist() == expected.tolist()
