"""The smaller rules of a verdict, each by itself: what counts, what is shown, what decides."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from random_cases import sources
from test_waivers import HEAD, NODES, WAIVED, of, sample, verdict

from siteproof.answers import attempts, published_values
from siteproof.answers import criterion as rule
from siteproof.answers.criterion import judge, middle_trial
from siteproof.record.clocks import Ages
from siteproof.record.descriptions import Updates
from siteproof.record.finding import Kind, Verdict
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.record.series import Settings
from siteproof.sites import Baseline, Criterion, Expected, Hardware
from siteproof.sites.site_tables import LESS, MORE, STATED
from siteproof.units import round_to

NOW = datetime(2026, 11, 27, tzinfo=UTC)
GOOD = {"n1": "70", "n2": "70", "n3": "70"}


def criterion(**keys):
    given = {"description": "d", "metric": "Stream.triad", "source": "s", "at_least": "65 GB/s"}
    return Criterion(**{**given, "scope": "every node", **keys})


def head(session, time="2026-11-21T00:00:00+00:00", **keys):
    given = {"mode": "acceptance", "place": int(session.removeprefix("s"))}
    return Header(session, "here", "all", "system", "Stream", "1", time, **{**given, **keys})


def of_job(session, node, value, **keys):
    if not value.replace(".", "").isdigit():
        return Sample(head(session), node, "Stream.*", status=value, why="x", **keys)
    return Sample(head(session), node, "Stream.triad", Decimal(value), "GB/s", **keys)


def judged(found, **keys):
    return judge("C", criterion(**keys), found, NODES)


# ---- interruptions, points, trials


def test_a_newer_interruption_is_named_beside_the_older_answer_and_an_older_one_is_not():
    for sessions, shown in ((("s1", "s2"), "s2"), (("s2", "s1"), ""), (("s1", "s1"), "")):
        value, ended = sessions
        found = [of_job(value, node, "70") for node in NODES]
        found.append(of_job(ended, "n1", "interrupted"))
        result = judged(found)
        assert (result.verdict, of(result, "n1").interrupted) == (Verdict.PASS, shown), sessions


def test_an_interruption_alone_is_no_answer():
    result = judged([of_job("s1", "n1", "interrupted")])
    assert (of(result, "n1").verdict, of(result, "n1").interrupted) == (Verdict.INCOMPLETE, "")


def test_a_node_has_points_only_where_there_are_several():
    def at(threads, value):
        return of_job("s1", "n1", value, dims={"threads": threads})

    for found, count in (([at("1", "70")], 0), ([at("1", "70"), at("2", "66")], 2)):
        node = of(judged(found), "n1")
        assert (node.verdict, len(node.points)) == (Verdict.PASS, count)
    assert node.value == 66, "the worst decides"


def test_the_trial_that_stands_for_the_median_is_the_nearest_to_it():
    trials = [of_job("s1", "n1", value, trial=n) for n, value in enumerate(("90", "70", "80"), 1)]
    middle, nearest = middle_trial(trials)
    assert (middle, nearest.trial) == (Fraction(80), 3)
    middle, nearest = middle_trial(trials[:2])
    assert (middle, nearest.trial) == (Fraction(80), 1), "of two equally near the first"


# ---- what is shown


def test_the_age_is_that_of_the_oldest_answer():
    old, new = head("s1"), head("s2", (NOW - timedelta(hours=1)).isoformat())
    found = [
        Sample(h, n, "Stream.triad", Decimal(70), "GB/s") for h, n in ((old, "n1"), (new, "n2"))
    ]
    result = judge("C", criterion(), found, NODES, fresh=attempts.Freshness(Ages([old, new], NOW)))
    assert result.age == NOW - datetime.fromisoformat(old.time)


def test_only_what_cannot_be_read_is_lost():
    for status, lost in (("lost", True), ("timeout", False)):
        assert of(judged([of_job("s1", "n1", status)]), "n1").lost is lost


def test_the_reason_that_most_nodes_have_is_the_criterions():
    result = verdict({"n1": "timeout", "n2": "killed", "n3": "killed"})
    assert (result.findings[-1].status, result.others) == ("killed", 1)


def test_a_median_without_all_nodes_names_the_worst_and_how_many_more():
    result = verdict({"n1": "node_lost", "n2": "timeout", "n3": "70"}, scope="median")
    why, cause = result.findings
    assert (result.verdict, cause.status) == (Verdict.ERROR, "timeout")
    assert (why["node"], why["more"]) == ("n2", 1)


def test_only_what_passes_passes_by_rounding_and_one_node_is_enough():
    keys = {"at_least": "70 GB/s", "rounding": "nearest 1 GB/s"}
    for last, value, by_rounding in ((Verdict.PASS, "70", True), (Verdict.FAIL, "60", False)):
        found = [of_job("s1", "n1", "69.6"), of_job("s1", "n2", "70"), of_job("s1", "n3", value)]
        result = judged(found, **keys)
        assert (result.verdict, result.by_rounding) == (last, by_rounding)


def test_what_is_reported_only_says_why_with_each_value():
    result = verdict(GOOD, report_only="no figure was promised")
    for why in (*result.findings, *(why for node in result.nodes for why in node.findings)):
        assert (why.kind, why.message) == (Kind.REPORTED_ONLY, "no figure was promised")


def test_not_here_skips_what_is_undecided_and_nothing_that_was_measured():
    why = "there is no such card"
    for values, expected in (
        ({}, (Verdict.SKIP, True)),
        (dict.fromkeys(NODES, "tool_missing"), (Verdict.SKIP, True)),
        ({"n1": "tool_missing", "n2": "70"}, (Verdict.INCOMPLETE, False)),
        (GOOD, (Verdict.PASS, False)),
        ({**GOOD, "n2": "60"}, (Verdict.FAIL, False)),
    ):
        result = verdict(values, not_here=why)
        assert (result.verdict, result.excused) == expected, values
        if result.excused:
            assert [(f.kind, f.message) for f in result.findings] == [(Kind.NOT_HERE, why)]
            assert (result.others, {n.verdict for n in result.nodes}) == (0, {Verdict.SKIP})


def test_a_waived_node_keeps_its_excuse_where_the_criterion_is_not_here():
    result = verdict({}, WAIVED, not_here="there is no such card")
    assert of(result, "n1").waived and not of(result, "n2").waived


# ---- settings that nobody accepted


MEDIAN = "median"


def usual(scope="every node", **keys):
    given = {"at_least": "60 GB/s", "source": "s", "taken": "2026-01-01", "scope": scope}
    return Baseline(metric="Stream.triad", **{**given, **keys})


def with_threads(session, threads):
    header = head(session, expected="n[1-3]", conditions={"threads": threads, "program": "stream"})
    return [Sample(header, node, "Stream.triad", Decimal(70), "GB/s") for node in NODES]


def undecided(baselines, threads="32", accepted=(), **keys):
    """Whether values with these threads, after values with 64, wait for a person."""
    before, now = with_threads("s1", "64"), with_threads("s2", threads)
    settings = Settings([s.header for s in (*before, *now)], accepted)
    fresh = attempts.Freshness(Ages([now[0].header], NOW), settings=settings)
    of_nodes = dict.fromkeys(NODES, baselines)
    return judge("C", criterion(**keys), now, NODES, of_nodes, fresh=fresh).verdict


def test_only_what_has_a_baseline_waits_for_a_person_where_a_setting_changed():
    fits, other = {"threads": Expected(exact="32")}, {"threads": Expected(exact="64")}
    for baselines, verdict_ in (
        ([], Verdict.PASS),
        ([usual()], Verdict.INCOMPLETE),
        ([usual(conditions=other)], Verdict.INCOMPLETE),
        ([usual(conditions=fits)], Verdict.PASS),
        ([usual(programs=["stream"])], Verdict.INCOMPLETE),
        ([usual(programs=["hpcc"])], Verdict.INCOMPLETE),
        ([usual(MEDIAN)], Verdict.PASS),
    ):
        assert undecided(baselines) is verdict_, baselines
    assert undecided([usual()], "64", accepted=["s1"]) is Verdict.PASS
    assert undecided([usual()], accepted=["s2"]) is Verdict.PASS
    assert undecided([usual(conditions=other)], "64") is Verdict.PASS


def test_values_as_before_count_against_a_baseline_of_other_settings_once_they_are_accepted():
    other = usual(conditions={"threads": Expected(exact="32")})
    assert undecided([other], "64") is Verdict.INCOMPLETE
    assert undecided([other], "64", accepted=["s1"]) is Verdict.PASS


# ---- ages, as words


def test_a_span_is_in_the_largest_unit_of_which_there_are_two():
    day, hour = timedelta(days=1), timedelta(hours=1)
    for span, text in (
        (2 * day, "2 days"),
        (2 * day - hour, "47 hours"),
        (2 * hour, "2 hours"),
        (90 * timedelta(minutes=1), "90 minutes"),
        (timedelta(seconds=30), "0 minutes"),
        (2.9 * day, "2 days"),
    ):
        assert attempts.lasting(span) == text


def test_a_span_that_would_look_equal_to_another_is_in_a_smaller_unit():
    week, minute = timedelta(days=7), timedelta(minutes=1)
    assert attempts.lasting(week + 65 * minute, week) == "169 hours"
    assert attempts.lasting(week + minute, week) == "10081 minutes"
    assert attempts.lasting(2 * week, week) == "14 days"


# ---- what others have published


PAPER = {PUBLISHED: "a paper"}


def stated(value, node="", metric="Stream.triad", session="s1", **conditions):
    own = {**PAPER, **conditions}
    return Sample(
        head(session, mode="published"), node, metric, Decimal(value), "GB/s", own_conditions=own
    )


ANY = (Hardware(),)


def outcome(value, one=None, facts=ANY, **conditions):
    return published_values.outcome(one or criterion(), stated(value, **conditions), facts)


def test_a_published_value_keeps_or_misses_a_bound():
    for value, keeps in (("70", True), ("65", True), ("64.9", False)):
        assert outcome(value) == (keeps, False, ())
    assert outcome("64.9", criterion(rounding="nearest 1 GB/s")) == (True, True, ())


def test_a_printed_bound_proves_one_direction_only():
    least, most = criterion(), criterion(at_least=None, at_most="65 GB/s")
    for one, sign, value, keeps in (
        (least, MORE, "70", True),
        (least, MORE, "60", None),
        (least, LESS, "60", False),
        (least, LESS, "70", None),
        (most, LESS, "60", True),
        (most, LESS, "70", None),
        (most, MORE, "70", False),
        (most, MORE, "60", None),
    ):
        assert outcome(value, one, **{STATED: sign}).keeps is keeps, (one.kind, sign, value)


def test_a_published_value_must_keep_the_bound_of_each_kind_of_hardware():
    one = criterion(at_least="80 % of memory_bandwidth")
    small, large = (Hardware(memory_bandwidth=f"{n} GB/s") for n in (80, 100))
    assert outcome("70", one, (small,)).keeps is True
    assert outcome("70", one, (small, large)).keeps is False
    assert outcome("70", one, ()) is None


def test_a_published_value_of_another_role_link_or_condition_is_none_of_the_criterions():
    one = criterion(nodes=["compute"], conditions={"threads": Expected(exact="8")})
    for conditions, not_stated in (
        ({}, ("threads",)),
        ({"threads": "8"}, ()),
        ({"role": "compute", "threads": "8"}, ()),
    ):
        assert outcome("70", one, **conditions).not_stated == not_stated
    for conditions in ({"threads": "4"}, {"role": "login"}):
        assert outcome("70", one, **conditions) is None, conditions
    over = criterion(subject="pair", links=["wan"])
    assert outcome("70", over, link="wan") and outcome("70", over)
    assert outcome("70", over, link="lan") is None


def test_a_value_of_one_node_or_of_the_system_is_the_units_own():
    own = published_values.own
    system = criterion(subject="system", scope="system")
    assert own(criterion(), stated("70", node="n1"))
    assert own(system, stated("70"))
    assert not own(criterion(), stated("70"))


def test_the_newest_published_value_of_all_that_the_criterion_covers_counts():
    one = criterion(nodes=["compute"])
    older, newer = stated("60", session="s1"), stated("70", session="s2")
    other = stated("80", session="s3", role="login")
    found = [older, newer, other, stated("90", "n1", session="s4"), sample("", "95")]
    assert published_values.newest_of_all(found, one) is newer
    assert published_values.newest_of_all([other], one) is None


def test_a_published_miss_fails_the_node_that_it_is_of_or_the_criterion_alone():
    for found, verdict_, fails in (
        ([stated("60", "n1")], Verdict.FAIL, ["n1"]),
        ([stated("70", "n1")], Verdict.INCOMPLETE, []),
        ([stated("60")], Verdict.FAIL, []),
        ([stated("70")], Verdict.INCOMPLETE, []),
    ):
        result = judged(found)
        assert result.verdict is verdict_
        assert [n.node for n in result.nodes if n.verdict is Verdict.FAIL] == fails


def test_a_measurement_goes_before_what_is_published():
    found = [stated("60", node) for node in NODES] + [of_job("s2", node, "70") for node in NODES]
    assert judged(found).verdict is Verdict.PASS


def test_what_is_published_has_no_age():
    for one in (stated("70"), Sample(HEAD, "n1", "Stream.triad", own_conditions=PAPER)):
        assert attempts.published(one)
    assert not attempts.published(sample("n1", "70"))


# ---- rounding


def test_zero_and_negative_values_round_like_positive_ones():
    for value, rounded in (("0", 0), ("-1.6", -2), ("1.6", 2)):
        assert round_to(Fraction(value), 1) == rounded


# ---- one value of a node alone, which is judged in its group


BOUNDS = (
    {"at_least": "65 GB/s"},
    {"at_least": "65 GB/s", "rounding": "nearest 2 GB/s"},
    {"at_least": None, "at_most": "66500 MB/s", "rounding": "nearest 5 GB/s", "ties": "even"},
    {"at_least": None, "equals": "66 GB/s", "rounding": "nearest 1 GB/s"},
    {"at_least": "50 % of memory_bandwidth", "rounding": "nearest 1 %"},
)


def of_chance(chance, number):
    """A job: other kernels, file systems, modes, and nodes that it does not name."""
    conditions = chance.choice(({}, {}, {"file_system": "scratch"}, {"program": "other"}))
    return head(
        f"s{number}",
        f"2026-11-{20 + number}T00:00:00+00:00",
        mode=chance.choice(("acceptance", "maintenance", "quick")),
        expected=chance.choice(("n[1-9]", "n[1-5]", "")),
        conditions={"program": "stream", **conditions},
        provenance={"kernel": chance.choice("ab"), "processor": chance.choice("xxxy")},
    )


def test_a_value_alone_is_judged_as_by_the_whole_rule_and_by_its_rounding(monkeypatch, tmp_path):
    facts = [Hardware(memory_bandwidth=f"{size} GB/s") for size in (130, 135)]
    for chance in sources("values alone", 150):
        own = criterion(
            **chance.choice(BOUNDS),
            programs=chance.choice(([], ["stream"])),
            trials=chance.choice((None, None, 1, 2)),
            max_age=chance.choice(("none", "5d", "30d")),
        )
        heads = [of_chance(chance, number) for number in (1, 2, 3)]
        found = []
        for node in (f"n{number}" for number in range(1, 10)):
            for job in chance.sample(heads, chance.choice((0, 1, 1, 1, 1, 2))):
                value = Decimal(chance.randrange(640, 690)).scaleb(-1)
                keys = chance.choice(({}, {}, {}, {"dims": {"threads": "1"}}))
                found.append(Sample(job, node, "Stream.triad", value, "GB/s", **keys))
        units = {f"n{number}": chance.choice(facts) for number in range(1, 10)}
        typical = {"n1": [usual(at_least="68 GB/s")], "n2": [usual(at_least="64 GB/s")]}
        fresh = attempts.Freshness(
            Ages(heads, NOW), Updates(heads, tmp_path), Settings(heads, set())
        )
        given = "C", own, found, units, typical, {}, fresh
        result = judge(*given)
        with monkeypatch.context() as patch:
            patch.setattr(rule._Alone, "decides", lambda *_: False)
            assert result == judge(*given)
        for node in result.nodes:
            if node.value is not None:
                missed = node.verdict is Verdict.FAIL
                assert missed is not own.met_by(node.rounded(own)), node
