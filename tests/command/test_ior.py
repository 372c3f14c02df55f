"""IOR and mdtest on real files of this machine, and every way in which they must not lie."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from decimal import Decimal
from pathlib import Path

import pytest

from siteproof.collect.derive import Measured, storage
from siteproof.collect.raw import Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading

ROOT = os.geteuid() == 0
IOR, MDTEST, DD = (shutil.which(program) for program in ("ior", "mdtest", "dd"))
needs_ior = pytest.mark.skipif(not IOR, reason="NOT TESTED: no ior")
SINGLE = ("-r", "-S", "IorSingle.size=32", "-n", "IorSingle")


@pytest.fixture
def disk(world):
    """A site with IOR, whose only file system is a folder of the test's own."""
    folder = Path(f"/var/tmp/siteproof-pytest-{os.getpid()}-{time.time_ns()}")
    folder.mkdir()
    world.edit("system", "path: /var/tmp", f"path: {folder}")
    world.edit("system", "features: [hpcc, likwid]", "features: [hpcc, likwid, ior, mdtest]")
    world.edit("system", "scheduler: local", "scheduler: local\n    environments: [system]")
    world.disk, world.checks = folder, "checks/storage"
    for program in filter(None, (IOR, MDTEST)):
        (world.bin / Path(program).name).symlink_to(program)
    yield world
    world.end_processes()
    shutil.rmtree(folder)


def records(world):
    """Header and samples of the only file."""
    (path,) = world.samples()
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    return header, lines


def left(folder):
    """What lies in the file system."""
    return sorted(path.name for path in folder.iterdir())


# ---- one task


@needs_ior
@pytest.mark.tool("IOR")
def test_one_task_writes_reads_past_the_cache_and_compares_and_leaves_nothing(disk):
    done = disk.reframe(*SINGLE)
    assert done.code == 0, done
    header, lines = records(disk)
    assert (
        header["conditions"].items()
        >= {
            "file_system": "temporary",
            "transfer": "1048576",
            "size": "33554432",
            "direct": "yes",
            "cached": "no",
            "at_once": "1",
            "api": "POSIX",
            "program": "ior",
        }.items()
    )
    assert {r["metric"] for r in lines} == {"IorSingle.read", "IorSingle.write"}
    assert all(r["unit"] == "MiB/s" and Decimal(r["value"]) > 0 for r in lines)
    assert left(disk.disk) == []


@needs_ior
def test_a_criterion_in_decimal_units_is_judged_on_the_binary_ones_of_ior(disk):
    disk.site(
        criteria="""
HERE-READ:
  description: One task reads
  metric: IorSingle.read
  at_least: 1 MB/s
  conditions: {mode: [quick], file_system: temporary, cached: 'no'}
  source: a test
"""
    )
    assert disk.reframe(*SINGLE).code == 0
    assert disk.verdicts() == {"HERE-READ": "PASS"}


@needs_ior
def test_a_file_that_changes_between_read_and_comparison_gives_no_figure(disk):
    (disk.bin / "ior").unlink()
    disk.fake(
        "ior",
        f"""
        case "$*" in *' -R'*) printf XXX | {DD} of=test.1 bs=1 seek=5000 conv=notrunc 2>/dev/null ;;
        esac
        exec {IOR} "$@" """,
    )
    done = disk.reframe(*SINGLE)
    assert done.code == 1, done
    assert "data are not what was written (1 errors)" in done.out
    assert disk.statuses() == {"IorSingle.*": "invalid"}
    assert left(disk.disk) == []


@needs_ior
def test_256_wrong_blocks_are_wrong_although_ior_exits_with_0(disk):
    """One block of 1 MiB is a transfer: 32 of the file's are one error each."""
    (disk.bin / "ior").unlink()
    disk.fake(
        "ior",
        f"""
        case "$*" in *' -R'*) set -- $(echo "$*" | sed 's/-t 1m/-t 4k/; s/-b 32m/-b 1m/')
            {DD} if=/dev/zero of=test.1 bs=1M count=1 conv=notrunc 2>/dev/null ;;
        esac
        exec {IOR} "$@" """,
    )
    assert disk.reframe(*SINGLE).code == 1
    assert disk.statuses() == {"IorSingle.*": "invalid"}


@needs_ior
@pytest.mark.skipif(not ROOT, reason="NOT TESTED: a full file system needs root")
@pytest.mark.parametrize(
    ("options", "told"),
    [("size=8m", "No space left on device"), ("size=80m,ro", "no folder can be created there")],
)
def test_a_file_system_that_is_full_or_read_only_gives_no_figure(disk, options, told):
    folder = disk.disk / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    disk.edit("system", f"path: {disk.disk}", f"path: {folder}")
    disk.fake("df", "echo x; echo tmpfs 1 1 999999999 1% /")
    try:
        done = disk.reframe(*SINGLE)
        assert left(folder) == []
    finally:
        subprocess.run(["umount", folder], check=True)
    assert done.code == 1, done
    assert told in done.out
    assert disk.statuses() == {"IorSingle.*": "generic"}


