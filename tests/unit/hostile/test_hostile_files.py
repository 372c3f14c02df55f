"""Files below perflogs that none of us can have written: left out, named, and no PASS without them.

Whoever can put a file there neither stops an answer nor changes it.
"""

import contextlib
import json
import os
import pwd
import socket

import fleets
import pytest
from asked import ask
from fleets import names, run_of

from siteproof import files, history, sites
from siteproof.history import tables
from siteproof.record import samples
from siteproof.record.sessions import Sessions

pytestmark = pytest.mark.deep

NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root gives files away")
LATEST = "zzz.Stream.1.jsonl"  # named as the newest of all sessions
READING = (
    ("nodes",),
    ("why", "n001"),
    ("compare",),
    ("export", "junit", "--output", "/dev/null"),
    ("export", "openmetrics", "--output", "/dev/null"),
    ("history",),
)


def fifo(path):
    os.mkfifo(path)


def bound(path):
    held = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(path.parent):  # a socket's path is short
        held.bind(path.name)


def link(path):
    path.symlink_to("/dev/zero")


def secret(path):
    path.symlink_to("/etc/shadow")


def loop(path):
    path.symlink_to(path.name)


def folder(path):
    path.mkdir()


STRANGE = (fifo, bound, link, secret, loop, folder)


def test_what_is_no_file_stops_no_answer_and_is_named_and_no_pass(here):
    assert ask("verdict")[0] == 0
    path = here / "here/compute" / LATEST
    for make in STRANGE:
        make(path)
        code, told = ask("verdict")
        assert code == 3, make
        assert "1 PASS" in told, make
        assert told.count("left out") == 1, make
        assert LATEST in told, make
        assert "root:" not in told, make
        path.rename(path.with_name(f"zzz{make.__name__}.Stream.1.jsonl.kept"))
    for kept in list(path.parent.glob("*.kept")):
        kept.rename(kept.with_suffix(""))
    for words in READING:
        code, told = ask(*words)
        assert code in (0, 1, 3), (words, told)


def test_a_folder_that_is_a_link_is_one_line(here, tmp_path):
    (here / "here/elsewhere").symlink_to(here / "here/compute")
    code, told = ask("verdict")
    assert code == 3
    assert told.count("left out") == 1
    code, told = ask("history")
    assert code == 3
    (tmp_path / "real").mkdir()
    (here / "here").rename(tmp_path / "real/here")
    here.rmdir()
    here.symlink_to(tmp_path / "real")  # a link above what the site names is the site's
    (tmp_path / "real/here/elsewhere").unlink()
    assert ask("verdict")[0] == 0


@root_only
def test_somebody_elses_file_neither_stops_nor_changes_an_answer(here, monkeypatch):
    forged = run_of(dict.fromkeys(names(8), 1000.0), 9)
    path = samples.write(here, forged[0].header, forged)
    os.chown(path, NOBODY, -1)
    torn = here / "here/compute" / LATEST
    torn.write_text("{")
    os.chown(torn, NOBODY, -1)
    code, told = ask("verdict")
    assert code == 3
    assert "s0002" in told
    assert "belongs to" in told
    code, told = ask("history", "--sql", "SELECT max(value) FROM samples", "--csv")
    assert "1000" not in told
    torn.unlink()
    system = fleets.write_site(sites.folder(), criteria=fleets.CRITERIA) / "here/system.yaml"
    system.write_text(system.read_text() + f"trusted_owners: ['{NOBODY}']\n")
    code, told = ask("verdict")
    assert code == 0
    assert "s0009" in told
    code, told = ask("history", "--sql", "SELECT max(value) FROM samples", "--csv")
    assert "1000" in told


@root_only
def test_a_colleague_of_the_group_is_trusted_where_the_folder_is_writable_for_it(here):
    found = run_of(dict.fromkeys(names(8), 200.0), 9)
    path = samples.write(here, found[0].header, found)
    os.chown(path, NOBODY, -1)
    os.chown(here, -1, path.stat().st_gid)
    here.chmod(0o755)
    assert ask("verdict")[0] == 3
    os.chown(here, -1, pwd.getpwuid(NOBODY).pw_gid)
    here.chmod(0o775)
    assert ask("verdict")[0] == 0


