"""The largest packet that reaches a host unfragmented, found by a shell loop over ping.

The format, which the check's script has to print, a line a probe in the order of the search:

    size 1472 ok            ping -M do -c 1 -s 1472 was answered; 1472 are bytes of ICMP data
    size 1473 too_big       refused by this host or by a router (`message too long`, `Frag needed`)
    size 1473 lost          no answer: lost, or something in the path drops large packets silently
    mtu 1500                the largest size that came through, plus 28
    end path_mtu

A size may be asked again after `lost`. The search is closed: one more byte than the largest that
came through was asked for too, and did not come through. 28 are the headers of IPv4 and ICMP
(20 + 8, RFC 791 and RFC 792); IPv6 has others and is not read.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures, lines

HEADERS = 28  # bytes
LARGEST = 65507  # of data in a packet of IPv4

_PROBE = re.compile(r"size ([0-9]{1,5}) (ok|too_big|lost)")
_MTU = re.compile(r"mtu (\S{1,20})")


def parse(text: str) -> list[Reading]:
    """The reading `mtu` (B).

    Raises OutputError: `generic` if no size came through, `invalid` if the probes and the MTU
    contradict each other.
    """
    mtus, passed, failed = _sort(lines.whole(text, "path_mtu"))
    if not passed:
        raise OutputError("path_mtu: no packet of any size came through", "generic")
    if len(mtus) != 1:
        raise OutputError(f"path_mtu: {len(mtus)} lines 'mtu' where one is expected")
    mtu = figures.positive("path_mtu: mtu", mtus[0])
    largest = max(passed)
    if mtu != largest + HEADERS:
        raise OutputError(
            f"path_mtu: mtu {mtu} where {largest} + {HEADERS} came through", "invalid"
        )
    if too_big := [size for size, why in failed.items() if why == "too_big" and size < largest]:
        raise OutputError(
            f"path_mtu: {min(too_big)} is too big and {largest} came through", "invalid"
        )
    if largest < LARGEST and largest + 1 not in failed:
        raise OutputError(f"path_mtu: nobody asked for {largest + 1}, so it may be larger")
    return [Reading("mtu", mtu, "B")]


def conditions(text: str) -> dict[str, str]:
    """silent: yes if what is too large is lost without a word, which breaks TCP; otherwise no."""
    try:
        _, passed, failed = _sort(lines.whole(text, "path_mtu"))
    except OutputError:
        return {}
    beyond = failed.get(max(passed) + 1) if passed else None
    return {"silent": "yes" if beyond == "lost" else "no"} if beyond else {}


def _sort(said: list[str]) -> tuple[list[str], set[int], dict[int, str]]:
    """The MTUs that are said, the sizes that came through, and those that did not, with why."""
    mtus = [match[1] for line in said if (match := _MTU.fullmatch(line))]
    probes = [match for line in said if (match := _PROBE.fullmatch(line))]
    if strange := next(
        (line for line in said if not _PROBE.fullmatch(line) and not _MTU.fullmatch(line)), ""
    ):
        raise OutputError(f"path_mtu: not understood: {strange[:80]}")
    passed = {int(match[1]) for match in probes if match[2] == "ok"}
    failed = {int(m[1]): str(m[2]) for m in probes if m[2] != "ok" and int(m[1]) not in passed}
    if any(m[2] == "too_big" and int(m[1]) in passed for m in probes):
        raise OutputError("path_mtu: one size came through and is too big", "invalid")
    return mtus, passed, failed