def test_without_an_environment_that_has_ior_it_is_skipped_with_the_reason(world):
    done = world.reframe("-r", "-n", "IorSingle")
    assert done.code == 0, done
    assert "offers ior" in done.out


def test_where_the_environment_promises_ior_and_it_is_not_there_it_is_a_missing_tool(disk):
    (disk.bin / "ior").unlink(missing_ok=True)
    done = disk.reframe(*SINGLE)
    assert "[tool missing: ior is not installed" in done.out
    assert disk.statuses() == {"IorSingle.*": "tool_missing"}


# ---- many tasks


PARALLEL = ("-r", "-S", "Ior.block=32", "-S", "Mdtest.files=50", "-n")
needs_mpirun = pytest.mark.skipif(
    not (IOR and MDTEST and shutil.which("mpirun")), reason="NOT TESTED: no ior, mdtest or mpirun"
)
SWEEP = """
description: Two tasks on this machine
tool: {tool}
axes: {{tasks: [1, 2], tasks_per_node: [2], {axes}}}
fixed: {{{fixed}}}
against: tasks
point_limit: 1m
"""


def sweep(disk, tool, axes, fixed):
    """Run a sweep of one's own."""
    folder = disk.folder / "sweeps"
    folder.mkdir()
    (folder / "mine.yaml").write_text(SWEEP.format(tool=tool, axes=axes, fixed=fixed))
    return disk.run("reframe", "-c", "sweeps/", "-r", "-n", "Mine", SITEPROOF_SWEEPS=str(folder))


def without_ior(disk, script):
    """A program that does something before or instead of ior."""
    (disk.bin / "ior").unlink()
    disk.fake("ior", f'{script}\nexec {IOR} "$@"')


@needs_mpirun
@pytest.mark.tool("IOR", "mdtest")
def test_the_whole_machine_is_measured_by_every_interface_and_layout_and_nothing_is_left(disk):
    done = disk.reframe(*PARALLEL, "^Ior%|^Mdtest")
    assert done.code == 0, done
    told = {}
    for path in disk.samples():
        header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            of = " ".join(line["dims"].get(key, "") for key in ("api", "layout", "variant"))
            told[line["metric"], of.strip()] = {
                **header["conditions"],
                **line.get("conditions", {}),
            }
    figures = [f"{way}{of}" for way in ("read", "write") for of in ("", "_slowest", "_fastest")]
    ways = ("POSIX file_a_task", "POSIX shared", "MPIIO shared")
    assert set(told) == {(f"Ior.{figure}", way) for figure in figures for way in ways} | {
        (f"Mdtest.{phase}", variant)
        for phase in ("create", "stat", "read", "remove")
        for variant in ("easy", "hard")
    }
    alone = told["Ior.read", "POSIX shared"]
    assert alone.items() >= {"read_by": "same", "direct": "yes", "cached": "no"}.items()
    assert told["Ior.read", "MPIIO shared"].items() >= {"direct": "no", "cached": "yes"}.items()
    assert told["Mdtest.stat", "easy"].items() >= {"read_by": "same", "cached": "yes"}.items()
    assert left(disk.disk) == []


@needs_mpirun
@pytest.mark.tool("IOR")
def test_a_sweep_has_a_sample_a_point_with_its_ranks(disk):
    done = sweep(
        disk, "ior", "layout: [file_a_task, interleaved], transfer: [47008]", "block: 9401600"
    )
    assert done.code == 0, done
    header, lines = records(disk)
    assert header["conditions"].items() >= {"sweep": "mine", "block": "9401600"}.items()
    rates = {
        (r["dims"]["tasks"], r["dims"]["layout"], r["metric"]): Decimal(r["value"]) for r in lines
    }
    assert {key[:2] for key in rates} == {
        (n, way) for n in "12" for way in ("file_a_task", "interleaved")
    }
    for n, way, _ in rates:
        assert rates[n, way, "Ior.write_slowest"] <= rates[n, way, "Ior.write_fastest"]
    assert left(disk.disk) == []


@needs_mpirun
@pytest.mark.tool("mdtest")
def test_a_sweep_of_metadata_counts_the_files_of_all_tasks(disk):
    done = sweep(disk, "mdtest", "variant: [easy, hard]", "files: 20")
    assert done.code == 0, done
    header, lines = records(disk)
    assert header["conditions"]["files"] == "20"
    assert len(lines) == 2 * 2 * 4
    assert left(disk.disk) == []


@needs_mpirun
def test_a_rank_that_reads_other_data_than_was_written_costs_its_point(disk):
    without_ior(
        disk,
        f"""case "$*" in *' -F '*' -R'*)
        printf XXXXXXXX | {DD} of="$(echo {disk.disk}/*/test.1.00000000)" bs=1 seek=7000 \\
            conv=notrunc 2>/dev/null ;; esac""",
    )
    done = disk.reframe(*PARALLEL, "^Ior%")
    assert done.code == 1, done
    assert "2 of 3 points measured" in done.out
    assert "data are not what was written" in done.out
    bad = [r for r in records(disk)[1] if r.get("status")]
    assert [(r["status"], r["dims"]["layout"]) for r in bad] == [("invalid", "file_a_task")]
    assert left(disk.disk) == []


