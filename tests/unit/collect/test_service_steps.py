"""The records of a service's test, as a job left them, to samples of the system."""

import json

import stages_made
from recorded import OUTPUTS
from rows import rows

from siteproof.collect import stages
from siteproof.record import samples

MARK = '{"begin": {"step": "put"}, "limit": 60.0}\n'


def collected(tmp_path, stdout, *, ended="", exit=0, **job):
    made = stages_made.Made(
        tmp_path,
        "Service",
        expected="here",
        service="files",
        conditions={"service": "files", "kind": "sftp"},
        metrics=["failures", "seconds"],
        parsers={"service": "service"},
        **job,
    )
    if stdout is not None:
        folder = made.result("here", "here", program="service")
        made.run(folder, 1, stdout)
        (folder / "run.1" / "exit").write_text(f"{exit}\n")
    stages.collect(made.stage, made.perflogs, ended=ended)
    found = [s for path in samples.files(made.perflogs, "here") for s in samples.read(path)]
    assert {s.node for s in found} == {""}
    assert {s.conditions["service"] for s in found} == {"files"}
    return found


def recorded(name):
    return (OUTPUTS / "service" / f"{name}.txt").read_text()


def values(found):
    return {
        (s.metric, s.dims.get("step", "")): (s.status, s.why if s.value is None else str(s.value))
        for s in found
    }


def test_each_step_has_its_seconds_and_the_test_its_failures(tmp_path):
    found = values(collected(tmp_path, recorded("web")))
    assert found["Service.failures", ""] == ("ok", "0")
    assert found["Service.seconds", "page"][0] == "ok"
    assert found["Service.seconds", "clean"][0] == "ok"


def test_a_step_that_failed_has_its_class_and_its_reason(tmp_path):
    every = collected(tmp_path, recorded("web-404"))
    found = values(every)
    assert found["Service.failures", ""] == ("ok", "1")
    assert found["Service.*", "page"] == ("generic", "HTTP status 404 (GET)")
    number = next(s for s in every if s.metric == "Service.failures")
    assert number.why == "page: HTTP status 404 (GET) (generic)"


def test_a_test_that_was_killed_has_no_number_of_failures(tmp_path):
    found = values(collected(tmp_path, recorded("truncated"), exit=137))
    assert set(found) == {("Service.*", "")}
    assert found["Service.*", ""][0] == "killed"


def test_a_missing_program_is_no_failure_of_the_service(tmp_path):
    end = {"end": {"step": "put"}, "seconds": "0.1", "status": "tool_missing", "why": "no rsync"}
    text = MARK + json.dumps(end) + '\n{"done": 2}\n'
    assert values(collected(tmp_path, text)) == {("Service.*", ""): ("tool_missing", "no rsync")}


def test_rates_are_of_both_ends(tmp_path):
    rate = {
        "metric": "rate",
        "value": "93.5",
        "unit": "MB/s",
        "dims": {"sender": "here", "receiver": "files", "files": "1"},
    }
    end = {"end": {"step": "put"}, "seconds": "0.1", "status": "ok", "why": ""}
    text = "".join([MARK, json.dumps(rate), "\n", json.dumps(end), '\n{"done": 3}\n'])
    every = collected(tmp_path, text)
    one = next(s for s in every if s.metric == "Service.rate")
    assert (str(one.value), one.unit, one.dims) == ("93.5", "MB/s", rate["dims"])


@rows(
    "line",
    [
        "nonsense",
        "[1]",
        '{"end": {"step": "put"}, "status": "wonderful"}',
        '{"end": {"step": ["put"]}, "status": "ok"}',
        '{"end": {"direction": "out"}, "status": "ok", "seconds": "1"}',
        '{"end": {"step": "put"}, "status": "ok", "seconds": "NaN"}',
        '{"metric": "../x", "value": "1", "unit": "s"}',
        '{"metric": "rate", "value": "1e999", "unit": "MB/s", "dims": {}}',
        '{"metric": "rate", "value": "1", "unit": "furlongs", "dims": {}}',
        '{"conditions": {"mode": "acceptance", "../": "x"}}',
    ],
)
def test_what_no_test_reports_is_no_value(tmp_path, line):
    end = '{"end": {"step": "put"}, "seconds": "1", "status": "ok"}'
    found = collected(tmp_path, f'{end}\n{line}\n{{"done": 2}}\n')
    assert [s.status for s in found] in (["parse"], ["invalid"])
    assert [s.metric for s in found] == ["Service.*"]


@rows("ended, status", [("TIMEOUT", "timeout"), ("CANCELLED", "interrupted"), ("", "interrupted")])
def test_a_job_without_a_result_says_how_it_ended(tmp_path, ended, status):
    found = collected(tmp_path, None, ended=ended)
    assert [(s.metric, s.status) for s in found] == [("Service.*", status)]


def test_a_service_cannot_choose_the_mode_of_its_values(tmp_path):
    text = '{"conditions": {"mode": "quick", "service": "other"}}\n' + MARK
    text += '{"end": {"step": "put"}, "seconds": "1", "status": "ok"}\n{"done": 3}\n'
    found = collected(tmp_path, text)
    assert {(s.metric, s.status) for s in found} == {("Service.*", "invalid")}


def test_a_step_by_itself_that_was_not_kept_or_is_absent_leaves_other_metrics_alone(tmp_path):
    ends = [
        {"end": {"step": step}, "seconds": "1", "status": status, "why": why, "alone": "yes"}
        for step, status, why in (
            ("memory", "invalid", "not killed"),
            ("gres", "absent", "no GRES"),
            ("array", "ok", ""),
        )
    ]
    text = "".join(json.dumps(end) + "\n" for end in ends) + '{"done": "3"}\n'
    assert values(collected(tmp_path, text)) == {
        ("Service.failures", ""): ("ok", "1"),
        ("Service.seconds", "memory"): ("invalid", "not killed"),
        ("Service.seconds", "gres"): ("tool_missing", "no GRES"),
        ("Service.seconds", "array"): ("ok", "1"),
    }
