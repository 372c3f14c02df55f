"""Findings as sentences: a template for each kind, ranges, and no detail that breaks one."""

import inspect
import re
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteproof.record import finding
from siteproof.record.finding import Finding, Kind, of
from siteproof.sites import promise
from siteproof.units import with_unit
from siteproof.wording.findings import TEMPLATES, about, full, fulls, sentence, sentences, warning

DAY = timedelta(days=1).total_seconds()
FIELDS = {
    "subject": "n001",
    "check": "Stream",
    "metric": "Stream.triad",
    "criterion": "C-TRIAD",
    "status": "timeout",
    "value": "70.5",
    "unit": "MB/s",
    "bound": "at least 80 MB/s",
    "since": "2026-11-21T00:00:00+00:00",
    "waived_by": "W-FAN",
    "message": "it took too long",
}
SEEN = {"slow": 2, "runs": 3, "rule": "confirmed"}
SERIES = {"series": "Stream.triad of compute, Hpl.gflops of compute", "more": 2}
PAIRS = {"link": "lan", "sides": "sender", "peers": 4}
FACT = {"section": "3.1.3", "field": "memory.dimm.*", "expected": "8 times 16 GB*"}
KINDS = [kind for kind in Kind if kind is not Kind.NOTE]
DETAILS = {  # of each kind that has some
    Kind.TRIALS_MISSING: {"trials": 2, "expected": 3},
    Kind.SETTING_CHANGED: {"setting": "turbo"},
    Kind.OTHER_LINK: {"link": "wan", "expected": "lan"},
    Kind.OTHER_PROGRAM: {"program": "stream", "expected": "likwid-bench"},
    Kind.OTHER_CONDITION: {"condition": "threads", "found": "4", "expected": "8"},
    Kind.PUBLISHED: {"source": "the report, 3.2", "own": 1, "keeps": "yes", "by_rounding": 1},
    Kind.TOO_OLD: {"age": 30 * DAY, "limit": 7 * DAY, "answer": "FAIL"},
    Kind.AGE_UNKNOWN: {"clock": "2031-01-01T00:00", "answer": "FAIL"},
    Kind.REPLACED: {"what": "nic.eth0.mac", "before": "a", "after": "b", "answer": "FAIL"},
    Kind.UPDATED_SINCE: {
        "age": 3 * DAY,
        "what": "kernel",
        "before": "6.1",
        "after": "6.2",
        "answer": "FAIL",
    },
    Kind.WAIVED: {"problem": "fan", "owner": "me", "until": "2026-12-31", "ticket": "HD-1"},
    Kind.CHECK_MISSING: {"file": "checks/stream.py", "problem": "is missing", "older": 1},
    Kind.WAIVER_EXPIRED: {"problem": "fan", "owner": "me", "until": "2026-01-31", "ticket": "HD-1"},
    Kind.SLOW: {"deficit": 0.3, "better": "higher", "median": 100.0, "z": -15.04, **SEEN},
    Kind.SLOW_BEFORE: SEEN,
    Kind.FELL: {"change": -0.12, "rule": "confirmed", "lasting": 4},
    Kind.FLEET_EVENT: {
        "event": "step",
        "change": -0.06,
        "began": "2026-11-11T02:15:00+00:00",
        "cause": "kernel a -> b",
    },
    Kind.NOT_RANKED: {"count": 2, "more": 3},
    Kind.BLOCK_SLOW: {"link": "lan", "deficit": 0.4, "bad": 48, "peers": "n[5-16]"},
    Kind.BELOW_THRESHOLD: {},
    Kind.PARAMETER_DIFFERS: {"parameter": "nic.em1.mtu"},
    Kind.PARAMETERS_DIFFER: {"count": "2"},
    Kind.FIELD_DIFFERS: {
        "field": "bios.version",
        "found": "1.9",
        "majority": "2.1",
        "role": "compute",
    },
    Kind.FIELDS_DIFFER: {"count": 2},
    Kind.CONDITION_DIFFERS: {"condition": "blas_kernel", "found": "Prescott", "majority": "Zen"},
    Kind.OTHER_SETTING: {"differences": "threads 64 -> 32", "nodes": "n[1-3]"},
    Kind.PAIRS_WITHOUT_VALUE: {"link": "lan", "peers": 4},
    Kind.PAIRS_MISS_BOUND: PAIRS,
    Kind.NO_MAJORITY: {"field": "bios.version", "found": "1.9", "role": "compute"},
    Kind.FIELD_NOT_READ: {"field": "nic.eth0"},
    Kind.FACT_DIFFERS: {**FACT, "found": "7 times"},
    Kind.FACT_NOT_READ: FACT,
    Kind.NOT_STATED: {"section": "3.2.5"},
    Kind.COUNTER_GREW: {"counter": "edac_ce", "by": "5"},
    Kind.COUNTER_UNKNOWN: {"counter": "edac_ce"},
    Kind.EXPLAINS_PAIRS: {"link": "lan", "sides": "sender", "bad": 4, "deficit": 0.58},
    Kind.PAIR_SLOW: {"link": "lan", "deficit": 0.58},
    Kind.DIRECTIONS_DIFFER: {"link": "lan", "deficit": 0.58},
    Kind.PAIRS_SLOW: {**PAIRS, "deficit": 0.58, **SEEN},
    Kind.TAKEN_OUT: {"state": "down+drain", "by": "alice"},
    Kind.TAKEN_OUT_BY_SLURM: {"state": "drain+idle"},
    Kind.RESERVED: {"reservations": "class, maintenance"},
    Kind.STATE_CHANGED: {"before": "idle", "after": "down: power"},
    Kind.NOT_PASSED: {"state": "FAILED"},
    Kind.NOT_RESPONDING: {"state": "down"},
    Kind.CHANGED: {"what": "kernel", "before": "6.1", "after": "6.2"},
    Kind.NOT_READ: {"more": 2},
    Kind.SWEEP_FILE_CHANGED: {"sweep": "ior_tasks", "session": "s0002"},
    Kind.SWEEP_CAPPED: {"sweep": "ior_tasks", "caps": "tasks 8", "count": 66, "of": 75},
    Kind.POINTS_TOO_LARGE: {"count": 9, "nodes": 166, "partition": "compute"},
    Kind.PLATEAU_BEYOND: {"sweep": "ior_tasks", "axis": "tasks", "last": 498.0, "gain": 1.0},
    Kind.PLATEAU_UNKNOWN: {"sweep": "ior_tasks", "why": "no_doubling"},
    Kind.PLATEAU_ROUGH: {"noise": 0.04},
    Kind.DECLINE_UNKNOWN: {"why": "one_repetition"},
    Kind.ABOVE_BOUND: {
        "part": "servers",
        "count": 2,
        "limit": 9537.0,
        "share": 3.9,
        "axis": "tasks",
        "at": "64",
    },
    Kind.RANKS_DIFFER: {"axis": "tasks", "at": "64", "share": 0.18},
    Kind.PATH_HOLDS: {"bytes": 62_500_000},
    Kind.LINES_BROKEN: {"file": "2026-11-21.login1.probes", "count": 1},
}
CHOICES = {  # details of which each value has words of its own
    "better": ("higher", "lower"),
    "rule": ("no", "once", "unconfirmed", "confirmed"),
    "keeps": ("yes", "no", "unknown"),
    "own": (0, 1),
    "by_rounding": (0, 1),
    "older": (0, 1),
}
OPTIONAL = {"answer", "ticket", "z", "sides", "older", "more", "gain"}


