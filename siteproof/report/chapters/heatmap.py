"""Every node in every run: which were slow, failed or were not measured, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from siteproof import units
from siteproof.analysis import slow_nodes as rules
from siteproof.report import past, promised
from siteproof.report.chapters import distribution
from siteproof.report.chapters.nodes import in_groups
from siteproof.report.figure import cells as drawn
from siteproof.report.figure.marked import STYLES
from siteproof.report.material import Material
from siteproof.report.past import Past
from siteproof.report.sections import Figure, Section, Table, day, few, to_rows
from siteproof.units import count
from siteproof.wording.amounts import change

LEAST_NODES, LEAST_RUNS = 2, 2
FEW_DAYS = 5  # from so many on a column is a day, else a session
MAX_COLUMNS = 370  # the newest
WORST = 10
MAX_METRICS = 3  # that have a map of their own
HOW = (
    f"Clearly worse is a value more than {-rules.Z_LIMIT:g} robust standard deviations "
    f"and {rules.MIN_DEFICIT * 100:.0f} % on the bad side of the median of all runs and nodes "
    "of its role, or beyond its baseline; a cell of several values shows the worst of them."
)
# What a cell shows where several of its values differ: the worst one.
BY_SEVERITY = (drawn.MISSING, drawn.TYPICAL, 1, 2, drawn.NO_ANSWER, 3, drawn.FAILED, drawn.BROKEN)


@dataclass(frozen=True)
class Columns:
    """place: of each row its column, below 0 where it is too old. times: when each column began.

    unit: what a column is, day or session.
    """

    place: np.ndarray
    times: Sequence[datetime]
    unit: str


@dataclass(frozen=True)
class Cells:
    """kinds: (nodes, columns) of indices into KINDS. lowest: of each node, its lowest share."""

    columns: Columns
    kinds: np.ndarray
    lowest: np.ndarray


def chapter(material: Material) -> Section | None:
    """A map of all headline metrics, maps of the worst of them, and the worst nodes as tables."""
    found = material.once(past.read)
    if found is None or not found.good.any():
        return None
    kinds, shares = _judged(material, found)
    columns = _columns(found)
    whole = _cells(found, kinds, shares, columns, np.ones(len(kinds), dtype=bool))
    rows = np.flatnonzero((whole.kinds != drawn.MISSING).any(axis=1))
    if len(rows) < LEAST_NODES or len(whole.columns.times) < LEAST_RUNS:
        return None
    title = f"All headline metrics: the worst of each node and {columns.unit}"
    figures = [_figure(material, found, whole, "nodes", title)]
    for name in _worst_metrics(found, kinds):
        cells = _cells(found, kinds, shares, columns, _of(found, name))
        figures.append(_figure(material, found, cells, promised.slug(name), name))
    worst = [found.nodes[n] for n in _bad(whole, _ranked(whole, rows))]
    lead = f"{count(len(rows), 'node')} on {count(len(columns.times), columns.unit)}; the worst: "
    lead += f"{few(worst, 5)}." if worst else "none was clearly worse than the others."
    points = [HOW]
    if (columns.place < 0).any() or len(found.sessions) >= past.SESSIONS:
        points.append(f"Runs before {day(columns.times[0])} are not drawn.")
    return Section("heatmap", "Every node in every run", lead, figures=figures, points=points)


def _of(found: Past, name: str) -> np.ndarray:
    """The rows of a metric, with what failed of its whole check."""
    names = (name, f"{name.partition('.')[0]}.*")
    return np.isin(found.metric, [n for n, metric in enumerate(found.metrics) if metric in names])


def _worst_metrics(found: Past, kinds: np.ndarray) -> list[str]:
    """The metrics with the most bad values, where there are several metrics."""
    measured = np.unique(found.metric[found.good])
    if len(measured) < 2:
        return []
    bad = np.isin(kinds, (2, 3, drawn.BROKEN, drawn.FAILED))
    counts = {found.metrics[n]: int((bad & (found.metric == n)).sum()) for n in measured}
    order = sorted((name for name in counts if counts[name]), key=lambda n: -counts[n])
    return order[:MAX_METRICS]


def _judged(material: Material, found: Past) -> tuple[np.ndarray, np.ndarray]:
    """Of each row its kind, and its share of the typical value; NaN of a failure."""
    good, reference = found.good, _medians(found, found.value)
    catalogue = material.site.catalogue  # without the names of whole checks, such as Hpl.*
    lower = np.array([m in catalogue and catalogue[m].better == "lower" for m in found.metrics])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = found.value / reference
        shares = np.where(good, np.where(lower[found.metric], 1 / ratio, ratio), np.nan)
        spread = rules.MAD_TO_SIGMA * _medians(found, np.abs(ratio - 1))
        far = np.where(lower[found.metric], 1 - ratio, ratio - 1) < rules.Z_LIMIT * np.maximum(
            spread, rules.RESOLUTION
        )
    broken, below = _promises(material, found)
    kinds = drawn.kinds_of(shares)
    kinds[good & ~(far | below)] = drawn.TYPICAL
    kinds[good & broken] = drawn.BROKEN
    kinds[found.status == past.FAILED] = drawn.FAILED
    kinds[found.status == past.NO_ANSWER] = drawn.NO_ANSWER
    return kinds, shares


def _cells(
    found: Past, kinds: np.ndarray, shares: np.ndarray, columns: Columns, chosen: np.ndarray
) -> Cells:
    """The worst of the chosen rows in each cell."""
    place = columns.place
    ranks = np.argsort(BY_SEVERITY).astype(np.uint8)  # of each kind, how severe it is
    kept = chosen & (place >= 0)
    severity = np.zeros((len(found.nodes), len(columns.times)), dtype=np.uint8)
    np.maximum.at(severity, (found.place[kept], place[kept]), ranks[kinds[kept]])
    lowest = np.full(len(found.nodes), np.inf)
    kept &= found.good
    np.minimum.at(lowest, found.place[kept], shares[kept])
    return Cells(columns, np.array(BY_SEVERITY, dtype=np.uint8)[severity], lowest)


def _columns(found: Past) -> Columns:
    """A column for each day with runs; for each session where there are few days."""
    used = np.unique(found.session)
    days = np.array([found.starts[n].toordinal() for n in used])
    by_day = len(np.unique(days)) >= FEW_DAYS
    keys = days if by_day else used
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    left_out = max(0, len(first) - MAX_COLUMNS)
    place = np.full(len(found.sessions), -1)
    place[used] = number - left_out
    times = [found.starts[n] for n in used[first[left_out:]]]
    return Columns(place[found.session], times, "day" if by_day else "session")


def _medians(found: Past, values: np.ndarray) -> np.ndarray:
    """Of each row the median of these values over its series and role; NaN without one."""
    good, groups = values[found.good], found.group[found.good]
    table = np.full(found.group.max() + 1, np.nan)
    for group in np.unique(groups):  # as many as there are series
        table[group] = np.median(good[groups == group])
    return table[found.group]


def _promises(material: Material, found: Past) -> tuple[np.ndarray, np.ndarray]:
    """Which values miss a criterion, and which are beyond a baseline."""
    beyond = {kind: np.zeros(len(found.value), dtype=bool) for kind in STYLES}
    for one in material.once(distribution.fleets):
        rows = found.of_series(one.number, one.key.role)
        size = float(units.UNITS[one.unit][1])
        for mark in one.marks:
            beyond[mark.kind] |= rows & mark.times(size).beyond(found.value)
    return beyond["bound"], beyond["baseline"]


def _ranked(cells: Cells, rows: np.ndarray) -> list[int]:
    """The nodes, the worst first: by the severity of their cells; the newest count more."""
    weight = np.zeros(len(drawn.KINDS))
    weight[[1, 2, 3, drawn.NO_ANSWER, drawn.FAILED, drawn.BROKEN]] = 0.2, 1, 3, 0.5, 4, 6
    recent = np.linspace(0.5, 1.5, len(cells.columns.times))
    score = (weight[cells.kinds[rows]] * recent).sum(axis=1)
    return [int(n) for n in rows[np.lexsort((rows, -score))]]


def _bad(cells: Cells, ranked: Sequence[int]) -> list[int]:
    """The nodes that were not always typical, of those ranked."""
    fine = ((cells.kinds == drawn.TYPICAL) | (cells.kinds == drawn.MISSING)).all(axis=1)
    return [n for n in ranked if not fine[n]]


def _figure(material: Material, found: Past, cells: Cells, name: str, title: str) -> Figure:
    rows = np.flatnonzero((cells.kinds != drawn.MISSING).any(axis=1))
    ranked = _ranked(cells, rows)
    worst = _bad(cells, ranked)[:WORST]
    if len(rows) <= drawn.MAX_NAMES:
        panels = [_panel(found, cells, ranked, "the worst first")]
    else:
        panels = [_panel(found, cells, worst, f"the worst {len(worst)}")] if worst else []
        panels.append(_all(material, found, cells, rows))
    form = "%Y-%m-%d" if cells.columns.unit == "day" else "%m-%d %H:%M"
    svg = drawn.draw(title, [f"{at:{form}}" for at in cells.columns.times], panels)
    name, caption = f"heatmap-{name}", _caption(cells, rows)
    table = _table(material, found, cells, worst or ranked[:1])
    metrics = {title} & set(found.metrics)
    return Figure(name, title, svg, caption, table, metrics)


def _panel(found: Past, cells: Cells, shown: Sequence[int], head: str) -> drawn.Panel:
    return drawn.Panel(head, [found.nodes[n] for n in shown], cells.kinds[list(shown)])


def _all(material: Material, found: Past, cells: Cells, rows: np.ndarray) -> drawn.Panel:
    """All nodes, by rack where the site has racks."""
    shown, head, starts = [int(n) for n in rows], f"all {len(rows)} nodes", dict[int, str]()
    groups, others = in_groups(material, [found.nodes[n] for n in shown])
    if groups:
        shown, head = [], f"{head}, by group"
        for name, members in [*groups, ("others", others)]:
            starts[len(shown)] = name
            shown += map(found.nodes.index, members)
    return replace(_panel(found, cells, shown, head), starts=starts)


def _caption(cells: Cells, rows: np.ndarray) -> str:
    kinds, times = cells.kinds[rows], cells.columns.times
    ever = {kind: int((kinds == kind).any(axis=1).sum()) for kind in range(len(drawn.KINDS))}
    names = {
        drawn.BROKEN: "beyond a bound",
        drawn.FAILED: "failed",
        3: "clearly more than 10 % worse",
    }
    parts = [f"{name} {ever[kind]}" for kind, name in names.items() if ever[kind]]
    text = (
        f"{count(len(rows), 'node')} on {count(len(times), cells.columns.unit)} with runs "
        f"from {day(times[0])} to {day(times[-1])}, as shares of the typical value"
    )
    if not parts:
        return f"{text}: none was beyond a bound, failed, or clearly more than 10 % worse."
    return f"{text}; nodes that were at least once: {', '.join(parts)}."


def _table(material: Material, found: Past, cells: Cells, ranked: Sequence[int]) -> Table:
    rows = []
    for n in ranked:
        kinds = cells.kinds[n]
        worse = np.isin(kinds, (1, 2, 3, drawn.BROKEN))
        state = material.fleet.nodes.get(found.nodes[n])
        rows.append(
            (
                to_rows("node", found.nodes[n]),
                str(state.state) if state else "",
                str(int((kinds != drawn.MISSING).sum())),
                str(int(worse.sum())),
                *(
                    str(int((kinds == k).sum()))
                    for k in (drawn.BROKEN, drawn.FAILED, drawn.NO_ANSWER)
                ),
                "-" if np.isinf(cells.lowest[n]) else change(float(cells.lowest[n]) - 1),
                _since(kinds, cells.columns.times),
            )
        )
    without = int((cells.kinds == drawn.MISSING).all(axis=1).sum())
    note = (
        f"The worst {len(rows)}. The lowest share may be within the scatter. Worse since: the "
        f"first {cells.columns.unit} from which on each was clearly more than 5 % worse, beyond "
        f"a bound or failed. Without a value: {count(without, 'node')}."
    )
    unit = "days with runs" if cells.columns.unit == "day" else "sessions"
    counts = (unit, "clearly worse", "beyond a bound", "failed", "no answer", "lowest share")
    columns = ("node", "state", *counts, "worse since")
    return Table(columns, rows, note, numeric=counts)


def _since(kinds: np.ndarray, times: Sequence[datetime]) -> str:
    """When a node began to be bad without a break until now."""
    bad = np.isin(kinds, (2, 3, drawn.BROKEN, drawn.FAILED))
    fine = np.flatnonzero(~bad & (kinds != drawn.MISSING))
    first = fine[-1] + 1 if len(fine) else 0
    late = np.flatnonzero(bad[first:])
    return day(times[first + int(late[0])]) if len(late) else "-"
