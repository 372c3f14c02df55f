"""Whether an attempt could answer a question, and which inputs a question has."""

from dataclasses import replace
from decimal import Decimal

from clone import TOP

from siteproof.answers import attempts, expected
from siteproof.record.finding import Finding, Kind
from siteproof.record.manifest import KNOB, OWN
from siteproof.record.samples import (
    EMULATED,
    PUBLISHED,
    SWEEP,
    TOOL_MISSING,
    UNREAD,
    Header,
    Sample,
)
from siteproof.sites import Criterion, Expected, load


def criterion(**keys):
    given = {"description": "d", "metric": "Stream.triad", "source": "s", "at_least": "65 GB/s"}
    return Criterion(**{**given, "scope": "every node", **keys})


def header(session="s1", **keys):
    given = {"mode": "acceptance", "place": int(session.removeprefix("s"))}
    time = "2026-11-21T00:00:00+00:00"
    return Header(session, "here", "all", "system", "Stream", "1", time, **{**given, **keys})


def value(head, node="n1", **keys):
    return Sample(head, node, "Stream.triad", Decimal(70), "GB/s", **keys)


def refused(one, dims=None, **conditions):
    """Why a value under conditions does not answer; empty if it does."""
    mode = conditions.pop("mode", "acceptance")
    sample = value(header(mode=mode, conditions=conditions), dims=dims or {})
    why = attempts.refusal(one, sample)
    return (why.kind, why["found"] if why.kind is Kind.OTHER_CONDITION else "") if why else ()


# ---- could it answer?


def test_a_value_of_another_program_mode_or_condition_answers_nothing():
    rules = {"mode": Expected(exact="acceptance"), "threads": Expected(exact="8")}
    one = criterion(programs=["stream"], conditions=rules)
    have = {"program": "stream", "threads": "8"}
    other = Kind.OTHER_CONDITION
    assert refused(one, **have) == ()
    assert refused(one, **have | {"program": "dd"}) == (Kind.OTHER_PROGRAM, "")
    assert refused(one, threads="8") == (Kind.OTHER_PROGRAM, "")
    assert refused(one, **have, mode="quick") == (other, "quick")
    assert refused(one, **have | {"threads": "4"}) == (other, "4")
    assert refused(one, program="stream") == (other, "unknown")
    assert refused(criterion(), program="dd", threads="4") == ()


def test_what_is_emulated_answers_only_where_that_is_allowed_and_the_real_thing_always():
    netem = {EMULATED: "netem"}
    allowed = criterion(conditions={EMULATED: Expected(exact="netem")})
    assert refused(criterion(), **netem) == (Kind.OTHER_CONDITION, "netem")
    assert refused(allowed, **netem) == refused(allowed) == ()
    assert refused(allowed, **{EMULATED: "tbf"}) == (Kind.OTHER_CONDITION, "tbf")


def test_a_knob_that_was_turned_answers_only_a_criterion_on_it():
    knob = f"{KNOB}governor"
    on_it = criterion(conditions={knob: Expected(exact="performance")})
    turned = (Kind.SETTING_CHANGED, "")
    assert refused(criterion(), **{knob: "performance"}) == turned
    assert refused(criterion(), {knob: "performance"}) == turned
    assert refused(criterion(), {knob: OWN}) == ()
    assert refused(on_it, **{knob: "performance"}) == refused(on_it, {knob: "performance"}) == ()
    sample = value(header(conditions={knob: "performance"}))
    assert attempts.refusal(criterion(), sample)["setting"] == "governor"


def test_what_others_published_is_no_attempt():
    why = attempts.refusal(criterion(), value(header(), own_conditions={PUBLISHED: "a paper"}))
    assert (why.kind, why["source"], why["keeps"]) == (Kind.PUBLISHED, "a paper", "unknown")
    assert attempts._is_no_check(header(mode=PUBLISHED))
    assert attempts._is_no_check(header(conditions={SWEEP: "1"}))
    assert not attempts._is_no_check(header())


# ---- of which unit, and what takes nothing back


def test_a_node_without_the_metric_that_others_have_is_lost_where_its_job_owes_a_line():
    for conditions, lacking in (({}, ["n2"]), ({SWEEP: "1"}, [])):
        head = header(expected="n[1-2]", conditions=conditions)
        found = attempts.with_lacking([value(head)], "Stream.triad")
        assert [s.node for s in found if s.status == "lost"] == lacking
    whole = header(expected="n[1-2]")
    assert len([*attempts.with_lacking([value(whole, "")], "Stream.triad")]) == 1


