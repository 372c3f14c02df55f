"""Values of different points are never put together: each is by itself, and the worst decides."""

import json
import random
from dataclasses import replace
from decimal import Decimal

import fleets
import nets
import pytest
import recomputed
from asked import ask
from rows import rows

from siteproof import sites
from siteproof.checks import missing
from siteproof.collect import stages
from siteproof.collect.outcome import Outcome
from siteproof.export import documents
from siteproof.export.documents import plain
from siteproof.links import matrix
from siteproof.parsers import Reading
from siteproof.record import samples
from siteproof.record.manifest import Manifest
from siteproof.record.samples import Sample
from siteproof.sites import catalogue
from siteproof.verdict import judgement
from siteproof.wording.verdicts import value

SMALL, LARGE = {"block": "4096"}, {"block": "1048576"}
ONE, FOUR = {"streams": "1"}, {"streams": "4"}
CRITERION = """\
C: {{description: d, metric: {metric}, source: s, max_age: none, {more}}}
"""
REPORTED = "report_only: for information"
BETWEEN = "subject: pair, links: [lan]"


class Here:
    """A network of two clients and a server, and one criterion."""

    def __init__(self, folder, monkeypatch, metric, more):
        self.metric = metric
        text = CRITERION.format(metric=metric, more=more)
        folder = nets.write_site(folder / "sites", count=2, criteria=text)
        monkeypatch.setenv("SITEPROOF_SITES", str(folder))
        self.site = sites.load("here")

    def judged(self, found):
        judged = judgement.judge_samples(self.site, list(found), "all of it")
        recomputed.must_agree(judged)
        return judged.verdicts[0]

    def values(self, found, unit="n1"):
        """The values of a unit, in their order: of what decides the one that does."""
        nodes = self.judged(found).nodes
        return [float(round(n.value, 4)) for n in nodes if n.node == unit]


def on_node(metric, unit, values, run=1, node="n1", place="scratch"):
    """One job: the values of a node at each point; program and file system are conditions."""
    check = metric.partition(".")[0]
    program = {"RandomIo": "fio", "BlockStorage": "dd"}.get(check, "proc")
    told = {"program": program, "file_system": place}
    head = fleets.header(run, check, conditions=told, job=f"{run}.{place}")
    return [
        Sample(head, node, metric, Decimal(str(value)), unit, dims=dims, trial=trial)
        for dims, of_point in values
        for trial, value in enumerate(of_point)
    ]


def between(values, pair="n1>s1", metric=nets.METRIC, unit="Gb/s", run=1):
    """One job: the values of a pair at each point, trial by trial."""
    return [
        nets.ok(pair, value, run, metric=metric, unit=unit, dims=dims, trial=trial)
        for dims, of_point in values
        for trial, value in enumerate(of_point)
    ]


# ---- what decides nothing: a row a point


@rows(
    "metric, unit, values, rows_of",
    [
        ("RandomIo.read", "MB/s", [(SMALL, [46.69]), (LARGE, [822.31])], [46.69, 822.31]),
        ("RandomIo.read_p99", "us", [(SMALL, [2376]), (LARGE, [163])], [2376, 163]),
        ("RdmaPorts.rate", "Gb/s", [({"port": "a/1"}, [100]), ({"port": "b/1"}, [25])], [25, 100]),
        ("RandomIo.read", "MB/s", [(SMALL, [40, 42, 50]), (LARGE, [800])], [42, 800]),
    ],
)
def test_what_is_reported_only_has_a_row_a_point(
    tmp_path, monkeypatch, metric, unit, values, rows_of
):
    here = Here(tmp_path, monkeypatch, metric, REPORTED)
    assert here.values(on_node(metric, unit, values)) == rows_of


def test_a_row_names_its_point_where_there_are_several(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch, "RandomIo.read", REPORTED)
    two = here.judged(on_node("RandomIo.read", "MB/s", [(SMALL, [46.69]), (LARGE, [822.31])]))
    assert [n.point for n in two.nodes] == ["block 4096", "block 1048576"]
    one = here.judged(on_node("RandomIo.read", "MB/s", [(SMALL, [46.69])]))
    assert [n.point for n in one.nodes] == [""]


def test_each_file_system_is_a_point(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch, "BlockStorage.read", REPORTED)
    found = [
        *on_node("BlockStorage.read", "MB/s", [({}, [100])], place="home"),
        *on_node("BlockStorage.read", "MB/s", [({}, [900])], place="scratch"),
    ]
    assert here.values(found) == [100, 900]


# ---- what has a bound: the worst decides, whichever line is the last


