"""Which samples a verdict speaks of: a period, a campaign, or the newest session that counts."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from refusals import refusal

from siteproof.errors import UserError
from siteproof.record import campaign
from siteproof.record.samples import Header

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def job(session, hours, name="", mode="acceptance"):
    """A job of a session that ended so many hours ago."""
    return Header(
        session,
        "here",
        "all",
        "system",
        "Stream",
        "1",
        (NOW - timedelta(hours=hours)).isoformat(),
        mode=mode,
        campaign=name,
    )


def chosen(found, **keys):
    """The sessions that are chosen, and in which words."""
    wanted, words = campaign.choose(found, **keys)
    return sorted({head.session for head in found if wanted(head)}), words


def test_a_time_is_read_as_people_write_it():
    for text, moment in (
        ("90m", NOW - timedelta(minutes=90)),
        ("12h", NOW - timedelta(hours=12)),
        ("7d", NOW - timedelta(days=7)),
        (" 4 w ", NOW - timedelta(weeks=4)),
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
        ("2026-11-21T18:00", datetime(2026, 11, 21, 18, tzinfo=UTC)),
        ("2026-11-21T18:00+02:00", datetime(2026, 11, 21, 16, tzinfo=UTC)),
    ):
        read = campaign.since(text, NOW)
        assert read == moment, (text, moment)
        assert read.tzinfo is UTC, (text, moment)  # commands print it as UTC


def test_what_is_no_time_is_refused():
    for text in (
        *("yesterday", "7", "d", "-7d", "7y", "2026-13-01", "99999999999999w", "9" * 6000 + "d"),
        *("\0", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ):
        told = refusal(campaign.since, text, NOW)
        assert told.startswith("--since: "), text
        assert " is not a valid time. Allowed: 90m, 12h, 7d" in told, text


def test_without_a_wish_it_is_the_newest_session():
    found = [job("a", 5), job("b", 1), job("c", 3)]
    assert chosen(found) == (["b"], "session b")


def test_it_is_the_newest_session_that_could_answer_something():
    found = [job("a", 5), job("b", 1, mode="quick")]
    assert chosen(found, answers=lambda head: head.mode != "quick") == (["a"], "session a")
    assert chosen(found, answers=lambda head: False) == (["b"], "session b")  # for the reasons
    assert chosen([]) == ([], "no session yet that could answer a criterion")


def test_the_newest_session_brings_its_campaign():
    found = [job("a", 9, "winter"), job("b", 5), job("c", 1, "winter")]
    assert chosen(found) == (["a", "c"], "campaign winter")


def test_a_campaign_is_chosen_by_name():
    found = [job("a", 9, "winter"), job("b", 5), job("c", 1, "spring")]
    assert chosen(found, campaign="winter") == (["a"], "campaign winter")
    assert chosen(found, campaign="spring", start=NOW) == (
        [],
        "campaign spring, since 2026-11-21 12:00 UTC",
    )


def test_a_start_in_another_zone_is_told_in_utc():
    zone = timezone(timedelta(hours=2))
    assert chosen([], start=NOW.astimezone(zone))[1] == "since 2026-11-21 12:00 UTC"


def test_an_unknown_campaign_is_refused_with_those_that_are_known():
    found = [job("a", 9, "winter"), job("c", 1, "spring")]
    with pytest.raises(UserError, match="no sample of 'summer'. Allowed: spring, winter"):
        campaign.choose(found, campaign="summer")
    with pytest.raises(UserError, match="no campaign yet"):
        campaign.choose([], campaign="summer")


def test_a_period_takes_every_session_since_then():
    found = [job("a", 9), job("b", 5), job("c", 1)]
    start = NOW - timedelta(hours=5)
    assert chosen(found, start=start) == (["b", "c"], "since 2026-11-21 07:00 UTC")


def test_there_may_be_no_sample_at_all():
    assert chosen([]) == ([], "no session yet that could answer a criterion")


def test_sessions_of_one_second_are_ordered_by_name():
    assert chosen([job("s-2", 1), job("s-1", 1)])[0] == ["s-2"]
