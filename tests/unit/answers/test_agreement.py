"""ReFrame, the verdict and arithmetic by hand say the same of a value, on and beside the bound.

The contracts are random: bounds and shares of a fact, rounding steps, units of one kind mixed. What
is expected is worked out here in fractions, without Siteproof's units, rounding or limits.
"""

import json
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import reframe.utility.sanity as sn
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import rounds
from reframe.core.exceptions import SanityError

from siteproof.answers.criterion import Verdict, judge
from siteproof.checks import missing
from siteproof.record.samples import Header, Sample
from siteproof.sites import Baseline, Criterion, Metric, Site, System

# Sizes in base units, written down here once more on purpose.
RULES = ["nearest", "even"]  # that by_hand knows
KINDS = {
    "rate": {
        "MB/s": Fraction(10**6),
        "GB/s": Fraction(10**9),
        "MiB/s": Fraction(2**20),
        "GiB/s": Fraction(2**30),
        "Gb/s": Fraction(10**9, 8),
        "Mb/s": Fraction(10**6, 8),
        "B/s": Fraction(1),
        "kB/s": Fraction(1000),
    },
    "flops": {"GFLOPS": Fraction(10**9), "TFLOPS": Fraction(10**12), "MFLOPS": Fraction(10**6)},
    "time": {
        "s": Fraction(1),
        "ms": Fraction(1, 1000),
        "us": Fraction(1, 10**6),
        "min": Fraction(60),
    },
    "count": {"count": Fraction(1)},
    "share": {"%": Fraction(1, 100), "x": Fraction(1)},
}
HEADER = Header(
    "s",
    "here",
    "all",
    "system",
    "Check",
    "1",
    "2026-11-21T00:00:00+00:00",
    mode="acceptance",
    conditions={"program": "tool"},
)


def site(criteria, unit, better="higher", baselines=None, peak=None, nodes="n[1-3]"):
    """A site of one role whose only metric is Check.figure."""
    system = System(
        system="here",
        description="here",
        recognise={"hostname": "here"},
        nodes={"node": {"set": nodes, "hardware": "kind"}},
        hardware={"kind": {"peak": peak} if peak else {}},
        partitions={"all": {"description": "all", "role": "node", "environments": ["e"]}},
        environments={"e": {"description": "e"}},
    )
    metric = Metric(check="Check", file="x.py", unit=unit, better=better, description="A figure.")
    return Site("here", Path("here"), system, criteria, baselines or {}, {"Check.figure": metric})


def criterion(**keys):
    return Criterion(
        **{
            "description": "d",
            "metric": "Check.figure",
            "source": "s",
            "scope": "every node",
            **keys,
        }
    )


def samples(values, unit, **keys):
    return [
        Sample(HEADER, f"n{i}", "Check.figure", value, unit, **keys)
        for i, value in enumerate(values, 1)
    ]


def reframe_says(described, measured, mode="acceptance"):
    """Whether ReFrame's own assertions hold with our references."""
    try:
        for _, value, _, reference in missing.compared(
            described, "Check", "figure", mode, measured
        ):
            sn.evaluate(sn.assert_reference(value, *reference))
    except SanityError:
        return False
    return True


def verdict_says(described, measured):
    """The verdict on each criterion, and whether all of them pass."""
    facts = {n: described.hardware_of("node") for n in described.expected("node")}
    usual = {n: list(described.baselines.values()) for n in facts}
    return [judge(key, c, measured, facts, usual).verdict for key, c in described.criteria.items()]


def rounding(rule, step):
    """The keys of a criterion for a rule."""
    return {"rounding": f"nearest {step}", "ties": "even" if rule == "even" else "away"}


def by_hand(kind, bound, step, value, rule="nearest"):
    """Rounding in plain arithmetic; all in one unit. Python rounds fractions half to even."""
    if step:
        steps = value / step
        whole = int(abs(steps) + Fraction(1, 2)) if rule == "nearest" else round(abs(steps))
        value = whole * step * (1 if steps >= 0 else -1)
    return (
        value >= bound
        if kind == "at_least"
        else value <= bound
        if kind == "at_most"
        else value == bound
    )


