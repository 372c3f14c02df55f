"""sbatch/soak on the test bed: rounds until a date, over nodes, daemons and jobs that end."""

import json
import re
import shlex
import subprocess
import time

import pytest
from bed_suite import NODES, PARAMETERS
from clone import TOP
from ClusterShell.NodeSet import NodeSet
from testbed_fixture import until

CAMPAIGN = "s1"
ONE = ("--mode", "quick", "-n", "^HostParameters")


class Soak:
    """A soak that was submitted with node001 as the node of its first job."""

    def __init__(self, suite, seconds, *options, limit=10):
        self.suite, self.end = suite, int(time.time()) + seconds
        self.file = suite.data / f"output/reports/{CAMPAIGN}/soak.log"
        words = ["--until", f"@{self.end}", "--campaign", CAMPAIGN]
        words += ["--nodes", "node[001-008]", "--", *options]
        first = f"sbatch --parsable --nodelist=node001 --time={limit} --output={suite.folder}/first"
        line = f"{suite.variables()} PATH='{suite.programs}':$PATH {first} sbatch/soak"
        done = suite.testbed.run(["sh", "-c", f"cd '{TOP}' && {line} {shlex.join(words)}"])
        assert done.returncode == 0, done.stderr
        self.job = done.stdout.strip()

    @property
    def log(self):
        first = self.suite.folder / "first"
        return "".join(file.read_text() for file in (first, self.file) if file.exists())

    @property
    def rounds(self):
        """The nodes of each round."""
        return re.findall(r"a round on (\S+)", self.log)

    def until_rounds(self, count):
        until(lambda: len(self.rounds) >= count, f"{count} rounds", lambda: self.log[-2000:])

    def jobs(self):
        """Its own jobs, by number: the state and the node of each."""
        form = ["squeue", "-h", "-n", f"siteproof-soak-{CAMPAIGN}", "-o", "%A %T %N"]
        lines = self.suite.testbed.run(form).stdout.splitlines()
        return {line.split()[0]: line.split()[1:] for line in lines}

    def until_over(self, *, at_the_date=True):
        def over():
            return not self.jobs() and "how the system held" in self.log

        time.sleep(max(0, self.end - time.time()) if at_the_date else 0)
        until(over, "the end of the soak", lambda: (self.jobs(), self.log[-2000:]), every=2)

    def ended_with(self):
        """The state and exit code of each job in Slurm's accounting."""
        names = [f"siteproof-soak-{CAMPAIGN}", "siteproof-soak"]
        words = ["sacct", "-nXP", "-S", "now-1hour", "--name", ",".join(names)]
        return self.suite.testbed.run([*words, "-o", "jobid,state,exitcode"]).stdout.splitlines()


@pytest.mark.testbed
def test_a_soak_measures_what_is_idle_and_ends_at_its_date_with_no_job_left(suite):
    drain = ["scontrol", "update", "NodeName=node008"]
    suite.testbed.run([*drain, "State=DRAIN", "Reason=fan"])
    try:
        soak = Soak(suite, 40, *ONE)
        soak.until_over()
    finally:
        suite.testbed.run([*drain, "State=RESUME"])
    assert soak.rounds == ["node[002-007]"], soak.log
    assert suite.measured(PARAMETERS) == NODES[1:7], soak.log
    assert not suite.jobs()
    assert {s.header.campaign for s in suite.samples()} == {CAMPAIGN}


@pytest.mark.testbed
def test_a_cancelled_soak_is_not_continued_by_the_job_after_it(suite):
    suite.likwid("sleep 1000")
    soak = Soak(suite, 600, "--mode", "quick", "-n", "^Stream")
    until(lambda: "goes on after job" in soak.log, "the next job", lambda: soak.log)
    suite.until_job("node[002-008]")
    suite.testbed.run(["scancel", soak.job])
    soak.until_over(at_the_date=False)
    assert f"job {soak.job} was cancelled, so no round follows" in soak.log
    assert len(soak.rounds) == 1, soak.log
    assert not suite.jobs()


@pytest.mark.testbed
def test_of_two_soaks_of_a_campaign_that_start_at_once_one_measures(suite):
    soaks = [Soak(suite, 60, *ONE) for _ in range(2)]
    soaks[0].until_over()
    ended = [line.split("|") for line in soaks[0].ended_with()]
    refused = [job for job, _, code in ended if code == "2:0"]
    assert len({one.job for one in soaks} & {*refused}) == 1, (ended, soaks[0].log)
    assert soaks[0].log.count("how the system held") == 1, soaks[0].log


