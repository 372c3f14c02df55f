"""What plain ReFrame has left behind is read as it was written, or refused by name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial

import pytest
from batches import columns, rows
from clone import FOREIGN
from refusals import refusal

from siteproof.checks import settings
from siteproof.errors import UserError
from siteproof.history import views
from siteproof.history.foreign import figures as foreign_figures
from siteproof.history.foreign import layouts

LOGS = sorted(p for p in FOREIGN.glob("[34]*/*") if p.is_file())
REPORTS = sorted(FOREIGN.glob("reports/*.json"))
WITH_A_DELIMITER = FOREIGN / "4.10-default" / "PipeTest.log"  # in its description
STREAM = {"StreamTest.copy": "24939.4", "StreamTest.triad": "25001.0"}
HEAD = "job_completion_time|display_name|system|partition|environ|jobid|copy_value|copy_unit"
LINE = "2026-11-21T19:39:48|Test %n=4|old|compute|gnu|7|24939.4|MB/s"


@pytest.fixture
def log(tmp_path):
    """Rows of a perflog of these lines; a line without its end is one."""

    def read(*lines, name="Test.log", **keys):
        path = tmp_path / name
        path.write_bytes(
            b"".join(line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines)
        )
        return rows(path, **keys)

    return read


@cache
def recorded(path):
    """Rows of a recording, which several tests look at."""
    return rows(path, format="3.x" if path.parent.name.startswith("3.") else "")


def column(batch, name):
    return columns(batch)[name].tolist()


def figures(batch):
    held = columns(batch)
    return list(zip(held["metric"], held["digits"], held["unit"], held["status"], strict=True))


def conditions(batch, which=0):
    return json.loads(columns(batch)["conditions"][which])


# ---- recordings


@pytest.mark.deep
def test_every_recording_is_read_whole():
    for path in LOGS + REPORTS:
        if path == WITH_A_DELIMITER:
            continue
        batch = recorded(path)
        assert len(batch) > 0, path
        assert batch.refused == [], path
        assert batch.systems == {"oldsys"}, path
        held = columns(batch)
        assert set(held) == {c.name for c in views.SAMPLES}, path
        assert set(held["partition"]) == {"compute"}, path
        assert set(held["environment"]) == {"gnu"}, path
        assert set(held["source"]) == {"reframe"}, path
        assert set(held["mode"]) == {"imported"}, path


def test_the_tools_digits_and_units_stay():
    for path in [
        p
        for p in LOGS + REPORTS
        if p.stem.startswith("Stream") or p.name in ("3.4.json", "4.10.json")
    ]:
        for metric, digits, unit, status in figures(recorded(path)):
            if metric in STREAM and digits != "25010.5":  # the second run of the changed test
                assert (digits, unit, status) == (STREAM[metric], "MB/s", "ok"), path


def test_base_is_the_value_in_the_base_unit_of_its_kind():
    held = columns(recorded(FOREIGN / "3.12-default" / "PipeTest.log"))
    assert held["kind"].tolist() == ["time", "time"]
    assert held["base"][0] == pytest.approx(1.52e-6)


def test_a_parameter_is_a_dimension_and_a_loggable_variable_a_condition():
    batch = recorded(FOREIGN / "4.10-default" / "StreamTest.log")
    assert set(column(batch, "dims")) == {'{"threads":"1"}', '{"threads":"4"}'}
    assert conditions(batch)["size"] == "80"
    assert column(batch, "check_name")[0] == "StreamTest"


def test_a_changed_header_is_another_series_and_its_old_file_is_read_too():
    old, new = (recorded(FOREIGN / "4.10-default" / f"StreamTest.log{end}") for end in (".h0", ""))
    assert not set(column(old, "series")) & set(column(new, "series"))


def test_a_line_with_a_delimiter_in_its_description_is_refused():
    batch = recorded(WITH_A_DELIMITER)
    assert len(batch) == 0
    assert [told.partition("log:")[2] for told in batch.refused] == [
        f"{line}: 31 columns, 30 have names: a delimiter within a text?" for line in (2, 3)
    ]


def test_what_is_no_finite_number_and_what_is_missing_are_told_apart():
    odd = recorded(FOREIGN / "4.10-default" / "OddTest.log")
    assert {status for *_, status in figures(odd)} == {"invalid"}
    failed = recorded(FOREIGN / "4.10-default" / "FailTest.log")
    assert figures(failed)[0] == ("FailTest.copy", None, "", "generic")
    assert set(columns(odd)["value"]) == {None}


def test_a_perflog_and_the_report_of_the_same_run_agree():
    log = columns(recorded(FOREIGN / "4.10-default" / "StreamTest.log.h0"))
    report = columns(recorded(FOREIGN / "reports" / "4.10.json"))
    for i in range(4):
        for name in ("metric", "digits", "unit", "job", "time", "node", "dims", "series"):
            assert log[name][i] == report[name][i], name


def test_several_rows_a_variable_and_one_row_agree():
    one = columns(recorded(FOREIGN / "4.10-comma" / "StreamTest.log"))
    each = columns(recorded(FOREIGN / "4.10-multiline" / "StreamTest.log"))
    for name in ("metric", "digits", "unit", "dims", "series"):
        assert one[name].tolist() == each[name].tolist()


def test_extras_of_excalibur_are_conditions():
    told = conditions(recorded(FOREIGN / "4.3-excalibur" / "StreamTest.log"))
    assert told["spack_spec"] == "stream@5.10 +openmp"
    assert json.loads(told["env_vars"]) == {"OMP_NUM_THREADS": "4"}
    assert "tags" not in told


def test_retries_of_a_case_are_trials_of_its_session():
    held = columns(recorded(FOREIGN / "reports" / "4.10-retries.json"))
    assert held["trial"].tolist() == [0, 0, 1, 1]
    assert len(set(held["session"])) == 1


def test_a_case_of_3_x_ends_with_its_session_which_is_named_with_its_zone():
    held = columns(recorded(FOREIGN / "reports" / "3.4.json"))
    assert str(held["time"][0]) == "2026-11-21 20:01:26"
    assert held["session"][0] == "20261121T200125Z-reframe"


# ---- times


def test_a_time_with_its_zone_needs_none(log):
    batch = log(HEAD, LINE.replace(":48|", ":48+01:00|"), LINE.replace(":48|", ":48.25Z|"))
    assert list(map(str, column(batch, "time"))) == [
        "2026-11-21 18:39:48",
        "2026-11-21 19:39:48.250000",
    ]
    assert batch.notes == []


def test_a_time_without_zone_is_of_the_zone_that_is_told(log):
    for zone, summer, winter in (
        ("", "12:00", "12:00"),
        ("Europe/Zurich", "10:00", "11:00"),
        ("Asia/Kolkata", "06:30", "06:30"),
    ):
        lines = [
            LINE.replace("2026-11-21T19:39:48", f"2026-{day}T12:00:00")
            for day in ("07-01", "12-01")
        ]
        batch = log(HEAD, *lines, zone=zone)
        assert [f"{t:%H:%M}" for t in column(batch, "time")] == [summer, winter], zone
        assert batch.notes == [f"times without a zone are taken as {zone or 'UTC'}"], (
            zone,
            summer,
            winter,
        )


def test_what_is_no_time_is_refused(log):
    for time in (
        *("2026-02-30T12:00:00", "2026-11-21T25:00:00", "1926-11-21T19:39:48", "2026-11-21"),
        *("null", "21.11.2026 19:39:48", "2026-11-21T19:39:48 CET"),
    ):
        batch = log(HEAD, LINE.replace("2026-11-21T19:39:48", time), LINE)
        assert len(batch) == 1, time
        (told,) = batch.refused
        why = "no time of the job's end" if time == "null" else f"'{time}' is not a time as in 2"
        assert f":2: {why}" in told, time


def test_of_two_times_of_a_line_the_exact_one_counts(log):
    head, unix = f"job_completion_time_unix|{HEAD}", 1795289988
    assert datetime.fromtimestamp(unix, UTC).isoformat() == "2026-11-21T19:39:48+00:00"
    batch = log(head, f"{unix + 3600}.36|{LINE}", f"null|{LINE}", zone="Europe/Zurich")
    assert [str(t) for t in column(batch, "time")] == [
        "2026-11-21 20:39:48.360000",
        "2026-11-21 18:39:48",
    ]


# ---- lines


def test_the_last_line_without_an_end_is_refused_however_whole_it_looks(log):
    batch = log(HEAD, LINE, LINE.encode()[:-1])
    assert len(batch) == 1
    assert "Test.log:3: its line has no end" in batch.refused[0]


def test_a_bad_line_is_refused_with_its_number_and_the_others_count(log):
    for bad, why in (
        (LINE.replace("24939.4", "24939,4"), "not a number"),
        (LINE.replace("24939.4", "0x17"), "not a number"),
        (LINE.replace("24939.4", "1e99"), "not a number"),
        (LINE.replace("Test %n=4", ""), "no name"),
        (LINE.replace("Test %n=4", "Te\x1b[31mst"), "control characters"),
        (LINE.replace("Test", "Te\x00st"), "control characters"),
        (LINE.replace("compute", "com pute"), "is not a partition"),
        (LINE.replace("|compute", ""), "7 columns, 8 have names: cut short?"),
        (LINE + "|more", "9 columns, 8 have names: a delimiter within a text?"),
        (LINE.encode().replace(b"Test", b"T\xffst") + b"\n", "not UTF-8"),
        ("garbage", "1 columns"),
    ):
        batch = log(HEAD, LINE, bad, LINE)
        assert len(batch) == 2, (bad, why)
        (told,) = batch.refused
        assert "Test.log:3: " in told, (bad, why)
        assert why in told, (bad, why)
        assert told.isprintable(), (bad, why)


def test_the_mark_of_an_editor_of_windows_before_the_line_of_names_changes_nothing(log):
    assert len(log(f"\ufeff{HEAD}", LINE)) == 1


def test_lines_of_windows_and_empty_lines_change_nothing(log):
    batch = log(HEAD + "\r", LINE + "\r", "", LINE + "\r")
    assert figures(batch) == [("Test.copy", "24939.4", "MB/s", "ok")] * 2
    assert batch.refused == []


def test_another_line_of_names_in_a_file_is_followed(log):
    other = HEAD.replace("copy_value|copy_unit", "rate_unit|rate_value")
    batch = log(HEAD, LINE, other, LINE.replace("24939.4|MB/s", "GB/s|7"), LINE)
    assert [f[:3] for f in figures(batch)] == [
        ("Test.copy", "24939.4", "MB/s"),
        ("Test.rate", "7", "GB/s"),
    ]
    assert len(batch.refused) == 1


def test_a_very_long_line_among_short_ones_is_read(log):
    long = "x" * 300_000
    batch = log("descr|" + HEAD, f"d|{LINE}", f"{long}|{LINE}", *[f"d|{LINE}"] * 50)
    assert len(batch) == 52
    assert batch.refused == []


def test_as_many_columns_as_a_check_of_5000_nodes_are_read(log):
    names = "|".join(f"node{i}_value|node{i}_unit" for i in range(1000))
    values = "|".join(f"{i}.5|GB/s" for i in range(1000))
    head, line = HEAD.rsplit("|", 2)[0], LINE.rsplit("|", 2)[0]
    batch = log(f"{head}|{names}", f"{line}|{values}")
    assert len(batch) == 1000
    assert figures(batch)[999] == ("Test.node999", "999.5", "GB/s", "ok")


def test_a_test_that_measures_nothing_gives_no_figure_and_is_told(log):
    batch = log(
        HEAD.replace("copy_value", "perf_var|perf_value").replace("copy_", "perf_"),
        LINE.replace("24939.4|MB/s", "null|null|null"),
        LINE.replace("24939.4", "copy|24939.4"),
    )
    assert figures(batch) == [("Test.copy", "24939.4", "MB/s", "ok")]
    assert batch.silent == 1


def test_a_system_of_another_name_is_a_condition_so_that_machines_stay_apart(log):
    other = LINE.replace("|old|", "|older|")
    batch = log(HEAD, LINE, other, site="site")
    assert column(batch, "system") == ["site", "site"]
    assert [conditions(batch, i)["system"] for i in (0, 1)] == ["old", "older"]
    assert len(set(column(batch, "series"))) == 2
    assert "system" not in conditions(log(HEAD, LINE, site="old"))


def test_digits_stay_as_they_were_printed(log):
    for cell, kept, name in (
        ("25000", "25000", 25000.0),
        ("1e3", "1e3", 1000.0),
        ("-0.5", "-0.5", -0.5),
        ("0.30000000000000004", "0.30000000000000004", 0.1 + 0.2),
        (".5", ".5", 0.5),
        ("2.50", "2.50", 2.5),
        ("007.5", "007.5", 7.5),
        ("-0.0", "-0.0", 0.0),
    ):
        batch = log(HEAD, LINE.replace("24939.4", cell))
        assert (column(batch, "digits"), column(batch, "value")) == ([kept], [name]), cell


# ---- formats


def test_a_format_string_of_ones_own_names_the_columns(log):
    line = (
        "2020-10-14T10:07:38+01:00|reframe 3.3-dev0 (rev: 3b375092)|Hpl_single on csd3:ib "
        "using intel|jobid=300|Gflops=1098.87|Gflops|ref=None (l=None, u=None)|num_nodes=1"
    )
    own = layouts.PRESETS["3.x"].replace("|ref=", "|%(check_perf_unit)s|ref=")
    own = f"{own.removesuffix('|%(check_perf_unit)s')}|num_nodes=%(check_num_nodes)s"
    batch = log(line, "garbage", line.replace("1098.87", "x"), format=own)
    assert figures(batch) == [("Hpl_single.Gflops", "1098.87", "GFLOPS", "ok")]
    assert column(batch, "job") == ["300"]
    assert column(batch, "environment") == ["intel"]
    assert conditions(batch)["num_nodes"] == "1"
    assert len(batch.refused) == 2


def test_a_preset_is_exact(log):
    """As the published settings print a line; any other line is refused, never guessed."""
    tail = "ref=5.0 (l=-0.1, u=null)|GB/s"
    head = "2021-03-04T10:00:00|reframe {}|Test on old:gpu using gnu|jobid=12|"
    printed = {
        "2.x": f"{head.format('2.21')}bw=5.5|{tail}",
        "3.x": f"{head.format('3.4')}bw=5.5|{tail}",
        "cscs-2.x": f"{head.format('2.21')}num_tasks=4|bw=5.5|{tail}",
        "cscs-3.x": f"{head.format('3.4')}num_tasks=4|bw=5.5|{tail}",
        "excalibur-3.x": f"{head.format('3.8')}bw=5.5|num_tasks=4|num_cpus_per_task=1|"
        "num_tasks_per_node=4|ref=5.0|lower=-0.1|upper=None|units=GB/s|spack_spec=a@1",
    }
    assert printed.keys() == layouts.PRESETS.keys()
    for preset, line in printed.items():
        for name in layouts.PRESETS:
            batch = log(printed[name], line, format=name)
            if name.rpartition("-")[0] != preset.rpartition("-")[0]:
                assert len(batch) == 1, (name, preset)
                assert ":2: " in batch.refused[0], (name, preset)
        batch = log(line, format=preset)
        assert figures(batch) == [("Test.bw", "5.5", "GB/s", "ok")], preset
        assert batch.provenance == {"reference bw": "5.0 (l=-0.1, u=null) GB/s"}, preset
        tasks = "4" if "num_tasks" in line else None
        assert conditions(batch).get("num_tasks") == tasks, preset


def test_a_text_of_the_format_that_a_line_lacks_is_refused(log):
    line = "2021-03-04T10:00:00|reframe 3.4|Test on old:gpu using gnu|jobid=12|bw=5.5|{}|GB/s"
    good, bad = line.format("ref=5 (l=0, u=1)"), line.format("ref=5, l=0, u=1")
    batch = log(good, bad, good.replace("jobid=", "id="), format="3.x")
    assert len(batch) == 1
    assert "'ref=5, l=0, u=1' in the column of 'ref=perf_ref (l=perf" in batch.refused[0]
    assert "'id=12' in the column of 'jobid=jobid'" in batch.refused[1]


def test_a_line_of_names_goes_before_the_format(log):
    old = "2021-03-04T10:00:00|reframe 3.4|Test on old:gpu using gnu|jobid=1|bw=5.5|{}|GB/s"
    batch = log(old.format("ref=5 (l=0, u=1)"), HEAD, LINE, format="3.x")
    assert column(batch, "metric") == ["Test.bw", "Test.copy"]
    assert batch.refused == []


def test_a_format_that_does_not_name_all_columns_is_one_line():
    good = layouts.PRESETS["3.x"]
    for text, why in (
        ("3.y", "no %(check_job_completion_time)s"),
        ("", "no %(check_job_completion_time)s"),
        (good.replace("%(check_perf_value)s", ""), "no %(check_perf_value)s"),
        (good.replace("completion_time", "time"), "no %(check_job_completion_time)s"),
        (good.replace("(check_jobid)s", "(check_jobid)d"), "a field that is not as"),
        (f"{good}|%(check_#ALL)s", "a field that is not as"),
        (f"{good}|%(check_perfvalues)s", "only a line of names has those"),
        (good.replace("jobid=", "%(check_name)s"), "two fields with nothing between"),
    ):
        told = refusal(layouts.of_format, text)
        assert why in told, text
        assert "Allowed: 2.x, 3.x, cscs-2.x, cscs-3.x, excalibur-3.x, the format" in told, text


def test_values_of_variables_may_have_another_delimiter_than_columns(log):
    """As C3SE and HPC2N have it: `format` with |, `format_perfvars` with commas."""
    line = (
        "2026-11-25T21:55:38|reframe 4.10.4|BwTest /69e4512a @old:compute+gnu|jobid=5728|"
        "nodelist=vm|100.5,GB/s,100,-0.1,0.1,200.25,GB/s,0,None,None"
    )
    batch = log(
        "job_completion_time|reframe version|info|jobid=jobid|nodelist=job_nodelist|"
        "copy_value,copy_unit,copy_ref,copy_lower_thres,copy_upper_thres,"
        "triad_value,triad_unit,triad_ref,triad_lower_thres,triad_upper_thres",
        line,
        line.replace("GB/s,100", "GB,s,100"),
        line.replace(",0.1", ""),
    )
    assert [told.partition("log:")[2][:3] for told in batch.refused] == ["3: ", "4: "]
    assert [one[:3] for one in figures(batch)] == [
        ("BwTest.copy", "100.5", "GB/s"),
        ("BwTest.triad", "200.25", "GB/s"),
    ]
    assert batch.provenance == {"reference copy": "100 (l=-0.1, u=0.1) GB/s"}
    assert (column(batch, "node"), column(batch, "job")) == (["vm"] * 2, ["5728"] * 2)


# ---- units


def test_an_unknown_unit_is_kept_and_told(log):
    batch = log(HEAD, LINE.replace("MB/s", "furlongs"))
    assert figures(batch)[0] == ("Test.copy", "24939.4", "furlongs", "ok")
    assert column(batch, "kind") == [""]
    assert "unit 'furlongs' is unknown and kept as it is" in batch.notes


# ---- files


OUR_LINE = "1795437259.8|4.10.4|{}|oldsys|compute|gnu|7|pass|rate|5.5|MB/s|0|null|null|pass"
OUR_NAMES = settings.LOG_LINE.replace("%(check_", "").replace("%(", "").replace(")s", "")


def test_lines_of_siteproofs_runs_are_in_its_samples_and_others_of_the_file_count(log):
    lines = [f"{OUR_LINE.format('Test')}|{session}" for session in ("20261123T1-a", "", "null")]
    batch = log(OUR_NAMES, *lines)
    assert batch.in_samples == 1
    assert column(batch, "metric") == ["Test.rate"] * 2
    assert batch.refused == []
    assert "session" not in conditions(batch)


def test_the_values_of_a_run_report_of_siteproofs_settings_are_in_samples(tmp_path):
    path = tmp_path / "report.json"
    text = (FOREIGN / "reports" / "4.10.json").read_text()
    path.write_text(text.replace("/home/user/reframe/cfg.py", "/home/user/reframe_settings.py"))
    whole, held = rows(FOREIGN / "reports" / "4.10.json"), rows(path)
    assert (len(held), held.refused) == (0, [])
    assert held.in_samples == len(set(whole.numbers)) > 0


def test_the_columns_of_older_versions_keep_unit_and_reference():
    for place in ("4.10-old-words/GromacsTest.log", "4.10-old-words-in-one-line/GromacsTest.log"):
        batch = recorded(FOREIGN / place)
        shown = {
            f"{m} {u} {k}" for m, u, k in zip(*map(partial(column, batch), SHOWN), strict=True)
        }
        assert shown == {
            "GromacsTest.time days/ns simulation cost",
            "GromacsTest.energy kJ/mol molar energy",
        }, place
        # Another version of ReFrame is no other series.
        assert conditions(batch) == {"mode": "imported", "partition": "compute"}, place
        assert {
            "reference time": "5.471 (l=-0.5, u=0.15) days/ns"
        }.items() <= batch.provenance.items(), place


def test_a_variable_may_have_the_name_perf(log):
    batch = log(HEAD.replace("copy", "perf"), LINE)
    assert column(batch, "metric") == [
        f"{metric.rpartition('.')[0]}.perf" for metric in column(log(HEAD, LINE), "metric")
    ]


SHOWN = ("metric", "unit", "kind")


def test_a_line_a_test_without_its_values_measures_nothing(log):
    """As 4.x writes it with the format of 3.x, where perflog_multiline is not set."""
    batch = log(
        "job_completion_time|info|perf_var=perf_value|ref=perf_ref|perf_unit",
        "2026-11-23T12:24:50|Test @oldsys:compute+gnu|null=null|ref=null|null",
    )
    assert len(batch) == 0
    assert batch.silent == 1


def test_lines_are_selected_by_system_and_by_test(log):
    for only, metrics, left in (
        ({}, ["A.x", "B.x", "Bc.x"], 0),
        ({"systems": ("one",)}, ["A.x", "B.x"], 1),
        ({"systems": ("two",)}, ["Bc.x"], 2),
        ({"tests": ("B*",)}, ["B.x", "Bc.x"], 1),
        ({"systems": ("one",), "tests": ("B*", "C")}, ["B.x"], 2),
        ({"systems": ("three",)}, [], 3),
    ):
        lines = [
            f"2026-11-21T19:39:48|{test} %n=4|{system}|compute|gnu|7|24939.4|MB/s"
            for test, system in (("A", "one"), ("B", "one"), ("Bc", "two"))
        ]
        batch = log(HEAD.replace("copy", "x"), *lines, **only)
        assert column(batch, "metric") == metrics, (only, metrics, left)
        assert batch.not_selected == left, (only, metrics, left)
        assert len(batch) + batch.not_selected == 3, (only, metrics, left)


def test_cases_of_a_run_report_are_selected(tmp_path):
    path = FOREIGN / "reports" / "4.10.json"
    every, some = rows(path), rows(path, tests=("Pipe*",))
    assert set(column(some, "metric")) == {"PipeTest.latency"}
    assert some.not_selected > 0
    assert len(set(every.numbers)) == len(set(some.numbers)) + some.not_selected


def test_what_is_neither_is_refused_whole(tmp_path):
    for text, why in (
        ("", "no run report of ReFrame, and no perflog with a line of names"),
        ("garbage\n", "Allowed: --format 2.x, 3.x, cscs-2.x, cscs-3.x, excalibur-3.x, the"),
        ("{}", "no run report of ReFrame, and no perflog with a line of names"),
        (f"garbage\n{HEAD}\n{LINE}\n", "no run report of ReFrame, and no perflog with a line"),
        ('{"session_info": 1}', "not a run report"),
        ('{"session_info": {}, "runs": []}', "no valid time_start"),
        ('{"session_info": {"time_start_unix": 1e9, "time_end_unix": 1e9}, "runs": 3}', "no list"),
        (
            '{"session_info": {"time_start_unix": 1e99, "time_end_unix": 1e9}, "runs": []}',
            "no valid time_start",
        ),
    ):
        path = tmp_path / "file"
        path.write_text(text)
        assert why in refusal(rows, path), text


def test_a_report_cut_short_is_refused_with_its_line(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("\n".join((FOREIGN / "reports" / "4.10.json").read_text().split("\n")[:90]))
    with pytest.raises(UserError, match=r"report\.json:9\d: broken JSON"):
        rows(path)


def test_a_strange_case_of_a_report_is_refused_and_the_others_count(tmp_path):
    for change in (
        {"perfvalues": 3},
        {"perfvalues": {"a:b:c": [1]}},
        {"perfvalues": {"a:b:c": [[], 0, 0, 0, ""]}},
        {"perfvalues": {"a:b:c": ["7", 0, 0, 0, ""]}},
        {"name": 7, "display_name": [], "unique_name": ""},
        {"job_completion_time_unix": "soon"},
        {"job_completion_time_unix": -1e300},
        {"perfvalues": {"a:b:c": [10**99, 0, 0, 0, ""]}},
    ):
        report = json.loads((FOREIGN / "reports" / "4.10.json").read_text())
        report["runs"][0]["testcases"][0].update({"short_name": ""} | change)
        path = tmp_path / "report.json"
        path.write_text(json.dumps(report))
        batch = rows(path)
        assert len(batch) == 6, change
        assert len(batch.refused) == 1, change
        assert "test case 1: " in batch.refused[0], change


def test_a_value_is_its_digits_in_the_base_unit(log):
    held = columns(log(HEAD, LINE, LINE.replace("24939.4", "2.50"), LINE.replace("24939.4", "nan")))
    assert held["digits"].tolist() == ["24939.4", "2.50", None]
    assert Decimal(held["digits"][0]) * 10**6 == Decimal(held["base"][0])
    assert held["base"][2] is None


def test_more_refused_lines_than_anybody_reads_are_counted(log, monkeypatch):
    monkeypatch.setattr(foreign_figures, "MAX_REFUSED", 3)
    batch = log(HEAD, LINE, *["garbage"] * 5)
    assert len(batch.refused) == 4
    assert batch.refused[-1].endswith("Test.log: 2 more lines")
