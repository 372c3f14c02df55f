"""Sweeps by the real ReFrame on one machine without Slurm; and resuming them."""

import json
import shutil

import pytest
from clone import TOP, reason, wait_for

from siteproof.errors import UserError
from siteproof.record import samples
from siteproof.record.manifest import Point
from siteproof.record.samples import Header, Sample
from siteproof.sweeps import caps, reading
from siteproof.sweeps.reading import repeated

DEPTH = """\
description: Requests at a time
tool: fio
axes: {{depth: [{depths}], tasks: [{tasks}]}}
fixed: {{block: 4 KiB, pattern: randread}}
against: depth
point_limit: {limit}
budget: {budget} node-hours
"""
FAST = ("-S", "size=8", "--mode", "quick", "-n", "^MyDepth")


@pytest.fixture
def swept(world):
    """A world with a sweep of its own, and a fio that is the real one or a fault."""
    if not shutil.which("fio"):
        pytest.skip("SWEEPS NOT TESTED: fio is not installed")
    world.own = world.folder / "own"
    world.own.mkdir()
    write(world)
    return world


def write(world, depths="1, 2", tasks="1", limit="30s", budget="100", name="my_depth"):
    text = DEPTH.format(depths=depths, tasks=tasks, limit=limit, budget=budget)
    (world.own / f"{name}.yaml").write_text(text)


def sweep(world, *words):
    return world.run("reframe", "-c", "sweeps/", *words, SITEPROOF_SWEEPS=str(world.own))


def points(world):
    """Status of each depth, by session."""
    found = {}
    for path in world.samples():
        for line in path.read_text().splitlines()[1:]:
            record = json.loads(line)
            found.setdefault(path.name.partition(".")[0], {})[record["dims"]["depth"]] = record.get(
                "status", "ok"
            )
    return list(found.values())


@pytest.mark.tool("ReFrame", "fio")
def test_a_sweep_is_measured_point_by_point_and_resumed_where_it_was_left(swept):
    done = sweep(swept, "-r", *FAST)
    assert done.code == 0, done
    assert "MyDepth: 2 points in 1 job, on 1 node at most" in done.out
    assert points(swept) == [{"1": "ok", "2": "ok"}]
    header = json.loads(swept.samples()[0].read_text().splitlines()[0])
    assert header["check"] == "FioSweep"
    assert header["conditions"]["sweep"] == "my_depth"
    assert header["conditions"]["file_system"] == "temporary"
    done = sweep(swept, "-r", *FAST, "-S", "resume=last")
    assert "SKIP" in done.out and "no point is missing in session" in done.out
    assert (
        sweep(swept, "-r", *FAST, "-S", "resume=none")
        .refused()
        .startswith(
            "siteproof: -S resume=none: MyDepth has no samples of session none. Allowed: 20"
        )
    )
    write(swept, depths="1, 2, 4")
    told = sweep(swept, "-r", *FAST, "-S", "resume=last").refused()
    assert "that session has my_depth.yaml of hash " in told


def test_a_lost_session_keeps_its_points_and_only_the_rest_is_measured(swept):
    swept.fake("fio", 'case "$*" in *iodepth=2*) sleep 987 ;; esac; exec /usr/bin/fio "$@"')
    process = swept.start("reframe", "-c", "sweeps/", "-r", *FAST, SITEPROOF_SWEEPS=str(swept.own))
    stages = swept.data / "stage"
    wait_for(
        lambda: (
            [*stages.glob("**/raw/00001")]
            and [*stages.glob("**/raw/.00002.1/run.1")]
            or [*stages.glob("**/raw/.00002.1/run.1")]
        )
    )
    process.kill()
    process.communicate()
    swept.end_processes()
    (swept.bin / "fio").unlink()
    done = sweep(swept, "-r", *FAST, "-S", "resume=last")
    assert done.code == 0, done
    assert "of a lost session: " in done.err
    first, second = points(swept)
    assert first["2"] == "interrupted"
    assert second == dict.fromkeys((d for d, status in first.items() if status != "ok"), "ok")
    header = json.loads(swept.samples()[-1].read_text().splitlines()[0])
    assert header["provenance"]["resumes"] == swept.samples()[0].name.partition(".")[0]


def test_a_failed_point_is_named_and_tried_again_only_if_asked_for(swept):
    swept.fake("fio", 'case "$*" in *iodepth=2*) exit 9 ;; esac; exec /usr/bin/fio "$@"')
    done = sweep(swept, "-r", *FAST)
    assert done.code == 1
    assert "1 of 2 points measured. " in reason(done)
    assert "depth=2: fio verify exited with 9" in reason(done)
    assert "no point is missing" in sweep(swept, "-r", *FAST, "-S", "resume=last").out
    (swept.bin / "fio").unlink()
    done = sweep(swept, "-r", *FAST, "-S", "resume=last", "-S", "again=yes")
    assert done.code == 0, done
    assert points(swept)[-1] == {"2": "ok"}


