"""What could have been found: changes of that size are found, and much smaller ones are not."""

import fleets
import pytest
import years

from siteproof import history, trend
from siteproof.analysis.steps import MIN_RELATIVE, POWER, most_chance, reported, smallest_change
from siteproof.trend.gaps import LASTING
from siteproof.wording import trends as wording

NODES, RUNS, CHANGED = 150, 80, 30
READ, TRIAD = "RandomIo.read", "Stream.triad"  # of 3 % and 1 % noise


@pytest.fixture(scope="module")
def survey_of(tmp_path_factory):
    """What trend sees of a made fleet with these steps."""
    with pytest.MonkeyPatch.context() as patch:

        def survey(steps=(), seed=7):
            folder = tmp_path_factory.mktemp("sensitivity")
            patch.setenv("SITEPROOF_DATA", str(folder))
            patch.setenv("SITEPROOF_CACHE", str(folder / "cache"))
            site = fleets.load(folder / "sites", patch, count=NODES)
            perflogs = folder / "perflogs"
            years.write(
                perflogs, nodes=NODES, runs=RUNS, metrics=(READ, TRIAD), seed=seed, steps=steps
            )
            with history.open_history(perflogs, ["here"]) as h:
                return trend.survey(site, h)

        yield survey


@pytest.fixture(scope="module")
def clean(survey_of):
    return survey_of()


def of_read(seen):
    return next(one for one in seen.sensitivity if one.metric == READ)


def found(seen, steps):
    named = {node for alert in seen.alerts if alert.metric == READ for node in alert.nodes}
    return sum(step.nodes[0] in named for step in steps) / len(steps)


def found_of(survey_of, clean, share):
    """Of nodes that lack a share of the smallest size, by how long they do: the share found."""
    names, smallest = years.names(NODES), of_read(clean).smallest
    steps = {
        lasts: [
            years.Step(
                READ,
                RUNS - runs - number % 3,
                -share * smallest[lasts],
                (names[5 * number + first],),
            )
            for number in range(CHANGED)
        ]
        for first, lasts, runs in ((0, "10", 10), (2, LASTING, RUNS // 2))
    }
    seen = survey_of([step for several in steps.values() for step in several])
    return {lasts: found(seen, several) for lasts, several in steps.items()}


def test_the_scatter_is_that_of_the_made_fleet(clean):
    read = of_read(clean)
    assert read.scatter == pytest.approx(0.03, rel=0.15)
    assert (read.runs, len(read.nodes)) == (RUNS, NODES)


@pytest.mark.deep
def test_losses_of_the_smallest_size_are_found_with_the_stated_probability(survey_of, clean):
    shares = found_of(survey_of, clean, 1)
    assert all(share >= POWER - 0.15 for share in shares.values()), shares


@pytest.mark.deep
def test_losses_of_half_the_size_are_mostly_not_found(survey_of, clean):
    shares = found_of(survey_of, clean, 0.5)
    assert all(share < 0.5 for share in shares.values()), shares


def test_less_scatter_more_runs_and_fewer_series_find_less():
    size = smallest_change(0.05, 100, 100)
    assert smallest_change(0.02, 100, 100) < size < smallest_change(0.05, 20, 20)
    assert size < smallest_change(0.05, 100, 100, factor=3)
    assert size < smallest_change(0.05, 100, 100, chance=most_chance(600_000))


def test_nothing_below_the_least_change_is_promised():
    assert smallest_change(0, 100, 100) == MIN_RELATIVE


def test_of_two_runs_nothing_is_found():
    assert smallest_change(0.01, 100, 2) == float("inf")


def test_the_only_change_of_a_page_is_told_as_often_as_stated():
    chance = most_chance(1000)
    assert reported([0.99 * chance], 1000).tolist() == [True]
    assert reported([1.01 * chance], 1000).tolist() == [False]


def test_the_page_says_the_range_in_one_line(clean):
    text = wording.sensitivity(clean.sensitivity)
    assert text.startswith("the smallest lasting change that is found with 90 % probability: ")
    assert READ in text and TRIAD in text


def test_a_row_has_a_size_for_each_duration(clean):
    cells = wording.sensitivity_cells(of_read(clean))
    assert cells[0] == READ
    assert len(cells) == 5 + len(wording.LASTS)
