"""Storage checks on real files of this machine, and every way in which they must not lie."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from decimal import Decimal
from pathlib import Path

import pytest
from clone import wait_for

from siteproof.collect.derive import Measured, storage
from siteproof.collect.raw import Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading

ROOT = os.geteuid() == 0
SMALL = ("-S", "BlockStorage.size=8", "-S", "RandomIo.size=8", "-S", "DataIntegrity.size=8")
RUN = ("-r", *SMALL, "-n")
DD = shutil.which("dd")
needs_fio = pytest.mark.skipif(not shutil.which("fio"), reason="NOT TESTED: no fio")


@pytest.fixture
def disk(world):
    """The site's only file system: a folder of the test's own, below /var/tmp."""
    folder = Path(f"/var/tmp/siteproof-pytest-{os.getpid()}-{time.time_ns()}")
    folder.mkdir()
    world.edit("system", "path: /var/tmp", f"path: {folder}")
    world.disk, world.checks = folder, "checks/storage"
    yield world
    world.end_processes()
    shutil.rmtree(folder)


def records(world, metric=""):
    """Header and samples of the only file."""
    (path,) = world.samples()
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    return header, [line for line in lines if line["metric"].endswith(metric)]


def conditions(world):
    return records(world)[0]["conditions"]


def left(folder):
    """What lies in the file system."""
    return sorted(path.name for path in folder.iterdir())


# ---- what goes right


@pytest.mark.tool("dd")
def test_serial_rates_of_a_disk_are_measured_past_its_cache_and_nothing_is_left(disk):
    done = disk.reframe(*RUN, "BlockStorage")
    assert done.code == 0, done
    found = conditions(disk)
    assert (
        found.items()
        >= {
            "file_system": "temporary",
            "block": "1048576",
            "size": "8388608",
            "direct": "yes",
            "cached": "no",
            "at_once": "1",
            "trials": "1",
        }.items()
    )
    assert found["inside"] in ("container", "vm", "node")
    rates = {r["metric"]: Decimal(r["value"]) for r in records(disk)[1]}
    assert set(rates) == {
        f"BlockStorage.{n}" for n in ("read", "write", "read_trial", "write_trial")
    }
    assert min(rates.values()) > 0
    assert left(disk.disk) == []


def test_of_several_trials_the_median_counts_and_each_is_kept(disk):
    done = disk.reframe(*RUN, "BlockStorage", "-S", "BlockStorage.trials=3")
    assert done.code == 0, done
    for phase in ("read", "write"):
        trials = records(disk, f".{phase}_trial")[1]
        assert [t["trial"] for t in trials] == [1, 2, 3]
        (middle,) = records(disk, f".{phase}")[1]
        assert Decimal(middle["value"]) == sorted(Decimal(t["value"]) for t in trials)[1]
    assert len(records(disk, ".variation")[1]) == 1


@needs_fio
@pytest.mark.tool("fio")
def test_random_rates_have_their_block_as_a_dimension_and_follow_a_verification(disk):
    disk.site(
        criteria="".join(
            f"""
HERE-{block}:
  description: Random reads of {block} bytes
  metric: RandomIo.read
  at_least: 1 kB/s
  conditions: {{mode: [quick], block: '{block}'}}
  source: a test
