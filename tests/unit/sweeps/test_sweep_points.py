"""From a sweep to its points, and the order in which they are measured."""

from collections import Counter
from itertools import groupby, product

from hypothesis import given, settings
from hypothesis import strategies as st

from siteproof.record.manifest import Point
from siteproof.sweeps.keys import Constraint, Sweep
from siteproof.sweeps.reading import (
    classes,
    combinations,
    knob_settings,
    points,
    repeated,
    size_class,
    walk,
)

NUMBERS = st.lists(st.integers(1, 600), min_size=1, max_size=6, unique=True)


def sweep(**keys):
    given = {
        "description": "x",
        "tool": "fio",
        "against": "depth",
        "point_limit": "1m",
        "axes": {"depth": ["1"]},
        "fixed": {"block": "4 KiB", "pattern": "read"},
    }
    return Sweep.model_validate({**given, **keys})


def texts(numbers):
    return [str(number) for number in numbers]


@given(NUMBERS, NUMBERS, st.integers(1, 4))
def test_a_mapping_is_the_full_product_in_the_order_of_the_file(depths, blocks, repetitions):
    found = points(
        sweep(
            axes={"depth": texts(depths), "block": texts(blocks)},
            fixed={"pattern": "read"},
            repetitions=repetitions,
        )
    )
    one = [(str(d), str(b)) for d, b in product(depths, blocks)]
    assert [(p.values["depth"], p.values["block"]) for p in found] == one * repetitions


@given(NUMBERS, NUMBERS)
def test_a_list_of_mappings_is_their_union_and_each_point_is_there_once(first, second):
    found = points(sweep(axes=[{"depth": texts(first)}, {"depth": texts(second)}]))
    assert [p.values["depth"] for p in found] == texts(dict.fromkeys([*first, *second]))


@given(NUMBERS, NUMBERS, st.sampled_from(["<=", ">=", "==", "!=", "<", ">"]))
def test_constraints_leave_out_exactly_what_breaks_them(depths, blocks, operator):
    axes = {"depth": texts(depths), "block": texts(blocks)}
    all_points = points(sweep(axes=axes, fixed={"pattern": "read"}))
    kept = points(
        sweep(axes=axes, fixed={"pattern": "read"}, constraints=[f"depth * 2 {operator} block"])
    )
    right = [
        p
        for p in all_points
        if eval(  # noqa: S307  # the test's own words
            f"{p.values['depth']} * 2 {operator} {p.values['block']}"
        )
    ]
    assert kept == right


def test_a_constraint_may_speak_of_sizes_and_nodes():
    assert Constraint("block * tasks >= 4 GiB").holds({"block": str(2**30), "tasks": "4"})
    assert not Constraint("block * tasks >= 4 GiB").holds({"block": str(2**30), "tasks": "3"})
    found = points(
        sweep(
            axes={"tasks": ["4", "5"], "tasks_per_node": ["2"]},
            against="tasks",
            constraints=["nodes <= 2"],
        )
    )
    assert [p.tasks for p in found] == [4]


@given(st.integers(1, 5000), st.integers(1, 200))
def test_nodes_are_as_many_as_the_tasks_need(tasks, per_node):
    nodes = Point({"tasks": str(tasks), "tasks_per_node": str(per_node)}, ()).nodes
    assert (nodes - 1) * per_node < tasks <= nodes * per_node


@given(st.lists(st.integers(1, 5000), min_size=1))
def test_every_point_is_in_one_size_class_that_is_at_most_eight_times_as_wide(counts):
    each = [Point({"tasks": str(n), "tasks_per_node": "1"}, ()) for n in counts]
    found = classes(each)
    assert {size_class(n) for n in counts} == set(found)
    assert len(found) == len(set(found))
    for n in counts:
        low, _, high = size_class(n).rpartition("-")
        assert int(low or high) <= n <= int(high) <= 8 * int(low or 1)


def numbered(depths, repetitions, knobs=()):
    values = [
        {
            "tasks": "1",
            "tasks_per_node": "1",
            "depth": str(d),
            **({"knob.sysctl.a.b": str(k)} if knobs else {}),
        }
        for d, k in product(depths, knobs or [0])
    ]
    each = repeated(values, ["tasks", "tasks_per_node", "depth", "knob.sysctl.a.b"], repetitions)
    return dict(enumerate(each, 1))


@settings(deadline=None)
@given(
    NUMBERS,
    st.integers(1, 4),
    st.sampled_from(["random", "ascending"]),
    st.lists(st.integers(1, 9), max_size=3, unique=True),
    st.text(max_size=3),
)
def test_a_walk_takes_every_point_once_repetition_by_repetition(
    depths, repetitions, order, knobs, seed
):
    of = numbered(depths, repetitions, knobs)
    found = walk(of, order, seed)
    assert sorted(found) == sorted(of)
    assert found == walk(of, order, seed)
    trials = [of[n].trial for n in found]
    assert trials == sorted(trials)
    turns = [key for key, _ in groupby((of[n].trial, tuple(of[n].knobs.items())) for n in found)]
    assert max(Counter(turns).values()) == 1  # the same settings of the nodes stay together


@given(NUMBERS)
def test_ascending_is_by_number_and_not_by_letters(depths):
    of = numbered(depths, 1)
    assert [int(of[n].values["depth"]) for n in walk(of, "ascending", "")] == sorted(depths)


def test_a_random_walk_is_another_one_in_another_session():
    of = numbered(range(1, 20), 1)
    assert walk(of, "random", "a") != walk(of, "random", "b") != sorted(of)


def test_one_knob_at_a_time_and_the_corners():
    alone = {"knob.sysctl.a.b": ["1", "2", "3"], "knob.sysctl.a.c": ["7", "9"]}
    own = dict.fromkeys(alone, "own")
    found = knob_settings(sweep(knobs={"one_at_a_time": alone, "corners": "true"}))
    assert found[:6] == [
        own,
        *({**own, "knob.sysctl.a.b": v} for v in "123"),
        *({**own, "knob.sysctl.a.c": v} for v in "79"),
    ]
    assert {tuple(v.values()) for v in found[6:]} == set(product("13", "79"))


def test_points_of_the_same_settings_have_the_same_combination():
    of = numbered([1, 2], 2, [5, 6])
    found = combinations(of)
    assert sorted(set(found.values())) == [1, 2]
    assert all((found[a] == found[b]) == (of[a].knobs == of[b].knobs) for a, b in product(of, of))


def test_a_line_of_a_point_is_what_the_walker_reads():
    point = Point(
        {
            "tasks": "4",
            "tasks_per_node": "2",
            "transfer": "1048576",
            "api": "POSIX",
            "knob.sysctl.a.b": "1 2 3",
        },
        ("tasks",),
        2,
    )
    assert point.line(7, 60, 3) == "00007 60 2 4 2 2 3 TRANSFER=1048576 API=POSIX"