MIX = ("--mode", "quick", "-n", "^(Hpl|Stream|HostParameters)", "-S", "Hpl.n=1200")


@pytest.mark.testbed
@pytest.mark.long
def test_twenty_minutes_survive_a_slurmd_slurmctld_and_the_node_of_the_job(suite, record_property):
    soak = Soak(suite, 20 * 60, *MIX, limit=6)
    soak.until_rounds(2)
    slurmd_is_killed(suite, soak, "node005")
    slurmctld_is_killed(suite, soak)
    first = lose_the_node_of_the_job(suite, soak)
    soak.until_over()
    ended = soak.ended_with()
    kept = sum(file.stat().st_size for file in suite.data.rglob("*") if file.is_file())
    record_property("told", f"{len(soak.rounds)} rounds, {kept // 1024} KiB; jobs: {ended}")
    assert f"{first}|NODE_FAIL|" in "\n".join(ended)
    assert any("COMPLETED|0:0" in line for line in ended[:-1]), "a time limit was met"
    assert soak.log.count("how the system held") == 1, soak.log
    assert not suite.jobs()
    assert "Slurm does not answer" in soak.log, soak.log
    assert {s.node for s in suite.samples() if s.status == "node_lost"} <= {"node005"}
    done = suite.on_login("availability", "--from", "25m", "--json")
    rows = {one["name"]: one for one in json.loads(done.stdout)["subjects"]}
    assert rows["node005"]["failures"] == 1
    samples = suite.samples()
    assert {s.header.campaign for s in samples} == {CAMPAIGN}
    assert len({s.header.session for s in samples}) >= 5, soak.rounds


def slurmd_is_killed(suite, soak, node):
    """A round without the node follows, and one with it once it is back."""

    def without():
        return node not in NodeSet(soak.rounds[-1])

    suite.testbed.fault("killed-slurmd", node)
    until(without, f"a round without {node}", lambda: soak.rounds)
    suite.testbed.mend(node)
    until(lambda: not without(), f"a round with {node} again", lambda: soak.rounds)


def slurmctld_is_killed(suite, soak):
    """It is away for a minute after a round: the next one waits, and accuses no node."""
    done = soak.log.count("Finished on")
    until(lambda: soak.log.count("Finished on") > done, "the end of a round", lambda: soak.log)
    number = suite.testbed.run(["pgrep", "-x", "slurmctld"]).stdout.strip()
    suite.testbed.run(["kill", "-KILL", number])
    time.sleep(60)
    before = len(soak.rounds)
    suite.testbed.run(["slurmctld"])
    soak.until_rounds(before + 2)


def lose_the_node_of_the_job(suite, soak):
    """The next job goes on, on another node. Returns the number of the job that was lost."""

    def running():
        found = [job for job, (state, *_) in soak.jobs().items() if state == "RUNNING"]
        return found[0] if found else None

    job = until(running, "a job of the soak", soak.jobs)
    node = soak.jobs()[job][1]
    before = len(soak.rounds)
    suite.testbed.lose_power(node)
    soak.until_rounds(before + 1)
    suite.testbed.power_on(node)
    return job


def test_a_mistake_is_one_line_and_exit_2():
    named, ahead = ("--campaign", "a"), f"@{int(time.time()) + 3600}"
    for words, told in (
        ((), "--campaign is required"),
        (named, "--until is required"),
        ((*named, "--until", "soon"), "'soon' is not a date"),
        ((*named, "--until", "12h"), "'12h' is not a date"),  # date(1): noon of another zone
        ((*named, "--until", "2020-01-01"), "'2020-01-01' is over"),
        ((*named, "--until", "2999-01-01"), "'2999-01-01' is more than 366 days away"),
        ((*named, "--until", ahead, "--nodes", "node[1-"), "is not a node set"),
        (("--campaign", "a\nb", "--until", ahead), r"SITEPROOF_CAMPAIGN: 'a\nb' is not a name"),
        ((*named, "--until"), "--until needs a value"),
        ((*named, "node001"), "unknown argument 'node001'"),
    ):
        done = subprocess.run([TOP / "sbatch" / "soak", *words], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, ""), (words, done)
        assert re.fullmatch(r"siteproof: [^\n]*\n", done.stderr), (words, done.stderr)
        assert told in done.stderr
