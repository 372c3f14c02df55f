"""Bounds and rounding of criteria and baselines, exactly."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rows import rows

from siteproof.errors import UserError
from siteproof.sites import Baseline, Criterion, Hardware
from siteproof.units import Limit

M630 = Hardware.model_validate({"peak": "806.4 GFLOPS", "memory": "128 GiB"})


def criterion(**keys):
    return Criterion(description="-", metric="-", source="-", **keys)


def baseline(**keys):
    return Baseline(metric="-", source="-", taken="2026-11-21", **keys)


HPL = criterion(at_least="80 % of peak", rounding="nearest 1 %")
ETHERNET = criterion(at_least="1 GB/s", rounding="nearest 0.1 GB/s")


@rows(
    "gflops, passes",
    [
        ("697", True),  # of 960 GFLOPS it would be 72.6 % and fail
        ("701", True),
        ("645.12", True),
        ("645.1", True),  # the report's own figure is below 80 % and passes by rounding
        ("641.088", True),  # 79.5 %
        ("641.087", False),
        ("641.08", False),
        ("0", False),
    ],
)
def test_traps_J1_and_J2_hpl(gflops, passes):
    assert HPL.met(Decimal(gflops), "GFLOPS", M630) == passes


def test_a_tie_is_rounded_as_the_contract_says():
    usual = criterion(at_least="65 GB/s", rounding="nearest 1 GB/s")
    even = criterion(at_least="65 GB/s", rounding="nearest 1 GB/s", ties="even")
    assert usual.met(Decimal("64.5"), "GB/s")
    assert not even.met(Decimal("64.5"), "GB/s")
    assert even.met(Decimal("64.50001"), "GB/s")
    assert usual.rounding_rule == "nearest 1 GB/s"
    assert even.rounding_rule == "nearest 1 GB/s, ties to even"
    assert even.limit("MB/s") == ("at_least", Limit(Fraction(64500), False))


def test_trap_J2_the_limit_and_both_figures():
    assert HPL.limit("GFLOPS", M630) == ("at_least", Limit(Fraction("641.088"), True))
    assert str(HPL.bound_value(M630)) == "645.12 GFLOPS"
    assert HPL.rounded(Decimal("641.088"), "GFLOPS", M630) == 80
    assert HPL.rounded(Decimal("641.08"), "GFLOPS", M630) == 79


@rows(
    "value, unit, passes",
    [
        ("0.95", "GB/s", True),
        ("0.949999", "GB/s", False),
        ("7.6", "Gb/s", True),
        ("7.599", "Gb/s", False),
        ("8", "Gb/s", True),  # divided by 2**30 it would be 0.93 and fail
        ("0.885", "GiB/s", True),
        ("0.884", "GiB/s", False),
    ],
)
def test_trap_J12_ethernet(value, unit, passes):
    assert ETHERNET.met(Decimal(value), unit) == passes


@rows("value, passes", [("64.5", True), ("64.4999", False), ("65", True)])
def test_stream(value, passes):
    stream = criterion(at_least="65 GB/s", rounding="nearest 1 GB/s")
    assert stream.met(Decimal(value), "GB/s") == passes
    assert stream.limit("MB/s") == ("at_least", Limit(Fraction(64500), True))


@rows("value, passes", [("190.26", True), ("190.25", False)])
def test_trap_J20_ior_prints_mebibytes(value, passes):
    ior = criterion(at_least="200 MB/s", rounding="nearest 1 MB/s")
    assert ior.met(Decimal(value), "MiB/s") == passes


def test_zero_loss_is_exactly_zero():
    loss = criterion(equals="0 %")
    assert loss.met(Decimal("0.00"), "%")
    assert not loss.met(Decimal("0.01"), "%")
    assert loss.limits("%") == (Limit(Fraction(0), True), Limit(Fraction(0), True))
    assert loss.limit("%") == ("equals", Limit(Fraction(0), True))


def test_at_most_rounds_too():
    loss = criterion(at_most="1 %", rounding="nearest 1 %")
    assert loss.met(Decimal("1.49"), "%")
    assert not loss.met(Decimal("1.5"), "%")
    assert loss.limit("%") == ("at_most", Limit(Fraction(3, 2), False))


def test_equals_of_a_number_has_two_limits():
    mtu = criterion(equals="9000 B", rounding="nearest 2 B")
    assert mtu.limits("B") == (Limit(Fraction(8999), True), Limit(Fraction(9001), False))


def test_text_and_report_only_have_no_limit():
    assert criterion(equals="RAID0 pairs").limits("text") == (None, None)
    assert criterion(report_only="no bound").limits("MB/s") == (None, None)
    with pytest.raises(UserError):
        criterion(report_only="no bound").bound_value()


def test_a_share_of_what_the_hardware_lacks():
    with pytest.raises(UserError, match="the hardware has no peak"):
        HPL.met(Decimal(1), "GFLOPS", Hardware())
    with pytest.raises(UserError, match="the hardware has no peak"):
        HPL.limit("GFLOPS")


def test_a_share_of_memory():
    used = criterion(at_least="50 % of memory")
    assert used.met(64, "GiB", M630)
    assert not used.met(64, "GB", M630)


def test_the_tolerance_of_a_baseline():
    usual = baseline(at_least="700 GFLOPS", tolerance="5 %")
    assert usual.limit("GFLOPS") == ("at_least", Limit(Fraction(665), True))
    assert str(usual.bound_value()) == "665 GFLOPS"
    slow = baseline(at_most="10 us", tolerance="20 %")
    assert slow.met(12, "us")
    assert not slow.met(Decimal("12.001"), "us")


def test_the_mode_of_a_contract_is_never_quick():
    conditions = criterion(at_least="1 %", conditions={"memory_share": "0.5"}).conditions
    assert not conditions["mode"].met_by("quick")
    assert conditions["mode"].met_by("acceptance")
    quick = criterion(at_least="1 %", conditions={"mode": "quick"})
    assert quick.conditions["mode"].met_by("quick")


@rows(
    "subject, scope",
    [
        ("node", "every node"),
        ("client", "every node"),
        ("pair", "every pair"),
        ("vm", "system"),
        ("service", "system"),
        ("system", "system"),
    ],
)
def test_the_scope_follows_from_the_subject(subject, scope):
    assert criterion(at_least="1 %", subject=subject).scope == scope


numbers = st.decimals(min_value=0, max_value=10**6, places=3)


@given(
    value=numbers,
    bound=numbers,
    step=st.sampled_from(["0.1", "1", "5", "0.25"]),
    kind=st.sampled_from(["at_least", "at_most", "equals"]),
    ties=st.sampled_from(["away", "even"]),
)
def test_limits_agree_with_met(value, bound, step, kind, ties):
    promise = criterion(**{kind: f"{bound} GB/s"}, rounding=f"nearest {step} GB/s", ties=ties)
    low, high = promise.limits("MB/s")
    raw = Fraction(value) * 1000
    inside = (low is None or raw > low.value or (low.inclusive and raw == low.value)) and (
        high is None or raw < high.value or (high.inclusive and raw == high.value)
    )
    assert promise.met(value, "GB/s") == inside


@rows(
    "made, keys, meant",
    [
        (criterion, {"at_least": "65 GB/s", "max_age": "7 Days"}, "7d, 36h"),
        (criterion, {"at_least": "65 GB/s", "rounding": "1 GB/s"}, "'nearest 1 GB/s'"),
        (criterion, {"at_least": "65 GB/s", "rounding": "nearest 1 Gbps"}, "mean '1 Gb/s'?"),
        (baseline, {"tolerance": "5"}, "0 % to below 100 %"),
        (Baseline, {"metric": "-", "source": "-", "taken": "2026/11/21"}, "2016-04-20"),
    ],
)
def test_another_spelling_is_answered_with_the_right_form(made, keys, meant):
    with pytest.raises(ValidationError) as refused:
        made(**keys)
    first = refused.value.errors()[0]["ctx"]["error"]
    assert meant in f"{first}, {first.allowed}"


@rows("text", ["0", "1461110400", "2026", "2026/21/21"])
def test_a_number_is_no_day(text):
    with pytest.raises(ValidationError, match="is not a date"):
        Baseline(metric="-", source="-", taken=text)
