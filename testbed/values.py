"""The values of --value: text in, numbers out. All raise UsageError with an example."""

import re
from collections.abc import Mapping

from errors import UsageError

_BITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_BYTES = {
    "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip
_MILLISECONDS = {"us": 0.001, "ms": 1, "s": 1000}


def rate(text: str) -> int:
    """Bits per second, in tc's words."""
    return round(_number(text, _BITS, "rate", "10gbit", 8_000, 10**12))


def size(text: str) -> int:
    """Bytes."""
    return round(_number(text, _BYTES, "size", "16MiB", 0, 2**50))


def disk_rate(text: str) -> int:
    """Bytes per second."""
    return round(_number(text.removesuffix("/s"), _BYTES, "disk rate", "10MB/s", 4096, 2**40))


def percent(text: str) -> float:
    """A share from 0.0001 to 100 per cent, as a number from 0 to 1."""
    return _number(text, {"%": 0.01}, "percentage", "1%", 1e-6, 1)


def milliseconds(text: str) -> float:
    """A time of 50 us to 10 s."""
    return _number(text, _MILLISECONDS, "time", "50.5ms", 0.05, 10_000)


def seconds(text: str) -> float:
    """A time from 1 s to an hour."""
    return _number(text, {"s": 1}, "time in seconds", "5s", 1, 3600)


def mtu(text: str) -> int:
    """Bytes of an IP packet."""
    return round(_number(text, {"": 1}, "MTU", "1500", 68, 65_535))


def pair(text: str) -> tuple[str, str]:
    """The two sides of KEY=VALUE."""
    key, sign, value = text.partition("=")
    if not (key and sign and value) or "\n" in text:
        raise UsageError(f"'{text}' is not of the form KEY=VALUE")
    return key, value


def sysctl(text: str) -> tuple[str, str]:
    """A file in /proc/sys, and what to write to it. Only what each network namespace has."""
    key, value = pair(text)
    if not re.fullmatch(r"net\.ipv[46](\.\w[\w-]*)+", key):
        raise UsageError(f"'{key}' is the same on all nodes; allowed: net.ipv4.*, net.ipv6.*")
    return f"/proc/sys/{key.replace('.', '/')}", value


def release(text: str) -> str:
    """A kernel release."""
    if not re.fullmatch(r"[\w.+~-]{1,64}", text):
        raise UsageError(f"'{text}' is not a kernel release; for example 6.1.0-99-amd64")
    return text


def _number(
    text: str, units: Mapping[str, float], what: str, example: str, least: float, most: float
) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-zA-Z%]*)", text)
    if not match or match[2] not in units:
        raise UsageError(f"'{text}' is not a valid {what}; for example {example}")
    number = float(match[1]) * units[match[2]]
    if not least <= number <= most:
        raise UsageError(f"'{text}' is out of range for a {what}; for example {example}")
    return number