def decimal_text(rng, digits=4, places=3):
    places = rng.randint(0, places)
    number = Decimal(rng.randint(1, 10**digits - 1)).scaleb(-places)
    return f"{number:f}"


def printed(value, digits):
    """A fraction as a tool prints it, cut to so many significant digits."""
    if value == 0:
        return Decimal(0)
    text = f"{Decimal(value.numerator) / Decimal(value.denominator):.{digits}g}"
    return Decimal(f"{Decimal(text):f}")


def values_near(rng, exact):
    """On the bound where a decimal can say so, just above, just below, and far from it."""
    on = printed(exact, rng.choice([12, 15]))
    near = Decimal(1).scaleb(on.adjusted() - rng.choice([3, 6, 11, 14]))
    far = Decimal(rng.randint(1, 3))
    return [on, on + near, on - near, on * far, on / 2 if on.adjusted() < 30 else on]


@rounds(400, 10_000)
@pytest.mark.deep
def test_random_contracts_are_judged_alike_three_times(count):
    rng = random.Random(20261121)
    compared = passed = 0
    for _ in range(count):
        sizes = KINDS[rng.choice(list(KINDS))]
        unit, theirs, of_step = (rng.choice(list(sizes)) for _ in range(3))
        kind = rng.choice(["at_least", "at_most", "equals"])
        text, step, rule = decimal_text(rng), None, rng.choice(RULES)
        keys = {kind: f"{text} {theirs}"}
        if rng.random() < 0.6:
            step_text = rng.choice(["1", "0.1", "0.5", "10", "5", "0.05", "3", "100", "0.25"])
            keys |= rounding(rule, f"{step_text} {of_step}")
            step = Fraction(step_text) * sizes[of_step]
        bound = Fraction(text) * sizes[theirs]
        described = site({"C": criterion(**keys)}, unit, rng.choice(["higher", "lower"]))
        edges = [bound] + ([bound - step / 2, bound + step / 2] if step else [])
        for value in values_near(rng, rng.choice(edges) / sizes[unit]):
            expected = by_hand(kind, bound, step, Fraction(value) * sizes[unit], rule)
            measured = samples([value] * 3, unit)
            told = verdict_says(described, measured) == [Verdict.PASS]
            reframe = reframe_says(described, measured)
            assert told is expected, (keys, unit, value)
            assert reframe is expected, (
                keys,
                unit,
                value,
                missing.compared(described, "Check", "figure", "acceptance", measured),
            )
            compared, passed = compared + 1, passed + expected
    assert 0 < passed < compared


PRINTED = st.builds(  # what a tool prints: up to 15 digits
    lambda digits, places: Decimal(digits).scaleb(-places),
    st.integers(1, 10**15 - 1),
    st.integers(0, 24),
)


@given(
    bound=PRINTED,
    kind=st.sampled_from(["at_least", "at_most", "equals"]),
    step=st.sampled_from([None, "1", "0.1", "5", "3"]),
    rule=st.sampled_from(RULES),
    units=st.sampled_from(
        [("MB/s", "MB/s"), ("Gb/s", "MiB/s"), ("GiB/s", "kB/s"), ("B/s", "Mb/s")]
    ),
    away=st.integers(-2, 2),
)
@settings(max_examples=200)
@pytest.mark.deep
def test_all_that_a_tool_prints_beside_a_bound_is_judged_alike(
    bound, kind, step, rule, units, away
):
    theirs, unit = units
    sizes = KINDS["rate"]
    step_size = Fraction(step) * sizes[theirs] if step else None
    keys = rounding(rule, f"{step} {theirs}") if step else {}
    described = site({"C": criterion(**{kind: f"{bound} {theirs}"}, **keys)}, unit)
    exact = Fraction(bound) * sizes[theirs]
    for edge in [exact] + ([exact - step_size / 2, exact + step_size / 2] if step else []):
        on = printed(edge / sizes[unit], 15)
        value = on + away * Decimal(1).scaleb(on.adjusted() - 14)
        if value <= 0:
            continue
        expected = by_hand(kind, exact, step_size, Fraction(value) * sizes[unit], rule)
        measured = samples([value] * 3, unit)
        assert (verdict_says(described, measured) == [Verdict.PASS]) is expected
        assert reframe_says(described, measured) is expected