def test_points_of_more_nodes_than_there_are_are_left_out_by_name(swept):
    write(swept, tasks="1, 2", depths="1")
    done = sweep(swept, "-r", *FAST)
    assert "; 1 point left out, because there are too few nodes" in done.out
    assert "every point needs at least 2 nodes, and there are 1" in done.out
    assert points(swept) == [{"1": "ok"}]


def test_what_costs_more_than_its_budget_is_refused_before_anything_runs(swept):
    write(swept, budget="0.01", limit="1h")
    assert "node-hours, the budget is 0.01" in sweep(swept, "-r", *FAST).refused()
    assert "MyDepth" in sweep(swept, "-l").out  # but it is listed


MISTAKES = [
    ("bad", "description: x\ntool: fioo\n", "bad.yaml:2: unknown value 'fioo'"),
    ("Bad", DEPTH.format(depths=1, tasks=1, limit="1m", budget=1), "is not a name of a sweep"),
    ("bad", "[", "bad.yaml:2: bad YAML"),
]


def test_a_mistake_in_a_sweep_file_ends_a_run_with_exit_2(swept):
    for name, text, told in MISTAKES:
        (swept.own / f"{name}.yaml").write_text(text)
        done = sweep(swept, "-r", "-n", "MyDepth")
        (swept.own / f"{name}.yaml").unlink()
        assert done.code == 2, done
        assert told in done.err
        assert "Traceback" not in done.said


@pytest.mark.tool("ReFrame", "fio")
def test_a_capped_run_measures_its_own_points_names_the_others_and_keeps_the_cap(swept):
    write(swept, depths="1, 2, 4, 8")
    capped = (*FAST, "-S", "depth=2")
    done = sweep(swept, "-r", *capped)
    assert done.code == 0, done
    assert "MyDepth: 2 points in 1 job, on 1 node at most" in done.out
    assert "; 2 points above the caps of -S, not measured" in done.out
    assert points(swept) == [{"1": "ok", "2": "ok"}]
    header = json.loads(swept.samples()[0].read_text().splitlines()[0])
    assert header["conditions"]["cap"] == "depth=2"
    assert header["provenance"]["points"] == "2"
    shown = swept.siteproof("sweep", "my_depth", SITEPROOF_SWEEPS=str(swept.own))
    assert shown.code == 0, shown
    told = " ".join(shown.out.split())
    assert "2 of 2 points" in told
    assert (
        "a capped run of my_depth (depth 2): 2 of 4 points not measured, so it is not the whole "
        "sweep" in told
    )
    assert "no point is missing in session" in sweep(swept, "-r", *capped, "-S", "resume=last").out
    refused = sweep(swept, "-r", *FAST, "-S", "resume=last").refused()
    assert "that session has caps depth=2, this run has none" in refused
    assert "FioDepth" not in refused


def test_a_cap_that_is_no_axis_of_the_sweep_is_refused_before_anything_runs(swept):
    assert (
        "-S transfer=4KiB: MyDepth cannot be capped by it. Allowed: block, depth, pattern"
        in sweep(swept, "-r", *FAST, "-S", "transfer=4KiB").refused()
    )
    assert not swept.samples()


def test_a_size_for_one_tool_is_no_mistake_of_a_sweep_that_does_not_run(swept):
    told = sweep(swept, "-r", "--mode", "quick", "-n", "^IorTransfer", "-S", "size=1KiB").refused()
    assert "-S block=1024: IorTransfer has no point within block 1 KiB" in told
    told = sweep(swept, "-r", "--mode", "quick", "-n", "^MyDepth", "-S", "size=1KiB").refused()
    assert "MyDepth.size: '1KiB' is not a size in MiB. Allowed: 64, 64MiB, 1GiB." in told


def test_words_that_mean_nothing_are_refused(swept):
    assert (
        "again: unknown value 'maybe'. Allowed: yes, no"
        in sweep(swept, "-r", *FAST, "-S", "again=maybe").refused()
    )


def test_a_program_is_refused_by_a_sweep_that_runs_and_by_no_other(swept):
    which = ("--mode", "quick", "-n", "^MpiMessages")
    told = sweep(swept, "-r", *which, "-S", "program=ls").refused()
    assert "-S MpiMessages.program: unknown value 'ls'. Allowed: osu, imb, mpi4py" in told
    known = sweep(swept, "-l", *which, "-S", "program=imb")  # which MpiCollectives cannot use
    assert known.code == 0, known


def test_a_run_of_the_checks_runs_no_sweep(world):
    listed = world.reframe("-l").out
    assert "Stream" in listed and "FioDepth" not in listed and "FioSweep" not in listed


