"""Every node in one class each: the classes with their nodes, and the grid of all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from siteproof.gate.decision import OK as FINE
from siteproof.gate.decision import STATES, Ruling
from siteproof.report import summary
from siteproof.report.chapters.nodes import in_groups, not_required, to_reason
from siteproof.report.material import Material
from siteproof.report.sections import Link, nodes, some_nodes
from siteproof.report.summary import Count
from siteproof.units import count

LONGEST = 60  # characters of the nodes of a class
MAX_CELLS = 600  # nodes; of more, a cell is a group of them
MAX_FOLDED = 250  # cells of groups
SIZES = (4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 100, 128, 160, 200)  # nodes of such a cell


LOOKS = {"FAILED": summary.BAD, "UNTESTED": summary.NONE}  # of the states that are not slow
ALWAYS = ("FAILED", "SLOW", "UNTESTED")  # have a card without any node, too


class Class(NamedTuple):
    """What a node counts as. always: its card is there without any node, too."""

    label: str
    look: str
    always: bool = False


BACK = Class("go back into service", summary.OK, always=True)
REMARKED = Class("go back into service with a remark", summary.REMARK)
NOT_REQUIRED = Class("nothing required", summary.NONE)
OUT = {  # by the state for which they stay out, the most severe first
    state: Class(state.lower(), LOOKS.get(state, summary.SLOW), state in ALWAYS)
    for state in STATES
    if state != FINE
}
CLASSES = (*OUT.values(), REMARKED, NOT_REQUIRED, BACK)  # the most severe first


def classes(material: Material) -> dict[str, Class]:
    """What each node of the inventory counts as; in the order of the inventory."""
    rest, rulings = material.once(not_required), material.gate.rulings
    return {node: _class(rulings[node], rest) for node in material.fleet.nodes}


def _class(ruling: Ruling, rest: set[str]) -> Class:
    if not ruling.back:
        return OUT[ruling.state]
    if ruling.node in rest:
        return NOT_REQUIRED
    return BACK if ruling.state == FINE else REMARKED


def cards(material: Material) -> Iterator[Count]:
    """How many nodes stay out for what, and which; how many go back. Their sum is all nodes."""
    for one, names in _members(material).items():
        if names or one.always:
            which = "" if one is BACK else some_nodes(names, LONGEST)
            label = "goes back into service" if one is BACK and len(names) == 1 else one.label
            yield Count(len(names), label, one.look, which, of_nodes=True)


def _members(material: Material) -> dict[Class, list[str]]:
    found: dict[Class, list[str]] = {one: [] for one in CLASSES}
    for node, one in material.once(classes).items():
        found[one].append(node)
    return found


def cells(material: Material) -> tuple[str, list[Count]]:
    """What a cell is, and a cell for each node; of many nodes, for each rack, switch or block."""
    found = material.once(classes)
    if len(found) <= MAX_CELLS:
        return "", [Count(0, _title(material, node), one.look) for node, one in found.items()]
    what, parts = _parts(material, list(found))
    return what, [_folded(material, name, members) for name, members in parts]


def _title(material: Material, node: str) -> Link:
    state = material.gate.rulings[node].state
    one = material.once(classes)[node]
    more = {
        REMARKED: ", goes back into service with a remark",
        NOT_REQUIRED: f", {NOT_REQUIRED.label}",
    }
    return to_reason(material, node, f"{node}: {state}{more.get(one, '')}")


def _parts(material: Material, names: Sequence[str]) -> tuple[str, list[tuple[str, list[str]]]]:
    """The groups of the site, if each node is in one; else blocks of nodes in their order."""
    groups, left = in_groups(material, names)
    if groups and not left and len(groups) <= MAX_CELLS:
        return "a group of the site, such as a rack", groups
    size = next((n for n in SIZES if len(names) <= n * MAX_FOLDED), -(-len(names) // MAX_FOLDED))
    blocks = [names[start : start + size] for start in range(0, len(names), size)]
    return count(size, "node"), [(nodes(block), list(block)) for block in blocks]


def _folded(material: Material, name: str, members: Sequence[str]) -> Count:
    """Some nodes as one cell of the most severe class among them."""
    found = material.once(classes)
    numbers = {one: sum(found[node] == one for node in members) for one in CLASSES}
    worst = next(one for one in CLASSES if numbers[one])
    counts = ", ".join(f"{number} {one.label}" for one, number in numbers.items() if number)
    node = next(node for node in members if found[node] == worst)
    return Count(numbers[worst], to_reason(material, node, f"{name}: {counts}"), worst.look)
