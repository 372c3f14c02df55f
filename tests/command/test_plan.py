"""What a run will cost, told before it starts."""

import csv
import json
import re
import shutil
import sys

import pytest
from click.testing import CliRunner
from clone import SITES, TOP
from rich.console import Console

from siteproof.checks import timetable
from siteproof.cli.lint import lint
from siteproof.cli.plan import plan


def planned(*words, monkeypatch, tmp_path):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("RFM_CONFIG_FILES", str(TOP / "reframe_settings.py"))
    done = CliRunner().invoke(plan, words)
    return done, " ".join(done.output.split())


def rows_of(*words, monkeypatch, tmp_path):
    """The rows of --plain, by column."""
    done, _ = planned(*words, "--plain", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(done.stdout.splitlines(), delimiter="\t"))


def screen(*words, width, monkeypatch, tmp_path):
    """The lines that a terminal of this width shows."""
    module = sys.modules[plan.callback.__module__]
    monkeypatch.setattr(module, "console", lambda: Console(width=width))
    done, _ = planned(*words, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    return lines, [line[at : at + width] for line in lines for at in range(0, len(line), width)]


def test_320_nodes_are_five_jobs_a_check_with_their_node_hours(monkeypatch, tmp_path):
    done, told = planned(
        "--system", "jetstream-iu", "-n", "Stream", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0, done.output
    assert "5 jobs on 320 nodes, at most 53.3 node-hours, 0 GB" in told
    assert str(tmp_path) in done.output.replace("\n", "")


@pytest.mark.parametrize("system", ["testbed", "thishost", "nebula-sriov", "jetstream-iu"])
def test_a_plan_fits_a_screen_and_no_record_is_cut(system, monkeypatch, tmp_path):
    lines, shown = screen("--system", system, width=80, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert len(shown) <= 24, "\n".join(lines)
    assert not [line for line in shown if "│" in line or "…" in line]
    assert re.fullmatch(rf"\d+ checks to run, \d+ not: {system}, \w+", lines[0])
    assert re.search(r"GB written; next: reframe -c checks/ -r --system ", lines[-1])


def test_all_rows_and_all_that_does_not_run_are_an_option(monkeypatch, tmp_path):
    where = {"monkeypatch": monkeypatch, "tmp_path": tmp_path}
    few, _ = screen("--system", "testbed", width=80, **where)
    every, _ = screen("--system", "testbed", "--all", width=80, **where)
    assert any(line.endswith("see --all") for line in few)
    assert not any("--all" in line for line in every)
    rows = rows_of("--system", "testbed", **where)
    for row in rows:
        assert row["check"] in " ".join(" ".join(every).split()), row
    assert every[-1] == few[-1]
    assert "--all" not in every[-1]


def test_what_does_not_run_is_counted_by_reason_with_one_example(monkeypatch, tmp_path):
    lines, _ = screen(
        *("--system", "testbed", "-n", "Gromacs|Lammps"),
        width=80,
        monkeypatch=monkeypatch,
        tmp_path=tmp_path,
    )
    at = lines.index("not run:")
    assert lines[at + 1] == "   2  no environment offers its program: Gromacs on compute (gromacs)"
    assert lines[-1].endswith("nothing would run; next: siteproof sites testbed")


@pytest.mark.parametrize("width", [80, 109, 110, 200])
def test_below_110_columns_rows_are_records(width, monkeypatch, tmp_path):
    options = "--system", "testbed", "-n", "Stream|UdpBurst"
    lines, _ = screen(*options, width=width, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert any("│" in line for line in lines) is (width >= 110)
    assert "7 pairs in 7 rounds" in " ".join(" ".join(lines).split())


def test_programs_read_the_same_rows_as_json_and_as_plain_text(monkeypatch, tmp_path):
    where = {"monkeypatch": monkeypatch, "tmp_path": tmp_path}
    options = "--system", "jetstream-iu", "-n", "Stream|Gromacs"
    done, _ = planned(*options, "--json", **where)
    document = json.loads(done.stdout)
    rows = rows_of(*options, **where)
    columns = [
        *("check", "partition", "mode", "jobs", "nodes", "minutes", "node_hours", "gigabytes"),
        *("node_set", "note", "why_not"),
    ]
    assert list(rows[0]) == columns
    assert [{k: f"{v}" for k, v in row.items()} for row in document["rows"]] == rows
    [stream] = [row for row in document["rows"] if row["check"] == "Stream"]
    assert (stream["jobs"], stream["nodes"], stream["node_set"]) == (5, 320, "iu-c[001-320]")
    assert (document["jobs"], document["nodes"]) == (5, 320)
    assert {row["why_not"] for row in document["rows"] if not row["jobs"]} == {
        "no environment offers its program"
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            "--system magellan -n Hpl -p bare",
            "Hpl needs an environment that offers hpl or hpcc. Allowed: system",
        ),
        (
            "--system magellan:gpu -n TcpBandwidth",
            "TcpBandwidth measures no role of magellan:gpu. Allowed: magellan:network",
        ),
        (
            "--system jetstream-iu -n TcpBandwidth -p io",
            "TcpBandwidth does not run in the environment of -p",
        ),
        ("-n Lnet", "Lnet is measured by sweeps only. 'reframe -c sweeps/ -l' lists"),
    ],
)
def test_why_no_check_is_selected_is_named(options, told, monkeypatch, tmp_path):
    done, _ = planned(*options.split(), monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert f"plan: no check is selected: {told}" in str(done.exception)


def test_a_partition_whose_environments_lack_the_program_is_named_with_it(monkeypatch, tmp_path):
    options = "--system", "magellan:active_storage", "-n", "Hpl"
    _, told = planned(*options, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "no environment offers its program: Hpl on active_storage (hpl or hpcc)" in told


def test_gigabytes_are_those_of_the_points_that_are_left_on_each_partition(monkeypatch, tmp_path):
    """Eight tasks of 1 GiB, four, two and one; on each partition those that it can measure."""
    options = "-c", str(TOP / "sweeps"), "--system", "jetstream-iu", "-n", "IorTasks"
    caps = "-S", "tasks=8", "-S", "size=512MiB", "-S", "repetitions=1"
    rows = rows_of(*options, *caps, monkeypatch=monkeypatch, tmp_path=tmp_path)
    written = {row["check"]: float(row["gigabytes"]) for row in rows if row["jobs"] != "0"}
    half = 2**29 / 1e9
    assert written == {
        "IorTasks 1 volume": pytest.approx(half, abs=0.001),
        "IorTasks 2-8 volume": pytest.approx((2 + 4 + 8) * half, abs=0.001),
    }


def test_nothing_is_made_or_run(monkeypatch, tmp_path):
    planned("--system", "testbed", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_reframe_refuses_is_told_in_one_line(monkeypatch, tmp_path):
    done, _ = planned("--mode", "fast", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "unknown mode 'fast'" in str(done.exception)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (
            "os.kill(os.getpid(), 9)",
            "was ended by signal 9 (Killed) when it used # MiB of memory. If",
        ),
        (
            "os.kill(os.getpid(), 15)",
            "was ended by signal 15 (Terminated) when it used # MiB of memory",
        ),
        ("bytearray(1 << 60)", "ran out of memory when it used # MiB"),
        ("os._exit(4)", "ended with exit code 4 and no message"),
    ],
)
def test_a_reframe_that_was_ended_is_told_with_the_reason(end, told, monkeypatch, tmp_path):
    settings = tmp_path / "settings.py"
    settings.write_text(f"import os\nsite_configuration = {{}}\n{end}\n")
    monkeypatch.setenv("RFM_CONFIG_FILES", str(settings))
    done = CliRunner().invoke(plan, ())
    assert f"plan: reframe {told}" in re.sub(r"[\d.]+(?= MiB)", "#", str(done.exception))


def test_all_mistakes_of_a_site_are_shown_as_lint_shows_them(monkeypatch, tmp_path):
    site = shutil.copytree(SITES / "example", tmp_path / "sites" / "example")
    text = (site / "system.yaml").read_text().replace("[hpl]", "[hlp]").replace(": 12", ": 12.5")
    (site / "system.yaml").write_text(text)
    monkeypatch.setenv("SITEPROOF_SITES", str(site.parent))
    done, _ = planned("--system", "example", monkeypatch=monkeypatch, tmp_path=tmp_path)
    linted = CliRunner().invoke(lint, ["example"]).output.splitlines()[:-1]
    assert len(linted) == 2
    assert [f"siteproof: {line}" for line in str(done.exception).splitlines()] == linted


def test_of_many_mistakes_the_number_and_the_command_that_lists_them_are_shown(
    monkeypatch, tmp_path
):
    site = shutil.copytree(SITES / "example", tmp_path / "sites" / "example")
    (site / "criteria.yaml").write_text("".join(f"E-{n}: {{}}\n" for n in range(30)))
    monkeypatch.setenv("SITEPROOF_SITES", str(site.parent))
    done, _ = planned("--system", "example", monkeypatch=monkeypatch, tmp_path=tmp_path)
    lines = str(done.exception).splitlines()
    assert lines[-1].endswith("'siteproof lint example' lists all 120.")
    assert len(lines) == 21


def test_a_plan_without_a_check_is_a_mistake(monkeypatch, tmp_path):
    done, _ = planned("-n", "Nothing", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "no check is selected" in str(done.exception)


def test_a_check_of_pairs_is_one_job_on_both_sides_of_its_link(monkeypatch, tmp_path):
    done, told = planned(
        "--system", "testbed", "-n", "TcpBandwidth", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0, done.output
    assert "1 job on 8 nodes" in told


def test_the_pairs_of_all_hosts_of_jetstream_take_hours_and_the_plan_says_so(monkeypatch, tmp_path):
    done, told = planned(
        "--system", "jetstream-iu", "-n", "TcpBandwidth", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0, done.output
    [row] = rows_of(
        "--system", "jetstream-iu", "-n", "TcpBandwidth", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    found = re.fullmatch(r"(\d+) pairs in (\d+) rounds \(star\)", row["note"])
    pairs, rounds = map(float, found.groups())
    hours = float(row["node_hours"]) / float(row["nodes"])
    assert pairs == rounds > 300
    turn = 2 * (5 + 1 + 3) + 1 + timetable.AROUND  # maintenance: 2 runs of 5 s, and around them
    assert hours == pytest.approx(rounds * turn / 3600, rel=0.02)
    assert "TcpBandwidth ethernet" in told


def test_fewer_nodes_are_fewer_pairs_and_strangers_to_a_link_skip(monkeypatch, tmp_path):
    options = "--system", "testbed", "-n", "TcpBandwidth", "--mode", "acceptance"
    done, told = planned(
        *options, "-S", "nodes=3", "-S", "trials=3", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert "3 pairs in 3 rounds (star), 3 times over" in " ".join(told.replace("│", "").split())
    assert "1 job on 4 nodes" in told
    done, told = planned(
        *options, "-S", "nodes=node001", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0
    assert (
        "-S nodes: node001 has no pair of this link. Allowed: node[001-008]: "
        "TcpBandwidth lan on compute"
    ) in told
    assert "0 jobs on 0 nodes" in told


def test_nodes_that_no_site_has_are_refused(monkeypatch, tmp_path):
    done, _ = planned(
        "--system",
        "testbed",
        "-n",
        "TcpBandwidth",
        "-S",
        "nodes=node099",
        monkeypatch=monkeypatch,
        tmp_path=tmp_path,
    )
    assert "node099 is not in the inventory" in str(done.exception)


def test_a_check_of_file_systems_names_each(monkeypatch, tmp_path):
    _, told = planned(
        "--system", "testbed", "-n", "BlockStorage", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert "BlockStorage scratch" in told
    assert "BlockStorage memory" in told


def test_nodes_that_may_not_use_a_file_system_cost_nothing_on_it(monkeypatch, tmp_path):
    _, told = planned(
        "--system", "jetstream-iu", "-n", "RandomIo", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert "8 jobs on 486 nodes" in told  # 166 instances on volume, 320 blades on benchmarks


def test_a_variable_of_no_check_is_refused_and_not_left_out(monkeypatch, tmp_path):
    done, _ = planned(
        "--system", "testbed", "-S", "Tcp.pattern=all", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert "-S Tcp.pattern: no check 'Tcp'" in str(done.exception)


def test_a_pair_is_tried_as_often_as_its_criterion_asks_for(monkeypatch, tmp_path):
    options = "--system", "nebula-sriov", "-n", "TcpBandwidth"
    where = {"monkeypatch": monkeypatch, "tmp_path": tmp_path}
    notes = [row["note"] for row in rows_of(*options, "--mode", "acceptance", **where)]
    assert "1 pair in 1 round (star), 10 times over" in notes
    notes = [row["note"] for row in rows_of(*options, "--mode", "quick", **where)]
    assert not any("times over" in note for note in notes)


def test_a_sweep_that_turns_knobs_skips_where_none_may_be_and_the_plan_says_why(
    monkeypatch, tmp_path
):
    done, told = planned(
        "-c",
        str(TOP / "sweeps"),
        "--system",
        "testbed",
        "-n",
        "HostBuffers",
        monkeypatch=monkeypatch,
        tmp_path=tmp_path,
    )
    assert done.exit_code == 0, done.output
    assert (
        "the sweep changes settings of nodes, and compute has no 'tuning: true' in system.yaml: "
        "HostBuffers 2-8 lan on compute"
    ) in told


def test_points_over_a_file_system_of_each_nodes_own_are_left_out_for_that_reason(
    monkeypatch, tmp_path
):
    _, told = planned(
        "-c",
        str(TOP / "sweeps"),
        "--system",
        "testbed",
        "-n",
        "Io500Mdtest",
        monkeypatch=monkeypatch,
        tmp_path=tmp_path,
    )
    assert (
        "there are too few nodes, or they share no file system: Io500Mdtest 2-8 memory on compute "
        "(6 left out)"
    ) in told


def test_a_check_that_the_site_gives_nothing_to_measure_is_not_said_to_change_settings(
    monkeypatch, tmp_path
):
    done, told = planned(
        "--system", "testbed", "-n", "Workload", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0, done.output
    assert "the site states nothing for it to measure: Workload" in told
    assert "settings of nodes" not in told


def test_points_that_need_a_file_system_are_left_out_because_there_is_none(monkeypatch, tmp_path):
    _, told = planned(
        "--system", "nebula-sriov", "-n", "Ior", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert "the site names no file_systems: Ior on" in told
    assert "too few nodes" not in told


SWEEP = ("-c", "sweeps/", "-n", "IorTasks", "--system", "jetstream-iu")


def test_a_capped_sweep_costs_its_own_points_and_names_the_others(monkeypatch, tmp_path):
    caps = ("-S", "tasks=1", "-S", "size=256MiB", "-S", "repetitions=1")
    rows = rows_of(*SWEEP, *caps, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert rows[0]["check"] == "IorTasks 1 volume"
    assert rows[0]["note"] == "1 point, 2 above the caps of -S"
    assert rows[0]["gigabytes"] == "0.268"  # 256 MiB, and not the file's 1 GiB
    assert {row["why_not"] for row in rows[1:]} >= {"no point of it is within the caps"}


@pytest.mark.parametrize(
    ("cap", "told"),
    [
        ("depth=4", "plan: -S depth=4: IorTasks cannot be capped by it. Allowed: api, block,"),
        ("tasks=0", "plan: -S tasks=0: '0' is not a cap. Allowed: 1, 2, 3 …."),
        ("tasks=1x", "plan: -S tasks=1x: '1x' is not a cap. Allowed: 1, 2, 3 …."),
        ("size=64", "plan: -S size=64: a size without its unit. Allowed: a size such as 64MiB"),
        ("api=MPIIO", "plan: -S api=MPIIO: IorTasks has no point within api MPIIO. Allowed: caps"),
    ],
)
def test_a_cap_that_is_none_is_refused_by_the_plan(cap, told, monkeypatch, tmp_path):
    done, _ = planned(*SWEEP, "-S", cap, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert str(done.exception).startswith(told)


@pytest.mark.parametrize(
    "name",
    [
        "knob.nic.{interface}.mtu",
        "HostBuffers.knob.nic.{interface}.mtu",
        "mtu",
        "HostBuffers.tcp_rmem",
    ],
)
def test_a_cap_on_a_knob_is_refused_with_the_axes_that_may_have_one(name, monkeypatch, tmp_path):
    options = "-c", "sweeps/", "-n", "HostBuffers", "--system", "testbed", "-S", f"{name}=1500"
    done, _ = planned(*options, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert str(done.exception) == (
        f"plan: -S {name}: HostBuffers cannot be capped by a knob. "
        "Allowed: buffer, repetitions, streams, tasks, tasks_per_node."
    )


def test_what_is_no_variable_of_a_sweep_is_refused_with_its_axes(monkeypatch, tmp_path):
    done, _ = planned(*SWEEP, "-S", "IorTasks.laiout=x", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "IorTasks has no such variable (did you mean 'layout'?). Allowed: api, " in str(
        done.exception
    )
