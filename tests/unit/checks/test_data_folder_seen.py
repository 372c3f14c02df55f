"""What nodes answer when asked whether they see the data folder, and what is made of it."""

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from clone import TOP, wait_for
from rows import rows

from siteproof import nodesets
from siteproof.checks import data_folder, options, session, settings
from siteproof.slurm import client

SCRIPT = (TOP / "siteproof/checks/on_node/data_folder.sh").read_text()
SHELLS = [
    shell
    for shell in (["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"])
    if shutil.which(shell[0])
]


# ---- on the node


def with_token(folder):
    (folder / "token").write_text("abc\n")
    return folder


@pytest.fixture
def folder(tmp_path):
    return with_token(tmp_path)


def answer(folder, token="abc", shell=("sh",), **variables):
    return subprocess.run(
        [*shell, "-c", SCRIPT, "sight", str(folder), token],
        env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": "n1"} | variables,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout


@rows("shell", SHELLS)
def test_a_node_that_sees_the_folder_leaves_its_name_there(tmp_path, shell):
    folder = with_token(tmp_path)
    assert answer(folder, shell=shell) == "n1 seen\n"
    assert (folder / "n1").read_text() == "abc\n"


@rows("shell", SHELLS)
def test_a_node_without_the_folder_or_with_another_of_that_name_does_not_see_it(tmp_path, shell):
    folder = with_token(tmp_path)
    assert answer(folder / "not there", shell=shell) == "n1 unseen\n"
    assert answer(folder, token="other", shell=shell) == "n1 unseen\n"
    assert not (folder / "n1").exists()


def test_a_node_that_may_not_write_there_says_so(folder):
    (folder / "n1").mkdir()  # what root cannot write either
    assert answer(folder) == "n1 unwritable\n"


def test_a_node_whose_file_system_is_dead_says_so_by_another_process(folder):
    (folder / "token").unlink()
    os.mkfifo(folder / "token")  # holds who reads it
    (folder / "sleep").write_text("#!/bin/sh\nexit 0\n")
    (folder / "sleep").chmod(0o755)
    process = subprocess.Popen(
        ["sh", "-c", SCRIPT, "sight", str(folder), "abc"],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "SLURMD_NODENAME": "n1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "n1 silent\n"
    finally:
        with (folder / "token").open("w"):
            pass
        process.communicate()


# ---- what is made of the answers


def test_only_known_answers_of_queried_nodes_count_and_of_each_the_first():
    text = "n1 seen\nn2 unseen\nn9 unseen\nn3 root: x\nn2 seen\n\x1b[2J\nn4 silent\nn4 unseen\n"
    assert data_folder.read(text, ["n1", "n2", "n3", "n4"]) == {
        "n1": "seen",
        "n2": "unseen",
        "n4": "silent",
    }


def test_what_is_wrong_is_told_with_folded_nodes():
    blind = {"n1": "unseen", "n2": "unseen", "n3": "unwritable", "n7": "silent", "n8": "other"}
    assert data_folder.summary(blind) == (
        "not seen by n[1-2]; not writable on n3; its file system does not respond on n7; "
        "another folder with that name on n8"
    )


@rows(
    "words, line",
    [
        (["reservation=night"], ["--reservation=night"]),
        (["A=me", "x"], ["-A", "me", "-x"]),
        (["--qos=high", "-p compute"], ["--qos=high", "-p", "compute"]),
        (["#SBATCH --qos=high"], ["--qos=high"]),
        (["#PBS -l x"], []),
        (None, []),
    ],
)
def test_job_options_are_words_of_a_command_line(words, line):
    assert options.of_jobs(words) == line


# ---- the step that asks


@pytest.fixture
def srun(tmp_path, monkeypatch):
    """An srun that is a script; returns what a step over two nodes has brought."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(client, "A_MOMENT", 0.2)

    def ask(text):
        (tmp_path / "srun").write_text(f"#!/bin/sh\necho \"$@\" >'{tmp_path}/words'\n{text}\n")
        (tmp_path / "srun").chmod(0o755)
        nodes = nodesets.of(["n1", "n2"])
        return client.on_each(
            nodes, ["-A", "me"], ["true"], lambda t: len(data_folder.read(t, nodes))
        )

    ask.words = tmp_path / "words"
    return ask


def test_one_step_over_all_nodes_waits_for_no_busy_one(srun):
    assert srun("echo n1 seen; echo n2 seen").stdout == "n1 seen\nn2 seen\n"
    words = srun.words.read_text().split()
    assert {"--nodelist=n[1-2]", "--ntasks-per-node=1", "-A", "me", "--chdir=/"} <= set(words)
    assert any(word.startswith("--immediate=") for word in words)
    assert any(word.startswith("--time=") for word in words)


def test_an_srun_that_does_not_end_after_all_have_answered_is_ended(srun):
    done = srun("trap '' TERM; echo n1 seen; echo n2 silent; while :; do sleep 0.1; done")
    assert done.stdout == "n1 seen\nn2 silent\n"


def test_what_a_node_prints_without_end_is_not_read_without_end(srun, monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT", 1)
    assert len(srun("yes").stdout) <= client.MAX_OUTPUT


def test_nothing_that_was_started_outlives_the_question(srun, tmp_path):
    srun(f"sleep 300 & echo $! >{tmp_path}/pid; yes")
    wait_for(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/exe").exists())


def test_a_refusal_of_slurm_is_handed_on(srun):
    done = srun("echo 'srun: error: Unable to allocate resources' >&2; exit 1")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "Unable to allocate" in done.stderr


def test_no_srun_is_no_answer(srun, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    done = client.on_each(nodesets.of(["n1"]), [], ["true"], len)
    assert "srun: No such file" in done.stderr


# ---- which nodes are asked


def without_cost(monkeypatch):
    monkeypatch.setattr(settings.options, "refuse_above", lambda *_: None)
    monkeypatch.setattr(settings.options, "report_costs", lambda _: None)
    monkeypatch.setattr(settings.session, "current", lambda: SimpleNamespace(site=None))


def test_no_node_of_a_machine_without_a_scheduler_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(data_folder, "_ask", lambda *_: pytest.fail("asked"))
    site = SimpleNamespace(partition=lambda _name: SimpleNamespace(scheduler="local"))
    active = SimpleNamespace(site=site, folder=tmp_path, name="s", seen=set(), blind={})
    monkeypatch.setattr(session, "current", lambda: active)
    case = SimpleNamespace(partition=SimpleNamespace(name="node"))
    data_folder.look([case])
    assert not (tmp_path / "stage").exists()


def test_the_question_stands_before_the_first_job_and_before_the_sessions_number(monkeypatch):
    asked = []
    without_cost(monkeypatch)
    monkeypatch.setattr(settings.data_folder, "look", lambda cases, said: asked.append(said))
    monkeypatch.setattr(settings.session, "take_place", lambda: asked.append("number"))
    case = SimpleNamespace(check=SimpleNamespace(is_dry_run=lambda: False))
    settings.before_run(["--qos=q"], [case])
    assert asked == [["--qos=q"], "number"]


def test_a_dry_run_asks_no_node(monkeypatch):
    without_cost(monkeypatch)
    monkeypatch.setattr(settings.data_folder, "look", lambda *_: pytest.fail("asked"))
    case = SimpleNamespace(check=SimpleNamespace(is_dry_run=lambda: True))
    settings.before_run([], [case])


@pytest.mark.parametrize("of_user", ["--get-user-env=60L", "--get-user-env"], ids=["22", "26.05"])
def test_options_that_only_sbatch_knows_are_not_given_to_srun(of_user):
    access = ["-p cpu --export=NONE", of_user, "--account=staff"]
    assert data_folder._words(access, []) == ["-p", "cpu", "--account=staff"]


def test_no_node_is_looked_at_for_a_service_that_is_used_from_here(monkeypatch):
    looked = []
    without_cost(monkeypatch)
    monkeypatch.setattr(settings.data_folder, "look", lambda cases, said: looked.extend(cases))
    monkeypatch.setattr(settings.session, "take_place", lambda: None)
    here, there = (
        SimpleNamespace(check=SimpleNamespace(is_dry_run=lambda: False, local=local))
        for local in (True, False)
    )
    settings.before_run([], [here, there])
    assert looked == [there]
