"""What nodes and other users can put into a stage directory, and what it does: cost itself."""

import contextlib
import json
import os
import socket
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import stages_made
from clone import CORE, wait_for
from stages_made import BEGAN, NOBODY, SECRET, of_nodes, of_pairs, of_sweep

from siteproof import files
from siteproof.collect import outcome, raw, stages
from siteproof.errors import UserError
from siteproof.parsers import likwid
from siteproof.record import descriptions, manifest, samples, set_aside
from siteproof.record.samples import Header, Sample

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root gives files away")


@pytest.fixture
def made(tmp_path):
    return of_nodes(tmp_path)


def collect(made):
    """The samples by node and metric."""
    found = stages.collect(made.stage, made.perflogs)
    return {(s.node, s.metric): s for s in found}


def failure(made, node="n1"):
    """Status and reason of a node; the others must have their figures."""
    found = collect(made)
    assert found["n3", "Stream.triad"].status == "ok"
    sample = found[node, "Stream.*"]
    return sample.status, sample.why


def lost(made):
    """What collecting lost sessions says of this one."""
    return dict(stages.collect_lost(made.stages, made.perflogs))[made.stage]


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


# ---- raw files


def put_link(aim):
    return lambda path: path.symlink_to(aim)


def put_sparse(path):
    with path.open("wb") as stream:
        stream.truncate(40 << 30)


def put_socket(path):
    bound = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(path.parent):
        bound.bind(path.name)
    bound.close()


INSTEAD = {
    "shadow": put_link("/etc/shadow"),
    "zero": put_link("/dev/zero"),
    "kmsg": put_link("/proc/kmsg"),
    "loop": put_link("stdout"),
    "other node": put_link("../n2/stdout"),
    "fifo": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "socket": put_socket,
    "sparse": put_sparse,
}


@pytest.mark.parametrize("instead", INSTEAD)
@pytest.mark.parametrize("name", ["stdout", "stderr", "meta", "facts"])
def test_only_a_regular_file_of_some_size_is_read(made, name, instead, monkeypatch):
    monkeypatch.chdir(made.stage)
    (made.stage / "raw/n1" / name).unlink()
    INSTEAD[instead](made.stage / "raw/n1" / name)
    status, why = failure(made)
    assert status == "generic"
    assert why.startswith(f"result cannot be read: {name}: refused")


@pytest.mark.parametrize("name", ["dims", "stdout", "stderr", "exit"])
def test_nor_is_anything_else_read_of_a_run(tmp_path, name):
    made = of_sweep(tmp_path)
    (made.stage / "raw/00001/run.1" / name).unlink()
    (made.stage / "raw/00001/run.1" / name).symlink_to("/etc/passwd")
    first = stages.collect(made.stage, made.perflogs)[0]
    assert (first.status, first.dims["depth"]) == ("generic", "2")
    assert "refused" in first.why


def test_a_link_in_place_of_a_result_or_of_all_is_not_followed(made):
    (made.stage / "raw/n1").rename(made.stage / "elsewhere")
    (made.stage / "raw/n1").symlink_to("../elsewhere")
    assert "link" in failure(made)[1]
    (made.stage / "raw").rename(made.stage / "all")
    (made.stage / "raw").symlink_to("all")
    assert {s.status for s in collect(made).values()} == {"generic"}


@root_only
def test_a_file_of_another_user_counts_for_nothing(made, tmp_path):
    os.chown(made.stage / "raw/n1/stdout", NOBODY, -1)
    assert "belongs to nobody" in failure(made)[1]
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    os.chown(made.stage, NOBODY, -1)  # and root's file is none of the stage's owner
    (made.stage / "raw/n2/stdout").unlink()
    os.link(secret, made.stage / "raw/n2/stdout")
    job = manifest.parse("", (made.stage / manifest.NAME).read_bytes())
    told = dict(stages.of_nodes(made.stage, job, ""))["n2"]
    assert "belongs to root" in told.why


def test_300_000_facts_are_no_perflog_of_135_megabytes(made):
    with (made.stage / "raw/n1/facts").open("a") as stream:
        stream.writelines(f"fact{n}={n}\n" for n in range(300_000))
    assert failure(made)[0] == "generic"
    with (made.stage / "raw/n1/facts").open("w") as stream:
        stream.writelines(f"f{n}={n}\n" for n in range(501))
    assert failure(made) == ("parse", "facts: more than 500 keys")
    (made.stage / "raw/n1/facts").write_text(f"program=likwid-bench\nlong={'x' * 16385}\n")
    assert "'long' is longer than" in failure(made)[1]
    assert sum(path.stat().st_size for path in made.perflogs.rglob("*.jsonl")) < 10_000


