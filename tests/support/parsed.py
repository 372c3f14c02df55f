"""What a parser makes of an output, and what must hold of it whatever the output is."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from importlib import import_module
from types import ModuleType

import recorded
from recorded import good, words

from siteproof import units
from siteproof.errors import OutputError
from siteproof.parsers import Reading, values


@cache
def parser(tool: str) -> ModuleType:
    return import_module(f"siteproof.parsers.{tool}")


TOOLS = sorted(t for t in {o.tool for o in recorded.all_of()} if hasattr(parser(t), "parse"))


def conditions(tool: str, text: str) -> dict[str, str]:
    """A parser has none where the output holds nothing that its values depend on."""
    module = parser(tool)
    found: dict[str, str] = module.conditions(text) if hasattr(module, "conditions") else {}
    return found


def expected(tool: str, text: str) -> str:
    """What the parser makes of a text, as it stands in a .expected file."""
    module = parser(tool)
    if not hasattr(module, "parse"):
        return "".join(f"{key} = {value}\n" for key, value in module.describe(text).items())
    try:
        told = [
            " ".join([r.metric, str(r.value), *_kind(r), *(f"{k}={v}" for k, v in r.dims.items())])
            for r in module.parse(text)
        ]
    except OutputError as error:
        return f"OutputError {error.status}: {error}\n"
    told += [f"{key} = {value}" for key, value in sorted(conditions(tool, text).items())]
    if tool in ("description", "health", "host_parameters"):
        named = getattr(module, "unreadable", values.unreadable)
        told += [f"unreadable {key} = {why}" for key, why in named(text).items()]
    return "".join(f"{line}\n" for line in told)


def _kind(reading: Reading) -> list[str]:
    """Its unit, and the status of what failed with a part of the node."""
    return [reading.unit] if reading.status == "ok" else [reading.unit, reading.status]


@cache
def whole(tool: str, text: str) -> list[Reading]:
    """The readings of an output that is not damaged."""
    found: list[Reading] = parser(tool).parse(text)
    return found


@cache
def metrics(tool: str) -> frozenset[str]:
    """The figures, not texts, that a tool's good outputs give."""
    return frozenset(
        reading.metric
        for text in good(tool)
        for reading in whole(tool, text)
        if reading.unit != "text"
    )


@cache
def proven(tool: str) -> frozenset[str]:
    """Those of which a second figure in the output tells whether a digit is right."""
    return frozenset() if "any" in words(tool, "metrics") else metrics(tool) - words(tool, "alone")


def attempt(tool: str, text: str) -> list[Reading]:
    """The readings, none if the output is refused. Any other exception is a failure."""
    module = parser(tool)
    try:
        readings: list[Reading] = module.parse(text)
    except OutputError as error:
        assert error.status in {"parse", "invalid", "generic"}
        return []
    assert all(v.isprintable() for v in conditions(tool, text).values())
    for reading in readings:
        looks_right(tool, reading)
    return readings


def looks_right(tool: str, reading: Reading) -> None:
    assert reading.unit in units.UNITS
    if reading.unit == "text":
        assert isinstance(reading.value, str) and len(reading.value) <= 500
        return
    free = "any" in words(tool, "metrics")
    assert free or reading.metric in metrics(tool)
    assert isinstance(reading.value, Decimal) and reading.value.is_finite()
    may_be_nothing = free or reading.metric in words(tool, "zero")
    assert (
        reading.value > 0
        or (reading.value == 0 and may_be_nothing)
        or (reading.metric in words(tool, "negative"))
    )
