"""RdmaWrite: bandwidth and latency of its runs, and what the ports counted meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from siteproof.derive import Derived, Given, must_be
from siteproof.parsers import Reading, rdma_ports

BANDWIDTHS = ("bandwidth", "bandwidth_peak", "message_rate")
LATENCIES = {
    "typical": "latency",
    "min": "latency_min",
    "mean": "latency_mean",
    "p99": "latency_p99",
    "p999": "latency_p999",
    "max": "latency_max",
}


def derive(given: Given) -> Derived:
    """Bandwidths as printed, latencies in us (`latency` is the median); errors_grown (count).

    Raises OutputError where a run is missing or there are several.
    """
    named = {r.metric: r for r in given.readings if r.metric in (*BANDWIDTHS, *LATENCIES)}
    for metric in ("bandwidth", "typical"):
        must_be(f"values of {metric}", sum(r.metric == metric for r in given.readings), 1, "parse")
    found = [_plain(named[name], name) for name in BANDWIDTHS if name in named]
    found += [_plain(named[name], metric) for name, metric in LATENCIES.items()]
    conditions = dict(given.conditions) | {
        "bandwidth_size": named["bandwidth"].dims["size"],
        "latency_size": named["typical"].dims["size"],
    }
    before, after = (given.of_phase(phase) for phase in ("before", "after"))
    if _counted(before) and _counted(after):  # not every device keeps counters
        grown = _grown(before, after)
        found.append(Reading("errors_grown", Decimal(sum(map(_number, grown))), "count"))
        found += grown
    return found, conditions


def _plain(reading: Reading, metric: str) -> Reading:
    return Reading(metric, reading.value, reading.unit)


def _counted(readings: Sequence[Reading]) -> bool:
    return any(r.dims.get("counter") in rdma_ports.ERRORS for r in readings)


def _grown(before: Sequence[Reading], after: Sequence[Reading]) -> list[Reading]:
    """The errors that grew, by port and counter; a counter that was reset meanwhile did not."""
    first = {_key(r): _number(r) for r in before if r.metric == "counter"}
    found = []
    for reading in after:
        if reading.metric != "counter" or reading.dims["counter"] not in rdma_ports.ERRORS:
            continue
        more = _number(reading) - first.get(_key(reading), _number(reading))
        if more > 0:
            port, counter = _key(reading)
            dims = {"port": port, "counter": counter}
            found.append(Reading("error_grown", more, "count", dims))
    return found


def _key(reading: Reading) -> tuple[str, str]:
    return reading.dims["port"], reading.dims["counter"]


def _number(reading: Reading) -> Decimal:
    return Decimal(reading.value)