def example(kind, **fields):
    """A finding of a kind in which every field is filled."""
    return of(kind, DETAILS.get(kind), **{**FIELDS, **fields})


def assert_is_fit_for_print(text):
    assert text
    assert text == text.strip()
    assert text.isprintable(), "one line, and no control character"
    assert not re.search(r"[{}]|  |None|: ?[;:,]|; ?;|, ?[,;]|\( ?\)|[:;,]$", text), text


# ---- each kind


def test_each_kind_has_a_sentence_with_every_field_and_with_none():
    assert set(TEMPLATES) == set(KINDS)
    for kind in KINDS:
        whole = example(kind)
        for text in (sentence(whole), full(whole), warning(whole), sentences([whole, whole])):
            assert_is_fit_for_print(text)
        least = {k: v for k, v in DETAILS.get(kind, {}).items() if k not in OPTIONAL}
        assert_is_fit_for_print(sentence(of(kind, least, **FIELDS)))
        assert_is_fit_for_print(sentence(of(kind, least, **FIELDS | {"unit": "", "criterion": ""})))


def test_a_message_may_be_missing():
    for kind in (
        *(Kind.NO_VALUE, Kind.WRONG_ANSWER, Kind.NODE_LOST, Kind.INTERRUPTED),
        *(Kind.MISSES_BOUND, Kind.TAKEN_OUT, Kind.NOT_PASSED),
    ):
        assert_is_fit_for_print(sentence(example(kind, message="")))


def test_what_cannot_be_measured_and_what_a_health_program_finds_have_their_own_words():
    for kind, status, message, words in (
        (Kind.NO_VALUE, "tool_missing", "no energy", "cannot be measured here: no energy"),
        (Kind.NO_VALUE, "tool_missing", "", "cannot be measured here"),
        (Kind.WRONG_ANSWER, "unhealthy", "/tmp is full", "not healthy: /tmp is full"),
        (Kind.WRONG_ANSWER, "invalid", "", "wrong answer: invalid"),
    ):
        assert sentence(Finding(kind, status=status, message=message)) == words


