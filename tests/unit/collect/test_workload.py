"""Rates of the seconds in which all applications of a workload ran, by hand calculation."""

from __future__ import annotations

from decimal import Decimal
from time import process_time

import pytest
from recorded import OUTPUTS
from rows import rows

from siteproof.collect.derive import Measured, apps
from siteproof.collect.raw import Execution, Raw
from siteproof.errors import OutputError

READS = (OUTPUTS / "minimap2/2.24-4000_reads.txt").read_text()
KNOWN = {"minimap2": {"solved": {"genome": "200000"}, "references": {"placed": ["100", "0.1"]}}}
TIMES = {  # by phase, application and node: when it began and ended
    ("alone", "left", "n1"): (100, 110),
    ("alone", "right", "n2"): (120, 128),
    ("mix", "left", "n1"): (200.5, 212.5),
    ("mix", "right", "n2"): (201.25, 217.25),
}
GB = 10**9


def lines(node, each, storage="disk", network="net", special=(0, 0)):
    """A node's counters from second 199 to 218: bytes of the storage and of the network each."""
    found, stored = [f"node {node} network {network} storage {storage}"], 0
    for second in range(199, 219):
        found.append(f"{second} {(second - 199) * 3 * GB} {stored}")
        stored += special[1] if second == special[0] else each
    return found


def derived(times=TIMES, text=READS, counted=None, facts=None, program="minimap2"):
    runs = [
        Execution(
            {
                "phase": phase,
                "application": application,
                "member": node,
                "begin": f"{begin:.2f}",
                "end": f"{end:.2f}",
                "program": program.format(application),
            },
            0,
            text,
            "",
        )
        for (phase, application, node), (begin, end) in times.items()
    ]
    counted = counted or [
        *lines("n1", 1 * GB, "disk@1", "net@1"),
        *lines("n2", 2 * GB, "disk@2", "net@2", special=(205, 5 * GB)),
    ]
    output = "\n".join([*counted, "end of counters", ""])
    runs.append(Execution({"phase": "mix", "program": "counters"}, 0, output, ""))
    known = {
        "workload": {"left": ["minimap2", 1], "right": ["minimap2", 1]},
        "programs": KNOWN,
        **(facts or {}),
    }
    readings, conditions = apps.workload(Measured([], {}, Raw({}, {}, "", "", runs), known))
    found = {(r.metric, r.dims.get("application", "")): r.value for r in readings}
    return found, conditions


def test_rates_are_sums_over_the_nodes_in_the_seconds_that_all_ran():
    found, conditions = derived()
    assert conditions == {}  # two runs are of one series, however long they ran together
    assert found["time_together", ""] == 10  # from 202 to before 212
    assert found["peak", ""] == 6  # 1 and 5 GB in second 205
    assert found["sustained", ""] == 3
    assert found["network_peak", ""] == found["network_sustained", ""] == 6
    assert found["nodes", ""] == 2


def test_a_slowdown_is_the_time_in_the_mix_by_that_alone():
    found, _ = derived()
    assert found["slowdown", "left"] == Decimal("1.2")
    assert found["slowdown", "right"] == 2
    assert (found["time_alone", "right"], found["time_mix", "right"]) == (8, 16)


def test_what_an_application_moved_is_what_its_nodes_did_while_it_ran():
    found, _ = derived()
    assert found["moved", "left"] == 13  # seconds 200 to 212
    assert found["moved", "right"] == 37  # 2 GB in 16 of the seconds 201 to 217, 5 GB in one
    assert found["network_moved", "left"] == 39


def test_a_counter_that_nodes_share_counts_once_and_belongs_to_no_application():
    counted = [*lines("n1", GB, "disk", "net@1"), *lines("n2", GB, "disk", "net@2")]
    found, _ = derived(counted=counted)
    assert found["peak", ""] == found["sustained", ""] == 1
    assert ("moved", "left") not in found
    assert found["network_moved", "left"] == 39


def test_without_a_counter_of_the_storage_there_is_no_rate_of_it():
    counted = [*lines("n1", GB, "disk@1"), "node n2 network net storage x", "199 0 -", "218 0 -"]
    found, _ = derived(counted=counted)
    assert ("peak", "") not in found
    assert ("network_peak", "") in found


@rows(
    "change, told",
    [
        ({("mix", "right", "n2"): (213, 217)}, "at the same time for 0 s"),
        ({("mix", "right", "n2"): (210, 217)}, "at the same time for 1 s"),
        ({("mix", "right", "n2"): (210, 209)}, "ended before it began"),
        ({("mix", "right", "n3"): (201, 217)}, "right mix: on 2 nodes, expected 1"),
    ],
)
def test_applications_that_did_not_run_as_planned_have_no_rate(change, told):
    with pytest.raises(OutputError, match=told) as error:
        derived({**TIMES, **change})
    assert error.value.status == "invalid"


