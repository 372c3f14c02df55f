"""iRODS: data objects put, read and removed, by python-irodsclient over one connection.

The checksum is the far end's own, a SHA-256 or MD5. Nothing of ~/.irods is used, and no server that
another one names.
"""

from __future__ import annotations

import re
import shutil
import ssl
from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from irods import message
from irods.exception import (
    CAT_INVALID_AUTHENTICATION,
    CAT_INVALID_USER,
    CAT_PASSWORD_EXPIRED,
    CollectionDoesNotExist,
    NetworkException,
    iRODSException,
)
from irods.session import iRODSSession

from siteproof.services import transfers
from siteproof.services.steps import Job, StepFailed
from siteproof.services.transfers import ANSWER, MEBI, File

PORT = 1247
PART = 8 * MEBI  # of a file, in one message, as the library itself sends it
_LOGIN = (CAT_INVALID_AUTHENTICATION, CAT_INVALID_USER, CAT_PASSWORD_EXPIRED)
_MD5 = re.compile(r"[0-9a-f]{32}")
_TLS = {  # what the server's administrator gives to users, with iRODS' own values
    "irods_client_server_negotiation": "request_server_negotiation",
    "irods_client_server_policy": "CS_NEG_REQUIRE",
    "irods_encryption_algorithm": "AES-256-CBC",
    "irods_encryption_key_size": 32,
    "irods_encryption_num_hash_rounds": 16,
    "irods_encryption_salt_size": 8,
}
message.set_default_XML_by_name("SECURE_XML")  # an answer with entities is refused
_receive = message._recv_message_in_len


def _of_at_most(sock: Any, size: int) -> Any:
    """A part of an answer; the library itself takes as many bytes as the server announces."""
    if not 0 <= size <= ANSWER:
        raise StepFailed(f"an answer of {size} bytes is announced: no iRODS server")
    return _receive(sock, size)


message._recv_message_in_len = _of_at_most


class Collection(transfers.Client):
    """A collection of the service."""

    protocol = "irods"

    def __init__(self, job: Job) -> None:
        self._job = job
        self.tool = f"python-irodsclient {version('python-irodsclient')}"

    def close(self) -> None:
        """End the connection, if there is one."""
        if "_session" in self.__dict__:
            self._session.cleanup()

    @cached_property
    def _session(self) -> Any:
        """The client of the library, which connects when it is used. Raises StepFailed."""
        service = self._job.service
        place = urlsplit(f"//{service.address}")
        tls: dict[str, Any] = {}
        if service.certificates:
            tls = {**_TLS, "ssl_context": ssl.create_default_context(cafile=service.certificates)}
        return iRODSSession(
            host=place.hostname,
            port=place.port or PORT,
            user=place.username,
            zone=service.folder.split("/")[1],
            password=self._job.secret("password"),
            connection_timeout=self._job.seconds,
            **tls,
        )

    def _path(self, *names: str) -> str:
        return "/".join([self._job.service.folder.rstrip("/"), *names])

    def login(self) -> None:
        """Look at the collection."""
        self._session.collections.get(self._path())

    def make(self) -> None:
        """Make the collection of what is put."""
        self._session.collections.create(self._path(self._job.mark))

    def put(self, files: Sequence[Path]) -> None:
        """Write data objects, one after the other."""
        for file in files:
            with file.open("rb") as source, self._opened(file.name, "w") as far:
                shutil.copyfileobj(source, far, PART)

    def get(self, names: Sequence[str], into: Path) -> None:
        """Read data objects, one after the other."""
        for name in names:
            with self._opened(name, "r") as far, (into / name).open("wb") as out:
                shutil.copyfileobj(far, out, PART)

    def differing(self, files: Sequence[File]) -> list[str] | None:
        """By the checksums of the service, if all are SHA-256 or MD5."""
        found = []
        for file in files:
            far = self._session.data_objects.chksum(self._path(self._job.mark, file.path.name))
            own = f"sha2:{b64encode(bytes.fromhex(file.sha256)).decode()}"
            if _MD5.fullmatch(far):
                own = transfers.checksum(file.path, "md5") or ""
            elif not far.startswith("sha2:"):
                return None
            found += [file.path.name] if far != own else []
        return found

    def names(self) -> list[str]:
        """What is ours in the collection."""
        here = self._session.collections.get(self._path())
        return transfers.ours([one.name for one in here.subcollections])

    def remove(self, name: str) -> None:
        """Remove a collection of ours, past the trash; what is gone is no error."""
        collections = self._session.collections
        if collections.exists(self._path(name)):
            collections.remove(self._path(name), force=True)

    def _opened(self, name: str, mode: str) -> Any:
        """A data object as a file. The library's redirection to another server is off."""
        objects, path = self._session.data_objects, self._path(self._job.mark, name)
        return objects.open(path, mode, auto_close=False, allow_redirect=False)


def explain(error: Exception) -> Exception:
    """What the library raises, as StepFailed or TimeoutError."""
    match error:
        case ssl.SSLCertVerificationError():
            return StepFailed(f"certificate: {error.verify_message}", "login")
        case CollectionDoesNotExist():
            return StepFailed("no such collection, or no right to see it")
        case iRODSException():
            said = " ".join([type(error).__name__, *(str(part) for part in error.args if part)])
            return StepFailed(said, "login" if isinstance(error, _LOGIN) else "generic")
        case NetworkException():
            late = isinstance(error.__context__, TimeoutError)
            return TimeoutError() if late else StepFailed(str(error))
    return error


KINDS = {"irods": transfers.kind(Collection, explain)}
