"""The test of one service: each step within its time limit, and nothing left behind at the end.

The test runs in a process group of its own, which is killed when a step takes too long. A guardian,
in a session of its own, removes what the test has created if this process ends before its time:
after Ctrl-C, a time limit or a kill. Whether all is gone is read from the service.
Some kinds need the extra `services` of pyproject.toml; all else works without it, as the module of
a kind is imported when such a service is used.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.services.steps import Job, Kind, StepFailed, Steps, marked, without_secrets
from siteproof.sites import Service, Site
from siteproof.units import count

MODULES = {  # by kind: of the extra's libraries; the kinds over ssh need none
    "http": ("cryptography",),
    "s3": ("minio", "urllib3"),
    "irods": ("irods",),
    "globus": ("globus_sdk",),
    "jupyterhub": ("cryptography", "websocket"),
    "web": ("cryptography",),
    "desktop": ("cryptography",),
    "openstack": ("keystoneauth1", "openstack", "requests"),
    "galaxy": ("bioblend", "cryptography"),
}


def lacking(*kinds: str) -> str:
    """Why services of these kinds cannot be used: what is not installed; empty if they can be."""
    missing = {
        kind: [name for name in MODULES.get(kind, ()) if find_spec(name) is None] for kind in kinds
    }
    unusable = sorted(kind for kind, names in missing.items() if names)
    if not unusable:
        return ""
    modules = ", ".join(sorted({name for names in missing.values() for name in names}))
    return (
        f"services of kind {', '.join(unusable)} need the extra 'services' (not installed: "
        f"{modules}): 'make venv' in the clone, or pip install 'siteproof[services]'"
    )


Record = dict[str, Any]
Act = Callable[[Job, Steps], None]
LONGEST_LINE = 64 * 1024  # bytes of a record
NOT_INSTALLED = 127  # exit code, as of a shell
MAX_NAMED = 3  # things that are left behind, in a reason


def written(site: Site, name: str, mark: str, **of_run: object) -> str:
    """What `load` reads: a service's entry, with the files of credentials and not their content.

    of_run: keys of the entry that the run decides.
    """
    entry = site.system.services[name].as_written() | of_run
    return json.dumps({"name": name, "mark": mark, "system": site.name, "service": entry})


def load(path: Path) -> Job:
    """The test that `written` has described, with a scratch folder of its own."""
    work = files.loads(path, files.read_named(path))
    service = Service.model_validate(work["service"])
    if why := lacking(service.kind):  # as the script of a check ends without Siteproof
        print(why, file=sys.stderr)
        raise SystemExit(NOT_INSTALLED)
    return job_of(work["system"], work["name"], service, work["mark"])


def job_of(system: str, name: str, service: Service, mark: str) -> Job:
    """A job with a scratch folder of its own, which the caller removes."""
    return Job(name, service, mark, Path(tempfile.mkdtemp(prefix="siteproof-")), system)


def run(job: Job, report: Callable[[Record], None]) -> None:
    """Test a service, remove what was created, and report each record as it comes."""
    guardian = _Guardian(job)
    records: list[Record] = []

    def make(act: Act) -> None:
        for record in watched(job, act, guardian):
            report(record)
            records.append(record)

    make(kind_of(job).test)
    ends = [record["status"] for record in records if "end" in record]
    if {"timeout", "killed"}.intersection(ends):
        time.sleep(job.settle)
    if "ok" in ends or not ends:  # after a first step that failed nothing is there to be removed
        make(clean)
    report({"done": len(records)})
    guardian.dismiss()
    shutil.rmtree(job.scratch, ignore_errors=True)


def kind_of(job: Job) -> Kind:
    """The kind of a service, one of those that the schema allows."""
    kinds: dict[str, Kind] = import_module(f"siteproof.services.{job.module}").KINDS
    return kinds[job.service.kind]


def clean(job: Job, steps: Steps) -> None:
    """Remove all that this test has created, and ask the service whether it is gone."""
    with steps.step("clean", seconds=job.clean_seconds):
        _remove(job, _own(job))
        if left := _own(job):
            named = ", ".join(left[:MAX_NAMED])
            raise StepFailed(f"{count(len(left), 'thing')} left behind: {named}")


def clean_all(ended: Callable[[str], bool], *, apply: bool) -> Act:
    """Remove what tests of earlier sessions have left; without `apply`, only look.

    ended: whether a session is over.
    """

    def remove(job: Job, steps: Steps) -> None:
        with steps.step("clean"):
            before = []
            for name in kind_of(job).found(job):
                mark = marked(name)
                if mark and ended(mark[1]):
                    before.append(name)
                elif mark:
                    steps.thing(name, "kept")
            try:
                _remove(job, before if apply else [])
            finally:
                left = set(before).intersection(kind_of(job).found(job))
                for name in before:
                    steps.thing(name, "left" if name in left else "removed")

    return remove


def _remove(job: Job, names: Sequence[str]) -> None:
    """Remove things; one that cannot be removed does not keep the others. Raises its error."""
    failed: Exception | None = None
    for name in names:
        try:
            kind_of(job).remove(job, name)
        except Exception as error:  # noqa: BLE001 - raised when the others are removed
            failed = failed or error
    if failed:
        raise failed


def _own(job: Job) -> list[str]:
    """What this test has created and the service still has."""
    own = marked(job.mark)
    return [name for name in kind_of(job).found(job) if own and marked(name) == own]


def watched(job: Job, act: Act, guardian: _Guardian | None = None) -> Iterator[Record]:
    """The records of steps made in a child process, each step within its time limit."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(job, act, writing, guardian)
    os.close(writing)
    if guardian:
        guardian.watch(child)
    try:
        yield from _records(job, reading, child)
    finally:
        os.close(reading)
        _end(child)


