"""The distribution of each headline metric over the nodes, with bound, baseline and median."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import numpy as np

from siteproof.answers import attempts
from siteproof.answers.attempts import failure
from siteproof.answers.expected import of_role
from siteproof.nodes import pair_ends
from siteproof.nodes.states import FleetReport
from siteproof.record import finding, series
from siteproof.record.finding import Finding
from siteproof.record.pair_units import OF_GPU, grouped, is_gpu, node_of, unit_of
from siteproof.record.samples import Sample
from siteproof.record.series import JobValue, Series
from siteproof.report import past
from siteproof.report.figure import marked as drawn
from siteproof.report.figure.marked import Mark
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table, few, to_rows
from siteproof.units import count
from siteproof.wording.findings import change, number, quantity, sentence, stated

LEAST = 2  # nodes that make a distribution
MAX_FIGURES = 12  # figures of the chapter
MAX_ROWS = 10  # rows of a table
MAX_LABELS = 5  # nodes that a figure names
PERCENTILES = 20  # values, from which on a range leaves out the ends


@dataclass(frozen=True)
class Fleet:
    """One series of what is judged, in the unit of its contract.

    values: the newest of each node. missing: nodes of the role without one. lost: those whose
    newest run failed, so that an older value is not theirs any more. number: of the series in the
    history.
    """

    key: Series
    number: int
    unit: str
    better: str
    values: Mapping[str, float]
    marks: Sequence[Mark]
    missing: Sequence[str]
    lost: Mapping[str, Finding]

    @property
    def measured(self) -> int:
        """How many nodes have a value in the series, whatever their newest run gave."""
        return len(self.values) + len(self.lost)

    @property
    def worst(self) -> list[str]:
        """The nodes from the worst on."""
        sign = -1 if self.better == "lower" else 1
        return sorted(self.values, key=lambda node: (sign * self.values[node], node))

    @property
    def what(self) -> str:
        """What has a value each."""
        return "GPU" if any(map(is_gpu, self.values)) else "node"

    @property
    def middle(self) -> float:
        """The median of all nodes."""
        return median(self.values.values())

    def broken(self) -> list[str]:
        """The nodes beyond a bound, the worst first."""
        worst = self.worst
        values = np.array([self.values[n] for n in worst])
        beyond = np.zeros(len(worst), dtype=bool)
        for mark in self.marks:
            if mark.kind == "bound":
                beyond |= mark.beyond(values)
        return [worst[n] for n in np.flatnonzero(beyond)]


def chapter(material: Material) -> Section | None:
    """A figure for each headline metric and role of the nodes."""
    found = [one for one in material.once(fleets) if one.values]
    if not found:
        return None
    named = titles(found)
    figures = list(_figures(found[:MAX_FIGURES], named, material.fleet))
    below = sum(bool(one.broken()) for one in found)
    lead = f"{count(len(found), 'metric')} measured on two nodes or more"
    if any(map(_bounds, found)):
        lead += f"; in {below} of them some node is beyond its bound."
    else:
        lead += "; none has a bound."
    points = [f"Not drawn: {title}" for title in named[MAX_FIGURES:]]
    return Section("distribution", "All nodes compared", lead, figures=figures, points=points)


def fleets(material: Material) -> list[Fleet]:
    """The series of headline metrics that several nodes have; those beyond a bound first."""
    judged, site = material.judged, material.site
    alone = pair_ends.alone(judged.samples)
    newest_first = sorted(alone, key=lambda s: s.header.order, reverse=True)
    like = grouped((sample.metric, sample) for sample in newest_first if sample.status == "ok")
    standing = grouped((s.header.check, s) for s in attempts.of_samples(site, judged.samples))
    values = series.collect(site, alone, series.is_headline)
    found = [
        _fleet(
            material, key, nodes, like[key.metric], standing.get(key.metric.partition(".")[0], ())
        )
        for key, nodes in values.items()
        if len(nodes) >= LEAST
    ]
    order = list(site.catalogue)
    return sorted(
        found,
        key=lambda f: (
            not f.broken(),
            not _bounds(f),
            order.index(f.key.metric),
            -len(f.values),
            str(f.key),
        ),
    )


def _bounds(one: Fleet) -> bool:
    return any(m.kind == "bound" and m.side for m in one.marks)


def _fleet(
    material: Material,
    key: Series,
    nodes: Mapping[str, Sequence[JobValue]],
    like: Sequence[Sample],
    standing: Sequence[Sample],
) -> Fleet:
    """like: the values of its metric, the newest first. standing: failures of its check."""
    site = material.site
    own, units = site.catalogue[key.metric].unit, grouped((node_of(unit), unit) for unit in nodes)
    lost = {
        unit: failure(one)
        for one in reversed(standing)
        for unit in units.get(one.node, ())
        if unit_of(one) in (one.node, unit) and _takes_back(one, key, nodes[unit][-1])
    }
    sample = next(s for s in like if unit_of(s) in nodes and _is_of(s, key))
    criteria = past.criteria_of(site, key, sample)
    printed = {runs[-1].printed for runs in nodes.values()}
    unit = past.unit_of(criteria.values(), site, key, printed.pop() if len(printed) == 1 else "")
    size = past.converted(1, own, unit)
    values = {node: runs[-1].value * size for node, runs in nodes.items() if node not in lost}
    marks = past.marks(site, key, criteria, unit)
    if values:
        middle = median(values.values())
        marks.append(Mark("median", middle, f"median {number(middle)} {unit}"))
    missing = [n for n in of_role(site, key.metric, key.role) if n not in values]
    better = site.catalogue[key.metric].better
    return Fleet(key, past.number_of(sample), unit, better, values, marks, missing, lost)


def _takes_back(failed: Sample, key: Series, value: JobValue) -> bool:
    """Whether a failure that stands is a newer run of the same kind as a value of a series."""
    head, mode = failed.header, dict(key.conditions).get("mode", "")
    return (head.environment, head.mode) == (key.environment, mode) and head.job_order > value[:4]


def _is_of(sample: Sample, key: Series) -> bool:
    """Whether a value of the series' metric is one of the series."""
    dims = {k: v for k, v in sample.dims.items() if k not in (*series.OF_A_JOB, *OF_GPU)}
    return (
        sample.header.environment == key.environment
        and dims == dict(key.dims)
        and series.conditions(sample) == dict(key.conditions)
    )


