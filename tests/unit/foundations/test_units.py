"""units: exact, and never a bit for a byte or an MB for an MiB."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from siteproof import units
from siteproof.errors import UserError

NAMES = st.sampled_from(sorted(units.UNITS))
VALUES = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15)


def alike(unit: str) -> list[str]:
    return [name for name in units.UNITS if units.kind(name) == units.kind(unit)]


@given(value=VALUES, unit=NAMES, data=st.data())
def test_there_and_back_again_is_exactly_the_same(value, unit, data):
    other = data.draw(st.sampled_from(alike(unit)))
    assert units.convert(units.convert(value, unit, other), other, unit) == Fraction(value)


@given(value=VALUES, unit=NAMES, data=st.data())
def test_a_way_through_a_third_unit_changes_nothing(value, unit, data):
    second, third = (data.draw(st.sampled_from(alike(unit))) for _ in range(2))
    direct = units.convert(value, unit, third)
    assert units.convert(units.convert(value, unit, second), second, third) == direct


@given(value=VALUES, unit=NAMES)
def test_what_was_written_is_read_again(value, unit):
    quantity = units.Quantity(value, unit)
    assert units.parse(str(quantity)) == quantity
    assert units.parse(f"  {value}{unit} ") == quantity


@given(value=VALUES, unit=NAMES, other=NAMES)
def test_a_unit_of_another_kind_is_refused(value, unit, other):
    if units.kind(unit) == units.kind(other):
        assert units.convert(value, unit, other) * units.convert(1, other, unit) == Fraction(value)
        return
    with pytest.raises(UserError, match="cannot be converted"):
        units.convert(value, unit, other)


@given(small=VALUES, large=VALUES, unit=NAMES, data=st.data())
def test_a_conversion_keeps_the_order(small, large, unit, data):
    other = data.draw(st.sampled_from(alike(unit)))
    converted = [units.convert(value, unit, other) for value in (small, large)]
    assert (small < large) == (converted[0] < converted[1])


def test_known_pairs():
    for text, unit, value in (
        ("1 GB", "B", 10**9),
        ("1 GiB", "B", 2**30),
        ("1 GiB", "GB", Fraction(2**30, 10**9)),
        ("1 GiB/s", "GB/s", Fraction("1.073741824")),
        ("1 MiB", "kB", Fraction("1048.576")),
        ("1 KiB", "B", 1024),
        ("1 kB", "B", 1000),
        ("4 TiB", "GiB", 4096),
        ("10 Gb/s", "GB/s", Fraction("1.25")),
        ("10 Gbit/s", "MB/s", 1250),
        ("9.4 Gb/s", "GB/s", Fraction("1.175")),
        ("1 GB/s", "Gb/s", 8),
        ("8 b/s", "B/s", 1),
        ("78000 MB/s", "GB/s", 78),
        ("806.4 GFLOPS", "TFLOPS", Fraction("0.8064")),
        ("1 x", "%", 100),
        ("80 %", "x", Fraction(4, 5)),
        ("1.5 h", "s", 5400),
        ("2.5 kWh", "MJ", 9),
        ("2 d", "h", 48),
        ("250 us", "ms", Fraction(1, 4)),
        ("2.1 GHz", "MHz", 2100),
        ("7.239e+01 GFLOPS", "MFLOPS", 72390),
        ("0.1 s", "ms", 100),
        ("3 nodes", "count", 3),
    ):
        assert units.parse(text).to(unit) == value, (text, unit, value)


def test_an_unknown_unit_is_refused_with_those_that_are_known():
    for unit in (
        *("gb/s", "KB", "Kb/s", "mb/s", "MBps", "Mbps", "GFLOP", "kiB", "GB/h", "Gb"),
        *("percent", "µs", "", "GiFLOPS", "Gib/s", "GB/s/s", "B/", "MByte/s"),
    ):
        told = refusal(units.parse, f"65 {unit}", "criteria.yaml:14")
        assert told.startswith("criteria.yaml:14: "), unit
        assert "GB/s" in told, unit


def test_what_is_no_number_with_a_unit_is_refused():
    for text in (
        *("", "65", "GB/s", "six GB/s", "6,5 GB/s", "1 000 GB/s", "1.5.2 GB", "nan GB/s"),
        *("inf s", "- 5 s", ".5 GB", "5. GB", "5 GB/s per node", "0x10 B", "1_0 B", None, 65),
        *("1e GB", "٣ GB/s", "1e5000 B"),
    ):
        assert refusal(units.parse, text), text


@given(text=st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_user_error(text):
    try:
        quantity = units.parse(text)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert quantity.value.is_finite() and quantity.unit in units.UNITS


def test_a_huge_exponent_costs_no_time():
    start = time.process_time()
    with pytest.raises(UserError):
        units.parse("1e99999999 GB").to("B")
    assert time.process_time() - start < 1


def test_a_conversion_of_an_unknown_unit_is_refused():
    for unit, to in (("GB", "nonsense"), ("nonsense", "GB")):
        assert "unknown unit" in refusal(units.convert, Decimal(1), unit, to), unit


def test_a_rate_is_no_size_and_a_percentage_point_is_no_share():
    with pytest.raises(UserError, match="a size cannot be converted to a rate"):
        units.convert(1, "GB", "GB/s")
    with pytest.raises(UserError):
        units.convert(1, "pp", "%")


def test_a_plausible_spelling_is_answered_with_the_right_one():
    for kind, typed, meant in (
        ("time", "10m", "'10 min'"),
        ("time", "1h30m", "'90 min'"),
        ("time", "1h30", "'90 min'"),
        ("time", "0d0h10m0s", "'10 min'"),  # as ReFrame has it
        ("time", "00:10:00", "'10 min'"),
        ("time", "10:00", "'10 min'"),  # as Slurm reads it
        ("time", "1-12:00:00", "'36 h'"),
        ("time", "2 hours", "'2 h'"),
        ("time", "30sec", "'30 s'"),
        ("time", "5 \u00b5s", "'5 us'"),
        ("size", "128G", "'128 GB' or '128 GiB'"),
        ("size", "128 gib", "'128 GiB'"),
        ("size", "128 Gb", "'128 GB'"),
        ("size", "64 gibibytes", "'64 GiB'"),
        ("size", "1,024 GiB", "'1024 GiB'"),
        ("size", "2,5 TB", "'2.5 TB'"),
        ("rate", "100 Gbps", "'100 Gb/s'"),
        ("rate", "100G", "'100 Gb/s'"),
        ("rate", "200 Gigabits per second", "'200 Gb/s'"),
        ("rate", "65 GB/sec", "'65 GB/s'"),
        ("rate", "65 GBs", "'65 GB/s'"),
        ("rate", "10 GB", "'10 GB/s'"),
        ("flops", "3.2 TFlop/s", "'3.2 TFLOPS'"),
        ("flops", "1 PF", "'1 PFLOPS'"),
        ("frequency", "2100MHZ", "'2100 MHz'"),
        ("frequency", "2.1G", "'2.1 GHz'"),
        ("share", "80 percent", "'80 %'"),
        ("iops", "10k IOPS", "'10 kIOPS'"),
        ("", "65 GB/sec", "'65 GB/s'"),
    ):
        assert units.hint(typed, kind) == f" (did you mean {meant}?)", (kind, typed, meant)
        for text in meant.split(" or "):
            assert not kind or units.kind(units.parse(text.strip("'")).unit) == kind, (
                kind,
                typed,
                meant,
            )


@given(text=st.text(max_size=12), kind=st.sampled_from(["", "time", "size", "rate", "share"]))
def test_what_a_hint_proposes_can_be_read(text, kind):
    near = units.hint(text, kind)
    for one in (
        near.removeprefix(" (did you mean ").removesuffix("?)").split(" or ") if near else ()
    ):
        units.parse(one.strip("'"), wanted=kind)


def test_what_cannot_be_understood_is_answered_with_nothing():
    for text in ("", "ten minutes", "10 parsecs", "0:00", "GiB", "-", "1e5"):
        assert units.hint(text, "time") == "", text