"""
            for block in (4096, 65536, 1048576)
        )
    )
    done = disk.reframe(*RUN, "RandomIo")
    assert done.code == 0, done
    found = {(r["metric"], r["dims"]["block"]) for r in records(disk)[1]}
    names = [f"RandomIo.{way}{of}" for way in ("read", "write") for of in ("", "_iops", "_p99")]
    assert found == {(name, block) for name in names for block in ("4096", "1048576")}
    assert conditions(disk).items() >= {"direct": "yes", "cached": "no", "depth": "1"}.items()
    assert left(disk.disk) == []
    rates = {r["dims"]["block"]: r["value"] for r in records(disk, ".read")[1]}
    log = (disk.data / "perflogs/thishost/node/RandomIo.log").read_text()
    read = re.search(r"\|read\|([0-9.]+)\|kB/s\|", log)  # in the unit of the criterion
    assert read, log
    # The rate of small blocks is no headline.
    assert float(read[1]) == pytest.approx(float(rates["1048576"]) * 1000)
    assert disk.verdicts() == {
        "HERE-4096": "PASS",
        "HERE-65536": "INCOMPLETE",
        "HERE-1048576": "PASS",
    }


@needs_fio
def test_several_requests_at_a_time_are_really_made(disk):
    done = disk.reframe(*RUN, "RandomIo", "-S", "RandomIo.depth=8")
    assert done.code == 0, done
    assert conditions(disk).items() >= {"depth": "8", "engine": "libaio"}.items()


@pytest.mark.tool("sha256sum")
def test_data_come_back_as_they_were_written(disk):
    done = disk.reframe(*RUN, "DataIntegrity")
    assert done.code == 0, done
    assert [r["value"] for r in records(disk, ".errors")[1]] == ["0"]
    assert conditions(disk).items() >= {"files": "4", "size": "8388608", "read_by": "same"}.items()
    assert left(disk.disk) == []


def test_a_path_with_blanks_and_quotes_is_a_path(disk):
    folder = disk.disk / "a b 'c' $(touch x)"
    folder.mkdir()
    disk.edit("system", f"path: {disk.disk}", f'path: "{folder}"')
    done = disk.reframe(
        *RUN, "BlockStorage|DataIntegrity" + "|RandomIo" * bool(shutil.which("fio"))
    )
    assert done.code == 0, done
    assert left(disk.disk) == [folder.name]


# ---- the page cache


def test_memory_is_never_uncached(disk):
    disk.edit("system", f"path: {disk.disk}", "path: /dev/shm")
    done = disk.reframe(*RUN, "BlockStorage")
    assert done.code == 0, done
    assert conditions(disk).items() >= {"cached": "yes", "kind": "tmpfs"}.items()


def test_without_o_direct_the_cache_is_dropped_and_that_is_proved(disk):
    done = disk.reframe(*RUN, "BlockStorage", "-S", "BlockStorage.direct=no")
    assert done.code == 0, done
    assert conditions(disk).items() >= {"direct": "no", "cached": "no"}.items()


REFUSING = f"""
    case "$*" in *flag=direct*) echo 'dd: Invalid argument' >&2; exit 1 ;; esac
    exec {DD} "$@" """


def test_a_file_system_that_refuses_o_direct_is_measured_without(disk):
    disk.fake("dd", REFUSING)
    done = disk.reframe(*RUN, "BlockStorage")
    assert done.code == 0, done
    assert conditions(disk).items() >= {"direct": "no", "cached": "no"}.items()


def test_what_comes_from_the_cache_says_so(disk):
    disk.fake("dd", f'case "$*" in *nocache*) exit 0 ;; esac{REFUSING}')
    done = disk.reframe(*RUN, "BlockStorage")
    assert done.code == 0, done
    assert conditions(disk).items() >= {"direct": "no", "cached": "yes"}.items()


# ---- what cannot be measured


@pytest.mark.parametrize("check", ["BlockStorage", "RandomIo", "DataIntegrity"])
def test_too_little_room_is_a_reason_and_nothing_is_written(disk, check):
    if check == "RandomIo" and not shutil.which("fio"):
        pytest.skip("NOT TESTED: no fio")
    disk.fake("mkdir", f'echo "$@" >>{disk.folder}/made; exec /usr/bin/mkdir "$@"')
    done = disk.reframe("-r", "-n", check, "-S", f"{check}.size=1000000000")
    assert done.code == 1, done
    assert f"{disk.disk}: 1153433600 MB are needed, " in done.out
    assert disk.statuses() == {f"{check}.*": "generic"}
    assert "siteproof-test." not in (disk.folder / "made").read_text()


@pytest.mark.skipif(not ROOT, reason="NOT TESTED: a full file system needs root")
def test_a_file_system_that_fills_up_in_the_middle_gives_no_figure(disk):
    folder = disk.disk / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    disk.edit("system", f"path: {disk.disk}", f"path: {folder}")
    disk.fake("df", "echo x; echo tmpfs 1 1 999999999 1% /")
    try:
        done = disk.reframe(*RUN, "BlockStorage|DataIntegrity")
        assert left(folder) == []
    finally:
        subprocess.run(["umount", folder], check=True)
    assert done.code == 1, done
    assert "No space left on device" in done.out
    assert "test.2: No space left on device" in done.out
    assert set(disk.statuses().values()) == {"generic"}


def test_a_file_system_that_is_not_mounted_is_told_by_its_kind(disk):
    disk.edit("system", "kind: any", "kind: lustre")
    done = disk.reframe(*RUN, "BlockStorage")
    assert done.code == 1, done
    assert "expected lustre as in the site: is it mounted?" in done.out


def test_a_path_that_is_gone_is_told(disk):
    disk.edit("system", f"path: {disk.disk}", f"path: {disk.disk}/gone")
    assert f"{disk.disk}/gone: does not exist" in disk.reframe(*RUN, "DataIntegrity").out


def test_a_file_system_that_fails_is_no_answer_of_another_one(disk):
    disk.edit(
        "system",
        "file_systems:",
        f"""file_systems:
  gone: {{path: {disk.disk}/gone, kind: any}}""",
    )
    disk.site(
        criteria="".join(
            f"""
