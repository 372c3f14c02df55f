"""What the command prints of a mistake in its words, and of Ctrl-C: one line, and what helps."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clone import PATIENCE, World, wait_for
from setup_clone import program

from siteproof.cli import COMMANDS

SITEPROOF = Path(sys.executable).with_name("siteproof")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The exit code, stdout and stderr of a command."""
    world = World(tmp_path_factory.mktemp("usage"))
    world.site()

    def ask(*words):
        done = world.inside(*words)
        return done.code, done.out, done.err

    ask.world = world
    return ask


@pytest.mark.parametrize(
    "words", [("verdict", "--nonsense"), ("lint", "--system", "no-such-system")]
)
def test_a_mistake_is_as_wide_as_the_terminal(told, words):
    ours, theirs = pty.openpty()
    env = os.environ | {"COLUMNS": "40"}
    done = subprocess.run(
        [SITEPROOF, *words], stdout=subprocess.PIPE, stderr=theirs, env=env, timeout=PATIENCE
    )
    os.close(theirs)
    text = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 2
    first, *more = text.splitlines()
    assert first.startswith("siteproof: ")
    assert more
    assert max(map(len, [first, *more])) <= 40
    assert told(*words)[2].count("\n") == 1


def test_an_unknown_option_is_one_line_that_names_the_help(told):
    for command in sorted(set(COMMANDS) - {"plan"}):  # its words go to ReFrame
        code, out, err = told(command, "--nonsense")
        assert (code, out, err.count("\n")) == (2, "", 1), command
        assert err.startswith(f"siteproof: {command}: No such option '--nonsense'.")
        assert err.endswith(f" 'siteproof {command} --help' shows what is allowed.\n")


WRONG = [
    (["nonsense"], "No such command 'nonsense'."),
    (["collect", "extra"], "collect: Got unexpected extra argument (extra). "),
    (["vredict"], "No such command 'vredict'. Did you mean 'verdict'? 'siteproof --help'"),
    (["export", "junitt"], "export: No such command 'junitt'. Did you mean 'junit'?"),
    (["why"], "why: Missing argument 'CRITERION|NODE|PAIR'. 'siteproof why --help'"),
    (["verdict", "x"], "verdict: Got unexpected extra argument (x). 'siteproof verdict --help'"),
]


def test_a_wrong_word_is_one_line_with_the_nearest(told):
    for words, line in WRONG:
        code, out, err = told(*words)
        assert (code, out, err.count("\n")) == (2, "", 1), words
        assert err.startswith(f"siteproof: {line}")


def test_a_command_without_words_shows_its_help(told):
    for words in ([], ["export"]):
        code, out, err = told(*words)
        assert (code, out) == (2, ""), words
        assert err.startswith("Usage: siteproof")


def test_ctrl_c_is_one_line_and_the_exit_code_of_a_shell(tmp_path):
    program(tmp_path / "scontrol", f"touch '{tmp_path}/begun'; exec sleep {PATIENCE}")
    asked = subprocess.Popen(
        [SITEPROOF, "sites", "new", "x"],
        env={
            **os.environ,
            "SITEPROOF_SITES": str(tmp_path),
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((tmp_path / "begun").exists)
    asked.send_signal(signal.SIGINT)
    _, err = asked.communicate(timeout=PATIENCE)
    assert (asked.returncode, err.strip()) == (130, "siteproof: interrupted")


def test_before_the_first_run_the_answer_is_how_to_begin(told):
    told.world.data.mkdir()
    for words in ("compare a b", "accept a --why x", "history"):
        code, out, err = told(*words.split(), "--system", "thishost")
        assert (code, out, err.count("\n")) == (2, "", 1), words
        assert err.endswith(": nothing was measured yet. Run 'reframe -c checks/ -r' first.\n")
