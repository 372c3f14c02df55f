"""The real walker over real points on this machine, and what becomes of each of them."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from clone import PATIENCE, TOP, wait_for

from siteproof.collect import stages
from siteproof.record import samples, series
from siteproof.record.manifest import Manifest
from siteproof.sweeps.reading import repeated

CHECKS = TOP / "siteproof/checks/on_node"
DD = """echo program=dd >>facts
run -- launch dd if=/dev/zero of=/dev/null bs=1024 count=$POINT_DEPTH"""


class Walk:
    """A stage directory as SweepCheck makes it, for points of one node."""

    def __init__(
        self, folder, script=DD, depths=(1, 2, 3), limit=2 * PATIENCE, room=9 * PATIENCE, knobs=None
    ):
        self.stage, self.perflogs = folder / "stage", folder / "perflogs"
        (self.stage / "raw").mkdir(parents=True)
        for name in ("sweep.sh", "launch.sh", "mpi.sh", "account.sh"):
            shutil.copy(CHECKS / name, self.stage)
        (self.stage / "measure.sh").write_text(script)
        each = repeated(
            [
                {"tasks": "1", "tasks_per_node": "1", "depth": str(d), "api": "POSIX"}
                for d in depths
            ],
            ["tasks", "tasks_per_node", "depth"],
            1,
        )
        self.points = dict(enumerate(each, 1))
        combination = (knobs or {}).get
        self.write(
            "points",
            "".join(p.line(n, limit, combination(n, 0)) + "\n" for n, p in self.points.items()),
        )
        self.set(
            SITEPROOF_NODE="here",
            SITEPROOF_ATTEMPT=1,
            SITEPROOF_LIMIT=room,
            JOB_NODES="here",
            SWEEP_SRUN="",
            SWEEP_PATIENCE=0,
            LAUNCH="",
        )
        self.manifest = Manifest(
            session="20261121T120000Z-00001ab",
            system="here",
            partition="node",
            environment="system",
            check="Probe",
            mode="quick",
            expected="here",
            metrics=["rate"],
            parsers={"dd": "dd"},
            points=self.points,
            jobs=["7"],
            started=time.time(),
            conditions={"sweep": "probe", "sweep_hash": "00"},
        )
        self.manifest.save(self.stage)

    def write(self, name, text):
        (self.stage / name).write_text(text)

    def set(self, **values):
        self.write("settings", "".join(f"{k}='{v}'; export {k}\n" for k, v in values.items()))

    def start(self, **env):
        return subprocess.Popen(
            ["sh", "./sweep.sh"],
            cwd=self.stage,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, **env):
        process = self.start(**env)
        return process.wait(PATIENCE), process.stdout.read()

    def there(self):
        return sorted(path.name for path in (self.stage / "raw").glob("[!.]*"))

    def collect(self, ended="COMPLETED"):
        """Each point's depth with its status, and why."""
        stages.collect(self.stage, self.perflogs, ended=ended)
        self.samples = [s for f in samples.files(self.perflogs, "here") for s in samples.read(f)]
        return {s.dims["depth"]: (s.status, s.why) for s in self.samples}


def test_each_point_is_a_sample_with_its_axes_and_conditions(tmp_path):
    walk = Walk(tmp_path)
    assert walk.run() == (0, "")
    assert walk.there() == ["00001", "00002", "00003"]
    assert walk.collect() == dict.fromkeys("123", ("ok", ""))
    first = walk.samples[0]
    assert (first.node, first.metric) == ("", "Probe.rate")
    assert first.dims == {"tasks": "1", "tasks_per_node": "1", "depth": "1"}
    assert first.conditions["api"] == "POSIX"
    assert first.conditions["sweep"] == "probe"
    assert first.header.expected == ""
    before = (walk.perflogs / "here" / "node").glob("*").__next__().read_bytes()
    walk.collect()
    assert (walk.perflogs / "here" / "node").glob("*").__next__().read_bytes() == before


def test_a_point_knows_its_own_values_and_nothing_of_the_one_before(tmp_path):
    walk = Walk(tmp_path, 'env | grep "^POINT_\\|^TASKS\\|^NODE" | sort >env')
    lines = (walk.stage / "points").read_text().replace("API=POSIX", "", 1)
    walk.write("points", lines)
    walk.run()
    first, second = ((walk.stage / "raw" / n / "env").read_text() for n in ("00001", "00002"))
    assert "POINT_API" not in first
    assert "POINT_API=POSIX\n" in second
    assert "POINT_DEPTH=2\n" in second
    assert "NODES=here\n" in second and "NODE_COUNT=1\n" in second and "TASKS=1\n" in second


