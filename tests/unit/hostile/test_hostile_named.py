"""Files that a person names, or that a site or Slurm keeps: one line, and never a wait."""

import json
import os
import socket

import pytest
from asked import ask
from refusals import refusal

from siteproof import files, nodesets
from siteproof.checks import session
from siteproof.curves import sweep_runs
from siteproof.errors import UserError
from siteproof.sites import machine
from siteproof.sites.schema import yamlfile
from siteproof.slurm import client
from siteproof.spack import registered
from siteproof.sweeps import keys

pytestmark = pytest.mark.deep

HEAD = (
    "job_completion_time|version|display_name|system|partition|environ|jobid|result|"
    "perf_var|perf_value|perf_unit\n"
)
LINE = "2026-01-01T00:00:00|4.9|X|here|c|e|1|pass|bw|1|MB/s\n"
CSV = "system,date,metric,value,unit,statistic,source\n"
INFO = {"time_start": "2026-01-01T00:00:00+0000", "time_end": "2026-01-01T00:10:00+0000"}


def report(case="", **told):
    text = json.dumps({"session_info": INFO | told, "runs": [{"testcases": ["@"]}]})
    return text.replace('"@"', case)


CASE = (
    '{"display_name": %s, "system": "here", "partition": "c", "environ": "e", "result": "pass",'
    ' "job_nodelist": ["n001"], "perfvalues": {"here:c:bw": [%s, null, null, null, "MB/s"]}}'
)
GIVEN = {
    "cells of 10 MB": CSV + "x" * 10_000_000 + ",a\n",
    "100,000 columns": "a," * 100_000 + "\n",
    "100,000 cells": CSV + "a," * 100_000 + "\n",
    "year 9999": CSV + "here,9999-12-31,Stream.triad,1,MB/s,mean,s\n",
    "year 1": CSV + "here,0001-01-01,Stream.triad,1,MB/s,mean,s\n",
    "year 0": CSV + "here,0000-01-01,Stream.triad,1,MB/s,mean,s\n",
    "huge number": CSV + f"here,2020-01-01,Stream.triad,1{'0' * 5000},MB/s,mean,s\n",
    "exponent": CSV + "here,2020-01-01,Stream.triad,1e999999999,MB/s,mean,s\n",
    "log of the year 9999": HEAD + LINE.replace("2026", "9999"),
    "log of the year 1": HEAD + LINE.replace("2026", "0001"),
    "log with a huge number": HEAD + LINE.replace("|1|MB", f"|1{'0' * 6000}|MB"),
    "log with a cell of 10 MB": HEAD + LINE.replace("X", "X" * 10_000_000),
    "log of 100,000 columns": HEAD.strip() + "|a" * 100_000 + "\n" + LINE,
    "deep": '{"session_info":' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep case": report(CASE % ("[" * 900 + "]" * 900, "1")),
    "report of the year 1": report(time_start="0001-01-01T00:00:00+14:00"),
    "report of the year 9999": report(time_end="9999-12-31T23:59:59-14:00"),
    "report of an endless time": report(time_start_unix="@@").replace('"@@"', "1" + "0" * 4000),
    "report of no time": report(time_start_unix="@@").replace('"@@"', "1e999"),
    "a value without end": report(CASE % ('"x"', "1" + "0" * 5000)),
    "a value of no measure": report(CASE % ('"x"', "1" + "0" * 4000)),
    "nothing": "",
    "zeros": "\0" * 1000,
}


def test_what_is_given_to_import_is_a_line_or_is_imported_in_part(here, tmp_path):
    for what, text in GIVEN.items():
        given = tmp_path / ("given.log" if text[:1] in HEAD[:1] + "{\0" else "given.csv")
        given.write_text(text)
        code, told = ask("import", str(given), "--apply")
        assert code == 2, (what, told)
        assert all(len(line) < 2000 for line in told.splitlines()), what
        assert not list(here.glob("here/imported/*")), what


