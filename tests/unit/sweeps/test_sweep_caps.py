"""Caps on a run of a sweep: which points stay, which values are lowered, and what is refused."""

import pytest
from rows import rows

from siteproof.errors import UserError
from siteproof.sweeps import caps
from siteproof.sweeps.keys import Sweep
from siteproof.sweeps.reading import points

GIB = str(2**30)


def sweep(**keys):
    given = {
        "description": "x",
        "tool": "ior",
        "against": "tasks",
        "point_limit": "1m",
        "axes": {"tasks": ["1", "8", "64"], "layout": ["file_a_task", "shared"]},
        "fixed": {"transfer": "1 MiB", "block": "4 GiB"},
        "repetitions": 2,
    }
    return Sweep.model_validate({**given, **keys})


def within(one, **options):
    """The numbers that stay, and the points by them."""
    every = dict(enumerate(points(one), 1))
    asked = caps.of_options("MySweep", one, options)
    return caps.apply(one, every, caps.binding(one, every, asked))


def refusal(one, **options):
    with pytest.raises(UserError) as error:
        within(one, **options)
    return str(error.value)


def test_a_cap_on_an_axis_leaves_out_the_points_above_it_and_keeps_the_numbers_of_the_others():
    kept = within(sweep(), tasks="8")
    assert {p.tasks for p in kept.values()} == {1, 8}
    every = dict(enumerate(points(sweep()), 1))
    assert all(every[n] == point for n, point in kept.items())
    assert len(every) - len(kept) == 4  # 64 tasks, two layouts, two repetitions


def test_a_cap_on_a_value_that_all_points_share_lowers_it_and_leaves_none_out():
    for name in ("size", "block"):
        kept = within(sweep(), **{name: "1GiB"})
        assert len(kept) == 12
        assert {p.values["block"] for p in kept.values()} == {GIB}


def test_a_lowered_value_must_still_meet_the_constraints():
    one = sweep(
        axes={"transfer": ["1 MiB", "16 MiB"], "tasks": ["1"]},
        fixed={"block": "1 GiB"},
        constraints=["transfer <= block"],
        against="transfer",
    )
    assert {p.values["transfer"] for p in within(one, size="8MiB").values()} == {str(2**20)}


def test_words_are_chosen_and_repetitions_are_capped():
    assert {p.values["layout"] for p in within(sweep(), layout="shared").values()} == {"shared"}
    assert len(within(sweep(), layout="shared,file_a_task")) == 12
    assert {p.trial for p in within(sweep(), repetitions="1").values()} == {1}


def test_a_run_that_covers_sizes_up_to_one_covers_fewer_of_them():
    one = sweep(
        tool="messages",
        axes={"tasks": ["2"], "size": ["4 MiB"]},
        fixed={},
        against="size",
        repetitions=1,
    )
    assert [p.values["size"] for p in within(one, size="1MiB").values()] == [str(2**20)]


def test_a_cap_above_every_point_is_none():
    one = sweep()
    every = dict(enumerate(points(one), 1))
    asked = caps.of_options("MySweep", one, {"tasks": "64", "block": "1TiB"})
    assert asked and caps.binding(one, every, asked) == {}


@rows(
    "options, told",
    [
        ({"depth": "4"}, "-S depth=4: MySweep cannot be capped by it. Allowed: block, layout,"),
        ({"tasks": "many"}, "-S tasks=many: tasks: unknown value 'many'. Allowed: 1, 2, 3 …."),
        ({"tasks": "0x8"}, "unknown value '0x8'"),
        ({"tasks": "-1"}, "unknown value '-1'"),
        ({"size": "64"}, "-S size=64: a size without its unit. Allowed: a size such as 64MiB"),
        (
            {"size": "1 furlong"},
            "unknown value '1 furlong'. Allowed: a size such as 64MiB or 1GiB.",
        ),
        ({"layout": "sharde"}, "unknown value 'sharde' (did you mean 'shared'?). Allowed: file_a"),
        ({"size": "1GiB", "block": "1GiB"}, "has both size and block"),
        ({"size": "1000MB"}, "953.7 MiB is not a whole number of requests of 1 MiB"),
        ({"api": "POSIX"}, "cannot be capped by it"),  # no point of it names one
    ],
)
def test_what_is_no_cap_of_the_sweep_is_refused_in_one_line(options, told):
    line = refusal(sweep(), **options)
    assert told in line
    assert "\n" not in line


def test_recorded_caps_are_read_again_and_given_again_exactly():
    for found in ({"tasks": "8", "block": GIB}, {"block": "1000000000", "layout": "a,b"}):
        assert caps.of_text(caps.text(found)) == found
        size = {
            option.partition("=")[0]: option.partition("=")[2] for option in caps.as_options(found)
        }
        assert size["block"] in ("1GiB", "1000000000B")
    assert caps.of_text("") == {}
    for text in (
        "tasks",
        "rm=-rf",
        "tasks=",
        "a b",
        "block=abc",
        "tasks=\u00b2",
        "size=1e9",
        "api=$(x)",
    ):
        with pytest.raises(UserError):
            caps.of_text(text)
