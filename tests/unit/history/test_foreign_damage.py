"""Damage that nobody has recorded yet: read right or refused by name, never a traceback."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from batches import columns, rows
from clone import FOREIGN
from hypothesis import example, given, settings
from hypothesis import strategies as st

from siteproof.errors import UserError, harmless
from siteproof.history.foreign import cells, times, values

LOGS = [
    FOREIGN / name
    for name in (
        "4.10-default/StreamTest.log",
        "4.10-default/PipeTest.log",
        "4.10-multiline/StreamTest.log",
        "4.10-own-words/StreamTest.log",
        "4.0-default/StreamTest_1ace2c60.log",
        "4.3-excalibur/StreamTest.log",
        "3.12-default/StreamTest_4.log",
    )
]
FEW = settings(max_examples=30)


def as_cells(texts):
    """Texts as rows of bytes, and their lengths."""
    data = np.frombuffer("".join(texts).encode() + bytes(64), dtype=np.uint8)
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - [len(text) for text in texts]
    return cells.gather(data, starts, ends), ends - starts


@st.composite
def damage(draw, text):
    """A text with one edit."""
    at = draw(st.integers(0, max(0, len(text) - 1)))
    to = draw(st.integers(at, len(text)))
    kind = draw(st.sampled_from(["cut", "insert", "end", "twice", "replace"]))
    word = draw(
        st.sampled_from(
            [
                "|",
                "||",
                "=",
                ",",
                ".",
                "-",
                "0",
                "e9",
                "nan",
                "null",
                "\x00",
                "\x1f",
                "\x7f",
                "\t",
                " ",
                "\u00e9",
                "\udcff",
                "{",
                "@",
                "%",
                "\r",
                "1" * 40,
                "x" * 3000,
            ]
        )
    )
    return {
        "cut": text[:at] + text[to:],
        "insert": text[:at] + word + text[at:],
        "end": text[:at],
        "twice": text[:to] + text[at:to] + text[to:],
        "replace": text[:at] + word + text[to:],
    }[kind]


def row(held, index):
    return tuple(str(held[name][index]) for name in sorted(held) if name != "file")


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.parent.name)
@given(data=st.data())
@FEW
def test_a_damaged_line_is_read_as_it_stands_or_refused_and_no_other_line_changes(
    tmp_path_factory, path, data
):
    lines = path.read_text().split("\n")[:-1]
    named = "completion_time" in lines[0]
    good = lines[1] if named else lines[0]
    bad = data.draw(damage(good))
    target = tmp_path_factory.mktemp("damage") / "Test.log"
    head = [lines[0]] if named else []
    target.write_bytes("\n".join([*head, good, bad, good, ""]).encode("utf-8", "surrogateescape"))
    batch, alone = rows(target), rows(path)
    held, whole = columns(batch), columns(alone)
    number = len(head) + 2
    each = sum(alone.lines["number"][alone.figures["line"]] == len(head) + 1)
    lines_read = batch.lines["number"].tolist()
    assert all(f":{number}: " in told for told in batch.refused)
    assert [n for n in lines_read if n != number] == sorted({n for n in lines_read if n != number})
    assert {number - 1, number + 1} <= set(lines_read)
    number_of = np.sort(batch.lines["number"][batch.figures["line"]])
    for index in range(each):
        assert row(held, index) == row(whole, index)
        assert row(held, len(batch) - each + index) == row(whole, index)
    told = " ".join(batch.told)
    if number in number_of:
        assert batch.refused == []
        _as_it_stands(batch, np.flatnonzero(number_of == number), bad)
    else:
        assert batch.refused or not bad.strip() or "measure nothing" in told


def _as_it_stands(batch, indices, line):
    """Whatever is said of a line stands in it, letter by letter."""
    held, line = columns(batch), harmless(line)
    for i in indices:
        for name in ("digits", "unit", "check_name", "partition", "environment", "node", "job"):
            assert str(held[name][i] or "") in line, name
        for key, text in json.loads(held["dims"][i]).items():
            assert key in line
            assert text in line


@given(
    st.lists(
        st.one_of(
            st.floats().map(repr),
            st.decimals(allow_nan=False, allow_infinity=False).map(str),
            st.integers(-(10**20), 10**20).map(str),
            st.text("0123456789.-+eE", min_size=1, max_size=30),
        ),
        min_size=1,
        max_size=30,
    )
)
@example(["0E00000"])
@FEW
def test_a_number_is_the_nearest_float_to_its_digits(texts):
    found = values.numbers(*as_cells(texts))
    for text, value, digits, kind in zip(
        texts, found.values, found.digits, found.kinds, strict=True
    ):
        try:
            number = float(text)
        except ValueError:
            number = None
        if number is None:
            assert kind == values.REFUSED
        elif kind == 0:
            assert math.copysign(1, value) == math.copysign(1, number) or number == 0
            assert value == number
            assert (str(number) if digits is None else digits) == text
        elif math.isfinite(number):
            odd = re.search("[eE][-+]?[0-9]{5}", text)  # an exponent that no test prints
            assert odd or abs(math.log10(abs(number))) > 50
        else:
            assert kind in (values.NOT_FINITE, values.REFUSED)


ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Zurich",
        "America/Chicago",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Pacific/Chatham",
    ]
)


@given(st.lists(st.datetimes(datetime(2000, 1, 2), datetime(2099, 12, 30)), min_size=1), ZONES)
@example([datetime(2012, 11, 4, 1, fold=1)], "America/Chicago")
@FEW
def test_times_are_those_of_pythons_datetime(moments, name):
    zone = ZoneInfo(name)
    for told in (None, zone):
        texts = [m.replace(tzinfo=told).isoformat() for m in moments]
        data = "|".join(texts).encode()
        ends = np.cumsum([len(text) + 1 for text in texts]) - 1
        starts = ends - [len(text) for text in texts]
        text = np.frombuffer(data + bytes(64), dtype=np.uint8)
        found, naive = times.of_texts(text, starts, ends, times.zone(name))
        assert naive == (told is None)
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        # A text without a zone cannot say which of two hours in autumn it means: it is the first.
        wanted = [m.replace(tzinfo=zone, fold=m.fold if told else 0) - epoch for m in moments]
        assert found.tolist() == [
            (w.days * 86400 + w.seconds) * 1_000_000 + w.microseconds for w in wanted
        ]


@given(st.data())
@settings(max_examples=60)
def test_a_damaged_report_is_read_or_refused(tmp_path_factory, data):
    text = (FOREIGN / "reports" / "4.10-retries.json").read_text()
    path = tmp_path_factory.mktemp("damage") / "report.json"
    path.write_bytes(data.draw(damage(text)).encode("utf-8", "surrogateescape"))
    try:
        batch = rows(path)
    except UserError as error:
        assert str(error).isprintable()
    else:
        assert len(batch) + len(batch.refused) > 0 or '"perfvalues": {' not in path.read_text()


@given(st.binary(max_size=3000))
@FEW
def test_bytes_of_any_kind_below_a_line_of_names_are_refused_line_by_line(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "Test.log"
    head = LOGS[0].read_bytes().split(b"\n")[0]
    path.write_bytes(head + b"\n" + junk)
    batch = rows(path)
    *whole, rest = junk.split(b"\n")
    filled = [line for line in whole if line.strip()] + ([rest] if rest else [])
    assert len(batch) == 0
    assert len(batch.refused) == len(filled)
    assert all(text.isprintable() for text in batch.refused)
