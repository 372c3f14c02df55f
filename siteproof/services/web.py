"""HTTP and TLS as a client of a service needs them; and a web page, such as a portal's first one.

One request, an answer with limits, reasons. No proxy, no ~/.netrc and no variable of the
environment steers it; of the page alone redirects are followed.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from cryptography import x509

from siteproof import files
from siteproof.errors import UserError
from siteproof.services.steps import Job, Kind, StepFailed, Steps

MAX_BODY = 2**20  # bytes of an answer that are read
MAX_REASON = 120  # characters of a service's own words
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_REFUSED = (401, 403)
MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


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
            raise StepFailed("the answer is not JSON") from None

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
    with connected(job, parts) as connection:
        client = http.client.HTTPConnection(parts.hostname or "", parts.port or 0)
        client.sock = connection  # made here, so that its certificate is explained
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
    return StepFailed(why, "login" if status in _REFUSED else "generic")


def split(url: str) -> SplitResult:
    """A URL of http or websocket in its parts. Raises StepFailed: a service may send any."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in _PORTS and parts.hostname and (parts.port or 1) and url.isprintable()
    except ValueError:
        fits = False
    if not fits or " " in url:
        raise StepFailed("a redirect to what is not http or https")
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
        try:
            secured = _trusting(job).wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            shown = _unverified(job, parts)
            first, last = shown.not_valid_before_utc, shown.not_valid_after_utc
            dates = f"it is valid from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
            raise StepFailed(f"certificate: {error.verify_message}; {dates}", "login") from None
        with secured:
            yield secured


def explain(error: Exception) -> Exception:
    """What sockets, TLS and HTTP raise, as StepFailed; but for TimeoutError."""
    match error:
        case TimeoutError():
            return error
        case ssl.SSLEOFError() | http.client.RemoteDisconnected():
            why = "closed the connection without an answer"
        case ssl.SSLError():
            why = f"TLS: {error.reason or error}"
        case http.client.IncompleteRead():
            why = "the answer ended in the middle"
        case OSError():
            why = error.strerror or str(error)
        case http.client.HTTPException() | ValueError():
            why = f"answer not understood: {type(error).__name__}"
        case _:
            return error
    return StepFailed(why)


def valid_until(job: Job, url: str) -> datetime:
    """When the certificate of a service ends, in UTC. Raises StepFailed if it is not valid."""
    parts = split(url)
    with connected(job, parts) as connection:
        assert isinstance(connection, ssl.SSLSocket)
        return _shown(connection).not_valid_after_utc


def _trusting(job: Job) -> ssl.SSLContext:
    path = job.service.certificates
    try:
        return ssl.create_default_context(cafile=path or None)
    except OSError as error:  # SSLError is one
        why = error.strerror or str(error)
        raise StepFailed(f"certificates: {path} cannot be read: {why}", "login") from None


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


def test(job: Job, steps: Steps) -> None:
    """The page after redirects; the days left of its certificate."""
    with steps.step("page"):
        url, answer = page(job)
        if answer.status != job.service.http_status:
            raise StepFailed(f"HTTP status {answer.status} (GET)")
        if job.service.content not in answer.body.decode("utf-8", "replace"):
            raise StepFailed(f"the page does not have '{job.service.content[:60]}'")
    with_tls = [one for one in {job.service.address, url} if is_tls(split(one))]
    if with_tls:
        with steps.step("certificate"):
            left = min(valid_until(job, one) for one in with_tls) - datetime.now(UTC)
        steps.value("certificate_days", round(left.total_seconds() / 86_400, 2), "d")


def page(job: Job) -> tuple[str, Answer]:
    """The page of the service's address, with the URL at which redirects end."""
    url = job.service.address
    for _ in range(MAX_REDIRECTS + 1):
        answer = ask(job, "GET", url)
        location = answer.headers.get("location", "")
        if answer.status == job.service.http_status or answer.status not in _REDIRECTS:
            return url, answer
        if not location:
            raise StepFailed(f"HTTP status {answer.status} without a Location (GET)")
        url, before = urljoin(url, location), url
        if is_tls(split(before)) and not is_tls(split(url)):
            raise StepFailed("a redirect from https to http")
    raise StepFailed(f"more than {MAX_REDIRECTS} redirects")


KINDS = {"web": Kind(test, explain=explain)}
