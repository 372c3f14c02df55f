"""Pydantic's findings as mistakes in our words, with lines; and what is right kept for lint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from datetime import date
from difflib import get_close_matches
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from siteproof.schema.yamlfile import Document, Loc, clip

M = TypeVar("M", bound=BaseModel)
_CONSEQUENCE = "default_factory_not_called"  # pydantic, of a default that needs what is wrong
_WORDS: dict[str, tuple[str, str]] = {
    "int": ("is no whole number", ""),
    "bool": ("is neither true nor false", "true, false"),
    "dict": ("is no mapping of keys", ""),
    "model": ("is no mapping of keys", ""),
    "list": ("is no list", "a list such as [a, b]"),
    "date": ("is no date", "a date such as 2016-04-20"),
    "decimal": ("is no number", ""),
    "string": ("is no text", ""),
}


def validate(document: Document, loc: Loc, model: type[M], raw: Any) -> M | None:
    """The model made from what is right in raw; every mistake goes to the document.

    What is wrong is left out, so that lint can say more about the rest. None: nothing is right.
    """
    first = True
    for _ in range(9):  # each turn repairs one level
        try:
            made = model.model_validate(raw)
            document.tell_empty(loc)
            return made
        except ValidationError as error:
            errors = [e for e in error.errors(include_url=False) if e["type"] != _CONSEQUENCE]
        raw = deepcopy(raw) if first else raw
        for found in errors:
            if first:
                _note(document, loc, model, found)
            if not found["loc"]:
                document.spoil(loc)
                return None
            _repair(model, raw, found)
        first = False
    return None


def hint(word: str, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)" or nothing."""
    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _note(document: Document, loc: Loc, model: type[BaseModel], found: ErrorDetails) -> None:
    here = (*loc, *found["loc"])
    if document.spoilt(here):
        return
    say: Callable[..., None] = document.add
    document.spoil(here)
    if found["type"] == "missing":
        say(here[:-1], f"missing key '{here[-1]}'")
    elif found["type"] == "extra_forbidden":
        keys = _keys(model, found["loc"][:-1])
        say(here, f"unknown key '{clip(here[-1])}'{hint(here[-1], keys)}", keys, inside=True)
    elif found["type"] == "siteproof":
        say(here, clip_long(found["ctx"]["what"]), found["ctx"]["allowed"])
    elif found["type"] == "literal_error":
        allowed = re.findall(r"'([^']*)'", found["ctx"]["expected"])
        word = _word(found["input"])
        say(here, f"{word} is not known{hint(str(found['input']), allowed)}", allowed)
    elif found["type"] in ("greater_than_equal", "less_than_equal"):
        side, end = ("below", "ge") if "ge" in found["ctx"] else ("above", "le")
        say(here, f"{_word(found['input'])} is {side} {found['ctx'][end]}")
    else:
        what, example = _WORDS.get(found["type"].partition("_")[0], (found["msg"].lower(), ""))
        say(here, f"{_word(found['input'])} {what}", example or _keys(model, found["loc"]))


def clip_long(text: str) -> str:
    """A sentence of ours that may quote something endless."""
    return text if len(text) <= 300 else f"{text[:297]}..."


def _word(value: Any) -> str:
    """The value as a person would recognise it."""
    if value is None:
        return "an empty value"
    names: dict[type, str] = {dict: "a mapping", list: "a list"}
    return names.get(type(value)) or f"'{clip(value)}'"


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """The model that stands at a place below another one."""
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


def _repair(model: type[BaseModel], raw: Any, found: ErrorDetails) -> None:
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
