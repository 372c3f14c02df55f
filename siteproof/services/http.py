"""Files by HTTP(S): PUT, GET and DELETE below a folder of WebDAV, or of a server that lists it.

The service gives no checksum, so the files are read back.
"""

from __future__ import annotations

import http.client
import platform
import re
import select
import shutil
import socket
from base64 import b64encode
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from siteproof.services import transfers, web
from siteproof.services.steps import Job, StepFailed
from siteproof.services.transfers import ANSWER, MEBI
from siteproof.services.web import Answer

_NO_DAV = (400, 404, 405, 501)  # answers to a method that a server does not know
_THERE = 405  # answer to MKCOL of what exists, and of a server that makes folders by itself
_GONE = 404
_QUOTA = b"""<?xml version="1.0"?>
<propfind xmlns="DAV:"><prop><quota-available-bytes/><resourcetype/></prop></propfind>"""
_LINK = re.compile(r'href="([^"<>]{1,500})"')


class Http(transfers.Client):
    """A folder at the service, by one connection as long as the service keeps it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._url = web.split(job.service.address)
        self._folder = self._url.path.rstrip("/") + "/"
        self._client: http.client.HTTPConnection | None = None
        self._open = ExitStack()
        self.protocol = self._url.scheme
        self.tool = f"http.client of Python {platform.python_version()}"

    def close(self) -> None:
        """End the connection, if there is one."""
        self._open.close()

    def login(self) -> None:
        """See whether we may look at the folder."""
        self._folder_is(depth=0)

    def free(self) -> int | None:
        """The quota of WebDAV, where the service has one."""
        answer = self.ask("PROPFIND", "", _QUOTA, depth=0)
        return free(answer.body) if answer.status == http.client.MULTI_STATUS else None

    def make(self) -> None:
        """Make the folder of what is put; servers without MKCOL make it by themselves."""
        answer = self.ask("MKCOL", f"{self._job.mark}/")
        if answer.status not in (_THERE, http.client.NOT_IMPLEMENTED):
            web.succeed(answer, "MKCOL")

    def put(self, files: Sequence[Path]) -> None:
        """Write files, one after the other."""
        for file in files:
            with file.open("rb") as body:
                web.succeed(self.ask("PUT", f"{self._job.mark}/{file.name}", body), "PUT")

    def get(self, names: Sequence[str], into: Path) -> None:
        """Read files, one after the other."""
        for name in names:
            with (into / name).open("wb") as out:
                self.ask("GET", f"{self._job.mark}/{name}", into=out)

    def names(self) -> list[str]:
        """What is ours in the folder."""
        answer = self._folder_is(depth=1)
        if len(answer.body) >= ANSWER:
            raise StepFailed(f"the folder's list has more than {ANSWER} bytes")
        names = listed(answer.body)
        if self.ask("HEAD", f"{self._job.mark}/{transfers.LARGE}").status == http.client.OK:
            names.add(self._job.mark)  # a server that lists nothing has it all the same
        return transfers.ours(sorted(names))

    def remove(self, name: str) -> None:
        """Remove a folder of ours; what is gone is no error."""
        answer = self.ask("DELETE", f"{name}/")
        if answer.status != _GONE:
            web.succeed(answer, "DELETE")

    def ask(
        self,
        method: str,
        name: str,
        body: bytes | IO[bytes] | None = None,
        depth: int | None = None,
        into: IO[bytes] | None = None,
    ) -> Answer:
        """One request of what is below the folder. into: takes the whole body of a 2xx answer.

        Raises StepFailed; TimeoutError.
        """
        headers = {"Host": self._url.netloc, "User-Agent": "siteproof", **self._login()}
        if depth is not None:
            headers |= {"Depth": f"{depth}", "Content-Type": "application/xml"}
        if body is not None and not isinstance(body, bytes):
            headers["Content-Length"] = f"{Path(body.name).stat().st_size}"
        client = self._connected()
        # A service that refuses a file answers before it has all of it.
        with suppress(BrokenPipeError, ConnectionResetError):
            client.request(method, self._folder + name, body, headers)
        response = client.getresponse()
        if into:
            web.succeed(Answer(response.status, {}, b""), method)
            shutil.copyfileobj(response, into, MEBI)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        content = response.read(ANSWER)
        if response.length:
            self._open.close()  # the rest of the answer would be the next one
            self._client = None
        return Answer(response.status, {}, content)

    def _folder_is(self, depth: int) -> Answer:
        """What the service answers about the folder, with or without WebDAV. Raises StepFailed."""
        answer = self.ask("PROPFIND", "", _QUOTA, depth)
        if answer.status in _NO_DAV:
            answer = self.ask("GET", "")
        return web.succeed(answer, "of the folder")

    def _connected(self) -> http.client.HTTPConnection:
        """The connection; a new one if the service has closed it."""
        idle = self._client.sock if self._client else None
        if idle and select.select([idle], [], [], 0)[0]:  # closed while nothing was sent
            self._client = None
        if self._client is None or self._client.sock is None:
            self._open.close()
            sock = self._open.enter_context(web.connected(self._job, self._url))
            self._client = http.client.HTTPConnection(self._url.hostname or "", blocksize=MEBI)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as http.client's own have
            self._client.auto_open = 0  # it knows nothing of TLS
            self._client.sock = sock
        return self._client

    def _login(self) -> dict[str, str]:
        """A token, or USER:PASSWORD, as a header."""
        if not self._job.service.token:
            return {}
        token = self._job.secret("token")
        if ":" in token:
            return {"Authorization": f"Basic {b64encode(token.encode()).decode()}"}
        return {"Authorization": f"Bearer {token}"}


KINDS = {"http": transfers.kind(Http, web.explain)}


def free(answer: bytes) -> int | None:
    """Available bytes in an answer to PROPFIND (RFC 4331); None: there are none in it."""
    for element in _elements(answer, "{DAV:}quota-available-bytes"):
        if re.fullmatch(r"[0-9]{1,20}", element.strip()):
            return int(element)
    return None


def listed(answer: bytes) -> set[str]:
    """The names in a folder, of an answer to PROPFIND or of a page with links."""
    links = _elements(answer, "{DAV:}href") or _LINK.findall(answer.decode(errors="replace"))
    return {unquote(urlsplit(link).path.rstrip("/").rpartition("/")[2]) for link in links}


def _elements(answer: bytes, tag: str) -> list[str]:
    """The texts of the elements of a name; none if it is not XML, or defines entities."""
    if b"<!ENTITY" in answer:
        return []
    try:
        return [element.text or "" for element in ElementTree.fromstring(answer).iter(tag)]
    except (ElementTree.ParseError, ValueError, LookupError):
        return []