def test_long_conditions_of_one_node_stay_out_of_the_samples(made):
    facts = made.stage / "raw/n1/facts"
    facts.write_text(facts.read_text() + "".join(f"f{n}={'x' * 10_000}\n" for n in range(5)))
    assert "conditions of 50" in failure(made)[1]


def test_run_folders_have_plain_numbers_and_are_not_without_number(tmp_path, monkeypatch):
    made = of_sweep(tmp_path)
    folder = made.stage / "raw/00001"
    for name in ("run.01", "run.-1", "run.\u0662", "run.9999999", "run.1.2", "run."):
        (folder / name).mkdir()
    assert stages.collect(made.stage, made.perflogs)[0].status == "ok"
    monkeypatch.setattr(raw, "MAX_FILES", 20)
    for number in range(30):
        (folder / f"junk{number}").mkdir()
    first = stages.collect(made.stage, made.perflogs)[0]
    assert (first.status, "too many files" in first.why) == ("generic", True)


def test_a_result_is_no_larger_in_all_than_its_parts_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "MAX_BYTES", 10_000)
    made = of_sweep(tmp_path)
    folder = made.stage / "raw/00001"
    for number in range(2, 30):
        made.run(folder, number, "x" * 1000)
    assert "too large" in stages.collect(made.stage, made.perflogs)[0].why


def test_raw_files_without_number_hide_no_result(made, monkeypatch):
    monkeypatch.setattr(raw, "MAX_RESULTS", 10)
    for number in range(20):
        (made.stage / "raw" / f"junk{number}").touch()
    assert stages.measured(made.stage, ["n1", "n3", "n9"]) == {"n1", "n3"}
    assert {node for node, _ in collect(made)} == {"n1", "n2", "n3"}


def test_folders_within_folders_are_not_walked(made):
    path = made.stage / "raw/n1"
    with contextlib.chdir(path):
        for _ in range(2000):
            Path("d").mkdir()
            os.chdir("d")
    assert list(manifest.pending(made.stages)) == [made.stage]
    assert lost(made) == 6
    subprocess.run(["rm", "-rf", path], check=True)  # pytest's own way is recursive


@pytest.mark.parametrize(
    "end",
    ["9" * 5000, "-1", "0", "1", "-62135596800", "253402300799", "99999999999", "1e9", "\u0663"],
)
def test_a_nodes_clock_moves_no_time_out_of_the_jobs(made, end):
    meta = made.stage / "raw/n1/meta"
    meta.write_text(meta.read_text().replace(f"end={BEGAN + 40}", f"end={end}"))
    time_of = collect(made)["n3", "Stream.triad"].header.time
    assert time_of == datetime.fromtimestamp(BEGAN + 40, UTC).isoformat()


def test_a_session_that_was_lost_for_weeks_is_made_no_younger_by_a_node(made, monkeypatch):
    monkeypatch.setattr(stages.time, "time", lambda: BEGAN + 20.0 * 86400)
    meta = made.stage / "raw/n1/meta"
    meta.write_text(meta.read_text().replace(f"end={BEGAN + 40}", f"end={BEGAN + 19 * 86400}"))
    time_of = collect(made)["n3", "Stream.triad"].header.time
    assert time_of == datetime.fromtimestamp(BEGAN + 40, UTC).isoformat()


def test_a_job_that_began_in_the_future_ends_now(tmp_path):
    made = of_nodes(tmp_path)
    made.job.started = time.time() + 10**8
    made.job.save(made.stage, made.stages)
    assert collect(made)["n3", "Stream.triad"].header.time <= datetime.now(UTC).isoformat()


@pytest.mark.parametrize("key", ["mode", "published"])
def test_a_node_does_not_say_under_which_rules_it_was_measured(made, key):
    facts = made.stage / "raw/n1/facts"
    facts.write_text(f"{facts.read_text()}{key}=acceptance\n")
    assert failure(made) == ("invalid", f"a node must not set '{key}' itself")


