"""Made periods of probes, node events and windows, against hand calculation."""

import shutil
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from clone import SITES
from hypothesis import given
from hypothesis import strategies as st

from siteproof.availability import overview
from siteproof.availability.definitions import intersect, mtbf, overall, scheduled, seconds, union
from siteproof.availability.overview import (
    REACH,
    doubtful,
    figures,
    of_nodes,
    up_and_down,
    verdict_of,
)
from siteproof.errors import UserErrors
from siteproof.nodesets import of, parse
from siteproof.record import availability_log
from siteproof.record.availability_log import EventRecord, ProbeResult
from siteproof.record.finding import Kind, Verdict
from siteproof.sites import load

H, DAY = 3600, 86_400
BEGIN = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
END = BEGIN + 14 * DAY
STEP = 1800  # s between two probes of a service
LATE = int(STEP * REACH) - STEP  # for which the last one counts longer
HEAD = "system,begin,end,nodes,services,announced,by,why\n"
PROBES = """
probes:
  login: {kind: ssh, target: login1, interval: 30 min}
  portal: {kind: http, target: 'http://portal/', interval: 30 min}
  galaxy: {kind: http, target: 'http://galaxy/', interval: 30 min, gateway: true}
"""
CRITERIA = """
E-UP:
  description: Up for 95 % of 14 days
  metric: Availability.overall
  subject: system
  at_least: 95 %
  conditions: {window_hours: {at_least: 336}}
  source: test
E-GAP:
  description: A gateway is as available as the system
  metric: Availability.gateway_gap
  subject: service
  at_most: 2 pp
  conditions: {window_hours: {at_least: 336}}
  source: test
E-DOWN:
  description: Reported
  metric: Availability.downtime
  subject: system
  report_only: nothing is promised
  source: test
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The example with probes and criteria."""
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    folder = shutil.copytree(SITES / "example", tmp_path / "sites/example")
    for name, more in (("system", PROBES), ("criteria", CRITERIA)):
        path = folder / f"{name}.yaml"
        path.write_text(path.read_text() + more)
    return load("example")


@pytest.fixture
def bare(site):
    """The same without probes."""
    path = site.folder / "system.yaml"
    path.write_text(path.read_text().partition("probes:")[0])
    return load("example")


def probes(top, name, down=(), gaps=(), begin=BEGIN, end=END, step=STEP, host=""):
    """A round every half an hour, but in gaps; bad in the down times. Both in hours from BEGIN."""
    down, gaps = (union((BEGIN + a * H, BEGIN + b * H) for a, b in spans) for spans in (down, gaps))
    by_day = {}
    for at in range(begin, end, step):
        if intersect(gaps, ((at, at + 1),)):
            continue
        ok = not intersect(down, ((at, at + 1),))
        line = ProbeResult(at, name, name, "tcp", "t:1", ok, step, 0.1, "" if ok else "refused")
        by_day.setdefault(availability_log.text_of(at)[:10], []).append(line.line())
    folder = top / "example/probes"
    folder.mkdir(parents=True, exist_ok=True)
    for day, lines in by_day.items():
        with (folder / f"{day}.{host or name}.probes").open("ab") as stream:
            stream.write(b"".join(lines))


def events(top, text, begin=BEGIN, end=END, nodes="node[001-008]"):
    rows = [f"c||{BEGIN - DAY}|Unknown||0|Cluster Registered TRES", *text]
    record = EventRecord(begin, end, parse(nodes), "\n".join(rows) + "\n")
    availability_log.write_events(top, "example", record)


def event(node, first, last, state="DOWN", reason="x"):
    end = "Unknown" if last is None else BEGIN + int(last * H)
    return f"c|{node}|{BEGIN + int(first * H)}|{end}|{state}|1|{reason}"


def read(site, top, end=END, now=END):
    return overview.read(site, top, (BEGIN, end), now)


def kinds(found):
    return {why.kind for why in found.findings}


# ---- probes


def test_a_service_that_was_stopped_is_down_for_as_long_as_its_probes_were_bad(site, tmp_path):
    for name in ("login", "galaxy"):
        probes(tmp_path, name)
    probes(tmp_path, "portal", down=[(10, 12), (100, 101)])
    found = read(site, tmp_path)
    assert overall([found.services["login"]]) == 1
    assert seconds(found.services["portal"].down) == 3 * H
    assert overall([found.whole]) == Fraction(333, 336)
    assert (found.missing(), found.findings) == ((), [])
    between = mtbf(found.services["portal"])
    assert (between.failures, between.mean) == (2, 333 / 2)