@rows("order", [1, -1])
@rows(
    "metric, unit, bound, values, worst",
    [
        ("RandomIo.read", "MB/s", "at_least: 100 MB/s", [(SMALL, [46]), (LARGE, [822])], 46),
        ("RandomIo.read_p99", "us", "at_most: 500 us", [(SMALL, [2376]), (LARGE, [163])], 2376),
        (
            *("RdmaPorts.rate", "Gb/s", "at_least: 50 Gb/s"),
            *([({"port": "a/1"}, [100]), ({"port": "b/1"}, [25])], 25),
        ),
    ],
)
def test_the_worst_point_of_a_node_decides(
    tmp_path, monkeypatch, metric, unit, bound, values, worst, order
):
    here = Here(tmp_path, monkeypatch, metric, f"{bound}, scope: every node, nodes: [compute]")
    found = on_node(metric, unit, values)[::order]
    found += on_node(metric, unit, values, node="n2")
    assert here.judged(found).verdict == "FAIL"
    assert here.values(found) == [worst]


@rows("file_systems", [("home", "scratch"), ("scratch", "home")])
def test_a_newer_value_of_one_file_system_hides_no_failure_on_another(
    tmp_path, monkeypatch, file_systems
):
    bound = "at_least: 500 MB/s, scope: every node, nodes: [compute]"
    here = Here(tmp_path, monkeypatch, "BlockStorage.read", bound)
    found = [
        sample
        for run, (place, value) in enumerate(zip(file_systems, (100, 900), strict=True), 1)
        for node in ("n1", "n2")
        for sample in on_node("BlockStorage.read", "MB/s", [({}, [value])], run, node, place)
    ]
    assert here.judged(found).verdict == "FAIL"


@rows("scope, value", [("median", 60), ("mean", 60)])
def test_a_middle_is_of_one_point(tmp_path, monkeypatch, scope, value):
    bound = f"at_least: 100 MB/s, scope: {scope}, nodes: [compute]"
    here = Here(tmp_path, monkeypatch, "RandomIo.read", bound)
    first = on_node("RandomIo.read", "MB/s", [(SMALL, [50]), (LARGE, [820])])
    both = first + on_node("RandomIo.read", "MB/s", [(SMALL, [70]), (LARGE, [900])], node="n2")
    result = here.judged(both)
    assert (result.verdict, float(result.nodes[0].value)) == ("FAIL", value)
    one_less = first + on_node("RandomIo.read", "MB/s", [(LARGE, [900])], node="n2")
    assert here.judged(one_less).verdict == "INCOMPLETE"


# ---- what is derived


OVER = {  # the derived values of one and of four streams over a link
    "share_of_max": (between([(ONE, [5]), (FOUR, [9])]), BETWEEN, "n1>s1", [50, 90]),
    "best": (between([(ONE, [4, 5]), (FOUR, [9, 8])]), BETWEEN, "n1>s1", [5000, 9000]),
    "median": (between([(ONE, [4, 5]), (FOUR, [9, 8])]), BETWEEN, "n1>s1", [4500, 8500]),
    "trials": (between([(ONE, [5, 6, 7]), (FOUR, [9, 9])]), BETWEEN, "n1>s1", [2, 3]),
}


@rows("name", list(OVER))
def test_one_and_four_streams_are_two_derived_values_of_a_pair(tmp_path, monkeypatch, name):
    found, more, unit, values = OVER[name]
    here = Here(tmp_path, monkeypatch, f"TcpBandwidth.{name}", f"{more}, {REPORTED}")
    assert here.values(found, unit) == values


@rows("retest", [1, 2])
def test_a_link_has_an_asymmetry_a_point(tmp_path, monkeypatch, retest):
    everything = [
        *between([(ONE, [5]), (FOUR, [9])], run=retest),
        *between([(ONE, [4]), (FOUR, [9])], "s1>n1", run=retest),
        *between([(ONE, [5]), (FOUR, [9])], "n2>s1"),
        *between([(ONE, [5]), (FOUR, [3])], "s1>n2"),
    ]
    more = f"subject: system, links: [lan], {REPORTED}"
    here = Here(tmp_path, monkeypatch, "TcpBandwidth.asymmetry", more)
    assert here.values(everything, "lan") == [0.3333, 0.8]


def test_the_ratio_of_random_to_sequential_is_of_each_block(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch, "RandomIo.read_ratio", REPORTED)
    serial = on_node("BlockStorage.read", "MB/s", [({}, [1000])])
    both = on_node("RandomIo.read", "MB/s", [(SMALL, [50]), (LARGE, [800])])
    assert here.values([*serial, *both]) == [0.05, 0.8]


