"""Storage: a value counts where all that was requested was written, read and compared."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from statistics import mean, median, stdev

from siteproof.collect.derive import Derived, Measured, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading, sha256sum, values

COPIED = ("write", "read")
MIN_STORED = Decimal("0.5")  # of the file; less is a file system that does not store zeros
RANDOM = ("read", "write")
BLOCKS = ("4096", "1048576")
OF_A_POINT = {"": "rate", "_iops": "iops", "_p99": "p99"}  # by what follows the direction
REQUESTED = ("api", "layout", "transfer", "block", "size", "tasks")  # IOR prints each of them
AXES = ("api", "layout", "transfer", "block")  # of a sweep; then no conditions of the readings
BYTES = {"write": "write_bytes", "read": "read_bytes", "verify": "verified_bytes"}  # by phase
OF_FILES = ["create", "stat", "read", "remove"]


def _only(reading: Reading, dimension: str) -> dict[str, str]:
    return {dimension: reading.dims[dimension]}


def block_storage(given: Measured) -> Derived:
    """`write` and `read` as medians, `variation`, and each trial as write_trial, read_trial.

    Raises OutputError (invalid) where another size was written, or not stored.
    """
    conditions = dict(given.conditions)
    size, trials = given.fact("size"), given.fact("trials")
    must_be("bytes copied", conditions.get("size"), size)
    stored = values.number("bytes stored", conditions.pop("stored", ""))
    if 0 < stored < int(size) * MIN_STORED:  # some file systems report 0 for every file
        what = f"the file system stored {stored} of {size} bytes, which are zeros"
        raise OutputError(what, "invalid")
    found: list[Reading] = []
    variations: list[Decimal] = []
    for phase in COPIED:
        rows = given.of_phase(phase)
        must_be(f"trials of {phase}", len(rows), trials, "parse")
        found += [replace(row, metric=f"{phase}_trial", dims=_only(row, "trial")) for row in rows]
        rates = [Decimal(row.value) for row in rows]
        found.append(Reading(phase, median(rates), rows[0].unit))
        if len(rates) > 1:
            variations.append(stdev(rates) / mean(rates))
    if variations:
        found.append(Reading("variation", Decimal(f"{max(variations) * 100:.3f}"), "%"))
    return found, conditions | {"trials": trials}


def data_integrity(given: Measured) -> Derived:
    """`errors`, and a text for each file that is not as it was written.

    Raises OutputError unless all files were compared.
    """
    must_be("files compared", given.conditions.get("files"), given.fact("files"), "parse")
    found = [replace(r, metric="errors", dims={}) for r in given.readings]
    for run in given.raw.runs:
        for text in sha256sum.failed(run.stdout):
            found.append(Reading("wrong", text, "text", {"file": text.partition(" ")[0]}))
    return found, {**given.conditions, "size": given.fact("size")}


def random_io(given: Measured) -> Derived:
    """Each phase's values with the dimension `block` alone.

    Raises OutputError: `invalid` where less than the whole file was verified.
    """
    given.must_be_verified()
    found = []
    for phase in RANDOM:
        blocks = set()
        for r in given.of_phase(phase):
            if r.metric.startswith(phase) and not r.metric.endswith("_bytes"):
                blocks.add(r.dims["block"])
                found.append(replace(r, dims=_only(r, "block")))
        if blocks != set(BLOCKS):
            raise OutputError(f"random {phase}: not in blocks of {' and '.join(BLOCKS)} bytes")
    return found, dict(given.conditions)


def fio_sweep(given: Measured) -> Derived:
    """rate (MB/s), iops and p99 (us) of the point's pattern.

    facts: size of the file in bytes; block, depth and pattern as requested. Raises OutputError:
    `invalid` where less than the file was verified, or fio measured something else.
    """
    given.must_be_verified()
    pattern, block = given.fact("pattern"), given.fact("block")
    direction = pattern.removeprefix("rand")
    found = []
    for reading in given.of_phase(pattern):
        if not reading.metric.startswith(direction) or reading.dims["block"] != block:
            raise OutputError(f"fio: {pattern} was not in blocks of {block} bytes", "invalid")
        if name := OF_A_POINT.get(reading.metric.removeprefix(direction)):
            found.append(Reading(name, reading.value, reading.unit))
    if not found:
        raise OutputError(f"fio: no result of {pattern}", "invalid")
    conditions = dict(given.conditions)
    must_be("fio: depth", conditions.get("depth", "1"), given.fact("depth", "1"))
    if "depth" in given.facts:  # then it is a dimension of the point
        conditions.pop("depth", None)
    return found, conditions


def ior(given: Measured) -> Derived:
    """The rates of the write and of the read; a sweep's point has its axes as dimensions.

    facts: what must have been done, by the names of IOR's conditions.

    Raises OutputError: `invalid` where IOR did something else, or less was compared than read.
    """
    conditions = dict(given.conditions)
    for key in REQUESTED:
        if key in given.facts:
            must_be(f"ior: {key}", conditions.get(key, "unknown"), given.fact(key))
    tasks_per_node = min(int(given.fact("tasks")), int(given.fact("tasks_per_node", "1")))
    must_be("ior: tasks per node", conditions.get("tasks_per_node"), tasks_per_node)
    for phase, metric in BYTES.items():
        moved = ", ".join(str(r.value) for r in given.of_phase(phase) if r.metric == metric)
        must_be(f"ior: bytes of {phase}", moved or "none", conditions.get("size"))
    found = []
    for reading in given.readings:
        phase = reading.dims["phase"]
        if reading.metric.partition("_")[0] == phase and reading.metric != BYTES[phase]:
            found.append(replace(reading, dims={}))
    for key in ("tasks", "tasks_per_node", *(set(AXES) & given.facts.keys())):
        conditions.pop(key, None)
    return found, conditions


def mdtest(given: Measured) -> Derived:
    """The rate of each phase, without a dimension.

    Raises OutputError: `invalid` where mdtest did something else than requested.
    """
    tasks, files = given.fact("tasks"), given.fact("files")
    nodes = -(-int(tasks) // int(given.fact("tasks_per_node")))
    conditions = dict(given.conditions)
    for key, expected in (("tasks", tasks), ("nodes", nodes), ("files", files)):
        must_be(f"mdtest: {key}", conditions.pop(key, "unknown"), expected)
    if [(r.dims.get("phase"), r.metric) for r in given.readings] != [(p, p) for p in OF_FILES]:
        raise OutputError("mdtest: not one run of each phase", "invalid")
    return [replace(r, dims={}) for r in given.readings], conditions


def lnet(given: Measured) -> Derived:
    """read or write, MiB/s of all clients. facts: direction and clients of the point.

    lst prints what one client of the group has on average, so a total is that times the clients: R
    is what clients received (read), W what they sent (write).

    Raises OutputError where nothing moved in that direction.
    """
    direction, clients = given.fact("direction"), int(given.fact("clients"))
    found = [
        Reading(direction, Decimal(r.value) * clients, r.unit)
        for r in given.readings
        if r.metric == direction and r.dims.get("group") == "clients"
    ]
    if not found:
        raise OutputError(f"lst: no {direction} of the clients", "invalid")
    return found, dict(given.conditions)
