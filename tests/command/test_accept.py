"""Acceptances: who, why and when; and what stands in the way of one."""

import json

import pytest
from documents_checked import check
from fleets import broken, furnish, good, names, run_of


@pytest.fixture
def here(world):
    return furnish(world)


def test_nothing_is_accepted_before_somebody_does(here):
    done = here.ask("accept", "--list")
    assert (done.code, done.out) == (
        0,
        "nothing accepted yet; next: siteproof verdict --system here\n",
    )


def test_a_campaign_is_accepted_with_who_and_why(here):
    here.keep([*good(1, campaign="winter"), *good(2, campaign="winter")])
    done = here.ask("accept", "winter", "--why", "new firmware", USER="ann")
    answer = "accepted for here by ann: winter, 1 PASS; next: siteproof accept --list --system here"
    assert (done.code, done.out) == (0, f"{answer}\n")
    (path,) = here.records()
    record = json.loads(path.read_text())
    assert record["name"] == "winter"
    assert record["sessions"] == ["s0001", "s0002"]
    assert (record["who"], record["why"]) == ("ann", "new firmware")
    assert record["verdicts"] == {"PASS": 1}
    assert record["despite"] == []
    told = here.ask("accept", "--list").out.splitlines()
    assert told[0].endswith("UTC  winter  by ann: new firmware (1 PASS)")
    assert told[1].startswith("later ones are compared with winter; next: siteproof verdict ")


def test_counts_stand_in_the_order_of_severity_also_in_an_older_record(here):
    here.keep(good(1, campaign="winter"))
    here.ask("accept", "winter", "--why", "checked", "--by", "ann")
    (path,) = here.records()
    record = json.loads(path.read_text())
    record["verdicts"] = {"PASS": 2, "PENDING": 1, "FAIL": 1, "LATER": 1}
    path.write_text(json.dumps(record))
    told = here.ask("accept", "--list").out.splitlines()[0]
    assert told.endswith("(1 FAIL, 1 PENDING, 2 PASS, 1 LATER)")


def test_a_second_acceptance_leaves_the_first_alone(here):
    here.keep([*good(1), *good(2)])
    here.ask("accept", "s0001", "--why", "first", "--by", "ann")
    (first,) = here.records()
    text = first.read_text()
    here.ask("accept", "latest", "--why", "second", "--by", "bob")
    assert first.read_text() == text
    assert len(here.records()) == 2
    last = here.ask("accept", "--list").out.splitlines()[-1]
    assert last.startswith("later ones are compared with s0002; next: ")


def test_what_is_not_kept_is_not_accepted_unless_despite(here):
    here.keep(run_of({**dict.fromkeys(names(8), 100), "n003": 10}))
    done = here.ask("accept", "s0001", "--why", "x")
    assert done.code == 1
    answer = "not accepted for here: C-TRIAD FAIL; to accept nevertheless, add --despite"
    assert done.out == f"{answer}; next: siteproof verdict --system here\n"
    assert here.records() == []
    assert here.ask("accept", "s0001", "--why", "x", "--by", "a", "--despite").code == 0
    assert "despite C-TRIAD FAIL" in here.ask("accept", "--list").out


def test_a_check_that_no_criterion_names_stands_in_the_way_until_it_ends_well(here):
    wrong = [broken(node, "invalid", check="Hpl") for node in ("n003", "n004")]
    here.keep([*good(), *wrong])
    done = here.ask("accept", "s0001", "--why", "x")
    said = "not accepted for here: Hpl invalid on n[003-004]; to accept nevertheless"
    assert (done.code, done.out.startswith(said), here.records()) == (1, True, [])
    here.keep(run_of(dict.fromkeys(names(8), 100), 2, "Hpl.gflops", "GFLOPS"))
    assert here.ask("accept", "s0001", "--why", "x").code == 1
    here.keep([*good(3), *run_of(dict.fromkeys(names(8), 100), 3, "Hpl.gflops", "GFLOPS")])
    assert here.ask("accept", "latest", "--why", "x").code == 0


