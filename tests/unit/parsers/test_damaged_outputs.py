"""Every parser against damage to recorded outputs that nobody has recorded yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from itertools import pairwise
from random import Random

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from parsed import TOOLS, attempt, expected, metrics, proven, whole
from random_cases import cases, sources
from recorded import good, words

CONTROLS = ("\x7f", "\\u001b")  # the second one as JSON has it


def damaged(most: int, tools: Iterable[str] = TOOLS):
    """A test of each tool's good outputs with random damage: of so many cases a tool."""

    def of_case(judge: Callable[[str, str, Random], None]) -> Callable[[], None]:
        def test() -> None:
            for tool in tools:
                for chance in sources(f"{judge.__name__} {tool}", most):
                    text = chance.choice(good(tool))
                    try:
                        judge(tool, text, chance)
                    except Exception as error:
                        error.add_note(f"{tool}, in an output that begins with {text[:80]!r}")
                        raise

        return test

    return of_case


@damaged(150)
def test_an_output_cut_anywhere_gives_the_whole_answer_or_none(tool, text, chance):
    cut = attempt(tool, text[: chance.randint(0, len(text))])
    assert cut == whole(tool, text)[: len(cut)]


@damaged(150)
def test_an_output_whose_beginning_is_lost_gives_the_whole_answer_or_none(tool, text, chance):
    rest = attempt(tool, text[chance.randint(0, len(text)) :])
    assert {r.metric for r in rest} <= {r.metric for r in whole(tool, text)}


@damaged(300)
def test_flipped_bytes_give_readings_or_an_output_error(tool, text, chance):
    flipped = bytearray(text.encode("utf-8"))
    for _ in range(chance.randint(1, 8)):
        flipped[chance.randrange(len(flipped))] ^= chance.randint(1, 255)
    attempt(tool, flipped.decode("utf-8", errors="replace"))


@damaged(300, [tool for tool in TOOLS if proven(tool)])
def test_one_digit_changed_in_a_figure_never_moves_it_far(tool, text, chance):
    at = chance.choice([match.start() for match in re.finditer("[0-9]", text)])
    true = {(r.metric, *r.dims.items()): r.value for r in whole(tool, text)}
    for reading in attempt(tool, text[:at] + chance.choice("0123456789") + text[at + 1 :]):
        key = (reading.metric, *reading.dims.items())
        # A message of few bytes has a time and no bandwidth (0.00) that could agree with it.
        alone = reading.metric == "latency" and ("bandwidth", *key[1:]) not in true
        if reading.metric in proven(tool) and key in true and not alone:
            assert abs(reading.value / true[key] - 1) < Decimal(1), reading


@cache
def numbers(text: str) -> list[str]:
    return sorted({word for word in text.replace("=", " ").split() if word[0].isdigit()})


@damaged(150, [tool for tool in TOOLS if metrics(tool)])
def test_a_text_put_where_a_number_stands_never_raises_another_error(tool, text, chance):
    strange = ["nan", "-inf", "1e999", "9" * 5000, "1,5", "٣", "²", "0x10", "1_0", "--", "1e-99"]
    attempt(tool, text.replace(chance.choice(numbers(text)), chance.choice([*strange, "0"])))


@cases(150)
@given(text=st.text(max_size=400))
def test_random_text_gives_no_reading(text):
    assert [tool for tool in TOOLS if attempt(tool, text)] == []


@pytest.mark.deep
def test_an_output_cut_after_any_line_gives_the_whole_answer_or_none():
    for tool in TOOLS:
        for text in good(tool):
            lines = text.splitlines(keepends=True)
            for end in range(len(lines)):
                cut = attempt(tool, "".join(lines[:end]))
                # Where several tests of likwid-bench follow each other, a cut between two of them
                # leaves a complete output of the first; the check then misses the second's metric.
                several = "yes" in words(tool, "parts")
                of_all = whole(tool, text)
                assert cut in ([], of_all) or (several and cut == of_all[: len(cut)]), (tool, end)


def test_the_same_output_twice_is_refused():
    twice = [(tool, f"{text}\n{text}") for tool in TOOLS for text in good(tool)]
    assert [(tool, text[:80]) for tool, text in twice if attempt(tool, text)] == []


@pytest.mark.deep
def test_the_output_of_another_tool_is_refused():
    texts = [o for o in recorded.all_of() if o.good or o.path.stem == "garbage"]
    wrong = [
        (tool, output.name)
        for tool in TOOLS
        for output in texts
        # HPCC's file holds a whole output of HPL.
        if output.tool not in {tool, "blas"} and tool not in words(output.tool, "holds")
        if attempt(tool, output.text)
    ]
    assert wrong == []


def shown(output: recorded.Output, control: str, places: list[int]) -> list[str]:
    """The lines that pass a control character on, which is put into these places of an output.

    Into all at once, and into each half of them where that has changed what the parser makes of it.
    """
    pieces = [output.text[begin:end] for begin, end in pairwise([0, *places, None])]
    made = expected(output.tool, control.join(pieces))
    if found := [line for line in made.split("\n") if not line.isprintable()]:
        return found
    if made == output.expected or len(places) < 2:
        return []
    middle = len(places) // 2
    return shown(output, control, places[:middle]) or shown(output, control, places[middle:])


@pytest.mark.deep
def test_no_control_character_that_a_tool_printed_comes_through():
    found, tried = {}, set()
    for output in sorted(recorded.all_of(), key=lambda output: not output.good):
        places = []
        for line in re.finditer(r".+", output.text):
            # Outputs of a tool have most lines in common, but for their numbers.
            kind = output.tool, re.sub("[0-9]+", "0", line[0])
            if kind not in tried:
                words_in = re.finditer(r"\b\w", line[0])
                places += [line.start() + word.end() for word in words_in]
            tried.add(kind)
        for control in CONTROLS if "{" in output.text else CONTROLS[:1]:
            if lines := shown(output, control, places):
                found[output.name, control] = lines
    assert found == {}
