"""Pairs of nodes: which of them are slow, in which direction, and which node explains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from statistics import median

import numpy as np

from siteproof import units
from siteproof.links import matrix
from siteproof.links.matrix import Matrix
from siteproof.links.transfers import Grade
from siteproof.record.finding import Verdict, of_status
from siteproof.record.pair_units import FROM, as_pair, of_pairs
from siteproof.report import past
from siteproof.report.chapters import tested
from siteproof.report.figure import cells as drawn
from siteproof.report.figure.cells import (
    BROKEN,
    FAILED,
    MISSING,
    NO_ANSWER,
    NOT_EXPECTED,
    TOO_FEW,
    TYPICAL,
    WARNED,
    Panel,
    kinds_of,
)
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table, counted, few, nodes
from siteproof.sites import Site, pairs
from siteproof.units import count
from siteproof.wording.findings import change, number

MAX_FIGURES = 8  # figures
MAX_ROWS = 10
Pair = tuple[str, str]
COLUMNS = ("pair", "value", "compared with the typical", "other direction", "what")


def chapter(material: Material) -> Section | None:
    """A matrix for each headline metric of pairs and each link; none of a single pair."""
    found = [m for m in material.once(of_all) if len(m.values) + len(m.failed) > 1]
    if not found:
        return None
    figures = list(_figures(material.site, found[:MAX_FIGURES]))
    measured = sum(len(m.values) for m in found)
    lead = f"{count(measured, 'value')} of pairs in {count(len(found), 'matrix', 'matrices')}"
    lead += f"; {_states(found)}."
    points = [f"Not drawn: {m.title}" for m in found[MAX_FIGURES:]]
    tables = [*tested.of_pairs_over_links(material), *_between_groups(found)]
    return Section("matrix", "Pairs of nodes", lead, tables, figures, points)


def of_all(material: Material) -> list[Matrix]:
    """The matrices of what is judged; else of what others have published."""
    own = list(filter(of_pairs, map(as_pair, material.own)))
    found = own or list(filter(of_pairs, material.published))
    names = headlines(material.site, {sample.metric for sample in found})
    return [one for name in names for one in matrix.collect(material.site, found, name)]


def headlines(site: Site, measured: Collection[str]) -> Iterator[str]:
    """The metrics of pairs to show that have a value, or whose whole check failed."""
    for name, metric in site.catalogue.items():
        wanted = metric.of_pairs and units.kind(metric.unit) != "text"
        names = {name, f"{name.partition('.')[0]}.*"}
        shown = metric.headline or FROM in metric.point  # all pairs of one job
        if shown and wanted and not names.isdisjoint(measured):
            yield name


def _figures(site: Site, found: Sequence[Matrix]) -> Iterator[Figure]:
    seen: dict[str, int] = {}
    for one in found:
        base = f"matrix-{past.slug(one.name)}-{past.slug(one.link or 'any')}"
        name = past.own_name(base, seen)
        title = f"{one.title}, {one.unit}"
        svg, metric = _draw(site, one, title), one.name.partition(" ")[0]
        yield Figure(name, title, svg, _caption(one), _table(one), [metric])


def _draw(site: Site, one: Matrix, title: str) -> str:
    """Nodes that send down the side; of two ends one panel for each direction."""
    rows, columns, split = _ends(site, one)
    panels = [_panel(one, "from the row to the column", rows, columns)]
    if split:
        panels.append(_panel(one, "from the column to the row", rows, columns, back=True))
    return drawn.draw(title, columns, panels)


def _panel(
    one: Matrix, head: str, rows: Sequence[str], columns: Sequence[str], *, back: bool = False
) -> Panel:
    """The kind and the value of each pair; one that is not expected has neither.

    back: columns send to rows.
    """
    kinds, texts = _kinds(one), {pair: number(value) for pair, value in one.values.items()}
    texts |= {pair: sample.status for pair, sample in one.failed.items()}
    cells = np.full((len(rows), len(columns)), NOT_EXPECTED, np.uint8)
    words = {}
    for y, x in np.ndindex(cells.shape):
        pair = (columns[x], rows[y]) if back else (rows[y], columns[x])
        cells[y, x] = kinds.get(pair, NOT_EXPECTED)
        if pair in texts:
            words[y, x] = texts[pair]
    return Panel(head, rows, cells, words)


def _ends(site: Site, one: Matrix) -> tuple[list[str], list[str], bool]:
    """Rows, columns, and whether these are two ends."""
    every = {*one.values, *one.failed, *one.missing}
    senders, receivers = ({pair[n] for pair in every} for n in (0, 1))
    if not one.blame.directed:
        return sorted(senders), sorted(receivers), False
    here = senders | receivers
    if link := site.system.links.get(one.link):
        clients, servers = (set(ends(site, link)) for ends in (pairs.clients, pairs.servers))
        if clients.isdisjoint(servers) and here <= clients | servers:
            return sorted(clients & here), sorted(servers & here), True
    return sorted(here), sorted(here), False


def _kinds(one: Matrix) -> dict[Pair, int]:
    """The kind of each pair: of a bad one by its share of the typical value."""
    found = {pair: _kind(one, pair, value) for pair, value in one.values.items()}
    found |= dict.fromkeys(one.failed, FAILED)
    for pair, why in one.missing.items():
        lost = of_status(why.status) is Verdict.INCOMPLETE
        found[pair] = NO_ANSWER if lost else MISSING
    return found


def _kind(one: Matrix, pair: Pair, value: float) -> int:
    if pair in one.broken:
        return BROKEN
    if pair not in one.blame.bad:
        return {matrix.TOO_FEW: TOO_FEW, matrix.WARNED: WARNED}.get(one.state(pair), TYPICAL)
    typical = _typical(one)[0]
    if not (typical > 0 and value > 0):
        return 1
    share = typical / value if one.better == "lower" else value / typical
    return max(1, int(kinds_of(np.array([share]))[0]))


def _states(found: Sequence[Matrix]) -> str:
    """How many pairs are bad, and how many cannot be judged."""
    bad = sum(len(one.blame.bad) for one in found)
    unknown = sum(one.state(pair) == matrix.TOO_FEW for one in found for pair in one.values)
    text = count(bad, "bad pair")
    return f"{text}, {unknown} too few to judge without a bound" if unknown else text


def _typical(one: Matrix) -> tuple[float, str]:
    """The median of the pairs that are not bad, and in words of which; of all if none is left."""
    values = one.values.values()
    good = [value for pair, value in one.values.items() if pair not in one.blame.bad]
    return median(good or values), "the pairs that are not bad" if good else "all pairs"


def _caption(one: Matrix) -> str:
    ends = {node for pair in (*one.values, *one.failed, *one.missing) for node in pair}
    text = f"{count(len(one.values), 'pair')} of {count(len(ends), 'node')}"
    if one.values:
        values = one.values.values()
        low, high, middle = map(number, (min(values), max(values), median(values)))
        text += f" between {low} and {high} {one.unit}, median {middle} {one.unit}"
    grades = Counter(map(one.grades.grade, one.values.values()))
    states = {
        "beyond a bound": len(one.broken),
        "failed": len(one.failed),
        "not measured": len(one.missing),
        **{f"{g} ({one.grades.words(g)})": grades[g] for g in (Grade.CRITICAL, Grade.WARN)},
    }
    named = {
        "groups that explain bad pairs": one.groups,
        "nodes that explain bad pairs": list(map(str, one.blame.culprits)),
        "bad by themselves": one.blame.alone,
    }
    parts = [f"{words}: {few(names, 5)}" for words, names in named.items() if names]
    counts = counted(states.items())
    return f"{'; '.join(filter(None, [text, _states([one]), counts, *parts]))}."


def _between_groups(found: Sequence[Matrix]) -> Iterator[Table]:
    """A table of each matrix between groups: a row and a column a group."""
    for one in (one for one in found[:MAX_FIGURES] if one.between):
        names = sorted({name for pair in one.between for name in pair})
        values = {pair: number(value) for pair, value in one.between.items()}
        values |= {pair[::-1]: text for pair, text in values.items()}
        rows = [(a, *(values.get((a, b), "-") for b in names)) for a in names]
        title = f"{one.title}: what the better quarter of the pairs between two groups reaches"
        yield Table(("group", *names), rows, f"In {one.unit}.", numeric=names, title=title)


def _table(one: Matrix) -> Table:
    """The worst pairs, and those without a value."""
    sign = -1 if one.better == "lower" else 1
    order = [
        *sorted(one.failed),
        *sorted(one.values, key=lambda p: (p not in one.blame.bad, sign * one.values[p], p)),
    ]
    rows = [_row(one, pair) for pair in order[:MAX_ROWS]]
    parts = [f"In {one.unit}."]
    if one.values:
        typical, of = _typical(one)
        parts.append(f"Typical is {number(typical)} {one.unit}, the median of {of}.")
    if len(order) > MAX_ROWS:
        parts.append(f"The worst {MAX_ROWS}; {count(len(order) - MAX_ROWS, 'pair')} more.")
    if one.missing:
        ends = {n for pair in one.missing for n in pair}
        parts.append(f"{count(len(one.missing), 'pair')} of {nodes(ends)} without a value.")
    return Table(COLUMNS, rows, " ".join(parts), numeric=COLUMNS[1:4])


def _row(one: Matrix, pair: Pair) -> tuple[str, ...]:
    name, value = f"{pair[0]} > {pair[1]}", one.values.get(pair)
    back = number(one.values[pair[::-1]]) if pair[::-1] in one.values else "-"
    if value is None:
        sample = one.failed[pair]
        return name, "-", "-", back, f"{sample.status}: {sample.why}"
    typical, state = _typical(one)[0], one.state(pair)
    what = "" if state == matrix.GOOD else state
    if pair in one.broken:
        what = f"misses {one.broken[pair]}"
    return name, number(value), change(value / typical - 1) if typical else "-", back, what
