"""What a run will cost, told before it starts."""

import csv
import json
import os
import re
import shutil
import sys

import pytest
from click.testing import CliRunner
from clone import PATIENCE, SITES, TOP, warm
from rich.console import Console

from siteproof.checks import timetable
from siteproof.cli.lint import lint
from siteproof.cli.plan import plan

SETTINGS = str(TOP / "reframe_settings.py")
MODULE = sys.modules[plan.callback.__module__]
FORKED = MODULE.forked
SWEEPS = ("-c", str(TOP / "sweeps"))
_described = {}


def described(command):
    """What ReFrame answers: of the same sites and words once, from one that is loaded already."""
    key = (*command, os.environ.get("SITEPROOF_SITES"))
    if key not in _described:
        env = os.environ | {"RFM_COLORIZE": "n"}
        _described[key] = warm(TOP).run(command[1:], env, TOP, PATIENCE)
    return _described[key]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A data folder of the test's own, in which nothing was measured."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("RFM_CONFIG_FILES", SETTINGS)
    monkeypatch.setattr(MODULE, "forked", described)
    return tmp_path


def planned(*words):
    done = CliRunner().invoke(plan, words)
    return done, " ".join(done.output.split())


def refused(*words):
    return str(planned(*words)[0].exception)


def rows_of(*words):
    """The rows of --plain, by column."""
    done, _ = planned(*words, "--plain")
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(done.stdout.splitlines(), delimiter="\t"))


