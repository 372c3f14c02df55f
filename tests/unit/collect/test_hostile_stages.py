"""What nodes and other users can put into a stage directory, and what it does: cost itself."""

import contextlib
import os
import socket
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import stages_made
from rows import rows
from stages_made import BEGAN, NOBODY, SECRET, of_nodes, of_pairs, of_sweep

from siteproof.collect import outcome, raw, stages
from siteproof.parsers import likwid
from siteproof.record import descriptions, manifest, samples

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


@rows("instead", INSTEAD)
@rows("name", ["stdout", "stderr", "meta", "facts"])
@pytest.mark.deep
def test_only_a_regular_file_of_some_size_is_read(tmp_path, name, instead, monkeypatch):
    made = of_nodes(tmp_path)
    monkeypatch.chdir(made.stage)
    (made.stage / "raw/n1" / name).unlink()
    INSTEAD[instead](made.stage / "raw/n1" / name)
    status, why = failure(made)
    assert status == "generic"
    assert why.startswith(f"result cannot be read: {name}: refused")


@rows("name", ["dims", "stdout", "stderr", "exit"])
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


@pytest.mark.deep
def test_folders_within_folders_are_not_walked(made):
    path = made.stage / "raw/n1"
    with contextlib.chdir(path):
        for _ in range(2000):
            Path("d").mkdir()
            os.chdir("d")
    assert list(manifest.pending(made.stages)) == [made.stage]
    assert lost(made) == 6
    subprocess.run(["rm", "-rf", path], check=True)  # pytest's own way is recursive


@rows(
    "end",
    ["9" * 5000, "-1", "0", "1", "-62135596800", "253402300799", "99999999999", "1e9", "\u0663"],
)
def test_a_nodes_clock_moves_no_time_out_of_the_jobs(tmp_path, end):
    made = of_nodes(tmp_path)
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


@rows("key", ["mode", "published"])
def test_a_node_does_not_say_under_which_rules_it_was_measured(tmp_path, key):
    made = of_nodes(tmp_path)
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


@rows(
    "reading, status",
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
def test_no_sample_is_written_that_could_not_be_read_again(tmp_path, monkeypatch, reading, status):
    made = of_nodes(tmp_path)
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


@rows("error", [KeyError("x"), RecursionError(), MemoryError(), ValueError("\x1b["), IndexError(1)])
def test_an_output_that_no_parser_has_foreseen_is_an_error_of_its_node(
    tmp_path, monkeypatch, error
):
    made = of_nodes(tmp_path)
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
