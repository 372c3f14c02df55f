"""What is recorded beside the figures and changed between two sets of samples, a line each.

Kernel and suite, software and its lock, host parameters, and what the nodes say of themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from siteproof import nodesets
from siteproof.analysis import uniformity
from siteproof.record import descriptions
from siteproof.record.samples import Order, Sample
from siteproof.record.series import of_the_machine

PROVENANCE = ("suite", "kernel", "processor", "reframe", "software_lock", "spack", "slurm")


def between(a: Sequence[Sample], b: Sequence[Sample], perflogs: Path) -> list[str]:
    """Everything that changed from A to B. Raises UserError where descriptions are broken."""
    return [*provenance(a, b), *software(a, b), *texts(a, b), *described(a, b, perflogs)]


def provenance(a: Sequence[Sample], b: Sequence[Sample]) -> list[str]:
    """What the headers say: suite, kernel, software lock, Slurm."""
    return [
        told
        for key in PROVENANCE
        if (
            told := _sets(
                key, *({s.header.provenance.get(key, "unknown") for s in side} for side in (a, b))
            )
        )
    ]


def software(a: Sequence[Sample], b: Sequence[Sample]) -> list[str]:
    """Conditions that the machine brings along, check by check."""
    found: list[dict[tuple[str, str], set[str]]] = [{}, {}]
    for side, samples in zip(found, (a, b), strict=True):
        for sample in samples:
            for key, text in sample.conditions.items() if sample.status == "ok" else ():
                if of_the_machine(key) or key == "mode":
                    side.setdefault((sample.header.check, key), set()).add(text)
    shared = sorted(found[0].keys() & found[1].keys())
    return [
        told
        for check, key in shared
        if (told := _sets(f"{check}: {key}", found[0][check, key], found[1][check, key]))
    ]


def texts(a: Sequence[Sample], b: Sequence[Sample]) -> list[str]:
    """Host parameters and other texts that changed, each change with its nodes."""
    one, other = _newest_texts(a), _newest_texts(b)
    measured = {(s.node, s.header.check) for s in a} & {(s.node, s.header.check) for s in b}
    changes: dict[tuple[str, str, str], list[str]] = {}
    for node, name in one.keys() | other.keys():
        before, after = one.get((node, name), "nothing"), other.get((node, name), "nothing")
        if before != after and (node, name.partition(".")[0]) in measured:
            changes.setdefault((name, before, after), []).append(node)
    return [
        f"{name}: {before} -> {after} on {nodesets.of(nodes)}"
        for (name, before, after), nodes in sorted(changes.items())
    ]


def described(a: Sequence[Sample], b: Sequence[Sample], perflogs: Path) -> list[str]:
    """What the nodes say of themselves: firmware, packages, devices."""
    before, after = (descriptions.of(side, perflogs) for side in (a, b))
    return [
        f"{c.field}: {_value(c.before)} -> {_value(c.after)} on {nodesets.of(c.nodes)}"
        for c in uniformity.drift(before, after)
    ]


def _sets(name: str, one: set[str], other: set[str]) -> str:
    if one == other or not one or not other:
        return ""
    return f"{name}: {' and '.join(sorted(one))} -> {' and '.join(sorted(other))}"


def _newest_texts(samples: Sequence[Sample]) -> dict[tuple[str, str], str]:
    """Texts that a node's newest run of a check gave, by node and metric."""
    newest: dict[tuple[str, str], Order] = {}
    for s in samples:
        key = (s.node, s.header.check)
        newest[key] = max(newest.get(key, s.header.order), s.header.order)
    return {
        (s.node, s.metric): str(s.value)
        for s in samples
        if s.status == "ok"
        and s.unit == "text"
        and "parameter" not in s.dims
        and s.header.order == newest[s.node, s.header.check]
    }


def _value(text: str | None) -> str:
    return "nothing" if text is None else text or "empty"
