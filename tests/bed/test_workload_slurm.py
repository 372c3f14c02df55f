"""The workload of a site, and of two sites, over the nodes of a real Slurm, with real programs."""

import json
import shutil

import pytest
from bed_suite import Suite
from wan_sites import Sites, joined

MISSING = [program for program in ("lmp", "minimap2") if not shutil.which(program)]
pytestmark = [
    pytest.mark.testbed,
    pytest.mark.long,
    pytest.mark.tool("ReFrame", "Slurm", "LAMMPS", "minimap2"),
    pytest.mark.skipif(
        bool(MISSING), reason=f"NOT TESTED: no {', '.join(MISSING)}; setup/packages apps"
    ),
]
SCRATCH = "path: /var/tmp, kind: any, shared: true"
WORKLOAD = """
workload:
  file_systems: [scratch]
  applications:
    melt: {program: lammps, nodes: 1}
    genes: {program: minimap2, nodes: 1}

partitions:
"""


DUMP = """
    melt:
      command: |
        printf '%s\\n' 'units lj' 'lattice fcc 0.8442' 'region box block 0 20 0 20 0 20' \\
          'create_box 1 box' 'create_atoms 1 box' 'mass 1 1.0' 'pair_style lj/cut 2.5' \\
          'pair_coeff 1 1 1.0 1.0 2.5' 'velocity all create 1.44 1978' 'fix 1 all nve' \\
          'dump 1 all atom 5 melt.*' 'run 200' >melt.in
        lmp -in melt.in -log none
        ls melt.200 && du -sk . | sed 's/^\\([0-9]*\\).*/wrote \\1 KiB/'
      answer: 'wrote * KiB'
      nodes: 1
    genes: {program: minimap2, nodes: 1}
"""


@pytest.fixture
def suite(testbed, tmp_path):
    """A site with a workload; its shared file system is a folder of the test's."""
    suite = Suite(testbed, tmp_path)
    suite.disk = tmp_path / "disk"
    suite.disk.mkdir()
    shared = f"path: {suite.disk}, kind: any, shared: true"
    suite.edit("system.yaml", (SCRATCH, shared), ("\npartitions:\n", WORKLOAD))
    yield suite
    suite.end()


def reframe(suite, *words):
    return suite.reframe("-S", "mode=quick", "-n", "^Workload%.*scratch", *words)


def test_two_applications_run_alone_and_then_at_the_same_time(suite):
    done = reframe(suite)
    assert done.returncode == 0, done.stdout
    samples = suite.samples()
    assert {s.status for s in samples} == {"ok"}
    found = {(s.metric, s.dims.get("application", "")): float(s.value) for s in samples}
    assert found["Workload.nodes", ""] == 2
    for name in ("melt", "genes"):
        ratio = found["Workload.time_mix", name] / found["Workload.time_alone", name]
        assert found["Workload.slowdown", name] == pytest.approx(ratio, rel=0.01)
    assert found["Workload.peak", ""] >= found["Workload.sustained", ""]
    assert ("Workload.network_moved", "melt") in found  # each node has a network of its own
    assert ("Workload.moved", "melt") not in found  # and all share this machine's disk
    assert {s.conditions["applications"] for s in samples} == {"2"}
    assert list(suite.disk.iterdir()) == []


def test_a_centres_own_command_runs_with_the_others_and_its_line_decides(suite):
    programs = WORKLOAD[WORKLOAD.index("    melt:") : WORKLOAD.index("\npartitions")]
    suite.edit("system.yaml", (programs, DUMP))
    done = reframe(suite)
    assert done.returncode == 0, done.stdout
    samples = suite.samples()
    assert {s.status for s in samples} == {"ok"}
    assert {s.conditions["mix"] for s in samples} == {"1+1"}
    assert {s.dims["application"] for s in samples if s.metric == "Workload.slowdown"} == {
        "melt",
        "genes",
    }
    suite.edit("system.yaml", ("wrote * KiB", "wrote * MiB"))
    assert reframe(suite).returncode == 1
    assert "melt alone" in suite.samples()[-1].why


def test_another_input_of_one_application_makes_all_invalid(suite):
    real = shutil.which("minimap2")
    shifted = "sed -i -e '2{h;d}' -e '$G' genome.fa"
    suite.likwid(f'{shifted}\nexec {real} "$@"', "minimap2")
    first = f'variables: {{PATH: "{suite.programs}:$PATH", '
    suite.edit("system.yaml", ("variables: {", first))
    done = reframe(suite)
    assert done.returncode == 1, done.stdout
    (sample,) = suite.samples()
    assert sample.status == "invalid"
    assert "genes alone" in sample.why


