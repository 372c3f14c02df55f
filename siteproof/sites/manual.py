"""The manual of the site files, made from the schema: each key with its one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, TypeAdapter

from siteproof.schema.shapes import bare
from siteproof.sites.catalogue import Metric
from siteproof.sites.hosts_csv import HostRow
from siteproof.sites.lint_promise import OWNER
from siteproof.sites.promise import Baseline, Criterion
from siteproof.sites.published_csv import Published
from siteproof.sites.stated import Fact
from siteproof.sites.system import Expected, System
from siteproof.sites.timeline_csv import Milestone
from siteproof.sites.waiver import Waiver
from siteproof.sites.windows_csv import PlannedWindow

FILES: dict[str, Any] = {
    "system.yaml": System,
    "criteria.yaml": dict[str, Criterion],
    "baselines.yaml": dict[str, Baseline],
    "waivers.yaml": dict[str, Waiver],
    "published.csv": Published,
    "timeline.csv": Milestone,
    "hosts.csv": HostRow,
    "windows.csv": PlannedWindow,
    "checks/*/catalogue.yaml": dict[str, Metric],
}


OWNER_SENTENCE = "The system that the baselines belong to; those of another one are refused."


class Key(NamedTuple):
    """One key of a file: its dotted place, whether it must be given, its sentence and its words."""

    place: str
    required: bool
    sentence: str
    choices: tuple[str, ...] = ()


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
    for name, field in model.model_fields.items():
        here = (*place, name)
        choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        yield Key(".".join(here), field.is_required(), field.description or "", choices)
        inner, names = bare(field.annotation), here
        if get_origin(inner) is dict:
            inner, names = bare(get_args(inner)[1]), (*here, "NAME")
        is_model = isinstance(inner, type) and issubclass(inner, BaseModel)
        if is_model and inner not in (Expected, Fact):  # their forms are listed once, below
            yield from _keys(inner, names)


def expected_values() -> list[Key]:
    """The forms of an expected value, which parameters and conditions share."""
    return list(_keys(Expected, ("VALUE",)))


def stated_values() -> list[Key]:
    """The forms of a stated value, which all `fields` of `facts` share."""
    return list(_keys(Fact, ("FACT",)))
