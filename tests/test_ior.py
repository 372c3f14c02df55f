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

from siteproof.derive import ior
from siteproof.errors import OutputError
from siteproof.parsers import Reading
from siteproof.raw import Raw

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
    world.disk = folder
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
    assert header["conditions"].items() >= {
        "file_system": "temporary", "transfer": "1048576", "size": "33554432", "direct": "yes",
        "cached": "no", "at_once": "1", "api": "POSIX", "program": "ior"}.items()
    assert {r["metric"] for r in lines} == {"IorSingle.read", "IorSingle.write"}
    assert all(r["unit"] == "MiB/s" and Decimal(r["value"]) > 0 for r in lines)
    assert left(disk.disk) == []


@needs_ior
def test_a_criterion_in_decimal_units_is_judged_on_the_binary_ones_of_ior(disk):
    disk.site(criteria="""
HERE-READ:
  description: One task reads
  metric: IorSingle.read
  at_least: 1 MB/s
  conditions: {mode: [quick], file_system: temporary, cached: 'no'}
  source: a test
""")
    assert disk.reframe(*SINGLE).code == 0
    assert disk.verdicts() == {"HERE-READ": "PASS"}


@needs_ior
def test_a_file_that_changes_between_read_and_comparison_gives_no_figure(disk):
    (disk.bin / "ior").unlink()
    disk.fake("ior", f"""
        case "$*" in *' -R'*) printf X | {DD} of=test.1 bs=1 seek=5000 conv=notrunc 2>/dev/null ;;
        esac
        exec {IOR} "$@" """)
    done = disk.reframe(*SINGLE)
    assert done.code == 1, done
    assert "data are not what was written (1 errors)" in done.out
    assert disk.statuses() == {"IorSingle.*": "invalid"}
    assert left(disk.disk) == []


@needs_ior
def test_256_wrong_blocks_are_wrong_although_ior_exits_with_0(disk):
    """One block of 1 MiB is a transfer: 32 of the file's are one error each."""
    (disk.bin / "ior").unlink()
    disk.fake("ior", f"""
        case "$*" in *' -R'*) set -- $(echo "$*" | sed 's/-t 1m/-t 4k/; s/-b 32m/-b 1m/')
            {DD} if=/dev/zero of=test.1 bs=1M count=1 conv=notrunc 2>/dev/null ;;
        esac
        exec {IOR} "$@" """)
    assert disk.reframe(*SINGLE).code == 1
    assert disk.statuses() == {"IorSingle.*": "invalid"}


@needs_ior
@pytest.mark.skipif(not ROOT, reason="NOT TESTED: a full file system needs root")
@pytest.mark.parametrize(("options", "told"), [
    ("size=8m", "No space left on device"), ("size=80m,ro", "no folder can be made there")])
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
    assert "[tool missing: ior is not installed]" in done.out
    assert disk.statuses() == {"IorSingle.*": "tool_missing"}


# ---- what was asked for, and what was done


SAID = {"api": "POSIX", "layout": "shared", "transfer": "1048576", "block": "10", "size": "20",
        "tasks": "2", "tasks_per_node": "1"}
FACTS = {"tasks": "2", "tasks_per_node": "1", "transfer": "1048576", "block": "10"}  # a point's


def readings(**instead):
    each = {"write": ("write", 5), "read": ("read", 7), "verify": ("verified", None)}
    found = []
    for phase, (name, rate) in each.items():
        found.append(Reading(f"{name}_bytes", Decimal(instead.get(phase, 20)), "B",
                             {"phase": phase}))
        if rate:
            found.append(Reading(phase, Decimal(rate), "MiB/s", {"phase": phase}))
    return found


def derived(found, said=SAID, facts=FACTS):
    return ior.derive(found, said, Raw({}, {}, "", ""), facts)


def test_the_rates_of_write_and_read_count_and_have_no_dimension():
    found, conditions = derived(readings())
    assert found == [Reading("write", Decimal(5), "MiB/s"), Reading("read", Decimal(7), "MiB/s")]
    assert conditions == {key: SAID[key] for key in ("api", "layout", "size")}


@pytest.mark.parametrize(("phase", "count"), [("write", 10), ("read", 10), ("verify", 10)])
def test_less_than_all_of_it_is_no_figure(phase, count):
    with pytest.raises(OutputError, match=f"{phase} of") as error:
        derived(readings(**{phase: count}))
    assert error.value.status == "invalid"


def test_without_a_comparison_there_is_no_figure():
    with pytest.raises(OutputError, match="verify of nothing"):
        derived([r for r in readings() if r.metric != "verified_bytes"])


@pytest.mark.parametrize(("key", "value"), [
    ("tasks", "1"), ("transfer", "4096"), ("block", "5"), ("tasks_per_node", "2")])
def test_what_ior_did_otherwise_than_asked_is_no_figure(key, value):
    with pytest.raises(OutputError, match="asked w") as error:
        derived(readings(), {**SAID, key: value})
    assert error.value.status == "invalid"
