"""Clocks that cannot be right are found, each as a finding; those that can be are not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fleets import header

from siteproof.record import clocks, samples
from siteproof.record.finding import Kind
from siteproof.record.sessions import Sessions

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def at(place, hours, name="", **keys):
    moment = NOW + timedelta(hours=hours)
    return header(1, session=name or f"s{place}", place=place, time=moment.isoformat(), **keys)


def found(*headers):
    return [(one.kind, dict(one.details)) for one in clocks.findings(headers, NOW)]


def test_sessions_in_their_order_are_no_news():
    assert found(at(0, -9, "a"), at(1, -8), at(2, -7), at(3, 0)) == []


def test_sessions_that_overlap_are_no_news():
    long = [at(1, -9), replace(at(1, -1), job="2")]
    assert found(*long, at(2, -5), at(3, -3)) == []


def test_a_second_or_two_is_no_news():
    assert found(at(1, 0.01)) == []
    assert found(at(1, -1), at(2, -1.01)) == []


def test_later_than_now_is_told_once_and_blames_no_later_session():
    ended = "2028-01-13T03:00:00+00:00"
    assert found(at(1, -3), at(2, 9999), at(3, -1)) == [
        (Kind.NOTE, {"session": "s2", "ended": ended})
    ]


def test_before_an_older_one_is_told():
    (one,) = found(at(1, -3), at(2, -2), at(3, -720))
    assert one == (
        Kind.NOTE,
        {
            "session": "s3",
            "ended": "2026-10-23T12:00:00+00:00",
            "older_session": "s2",
            "began": "2026-11-22T10:00:00+00:00",
        },
    )
    (one,) = found(at(0, -3, "unnumbered"), at(1, -720))
    assert one[1]["older_session"] == "unnumbered"


def test_what_others_published_has_no_place():
    assert found(at(0, 9999, mode=samples.PUBLISHED), at(1, -1)) == []


def test_many_lines_of_a_kind_are_counted():
    every = found(*(at(n, 100 + n) for n in range(1, 51)))
    assert len(every) == clocks.MAX_FINDINGS + 1
    assert every[-1] == (Kind.NOTE, {"count": 45})


def test_no_year_is_too_much():
    for year in (1, 9999):
        moment = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC).isoformat()
        ends = replace(at(2, 0), time=moment)
        assert found(at(1, -1), ends, replace(ends, session=f"{year:04}1231T235959Z-1", place=3)), (
            year
        )


def test_a_session_with_two_numbers_and_a_number_with_two_sessions_are_told():
    assert found(at(1, -3, "a"), at(2, -2, "a"), at(2, -1, "b")) == [
        (Kind.NOTE, {"number": 2, "sessions": "a, b"}),
        (Kind.NOTE, {"session": "a", "numbers": "1, 2"}),
    ]


def test_a_node_whose_clock_is_off_is_told_with_its_session():
    (one,) = clocks.findings([at(1, -1, provenance={clocks.NODES: "n1 800 s behind"})], NOW)
    assert (one.check, one["session"], one["nodes"]) == ("Stream", "s1", "n1 800 s behind")


def test_a_number_beyond_a_leap_gives_no_place(tmp_path):
    for head in (at(1, -3), at(2, -2), at(10**8, -9, "forged")):
        samples.write(tmp_path, head, [])
    sessions = Sessions(tmp_path, "here")
    assert [h.session for h in sessions.headers] == ["forged", "s1", "s2"]
    beyond = [one for one in sessions.clock_findings if "far above" in one.text]
    assert [(one["session"], one["number"], one["last"]) for one in beyond] == [
        ("forged", 10**8, 2)
    ]


def test_its_samples_have_none_either(tmp_path):
    head = at(10**8, -9, "forged")
    samples.write(tmp_path, head, [samples.Sample(head, "n1", "Stream.*", status="timeout")])
    (sample,) = Sessions(tmp_path, "here").of(lambda _: True)
    assert sample.header.place == 0
