"""HPL: share of the peak and of the memory, no swap, and a BLAS that knows the processor.

STREAM: the arrays must be too large for the caches, by its rule 1(a) (stream.c 5.10): each at least
four times the sum of all last-level caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof import units
from siteproof.collect.derive import Derived, Measured, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading, blas, values
from siteproof.record.series import VARIABLE

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

MATRIX_ELEMENT = 8  # bytes: HPL solves in double precision
TIMES_CACHE = 4


def hpl(given: Measured) -> Derived:
    """Add `share_of_peak` (%), and the conditions memory_share, swap, blas, its version and kernel.

    Over several nodes (`nodes`) memory and peak are those of all of them.

    Raises OutputError (invalid) if the node swapped, has other cores than the site states, or did
    not compute with the MKL that the environment promises.
    """
    raw, readings, nodes = given.raw, given.readings, int(given.fact("nodes", "1"))
    conditions = {**given.conditions, **blas.describe(raw.stdout + "\n" + raw.stderr)}
    if given.fact("blas", "") == "mkl":
        ranks = int(conditions["p"]) * int(conditions["q"])
        # A library that cannot be preloaded is left out with a warning, and HPL runs without it.
        on_mkl = blas.ranks_on_mkl(raw.stderr)
        must_be("the environment promises MKL; ranks that used it", on_mkl, ranks)
    solved = " ".join(conditions[key] for key in ("n", "nb", "p", "q"))
    # HPCC goes on with a problem of its own where the grid does not fit, and reports success.
    must_be("solved N NB P Q", solved, conditions.pop("asked", solved))
    pages = raw.number("swap_after") - raw.number("swap_before")
    if pages > 0:
        raise OutputError(f"the node swapped {pages} pages out during HPL", "invalid")
    conditions["swap"] = "none"
    given.must_offer_cores()
    memory = max(_memory_of_job(raw), int(given.fact("memory", "0")))
    share = Decimal(conditions["n"]) ** 2 * MATRIX_ELEMENT / (memory * nodes)
    conditions["memory_share"] = f"{share:.4f}"
    if warning := unused_by_blas(conditions, raw.meta.get("flags", "")):
        conditions["blas_warning"] = warning
    if peak := given.fact("peak", ""):
        rate = next(r for r in readings if r.metric == "gflops")
        whole = units.parse(peak).to("FLOPS") * nodes
        share_of_peak = units.convert(Decimal(rate.value), rate.unit, "FLOPS") / whole * 100
        text = f"{float(share_of_peak):.4f}"
        readings = [*readings, Reading("share_of_peak", Decimal(text), "%")]
    return readings, conditions


def _memory_of_job(raw: Raw) -> int:
    """Bytes that the job had of the node: what the problem was sized for; it may share a node."""
    total = raw.number("memory_kib")
    given = raw.number("memory_given_kib") if "memory_given_kib" in raw.meta else total
    if not 0 < given <= total:
        raise OutputError(f"the node reports memory_given_kib {given} of {total}")
    return given * 1024


def unused_by_blas(conditions: Mapping[str, str], flags: str) -> str:
    """Which instructions of the processor the kernel of the BLAS leaves unused, and why."""
    family, kernel = conditions.get("blas", ""), conditions.get("blas_kernel", "")
    unused = blas.unused_instructions(kernel, set(flags.split()))
    if not unused:
        return ""
    rest = f"{kernel} does not use {unused}, which the processor offers."
    chosen = [
        f"{variable}={conditions[VARIABLE + variable]}"
        for variable in sorted(blas.KERNEL_VARIABLES.get(family, blas.ALL_KERNEL_VARIABLES))
        if VARIABLE + variable in conditions
    ]
    if chosen:
        return f"{' and '.join(chosen)} in the environment chose the kernel of the BLAS: {rest}"
    # MKL knows other makers' processors, and still has no code for all of them.
    if family == "mkl":
        return f"MKL does not use all of this processor: its kernel {rest}"
    return f"The BLAS did not know this processor: its kernel {rest}"


def stream(given: Measured) -> Derived:
    """Refuse rates of arrays that fit into the caches (OutputError, invalid)."""
    conditions = dict(given.conditions)
    of_node = values.number("stream: last_level_cache", conditions.get("last_level_cache", ""))
    cache = max(of_node, Decimal(given.fact("cache", "0")))
    size = values.number("stream: array_bytes", conditions.get("array_bytes", ""))
    if size < TIMES_CACHE * cache:
        raise OutputError(
            f"an array of {size} bytes is less than {TIMES_CACHE} times the caches ({cache} bytes)",
            "invalid",
        )
    return given.readings, conditions