def test_a_figure_with_more_digits_than_a_float_is_judged_alike():
    for kind in ("at_least", "at_most", "equals"):
        described = site({"C": criterion(**{kind: "5 s"})}, "s")
        for figure in ("4.99999999999999999999", "5", "5.00000000000000000001"):
            measured = samples([Decimal(figure)] * 3, "s")
            passes = verdict_says(described, measured) == [Verdict.PASS]
            assert passes is by_hand(kind, Fraction(5), None, Fraction(figure)), (kind, figure)
            assert reframe_says(described, measured) is passes, (kind, figure)


def test_a_mean_just_below_its_bound_is_below_it_for_reframe():
    described = site({"C": criterion(at_least="5 s", scope="mean")}, "s")
    measured = samples([Decimal(5), Decimal("4.99999999999999"), Decimal("5.00000000000001")], "s")
    assert reframe_says(described, measured)
    measured[2] = samples([Decimal("5.0000000000000099999")] * 3, "s")[2]
    assert verdict_says(described, measured) == [Verdict.FAIL]
    assert not reframe_says(described, measured)


@rounds(150, 2000)
@pytest.mark.deep
def test_shares_of_a_fact_are_judged_alike(count):
    rng = random.Random(4)
    for _ in range(count):
        peak, share = decimal_text(rng), str(rng.randint(1, 100))
        step = rng.choice([None, "1", "0.1", "5", "0.5"])
        keys = {"at_least": f"{share} % of peak"} | (
            {"rounding": f"nearest {step} %"} if step else {}
        )
        described = site({"C": criterion(**keys)}, "GFLOPS", peak=f"{peak} GFLOPS")
        edge = Fraction(share) - (Fraction(step) / 2 if step else 0)
        for value in values_near(rng, edge * Fraction(peak) / 100):
            percent = Fraction(value) / Fraction(peak) * 100
            expected = by_hand("at_least", Fraction(share), step and Fraction(step), percent)
            measured = samples([value] * 3, "GFLOPS")
            assert (verdict_says(described, measured) == [Verdict.PASS]) is expected
            assert reframe_says(described, measured) is expected, (keys, peak, value)


@rounds(80, 1000)
@pytest.mark.deep
def test_two_bounds_on_one_metric_hold_at_once_and_exactly(count):
    rng = random.Random(5)
    for _ in range(count):
        low, high = sorted(Decimal(decimal_text(rng)) for _ in range(2))
        described = site(
            {"L": criterion(at_least=f"{low} s"), "H": criterion(at_most=f"{high} s")},
            "s",
            rng.choice(["higher", "lower"]),
        )
        for value in [*values_near(rng, Fraction(low)), *values_near(rng, Fraction(high))]:
            measured = samples([value] * 3, "s")
            expected = low <= value <= high
            assert (set(verdict_says(described, measured)) == {Verdict.PASS}) is expected
            assert reframe_says(described, measured) is expected, (low, high, value)


def test_zero_mismatches_and_not_one():
    for keys in ({"at_most": "0 count"}, {"equals": "0 count"}):
        described = site({"C": criterion(**keys)}, "count", "lower")
        assert reframe_says(described, samples([Decimal(0)] * 3, "count"))
        assert not reframe_says(described, samples([Decimal(0), Decimal(1), Decimal(0)], "count"))


def test_contracts_that_contradict_each_other_let_nothing_pass():
    described = site({"L": criterion(at_least="5 s"), "H": criterion(at_most="3 s")}, "s")
    for value in (2, 3, 4, 5, 6):
        assert not reframe_says(described, samples([Decimal(value)] * 3, "s"))