def titles(found: Sequence[Fleet]) -> list[str]:
    """Metric and role of each; with environment and conditions where only these differ."""
    of_all = [{"": f.key.environment, **dict(f.key.conditions)} for f in found]
    heads = [f"{f.key.name} of {f.key.role}" for f in found]
    alike, names = grouped(zip(heads, of_all, strict=True)), []
    for head, own in zip(heads, of_all, strict=True):
        unlike = [
            f"{key} {text}".strip()
            for key, text in own.items()
            if any(other.get(key) != text for other in alike[head])
        ]
        names.append(", ".join([head, *unlike]))
    return names


def _figures(found: Sequence[Fleet], named: Sequence[str], states: FleetReport) -> Iterator[Figure]:
    seen: dict[str, int] = {}
    for one, title in zip(found, named, strict=False):
        name = past.own_name(f"distribution-{past.slug(one.key.metric)}", seen)
        shown, axis = _bad(one, states)[:MAX_LABELS], f"{title}, {one.unit}"
        bad = {node: f"{node} {_change(one.values[node], one)}" for node in shown}
        svg = drawn.of_fleet(axis, one.unit, one.values, one.better, one.marks, bad)
        yield Figure(name, title, svg, _caption(one), _table(one, states), [one.key.metric])


def _bad(one: Fleet, states: FleetReport) -> list[str]:
    """Nodes beyond a bound, or with a finding on this metric; the worst first."""
    bad = set(one.broken())
    bad |= {
        report.node
        for report in states.nodes.values()
        if report.state != "OK"
        and any(why.metric == one.key.name and not why.criterion for why in report.findings)
    }
    return [unit for unit in one.worst if not bad.isdisjoint((unit, node_of(unit)))]


def _caption(one: Fleet) -> str:
    low, high = min(one.values.values()), max(one.values.values())
    text = (
        f"{count(len(one.values), one.what)} between {quantity(low, one.unit)} "
        f"and {quantity(high, one.unit)}, median {quantity(one.middle, one.unit)}"
    )
    broken = one.broken()
    if _bounds(one):
        text += f"; {len(broken) or 'none'} beyond the bound"
    if broken:
        text += f", the worst {broken[0]}"
    if one.missing:
        text += f"; {count(len(one.missing), one.what)} of {one.key.role} without a value"
    if reasons := finding.of_many((why, [node]) for node, why in one.lost.items()):
        reported = few([f"{why.subject}: {sentence(why)}" for why in reasons], MAX_LABELS, "; ")
        text += f"; {reported}"
    return f"{text}."


def _table(one: Fleet, states: FleetReport) -> Table:
    """The median, the range, bounds and baselines, then the worst nodes."""
    values = sorted(one.values.values())
    words, ends = "lowest to highest", values
    if len(values) >= PERCENTILES:
        words, ends = "5th to 95th percentile", quantiles(values, n=20, method="inclusive")
    rows = [
        (f"median of {count(len(values), one.what)}", number(one.middle), "", ""),
        (words, f"{number(ends[0])} to {number(ends[-1])}", "", ""),
    ]
    for mark in one.marks:
        if mark.kind != "median":
            text = mark.text.removeprefix(f"{mark.kind} ")
            by = _change(mark.value, one)
            rows.append((f"{mark.kind} {text}", stated(mark.value, ""), by, ""))
    worst = list(dict.fromkeys([*_bad(one, states), *one.worst]))[:MAX_ROWS]
    for node in (*worst, *one.lost):
        own = one.values.get(node)
        shown = ("-", "-") if own is None else (number(own), _change(own, one))
        of_node = states.nodes.get(node_of(node))
        rows.append((to_rows("node", node), *shown, str(of_node.state) if of_node else ""))
    left = len(values) - MAX_ROWS
    note = f"The worst {MAX_ROWS}; {count(left, one.what)} more." if left > 0 else ""
    columns = ("node", f"value, {one.unit}", "compared with the median", "state")
    return Table(columns, rows, note, numeric=columns[1:3])


def _change(value: float, one: Fleet) -> str:
    return change(value / one.middle - 1) if one.middle else "-"
