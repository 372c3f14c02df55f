"""A program over several nodes: its answer, its tasks, and what follows from them."""

from dataclasses import replace
from decimal import Decimal

import pytest
from rows import rows
from stages_made import of_sweep

from siteproof.collect import of_system, stages
from siteproof.collect.derive import Measured, apps
from siteproof.collect.raw import Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading

STATED = {"answer": "all * right", "prints": "rate #", "result": "mean #", "smallest": "1"}
POINT = {"nodes": "4", "tasks": "8"}
OUTPUT = "rate 12.5\nmean 0.3333333333333333\nall is right\nend own_program\n"
MELT = {"solved": {"atoms": "1000"}, "references": {"energy": ["-4.6", "0.1"]}, "smallest": ""}


def of_command(text=OUTPUT, **facts):
    conditions = {"program": "own", "seconds": "36.00"}
    given = Measured([], conditions, Raw({}, {}, text, ""), {**STATED, **POINT, **facts})
    readings, _ = apps.scaling(given)
    return {r.metric: (r.value, r.unit) for r in readings}


def of_lammps(atoms="4000", tasks="8", **facts):
    readings = [
        Reading("rate", Decimal(5), "atom-steps/s"),
        Reading("energy", Decimal("-4.6"), "x"),
    ]
    conditions = {"program": "lammps", "seconds": "1.00", "atoms": atoms, "tasks": tasks}
    given = Measured(readings, conditions, Raw({}, {}, "", ""), {**MELT, **POINT, **facts})
    return [r.metric for r in apps.scaling(given)[0]]


def test_a_command_of_the_sites_has_its_figure_and_its_result():
    assert of_command() == {
        "time": (Decimal("36.00"), "s"),
        "printed": (Decimal("12.5"), "count"),
        "result": (Decimal("0.3333333333333333"), "x"),
    }


@rows("smallest, speed", [("1", 100), ("", 400)])
def test_without_a_figure_it_has_the_problems_of_one_node_that_it_solves_in_an_hour(
    smallest, speed
):
    assert of_command(prints="", smallest=smallest)["speed"] == (speed, "problems/h")


def test_the_energy_of_a_step_is_that_of_its_point_and_never_zero():
    assert of_command(energy={"4": 1234, "2": 1})["energy"] == (1234, "J")
    assert "energy" not in of_command(energy={"2": 1})


def test_each_point_names_what_its_job_could_not_measure_and_why(tmp_path):
    made = of_sweep(tmp_path, without={"energy": "no energy: Slurm accounts none", "rate": "no"})
    found = stages.collect(made.stage, made.perflogs)
    lacking = [s for s in found if s.status != "ok"]
    assert {(s.metric, s.status, s.why) for s in lacking} == {
        ("Probe_1.energy", "tool_missing", "no energy: Slurm accounts none")
    }
    assert {s.dims["depth"] for s in lacking} == {"2", "4", "8"}


def test_of_a_run_that_was_killed_the_energy_is_asked_for_when_it_is_collected(
    tmp_path, monkeypatch
):
    made = of_sweep(tmp_path, energy={})
    of_job = {("7", made.job.started): {"siteproof-00002": 12}}
    monkeypatch.setattr(of_system.client, "energy", lambda *key: of_job[key])
    asked = of_system.with_energy(replace(made.job, scheduler="slurm", jobs=["7"]))
    assert asked.facts["energy"] == {"1": 12}
    found = stages.collect(made.stage, made.perflogs)
    reasons = {s.why for s in found if s.metric == "Probe_1.energy"}
    assert reasons == {"no energy: without Slurm none is accounted"}


def test_a_problem_grows_with_the_nodes_only_where_scaling_is_weak():
    assert of_lammps() == ["rate"]
    assert of_lammps(atoms="1000", smallest="1") == ["rate"]
    with pytest.raises(OutputError, match="atoms: 1000, expected 4000"):
        of_lammps(atoms="1000")


@rows(
    "run, told",
    [
        (lambda: of_lammps(tasks="1"), "tasks: 1, expected 8"),
        (lambda: of_command(text=OUTPUT.replace("right", "wrong")), "no line 'all"),
    ],
)
def test_other_tasks_or_a_wrong_answer_are_invalid(run, told):
    with pytest.raises(OutputError, match=told) as error:
        run()
    assert error.value.status == "invalid"