def test_the_worst_node_decides_for_both():
    described = site({"C": criterion(at_least="5 s")}, "s")
    measured = samples([Decimal(9), Decimal(4), Decimal(9)], "s")
    assert verdict_says(described, measured) == [Verdict.FAIL]
    assert not reframe_says(described, measured)


def test_a_node_measured_with_another_program_hides_no_failure():
    described = site({"C": criterion(at_least="5 s", programs=["tool"])}, "s")
    stand_in = Sample(
        HEADER, "n1", "Check.figure", Decimal(1), "s", own_conditions={"program": "stand-in"}
    )
    measured = [stand_in, *samples([Decimal(9), Decimal(4), Decimal(9)], "s")[1:]]
    assert not reframe_says(described, measured)
    assert verdict_says(described, measured) == [Verdict.FAIL]


@rounds(100, 1000)
def test_medians_and_means_are_judged_alike(count):
    rng = random.Random(6)
    for _ in range(count):
        values = [Decimal(rng.randint(1, 40)) / 4 for _ in range(rng.choice([1, 2, 3, 4]))]
        nodes = f"n[1-{len(values)}]" if len(values) > 1 else "n1"
        middle = sorted(map(Fraction, values))
        half = len(values) // 2
        median = middle[half] if len(values) % 2 else (middle[half - 1] + middle[half]) / 2
        for scope, figure in (("median", median), ("mean", sum(middle) / len(middle))):
            bound = rng.choice([Decimal(5), printed(figure, 4)])
            for kind in ("at_least", "at_most"):
                described = site(
                    {"C": criterion(**{kind: f"{bound} s"}, scope=scope)},
                    "s",
                    rng.choice(["higher", "lower"]),
                    nodes=nodes,
                )
                expected = by_hand(kind, Fraction(bound), None, figure)
                assert (verdict_says(described, samples(values, "s")) == [Verdict.PASS]) is expected
                assert reframe_says(described, samples(values, "s")) is expected


def test_a_median_of_more_nodes_than_one_job_has_is_left_to_the_verdict():
    described = site({"C": criterion(at_least="5 s", scope="median")}, "s", nodes="n[1-9]")
    assert reframe_says(described, samples([Decimal(1)] * 3, "s"))
    assert verdict_says(described, samples([Decimal(1)] * 3, "s")) == [Verdict.INCOMPLETE]


def test_a_baseline_counts_in_a_maintenance_and_regresses():
    usual = Baseline(
        metric="Check.figure", at_least="10 s", tolerance="5 %", source="s", taken="2026-11-21"
    )
    described = site({"C": criterion(at_least="5 s")}, "s", baselines={"B": usual})
    for value, verdict in (
        (Decimal("9.5"), Verdict.PASS),
        (Decimal("9.4999"), Verdict.REGRESSED),
        (Decimal("4.9"), Verdict.FAIL),
    ):
        measured = samples([value] * 3, "s")
        assert verdict_says(described, measured) == [verdict]
        assert reframe_says(described, measured, "maintenance") is (verdict is Verdict.PASS)
        assert reframe_says(described, measured, "acceptance") is (verdict is not Verdict.FAIL)


def test_a_baseline_of_the_median_says_nothing_of_a_node():
    usual = Baseline(
        metric="Check.figure", at_least="10 s", scope="median", source="s", taken="2026-11-21"
    )
    each = site({"C": criterion(at_least="5 s")}, "s", baselines={"B": usual})
    middle = site({"C": criterion(at_least="5 s", scope="median")}, "s", baselines={"B": usual})
    measured = samples([Decimal(9), Decimal(11), Decimal(12)], "s")
    assert verdict_says(each, measured) == verdict_says(middle, measured) == [Verdict.PASS]
    assert reframe_says(each, measured, "maintenance")
    low = samples([Decimal(9), Decimal(9), Decimal(12)], "s")
    assert verdict_says(each, low) == [Verdict.PASS]
    assert verdict_says(middle, low) == [Verdict.REGRESSED]
    assert not reframe_says(middle, low, "maintenance")


