"""Which sample answers a criterion, how old it may be, and what is to be measured next."""

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from fleets import broken, furnish, names, run_of
from reasons import recorded

from siteproof.record import descriptions
from siteproof.record.samples import Sample

TWO = """\
C-TRIAD:
  {description: d, metric: Stream.triad, at_least: 60 MB/s, source: s, scope: every node,
   conditions: {mode: [quick, maintenance, acceptance]}}
C-HPL:
  {description: d, metric: Hpl.gflops, at_least: 60 GFLOPS, source: s, scope: every node}
"""
TRIAD = """\
C-TRIAD:
  {description: d, metric: Stream.triad, at_least: 60 MB/s, source: s, scope: every node%s}
"""
FLEET = names(8)


@pytest.fixture
def here(world):
    """Eight nodes and two criteria, of which a quick run may answer the first."""
    furnish(world)
    world.promise = lambda text: (world.sites / "here/criteria.yaml").write_text(text)
    world.promise(TWO)
    return world


def ago(**keys):
    return (datetime.now(UTC) - timedelta(**keys)).isoformat(timespec="seconds")


def triad(value, run, when, nodes=FLEET, **keys):
    return run_of(dict.fromkeys(nodes, value), run, time=ago(**when), **keys)


def hpl(value, run, when, **keys):
    keys = {"conditions": {"program": "hpl"}, **keys}
    return run_of(
        dict.fromkeys(FLEET, value), run, "Hpl.gflops", "GFLOPS", time=ago(**when), **keys
    )


def found(here, *words, command="verdict"):
    done = here.ask(command, *words)
    return done.code, done.out


PASSED = "verdict on here: 2 PASS; next: siteproof report --system here"


def lines(here, *words):
    """The criteria and their verdicts."""
    told = json.loads(here.ask("verdict", "--json", *words).out)
    return {one["id"]: one for one in told["criteria"]}


def words(here, *more):
    return {name: one["verdict"] for name, one in lines(here, *more).items()}


# ---- the newest answer of each node and criterion


def test_a_quick_run_hides_no_acceptance(here):
    here.keep([*triad(70, 1, {"hours": 5}), *hpl(70, 1, {"hours": 5})])
    here.keep(triad(70, 2, {"hours": 1}, mode="quick"))
    assert words(here) == {"C-TRIAD": "PASS", "C-HPL": "PASS"}
    code, out = found(here)
    assert code == 0
    assert "the newest answers, of session s0002 and session s0001" in out


def test_a_run_of_some_nodes_hides_no_others(here):
    here.promise(TRIAD % "")
    here.keep(triad(70, 1, {"hours": 5}))
    here.keep(triad(80, 2, {"hours": 1}, nodes=FLEET[:1]))
    one = lines(here)["C-TRIAD"]
    assert one["verdict"] == "PASS"
    assert {n["node"]: n["session"] for n in one["nodes"]}["n001"] == "s0002"
    assert found(here, command="nodes")[0] == 0


@pytest.mark.parametrize("status", ["invalid", "timeout", "generic", "node_lost"])
def test_a_newer_failure_outranks_an_older_pass(here, status):
    here.promise(TRIAD % "")
    here.keep(triad(70, 1, {"hours": 5}))
    here.keep([broken("n003", status, 2, time=ago(hours=1))])
    one = lines(here)["C-TRIAD"]
    expected = {"invalid": "FAIL", "node_lost": "INCOMPLETE"}
    assert one["verdict"] == expected.get(status, "ERROR")
    assert (one["nodes"][0]["node"], one["nodes"][0]["status"]) == ("n003", status)
    assert one["nodes_ok"] == 7


def test_a_newer_short_value_outranks_an_older_pass(here):
    here.promise(TRIAD % "")
    here.keep([*triad(70, 1, {"hours": 5}), *triad(1, 2, {"hours": 1}, nodes=["n003"])])
    assert words(here) == {"C-TRIAD": "FAIL"}


def test_an_interrupted_run_takes_no_answer_back_and_is_named(here):
    here.promise(TRIAD % "")
    here.keep(triad(70, 1, {"hours": 5}))
    here.keep([broken(node, "interrupted", 2, time=ago(hours=1)) for node in FLEET])
    code, out = found(here)
    assert code == 0
    text = " ".join(out.split())
    assert "n[001-008]: Stream: interrupted in session s0002; the older answer counts" in text