def test_eleven_of_fourteen_days_are_incomplete_with_the_missing_hours(site, tmp_path):
    for name in ("login", "portal", "galaxy"):
        probes(tmp_path, name, gaps=[(48, 96), (200, 224)])
    found = read(site, tmp_path)
    assert found.measured_hours() == 264 + 2 * LATE / H
    assert found.missing() == (
        (BEGIN + 48 * H + LATE, BEGIN + 96 * H),
        (BEGIN + 200 * H + LATE, BEGIN + 224 * H),
    )
    made = figures(site, tmp_path, moment(BEGIN), moment(END))
    up = made["Availability.overall"]
    assert (up.value, bool(up.missing)) == (100, True)
    assert (up.why.kind, up.why["first"], up.why["more"]) == (Kind.NOTE, "2026-11-03 00:03", 1)
    assert verdict_of(site.criteria["E-UP"], up) is Verdict.INCOMPLETE


def moment(at):
    return datetime.fromtimestamp(at, UTC)


def test_a_period_that_ends_tomorrow_is_not_measured_yet(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, end=END - DAY)
    found = read(site, tmp_path, now=END - DAY)
    assert found.missing() == ((END - DAY, END),)


def test_a_service_that_was_never_probed_leaves_the_system_open(site, tmp_path):
    probes(tmp_path, "login")
    found = read(site, tmp_path)
    assert found.measured_hours() == 0
    assert found.measured_hours(found.services["login"]) == 336
    assert found.measured_hours(found.services["portal"]) == 0


def test_a_probe_counts_for_its_interval_and_a_tenth_and_no_longer():
    one = ProbeResult(BEGIN, "a", "a", "tcp", "t", True, 300, 0.1)
    assert up_and_down([one]) == (((BEGIN, BEGIN + 330),), ())
    bad = ProbeResult(BEGIN + 60, "a", "a", "tcp", "t", False, 300, 0.1, "x")
    assert up_and_down([bad, one]) == (((BEGIN, BEGIN + 60),), ((BEGIN + 60, BEGIN + 390),))


def test_of_two_hosts_that_disagree_in_the_same_second_the_bad_one_counts():
    good, bad = (ProbeResult(BEGIN, "a", "a", "tcp", "t", ok, 300, 0.1) for ok in (True, False))
    assert up_and_down([bad, good]) == up_and_down([good, bad]) == ((), ((BEGIN, BEGIN + 330),))


@given(st.lists(st.tuples(st.integers(0, 5000), st.booleans()), max_size=30))
def test_no_probe_proves_more_than_its_reach_and_nothing_is_both(rounds):
    results = [ProbeResult(BEGIN + at, "a", "a", "tcp", "t", ok, 60, 0.1) for at, ok in rounds]
    up, down = up_and_down(results)
    assert intersect(up, down) == ()
    assert seconds(up) <= sum(ok for _, ok in rounds) * 66
    assert seconds(down) <= sum(not ok for _, ok in rounds) * 66


# ---- clocks


def test_a_clock_that_was_set_back_proves_no_up_time_but_every_outage(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, end=BEGIN + 12 * H, step=300)
        probes(tmp_path, name, begin=BEGIN + 10 * H, down=[(11, 11.5)], end=BEGIN + DAY, step=300)
    found = read(site, tmp_path, end=BEGIN + DAY)
    login = found.services["login"]
    assert seconds(login.down) >= H / 4, "the bad ones count, between the good ones of before"
    assert login.missing(found.period)[0][0] <= BEGIN + 10 * H
    assert seconds(login.missing(found.period)) > H
    assert [(why.kind, why["host"]) for why in found.findings] == [
        (Kind.NOTE, "login"),
        (Kind.NOTE, "portal"),
    ]
    assert 1.9 < found.findings[0].number("hours") < 2.1


def test_seconds_between_two_rounds_are_no_clock_that_was_set_back():
    times = [0, 60, 55, 120, 61, 180]
    results = [ProbeResult(BEGIN + at, "a", "a", "tcp", "t", True, 60, 0.1) for at in times]
    assert doubtful(results) == ()
    late = ProbeResult(BEGIN, "a", "a", "tcp", "t", True, 60, 0.1)
    assert doubtful([*results, late]) == ((BEGIN, BEGIN + 181),)


def test_lines_of_the_future_are_left_out_and_counted(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, end=END)
    now = END - 10 * DAY
    found = read(site, tmp_path, now=now)
    assert "later than now" in " ".join(why.text for why in found.findings)
    assert found.missing() == ((now, END),)


