"""`siteproof matrix`: pairs, their days, and a last line that says who is behind the bad ones."""

import itertools
import random

import nets
import pytest
from documents_checked import check, kinds
from last_lines import answer_lines
from nets import METRIC, failed, ok

from siteproof.record import samples


@pytest.fixture
def net(world):
    """A world with a network; `keep` writes samples, `ask` runs the command on METRIC."""

    def keep(found):
        for job in dict.fromkeys((s.header.session, s.header.check) for s in found):
            mine = [s for s in found if (s.header.session, s.header.check) == job]
            samples.write(world.data / "perflogs", mine[0].header, mine)

    def site(**keys):
        nets.write_site(world.sites, **keys)

    world.data.mkdir()
    site()
    world.keep, world.describe = keep, site
    world.ask = lambda *words, metric=METRIC: world.inside(
        "matrix", metric, "--system", "here", *words
    )
    return world


def star(noise=0.01, count=12, seed=1, **keys):
    chance = random.Random(seed)
    found = nets.star(count=count, **keys)
    return [
        ok(f"{s.node}>{s.dims['peer']}", f"{float(s.value) * chance.gauss(1, noise):.3f}")
        for s in found
    ]


def everyone(count, noise=0.01):
    chance = random.Random(1)
    nodes = [f"n{i}" for i in range(1, count + 1)] + ["s1"]
    return [
        ok(f"{a}>{b}", f"{9.4 * chance.gauss(1, noise):.3f}")
        for a in nodes
        for b in nodes
        if a != b
    ]


def test_a_newer_record_that_cannot_be_read_leaves_no_whole_answer(net):
    net.describe(count=12, criteria="{}\n")
    net.keep(star())
    assert net.ask().code == 0
    (good,) = (net.data / "perflogs/here").glob("*/*.jsonl")
    lost = good.with_name(good.name.replace("s0001", "s0002"))
    lost.write_bytes(b"{" + good.read_bytes()[2:])
    done = net.ask()
    assert done.code == 3
    assert f"left out: {lost}" in done.err


def test_a_healthy_star_is_shown_whole_and_is_exit_code_0(net):
    net.describe(count=12, criteria="{}\n")
    net.keep(star())
    done = net.ask()
    assert (done.code, answer_lines(done.out)[-1]) == (0, f"{METRIC} over lan: no bad pair")
    assert any(line.startswith("n12 ") and line.count(" 9.") == 2 for line in done.out.splitlines())
    assert "24 pairs of 13 nodes, median 9.4" in done.out


def test_a_bad_client_is_named_with_its_side_and_marked(net):
    net.describe(count=12, criteria="{}\n")
    net.keep(star(slow={"n4>s1": 4}))
    done = net.ask("--link", "lan")
    assert done.code == 1
    assert answer_lines(done.out)[-1] == (f"{METRIC} over lan: explained by: n4 (as sender)")
    assert "3.959*" in done.out
    assert "s1>n4 9.265 Gb/s, n4>s1 3.959: 57.3 % apart" in done.out


def answer(net, *words):
    """The answer as JSON."""
    done = net.ask("--json", *words)
    read = check("matrix", done.out)
    assert read["exit_code"] == done.code
    return read


def test_programs_get_pairs_and_findings(net):
    net.describe(count=12, criteria="{}\n")
    net.keep(star(slow={"n4>s1": 4}))
    read = answer(net)
    assert kinds(read) == [("explains_pairs", "n4"), ("directions_differ", "n4>s1")]
    (one,) = read["matrices"]
    assert [(p["from"], p["to"]) for p in one["pairs"] if p["bad"]] == [("n4", "s1")]
    net.keep([failed("n3>s1", run=2)])
    assert ("no_value", "n3>s1") in kinds(answer(net, "--since", "2026-11-01"))
    days = answer(net, "--daily", "--since", "2026-11-01")
    assert {(d["from"], d["to"]) for d in days["days"]} > {("n4", "s1")}
    assert ("no_value", "n3>s1") in kinds(days)


def test_a_missed_bound_is_a_finding_of_each_pair(net):
    net.keep(nets.star(8.0))
    missed = [why for why in answer(net)["findings"] if why["kind"] == "misses_bound"]
    assert {why["bound"] for why in missed} and all(why["criterion"] for why in missed)


@pytest.mark.parametrize(
    "least, states, below, code",
    [
        ("", ["too few to judge"] * 2, [], 3),
        (", critical: 8 Gb/s", ["good", "bad"], [("n2>s1", "8 Gb/s")], 1),
        (", critical: 0.5 GB/s", ["good", "good"], [], 0),
        (", critical: 0.5 GB/s, warn: 8 Gb/s", ["good", "worth a look"], [], 0),
    ],
)
def test_two_pairs_are_judged_by_the_threshold_of_their_link(net, least, states, below, code):
    net.describe(count=2, criteria="{}\n", more=least)
    net.keep([ok("n1>s1", 9.4), ok("n2>s1", 7.5)])
    read = answer(net)
    (one,) = read["matrices"]
    assert [pair["state"] for pair in one["pairs"]] == states
    under = [why for why in read["findings"] if why["kind"] == "below_threshold"]
    assert [(why["subject"], why["bound"]) for why in under] == below
    assert read["exit_code"] == code