def test_a_hung_point_costs_itself_and_leaves_no_rank_behind(tmp_path):
    hang = '[ "$POINT_DEPTH" != 2 ] || run -- launch sh -c "trap : TERM; sleep 987 & wait; wait"\n'
    walk = Walk(tmp_path, hang + DD, limit=1)
    assert walk.run()[0] == 0
    told = walk.collect()
    assert (told["1"], told["3"]) == (("ok", ""), ("ok", ""))
    assert told["2"][0] == "timeout"
    assert not alive(walk.stage)


def alive(stage):
    """Processes of a stage's points that still live."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"SITEPROOF_POINT={stage}".encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


FAILED = {  # by depth: what the point does, its status and why
    "2": ("echo out of luck >&2; exit 3", "generic", "Probe exited with 3: out of luck"),
    "3": ("echo dd is not installed >&2; exit 127", "tool_missing", "dd is not installed"),
    "4": ("echo invalid=wrong data >>facts", "invalid", "wrong data"),
    "5": (
        "echo program=dd >>facts",
        "parse",
        "dd: no summary of one copy; it printed nothing; needed: "
        "GNU dd, with its summary on stderr in the locale C",
    ),
    "6": ("exit 0", "parse", "measured by '', which no parser of Probe reads"),
}


def test_a_failed_point_says_why_and_the_walk_goes_on(tmp_path):
    each = "".join(f"{depth}) {script}; exit ;;\n" for depth, (script, *_) in FAILED.items())
    walk = Walk(tmp_path, f'case "$POINT_DEPTH" in\n{each}esac\n{DD}', depths=range(1, 8))
    walk.run()
    whys = {depth: (status, why) for depth, (_, status, why) in FAILED.items()}
    assert walk.collect() == {"1": ("ok", ""), **whys, "7": ("ok", "")}


def test_what_is_measured_is_not_measured_again(tmp_path):
    walk = Walk(tmp_path)
    walk.run()
    old = {path: path.stat().st_mtime_ns for path in walk.stage.glob("raw/0*/meta")}
    shutil.rmtree(walk.stage / "raw" / "00002")
    walk.run()
    assert len(walk.there()) == 3
    assert {p for p in old if p.stat().st_mtime_ns != old[p]} == {walk.stage / "raw/00002/meta"}


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGKILL]])
def test_a_walk_that_is_ended_keeps_whole_points_and_no_half_ones(tmp_path, signals):
    walk = Walk(tmp_path, '[ "$POINT_DEPTH" != 2 ] || sleep 987\n' + DD)
    process = walk.start()
    wait_for(lambda: (walk.stage / "raw" / ".00002.1" / "meta").exists())
    for number in signals:
        os.killpg(process.pid, number)
    process.wait(PATIENCE)
    assert walk.there() == ["00001"]
    told = walk.collect("lost with its session")
    assert told["1"][0] == "ok"
    assert told["2"] == told["3"] == ("interrupted", "left no result (job lost with its session)")
    if signals != [signal.SIGKILL]:
        wait_for(lambda: not alive(walk.stage))
    else:
        for pid in alive(walk.stage):
            os.kill(int(pid), signal.SIGKILL)


SLOW_FORK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pid_t fork(void) /* in a point's folder the first child stands still for a second */
{
    pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    pid_t pid = real();
    char here[4096];
    struct timespec left = {1, 0};
    if (pid == 0 && getcwd(here, sizeof here) && strstr(here, "/raw/.00002.")
        && open(getenv("SLOW_FORK"), O_CREAT | O_EXCL, 0600) >= 0)
        while (nanosleep(&left, &left))
            ;
    return pid;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="NOT TESTED: no C compiler")
def test_a_point_that_a_busy_node_is_slow_to_fork_is_ended_with_its_walk(tmp_path):
    script = 'until [ "$POINT_DEPTH" != 2 ]; do sleep 1; done\n' + DD
    walk = Walk(tmp_path, script)
    (tmp_path / "fork.c").write_text(SLOW_FORK)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", "fork.so", "fork.c", "-ldl"], cwd=tmp_path, check=True
    )
    begun = tmp_path / "begun"
    process = walk.start(LD_PRELOAD=str(tmp_path / "fork.so"), SLOW_FORK=str(begun))
    wait_for(begun.exists)
    process.terminate()
    process.wait(PATIENCE)
    assert walk.there() == ["00001"]
    assert not alive(walk.stage)


def test_no_point_begins_that_the_jobs_limit_leaves_no_room_for(tmp_path):
    walk = Walk(tmp_path, "sleep 2\n" + DD, limit=4, room=5)
    code, said = walk.run()
    assert walk.there() == ["00001"]
    assert "00002 and those after it" in said
    assert walk.collect()["2"] == ("interrupted", "the walk ended before this point")
    assert walk.collect("TIMEOUT")["2"] == (
        "interrupted",
        "the job reached its time limit before this point",
    )


def test_points_that_a_lost_node_leaves_out_are_lost_and_named(tmp_path):
    walk = Walk(tmp_path, depths=(1,))
    walk.manifest.expected, walk.manifest.lost = "n[1-2]", {"n2": "down: power loss"}
    walk.manifest.points[1] = repeated(
        [{"tasks": "2", "tasks_per_node": "1", "depth": "1"}], ["tasks", "depth"], 1
    )[0]
    walk.manifest.save(walk.stage)
    assert walk.collect()["1"] == ("node_lost", "needs 2 nodes; n2: down: power loss")


def test_samples_grow_while_the_walk_goes_on(tmp_path):
    walk = Walk(tmp_path)
    walk.run()
    later = walk.stage / "raw" / "00003"
    later.rename(walk.stage / "raw" / ".00003")
    known = {}
    assert stages.collect_so_far(walk.stage, walk.perflogs, walk.manifest, known) == 2
    (walk.stage / "raw" / ".00003").rename(later)
    assert stages.collect_so_far(walk.stage, walk.perflogs, walk.manifest, known) == 3
    early = next((walk.perflogs / "here" / "node").iterdir()).read_text()
    assert len(early.splitlines()) == 4
    assert not (walk.stage / "siteproof-collected").exists()
    walk.collect()
    assert len(walk.samples) == 3


KNOB = """
knobs_set() { echo "set $*" >>log; [ "$1" != 2 ] || { echo "no such knob" >&2; return 1; }; }
knobs_facts() { echo knob.sysctl.a.b=1; }
knobs_still_set() { :; }
knobs_restore() { echo restore >>log; }
"""


def test_knobs_are_set_before_their_points_and_restored_however_the_walk_ends(tmp_path):
    walk = Walk(tmp_path, knobs={1: 1, 2: 1, 3: 2})
    walk.write("knob.sh", KNOB)
    walk.run()
    log = (walk.stage / "log").read_text().splitlines()
    assert log[0] == "set 1 here"
    assert log[-1] == "restore"
    told = walk.collect()
    assert told["3"] == ("invalid", "no such knob")
    assert {s.conditions.get("knob.sysctl.a.b") for s in walk.samples if s.status == "ok"} == {"1"}


def test_a_point_that_does_not_say_what_was_read_back_is_invalid(tmp_path):
    walk = Walk(tmp_path, depths=(1, 2), knobs={1: 1, 2: 1})
    walk.write("knob.sh", KNOB)
    for number, name in ((1, "knob.sysctl.a.b"), (2, "knob.sysctl.c.d")):
        values = {**walk.points[number].values, name: "1"}
        walk.manifest.points[number] = repeated([values], [*values], 1)[0]
    walk.manifest.save(walk.stage)
    walk.run()
    assert walk.collect() == {
        "1": ("ok", ""),
        "2": ("invalid", "knob.sysctl.c.d was not read back"),
    }


def test_knobs_are_restored_when_the_walk_is_ended(tmp_path):
    walk = Walk(tmp_path, "sleep 987", knobs={1: 1, 2: 1, 3: 1})
    walk.write("knob.sh", KNOB)
    process = walk.start()
    wait_for(lambda: (walk.stage / "raw" / ".00001.1" / "meta").exists())
    process.terminate()
    process.wait(PATIENCE)
    assert (walk.stage / "log").read_text().splitlines() == ["set 1 here", "restore"]


def test_several_ranks_start_with_mpirun(tmp_path):
    if not shutil.which("mpirun"):
        pytest.skip("MPIRUN NOT TESTED: it is not installed")
    walk = Walk(tmp_path, "launch sh -c 'echo rank $OMPI_COMM_WORLD_RANK'", depths=(1,))
    line = (walk.stage / "points").read_text().replace(" 1 1 1 0", " 1 3 3 0", 1)
    walk.write("points", line)
    walk.run()
    said = (walk.stage / "raw" / "00001" / "stdout").read_text()
    assert sorted(said.split("\n")[:-1]) == ["rank 0", "rank 1", "rank 2"]


def launched(folder, script, **variables):
    """What the walker's launch asks srun for: its words, and its host file."""
    folder.mkdir(exist_ok=True)
    (folder / "srun").write_text(
        '#!/bin/sh\nfor w; do case $w in --nodelist=*) cat "${w#*=}" ;; esac; done\necho "$@" >&2\n'
    )
    (folder / "srun").chmod(0o755)
    known = {
        "SWEEP_SRUN": "yes",
        "SWEEP_STAGE": str(folder),
        "POINT_FOLDER": str(folder),
        "LAUNCH": "",
        "SITEPROOF_MPI": "",
        "SITEPROOF_JOB": "7",
        "POINT_NUMBER": "00001",
        "NODES": "n1 n2 n3",
        "NODE_COUNT": "3",
        "TASKS": "5",
        "TASKS_PER_NODE": "2",
    }
    return subprocess.run(
        ["sh", "-c", f'. "$1/launch.sh"; {script}', "sh", CHECKS],
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **known, **variables},
    )


