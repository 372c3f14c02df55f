"""S3: objects put, read and removed, by the library of MinIO.

The checksum of the far end is the ETag that it gives, where that is an MD5; each object is read
back and compared as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from minio import Minio
from minio.datatypes import Object
from minio.deleteobjects import DeleteObject
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from siteproof.services import transfers
from siteproof.services.steps import PREFIX, Job, StepFailed
from siteproof.services.transfers import ANSWER, MEBI, File

PART = 64 * MEBI  # of a larger object, which is sent in several
MAX_OBJECTS = 200_000  # objects that are looked at
_LOGIN = {
    "AccessDenied",
    "AccountProblem",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
    "XAdminUserNotFound",  # of versitygw
}
_NO_VERSIONS = {"AccessDenied", "MethodNotAllowed", "NotImplemented"}
_REFUSED = (401, 403)
_MD5 = re.compile(r"[0-9a-f]{32}(?:-[0-9]+)?")
_INVALID = re.compile(r"certificate verify failed: ([^(]+)")


class _Pool(urllib3.PoolManager):
    """Connections whose answers have a limit, unless they are streamed."""

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **how: Any
    ) -> urllib3.BaseHTTPResponse:
        whole = how.pop("preload_content", True)
        answer = super().urlopen(method, url, redirect, preload_content=False, **how)
        if not whole and answer.status < 300:
            return answer
        body = answer.read(ANSWER + 1)
        answer.release_conn()
        if len(body) > ANSWER:
            raise StepFailed(f"an answer has more than {ANSWER} bytes")
        headers = answer.headers.copy()
        if b"<Error>" in body:  # of some servers the type is text/plain
            headers["Content-Type"] = "application/xml"
        return urllib3.HTTPResponse(body, headers, answer.status, request_method=method)


class Bucket(transfers.Client):
    """A bucket of the service."""

    protocol = "s3"

    def __init__(self, job: Job) -> None:
        self._job, self._name = job, job.service.bucket
        self.tool = f"minio {version('minio')}"

    @cached_property
    def _s3(self) -> Minio:
        """The client of the library. Raises StepFailed."""
        pairs = self._job.pairs("access_key", "secret_key")
        url = urlsplit(self._job.service.address)
        pool = _Pool(
            timeout=self._job.seconds,
            retries=False,
            cert_reqs="CERT_REQUIRED",
            ca_certs=self._job.service.certificates or None,
        )
        return Minio(
            url.netloc,
            pairs["access_key"],
            pairs["secret_key"],
            pairs.get("session_token"),
            secure=url.scheme == "https",
            region=pairs.get("region"),
            http_client=pool,
        )

    def login(self) -> None:
        """Look at the bucket."""
        list(islice(self._s3.list_objects(self._name, f"{self._job.mark}/"), 1))

    def put(self, files: Sequence[Path]) -> None:
        """Write objects, one after the other."""
        for file in files:
            name, size = f"{self._job.mark}/{file.name}", file.stat().st_size
            with file.open("rb") as data:
                self._s3.put_object(self._name, name, data, size, part_size=PART)

    def get(self, names: Sequence[str], into: Path) -> None:
        """Read objects, one after the other."""
        for name in names:
            answer = self._s3.get_object(self._name, f"{self._job.mark}/{name}")
            with (into / name).open("wb") as out:
                for part in answer.stream(MEBI):
                    out.write(part)
            answer.release_conn()

    def differing(self, files: Sequence[File]) -> list[str] | None:
        """By the ETags of the service, if all are MD5s."""
        tags = {}
        for file in files:
            object_ = self._s3.stat_object(self._name, f"{self._job.mark}/{file.path.name}")
            tags[file] = (object_.etag or "").lower()
            # With a key of KMS it is no MD5 of the content, though it looks like one.
            encryption = (object_.metadata or {}).get("x-amz-server-side-encryption", "")
            if not _MD5.fullmatch(tags[file]) or "aws:kms" in encryption:
                return None
        return [file.path.name for file, tag in tags.items() if tag != etag(file.path)]

    def names(self) -> list[str]:
        """What is ours in the bucket, uploads that were not completed among it."""
        objects = [found.object_name or "" for found in self._objects(PREFIX)]
        uploads = [upload.object_name for upload in self._uploads(PREFIX)]
        return transfers.ours(sorted({name.partition("/")[0] for name in (*objects, *uploads)}))

    def remove(self, name: str) -> None:
        """Remove all whose names begin with a folder of ours; what is gone is no error."""
        for upload in self._uploads(f"{name}/"):
            self._s3._abort_multipart_upload(self._name, upload.object_name, upload.upload_id)
        objects = []
        for one in self._objects(f"{name}/"):
            version_id = None if one.version_id == "null" else one.version_id
            objects.append(DeleteObject(one.object_name or "", version_id))
        for error in self._s3.remove_objects(self._name, objects):
            raise StepFailed(f"{error.code}: {error.message} (remove)")

    def _objects(self, prefix: str) -> list[Object]:
        """With their older versions, where the service has such and shows them."""
        listed = self._s3.list_objects
        try:
            found = listed(self._name, prefix, recursive=True, include_version=True)
            return list(islice(found, MAX_OBJECTS))
        except S3Error as error:
            if error.code not in _NO_VERSIONS:
                raise
            return list(islice(listed(self._name, prefix, recursive=True), MAX_OBJECTS))

    def _uploads(self, prefix: str) -> list[Any]:
        """Those that were begun and not completed. The library has no other way to see them."""
        try:
            return self._s3._list_multipart_uploads(self._name, prefix=prefix).uploads
        except S3Error as error:
            if error.code not in _NO_VERSIONS:
                raise
            return []


def etag(path: Path) -> str:
    """The ETag of an object as S3 computes it: the MD5, or that of the MD5s of its parts."""
    sums = []
    with path.open("rb") as file:
        while part := file.read(PART):
            sums.append(hashlib.md5(part, usedforsecurity=False))
    if len(sums) == 1:
        return sums[0].hexdigest()
    whole = hashlib.md5(b"".join(one.digest() for one in sums), usedforsecurity=False)
    return f"{whole.hexdigest()}-{len(sums)}" if sums else whole.hexdigest()


def explain(error: Exception) -> Exception:
    """Why a request failed."""
    if not isinstance(error, MinioException | urllib3.exceptions.HTTPError):
        return error
    if isinstance(error, S3Error):
        status = "login" if error.code in _LOGIN else "generic"
        return StepFailed(f"{error.code}: {error.message}", status)  # type: ignore[arg-type]
    if isinstance(error, (ServerError, InvalidResponseError)):
        code = getattr(error, "_status_code", 0) or getattr(error, "_code", 0)
        return StepFailed(f"HTTP status {code}", "login" if code in _REFUSED else "generic")
    if isinstance(error, urllib3.exceptions.SSLError) and (found := _INVALID.search(str(error))):
        return StepFailed(f"certificate: {found[1].strip()}", "login")
    if _is_late(error):
        return TimeoutError()
    return StepFailed(lost(error))


def _is_late(error: Exception) -> bool:
    """Whether time was up: with the library's own error, or with one that it has wrapped."""
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return False  # it is one of the library's timeouts, too
    late = (TimeoutError, urllib3.exceptions.TimeoutError)
    return any(isinstance(one, late) for one in (error, *error.args))


def lost(error: Exception) -> str:
    """What the library of HTTP reports of a connection, without the names of its classes."""
    said = f"{error.args[-1]}" if error.args else type(error).__name__
    return re.sub(r"<[^>]*>:? *|^[A-Za-z]+\([^)]*\): ", "", said)


KINDS = {"s3": transfers.kind(Bucket, explain)}