def test_the_page_draws_pairs_that_are_too_few_to_judge_in_a_colour_of_their_own(net, tmp_path):
    net.describe(count=2, criteria="{}\n")
    net.keep([ok("n1>s1", 9.4), ok("n2>s1", 7.5)])
    page = tmp_path / "page.html"
    done = net.inside("report", "--system", "here", "--output", str(page))
    assert done.code in (0, 3), done.err
    shown = page.read_text()
    assert "2 too few to judge without a bound" in shown and "no bad pair" not in shown
    assert ">too few to judge</text>" in shown and ">not clearly worse</text>" not in shown


def test_a_page_and_the_command_know_the_same_bad_pairs_and_who_explains_them(net, tmp_path):
    net.describe(count=7, criteria="{}\n")
    rates = {"n1>s1": 0.08, "s1>n1": 0.9, "n2>s1": 7.9, "s1>n2": 8.5}
    net.keep([ok(pair, rate) for pair, rate in rates.items()])
    read, page = answer(net), tmp_path / "page.html"
    (one,) = read["matrices"]
    bad = {f"{p['from']}>{p['to']}" for p in one["pairs"] if p["bad"]}
    assert bad == {p for p in rates if "n1" in p}
    assert {f"{p['from']}>{p['to']}" for p in one["pairs"] if p["state"] == "bad"} == bad
    assert net.inside("report", "--system", "here", "--output", str(page)).code in (0, 1, 3)
    shown = page.read_text()
    assert "no bad pair" not in shown and "; 2 bad pairs" in shown
    assert "nodes that explain bad pairs: n1 (as sender and receiver)" in shown
    assert ">more than 10 % worse</text>" in shown
    assert "Typical is 8.2 Gb/s, the median of the pairs that are not bad." in shown


def test_a_bad_pair_is_a_link_told_once_for_both_directions(net):
    net.describe(count=6, criteria="{}\n", pattern="all")
    found = [s for s in everyone(6) if {s.node, s.dims["peer"]} != {"n2", "n5"}]
    net.keep([*found, ok("n2>n5", 2), ok("n5>n2", 2.1)])
    done = net.ask()
    assert (done.code, answer_lines(done.out)[-1]) == (
        1,
        f"{METRIC} over lan: bad pairs that no node explains: n2<>n5",
    )


def test_a_broken_contract_is_bad_even_if_all_are_alike(net):
    net.keep(nets.star(8.0))
    assert answer_lines(net.ask().out)[-1] == (
        f"{METRIC} over lan: explained by: s1 (as sender and receiver)"
    )


def test_failed_and_missing_pairs_are_told(net):
    found = [s for s in nets.star() if "n3" not in (s.node, s.dims["peer"])]
    net.keep([*found, failed("n3>s1", "timeout", why="no answer")])
    done = net.ask()
    assert done.code == 1
    assert "n3>s1: timeout: no answer" in done.out
    assert "n3 (as sender and receiver)" in answer_lines(done.out)[-1]


def test_a_pair_whose_server_died_is_missing_and_blames_nobody(net):
    found = [s for s in nets.star() if "n3" not in (s.node, s.dims["peer"])]
    net.keep([*found, failed("n3>s1", "interrupted", why="s1 went")])
    done = net.ask()
    assert kinds(answer(net)) == [("interrupted", "n3>s1"), ("interrupted", "s1>n3")]
    assert (done.code, answer_lines(done.out)[-1]) == (
        3,
        f"{METRIC} over lan: no bad pair; 2 pairs without a value",
    )


def test_of_320_nodes_only_what_is_bad_is_shown(net):
    slow = {f"n{i}": 4.7 for i in (7, 211)}
    net.describe(count=320, criteria="{}\n")
    net.keep(star(count=320, slow=slow))
    lines = answer_lines(net.ask().out)
    assert len(lines) < 30
    assert max(map(len, lines)) <= 132
    assert lines[-1].endswith(
        "n7 (as sender and receiver), n211 (as sender and receiver)"
    ) or lines[-1].endswith("n211 (as sender and receiver), n7 (as sender and receiver)")


def test_each_message_size_is_a_matrix(net):
    net.describe(count=6, criteria="{}\n")
    net.keep(
        [
            ok(
                f"n{i}>s1",
                v * (1 + i / 1000),
                metric="MpiPingPong.latency",
                unit="us",
                dims={"size": size},
            )
            for size, v in (("8", 2), ("1024", 5))
            for i in range(1, 7)
        ]
    )
    lines = answer_lines(net.ask(metric="MpiPingPong.latency").out)
    assert lines[-2:] == [
        "MpiPingPong.latency [size 1024] over lan: no bad pair",
        "MpiPingPong.latency [size 8] over lan: no bad pair",
    ]
    assert any("[size 8] over lan, us" in line for line in lines[:-2])


