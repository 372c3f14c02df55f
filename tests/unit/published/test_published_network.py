"""What the reports on networks state, worked out again: retention, shares, failures, medians."""

from dataclasses import replace
from decimal import Decimal

from test_published import seed, table

from siteproof.published import host_pairs

__all__ = ["seed"]


# ---- seed 001: LAN and WAN


def test_what_the_wan_keeps_of_the_lan_line_by_line(seed):
    rows = table(seed, "sc11-wan", "LAN and WAN")
    assert {(r["lan"], r["wan"]): r["wan of lan"] for r in rows} == {
        ("0.24 ms", "50.5 ms"): "210.4 times as long",
        ("9.8 Gb/s", "9.8 Gb/s"): "100.0 %",
        ("98 Gb/s", "96 Gb/s"): "98.0 %",
        ("1.2 GB/s", "1.2 GB/s"): "100.0 %",
        ("9.6 GB/s", "6.5 GB/s"): "67.7 %",
        ("1.2 GB/s", "1.1 GB/s"): "91.7 %",
        ("11.9 GB/s", "9.5 GB/s"): "79.8 %",
        ("8.8 GB/s", "6.2 GB/s"): "70.5 %",
        ("7.9 GB/s", "5.6 GB/s"): "70.9 %",
    }
    assert sum(r["criterion"].endswith("keeps") for r in rows) == 7
    assert next(r["criterion"] for r in rows if r["lan"] == "9.6 GB/s") == (
        "SC11-WANRATIO-IOR30 >= 68 %, nearest 1 %: keeps"
    )  # 67.7 % alone would not


def test_what_the_report_claims_of_link_and_applications_is_worked_out(seed):
    rows = table(seed, "sc11-wan", "Shares")
    told = {(r["metric"], r["figure"]): r["worked out"] for r in rows}
    assert told["TcpBandwidth.aggregate", "96 Gb/s"] == "96.0 % of 100 Gb/s"  # "90%+"
    assert told["Workload.sustained", "5.6 GB/s"] == "5.6 Gb/s for each of 8"


# ---- seed 003: pairs of hosts, and daily transfers


def test_trap_E1_all_27_shares_follow_from_their_own_megabits(seed):
    rows = table(seed, "extenci", "Rates between two hosts")
    assert len(rows) == 27
    assert {r["line"] for r in rows} == {"agrees"}
    (row,) = [r for r in rows if r["rate"] == "940 Mb/s"]
    assert (row["in bytes"], row["printed share"], row["worked out"]) == (
        "118 MB/s",
        "94 %",
        "94 %",
    )  # 118 * 8 would be 94.4


def test_a_share_that_does_not_follow_is_named(seed):
    _, stated = seed("extenci")
    wrong = [
        replace(s, value=Decimal("94.4"))
        if s.metric.endswith("share_of_max") and str(s.value) == "94"
        else s
        for s in stated
    ]
    told = [r.mistakes for r in host_pairs.rows(wrong) if r.mistakes]
    assert told == [["94 %, and not 94.4 %"]]


def test_trap_E12_equal_rows_are_trials_and_all_are_kept(seed):
    rows = table(seed, "extenci", "Rates between two hosts")
    assert [
        r["rate"]
        for r in rows
        if (r["date"], r["from"], r["tool"]) == ("2010-06-18", "mds18.psc", "iperf")
    ] == ["575 Mb/s", "566 Mb/s"]


def test_trap_E11_the_two_directions_are_not_alike(seed):
    rows = {(r["from"], r["to"]): r for r in table(seed, "extenci", "Directions")}
    there, back = rows["psc_wan", "tacc"], rows["tacc", "psc_wan"]
    assert (there["lines"], there["lowest"], there["highest"]) == ("10", "561 Mb/s", "605 Mb/s")
    assert (back["lines"], back["lowest"], back["highest"]) == ("9", "530 Mb/s", "552.29 Mb/s")


def test_tools_are_compared_on_the_same_pair_and_day_only(seed):
    rows = table(seed, "extenci", "Two tools")
    assert len(rows) == 5
    assert [r["difference"] for r in rows if r["other"] == "netperf 595 Mb/s"] == ["+4.3 %"]


def test_trap_E8_failures_are_counted_by_category_and_lost_cells_apart(seed):
    rows = {(r["from"], r["to"]): r for r in table(seed, "extenci", "Daily transfers: fail")}
    assert rows["dc-wan", "pople"]["generic"] == "4"  # of 7 days, beside a mean of successes
    assert rows["j-wan", "goldeneye"]["averages of no success"] == "7"
    total = rows["all", ""]
    assert (total["figures"], total["generic"], total["lost"]) == ("38", "37", "9")
    assert {total[kind] for kind in ("login", "timeout", "checksum")} == {"0"}


def test_trap_E9_a_mean_is_graded_by_the_legend(seed):
    rows = table(seed, "extenci", "Daily transfers, day by day")
    graded = {r["day"]: r["grade of the average, MB/s"] for r in rows if r["to"] == "bigred"}
    assert graded == {
        "2010-08-18": "> 50",
        "2010-08-17": "25 to 50",
        "2010-08-16": "> 50",
        "2010-08-15": "25 to 50",
        "2010-08-14": "> 50",
        "2010-08-13": "25 to 50",
        "2010-08-12": "< 25",
    }


# ---- seed 004: trials


def test_trap_N1_medians_and_means_disagree_on_virtual_functions(seed):
    rows = {r["link"]: r for r in table(seed, "nebula-sriov", "Trials")}
    bare, sriov = rows["bare"], rows["sriov"]
    assert (bare["median"], sriov["median"]) == ("9403.72", "9210.82")
    assert sriov["median of bare's"] == "97.95 %"
    assert sriov["mean of bare's"] == "104.63 %"  # 9167 of 8761
    assert (bare["variation"], sriov["variation"]) == ("18.1 %", "2.2 %")


def test_trap_N4_what_is_claimed_of_wire_speed_and_what_tcp_can_carry(seed):
    rows = {r["link"]: r for r in table(seed, "nebula-sriov", "Trials")}
    told = rows["paravirtual"]
    assert (
        told["highest of wire speed"],
        told["highest of what TCP can carry"],
        told["claimed of wire speed"],
    ) == ("63.2 %", "67.1 %", "< 65 %")
    assert rows["sriov"]["highest of what TCP can carry"] == "99.9 %"


def test_the_trials_keep_the_criteria_that_speak_of_their_best_and_median(seed):
    rows = table(seed, "nebula-sriov", "Published figures against")
    told = {r["criterion"]: (r["says"], r["figure"]) for r in rows}
    assert told["NASA-NUTTCP-BM"] == ("keeps", "worked out of the trials 9415.2675 Mb/s")
    assert told["NASA-RATIO-SRIOV"] == ("keeps", "worked out of the trials 0.9795 x")
