"""`siteproof export openmetrics`: strict parsers read it, and it says what was measured."""

import math
import re
from dataclasses import replace
from datetime import datetime

import nets
import pytest
from exported import EVERY, NASTY, NOW, judged, measured, report, sample, site
from fleets import names, run_of

from siteproof import units
from siteproof.export import openmetrics
from siteproof.export.openmetrics import Families
from siteproof.nodes.states import State
from siteproof.record.finding import Verdict
from siteproof.sites import catalogue

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
KEYS = ("TYPE", "UNIT", "HELP")
RESERVED = ("_total", "_created", "_bucket", "_sum", "_gcount", "_gsum", "_info")


def read(text):
    """Every value by name and labels; what either of the two formats forbids is an error.

    OpenMetrics 1.0: the end, the order of lines, units, each name and each set of labels once.
    node_exporter's parser: no time, no type but gauge, no escape in HELP but those of both.
    """
    assert text.endswith("# EOF\n")
    *lines, end = text.removesuffix("\n").split("\n")
    assert end == "# EOF"
    values, families, name, told = {}, set(), "", []
    for line in lines:
        if line.startswith("# "):
            _, key, family, rest = line.split(" ", 3)
            if family != name:
                assert family not in families, "a family is in one piece"
                families.add(family)
                name, told = family, []
            assert key in KEYS
            assert key not in told
            told.append(key)
            check_descriptor(key, family, rest)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] == name
        assert {"TYPE", "HELP"} <= set(told)
        labels = re.findall(LABEL, match[2] or "")
        assert len(dict(labels)) == len(labels), line
        key = name, frozenset((k, v.replace(r"\"", '"').replace(r"\\", "\\")) for k, v in labels)
        assert key not in values, line
        values[key] = float(match[match.lastindex])
    return values


def check_descriptor(key, family, rest):
    assert re.fullmatch(NAME, family)
    assert not family.endswith(RESERVED)
    if key == "TYPE":
        assert rest == "gauge"
    elif key == "UNIT":
        assert family.endswith(f"_{rest}")
    else:
        assert re.fullmatch(r'(?:[^"\\]|\\\\)+', rest)


def of(values, name, **labels):
    """The values of a name whose labels hold these."""
    return [
        v
        for (found, have), v in values.items()
        if found == f"siteproof_{name}" and labels.items() <= dict(have).items()
    ]


def exported(one):
    return read(openmetrics.text(one, report(one), NOW))


def test_each_criterion_has_its_verdict_and_no_other(tmp_path, monkeypatch):
    values = exported(judged(site(tmp_path, monkeypatch)))
    for key in EVERY:
        for word in Verdict:
            assert of(values, "criterion_verdict", criterion=key, verdict=word) == [
                word == key.removeprefix("C-")
            ]
    assert of(values, "criteria", verdict="FAIL") == [1]
    assert of(values, "exit_code", system="here") == [1]
    assert of(values, "criterion_nodes_ok", criterion="C-FAIL") == [7]
    assert of(values, "criterion_nodes_expected", criterion="C-FAIL") == [8]


def test_values_and_bounds_are_in_base_units(tmp_path, monkeypatch):
    values = exported(judged(site(tmp_path, monkeypatch)))
    assert of(values, "criterion_worst_bytes_per_second", criterion="C-FAIL") == [70e6]
    assert of(values, "criterion_bound_bytes_per_second", criterion="C-FAIL", kind="at_least") == [
        100e6
    ]
    pending = {"criterion": "C-PENDING", "kind": "at_least"}
    assert of(values, "criterion_bound_bytes_per_second", **pending) == [1e6]
    triad = of(
        values,
        "stream_triad_bytes_per_second",
        node="n001",
        role="compute",
        partition="compute",
        environment="system",
        system="here",
        metric="Stream.triad",
    )
    assert triad == [110.5e6]


def test_every_unit_has_a_base_unit_of_size_one():
    for unit, (kind, _) in units.UNITS.items():
        if kind != "text":
            value, suffix = openmetrics.base(2, unit)
            assert units.convert(2, unit, openmetrics.BASE[kind]) == pytest.approx(value)
            assert openmetrics.SUFFIX[kind] == suffix
    assert openmetrics.base(8, "Gb/s") == (1e9, "bytes_per_second")
    assert openmetrics.base(50, "%") == (0.5, "ratio")
    assert openmetrics.base(2, "ms") == (0.002, "seconds")


def test_each_node_has_one_state(tmp_path, monkeypatch):
    found = run_of({**dict.fromkeys(names(8), 100), "n004": 70})
    one = judged(site(tmp_path, monkeypatch, "C-PASS"), found)
    values = exported(one)
    for node, state in report(one).nodes.items():
        told = {s: of(values, "node_state", node=node, state=s) for s in State}
        assert told == {s: [s is state.state] for s in State}
    assert of(values, "nodes", state="SLOW") == [1]


def test_times_are_values_and_no_line_has_one(tmp_path, monkeypatch):
    values = exported(judged(site(tmp_path, monkeypatch)))
    ended = datetime.fromisoformat(measured()[0].header.time).timestamp()
    assert of(values, "last_run_timestamp_seconds", partition="compute") == [ended]
    assert of(values, "export_timestamp_seconds") == [NOW.timestamp()]


