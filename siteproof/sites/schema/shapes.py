"""Pydantic's errors as mistakes with lines and plain words; what is right is kept for lint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from datetime import date
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from siteproof.errors import Mistake, hint
from siteproof.sites.schema.yamlfile import Document, Loc, clip

M = TypeVar("M", bound=BaseModel)
Found = dict[str, Any]  # one of pydantic's errors
_CONSEQUENCE = "default_factory_not_called"  # pydantic, of a default that needs what is wrong
_MAX_REPAIRS = 9  # each repairs one level of the file
# By the beginning of pydantic's type of error: what to say, and what is allowed where the model
# has no keys to name.
_WORDS: dict[str, tuple[str, str]] = {
    "int": ("is not a whole number", "a whole number such as 2"),
    "bool": ("is neither true nor false", "true, false"),
    "dict": ("is not a mapping of keys", "keys with their values, such as '{a: b}'"),
    "model": ("is not a mapping of keys", "keys with their values, such as '{a: b}'"),
    "list": ("is not a list", "a list such as [a, b]"),
    "date": ("is not a date", "a date such as 2016-04-20"),
    "decimal": ("is not a number", "a number such as 1.5"),
    "string": ("is not text", "a single value, in quotes if it holds ': ' or '#'"),
}


def validate(
    document: Document, loc: Loc, model: type[M], raw: Any, *, gaps: bool = False
) -> M | None:
    """The model made from what is right in raw; every mistake goes to the document.

    What is wrong is left out, so that lint can check the rest. None: nothing is right.
    gaps: a key that must be given may be one, and is then empty in the model.
    """
    made, errors = _made(model, raw)
    if made is None:
        raw = deepcopy(raw)
        for found in errors:
            _note(document, loc, model, found, gaps=gaps)
    for _ in range(_MAX_REPAIRS):
        if made is not None:
            document.note_empty(loc)
            return made
        if any(not found["loc"] for found in errors):
            document.spoil(loc)
            return None
        for found in errors:
            _repair(model, raw, found)
        made, errors = _made(model, raw)
    return None


def entries(
    document: Document, model: type[M], *, gaps: bool = False, apart: str = ""
) -> Iterator[tuple[str, M]]:
    """What is right in a file of one entry a key, with its key; see `validate`.

    apart: the key that is not such an entry.
    """
    for key, raw in (document.data or {}).items():
        if key == apart:
            continue
        found = validate(document, (key,), model, raw, gaps=gaps)
        if found is not None:
            yield key, found


def _made(model: type[M], raw: Any) -> tuple[M | None, list[Found]]:
    try:
        return model.model_validate(raw), []
    except ValidationError as error:
        every = [Found(e) for e in error.errors(include_url=False)]
        errors = [found for found in every if found["type"] != _CONSEQUENCE]
        for found in errors:  # pydantic marks a mistake in the name of a key
            found["loc"] = tuple(part for part in found["loc"] if part != "[key]")
        return None, errors


def near(document: Document, loc: Loc, name: str, known: Iterable[str]) -> str:
    """The hint for a name at a key; none where the mistake is not reported."""
    return "" if document.is_full or document.spoilt(loc) else hint(name, known)


def _note(
    document: Document, loc: Loc, model: type[BaseModel], found: Found, *, gaps: bool
) -> None:
    """A finding of pydantic as a mistake, unless the key, or one around it, has one already."""
    here = (*loc, *found["loc"])
    if gaps and here in document.gaps:
        return
    if document.is_full:
        document.add(here, "")  # it is only counted
    elif not document.spoilt(here):
        _explain(document, here, model, found)
    document.spoil(here)


def _explain(document: Document, here: Loc, model: type[BaseModel], found: Found) -> None:
    """Note what is wrong, in plain words, and what is allowed."""
    kind, context, value = found["type"], found.get("ctx", {}), found["input"]
    if kind == "missing":
        document.add(here[:-1], f"missing key '{here[-1]}'")
    elif kind == "extra_forbidden":
        keys = _keys(model, found["loc"][:-1])
        what = f"unknown key '{clip(here[-1])}'{_key_hint(model, found['loc'], keys)}"
        document.add(here, what, keys, inside=True)
    elif isinstance(error := context.get("error"), Mistake):
        document.add(here, str(error), error.allowed, error.hint)
    elif kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        what = f"unknown value {_shown(value)}{hint(str(value), allowed)}"
        document.add(here, what, allowed)
    elif kind == "too_short":
        document.add(here, "nothing given", "at least one entry")
    elif kind == "greater_than_equal":
        document.add(here, f"{_shown(value)} is below {context['ge']}", f"at least {context['ge']}")
    elif kind == "less_than_equal":
        document.add(here, f"{_shown(value)} is above {context['le']}", f"at most {context['le']}")
    else:
        what, example = _WORDS.get(kind.partition("_")[0], (found["msg"].lower(), ""))
        document.add(here, f"{_shown(value)} {what}", _keys(model, found["loc"]) or example)


def _key_hint(model: type[BaseModel], loc: Loc, keys: list[str]) -> str:
    """The key for which other programs have this name, else the nearest one."""
    at = _model_at(model, loc[:-1])
    meant = getattr(at, "OTHER_NAMES", {}).get(loc[-1])
    return f" (did you mean '{meant}'?)" if meant else hint(loc[-1], keys)


def _shown(value: Any) -> str:
    """The value as a person would recognise it."""
    if value is None:
        return "an empty value"
    names: dict[type, str] = {dict: "a mapping", list: "a list"}
    return names.get(type(value)) or f"'{clip(value)}'"


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """The model at a place below another one."""
    annotation: Any = model
    for part in loc:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            field = annotation.model_fields.get(part)
            annotation = field.annotation if field else None
        else:
            annotation = (get_args(annotation) or (None,))[-1]
        annotation = bare(annotation)
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_model else None


def bare(annotation: Any) -> Any:
    """Without `| None` and without Annotated."""
    while get_origin(annotation) not in (None, dict, list):
        annotation = next(a for a in get_args(annotation) if a is not type(None))
        if isinstance(annotation, str):  # a Literal
            return None
    return annotation


def _keys(model: type[BaseModel], loc: Loc) -> list[str]:
    found = _model_at(model, loc)
    return list(found.model_fields) if found else []


def _repair(model: type[BaseModel], raw: Any, found: Found) -> None:
    """Take out what is wrong; put something empty where something is missing."""
    loc = found["loc"]
    loc = loc[: next((n for n, part in enumerate(loc) if isinstance(part, int)), len(loc))]
    for part in loc[:-1]:
        raw = raw.get(part) if isinstance(raw, dict) else None
    if not isinstance(raw, dict):
        return
    if found["type"] == "missing":
        raw[loc[-1]] = _empty(_model_at(model, loc[:-1]), loc[-1])
    else:
        raw.pop(loc[-1], None)


def _empty(model: type[BaseModel] | None, key: Any) -> Any:
    annotation = model.model_fields[key].annotation if model else str
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        return {}
    empty: dict[Any, Any] = {list: [], dict: {}, date: "1970-01-01"}
    return empty.get(origin, "")
