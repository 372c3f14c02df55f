"""The manual of the site files, made from the schema: each key with its one sentence.

And what Siteproof leaves on a disk, and the variables that a user may set, from docs/files.md: a
test compares both with what the programs really write and read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, TypeAdapter

from siteproof import files
from siteproof.installed import SUITE
from siteproof.sites.catalogue import Metric
from siteproof.sites.lint_promise import OWNER
from siteproof.sites.promise import Baseline, Criterion, Waiver
from siteproof.sites.schema.shapes import bare
from siteproof.sites.site_tables import HostRow, Milestone, PlannedWindow, Published
from siteproof.sites.stated import Expected, Fact
from siteproof.sites.system import System, Whole

FILES: dict[str, Any] = {
    "system.yaml": System,
    "system.yaml, with members": Whole,
    "criteria.yaml": dict[str, Criterion],
    "baselines.yaml": dict[str, Baseline],
    "waivers.yaml": dict[str, Waiver],
    "published.csv": Published,
    "timeline.csv": Milestone,
    "hosts.csv": HostRow,
    "windows.csv": PlannedWindow,
    "checks/*/catalogue.yaml": dict[str, Metric],
}
FORMS: dict[Any, str] = {Expected: "VALUE", Fact: "FACT"}  # models whose keys are listed once
KINDS = {  # the types of JSON, for people; null is a key that is left out
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "keys",
    "null": "",
    "": "any value",
}
OWNER_SENTENCE = "The system that the baselines belong to; those of another one are refused."


class Key(NamedTuple):
    """One key of a file: its dotted place, whether it must be given, its sentence and its words.

    kind: of its value, in words. default: None where the key may be left out without one.
    """

    place: str
    required: bool
    sentence: str
    choices: tuple[str, ...] = ()
    kind: str = "text"
    default: object = None


def schema(files: Mapping[str, Any] = FILES) -> dict[str, Any]:
    """The JSON schemas of files, by file name."""
    found = {
        name: TypeAdapter(model).json_schema()
        for name, model in files.items()
        if not name.startswith("checks/")
    }
    owner = {"type": "string", "description": OWNER_SENTENCE}
    found["baselines.yaml"] |= {"properties": {OWNER: owner}}
    return found


def keys(file: str, files: Mapping[str, Any] = FILES) -> list[Key]:
    """Every key of a file, in the order of the schema; NAME is any name."""
    model = files[file]
    if get_origin(model) is dict:
        owner = [Key(OWNER, True, OWNER_SENTENCE)] if file == "baselines.yaml" else []
        return [*owner, *_keys(get_args(model)[1], ("ID",))]
    return list(_keys(model, ()))


def _keys(model: type[BaseModel], place: tuple[str, ...]) -> Iterator[Key]:
    schemas = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        here = (*place, name)
        inner, by_name = bare(field.annotation), list[str]()
        if get_origin(inner) is dict:
            inner, by_name = bare(get_args(inner)[1]), ["NAME"]
        form, needed = FORMS.get(inner, ""), field.is_required()
        kind = f"{form}{' by name' * len(by_name)}" if form else _kind(schemas[name])
        choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        default = None if needed or field.default_factory else field.default
        sentence = schemas[name].get("description", "")
        yield Key(".".join(here), needed, sentence, choices, kind, default)
        if isinstance(inner, type) and issubclass(inner, BaseModel) and not form:
            yield from _keys(inner, (*here, *by_name))


def _kind(schema: Mapping[str, Any]) -> str:
    """What a value is, in words, from its JSON schema: `size`, `list of text`."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(filter(None, map(_kind, schema["anyOf"]))))
    if measured := schema.get("x-kind"):
        return f"{measured}, such as {schema['examples'][0]}"
    if schema.get("format") == "date":
        return "date"
    types = schema.get("type", "object" if "$ref" in schema else "")
    if types == "array":
        return f"list of {_kind(schema['items']) or 'any value'}"
    if isinstance(types, list):
        return " or ".join(KINDS[one] for one in types)
    return KINDS[types]


def forms() -> dict[str, list[Key]]:
    """The forms of a value that many keys share, by the word for it."""
    return {name: list(_keys(model, (name,))) for model, name in FORMS.items()}


PAGE = SUITE / "docs/files.md"
DATA, CACHE = "data folder", "cache folder"
_IN = "in the "


class Place(NamedTuple):
    """A file or folder. below: DATA, CACHE or the clone. path: a glob; SYSTEM and such: any name.

    deletable: what is lost with it, or that nothing is.
    """

    below: str
    path: str
    what: str
    writer: str
    deletable: str


def places() -> list[Place]:
    """The files and folders, as the page lists them."""
    return [
        Place(head.removeprefix(_IN), *row)
        for head, rows in _tables().items()
        for row in rows
        if head.startswith(_IN)
    ]


def variables() -> dict[str, str]:
    """What each variable does."""
    return dict(_tables()["variable"])


def _tables() -> dict[str, list[list[str]]]:
    """The rows of each table of the page, by the head of its first column."""
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in files.read_named(PAGE).decode().splitlines():
        cells = [cell.strip("` ") for cell in line.strip("| ").split(" | ")]
        if line.startswith("| `"):
            rows.append(cells)
        elif line.startswith("| ") and not line.startswith("| -"):
            rows = found.setdefault(cells[0], [])
    return found
