"""Every command that lists: whole on a narrow screen, and the same for programs."""

import json
import re

import pytest
from golden.record import World

HERE = ("--system", "here")
BED = ("--system", "testbed")
METRIC = "TcpBandwidth.throughput"
YEAR = {
    "verdict": ("verdict", *HERE, "--campaign", "winter"),
    "nodes": ("nodes", *HERE, "--campaign", "winter"),
    "nodes of a metric": ("nodes", *HERE, "--metric", "Stream.triad"),
    "gate": ("gate", *HERE, "--campaign", "winter"),
    "trend": ("trend", *HERE),
    "trend --all": ("trend", *HERE, "--all"),
    "history": ("history", *HERE),
    "availability": ("availability", *HERE),
    "sites": ("sites",),
    "sweep": ("sweep", *HERE),
}
BED_AFTER = {
    "nodes": ("nodes", *BED, "--campaign", "after"),
    "gate": ("gate", *BED, "--campaign", "after"),
    "compare": ("compare", "before", "after", *BED),
    "compare --all": ("compare", "before", "after", *BED, "--all"),
    "matrix": ("matrix", METRIC, *BED, "--campaign", "after"),
    "describe": ("describe", *BED),
    "describe --facts": ("describe", *BED, "--facts"),
}
FOR_PROGRAMS = {
    **{f"year {name}": ("year", words) for name, words in YEAR.items()},
    **{f"campaign {name}": ("campaign", words) for name, words in BED_AFTER.items()},
    "accept --list": ("year", ("accept", "--list", *HERE)),
    "evidence --list": ("year", ("evidence", "--list", *HERE)),
    "lint": ("year", ("lint",)),
    "lint --coverage": ("year", ("lint", "--coverage")),
    "sites --metrics": ("year", ("sites", "--metrics")),
    "sites --features": ("year", ("sites", "--features")),
    "sites --tools": ("year", ("sites", "--tools")),
    "sites --statuses": ("year", ("sites", "--statuses")),
}
# lines to copy, or a name, a path or a value that is longer than the screen
COMMAND = re.compile(
    r"scontrol |(next|run again|measure|against \S+): |.*; next: |store: |      \S+$"
)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The two sets, unpacked once."""
    return {name: World(name, tmp_path_factory.mktemp(name)) for name in ("year", "campaign")}


def told(world, words, monkeypatch, columns=80):
    """What a command prints, and nothing of it shortened."""
    own = world.environment() | {"COLUMNS": str(columns)}
    monkeypatch.setattr(World, "environment", lambda self: own)
    monkeypatch.setattr("golden.record.shorten", lambda text: text)
    text = world.told(tuple(words))
    return text.partition("--- stdout\n")[2].partition("--- stderr\n")[0]


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("name", [n for n in FOR_PROGRAMS if n.startswith(("year", "camp"))])
def test_no_line_is_wider_than_the_screen_but_what_is_to_be_copied(
    worlds, monkeypatch, name, columns
):
    of, words = FOR_PROGRAMS[name]
    text = told(worlds[of], words, monkeypatch, columns)
    wide = [x for x in text.splitlines() if len(x) > columns and not COMMAND.match(x)]
    assert text
    assert not wide
    assert "…" not in text


@pytest.mark.parametrize("name", FOR_PROGRAMS)
def test_plain_has_one_header_and_as_many_cells_in_each_line(worlds, monkeypatch, name):
    of, words = FOR_PROGRAMS[name]
    head, *rows = told(worlds[of], [*words, "--plain"], monkeypatch).splitlines()
    names = head.split("\t")
    assert len(set(names)) == len(names) > 1
    assert {row.count("\t") for row in rows} <= {len(names) - 1}


@pytest.mark.parametrize("name", FOR_PROGRAMS)
def test_json_is_one_document(worlds, monkeypatch, name):
    of, words = FOR_PROGRAMS[name]
    assert isinstance(json.loads(told(worlds[of], [*words, "--json"], monkeypatch)), dict | list)


def test_the_states_of_the_last_line_add_up_and_every_node_is_a_row(worlds, monkeypatch):
    words = BED_AFTER["nodes"]
    last = told(worlds["campaign"], words, monkeypatch).splitlines()[-1]
    counts = {state: int(n) for n, state in re.findall(r"(\d+) ([A-Z]+)", last)}
    assert sum(counts.values()) == int(re.search(r" of (\d+);", last)[1]) == 8
    _, *rows = told(worlds["campaign"], [*words, "--plain"], monkeypatch).splitlines()
    states = [row.split("\t")[1] for row in rows]
    assert {state: states.count(state) for state in set(states)} == counts
    record = json.loads(told(worlds["campaign"], [*words, "--json"], monkeypatch))
    assert sorted(node["state"] for node in record["nodes"]) == sorted(states)


def test_the_counts_of_compare_are_those_of_its_rows(worlds, monkeypatch):
    words = BED_AFTER["compare"]
    answer = told(worlds["campaign"], words, monkeypatch).rpartition("from A to B: ")[2]
    counts = {state: int(n) for n, state in re.findall(r"(\d+) (\w+)", answer.partition(";")[0])}
    record = json.loads(told(worlds["campaign"], [*words, "--json"], monkeypatch))
    states = [row["verdict"] for row in record["rows"]]
    assert counts == {state: states.count(state) for state in set(states)}


def test_a_change_is_two_or_three_lines_and_noise_is_one(worlds, monkeypatch):
    lines = told(worlds["year"], YEAR["trend"], monkeypatch).splitlines()
    begins = [at for at, line in enumerate(lines) if re.match(r"(worse|drift|past|better) ", line)]
    ends = [*begins[1:], next(at for at, line in enumerate(lines) if "--all" in line)]
    assert begins
    assert all(b - a in (2, 3) for a, b in zip(begins, ends, strict=True))
    assert len(lines) - ends[-1] == 2
    assert not [line for line in lines if line.startswith("not judged")]
    whole = told(worlds["year"], YEAR["trend --all"], monkeypatch)
    assert whole.count("\nnot judged: ") == int(re.match(r"(\d+) remark", lines[-2])[1])


def test_a_change_has_the_unit_of_its_bound(worlds, monkeypatch):
    text = told(worlds["year"], YEAR["trend"], monkeypatch)
    assert "181.3 -> 145.3 GB/s" in text
    assert "MB/s" not in text


@pytest.mark.parametrize("name", ["year gate", "year nodes", "year trend", "campaign compare"])
def test_the_last_line_ends_with_a_command_that_exists(worlds, monkeypatch, name):
    of, words = FOR_PROGRAMS[name]
    last = told(worlds[of], words, monkeypatch).splitlines()[-1]
    found = re.search(r"next: siteproof (.*)", last)
    assert found
    assert " ".join(found[1].split()) == found[1]
    assert told(worlds[of], found[1].split(), monkeypatch)


ENDS = {
    **{name: FOR_PROGRAMS[name] for name in FOR_PROGRAMS if name.startswith("campaign ")},
    **{n: FOR_PROGRAMS[n] for n in ("year availability", "year history", "year sites")},
    **{n: FOR_PROGRAMS[n] for n in ("accept --list", "evidence --list")},
    "sites of one": ("campaign", ("sites", "testbed")),
    "describe of a node": ("campaign", ("describe", "node006", *BED)),
    "describe of another": ("campaign", ("describe", "node008", *BED, "--campaign", "after")),
    "history --columns": ("year", ("history", "--columns")),
    "why of a failed node": ("campaign", ("why", "node006", *BED, "--campaign", "after")),
    "why of a criterion": ("campaign", ("why", "TB-STREAM", *BED, "--campaign", "after")),
}


@pytest.mark.parametrize("columns", [40, 80, 140])
@pytest.mark.parametrize("name", ENDS)
def test_lines_fit_and_the_last_is_the_next_command(worlds, monkeypatch, name, columns):
    of, words = ENDS[name]
    lines = told(worlds[of], words, monkeypatch, columns).splitlines()
    wide = [x for x in lines if len(x) > columns and len(x.split()) > 1 and not COMMAND.match(x)]
    assert not wide
    assert re.search(r"[Nn]ext: (SITEPROOF_CAMPAIGN=\S+ )?(siteproof|reframe) ", lines[-1])


def test_the_next_command_of_an_untested_node_measures_it(worlds, monkeypatch):
    _, *rows = told(worlds["campaign"], [*BED_AFTER["nodes"], "--plain"], monkeypatch).splitlines()
    untested = [row.split("\t")[0] for row in rows if row.split("\t")[1] == "UNTESTED"]
    assert untested
    words = ("why", untested[0], *BED, "--campaign", "after")
    last = told(worlds["campaign"], words, monkeypatch).splitlines()[-1]
    assert last.endswith(f"-S nodes={untested[0]}")
