"""The steps of a transfer: their order, what is compared, and when a rate counts.

The service is a folder on this machine, so that what it does wrong is one line.
"""

import hashlib
import resource
import shutil
import sys

import pytest

from siteproof.services import steps, transfers
from siteproof.services.steps import Job, StepFailed
from siteproof.sites import Service

SESSION = "20261125T120000Z-0123456"
SITE = {
    "kind": "sftp",
    "address": "host",
    "folder": "/in",
    "key": "/key",
    "known_hosts": "/known_hosts",
    "size": "3 MiB",
    "files": 2,
    "file_size": "1 KiB",
}


class Folder:
    """A service with its own checksums, unless it has none."""

    protocol, tool = "folder", "none"

    def __init__(self, far):
        self.far, self.checksums, self.room = far, True, None
        self.ends = 0

    def login(self):
        pass

    def free(self):
        return self.room

    def make(self):
        self.far.mkdir(exist_ok=True)

    def put(self, files):
        for file in files:
            shutil.copy(file, self.far)

    def get(self, names, into):
        for name in names:
            shutil.copy(self.far / name, into)

    def differing(self, files):
        if not self.checksums:
            return None
        return [
            f.path.name for f in files if transfers.checksum(self.far / f.path.name) != f.sha256
        ]

    def names(self):
        raise StepFailed("HTTP status 500")

    def remove(self, name):
        shutil.rmtree(self.far)

    def close(self):
        self.ends += 1


def with_keys(tmp_path, **keys):
    entry = Service.model_validate({**SITE, "here": "cluster", "there": "archive", **keys})
    return Job("box", entry, steps.mark(SESSION, "box"), tmp_path / "scratch", "mine")


@pytest.fixture
def job(tmp_path):
    (tmp_path / "scratch").mkdir()
    return with_keys(tmp_path)


@pytest.fixture
def far(tmp_path):
    return Folder(tmp_path / "far")


def made(job, far):
    """The records of a transfer, and why it failed, if it did."""
    found = []
    try:
        transfers.transfer(job, steps.Steps(found.append, job.seconds), far)
    except StepFailed as error:
        return found, (error.status, str(error))
    return found, None


def ends(found):
    return [r["end"]["step"] for r in found if "end" in r]


def rates(found):
    keys = ("sender", "receiver", "files")
    return [tuple(r["dims"][key] for key in keys) for r in found if r.get("metric") == "rate"]


def conditions(found):
    together = {}
    for record in found:
        together |= record.get("conditions", {})
    return together


def test_a_large_file_and_small_ones_go_there_and_back_and_nothing_stays_here(job, far):
    found, failed = made(job, far)
    assert failed is None
    assert ends(found) == ["login", "quota", "put", "get", "put_many", "get_many"]
    assert rates(found) == [
        ("cluster", "archive", "1"),
        ("archive", "cluster", "1"),
        ("cluster", "archive", "2"),
        ("archive", "cluster", "2"),
    ]
    assert {p.name: p.stat().st_size for p in far.far.iterdir()} == {
        "large": 3 * 2**20,
        "small-00001": 1024,
        "small-00002": 1024,
    }
    assert list(job.scratch.iterdir()) == []


def test_conditions_are_the_sizes_and_how_the_checksum_was_had(job, far):
    found, _ = made(job, far)
    assert conditions(found) == {
        "protocol": "folder",
        "tool": "none",
        "size": "3145728",
        "file_size": "1024",
        "checksum": "far end",
    }
    far.checksums = False
    found, _ = made(job, far)
    assert conditions(found)["checksum"] == "read back"


def test_no_small_files_are_moved_if_the_site_wants_none(job, far, tmp_path):
    found, _ = made(with_keys(tmp_path, files=0), far)
    assert ends(found) == ["login", "quota", "put", "get"]


def test_too_little_room_is_named_before_anything_is_written(job, far):
    far.room = 2**20
    _, failed = made(job, far)
    assert failed == ("generic", "the service has 1 MiB free, 3.002 MiB are needed")
    assert not far.far.exists()


def test_too_little_room_on_this_machine_is_named_before_anything_is_written(job, far, monkeypatch):
    usage = shutil.disk_usage(job.scratch)._replace(free=5 * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    _, failed = made(job, far)
    assert failed == ("generic", f"{job.scratch} has 5 MiB free, 6.004 MiB are needed")
    assert not far.far.exists()


def test_a_file_that_the_far_end_has_otherwise_has_no_rate(job, far, monkeypatch):
    put = far.put

    def altered(files):
        put(files)
        (far.far / "large").write_bytes(b"other")

    monkeypatch.setattr(far, "put", altered)
    found, failed = made(job, far)
    assert failed == ("checksum", "the far end has another checksum: 1 file")
    assert rates(found) == []


def test_a_file_that_comes_back_otherwise_has_no_rate_in_either_direction(job, far, monkeypatch):
    def altered(names, into):
        for name in names:
            (into / name).write_bytes(b"other")

    monkeypatch.setattr(far, "get", altered)
    far.checksums = False
    found, failed = made(job, far)
    assert failed == ("checksum", "what came back has another checksum: 1 file")
    assert rates(found) == []


def test_the_rate_there_counts_if_the_far_end_agrees_and_the_way_back_fails(job, far, monkeypatch):
    monkeypatch.setattr(far, "get", lambda names, into: None)
    found, failed = made(job, far)
    assert failed == ("checksum", "what came back has another checksum: 1 file")
    assert rates(found) == [("cluster", "archive", "1")]


def test_files_are_random_so_that_no_compression_helps(tmp_path):
    one = transfers.random_file(tmp_path / "one", 2**20 + 1)
    data = one.path.read_bytes()
    assert len(data) == one.size == 2**20 + 1
    assert hashlib.sha256(data).hexdigest() == one.sha256
    assert transfers.random_file(tmp_path / "two", one.size).sha256 != one.sha256


def test_only_names_of_ours_are_named_and_none_that_could_be_a_path_or_an_option():
    mine = steps.mark(SESSION, "box")
    hostile = [f"{mine}/../../etc", f"{mine};rm", f"{mine}\n", f"{mine} x", "siteproof-", "-rf"]
    assert transfers.ours([mine, "notes", *hostile]) == [mine]


def test_a_tool_writes_no_file_that_is_larger_than_allowed(job):
    ended = transfers.run(job, ["head", "-c", "100000", "/dev/zero"], most=1000)
    assert ended.code != 0
    assert len(ended.out) <= 1000
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_tool_that_is_missing_is_named(job):
    with pytest.raises(StepFailed, match="'no-such-tool' is not installed") as raised:
        transfers.run(job, ["no-such-tool"])
    assert raised.value.status == "tool_missing"


@pytest.mark.deep
def test_a_tool_that_hangs_is_a_timeout(job, tmp_path):
    with pytest.raises(TimeoutError):
        transfers.run(with_keys(tmp_path, timeout="1 s"), ["sleep", "60"])


def test_what_a_tool_prints_may_be_no_text_at_all(job):
    ended = transfers.run(job, [sys.executable, "-c", r"print('\xff')"], text="x")
    assert ended.code == 0


def test_the_connection_ends_after_each_use_of_a_kind_also_after_a_failure(job, far):
    kind = transfers.kind(lambda job: far)
    kind.test(job, steps.Steps(lambda record: None, 9.0))
    kind.remove(job, "any")
    with pytest.raises(StepFailed):
        kind.found(job)
    assert (far.ends, far.far.exists()) == (3, False)
