"""Chapters on what others have published and on links, pairs and sweeps that were measured."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from decimal import Decimal

import fleets
import pytest
import sweeps_made
from clone import TOP
from rows import rows

from siteproof.compare.published import results as of_others
from siteproof.record import samples
from siteproof.record.samples import Sample
from siteproof.report import material
from siteproof.report.chapters import (
    daily,
    description,
    distribution,
    heatmap,
    links,
    matrix,
    results,
    scenarios,
    sweeps,
    tested,
    trend,
    untested,
)
from siteproof.report.figure import rows as figures

SITES = TOP / "site-config"


def texts(figure):
    root = ElementTree.fromstring(figure.svg)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


def table(figure):
    return {row[0]: row[1:] for row in figure.table.rows}


@pytest.fixture
def seed(tmp_path, monkeypatch):
    """The material of a site of which others have published figures."""
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    opened = []

    def of(name, *others):
        for system in (name, *others):
            file = SITES / system / "published.csv"
            of_others.keep(
                file, of_others.read_published(file, system).values(), tmp_path / "perflogs"
            )
        opened.append(material.gather(name))
        return opened[-1]

    yield of
    for held in opened:
        held.close()


def of_links(figure):
    """Each row of a comparison of links, by quantity and link."""
    return {(row[0], row[1]): row[2:] for row in figure.table.rows}


@pytest.mark.deep
def test_lan_and_wan_of_others_are_two_links(seed):
    (figure,) = links.chapter(seed("sc11-wan")).figures
    held = of_links(figure)
    assert len(held) == 2 * 9
    undirected = "Ior.undirected, 30 clients, 16 servers"
    assert held[undirected, "lan"] == ("1", "9.6 GB/s", *"---", "100 %", "-")
    assert held[undirected, "wan"] == ("1", "6.5 GB/s", *"---", "67.7 %", "-")
    assert held["Lnet.undirected, 10 clients, 10 servers", "wan"][-2] == "79.8 %"
    assert held["TcpBandwidth.aggregate, 30 at once", "wan"][-2] == "98 %"
    assert held["Latency.round_trip", "wan"][-2] == "210 times"
    told = texts(figure)
    assert {undirected, "lan", "wan", "9.6 GB/s", "6.5 GB/s"} <= set(told)
    assert "Latency.round_trip" not in told  # a time would press the rates together


@pytest.mark.deep
def test_seed_003s_directions_differ_and_nobody_is_accused_of_it(seed):
    section = matrix.chapter(seed("extenci"))
    assert section.lead.endswith("; 0 bad pairs.")
    wan = next(f for f in section.figures if f.name.endswith("psc-tacc"))
    held = table(wan)
    assert held["mds18.psc > oss1.tacc"][2] == "0.546"
    assert held["oss1.tacc > mds18.psc"][2] == "0.586"
    assert [row[0] for row in wan.table.rows][0] == "oss1.tacc > mds18.psc"  # the worst first
    assert {"0.586", "0.546"} <= set(texts(wan))
    lan = next(f for f in section.figures if f.name.endswith("-psc"))
    assert "34 not measured" in lan.caption and "not measured" in texts(lan)


def test_ways_of_virtualising_are_compared_by_medians_and_by_means(seed):
    section = links.chapter(seed("nebula-sriov"))
    (figure,) = section.figures
    held = of_links(figure)
    assert [link for _, link in held] == ["bare", "software", "paravirtual", "sriov"]
    metric = "TcpBandwidth.throughput"
    numbers = ("9404 Mb/s", "8761 Mb/s", "4419 Mb/s", "9415 Mb/s")
    assert held[metric, "bare"] == ("10", *numbers, "100 %", "100 %")
    assert held[metric, "sriov"][0] == "10"
    assert held[metric, "sriov"][-2:] == ("97.9 %", "105 %")
    (trials,) = section.tables
    assert trials.columns == ("trial", "bare", "software", "paravirtual", "sriov")
    assert trials.rows[0] == ("1", "4418.8401", "137.3301", "5678.0625", "8714.4063")
    assert len(trials.rows) == 10
    assert "9404 Mb/s" in texts(figure)


@pytest.mark.deep
def test_means_of_others_are_no_nodes_and_landmarks_alone_are_no_sweep(seed):
    given = seed("jetstream-iu", "jetstream-tacc")
    made = [c.chapter(given) for c in (distribution, heatmap, trend)]
    assert made == [None] * 3
    section = sweeps.chapter(given)
    assert section.lead.startswith("No sweep of this system was run")
    reads, writes = section.figures
    assert table(reads)["august-2016"][:3] == ("29766 MB/s", "394 tasks", "396 tasks")
    assert table(writes)["august-2016"][:3] == ("3325 MB/s", "414 tasks", "32 tasks")
    assert "august-2016, plateau from 32 tasks" in texts(writes)
    tables = {t.title: t for t in results.chapter(given).tables}
    listed = tables["Other published values and texts"].rows
    assert "414 tasks" in {value for _, value, kind, *_ in listed if kind == "landmark"}


def rows_of(section, title):
    """The rows of a table by their first cell; of several rows the last."""
    (found,) = [one for one in section.tables if one.title == title]
    return {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows}


def test_the_daily_matrix_of_others_has_its_legend_its_failures_and_a_year(seed):
    days = rows_of(daily.chapter(seed("extenci")), "Transfers, as published")
    best, worst = days["dc-wan > bigred"], days["j-wan > goldeneye"]
    assert best["2010-08-18"] == "75.0+ 58.8+ 65.1+"
    looks = [("19.2-", "bad"), ("3.7-", "bad"), ("13.5-", "bad")]
    assert best["2010-08-12"].given == looks
    assert days["dc-wan > pople"]["2010-08-13"] == "59.3+ gen 40.2o"
    assert (best["critical"], best["warn"], best["good"], best["failed"]) == ("1", "3", "3", "-")
    assert (worst["2010-08-15"], worst["failed"]) == ("gen N/A", "7")
    assert best["365 days"].given.count("<rect") == 7
    assert days["dc-wan > lonestar"]["2010-08-16"] == ""


def test_of_hosts_and_parameters_the_two_values_that_differ_are_marked(seed):
    found = rows_of(
        description.chapter(seed("extenci")), "Host parameters, as published (!: not as on most)"
    )
    marked = {
        (name, host)
        for name, row in found.items()
        for host, value in row.items()
        if value.startswith("! ")
    }
    assert marked == {(f"net.core.{way}mem_default", "mgs1.jwan") for way in "rw"}
    assert found["net.core.rmem_default"]["mgs1.jwan"] == "! 109568"
    assert len(found) == 14


def test_a_published_test_has_its_rates_share_tool_and_note_in_one_row(seed):
    section = matrix.chapter(seed("extenci"))
    row = rows_of(section, "Pairs over psc, published")["mds01w.psc.jwan > mds00w.psc.jwan"]
    assert list(row.values())[1:] == [
        *("117 MB/s", "939 Mb/s", "1 Gb/s", "93.9 %", "iperf", "2010-07-30"),
        "MTU on mds01w.psc.jwan at 1500",
    ]
    (wan,) = [one for one in section.tables if one.title == "Pairs over psc-tacc, published"]
    assert sum(row[5] == "netperf" for row in wan.rows) == 10 and len(wan.rows) == 19
    # On these days a pair was measured by iperf, too.
    shares = {row[2]: row[4] for row in wan.rows}
    assert shares["578.6 Mb/s"] == "57.86 %" and shares["600.31 Mb/s"] == "60.03 %"
    assert shares["530 Mb/s"] == "53.0 %" and shares["566 Mb/s"] == "56.6 %"


def test_a_check_of_which_a_derived_criterion_takes_its_values_is_waited_for(seed):
    section = untested.chapter(seed("nebula-sriov"))
    (table,) = [t for t in section.tables if t.title == "Checks that were not run"]
    waiting = {name: row[0] for row in table.rows for name in row[2].split(", ")}
    assert waiting["Workload"] == "NASA-LINPACK-BARE, NASA-LINPACK-VIRTUAL"
    assert "NASA-RATIO-SRIOV" in waiting["TcpBandwidth"] and waiting["Gromacs"] == "none"


def test_jetstreams_table_2_is_one_table_and_sc11s_applications_another(seed):
    found = rows_of(tested.chapter(seed("jetstream-tacc")), "Storage, published")
    row = found["Ior, after-tuning, volume, max"]
    assert (row["reads"], row["writes"], row["program"]) == ("14217 MB/s", "1253 MB/s", "ior")
    assert row["date"] == "2016-08-12/2016-08-14"
    for text in ("maximum", "write plateau at 32 tasks", "read max at > 166 tasks"):
        assert text in row["note"]
    dated = {name: row["reads"] for name, row in found.items() if row["date"] == "2016-06-14"}
    assert sorted(dated.values()) == ["241 MB/s", "247 MB/s", "59 MB/s"]
    found = rows_of(tested.chapter(seed("sc11-wan")), "Applications, published")
    assert (found["Enzo"]["nodes"], found["Enzo"]["note"]) == ("6 nodes", "Astronomy")
    assert len(found) == 8


def use(folder, patch):
    patch.setenv("SITEPROOF_SITES", str(folder / "sites"))
    patch.setenv("SITEPROOF_DATA", str(folder / "data"))


def gathered(folder, patch, write, **since):
    """What a report is made from, of a site and samples that are written into a folder."""
    use(folder, patch)
    write(folder, patch)
    return material.gather("here", **since)


@pytest.fixture(scope="module")
def of_sweeps(tmp_path_factory):
    """A system with a sweep before and after tuning."""
    folder = tmp_path_factory.mktemp("swept")
    with pytest.MonkeyPatch.context() as patch:
        held = gathered(folder, patch, write_sweeps)
    yield folder, held
    held.close()


@pytest.fixture
def swept(of_sweeps, monkeypatch):
    use(of_sweeps[0], monkeypatch)
    return of_sweeps[1]


def write_sweeps(folder, patch):
    sweeps_made.write_site(folder / "sites")
    file = sweeps_made.write_sweep(folder / "sweeps", patch)
    perflogs = folder / "data/perflogs"
    for run, campaign, factor in ((1, "before", 0.7), (5, "after", 1.0)):
        found = sweeps_made.of(
            file,
            {"Ior.write": lambda t, p, f=factor: f * 1300 * t / (t + 9)},
            run,
            0.01,
            campaign=campaign,
        )
        samples.write(perflogs, found[0].header, found)


def test_campaigns_of_a_sweep_stand_in_one_figure(swept):
    section = sweeps.chapter(swept)
    figure = section.figures[0]
    assert section.lead == "2 runs of sweeps of this system (made_tasks)."
    assert figure.name == "sweep-made-tasks-ior-write"
    told = " ".join(texts(figure))
    for text in ("here after, tasks_per_node 1", "here before, tasks_per_node 1"):
        assert text in told
    held = table(figure)
    before, after = (held[f"here {name}, tasks_per_node 1"] for name in ("before", "after"))
    assert before[0] == after[0] == "9"
    assert float(before[1].split()[0]) / float(after[1].split()[0]) == pytest.approx(0.7, abs=0.02)
    for text in ("made_tasks, here after: Ior.write", "made_tasks, here before: Ior.write"):
        assert any(point.startswith(text) for point in section.points), text


LINKS = """\
links:
  near: {description: Here, partition: compute, servers: n001, clients: 'n[002-004]'}
  far: {description: There, partition: compute, servers: n001, clients: 'n[005-008]',
        round_trip: 50 ms, speed: 10 Gb/s}
