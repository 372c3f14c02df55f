"""Homes of login nodes: missing, not writable, read-only, full. Nothing is written there.

Real: a folder of another user, a read-only bind mount, a full tmpfs, which imitates a quota.
"""

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
    all_is_well(good.reframe(*ONE, HOME=home))
    all_is_well(good.reframe("-l", HOME=home))
    all_is_well(good.siteproof("history", HOME=home))
    assert not list(good.clone.glob("*HOME*"))


def test_a_home_of_another_user_is_no_hindrance(shared):
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
    all_is_well(mounted(good, kind, "reframe", "-c", "checks/", *ONE))
    all_is_well(mounted(good, kind, "siteproof", "history"))


def test_a_private_umask_keeps_nothing_from_its_own_user(good):
    all_is_well(good.run("sh", "-c", f"umask 077 && reframe -c checks/ {shlex.join(ONE)}"))
    assert good.verdicts()["HERE-STREAM"] == "PASS"
    assert good.data.stat().st_mode & 0o077 == 0


def test_nothing_is_written_in_home(good):
    home = good.folder / "home"
    good.reframe(*ONE)
    good.reframe("-l")
    assert list(home.rglob("*")) == []
    for name in COMMANDS:
        words = [word.format(data=good.data) for word in CALLS.get(name, [])]
        done = good.siteproof(name, *words)
        assert "Traceback" not in done.said, str(done)
        assert list(home.rglob("*")) == [], name


def test_a_store_is_not_kept_where_others_could_replace_it(good):
    good.reframe(*ONE)
    good.data.chmod(0o777)
    good.siteproof("history")
    assert list((good.folder / "home").rglob("index.json"))
    assert not list(good.data.rglob("index.json"))


# colours


ESCAPE = "\x1b["


def on_terminal(world, *command, **variables):
    """What a command prints on a terminal."""
    line = shlex.join(map(str, command))
    return world.run("script", "--quiet", "--return", "-c", line, "/dev/null", **variables).out


@pytest.mark.parametrize("command", [("reframe", "-c", "checks/", *ONE), ("siteproof", "verdict")])
def test_colours_are_for_terminals_that_want_them(command, good):
    good.data.mkdir()
    chosen = {"RFM_COLORIZE": "UNSET", "TERM": "xterm"}
    assert ESCAPE not in good.run(*command, **chosen).said
    assert ESCAPE in on_terminal(good, *command, **chosen)
    assert ESCAPE in good.run(*command, **chosen, FORCE_COLOR="1").said
    assert "\x1b[3" not in on_terminal(good, *command, **chosen, NO_COLOR="1")
    assert ESCAPE not in on_terminal(good, *command, **chosen | {"TERM": "dumb"})