def test_the_comment_of_each_kind_names_its_details():
    text = inspect.getsource(Kind)
    comments = dict(re.findall(r'^    \w+ = "(\w+)"(?:  # (.*))?$', text, re.MULTILINE))
    assert list(comments) == list(Kind)
    for kind in KINDS:
        words = set(re.findall(r"\w+", comments[kind]))
        assert set(DETAILS.get(kind, {})) <= words, kind


def test_each_word_that_a_detail_may_have_gives_a_sentence():
    for kind in DETAILS:
        for name in DETAILS[kind].keys() & CHOICES.keys():
            texts = set()
            for value in CHOICES[name]:
                text = sentence(of(kind, DETAILS[kind] | {name: value}, **FIELDS))
                assert_is_fit_for_print(text)
                texts.add(text)
            assert len(texts) != 1, f"{name} changes nothing"


# ---- what it is about


def test_what_a_finding_is_about():
    for found, text in (
        (Finding(Kind.NOT_MEASURED), ""),
        (Finding(Kind.NOT_MEASURED, check="Hpl"), "Hpl"),
        (Finding(Kind.NOT_MEASURED, check="Hpl", metric="Hpl.gflops"), "Hpl.gflops"),
        (Finding(Kind.MISSES_BOUND, metric="Hpl.gflops", criterion="TB-HPL"), "TB-HPL, Hpl.gflops"),
        (example(Kind.PAIRS_SLOW, criterion=""), "Stream.triad over lan as sender"),
    ):
        assert about(found) == text, (found, text)
        assert full(found) == f"{text}: {sentence(found)}".removeprefix(": "), (found, text)


def test_a_warning_names_its_nodes_or_the_system():
    assert warning(example(Kind.UNREADABLE)).startswith("n001: ")
    assert warning(example(Kind.UNREADABLE, subject="")).startswith("the system: ")


# ---- how often, and what to do next


def test_how_often_a_node_was_slow_and_whether_another_run_decides():
    for rule, words in (
        ("once", "seen once, run again to confirm"),
        ("unconfirmed", "in 2 of 3 runs, run again to confirm"),
        ("confirmed", "in 2 of 3 runs"),
    ):
        for kind in (Kind.SLOW, Kind.PAIRS_SLOW):
            text = sentence(of(kind, DETAILS[kind] | {"rule": rule}, **FIELDS))
            assert text.endswith(f", {words}"), (rule, words)
        text = sentence(of(Kind.SLOW_BEFORE, SEEN | {"rule": rule}))
        assert text == f"slow {words}, but not in the newest run", (rule, words)


def test_one_is_no_plural():
    once = {"slow": 1, "runs": 1, "rule": "confirmed", "peers": 1}
    text = sentence(of(Kind.PAIRS_SLOW, DETAILS[Kind.PAIRS_SLOW] | once))
    assert "with 1 peer," in text
    assert text.endswith("in 1 of 1 run")


def test_a_waiver_says_until_when_by_whom_and_why():
    text = sentence(example(Kind.WAIVED))
    assert text == "waived until 2026-12-31 by me: fan (HD-1)"
    expired = sentence(example(Kind.WAIVER_EXPIRED))
    assert expired == "waiver W-FAN of me expired on 2026-01-31: fan"


def test_a_slow_node_is_compared_with_the_median_on_the_side_that_is_worse():
    text = sentence(example(Kind.SLOW, value="70"))
    assert text == ("70 MB/s is 30.0 % below the fleet median of 100 MB/s, z -15.0, in 2 of 3 runs")
    lower = of(Kind.SLOW, DETAILS[Kind.SLOW] | {"better": "lower"}, **FIELDS)
    assert "30.0 % above the fleet median" in sentence(lower)


def test_a_limit_that_would_read_as_the_age_is_said_in_a_smaller_unit():
    held = {"age": 7 * DAY + 60, "limit": 7 * DAY}
    shown = re.findall(r"\d+ \w+", sentence(of(Kind.TOO_OLD, held)))
    assert len(set(shown)) == 2


def test_a_missing_check_says_whether_an_older_answer_stands():
    held = DETAILS[Kind.CHECK_MISSING]
    assert "older answer" in sentence(of(Kind.CHECK_MISSING, held, check="Stream"))
    del (held := dict(held))["older"]
    assert "older answer" not in sentence(of(Kind.CHECK_MISSING, held, check="Stream"))


# ---- several that are alike


