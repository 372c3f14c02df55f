"""The headline figures of all nodes over time, read from the history in one pass, as arrays.

What comes out of thousands of runs is worked out with numpy; nothing here loops over values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from siteproof.judge.severity import NOT_TRIED
from siteproof.record import series
from siteproof.record.pair_units import LINK
from siteproof.record.series import Series, comparable
from siteproof.report.material import Material

FAILED, CUT_SHORT = 1, 2
SESSIONS = 1200  # the newest: some years of one a day
# A row a figure or failure. Nodes, sessions and metrics come as numbers: no texts are fetched.
QUERY = """
WITH n AS (SELECT unnest($nodes) AS node, unnest($places) AS place),
     t AS (SELECT unnest($sessions) AS session, unnest($numbers) AS number),
     m AS (SELECT unnest($metrics) AS metric, unnest($which) AS which)
SELECT n.place, t.number AS session, m.which AS metric, s.series, s.time,
       coalesce(s.base, 'nan'::DOUBLE) AS base,
       CASE WHEN s.status = 'ok' THEN 0 WHEN list_contains($untried, s.status) THEN 2 ELSE 1 END
           AS status
FROM samples s JOIN m USING (metric) JOIN n USING (node) JOIN t USING (session)
WHERE s.system = $system AND s.source = 'siteproof'
"""
KINDS = """
SELECT series, min(metric), min(environment), min(dims), min(conditions) FROM samples
WHERE system = $system AND source = 'siteproof' AND status = 'ok'
  AND list_contains($metrics, metric)
GROUP BY series ORDER BY max(place) DESC, max(time) DESC, series
"""

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Past:
    """Figures (one a node, job and series: the median of its trials) and failures.

    Arrays of equal length: place (of a node in nodes), metric (in metrics), number of the series,
    session (in sessions), time (UTC, of the job's end), value in the base unit of its kind, status:
    0, FAILED or CUT_SHORT. A failure has no value; one that speaks of a whole check has Check.*
    for its metric. same: of each series that differs by a block only, the one that stands for it.
    """

    nodes: Sequence[str]
    roles: Sequence[str]
    role: Ints
    metrics: Sequence[str]
    sessions: Sequence[str]
    starts: Sequence[datetime]
    place: Ints
    metric: Ints
    series: NDArray[np.uint64]
    session: Ints
    time: NDArray[np.datetime64]
    value: Floats
    status: Ints
    same: Mapping[int, int]

    def of_series(self, number: int, role: str) -> Flags:
        """Which rows are figures of a series and role. number: as the history has it."""
        mine: Flags = self.good & (self.series == np.uint64(self.same.get(number, number)))
        mine &= self.role[self.place] == self.roles.index(role)
        return mine

    @cached_property
    def good(self) -> Flags:
        """Which rows are figures."""
        good: Flags = (self.status == 0) & np.isfinite(self.value)
        return good

    @cached_property
    def group(self) -> Ints:
        """Of each row, the number of its series and role: what is compared with each other."""
        number = np.unique(self.series, return_inverse=True)[1]
        return number * len(self.roles) + self.role[self.place]


def read(material: Material) -> Past | None:
    """The past of a system's headline speeds; None where there is none."""
    site = material.site
    metrics = [
        name
        for name, m in site.catalogue.items()
        if m.headline and series.is_speed(m) and LINK not in m.conditions
    ]
    nodes = [n for role in site.system.nodes for n in site.expected(role)]
    nodes = list(dict.fromkeys(nodes))
    found = material.history.sql(
        "SELECT session, min(time) FROM runs WHERE system = ? AND source = 'siteproof' "
        "GROUP BY session ORDER BY min(place), min(time), session",
        [material.system],
    )[-SESSIONS:]
    if not (metrics and nodes and found):
        return None
    checks = sorted({name.partition(".")[0] for name in metrics})
    names = [*metrics, *(f"{check}.*" for check in checks)]
    held = material.history.columns(
        QUERY,
        {
            "nodes": nodes,
            "places": list(range(len(nodes))),
            "system": material.system,
            "sessions": [s for s, _ in found],
            "numbers": list(range(len(found))),
            "metrics": names,
            "which": list(range(len(names))),
            "untried": list(NOT_TRIED),
        },
    )
    if not len(held["place"]):
        return None
    same = _same(material, metrics)
    if any(number != other for number, other in same.items()):
        numbers, back = np.unique(held["series"], return_inverse=True)
        held["series"] = np.array([same.get(int(n), int(n)) for n in numbers], np.uint64)[back]
    roles = list(site.system.nodes)
    role = np.array([roles.index(site.role_of(n) or roles[0]) for n in nodes])
    return Past(
        nodes,
        roles,
        role,
        names,
        [s for s, _ in found],
        [at.replace(tzinfo=UTC) for _, at in found],
        **_by_job(held),
        same=same,
    )


def _same(material: Material, metrics: Sequence[str]) -> dict[int, int]:
    """Series that differ by a block of the problem's size, as after an update of the kernel."""
    known: dict[tuple[object, ...], list[tuple[Series, int]]] = {}
    found: dict[int, int] = {}
    for number, metric, environment, dims, conditions in material.history.sql(
        KINDS, {"system": material.system, "metrics": list(metrics)}
    ):
        plain = {k: v for k, v in json.loads(dims).items() if k not in series.OF_A_RUN}
        decide = series.deciding(json.loads(conditions))
        key = comparable(
            Series(
                metric, tuple(sorted(plain.items())), environment, "", tuple(sorted(decide.items()))
            )
        )
        alike = known.setdefault((metric, key.dims, environment), [])
        first = next((n for other, n in alike if series.alike(key, other)), int(number))
        alike.append((key, first))
        found[int(number)] = first
    return found


def _by_job(held: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One row for the trials of a node in a job: their median."""
    keys = ("place", "metric", "series", "session", "time", "status")
    order = np.lexsort((held["base"], *(held[key] for key in reversed(keys))))
    rows = {key: np.asarray(held[key])[order] for key in (*keys, "base")}
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([rows[key][1:] != rows[key][:-1] for key in keys])
    starts = np.flatnonzero(new)
    value = quantile(rows["base"], starts, 0.5)
    return {key: rows[key][starts] for key in keys} | {"value": value}


def quantile(values: Floats, starts: NDArray[np.intp], share: float) -> Floats:
    """A quantile of each group of values that are sorted within it; starts: where groups begin."""
    counts = np.diff(np.append(starts, len(values)))
    place = share * (counts - 1)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, counts - 1)
    first, second = values[starts + low], values[starts + high]
    part = place - low
    found: Floats = np.where(part > 0, first + (second - first) * part, first)
    return found
