"""The list of `module -t avail`: which of the programs that checks ask for it offers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from siteproof.sites.catalogue import Feature

MAX_MODULES = 50_000
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]{0,199}")
_MARK = re.compile(r"(?:\s*(?:\([^()\s]*\)|<[^<>\s]*>))+$")  # (D), (latest:default), <aL>


@dataclass(frozen=True)
class Offer:
    """A module and the features that it brings."""

    module: str
    features: tuple[str, ...]


def parse(text: str) -> list[str]:
    """The modules that `module -t avail` prints: no folders, no headers, marks such as (D) cut."""
    found: dict[str, None] = {}
    for line in text.splitlines()[:MAX_MODULES]:
        name = _MARK.sub("", line.strip())
        if not name.endswith((":", "/")) and _MODULE.fullmatch(name):
            found[name] = None
    return list(found)


def offers(modules: list[str], known: Mapping[str, Feature]) -> list[Offer]:
    """Of each feature the newest module that has its name; one module may bring several."""
    by_module: dict[str, list[str]] = {}
    for feature, about in known.items():
        candidates = [module for module in modules if _is_of(module, about.modules)]
        if candidates:
            by_module.setdefault(max(candidates, key=_version), []).append(feature)
    return [Offer(module, tuple(features)) for module, features in by_module.items()]


def _is_of(module: str, names: list[str]) -> bool:
    """Whether a module is one of these names, whatever its version: `apps/GROMACS/2024.1`."""
    parts = [part.lower() for part in module.split("/")]
    return any(part in names for part in parts[-2:])


def _version(module: str) -> tuple[tuple[int, object], ...]:
    """A version that compares by its numbers: 2024.10 is newer than 2024.9."""
    return tuple(_terms(module.rpartition("/")[2] if "/" in module else ""))


def _terms(version: str) -> Iterator[tuple[int, object]]:
    for term in re.findall(r"[0-9]+|[A-Za-z]+", version):
        yield (1, int(term)) if term.isdigit() else (0, term)
