"""Rows of history from samples that `samples.read` has accepted: the slow and exact way in."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from siteproof import series, units
from siteproof.analysis.verdict import PUBLISHED
from siteproof.comparison import CONTRACTUAL
from siteproof.samples import Header, Sample

SITEPROOF, REFRAME = "siteproof", "reframe"  # sources, beside PUBLISHED


def canonical(texts: Mapping[str, str]) -> str:
    """An object as JSON, the same text for the same content."""
    return json.dumps(dict(texts), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def utc(text: str) -> datetime:
    """A time with its zone as UTC without one, as the column `time` has it."""
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def head_row(head: Header, file: str) -> dict[str, Any]:
    """What all rows of a file share."""
    return {
        "system": head.system, "partition": head.partition, "environment": head.environment,
        "session": head.session, "campaign": head.campaign, "mode": head.mode,
        "check_name": head.check, "job": head.job, "time": utc(head.time), "file": file,
        "source": PUBLISHED if head.mode == PUBLISHED else SITEPROOF,
    }


def run_row(head: Header, file: str, count: int) -> dict[str, Any]:
    """The row of `runs` of a file with `count` samples."""
    return head_row(head, file) | {
        "expected": head.expected, "samples": count, "conditions": canonical(head.conditions),
        "provenance": canonical(head.provenance),
    }


def sample_row(sample: Sample, file: str) -> dict[str, Any]:
    """The row of `samples` of one sample."""
    is_ok, number = sample.status == "ok", sample.value
    value = float(number) if isinstance(number, Decimal) else None
    return head_row(sample.header, file) | {
        "node": sample.node, "metric": sample.metric, "value": value,
        "digits": str(number) if is_ok else None, "unit": sample.unit if is_ok else "",
        "base": None if value is None else value * factor(sample.unit),
        "kind": units.kind(sample.unit) if is_ok else "", "status": sample.status,
        "why": sample.why, "trial": sample.trial, "dims": canonical(sample.dims),
        "conditions": canonical(sample.conditions), "series": number_of(sample),
    }


@functools.cache
def factor(unit: str) -> float:
    """The size of a unit in the base unit of its kind."""
    return float(units.UNITS[unit][1])


def number_of(sample: Sample) -> int:
    """The number of a sample's series: of context, metric and dimensions, each hashed by itself."""
    dims = {k: v for k, v in sample.dims.items() if k not in series.OF_A_RUN}
    return of_context(sample) ^ hashed("metric", sample.metric) ^ hashed("dims", canonical(dims))


def of_context(sample: Sample) -> int:
    """What the system, the environment and the deciding conditions give to a series' number."""
    head, decide = sample.header, series.conditions(sample)
    if decide["mode"] in CONTRACTUAL:
        decide["mode"] = CONTRACTUAL[0]
    return hashed("context", canonical(
        {"system": head.system, "environment": head.environment, "conditions": canonical(decide)}))


@functools.lru_cache(maxsize=1 << 16)
def hashed(*words: str) -> int:
    """A number of 64 bits, the same on every machine."""
    digest = hashlib.blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def columns(rows: Iterable[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    """Rows turned into columns."""
    held = list(rows)
    return {name: [row[name] for row in held] for name in names}
