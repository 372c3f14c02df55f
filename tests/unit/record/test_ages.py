"""How old a job is: by its clock, as far as its session's place bears it out."""

from datetime import UTC, datetime, timedelta

from siteproof.answers.attempts import lasting, short
from siteproof.record.clocks import Ages
from siteproof.record.samples import Header

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def job(place, ago, session=""):
    """A job of a session with this place; its clock tells that it ended so long ago."""
    moment = (NOW - ago).isoformat()
    name = session or f"s{place}"
    return Header(name, "here", "all", "system", "Stream", "1", moment, place=place)


def ages(*found):
    known = Ages(found, NOW)
    return [known.age(head) for head in found]


def test_an_age_is_what_the_clock_says():
    assert ages(job(1, 3 * DAY), job(2, HOUR)) == [3 * DAY, HOUR]
    assert ages(job(0, 3 * DAY), job(0, HOUR)) == [3 * DAY, HOUR]


def test_a_clock_a_little_ahead_is_now():
    assert ages(job(1, -HOUR / 2)) == [timedelta(0)]


def test_a_job_of_the_future_is_as_old_as_the_session_before_it():
    assert ages(job(1, 2 * DAY), job(2, -900 * DAY)) == [2 * DAY, 2 * DAY]
    assert ages(job(1, -900 * DAY)) == [None]


def test_a_clock_that_was_reset_makes_no_session_older_than_the_one_before_it():
    assert ages(job(1, 2 * DAY), job(2, 400 * DAY)) == [2 * DAY, 2 * DAY]


def test_what_a_wrong_clock_says_makes_no_failure_older():
    found = [job(1, 2 * DAY), job(2, 400 * DAY), job(3, -400 * DAY), job(4, HOUR)]
    known = Ages(found, NOW)
    assert [known.age(head, youngest=True) for head in found] == [
        2 * DAY,
        timedelta(0),
        timedelta(0),
        HOUR,
    ]


def test_jobs_of_two_sessions_side_by_side_keep_their_own_ages():
    first = job(1, HOUR, "20261121T040000Z-a")
    second = job(2, 6 * HOUR, "20261121T050000Z-b")
    assert ages(first, second) == [HOUR, 6 * HOUR]


def test_the_ages_of_an_old_campaign_count_at_its_end():
    found = [job(1, 100 * DAY), job(2, 98 * DAY), job(3, HOUR)]
    known = Ages(found, NOW).at_newest(found[:2])
    assert [known.age(head) for head in found[:2]] == [2 * DAY, timedelta(0)]


def test_a_span_is_told_in_the_unit_that_fits():
    for span, words, few in (
        (30 * DAY, "30 days", "30 d"),
        (47 * HOUR, "47 hours", "47 h"),
        (timedelta(minutes=119), "119 minutes", "119 min"),
        (timedelta(seconds=5), "0 minutes", "0 min"),
    ):
        assert (lasting(span), short(span)) == (words, few), (span, words, few)


def test_an_age_just_above_the_limit_does_not_read_like_it():
    assert lasting(7 * DAY + HOUR, 7 * DAY) == "169 hours"
