"""The command `siteproof gate`, on a machine without Slurm."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from documents_checked import check
from fleets import broken, furnish, names, run_of

from siteproof.record import samples
from siteproof.record.samples import Header, Sample


def measure(world, mismatches, **keys):
    """A session in which this machine was found with so many mismatches."""
    head = Header(
        **{
            "session": "s1",
            "system": "thishost",
            "partition": "node",
            "environment": "system",
            "check": "HostParameters",
            "job": "1",
            "time": (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="seconds"),
            "mode": "quick",
            **keys,
        }
    )
    one = Sample(head, "localhost", "HostParameters.mismatches", Decimal(mismatches), "count")
    samples.write(world.data / "perflogs", head, [one])


CRITERION = """HERE-PARAMETERS:
  description: The machine is configured as the site says
  metric: HostParameters.mismatches
  at_most: 0 count
  conditions: {mode: [quick, maintenance, acceptance]}
  source: here
"""


@pytest.fixture
def here(world):
    world.site(criteria=CRITERION, baselines="{}\n")
    world.data.mkdir()
    return world


def test_nothing_measured_is_exit_code_3_and_the_next_is_the_run_or_of_the_past_why(here):
    run = "reframe -c checks/ -r --system thishost --mode quick -S nodes=all"
    why = "siteproof why HERE-PARAMETERS --as-of 2026-01-01 --system thishost"
    for options, following in (([], run), (["--as-of", "2026-01-01"], why)):
        done = here.inside("gate", *options)
        assert (done.code, "nothing was measured" in done.out) == (3, True)
        assert done.out.partition("next: ")[2].strip() == following


def test_nothing_was_measured_is_not_said_where_one_metric_is_missing(world):
    here = furnish(world)
    head = replace(run_of({"n001": 1})[0].header, check="HostParameters", campaign="c")
    metric = "HostParameters.mismatches"
    here.keep([Sample(head, n, metric, Decimal(0), "count") for n in names(8)])
    told = here.ask("gate", "--campaign", "c")
    read = check("gate", here.ask("gate", "--campaign", "c", "--json").out)
    assert {node["state"] for node in read["nodes"]} == {"UNTESTED"}
    assert (told.code, "nothing was measured" in told.out) == (1, False)
    run = "reframe -c checks/ -r --system here --mode maintenance"
    missing = f"SITEPROOF_CAMPAIGN=c {run} -S 'nodes=n[001-008]'"
    assert told.out.splitlines()[-1].startswith(f"next: {missing}")


ALL_BACK = ["none of 1 nodes stays out", "next: siteproof report --system thishost"]
ONE_OUT = ["1 of 1 nodes stay out: localhost FAILED (HERE-PARAMETERS)"]
ONE_OUT += ["next: siteproof why localhost --system thishost"]


def test_the_decision_needs_no_slurm(here):
    for mismatches, code, last in ((0, 0, ALL_BACK), (2, 1, ONE_OUT)):
        measure(here, mismatches, session=f"s{code}")
        done = here.inside("gate")
        *before, answer, following = done.out.splitlines()
        assert (done.code, before[-1], following) == (code, "nothing was changed", last[1])
        assert answer.startswith(last[0])
        assert not (here.data / "perflogs/thishost/gate.jsonl").exists()
        answered = here.inside("gate", "--json")
        read = check("gate", answered.out)
        assert (answered.code, read["exit_code"]) == (code, code)
        assert read["out"] == "localhost" * bool(code)
        assert [n["back"] for n in read["nodes"]] == [not code]
        assert [n["service"] for n in read["nodes"]] == ["stays_out" if code else "goes_back"]
        kinds = {why["kind"] for why in read["findings"]}
        assert kinds == ({"misses_bound", "parameters_differ"} if code else set())


def test_where_slurm_cannot_be_asked_the_commands_are_shown_nevertheless(here):
    here.edit("system", "scheduler: local", "scheduler: slurm")
    here.fake("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    measure(here, 2)
    done = here.inside("gate")
    assert done.code == 1
    assert "Slurm does not answer here (Unable to contact" in done.out
    assert "Nodes=localhost" in done.out
    refused = here.inside("gate", "--apply", "--limit", "100%")
    assert (refused.code, "Unable to contact" in refused.said) == (2, True)


def test_after_a_refusal_the_next_is_why_or_to_allow_what_is_too_much_for_the_capacity(world):
    here = furnish(world)
    here.edit("system", "scheduler: local", "scheduler: slurm", name="here")
    here.fake("scontrol", "exit 1")
    here.keep(run_of({n: 50 if n < "n004" else 100 for n in names(8)}))
    allow = "siteproof gate --system here --limit 38% --capacity 38% --apply"
    for options, following in (
        (["--limit", "37%"], "siteproof why C-TRIAD --system here"),
        (["--limit", "38%", "--capacity", "37%"], allow),
    ):
        done = here.ask("gate", *options)
        assert (done.code, done.out.splitlines()[-1]) == (1, f"next: {following}"), done


def test_the_comment_of_a_node_has_its_value_as_the_gate_prints_it(world):
    here = furnish(world)
    here.edit("system", "scheduler: local", "scheduler: slurm", name="here")
    here.fake("scontrol", "exit 1")
    path = here.sites / "here/criteria.yaml"
    path.write_text(path.read_text().replace("60 MB/s", "0.06 GB/s"))
    here.keep(run_of(dict.fromkeys(names(8), 100) | {"n004": 41.234}))
    done = here.ask("gate")
    (comment,) = (line for line in done.out.splitlines() if "Comment=" in line)
    assert "0.0412 GB/s misses the contract" in comment
    assert "41.2" not in done.out


def test_the_next_after_a_failure_since_the_campaign_explains_that_failure(world):
    here = furnish(world)
    here.keep(run_of(dict.fromkeys(names(8), 100), campaign="c"))
    here.keep([broken("n002", "invalid", run=2)])
    following = here.ask("gate", "--campaign", "c").out.splitlines()[-1]
    assert following == "next: siteproof why n002 --system here"
    assert "n002: FAILED" in here.ask("why", "n002").out


def test_where_all_nodes_go_back_and_the_system_misses_its_bound_the_next_is_why(world):
    here = furnish(world)
    path = here.sites / "here/criteria.yaml"
    path.write_text(path.read_text().replace("every node", "median").replace("60 MB", "600 MB"))
    here.keep(run_of(dict.fromkeys(names(8), 100)))
    done = here.ask("gate")
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        "next: siteproof why C-TRIAD --system here",
    ), done


def test_a_waived_failure_goes_back_and_says_why(here):
    measure(here, 2)
    here.site(
        waivers="W:\n  {nodes: localhost, waives: HERE-PARAMETERS, problem: fan, "
        "owner: me, expires: 2999-12-31}\n"
    )
    done = here.inside("gate")
    assert done.code == 0, done.said
    assert "2999-12-31 by me: fan" in done.out


def test_a_waiver_of_another_criterion_on_the_same_metric_does_not_excuse(here):
    other = CRITERION.replace("HERE-PARAMETERS", "HERE-FEW").replace("at_most: 0", "at_most: 1")
    here.site(
        criteria=CRITERION + other,
        waivers="W:\n  {nodes: localhost, waives: HERE-FEW, problem: fan, "
        "owner: me, expires: 2999-12-31}\n",
    )
    measure(here, 2)
    assert here.inside("gate").code == 1
    path = here.sites / "thishost/waivers.yaml"
    path.write_text(path.read_text().replace("waives: HERE-FEW", "waives: HERE-PARAMETERS"))
    measure(here, 1, session="s2")
    assert here.inside("gate").code == 0


def test_a_waiver_of_slowness_frees_no_node_whose_answers_are_wrong(world):
    here = furnish(world)
    here.keep([*run_of({n: 100 for n in names(8) if n != "n003"}), broken("n003", "invalid")])
    path = world.sites / "here/waivers.yaml"
    for waives in ("all", "C-TRIAD", "Stream.triad"):
        text = f"{{nodes: n003, waives: {waives}, problem: fan, owner: me, expires: 2999-12-31}}"
        path.write_text(f"W: {text}\n")
        done, verdict = here.ask("gate"), here.ask("verdict", "--json")
        assert (done.code, "stay out: n003 FAILED" in done.out) == (1, True), (waives, done)
        (criterion,) = json.loads(verdict.out)["criteria"]
        (why,) = criterion["findings"]
        assert (why["kind"], why["status"]) == ("wrong_answer", "invalid"), waives
        assert (why["message"], verdict.code) == ("because", 1), waives
        path.write_text(f"W: {text}\n".replace("problem", "wrong_answers: [invalid], problem"))
        assert (here.ask("gate").code, here.ask("verdict").code) == (0, 0), waives


REFUSED = [
    (["--apply"], "no partition of thishost uses Slurm"),
    (["--retest"], "no partition of thishost uses Slurm"),
    (["--release", "--apply"], "no partition of thishost uses Slurm"),
    (["--retest", "--release"], "together"),
    (["--limit", "many"], "--limit: 'many' is not a share"),
    (["--limit", "101%"], "not a share"),
    (["--keep-out", "OK"], "'OK' is not a state"),
    (["--keep-out", ""], "is not a state"),
    (["--users", "root $(id)"], "not a list of users"),
    (["-n"], ""),
    (["x"], "'x' without --retest"),
]


def test_a_wrong_word_is_refused(here):
    measure(here, 2)
    for words, told in REFUSED:
        done = here.inside("gate", *words)
        assert (done.code, told in done.said) == (2, True), (words, done.said)
        assert "Traceback" not in done.said, words
