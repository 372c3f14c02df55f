"""`siteproof export junit`: what Jenkins and GitLab show is what the verdict says."""

import re
import xml.etree.ElementTree as ET

import nets
from exported import EVERY, NASTY, judged, measured, site
from fleets import broken, names, run_of
from rows import rows

from siteproof.export import junit

# What the common JUnit XSD (that of Jenkins' xUnit plugin) accepts, element by element: attributes,
# and the elements inside; and the form of attributes.
SHAPE = {
    "time": r"[0-9]+(\.[0-9]+)?",
    "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
    **dict.fromkeys(("tests", "failures", "errors", "skipped"), r"[0-9]+"),
}
FORM = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"properties", "testcase"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time"}, {"failure", "error", "skipped", "system-out"}),
    **dict.fromkeys(("failure", "error", "skipped"), ({"type", "message"}, set())),
    "system-out": (set(), set()),
}
REQUIRED = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name"},
    "property": {"name", "value"},
}


def read(text):
    """The document, once its form is right and its counts agree with its cases."""
    top = ET.fromstring(text.encode())
    for element in top.iter():
        attributes, inside = FORM[element.tag]
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib) <= attributes, element.tag
        assert {below.tag for below in element} <= inside, element.tag
        for name in SHAPE.keys() & element.attrib.keys():
            assert re.fullmatch(SHAPE[name], element.get(name)), (element.tag, name)
    for suite in top:
        counts(suite, suite.findall("testcase"))
    cases = top.findall("testsuite/testcase")
    counts(top, cases)
    keys = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(keys)) == len(keys), "GitLab keeps the first of equal names"
    return top


def counts(element, cases):
    assert element.get("tests") == str(len(cases))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        if element.get(name) is not None:
            assert element.get(name) == str(sum(case.find(tag) is not None for case in cases))


def case(top, key):
    (found,) = [
        c
        for c in top.iter("testcase")
        if c.get("name").split(":")[0] == key and not c.get("name").endswith("]")
    ]
    return found


def red(top):
    return [
        c.get("name").split(":")[0]
        for c in top.iter("testcase")
        if c.find("failure") is not None or c.find("error") is not None
    ]


def test_each_verdict_is_what_ci_shows(tmp_path, monkeypatch):
    top = read(junit.text(judged(site(tmp_path, monkeypatch))))
    for key, tag in {
        "C-PASS": None,
        "C-FAIL": "failure",
        "C-REGRESSED": "failure",
        "C-ERROR": "error",
        "C-INCOMPLETE": "error",
        "C-SKIP": "skipped",
        "C-PENDING": "skipped",
        junit.DECIDED: "error",
    }.items():
        found = [e.tag for e in case(top, key) if e.tag != "system-out"]
        assert found == ([tag] if tag else []), key
    assert {c.get("classname") for c in top.iter("testcase")} == {
        f"here.{check}" for check in ("Stream", "RandomIo", "Hpl", "BlockStorage", "verdict")
    }


def test_a_failure_tells_value_bound_and_the_worst_nodes(tmp_path, monkeypatch):
    failure = case(read(junit.text(judged(site(tmp_path, monkeypatch)))), "C-FAIL").find("failure")
    assert failure.get("type") == "FAIL"
    assert failure.get("message") == (
        "FAIL: 70.00 MB/s by stream; bound >= 100 MB/s; 7 passed; 1 failed n002"
    )
    assert failure.text.splitlines()[1:] == ["n002: FAIL, 70.00 MB/s by stream"]


def test_an_error_and_what_is_skipped_tell_why(tmp_path, monkeypatch):
    top = read(junit.text(judged(site(tmp_path, monkeypatch))))
    error = case(top, "C-ERROR").find("error").text.splitlines()[-1]
    assert error.startswith("n003: ERROR, ")
    assert "no value: because" in error
    assert "for the record" in case(top, "C-SKIP").find("skipped").get("message")
    assert "no check yields" in case(top, "C-PENDING").find("skipped").get("message")
    assert case(top, "C-INCOMPLETE").find("error").get("type") == "INCOMPLETE"
    assert case(top, junit.DECIDED).find("error").text.splitlines()[1:] == [
        "C-INCOMPLETE: INCOMPLETE, not measured",
        "C-PENDING: PENDING, no check yields BlockStorage.undirected yet",
    ]