@pytest.mark.parametrize(
    ("script", "hosts"),
    [
        ("launch true", "n1 n1 n2 n2 n3"),
        ("reordered=1 launch true", "n2 n2 n3 n3 n1"),
        ("launch_each true", "n1 n2 n3"),
    ],
)
def test_ranks_lie_in_blocks_on_the_points_nodes(tmp_path, script, hosts):
    done = launched(tmp_path, script)
    assert done.stdout.split() == hosts.split()
    assert f" --ntasks={len(hosts.split())} " in done.stderr
    assert "--nodes=" not in done.stderr  # which srun refuses from 24.11 on
    assert "--overlap" in done.stderr and "--jobid=7" in done.stderr


def test_options_of_the_site_reach_srun_and_those_of_the_step_hold(tmp_path):
    """Quoted as `settings` has them: nothing in them is a command."""
    (tmp_path / "words").write_text("")
    given = f"--mem-bind=local --job-name=theirs '--comment=a b; echo no >{tmp_path}/words'"
    done = launched(tmp_path, "launch true", SITEPROOF_SRUN_OPTIONS=given)
    words = done.stderr.split()
    assert "--mem-bind=local --job-name=theirs --comment=a b; echo no" in done.stderr
    assert [w for w in words if w.startswith("--job-name")][-1] == "--job-name=siteproof-00001"
    assert words[-1] == "true"
    assert (tmp_path / "words").read_text() == ""


