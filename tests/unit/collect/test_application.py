"""An application's rate counts only where its answer is the known one."""

from __future__ import annotations

from decimal import Decimal

import pytest
from rows import rows

from siteproof.collect.derive import Measured, apps
from siteproof.collect.raw import Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading

REFERENCES = {"energy": ["-76.0647917", "0.000001"]}
SOLVED = {"functions": "115"}


def derived(energy="-76.06479169", functions="115", cpus="8", **facts):
    readings = [
        Reading("rate", Decimal("387"), "energies/h"),
        Reading("energy", Decimal(energy), "hartree"),
    ]
    raw = Raw({"cpus": cpus}, {}, "", "")
    known = {"cores": "8", "solved": SOLVED, "references": REFERENCES, **facts}
    return apps.application(Measured(readings, {"functions": functions}, raw, known))


def test_the_known_answer_within_its_tolerance_counts():
    readings, conditions = derived()
    assert [r.metric for r in readings] == ["rate", "energy"]
    assert conditions == {"functions": "115"}


@rows("energy", ["-76.06479", "-76.0647", "76.0647917", "0"])
def test_another_answer_is_invalid_and_names_both(energy):
    with pytest.raises(OutputError, match=f"energy: {energy}.* expected -76.0647917") as error:
        derived(energy)
    assert error.value.status == "invalid"


def test_the_tolerance_itself_is_within():
    derived("-76.0647907")


def test_an_answer_to_another_problem_is_invalid():
    with pytest.raises(OutputError, match="functions: 58, expected 115") as error:
        derived(functions="58")
    assert error.value.status == "invalid"


def test_a_node_with_fewer_processors_than_cores_is_invalid():
    with pytest.raises(OutputError, match="4 processors, expected 8 cores") as error:
        derived(cpus="4")
    assert error.value.status == "invalid"


def test_without_the_answer_there_is_no_rate():
    with pytest.raises(OutputError, match="no drift"):
        derived(references={"drift": ["0", "1"]})


def test_a_site_that_does_not_know_the_cores_measures_all_the_same():
    assert derived(cores="0")[0]