def test_a_tool_that_is_missing_in_one_partition_takes_nothing_back_from_another_one():
    def lacks(session, partition):
        head = replace(header(session), partition=partition)
        return Sample(head, "n1", "Stream.*", status=TOOL_MISSING)

    measured = value(header("s1"))
    newest_first = [lacks("s4", "gpu"), lacks("s3", "big"), measured, lacks("s0", "all")]
    assert attempts.not_taken_back(criterion(), newest_first)[0] is measured
    same = [lacks("s3", "all"), measured]
    assert attempts.not_taken_back(criterion(), same) == same
    other = criterion(conditions={"threads": Expected(exact="8")})
    fits = value(header("s1", conditions={"threads": "8"}))
    with_others = [lacks("s4", "gpu"), value(header("s3")), fits]
    assert [*attempts.not_taken_back(other, with_others)] == with_others[1:]


def test_a_criterion_is_sought_on_each_file_system_that_it_may_be_answered_on():
    def places(one, *used, there=("home", "scratch", "work")):
        have = [{"file_system": name} for name in used]
        found = attempts.each_place(one, have, there)
        return [each.conditions["file_system"].exact for each in found]

    some = criterion(conditions={"file_system": Expected(one_of=["home", "work"])})
    assert places(criterion(), "home", "scratch", "home") == ["home", "scratch"]
    assert places(criterion(), "home", "gone") == []
    assert places(some, "home", "scratch", "work") == ["home", "work"]
    assert places(criterion(), "home") == places(criterion()) == []


def test_what_cannot_be_read_is_known_by_its_file():
    head = header(provenance={UNREAD: "s1.Stream.1.jsonl"})
    assert expected.file_of(head) == "all/s1.Stream.1.jsonl"


# ---- inputs of a derived one


def test_a_derived_criterion_has_inputs_of_both_sides_each_under_its_own_conditions(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(TOP / "site-config"))
    site = load("nebula-sriov")
    derived = next(
        c for c in site.criteria.values() if c.against and site.catalogue[c.metric].derived_from
    )
    found = expected.answering(site, derived)
    sources = site.catalogue[derived.metric].derived_from
    assert [one.metric for one in found] == [name for name in sources for _ in "ab"]
    own, other = found[:2]
    assert (own.links, own.nodes) == (derived.links, derived.nodes)
    for name, text in derived.against.items():
        if name == "link":
            assert other.links == [text]
        elif name == "nodes":
            assert other.nodes == [text]
        elif name in other.conditions:
            assert other.conditions[name].exact == text
    assert (other.links, other.nodes, other.conditions) != (own.links, own.nodes, own.conditions)
    for one in found:
        assert set(one.programs) <= set(site.catalogue[one.metric].programs)
        assert one.bound is None and one.report_only


def test_the_catalogue_says_what_an_input_belongs_to_whichever_check_it_is_of():
    site = load("thishost")
    own = site.catalogue["Stream.triad"].model_copy(update={"of_system": True})
    site = replace(site, catalogue={**site.catalogue, "Stream.triad": own})
    chosen = expected.select(site, criterion(), "Stream.triad")
    assert (chosen.subject, chosen.scope) == ("system", "system")
    every = site.catalogue.items()
    assert {name.partition(".")[0] for name, one in every if one.of_system} >= {"Ior", "Workload"}


def test_evidence_answers_for_itself_and_a_measured_metric_is_its_own_input(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(TOP / "site-config"))
    site = load("extenci")
    by_person = next(c for c in site.criteria.values() if c.answered_by == "evidence")
    assert expected.answering(site, by_person) == []
    site = load("jetstream-tacc")
    measured = next(c for c in site.criteria.values() if c.metric == "Stream.triad")
    assert expected.answering(site, measured) == [measured]
    both = measured.like(programs=["stream", "xhpl"])
    assert expected.select(site, both, "Stream.triad").programs == ["stream"]
    assert expected.select(site, both, "Hpl.gflops").programs == ["xhpl"]


def test_a_failure_says_how_it_ended_and_what_is_lost_has_no_moment():
    broke = Sample(header(), "n1", "Stream.*", status="timeout", why="30 s")
    assert attempts.failure(broke) == Finding(
        Kind.NO_VALUE,
        check="Stream",
        status="timeout",
        since="2026-11-21T00:00:00+00:00",
        message="30 s",
    )
    unread = header(provenance={UNREAD: "f"})
    assert attempts.failure(Sample(unread, "n1", "Stream.*", status="lost")).since == ""