def test_an_interrupted_run_alone_is_incomplete(here):
    here.promise(TRIAD % "")
    here.keep([broken(node, "interrupted", 2, time=ago(hours=1)) for node in FLEET])
    assert words(here) == {"C-TRIAD": "INCOMPLETE"}


def test_a_session_whose_clock_ran_ahead_does_not_outrank_a_later_one(here):
    here.promise(TRIAD % "")
    ahead = datetime(2036, 1, 1, tzinfo=UTC).isoformat()
    here.keep(run_of(dict.fromkeys(FLEET, 70), 1, time=ahead, place=1))
    here.keep(triad(1, 2, {"hours": 1}, place=2))
    assert words(here) == {"C-TRIAD": "FAIL"}
    assert found(here)[0] == 1


def test_a_session_whose_clock_was_reset_outranks_an_older_pass(here):
    here.promise(TRIAD % "")
    here.keep(triad(70, 1, {"days": 30}, place=1))
    here.keep(triad(1, 2, {"days": 400}, place=2))
    assert words(here) == {"C-TRIAD": "FAIL"}


def test_a_pass_of_the_future_is_no_pass_without_an_end(here):
    here.promise(TRIAD % "")
    ahead = datetime(2036, 1, 1, tzinfo=UTC).isoformat()
    here.keep(run_of(dict.fromkeys(FLEET, 70), 1, time=ahead, place=1))
    assert words(here) == {"C-TRIAD": "INCOMPLETE"}


def test_partial_trials_of_a_newer_session_are_not_mixed_with_an_older_one(here):
    here.promise(TRIAD % ", trials: 3")
    for trial in (1, 2, 3):
        here.keep_more = [
            *getattr(here, "keep_more", []),
            *(
                Sample(s.header, s.node, s.metric, s.value, s.unit, trial=trial)
                for s in triad(70, 1, {"hours": 5})
            ),
        ]
    first = here.keep_more[0].header
    here.keep(
        [Sample(first, s.node, s.metric, s.value, s.unit, trial=s.trial) for s in here.keep_more]
    )
    assert words(here) == {"C-TRIAD": "PASS"}
    here.keep(triad(70, 2, {"hours": 1}))
    one = lines(here)["C-TRIAD"]
    assert one["verdict"] == "INCOMPLETE"
    assert recorded(one) == [("trials_missing", {"trials": 1, "expected": 3})]


def test_a_campaign_by_name_still_restricts(here):
    here.keep([*triad(70, 1, {"hours": 5}, campaign="a"), *hpl(70, 1, {"hours": 5}, campaign="a")])
    here.keep(triad(70, 2, {"hours": 1}, campaign="b"))
    assert words(here, "--campaign", "b") == {"C-TRIAD": "PASS", "C-HPL": "INCOMPLETE"}
    assert words(here, "--campaign", "a") == {"C-TRIAD": "PASS", "C-HPL": "PASS"}


# ---- age


def test_an_answer_older_than_a_week_is_incomplete_with_its_age(here):
    here.promise(TRIAD % "")
    here.keep(triad(70, 1, {"days": 30}))
    code, out = found(here)
    assert code == 3
    assert "measured 30 days ago" in out
    samples = json.loads(here.ask("why", "C-TRIAD", "--json").out)["samples"]
    assert {one["refused"]["kind"] for one in samples} == {"too_old"}
    assert "[counts]" not in here.ask("why", "n001").out
    one = lines(here)["C-TRIAD"]
    assert one["verdict"] == "INCOMPLETE"
    ((kind, held),) = recorded(one)
    assert (kind, held["limit"], held.get("answer")) == ("too_old", 7 * 86400, None)
    assert 30 * 86400 <= held["age"] < 30 * 86400 + 600
    assert 30 * 86400 <= one["age"] < 30 * 86400 + 600
    assert one["oldest"][:10] == ago(days=30)[:10]


