"""What a node reports of itself: parameters against the site's, faults, its fields, its paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from siteproof.collect.derive import Derived, Measured
from siteproof.parsers import Reading, count, values
from siteproof.parsers import description as fields_of
from siteproof.parsers import namespace as paths_of
from siteproof.record import descriptions
from siteproof.sites import Expected

FAULTS = ("mce", "kernel_errors", "oom_kills", "read_only")  # each must be read for the sum
ALSO_FAULTS = ("edac_ue",)  # where a driver counts them; without one they are machine checks, too


def host_parameters(given: Measured) -> Derived:
    """Add the counts mismatches, unreadable and bond_members_up, and a text for each mismatch.

    Mismatches are counted for each kind of parameter, too: mtu_mismatches, rmem_max_mismatches.

    facts["parameters"]: expected values by name, such as {"nic.eth0.mtu": {"exact": "9000"}}.
    """
    found = {r.metric: comparable(r.metric, str(r.value)) for r in given.readings}
    unreadable = values.unreadable(given.raw.stdout)
    parameters = cast("Mapping[str, Any]", given.facts.get("parameters") or {})
    wrong: dict[str, str] = {}
    by_kind: Counter[str] = Counter()
    for name, rule in parameters.items():
        by_kind[leaf(name)] += 0  # a kind without a mismatch has its count, too
        expected = Expected(**rule)
        if name not in found or not expected.met_by(found[name]):
            reasons = (
                f" ({why})" for key, why in unreadable.items() if why and name.startswith(key)
            )
            shown = f"{found.get(name, 'nothing')}{next(reasons, '')}"
            wrong[name] = f"expected {expected}, found {shown}"
            by_kind[leaf(name)] += 1
    members = [r for r in given.readings if re.match(r"bond\..*\.members", r.metric)]
    counts = {
        "mismatches": len(wrong),
        "unreadable": len(unreadable),
        "bond_members_up": sum(len(str(r.value).split()) for r in members),
        **{f"{kind}_mismatches": number for kind, number in sorted(by_kind.items())},
    }
    readings = [
        *(count(name, number) for name, number in counts.items()),
        *_texts("mismatch", wrong),
        *_texts("not_read", unreadable),
        *given.readings,
    ]
    return readings, {**given.conditions, "parameters": str(len(parameters))}


def leaf(name: str) -> str:
    """What kind of parameter it is, whichever interface has it: mtu, rmem_max."""
    return name.rpartition(".")[2].replace("-", "_")


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


def health(given: Measured) -> Derived:
    """Add the counts unreadable and faults, and a text for each value that could not be read.

    Faults are what node health checks drain a node for (LBNL Node Health Check: check_hw_mcelog,
    check_dmesg, check_fs_mount_rw), with the errors that the kernel counts itself.
    """
    unreadable = values.unreadable(given.raw.stdout)
    counts = [count("unreadable", len(unreadable))]
    known = {r.metric: Decimal(r.value) for r in given.readings if r.unit == "count"}
    if lacking := [name for name in FAULTS if name not in known]:
        unreadable["faults"] = f"{', '.join(lacking)} could not be read"
    else:
        faults = sum(known.get(name, Decimal(0)) for name in (*FAULTS, *ALSO_FAULTS))
        counts.append(count("faults", int(faults)))
    return [*counts, *given.readings, *_texts("not_read", unreadable)], dict(given.conditions)


def _texts(metric: str, texts: Mapping[str, str]) -> list[Reading]:
    """A text by parameter, such as why a node could not read it."""
    return [Reading(metric, text, "text", {"parameter": name}) for name, text in texts.items()]


def lustre(given: Measured) -> Derived:
    """The readings as they are, and why others are missing."""
    missing = _texts("not_read", values.unreadable(given.raw.stdout))
    return [*given.readings, *missing], dict(given.conditions)


def description(given: Measured) -> Derived:
    """How many fields were read and not read, and a digest of them all, which are kept aside."""
    fields = {r.metric: str(r.value) for r in given.readings}
    unreadable = fields_of.unreadable(given.raw.stdout)
    reasons = {f"{descriptions.UNREADABLE}{name}": why for name, why in unreadable.items()}
    given.aside.update(fields | reasons)
    return [
        count("fields", len(fields)),
        count("unreadable", len(unreadable)),
        Reading("digest", descriptions.digest(fields), "text"),
    ], dict(given.conditions)


def namespace(given: Measured) -> Derived:
    """Add `digest`, which is equal where all paths are. Each is kept aside, as a field is."""
    paths = dict.fromkeys(paths_of.paths(given.raw.stdout), "")
    given.aside.update(paths)
    digest = Reading("digest", descriptions.digest(paths), "text")
    return [*given.readings, digest], {**given.conditions, "folder": given.fact("folder")}