# ---- samples of another point change nothing


@rows("metric", ["RandomIo.read", "RandomIo.read_p99", "RdmaPorts.rate"])
@pytest.mark.deep
def test_samples_of_another_point_never_change_the_value_of_the_first(
    tmp_path, monkeypatch, metric
):
    here = Here(tmp_path, monkeypatch, metric, REPORTED)
    unit = here.site.catalogue[metric].unit
    chance = random.Random(metric)
    for number in range(30):
        first = ({"port": "0"}, [chance.randint(1, 999) for _ in range(chance.randint(1, 4))])
        others = [
            ({"port": str(1 + n)}, [chance.randint(1, 999) for _ in range(chance.randint(1, 4))])
            for n in range(chance.randint(1, 3))
        ]
        alone = here.values(on_node(metric, unit, [first]))
        everything = on_node(metric, unit, [first, *others])
        chance.shuffle(everything)
        nodes = here.judged(everything).nodes
        same = [float(n.value) for n in nodes if n.sample.dims == first[0]]
        assert (alone, len(nodes)) == (same, 1 + len(others)), number


@rows("name", list(OVER))
def test_a_derived_value_does_not_change_with_samples_of_another_point(tmp_path, monkeypatch, name):
    found, more, unit, _ = OVER[name]
    here = Here(tmp_path, monkeypatch, f"TcpBandwidth.{name}", f"{more}, {REPORTED}")
    for point in (ONE, FOUR):
        alone = [s for s in found if s.dims["streams"] == point["streams"]]
        (value,) = here.values(alone, unit)
        nodes = here.judged(found).nodes
        assert [float(n.value) for n in nodes if n.sample.dims["streams"] == point["streams"]] == [
            value
        ]


def test_a_point_with_too_few_trials_is_no_pass(tmp_path, monkeypatch):
    more = f"{BETWEEN}, trials: 2, "
    for name, bound, verdict in (("best", "100 Mb/s", "INCOMPLETE"), ("best", "7 Gb/s", "FAIL")):
        where = tmp_path / verdict
        here = Here(where, monkeypatch, f"TcpBandwidth.{name}", f"{more}at_least: {bound}")
        pairs = [f"{a}>s1" for a in ("n1", "n2")] + [f"s1>{a}" for a in ("n1", "n2")]
        of_all = [s for pair in pairs for s in between([(ONE, [5, 6])], pair)]
        few = between([(FOUR, [9])])
        assert here.judged([*of_all, *few]).verdict == verdict
        assert here.judged(of_all).verdict == ("PASS" if verdict == "INCOMPLETE" else "FAIL")


# ---- what the catalogue says


@rows(
    "metric, dims, conditions, refused",
    [
        ("read", {"block": "4096"}, {"file_system": "scratch"}, ""),
        ("read", {"block": "4096"}, {}, "file_system"),
        ("read", {}, {"file_system": "scratch"}, "block"),
        ("read", {}, {"file_system": "scratch", "block": "4096"}, ""),
        ("another", {}, {}, ""),
    ],
)
def test_a_sample_without_a_key_of_its_point_is_refused(metric, dims, conditions, refused):
    point = {"read": catalogue.read()[0]["RandomIo.read"].point}
    names = ("s", "here", "compute", "system", "RandomIo", "quick", "n1")
    job = Manifest(*names, [metric], {}, point=point)
    reading = Reading(metric, Decimal(1), "MB/s", dims)
    (sample,) = stages.to_samples(job, [("n1", Outcome([reading], conditions))], 0)
    assert (sample.status, refused in sample.why) == ("parse" if refused else "ok", True)
    assert bool(sample.why) is bool(refused)


def test_the_point_of_a_metric_is_known_of_what_a_criterion_may_name():
    for name, metric in catalogue.read()[0].items():
        assert set(metric.point) <= set(metric.conditions), name


def test_no_day_of_a_pair_has_an_average_over_two_points(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch, nets.METRIC, f"{BETWEEN}, {REPORTED}")
    found = between([(ONE, [4, 6]), (FOUR, [8])])
    lost = nets.failed("n2>s1")
    days = {
        pair: [(cell.average and float(cell.average), cell.error) for cell in of_pair.values()]
        for pair, of_pair in matrix.by_day(here.site, [*found, lost], nets.METRIC).items()
    }
    assert days == {
        ("n1", "s1 at streams 1"): [(625, "")],
        ("n1", "s1 at streams 4"): [(1000, "")],
        ("n2", "s1 at streams 1"): [(None, "timeout")],
        ("n2", "s1 at streams 4"): [(None, "timeout")],
    }
    alone = matrix.by_day(here.site, [*between([(ONE, [4, 6])]), lost], nets.METRIC)
    assert list(alone) == [("n1", "s1"), ("n2", "s1")]


