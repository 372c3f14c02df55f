"""What another user of the machine has made first on shared scratch stops and fools no node."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from siteproof.checks import job

pytestmark = [
    pytest.mark.command,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("setpriv"),
        reason="NOT TESTED: root and setpriv, to play another user",
    ),
]
SCRIPTS = Path(job.__file__).with_name("on_node")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
MEASURE = """. "$1/file_system.sh"
begin_test
echo program=probe >>facts
echo ours >"$folder/test.1"
echo "${folder##*/}"
stat -c '%u %a' "$folder"
"""


@pytest.fixture
def scratch(tmp_path_factory):
    """A folder in which everybody may make names, as /scratch is; other users reach it."""
    folder = Path(f"/var/tmp/siteproof-pytest-{os.getpid()}-{time.time_ns()}")
    folder.mkdir()
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


class Node:
    """node.sh as root runs it, with a test folder on the scratch file system."""

    def __init__(self, folder, scratch, secret="a" * 32):
        self.stage, self.scratch = folder / "stage", scratch
        (self.stage / "raw").mkdir(parents=True)
        (self.stage / "turns").mkdir()
        for path in SCRIPTS.glob("*.sh"):
            shutil.copy(path, self.stage)
        (self.stage / "measure.sh").write_text(MEASURE)
        self.values = {
            "SITEPROOF_NODE": "n1", "SITEPROOF_ATTEMPT": 1, "SITEPROOF_LIMIT": 60,
            "SITEPROOF_SECRET": secret, "FS_PATH": scratch, "FS_KIND": "any", "FS_SHARED": "yes",
            "NEEDED": 1000, "TOGETHER": 1, "TEST": "Probe.s1", "NODES": "n1", "AT_ONCE": 1,
            "TURN": 30,
        }  # fmt: skip

    def run(self):
        """The result's folder."""
        settings = (f"{k}={shlex.quote(str(v))}; export {k}\n" for k, v in self.values.items())
        (self.stage / "settings").write_text("".join(settings))
        words = ["sh", "./node.sh"]
        subprocess.run(words, cwd=self.stage, check=True, env={"PATH": "/usr/bin:/bin"})
        return self.stage / "raw" / self.values["SITEPROOF_NODE"]


def as_nobody(script, folder):
    subprocess.run([*NOBODY, "sh", "-c", script], cwd=folder, check=True)


def meta(folder):
    return dict(line.split("=", 1) for line in (folder / "meta").read_text().splitlines())


GUESSED = "siteproof-test.Probe.s1.n1.1"


@pytest.mark.parametrize(
    "made",
    [
        f"mkdir {GUESSED}",
        f"echo >{GUESSED}",
        f"ln -s /nowhere {GUESSED}",
        f"mkfifo {GUESSED}",
        f"mkdir -m 777 {GUESSED}; printf 'siteproof storage test\\n/x\\nn1\\n0\\n'"
        f" >{GUESSED}/marker",
        "for n in 1 2 3; do mkdir siteproof-test.$n; mkfifo siteproof-test.$n/marker; done",
    ],
)
def test_a_name_that_another_user_has_made_first_does_not_stop_a_node(made, scratch, tmp_path):
    as_nobody(made, scratch)
    before = sorted(path.name for path in scratch.iterdir())
    left = Node(tmp_path, scratch).run()
    assert meta(left)["exit"] == "0", (left / "stderr").read_text()
    assert (left / "stdout").read_text().splitlines()[1] == f"{os.geteuid()} 700"
    assert sorted(path.name for path in scratch.iterdir()) == before, "only ours is removed"


def test_the_name_tells_nothing_of_other_nodes_or_jobs(scratch, tmp_path):
    names = []
    for number, (node, secret) in enumerate((("n1", "a"), ("n2", "a"), ("n1", "b"), ("n1", "a"))):
        one = Node(tmp_path / str(number), scratch, secret * 32)
        one.values |= {"SITEPROOF_NODE": node, "NODES": node}
        names.append((one.run() / "stdout").read_text().split()[0])
    random = [name.rpartition(".")[2] for name in names]
    assert len(set(random)) == 3
    assert random[0] == random[3]
    assert all(len(part) * 4 >= 64 for part in random)


def test_nothing_outside_its_folder_is_removed_where_its_name_became_a_link(scratch, tmp_path):
    node = Node(tmp_path, scratch)
    victim = tmp_path / "victim"
    (victim / "test.tree").mkdir(parents=True)
    for name in ("test.1", "marker", "test.tree/file"):
        (victim / name).write_text("keep")
    os.chown(victim, 12345, 12345)
    scratch.chmod(0o777)  # no sticky bit: anybody may rename what is there
    (node.stage / "measure.sh").write_text(
        MEASURE + f'mv "$folder" "$top/moved"; ln -s {victim} "$folder"\n'
    )
    node.run()
    assert sorted(path.name for path in victim.iterdir()) == ["marker", "test.1", "test.tree"]
    assert (victim / "test.tree/file").exists()
