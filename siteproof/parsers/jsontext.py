"""JSON as tools print it. Numbers stay the text that was printed."""

from __future__ import annotations

import json
from typing import Any

from siteproof.errors import OutputError
from siteproof.parsers import values

QUOTE = 60  # characters of a broken line
MAX_WORD = 100  # characters of a text that becomes a condition
Object = dict[str, Any]

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


def load(tool: str, text: str, start: int = 0) -> tuple[Object, str]:
    """The object that begins at `start`, and the text after it. Raises OutputError."""
    if not text.startswith("{", start):
        raise no_json(tool, text)
    try:
        found, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _broken(tool, error) from None
    except (ValueError, RecursionError):
        raise OutputError(f"{tool}: its JSON has too many levels or digits") from None
    if not isinstance(found, dict):
        raise OutputError(f"{tool}: JSON of another program")
    return found, text[end:].strip()


def no_json(tool: str, text: str) -> OutputError:
    """The refusal of an output that is not JSON."""
    return OutputError(
        f"{tool}: text where JSON is expected" if text.strip() else f"{tool}: no output"
    )


def _broken(tool: str, error: json.JSONDecodeError) -> OutputError:
    """Cut off where the text ends too early; else the place, such as a decimal comma."""
    if error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip():
        return OutputError(f"{tool}: its JSON is cut off")
    found = error.doc.splitlines()[error.lineno - 1].strip()[:QUOTE]
    return OutputError(f"{tool}: its JSON is broken in line {error.lineno}: {found}")


def part(tool: str, whole: Object, key: str) -> Object:
    """The object below a key. Raises OutputError."""
    found = whole.get(key)
    if not isinstance(found, dict):
        raise OutputError(f"{tool}: no '{key}'")
    return found


def rows(tool: str, whole: Object, key: str) -> list[Object]:
    """The list of objects below a key. Raises OutputError."""
    found = whole.get(key)
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise OutputError(f"{tool}: no '{key}'")
    return found


def only(tool: str, whole: Object, key: str) -> Object:
    """The one object in the list below a key. Raises OutputError."""
    return values.only(tool, key, rows(tool, whole, key))


def words(found: Object) -> dict[str, str]:
    """Those of the values that are short, printable texts: what may become a condition."""
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, str) and 0 < len(value) <= MAX_WORD and value.isprintable()
    }