def test_a_node_that_is_missing_stands_in_the_way(here):
    here.keep(run_of({"n001": 100}))
    assert "C-TRIAD INCOMPLETE" in here.ask("accept", "latest", "--why", "x").out


WRONG = [
    (["s0001"], "accept: missing: --why"),
    (["s0001", "--why", " "], "accept: missing: --why"),
    (["--why", "x"], "accept: missing: CAMPAIGN"),
    (["summer", "--why", "x"], "summer: unknown campaign or session"),
    (["accepted", "--why", "x"], "accepted: nothing has been accepted yet"),
    (["previous", "--why", "x"], "previous: there are 1 campaigns and sessions"),
]


def test_a_wrong_word_is_refused_in_one_line(here):
    here.keep(good())
    for words, told in WRONG:
        assert told in here.ask("accept", *words).refused(), words


BROKEN = [
    *("{", "[]", "{}", "\x00"),
    *('{"siteproof": 1}', '{"siteproof": 2}', '{"siteproof": 1, "name": 5}'),
]


def test_a_broken_record_is_named(here):
    here.keep(good())
    here.ask("accept", "latest", "--why", "x", "--by", "ann")
    (path,) = here.records()
    for text in BROKEN:
        path.write_text(text)
        assert str(path) in here.ask("accept", "--list").refused(), text


def test_a_record_cannot_steer_the_terminal(here):
    here.keep(good())
    here.ask("accept", "latest", "--why", "red \x1b[31m", "--by", "ann")
    assert "\x1b" not in here.ask("accept", "--list").out


def test_records_are_no_samples(here):
    here.keep(good())
    here.ask("accept", "latest", "--why", "x", "--by", "ann")
    assert here.ask("verdict").code == 0


# ---- compare, as a command


def test_the_accepted_campaign_is_what_is_compared_with(here):
    here.keep([*good(1), *good(2), *run_of(dict.fromkeys(names(8), 80), 3)])
    here.ask("accept", "s0001", "--why", "x", "--by", "ann")
    done = here.ask("compare")
    assert "A: s0001, B: s0003" in done.out
    assert done.out.splitlines()[-1] == (
        "from A to B: 1 worse; next: siteproof trend --metric Stream.triad --system here"
    )
    assert done.code == 1


def test_without_an_acceptance_it_is_the_one_before(here):
    here.keep([*good(1), *good(2), *good(3)])
    done = here.ask("compare")
    assert "A: s0002, B: s0003" in done.out
    command = "siteproof compare --all --system here"
    assert (done.code, done.out.splitlines()[-1]) == (0, f"from A to B: 1 same; next: {command}")


def test_nothing_in_both_is_incomplete(here):
    here.keep([*good(1), *good(2, mode="quick")])
    done = here.ask("compare", "s0001", "s0002")
    assert (done.code, done.out.splitlines()[-1].partition(";")[0]) == (3, "no metric is in both")


def test_compare_for_programs(here):
    here.keep([*good(1), *run_of({**dict.fromkeys(names(8), 100), "n004": 60}, 2)])
    done = here.ask("compare", "s0001", "s0002", "--json")
    record = check("compare", done.out)
    assert (done.code, record["exit_code"]) == (1, 1)
    assert record["rows"][0]["worst"] == {"n004": pytest.approx(-0.4)}


WRONG_PAIRS = [
    (["nothing", "latest"], "nothing: unknown campaign or session"),
    (["s0001", "s0001"], "A and B are both s0001"),
    ([], "compare: there is no earlier measurement to compare with. Name A and B"),
    (["accepted", "latest"], "nothing has been accepted yet"),
]


def test_compare_refuses_in_one_line(here):
    here.keep(good())
    for words, told in WRONG_PAIRS:
        assert told in here.ask("compare", *words).refused(), words
