"""What a kind of service is given: its entry in the site, a name for what it creates, and steps.

A module of this room has a Kind for each kind of service that it uses, in KINDS.

What the service sends is data: it becomes part of no command, and of no path on this machine.
"""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.sites import Service

Status = Literal[
    "login", "timeout", "checksum", "generic", "tool_missing", "invalid", "absent"
]  # absent: what the step would use is not there, which fails nothing
PREFIX = "siteproof-"
# siteproof-SERVICE-SESSION; a session's name as in siteproof.checks.session
_MARK = re.compile(
    r"siteproof-([A-Za-z_][A-Za-z0-9_-]{0,39}?)-([0-9]{8}T[0-9]{6}Z-[0-9a-f]{7})(?![0-9A-Za-z])"
)
LONGEST = 300  # characters of a reason
SHARE = 0.9  # of a time limit: what is wrong is reported before the limit is over
LONGEST_SETTLE = 60.0  # seconds
LARGEST_SECRET = 64 * 1024  # bytes
OVER_SSH = ("sftp", "rsync", "kerberos")  # kinds that one module uses
_secrets: set[str] = set()  # what no output may have; of this process, which tests one service


class StepFailed(Exception):
    """A step of a service's test failed. status: as that of a sample."""

    def __init__(self, why: str, status: Status = "generic") -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Job:
    """One test of one service.

    mark: how the names of all that it creates begin. scratch: a folder of its own on this machine,
    which is removed at the end. system: its name in the site.
    """

    name: str
    service: Service
    mark: str
    scratch: Path
    system: str

    @property
    def seconds(self) -> float:
        """How long each step may take."""
        return float(self.service.timeout.to("s"))

    @property
    def module(self) -> str:
        """The module of this room that uses the service."""
        return "sftp" if self.service.kind in OVER_SSH else self.service.kind

    @property
    def clean_seconds(self) -> float:
        """How long the removal of all that was created may take."""
        return self.seconds

    @property
    def settle(self) -> float:
        """Seconds in which a request that nobody waits for any more may still create something.

        A cloud goes on with it; what it then creates comes after a first look at what is left.
        """
        return min(self.seconds, LONGEST_SETTLE) if self.service.kind == "openstack" else 0.0

    @property
    def here(self) -> str:
        """The name of this end."""
        return self.service.here or self.system

    @property
    def there(self) -> str:
        """The name of the far end."""
        return self.service.there or self.name

    def wait(self, still: Callable[[], str], pause: float) -> None:
        """Look until nothing is left to wait for. still: what is, or nothing. Raises StepFailed."""
        most = SHARE * self.seconds
        end = time.monotonic() + most
        while left := still():
            if time.monotonic() > end:
                raise StepFailed(f"{left} after {most:g} s", "timeout")
            time.sleep(pause)

    def secret(self, key: str) -> str:
        """The content of a credential's file, without blanks around it. Raises StepFailed."""
        return secret(key, getattr(self.service, key))

    def pairs(self, *needed: str, shown: Container[str] = ()) -> dict[str, str]:
        """The KEY=VALUE lines of the file `credentials`. Raises StepFailed if one is missing.

        shown: lines whose values are no secrets, such as the name of a user.
        """
        lines = (line.partition("=") for line in self.secret("credentials").splitlines())
        found = {name.strip(): value.strip() for name, equals, value in lines if equals}
        _secrets.update(value for name, value in found.items() if value and name not in shown)
        lines_there(found, needed)
        return found


def lines_there(found: Container[str], needed: Iterable[str]) -> None:
    """Raises StepFailed for the first line that credentials lack."""
    for name in needed:
        if name not in found:
            raise StepFailed(f"credentials: no line {name}=…", "login")


def mark(session: str, service: str) -> str:
    """How the names of all that a test creates begin."""
    return f"{PREFIX}{service}-{session}"


def marked(name: str) -> tuple[str, str] | None:
    """The service and the session that have created a thing of this name; None: not ours."""
    match = _MARK.match(name)
    return (match[1], match[2]) if match else None


