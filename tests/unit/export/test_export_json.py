"""JSON for programs: each document keeps to the schema, and the schema explains each key."""

import json
import math
from dataclasses import replace

import nets
import pytest
from documents_checked import check
from exported import NASTY, judged, measured, report, site
from fleets import broken, furnish, good, names, run_of
from jsonschema import Draft202012Validator
from rows import rows

from siteproof.cli.export import ANSWERS, schema_of
from siteproof.export import documents
from siteproof.export.documents import FORMAT, dumps, plain
from siteproof.record.finding import Finding, Kind, note


def exported(one, with_nodes=True):
    nodes = report(one) if with_nodes else None
    return check("verdict", dumps(documents.verdict(one, nodes)))


@pytest.mark.deep
@rows("document", ANSWERS)
def test_the_schema_is_one_of_2020_12_and_describes_every_key(document):
    whole = schema_of(document)
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(whole)

    def keys(held):
        if isinstance(held, dict):
            yield from held.get("properties", {}).items()
            for value in held.values():
                yield from keys(value)

    for key, about in keys(whole):
        assert len(about.get("description", "")) > 5, key


def test_every_verdict_keeps_to_the_schema(tmp_path, monkeypatch):
    read = exported(judged(site(tmp_path, monkeypatch)))
    assert {c["verdict"] for c in read["criteria"]} == {
        c["id"].removeprefix("C-") for c in read["criteria"]
    }
    assert read["counts"] == dict.fromkeys(read["counts"], 1)
    assert (read["format"], read["exit_code"]) == (FORMAT, 1)
    assert read["first"] == read["last"] == measured()[0].header.time
    assert {n["state"] for n in read["fleet"]["nodes"]} == {"FAILED", "SLOW"}


def test_values_have_number_unit_time_and_conditions(tmp_path, monkeypatch):
    found = measured()
    found[1] = replace(found[1], own_conditions={"mtu": "1500"})
    read = exported(judged(site(tmp_path, monkeypatch), found))
    one = next(c for c in read["criteria"] if c["id"] == "C-FAIL")
    assert one["limit"] == {"value": "100", "unit": "MB/s", "of": ""}
    assert one["conditions"] == {"mode": "maintenance", "program": "stream"}
    slow = one["nodes"][0]
    assert (slow["node"], slow["value"], slow["number"], slow["unit"]) == (
        "n002",
        "70.00",
        70.0,
        "MB/s",
    )
    assert (slow["time"], slow["partition"], slow["status"]) == (
        found[1].header.time,
        "compute",
        "ok",
    )
    assert [n["conditions"] for n in one["nodes"]] == [{"mtu": "1500"}] + [{}] * 7


def test_no_sample_and_no_criterion_keep_to_the_schema(tmp_path, monkeypatch):
    empty = exported(judged(site(tmp_path, monkeypatch), []))
    assert (empty["first"], empty["sessions"]) == (None, [])
    assert exported(judged(site(tmp_path, monkeypatch, text="{}\n"), []))["criteria"] == []


def test_a_hostile_reason_is_ascii_and_kept_whole(tmp_path, monkeypatch):
    one = judged(site(tmp_path, monkeypatch), measured(why=NASTY))
    text = dumps(documents.verdict(one, report(one)))
    assert all(" " <= c <= "~" or c == "\n" for c in text)
    error = next(c for c in check("verdict", text)["criteria"] if c["id"] == "C-ERROR")
    (why,) = error["nodes"][0]["findings"]
    assert (why["kind"], why["status"], why["message"]) == ("no_value", "generic", NASTY)
    assert NASTY in error["nodes"][0]["why"]


def test_the_schema_knows_every_kind_and_every_field_of_a_finding():
    about = schema_of("verdict")["$defs"]["Finding"]["properties"]
    assert about["kind"]["enum"] == [str(kind) for kind in Kind]
    assert list(about) == list(Finding.__dataclass_fields__)


def test_why_is_told_by_fields_and_in_words_of_every_criterion_and_node(tmp_path, monkeypatch):
    read = exported(judged(site(tmp_path, monkeypatch)))
    kinds = {c["id"]: [why["kind"] for why in c["findings"]] for c in read["criteria"]}
    assert kinds == {
        "C-PASS": [],
        "C-FAIL": ["misses_bound"],
        "C-ERROR": ["no_value"],
        "C-SKIP": ["reported_only"],
        "C-INCOMPLETE": ["not_measured"],
        "C-PENDING": ["note"],
        "C-REGRESSED": ["below_baseline"],
    }
    units = [unit for c in read["criteria"] for unit in c["nodes"]]
    for one in (*read["criteria"], *units):
        kinds = {why["kind"] for why in one["findings"]}  # value and bound have keys of their own
        assert bool(one["why"]) is bool(kinds - {"misses_bound"})
    for node in read["fleet"]["nodes"]:
        assert len(node["reasons"]) == len(node["findings"]) > 0
        assert {why["subject"] for why in node["findings"]} == {node["node"]}
        assert len(node["notes"]) == len(node["note_findings"])
    assert len(read["fleet"]["warnings"]) == len(read["fleet"]["findings"])


