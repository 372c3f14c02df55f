"""Globus: a transfer between two collections and back, by its SDK as an application.

The files are those in the source's folder. Globus compares their checksums at both ends itself,
and its tasks run on without us: those of ours that have not ended belong to what is found.
"""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version
from itertools import islice
from typing import Any

from globus_sdk import (
    AccessTokenAuthorizer,
    AuthAPIError,
    ConfidentialAppAuthClient,
    DeleteData,
    GlobusAPIError,
    GlobusTimeoutError,
    TransferClient,
    TransferData,
)
from globus_sdk.scopes import TransferScopes
from globus_sdk.transport import RequestsTransport, RetryConfig

from siteproof import units
from siteproof.services import transfers
from siteproof.services.steps import PREFIX, Job, Kind, StepFailed, Steps

MAX_NAMES = 100_000  # names of a folder, and tasks, that are looked at
PAUSE = 2  # seconds between two looks at a task
_REFUSED = (401, 403)
_UNKNOWN = (400, *_REFUSED)  # how an unknown client is refused
_LOGIN = ("PERMISSION_DENIED", "CREDENTIAL", "EXPIRED", "AUTH")  # parts of a task's own words
_QUIET: dict[str, Any] = {
    f"notify_on_{event}": False for event in ("succeeded", "failed", "inactive")
}
Files = dict[str, int]  # name to bytes


