"""Programs of users, run for real on this machine; a wrong answer has no rate."""

from __future__ import annotations

import json
import re
import shutil
from decimal import Decimal

import pytest

PROGRAMS = {
    "Lammps": ("lmp", "mpirun"),
    "Gromacs": ("gmx",),
    "Nwchem": ("nwchem.openmpi", "mpirun"),
    "OpenFoam": ("icoFoam", "mpirun"),
    "Minimap2": ("minimap2",),
    "Hpcg": ("xhpcg",),
}
TOOLS = {"Lammps": "LAMMPS", "Gromacs": "GROMACS", "Nwchem": "NWChem", "OpenFoam": "OpenFOAM"}
UNITS = {
    "Lammps": "atom-steps/s",
    "Gromacs": "ns/day",
    "Nwchem": "energies/h",
    "OpenFoam": "cell-updates/s",
    "Minimap2": "reads/s",
    "Hpcg": "GFLOPS",
}


def real(check):
    """The marks of a test that runs a check's program."""
    missing = [program for program in PROGRAMS[check] if not shutil.which(program)]
    tool = TOOLS.get(check, {"Minimap2": "minimap2", "Hpcg": "HPCG"}.get(check, ""))
    why = f"NOT TESTED: no {', '.join(missing)}; setup/packages apps"
    return pytest.param(
        check,
        marks=[
            pytest.mark.long,
            pytest.mark.tool(tool),
            pytest.mark.skipif(bool(missing), reason=why),
        ],
        id=check,
    )


def samples(world):
    """The samples of the only file."""
    (path,) = world.samples()
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def run(world, check):
    return world.reframe("-r", "-n", f"^{check}$")


@pytest.mark.parametrize("check", [real(name) for name in PROGRAMS])
def test_a_program_has_a_rate_in_its_field_s_unit_and_a_right_answer(world, check):
    if program := shutil.which(PROGRAMS[check][0]):
        (world.bin / PROGRAMS[check][0]).symlink_to(program)
    done = run(world, check)
    assert done.code == 0, done
    lines = samples(world)
    assert {line.get("status", "ok") for line in lines} == {"ok"}
    rates = [line for line in lines if line["unit"] == UNITS[check]]
    assert [Decimal(line["value"]) > 0 for line in rates] == [True]


# The program that is replaced, and what it does to the input before the real one runs: the program
# itself cannot know that its result is wrong.
CHANGED = {
    "Lammps": ("mpirun", "sed -i 's/1.0 1.0 2.5/1.0 1.0 2.4/' melt.in"),
    "Gromacs": ("gmx", "[ ! -f water.top ] || sed -i 's/spce/tip3p/' water.top"),
    "Nwchem": ("mpirun", "sed -i 's/0.1173/0.1183/' water.nw"),
    "OpenFoam": ("mpirun", "sed -i 's/nu 0.01;/nu 0.005;/' constant/transportProperties"),
    "Minimap2": ("minimap2", "sed -i -e '2{h;d}' -e '$G' genome.fa"),  # all letters 100 further on
}


@pytest.mark.parametrize("check", [real(name) for name in CHANGED])
def test_another_input_gives_another_answer_and_no_rate(world, check):
    program, edit = CHANGED[check]
    world.fake(program, f'{edit}; exec {shutil.which(program)} "$@"')
    world.site(
        criteria=f"""
HERE-APP:
  description: An application
  metric: {check}.rate
  at_least: 0.001 {UNITS[check]}
  conditions: {{mode: [quick]}}
  source: a test
"""
    )
    done = run(world, check)
    assert done.code == 1, done
    assert re.search("invalid: .* expected .* within", done.out), done
    assert world.statuses() == {f"{check}.*": "invalid"}
    assert world.verdicts() == {"HERE-APP": "FAIL"}


def test_a_machine_without_the_programs_skips_each_by_name(world):
    names = [program for programs in PROGRAMS.values() for program in programs]
    world.without(*names, "gmx_mpi", "lmp_mpi", "lmp_serial", "nwchem")
    done = world.reframe("-r", "-n", f"^({'|'.join(PROGRAMS)})$")
    assert done.code == 0, done
    for program in ("lmp", "gmx", "nwchem", "icoFoam", "minimap2", "xhpcg"):
        assert f"tool missing: {program} is not installed" in done.out, done
