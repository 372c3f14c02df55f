"""JSON documents that keep to their schema, which explains each of their keys."""

from __future__ import annotations

import copy
import json
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from siteproof.cli.export import schema_of


def strict(document: str) -> Any:
    """The schema, in which a key that it does not explain is an error."""

    def closed(held: Any) -> Any:
        if isinstance(held, dict):
            held = {key: closed(value) for key, value in held.items()}
            if "properties" in held:
                held.setdefault("additionalProperties", False)
        return [closed(value) for value in held] if isinstance(held, list) else held

    return closed(copy.deepcopy(schema_of(document)))


def check(document: str, text: str) -> Any:
    """The document that the text holds, once it keeps to the schema."""

    def no_constant(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    read = json.loads(text, parse_constant=no_constant)
    Draft202012Validator(strict(document), format_checker=FormatChecker()).validate(read)
    return read


def kinds(read: Any) -> list[tuple[str, str]]:
    """Kind and subject of each finding of a document."""
    return [(why["kind"], why.get("subject", "")) for why in read["findings"]]