COUPLED = """
    melt:
      command: |
        printf '%s\\n' 'units lj' 'lattice fcc 0.8442' 'region box block 0 20 0 20 0 20' \\
          'create_box 1 box' 'create_atoms 1 box' 'mass 1 1.0' 'pair_style lj/cut 2.5' \\
          'pair_coeff 1 1 1.0 1.0 2.5' 'velocity all create 1.44 1978 loop geom' \\
          'neighbor 0.3 bin' 'neigh_modify every 20 delay 0 check no' 'fix 1 all nve' \\
          'run 250' >melt.in
        launch lmp -in melt.in -log none
      answer: '250 * -5.7* 0 -4.62*'
      prints: 'Performance: # tau/day, *'
      nodes: 2
      tasks: 2
"""
ROLES = "  compute: {set: 'node[001-008]', hardware: namespace}\n"
GROUPS = {"instances": "node[001-002]", "hypervisors": "node[003-004]"}  # as Magellan's
COUPLED_IN_GUESTS = """
TB-COUPLED:
  description: A program that is coupled over instances compared with hypervisors
  metric: VmShare.tightly_coupled
  subject: system
  at_least: 0.001 x
  conditions: {mode: quick, file_system: instances, application: melt}
  against: {file_system: hypervisors}
  source: test bed, 3
"""


def test_a_program_over_two_guests_is_compared_with_the_same_over_two_hosts(suite):
    programs = WORKLOAD[WORKLOAD.index("    melt:") : WORKLOAD.index("\npartitions")]
    role = "  {0}: {{set: '{1}', hardware: namespace, overlaps: [compute]}}\n"
    place = "  {0}: {{path: {1}, kind: any, shared: true, roles: [{0}]}}\n"
    where = "  {0}: {{description: Two nodes, role: {0}, access: ['--partition=compute']}}\n"
    added = "".join(role.format(*group) for group in GROUPS.items())
    there = "".join(place.format(group, suite.disk) for group in GROUPS)
    started = "".join(where.format(group) for group in GROUPS)
    suite.edit(
        "system.yaml",
        (ROLES, ROLES + added),
        ("\nfile_systems:\n", f"\nfile_systems:\n{there}"),
        ("file_systems: [scratch]", f"file_systems: [{', '.join(GROUPS)}]"),
        (programs, COUPLED),
        ("\npartitions:\n", f"\npartitions:\n{started}"),
        ("    role: compute\n", "    role: compute\n    measures: []\n"),
    )
    suite.edit("criteria.yaml", ("TB-HPL:\n", f"{COUPLED_IN_GUESTS.lstrip()}TB-HPL:\n"))
    done = suite.reframe("-S", "mode=quick", "-n", "^Workload")
    assert done.returncode == 0, done.stdout
    found = [s for s in suite.samples() if s.metric == "Workload.printed_alone"]
    assert {s.conditions["file_system"]: s.status for s in found} == dict.fromkeys(GROUPS, "ok")
    told = json.loads(suite.siteproof("verdict", "--json").stdout)
    (one,) = [c for c in told["criteria"] if c["id"] == "TB-COUPLED"]
    assert one["verdict"] == "PASS", one


FAR = """
file_systems:
  scratch: {%s}

workload:
  file_systems: [scratch]
  applications:
    melt:  # over the WAN, writing a dump each step
      command: |
        printf '%%s\\n' 'units lj' 'lattice fcc 0.8442' 'region box block 0 20 0 20 0 20' \\
          'create_box 1 box' 'create_atoms 1 box' 'mass 1 1.0' 'pair_style lj/cut 2.5' \\
          'pair_coeff 1 1 1.0 1.0 2.5' 'velocity all create 1.44 1978' 'fix 1 all nve' \\
          'dump 1 all atom 1 melt.*' 'run 20' >melt.in
        launch lmp -in melt.in -log none
        ls melt.20
      answer: 'Loop time of * on 5 procs for 20 steps with 32000 atoms'
      prints: 'Performance: # tau/day, *'
      nodes: 5
      tasks: 5
    genes: {program: minimap2, nodes: 3}

partitions:
"""


def test_an_application_over_both_sites_of_a_wan_runs_beside_another(tmp_path_factory, tmp_path):
    """Site a has four nodes, so that one of the five tasks is at the far end of the WAN."""
    with joined("10gbit", tmp_path_factory.getbasetemp(), name="-wan-workload") as bed:
        suite = Sites(bed, tmp_path)
        suite.disk = tmp_path / "disk"
        suite.disk.mkdir()
        shared = f"path: {suite.disk}, kind: any, shared: true"
        suite.edit("system.yaml", ("\npartitions:\n", FAR % shared))
        done = reframe(suite)
        assert done.returncode == 0, done.stdout
        samples = suite.samples()
    assert {(s.status, s.why) for s in samples} == {("ok", "")}
    assert {s.conditions["mix"] for s in samples} == {"5+3"}
    found = {(s.metric, s.dims.get("application", "")): float(s.value) for s in samples}
    assert found["Workload.printed_alone", "melt"] > 0
    assert found["Workload.network_moved", "melt"] > found["Workload.network_moved", "genes"]
    assert list(suite.disk.iterdir()) == []