def screen(*words, width=80):
    """The lines that a terminal of this width shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("siteproof.cli.shared.console", lambda: Console(width=width))
        done, _ = planned(*words)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    return lines, [line[at : at + width] for line in lines for at in range(0, len(line), width)]


def test_320_nodes_are_five_jobs_a_check_with_their_node_hours(folder):
    done, told = planned("--system", "jetstream-iu", "-n", "Stream")
    assert done.exit_code == 0, done.output
    assert "5 jobs on 320 nodes, at most 53.3 node-hours, 0 GB" in told
    assert str(folder) in done.output.replace("\n", "")
    assert list(folder.iterdir()) == [], "nothing is made or run"


@pytest.mark.parametrize("system", ["testbed", "thishost", "nebula-sriov", "jetstream-iu"])
def test_a_plan_fits_a_screen_and_no_record_is_cut(system):
    lines, shown = screen("--system", system)
    assert len(shown) <= 24, "\n".join(lines)
    assert not [line for line in shown if "│" in line or "…" in line]
    assert re.fullmatch(rf"\d+ checks to run, \d+ not: {system}, \w+", lines[0])
    assert lines[-2].endswith("GB written")
    assert lines[-1].startswith("next: reframe -c checks/ -r --system ")


def test_all_rows_and_all_that_does_not_run_are_an_option():
    few, _ = screen("--system", "testbed")
    every, _ = screen("--system", "testbed", "--all")
    assert any(line.endswith("see --all") for line in few)
    assert not any("--all" in line for line in every)
    rows = rows_of("--system", "testbed")
    for row in rows:
        assert row["check"] in " ".join(" ".join(every).split()), row
    assert every[-1] == few[-1]
    assert "--all" not in every[-1]


def test_what_does_not_run_is_counted_by_reason_with_one_example():
    lines, _ = screen("--system", "testbed", "-n", "Gromacs|Lammps")
    at = lines.index("not run:")
    assert lines[at + 1] == "   2  no environment offers its program: Gromacs on compute (gromacs)"
    assert lines[-2].endswith("nothing would run")
    assert lines[-1] == "next: siteproof sites testbed"


def test_rows_are_records_on_a_screen_of_any_width():
    for width in (80, 110, 200):
        lines, _ = screen("--system", "testbed", "-n", "Stream|UdpBurst", width=width)
        assert "  Stream" in [line[:8] for line in lines], width
        assert "7 pairs in 7 rounds" in " ".join(" ".join(lines).split())


def test_programs_read_the_same_rows_as_json_and_as_plain_text():
    options = "--system", "jetstream-iu", "-n", "Stream|Gromacs"
    done, _ = planned(*options, "--json")
    document = json.loads(done.stdout)
    rows = rows_of(*options)
    columns = [
        *("check", "partition", "mode", "jobs", "nodes", "minutes", "node_hours", "gigabytes"),
        *("node_set", "note", "why_not", "set_by"),
    ]
    assert list(rows[0]) == columns
    assert [{k: f"{v}" for k, v in row.items()} for row in document["rows"]] == rows
    [stream] = [row for row in document["rows"] if row["check"] == "Stream"]
    assert (stream["jobs"], stream["nodes"], stream["node_set"]) == (5, 320, "iu-c[001-320]")
    assert (document["jobs"], document["nodes"]) == (5, 320)
    assert {row["why_not"] for row in document["rows"] if not row["jobs"]} == {
        "no environment offers its program"
    }


REFUSED = {
    "--system magellan -n Hpl -p bare": (
        "no check is selected: Hpl needs an environment that offers hpl or hpcc. Allowed: system"
    ),
    "--system magellan:gpu -n TcpBandwidth": (
        "no check is selected: TcpBandwidth measures no role of magellan:gpu. "
        "Allowed: magellan:network"
    ),
    "--system jetstream-iu -n TcpBandwidth -p io": (
        "no check is selected: TcpBandwidth does not run in the environment of -p"
    ),
    "-n FioSweep": (
        "no check is selected: FioSweep is measured by sweeps only. 'reframe -c sweeps/ -l' lists"
    ),
    "-n Streem": "plan: -n Streem: no such check (did you mean 'Stream'?). Allowed: Bisection, ",
    "-t nothing": "no check is selected. 'reframe -c checks/ -l' lists",
    "--mode fast": "unknown mode 'fast'",
    "--system testbed -n TcpBandwidth -S nodes=node099": "node099 is not in the inventory",
    "--system testbed -S Tcp.pattern=all": "-S Tcp.pattern: no check 'Tcp'",
}


def test_why_no_check_is_selected_and_what_reframe_refuses_is_named():
    found = {options: refused(*options.split()) for options in REFUSED}
    assert not {key: text for key, text in found.items() if REFUSED[key] not in text}


def test_a_partition_whose_environments_lack_the_program_is_named_with_it():
    _, told = planned("--system", "magellan:active_storage", "-n", "Hpl")
    assert "no environment offers its program: Hpl on active_storage (hpl or hpcc)" in told


def test_gigabytes_are_those_of_the_points_that_are_left_on_each_partition():
    """Eight tasks of 1 GiB, four, two and one; on each partition those that it can measure."""
    caps = "-S", "tasks=8", "-S", "size=512MiB", "-S", "repetitions=1"
    rows = rows_of(*SWEEPS, "--system", "jetstream-iu", "-n", "IorTasks", *caps)
    written = {row["check"]: float(row["gigabytes"]) for row in rows if row["jobs"] != "0"}
    half = 2**29 / 1e9
    assert written == {
        "IorTasks 1 volume": pytest.approx(half, abs=0.001),
        "IorTasks 2-8 volume": pytest.approx((2 + 4 + 8) * half, abs=0.001),
    }


ENDS = {
    "os.kill(os.getpid(), 9)": "was ended by signal 9 (Killed) when it used # MiB of memory. If",
    "os.kill(os.getpid(), 15)": "was ended by signal 15 (Terminated) when it used # MiB of memory",
    "bytearray(1 << 60)": "ran out of memory when it used # MiB",
    "os._exit(4)": "ended with exit code 4 and no message",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_reframe_that_was_ended_is_told_with_the_reason(end, folder, monkeypatch):
    settings = folder / "settings.py"
    settings.write_text(f"import os\nsite_configuration = {{}}\n{end}\n")
    monkeypatch.setenv("RFM_CONFIG_FILES", str(settings))
    monkeypatch.setattr(MODULE, "forked", FORKED)
    assert f"plan: reframe {ENDS[end]}" in re.sub(r"[\d.]+(?= MiB)", "#", refused())


def test_a_program_that_closes_its_output_ends_and_does_not_go_on_as_a_second_plan(tmp_path):
    program = tmp_path / "program"
    program.write_text("import sys\nprint('said', flush=True)\nsys.stdout.close()\n")
    assert FORKED([str(program)]) == (0, "said\n", "")


def test_all_mistakes_of_a_site_are_shown_as_lint_shows_them(folder, monkeypatch):
    site = shutil.copytree(SITES / "example", folder / "sites" / "example")
    text = (site / "system.yaml").read_text().replace("[hpl]", "[hlp]").replace(": 12", ": 12.5")
    (site / "system.yaml").write_text(text)
    monkeypatch.setenv("SITEPROOF_SITES", str(site.parent))
    linted = CliRunner().invoke(lint, ["--system", "example"]).output.splitlines()[:-1]
    assert len(linted) == 2
    told = refused("--system", "example").splitlines()
    assert [f"siteproof: {line}" for line in told] == linted


def test_of_many_mistakes_the_number_and_the_command_that_lists_them_are_shown(folder, monkeypatch):
    site = shutil.copytree(SITES / "example", folder / "sites" / "example")
    (site / "criteria.yaml").write_text("".join(f"E-{n}: {{}}\n" for n in range(30)))
    monkeypatch.setenv("SITEPROOF_SITES", str(site.parent))
    lines = refused("--system", "example").splitlines()
    assert lines[-1].endswith("'siteproof lint --system example' lists all 120.")
    assert len(lines) == 21


def test_each_program_that_scales_has_a_row_with_its_name(folder, monkeypatch):
    site = shutil.copytree(TOP / "site-config/testbed", folder / "sites" / "testbed")
    program = "{command: launch x, answer: y, nodes: [2], tasks_per_node: 1, scaling: weak}"
    with (site / "system.yaml").open("a") as file:
        file.write(f"scaling:\n  flow: {program}\n  melt: {program}\n")
    monkeypatch.setenv("SITEPROOF_SITES", str(site.parent))
    rows = rows_of("--system", "testbed", "-n", "Scaling")
    assert [row["check"] for row in rows] == ["Scaling flow", "Scaling melt"]


SERVICES = """
services:
  page: {kind: web, address: "http://localhost/"}
  jobs: {kind: slurm, address: compute, timeout: 5 min}
