"""munge, by which Slurm knows the user and host of a request: credentials, made and read here.

Any process of a host that holds the cluster's key can read a credential; only root there can make
one for another user or host. Its age, and whether it was read before, do not matter here.
"""

from __future__ import annotations

import ctypes
import functools
import ipaddress
import re
import subprocess
from dataclasses import dataclass

from siteproof.errors import UserError, harmless
from siteproof.slurm import client

TIMEOUT = 20  # seconds
LONGEST = 4096  # characters of a credential over one line
MISSING, SOCKET = 127, 6  # exit codes: no such program here; munged does not answer
GENUINE = ("0", "15", "16", "17")  # STATUS: success, expired, of the future, read before
_KEYS = ("STATUS", "ENCODE_HOST", "UID")
_WHOLE = re.compile(r"MUNGE:[A-Za-z0-9+/]+={0,2}:")  # what libmunge is given
_SOCKET, _ADDRESS = 8, 5  # MUNGE_OPT_SOCKET and MUNGE_OPT_ADDR4 of munge.h
_FIELD = re.compile(r"^([A-Z_]+): +(\S+)$", re.MULTILINE)


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
    if not text.startswith("MUNGE:") or len(text) > LONGEST:
        raise Forged("it is not a munge credential")
    return _by_library(text) or _by_program(text)


def _by_library(text: str) -> Credential | None:
    """The same without a process, of which a job of 10,000 nodes would start as many.

    None if it is not a genuine credential, or libmunge is not there: `unmunge` then reports why.
    """
    library = _library()
    if library is None or not _WHOLE.fullmatch(text):
        return None
    context = ctypes.c_void_p(library.munge_ctx_create())
    data, length = ctypes.c_void_p(), ctypes.c_int()
    uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
    address = (ctypes.c_ubyte * 4)()
    try:
        if place := _socket_or_default():
            library.munge_ctx_set(context, _SOCKET, ctypes.c_char_p(place.encode()))
        status = library.munge_decode(
            ctypes.c_char_p(text.encode()), context, *map(ctypes.byref, (data, length, uid, gid))
        )
        if str(status) not in GENUINE or library.munge_ctx_get(
            context, _ADDRESS, ctypes.byref(address)
        ):
            return None
        message = ctypes.string_at(data, length.value) if data else b""
    finally:
        library.free(data)
        library.munge_ctx_destroy(context)
    said = message.decode(errors="replace").strip()
    return Credential(uid.value, str(ipaddress.IPv4Address(bytes(address))), said)


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libmunge.so.2")
        library.munge_ctx_create.restype = ctypes.c_void_p
        library.munge_ctx_destroy.restype = None
        library.free.restype = None
    except (OSError, AttributeError):
        return None
    return library


def _by_program(text: str) -> Credential:
    """As `unmunge` reads it. Raises Forged and UserError."""
    done = _run("unmunge", "-N", "-k", ",".join(_KEYS), given=text)
    if done.returncode in (MISSING, SOCKET):
        raise UserError("unmunge", done.stderr.strip() or "no answer")
    head, _, message = done.stdout.partition("\n\n")
    found = dict(_FIELD.findall(head))
    if found.get("STATUS") not in GENUINE or not found.keys() >= set(_KEYS):
        raise Forged(harmless(" ".join(done.stderr.split())) or "munged refuses it")
    try:
        ipaddress.ip_address(found["ENCODE_HOST"])
        return Credential(int(found["UID"]), found["ENCODE_HOST"], message.strip())
    except ValueError:
        raise Forged("it names no host or user") from None


@functools.cache
def own() -> Credential:
    """The credential of this process on this host. Raises UserError if munge gives none."""
    done = _run("munge", "-n")
    if done.returncode:
        raise UserError("munge", done.stderr.strip() or "no credential")
    try:
        return read(done.stdout.strip())
    except Forged as error:
        raise UserError("munge", str(error)) from None


@functools.cache
def socket() -> str:
    """The socket of Slurm's munged; empty: where munge itself looks for it. Raises UserError."""
    options = client.settings().get("AuthInfo", "").split(",")
    return next((o.removeprefix("socket=") for o in options if o.startswith("socket=")), "")


def _run(program: str, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    where = ["-S", place] if (place := _socket_or_default()) else []
    try:
        return subprocess.run(
            [program, *where, *words],
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(program, MISSING, "", f"{program} is not installed here")
    except (OSError, subprocess.TimeoutExpired):
        return subprocess.CompletedProcess(program, SOCKET, "", "munged does not answer")


def _socket_or_default() -> str:
    try:
        return socket()
    except UserError:
        return ""
