"""What a run will cost, told before it starts."""

import re

import pytest
from click.testing import CliRunner
from clone import TOP

from siteproof.checks import timetable
from siteproof.cli.plan import plan


def planned(*words, monkeypatch, tmp_path):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("RFM_CONFIG_FILES", str(TOP / "reframe_settings.py"))
    done = CliRunner().invoke(plan, words)
    return done, " ".join(done.output.split())


def told_row(output):
    """The only row of a table."""
    [row] = [line for line in output.splitlines() if line.startswith("│")]
    return row


def test_320_nodes_are_five_jobs_a_check_with_their_node_hours(monkeypatch, tmp_path):
    done, told = planned(
        "--system", "jetstream-iu", "-n", "Stream", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0, done.output
    assert "5 jobs on 320 nodes, at most 53.3 node-hours, 0 GB" in told
    assert "320 in 5 jobs: iu-c[001-320]" in told_row(done.output)
    assert str(tmp_path) in done.output.replace("\n", "")


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
    line = done.output.splitlines()[0]
    found = re.fullmatch(
        r"TcpBandwidth over ethernet: (\d+) pairs in (\d+) rounds \(star\), "
        r"([\d.]+) h",
        line,
    )
    assert found, line
    pairs, rounds, hours = map(float, found.groups())
    assert pairs == rounds > 300
    turn = 2 * (5 + 1 + 3) + 1 + timetable.AROUND  # maintenance: 2 runs of 5 s, and around them
    assert hours == pytest.approx(rounds * turn / 3600, rel=0.01)
    assert "TcpBandwidth ethernet" in told


def test_fewer_nodes_are_fewer_pairs_and_strangers_to_a_link_skip(monkeypatch, tmp_path):
    options = "--system", "testbed", "-n", "TcpBandwidth", "--mode", "acceptance"
    done, told = planned(
        *options, "-S", "nodes=3", "-S", "trials=3", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert "TcpBandwidth over lan: 3 pairs in 3 rounds (star), 3 times over, 0.3 h" in told
    assert "1 job on 4 nodes" in told
    done, told = planned(
        *options, "-S", "nodes=node001", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0
    assert (
        "TcpBandwidth over lan: SKIP, -S nodes: node001 has no pair of this link. "
        "Allowed: node[001-008]."
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
    told = planned(*options, "--mode", "acceptance", monkeypatch=monkeypatch, tmp_path=tmp_path)[1]
    assert "TcpBandwidth over sriov: 1 pair in 1 round (star), 10 times over" in told
    told = planned(*options, "--mode", "quick", monkeypatch=monkeypatch, tmp_path=tmp_path)[1]
    assert "times over" not in told


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
        "HostBuffers 2-8 lan on testbed:compute: SKIP, the sweep changes settings of nodes, and "
        "compute has no 'tuning: true' in system.yaml"
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
        "Io500Mdtest 2-8 memory on testbed:compute: 0 points, 6 left out, because there are "
        "too few nodes, or they share no file system"
    ) in told


def test_a_check_that_the_site_gives_nothing_to_measure_is_not_said_to_change_settings(
    monkeypatch, tmp_path
):
    done, told = planned(
        "--system", "testbed", "-n", "Workload", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert done.exit_code == 0, done.output
    assert "compute: SKIP, the site states nothing for it to measure" in told
    assert "settings of nodes" not in told


def test_points_that_need_a_file_system_are_left_out_because_there_is_none(monkeypatch, tmp_path):
    _, told = planned(
        "--system", "nebula-sriov", "-n", "Ior", monkeypatch=monkeypatch, tmp_path=tmp_path
    )
    assert "left out, because the site names no file_systems" in told
    assert "too few nodes" not in told


SWEEP = ("-c", "sweeps/", "-n", "IorTasks")


def test_a_capped_sweep_costs_its_own_points_and_names_the_others(monkeypatch, tmp_path):
    caps = ("-S", "tasks=8", "-S", "size=256MiB", "-S", "repetitions=1")
    done, told = planned(*SWEEP, *caps, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert done.exit_code == 0, done.output
    assert "IorTasks 1 temporary on thishost:node: 1 point, 2 above the caps of -S" in told
    assert "node: SKIP, no point of it is within the caps, 12 above the caps of -S" in told
    assert "0.27 GB written" in told  # 256 MiB, and not the file's 1 GiB


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