HERE-{name.upper()}:
  description: What was written is what is read
  metric: DataIntegrity.errors
  at_most: 0 count
  conditions: {{mode: [quick], file_system: {name}}}
  source: a test
"""
            for name in ("temporary", "gone")
        )
    )
    assert disk.reframe(*RUN, "DataIntegrity").code == 1
    assert disk.verdicts() == {"HERE-TEMPORARY": "PASS", "HERE-GONE": "ERROR"}


def test_a_site_without_file_systems_skips_with_the_reason(world):
    text = (world.site() / "system.yaml").read_text()
    start = text.index("file_systems:")
    world.site(system=text[:start] + text[text.index("partitions:") :])
    done = world.reframe("-r", "-n", "BlockStorage|RandomIo|DataIntegrity")
    assert done.code == 0, done
    # Once for each check, and once at the end of the run, with their names.
    assert done.out.count("the site names no file_systems") == 3 + 1


def test_a_role_that_may_not_use_a_file_system_skips_with_the_reason(disk):
    disk.edit("system", "kind: any", "kind: any, roles: [other]")
    disk.edit("system", "hardware: host}", "hardware: host}\n  other: {set: elsewhere}")
    done = disk.reframe(*RUN, "BlockStorage")
    assert "the site lets no node of role node use temporary" in done.out


def test_without_fio_random_access_is_skipped(disk):
    disk.without("fio", "likwid-bench", "mpirun")
    done = disk.reframe(*RUN, "RandomIo")
    remedy = "'setup/packages run' or 'siteproof build io'"
    assert f"[tool missing: fio is not installed: {remedy} brings it]" in done.out
    assert disk.statuses() == {"RandomIo.*": "tool_missing"}


def test_a_switch_that_is_neither_yes_nor_no_is_refused(disk):
    done = disk.reframe(*RUN, "BlockStorage", "-S", "BlockStorage.direct=perhaps")
    assert "block_storage.py: cannot be loaded: failed to set variable" in done.refused()


# ---- wrong answers


def test_a_file_that_comes_back_changed_is_an_error_and_named(disk):
    disk.site(
        criteria="""
HERE-INTEGRITY:
  description: What was written is what is read
  metric: DataIntegrity.errors
  at_most: 0 count
  conditions: {mode: [quick], file_system: temporary}
  source: a test
