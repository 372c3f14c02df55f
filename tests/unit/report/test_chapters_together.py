"""Chapters on what ran over many nodes at once: collectives, bisection, programs that scale."""

from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import fleets
import pytest

from siteproof.record import samples
from siteproof.record.samples import Sample
from siteproof.report import material, value_tables
from siteproof.report.chapters import criteria, matrix, scenarios, sweeps, tested

SCALING = """\
groups: {r1: 'n[001-002]', r2: 'n[003-004]', r3: 'n[005-006]'}
scaling:
  flow: {command: launch flow, answer: right, nodes: [2, 16], tasks_per_node: 1, scaling: weak}
"""
CRITERIA = """\
C-EFFICIENT: {description: d, metric: Scaling.efficiency, subject: system, at_least: 90 %,
  source: s, max_age: none, conditions: {application: flow}}
C-TIME: {description: d, metric: Scaling.time, subject: system, at_most: 1 s,
  source: s, max_age: none, conditions: {application: flow, nodes: '16'}}
"""
TOGETHER = (2, 16)
NODES = fleets.names(6)


def collectives():
    head = fleets.header(1, "Collectives", conditions={"program": "osu"})
    for tasks in TOGETHER:
        for size in (8, 1024):
            dims = {"tasks": str(tasks), "size": str(size)}
            yield Sample(head, "", "Collectives.bcast", Decimal(tasks * size), "us", dims=dims)


def bisection():
    head = fleets.header(1, "Bisection", conditions={"program": "mpi4py"})
    for number, sender in enumerate(NODES):
        for receiver in NODES[number + 1 :]:
            dims = {"tasks": "6", "from": sender, "to": receiver}
            yield Sample(head, "", "Bisection.pair", Decimal(1000), "MB/s", dims=dims)


def scaling():
    told = {"application": "flow", "sweep": "scaling.flow", "program": "own"}
    head = fleets.header(1, "Scaling", conditions=told)
    for nodes in TOGETHER:
        dims = {"tasks": str(nodes), "tasks_per_node": "1", "nodes": str(nodes)}
        yield Sample(head, "", "Scaling.speed", Decimal(nodes), "problems/h", dims=dims)
        yield Sample(head, "", "Scaling.time", Decimal(3600), "s", dims=dims)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    with pytest.MonkeyPatch.context() as patch:
        fleets.write_site(folder / "sites", 6, SCALING, CRITERIA)
        for name in ("SITES", "DATA", "CACHE"):
            patch.setenv(f"SITEPROOF_{name}", str(folder / name.lower()))
        for found in map(list, (collectives(), bisection(), scaling())):
            head = replace(found[0].header, campaign="winter")
            samples.write(
                folder / "data/perflogs", head, [replace(one, header=head) for one in found]
            )
        with closing(material.gather("here", name="winter")) as held:
            yield held


def test_each_number_of_tasks_is_a_scenario_of_its_own_and_none_is_a_median_of_several(made):
    (figure,) = scenarios.chapter(made).figures
    assert figure.table.columns == ("size", "tasks 2", "tasks 16")
    assert [row[1:] for row in figure.table.rows] == [("16", "128"), ("2048", "16384")]


def test_of_a_program_over_nodes_the_speed_is_a_curve_and_its_time_is_none(made):
    assert [figure.title for figure in sweeps.chapter(made).figures] == [
        "Scaling.speed against nodes, here, problems/h"
    ]


def test_each_line_on_a_sweep_names_its_run(made):
    assert [point[: point.index(": ")] for point in sweeps.chapter(made).points][0].endswith(
        "flow, here"
    )


def test_no_row_of_an_application_is_a_median_over_numbers_of_nodes(made):
    assert tested.chapter(made) is None


def test_the_pairs_of_a_bisection_are_a_matrix_with_a_table_between_groups(made):
    section = matrix.chapter(made)
    assert section.lead == "15 values of pairs in 1 matrix; 0 bad pairs."
    (between,) = section.tables
    assert between.columns == ("group", "r1", "r2", "r3")


def test_a_job_is_counted_once_whatever_follows_from_it(made):
    (job,) = value_tables.rows_of(made)["jobs"]
    assert job["check"] == "Scaling" and job["file"]


def test_what_a_tool_printed_of_no_single_node_names_none(made):
    rows = criteria.chapter(made).tables[0].rows
    (row,) = (row for row in rows if "C-TIME" in str(row[0]))
    assert "own: 3600 s" in [str(cell) for cell in row]