def test_the_newest_run_counts_and_of_its_trials_the_median(tmp_path, monkeypatch):
    trials = [
        replace(sample("Stream.triad", v, "MB/s"), trial=i)
        for i, v in enumerate(("10", "30", "20"))
    ]
    old = run_of({"n001": 99}, run=0)
    for found in (old + trials, trials + old):
        values = exported(judged(site(tmp_path, monkeypatch), found))
        assert of(values, "stream_triad_bytes_per_second", node="n001") == [20e6]


def test_pairs_sweeps_and_what_others_published_have_no_series(tmp_path, monkeypatch):
    found = [
        replace(sample("TcpBandwidth.throughput", "9", "Gb/s"), dims={"peer": "n002"}),
        sample("Ior.read", "9", "MiB/s", conditions={"sweep": "s"}),
        replace(sample("Stream.triad", "9", "MB/s"), own_conditions={"published": "mean"}),
        sample("Stream.copy", "9", "MB/s"),  # no headline
        sample("BlockStorage.read", "9", "MB/s", conditions={"file_system": "scratch"}),
        sample("BlockStorage.read", "8", "MB/s", conditions={"file_system": "home"}),
    ]
    values = exported(judged(site(tmp_path, monkeypatch), found))
    assert {
        dict(labels)["metric"]
        for _, labels in values
        if "node" in dict(labels) and "metric" in dict(labels)
    } == {"BlockStorage.read"}
    assert of(values, "block_storage_read_bytes_per_second", file_system="home") == [8e6]


def test_what_others_published_years_ago_is_no_last_run(tmp_path, monkeypatch):
    found = run_of({"n001": 99}, mode="published", partition="published")
    values = exported(judged(site(tmp_path, monkeypatch), found))
    assert of(values, "last_run_timestamp_seconds") == []


def test_no_sample_at_all_is_a_whole_document(tmp_path, monkeypatch):
    values = exported(judged(site(tmp_path, monkeypatch), []))
    assert of(values, "last_run_timestamp_seconds") == []
    assert of(values, "node_state", state="UNTESTED") == [1] * 8
    assert of(values, "exit_code") == [3]


def test_hostile_texts_are_labels_and_nothing_else():
    families = Families()
    families.put("x", 1, {"node": NASTY, "empty": ""}, about=f"Help \\ {NASTY}")
    (key,) = read(families.text())
    assert dict(key[1]) == {"node": 'a"b\\c?[31m?<&>]]>??? é→'}


def test_what_is_no_number_has_the_words_of_the_format():
    families = Families()
    for number, value in enumerate((math.nan, math.inf, -math.inf, 1e300, 5e-324, 0.1, True)):
        families.put("x", value, {"n": str(number)}, about="Help")
    lines = [line.split()[-1] for line in families.text().splitlines() if "{" in line]
    assert lines[:3] == ["NaN", "+Inf", "-Inf"]
    assert [float(line) for line in lines[3:]] == [1e300, 5e-324, 0.1, 1]
    assert len(read(families.text())) == 7


def test_every_metric_of_the_catalogue_has_a_name_of_its_own():
    metrics = catalogue.read().metrics
    families = Families()
    for name, metric in metrics.items():
        if metric.unit != "text":
            unit = openmetrics.base(1, metric.unit)[1]
            about = metric.description
            families.put(openmetrics.snake(name), 1, {"metric": name}, unit, about)
    found = read(families.text())
    assert len({name for name, _ in found}) == len(found) > 200


OF_A_JOB = ("Bisection", "Collectives", "Congestion", "Scheduler")  # one value, not one a node
OF_GPUS = ("GpuAllReduce", "GpuBandwidth", "GpuGemm", "GpuHealth")  # only where nodes have them


@pytest.mark.deep
def test_320_nodes_with_every_headline_figure_are_less_than_15_000_series(tmp_path, monkeypatch):
    where = site(tmp_path, monkeypatch, count=320)
    found = [
        s
        for name, metric in where.catalogue.items()
        if metric.headline and metric.check not in OF_A_JOB + OF_GPUS
        for s in run_of(dict.fromkeys(names(320), 7), metric=name, unit=metric.unit)
    ]
    one = judged(where, found)
    values = exported(one)
    headlines = len({sample.metric for sample in found})
    assert headlines >= 20
    assert 320 * (headlines + len(State)) < len(values) < 320 * (headlines + len(State)) + 200
    assert len(values) < 15_000


def test_a_link_has_thresholds_and_counts_of_pairs_by_grade_and_no_pair_is_a_series(
    tmp_path, monkeypatch
):
    rates = ", warn: 9 Gb/s, critical: 8 Gb/s"
    where = nets.load(tmp_path, monkeypatch, count=3, criteria="{}\n", more=rates)
    found = [nets.ok(f"n{n}>s1", rate) for n, rate in ((1, 9.4), (2, 8.5), (3, 7))]
    values = exported(judged(where, found))
    for kind, rate in (("warn", 9e9 / 8), ("critical", 1e9)):
        assert of(values, "link_threshold_bytes_per_second", link="lan", kind=kind) == [rate]
    counts = {"critical": 1, "warn": 1, "good": 1, "failed": 0}
    for grade, number in counts.items():
        assert of(values, "link_pairs", link="lan", grade=grade) == [number]
    assert len(of(values, "link_pairs")) == len(counts)