def test_findings_that_are_alike_give_each_number_from_the_least_to_the_largest():
    slow = [
        of(Kind.SLOW, DETAILS[Kind.SLOW] | {"deficit": share, "z": z}, **FIELDS | {"value": value})
        for share, z, value in ((0.14, -9.0, "86"), (0.12, -15.0, "88"), (0.13, -10.0, "87"))
    ]
    text = sentence(*slow)
    assert text == (
        "86 to 88 MB/s is 12.0 % to 14.0 % below the fleet median of 100 MB/s, "
        "z -15.0 to -9.0, in 2 of 3 runs"
    )


def test_numbers_are_sorted_as_numbers_and_shown_once_where_they_round_alike():
    ages = [of(Kind.TOO_OLD, {"age": days * DAY, "limit": 7 * DAY}) for days in (100, 20, 9)]
    assert sentence(*ages) == "measured 9 days to 100 days ago; at most 7 days are allowed"
    same = [of(Kind.PLATEAU_ROUGH, {"noise": share}) for share in (0.04001, 0.04002)]
    assert sentence(*same) == sentence(same[0])


def test_the_same_sentence_is_shown_once():
    one, two = example(Kind.NO_VALUE, subject="n001"), example(Kind.NO_VALUE, subject="n002")
    assert sentences([one, two]) == sentence(one)
    assert fulls([one, two]) == [full(one)]


@pytest.mark.deep
def test_alike_ignores_subject_time_and_numbers_and_nothing_else():
    for kind in KINDS:
        one = example(kind)
        numbers = {k: 7 if isinstance(v, (int, float)) else v for k, v in one.details}
        other = of(kind, numbers, **FIELDS | {"subject": "n9", "since": "", "value": "3e9"})
        assert one.alike == other.alike, kind
        for field in fields(Finding):
            if field.name not in ("kind", "subject", "since", "alert", "details", "value"):
                assert replace(one, **{field.name: "x"}).alike != one.alike, field.name
        assert replace(one, value="text").alike != one.alike, kind
        for name, held in one.details:
            if isinstance(held, str) and held != "2":
                changed = tuple((k, "x" if k == name else v) for k, v in one.details)
                assert replace(one, details=changed).alike != one.alike, name
        assert all(example(k).alike != one.alike for k in KINDS if k is not kind), kind


# ---- whatever the details are


def any_value(kind, name):
    """Values that a detail may have."""
    held = DETAILS[kind][name]
    if name in CHOICES:
        return st.sampled_from(CHOICES[name])
    if name in ("age", "limit"):
        return st.floats(0, 1e9, allow_nan=False)
    if isinstance(held, int):
        return st.integers(0, 10**9)
    if isinstance(held, float):
        return st.floats()
    return st.text(max_size=20)


@st.composite
def any_findings(draw):
    """One to three findings of a kind that are alike but for their numbers."""
    kind = draw(st.sampled_from(KINDS))
    held = {}
    for name in DETAILS.get(kind, {}):
        if name not in OPTIONAL or draw(st.booleans()):
            held[name] = draw(any_value(kind, name))
    plain = {name: draw(st.text(max_size=20)) for name in FIELDS if draw(st.booleans())}
    found = [of(kind, held, **plain)]
    for _ in range(draw(st.integers(0, 2))):
        numbers = {
            name: value if isinstance(value, str) else draw(any_value(kind, name))
            for name, value in held.items()
        }
        if kind is not Kind.PUBLISHED:  # its numbers are a yes or a no
            found.append(of(kind, numbers, **plain))
    return found


@given(any_findings())
def test_no_field_and_no_detail_breaks_a_sentence(found):
    assert isinstance(sentence(*found), str)
    assert full(*found).endswith(sentence(*found))
    assert warning(found[0]).endswith(full(found[0]))


@given(any_findings())
def test_what_differs_in_numbers_only_is_alike(found):
    assert len({one.alike for one in found}) == 1


@given(any_findings())
def test_a_record_is_read_as_the_finding_that_it_was(found):
    for one in found:
        assert repr(finding.read(one.record())) == repr(one)  # nan is not equal to nan


def test_a_count_is_printed_without_a_unit():
    for unit, shown in (("count", "1"), ("", "1"), ("MB/s", "1 MB/s")):
        assert with_unit(1, unit) == shown, (unit, shown)
        bound = promise.parse_bound(f"1 {unit or 'count'}")
        missed = of(Kind.MISSES_BOUND, value="1", unit=unit, bound=str(bound))
        assert sentence(missed).count(shown) == 2, (unit, shown)
        assert "count" not in sentence(missed), (unit, shown)


def test_a_bound_in_counts_is_printed_as_a_number():
    assert str(promise.parse_bound("0 count")) == "0"
    assert str(promise.parse_bound("65 GB/s")) == "65 GB/s"
    assert str(promise.parse_bound("80 % of peak")) == "80 % of peak"