def _in_child(job: Job, act: Act, writing: int, guardian: _Guardian | None) -> None:
    """Make the steps, and end this process."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if guardian:
            guardian.leave()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)  # what a library prints is no record

        reported: list[str] = []  # the statuses of the steps

        def report(record: Record) -> None:
            reported.append(record.get("status", "ok"))
            os.write(writing, json.dumps(record).encode() + b"\n")

        steps = Steps(report, job.seconds, kind_of(job).explain)
        try:
            act(job, steps)
        except Exception as error:  # noqa: BLE001 - it ends the test, and is reported
            failed = steps.failed(error, job.seconds)
            if failed is not error or set(reported) <= {"ok"}:  # outside of every step
                why = without_secrets(str(failed))
                report(_failed({"step": act.__name__}, failed.status, why))
        os.write(writing, b'{"over": true}\n')  # all that has failed is reported
    finally:
        os._exit(0)


def _records(job: Job, reading: int, child: int) -> Iterator[Record]:
    """What the child reports; of a step that takes too long or is killed, its end."""
    clock = _Clock(job.seconds)
    left, over = b"", False
    while (rest := clock.limit - clock.took) > 0:
        ready, _, _ = select.select([reading], [], [], rest)
        data = os.read(reading, LONGEST_LINE) if ready else b""
        if ready and not data:
            break
        *lines, left = (left + data).split(b"\n")
        for line in lines:
            record = files.loads("the test of a service", line)
            over = over or "over" in record
            if "over" not in record:
                clock.take(record)
                yield record
    else:
        why = f"no answer within {clock.limit:g} s"
        yield _failed(clock.step or {"step": "test"}, "timeout", why, clock.took)
        return
    number = _end(child)
    if not over:  # it may have died between two steps, too
        why = f"ended by signal {number}" if number > 0 else "ended before its end"
        yield _failed(clock.step or {"step": "test"}, "killed", why, clock.took)


class _Clock:
    """What of its time the open step has taken. limit: seconds; between two steps, as of any."""

    def __init__(self, seconds: float) -> None:
        self._between = self.limit = seconds
        self._begun = time.monotonic()
        self.step: Record | None = None

    def take(self, record: Record) -> None:
        """A record has come: a step begins or ends, or something was found."""
        self._begun = time.monotonic()
        if "begin" in record:
            self.step, self.limit = record["begin"], float(record["limit"])
        if "end" in record:
            self.step, self.limit = None, self._between

    @property
    def took(self) -> float:
        """Seconds since the last record."""
        return time.monotonic() - self._begun


def _failed(step: Record, status: str, why: str, took: float = 0.0) -> Record:
    return {"end": step, "seconds": f"{took:.3f}", "status": status, "why": why}


def _end(child: int) -> int:
    """End a child and all that it has started; the signal that ended it, if one did."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)  # before it has made its group
    with suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * -1
    return 0


class _Guardian:
    """A process that outlives this one, and removes what the test of a job has created."""

    def __init__(self, job: Job) -> None:
        self._reading, self._writing = os.pipe()
        waits, ready = os.pipe()
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._writing)
            self._live(job, ready)
        os.close(self._reading)
        os.close(ready)
        os.read(waits, 1)  # until it is in a session of its own, where no signal of ours reaches it
        os.close(waits)

    def watch(self, child: int) -> None:
        """Name the process that is to be ended first."""
        os.write(self._writing, f"{child}\n".encode())

    def leave(self) -> None:
        """In a child: let go of the guardian, which waits until nobody has hold of it."""
        os.close(self._writing)

    def dismiss(self) -> None:
        """The test has ended, and has cleaned up itself."""
        os.write(self._writing, b"done\n")
        os.close(self._writing)
        os.waitpid(self._pid, 0)

    def _live(self, job: Job, ready: int) -> None:
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):  # they would keep the job's files open
                os.dup2(null, stream)
            os.close(ready)
            data = b""
            while part := os.read(self._reading, 4096):  # until the tested process lets go, or ends
                data += part
            words = data.decode().split()
            if words[-1:] != ["done"]:
                for child in words[-1:]:
                    with suppress(ProcessLookupError, PermissionError, ValueError):
                        os.killpg(int(child), signal.SIGKILL)
                again = _elsewhere(job)
                for pause in (0.0, again.settle) if again.settle else (0.0,):
                    time.sleep(pause)
                    for _ in watched(again, clean):
                        pass
                shutil.rmtree(again.scratch, ignore_errors=True)
        finally:
            os._exit(0)


def _elsewhere(job: Job) -> Job:
    """The job with another scratch folder: the first may be removed with the job's own files."""
    shutil.rmtree(job.scratch, ignore_errors=True)
    os.chdir("/")
    os.environ.pop("TMPDIR", None)
    tempfile.tempdir = None
    return replace(job, scratch=Path(tempfile.mkdtemp(prefix="siteproof-")))


def main(path: str) -> None:
    """Test the service that a file describes."""
    print_records(load(Path(path)))


def print_records(job: Job) -> None:
    """Test a service; the records are lines of JSON on stdout."""
    run(job, lambda record: print(json.dumps(record), flush=True))
