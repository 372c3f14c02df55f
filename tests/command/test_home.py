"""Homes of login nodes: missing, not writable, read-only, full. Nothing is written there.

Real: a folder of another user, a read-only bind mount, a full tmpfs, which imitates a quota.
"""

import json
import os
import shlex
import shutil

import pytest

from siteproof.cli import COMMANDS

ONE = ("-n", "Stream", "-r", "--mode", "quick")
NOTHING = "/dev/null/home"  # not even root can make it
# What a command needs on its line; what it answers is the matter of other tests.
CALLS = {
    "accept": ["none"],
    "compare": ["a", "b"],
    "evidence": ["HERE-STREAM", "--file", "x"],
    "export": ["json"],
    "import": ["/dev/null"],
    "matrix": ["TcpBandwidth.throughput"],
    "plan": ["--mode", "quick"],
    "report": ["--output", "{data}/page.html"],
    "sweep": ["stream_threads"],
    "why": ["HERE-STREAM"],
}
MOUNTS = {
    "read-only": "mount --bind {home} {home} && mount -o remount,ro,bind {home}",
    "full": "mount -t tmpfs -o size=4k,nr_inodes=2 none {home} && : >{home}/full",
}
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


def mounted(world, kind, *command):
    """Run a command in a mount namespace where HOME is of this kind."""
    home = world.folder / "home"
    script = f"{MOUNTS[kind].format(home=home)} && exec {shlex.join(map(str, command))}"
    return world.run("unshare", "--mount", "sh", "-c", script)


def all_is_well(done):
    assert "Traceback" not in done.said, str(done)
    assert "Permission denied" not in done.said, str(done)
    assert done.code == 0, str(done)


@pytest.mark.parametrize("home", [NOTHING, "UNSET"])
def test_a_run_and_a_verdict_need_no_home(home, good):
    good.checks = "checks/cpu"
    all_is_well(good.reframe(*ONE, HOME=home))
    all_is_well(good.reframe("-l", HOME=home))
    all_is_well(good.process("history", HOME=home))
    assert not list(good.clone.glob("*HOME*"))


def test_a_home_of_another_user_is_no_hindrance(shared):
    shared.checks = "checks/cpu"
    (shared.folder / "home").chmod(0o755)
    shared.data.mkdir()
    shutil.chown(shared.data, "nobody")
    shared.as_nobody = True
    all_is_well(shared.reframe(*ONE))
    done = shared.siteproof("history")
    assert "in memory" not in done.said
    all_is_well(done)


@root
@pytest.mark.parametrize("kind", MOUNTS)
def test_a_home_that_is_read_only_or_full_is_no_hindrance(kind, good):
    all_is_well(mounted(good, kind, "reframe", "-c", "checks/cpu", *ONE))
    all_is_well(mounted(good, kind, "siteproof", "history"))


def test_a_private_umask_keeps_nothing_from_its_own_user(good):
    all_is_well(good.run("sh", "-c", f"umask 077 && reframe -c checks/cpu {shlex.join(ONE)}"))
    assert good.verdicts()["HERE-STREAM"] == "PASS"
    assert good.data.stat().st_mode & 0o077 == 0


# Runs commands one after another; all libraries are loaded here, so also what these write is seen.
ONE_BY_ONE = """
import json, sys
from pathlib import Path
from siteproof import cli
for words in json.loads(sys.argv[1]):
    sys.argv = ["siteproof", *words]
    try:
        cli.main()
    except SystemExit:
        pass
    print("HOME after", words[0], sorted(map(str, Path.home().rglob("*"))), flush=True)
"""


def test_nothing_is_written_in_home(good):
    home = good.folder / "home"
    good.reframe(*ONE)
    good.reframe("-l")
    assert list(home.rglob("*")) == []
    calls = [[name, *(w.format(data=good.data) for w in CALLS.get(name, []))] for name in COMMANDS]
    done = good.run("python", "-c", ONE_BY_ONE, json.dumps(calls))
    assert "Traceback" not in done.said, str(done)
    told = [line for line in done.out.splitlines() if line.startswith("HOME after")]
    assert told == [f"HOME after {name} []" for name in COMMANDS], done
    assert list(home.rglob("*")) == []


def test_a_store_is_not_kept_where_others_could_replace_it(passed):
    passed.data.chmod(0o777)
    passed.siteproof("history")
    assert list((passed.folder / "home").rglob("index.json"))
    assert not list(passed.data.rglob("index.json"))


# colours


ESCAPE = "\x1b["


def on_terminal(world, *command, **variables):
    """What a command prints on a terminal."""
    line = shlex.join(map(str, command))
    return world.run("script", "--quiet", "--return", "-c", line, "/dev/null", **variables).out


LISTED = ("reframe", "-c", "checks/cpu", "-n", "Stream", "--dry-run")


@pytest.mark.parametrize("command", [LISTED, ("siteproof", "verdict")])
def test_colours_are_for_terminals_that_want_them(command, good):
    good.data.mkdir()
    chosen = {"RFM_COLORIZE": "UNSET", "TERM": "xterm"}
    assert ESCAPE not in good.run(*command, **chosen).said
    assert ESCAPE in on_terminal(good, *command, **chosen)
    assert ESCAPE in good.run(*command, **chosen, FORCE_COLOR="1").said
    assert "\x1b[3" not in on_terminal(good, *command, **chosen, NO_COLOR="1")
    assert ESCAPE not in on_terminal(good, *command, **chosen | {"TERM": "dumb"})
