"""HTTP and TLS as a client of a service needs them: one request, an answer with limits, reasons.

No proxy, no ~/.netrc and no variable of the environment steers it; no redirect is followed.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from cryptography import x509

from siteproof import files
from siteproof.errors import UserError
from siteproof.services.steps import Job, StepFailed

MAX_BODY = 2**20  # bytes of an answer that are read
MAX_REASON = 120  # characters of a service's own words
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_REFUSED = (401, 403)


@dataclass(frozen=True)
class Answer:
    """Of one request. body: its first bytes."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Its body as JSON. Raises StepFailed."""
        try:
            return files.loads("the answer", self.body)
        except UserError:
            raise StepFailed("generic", "the answer is not JSON") from None

    @property
    def reason(self) -> str:
        """What a JSON answer has as its `message`, after a colon; or nothing."""
        return self.said("message")

    def said(self, key: str) -> str:
        """The text of a key of a JSON answer, after a colon; or nothing."""
        try:
            message = self.json().get(key)
        except (StepFailed, AttributeError):
            return ""
        return f": {message[:MAX_REASON]}" if message and isinstance(message, str) else ""


def ask(
    job: Job,
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    most: int = MAX_BODY,
) -> Answer:
    """One request; whatever its status is. most: bytes of the body that are read.

    Raises StepFailed; TimeoutError.
    """
    with answering(job, method, url, body=body, headers=headers) as response:
        content = response.read(most)
        if len(content) < most and response.length:
            raise http.client.IncompleteRead(content)
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, content)


@contextmanager
def answering(
    job: Job,
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[http.client.HTTPResponse]:
    """The same, with an answer whose body is still to be read, in parts of any size."""
    parts = split(url)
    with explained(job, parts), connected(job, parts) as connection:
        client = http.client.HTTPConnection(parts.hostname or "", parts.port or 0)
        client.sock = connection  # made here, so that its certificate is read and explained once
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sent = {
            "Host": parts.netloc.rpartition("@")[2],
            "Connection": "close",
            "User-Agent": "siteproof",
        }
        client.request(method, path, body, {**sent, **(headers or {})})
        yield client.getresponse()


def succeed(answer: Answer, what: str) -> Answer:
    """The same answer, if its status is 2xx. what: the request in a word. Raises StepFailed."""
    if 200 <= answer.status < 300:
        return answer
    raise refused(answer.status, what, answer.reason)


def refused(status: int, what: str, reason: str = "") -> StepFailed:
    """What a status other than 2xx means. what: the request in a word."""
    why = f"HTTP status {status} ({what}){reason}"
    return StepFailed("login" if status in _REFUSED else "generic", why)


def split(url: str) -> SplitResult:
    """A URL of http or websocket in its parts. Raises StepFailed: a service may send any."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in _PORTS and parts.hostname and (parts.port or 1) and url.isprintable()
    except ValueError:
        fits = False
    if not fits or " " in url:
        raise StepFailed("generic", "a redirect to what is not http or https")
    return parts


def is_tls(parts: SplitResult) -> bool:
    """Whether the service shows a certificate."""
    return parts.scheme in ("https", "wss")


@contextmanager
def connected(job: Job, parts: SplitResult) -> Iterator[socket.socket]:
    """A connection, with TLS where the scheme is https."""
    host = parts.hostname or ""
    with socket.create_connection((host, parts.port or _PORTS[parts.scheme]), job.seconds) as plain:
        if not is_tls(parts):
            yield plain
            return
        with _trusting(job).wrap_socket(plain, server_hostname=host) as secured:
            yield secured


@contextmanager
def explained(job: Job, parts: SplitResult) -> Iterator[None]:
    """Turns what sockets, TLS and HTTP raise into StepFailed, but TimeoutError."""
    try:
        yield
    except TimeoutError:
        raise
    except ssl.SSLCertVerificationError as error:
        dates = _dates(_unverified(job, parts))
        raise StepFailed("login", f"certificate: {error.verify_message}; {dates}") from None
    except (ssl.SSLEOFError, http.client.RemoteDisconnected):
        raise StepFailed("generic", "closed the connection without an answer") from None
    except ssl.SSLError as error:
        raise StepFailed("generic", f"TLS: {error.reason or error}") from None
    except http.client.IncompleteRead:
        raise StepFailed("generic", "the answer ended in the middle") from None
    except OSError as error:
        raise StepFailed("generic", error.strerror or str(error)) from None
    except (http.client.HTTPException, ValueError) as error:
        raise StepFailed("generic", f"answer not understood: {type(error).__name__}") from None


def valid_until(job: Job, url: str) -> datetime:
    """When the certificate of a service ends, in UTC. Raises StepFailed if it is not valid."""
    parts = split(url)
    with explained(job, parts), connected(job, parts) as connection:
        assert isinstance(connection, ssl.SSLSocket)
        return _shown(connection).not_valid_after_utc


def _trusting(job: Job) -> ssl.SSLContext:
    path = job.service.certificates
    try:
        return ssl.create_default_context(cafile=path or None)
    except OSError as error:  # SSLError is one
        why = error.strerror or str(error)
        raise StepFailed("login", f"certificates: {path} cannot be read: {why}") from None


def _unverified(job: Job, parts: SplitResult) -> x509.Certificate:
    """The certificate that was just refused. Nothing is sent over this connection."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    place = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    with (
        socket.create_connection(place, job.seconds) as plain,
        context.wrap_socket(plain, server_hostname=parts.hostname) as secured,
    ):
        return _shown(secured)


def _shown(connection: ssl.SSLSocket) -> x509.Certificate:
    shown = connection.getpeercert(binary_form=True)
    assert shown is not None  # a server of TLS always shows one
    return x509.load_der_x509_certificate(shown)


def _dates(certificate: x509.Certificate) -> str:
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return f"it is valid from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
