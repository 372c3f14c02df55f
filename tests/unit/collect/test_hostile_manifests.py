"""What can be put in place of a manifest, of samples or of a note: it costs itself only."""

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import stages_made
from clone import CORE, wait_for
from rows import rows
from stages_made import NOBODY, of_nodes
from test_hostile_stages import INSTEAD, collect, lost

from siteproof import files
from siteproof.collect import stages
from siteproof.errors import UserError
from siteproof.record import manifest, samples, sessions
from siteproof.record.samples import Header, Sample

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root gives files away")


@pytest.fixture
def made(tmp_path):
    return of_nodes(tmp_path)


def rewrite(made, **changed):
    """Change the stage's own manifest, as its job can."""
    path = made.stage / manifest.NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def everything(folder):
    """Every path below a folder, with what a file holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


# ---- the manifest


FORGED = {
    "system": "../../x",
    "partition": "..",
    "environment": "a/b",
    "session": "../../x",
    "check": "gate.jsonl/",
    "jobs": ["/../../gate"],
    "expected": "n[1-999999999]",
    "parsers": {"likwid-bench": "../../x"},
    "derive": "os.path",
    "metrics": ["../x"],
    "pid": 0,
    "limit": 10**30,
    "started": 10**300,
    "mode": "x\ny",
    "scheduler": "sh",
    "lost": {"../n1": "x"},
    "spared": ["a b"],
    "turns": [[0, "../n1", "n2"]],
    "points": {"1": {"values": {"tasks": "0", "tasks_per_node": "1"}, "dims": []}},
    "conditions": {f"c{n}": "x" for n in range(1000)},
    "campaign": "x" * 300,
}
MORE = [
    ("jobs", ["--help"]),
    ("jobs", ["1,2"]),
    ("jobs", ["9" * 30]),
    ("jobs", [str(n) for n in range(1000)]),
    ("pid", -1),
    ("pid", 2**70),
    ("expected", ""),
    ("expected", "n1,../../x"),
    ("expected", "@all"),
    ("parsers", {"likwid-bench": "unheard_of"}),
    ("parsers", {"likwid-bench": "likwid.os"}),
    ("derive", "stream.x"),
    ("derive", "cpu.x y"),
    ("started", -1),
    ("limit", -1),
    ("system", ""),
    ("system", ".set-aside"),
    ("session", ".x"),
    ("session", "a.b"),
    ("environment", "x" * 300),
    ("points", {"1": {"values": {}, "dims": []}}),
    ("points", {str(10**9): {"values": {"tasks": "1", "tasks_per_node": "1"}, "dims": []}}),
]


@rows("key, value", [*FORGED.items(), *MORE])
@pytest.mark.deep
def test_no_name_or_number_of_a_manifest_leads_anywhere(tmp_path, key, value):
    made = of_nodes(tmp_path, copy=False)  # as an earlier version has left it
    (made.perflogs / "here").mkdir()
    (made.perflogs / "here/gate.jsonl").write_text("{}")
    rewrite(made, **{key: value})
    before = everything(tmp_path)
    error = lost(made)
    assert isinstance(error, UserError)
    assert str(error).startswith(f"{made.stage / manifest.NAME}: not a valid manifest: ")
    assert len(str(error).splitlines()) == 1
    after = everything(tmp_path)
    new = {path for path in after.keys() - before.keys() if not path.endswith(".set-aside")}
    assert {str(Path(path).parent) for path in new} == {"perflogs/.set-aside"}
    assert before.items() <= after.items()


@rows(
    "text",
    ["[" * 100_000, '{"a":' * 5000, "1" * 5000, '{"pid": 1e999}', "\0", '{"pid": NaN}', "", "{}"],
)
def test_a_manifest_that_is_no_json_of_ours_is_set_aside(tmp_path, text):
    made = of_nodes(tmp_path, copy=False)
    (made.stage / manifest.NAME).write_text(text)
    assert "not a valid manifest" in str(lost(made))
    [told] = sessions.of_system(made.perflogs, "any")
    assert told.stage.endswith("Stream")


@rows("instead", INSTEAD)
def test_what_is_no_file_is_no_manifest(tmp_path, instead, monkeypatch):
    made = of_nodes(tmp_path, copy=False)
    monkeypatch.chdir(made.stage)
    (made.stage / manifest.NAME).unlink()
    INSTEAD[instead](made.stage / manifest.NAME)
    assert "refused" in str(lost(made))


@rows("changed", [{"system": "there"}, {"expected": "n1"}, {"metrics": []}, {"mode": "quick"}])
def test_a_manifest_that_differs_from_its_copy_is_set_aside(tmp_path, changed):
    made = of_nodes(tmp_path)
    rewrite(made, **changed)
    assert "differs from its copy" in str(lost(made))
    assert [one.system for one in sessions.of_system(made.perflogs, "here")] == ["here"]
    assert sessions.of_system(made.perflogs, "there") == []
    assert list(samples.files(made.perflogs, "here")) == []
    (made.stage / manifest.NAME).unlink()
    made.job.save(made.stage, made.stages)
    (made.stage / manifest.NAME).unlink()
    assert "was removed" in str(lost(made))


def test_a_node_cannot_call_its_results_collected(made):
    (made.stage / manifest.DONE).touch()
    assert lost(made) == 6
    assert list(manifest.pending(made.stages)) == []
    assert not (made.stages / stages_made.SESSION / manifest.KEPT).exists()


def test_a_stage_directory_that_is_gone_is_named(made):
    made.stage.rename(made.stages.parent / "away")
    assert "is missing" in str(lost(made))
    assert sessions.of_system(made.perflogs, "here")
    (made.stages.parent / "away").rename(made.stage)
    assert lost(made) == 6
    assert sessions.of_system(made.perflogs, "here") == []


def test_a_session_that_is_killed_between_copy_and_manifest_is_collected(made, monkeypatch):
    made.job.jobs.append("99")
    write = files.write

    def killed(path, data, **how):
        if path.name == manifest.NAME:
            raise KeyboardInterrupt
        write(path, data, **how)

    monkeypatch.setattr(files, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        made.job.save(made.stage, made.stages)
    monkeypatch.undo()
    assert lost(made) == 6


def test_a_session_that_lives_asks_no_file_what_its_job_was(made):
    (made.stage / manifest.NAME).write_text("{")
    found = stages.collect(made.stage, made.perflogs, job=made.job)
    assert {s.status for s in found} == {"ok"}


def test_the_copy_is_nothing_for_other_users(made):
    [kept] = (made.stages / stages_made.SESSION).glob(".manifests")
    assert kept.stat().st_mode & 0o7 == 0


def test_a_session_collects_only_what_is_in_its_own_folder(made):
    (made.stages / "s2").mkdir()
    made.stage.rename(made.stages / "s2/Stream")
    [(stage, error), _] = sorted(
        stages.collect_lost(made.stages, made.perflogs), key=lambda found: "s2" not in str(found[0])
    )
    assert stage.parent.name == "s2"
    assert "not a manifest of this session" in str(error)


def test_no_process_of_anybody_else_keeps_a_stage_waiting(made, monkeypatch):
    made.job.host = "elsewhere"
    made.job.started = time.time() + 10**8
    assert not made.job.watched(made.stage)


@root_only
def test_nor_does_a_process_of_a_stranger_that_is_called_as_the_session_was(made):
    with subprocess.Popen(["reframe", "60"], executable="/bin/sleep", user=NOBODY) as stranger:
        made.job.pid = stranger.pid
        made.job.save(made.stage, made.stages)
        try:
            command = Path(f"/proc/{stranger.pid}/cmdline")
            wait_for(lambda: command.read_bytes().startswith(b"reframe"))
            assert isinstance(lost(made), int)
        finally:
            stranger.kill()


# ---- what is written


def test_a_mark_is_not_written_through_a_link(made, tmp_path):
    (made.stage / manifest.DONE).symlink_to(tmp_path / "nologin")
    assert lost(made) == 6
    assert not (tmp_path / "nologin").exists()


def test_nor_is_a_manifest(made, tmp_path):
    (tmp_path / "profile").write_text("mine")
    (made.stage / manifest.NAME).unlink()
    (made.stage / manifest.NAME).symlink_to(tmp_path / "profile")
    (made.stage / f".{manifest.NAME}.{os.getpid()}").symlink_to(tmp_path / "profile")
    with pytest.raises(UserError, match="link"):
        made.job.save(made.stage, made.stages)
    assert (tmp_path / "profile").read_text() == "mine"


@rows("place", ["here", "here/compute"])
def test_samples_are_not_written_through_a_link_below_perflogs(tmp_path, place):
    made = of_nodes(tmp_path)
    (tmp_path / "outside").mkdir()
    (made.perflogs / place).parent.mkdir(exist_ok=True)
    (made.perflogs / place).symlink_to(tmp_path / "outside")
    assert isinstance(lost(made), UserError)
    assert list((tmp_path / "outside").iterdir()) == []


@rows("put", [os.mkfifo, lambda path: path.symlink_to("x"), os.mkdir])
def test_nor_over_what_is_no_file_of_samples(tmp_path, put):
    made = of_nodes(tmp_path)
    header = collect(made)["n1", "Stream.triad"].header
    target = samples.path_of(made.perflogs, header)
    target.unlink()
    put(target)
    with pytest.raises(UserError):
        collect(made)


HEADER = Header("s1", "here", "compute", "system", "Stream", "1", "2026-11-21T18:00:00+00:00")


@rows(
    "changed",
    [
        {"system": "../../x"},
        {"system": "a/b"},
        {"partition": ".."},
        {"job": "/../../gate"},
        {"session": ".x"},
        {"partition": ".set-aside"},
    ],
)
def test_the_writer_of_samples_leaves_its_folder_for_no_header(tmp_path, changed):
    header = replace(HEADER, **changed)
    with pytest.raises(UserError):
        samples.write(tmp_path / "perflogs", header, [Sample(header, "n1", "Stream.*")])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_result_replaces_its_own_file_and_no_other_jobs(tmp_path):
    path = samples.write(tmp_path, HEADER, [])
    samples.write(tmp_path, HEADER, [])
    other = replace(HEADER, job="2")
    path.write_bytes(samples.dump(other, []))
    with pytest.raises(UserError, match="not the same result"):
        samples.write(tmp_path, HEADER, [])
    assert samples.read_header(path).job == "2"


@root_only
def test_what_root_collects_for_a_user_is_that_users_and_replaces_no_file_of_root(tmp_path):
    path = samples.write(tmp_path, HEADER, [])
    with pytest.raises(UserError, match="not the same result"):
        samples.write(tmp_path, HEADER, [], owner=NOBODY)
    path.unlink()
    assert samples.write(tmp_path, HEADER, [], owner=NOBODY).stat().st_uid == NOBODY
    samples.write(tmp_path, HEADER, [], owner=NOBODY)


@root_only
def test_root_leaves_alone_what_a_stranger_calls_a_lost_session(made):
    for top, folders, names in os.walk(made.stage):
        for name in (".", *folders, *names):
            os.lchown(Path(top) / name, NOBODY, -1)
    assert "belongs to nobody" in str(lost(made))
    assert list(samples.files(made.perflogs, "here")) == []


# ---- set aside


def test_a_broken_stage_is_noted_until_it_is_collected_and_stops_no_other(made, tmp_path):
    rewrite(made, mode="quick")
    other = of_nodes(tmp_path, "Other")
    for _ in range(2):
        found = dict(stages.collect_lost(made.stages, made.perflogs))
        assert isinstance(found[made.stage], UserError)
    assert found.get(other.stage, 6) == 6
    [told] = sessions.of_system(made.perflogs, "here")
    assert "Stream: the manifest differs" in str(told)
    made.job.save(made.stage, made.stages)
    assert lost(made) == 6
    assert sessions.of_system(made.perflogs, "here") == []


def test_a_stage_is_set_aside_whatever_collecting_it_raises(made, tmp_path, monkeypatch):
    other = of_nodes(tmp_path, "Other")
    to_samples = stages.to_samples

    def fails(job, outcomes, now):
        if job.check == "Stream":
            raise KeyError("x")
        return to_samples(job, outcomes, now)

    monkeypatch.setattr(stages, "to_samples", fails)
    found = dict(stages.collect_lost(made.stages, made.perflogs))
    assert found[other.stage] == 6
    assert "KeyError" in str(found[made.stage])
    assert len(sessions.of_system(made.perflogs, "here")) == 1


def test_what_is_discarded_is_told_no_more_and_deleted_nowhere(made):
    rewrite(made, mode="quick")
    lost(made)
    sessions.discard(made.perflogs, made.stage, "anna", "of no use")
    assert sessions.of_system(made.perflogs, "here") == []
    assert list(stages.collect_lost(made.stages, made.perflogs)) == []
    assert (made.stage / "raw/n1/stdout").exists()
    [note] = (made.perflogs / ".set-aside").iterdir()
    kept = json.loads(note.read_text())
    assert (kept["by"], kept["reason"]) == ("anna", "of no use")


@rows("text", ["", "{", "[]", '{"stage": 1}', "[" * 100_000])
def test_a_note_that_cannot_be_read_is_told_as_such(tmp_path, text):
    made = of_nodes(tmp_path)
    rewrite(made, mode="quick")
    lost(made)
    [note] = (made.perflogs / ".set-aside").iterdir()
    note.write_text(text)
    assert "cannot be read" in str(sessions.of_system(made.perflogs, "here")[0])
    assert isinstance(lost(made), UserError)


def test_too_many_notes_of_broken_stages_are_reported(made, monkeypatch):
    rewrite(made, mode="quick")
    lost(made)
    monkeypatch.setattr(sessions, "MAX_FILES", 0)
    [told] = sessions.of_system(made.perflogs, "here")
    assert "too many files" in str(told)
    assert isinstance(lost(made), UserError)


def test_a_note_has_no_control_characters(made):
    error = UserError("x", "a\x1b[2Jb")
    sessions.note(made.perflogs, made.stage, error)
    assert str(sessions.of_system(made.perflogs, "any")[0]).isprintable()


# ---- commands


def test_every_verdict_names_what_was_set_aside_until_somebody_resolves_it(good):
    made = of_nodes(good.data, copy=False)
    rewrite(made, parsers={"likwid-bench": "unheard_of"})
    done = good.reframe("-r", "-n", "HostParameters")
    assert done.code == 0, done
    assert done.err.count("siteproof: ") == 1
    for command in (("verdict",), ("verdict", "--json"), ("nodes",), ("nodes", "--json")):
        assert "Stream: not a valid manifest: parsers: 'unheard_of'" in good.inside(*command).out
    page = good.folder / "page.md"
    good.inside("report", "--output", page)
    assert "Set aside, not collected" in page.read_text()
    done = good.inside("collect")
    assert "is not possible in a job" in done.refused()
    assert "nothing left" not in done.out
    assert "siteproof collect --discard STAGE --why" in done.out
    assert (
        "nothing is set aside"
        in good.inside("collect", "--discard", "stage/x", "--why", "y").refused()
    )
    done = good.inside("collect", "--discard", f"stage/{stages_made.SESSION}", "--why", "y")
    assert (done.code, done.out.startswith("discarded: stage/")) == (0, True)
    assert "set aside" not in good.inside("verdict").out
    done = good.inside("collect")
    assert (done.code, done.out) == (0, "nothing left to collect\n")


def test_no_pass_is_whole_while_something_is_set_aside(good):
    assert good.reframe("-r", *CORE).code == 0
    assert good.inside("verdict").code == 0
    rewrite(of_nodes(good.data, copy=False), parsers={"likwid-bench": "unheard_of"})
    assert good.inside("collect").code == 2
    done = good.inside("verdict")
    assert (done.code, set(good.verdicts().values())) == (3, {"PASS"})
    assert json.loads(good.inside("verdict", "--json").out)["exit_code"] == 3
    assert (
        good.inside("collect", "--discard", f"stage/{stages_made.SESSION}", "--why", "y").code == 0
    )
    assert good.inside("verdict").code == 0
