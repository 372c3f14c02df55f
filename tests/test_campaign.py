"""Which samples a verdict speaks of: a period, a campaign, or the newest session that counts."""

from datetime import UTC, datetime, timedelta

import pytest

from siteproof import campaign
from siteproof.errors import UserError
from siteproof.samples import Header, Sample

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def sample(session, hours, name="", mode="acceptance"):
    """A sample of a session that ended so many hours ago."""
    head = Header(session, "here", "all", "system", "Stream", "1",
                  (NOW - timedelta(hours=hours)).isoformat(), mode=mode, campaign=name)
    return Sample(head, "n1", "Stream.triad", unit="text", value="x")


def chosen(found, **keys):
    """The sessions that are chosen, and in which words."""
    kept, words = campaign.select(found, **keys)
    return sorted({s.header.session for s in kept}), words


@pytest.mark.parametrize(("text", "moment"), [
    ("90m", NOW - timedelta(minutes=90)), ("12h", NOW - timedelta(hours=12)),
    ("7d", NOW - timedelta(days=7)), (" 4 w ", NOW - timedelta(weeks=4)),
    ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
    ("2026-11-21T18:00", datetime(2026, 11, 21, 18, tzinfo=UTC)),
    ("2026-11-21T18:00+02:00", datetime(2026, 11, 21, 16, tzinfo=UTC)),
])
def test_a_time_is_read_as_people_write_it(text, moment):
    assert campaign.since(text, NOW) == moment


@pytest.mark.parametrize("text", [
    "yesterday", "7", "d", "-7d", "7y", "2026-13-01", "99999999999999w", "9" * 6000 + "d", "\0",
])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(UserError, match="--since: .* is no time. Allowed: 90m, 12h, 7d"):
        campaign.since(text, NOW)


def test_without_a_wish_it_is_the_newest_session():
    found = [sample("a", 5), sample("b", 1), sample("c", 3)]
    assert chosen(found) == (["b"], "session b")


def test_it_is_the_newest_session_that_could_answer_something():
    found = [sample("a", 5), sample("b", 1, mode="quick")]
    assert chosen(found, answers=lambda s: s.header.mode != "quick") == (["a"], "session a")
    assert chosen(found, answers=lambda s: False) == (
        [], "no session yet that could answer a criterion")


def test_the_newest_session_brings_its_campaign():
    found = [sample("a", 9, "winter"), sample("b", 5), sample("c", 1, "winter")]
    assert chosen(found) == (["a", "c"], "campaign winter")


def test_a_campaign_is_chosen_by_name():
    found = [sample("a", 9, "winter"), sample("b", 5), sample("c", 1, "spring")]
    assert chosen(found, campaign="winter") == (["a"], "campaign winter")
    assert chosen(found, campaign="spring", start=NOW)[0] == []


def test_an_unknown_campaign_is_refused_with_those_that_are_known():
    found = [sample("a", 9, "winter"), sample("c", 1, "spring")]
    with pytest.raises(UserError, match="no sample of 'summer'. Allowed: spring, winter"):
        campaign.select(found, campaign="summer")
    with pytest.raises(UserError, match="no campaign yet"):
        campaign.select([], campaign="summer")


def test_a_period_takes_every_session_since_then():
    found = [sample("a", 9), sample("b", 5), sample("c", 1)]
    start = NOW - timedelta(hours=5)
    assert chosen(found, start=start) == (["b", "c"], "since 2026-11-21 07:00 UTC")


def test_there_may_be_no_sample_at_all():
    assert chosen([]) == ([], "no session yet that could answer a criterion")


def test_sessions_of_one_second_are_ordered_by_name():
    assert chosen([sample("s-2", 1), sample("s-1", 1)])[0] == ["s-2"]