@needs_mpirun
def test_a_file_that_is_lost_between_two_phases_of_mdtest_is_no_figure(disk):
    """mdtest exits with 0, and prints its table."""
    (disk.bin / "mdtest").unlink()
    disk.fake(
        "mdtest",
        f"""case "$*" in '-r '*-u*)
        rm -f "$(find {disk.disk} -name 'file.mdtest.0.7' | head -n 1)" ;; esac
        exec {MDTEST} "$@" """,
    )
    done = disk.reframe(*PARALLEL, "Mdtest")
    assert "1 of 2 points measured" in done.out
    assert "unlink() of file" in done.out
    assert left(disk.disk) == []


@needs_mpirun
@pytest.mark.skipif(not ROOT, reason="NOT TESTED: a full file system needs root")
def test_a_disk_that_fills_up_under_mpi_io_is_no_success(disk):
    """ROMIO and OMPIO may both end with 0 there."""
    folder = disk.disk / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], check=True)
    disk.edit("system", f"path: {disk.disk}", f"path: {folder}")
    disk.fake("df", "echo x; echo tmpfs 1 1 999999999 1% /")
    try:
        done = disk.reframe(*PARALLEL, "^Ior%|^Mdtest", "-S", "Mdtest.files=30000")
        assert left(folder) == []
    finally:
        subprocess.run(["umount", folder], check=True)
    assert done.code == 1, done
    assert set(disk.statuses().values()) <= {"generic", "invalid"}
    assert "0 of 3 points measured" in done.out


@needs_mpirun
def test_too_little_room_is_told_before_anything_is_written(disk):
    done = disk.reframe(
        "-r", "-n", "^Ior%|^Mdtest", "-S", "Ior.block=900000000", "-S", "Mdtest.files=900000000"
    )
    assert done.code == 1, done
    assert f"{disk.disk}: 1038090240 MB are needed, " in done.out
    assert f"{disk.disk}: 7372800 MB are needed, " in done.out


@needs_mpirun
def test_a_point_that_hangs_costs_itself_and_leaves_no_files(disk):
    without_ior(
        disk,
        """case "$*" in *interleaved*) ;; *'-s 200 '*' -r '*) exec sleep 100 ;;
        esac""",
    )
    folder = disk.folder / "sweeps"
    folder.mkdir()
    text = SWEEP.format(
        tool="ior",
        axes="layout: [file_a_task, interleaved], transfer: [47008]",
        fixed="block: 9401600",
    ).replace("1m", "8s")
    (folder / "mine.yaml").write_text(text)
    done = disk.run("reframe", "-c", "sweeps/", "-r", "-n", "Mine", SITEPROOF_SWEEPS=str(folder))
    assert "2 of 4 points measured" in done.out
    bad = [r for r in records(disk)[1] if r.get("status")]
    assert {(r["status"], r["dims"]["layout"]) for r in bad} == {("timeout", "interleaved")}
    assert left(disk.disk) == []


# ---- what was asked for, and what was done


SAID = {
    "api": "POSIX",
    "layout": "shared",
    "transfer": "1048576",
    "block": "10",
    "size": "20",
    "tasks": "2",
    "tasks_per_node": "1",
}
FACTS = {"tasks": "2", "tasks_per_node": "1", "transfer": "1048576", "block": "10"}  # a point's


def readings(**instead):
    each = {"write": ("write", 5), "read": ("read", 7), "verify": ("verified", None)}
    found = []
    for phase, (name, rate) in each.items():
        found.append(
            Reading(f"{name}_bytes", Decimal(instead.get(phase, 20)), "B", {"phase": phase})
        )
        if rate:
            found.append(Reading(phase, Decimal(rate), "MiB/s", {"phase": phase}))
    return found


def derived(found, said=SAID, facts=FACTS):
    return storage.ior(Measured(found, said, Raw({}, {}, "", ""), facts))


def test_the_rates_of_write_and_read_count_and_have_no_dimension():
    found, conditions = derived(readings())
    assert found == [Reading("write", Decimal(5), "MiB/s"), Reading("read", Decimal(7), "MiB/s")]
    assert conditions == {key: SAID[key] for key in ("api", "layout", "size")}


@pytest.mark.parametrize(("phase", "count"), [("write", 10), ("read", 10), ("verify", 10)])
def test_less_than_all_of_it_is_no_figure(phase, count):
    with pytest.raises(OutputError, match=f"bytes of {phase}") as error:
        derived(readings(**{phase: count}))
    assert error.value.status == "invalid"


def test_without_a_comparison_there_is_no_figure():
    with pytest.raises(OutputError, match="bytes of verify: none"):
        derived([r for r in readings() if r.metric != "verified_bytes"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("tasks", "1"), ("transfer", "4096"), ("block", "5"), ("tasks_per_node", "2")],
)
def test_what_ior_did_otherwise_than_asked_is_no_figure(key, value):
    with pytest.raises(OutputError, match="ior: .* expected") as error:
        derived(readings(), {**SAID, key: value})
    assert error.value.status == "invalid"