def test_a_manifest_keeps_its_points(tmp_path):
    walk = Walk(tmp_path)
    kept = json.loads((walk.stage / "siteproof-job.json").read_text())["points"]
    assert kept["2"]["values"]["depth"] == "2"


CRASH = """[ "$POINT_DEPTH" != 2 ] || [ -e "$1/crashed" ] || {
    : >"$1/crashed"
    run phase=write -- sh -c 'echo "srun: error: node002: task 1: Segmentation fault" >&2; exit 139'
    exit 139
}
"""


def test_a_point_whose_ranks_crashed_is_measured_once_more_and_says_so(tmp_path):
    walk = Walk(tmp_path, CRASH + DD)
    assert walk.run() == (0, "")
    assert walk.collect() == dict.fromkeys("123", ("ok", ""))
    labels = {s.dims["depth"]: s.conditions.get("repeated_warning", "") for s in walk.samples}
    assert labels["1"] == labels["3"] == ""
    assert "node002: task 1: Segmentation fault" in labels["2"]
    assert "second attempt" in labels["2"]
    (first,) = (walk.stage / "raw").glob(".00002.*.crashed")  # what the crash left stays
    assert "Segmentation fault" in (first / "run.1/stderr").read_text()


def test_a_repeated_point_is_in_the_series_of_the_others(tmp_path):
    walk = Walk(tmp_path, CRASH + DD)
    walk.run()
    walk.collect()
    first, second, _ = (series.deciding(s.conditions) for s in walk.samples)
    assert first.keys() == second.keys()


def test_a_point_that_crashes_twice_is_killed_and_both_are_counted(tmp_path):
    walk = Walk(tmp_path, CRASH.replace('[ -e "$1/crashed" ]', "false") + DD)
    walk.run()
    status, why = walk.collect()["2"]
    assert status == "killed"
    assert "signal 11 (SIGSEGV)" in why
    assert "the first attempt crashed" in why


@pytest.mark.parametrize(
    "end",
    [
        "exit 1",  # an error is an answer
        'echo "slurmstepd-node002: error: Detected 1 oom_kill event in StepId=7.0" >&2; exit 139',
    ],
)
def test_what_would_fail_once_more_is_not_repeated(tmp_path, end):
    script = f'echo attempt >>"$1/attempts.$POINT_DEPTH"; [ "$POINT_DEPTH" != 2 ] || {{ {end}; }}\n'
    walk = Walk(tmp_path, script + DD)
    walk.run()
    assert walk.collect()["2"][0] != "ok"
    assert (walk.stage / "attempts.2").read_text() == "attempt\n"


def test_a_crash_is_not_repeated_beyond_the_time_limit_of_the_job(tmp_path):
    walk = Walk(tmp_path, CRASH + DD, depths=(2,), limit=30, room=31)
    slow = (walk.stage / "measure.sh").read_text().replace("exit 139\n}", "sleep 2; exit 139\n}")
    walk.write("measure.sh", slow)
    _, said = walk.run()
    assert "leaves no room to repeat" in said
    assert walk.collect()["2"][0] == "killed"
