"""The largest packet that reaches a host unfragmented, found by a shell loop over ping.

The format, which the check's script has to print, a line a probe in the order of the search:

    size 1472 ok            ping -M do -c 1 -s 1472 was answered; 1472 are bytes of ICMP data
    size 1473 too_big       refused by this host or by a router (`message too long`, `Frag needed`)
    size 1473 lost          no answer: lost, or a device in the path drops large packets silently
    mtu 1500                the largest size that came through, plus 28
    end path_mtu

A size may be probed again after `lost`. The search is closed: one more byte than the largest that
came through was probed too, and did not come through. 28 are the headers of IPv4 and ICMP
(20 + 8, RFC 791 and RFC 792); IPv6 has others and is not read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

HEADERS = 28  # bytes
LARGEST = 65507  # of data in a packet of IPv4

_PROBE = re.compile(r"size ([0-9]{1,5}) (ok|too_big|lost)")
_MTU = re.compile(r"mtu (\S{1,20})")


def parse(text: str) -> list[Reading]:
    """The reading `mtu` (B).

    Raises OutputError: `generic` if no size came through, `invalid` if the probes and the MTU
    contradict each other.
    """
    sizes, mtus = _search(text)
    passed, too_big = sizes["ok"], sizes["too_big"]
    if not passed:
        raise OutputError("path_mtu: no packet of any size came through", "generic")
    printed = values.only("path_mtu", "lines 'mtu'", mtus)
    mtu = values.positive("path_mtu: mtu", printed)
    largest = max(passed)
    if mtu != largest + HEADERS:
        why = f"path_mtu: mtu {mtu} where {largest} + {HEADERS} came through"
        raise OutputError(why, "invalid")
    if too_big and min(too_big) <= largest:
        why = f"path_mtu: {min(too_big)} is too big and {largest} came through"
        raise OutputError(why, "invalid")
    if largest < LARGEST and largest + 1 not in too_big | sizes["lost"]:
        raise OutputError(f"path_mtu: {largest + 1} was not probed, so the MTU may be larger")
    return [Reading("mtu", mtu, "B")]


def conditions(text: str) -> dict[str, str]:
    """silent: yes if what is too large is lost without an error, which breaks TCP; otherwise no."""
    sizes, _ = _search(text)
    beyond = max(sizes["ok"], default=0) + 1
    if beyond in sizes["too_big"]:
        return {"silent": "no"}
    return {"silent": "yes"} if beyond in sizes["lost"] else {}


def _search(text: str) -> tuple[Mapping[str, set[int]], list[str]]:
    """The sizes by what became of them, and the MTUs that are printed."""
    sizes: dict[str, set[int]] = defaultdict(set)
    mtus: list[str] = []
    for line in values.whole(text, "path_mtu"):
        if match := _MTU.fullmatch(line):
            mtus.append(match[1])
        elif match := _PROBE.fullmatch(line):
            sizes[match[2]].add(int(match[1]))
        else:
            raise OutputError(f"path_mtu: unknown line: {line[:80]}")
    return sizes, mtus