class Globus:
    """The two collections and their folders, source first."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._ends = job.service.address.split(">")
        self._folders = [job.service.from_folder.rstrip("/"), job.service.folder.rstrip("/")]

    @cached_property
    def _api(self) -> TransferClient:
        """The client of Globus Transfer, with a token. Raises StepFailed."""
        pairs = self._job.pairs("client_id", "client_secret")
        once = RetryConfig(max_retries=0)  # a retry would hide a fault, and take its time

        def transport() -> RequestsTransport:
            return RequestsTransport(http_timeout=self._job.seconds)

        auth = ConfidentialAppAuthClient(
            pairs["client_id"], pairs["client_secret"], transport=transport(), retry_config=once
        )
        tokens = auth.oauth2_client_credentials_tokens(TransferScopes.all)
        try:
            token = f"{tokens.by_resource_server[TransferClient.resource_server]['access_token']}"
        except (KeyError, TypeError):
            raise StepFailed("Globus gave no token for transfers", "login") from None
        return TransferClient(
            authorizer=AccessTokenAuthorizer(token), transport=transport(), retry_config=once
        )

    def login(self) -> None:
        """Get a token, and see both collections."""
        for end in self._ends:
            self._api.get_endpoint(end)

    def source(self) -> Files:
        """The files that are to be moved: no more than the site allows. Raises StepFailed."""
        listed = self._listed(0)
        files = {one["name"]: int(one["size"]) for one in listed if one["type"] == "file"}
        most = self._job.service.bytes_written
        if not files:
            raise StepFailed(f"no file in {self._folders[0] or '/'} of the source")
        if (total := sum(files.values())) > most:
            why = f"{self._folders[0] or '/'} of the source has {units.size(total)}"
            raise StepFailed(f"{why}, at most {units.size(most)} may be moved")
        return files

    def move(self, files: Files, back: bool) -> float:
        """Move files by one task; its rate in bytes per second by Globus. back: to source."""
        ends, mark = self._ends, self._job.mark
        places = [self._folders[0], f"{self._folders[1]}/{mark}"]
        if back:
            places = [f"{self._folders[0]}/{mark}", places[1]]
            ends, places = ends[::-1], places[::-1]
        data = TransferData(*ends, label=mark, verify_checksum=True, **_QUIET)
        for name in files:
            data.add_item(f"{places[0]}/{name}", f"{places[1]}/{name}")
        task = self._wait(self._api.submit_transfer(data)["task_id"])
        if int(task.get("bytes_transferred") or 0) != sum(files.values()):
            raise StepFailed("Globus moved another number of bytes than expected")
        return float(task.get("effective_bytes_per_second") or 0)

    def names(self) -> list[str]:
        """What is ours in both folders, and our tasks that have not ended."""
        names = {str(one["name"]) for end in (0, 1) for one in self._listed(end)}
        names |= {str(task["label"]) for task in self._tasks()}
        return transfers.ours(sorted(names))

    def remove(self, name: str) -> None:
        """Cancel our tasks of that name, and remove its folder at both ends."""
        for task in self._tasks():
            if task["label"] == name:
                self._api.cancel_task(task["task_id"])
        for end in (0, 1):
            if name in {one["name"] for one in self._listed(end)}:
                data = DeleteData(
                    self._ends[end],
                    label=f"removal of {name}",
                    recursive=True,
                    ignore_missing=True,
                    **_QUIET,
                )
                data.add_item(f"{self._folders[end]}/{name}")
                self._wait(self._api.submit_delete(data)["task_id"])

    def _listed(self, end: int) -> list[Any]:
        folder = self._folders[end] or "/"
        return list(islice(self._api.operation_ls(self._ends[end], folder), MAX_NAMES))

    def _tasks(self) -> list[Any]:
        """Those of ours that have not ended."""
        active = self._api.task_list(filter={"status": ["ACTIVE", "INACTIVE"]})
        return [one for one in islice(active, MAX_NAMES) if (one["label"] or "").startswith(PREFIX)]

    def _wait(self, task: str) -> Any:
        """Until a task has ended well. Raises StepFailed; TimeoutError."""
        if not self._api.task_wait(task, timeout=int(self._job.seconds), polling_interval=PAUSE):
            raise TimeoutError
        ended = self._api.get_task(task)
        if ended["status"] != "SUCCEEDED":
            raise failed(ended.data)
        return ended


def test(job: Job, steps: Steps) -> None:
    """Files from the source to the destination and back."""
    client = Globus(job)
    tool = f"globus-sdk {version('globus-sdk')}"
    steps.condition(protocol="globus", tool=tool, checksum="far end")
    with steps.step("login"):
        client.login()
    with steps.step("quota"):
        files = client.source()
    steps.condition(size=f"{sum(files.values())}", files=f"{len(files)}")
    for step, direction in (("put", "out"), ("get", "in")):
        with steps.step(step, direction=direction):
            rate = client.move(files, back=direction == "in")
        sender, receiver = (job.here, job.there) if direction == "out" else (job.there, job.here)
        dims = {"sender": sender, "receiver": receiver, "files": f"{len(files)}"}
        steps.value("rate", round(rate / 10**6, 6), "MB/s", **dims)


def failed(task: dict[str, Any]) -> StepFailed:
    """Why a task has not succeeded, by what Globus reports."""
    fatal = task.get("fatal_error") or {}
    words = [fatal.get("code"), fatal.get("description"), task.get("nice_status")]
    why = ": ".join(str(part) for part in words if part) or str(task.get("status"))
    if "CHECKSUM" in why.upper():
        return StepFailed(why, "checksum")
    refused = any(part in why.upper() for part in _LOGIN)
    return StepFailed(why, "login" if refused else "generic")


def explain(error: Exception) -> Exception:
    """What the SDK raises, as StepFailed or TimeoutError."""
    if isinstance(error, GlobusTimeoutError):
        return TimeoutError()
    if not isinstance(error, GlobusAPIError):
        return error
    refused = _UNKNOWN if isinstance(error, AuthAPIError) else _REFUSED
    said = ": ".join(str(part) for part in (error.code, error.message) if part)
    why = f"HTTP status {error.http_status}: {said}"
    return StepFailed(why, "login" if error.http_status in refused else "generic")


KINDS = {
    "globus": Kind(
        test,
        found=lambda job: Globus(job).names(),
        remove=lambda job, name: Globus(job).remove(name),
        explain=explain,
    )
}
