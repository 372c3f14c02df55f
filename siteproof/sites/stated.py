"""What a site states of values: of conditions, host parameters, and the fields of a node.

Which fields `siteproof describe` reads of a node, what covers them, and the numbers in them. A
value of a node is untrusted, so a pattern is a glob (`*`, `?`, `[abc]`), which takes a time linear
in the value's length, and never a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from siteproof import units
from siteproof.errors import Mistake
from siteproof.sites.key_types import Model, Names, blanks, parse_tolerance, readable
from siteproof.units import count

# As checks/system/description.sh and parsers/description.py name them; a test compares.
FIELDS = (
    "address.*",
    "bios.*",
    "bmc.*",
    "cpu.*",
    "disk.*.*",
    "dns.*",
    "fc.*.*",
    "gpu.*",
    "host.name",
    "ib.*.*",
    "kernel.*",
    "limit.*",
    "lldp.*.*",
    "memory.*",
    "module.*",
    "mount.*",
    "nic.*.*",
    "os.*",
    "package.*",
    "packages.*",
    "pci.*",
    "raid.*",
    "server.*",
    "sysctl.*",
    "system.*",
    "tool.*",
)
# What is not read under one name is missing under these; any other name covers what begins with it.
ALSO_COVERS = {
    "nic.ethtool": (
        "nic.*.driver",
        "nic.*.driver_version",
        "nic.*.firmware",
        "nic.*.offload.*",
        "nic.*.flow_control",
        "nic.*.rings",
        "nic.*.coalescing",
        "nic.*.channels",
    ),
    "bios": ("bios.*", "system.*"),
    "disk.smart": ("disk.*.smart_*",),
    "package": ("package.*", "packages.*"),
}
# In these fields kB, MB and GB are powers of 1024, as the kernel, DIMMs and caches count.
_BINARY = ("memory.", "cpu.cache.")
_SPELLED = {"K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB"}

# A number that is not the beginning of another word, such as a version.
_NUMBER = re.compile(
    r"([+-]?[0-9]{1,40}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?)"
    r" ?([A-Za-z%][A-Za-z/]{0,11})?(?=[\s,;]|$) ?"
)
_WILD = re.compile(r"\*|\?|\[[^\]]*\]")


@dataclass(frozen=True)
class Number:
    """A number and what it measures: in the base unit of a known kind, else in `unit` itself."""

    value: Fraction
    unit: str


def is_read(name: str) -> bool:
    """Whether a field, or any field that a glob may match, is one that `describe` reads."""
    sample = _WILD.sub("x", name)
    return any(
        fnmatchcase(sample, known) or fnmatchcase(known.replace("*", "x"), name) for known in FIELDS
    )


def numbers_of(text: str, field: str = "") -> list[Number]:
    """The numbers with which a text begins, each with its unit. field: where it was read."""
    found, end = [], 0
    while match := _NUMBER.match(text, end):
        value, unit, end = Fraction(match[1]), match[2] or "", match.end()
        if field.startswith(_BINARY):
            unit = _SPELLED.get(unit.upper().removesuffix("B"), unit)
        kind, size = units.UNITS.get(unit, (unit, 1))
        found.append(Number(value * size, kind))
    return found


def number_of(text: str, field: str = "") -> Number | None:
    """The first of them; None if there is none."""
    return next(iter(numbers_of(text, field)), None)


def why_not_read(name: str, unreadable: Iterable[tuple[str, str]]) -> str:
    """The reasons why a field, or a field that a glob may match, was not read; "" where it was.

    unreadable: names of fields, or of what covers several, each with its reason.
    """
    reasons = {f"{part}: {why}": None for part, why in unreadable if _covers(part, name)}
    return "; ".join(reasons)


def _covers(part: str, name: str) -> bool:
    sample = _WILD.sub("x", name)
    if any(fnmatchcase(sample, glob) for glob in ALSO_COVERS.get(part, ())):
        return True
    begins = name.startswith(part) and (name[len(part) :] or ".")[0] in ".0123456789"
    return begins or fnmatchcase(part, name)


NODE = "{node}"
MAX_PATTERN, MAX_STARS = 200, 10  # characters of a glob, and wildcards in it
LONGEST = 2000  # characters of a value that can be as stated; parsers cut them at 500


class Expected(Model):
    """The rule for a value; a plain text stands for `exact`, a list for `one_of`."""

    exact: str | None = None
    """The value, as text; the number of blanks does not matter."""
    one_of: list[str] | None = Field(None, min_length=1)
    """The values allowed, as text."""
    pattern: Names | None = Field(None, min_length=1)
    """A glob that the whole value matches, or a list of such: '*E5-2680 v3*'."""
    about: str | None = None
    """A number, with its unit if the value has one: 128 GiB. Needs tolerance."""
    tolerance: Annotated[str, readable(parse_tolerance)] | None = None
    """How far `about` may be missed: 3 %."""
    at_least: str | None = None
    """The lowest number allowed, with its unit if the value has one; of several numbers, each is
    compared."""
    at_most: str | None = None
    """The highest number allowed, in the same way as `at_least`."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"exact": data}
        return {"one_of": data} if isinstance(data, list) else data

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        rules = [name for name in Expected.model_fields if name != "tolerance"]
        given = [name for name in rules if getattr(self, name) is not None]
        if len(given) > 1 and given != ["at_least", "at_most"]:
            raise Mistake(f"both {' and '.join(given)}", f"one of {', '.join(rules)}")
        if not given and getattr(self, "count", None) is None:
            raise Mistake("no value", f"a value, a list of values, or one of {', '.join(rules)}")
        if (self.about is None) != (self.tolerance is None):
            raise Mistake("about and tolerance belong together", "both, or neither")
        for text in (self.about, self.at_least, self.at_most):
            if text is not None and not numbers_of(text):
                raise Mistake(f"'{text}' is not a number", "numbers such as 24 or 128 GiB")
        return self

    @field_validator("pattern")
    @classmethod
    def _short_patterns(cls, patterns: list[str] | None) -> list[str] | None:
        for glob in patterns or ():
            if len(glob) > MAX_PATTERN or glob.count("*") > MAX_STARS:
                allowed = f"at most {MAX_PATTERN} characters and {MAX_STARS} times *"
                raise Mistake("a pattern that is too long", allowed)
        return patterns

    @property
    def texts(self) -> list[str]:
        """The values allowed; none where there is another rule."""
        return self.one_of or ([] if self.exact is None else [self.exact])

    def met_by(self, value: object, field: str = "", node: str = "") -> bool:
        """Whether a value as read meets this; a value that is not a number meets no bound.

        field: of a node's description, which decides what kB means, and whose texts are no
        numbers: version 1.10 is not 1.1. node: what {node} stands for.
        """
        if len(str(value)) > LONGEST:
            return False
        text = blanks(str(value))
        texts = [blanks(one).replace(NODE, node or NODE) for one in self.pattern or self.texts]
        if self.pattern:
            return any(fnmatchcase(text, glob) for glob in texts)
        if texts:
            return text in texts or not field and any(_same(text, one) for one in texts)
        found, (low, high) = numbers_of(text, field), self._ends()
        return (not low or _in_order(low, found)) and (not high or _in_order(found, high))

    def _ends(self) -> tuple[list[Number], list[Number]]:
        """The lowest and the highest numbers allowed; without one, empty."""
        if self.about is None:
            return numbers_of(self.at_least or ""), numbers_of(self.at_most or "")
        share = parse_tolerance(self.tolerance or "0 %")
        low, high = (
            [Number(one.value * (1 + by), one.unit) for one in numbers_of(self.about)]
            for by in (-share, share)
        )
        return low, high

    def __str__(self) -> str:
        if self.about is not None:
            return f"{self.about} +- {self.tolerance}"
        bounds = ((">=", self.at_least), ("<=", self.at_most))
        numbers = [f"{sign} {text}" for sign, text in bounds if text is not None]
        texts = [blanks(text) or "empty" for text in self.pattern or self.texts]
        return " or ".join(texts) or " and ".join(numbers)


