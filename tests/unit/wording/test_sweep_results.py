"""The sentences of a sweep: how places, sizes, doubts and what is not known are told."""

from siteproof.analysis import plateau
from siteproof.curves.run_findings import Axis
from siteproof.wording import findings, sweep_results

TASKS, SIZES, KNOB = Axis("tasks", "number"), Axis("size", "size"), Axis("knob.x", "word")


def told(values, axis=TASKS):
    found = plateau.find(plateau.points(values))
    return "; ".join(sweep_results.of_shape(axis, found, min(values)))


def test_a_place_has_its_unit():
    for axis, value, text in (
        (TASKS, "1", "1 task"),
        (TASKS, 32.0, "32 tasks"),
        (TASKS, 23.456, "23.46 tasks"),
        (SIZES, "1048576", "1 MiB"),
        (SIZES, 1.5 * 2**20, "1.5 MiB"),
        (SIZES, "47008", "45.91 KiB"),
        (SIZES, "7", "7 B"),
        (KNOB, "own", "knob.x own"),
        (Axis("depth", "number"), "4", "depth 4"),
    ):
        assert findings.at(axis.name, value) == text, (axis, value, text)


def test_a_plateau_at_the_first_point_may_have_begun_before():
    assert told({8: [10.0], 16: [10.0], 32: [10.0]}) == (
        "plateau from 8 tasks on, or before: it is the first point"
    )
    assert "or before" not in told({1: [10.0], 2: [10.0], 4: [10.0]})


def test_what_is_not_reached_is_beyond_the_last_point():
    assert told({1: [10.0], 2: [20.0], 4: [40.0]}) == (
        "plateau not reached: >4 tasks, the last doubling gained 100 %"
    )


def test_one_repetition_says_that_it_tells_no_fall():
    assert told({1: [10.0], 2: [20.0], 4: [10.0]}).endswith(
        "whether it falls after the peak: undecided: one repetition does not distinguish a fall "
        "from noise"
    )


def test_a_fall_is_told_with_its_first_point():
    falling = {1: [10.0, 10.1], 2: [20.0, 20.1], 4: [10.0, 10.1]}
    assert told(falling).endswith("falls from 4 tasks on")


def test_noise_that_hides_5_percent_is_told():
    noisy = {x: [90.0, 100.0, 110.0] for x in (1, 2, 4)}
    assert told(noisy).endswith("uncertain, as runs differ by 10 %")


def test_figures_have_four_digits_or_all_before_the_point():
    for value, text in (
        (29766.4, "29766"),
        (999.96, "1000"),
        (75.55, "75.55"),
        (0.001234, "0.001234"),
        (0.0, "0"),
    ):
        assert findings.number(value) == text, (value, text)


def test_a_change_has_its_sign():
    assert [findings.change(c) for c in (0.416, -0.603, 0.0)] == ["+41.6 %", "-60.3 %", "0 %"]