scaling:
  flow: {command: launch x, answer: y, nodes: [2], tasks_per_node: 1, scaling: weak}
"""


@pytest.fixture
def with_services(folder, monkeypatch):
    """The test bed with services and a program that scales, of which no criterion says anything."""
    site = shutil.copytree(TOP / "site-config/testbed", folder / "sites" / "testbed")
    with (site / "system.yaml").open("a") as file:
        file.write(SERVICES)
    monkeypatch.setenv("SITEPROOF_SITES", str(site.parent))


def test_what_runs_on_this_host_takes_no_node_of_the_system(with_services):
    words = ("--system", "testbed", "-n", "Service|Scheduler")
    rows = rows_of(*words)
    assert {row["check"]: (row["jobs"], row["nodes"], row["node_set"]) for row in rows} == {
        "Service page": ("1", "0", ""),
        "Scheduler jobs": ("1", "0", ""),
    }
    _, told = planned(*words)
    assert "2 jobs on 0 nodes, at most 0.0 node-hours" in told
    assert f"testbed:compute: this host {MODULE.socket.gethostname()}" in told


def test_of_a_check_of_the_whole_system_too_only_what_is_missing_is_planned(with_services):
    words = ("--system", "testbed", "-n", "Service|Scheduler|Scaling|Collectives|Ior")
    rows = rows_of(*words, "-S", "nodes=missing")
    assert {row["why_not"] for row in rows} == {"nothing is missing"}


@pytest.mark.parametrize("named", [2, 8])
def test_no_partition_is_measured_at_the_size_of_another_one(named, folder, monkeypatch):
    site = shutil.copytree(TOP / "site-config/testbed", folder / "sites" / "testbed")
    text = (site / "system.yaml").read_text()
    nodes = "{set: 'node[009-013]', hardware: namespace}"
    text = text.replace("nodes:\n", f"nodes:\n  part: {nodes}\n", 1)
    part = "{description: x, role: part, scheduler: slurm, environments: [system]}"
    text = text.replace("partitions:\n", f"partitions:\n  part: {part}\n", 1)
    program = "{command: launch x, answer: y, nodes: [all, %d], tasks_per_node: 2, scaling: weak}"
    (site / "system.yaml").write_text(f"{text}scaling:\n  flow: {program % named}\n")
    monkeypatch.setenv("SITEPROOF_SITES", str(site.parent))
    rows = rows_of("--system", "testbed", "-n", "Scaling|Bisection")
    points = "2 points" if named == 2 else "1 point"
    assert {(r["check"], r["nodes"], r["note"].split(",")[0]) for r in rows} == {
        ("Bisection", "8", "1 point"),
        ("Bisection", "5", "1 point"),
        ("Scaling flow", "8", points),
        ("Scaling flow", "5", points),
    }


def test_without_health_of_a_role_the_plan_says_what_is_not_stated():
    (row,) = rows_of("--system", "testbed", "-n", "NodeHealth")
    assert row["why_not"] == "the site states no health of these nodes"


def test_a_check_of_pairs_is_one_job_on_both_sides_of_its_link():
    done, told = planned("--system", "testbed", "-n", "TcpBandwidth")
    assert done.exit_code == 0, done.output
    assert "1 job on 8 nodes" in told


def test_the_pairs_of_all_hosts_of_jetstream_take_hours_and_the_plan_says_so():
    options = "--system", "jetstream-iu", "-n", "TcpBandwidth"
    done, told = planned(*options)
    assert done.exit_code == 0, done.output
    [row] = rows_of(*options)
    found = re.fullmatch(r"(\d+) pairs in (\d+) rounds \(star\)", row["note"])
    pairs, rounds = map(float, found.groups())
    hours = float(row["node_hours"]) / float(row["nodes"])
    assert pairs == rounds > 300
    turn = 2 * (5 + 1 + 3) + 1 + timetable.AROUND  # maintenance: 2 runs of 5 s, and around them
    assert hours == pytest.approx(rounds * turn / 3600, rel=0.02)
    assert "TcpBandwidth ethernet" in told


def test_fewer_nodes_are_fewer_pairs_and_strangers_to_a_link_skip():
    options = "--system", "testbed", "-n", "TcpBandwidth", "--mode", "acceptance"
    done, told = planned(*options, "-S", "nodes=3", "-S", "trials=3")
    assert "3 pairs in 3 rounds (star), 3 times over" in " ".join(told.replace("│", "").split())
    assert "1 job on 4 nodes" in told
    done, told = planned(*options, "-S", "nodes=node001")
    assert done.exit_code == 0
    assert (
        "-S nodes: node001 has no pair of this link. Allowed: node[001-008]: "
        "TcpBandwidth lan on compute"
    ) in told
    assert "0 jobs on 0 nodes" in told


def test_a_check_of_file_systems_names_each():
    checks = {row["check"] for row in rows_of("--system", "testbed")}
    assert {"BlockStorage scratch", "BlockStorage memory"} <= checks


def test_nodes_that_may_not_use_a_file_system_cost_nothing_on_it():
    _, told = planned("--system", "jetstream-iu", "-n", "RandomIo")
    assert "8 jobs on 486 nodes" in told  # 166 instances on volume, 320 blades on benchmarks


def test_a_pair_is_tried_as_often_as_its_criterion_asks_for():
    options = "--system", "nebula-sriov", "-n", "TcpBandwidth"
    notes = [row["note"] for row in rows_of(*options, "--mode", "acceptance")]
    assert "1 pair in 1 round (star), 10 times over" in notes
    notes = [row["note"] for row in rows_of(*options, "--mode", "quick")]
    assert not any("times over" in note for note in notes)


def test_a_criterion_sets_the_seconds_and_pairs_at_once_of_acceptance_unless_s_does():
    words = ("--system", "extenci", "-n", "TcpBandwidth")
    psc, tacc = rows_of(*words, "--mode", "acceptance")
    assert psc["set_by"] == "EXT-IPERF-INT: streams=1 duration=300 at_once=1"
    assert tacc["set_by"] == "EXT-WAN: duration=300 at_once=1"
    assert "21 pairs in 21 rounds" in psc["note"] and int(psc["minutes"]) > 21 * 4 * 5
    (psc, _) = rows_of(*words, "--mode", "acceptance", "-S", "duration=20", "-S", "at_once=2")
    assert (psc["set_by"], int(psc["minutes"])) == ("EXT-IPERF-INT: streams=1", 27)
    (psc, _) = rows_of(*words)  # maintenance, which they do not name
    assert (psc["set_by"], "in 7 rounds" in psc["note"]) == ("", True)


def test_why_a_sweep_does_not_run_is_said_in_the_words_of_its_site():
    _, told = planned(*SWEEPS, "--system", "testbed", "-n", "HostBuffers|Io500Mdtest", "--all")
    for why in (
        "the sweep changes settings of nodes, and compute has no 'tuning: true' in system.yaml: "
        "HostBuffers 2-8 lan on compute",
        "there are too few nodes, or they share no file system: Io500Mdtest 2-8 memory on compute "
        "(6 left out)",
    ):
        assert why in told


def test_a_check_that_the_site_gives_nothing_to_measure_is_not_said_to_change_settings():
    rows = [row for row in rows_of("--system", "testbed") if row["check"].startswith("Workload")]
    assert {row["why_not"] for row in rows} == {"the site states nothing for it to measure"}


def test_points_that_need_a_file_system_are_left_out_because_there_is_none():
    _, told = planned("--system", "testbed-wan", "-n", "Ior")
    assert "the site names no file_systems: Ior on" in told
    assert "too few nodes" not in told


SWEEP = ("-c", "sweeps/", "-n", "IorTasks", "--system", "jetstream-iu")


def test_a_capped_sweep_costs_its_own_points_and_names_the_others():
    rows = rows_of(*SWEEP, "-S", "tasks=1", "-S", "size=256MiB", "-S", "repetitions=1")
    assert rows[0]["check"] == "IorTasks 1 volume"
    assert rows[0]["note"] == "1 point, 2 above the caps of -S"
    assert rows[0]["gigabytes"] == "0.268"  # 256 MiB, and not the file's 1 GiB
    assert {row["why_not"] for row in rows[1:]} >= {"no point of it is within the caps"}


CAPS = {
    "depth=4": "plan: -S depth=4: IorTasks cannot be capped by it. Allowed: api, block,",
    "tasks=0": "plan: -S tasks=0: tasks: unknown value '0'. Allowed: 1, 2, 3 ….",
    "tasks=1x": "plan: -S tasks=1x: tasks: unknown value '1x'. Allowed: 1, 2, 3 ….",
    "size=64": "plan: -S size=64: a size without its unit. Allowed: a size such as 64MiB",
    "api=MPIIO": "plan: -S api=MPIIO: IorTasks has no point within api MPIIO. Allowed: caps",
}
KNOBS = [
    "knob.nic.{interface}.mtu",
    "HostBuffers.knob.nic.{interface}.mtu",
    "mtu",
    "HostBuffers.tcp_rmem",
]


def test_a_cap_that_is_none_is_refused_by_the_plan():
    found = {cap: refused(*SWEEP, "-S", cap) for cap in CAPS}
    assert not {cap: text for cap, text in found.items() if not text.startswith(CAPS[cap])}
    told = refused(*SWEEP, "-S", "IorTasks.laiout=x")
    assert "IorTasks has no such variable (did you mean 'layout'?). Allowed: api, " in told


def test_a_cap_on_a_knob_is_refused_with_the_axes_that_may_have_one():
    options = "-c", "sweeps/", "-n", "HostBuffers", "--system", "testbed"
    for name in KNOBS:
        assert refused(*options, "-S", f"{name}=1500") == (
            f"plan: -S {name}: HostBuffers cannot be capped by a knob. "
            "Allowed: buffer, repetitions, streams, tasks, tasks_per_node."
        )
