"""Host parameters: what a node has against what the site expects, each mismatch by name."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.parsers import Reading, host_parameters
from siteproof.sites import Expected

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """Add the counts mismatches, unreadable and bond_members_up, and a text for each mismatch.

    Mismatches are counted for each kind of parameter, too: mtu_mismatches, rmem_max_mismatches.

    facts["parameters"]: expected values by name, such as {"nic.eth0.mtu": {"exact": "9000"}}.
    """
    found = {r.metric: comparable(r.metric, str(r.value)) for r in readings}
    unreadable = host_parameters.unreadable(raw.stdout)
    parameters = facts.get("parameters") or {}
    assert isinstance(parameters, Mapping)
    expected = {name: Expected(**rule) for name, rule in parameters.items()}
    wrong = {
        name: _told(name, rule, found, unreadable)
        for name, rule in expected.items()
        if name not in found or not rule.met_by(found[name])
    }
    counts = [
        Reading("mismatches", Decimal(len(wrong)), "count"),
        Reading("unreadable", Decimal(len(unreadable)), "count"),
        Reading("bond_members_up", Decimal(bonded(readings)), "count"),
    ]
    counts += [
        Reading(f"{kind}_mismatches", Decimal(sum(leaf(name) == kind for name in wrong)), "count")
        for kind in sorted({leaf(name) for name in expected})
    ]
    details = [
        Reading("mismatch", text, "text", {"parameter": name}) for name, text in wrong.items()
    ]
    details += [
        Reading("not_read", why, "text", {"parameter": name}) for name, why in unreadable.items()
    ]
    return [*counts, *details, *readings], {**conditions, "parameters": str(len(expected))}


def leaf(name: str) -> str:
    """What kind of parameter it is, whichever interface has it: mtu, rmem_max."""
    return name.rpartition(".")[2].replace("-", "_")


def bonded(readings: list[Reading]) -> int:
    """How many interfaces are up as members of any bond."""
    members = [r for r in readings if r.metric.startswith("bond.") and ".members" in r.metric]
    return sum(len(str(r.value).split()) for r in members)


def comparable(name: str, text: str) -> str:
    """A value in the words of the site: on or off, a bond's mode, members sorted.

    Where receive and transmit pause differ, the text stays as it is and matches neither.
    """
    kind = name.rpartition(".")[2]
    words = text.split()
    if name.startswith("bond."):
        return words[0] if kind == "mode" and words else " ".join(sorted(words))
    if kind == "flow_control":
        for state in ("on", "off"):
            if {f"rx={state}", f"tx={state}"} <= set(words):
                return state
    return " ".join(words)


def _told(
    name: str, rule: Expected, found: Mapping[str, str], unreadable: Mapping[str, str]
) -> str:
    reason = next((why for key, why in unreadable.items() if name.startswith(key)), "")
    why = f" ({reason})" if reason else ""
    return f"expected {rule}, found {found.get(name, 'nothing')}{why}"
