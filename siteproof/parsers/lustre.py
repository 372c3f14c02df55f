"""A client of Lustre: what its tools and rpm or dpkg report, as checks/storage/lustre.sh prints it.

Formats: Lustre manual (lfs osts, lfs df; srpc_info in "Viewing Secure PtlRPC Contexts"), rpm(8)
under VERIFY OPTIONS, and dpkg(1) under --verify-format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, values

MAX_NAMED = 50  # of a kind; the counts are of all
LONGEST_NAME = 200  # characters
KERBEROS = "krb5"  # krb5n, krb5a, krb5i, krb5p
UNKNOWN = "unknown"
CONFIGURATION = "c"  # rpm's and dpkg's mark

_OST = re.compile(r"(\d{1,5}): (\S{1,200}) (ACTIVE|INACTIVE)")
# 98706432 5615616 93088768 6% /mnt/testfs[OST:0] f: flags stand at the end, if there are any
_SIZES = re.compile(
    r"(\S{1,200})(?: \d{1,20}){3} (\d{1,3})% \S.*\[(OST|MDT):\d{1,5}\] ?([A-Za-z]{0,9})"
)
_NO_NEW = re.compile(r"[RNSI]")  # flags: read-only, no new objects, no space, no inodes
_DEGRADED = "D"  # the flag of a target whose RAID is degraded or rebuilt: slower, and avoided
_DOWN = re.compile(r"(\S{1,200}?) ?: (inactive device|\S.{0,80})")
_PARAMETER = re.compile(r"((?:osc|mdc|mgc)\.\S{1,200})\.srpc_info=")
_SERVER = re.compile(r"osc\.(\S{1,200}?-OST[0-9a-f]{4})-osc-\S{1,40}\.ost_conn_uuid=(\S{1,200})")
_FLAVOR = re.compile(r"rpc flavor: ([a-z0-9]{1,20})")
_PACKAGE = re.compile(r"\S{1,200} \S{1,200}")
_FILE = re.compile(r"(missing|[SM5DLUGTPC.?]{8,11}) (?:([acdglmr]) )?(/.*)")
_OWNER = re.compile(r"(\d{1,10}) (\d{1,10}|none) (.+)")


def parse(text: str) -> list[Reading]:
    """Counts of what could be read, and a text for each thing that is not as it should be.

    osts, osts_up: all object storage targets, and those that are active and have answered.
    fullest, fullest_mdt, fullest_inodes: per cent used of the fullest target; disabled: targets
    that take nothing new. degraded: those that rebuild their RAID.
    targets_of_servers: how many servers have how many targets, `14x2 2x1`.
    connections, without_kerberos. packages, altered_files, and altered_settings: files that the
    package marks as configuration, which sites edit.
    owners, wrong_owners: of the site's list.
    Raises OutputError if the end is missing or a line is none of its tool.
    """
    parts: dict[str, list[str]] = {}
    for line in values.whole(text, "lustre"):
        name, _, rest = line.partition(" ")
        parts.setdefault(name, []).append(rest)
    found = _targets(parts.get("osts", []), parts.get("df", []))
    found += _fullness(parts.get("df", []), parts.get("inodes", []))
    if "srpc" in parts:
        found += _connections(parts["srpc"])
    if "server" in parts:
        found.append(_servers(parts["server"]))
    if "verified" in parts:
        found += _files(parts.get("package", []), parts.get("verify", []))
    if "owners" in parts:
        found += _owners(parts.get("owner", []), parts["owners"])
    return found


def _targets(listed: Iterable[str], answers: Iterable[str]) -> list[Reading]:
    """A target is up if `lfs osts` calls it ACTIVE and `lfs df` prints its sizes."""
    states: dict[str, str] = {}
    for line in listed:
        if match := _OST.fullmatch(line):
            if states.setdefault(match[2], match[3]) != match[3]:
                raise OutputError("lustre: two states of one target")
        elif not line.startswith("OBDS:"):
            raise OutputError("lustre: a line of lfs osts is not a target")
    if not states:
        raise OutputError("lustre: lfs osts names no target")
    answered = {match[1] for match in _matches(_SIZES, answers) if match[3] == "OST"}
    if answered - states.keys():
        raise OutputError("lustre: lfs df names a target that lfs osts does not")
    down = {name: "does not answer" for name in states if name not in answered}
    down |= {name: "inactive" for name, state in states.items() if state == "INACTIVE"}
    up = count("osts_up", len(states) - len(down))
    return [count("osts", len(states)), up, *_named("down", "ost", down)]


def _matches(pattern: re.Pattern[str], printed: Iterable[str]) -> list[re.Match[str]]:
    return [match for match in map(pattern.fullmatch, printed) if match]


def _servers(connected: Iterable[str]) -> Reading:
    """How many servers have how many targets, the most targets first."""
    found = _matches(_SERVER, connected)
    if not found:
        raise OutputError("lustre: lctl names no server of a target")
    of_server = Counter(server for _, server in {(one[1], one[2]) for one in found})
    alike = sorted(Counter(of_server.values()).items(), reverse=True)
    text = " ".join(f"{servers}x{targets}" for targets, servers in alike)
    return Reading("targets_of_servers", text, "text")


def _fullness(answers: Sequence[str], inodes: Sequence[str]) -> list[Reading]:
    """In per cent, the fullest targets of each kind; disabled: those that take nothing new."""
    sizes = _matches(_SIZES, answers)
    used = {
        "fullest": [int(match[2]) for match in sizes if match[3] == "OST"],
        "fullest_mdt": [int(match[2]) for match in sizes if match[3] == "MDT"],
        "fullest_inodes": [int(match[2]) for match in _matches(_SIZES, inodes)],
    }
    found = [Reading(metric, Decimal(max(each)), "%") for metric, each in used.items() if each]
    down = _matches(_DOWN, answers)
    disabled = {match[1]: match[2].removesuffix(" device") for match in down}
    disabled.pop("filesystem_summary", None)
    disabled |= {
        match[1]: f"takes no new objects ({match[4]})"
        for match in sizes
        if _NO_NEW.search(match[4])
    }
    degraded = {m[1]: "its RAID is degraded" for m in sizes if _DEGRADED in m[4]}
    return [
        *found,
        count("disabled", len(disabled)),
        *_named("disabled_target", "target", disabled),
        count("degraded", len(degraded)),
        *_named("degraded_target", "target", degraded),
    ]


def _connections(shown: Iterable[str]) -> list[Reading]:
    """A connection without a flavour has not been shown to be secured, and counts."""
    flavors: dict[str, str] = {}
    last = ""
    for line in shown:
        if match := _PARAMETER.fullmatch(line):
            last = match[1]
            flavors.setdefault(last, UNKNOWN)
        elif (match := _FLAVOR.fullmatch(line)) and last:
            flavors[last] = match[1]
    if not flavors:
        raise OutputError("lustre: lctl shows no connection")
    others = {name: flavor for name, flavor in flavors.items() if not flavor.startswith(KERBEROS)}
    return [
        count("connections", len(flavors)),
        count("without_kerberos", len(others)),
        *_named("flavor", "connection", others),
    ]


def _files(packages: list[str], shown: Iterable[str]) -> list[Reading]:
    """A file of which nothing could be compared ('?' only) is refused."""
    if not packages or not all(map(_PACKAGE.fullmatch, packages)):
        raise OutputError("lustre: files without their packages")
    altered: dict[str, str] = {}
    settings: dict[str, str] = {}
    for line in shown:
        match = _FILE.fullmatch(line)
        if not match:
            raise OutputError("lustre: a line is not the result of a file")
        if not match[1].strip(".?"):
            raise OutputError("lustre: files could not be compared with their package; needs root")
        kind = settings if match[2] == CONFIGURATION else altered
        kind[match[3]] = match[1]
    return [
        count("packages", len(packages)),
        count("altered_files", len(altered)),
        count("altered_settings", len(settings)),
        *_named("altered", "file", {**altered, **settings}),
    ]


def _owners(shown: list[str], counted: list[str]) -> list[Reading]:
    if counted != [str(len(shown))]:
        raise OutputError("lustre: owners are missing")
    wrong: dict[str, str] = {}
    for line in shown:
        match = _OWNER.fullmatch(line)
        if not match:
            raise OutputError("lustre: a line is not an owner")
        if match[1] != match[2]:
            wrong[match[3]] = f"expected {match[1]}, found {match[2]}"
    return [
        count("owners", len(shown)),
        count("wrong_owners", len(wrong)),
        *_named("owner", "file", wrong),
    ]


def _named(metric: str, dim: str, texts: dict[str, str]) -> list[Reading]:
    """The first of them as texts."""
    return [
        Reading(metric, text, "text", {dim: name[:LONGEST_NAME]})
        for name, text in list(texts.items())[:MAX_NAMED]
    ]
