"""Every node in every run: which were slow, failed or were not measured, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from siteproof import units
from siteproof.analysis import slow_nodes as rules
from siteproof.report import past
from siteproof.report.chapters import distribution
from siteproof.report.chapters.nodes import in_groups
from siteproof.report.figure import cells as drawn
from siteproof.report.figure.marked import STYLES
from siteproof.report.material import Material
from siteproof.report.past import Past
from siteproof.report.sections import Figure, Section, Table, counted, day, few, to_rows
from siteproof.units import count
from siteproof.wording.findings import change

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
BAD = (2, 3, drawn.BROKEN, drawn.FAILED)
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

    @cached_property
    def rows(self) -> np.ndarray:
        """The nodes with a value or a failure."""
        return np.flatnonzero((self.kinds != drawn.MISSING).any(axis=1))

    @cached_property
    def ranked(self) -> list[int]:
        """They, the worst first: by the severity of their cells; the newest count more."""
        weight = np.zeros(len(drawn.KINDS))
        weight[[1, 2, 3, drawn.NO_ANSWER, drawn.FAILED, drawn.BROKEN]] = 0.2, 1, 3, 0.5, 4, 6
        recent = np.linspace(0.5, 1.5, len(self.columns.times))
        score = (weight[self.kinds[self.rows]] * recent).sum(axis=1)
        return [int(n) for n in self.rows[np.lexsort((self.rows, -score))]]

    @property
    def worst(self) -> list[int]:
        """Those of them that were not always typical."""
        unlike = np.any(~np.isin(self.kinds, (drawn.TYPICAL, drawn.MISSING)), axis=1)
        return [n for n in self.ranked if unlike[n]]


def chapter(material: Material) -> Section | None:
    """A map of all headline metrics, maps of the worst of them, and the worst nodes as tables."""
    found = material.once(past.read)
    if found is None or not found.good.any():
        return None
    kinds, shares = _judged(material, found)
    columns = _columns(found)
    whole = _cells(found, kinds, shares, columns, np.ones(len(kinds), dtype=bool))
    if len(whole.rows) < LEAST_NODES or len(columns.times) < LEAST_RUNS:
        return None
    title = f"All headline metrics: the worst of each node and {columns.unit}"
    figures = [_figure(material, found, whole, "nodes", title)]
    for name in _worst_metrics(found, kinds):
        names = (name, f"{name.partition('.')[0]}.*")  # with what failed of its whole check
        wanted = [n for n, metric in enumerate(found.metrics) if metric in names]
        chosen = np.isin(found.metric, wanted)
        cells = _cells(found, kinds, shares, columns, chosen)
        figures.append(_figure(material, found, cells, past.slug(name), name))
    worst = [found.nodes[n] for n in whole.worst]
    seen = f"{count(len(whole.rows), 'node')} on {count(len(columns.times), columns.unit)}"
    lead = f"{seen}; clearly worse, failed or without an answer: {few(worst, 5) or 'none'}."
    points = [HOW]
    if (columns.place < 0).any() or len(found.sessions) >= past.SESSIONS:
        points.append(f"Runs before {day(columns.times[0])} are not drawn.")
    return Section("heatmap", "Every node in every run", lead, figures=figures, points=points)


def _worst_metrics(found: Past, kinds: np.ndarray) -> list[str]:
    """The metrics with the most bad values, where there are several metrics."""
    measured = np.unique(found.metric[found.good])
    if len(measured) < 2:
        return []
    counts = np.bincount(found.metric[np.isin(kinds, BAD)], minlength=len(found.metrics))
    order = sorted(measured, key=lambda n: -counts[n])
    return [found.metrics[n] for n in order[:MAX_METRICS] if counts[n]]


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


def _figure(material: Material, found: Past, cells: Cells, name: str, title: str) -> Figure:
    worst = cells.worst[:WORST]
    if len(cells.rows) <= drawn.MAX_NAMES:
        panels = [_panel(found, cells, cells.ranked, "the worst first")]
    else:
        panels = [_panel(found, cells, worst, f"the worst {len(worst)}")] if worst else []
        panels.append(_all(material, found, cells))
    form = "%Y-%m-%d" if cells.columns.unit == "day" else "%m-%d %H:%M"
    svg = drawn.draw(title, [f"{at:{form}}" for at in cells.columns.times], panels)
    table = _table(material, found, cells, worst or cells.ranked[:1])
    metrics = {title} & set(found.metrics)
    return Figure(f"heatmap-{name}", title, svg, _caption(cells), table, metrics)


def _panel(found: Past, cells: Cells, shown: list[int], head: str) -> drawn.Panel:
    return drawn.Panel(head, [found.nodes[n] for n in shown], cells.kinds[shown])


def _all(material: Material, found: Past, cells: Cells) -> drawn.Panel:
    """All nodes, by rack where the site has racks."""
    groups, others = in_groups(material, [found.nodes[n] for n in cells.rows])
    names, starts = list[str](), dict[int, str]()
    for name, members in [*groups, ("others", others)]:
        starts[len(names)] = name
        names += members
    head = f"all {len(names)} nodes" + (", by group" if groups else "")
    kinds = cells.kinds[list(map(found.nodes.index, names))]
    return drawn.Panel(head, names, kinds, starts=starts if groups else {})


def _caption(cells: Cells) -> str:
    kinds, times = cells.kinds[cells.rows], cells.columns.times
    names = {
        drawn.BROKEN: "beyond a bound",
        drawn.FAILED: "failed",
        3: "clearly more than 10 % worse",
    }
    ever = counted((name, int((kinds == kind).any(axis=1).sum())) for kind, name in names.items())
    return (
        f"{count(len(cells.rows), 'node')} on {count(len(times), cells.columns.unit)} with runs "
        f"from {day(times[0])} to {day(times[-1])}, as shares of the typical value; nodes that "
        f"were at least once: {ever or 'none'}."
    )


def _table(material: Material, found: Past, cells: Cells, ranked: Sequence[int]) -> Table:
    rows = []
    for n in ranked:
        kinds, lowest = cells.kinds[n], float(cells.lowest[n])
        of_kinds = np.bincount(kinds, minlength=len(drawn.KINDS))
        state = material.fleet.nodes.get(found.nodes[n])
        counts = (
            len(kinds) - of_kinds[drawn.MISSING],
            of_kinds[[1, 2, 3, drawn.BROKEN]].sum(),
            *of_kinds[[drawn.BROKEN, drawn.FAILED, drawn.NO_ANSWER]],
        )
        rows.append(
            (
                to_rows("node", found.nodes[n]),
                str(state.state) if state else "",
                *map(str, counts),
                "-" if np.isinf(lowest) else change(lowest - 1),
                _since(kinds, cells.columns.times),
            )
        )
    note = (
        f"The worst {len(rows)}. The lowest share may be within the scatter. Worse since: the "
        f"first {cells.columns.unit} from which on each was clearly more than 5 % worse, beyond "
        f"a bound or failed. Without a value: {count(len(cells.kinds) - len(cells.rows), 'node')}."
    )
    unit = "days with runs" if cells.columns.unit == "day" else "sessions"
    numbers = (unit, "clearly worse", "beyond a bound", "failed", "no answer", "lowest share")
    return Table(("node", "state", *numbers, "worse since"), rows, note, numeric=numbers)


def _since(kinds: np.ndarray, times: Sequence[datetime]) -> str:
    """When a node began to be bad without a break until now."""
    bad = np.isin(kinds, BAD)
    fine = np.flatnonzero(~bad & (kinds != drawn.MISSING))
    first = fine[-1] + 1 if len(fine) else 0
    late = np.flatnonzero(bad[first:])
    return day(times[first + int(late[0])]) if len(late) else "-"