def test_values_are_in_the_output_and_in_the_properties_of_the_suite(tmp_path, monkeypatch):
    top = read(junit.text(judged(site(tmp_path, monkeypatch))))
    told = case(top, "C-PASS").find("system-out").text.splitlines()
    assert {
        "value: 70.00 MB/s by stream",
        "unit: MB/s",
        "bound: >= 60 MB/s",
        "nodes_ok: 8",
        "nodes_expected: 8",
        "source: contract 1",
        "n001: PASS, 110.50 MB/s by stream",
        "conditions: mode maintenance, program stream",
    } <= set(told)
    properties = {p.get("name"): p.get("value") for p in top.iter("property")}
    assert properties["C-PASS.value"] == "70.00 MB/s by stream"
    assert properties["C-FAIL.bound"] == ">= 100 MB/s"


@rows(
    "left_out",
    [
        (),
        ("C-FAIL",),
        ("C-FAIL", "C-ERROR", "C-REGRESSED"),
        ("C-FAIL", "C-ERROR", "C-REGRESSED", "C-INCOMPLETE"),
        ("C-FAIL", "C-ERROR", "C-REGRESSED", "C-INCOMPLETE", "C-PENDING"),
        tuple(key for key in EVERY if key != "C-SKIP"),
        tuple(k for k in EVERY if k != "C-PENDING"),
    ],
)
def test_something_is_red_exactly_where_the_exit_code_is_not_0(tmp_path, monkeypatch, left_out):
    chosen = [key for key in EVERY if key not in left_out]
    found = judged(site(tmp_path, monkeypatch, *chosen))
    code = found.exit_code
    for per_node in (False, True):
        assert bool(red(read(junit.text(found, per_node=per_node)))) == (code != 0)
    assert (junit.DECIDED in red(read(junit.text(found)))) == (
        code == 3 or "C-INCOMPLETE" in chosen or "C-PENDING" in chosen
    )


TOOL = """\
C-PASS: {description: d, metric: Stream.triad, at_least: 60 MB/s, scope: every node, source: s}
C-TOOL: {description: d, metric: Hpl.gflops, at_least: 1 GFLOPS, scope: every node, source: sKEY}
"""


@rows("key, code", [("", 3), (", not_here: no compiler", 0)])
def test_a_missing_tool_is_red_unless_the_site_says_that_it_is_not_here(
    tmp_path, monkeypatch, key, code
):
    where = site(tmp_path, monkeypatch, text=TOOL.replace("KEY", key))
    stream = [sample for sample in measured() if sample.header.check == "Stream"]
    samples = stream + [broken(n, "tool_missing", check="Hpl") for n in names(8)]
    found = judged(where, samples)
    top = read(junit.text(found))
    assert found.exit_code == code
    assert case(top, "C-TOOL").find("skipped") is not None
    assert red(top) == ([junit.DECIDED] if code else [])
    told = "".join(case(top, "C-TOOL").itertext())
    assert ("not here: no compiler" if key else "cannot be measured here: because") in told
    if code:
        error = case(top, junit.DECIDED).find("error")
        assert error.get("message") == "INCOMPLETE: 1 of 2 criteria are SKIP"
        (line,) = error.text.splitlines()[1:]
        assert line.startswith("C-TOOL: SKIP, ")
        assert line.endswith("cannot be measured here: because")


def test_no_criterion_is_a_document_that_is_red(tmp_path, monkeypatch):
    top = read(junit.text(judged(site(tmp_path, monkeypatch, text="{}\n"), [])))
    assert red(top) == [junit.DECIDED]
    assert "nothing was decided" in case(top, junit.DECIDED).find("error").get("message")


def test_no_sample_at_all_is_incomplete_and_has_no_time(tmp_path, monkeypatch):
    top = read(junit.text(judged(site(tmp_path, monkeypatch), [])))
    assert "time" not in top.attrib
    assert case(top, "C-PASS").find("error").get("message").endswith("not measured")


