"""The paths of a shared file system, compared between the nodes that have listed them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from siteproof import nodesets
from siteproof.record import descriptions
from siteproof.record.samples import Sample
from siteproof.verdict.derived.given import Given, Result

PATHS = "Namespace.paths"
DIGEST = "Namespace.digest"
MAX_SHOWN = 5  # paths in the reason

_DEPTH = re.compile(r"[1-9][0-9]{0,2}")


def differences(given: Given) -> Iterator[Result]:
    """The paths that not all nodes of the roles have listed, in one session and below one folder.

    Where some have listed fewer levels of folders than others, deeper paths are not compared.
    """
    attempts = {node: own[0] for node, own in given.answered(PATHS).items()}
    nodes = given.units(given.input(PATHS))
    if lacking := nodesets.of(node for node in nodes if node not in attempts):
        raise given.missing([f"{PATHS} of {lacking}"])
    listed = {node: attempts[node] for node in nodes}
    if failed := [sample for sample in listed.values() if sample.status != "ok"]:
        yield given.broken(failed)
        return
    if lack := _incomparable(listed.values()):
        raise given.missing([f"{PATHS} {lack}"])
    yield _compared(given, listed)


def _incomparable(listed: Collection[Sample]) -> str:
    """What listings lack to be compared with each other; empty if nothing."""
    if len(listed) < 2:
        return "of two nodes"
    if len({sample.header.session for sample in listed}) > 1:
        return "of all nodes in one session"
    if len({sample.conditions.get("folder") for sample in listed}) > 1:
        return "of one folder"
    depths = {sample.conditions.get("depth", "") for sample in listed}
    return "" if all(map(_DEPTH.fullmatch, depths)) else "with the levels that were listed"


def _compared(given: Given, listed: Mapping[str, Sample]) -> Result:
    every = descriptions.of_samples(listed, given.material.perflogs)
    proofs = {node: own[0].value for node, own in given.answered(DIGEST).items()}
    if altered := [node for node in listed if proofs.get(node) != descriptions.digest(every[node])]:
        raise given.missing([f"{PATHS} of {nodesets.of(altered)} as they were measured"])
    depth = min(int(s.conditions["depth"]) for s in listed.values())
    found = differing(every, depth)
    shown = [f"{path} not on {nodesets.of(found[path])}" for path in list(found)[:MAX_SHOWN]]
    more = f", and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    why = f"{'; '.join(shown)}{more}" if found else f"{len(listed)} nodes have the same paths"
    return given.sample(Fraction(len(found)), list(listed.values()), why)


def differing(listings: Mapping[str, Collection[str]], depth: int) -> dict[str, list[str]]:
    """Each path that some places lack, with these places; in the order of the paths.

    depth: levels of folders that every place has listed; deeper paths are not compared.
    """
    every = {path for listed in listings.values() for path in listed if path.count("/") < depth}
    lacking = {}
    for path in sorted(every):
        without = [place for place, listed in listings.items() if path not in listed]
        if without:
            lacking[path] = without
    return lacking