def test_a_wrong_answer_is_among_the_nodes_reasons_as_ever(tmp_path, monkeypatch):
    found = [*run_of({n: 100 for n in names(8) if n != "n003"}), broken("n003", "invalid")]
    read = exported(judged(site(tmp_path, monkeypatch, "C-PASS"), found))
    wrong = {node["node"]: node["wrong"] for node in read["fleet"]["nodes"] if node["wrong"]}
    ((one,),) = wrong.values()
    assert (list(wrong), one["check"], one["status"]) == (["n003"], "Stream", "invalid")
    (node,) = [node for node in read["fleet"]["nodes"] if node["node"] == "n003"]
    assert one["reason"] in node["reasons"]


def test_a_warning_has_its_finding_and_its_nodes(tmp_path, monkeypatch):
    one = judged(site(tmp_path, monkeypatch))
    since = "2026-11-21T00:00:00+00:00"
    slow = note("{message} since {since:day}", subject="n[001-002]", message="slow", since=since)
    read = exported(replace(one, warnings=[slow]))
    (text,), (why,) = read["warnings"], read["findings"]
    held = {"subject": "n[001-002]", "since": since, "message": "slow"}
    assert why == {"kind": "note", **held, "text": "slow since 2026-11-21"}
    assert text == why["text"]


def test_what_is_no_number_is_null(tmp_path, monkeypatch):
    one = judged(site(tmp_path, monkeypatch, "C-PASS"), run_of(dict.fromkeys(names(8), 100)))
    states = report(one)
    node = states.nodes["n001"]
    odd = node.metrics["Stream.triad"]._replace(z=-math.inf, change=math.nan)
    varies = note("varies by {spread:share}", subject="n001", spread=math.inf)
    states.nodes["n001"] = replace(node, metrics={"Stream.triad": odd}, notes=[varies])
    read = check("nodes", dumps(documents.nodes(one, states)))
    told = read["nodes"][0]["metrics"]["Stream.triad"]
    assert (told["z"], told["change"], told["value"]) == (None, None, 100)
    (why,) = read["nodes"][0]["note_findings"]
    assert why["details"] == {"spread": None}


def test_320_nodes_keep_to_the_schema(tmp_path, monkeypatch):
    one = judged(
        site(tmp_path, monkeypatch, "C-PASS", count=320), run_of(dict.fromkeys(names(320), 100))
    )
    assert len(exported(one)["criteria"][0]["nodes"]) == 320


def test_pairs_and_links_keep_to_the_schema(tmp_path, monkeypatch):
    found = [nets.ok("n1>s1", 9.5), nets.ok("s1>n1", 8), nets.failed("n2>s1")]
    read = exported(judged(nets.load(tmp_path, monkeypatch), found))
    units = {n["node"]: n for n in read["criteria"][0]["nodes"]}
    assert (units["s1>n1"]["number"], units["s1>n1"]["dims"]) == (8, {"peer": "n1"})
    assert (units["n2>s1"]["status"], units["n2>s1"]["unit"]) == ("timeout", None)
    assert units["n3>s1"]["status"] is None


def test_a_new_schema_with_a_key_less_would_be_noticed(tmp_path, monkeypatch):
    one = plain(documents.verdict(judged(site(tmp_path, monkeypatch))))
    with pytest.raises(Exception, match="'surprise' was unexpected"):
        check("verdict", json.dumps(one | {"surprise": 1}))
    del one["made"]
    with pytest.raises(Exception, match="'made' is a required property"):
        check("verdict", json.dumps(one))


# ---- the commands


@pytest.fixture
def here(world):
    made = furnish(world)
    made.ask = lambda *words: made.inside(*words, "--system", "here")
    return made


def test_the_commands_keep_to_the_schema(here):
    here.keep(good())
    verdict = check("verdict", here.ask("verdict", "--json").out)
    nodes = check("nodes", here.ask("nodes", "--json").out)
    whole = check("verdict", here.ask("export", "json").out)
    assert "fleet" not in verdict
    for one in (*whole["criteria"], *verdict["criteria"]):
        assert one.pop("age") > 0  # a second may have passed between the two
    assert whole["criteria"] == verdict["criteria"]
    assert whole["fleet"]["nodes"] == nodes["nodes"]


def test_what_others_have_published_keeps_to_the_schema(world):
    world.site("extenci")
    world.data.mkdir()
    assert world.inside("import", "--system", "extenci", "--apply").code == 0
    read = check("verdict", world.inside("export", "json", "--system", "extenci").out)
    assert read["exit_code"] == 1  # published rates of pairs miss their bound
    findings = [why["kind"] for c in read["criteria"] for n in c["nodes"] for why in n["findings"]]
    assert {"published", "misses_bound"} <= {*findings}


def test_the_schema_can_be_asked_for(here):
    done = here.inside("export", "schema", "nodes")
    assert (done.code, json.loads(done.out)) == (0, schema_of("nodes"))


def test_everything_that_does_not_pass_has_a_finding(tmp_path, monkeypatch):
    read = exported(judged(site(tmp_path, monkeypatch)))
    for criterion in read["criteria"]:
        for result in (criterion, *criterion["nodes"]):
            assert result["verdict"] == "PASS" or result["findings"], result
    failed = next(c for c in read["criteria"] if c["verdict"] == "FAIL")
    (why,) = failed["findings"]
    assert why["kind"] == "misses_bound"
    assert (why["criterion"], why["bound"]) == (failed["id"], "at least 100 MB/s")
    assert why["value"] == failed["nodes"][0]["value"]