def test_a_bound_in_any_unit_is_exact():
    for bound, passes in (
        ("5288.04 MB/s", True),
        ("5288.041 MB/s", False),
        ("5.28804 GB/s", True),
        ("42.30432 Gb/s", True),
        ("42.30433 Gb/s", False),
        ("5043.06 MiB/s", True),
        ("5043.07 MiB/s", False),
    ):
        described = site({"C": criterion(at_least=bound)}, "MB/s")
        measured = samples([Decimal("5288.04")] * 3, "MB/s")
        assert (verdict_says(described, measured) == [Verdict.PASS]) is passes, bound
        assert reframe_says(described, measured) is passes, bound


# ---- a real run


NO_CHECK = """
NET:
  description: Days without a stop
  metric: BlockStorage.undirected
  subject: system
  at_least: 10 MB/s
  source: test
"""


def stream(good, bound):
    """What ReFrame says of Stream with a bound, and the verdicts and exit code of `verdict`."""
    good.edit("criteria", "HERE-STREAM:", f"{NO_CHECK}HERE-STREAM:")
    good.edit("criteria", "at_least: 2 GB/s", f"at_least: {bound}")
    done = good.reframe("-r", "-n", "Stream")
    verdict = good.inside("verdict", "--json")
    found = {c["id"]: c["verdict"] for c in json.loads(verdict.out)["criteria"]}
    return done, found, verdict.code


def test_a_real_run_passes_on_its_bound_and_a_criterion_without_a_check_is_pending(good):
    done, found, code = stream(good, "42.30432 Gb/s")
    assert (done.code, found["HERE-STREAM"]) == (0, "PASS"), done
    assert (found["NET"], code) == (Verdict.PENDING, 3)


def test_a_real_run_fails_just_below_its_bound(good):
    done, found, code = stream(good, "42.30433 Gb/s")
    assert (done.code, found["HERE-STREAM"], code) == (1, "FAIL", 1), done


def test_a_node_that_left_nothing_fails_in_reframe_and_is_incomplete(good):
    """Where only the verdict can decide, ReFrame says that it could not."""
    good.edit("system", "set: localhost", "set: 'localhost,other'")
    done, found, code = stream(good, "2 GB/s")
    assert (done.code, found["HERE-STREAM"], code) == (1, "INCOMPLETE", 3), done
    assert "1 of 2 nodes measured. other: node_lost: left no result" in done.out


def test_reframes_line_has_the_unit_of_the_criterion():
    for bound, unit, value, low in (
        ("2 GB/s", "GB/s", 5.28804, 2.0),
        ("2000 MB/s", "MB/s", 5288.04, 2000.0),
        ("16 Gb/s", "Gb/s", 42.30432, 16.0),
    ):
        described = site({"C": criterion(at_least=bound)}, "MB/s")
        measured = samples([Decimal("5288.04")], "MB/s")
        line = missing.compared(described, "Check", "figure", "acceptance", measured)[0]
        assert (line[0], line[1], line[2], line[3][0]) == ("figure", value, unit, low), bound


def test_reframes_line_without_a_criterion_has_the_unit_of_the_catalogue():
    described = site({}, "GB/s")
    measured = samples([Decimal("5288.04"), Decimal(6000)], "MB/s")
    lines = missing.compared(described, "Check", "figure", "acceptance", measured)
    assert {line[2] for line in lines} == {"GB/s"}


def test_reframes_line_of_a_median_has_the_unit_of_its_criterion():
    described = site({"C": criterion(at_least="2 GB/s", scope="median")}, "MB/s", nodes="n[1-2]")
    measured = samples([Decimal(3000), Decimal(5000)], "MB/s")
    lines = missing.compared(described, "Check", "figure", "acceptance", measured)
    assert [line[:3] for line in lines if line[0].endswith("median")] == [
        ("figure_median", 4.0, "GB/s")
    ]
