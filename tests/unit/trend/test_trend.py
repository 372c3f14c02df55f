"""Trend on made-up years: what was planted is found where it was planted, and nothing else."""

import re
from collections import Counter
from decimal import Decimal
from types import SimpleNamespace

import fleets
import pytest
import reasons
import years
from years import Change, Drift, Gap, Season, Step

from siteproof import history, trend
from siteproof.record import descriptions, samples
from siteproof.record.finding import Kind
from siteproof.record.samples import Header, Sample
from siteproof.trend.finds import Found
from siteproof.wording.findings import sentence

TRIAD, GFLOPS, SECONDS, IO = "Stream.triad", "Hpl.gflops", "Hpl.time", "RandomIo.read"
COPY, SCALE, ADD, READ, WRITE = (
    "Stream.copy",
    "Stream.scale",
    "Stream.add",
    "Lnet.read",
    "Lnet.write",
)
COARSE = ("RandomIo.write_iops", "Mdtest.create", "Mdtest.stat", "Mdtest.remove")  # CV 5 %
RACKS = "groups:\n  rack1: 'n[001-006]'\n  rack2: 'n[007-012]'\n  rack3: 'n[013-018]'\n"
RACK2 = [f"n{n:03}" for n in range(7, 13)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    return Here(tmp_path, monkeypatch)


class Here:
    """A site of 18 nodes in three racks, and its made-up years."""

    def __init__(self, folder, monkeypatch, count=18):
        self.site = fleets.load(folder / "sites", monkeypatch, count=count, more=RACKS)
        self.perflogs = folder / "data" / "perflogs"
        self.perflogs.mkdir(parents=True)
        monkeypatch.setenv("SITEPROOF_DATA", str(folder / "data"))
        monkeypatch.setenv("SITEPROOF_CACHE", str(folder / "cache"))

    def year(self, metrics=(TRIAD,), nodes=18, runs=60, **planted):
        years.write(self.perflogs, nodes=nodes, runs=runs, metrics=metrics, **planted)
        return self

    def keep(self, header, *found):
        samples.write(
            self.perflogs,
            header,
            [Sample(header, *one) if isinstance(one, tuple) else one for one in found],
        )

    def survey(self, **keys):
        with history.open_history(self.perflogs, ["here"]) as h:
            return trend.survey(self.site, h, **keys)

    def lines(self, metric, **keys):
        with history.open_history(self.perflogs, ["here"]) as h:
            return trend.history_of(self.site, h, metric, **keys)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """What is seen of a year in which each figure has a change of its own."""
    with pytest.MonkeyPatch.context() as patch:
        here = Here(tmp_path_factory.mktemp("planted"), patch)
        here.year(
            (TRIAD, GFLOPS, SECONDS, IO, COPY, SCALE, ADD, READ, WRITE),
            steps=[
                Step(TRIAD, 30, -0.08, RACK2),
                Step(GFLOPS, 12, -0.1, ["n005"]),
                Step(IO, 12, -0.2, ["n002"]),
                Step(COPY, 40, -0.05),
                Step(COPY, 20, -0.1, ["n001"]),
                Step(SCALE, 12, -0.05, RACK2),
                Step(SCALE, 12, -0.3, ["n001"]),
                Step(SECONDS, 12, 0.1, ["n001"]),
                Step(SECONDS, 12, -0.1, ["n002"]),
                Step(ADD, 20, -0.1, ["n001"], last=39),
                Step(READ, 57, -0.2, ["n001"]),
                Step(WRITE, 59, -0.3, ["n001"]),
            ],
            changes=[
                Change(30, "kernel", "6.1.0-13"),
                Change(50, "kernel", "6.1.0-14"),
                Change(40, "software_lock", "bbbb2222"),
            ],
        )
        yield here.survey()


def of(seen, metric, kind=None):
    """The alerts of a figure, the most severe first."""
    return [alert for alert in seen.all if alert.metric == metric and kind in (None, alert.kind)]


def header(session, check, run, **keys):
    """A session of one check at the time of a run."""
    time = years.time_of(run).isoformat()
    return fleets.header(run, check, session=session, time=time, conditions={}, **keys)


def day(run):
    return years.time_of(run).replace(tzinfo=None)


def only(found):
    assert len(found) == 1, found
    return found[0]


@pytest.mark.deep
def test_a_run_with_a_value_that_cannot_be_right_is_in_no_line(here):
    here.year((TRIAD, COPY), nodes=8, runs=20)
    header_of = header("s-odd", "Stream", 20, job="77", expected="n[001-008]")
    odd = {"n003": "99000000"}
    here.keep(
        header_of,
        *(
            (f"n{n:03}", metric, Decimal(odd.get(f"n{n:03}", "176000")), "MB/s")
            for n in range(1, 9)
            for metric in (TRIAD, COPY)
            if (n, metric) != (3, TRIAD)
        ),
        ("n003", TRIAD, Decimal(181000), "MB/s"),
    )
    for metric in (TRIAD, COPY):
        counts = {line.node: line.values.size for line in here.lines(metric)}
        assert counts == {f"n{n:03}": 20 if n == 3 else 21 for n in range(1, 9)}, metric
        assert max(line.values.max() for line in here.lines(metric)) < 1e6
    assert here.survey().points == 2 * (7 * 21 + 20)


def test_nothing_is_told_of_a_healthy_fleet(here):
    seen = here.year((TRIAD, IO)).survey()
    assert seen.all == []
    assert (seen.series, seen.long_enough, seen.points) == (36, 36, 36 * 60)
    assert seen.gaps == []


def test_a_step_of_a_rack_is_one_alert_with_its_runs_and_its_cause(planted):
    found = only(of(planted, TRIAD))
    assert found.place == "rack2" and str(found.nodes) == "n[007-012]"
    assert (found.kind, found.worse, found.provisional, found.open) == ("step", True, False, True)
    assert found.relative == pytest.approx(-0.08, abs=0.01)
    assert found.after / found.before == pytest.approx(0.92, abs=0.01)
    assert (found.last_before.time, found.first_after.time) == (day(29), day(30))
    assert found.first_after.session == years.session_of(30)
    assert (found.n_before, found.n_after) == (30, 30)
    assert reasons.changes(found.changed) == [("kernel", "6.1.0-12", "6.1.0-13", "")]


def test_a_step_that_is_dated_roughly_names_what_changed_within_that_date(here):
    here.year(
        COARSE,
        nodes=3,
        runs=120,
        steps=[Step(metric, 60, -0.08) for metric in COARSE],
        changes=[Change(60, "kernel", "6.1.0-13")],
    )
    rough = [a for a in here.survey().alerts if a.first_after.time != day(60)]
    assert rough
    for alert in rough:
        causes = [(f.get("what"), f.get("earliest"), f.get("latest")) for f in alert.changed]
        assert causes == [("kernel", str(alert.earliest)[:10], str(alert.latest)[:10])]
        assert alert.earliest.time < day(60) <= alert.latest.time


def test_where_nothing_else_changed_that_is_said(planted):
    found = only(of(planted, GFLOPS))
    assert reasons.changes(found.changed) == [("nothing_changed", "")]
    assert (str(found.nodes), found.place) == ("n005", "rack1")


def test_a_step_of_the_whole_fleet_is_told_once(planted):
    fleet, node = only(planted.fleet), only([a for a in planted.alerts if a.metric == COPY])
    assert fleet.of_fleet and len(fleet.nodes) == 18 and fleet.place == "compute"
    assert fleet.relative == pytest.approx(-0.05, abs=0.01)
    assert reasons.changes(fleet.changed) == [("software_lock", "aaaa1111", "bbbb2222", "")]
    assert str(node.nodes) == "n001" and node.first_after.time == day(20)


def test_a_part_of_the_fleet_is_not_the_fleet_and_the_rest_did_not_gain(here):
    parts = {TRIAD: years.names(7), GFLOPS: years.names(12)}
    steps = [Step(metric, 30, -0.1, part) for metric, part in parts.items()]
    seen = here.year(parts, steps=steps).survey()
    assert seen.fleet == []
    assert all(a.worse for a in seen.alerts)
    for metric, part in parts.items():
        assert {str(n) for a in of(seen, metric) for n in a.nodes} == set(part), metric


def test_steps_of_other_sizes_on_the_same_day_are_alerts_of_their_own(planted):
    assert {(a.place, len(a.nodes)) for a in of(planted, SCALE)} == {("rack2", 6), ("rack1", 1)}


def test_the_most_severe_comes_first(planted):
    proven = [a for a in planted.alerts if a.open and not a.provisional]
    assert [(a.metric, str(a.nodes)) for a in proven[:2]] == [(SCALE, "n001"), (IO, "n002")]
    assert [a.open for a in planted.alerts] == sorted(
        (a.open for a in planted.alerts), reverse=True
    )


def test_longer_is_worse_where_less_is_better(planted):
    assert {str(a.nodes): (a.worse, a.improved) for a in of(planted, SECONDS)} == {
        "n001": (True, False),
        "n002": (False, True),
    }


def test_what_was_made_good_is_no_open_alert(planted):
    fall = next(a for a in of(planted, ADD) if a.worse)
    assert not fall.open and fall.made_good.time == day(40)


def test_the_end_of_a_gain_that_the_others_never_had_is_no_open_alert(here):
    gain, relapse = (
        Step(TRIAD, 30, 0.3, ["n003"], last=79),
        [Step(GFLOPS, first, -0.2, ["n003"], last=last) for first, last in ((0, 29), (80, 119))],
    )
    seen = here.year((TRIAD, GFLOPS), runs=120, steps=[gain, *relapse]).survey()
    loss, slow_again = (only([a for a in of(seen, m) if a.worse]) for m in (TRIAD, GFLOPS))
    assert not loss.open and loss.ends.time == day(30)
    assert slow_again.open and slow_again.first_after.time == day(80)


def test_a_fall_of_the_last_runs_is_provisional(planted):
    found = only(of(planted, READ))
    assert (found.kind, found.provisional, found.n_after) == ("out of control", True, 3)
    assert found.first_after.time == day(57)


def test_one_bad_run_is_no_alert(planted):
    assert of(planted, WRITE) == []


def test_a_step_in_a_short_history_is_found(here):
    seen = here.year(runs=14, steps=[Step(TRIAD, 8, -0.1, ["n001"])]).survey()
    assert only(seen.all).first_after.time == day(8)


def test_a_drift_and_a_rhythm_of_the_week_are_called_by_their_names(here):
    seen = here.year(
        (TRIAD, GFLOPS),
        runs=120,
        drifts=[Drift(TRIAD, -0.3, ["n003"])],
        seasons=[Season(GFLOPS, 0.05)],
    ).survey()
    found = only(seen.drifts)
    assert seen.alerts == seen.fleet == []
    assert found.worse and str(found.nodes) == "n003" and found.metric == TRIAD
    assert found.relative == pytest.approx(-0.1, abs=0.02)
    assert found.confidence.startswith("over 119 days, most likely -1")
    assert only(seen.seasons).pattern == "weekday" and seen.seasons[0].metric == GFLOPS


@pytest.mark.deep
def test_the_size_of_a_change_is_that_of_the_levels_with_it_or_both_sizes_are_there(here):
    seen = here.year(
        (TRIAD, GFLOPS),
        runs=120,
        drifts=[Drift(TRIAD, -0.6)],
        steps=[Step(TRIAD, 60, -0.2, ["n003"]), Step(GFLOPS, 60, -0.1, ["n002"])],
    ).survey()
    step, drift = (only(of(seen, TRIAD, kind)) for kind in ("step", "drift"))
    other = only(of(seen, GFLOPS))
    size = 100 * (other.after - other.before) / other.before
    same = f"{size:+.1f}" == f"{100 * other.relative:+.1f}"
    assert other.confidence == "above 99.9 %" + ("" if same else f"; {size:+.1f} % as measured")
    shown = (step.after - step.before) / step.before
    assert shown < step.relative - 0.02
    assert step.confidence.endswith(f"; {100 * shown:+.1f} % as measured")
    low, high = (float(part) for part in re.findall(r"([+-][0-9.]+) %", drift.confidence))
    assert low < 100 * drift.relative < high


def test_a_changed_setting_or_condition_of_the_machine_is_the_cause_of_one_change(here):
    changes = [
        Change(0, "threads", "16", "conditions", "Hpl"),
        Change(30, "threads", "8", "conditions", "Hpl"),
        Change(0, "blas_version", "0.3.21", "conditions", "Stream"),
        Change(30, "blas_version", "0.3.26", "conditions", "Stream"),
    ]
    seen = here.year(
        (GFLOPS, TRIAD), changes=changes, steps=[Step(GFLOPS, 30, -0.2), Step(TRIAD, 30, -0.2)]
    ).survey()
    causes = [(found.metric, *reasons.changes(found.changed)) for found in seen.fleet]
    assert sorted(causes) == [
        (GFLOPS, ("Hpl threads", "16", "8", "")),
        (TRIAD, ("Stream blas_version", "0.3.21", "0.3.26", "")),
    ]
    assert (len(seen.all), seen.gaps) == (2, [])


def test_a_changed_place_begins_another_series(here):
    changes = [
        Change(0, "file_system", "a", "conditions", "Hpl"),
        Change(30, "file_system", "b", "conditions", "Hpl"),
    ]
    seen = here.year((GFLOPS,), changes=changes, steps=[Step(GFLOPS, 30, -0.2)]).survey()
    assert seen.all == []
    gap = only(seen.gaps)
    assert (gap.kind, gap.since) == (Kind.NOTE, f"{day(30):%Y-%m-%dT%H:%M:%S}Z")
    assert dict(gap.details) == {
        "differences": "file_system a -> b",
        "session": years.session_of(30),
        "series": "Hpl.gflops of compute",
    }


def test_settings_that_one_session_has_together_are_points_and_stay_apart(here):
    for run in range(40):
        for threads, level in (("16", 1000), ("8", 700)):
            head = fleets.header(
                run,
                "Hpl",
                time=f"{day(run):%Y-%m-%dT%H:%M:%S}+00:00",
                job=threads,
                conditions={"threads": threads},
            )
            of_nodes = [(n, GFLOPS, Decimal(level + run % 3), "GFLOPS") for n in fleets.names(6)]
            here.keep(head, *of_nodes)
    seen = here.survey()
    assert (seen.all, seen.seasons, seen.series) == ([], [], 12)


def test_quick_runs_stay_apart(here):
    here.year(runs=40).year(runs=70, first=40, mode="quick", steps=[Step(TRIAD, 40, -0.2)])
    seen = here.survey()
    assert seen.all == [] and seen.series == 36


def test_acceptance_and_maintenance_are_one_series(here):
    here.year(runs=40).year(runs=70, first=40, mode="acceptance", steps=[Step(TRIAD, 40, -0.2)])
    found = only(here.survey().all)
    assert found.of_fleet
    assert reasons.changes(found.changed) == [("Stream mode", "maintenance", "acceptance", "")]


def test_published_figures_stay_apart(here):
    here.year(runs=20)
    for run in range(20, 40):
        places = dict.fromkeys(("mode", "partition", "environment"), "published")
        head = header(f"p{run}", "Stream", run, **places)
        here.keep(head, ("n001", TRIAD, Decimal(90_000), "MB/s"))
    seen = here.survey()
    assert seen.all == [] and seen.points == 360
    assert "20 published values left out: not measured by Siteproof" in map(sentence, seen.gaps)


def test_what_is_missing_is_named_with_a_count(here):
    here.year(
        (TRIAD, GFLOPS),
        gaps=[
            Gap(40, 59, ["n003", "n004"]),
            Gap(10, 20, ["n005"], TRIAD),
            Gap(30, 33, ["n006"], GFLOPS, "timeout"),
            Gap(22, 28),
        ],
    )
    here.keep(
        header("s", "Stream", 41),
        ("stranger", TRIAD, Decimal(1), "MB/s"),
        ("n001", "Stream.made_up", Decimal(1), "x"),
        ("n001", "Stream.copy", Decimal(1), "MB/s"),
        ("n001", "Stream.scale", Decimal(1), "s"),
    )
    gaps = here.survey().gaps

    def found(words):
        return only([gap for gap in gaps if words in sentence(gap)])

    triad, both = "Stream.triad of compute", "Hpl.gflops of compute, Stream.triad of compute"
    absent = found("not measured since")
    assert (absent.subject, absent.since) == ("n[003-004]", f"{day(39):%Y-%m-%d}")
    assert dict(absent.details) == {"series": "Hpl.gflops of compute", "more": 1}
    silence = found("no run between")
    assert silence.since == f"{day(21):%Y-%m-%d}"
    assert dict(silence.details) == {"until": f"{day(29):%Y-%m-%d}", "days": 1, "series": both}
    missed = found("in a line")
    assert (missed.subject, missed.metric, missed["count"]) == ("n005", triad, 1)
    lost = found("without a value")
    assert (lost.status, lost.check, lost.subject) == ("timeout", "Hpl", "n006")
    assert dict(lost.details) == {"samples": 4, "nodes": 1}
    short = found("too few for a step")
    assert (short.metric, short.subject) == ("Stream.copy of compute", "n001")
    assert dict(short.details) == {"count": 1, "of": 37, "needed": 10, "runs": 1}
    assert dict(found("without a role").details) == {"names": "stranger", "values": 1}
    assert dict(found("not in the catalogue").details) == {"names": "Stream.made_up", "values": 1}
    wrong = found("not a unit of")
    assert (wrong.metric, wrong.unit) == ("Stream.scale", "s")
    assert (wrong["count"], wrong["expected"]) == (1, "rate")


def test_units_are_converted(here):
    here.year(runs=20)
    for run in range(20, 40):
        path = next(here.perflogs.glob(f"*/*/{years.session_of(run - 20)}*"))
        head = samples.read(path)[0].header
        head = Header(
            **{
                **vars(head),
                "session": f"t{run}",
                "job": "x",
                "time": years.time_of(run).isoformat(),
            }
        )
        here.keep(head, *((s.node, s.metric, s.value / 1000, "GB/s") for s in samples.read(path)))
    seen = here.survey()
    assert seen.all == seen.gaps == [] and seen.series == 18


def test_runs_of_one_session_count_one_by_one_and_trials_by_their_median(here):
    for job in range(12):
        head = fleets.header(1, job=str(job), time=f"2026-11-02T{job:02}:00:00+00:00")
        level = 100 if job < 6 else 50
        here.keep(
            head,
            *(
                Sample(head, "n001", TRIAD, Decimal(level + trial), "MB/s", trial=trial)
                for trial in (-1, 0, 1)
            ),
        )
    line = only(here.lines(TRIAD))
    assert line.values.tolist() == [100] * 6 + [50] * 6
    found = only(here.survey().all)
    assert (found.before, found.after) == (100, 50)


def test_a_link_is_a_place_of_its_own(here):
    for run in range(24):
        head = fleets.header(run, "TcpBandwidth", conditions={"link": "wan"})
        level = 9.0 if run < 12 else 7.0
        here.keep(
            head,
            Sample(
                head,
                "",
                "TcpBandwidth.throughput",
                Decimal(f"{level + run / 1e4}"),
                "Gb/s",
                dims={"link": "wan"},
            ),
        )
    found = only(here.survey().all)
    assert (found.role, found.place, str(found.nodes)) == ("link", "link", "wan")


def test_logs_of_plain_reframe_have_lines_of_their_own(here):
    here.year(runs=40)
    columns = (
        "job_completion_time_unix|version|display_name|system|partition|environ|jobid|"
        "result|job_nodelist|perf_var|perf_value|perf_unit|perf_ref|perf_lower_thres|"
        "perf_upper_thres|perf_result"
    )
    rows = [
        f"{years.time_of(run).timestamp()}|4.10.4|{test}|here|compute|gnu|{run}|pass|{node}|{figure}"
        f"|{(100 if run < 20 else 80) + run * 7 % 5 / 10}|{unit}|1|0|null|pass"
        for run in range(40)
        for test, node, figure, unit in (
            ("Probe", "n001", "speed", "GB/s"),
            ("Probe", "other1", "wall", "s"),
            ("Probe", "n002", "odd", "furlongs"),
            ("Stream", "n001", "triad", "MB/s"),
        )
    ]
    path = here.perflogs / "here" / "imported" / "old.log"
    path.parent.mkdir()
    path.write_text("\n".join([columns, *rows, ""]))
    seen = here.survey()
    assert {(a.metric, str(a.nodes), a.role, a.worse) for a in seen.alerts} == {
        ("Probe.speed", "n001", "compute", True),
        ("Probe.wall", "other1", "imported", False),
        ("Stream.triad", "n001", "compute", True),
    }
    assert {why.kind for alert in seen.alerts for why in alert.changed} == {"change_unknown"}
    assert seen.series == 18 + 3
    gap = only(seen.gaps)
    assert (gap.kind, gap.metric, gap.unit) == (Kind.NOTE, "Probe.odd", "furlongs")
    assert gap["count"] == 40


def test_what_changed_in_another_environment_is_no_cause(here):
    here.year(nodes=4, runs=30, environment="gnu", steps=[Step(TRIAD, 15, -0.1, ["n001"])])
    here.year(
        nodes=4,
        runs=30,
        environment="intel",
        partition="other",
        changes=[
            Change(0, "blas_version", "0.3.21", "conditions"),
            Change(15, "blas_version", "0.3.26", "conditions"),
        ],
    )
    found = only(here.survey().all)
    assert found.environment == "gnu"
    assert reasons.changes(found.changed) == [("nothing_changed", "")]


def test_host_parameters_and_firmware_are_causes_also_when_they_are_measured_less_often(here):
    here.year(steps=[Step(TRIAD, 30, -0.1, ["n001"])])
    for run, text in ((10, "10"), (45, "60")):
        head = header(f"h{run}", "HostParameters", run)
        here.keep(
            head,
            ("n001", "HostParameters.sysctl", f"vm.swappiness {text}", "text"),
            ("n002", "HostParameters.sysctl", f"vm.other {text}", "text"),
        )
    assert reasons.changes(only(here.survey().all).changed) == [
        ("HostParameters.sysctl", "vm.swappiness 10", "vm.swappiness 60", "n001")
    ]


def test_firmware_that_changed_between_two_descriptions_is_a_cause(here):
    here.year(nodes=4, runs=30, steps=[Step(TRIAD, 15, -0.1, ["n001"])])
    for run, version in ((5, "1.2"), (10, "1.3"), (15, "2.0"), (25, "2.1")):
        head = header(f"d{run}", "SystemDescription", run)
        kept = {"n001": {"bios.version": version, "cpu": "x"}, "n002": {"bios.version": version}}
        descriptions.write(here.perflogs, head, kept)
        here.keep(
            head,
            *(
                (node, descriptions.COUNT, Decimal(len(held)), "count")
                for node, held in kept.items()
            ),
        )
    changed = reasons.changes(only(here.survey().all).changed)
    assert changed == [("bios.version", "1.3", "2.0", "n001")]
    next(here.perflogs.rglob("d10*.fields.json.gz")).write_bytes(b"broken")
    unknown = only(only(here.survey().all).changed)
    assert unknown.kind == "change_unknown"
    assert "d10.SystemDescription.1.fields.json.gz" in unknown.message


@pytest.mark.deep
def test_what_dates_a_bad_node_depends_on_no_other_metric(here):
    """With 10,000 further lines the page reports no change of this size; its date stays."""
    steps = [Step(metric, 40, -0.1, ["n005"]) for metric in (TRIAD, COPY)]
    here.year((TRIAD, COPY), steps=steps)
    seen = here.survey()
    with history.open_history(here.perflogs, ["here"]) as h:
        for metric in (TRIAD, COPY):
            alone = trend.dates(here.site, h, metric, None)
            assert [(a.id, a.begin) for a in alone] == [(a.id, a.begin) for a in seen.dates[metric]]
            assert alone
    group = SimpleNamespace(key=SimpleNamespace(metric=TRIAD))
    line = SimpleNamespace(group=group)
    find = SimpleNamespace(stretch=line, chance=1e-5, provisional=False)
    found = Found([find], searched=Counter({TRIAD: 20, COPY: 10_000}))
    assert (found.reported(), found.reported(TRIAD)) == ([], [find])


def test_since_tells_only_what_came_later_and_metric_and_node_only_theirs(here):
    here.year(
        (TRIAD, GFLOPS), steps=[Step(TRIAD, 20, -0.1, ["n001"]), Step(GFLOPS, 40, -0.1, ["n002"])]
    )
    assert [a.metric for a in here.survey(since=years.time_of(30)).all] == [GFLOPS]
    assert [a.metric for a in here.survey(metric=TRIAD).all] == [TRIAD]
    assert [a.metric for a in here.survey(node="n002").all] == [GFLOPS]
    assert here.survey(now=years.time_of(15)).all == []


@pytest.mark.deep
def test_lines_are_given_with_their_changes(here):
    here.year(steps=[Step(TRIAD, 30, -0.1, ["n001"])])
    seen = here.survey()
    first, second = (only(here.lines(TRIAD, node=n, seen=seen)) for n in ("n001", "n002"))
    assert [a.id for a in first.changes] == [only(seen.all).id] and not second.changes
    assert first.unit == "MB/s" and first.values.size == first.times.size == 60


def test_a_system_without_history_is_told_as_such(here):
    seen = here.survey()
    assert (seen.all, seen.series, seen.long_enough) == ([], 0, 0)


def test_a_node_that_two_partitions_have_measured_has_one_series(here):
    for run in range(24):
        partition = "debug" if run % 2 else "compute"
        head = fleets.header(run, partition=partition)
        level = 100 if run < 12 else 80
        here.keep(head, *((node, TRIAD, Decimal(level), "MB/s") for node in fleets.names(18)))
    seen = here.survey()
    assert seen.series == 18
    assert len(only([x for x in here.lines(TRIAD) if x.node == "n001"]).values) == 24
