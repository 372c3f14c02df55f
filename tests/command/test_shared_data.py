"""docs/shared-data.md, done by two ordinary users of one group with any umask."""

import grp
import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from clone import NOBODY, World

GROUP = "nogroup"  # the first group of both, on every Debian
FIRST, SECOND = "nobody", "sync"


def has_users():
    try:
        number = grp.getgrnam(GROUP).gr_gid
        return all(pwd.getpwnam(user).pw_gid == number for user in (FIRST, SECOND))
    except KeyError:
        return False


pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two other users"),
    pytest.mark.skipif(not has_users(), reason=f"no {FIRST} and {SECOND} in group {GROUP}"),
]


@pytest.fixture
def shared():
    """A data folder as the page makes it, and `at` to run a command there as a user.

    Not below pytest's own folder, which another pytest closes for everybody else.
    """
    top = Path(tempfile.mkdtemp(prefix="siteproof-shared-"))
    top.chmod(0o755)
    world = World(top)
    world.site()
    for folder in (world.data, world.data / "perflogs"):
        folder.mkdir()
        os.chown(folder, 0, grp.getgrnam(GROUP).gr_gid)
        folder.chmod(0o2775)
    for user in (FIRST, SECOND):
        (top / user).mkdir()
        os.chown(top / user, pwd.getpwnam(user).pw_uid, -1)

    def at(user, umask, *command):
        line = [*("sh", "-c", f'umask {umask}; exec "$@"', "sh"), *command]
        words = [user if word == "nobody" else word for word in NOBODY]
        return world.run(*words, *line, HOME=str(top / user))

    world.at = at
    yield world
    shutil.rmtree(top)


RUN = ("reframe", "-c", "checks/host", "-n", "HostParameters", "-r")
UMASKS = {FIRST: "022", SECOND: "077"}


def session(world):
    paths = (world.data / "perflogs/thishost/node").glob("*.jsonl")
    return sorted(paths)[0].name.partition(".")[0]


def test_both_measure_accept_collect_and_read_whatever_their_umask(shared):
    for user in (FIRST, SECOND, FIRST):
        done = shared.at(user, UMASKS[user], *RUN)
        assert done.code == 0, done.out + done.err
    name = session(shared)
    for user in (FIRST, SECOND):
        words = ("siteproof", "accept", name, "--despite", "--why", "a test")
        done = shared.at(user, UMASKS[user], *words)
        assert done.code == 0, done.out + done.err
    assert shared.at(SECOND, UMASKS[SECOND], "siteproof", "collect").code == 0
    perflogs = shared.data / "perflogs"
    gid = grp.getgrnam(GROUP).gr_gid
    for path in perflogs.rglob("*"):
        found = path.stat()
        wanted = stat.S_IRWXG | stat.S_ISGID if path.is_dir() else stat.S_IRGRP
        assert found.st_gid == gid, path
        assert found.st_mode & wanted == wanted, f"{path}: {stat.filemode(found.st_mode)}"
    for user in (FIRST, SECOND):
        done = shared.at(user, "022", "siteproof", "history")
        assert "in 3 files, 0 refused" in " ".join(done.out.split()), done.out + done.err


def test_a_folder_that_only_its_owner_may_write_ends_a_colleagues_run_in_one_line(shared):
    os.chown(shared.data / "perflogs", pwd.getpwnam(FIRST).pw_uid, -1)
    (shared.data / "perflogs").chmod(0o755)
    assert shared.at(FIRST, "022", *RUN).code == 0
    done = shared.at(SECOND, "022", *RUN)
    assert done.code == 2 and "Traceback" not in done.out + done.err
    assert f"not writable for {SECOND}" in done.err, done.err


def test_a_report_in_tmp_keeps_the_umask_of_its_user(shared):
    assert shared.at(FIRST, "022", *RUN).code == 0
    open_to_all = shared.folder / "tmp"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    os.chown(open_to_all, 0, grp.getgrnam(GROUP).gr_gid)
    page = open_to_all / "page.html"
    done = shared.at(FIRST, "077", "siteproof", "report", "--output", str(page))
    assert page.exists(), done.out + done.err
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