def test_an_application_that_is_missing_has_no_rate():
    times = {key: value for key, value in TIMES.items() if key[0] == "mix"}
    with pytest.raises(OutputError, match="left alone: on 0 nodes, expected 1"):
        derived(times)


def test_another_program_than_that_of_the_site_is_no_answer():
    with pytest.raises(OutputError, match="right alone: program: minimap2, expected lammps"):
        derived(facts={"workload": {"left": ["minimap2", 1], "right": ["lammps", 1]}})


@rows(
    "text, told",
    [
        ("checked 12 fields: all right\n", ""),
        ("checked 12 fields: 1 wrong\n", "left alone n1: no line 'checked [*] fields: all right'"),
        ("not checked 12 fields: all right\n", "no line"),
        ("[12] right?\n", ""),
        ("1 right!\n", "no line"),
    ],
)
def test_a_centres_own_program_counts_where_its_output_has_the_line_of_a_right_answer(text, told):
    names = {"left": ["own.left", 1], "right": ["own.right", 1]}
    line = "checked * fields: all right" if "checked" in text else "[12] right?"
    answers = {name: {"answer": line} for name, _ in names.values()}
    given = {"text": text, "facts": {"workload": names, "programs": answers}}
    if not told:
        assert derived(**given, program="own.{}")[0]["slowdown", "left"] == Decimal("1.2")
        return
    with pytest.raises(OutputError, match=told) as error:
        derived(**given, program="own.{}")
    assert error.value.status == "invalid"


def test_a_wrong_answer_of_one_is_named_and_is_a_wrong_answer_of_all():
    wrong = READS.replace("placed 4000 of", "placed 3900 of")
    with pytest.raises(OutputError, match=r"left alone n1: placed: 97\.5") as error:
        derived(text=wrong)
    assert error.value.status == "invalid"


TOGETHER = {  # left runs once, over two nodes
    (phase, application, node + " n3" if application == "left" else node): times
    for (phase, application, node), times in TIMES.items()
}
NAMES = {"left": ["own.left", 2], "right": ["own.right", 1]}
COUNTED = [
    *lines("n1", GB, "disk@1", "net@1"),
    *lines("n2", GB, "disk@2", "net@2"),
    *lines("n3", GB, "disk@3", "net@3"),
]


def figures(text, prints):
    programs = {name: {"answer": "right", "prints": prints} for name, _ in NAMES.values()}
    facts = {"workload": NAMES, "programs": programs}
    return derived(TOGETHER, text, COUNTED, facts, program="own.{}")[0]


def test_an_application_that_runs_once_over_its_nodes_moved_what_all_of_them_did():
    found = figures("right\n", "")
    assert found["nodes", ""] == 3
    assert found["moved", "left"] == 26  # two nodes, seconds 200 to 212
    assert ("printed_mix", "left") not in found


@rows(
    "line, prints, figure",
    [
        ("Performance: 12.50 ns/day", "Performance: # ns/day", Decimal("12.50")),
        ("Performance:  1.25e+1 ns/day, 2 ranks", "Performance:# ns/day*", Decimal("12.5")),
        ("rate [1?] 7 cells", "rate [1?] # cells", 7),  # nothing else has a meaning
        ("step 100: rate 123.45 it/s", "*# it/s", Decimal("123.45")),  # and not its last digit
        ("123.45 it/s, 8 ranks", "#* it/s*", Decimal("123.45")),
    ],
)
def test_the_figure_that_an_own_program_prints_is_read_from_the_line_of_the_site(
    line, prints, figure
):
    found = figures(f"right\n{line}\n", prints)
    assert found["printed_alone", "left"] == found["printed_mix", "right"] == figure


@rows("line", [("Performance: fast",), ("Performance: nan ns/day",), ("",)])
def test_a_program_that_does_not_print_its_figure_has_no_rate(line):
    with pytest.raises(OutputError, match="left: no line 'Performance: # ns/day'"):
        figures(f"right\n{line}\n", "Performance: # ns/day")


@rows("number", [("12345678901234567890",), ("0.123456789012345678",), ("1e+100",)])
def test_a_figure_is_never_a_part_of_a_longer_number(number):
    with pytest.raises(OutputError, match="no line"):
        figures(f"right\nrate {number} it/s\n", "*#*")


def test_no_line_of_a_node_takes_long_to_be_compared_with_what_the_site_states():
    begin = process_time()
    with pytest.raises(OutputError, match="no line"):
        figures(f"right\n{'1 ' * 250}\n", "*#*1*1*1*1*rate")
    assert process_time() - begin < 1