def test_names_of_files_steer_no_terminal(here):
    for name in ("\x1b[31mred", "a\nb", "\u202egnp", "x" * 200, "<script>", "%s{}"):
        (here / "here/compute" / f"{name}.jsonl").write_text("{")
    code, told = ask("verdict")
    assert code == 3  # nobody knows what they could have answered
    assert all(c.isprintable() or c == "\n" for c in told)
    assert told.count("broken line") == 6


def test_a_name_that_no_host_has_is_a_broken_line(here):
    (path,) = here.rglob("s0002*.jsonl")
    head, *lines = path.read_text().splitlines()
    odd = ("<script>", "a|b", "n\n1", "\x1b[1m", "\u202e100n", "n" * 10_000, "=cmd()", "../x", "-n")
    for node in odd:
        lines[0] = json.dumps(json.loads(lines[0]) | {"node": node})
        path.write_text("\n".join([head, *lines]) + "\n")
        code, told = ask("verdict")
        assert code == 2, node[:20]
        assert f"{path.name}:2:" in told, node[:20]
        assert "is not the name of a node" in told, node[:20]
        assert len(told) < 1000, node[:20]
        code, told = ask("history")
        assert code == 3, node[:20]


def test_a_folder_that_everybody_may_write_to_is_named(here):
    (here / "here/compute").chmod(0o777)
    code, told = ask("verdict")
    assert code == 0
    assert "compute: everybody may write to it" in told
    assert Sessions(here, "here").open_to_all
    assert "compute: everybody may write to it" in ask("lint")[1]


def test_lint_names_users_that_are_unknown_and_a_file_system_that_maps_owners(here, monkeypatch):
    system = sites.folder() / "here/system.yaml"
    whole = system.read_text()
    system.write_text(whole + "trusted_owners: [nobody-of-this-name]\n")
    assert "no user 'nobody-of-this-name'" in ask("lint")[1]
    system.write_text(whole + "trusted_owners: ['$(reboot)']\n")
    assert "'$(reboot)' is not valid" in ask("lint")[1]
    system.write_text(whole + "trusted_owners: [4294967295]\n")  # beyond 32 bits, or -1
    assert "no user '4294967295'" in ask("lint")[1]
    system.write_text(whole)
    assert "trusted_owners" not in ask("lint")[1]
    monkeypatch.setattr(files, "mapped_owner", lambda folder: "nobody")
    assert "trusted_owners: [nobody]" in ask("lint")[1]


@root_only
def test_a_file_that_becomes_somebody_elses_is_noticed(here, monkeypatch):
    assert files.mapped_owner(here) is None
    made = files.tempfile.mkstemp

    def given_away(**how):
        handle, name = made(**how)
        os.chown(name, NOBODY, -1)
        return handle, name

    monkeypatch.setattr(files.tempfile, "mkstemp", given_away)
    assert files.mapped_owner(here) == files.name_of(NOBODY)
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


@root_only
@pytest.mark.parametrize("what", ["folder", "index", "part", "open to all"])
def test_a_store_that_somebody_else_could_have_written_decides_nothing(here, what):
    with history.open_history(here) as h:
        before = h.sql("SELECT count(*), max(value) FROM samples")
        where = h.folder
    part = next(where.glob("*.samples.parquet"))
    {
        "folder": lambda: os.chown(where, NOBODY, -1),
        "index": lambda: os.chown(where / tables.INDEX, NOBODY, -1),
        "part": lambda: os.chown(part, NOBODY, -1),
        "open to all": lambda: where.chmod(0o777),
    }[what]()
    with history.open_history(here, only=None if what in ("index", "part") else ()) as h:
        assert h.notes
        if what in ("index", "part"):
            assert h.sql("SELECT count(*), max(value) FROM samples") == before
        else:
            assert h.folder is None
            assert h.sql("SELECT count(*) FROM samples") == [(0,)]
    with history.open_history(here) as h:
        assert h.sql("SELECT count(*), max(value) FROM samples") == before


def test_what_a_command_records_goes_through_no_link(here, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (here / "here/accepted").symlink_to(tmp_path / "elsewhere")
    code, told = ask("accept", "latest", "--why", "new kernel", "--despite")
    assert code == 2
    assert "a part of its path is a link" in told
    assert not list((tmp_path / "elsewhere").iterdir())