def test_nor_which_link_point_or_repetition_it_was(tmp_path):
    pairs = of_pairs(tmp_path / "a")
    (pairs.stage / "raw/00000/facts").write_text("program=iperf3\nlink=wan\n")
    (pairs.stage / "raw/00001/run.1/dims").write_text("direction=out\ntrial=7\n")
    found = stages.collect(pairs.stage, pairs.perflogs)
    assert {s.trial for s in found} == {1, 2}
    assert "must not set 'link'" in next(s.why for s in found if s.node == "n1")
    points = of_sweep(tmp_path / "b")
    (points.stage / "raw/00001/run.1/dims").write_text("depth=1000\n")
    found = stages.collect(points.stage, points.perflogs)
    assert {s.dims["depth"] for s in found} == {"2", "4", "8"}


@pytest.mark.parametrize(
    ("reading", "status"),
    [
        ({"value": "1e60"}, "invalid"),
        ({"value": "1." + "1" * 200}, "invalid"),
        ({"value": "0e-99999"}, "invalid"),
        ({"unit": "parsecs"}, "parse"),
        ({"dims": {"trial": "x"}}, "parse"),
        ({"dims": {"trial": "9" * 5000}}, "parse"),
        ({"dims": {"a": "x" * 2000}}, "parse"),
        ({"dims": {f"d{n}": "x" for n in range(100)}}, "parse"),
    ],
)
def test_no_sample_is_written_that_could_not_be_read_again(made, monkeypatch, reading, status):
    parse = likwid.parse

    def hostile(text):
        found = parse(text)
        return [likwid.Reading(**{**vars(found[0]), **as_reading(reading)}), *found[1:]]

    def as_reading(told):
        return {k: samples.Decimal(v) if k == "value" else v for k, v in told.items()}

    monkeypatch.setattr(likwid, "parse", hostile)
    assert {s.status for s in collect(made).values()} == {status}
    for path in samples.files(made.perflogs, "here"):
        samples.read(path)


@pytest.mark.parametrize(
    "error", [KeyError("x"), RecursionError(), MemoryError(), ValueError("\x1b["), IndexError(1)]
)
def test_an_output_that_no_parser_has_foreseen_is_an_error_of_its_node(made, monkeypatch, error):
    parse = likwid.parse

    def fails_once(text):
        if text == "hostile":
            raise error
        return parse(text)

    monkeypatch.setattr(likwid, "parse", fails_once)
    (made.stage / "raw/n1/stdout").write_text("hostile")
    status, why = failure(made)
    assert status == "parse"
    assert why.startswith(f"{outcome.UNFORESEEN}: {type(error).__name__}")
    assert why.isprintable()


def test_descriptions_that_have_nothing_in_common_do_not_fill_the_file(tmp_path, monkeypatch):
    made = stages_made.of_descriptions(tmp_path)
    monkeypatch.setattr(descriptions, "LARGEST", 20_000)
    kept = stages_made.recorded("description/bare_metal")
    (made.stage / "raw/n1/stdout").write_text(kept.replace(" = ", f" = {'x' * 400}"))
    found = stages.collect(made.stage, made.perflogs)
    assert [s.node for s in found if s.status != "ok"] == ["n1"]
    [path] = made.perflogs.rglob("*.gz")
    assert set(descriptions.read(path)) == {"n2", "n3"}


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


@pytest.mark.parametrize(("key", "value"), [*FORGED.items(), *MORE], ids=lambda v: str(v)[:30])
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


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 5000, "1" * 5000, '{"pid": 1e999}', "\0", '{"pid": NaN}', "", "{}"],
)
def test_a_manifest_that_is_no_json_of_ours_is_set_aside(tmp_path, text):
    made = of_nodes(tmp_path, copy=False)
    (made.stage / manifest.NAME).write_text(text)
    assert "not a valid manifest" in str(lost(made))
    [told] = set_aside.of_system(made.perflogs, "any")
    assert told.stage.endswith("Stream")


@pytest.mark.parametrize("instead", INSTEAD)
def test_what_is_no_file_is_no_manifest(tmp_path, instead, monkeypatch):
    made = of_nodes(tmp_path, copy=False)
    monkeypatch.chdir(made.stage)
    (made.stage / manifest.NAME).unlink()
    INSTEAD[instead](made.stage / manifest.NAME)
    assert "refused" in str(lost(made))


@pytest.mark.parametrize(
    "changed", [{"system": "there"}, {"expected": "n1"}, {"metrics": []}, {"mode": "quick"}]
)
def test_a_manifest_that_differs_from_its_copy_is_set_aside(made, changed):
    rewrite(made, **changed)
    assert "differs from its copy" in str(lost(made))
    assert [one.system for one in set_aside.of_system(made.perflogs, "here")] == ["here"]
    assert set_aside.of_system(made.perflogs, "there") == []
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
    assert set_aside.of_system(made.perflogs, "here")
    (made.stages.parent / "away").rename(made.stage)
    assert lost(made) == 6
    assert set_aside.of_system(made.perflogs, "here") == []


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


