"""ReFrame, the verdict and arithmetic by hand say the same of pairs: see test_agreement.py."""

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from statistics import median

import pytest
import reframe.utility.sanity as sn
from nets import head, load
from random_cases import rounds
from reframe.core.exceptions import SanityError
from test_agreement import KINDS, by_hand, decimal_text, values_near

from siteproof.checks import missing
from siteproof.record.samples import Sample
from siteproof.sites import Criterion, pairs
from siteproof.verdict import judgement

METRIC = "TcpBandwidth.throughput"
RATES = KINDS["rate"]


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """A star of three clients with one server."""
    with pytest.MonkeyPatch.context() as patch:
        yield load(tmp_path_factory.mktemp("net"), patch, count=3, criteria="{}\n")


def promised(net, better="higher", **criteria):
    """The site with these criteria, and a metric of which this is better."""
    metric = net.catalogue[METRIC].model_copy(update={"better": better})
    return replace(net, criteria=criteria, catalogue={**net.catalogue, METRIC: metric})


def criterion(**keys):
    return Criterion(
        **{
            "description": "d",
            "metric": METRIC,
            "source": "s",
            "subject": "pair",
            "links": ["lan"],
            **keys,
        }
    )


def measured(net, figures, unit="Gb/s", dims=None, **conditions):
    """figures: of each directed pair, its trials."""
    header = head(
        1,
        conditions={"link": "lan", "program": "iperf3", "at_once": "1", **conditions},
        mode="acceptance",
    )
    return [
        Sample(header, a, METRIC, value, unit, trial=trial, dims={"peer": b, **(dims or {})})
        for (a, b), trials in figures.items()
        for trial, value in enumerate(trials, 1)
    ]


def ways(net):
    return pairs.directed(net, net.system.links["lan"])


def reframe_says(net, found):
    """Whether ReFrame's own assertions hold with our references."""
    try:
        for _, value, _, reference in missing.compared(
            net, "TcpBandwidth", "throughput", "acceptance", found
        ):
            sn.evaluate(sn.assert_reference(value, *reference))
    except SanityError:
        return False
    return True


def verdict_says(net, found):
    """Whether every criterion passes."""
    judged = judgement.judge_samples(net, found, "all")
    return all(str(v.verdict) == "PASS" for v in judged.verdicts)


@rounds(150, 1500)
@pytest.mark.deep
def test_random_contracts_over_trials_are_judged_alike_three_times(net, count):
    rng = random.Random(20261121)
    compared = passed = 0
    for _ in range(count):
        unit, theirs, of_step = (rng.choice(list(RATES)) for _ in range(3))
        kind = rng.choice(["at_least", "at_most", "equals"])
        keys, text, step = {}, decimal_text(rng), None
        if rng.random() < 0.6:
            step_text = rng.choice(["1", "0.1", "0.5", "5", "100", "0.25"])
            keys["rounding"] = f"nearest {step_text} {of_step}"
            step = Fraction(step_text) * RATES[of_step]
        site = promised(
            net, rng.choice(["higher", "lower"]), C=criterion(**{kind: f"{text} {theirs}"}, **keys)
        )
        bound = Fraction(text) * RATES[theirs]
        edge = rng.choice([bound, *([bound - step / 2, bound + step / 2] if step else [])])
        near = values_near(rng, edge / RATES[unit])
        trials = rng.choice([1, 3])
        figures = {way: [rng.choice(near) for _ in range(trials)] for way in ways(net)}
        expected = all(
            by_hand(kind, bound, step, median(map(Fraction, of_pair)) * RATES[unit])
            for of_pair in figures.values()
        )
        found = measured(site, figures, unit)
        assert verdict_says(site, found) is expected, (keys, kind, text, theirs, unit, figures)
        assert reframe_says(site, found) is expected, (keys, kind, text, theirs, unit, figures)
        compared, passed = compared + 1, passed + expected
    assert 0 < passed < compared


