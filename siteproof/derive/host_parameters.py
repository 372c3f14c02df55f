"""Host parameters: what a node has against what the site expects, each mismatch by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.derive.health import not_read
from siteproof.parsers import Reading, lines
from siteproof.sites import Expected


def derive(given: Given) -> Derived:
    """Add the counts mismatches, unreadable and bond_members_up, and a text for each mismatch.

    Mismatches are counted for each kind of parameter, too: mtu_mismatches, rmem_max_mismatches.

    facts["parameters"]: expected values by name, such as {"nic.eth0.mtu": {"exact": "9000"}}.
    """
    found = {r.metric: comparable(r.metric, str(r.value)) for r in given.readings}
    unreadable = lines.unreadable(given.raw.stdout)
    parameters = given.facts.get("parameters") or {}
    assert isinstance(parameters, Mapping)
    wrong: dict[str, str] = {}
    by_kind: Counter[str] = Counter()
    for name, rule in parameters.items():
        by_kind[leaf(name)] += 0  # a kind without a mismatch has its count, too
        expected = Expected(**rule)
        if name not in found or not expected.met_by(found[name]):
            wrong[name] = _mismatch(name, expected, found, unreadable)
            by_kind[leaf(name)] += 1
    counts = {
        "mismatches": len(wrong),
        "unreadable": len(unreadable),
        "bond_members_up": bonded(given.readings),
        **{f"{kind}_mismatches": count for kind, count in sorted(by_kind.items())},
    }
    readings = [Reading(name, Decimal(count), "count") for name, count in counts.items()]
    readings += [
        Reading("mismatch", text, "text", {"parameter": name}) for name, text in wrong.items()
    ]
    readings += [*not_read(unreadable), *given.readings]
    return readings, {**given.conditions, "parameters": str(len(parameters))}


def leaf(name: str) -> str:
    """What kind of parameter it is, whichever interface has it: mtu, rmem_max."""
    return name.rpartition(".")[2].replace("-", "_")


def bonded(readings: list[Reading]) -> int:
    """How many interfaces are up as members of any bond."""
    members = [r for r in readings if r.metric.startswith("bond.") and ".members" in r.metric]
    return sum(len(str(r.value).split()) for r in members)


def comparable(name: str, text: str) -> str:
    """A value as the site writes it: on or off, a bond's mode, members sorted.

    Where receive and transmit pause differ, the text stays as it is and matches neither.
    """
    kind = name.rpartition(".")[2]
    words = text.split()
    if name.startswith("bond.") and kind == "mode":
        return words[0] if words else ""
    if name.startswith("bond."):
        return " ".join(sorted(words))
    if kind == "flow_control":
        for state in ("on", "off"):
            if {f"rx={state}", f"tx={state}"} <= set(words):
                return state
    return " ".join(words)


def _mismatch(
    name: str, expected: Expected, found: Mapping[str, str], unreadable: Mapping[str, str]
) -> str:
    """Expected and found value, and why it could not be read. unreadable: by name's beginning."""
    reasons = [f" ({why})" for key, why in unreadable.items() if why and name.startswith(key)]
    reason = reasons[0] if reasons else ""
    return f"expected {expected}, found {found.get(name, 'nothing')}{reason}"