def secret(key: str, path: str) -> str:
    """The content of a file of mode 600 of this user. Raises StepFailed, without the content."""
    private(key, path)
    try:
        text = files.read_named(Path(path), LARGEST_SECRET).decode().strip()
    except (OSError, UnicodeDecodeError, UserError) as error:
        raise StepFailed(f"{key}: {path} cannot be read: {error}", "login") from None
    if not text:
        raise StepFailed(f"{key}: {path} is empty", "login")
    _secrets.update([text, *text.splitlines(), text.partition(":")[2]])
    _secrets.add(b64encode(text.encode()).decode())  # as in a header of HTTP
    return text


def private(key: str, path: str) -> None:
    """Raises StepFailed unless a file is there, and nobody but its owner may read it."""
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise StepFailed(f"{key}: {path} cannot be read: {error.strerror}", "login") from None
    if mode & 0o077:
        why = f"{key}: others may read {path} (mode {mode & 0o777:03o}): 'chmod 600 {path}'"
        raise StepFailed(why, "login")


def without_secrets(text: str) -> str:
    """A text on one line, with stars for each credential that this process has read."""
    for one in sorted(_secrets, key=len, reverse=True):
        if len(one) > 3:  # shorter ones would make nonsense of any text
            text = text.replace(one, "***")
    return harmless(" ".join(text.split()))[:LONGEST]


def unexplained(error: Exception) -> Exception:
    """The error as it is: of a kind that uses no library with errors of its own."""
    return error


class Steps:
    """Times steps and reports each as a record: when it begins, and how it ended.

    alone: whether a step that fails says nothing of what others measure, as they are made, too.
    explain: what an error of the kind's library means: StepFailed, TimeoutError, or the same.
    """

    def __init__(
        self,
        report: Callable[[dict[str, object]], None],
        seconds: float,
        explain: Callable[[Exception], Exception] = unexplained,
    ) -> None:
        self._report, self._seconds, self._explain = report, seconds, explain
        self.alone = False

    @contextmanager
    def step(self, name: str, *, seconds: float | None = None, **dims: str) -> Iterator[None]:
        """A step, timed. seconds: how long it may take, if not as long as all others.

        dims: what distinguishes it from steps of the same name, such as a direction. An error is
        reported and raised as StepFailed, so the steps after it are not made.
        """
        place = {"step": name, **dims}
        limit = seconds or self._seconds
        self._report({"begin": place, "limit": limit})
        start = time.monotonic()
        try:
            yield
        except Exception as error:
            failed = self.failed(error, limit)
            self._ended(place, start, failed.status, str(failed))
            raise failed from None
        self._ended(place, start, "ok", "")

    def failed(self, error: Exception, limit: float) -> StepFailed:
        """What an error means. limit: the seconds that there were."""
        found = error if isinstance(error, StepFailed) else self._explain(error)
        if isinstance(found, StepFailed):
            return found
        if isinstance(found, TimeoutError):
            return StepFailed(f"no answer within {limit:g} s", "timeout")
        return StepFailed(f"{type(found).__name__}: {found}")

    def value(self, metric: str, value: Decimal | int | float, unit: str, **dims: str) -> None:
        """A figure of a metric `Service.METRIC` in the catalogue, such as a rate."""
        self._report({"metric": metric, "value": f"{value}", "unit": unit, "dims": dims})

    def thing(self, name: str, state: str) -> None:
        """What has become of a thing at the service: removed, kept or left."""
        self._report({"thing": without_secrets(name), "state": state})

    def condition(self, **conditions: str) -> None:
        """What must be equal for two tests to be comparable: versions, sizes."""
        self._report({"conditions": {k: without_secrets(v) for k, v in conditions.items()}})

    def _ended(self, place: dict[str, str], start: float, status: str, why: str) -> None:
        took = f"{time.monotonic() - start:.3f}"
        alone = {"alone": "yes"} if self.alone else {}
        why = without_secrets(why)
        self._report({"end": place, "seconds": took, "status": status, "why": why, **alone})


@dataclass(frozen=True)
class Kind:
    """How services of a kind are used.

    test: uses one; each step within `steps.step(NAME)`. found: the names of all things at the
    service that begin with PREFIX; of a kind that only looks, none. remove: removes one of them.
    explain: as of Steps.
    """

    test: Callable[[Job, Steps], None]
    found: Callable[[Job], list[str]] = lambda job: []
    remove: Callable[[Job, str], None] = lambda job, name: None
    explain: Callable[[Exception], Exception] = unexplained
