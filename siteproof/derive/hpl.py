"""HPL: share of the peak and of the memory, no swap, and a BLAS that knows the processor."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof import units
from siteproof.errors import OutputError
from siteproof.parsers import Reading, blas
from siteproof.record.series import VARIABLE

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

MATRIX_ELEMENT = 8  # bytes: HPL solves in double precision


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """Add `share_of_peak` (%), and the conditions memory_share, swap, blas, its version and kernel.

    Raises OutputError (invalid) if the node swapped, has other cores than the site says, or did
    not compute with the MKL that the environment promises.
    """
    conditions = {**conditions, **blas.describe(raw.stdout + "\n" + raw.stderr)}
    if facts.get("blas") == "mkl":
        _refuse_other_blas(conditions, raw.stderr)
    solved = " ".join(conditions[key] for key in ("n", "nb", "p", "q"))
    if (asked := conditions.pop("asked", solved)) != solved:
        # HPCC goes on with a problem of its own where the grid does not fit, and calls it success.
        raise OutputError(f"solved N NB P Q {solved}, asked was {asked}", "invalid")
    pages = raw.number("swap_after") - raw.number("swap_before")
    if pages > 0:
        raise OutputError(f"the node swapped {pages} pages out during HPL", "invalid")
    conditions["swap"] = "none"
    if (cores := facts.get("cores")) and raw.number("cpus") < int(str(cores)):
        raise OutputError(
            f"the node offers {raw.meta['cpus']} processors, the site says {cores} cores", "invalid"
        )
    memory = max(_memory_of_job(raw), int(str(facts.get("memory") or 0)))
    share = Decimal(conditions["n"]) ** 2 * MATRIX_ELEMENT / memory
    conditions["memory_share"] = f"{share:.4f}"
    kernel = conditions.get("blas_kernel", "")
    chosen = {k.removeprefix(VARIABLE): v for k, v in conditions.items() if k.startswith(VARIABLE)}
    if warning := blas.unknown_processor(
        kernel, set(raw.meta.get("flags", "").split()), conditions.get("blas", ""), chosen
    ):
        conditions["blas_warning"] = warning
    if peak := facts.get("peak"):
        readings = [*readings, _share_of_peak(readings, str(peak))]
    return readings, conditions


def _memory_of_job(raw: Raw) -> int:
    """Bytes that the job had of the node: what the problem was made for; not all of it is ours."""
    total = raw.number("memory_kib")
    given = raw.number("memory_given_kib") if "memory_given_kib" in raw.meta else total
    if not 0 < given <= total:
        raise OutputError(f"the node's own account says memory_given_kib {given} of {total}")
    return given * 1024


def _refuse_other_blas(conditions: Mapping[str, str], stderr: str) -> None:
    """A library that cannot be preloaded is left out with a warning, and HPL runs without it."""
    ranks = int(conditions["p"]) * int(conditions["q"])
    if (found := blas.ranks_on_mkl(stderr)) != ranks:
        raise OutputError(
            f"the environment promises MKL, and {found} of {ranks} ranks computed with it",
            "invalid",
        )


def _share_of_peak(readings: list[Reading], peak: str) -> Reading:
    rate = next(r for r in readings if r.metric == "gflops")
    share = units.convert(Decimal(rate.value), rate.unit, "FLOPS") / units.parse(peak).to("FLOPS")
    return Reading("share_of_peak", Decimal(f"{float(share) * 100:.4f}"), "%")
