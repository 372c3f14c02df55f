"""Ports of InfiniBand and RoCE devices, as siteproof/checks/on_node/rdma.sh prints them.

Formats: the Linux kernel's Documentation/ABI/stable/sysfs-class-infiniband.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, values

MAX_PORTS = 1024  # a host of virtual machines has hundreds of virtual functions
CONGESTION = (
    "port_xmit_wait",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "rp_cnp_handled",
    "rp_cnp_ignored",
)
ERRORS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "out_of_sequence",
    "packet_seq_err",
    "rnr_nak_retry_err",
    "local_ack_timeout_err",
    "implied_nak_seq_err",
    "out_of_buffer",
    "rx_icrc_encapsulated",
    "roce_adp_retrans_to",
)
ACTIVE = "4: ACTIVE"

_FIELD = re.compile(r"port (\S{1,80}) (state|phys_state|rate|link_layer) = ?(.{0,80})")
_ABSENT = re.compile(r"absent (\S{1,80})")
_COUNT = re.compile(r"count (\S{1,80}) ([a-z_]{1,60}) = ([0-9]{1,20})")
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9])?) Gb/sec \(([0-9]{1,2})X ?([A-Z0-9]{0,6})\)")


def parse(text: str) -> list[Reading]:
    """ports and ports_active; of each active port its rate and width (lanes), by `port`; a text
    not_active for each other port, and absent for each device that the site states and the node
    lacks; counter, by `port` and `counter`; and errors, their sum without congestion, where a
    device keeps any.

    Raises OutputError: cut off, two values of one field, an active port without its rate.
    """
    printed = values.whole(text, "rdma_ports")
    absent = [match[1] for match in map(_ABSENT.fullmatch, printed) if match]
    fields, counters = _read(line for line in printed if not _ABSENT.fullmatch(line))
    if not 0 < len(fields) + len(absent) <= MAX_PORTS:
        raise OutputError(f"rdma_ports: {len(fields)} ports with their state")
    if {port for port, _ in counters} - fields.keys():
        raise OutputError("rdma_ports: counters of a port without its state")
    active = sum(own.get("state") == ACTIVE for own in fields.values())
    found = [count("ports", len(fields)), count("ports_active", active)]
    if errors := [n for (_, name), n in counters.items() if name in ERRORS]:
        found.append(count("errors", sum(errors)))
    for port, own in fields.items():
        found += _of_port(port, own)
    found += [Reading("absent", "no such device", "text", {"port": name}) for name in absent]
    found += [
        Reading("counter", Decimal(value), "count", {"port": port, "counter": name})
        for (port, name), value in counters.items()
    ]
    return found


def conditions(text: str) -> dict[str, str]:
    """The link layers of the ports: InfiniBand, Ethernet."""
    matches = filter(None, map(_FIELD.fullmatch, values.filled(text)))
    layers = {match[3] for match in matches if match[2] == "link_layer" and match[3]}
    return {"link_layer": ", ".join(sorted(layers))} if layers else {}


def _read(printed: Iterable[str]) -> tuple[dict[str, dict[str, str]], dict[tuple[str, str], int]]:
    """The fields of each port; its counters, by port and name. Raises OutputError."""
    fields: dict[str, dict[str, str]] = {}
    counters: dict[tuple[str, str], int] = {}
    for line in printed:
        if match := _FIELD.fullmatch(line):
            own = fields.setdefault(match[1], {})
            if own.setdefault(match[2], match[3]) != match[3]:
                raise OutputError("rdma_ports: two values of one field")
        elif match := _COUNT.fullmatch(line):
            key, value = (match[1], match[2]), int(match[3])
            if match[2] not in ERRORS + CONGESTION or counters.setdefault(key, value) != value:
                raise OutputError("rdma_ports: an unknown counter, or two values of one")
        else:
            raise OutputError(f"rdma_ports: no field in '{line[:80]}'")
    return fields, counters


def _of_port(port: str, own: dict[str, str]) -> list[Reading]:
    """Rate and lanes where it is active, such as 100 Gb/sec (4X EDR); else its states."""
    dims = {"port": port}
    if own.get("state") != ACTIVE:
        states = filter(None, (own.get("state"), own.get("phys_state")))
        return [Reading("not_active", ", ".join(states) or "no state", "text", dims)]
    rate = own.get("rate", "")
    match = _RATE.fullmatch(rate)
    if not match:
        raise OutputError(f"rdma_ports: rate '{rate[:40]}' of an active port")
    return [
        Reading("rate", Decimal(match[1]), "Gb/s", dims),
        Reading("width", Decimal(match[2]), "count", dims),
    ]
