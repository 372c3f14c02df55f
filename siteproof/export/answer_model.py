"""What a command answers, typed: a dataclass whose fields are the keys of its JSON, in their order.

Its docstring has a sentence for each key, `key: sentence.`, from which the schema is made. A field
with a default is left out of the JSON while it has that. The _ at the end of `from_` is no part of
the key.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ClusterShell.NodeSet import NodeSet

from siteproof import __version__
from siteproof.record.finding import Details, Finding
from siteproof.wording.findings import sentence

FORMAT: Literal[1] = 1  # another number only if a key is removed or changes its meaning
SCHEMAS: dict[Any, dict[str, Any]] = {
    Any: {},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Details: {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}},
    float: {"type": "number"},
    Fraction: {"type": "number"},
    int: {"type": "integer"},
    NodeSet: {"type": "string"},
    str: {"type": "string"},
    type(None): {"type": "null"},
}
LEVELS = 3  # of a document whose parts have a line each
PLAIN = (str, int, type(None))  # which JSON has
SCALARS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (float | Fraction, lambda value: float(value) if math.isfinite(value) else None),
    (datetime, lambda value: value.isoformat(timespec="seconds")),
    (NodeSet, str),
)
Time = Annotated[str, ("format", "date-time")]  # ISO 8601, with its zone
Code = Annotated[int, ("minimum", 0), ("maximum", 3)]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Answer:
    """What every answer begins with.

    format: The form of this document. It changes when a key is removed or gets another meaning; a
        new key does not change it.
    version: The version of Siteproof that wrote it.
    made: When this document was made.
    system: The system that it is about.
    samples_of: Which samples it rests on, in words: a session, a campaign, since when.
    exit_code: What the command ends with.
    """

    format: Literal[1] = field(default=FORMAT, init=False)
    version: str = field(default=__version__, init=False)
    made: Time = field(default_factory=_now, init=False)
    system: str
    samples_of: str
    exit_code: Code


def same(source: object, *names: str) -> dict[str, Any]:
    """What an answer has by the same names as its source; None where there is no source."""
    return {name: getattr(source, name, None) for name in names}


def dumps(answer: Answer) -> str:
    """An answer as text, ASCII only; JSON has no NaN and no infinity."""
    return _text(plain(answer), LEVELS)


_ENCODER = json.JSONEncoder(allow_nan=False)


def _text(value: Any, levels: int) -> str:
    """As json.dumps with an indent, which is slow, but whole items below some levels on a line."""
    if not (levels and value and isinstance(value, dict | list)):
        return _ENCODER.encode(value)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_text(one, levels - 1)}" for key, one in value.items()]
    else:
        parts = [_text(one, levels - 1) for one in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    line = "\n" + " " * (LEVELS - levels)
    return f"{begin}{line} {f',{line} '.join(parts)}{line}{end}"


def plain(value: Any) -> Any:
    """A value as JSON has it: null for NaN and infinity, texts for times and sets of nodes."""
    kind: Any = type(value)
    form = _form(kind)
    return form(value) if form else value


@cache
def _form(kind: Any) -> Callable[[Any], Any] | None:
    """What makes JSON of each value of a type; None: it is JSON. A fleet has a million values."""
    if issubclass(kind, PLAIN):
        return None
    if form := next((form for one, form in SCALARS if issubclass(kind, one)), None):
        return form
    if issubclass(kind, Finding):
        return _of_finding
    if is_dataclass(kind):
        return _of_fields(kind)
    if issubclass(kind, Mapping):
        return lambda value: {str(key): plain(part) for key, part in value.items()}
    return lambda value: list(map(plain, value))


def _of_finding(why: Finding) -> dict[str, Any]:
    text = sentence(why) if why.text else ""
    return {key: plain(part) for key, part in replace(why, text=text).record().items()}


def _of_fields(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """What makes JSON of each value of a dataclass; the types of its fields say what JSON has."""
    hints, known = get_type_hints(kind, include_extras=True), fields(kind)
    keys = {one.name: _key(one) for one in known}
    optional = {_key(one): one.default for one in known if _optional(one)}
    others = [_key(one) for one in known if not _is_plain(hints[one.name])]
    return partial(_object_of, keys, optional, others)


def _object_of(
    keys: Mapping[str, str], optional: Mapping[str, object], others: Sequence[str], value: object
) -> dict[str, Any]:
    found = {key: getattr(value, name) for name, key in keys.items()}
    for key, default in optional.items():
        if found[key] == default:
            del found[key]
    for key in others:
        if found.get(key) is not None:
            found[key] = plain(found[key])
    return found


def _is_plain(kind: Any) -> bool:
    """Whether JSON has each value of a type, which is no list and no object."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_plain(args[0])
    if origin in (Union, UnionType):
        return all(map(_is_plain, args))
    return origin is Literal or (isinstance(kind, type) and issubclass(kind, PLAIN))


def _key(one: Field[Any]) -> str:
    return one.name.rstrip("_")


def _optional(one: Field[Any]) -> bool:
    """Whether a key is left out while it has its default."""
    return one.init and one.default is not MISSING


# ---- the schema


def schema(answer: type[Answer], document: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the answer of a command, complete in itself."""
    parts: dict[str, Any] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"siteproof {document} --json",
        **_of(answer, parts),
        "$defs": parts,
    }


def _of(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; that of a dataclass is put into `parts`."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _of(args[0], parts) | dict(args[1:])
    if origin in (Union, UnionType):
        return {"anyOf": [_of(one, parts) for one in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if kind in SCHEMAS:
        return dict(SCHEMAS[kind])
    if issubclass(origin or kind, Mapping):
        return {"type": "object", "additionalProperties": _of(args[1], parts)}
    if issubclass(origin or kind, Enum):
        return {"type": "string", "enum": list(map(str, kind))}
    if not is_dataclass(kind):
        return {"type": "array", "items": _of(args[0], parts)}
    name = str(getattr(kind, "__name__", ""))
    if name not in parts:
        parts[name] = {}  # it may hold itself
        parts[name] = _object(kind, parts)
    return {"$ref": f"#/$defs/{name}"}


def _object(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass: its keys, each with its sentence."""
    texts, known = sentences(kind), fields(kind)
    hints = get_type_hints(kind, include_extras=True)
    return {
        "type": "object",
        "description": texts[""],
        "required": [_key(one) for one in known if not _optional(one)],
        "properties": {
            _key(one): _of(hints[one.name], parts) | {"description": texts[one.name]}
            for one in known
        },
    }


def sentences(kind: Any) -> dict[str, str]:
    """What the docstrings of a dataclass have of the whole, as '', and of each of its fields."""
    names = "|".join(one.name for one in fields(kind))
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):  # what a class adds comes after what it is made of
        whole, *rest = re.split(rf"^({names}): ", inspect.cleandoc(one.__doc__ or ""), flags=re.M)
        texts = dict(zip(["", *rest[::2]], [whole, *rest[1::2]], strict=True))
        found |= {name: " ".join(text.split()) for name, text in texts.items()}
    return found