def test_what_is_no_file_is_a_line_of_import(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    held = socket.socket(socket.AF_UNIX)
    os.mkfifo("fifo")
    held.bind("socket")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(40 << 30)
    for what in ("fifo", "socket", "/dev/zero", "/dev/null", "folder", "sparse"):
        code, told = ask("import", what, "--apply")
        assert code == 2, (what, told)
        assert len(told.splitlines()) == 1, (what, told)
    held.close()


def test_a_link_of_ones_own_may_be_imported(here, tmp_path):
    (tmp_path / "log").write_text(HEAD + LINE)
    (tmp_path / "link").symlink_to(tmp_path / "log")
    code, told = ask("import", str(tmp_path / "link"), "--apply")
    assert code == 0, told


def test_a_pipe_in_place_of_a_sites_file_is_a_mistake_of_the_site(here):
    for name in ("system.yaml", "criteria.yaml", "published.csv", "waivers.yaml"):
        path = files.Path(os.environ["SITEPROOF_SITES"]) / "here" / name
        before = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        code, told = ask("lint")
        assert code == 2, name
        assert f"{name}:1: refused: it is not a regular file" in told, name
        path.unlink()
        if before is not None:
            path.write_bytes(before)


def test_a_site_of_many_aliases_is_a_mistake(tmp_path):
    text = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
    )
    for given in (text, "a: " + "[" * 3000, "a: {" * 3000, "a: " + "9" * 100_000, "- " * 3000):
        (tmp_path / "x.yaml").write_text(given)
        document = yamlfile.read(tmp_path / "x.yaml")
        assert document.mistakes or document.data == {"a": "9" * 100_000}


def test_slurms_files_are_read_without_a_wait_and_to_an_end(tmp_path, monkeypatch):
    conf = tmp_path / "slurm.conf"
    os.mkfifo(conf)
    assert machine.cluster_name(conf) is None
    conf.unlink()
    conf.symlink_to("/dev/zero")
    assert machine.cluster_name(conf) is None
    conf.unlink()
    for n in range(2000):
        (tmp_path / f"slurm.conf{n or ''}").write_text(f"include slurm.conf{n + 1}\n")
    assert machine.cluster_name(conf) is None
    conf.write_text("ClusterName=c\ninclude slurm.conf\n")
    assert machine.cluster_name(conf) == "c"


def test_a_node_list_that_fills_the_memory_is_a_line(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    for text in ("n[1-999999999]", "n[1-2-9999999]", "n[", "@all", "n[0-1_000_000]"):
        monkeypatch.setenv("SLURM_JOB_NODELIST", text)
        assert "SLURM_JOB_NODELIST" in refusal(client.allocation), text


def test_points_that_fill_the_memory_are_a_line():
    for text in ("1-999999999", "1-2-99999999", "0-1_000_000", "x", "1" * 5000):
        assert "not points of the sweep" in refusal(sweep_runs._numbers, text, 10), text[:20]
    assert nodesets.numbers("1-3,7") == {1, 2, 3, 7}
    assert nodesets.numbers("") == set()


def test_a_restored_session_has_the_name_of_a_session(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    stages = files.stages()
    given = tmp_path / "report.json"
    for stage, name in (
        (stages / "20261101T000000Z-00000ab", "20261101T000000Z-00000ab"),
        (f"{stages}/..", ""),
        (stages / "a b", ""),
        (stages / "x/y", ""),
        ("/etc", ""),
    ):
        given.write_text(json.dumps({"session_info": {"prefix_stage": str(stage)}}))
        assert session._restored(str(given), stages) == name
    given.write_text("[" * 100_000)
    assert session._restored(str(given), stages) == ""
    given.unlink()
    os.mkfifo(given)
    assert session._restored(str(given), stages) == ""


def test_what_a_lost_job_left_of_knobs_is_read_once_and_named(tmp_path):
    turn = tmp_path / "knobs.d/1"
    turn.mkdir(parents=True)
    os.mkfifo(turn / "n001.was")
    (turn / "n002.was").symlink_to("/etc/shadow")
    (turn / "<script>.was").write_text("a\tb\tc")
    found = keys.not_restored(tmp_path)
    assert found.keys() == {"n001", "n002"}
    assert all("refused" in told and "root:" not in told for told in found.values())


def test_software_that_is_described_wrongly_is_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    folder = registered.folder("here", "env")
    folder.mkdir(parents=True)
    for text in ("[" * 100_000, "{}", '{"roots": 1}', "1" * 5000, "null", ""):
        (folder / registered.LOCK).write_text(text)
        assert refusal(registered.read_lock, folder / registered.LOCK), text[:20]
        (folder / registered.REGISTERED).write_text(text)
        assert refusal(registered.read, "here", "env"), text[:20]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root gives files away")
def test_software_that_somebody_else_registered_runs_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setattr(files, "_trusted", set())
    folder = registered.folder("here", "env")
    folder.mkdir(parents=True)
    (folder / registered.REGISTERED).write_text("{}")
    os.chown(folder / registered.REGISTERED, 65534, -1)
    with pytest.raises(UserError, match="belongs to"):
        registered.read("here", "env")
