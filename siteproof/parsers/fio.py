"""fio 3 with --output-format=json: text in, readings out. One job a run."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values
from siteproof.parsers.values import Object

NEEDS = "fio 3 with --output-format=json and one job, without --status-interval"

WRONG_DATA = 84  # EILSEQ: what fio's own verification reports
DIRECTIONS = ("read", "write")
P99 = "99.000000"

_MESSAGE = re.compile(r"(?:fio|note|verify|file)\b[ -~]{0,300}")


def parse(text: str) -> list[Reading]:
    """Of each direction that has moved data: its rate (MB/s), _iops, _p99 (us) and _bytes.

    The dimension `block` is the bytes of each request.

    Raises OutputError: `invalid` if what fio read is not what it wrote.
    """
    job = values.only_object("fio", _result(text), "jobs")
    error = str(job.get("error"))
    if error == str(WRONG_DATA):
        raise OutputError("fio: what was read is not what was written", "invalid")
    if error != "0":
        raise OutputError(f"fio: job failed: {_message(text)}", "generic")
    readings = []
    for direction in DIRECTIONS:
        readings += _direction(direction, values.part("fio", job, direction))
    if not readings:
        raise OutputError("fio: no data was moved", "invalid")
    return readings


def conditions(text: str) -> dict[str, str]:
    """Version, engine, depth (requests at a time) and direct (yes or no), as fio prints them."""
    try:
        result = _result(text)
        job = values.only_object("fio", result, "jobs")
        options = values.part("fio", job, "job options")
    except OutputError:
        return {}
    shared = result.get("global options")  # those that were given before --name
    if isinstance(shared, dict):
        options = {**shared, **options}
    found = {
        "engine": options.get("ioengine"),
        "depth": options.get("iodepth", "1"),
        "direct": "yes" if options.get("direct") == "1" else "no",
        "version": result["fio version"],
    }
    return values.words(found)


def _result(text: str) -> Object:
    """fio's JSON. What it or its launcher printed may precede it. Raises OutputError."""
    start = re.search(r"^\{", text, re.MULTILINE)
    if not start:
        lines = [line for line in text.splitlines() if line.strip()]
        if lines and all(_MESSAGE.fullmatch(line) for line in lines):
            raise OutputError(f"fio: no result: {_message(text)}", "generic")
        raise values.no_json("fio", text)
    result, rest = values.load("fio", text, start.start())
    if "fio version" not in values.words(result):
        raise OutputError("fio: JSON of another program")
    if rest:
        raise OutputError("fio: more than one output, or other text after its JSON")
    return result


def _direction(name: str, part: Object) -> list[Reading]:
    """The readings of one direction; none where nothing was moved."""

    def value(key: str) -> Decimal:
        return values.number(f"fio: {name} {key}", str(part.get(key)))

    count, size = value("total_ios"), value("io_bytes")
    if count == 0 and size == 0:
        return []
    rate, iops = value("bw_bytes"), value("iops")
    seconds = values.positive(f"fio: {name} runtime", str(part.get("runtime"))) / 1000
    values.must_agree(f"fio: {name} rate", rate, size, seconds)
    values.must_agree(f"fio: {name} iops", iops, count, seconds)
    if count == 0 or size % count:
        raise OutputError(f"fio: {name} {size} bytes are not {count} whole blocks")
    dims = {"block": str(size // count)}
    percentiles = values.part("fio", part, "clat_ns").get("percentile")
    if not isinstance(percentiles, dict) or P99 not in percentiles:
        left_out = "--gtod_reduce, --disable_clat and --percentile_list leave it out"
        raise OutputError(f"fio: no percentile {P99} of clat; {left_out}")
    p99 = values.positive(f"fio: {name} p99", str(percentiles[P99]))
    return [
        Reading(name, rate.scaleb(-6), "MB/s", dims),
        Reading(f"{name}_iops", iops, "IOPS", dims),
        Reading(f"{name}_p99", p99.scaleb(-3), "us", dims),
        Reading(f"{name}_bytes", size, "B", dims),
    ]


def _message(text: str) -> str:
    """The first message of fio in its output."""
    for line in text.splitlines():
        if _MESSAGE.fullmatch(line):
            return line.removeprefix("fio: ")
    return "no message"