def test_the_newest_job_of_a_pair_counts(net):
    net.keep([*nets.star(1, run=1, campaign="c"), *nets.star(9.4, run=2, campaign="c")])
    assert net.ask("--campaign", "c").code == 0


def test_a_count_that_no_criterion_bounds_is_not_judged(net):
    net.keep(
        [
            ok(f"n{i}>s1", i * 10, metric="TcpBandwidth.retransmits", unit="count")
            for i in range(1, 7)
        ]
    )
    done = net.ask(metric="TcpBandwidth.retransmits")
    assert (done.code, answer_lines(done.out)[-1]) == (
        3,
        "TcpBandwidth.retransmits over lan: no criterion decides which of 6 pairs are bad",
    )


MISTAKES = [
    ((), "TcpBandwith.throughput", "unknown metric 'TcpBandwith.throughput'"),
    ((), "Stream.triad", "'Stream.triad' is not a metric of pairs of nodes. Allowed: Tcp"),
    (("--link", "lann"), METRIC, "no link 'lann' (did you mean 'lan'?). Allowed: lan, wan."),
    (("--campaign", "none"), METRIC, "--campaign: no sample of 'none'"),
    (("--since", "soon"), METRIC, "--since: 'soon' is not a valid time"),
]


def test_a_mistake_is_one_line_and_exit_code_2(net):
    net.keep(nets.star())
    for words, metric, told in MISTAKES:
        assert told in net.ask(*words, metric=metric).refused(), words


def test_nothing_measured_is_one_line_and_exit_code_3(net):
    for words in ((), ("--daily",), ("--link", "wan"), ("--since", "7d")):
        done = net.ask(*words)
        assert done.code == 3, words
        (line,) = done.out.splitlines()
        assert line.startswith(f"{METRIC}: no pair was measured"), words


# ---- day by day

LEGEND = ", warn: 50 MB/s, critical: 25 MB/s"


def test_the_days_of_a_pair_with_classes_and_failures(net):
    net.describe(more=LEGEND)
    # Gb/s: 0.6 is 75 MB/s, 0.32 is 40 MB/s, 0.16 is 20 MB/s
    net.keep(
        [
            ok("n1>s1", 0.6, run=1, trial=1),
            ok("n1>s1", 0.32, run=1, trial=2),
            ok("n1>s1", 0.16, run=2),
            ok("n2>s1", 0.6, run=2),
            failed("n1>s1", "login", run=3),
        ]
    )
    done = net.ask("--daily")
    lines = answer_lines(done.out)
    assert done.code == 1
    row = next(line for line in lines if "n1 > s1" in line)
    assert "75.0+ 40.0o 57.5+" in row
    assert "20.0- 20.0- 20.0-" in row
    assert "login login N/A" in row
    assert lines[-1] == f"{METRIC}: slow or failed on some day: n1>s1"
    assert "failures: 1 login" in lines
    legend = "- below 25 MB/s, o 25 to 50 MB/s, + above 50 MB/s; days: "
    assert f"{legend}2 above 50 MB/s, 1 below 25 MB/s" in " ".join(lines)


def test_good_days_are_exit_code_0_and_the_last_seven_are_shown(net):
    net.describe(more=LEGEND)
    for run in range(1, 10):
        net.keep(nets.star(9.4, run=run))
    done = net.ask("--daily")
    assert (done.code, answer_lines(done.out)[-1]) == (
        0,
        f"{METRIC}: none of 12 pairs was slow or failed on any day",
    )
    assert "2026-11-04" in done.out and "2026-11-03" not in done.out


def test_a_latency_has_days_without_classes(net):
    net.keep([ok("n1>s1", 120, metric="Latency.round_trip", unit="us")])
    done = net.ask("--daily", metric="Latency.round_trip")
    assert "120.0 120.0 120.0" in done.out
    answer = answer_lines(done.out)[-1]
    assert answer == "Latency.round_trip: none of 1 pairs failed on any day"  # slow is not known


def test_pairs_that_a_slow_trunk_explains_leave_no_table_without_rows(net):
    net.describe(count=6, pattern="all", criteria="{}\n")
    far = {"n5", "n6"}
    nodes = [f"n{number}" for number in range(1, 7)]
    net.keep(
        [
            ok(f"{a}>{b}", "2.8" if len({a, b} & far) == 1 else f"9.{number}")
            for number, (a, b) in enumerate(itertools.permutations(nodes, 2))
        ]
    )
    done = net.ask()
    assert done.code == 1 and "between n[5-6] and n[1-4]" in " ".join(done.out.split()), done
    assert "explained by" not in done.out