def test_lines_of_probes_that_the_site_no_longer_has_are_named(site, tmp_path):
    for name in ("login", "portal", "retired"):
        probes(tmp_path, name)
    found = read(site, tmp_path)
    (why,) = found.findings
    assert (why.kind, why["names"], why["count"]) == (Kind.NOTE, "retired", 14 * DAY // STEP)
    assert "retired" not in found.services


def test_broken_lines_and_refused_files_are_named(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name)
    folder = tmp_path / "example/probes"
    with (folder / "2026-11-05.login.probes").open("ab") as stream:
        stream.write(b"garbage\n")
    (folder / "2026-11-06.login.probes").unlink()
    (folder / "2026-11-06.login.probes").symlink_to("/etc/passwd")
    found = read(site, tmp_path)
    assert kinds(found) == {Kind.LINES_BROKEN, Kind.NOT_READ}
    day = BEGIN + 5 * DAY
    assert found.missing() == ((day + LATE, day + DAY),)


# ---- planned windows


def windows(site, *rows):
    text = "".join(f"example,{row}\n" for row in rows)
    (site.folder / "windows.csv").write_text(HEAD + text)
    return load(site.name)


def test_planned_down_time_counts_in_one_of_the_two_definitions(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, down=[(24, 32), (50, 56)])
    site = windows(
        site, "2026-11-02T00:00Z,2026-11-02T08:00Z,all,all,2026-10-25T00:00Z,me,Firmware"
    )
    found = read(site, tmp_path)
    assert (overall([found.whole]), scheduled([found.whole])) == (
        Fraction(322, 336),
        Fraction(322, 328),
    )


def test_overlapping_windows_count_once_and_a_late_one_not_at_all(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, down=[(24, 34)])
    site = windows(
        site,
        "2026-11-02T00:00Z,2026-11-02T06:00Z,,all,2026-10-25T00:00Z,me,Firmware",
        "2026-11-02T06:00 Europe/Berlin,2026-11-02T09:00 Europe/Berlin,,login; portal,"
        "2026-10-25T00:00Z,me,Firmware again",
        "2026-11-02T08:00Z,2026-11-02T10:00Z,,all,2026-11-02T08:30Z,me,It took longer",
    )
    found = read(site, tmp_path)
    assert seconds(found.whole.scheduled) == 8 * H
    assert seconds(found.whole.unscheduled) == 2 * H
    (late,) = found.findings
    assert (late.kind, late["by"]) == (Kind.NOTE, "me")


def test_a_window_of_one_service_excuses_no_other(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, down=[(24, 26)])
    site = windows(
        site, "2026-11-02T00:00Z,2026-11-02T08:00Z,all,portal,2026-10-25T00:00Z,me,Firmware"
    )
    found = read(site, tmp_path)
    assert seconds(found.services["portal"].scheduled) == 2 * H
    assert seconds(found.whole.unscheduled) == 2 * H


def test_a_mistake_in_the_file_of_windows_is_one_line(site):
    with pytest.raises(UserErrors, match="windows.csv:2: 'yesterday' is not a valid time"):
        windows(site, "yesterday,2026-11-02T08:00Z,all,all,2026-10-25T00:00Z,me,Firmware")


def test_the_day_on_which_clocks_go_back_has_25_hours(site, tmp_path):
    begin = int(datetime(2026, 10, 24, 22, tzinfo=UTC).timestamp())
    for name in ("login", "portal"):
        probes(tmp_path, name, begin=begin, end=begin + 25 * H)
    first = datetime.fromisoformat("2026-10-25T00:00+02:00")
    last = datetime.fromisoformat("2026-10-26T00:00+01:00")
    up = figures(site, tmp_path, first, last)["Availability.overall"]
    assert (up.found.period_hours, up.measured_hours, up.value) == (25, 25, 100)


# ---- node events


def test_down_nodes_are_weighted_and_the_system_is_down_when_all_are(bare, tmp_path):
    every = [event(f"node00{n}", 10, 12) for n in range(1, 9)]
    events(tmp_path, [*every, event("node001", 20, 30, "DRAIN"), event("node001", 25, 40)])
    found = read(bare, tmp_path)
    four = found.definitions
    assert four.system_overall == Fraction(334, 336)
    assert four.node_overall == 1 - Fraction(8 * 2 + 20, 8 * 336)
    assert seconds(found.nodes["node001"].down) == 22 * H, "events that overlap count once"
    assert overall([found.partitions["compute"]]) == Fraction(334, 336)


def test_an_event_that_lasts_lasts_until_its_record_and_the_next_record_ends_it(bare, tmp_path):
    lasting = event("node001", 300, None)
    events(tmp_path, [lasting], end=BEGIN + 310 * H)
    found = read(bare, tmp_path)
    assert seconds(found.nodes["node001"].down) == 10 * H
    assert found.missing(found.nodes["node001"]) == ((BEGIN + 310 * H, END),)
    events(tmp_path, [event("node001", 300, 320)], begin=BEGIN + 309 * H)
    found = read(bare, tmp_path)
    assert seconds(found.nodes["node001"].down) == 20 * H
    assert found.missing() == ()


def test_events_are_cut_to_the_period(site, tmp_path):
    events(tmp_path, [event("node001", -100, 1), event("node002", 335, 400)], end=END + DAY)
    found = read(site, tmp_path, now=END + DAY)
    assert [seconds(found.nodes[f"node00{n}"].down) for n in (1, 2)] == [H, H]


def test_an_event_that_ends_before_it_begins_is_named_and_left_out(site, tmp_path):
    events(tmp_path, [event("node001", 20, 10)])
    found = read(site, tmp_path)
    (why,) = found.findings
    assert (why.kind, why.subject, why["begin"]) == (Kind.NOTE, "node001", "2026-11-01 20:00")
    assert found.nodes["node001"].down == ()


def test_a_node_that_slurm_does_not_know_is_named_and_never_up(site, tmp_path):
    events(tmp_path, [], nodes="node[001-006]")
    found = read(site, tmp_path)
    assert [(why.kind, why.subject) for why in found.findings] == [
        (Kind.UNKNOWN_TO_SLURM, "node[007-008]")
    ]
    assert found.nodes["node007"].known == ()
    assert overall(found.nodes.values()) == 1


def test_nothing_is_known_before_the_cluster_was_registered_or_while_it_was_disconnected():
    text = (
        f"c||{BEGIN + H}|{BEGIN + 5 * H}||0|Cluster Registered TRES\n"
        f"c||{BEGIN + 5 * H}|Unknown||0|Cluster Registered TRES\n"
        f"c||{BEGIN + 2 * H}|{BEGIN + 3 * H}||1|slurmctld disconnect\n"
        f"c|n1|{BEGIN + 2 * H}|{BEGIN + 4 * H}|DOWN|1|x\n"
    )
    record = EventRecord(BEGIN, BEGIN + 10 * H, of(["n1", "n2"]), text)
    found = of_nodes([record], of(["n1", "n2"]))
    assert found.known["n2"] == ((BEGIN + H, BEGIN + 2 * H), (BEGIN + 3 * H, BEGIN + 10 * H))
    assert found.down == {"n1": ((BEGIN + 2 * H, BEGIN + 4 * H),)}


def test_a_record_of_the_future_knows_no_more_than_now(bare, tmp_path):
    events(tmp_path, [event("node001", 300, None)], end=END + 30 * DAY)
    now = BEGIN + 310 * H
    found = read(bare, tmp_path, now=now)
    assert found.missing() == ((now, END),)


@pytest.mark.deep
def test_a_made_year_agrees_with_its_arithmetic(site, tmp_path):
    """Each month a maintenance of 8 h on its first day, and an outage of two hours on the tenth."""
    begin = int(datetime(2025, 11, 1, tzinfo=UTC).timestamp())
    starts = [datetime(2025 + (m + 10) // 12, (m + 10) % 12 + 1, 1, tzinfo=UTC) for m in range(12)]
    down, rows = [], []
    for first in starts:
        hour = (first.timestamp() - BEGIN) / H
        down += [(int(hour) + 8, int(hour) + 16), (int(hour) + 220, int(hour) + 222)]
        day, end = first + timedelta(hours=8), first + timedelta(hours=16)
        rows.append(
            f"{day:%Y-%m-%dT%H:%MZ},{end:%Y-%m-%dT%H:%MZ},,all,2025-01-01T00:00Z,me,Monthly"
        )
    site = windows(site, *rows)
    for name in ("login", "portal"):
        probes(tmp_path, name, begin=begin, end=BEGIN, down=down, step=2 * H)
    found = overview.read(site, tmp_path, (begin, BEGIN), BEGIN)
    hours = 365 * 24
    assert found.missing() == ()
    assert overall([found.whole]) == Fraction(hours - 120, hours)
    assert scheduled([found.whole]) == Fraction(hours - 120, hours - 96)
    assert len(found.whole.outages) == 12