def test_characters_that_xml_forbids_are_gone_and_others_are_kept(tmp_path, monkeypatch):
    one = judged(site(tmp_path, monkeypatch), measured(why=NASTY))
    for per_node in (False, True):
        text = junit.text(one, per_node=per_node)
        assert text.isascii()
        assert all(c.isprintable() or c == "\n" for c in text)
        told = case(read(text), "C-ERROR").find("error").text
        assert 'a"b\\c?[31m?<&>]]>' in told
        assert "é→" in told


def test_320_nodes_are_a_case_a_criterion_unless_asked(tmp_path, monkeypatch):
    found = [s for s in measured(320) if s.metric != "BlockStorage.write"]
    one = judged(site(tmp_path, monkeypatch, count=320), found)
    text = junit.text(one)
    assert read(text).get("tests") == str(len(EVERY) + 1)
    assert len(text) < 100_000
    assert "and 270 more: n[051-320]" in case(read(text), "C-INCOMPLETE").find("error").text
    asked = read(junit.text(one, per_node=True))
    assert asked.get("tests") == str(len(EVERY) + 1 + 5 * 320)
    assert "C-FAIL: Memory is very fast [n002]" in {
        c.get("name") for c in asked.iter("testcase") if c.find("failure") is not None
    }


def test_the_time_is_how_long_the_session_took(tmp_path, monkeypatch):
    values = {f"n00{i}": 110 for i in range(1, 9)}
    found = run_of(values, session="20261102T000000Z-a", time="2026-11-02T00:12:30+00:00")
    top = read(junit.text(judged(site(tmp_path, monkeypatch, "C-PASS"), found)))
    assert (top.get("time"), top[0].get("time")) == ("750", "750")
    assert top[0].get("timestamp") == "2026-11-02T00:12:30"


def test_the_times_of_a_sessions_jobs_add_up_to_the_sessions(tmp_path, monkeypatch):
    session = "20261102T000000Z-a"
    jobs = [("Stream.triad", "00:02:30"), ("BlockStorage.read", "00:12:30")]
    found = [
        *run_of({"n001": 110}, metric="Stream.triad", session=session, time=at(jobs[0][1])),
        *run_of(
            {"n001": 9}, metric="BlockStorage.read", session=session, time=at(jobs[1][1]), job="2"
        ),
    ]
    top = read(junit.text(judged(site(tmp_path, monkeypatch), found)))
    times = {key: case(top, key).get("time") for key in ("C-PASS", "C-INCOMPLETE", "C-ERROR")}
    assert times == {"C-PASS": "150", "C-INCOMPLETE": "600", "C-ERROR": None}
    assert case(top, "C-FAIL").get("time") == "150", "it is answered by the same job"
    assert top.get("time") == "750"


def test_two_jobs_that_end_in_the_same_second_both_have_a_time(tmp_path, monkeypatch):
    keys = {"session": "20261102T000000Z-a", "time": at("00:01:00")}
    found = [
        *run_of({"n001": 110}, **keys),
        *run_of({"n001": 9}, metric="BlockStorage.read", job="2", **keys),
    ]
    top = read(junit.text(judged(site(tmp_path, monkeypatch), found)))
    assert [case(top, key).get("time") for key in ("C-PASS", "C-INCOMPLETE")] == ["60", "0"]


def at(time):
    return f"2026-11-02T{time}+00:00"


def test_of_thousands_of_pairs_the_worst_have_a_line(tmp_path, monkeypatch):
    where = nets.load(tmp_path, monkeypatch, count=24, pattern="all")
    pairs = [(f"n{a}", f"n{b}") for a in range(1, 25) for b in range(1, 25) if a != b]
    found = [nets.ok(f"{a}>{b}", 3 if b == "n7" else 9.5) for a, b in pairs]
    text = junit.text(judged(where, found))
    failure = case(read(text), "C-TCP").find("failure").text.splitlines()
    assert "n1>n7: FAIL, 3 Gb/s by iperf3" in failure
    assert failure[-1].startswith("and ")
    assert " more, such as " in failure[-1]
    assert len(text) < 20_000