"""
    )
    disk.fake(
        "dd",
        f"""case "$*" in *test.2*nocache*)
        printf XXXXXXXX | {DD} of="${{1#of=}}" bs=1 seek=5000 conv=notrunc 2>/dev/null ;; esac
        exec {DD} "$@" """,
    )
    disk.reframe(*RUN, "DataIntegrity")
    assert [r["value"] for r in records(disk, ".errors")[1]] == ["1"]
    assert [r["value"] for r in records(disk, ".wrong")[1]] == ["test.2 FAILED"]
    assert disk.verdicts() == {"HERE-INTEGRITY": "FAIL"}


@needs_fio
def test_what_fio_reads_back_changed_fails_and_gives_no_rate(disk):
    real = shutil.which("fio")
    disk.fake(
        "fio",
        f"""
        case "$*" in *do_verify*)
            {real} "$@" --do_verify=0 >/dev/null
            printf XXXXXXXX | {DD} of=test.1 bs=1 seek=5000100 conv=notrunc 2>/dev/null
            exec {real} "$@" --rw=read ;;
        esac
        exec {real} "$@" """,
    )
    done = disk.reframe(*RUN, "RandomIo")
    assert done.code == 1, done
    assert "what was read is not what was written" in done.out
    assert disk.statuses() == {"RandomIo.*": "invalid"}
    assert left(disk.disk) == []


def raw(**facts):
    return Raw({}, facts, "", "")


def trials(*rates):
    return [
        Reading("rate", Decimal(rate), "MB/s", {"phase": phase, "trial": str(number)})
        for phase in ("write", "read")
        for number, rate in enumerate(rates, 1)
    ]


def test_zeros_that_a_file_system_does_not_store_are_no_rate():
    said = {"size": "1000000", "stored": "4096"}
    with pytest.raises(OutputError, match="stored 4096 of 1000000 bytes") as error:
        storage.block_storage(Measured(trials(1), said, raw(), {"size": 1000000, "trials": 1}))
    assert error.value.status == "invalid"


@pytest.mark.parametrize("stored", ["0", "1000000", "1048576"])
def test_a_file_system_that_does_not_tell_what_it_stores_is_measured(stored):
    said = {"size": "1000000", "stored": stored}
    found, _ = storage.block_storage(
        Measured(trials(1), said, raw(), {"size": 1000000, "trials": 1})
    )
    assert {"read", "write"} <= {r.metric for r in found}


def test_another_size_than_the_one_asked_for_is_refused():
    with pytest.raises(OutputError, match="expected 2000000"):
        storage.block_storage(
            Measured(
                trials(1), {"size": "1000000", "stored": "1"}, raw(), {"size": 2000000, "trials": 1}
            )
        )


def test_a_missing_trial_is_no_median():
    with pytest.raises(OutputError, match="trials of write: 2, expected 3"):
        storage.block_storage(
            Measured(trials(1, 2), {"size": "1", "stored": "1"}, raw(), {"size": 1, "trials": 3})
        )


def test_the_variation_is_that_of_the_worse_phase():
    readings = [*trials(100, 100, 100)[:3], *trials(90, 100, 110)[3:]]
    found, _ = storage.block_storage(
        Measured(readings, {"size": "1", "stored": "1"}, raw(), {"size": 1, "trials": 3})
    )
    assert [r.value for r in found if r.metric == "variation"] == [Decimal("10.000")]


def test_random_rates_without_a_whole_verification_do_not_count():
    readings = [Reading("read_bytes", Decimal(99), "B", {"phase": "verify"})]
    with pytest.raises(OutputError, match="99 of 100 bytes were verified") as error:
        storage.random_io(Measured(readings, {}, raw(), {"size": 100}))
    assert error.value.status == "invalid"


def test_fewer_files_than_asked_for_prove_nothing():
    with pytest.raises(OutputError, match="files compared: 3, expected 4"):
        storage.data_integrity(Measured([], {"files": "3"}, raw(), {"files": 4, "size": 1}))


# ---- test files


def folder(disk, name, stage, until=9999999999, mark="siteproof storage test", user=None):
    """A test folder as another job leaves it."""
    made = disk / f"siteproof-test.{name}"
    made.mkdir()
    (made / "test.1").write_text("data")
    if mark:
        (made / "marker").write_text(f"{mark}\n{stage}\nlocalhost\n{until}\n")
    if user:
        shutil.chown(made, user)
    return made


def test_what_a_job_that_is_over_has_left_is_removed_and_nothing_else(disk):
    running, over = disk.folder / "running", disk.folder / "over"
    for stage in (running, over):
        stage.mkdir()
    (over / "siteproof-collected").touch()
    there, kept = disk.disk, []
    gone = [
        folder(there, "stage-gone", disk.folder / "nowhere", until=1),
        folder(there, "collected", over),
        folder(there, "expired", running, until=1),
    ]
    kept.append(folder(there, "running", running))
    kept.append(folder(there, "of-another-cluster", disk.folder / "nowhere"))
    kept.append(folder(there, "no-marker", over, mark=""))
    kept.append(folder(there, "other-marker", over, mark="my data"))
    other = folder(there, "with-data", over)
    (other / "results.csv").write_text("precious")
    elsewhere = folder(disk.folder, "elsewhere", over)
    (there / "siteproof-test.link").symlink_to(elsewhere)
    if ROOT:
        kept.append(folder(there, "of-another", over, user="nobody"))
    (there / "siteproof-test.file").write_text("a file")
    done = disk.reframe(*RUN, "DataIntegrity")
    assert done.code == 0, done
    assert [path for path in gone if path.exists()] == []
    assert all((path / "test.1").exists() for path in [*kept, elsewhere])
    assert left(other) == ["results.csv"]
    assert (there / "siteproof-test.file").exists()
    assert (there / "siteproof-test.link").is_symlink()


def test_files_of_a_killed_run_are_removed_at_the_next_start(disk):
    disk.fake(
        "dd", f'case "$*" in *if=/dev/zero*count=8*) {DD} "$@"; sleep 100 ;; esac\nexec {DD} "$@"'
    )
    process = disk.start("reframe", "-c", disk.checks, *RUN, "BlockStorage")
    wait_for(lambda: list(disk.disk.glob("*/test.1")))
    process.send_signal(signal.SIGKILL)
    process.wait()  # not for its pipes' end: what it has left holds them
    disk.end_processes()
    wait_for(lambda: not disk.processes())
    assert list(disk.disk.glob("siteproof-test.*/test.1"))
    (disk.bin / "dd").unlink()
    done = disk.reframe(*RUN, "BlockStorage")
    assert done.code == 0, done
    assert left(disk.disk) == []


def test_a_run_that_reaches_its_limit_leaves_nothing(disk):
    disk.fake("dd", f'case "$*" in *if=/dev/zero*count=8*) exec sleep 100 ;; esac\nexec {DD} "$@"')
    done = disk.reframe(*RUN, "BlockStorage", "-S", "BlockStorage.time_limit=10s")
    assert done.code == 1, done
    assert disk.statuses() == {"BlockStorage.*": "timeout"}
    assert left(disk.disk) == []


@pytest.mark.parametrize(
    ("check", "program", "words"),
    [
        ("DataIntegrity", "sha256sum", "--check"),
        ("DataIntegrity", "tee", ""),
        pytest.param("RandomIo", "fio", "do_verify", marks=needs_fio),
    ],
)
def test_what_is_ended_with_its_turn_is_a_timeout_and_no_failure(disk, check, program, words):
    real = shutil.which(program)
    disk.fake(program, f'case "$*" in *{words}*) exec sleep 100 ;; esac\nexec {real} "$@"')
    assert disk.reframe(*RUN, check, "-S", f"{check}.time_limit=24s").code == 1
    assert disk.statuses() == {f"{check}.*": "timeout"}
    assert left(disk.disk) == []
