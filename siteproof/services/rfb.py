"""The first words of VNC: version and security types (RFC 6143, 7.1)."""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass

from siteproof.services.steps import StepFailed

MAX_REASON = 200  # bytes of the server's own words
_VERSION = re.compile(rb"RFB ([0-9]{3})\.([0-9]{3})\n")
_LENGTH = 12  # bytes of a version
_CLOSED = "the VNC server has closed the connection"
_MINORS = (3, 7, 8)  # of the versions that there are; others are answered with one of these
_TYPES = {  # registered at IANA, those that servers use
    1: "None",
    2: "VNC Authentication",
    5: "RA2",
    6: "RA2ne",
    16: "Tight",
    18: "TLS",
    19: "VeNCrypt",
    20: "SASL",
    30: "Apple",
    129: "RA2-256",
    130: "RA2ne-256",
}


@dataclass(frozen=True)
class Greeting:
    """What a server offers. version: such as 3.8."""

    version: str
    security: tuple[str, ...]


def greeting(connection: socket.socket) -> Greeting:
    """Greet a server of VNC, up to its security types. Raises StepFailed, TimeoutError."""
    theirs = version(_received(connection, _LENGTH))
    minor = max(known for known in _MINORS if (3, known) <= max(theirs, (3, 3)))
    connection.sendall(b"RFB 003.%03d\n" % minor)
    if minor == 3:  # the server decides
        (kind,) = struct.unpack(">I", _read(connection, 4))
        types = bytes([kind]) if kind < 256 else b""
    else:
        types = _read(connection, _read(connection, 1)[0])
    if types.strip(b"\0"):
        return Greeting(f"3.{minor}", tuple(_TYPES.get(kind, f"type {kind}") for kind in types))
    (length,) = struct.unpack(">I", _read(connection, 4))
    reason = _read(connection, min(length, MAX_REASON)).decode("utf-8", "replace")
    raise StepFailed("login", f"the VNC server refuses the connection: {reason}")


def version(line: bytes) -> tuple[int, int]:
    """The version in a server's first line. Raises StepFailed."""
    match = _VERSION.fullmatch(line)
    if not line:
        raise StepFailed("generic", _CLOSED)
    if match is None:
        begin = line.decode("utf-8", "replace").strip()
        raise StepFailed("generic", f"this is not a VNC server: it sent '{begin}'")
    return int(match[1]), int(match[2])


def _read(connection: socket.socket, size: int) -> bytes:
    data = _received(connection, size)
    if len(data) < size:
        raise StepFailed("generic", _CLOSED)
    return data


def _received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer at the end of the connection."""
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data