def test_every_shipped_sweep_is_listed(world):
    done = world.run(
        "reframe",
        "-c",
        "sweeps/",
        "-l",
        "--system",
        "testbed",
        SITEPROOF_SITES=str(TOP / "site-config"),
        SITEPROOF_SYSTEM="UNSET",
    )
    assert done.code == 0, done
    names = {line.split()[1] for line in done.out.splitlines() if line.startswith("- ")}
    assert names == {file.test for file in reading.load().values()}


def test_a_plan_tells_nodes_and_hours_of_each_size_class(world):
    done = world.siteproof(
        "plan",
        "-c",
        "sweeps/",
        "--system",
        "jetstream-iu",
        "-n",
        "IorTasks",
        SITEPROOF_SITES=str(TOP / "site-config"),
        SITEPROOF_SYSTEM="UNSET",
    )
    assert done.code == 0, done
    assert "IorTasks 65-512" in " ".join(done.out.split())
    assert "node-hours" in done.out


# ---- what is missing in a session

HEAD = Header(
    "s1",
    "here",
    "node",
    "system",
    "FioSweep",
    "7",
    "2026-11-21T12:00:00+00:00",
    conditions={"sweep": "x", "sweep_hash": "h"},
)


def sample(depth, status="ok", trial=1, head=HEAD, **dims):
    return Sample(
        head,
        "",
        "FioSweep.rate",
        status=status,
        trial=trial,
        dims={"tasks": "1", "depth": str(depth), **dims},
    )


def missing(found, *, again=False, where=None, depths=(1, 2, 3), there=("node",)):
    each = repeated([{"tasks": "1", "depth": str(d)} for d in depths], ["tasks", "depth"], 2)
    left = caps.Resumed("s1", found).missing(
        dict(enumerate(each, 1)), where or {}, *there, again=again
    )
    return [(p.values["depth"], p.trial) for p in left.values()]


def test_what_has_a_figure_is_not_missing_whatever_more_its_sample_says():
    found = [sample(d, trial=t, phase="read") for d in (1, 2) for t in (1, 2)]
    assert missing(found) == [("3", 1), ("3", 2)]


LEFT = {
    ("interrupted", False): [("2", 1)],
    ("node_lost", False): [("2", 1)],
    ("timeout", False): [],
    ("invalid", False): [],
    ("tool_missing", False): [],
    ("timeout", True): [("2", 1)],
}


def test_only_what_says_nothing_of_the_point_is_missing_by_itself():
    found = [sample(d, trial=t) for d in (1, 2, 3) for t in (1, 2) if (d, t) != (2, 1)]
    for (status, again), left in LEFT.items():
        assert missing([*found, sample(2, status)], again=again) == left, (status, again)


def test_a_figure_on_another_file_system_is_none_of_this_one():
    found = [sample(d, trial=t) for d in (1, 2, 3) for t in (1, 2)]
    assert len(missing(found, where={"file_system": "scratch"})) == 6


def test_a_figure_of_another_partition_or_environment_is_none_of_this_one():
    found = [sample(d, trial=t) for d in (1, 2, 3) for t in (1, 2)]
    assert missing(found, there=("node", "system")) == []
    for there in (("compute",), ("node", "io")):
        assert len(missing(found, there=there)) == 6, there


def test_a_point_with_fewer_axes_is_not_taken_for_one_with_more():
    each = {
        1: Point({"tasks": "1"}, ("tasks", "block")),
        2: Point({"tasks": "1", "block": "8"}, ("tasks", "block")),
    }
    both = Sample(HEAD, "", "FioSweep.rate", dims={"tasks": "1", "block": "8"})
    assert caps.settled(each, [both]) == {2}
    assert caps.settled(each, [Sample(HEAD, "", "FioSweep.*", dims={"tasks": "1"})]) == {1}


def test_a_sweep_that_was_never_measured_cannot_be_resumed(tmp_path):
    mine = reading.load()["fio_depth"]
    with pytest.raises(UserError, match="FioDepth has no samples of session last"):
        caps.find(tmp_path, "here", mine, "last", "quick")


def test_points_of_another_mode_are_no_part_of_this_run(tmp_path):
    mine = reading.load()["fio_depth"]
    head = Header(
        "s1",
        "here",
        "node",
        "system",
        "FioSweep",
        "7",
        "2026-11-21T12:00:00+00:00",
        mode="quick",
        conditions={"sweep": mine.name, "sweep_hash": mine.hash},
    )
    samples.write(tmp_path / "perflogs", head, [sample(1, "timeout", head=head)])
    assert len(caps.find(tmp_path, "here", mine, "last", "quick").samples) == 1
    with pytest.raises(UserError, match="that session has mode quick, this run has acceptance"):
        caps.find(tmp_path, "here", mine, "s1", "acceptance")