@rows(
    "metric, unit, bound, first, second, middle",
    [
        ("read", "MB/s", "at_least: 100 MB/s", (50, 820), (70, 900), 60),
        ("read", "MB/s", "at_least: 10 MB/s", (50, 820), (70, 900), 60),
        ("read_p99", "us", "at_most: 500 us", (2376, 163), (2400, 165), 2388),
    ],
)
def test_the_median_that_reframe_compares_is_of_one_point(
    tmp_path, monkeypatch, metric, unit, bound, first, second, middle
):
    name = f"RandomIo.{metric}"
    here = Here(tmp_path, monkeypatch, name, f"{bound}, scope: median, nodes: [compute]")
    found = [
        sample
        for node, (small, large) in (("n1", first), ("n2", second))
        for sample in on_node(name, unit, [(SMALL, [small]), (LARGE, [large])], node=node)
    ]
    compared = missing.compared(here.site, "RandomIo", metric, "acceptance", found)
    of_nodes = {shown: (value, own) for shown, value, own, _ in compared}
    assert of_nodes[f"{metric}_median"] == (middle, unit)


def test_where_nothing_is_promised_reframe_shows_what_the_check_shows(tmp_path, monkeypatch):
    found = on_node("RandomIo.read", "MB/s", [(SMALL, [46.69]), (LARGE, [822.31])])

    def is_large(sample):
        return sample.dims == LARGE

    def lines(more):
        site = Here(tmp_path / more[:2], monkeypatch, "RandomIo.read", more).site
        return missing.compared(site, "RandomIo", "read", "acceptance", found, is_large)

    assert [line[:2] for line in lines(REPORTED)] == [("read", 822.31)]
    [(_, value, unit, reference)] = lines("at_least: 50 MB/s, nodes: [compute]")
    assert (value, unit, reference[0]) == (46.69, "MB/s", 50)


def test_what_programs_read_counts_units_and_names_points(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch, "RandomIo.read", REPORTED)
    found = on_node("RandomIo.read", "MB/s", [(SMALL, [46.69]), (LARGE, [822.31])])
    judged = judgement.judge_samples(here.site, found, "all of it")
    told = plain(documents.criterion(judged, judged.verdicts[0]))
    rows_of = [(one["node"], one["dims"], one["number"]) for one in told["nodes"]]
    assert rows_of == [("n1", SMALL, 46.69), ("n1", LARGE, 822.31)]
    assert (told["nodes_expected"], told["counts"]["reported"]) == (1, 1)
    assert value(judged.verdicts[0].nodes[0], here.site.criteria["C"]) == (
        "46.69 MB/s at block 4096 by fio"
    )


# ---- each place has its newest answer from a session of its own

FILE_SYSTEMS = """\
file_systems:
  home: {path: /home, kind: nfs, description: d, roles: [compute]}
  scratch: {path: /scratch, kind: xfs, description: d, roles: [compute]}
"""
WRITES = """\
C: {{description: d, metric: BlockStorage.write, at_least: 100 MB/s, scope: every node, source: s,
    max_age: none{more}}}
"""
NAMED = ", conditions: {file_system: [home, scratch]}"


@rows("more", ["", NAMED])
@rows(
    "on_scratch, code, state",
    [(50, 1, "FAILED"), ("timeout", 1, "FAILED"), ("tool_missing", 3, "OK"), (200, 0, "OK")],
)
def test_a_later_session_on_one_file_system_takes_nothing_back_on_another(
    tmp_path, monkeypatch, more, on_scratch, code, state
):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    where = fleets.write_site(
        tmp_path / "sites", 2, more=FILE_SYSTEMS, criteria=WRITES.format(more=more)
    )
    monkeypatch.setenv("SITEPROOF_SITES", str(where))
    for run, place, measured in ((1, "scratch", on_scratch), (2, "home", 150)):
        number = 0 if isinstance(measured, str) else measured
        found = on_node("BlockStorage.write", "MB/s", [({}, [number])], run, "n001", place)
        if isinstance(measured, str):
            found = [Sample(found[0].header, "n001", "BlockStorage.*", status=measured)]
        found.append(replace(found[0], node="n002"))
        samples.write(tmp_path / "perflogs", found[0].header, found)
    assert ask("verdict")[0] == code
    nodes = json.loads(ask("nodes", "--json")[1])["nodes"]
    assert {node["state"] for node in nodes} == {state}
