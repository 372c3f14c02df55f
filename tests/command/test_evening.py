"""The evening with programs in place of its steps: what it starts, ends, and prints."""

import json
import signal

import pytest
from clone import PROGRAMS, wait_for
from fleets import furnish
from rows import rows

GATE = {"refused": "", "commands": [], "left_alone": [], "nodes": []}
# Each call in a line of `calls`; a step is what the test gives as its script, by default fine.
PROGRAM = """
echo "$(basename "$0") $*" >>{folder}/calls
case "$(basename "$0") $*" in {cases} esac
"""
QUOTED = "\\ "  # a blank in a pattern of `case`
ONE_ENDED = "echo '[     FAIL ] ( 1/22) Hpl /e9d294bf @here:compute+system'"
HANGS = """
    trap 'echo cancelled >>{folder}/calls; exit 130' TERM
    echo runs >>{folder}/calls
    while :; do sleep .05; done"""
FINE = {
    "reframe*": ONE_ENDED,
    "siteproof verdict*": "echo 'verdict on here: 1 PASS; next: siteproof nodes'",
    "siteproof gate*--json*": "cat {folder}/gate.json",
    "siteproof gate*--brief*": "echo 'none of 8 nodes stays out'; echo 'next: siteproof report'",
}


class Evening:
    """An evening whose steps are scripts."""

    def __init__(self, world):
        self.world, self.folder = furnish(world), world.folder
        self.world.data.mkdir(exist_ok=True)
        self.program = PROGRAMS / "siteproof"
        self.gate(GATE)
        self.steps()

    def steps(self, **scripts):
        """scripts: of a command that begins so, its blanks written as '_'."""
        (self.folder / "calls").write_text("")
        named = {f"{name.replace('_', ' ')}*": script for name, script in scripts.items()}
        found = [*named.items(), *FINE.items()]
        cases = "\n".join(f"{words.replace(' ', QUOTED)}) {script} ;;" for words, script in found)
        for name in ("reframe", "siteproof"):
            text = PROGRAM.replace("{cases}", cases).replace("{folder}", str(self.folder))
            self.world.fake(name, text)

    def gate(self, decided):
        """What the gate decides, whatever was done."""
        (self.folder / "gate.json").write_text(json.dumps(decided))

    def words(self, *words):
        return [self.program, "evening", "--campaign", "e", *words]

    def run(self, *words):
        return self.world.run(*self.words(*words), SITEPROOF_SYSTEM="here")

    def start(self, *words):
        return self.world.start(*self.words(*words), SITEPROOF_SYSTEM="here")

    @property
    def calls(self):
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def until_it_runs(self):
        wait_for(lambda: self.calls[-1:] == ["runs"])

    def acts(self):
        return [call for call in self.calls if "--apply" in call]


@pytest.fixture
def evening(world):
    return Evening(world)


def nodes(**services):
    return [{"node": node, "service": service} for node, service in services.items()]


def test_it_shows_a_line_a_step_and_one_next_command(evening):
    done = evening.run()
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert len(lines) < 20
    assert [line for line in lines if "next: " in line] == ["next: siteproof report"] == lines[-1:]
    assert lines.count("verdict on here: 1 PASS") == 1  # the last screen has it once more
    assert "verdict, 0 s: verdict on here: 1 PASS" in lines
    [log] = (evening.world.data / "output/reports/e").glob("evening-*.log")
    assert "verdict on here: 1 PASS; next: siteproof nodes" in log.read_text()
    assert not evening.acts()


