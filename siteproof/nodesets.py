"""Node sets in ClusterShell's syntax, without its groups: no text may start a command."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from math import prod

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetBase, NodeSetException
from ClusterShell.RangeSet import RangeSet, RangeSetException

MISSING = "missing"  # in place of a set: the nodes without a valid answer
MAX_NODES = 100_000
MANY_TERMS = 50  # a square of fewer is nothing
_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_NUMBERED = re.compile(r"([A-Za-z_]+)([0-9]{1,18})", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")  # a system may begin or end with _
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*([0-9]{1,18})(?:\s*-\s*([0-9]{1,18})(?:/[0-9]{1,9})?)?\s*")
_TERM = re.compile(r"(?:[^,!&^\[\]]|\[[^\[\]]*\])*")  # up to an operator outside of brackets
_OPERATORS = "!&^"


def of(names: Iterable[str] = ()) -> NodeSet:
    """The set of these nodes, each name taken as it is."""
    numbers: dict[str, RangeSet] = {}  # by all of a name but its number: no text has to be read
    terms: dict[str, None] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            prefix, number = match.groups()
            numbers.setdefault(prefix, RangeSet()).add(number)
        else:
            terms[name] = None
    found = NodeSet.fromlist(list(terms), resolver=RESOLVER_NOGROUP)
    for prefix, its in numbers.items():
        found.update(NodeSetBase(f"{prefix}%s", its))
    return _folded(found, len(terms) + len(numbers))


def union(parts: Iterable[NodeSet]) -> NodeSet:
    """The nodes of all of these sets."""
    return NodeSet.fromlist(list(parts), resolver=RESOLVER_NOGROUP)


def parse(text: str) -> NodeSet:
    """The set of nodes. Raises ValueError with a short reason."""
    if "@" in text:
        raise ValueError("'@' in a node set: groups are not looked up, so write the nodes out")
    if not text.isascii() or len(text) > 100_000:
        raise ValueError("a node set must be ASCII text of at most 100000 characters")
    if sum(_size(part) for part in _parts(text)) > MAX_NODES:
        raise ValueError(f"more than {MAX_NODES} nodes")
    try:
        return _folded(NodeSet(text, resolver=RESOLVER_NOGROUP), text.count(","))
    except (NodeSetException, ValueError) as error:
        raise ValueError(f"bad node set: {error}") from None


def _folded(nodes: NodeSet, terms: int) -> NodeSet:
    """The same set, in as few terms as possible.

    ClusterShell compares each term of one set of r1i0n0, r1i0n1 … with each term of the other, and
    folds such sets only to print them.
    """
    if terms > MANY_TERMS:
        str(nodes)
    return nodes


def numbers(text: str) -> set[int]:
    """`1-8,12` as numbers. Raises ValueError with a short reason."""
    if not text:
        return set()
    if len(text) > MAX_NODES or sum(map(_width, text.split(","))) > MAX_NODES:
        raise ValueError(f"more than {MAX_NODES} numbers")
    try:
        return set(map(int, RangeSet(text)))
    except (RangeSetException, ValueError):
        raise ValueError("bad numbers") from None


@functools.lru_cache(maxsize=200_000)
def is_name(text: str) -> bool:
    """Whether this can be the name of a host or a system; empty is allowed."""
    return not text or _LABEL.fullmatch(text) is not None


def checked(text: str) -> NodeSet:
    """The set of nodes that a person wrote: host names, each once. Raises ValueError as `parse`."""
    nodes = parse(text)
    if not nodes:
        raise ValueError("an empty node set")
    for name in nodes:
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{name[:40]}' is not a host name")
    if not set(_OPERATORS) & set(text) and (twice := _twice(text)):
        raise ValueError(f"{twice} more than once in the set")
    return nodes


def _parts(text: str) -> list[str]:
    """The terms between operators. Raises ValueError for a bracket without its counterpart."""
    found, at = [], 0
    while at <= len(text):
        match = _TERM.match(text, at)
        assert match is not None  # it may be empty
        found.append(match[0])
        at = match.end() + 1
        if text[at - 1 : at] in ("[", "]"):
            raise ValueError(f'bad node set: missing bracket: "{text[match.start() :][:40]}"')
    return found


def _size(part: str) -> int:
    """An upper bound of the nodes in one term, found without making them. Raises ValueError."""
    return prod(sum(map(_width, ranges.split(","))) for ranges in _BRACKET.findall(part))


def _width(term: str) -> int:
    match = _RANGE.fullmatch(term)
    if not match:
        raise ValueError(f"bad node set: '{term[:40]}' is not a range")
    return max(1, int(match[2]) - int(match[1]) + 1) if match[2] else 1


def _twice(text: str) -> NodeSet | None:
    """The nodes that more than one term names."""
    seen, twice = NodeSet(resolver=RESOLVER_NOGROUP), NodeSet(resolver=RESOLVER_NOGROUP)
    for part in _parts(text):
        nodes = NodeSet(part, resolver=RESOLVER_NOGROUP)
        twice.update(seen & nodes)
        seen.update(nodes)
    return twice or None
