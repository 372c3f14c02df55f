"""Galaxy by bioblend, whose requests are made by `asking`: its limits, certificates and reasons.

bioblend itself would follow variables of the environment, ~/.netrc, and what Galaxy sends as a
place to upload to.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import bioblend
from bioblend.galaxy import GalaxyInstance

from siteproof import files
from siteproof.errors import UserError
from siteproof.services.asking import Answer, answering, ask, refused
from siteproof.services.steps import Job, StepFailed

MEBI = 1 << 20
ANSWER = 64 * MEBI  # bytes of an answer that is no file
LARGEST = 1 << 40  # bytes of an input
PART = 8 * MEBI  # of an upload, which is sent in several
_ID = re.compile(r"[0-9A-Za-z]{1,64}")  # as Galaxy encodes its numbers
_UPLOAD = re.compile(r"[0-9A-Za-z_+-]{1,200}")
_EXTENSION = re.compile(r"[a-z0-9_.-]{1,60}")
_ENCODED = re.compile(r"/[0-9a-f]{16,64}(?=/|$)")
_TUS = {"Tus-Resumable": "1.0.0"}  # the protocol of uploads


@dataclass(frozen=True)
class _Response:
    """An answer as bioblend expects one. Other statuses than 2xx are StepFailed before."""

    answer: Answer

    @property
    def status_code(self) -> int:
        return self.answer.status

    @property
    def content(self) -> bytes:
        return self.answer.body

    @property
    def text(self) -> str:
        return self.answer.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return self.answer.json()


class Galaxy(GalaxyInstance):
    """The Galaxy of a service, as the user of its API key. Methods raise StepFailed."""

    def __init__(self, job: Job) -> None:
        self._job = job
        super().__init__(job.service.address, key=job.secret("token"))

    def make_get_request(self, url: str, **how: Any) -> Any:
        """As bioblend's."""
        return _Response(self._ask("GET", url, params=how.get("params")))

    def make_post_request(
        self,
        url: str,
        payload: dict[str, Any] | None = None,
        params: dict[str, Any] | None = None,
        files_attached: bool = False,
    ) -> Any:
        """As bioblend's; it attaches files for old versions of Galaxy only."""
        if files_attached:
            raise StepFailed("generic", "this Galaxy is older than 22.01")
        return self._ask("POST", url, payload, params).json()

    def make_delete_request(
        self, url: str, payload: dict[str, Any] | None = None, params: dict[str, Any] | None = None
    ) -> Any:
        """As bioblend's."""
        return _Response(self._ask("DELETE", url, payload, params))

    def get_tus_uploader(self, path: str, **_: Any) -> Any:  # type: ignore[override]
        """What uploads a file, in place of tuspy."""
        return _Upload(self, Path(path))

    def send(self, method: str, place: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """A request of uploads. place: below the API."""
        return self._ask(method, f"{self.url}/{place}", body, headers=headers)

    def sha256(self, history: str, dataset: Mapping[str, Any]) -> str:
        """The SHA-256 of a file of a history, of which nothing is kept here."""
        extension = f"{dataset.get('file_ext')}"
        known = extension if _EXTENSION.fullmatch(extension) else "data"
        place = f"histories/{history}/contents/{id_of(dataset)}/display?to_ext={known}"
        digest = hashlib.sha256()
        with answering(self._job, "GET", f"{self.url}/{place}", headers=self._login()) as response:
            if response.status != http.client.OK:
                raise refused(response.status, "download")
            while part := response.read(MEBI):
                digest.update(part)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        return digest.hexdigest()

    def _login(self) -> dict[str, str]:
        return {"x-api-key": self.key or ""}

    def _ask(
        self,
        method: str,
        url: str,
        payload: Mapping[str, Any] | bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; its answer has a status of 2xx."""
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        body = payload if isinstance(payload, bytes) else None
        if isinstance(payload, Mapping):
            body = json.dumps(payload).encode()
        sent = {"Content-Type": "application/json", **self._login(), **(headers or {})}
        answer = ask(self._job, method, url + query, body=body, headers=sent, most=ANSWER + 1)
        if len(answer.body) > ANSWER:
            raise StepFailed("generic", f"an answer has more than {ANSWER} bytes")
        if not 200 <= answer.status < 300:
            raise refused(answer.status, _what(url), answer.said("err_msg"))
        return answer


class _Upload:
    """A file on its way to Galaxy by TUS, as bioblend uses it."""

    def __init__(self, galaxy: Galaxy, path: Path) -> None:
        self._galaxy, self._path = galaxy, path
        self.session_id = ""

    def upload(self) -> None:
        """Send the file, part by part."""
        try:
            with files.named(self._path, LARGEST) as handle:
                self.session_id = self._sent(handle)
        except TimeoutError:
            raise
        except OSError as error:
            raise StepFailed("generic", f"inputs: {self._path}: {error.strerror}") from None
        except UserError as error:
            raise StepFailed("generic", f"inputs: {error}") from None

    def _sent(self, handle: int) -> str:
        """The name of the upload, when Galaxy has all bytes of an open file."""
        answer = self._send("POST", "", {"Upload-Length": f"{os.fstat(handle).st_size}"}, b"")
        name = answer.headers.get("location", "").rpartition("/")[2]
        if not _UPLOAD.fullmatch(name):
            raise StepFailed("generic", "the upload has no id")
        sent = 0
        while part := os.read(handle, PART):
            headers = {
                "Upload-Offset": f"{sent}",
                "Content-Type": "application/offset+octet-stream",
            }
            answer = self._send("PATCH", f"/{name}", headers, part)
            sent += len(part)
            if answer.headers.get("upload-offset") != f"{sent}":
                raise StepFailed("generic", f"of an upload not all {sent} bytes have arrived")
        return name

    def _send(self, method: str, name: str, headers: Mapping[str, str], body: bytes) -> Answer:
        place = f"upload/resumable_upload{name}"
        return self._galaxy.send(method, place, {**_TUS, **headers}, body)


def id_of(thing: Any, key: str = "id") -> str:
    """The identifier that Galaxy has given to a thing, which becomes part of URLs."""
    found = thing.get(key) if isinstance(thing, Mapping) else None
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise StepFailed("generic", "Galaxy gave no id")
    return found


@contextmanager
def explained() -> Iterator[None]:
    """Turns what bioblend raises into StepFailed, and what an answer of another shape causes."""
    try:
        yield
    except bioblend.ConnectionError:
        raise StepFailed("generic", "the answer is not understood") from None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        why = f"the answer is not understood: {type(error).__name__}"
        raise StepFailed("generic", why) from None


def _what(url: str) -> str:
    """A request in a word: its place below the API, without identifiers."""
    return _ENCODED.sub("", urlsplit(url).path.partition("/api/")[2])