@pytest.mark.parametrize("place", ["here", "here/compute"])
def test_samples_are_not_written_through_a_link_below_perflogs(made, tmp_path, place):
    (tmp_path / "outside").mkdir()
    (made.perflogs / place).parent.mkdir(exist_ok=True)
    (made.perflogs / place).symlink_to(tmp_path / "outside")
    assert isinstance(lost(made), UserError)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("x"), os.mkdir])
def test_nor_over_what_is_no_file_of_samples(made, put):
    header = collect(made)["n1", "Stream.triad"].header
    target = samples.path_of(made.perflogs, header)
    target.unlink()
    put(target)
    with pytest.raises(UserError):
        collect(made)


HEADER = Header("s1", "here", "compute", "system", "Stream", "1", "2026-11-21T18:00:00+00:00")


@pytest.mark.parametrize(
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
    header = Header(**{**vars(HEADER), **changed})
    with pytest.raises(UserError):
        samples.write(tmp_path / "perflogs", header, [Sample(header, "n1", "Stream.*")])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_result_replaces_its_own_file_and_no_other_jobs(tmp_path):
    path = samples.write(tmp_path, HEADER, [])
    samples.write(tmp_path, HEADER, [])
    other = Header(**{**vars(HEADER), "job": "2"})
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
    [told] = set_aside.of_system(made.perflogs, "here")
    assert "Stream: the manifest differs" in str(told)
    made.job.save(made.stage, made.stages)
    assert lost(made) == 6
    assert set_aside.of_system(made.perflogs, "here") == []


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
    assert len(set_aside.of_system(made.perflogs, "here")) == 1


def test_what_is_discarded_is_told_no_more_and_deleted_nowhere(made):
    rewrite(made, mode="quick")
    lost(made)
    set_aside.discard(made.perflogs, made.stage, "anna")
    assert set_aside.of_system(made.perflogs, "here") == []
    assert list(stages.collect_lost(made.stages, made.perflogs)) == []
    assert (made.stage / "raw/n1/stdout").exists()
    [note] = (made.perflogs / ".set-aside").iterdir()
    assert json.loads(note.read_text())["by"] == "anna"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stage": 1}', "[" * 100_000])
def test_a_note_that_cannot_be_read_is_told_as_such(made, text):
    rewrite(made, mode="quick")
    lost(made)
    [note] = (made.perflogs / ".set-aside").iterdir()
    note.write_text(text)
    assert "cannot be read" in str(set_aside.of_system(made.perflogs, "here")[0])
    assert isinstance(lost(made), UserError)


def test_too_many_notes_of_broken_stages_are_reported(made, monkeypatch):
    rewrite(made, mode="quick")
    lost(made)
    monkeypatch.setattr(set_aside, "MAX_FILES", 0)
    [told] = set_aside.of_system(made.perflogs, "here")
    assert "too many files" in str(told)
    assert isinstance(lost(made), UserError)


def test_a_note_has_no_control_characters(made):
    error = UserError("x", "a\x1b[2Jb")
    set_aside.note(made.perflogs, made.stage, error)
    assert str(set_aside.of_system(made.perflogs, "any")[0]).isprintable()


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
    assert "siteproof collect --discard STAGE" in done.out
    assert "nothing is set aside" in good.inside("collect", "--discard", "stage/x").refused()
    done = good.inside("collect", "--discard", f"stage/{stages_made.SESSION}")
    assert (done.code, done.out.startswith("discarded: stage/")) == (0, True)
    assert "set aside" not in good.inside("verdict").out
    assert good.inside("collect").out == "nothing left to collect\n"


def test_no_pass_is_whole_while_something_is_set_aside(good):
    assert good.reframe("-r", *CORE).code == 0
    assert good.inside("verdict").code == 0
    rewrite(of_nodes(good.data, copy=False), parsers={"likwid-bench": "unheard_of"})
    assert good.inside("collect").code == 2
    done = good.inside("verdict")
    assert (done.code, set(good.verdicts().values())) == (3, {"PASS"})
    assert json.loads(good.inside("verdict", "--json").out)["exit_code"] == 3
    assert good.inside("collect", "--discard", f"stage/{stages_made.SESSION}").code == 0
    assert good.inside("verdict").code == 0
