"""Every command that lists: whole on a narrow screen, and the same for programs."""

import functools
import json
import re

import record

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


@functools.cache
def told(of, words, columns=80):
    """What a command prints of a set."""
    return record.shared(of).asked(words, COLUMNS=str(columns))[1]


def wide(text, columns):
    """Lines that are longer than the screen, and are not to be copied."""
    return [x for x in text.splitlines() if len(x) > columns and not COMMAND.match(x)]


def test_no_line_is_wider_than_the_screen_but_what_is_to_be_copied():
    wrong = []
    for name, (of, words) in FOR_PROGRAMS.items():
        for columns in (80, 140) if name.startswith(("year", "campaign")) else ():
            text = told(of, words, columns)
            if not text or "…" in text or wide(text, columns):
                wrong.append((name, columns, wide(text, columns)))
    assert not wrong


def test_plain_has_one_header_and_as_many_cells_in_each_line():
    wrong = []
    for name, (of, words) in FOR_PROGRAMS.items():
        head, *rows = told(of, (*words, "--plain")).splitlines()
        names = head.split("\t")
        unlike = {row.count("\t") for row in rows} - {len(names) - 1}
        if unlike or not len(set(names)) == len(names) > 1:
            wrong.append((name, head))
    assert not wrong


def test_json_is_one_document():
    found = {n: json.loads(told(of, (*words, "--json"))) for n, (of, words) in FOR_PROGRAMS.items()}
    assert [name for name, read in found.items() if not isinstance(read, dict | list)] == []


def test_the_states_of_the_last_line_add_up_and_every_node_is_a_row():
    words = BED_AFTER["nodes"]
    answer = told("campaign", words).rpartition("nodes of testbed: ")[2]
    counts = {state: int(n) for n, state in re.findall(r"(\d+) ([A-Z]+)", answer)}
    assert sum(counts.values()) == int(re.search(r" of (\d+)[;\n]", answer)[1]) == 8
    _, *rows = told("campaign", (*words, "--plain")).splitlines()
    states = [row.split("\t")[1] for row in rows]
    assert {state: states.count(state) for state in set(states)} == counts
    read = json.loads(told("campaign", (*words, "--json")))
    assert sorted(node["state"] for node in read["nodes"]) == sorted(states)


def test_the_counts_of_compare_are_those_of_its_rows():
    words = BED_AFTER["compare"]
    answer = told("campaign", words).rpartition("from A to B: ")[2]
    counts = {state: int(n) for n, state in re.findall(r"(\d+) (\w+)", answer.partition(";")[0])}
    read = json.loads(told("campaign", (*words, "--json")))
    states = [row["verdict"] for row in read["rows"]]
    assert counts == {state: states.count(state) for state in set(states)}


def test_a_change_is_two_or_three_lines_and_noise_is_one():
    lines = told("year", YEAR["trend"]).splitlines()
    begins = [at for at, line in enumerate(lines) if re.match(r"(worse|drift|past|better) ", line)]
    ends = [*begins[1:], next(at for at, line in enumerate(lines) if "--all" in line)]
    assert begins
    assert all(b - a in (2, 3) for a, b in zip(begins, ends, strict=True))
    [answer] = [at for at, line in enumerate(lines) if " of here: " in line]
    assert answer == ends[-1] + 1
    assert not [line for line in lines if line.startswith("not judged")]
    whole = told("year", YEAR["trend --all"])
    remarks = re.findall(r"\nnot judged: |\nswings: |--sensitivity has each series", whole)
    assert len(remarks) == int(re.match(r"(\d+) remark", lines[ends[-1]])[1])


def test_a_change_has_the_unit_of_its_bound():
    text = told("year", YEAR["trend"])
    assert "181.3 -> 145.3 GB/s" in text
    assert "MB/s" not in text


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


FOLLOWS = re.compile(r"[Nn]ext: (SITEPROOF_CAMPAIGN=\S+ )?(siteproof|reframe) (?!.*  )")


def test_lines_fit_and_the_last_is_the_next_command():
    wrong = []
    for name, (of, words) in ENDS.items():
        for columns in (40, 80, 140):
            text = told(of, words, columns)
            long = [line for line in wide(text, columns) if len(line.split()) > 1]
            if long or not FOLLOWS.search(text.splitlines()[-1]):
                wrong.append((name, columns, long))
    assert not wrong


def test_the_next_command_of_an_untested_node_measures_it():
    _, *rows = told("campaign", (*BED_AFTER["nodes"], "--plain")).splitlines()
    untested = [row.split("\t")[0] for row in rows if row.split("\t")[1] == "UNTESTED"]
    assert untested
    words = ("why", untested[0], *BED, "--campaign", "after")
    last = told("campaign", words).splitlines()[-1]
    assert last.endswith(f"-S nodes={untested[0]}")
