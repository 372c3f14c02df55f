"""The suite on the Slurm test bed: ReFrame on its login node, and answers from what it has left.

What only judges the samples runs in the tests' own process; what asks Slurm runs on the login node.
"""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from clone import PATIENCE, TOP, World
from testbed_fixture import until

from siteproof.record.sessions import Sessions

RECORDED = TOP / "tests" / "unit" / "parsers" / "outputs" / "likwid" / "5.2.2-copy_and_stream.txt"
NODES = [f"node{number:03}" for number in range(1, 9)]
PARAMETERS = "HostParameters.mismatches"
# ReFrame looks at its jobs this often: one of a site every ten seconds, as it burdens slurmctld.
OFTEN = "RFM_POLL_RATE_MAX=4 RFM_POLL_RATE_MIN=4"
# likwid-bench as it was recorded, and a line before it that may break it; $2 is copy or stream.
HONEST = f"[ $2 = copy ] || exit 0\ncat '{RECORDED}'"


class Suite:
    """The suite on a test bed, with a data folder and a PATH of its own.

    system: its site. sites: a folder of sites of the test's own, or None for those of the clone.
    polls: variables that say how often ReFrame looks at a job; empty: as it does on a site.
    """

    system, sites = "testbed", None
    polls = OFTEN

    def __init__(self, testbed, folder):
        self.testbed, self.folder = testbed, folder
        self.programs, self.data = folder / "programs", folder / "data"
        for made in (self.programs, self.data):
            made.mkdir(parents=True, exist_ok=True)

    def own_site(self):
        """A copy of the site's folder, that the test may edit."""
        self.sites = self.folder / "sites"
        folder = self.sites / self.system
        if not folder.exists():
            shutil.copytree(TOP / "site-config" / self.system, folder)
        return folder

    def edit(self, file, *replaced):
        """Replace texts, each of which must be there, in a file of a copy of the site."""
        path = self.own_site() / file
        text = path.read_text()
        for old, new in replaced:
            assert old in text, f"{path} does not hold {old!r}"
            text = text.replace(old, new)
        path.write_text(text)

    def likwid(self, script, name="likwid-bench"):
        """Put a program named likwid-bench first on PATH, for faults; $2 is copy or stream."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\nstage=$(dirname $(dirname $(pwd)))\n{script}\n")
        path.chmod(0o755)

    def variables(self):
        """What a command on the login node has to know, as words of a shell."""
        sites = f"SITEPROOF_SITES='{self.sites}' " if self.sites else ""
        own = f"SITEPROOF_DATA='{self.data}' SITEPROOF_CACHE='{self.folder}/cache'"
        return f"{sites}{own} {self.polls}"

    def shell(self, line):
        """The shell line with the clone's programs and the test's own first on PATH."""
        path = f"PATH='{self.programs}':$PATH"
        return [
            "sh",
            "-c",
            f"cd '{TOP}' && . ./activate && export {self.variables()} {path} {line}",
        ]

    def command(self, *words, before="", mode="quick", program="reframe", checks="checks/"):
        """The shell line that runs ReFrame with these words."""
        said = " ".join(f"'{word}'" for word in words)
        return self.shell(f"{before} && exec {program} -c {checks} -r --mode {mode} {said}")

    def reframe(self, *words, user=None, **kw):
        """Run ReFrame on the login node and wait for it."""
        return self.testbed.run(self.command(*words, **kw), user=user)

    def start(self, *words, **kw):
        """Start ReFrame on the login node; the test goes on."""
        line = [self.testbed.program, "run", "--", *self.command(*words, **kw)]
        return subprocess.Popen(
            line,
            env=os.environ | self.testbed.environment,
            text=True,
            cwd=self.testbed.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill_session(self, number="KILL"):
        """Send the session that `start` began a signal."""
        self.testbed.run(["pkill", f"-{number}", "-f", "reframe -c checks"])

    def on_login(self, *words):
        """Run the siteproof command on the login node, where it can ask Slurm."""
        said = " ".join(f"'{word}'" for word in words)
        return self.testbed.run(self.shell(f"&& exec siteproof {said}"))

    def siteproof(self, *words):
        """What the siteproof command answers, in this process."""
        where = {"SITEPROOF_DATA": str(self.data), "SITEPROOF_SYSTEM": self.system}
        where["SITEPROOF_SITES"] = str(self.sites or TOP / "site-config")
        where["SITEPROOF_CACHE"] = str(self.folder / "cache")
        done = World(self.folder).inside(*words, **where)
        return subprocess.CompletedProcess(words, done.code, done.out, done.err)

    def copy(self, folder):
        """The same samples for a test that adds to them."""
        other = type(self)(self.testbed, folder)
        shutil.copytree(self.data, other.data, dirs_exist_ok=True, symlinks=True)
        other.sites = self.sites
        return other

    def samples(self):
        """All samples so far."""
        return Sessions(self.data / "perflogs", self.system).of(lambda _: True)

    def measured(self, metric):
        """The nodes with a value of a metric."""
        return sorted({s.node for s in self.samples() if s.metric == metric and s.status == "ok"})

    def lost(self):
        """Each node without a value, with its status and reason."""
        return {s.node: f"{s.status}: {s.why}" for s in self.samples() if s.status != "ok"}

    def left_results(self):
        """The nodes whose raw files are in place, in the jobs of this test."""
        found = self.data.glob(f"stage/*/{self.system}/*/*/*/raw/[!.]*")
        return {path.name for path in found}

    def jobs(self):
        """Jobs of checks that Slurm holds or runs: not the step that asks nodes what they see."""
        told = self.testbed.run(["squeue", "-h", "-o", "%j %A %T %N"]).stdout.splitlines()
        named = [line.partition(" ") for line in told]
        return [job for name, _, job in named if name != "siteproof-sight"]

    def until_job(self, state, count=1):
        """Wait for so many jobs in this state."""

        def there():
            return sum(state in job for job in self.jobs()) >= count

        until(there, f"{count} job that is {state}", self.jobs)

    def until_no_job(self):
        """Wait until Slurm has no job of a check."""
        until(lambda: not self.jobs(), "no job", self.jobs)

    def until_measured(self, *nodes):
        """Wait until these nodes, and no others, have left their results."""
        until(lambda: self.left_results() == {*nodes}, f"results of {nodes}", self.left_results)

    def busy(self, *words, nodes=NODES):
        """A job of somebody else on these nodes, until it is cancelled; its number."""
        given = [f"--nodelist={','.join(nodes)}", f"--nodes={len(nodes)}", "--exclusive"]
        line = ["sbatch", "--parsable", *given, "--output=/dev/null", *words, "--wrap", "sleep 987"]
        done = self.testbed.run(line)
        assert done.returncode == 0, done.stderr
        number = done.stdout.strip()
        until(lambda: any(f"{number} RUNNING" in j for j in self.jobs()), "that job", self.jobs)
        return number

    @contextmanager
    def reservation(self, name, nodes, user="root", flags="maint,ignore_jobs"):
        """A reservation of these nodes, for a while."""
        words = ["StartTime=now", "Duration=60", f"Users={user}", f"Nodes={nodes}"]
        create = ["scontrol", "create", "reservation", f"ReservationName={name}", *words]
        done = self.testbed.run([*create, f"Flags={flags}"])
        assert done.returncode == 0, done.stderr
        try:
            yield
        finally:
            self.testbed.run(["scontrol", "delete", f"ReservationName={name}"])

    @contextmanager
    def hidden(self, *nodes):
        """An empty file system over the data folder of these nodes, for a while."""
        for node in nodes:
            mount = ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", self.data]
            assert self.testbed.run(mount, node=node).returncode == 0
        try:
            yield
        finally:
            for node in nodes:
                self.testbed.run(["umount", "-l", self.data], node=node)

    def end(self):
        """No job of the test is left, and all nodes are idle."""
        self.testbed.run(["scancel", "--user=root"])
        self.until_no_job()
        all_idle(self.testbed)


def all_idle(testbed):
    """Wait until every node is idle, not still ending a step, and without a fault."""

    def ready():
        states = testbed.run(["sinfo", "-h", "-N", "-o", "%T"]).stdout.split()
        return set(states) == {"idle"} and testbed.command("status").returncode == 0

    until(ready, "idle nodes", lambda: testbed.command("status").stdout)


def finish(process):
    """What a run that was started has printed, once it has ended."""
    return process.communicate(timeout=PATIENCE)[0]


def waits(go, elsewhere=HONEST, nodes=()):
    """A likwid-bench that waits for a file on these nodes, or all; then it is the other script."""
    where = "|".join(nodes) or "*"
    wait = f"until [ -e '{go}' ]; do sleep 0.2; done"
    return f"case $(uname -n) in {where}) {wait} ;; esac\n{elsewhere}"


def hangs(*nodes):
    """A likwid-bench that does not end on these nodes, and is as it was recorded elsewhere."""
    return f"case $(uname -n) in {'|'.join(nodes)}) sleep 1000 ;; esac\n{HONEST}"


@pytest.fixture
def suite(testbed, tmp_path):
    """The suite with nothing measured; afterwards the test bed is as it was."""
    made = Suite(testbed, tmp_path)
    yield made
    made.end()
