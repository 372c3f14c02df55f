"""Damage that nobody has recorded yet: read right or refused by name, never a traceback."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from batches import columns, rows
from clone import FOREIGN
from hypothesis import example, given, settings
from hypothesis import strategies as st

from siteproof.errors import UserError, harmless

LOGS = [
    FOREIGN / name
    for name in (
        *("4.10-default/StreamTest.log", "4.10-default/FailTest.log"),
        *("4.10-multiline/StreamTest.log", "4.10-own-words/StreamTest.log"),
        *("4.0-default/StreamTest_1ace2c60.log", "4.3-excalibur/StreamTest.log"),
        "3.12-default/StreamTest_4.log",
    )
]
FEW = settings(max_examples=max(4, settings.default.max_examples // 16))  # a file each


def written(folder, head, lines):
    """A perflog of these lines."""
    path = folder.mktemp("log") / "Test.log"
    path.write_text("".join(f"{line}\n" for line in (head, *lines)))
    return path


@st.composite
def damage(draw, text):
    """A text with one edit."""
    at = draw(st.integers(0, max(0, len(text) - 1)))
    to = draw(st.integers(at, len(text)))
    kind = draw(st.sampled_from(["cut", "insert", "end", "twice", "replace"]))
    word = draw(
        st.sampled_from(
            [
                *("|", "||", "=", ",", ".", "-", "0", "e9", "nan", "null", "\x00", "\x1f", "\x7f"),
                *("\t", " ", "\u00e9", "\udcff", "{", "@", "%", "\r", "1" * 40, "x" * 3000),
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


def form_of(path):
    """The format that a recording without a line of names needs."""
    return "3.x" if path.parent.name.startswith("3.") else ""


@cache
def undamaged(path):
    """A recorded file as it is read, once for all of its damages."""
    batch = rows(path, format=form_of(path))
    return columns(batch), batch.numbers


def row(held, index):
    return tuple(str(held[name][index]) for name in sorted(held) if name != "file")


@pytest.mark.deep
@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.parent.name)
@given(data=st.data())
@FEW
def test_a_damaged_line_is_read_as_it_stands_or_refused_and_no_other_line_changes(
    tmp_path_factory, path, data
):
    """Each damaged line stands between two good ones, some to a file."""
    lines = path.read_text().split("\n")[:-1]
    head, good = (lines[:1], lines[1]) if "completion_time" in lines[0] else ([], lines[0])
    bad = data.draw(st.lists(damage(good), min_size=3, max_size=6))
    text = [*head, good, *(line for each in bad for line in (each, good)), ""]
    target = tmp_path_factory.mktemp("damage") / "Test.log"
    target.write_bytes("\n".join(text).encode("utf-8", "surrogateescape"))
    batch = rows(target, format=form_of(path))
    held, (whole, numbers) = columns(batch), undamaged(path)
    first = len(head) + 1
    each = numbers.count(first)
    left = list(batch.refused)
    for number, line in enumerate(text[first - 1 : -1], start=first):
        found = [i for i, of_line in enumerate(batch.numbers) if of_line == number]
        refused = [told for told in left if f":{number}: " in told]
        left = [told for told in left if told not in refused]
        if (number - first) % 2 == 0:
            assert [row(held, i) for i in found] == [row(whole, i) for i in range(each)], number
            assert refused == [], number
        elif found:
            assert refused == [], number
            _as_it_stands(batch, found, line)
        else:
            assert refused or not line.strip() or batch.silent, number
    assert left == []


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
def test_a_number_is_the_nearest_float_to_its_digits(tmp_path_factory, texts):
    head = "job_completion_time|name|rate_value|rate_unit"
    lines = [f"2026-11-21T19:39:48|Test|{text}|s" for text in texts]
    batch = rows(written(tmp_path_factory, head, lines))
    held = columns(batch)
    found = {number: i for i, number in enumerate(batch.numbers)}
    for number, text in enumerate(texts, start=2):
        if number not in found:
            assert _is_no_value_of_a_test(text)
            continue
        value, digits = held["value"][found[number]], held["digits"][found[number]]
        if math.isfinite(float(text)):
            assert (value, digits) == (float(text), text)
        else:
            assert (value, held["status"][found[number]]) == (None, "invalid")


def _is_no_value_of_a_test(text):
    try:
        number = float(text)
    except ValueError:
        return True
    # An exponent of five digits, or a number beyond measure.
    return re.search("[eE][-+]?[0-9]{5}", text) or abs(math.log10(abs(number))) > 50


ZONES = st.sampled_from(
    [
        *("UTC", "Europe/Zurich", "America/Chicago", "Asia/Kolkata", "Australia/Lord_Howe"),
        "Pacific/Chatham",
    ]
)


@given(st.lists(st.datetimes(datetime(2000, 1, 2), datetime(2099, 12, 30)), min_size=1), ZONES)
@example([datetime(2012, 11, 4, 1, fold=1)], "America/Chicago")
@FEW
def test_times_are_those_of_pythons_datetime(tmp_path_factory, moments, name):
    zone = ZoneInfo(name)
    head = "job_completion_time|name|rate_value|rate_unit"
    for given_zone in (None, zone):
        texts = [m.replace(tzinfo=given_zone).isoformat() for m in moments]
        path = written(tmp_path_factory, head, [f"{text}|Test|1.5|s" for text in texts])
        batch = rows(path, zone=name)
        assert bool(batch.notes) == (given_zone is None)
        for moment, found in zip(moments, columns(batch)["time"], strict=True):
            # A text without a zone cannot say which of two hours in autumn it means.
            folds = [moment.fold] if given_zone else [0, 1]
            local = [moment.replace(tzinfo=zone, fold=fold) for fold in folds]
            assert found.replace(tzinfo=UTC) in [time.astimezone(UTC) for time in local]


@given(st.data())
@settings(FEW, max_examples=2 * FEW.max_examples)
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