def test_pairs_whose_tools_print_other_units_are_compared_by_what_they_are(net):
    """The slow pair's figure is the larger number."""
    site = promised(net, C=criterion(at_least="9 Gb/s"))
    first, *rest = ways(net)
    found = measured(site, {first: [Decimal(8000)]}, "Mb/s") + measured(
        site, {way: [Decimal("9.5")] for way in rest}
    )
    assert not verdict_says(site, found)
    assert not reframe_says(site, found)


def test_one_stream_may_keep_what_four_break(net):
    """The figure that breaks its own promise is the larger one."""
    site = promised(
        net,
        One=criterion(at_least="5 Gb/s", conditions={"streams": "1"}),
        Four=criterion(at_least="9 Gb/s", conditions={"streams": "4"}),
    )
    one = measured(site, {way: [Decimal(6)] for way in ways(net)}, dims={"streams": "1"})
    for value, good in ((Decimal(8), False), (Decimal(9), True)):
        four = measured(site, {way: [value] for way in ways(net)}, dims={"streams": "4"})
        assert verdict_says(site, one + four) is good
        assert reframe_says(site, one + four) is good


def test_the_way_back_counts_for_pairs_and_not_for_clients(net):
    figures = {
        way: [Decimal(9 if way in pairs.planned(net, net.system.links["lan"]) else 1)]
        for way in ways(net)
    }
    for subject, good in (("pair", False), ("client", True)):
        site = promised(net, C=criterion(at_least="9 Gb/s", subject=subject))
        found = measured(site, figures)
        assert verdict_says(site, found) is good
        assert reframe_says(site, found) is good


def test_another_link_breaks_nothing(net):
    site = promised(net, C=criterion(at_least="9 Gb/s", links=["wan"]))
    found = measured(site, {way: [Decimal(1)] for way in ways(net)})
    assert reframe_says(site, found)


def test_a_trial_under_other_conditions_is_in_no_median(net):
    """Two of three trials had the MTU that the contract asks for; their median passes."""
    site = promised(net, C=criterion(at_least="9 Gb/s", conditions={"mtu": "9000"}))
    found = measured(
        site, {way: [Decimal(1), Decimal(10), Decimal(8)] for way in ways(net)}, mtu="9000"
    )
    found = [replace(s, own_conditions={"mtu": "1500"}) if s.trial == 1 else s for s in found]
    assert verdict_says(site, found)
    assert reframe_says(site, found)


def test_a_waived_node_excuses_its_pairs_in_both(tmp_path, monkeypatch):
    waiver = """
W1: {nodes: n2, waives: C-TCP, problem: a bad cable, owner: me, expires: 2099-01-01}
"""
    for name, text in (("with", waiver), ("without", "")):
        site = load(tmp_path / name, monkeypatch, count=3, waivers=text)
        found = measured(site, {way: [Decimal(1 if "n2" in way else 9)] for way in ways(site)})
        [judged] = judgement.judge_samples(site, found, "all").verdicts
        assert (str(judged.verdict) == "FAIL") is (name == "without")
        assert reframe_says(site, found) is (name == "with")


def test_the_sum_of_a_link_is_compared_with_what_the_link_promises(net):
    name = "TcpBandwidth.aggregate"
    promise = criterion(metric=name, subject="system", at_least="50 Gb/s")
    site = promised(net, C=promise)
    for text, good in (("50e9", True), ("49.9e9", False)):
        found = [
            Sample(
                head(1, mode="acceptance"),
                "",
                name,
                Decimal(text),
                "b/s",
                dims={"link": "lan", "direction": way},
            )
            for way in ("out", "in")
        ]
        found[1] = replace(found[1], value=Decimal("60e9"))
        [(told, value, unit, reference)] = missing.compared(
            site, "TcpBandwidth", "aggregate", "acceptance", found
        )
        assert (told, unit) == ("aggregate", "Gb/s")
        assert value == float(text) / 1e9
        if good:
            assert sn.evaluate(sn.assert_reference(value, *reference))
        else:
            with pytest.raises(SanityError):
                sn.evaluate(sn.assert_reference(value, *reference))
        assert verdict_says(site, found) is good
