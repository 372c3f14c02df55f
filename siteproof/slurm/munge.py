"""munge, by which Slurm knows the user and host of a request: credentials, made and read here.

Any process of a host that holds the cluster's key can read a credential; only root there can make
one for another user or host. Its age, and whether it was read before, do not matter here. libmunge
is there where Slurm uses munge, and starts no process for each of a job's 10,000 nodes.
"""

from __future__ import annotations

import ctypes
import functools
import ipaddress
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from siteproof.errors import UserError, harmless
from siteproof.slurm import client

LONGEST = 4096  # characters of a credential over one line
NO_ANSWER = 6  # EMUNGE_SOCKET of munge.h: munged does not answer
GENUINE = (0, 15, 16, 17)  # success, expired, of the future, read before
_WHOLE = re.compile(r"MUNGE:[A-Za-z0-9+/]+={0,2}:")  # what libmunge is given
_SOCKET, _ADDRESS = 8, 5  # MUNGE_OPT_SOCKET and MUNGE_OPT_ADDR4 of munge.h


@dataclass(frozen=True)
class Credential:
    """A user's message. address: of the host on which it was made, as munged there knows it."""

    uid: int
    address: str
    message: str

    @property
    def of_no_host(self) -> bool:
        """Whether munged has found no other address of its host than a loopback."""
        address = ipaddress.ip_address(self.address)
        return address.is_loopback or address.is_unspecified


class Forged(Exception):
    """Not a credential that munged here accepts."""


def read(text: str) -> Credential:
    """A credential as munged here reads it.

    Raises Forged; UserError where munged does not answer.
    """
    if not _WHOLE.fullmatch(text) or len(text) > LONGEST:
        raise Forged("it is not a munge credential")
    data, length = ctypes.c_void_p(), ctypes.c_int()
    uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
    address = (ctypes.c_ubyte * 4)()
    with _asking() as (library, context):
        status = library.munge_decode(
            ctypes.c_char_p(text.encode()), context, *map(ctypes.byref, (data, length, uid, gid))
        )
        why = _why(library, context)
        unknown = library.munge_ctx_get(context, _ADDRESS, ctypes.byref(address))
        said = ctypes.string_at(data, length.value) if data else b""
        library.free(data)
    if status == NO_ANSWER:
        raise UserError("munge", why)
    if status not in GENUINE or unknown:
        raise Forged(why or "it names no host")
    host = str(ipaddress.IPv4Address(bytes(address)))
    return Credential(uid.value, host, said.decode(errors="replace").strip())


@functools.cache
def own() -> Credential:
    """The credential of this process on this host. Raises UserError if munge gives none."""
    made = ctypes.c_void_p()
    with _asking() as (library, context):
        failed = library.munge_encode(ctypes.byref(made), context, None, 0)
        why = _why(library, context)
        text = ctypes.string_at(made).decode() if made else ""
        library.free(made)
    if failed:
        raise UserError("munge", why)
    try:
        return read(text)
    except Forged as error:
        raise UserError("munge", str(error)) from None


@contextmanager
def _asking() -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p]]:
    """libmunge with a context of its own, which names munged's socket. Raises UserError."""
    library = _library()
    context = ctypes.c_void_p(library.munge_ctx_create())
    try:
        if place := _socket_or_default():
            library.munge_ctx_set(context, _SOCKET, ctypes.c_char_p(place.encode()))
        yield library, context
    finally:
        library.munge_ctx_destroy(context)


@functools.cache
def _library() -> ctypes.CDLL:
    """Raises UserError. A site may have installed munge where the loader does not look."""
    top = Path(shutil.which("munge") or "/usr/bin/munge").resolve().parent.parent
    for place in ("", f"{top}/lib64/", f"{top}/lib/"):
        with suppress(OSError):
            library = ctypes.CDLL(f"{place}libmunge.so.2")
            library.munge_ctx_create.restype = ctypes.c_void_p
            library.munge_ctx_strerror.restype = ctypes.c_char_p
            library.munge_ctx_destroy.restype = library.free.restype = None
            return library
    raise UserError("munge", "libmunge.so.2 is not installed here")


def _why(library: ctypes.CDLL, context: ctypes.c_void_p) -> str:
    """What libmunge reports of its last call; empty if nothing failed."""
    said = library.munge_ctx_strerror(context) or b""
    return harmless(" ".join(said.decode(errors="replace").split()))


@functools.cache
def socket() -> str:
    """The socket of Slurm's munged; empty: where munge itself looks for it. Raises UserError."""
    options = client.settings().get("AuthInfo", "").split(",")
    return next((o.removeprefix("socket=") for o in options if o.startswith("socket=")), "")


def _socket_or_default() -> str:
    try:
        return socket()
    except UserError:
        return ""
