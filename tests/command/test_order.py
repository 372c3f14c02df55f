"""The order of sessions: whatever a clock says, the newest answer is that of the newest session."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import fleets
import pytest
from fleets import names

from siteproof.record import samples

NOW = datetime.now(UTC).replace(microsecond=0)
GOOD, BAD = 100, 1  # MB/s; the contract asks for 60


@pytest.fixture
def world(world):
    return fleets.furnish(world)


def session(world, place, when, value=GOOD, **keys):
    """A session of all nodes that ended then, named after its clock."""
    name = f"{when - timedelta(minutes=1):%Y%m%dT%H%M%SZ}-{place:07x}"
    head = {"session": name, "place": place, "time": when.isoformat(), **keys}
    found = fleets.run_of(dict.fromkeys(names(8), value), 1, **head)
    samples.write(world.data / "perflogs", found[0].header, found)
    return name


def days(count):
    return NOW + timedelta(days=count)


FUTURE = [
    days(2),
    days(3650),
    datetime(2036, 2, 29, tzinfo=UTC),
    datetime(2199, 12, 31, tzinfo=UTC),
]
WORDS = ["verdict", "nodes", "gate"]
COMMANDS = [
    ["verdict"],
    ["nodes"],
    ["gate"],
    ["trend"],
    ["trend", "--since", "7d"],
    ["compare"],
    ["history"],
    ["matrix", "--days"],
    ["why", "C-TRIAD"],
    ["export", "openmetrics"],
    ["export", "junit"],
    ["export", "json"],
    ["report", "--output", "page.html"],
    ["calibrate"],
    ["sweep"],
    ["describe"],
    ["accept", "--why", "x", "latest"],
]


@pytest.mark.parametrize("when", FUTURE, ids=["2 days", "10 years", "2036", "2199"])
def test_a_session_of_the_future_never_outranks_tonights(world, when):
    wrong = session(world, 1, when)
    session(world, 2, NOW, BAD)
    for word in WORDS:
        done = world.ask(word)
        assert done.code == 1, done.said
        assert f"session {wrong} ended at" in done.said
        assert "later than now" in " ".join(done.said.split())
    record = json.loads(world.ask("verdict", "--json").out)
    clocks = [why for why in record["findings"] if "later than now" in why.get("text", "")]
    assert [why["details"]["session"] for why in clocks] == [wrong]


@pytest.mark.parametrize(
    "when", [days(-30), datetime(1971, 1, 1, tzinfo=UTC)], ids=["30 days", "1971"]
)
def test_a_clock_that_was_set_back_shows_no_old_pass(world, when):
    session(world, 1, days(-30))
    older = session(world, 2, days(-1))
    wrong = session(world, 3, when - timedelta(hours=1), BAD)
    for word in WORDS:
        done = world.ask(word)
        assert done.code == 1, done.said
        told = " ".join(done.said.split())
        assert f"session {wrong} ended at" in told
        assert f"before the older session {older} began" in told


def test_even_a_session_without_a_number_is_not_newest_with_a_time_of_no_year_yet(world):
    session(world, 0, datetime(2036, 1, 1, tzinfo=UTC))
    session(world, 0, NOW, BAD)
    assert world.ask("verdict").code == 1


def test_sessions_without_a_number_come_first(world):
    session(world, 0, NOW - timedelta(minutes=5))
    session(world, 1, NOW - timedelta(minutes=10), BAD)
    assert world.ask("verdict").code == 1


def test_two_sessions_of_one_number_are_named_and_ordered_by_time(world):
    session(world, 4, days(-1))
    session(world, 4, NOW, BAD)
    done = world.ask("verdict")
    assert done.code == 1
    assert "have the same number 4" in " ".join(done.said.split())


def test_a_number_far_beyond_the_others_is_named(world):
    session(world, 1, days(-2))
    far = session(world, 900_000_000, days(-1))
    text = " ".join(world.ask("verdict").said.split())
    assert f"session {far} has the number 900000000, far above 1" in text


def test_clocks_in_order_are_no_news(world):
    session(world, 0, days(-3))
    session(world, 1, days(-2))
    session(world, 2, NOW)
    for word in (*WORDS, "history"):
        done = world.ask(word)
        assert "place in the order" not in done.said and "number" not in done.said
        assert not done.err
    assert world.ask("compare").err == ""


def test_other_commands_name_wrong_clocks_too(world):
    session(world, 1, days(-3))
    session(world, 2, days(400))
    session(world, 3, NOW)
    told = "later than now"
    assert told in world.ask("history").err
    assert told in world.ask("compare").err
    assert any(told in line for line in json.loads(world.ask("trend", "--json").out)["gaps"])
    trend = [line for line in world.ask("trend").out.splitlines() if told in line]
    assert trend and all(line.startswith("warning: session") for line in trend), trend  # judged
    page = world.folder / "page.html"
    assert world.ask("report", "--output", str(page)).code in (0, 3)
    assert told in page.read_text()


def test_compare_compares_the_newest_with_the_one_before_it(world):
    session(world, 1, days(-3))
    session(world, 2, days(400), 90)
    last = session(world, 3, NOW, BAD)
    done = world.ask("compare", "--json")
    assert done.code == 1
    assert json.loads(done.out)["b"] == last


def test_times_of_other_zones_are_ordered_as_times(world):
    early = NOW - timedelta(hours=3)
    zone = "+09:00"
    local = (early + timedelta(hours=9)).replace(tzinfo=None).isoformat() + zone
    name = session(world, 0, early)
    path = next((world.data / "perflogs/here/compute").glob(f"{name}*"))
    path.write_text(path.read_text().replace(early.isoformat(), local))
    session(world, 0, NOW - timedelta(hours=1), BAD)
    assert world.ask("verdict").code == 1


NO_TIMES = [
    "2026-06-30T23:59:60+00:00",
    "0001-01-01T00:00:00+00:00",
    "0001-01-01T00:00:00+23:59",
    "1969-12-31T23:59:59+00:00",
    "1970-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59+00:00",
    "9999-12-31T23:59:59-23:59",
    "2026-11-21",
    "24:00",
    "x",
]


def test_a_time_that_no_calendar_has_is_named_with_its_file(world):
    name = session(world, 1, NOW)
    path = next((world.data / "perflogs/here/compute").glob(f"{name}*"))
    whole = path.read_text()
    for time in NO_TIMES:
        path.write_text(whole.replace(NOW.isoformat(), time))
        done = world.ask("verdict")
        assert (done.code, path.name in done.err) == (3, True), time
        assert "is not a time with its zone" in done.err or "clock can show" in done.err, time


def misplaced(world, target):
    """The last of two sessions, whose file was moved to another name."""
    session(world, 1, days(-1))
    name = session(world, 2, NOW, BAD)
    folder = world.data / "perflogs/here/compute"
    path = folder / target.format(name=name)
    path.parent.mkdir(parents=True, exist_ok=True)
    next(folder.glob(f"{name}*")).rename(path)
    return path


@pytest.mark.parametrize(
    "target",
    [
        "20200101T000000Z-0000000.Stream.1.jsonl",
        "{name}.Hpl.1.jsonl",
        "{name}.Stream.2.jsonl",
        "../other/{name}.Stream.1.jsonl",
    ],
)
def test_a_failure_is_not_hidden_by_moving_its_file(world, target):
    path = misplaced(world, target)
    for word, code in {"verdict": 3, "nodes": 3, "gate": 1}.items():
        done = world.ask(word)
        assert (done.code, path.name in done.err) == (code, True), (word, done)
        assert "its header is that of another file" in done.err, word
        assert "n[001-008]" in done.out and "cannot be read" in done.out, (word, done)
    done = world.ask("history")
    assert done.code == 3 and "its header is that of another file" in done.said


def test_an_old_file_in_a_wrong_place_is_left_out_and_named(world):
    name = session(world, 1, days(-1))
    session(world, 2, NOW)
    folder = world.data / "perflogs/here"
    (folder / "other").mkdir()
    (path,) = (folder / "compute").glob(f"{name}*")
    (folder / "other" / path.name).write_bytes(path.read_bytes())
    done = world.ask("verdict")
    assert done.code == 0
    assert "left out: " in done.err and "of another file: here/compute/" in done.err


def test_another_systems_file_answers_nothing_here(world):
    session(world, 1, days(-1), BAD)
    head = fleets.header(1, system="there", session="20261101T000000Z-x", place=9)
    found = [
        replace(sample, header=head) for sample in fleets.run_of(dict.fromkeys(names(8), GOOD), 1)
    ]
    written = samples.write(world.data / "perflogs", head, found)
    written.rename(world.data / "perflogs/here/compute" / written.name)
    done = world.ask("verdict")
    assert done.code in (1, 2), done.said
    assert "its header is that of another file: there/" in done.err


def test_a_trend_goes_by_the_order_of_sessions(world):
    """A step down in the newest runs, measured with a clock that had been set back by a year."""
    for run in range(1, 13):
        session(world, run, days(run - 30))
    for run in range(13, 25):
        session(world, run, days(run - 400), 70)
    record = json.loads(world.ask("trend", "--json").out)
    (alert,) = record["alerts"] + record["fleet"]
    assert alert["relative"] < -0.2, alert
    assert any("before the older session" in line for line in record["gaps"]), record["gaps"]


def test_a_session_of_the_future_stands_at_its_place_in_a_trend(world):
    for run in range(1, 25):
        session(world, run, days(4000 if run == 6 else run - 40), GOOD if run < 13 else 70)
    record = json.loads(world.ask("trend", "--json").out)
    (alert,) = record["alerts"] + record["fleet"]
    assert alert["relative"] < -0.2, alert
    assert alert["first_after"]["time"][:10] == f"{days(13 - 40):%Y-%m-%d}"


@pytest.mark.parametrize("years", [(1970, 2199), (2199, 1970)], ids=str)
def test_no_command_stumbles_over_the_first_and_the_last_year(world, years):
    session(world, 1, NOW)
    for place, year in enumerate(years, start=2):
        session(world, place, datetime(year, 1, 1, 12, tzinfo=UTC))
    for words in COMMANDS:
        done = world.ask(*(str(world.folder / w) if w == "page.html" else w for w in words))
        assert "Traceback" not in done.said, words
        assert done.code in range(4), words
