"""Rows of an overview as texts, for the terminal and the page."""

from __future__ import annotations

from fractions import Fraction

from siteproof.availability.definitions import Uptime, mtbf, overall, scheduled
from siteproof.availability.intervals import seconds
from siteproof.availability.overview import HOUR, Overview

MAX_NODES = 8  # that are drawn, the worst first
FOUR = ("availability", "overall", "scheduled")
COLUMNS = (
    *("subject", "overall", "scheduled", "down, h", "planned, h"),
    *("failures", "MTBF, h", "measured, h"),
)


def percent(share: Fraction | None) -> str:
    """A share with two decimals: 95.83 %."""
    return "-" if share is None else f"{float(100 * share):.2f} %"


def four_rows(found: Overview) -> list[tuple[str, str, str]]:
    """The four definitions."""
    four = found.definitions
    return [
        ("system as a whole", percent(four.system_overall), percent(four.system_scheduled)),
        ("weighted by nodes", percent(four.node_overall), percent(four.node_scheduled)),
    ]


def subjects(found: Overview) -> dict[str, Uptime]:
    """The system, services, gateways, partitions, and the worst nodes that were ever down."""
    rows = {"system": found.whole} if found.whole else {}
    rows |= {f"service {name}": part for name, part in found.services.items()}
    rows |= {f"gateway {name}": part for name, part in found.gateways.items()}
    rows |= {f"partition {name}": part for name, part in found.partitions.items()}
    worst = sorted(found.nodes, key=lambda node: (-seconds(found.nodes[node].down), node))
    return rows | {node: found.nodes[node] for node in worst[:MAX_NODES] if found.nodes[node].down}


def rows(found: Overview) -> list[tuple[str, ...]]:
    """A row of COLUMNS for each subject."""
    return [_row(found, name, part) for name, part in subjects(found).items()]


def _row(found: Overview, name: str, part: Uptime) -> tuple[str, ...]:
    between = mtbf(part)
    mean = f"{between.mean:.0f}" if between.mean else ""
    if not mean:
        mean = f"> {between.bound:.0f}" if between.bound else "-"
    return (
        name,
        percent(overall([part])),
        percent(scheduled([part])),
        f"{seconds(part.unscheduled) / HOUR:.2f}",
        f"{seconds(part.scheduled) / HOUR:.2f}",
        str(between.failures),
        mean,
        f"{found.measured_hours(part):.2f}",
    )