def _in_order(low: Sequence[Number], high: Sequence[Number]) -> bool:
    """Whether the second numbers are as many, of the same units, and none is lower."""
    is_alike = [one.unit for one in low] == [one.unit for one in high]
    return is_alike and all(a.value <= b.value for a, b in zip(low, high, strict=True))


def _same(one: str, other: str) -> bool:
    """Whether both are numbers and equal, so that a condition 0.50 is met by 0.5."""
    try:
        return [*map(Decimal, one.split())] == [*map(Decimal, other.split())]
    except InvalidOperation:
        return False


class Fact(Expected):
    """What the fields of a name, or of a glob of names, must be; {node} is the node's name."""

    count: int | None = Field(None, ge=0, le=10**6)
    """How many fields of this name have such a value; without it, all of them, and at least one. 0:
    there is no such field."""

    def shown(self, node: str) -> str:
        """The rule in words, for a person: `8 times 16 GB, *`."""
        times = "" if self.count is None else count(self.count, "time")
        return f"{times} {self}".replace(NODE, node).strip()


def any_rule(model: type[Expected]) -> WithJsonSchema:
    """The JSON schema of a rule in any of its forms."""
    plain = {"type": ["string", "number", "boolean"]}
    values = {"type": "array", "items": {"type": ["string", "number"]}}
    keys = {"additionalProperties": False, "properties": {name: {} for name in model.model_fields}}
    mapping = {"type": "object", "minProperties": 1, **keys}
    return WithJsonSchema({"anyOf": [plain, values, mapping]})


Value = Annotated[Expected, any_rule(Expected)]
Stated = Annotated[Fact, any_rule(Fact)]


class FactSection(Model):
    """A section of the description of a node, and the facts that the site states of it."""

    description: str = ""
    """What the section is about, for the report."""
    source: str
    """The document and the paragraph that state it."""
    fields: dict[str, Stated] = {}
    """Expected values, by the name of a field that 'siteproof describe NODE' shows, or a glob of
    such names: nic.*.driver. {node} in a value is the node's name."""
    not_stated: str = ""
    """Why no field is given: what the document states, and no node can show."""

    @model_validator(mode="after")
    def _some_fields(self) -> FactSection:
        if bool(self.fields) == bool(self.not_stated):
            allowed = "fields with their values, or not_stated with the reason"
            raise Mistake("not one of fields and not_stated", allowed)
        return self
