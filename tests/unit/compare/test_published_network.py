"""What the reports on networks state, worked out again: retention, shares, failures, medians."""

from dataclasses import replace
from decimal import Decimal

from test_published import seed, table

from siteproof.compare.published import ratios, results

__all__ = ["seed"]


# ---- seed 001: LAN and WAN


def test_what_the_wan_keeps_of_the_lan_line_by_line(seed):
    rows = table(seed, "sc11-wan", "Values that differ")
    assert {r["differ in"] for r in rows} == {"network"}
    assert {(r["one"], r["other"]): r["other of one"] for r in rows} == {
        ("lan: 0.24 ms", "wan: 50.5 ms"): "210.4 times",
        ("lan: 9.8 Gb/s", "wan: 9.8 Gb/s"): "100.00 %",
        ("lan: 98 Gb/s", "wan: 96 Gb/s"): "97.96 %",
        ("lan: 1.2 GB/s", "wan: 1.2 GB/s"): "100.00 %",
        ("lan: 9.6 GB/s", "wan: 6.5 GB/s"): "67.71 %",
        ("lan: 1.2 GB/s", "wan: 1.1 GB/s"): "91.67 %",
        ("lan: 11.9 GB/s", "wan: 9.5 GB/s"): "79.83 %",
        ("lan: 8.8 GB/s", "wan: 6.2 GB/s"): "70.45 %",
        ("lan: 7.9 GB/s", "wan: 5.6 GB/s"): "70.89 %",
    }


def test_what_is_kept_is_judged_by_its_criterion(seed):
    kept = {
        one.criterion_id: one
        for one in results.judged(*seed("sc11-wan"))
        if one.sample.metric.endswith(".retention")
    }
    assert set(kept) == {
        f"SC11-WANRATIO-{name}"
        for name in ("IOR1", "IOR30", "IPERF30", "LNET1", "LNET10", "PEAK", "SUST")
    }
    assert {one.answer for one in kept.values()} == {"keeps"}
    ior = kept["SC11-WANRATIO-IOR30"]  # 67.7 % alone would not
    assert (str(ior.sample.value), ior.outcome.by_rounding) == ("0.6771", True)


def test_what_the_report_claims_of_the_link_is_worked_out(seed):
    rows = table(seed, "sc11-wan", "Ratios")
    shares = {(r["ratio"], r["values"]): r["worked out"] for r in rows}
    # "90%+"
    assert shares["TcpBandwidth.aggregate / the link", "96 Gb/s / 100 Gb/s"] == "96.0 %"


# ---- seed 003: pairs of hosts, and daily transfers


def test_all_27_shares_and_rates_in_bytes_follow_from_their_own_megabits(seed):
    rows = table(seed, "extenci", "Ratios")
    assert len(rows) == 2 * 27
    assert {r["remark"] for r in rows} == {ratios.AGREES}
    of = [(r["worked out"], r["printed"]) for r in rows if r["values"].startswith("940 Mb/s")]
    assert of == [("94 %", "94 %"), ("117.5 MB/s", "118 MB/s")]  # 118 * 8 would be 94.4


def test_a_share_that_does_not_follow_is_named(seed):
    site, found = seed("extenci")
    wrong = [
        replace(s, value=Decimal("94.4"))
        if s.metric.endswith("share_of_max") and str(s.value) == "94"
        else s
        for s in found
    ]
    rows = ratios.table(site, wrong).rows
    assert [row[-3:] for row in rows if row[-1] != ratios.AGREES] == [
        ("94 %", "94.4 %", "differs from 94.4 %")
    ]


def test_equal_rows_are_trials_and_all_are_kept(seed):
    rows = table(seed, "extenci", "Other published")
    assert [
        r["value"]
        for r in rows
        if r["date"] == "2010-06-18" and "throughput (mds18.psc > oss1.tacc" in r["metric"]
    ] == ["595 Mb/s", "575 Mb/s, 566 Mb/s"]


def test_the_two_directions_and_two_tools_are_compared_on_the_same_day_only(seed):
    rows = table(seed, "extenci", "Values that differ")
    tools = [r for r in rows if r["differ in"] == "tool"]
    assert len(tools) == 5
    assert {r["date"] for r in tools} == {"2010-06-18", "2010-06-21"}
    assert [r["other of one"] for r in tools if r["other"] == "netperf: 595 Mb/s"] == ["104.29 %"]
    rates = [r for r in rows if r["differ in"] == "direction" and "throughput" in r["metric"]]
    assert len(rates) == 8
    assert [r["other of one"] for r in rates if r["one"].endswith(": 595 Mb/s")] == ["89.08 %"]


def test_failures_are_counted_by_category_and_lost_cells_apart(seed):
    rows = {(r["metric"], r["of"]): r for r in table(seed, "extenci", "Published failures")}
    assert rows["Transfer.lowest", "dc-wan > pople"]["generic"] == "4"  # of 7 days
    assert rows["Transfer.average", "j-wan > goldeneye"]["generic"] == "7"
    ends = [r for (metric, _), r in rows.items() if metric != "Transfer.average"]
    assert sum(int(r["generic"]) for r in ends) == 37
    assert sum(int(r["parse"]) for r in ends) == 9
    assert {key for r in ends for key in r} == {"metric", "of", "values", "generic", "parse"}


# ---- seed 004: trials


def test_medians_and_means_disagree_on_virtual_functions(seed):
    rows = {r["other"].partition(":")[0]: r for r in table(seed, "nebula-sriov", "Values that")}
    sriov = rows["sriov"]
    assert sriov["one"] == "bare: 9403.72 Mb/s (median of 10)"
    assert sriov["other"] == "sriov: 9210.82 Mb/s (median of 10)"
    assert sriov["other of one"] == "97.95 %"
    assert sriov["by the means"] == "104.63 %"  # 9167 of 8761


def test_what_is_claimed_of_wire_speed_and_what_tcp_can_carry(seed):
    shares = {
        (r["of"], r["ratio"].partition(" / ")[2]): (r["worked out"], r["printed"])
        for r in table(seed, "nebula-sriov", "Ratios")
    }
    assert shares["paravirtual", "the link"] == ("63.2 %", "< 65 %")
    assert shares["paravirtual", "what TCP can carry"] == ("67.1 %", "< 65 %")
    assert shares["sriov", "what TCP can carry"] == ("99.9 %", "")


def test_the_trials_keep_the_criteria_that_cover_their_best_and_median(seed):
    rows = table(seed, "nebula-sriov", "Published values against")
    found = {r["criterion"]: (r["answer"], r["value"]) for r in rows}
    assert found["NASA-NUTTCP-BM"] == ("keeps", "worked out of the trials 9415.2675 Mb/s")
    assert found["NASA-RATIO-SRIOV"] == ("keeps", "worked out of the trials 0.9795 x")