def test_the_folder_of_pages_is_kept_where_one_is_named(evening):
    assert evening.run().code == 0
    assert not [call for call in evening.calls if "--site" in call]
    words = evening.words()
    assert evening.world.run(*words, SITEPROOF_SYSTEM="here", SITEPROOF_PAGES="/www").code == 0
    assert [call for call in evening.calls if "--site" in call] == ["siteproof report --site /www"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_measurement_and_nothing_acts_afterwards(evening, number):
    evening.steps(reframe=HANGS)
    process = evening.start("--apply", "--limit", "20%", "--", "-T", "network")
    evening.until_it_runs()
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 130, out + err
    assert evening.calls[-1] == "cancelled"
    assert f"interrupted by {number.name} at 'measure'" in " ".join(out.split())
    again = "sbatch/evening --campaign e --nodes missing --mode maintenance --limit 20% --apply"
    assert out.splitlines()[-1] == f"next: {again} -- -T network"


def test_an_evening_that_is_killed_leaves_no_measurement_behind(evening):
    evening.steps(reframe=HANGS)
    process = evening.start("--apply")
    evening.until_it_runs()
    process.kill()
    process.communicate()
    wait_for(lambda: evening.calls[-1] == "cancelled")


def test_what_nohup_ignores_does_not_end_it(evening):
    evening.steps(reframe="sleep .5")
    process = evening.world.start("nohup", *evening.words(), SITEPROOF_SYSTEM="here")
    wait_for(lambda: any(call.startswith("reframe") for call in evening.calls))
    process.send_signal(signal.SIGHUP)
    process.communicate()
    assert process.returncode == 0


def test_a_signal_during_an_act_names_that_act_as_the_next(evening):
    evening.gate(GATE | {"nodes": nodes(n001="by_us")})
    evening.steps(**{"siteproof_gate_--campaign_e_--retest": HANGS})
    process = evening.start("--apply")
    evening.until_it_runs()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate()
    assert (process.returncode, evening.calls[-1]) == (130, "cancelled")
    assert out.splitlines()[-1] == "next: siteproof gate --campaign e --retest --apply"


@rows(
    "step, script, code, last",
    [
        ("siteproof_plan", "echo siteproof: no such check >&2; exit 2", 2, "siteproof plan"),
        ("reframe", "echo siteproof: -S nodes: bad >&2; exit 2", 2, "reframe"),
        ("reframe", "exit 130", 130, "reframe"),
        ("reframe", "kill -9 $$", 1, "reframe"),
        ("siteproof_verdict", "exit 2", 2, "siteproof verdict"),
        ("siteproof_gate", "echo no answer from Slurm; exit 2", 2, "siteproof gate"),
    ],
)
def test_after_a_step_that_failed_no_further_one_is_run(evening, step, script, code, last):
    evening.steps(**{step: script})
    done = evening.run("--apply")
    assert done.code == code, done
    assert evening.calls[-1].startswith(last)
    assert not evening.acts()
    assert "no further step was run" in " ".join(done.out.split())
    assert done.out.splitlines()[-1].startswith("next: ")


def test_after_a_refusal_nothing_is_tested_again_or_released(evening):
    evening.gate(GATE | {"refused": "3 of 8 measured nodes", "nodes": nodes(n001="by_us")})
    done = evening.run("--apply")
    assert "quarantine: refused: 3 of 8 measured nodes" in done.out
    assert not evening.acts()


def test_what_is_in_quarantine_is_tested_again_and_what_passed_is_released(evening):
    inside = {"nodes": nodes(n001="by_us", n002="passed")}
    evening.gate(GATE | {"commands": ["scontrol create"]} | inside)
    done = evening.run("--apply", "--", "-n", "Hpl")
    assert done.code == 0, done
    gate = "siteproof gate --campaign e"
    acts = [f"{gate} --apply", f"{gate} --retest --apply -- -n Hpl", f"{gate} --release --apply"]
    assert evening.acts() == acts
    assert [call.split()[1] for call in evening.calls].count("verdict") == 2


def test_what_takes_longer_than_ten_seconds_shows_how_far_it_is(evening):
    checks = "echo '[     FAIL ] ( 1/22) Hpl /e9d294bf @here:compute+system'"
    evening.steps(reframe=f"{checks}; sleep 11")
    done = evening.run()
    assert "  measure, 10 s: 1 of 22 checks ended; failed: Hpl" in done.out.splitlines()
    assert "measure, 11 s: 1 of 22 checks ended; failed: Hpl" in done.out.splitlines()


@rows(
    "words, told",
    [
        (["--campaign", ""], "missing: --campaign"),
        (["--mode", "x"], "unknown mode 'x'"),
        (["--rolling", "many"], "'many' is not a valid integer"),
        (["--limit", "many"], "'many' is not a share of a partition"),
        (["--keep-out", "BAD"], "'BAD' is not a state"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_run(evening, words, told):
    done = evening.run(*words)
    assert (done.code, done.out, told in done.err) == (2, "", True), done
    assert not evening.calls