def test_an_old_failure_says_what_it_was(here):
    here.promise(TRIAD % "")
    here.keep(triad(1, 1, {"days": 8}))
    one = lines(here)["C-TRIAD"]
    assert one["verdict"] == "INCOMPLETE"
    ((kind, held),) = recorded(one)
    assert (kind, held["age"] // 86400, held["answer"]) == ("too_old", 8, "FAIL")


def test_answers_that_are_too_old_are_one_reason_and_the_oldest_is_shown(here):
    here.promise(TRIAD % "")
    for run, node in enumerate(FLEET, 1):
        here.keep(triad(70, run, {"days": 30 - run, "seconds": run}, [node]))
    one = lines(here)["C-TRIAD"]
    ((kind, held),) = recorded(one)
    assert (kind, held["age"] // 86400) == ("too_old", 29)
    assert "other reason" not in one["why"]


AGES = [
    ("30d", 29, "PASS"),
    ("30 days", 29, "PASS"),
    ("4w", 29, "INCOMPLETE"),
    ("none", 900, "PASS"),
    ("12h", 1, "INCOMPLETE"),
    ("7d", 6, "PASS"),
]


def test_a_criterion_says_how_old_its_answer_may_be(here):
    for run, (rule, days, word) in enumerate(AGES, 1):
        here.promise(TRIAD % f", max_age: {rule}")
        shutil.rmtree(here.data / "perflogs", ignore_errors=True)
        here.keep(triad(70, run, {"days": days}))
        assert words(here) == {"C-TRIAD": word}, rule


def test_an_age_that_is_none_is_a_mistake_with_its_line(here):
    for rule in ("soon", "0d", "-7d", "7", "7y", "''", "99999999999d"):
        here.promise(TRIAD % f", max_age: {rule}")
        done = here.inside("lint", "--system", "here")
        assert done.code == 2, rule
        assert "max_age" in done.said, rule
        assert "7d, 36h, 4w, none" in done.said, rule


def test_an_old_acceptance_is_printed_again_as_it_was(here):
    here.keep([*triad(70, 1, {"days": 90}, campaign="a"), *hpl(70, 2, {"days": 91}, campaign="a")])
    assert words(here, "--campaign", "a") == {"C-TRIAD": "PASS", "C-HPL": "PASS"}
    assert words(here) == {"C-TRIAD": "INCOMPLETE", "C-HPL": "INCOMPLETE"}


def test_what_was_known_on_an_earlier_evening(here):
    here.promise(TRIAD % "")
    here.keep([*triad(70, 1, {"days": 30}), *triad(1, 2, {"hours": 1})])
    assert words(here) == {"C-TRIAD": "FAIL"}
    assert words(here, "--as-of", ago(days=29)) == {"C-TRIAD": "PASS"}
    assert words(here, "--as-of", ago(days=20)) == {"C-TRIAD": "INCOMPLETE"}
    assert "as of" in found(here, "--as-of", ago(days=29))[1]
    done = here.ask("gate", "--apply", "--as-of", "7d")
    assert (done.code, "--as-of" in done.err) == (2, True)


def test_each_line_shows_the_age_of_its_oldest_answer(here):
    here.keep([*triad(70, 1, {"hours": 5}), *hpl(70, 1, {"hours": 5})])
    here.keep(triad(70, 2, {"hours": 3}, nodes=FLEET[:4], mode="quick"))
    assert found(here)[1].count("  age 5 h\n") == 2
    page = here.data / "page.md"
    here.ask("report", "--output", str(page))
    assert "| 5 h |" in page.read_text()


def test_a_node_whose_answer_is_too_old_does_not_go_back(here):
    here.promise(TRIAD % "")
    here.keep(triad(70, 1, {"days": 30}))
    code, out = found(here, command="nodes")
    assert code == 3
    assert "Stream.triad: measured 30 days ago" in out
    for node in json.loads(here.ask("nodes", "--json").out)["nodes"]:
        (why,) = node["findings"]
        assert (why["kind"], why["metric"]) == ("too_old", "Stream.triad")
    assert found(here, command="gate")[0] == 3


@pytest.mark.parametrize(
    ("what", "before", "after"), [("kernel", "6.1", "6.2"), ("software_lock", "hpc@abc", "hpc@def")]
)
def test_an_answer_older_than_a_change_is_incomplete(here, what, before, after):
    here.keep(
        [
            *hpl(70, 1, {"hours": 9}, provenance={what: before}, expected="n[001-008]"),
            *triad(70, 2, {"hours": 1}, provenance={what: after}, expected="n[001-008]"),
        ]
    )
    found = lines(here)
    assert {k: v["verdict"] for k, v in found.items()} == {"C-TRIAD": "PASS", "C-HPL": "INCOMPLETE"}
    name = what.replace("_", " ")
    ((kind, held),) = recorded(found["C-HPL"])
    assert (kind, held["age"] // 3600) == ("updated_since", 9)
    assert (held["what"], held["before"], held["after"]) == (name, before, after)


def test_a_change_on_other_nodes_says_nothing(here):
    here.keep(
        [
            *hpl(70, 1, {"hours": 9}, provenance={"kernel": "6.1"}, expected="n[001-008]"),
            *triad(70, 2, {"hours": 2}, provenance={"kernel": "6.1"}, expected="n[001-008]"),
            *triad(70, 3, {"hours": 1}, ["n001"], provenance={"kernel": "6.2"}, expected="n001"),
        ]
    )
    one = lines(here)["C-HPL"]
    assert (one["verdict"], one["nodes_ok"]) == ("INCOMPLETE", 7)


def test_an_answer_older_than_a_change_of_firmware_is_incomplete(here):
    here.promise(TRIAD % "")
    for run, (hours, bios) in enumerate([(9, "1.0"), (1, "1.1")], 1):
        looked = run_of(
            dict.fromkeys(FLEET, 2), run, descriptions.COUNT, "count", time=ago(hours=hours)
        )
        fields = {node: {"bios.version": bios, "bios.serial": str(run)} for node in FLEET}
        fields["n008"]["bios.version"] = "1.0"
        descriptions.write(here.data / "perflogs", looked[0].header, fields)
        here.keep(looked)
    here.keep(triad(70, 1, {"hours": 9}))
    one = lines(here)["C-TRIAD"]
    assert (one["verdict"], one["nodes_ok"]) == ("INCOMPLETE", 1)
    ((kind, held),) = recorded(one)
    assert (kind, held["age"] // 3600) == ("updated_since", 9)
    assert (held["what"], held["before"], held["after"]) == ("bios.version", "1.0", "1.1")


# ---- a name that is used again


def test_a_campaign_name_used_again_after_months_does_not_join_the_two(here):
    here.keep([*triad(70, 1, {"days": 200}, campaign="winter"), *hpl(70, 1, {"days": 200})])
    here.keep(hpl(70, 2, {"days": 199}, campaign="winter"))
    here.keep(triad(70, 3, {"hours": 1}, campaign="winter"))
    code, out = found(here, "--campaign", "winter")
    day = ago(days=200)[:10]
    assert code == 3
    assert f"winter@{day}" in out
    assert words(here, "--campaign", "winter") == {"C-TRIAD": "PASS", "C-HPL": "INCOMPLETE"}
    assert words(here, "--campaign", f"winter@{day}") == {"C-TRIAD": "PASS", "C-HPL": "PASS"}
    done = here.ask("verdict", "--campaign", "winter@1999-01-01")
    assert (done.code, f"winter@{day}" in done.err) == (2, True)
    told = here.ask("compare", f"winter@{day}", "winter")
    assert told.code != 2, told.err


def test_one_wrong_clock_does_not_split_a_campaign(here):
    ahead = datetime(2036, 1, 1, tzinfo=UTC).isoformat()
    here.keep(hpl(70, 1, {"hours": 3}, campaign="winter", place=1))
    here.keep(run_of(dict.fromkeys(FLEET, 70), 2, campaign="winter", place=2, time=ahead))
    here.keep(triad(70, 3, {"hours": 1}, campaign="winter", place=3))
    assert words(here, "--campaign", "winter") == {"C-TRIAD": "PASS", "C-HPL": "PASS"}


# ---- what to run next


def test_the_last_line_names_the_command_that_measures_the_rest(here):
    here.keep(triad(70, 1, {"hours": 5}))
    last = found(here)[1].splitlines()[-1]
    assert last.startswith("verdict on here: 1 INCOMPLETE, 1 PASS")
    assert last.endswith(
        "; next: reframe -c checks/ -r --system here --mode maintenance -S nodes=missing"
    )
    here.keep(hpl(70, 2, {"hours": 1}))
    assert found(here)[1].splitlines()[-1] == PASSED


def test_since_some_time_the_next_command_is_one_that_measures(here):
    """`-S nodes=missing` counts older answers, so that it would measure nothing."""
    here.keep([*triad(70, 1, {"hours": 5}), *hpl(70, 1, {"hours": 5})])
    here.keep(triad(70, 2, {"hours": 1}))
    assert found(here)[1].splitlines()[-1] == PASSED
    last = found(here, "--since", "2h")[1].splitlines()[-1]
    assert last.startswith("verdict on here: 1 INCOMPLETE, 1 PASS")
    assert last.endswith("; next: reframe -c checks/ -r --system here --mode maintenance -n Hpl")
