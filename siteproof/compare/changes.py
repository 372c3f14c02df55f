"""Changes between two sets of samples in what is recorded with the values.

Kernel and suite, software and its lock, host parameters, and the nodes' descriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from siteproof import nodesets
from siteproof.analysis import uniformity
from siteproof.record import descriptions, finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Order, Sample
from siteproof.record.series import differences, is_setting, of_the_machine

PROVENANCE = [
    "suite",
    "kernel",
    "processor",
    "reframe",
    "software_lock",
    "spack",
    "modules",
    "slurm",
]
DIGEST = "SystemDescription.digest"  # of all fields that a node reports
EVENTS = ("NodeHealth.last_failure",)  # texts on what happened, no property of a node
NOTHING = "nothing"  # the value of what is not reported
Side = Sequence[Sample]


def between(a: Side, b: Side, perflogs: Path) -> list[Finding]:
    """Everything that changed from A to B. Raises UserError where descriptions are broken."""
    return [*provenance(a, b), *software(a, b), *texts(a, b), *described(a, b, perflogs)]


def provenance(a: Side, b: Side) -> Iterator[Finding]:
    """What the headers record: suite, kernel, software lock, Slurm."""
    sides = [{id(s.header): s.header.provenance for s in side}.values() for side in (a, b)]
    for key in PROVENANCE:
        before, after = ({known.get(key, "unknown") for known in jobs} for jobs in sides)
        yield from _sets("", key, before, after)


def software(a: Side, b: Side) -> Iterator[Finding]:
    """Settings, and conditions of the machine, check by check."""
    before, after = _conditions(a), _conditions(b)
    for check, key in sorted(before.keys() & after.keys()):
        ends = ({key: min(side[check, key])} for side in (before, after))
        if is_setting(key) and not differences(*ends):
            continue  # but for a block of the problem size
        yield from _sets(check, key, before[check, key], after[check, key])


def _conditions(side: Side) -> dict[tuple[str, str], set[str]]:
    """The values of each check's settings and conditions of the machine, and its modes."""
    found: dict[tuple[str, str], set[str]] = {}
    good = [sample for sample in side if sample.status == "ok"]
    # Nearly all nodes of a job have its conditions and none of their own.
    alike = {id(s.header): s for s in good if not s.own_conditions}.values()
    for sample in [*alike, *(s for s in good if s.own_conditions)]:
        for key, text in sample.conditions.items():
            if of_the_machine(key) or is_setting(key) or key == "mode":
                found.setdefault((sample.header.check, key), set()).add(text)
    return found


def texts(a: Side, b: Side) -> Iterator[Finding]:
    """Host parameters and other texts that changed, each change with its nodes."""
    one, other = _newest_texts(a), _newest_texts(b)
    measured = {(s.node, s.header.check) for s in a} & {(s.node, s.header.check) for s in b}
    changes: dict[tuple[str, str, str], list[str]] = {}
    for node, name in one.keys() | other.keys():
        before, after = one.get((node, name), NOTHING), other.get((node, name), NOTHING)
        if before != after and (node, name.partition(".")[0]) in measured:
            changes.setdefault((name, before, after), []).append(node)
    for (name, before, after), nodes in sorted(changes.items()):
        yield _changed("", name, before, after, nodes)


def described(a: Side, b: Side, perflogs: Path) -> Iterator[Finding]:
    """What the nodes report of themselves: firmware, packages, devices."""
    before, after = (descriptions.of(side, perflogs) for side in (a, b))
    for change in uniformity.drift(before, after):
        values = _value(change.before), _value(change.after)
        yield _changed("", change.field, *values, change.nodes)


def _sets(check: str, name: str, one: set[str], other: set[str]) -> Iterator[Finding]:
    if one and other and one != other:
        yield _changed(check, name, " and ".join(sorted(one)), " and ".join(sorted(other)))


def _changed(check: str, what: str, before: str, after: str, nodes: Iterable[str] = ()) -> Finding:
    change = {"what": what, "before": before, "after": after}
    return finding.of(Kind.CHANGED, change, check=check, subject=str(nodesets.of(nodes)))


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
        and s.metric not in EVENTS
        and "parameter" not in s.dims
        and s.header.order == newest[s.node, s.header.check]
    }


def _value(text: str | None) -> str:
    return NOTHING if text is None else text or "empty"