"""


def write_links(folder, patch):
    """A site with two links."""
    fleets.write_site(folder / "sites", 8, LINKS)
    site = folder / "sites/here/system.yaml"
    site.write_text(site.read_text().replace("scheduler: local", "scheduler: slurm"))
    use(folder, patch)


@pytest.fixture(scope="module")
def of_star(tmp_path_factory):
    """Two links of a star; n006 is slow over the far one, n008 failed."""
    folder = tmp_path_factory.mktemp("linked")
    with pytest.MonkeyPatch.context() as patch:
        held = gathered(folder, patch, write_star, since="2026-01-01T00:00")
    yield folder, held
    held.close()


@pytest.fixture
def linked(of_star, monkeypatch):
    use(of_star[0], monkeypatch)
    return of_star[1]


def write_star(folder, patch):
    write_links(folder, patch)
    rates = {"n002": 9.4, "n003": 9.4, "n004": 9.3, "n005": 4.7, "n006": 1.0, "n007": 4.6}
    for check, metric, unit in (
        ("TcpBandwidth", "throughput", "Gb/s"),
        ("Latency", "round_trip", "us"),
    ):
        for job, (link, nodes) in enumerate((("near", range(2, 5)), ("far", range(5, 8)))):
            head = fleets.header(
                1,
                check,
                job=str(job),
                conditions={"program": "iperf3", "link": link, "pattern": "star"},
            )
            found = []
            for name in (f"n{n:03}" for n in nodes):
                rate = rates[name] if unit == "Gb/s" else 200 if link == "near" else 50_000
                for pair in ((name, "n001"), ("n001", name)):
                    found.append(
                        Sample(
                            head,
                            pair[0],
                            f"{check}.{metric}",
                            Decimal(str(rate)),
                            unit,
                            dims={"peer": pair[1]},
                        )
                    )
            if link == "far":
                found.append(
                    Sample(
                        head,
                        "n008",
                        f"{check}.*",
                        status="timeout",
                        why="hung",
                        dims={"peer": "n001"},
                    )
                )
            samples.write(folder / "data/perflogs", head, found)


def test_measured_links_are_compared_by_the_medians_of_their_pairs(linked):
    (figure,) = links.chapter(linked).figures
    held = of_links(figure)
    assert figure.name == "links-measured"
    assert held["TcpBandwidth.throughput", "near"][:2] == ("6", "9.4 Gb/s")
    far = held["TcpBandwidth.throughput", "far"]
    assert far[:2] == ("6", "4.6 Gb/s") and far[-2] == "48.9 %"
    assert held["Latency.round_trip", "far"][-2] == "250 times"
    assert {"near", "far", "4.6 Gb/s"} <= set(texts(figure))


def test_a_bad_pair_and_a_failed_one_come_first_in_the_table(linked):
    figure = next(
        f for f in matrix.chapter(linked).figures if f.name == "matrix-tcpbandwidth-throughput-far"
    )
    assert [(row[0], row[1]) for row in figure.table.rows[:4]] == [
        ("n001 > n008", "-"),
        ("n008 > n001", "-"),
        ("n001 > n006", "1"),
        ("n006 > n001", "1"),
    ]
    assert {"timeout", "1", "4.7", "n006", "n001"} <= set(texts(figure))
    assert "2 failed" in figure.caption


def test_measured_pairs_are_tests_in_a_row_each_with_the_share_of_their_link(linked):
    found = rows_of(matrix.chapter(linked), "Pairs over far, measured")
    row = found["n006 > n001"]
    assert list(row.values())[1:6] == ["125 MB/s", "1 Gb/s", "10 Gb/s", "10 %", "iperf3"]
    assert next(iter(found)) in ("n001 > n006", "n006 > n001")  # the smallest share first


def write_days(folder, patch):
    """A link on two days, by the two rates of the mesh; message sizes over it and another one."""
    write_links(folder, patch)
    file = folder / "sites/here/system.yaml"
    file.write_text(file.read_text() + "mesh: {warn: 1 GB/s, critical: 0.5 GB/s}\n")
    for day, rates in enumerate(((9.4, 7.9), (9.4, 1.0)), start=1):
        conditions = {"program": "iperf3", "link": "near", "pattern": "star"}
        head = fleets.header(day, "TcpBandwidth", conditions=conditions)
        keep(folder, head, "TcpBandwidth.throughput", "Gb/s", rates)
    for link, times in (("near", (2, 9)), ("far", (50_000, 50_009))):
        head = fleets.header(2, "MpiPingPong", job=link, conditions={"link": link})
        for place, time in enumerate(times):
            dims = {"size": str(8 * 1024**place)}
            keep(folder, head, "MpiPingPong.latency_by_size", "us", [time], job=place, **dims)


def keep(folder, head, metric, unit, values, job=0, **dims):
    """The values of n002, n003 … with n001."""
    found = [
        Sample(head, f"n{n:03}", metric, Decimal(str(v)), unit, dims={"peer": "n001", **dims})
        for n, v in enumerate(values, start=2)
    ]
    samples.write(folder / "data/perflogs", replace(head, job=f"{head.job}{job}"), found)


def test_measured_pairs_have_days_with_the_grades_of_their_site_and_a_year(tmp_path, monkeypatch):
    held = gathered(tmp_path, monkeypatch, write_days, since="2026-01-01T00:00")
    try:
        section, compared = daily.chapter(held), scenarios.chapter(held)
    finally:
        held.close()
    found = rows_of(section, "TcpBandwidth.throughput over near")
    worst = found["n003 > n001"]
    assert next(iter(found)) == "n003 > n001"  # the worst first
    assert list(worst.values())[1:3] == ["987.5o 987.5o 987.5o", "125.0- 125.0- 125.0-"]
    assert (worst["critical"], worst["warn"], worst["good"]) == ("1", "1", "-")
    assert section.tables[0].note.endswith(
        "- below 500 MB/s, o 500 to 1000 MB/s, + above 1000 MB/s."
    )
    (figure,) = compared.figures
    assert figure.table.rows == [("8 B", "2", "50000"), ("8 KiB", "9", "50009")]
    assert {"near", "far"} <= set(texts(figure))


def test_linpack_is_a_bar_a_trial_and_a_group_a_scenario():
    drawn = figures.bars("t", "GFLOPS", [("bare", [60.0, 61.0]), ("sriov", [58.0, 59.0, 59.5])])
    root = ElementTree.fromstring(drawn)
    told = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"bare", "sriov", "GFLOPS", "median"} <= set(told)


def test_names_of_figures_are_slugs(linked):
    found = [f for c in (links, matrix) for f in c.chapter(linked).figures]
    assert all(re.fullmatch("[a-z0-9-]+", f.name) for f in found)
    assert json.dumps([f.caption for f in found]).count("nan") == 0


def test_what_was_measured_between_two_nodes_is_a_value_of_both_and_of_the_link(linked):
    section = untested.chapter(linked)
    told = [row for table in section.tables for row in table.rows]
    assert not [row for row in told if row[0] == "link"]
    assert linked.measured == {f"n{n:03}" for n in range(1, 8)}
    (failed,) = [t for t in section.tables if t.title == "Checks that gave no value"]
    assert {row[3] for row in failed.rows} == {"n008"}


def test_a_node_that_only_received_was_measured(tmp_path, monkeypatch):
    fleets.write_site(
        tmp_path / "sites",
        3,
        criteria=("C-1: {description: d, metric: Stream.triad, at_least: 1 MB/s, source: s}\n"),
    )
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path / "data"))
    for check, metric in (("Stream", "Stream.triad"), ("TcpBandwidth", "TcpBandwidth.throughput")):
        head = fleets.header(1, check)
        dims = {"peer": "n002"} if check != "Stream" else {}
        samples.write(
            tmp_path / "data/perflogs",
            head,
            [Sample(head, "n001", metric, Decimal(9), "Gb/s" if dims else "MB/s", dims=dims)],
        )
    held = material.gather("here")
    try:
        assert held.measured == {"n001", "n002"}
    finally:
        held.close()


def test_runs_of_a_sweep_that_have_no_room_are_named(swept, monkeypatch):
    monkeypatch.setattr(sweeps, "MAX_RUNS", 1)
    monkeypatch.setattr(sweeps, "MAX_NAMES", 0)
    section = sweeps.chapter(swept)
    assert [p for p in section.points if ": not drawn: " in p] == ["made_tasks: not drawn: 1 more"]


def of_conditions(tmp_path, own):
    """The values of TcpBandwidth over each link, with the conditions that only this link has."""
    for job, (link, conditions) in enumerate(own.items()):
        head = fleets.header(
            2,
            "TcpBandwidth",
            job=str(job),
            conditions={"program": "iperf3", "link": link, "pattern": "star", **conditions},
        )
        nodes = ("n002", "n003") if link == "near" else ("n005", "n006")
        found = [
            Sample(head, node, "TcpBandwidth.throughput", Decimal(9), "Gb/s", dims={"peer": "n001"})
            for node in nodes
        ]
        samples.write(tmp_path / "data/perflogs", head, found)


@rows(
    "near, far, compared",
    [
        ({"window": "1048576"}, {"window": "16777216"}, False),
        ({"mtu": "1500"}, {"mtu": "9000"}, False),
        ({"program": "iperf3"}, {"program": "nuttcp"}, False),
        ({"mtu": "9000", "version": "3.12"}, {"mtu": "9000", "version": "3.16"}, True),
        ({"pattern": "star"}, {"pattern": "all"}, True),
        ({"environment_note": "a"}, {"environment_note": "a"}, True),
    ],
)
def test_links_are_compared_under_the_same_conditions_only(
    tmp_path, monkeypatch, near, far, compared
):
    write_links(tmp_path, monkeypatch)
    of_conditions(tmp_path, {"near": near, "far": far})
    made = material.gather("here", since="2026-01-01T00:00")
    section = links.chapter(made)
    made.close()
    assert (section is not None) is compared
