"""fio 3 with --output-format=json: text in, readings out. One job a run."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures

WRONG_DATA = 84  # EILSEQ: what fio's own verification reports
DIRECTIONS = ("read", "write")
P99 = "99.000000"

_MESSAGE = re.compile(r"(?:fio|note|verify|file)\b[ -~]{0,300}")
_OPTIONS = {"ioengine": "engine", "iodepth": "depth"}


def parse(text: str) -> list[Reading]:
    """Of each direction that has moved data: its rate (MB/s), _iops, _p99 (us) and _bytes.

    The dimension `block` is the bytes of each request.

    Raises OutputError: `invalid` if what fio read is not what it wrote.
    """
    job = _job(text)
    readings = [r for d in DIRECTIONS for r in _direction(d, _part(job, d))]
    if not readings:
        raise OutputError("fio: no data was moved", "invalid")
    return readings


def conditions(text: str) -> dict[str, str]:
    """Version, engine, depth (requests at a time) and direct (yes or no), as fio was asked."""
    try:
        result = _result(text)
        shared = result.get("global options")  # those that went before --name
        options = {
            **(shared if isinstance(shared, dict) else {}),
            **_part(_only(result), "job options"),
        }
    except OutputError:
        return {}
    found = {name: options[key] for key, name in _OPTIONS.items() if key in options}
    found["depth"] = found.get("depth", "1")
    found["direct"] = "yes" if options.get("direct") == "1" else "no"
    found["version"] = str(result["fio version"])
    return {key: value for key, value in found.items() if _plain(value)}


def _job(text: str) -> dict[str, Any]:
    """The only job's results. Raises OutputError where it had an error."""
    job = _only(_result(text))
    error = str(job.get("error"))
    if error == str(WRONG_DATA):
        raise OutputError("fio: what was read is not what was written", "invalid")
    if error != "0":
        raise OutputError(f"fio: job failed: {_said(text)}", "generic")
    return job


def _result(text: str) -> dict[str, Any]:
    """What stands in the JSON. Messages may go before it. Raises OutputError."""
    start = re.search(r"^\{", text, re.MULTILINE)
    before = text[: start.start()] if start else text
    if any(not _MESSAGE.fullmatch(line) for line in before.splitlines() if line.strip()):
        raise OutputError("fio: no JSON, or something before it")
    if not start:
        raise OutputError(
            f"fio: no result: {_said(text)}", "generic" if before.strip() else "parse"
        )
    try:  # numbers stay the text that was printed
        result = json.loads(
            text[start.start() :], parse_float=str, parse_int=str, parse_constant=str
        )
    except (ValueError, RecursionError):
        raise OutputError("fio: cut off, or no JSON") from None
    if not isinstance(result, dict) or not _plain(result.get("fio version")):
        raise OutputError("fio: JSON, and not fio's")
    return result


def _only(result: dict[str, Any]) -> dict[str, Any]:
    jobs = result.get("jobs")
    if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], dict):
        raise OutputError("fio: not exactly one job")
    return jobs[0]


def _part(held: dict[str, Any], key: str) -> dict[str, Any]:
    part = held.get(key)
    if not isinstance(part, dict):
        raise OutputError(f"fio: no '{key}'")
    return part


def _direction(name: str, part: dict[str, Any]) -> list[Reading]:
    """The readings of one direction; none where nothing was moved."""

    def figure(key: str) -> Decimal:
        return figures.number(f"fio: {name} {key}", str(part.get(key)))

    count, size = figure("total_ios"), figure("io_bytes")
    if count == 0 and size == 0:
        return []
    rate, iops = figure("bw_bytes"), figure("iops")
    seconds = figures.positive(f"fio: {name} runtime", str(part.get("runtime"))) / 1000
    figures.must_agree(f"fio: {name} rate", rate, size, seconds)
    figures.must_agree(f"fio: {name} iops", iops, count, seconds)
    if count == 0 or size % count:
        raise OutputError(f"fio: {name} {size} bytes are not {count} whole blocks")
    dims = {"block": str(size // count)}
    percentiles = _part(_part(part, "clat_ns"), "percentile")
    late = figures.positive(f"fio: {name} p99", str(percentiles.get(P99)))
    return [
        Reading(name, rate.scaleb(-6), "MB/s", dims),
        Reading(f"{name}_iops", iops, "IOPS", dims),
        Reading(f"{name}_p99", late.scaleb(-3), "us", dims),
        Reading(f"{name}_bytes", size, "B", dims),
    ]


def _said(text: str) -> str:
    lines = [line for line in text.splitlines() if _MESSAGE.fullmatch(line)]
    return lines[0].removeprefix("fio: ") if lines else "without a word"


def _plain(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 40 and value.isprintable()
