"""What each series would have as its baseline, or why none can be proposed.

The bound is the median; the tolerance is 4.5 robust coefficients of variation, because "every node
within 3 %" fails a healthy fleet of 320 nodes with a CV of 1 % every third time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from siteproof.analysis.spread import robust_sd
from siteproof.judge.criterion import MIDDLES, refusal
from siteproof.record import series
from siteproof.record.pair_units import LINK
from siteproof.record.samples import Header, Sample
from siteproof.record.series import CONTRACTUAL, SWEEP, SYSTEM, Series
from siteproof.sites import Criterion, Site
from siteproof.trend.finds import FLEET, Find, Stretch
from siteproof.trend.lines import FOREIGN, Floats, Group, Ints, key_of
from siteproof.trend.survey import Examined, same_series
from siteproof.units import count

if TYPE_CHECKING:
    from siteproof.history import History

RUNS = 10  # of a series, below which nobody knows what is usual …
VALUES = 20  # … and values of all its nodes together, of which the scatter is taken
TIMES = 4.5  # coefficients of variation: of 320 healthy nodes, one in a thousand runs has one out
LEAST = 0.02  # no tolerance is smaller: less is not worth a word
STEPS = 0.005  # tolerances are rounded up to half a per cent
WIDEST = 0.5  # a figure that needs more has no usual value
BAD = 0.1  # of the nodes may be left out; beyond that it is the series that is unstable


@dataclass(frozen=True)
class Proposal:
    """A baseline. median, mad: in `unit`. tolerance: a share. left_out: a line each.

    programs, conditions, links: what a sample must have to be compared with it. short: nodes
    whose own median is short of it already.
    """

    group: Group
    median: float
    mad: float
    tolerance: float
    count: int
    runs: int
    nodes: int
    first: date
    last: date
    link: str
    program: str
    conditions: Mapping[str, str]
    sample: Sample
    left_out: Sequence[str] = ()
    short: Sequence[str] = ()

    @property
    def key(self) -> Series:
        """Its series."""
        return self.group.key

    @property
    def kind(self) -> str:
        """The side on which values are bad."""
        return "at_least" if self.group.better == "higher" else "at_most"

    @property
    def told(self) -> str:
        """What it rests on, for a comment."""
        per = f"{self.mad / self.median:.1%}".replace("%", " %")
        who = count(self.nodes, "node")
        if self.key.role in (LINK, SYSTEM):
            who = f"the {self.key.role}"
        elif self.link:
            who = f"{who} over {self.link}"
        return (
            f"{self.count} values of {who} in {self.runs} runs from {self.first} to "
            f"{self.last}: median {self.median:.5g} {self.group.unit}, MAD {per} of it"
        )


class Refused(Exception):
    """Why no baseline can be proposed."""


def propose(
    site: Site, h: History, examined: Examined, *, metric: str = "", since: datetime | None = None
) -> tuple[list[Proposal], list[str]]:
    """Proposals, and a line for each series that has none. metric: also if it is no headline."""
    proposals, refused = [], []
    finds: dict[int, list[Find]] = {}
    start = np.datetime64(since.astimezone(UTC).replace(tzinfo=None), "us") if since else None
    for find in _open(examined.seen.finds, start):
        finds.setdefault(id(find.stretch), []).append(find)
    for group, newest in _newest(site, examined, metric):
        try:
            begin = max(
                [t for t in (start, _fleets_cut(group, examined)) if t is not None], default=None
            )
            proposals.append(_proposal(site, h, group, newest, finds, begin))
        except Refused as why:
            refused.append(f"{group.told}{_link(group.key)}: {why}")
    return _unlike(proposals, refused), refused


def _open(finds: Sequence[Find], start: np.datetime64 | None) -> Iterator[Find]:
    """Without falls that were made good, what made them good, and steps before the start."""
    back = {(id(f.stretch), f.made_good) for f in finds if f.made_good is not None}
    for find in finds:
        early = (
            start is not None
            and find.kind != "drift"
            and find.stretch.group.times[find.column_before] < start
        )
        if find.made_good is None and (id(find.stretch), find.at) not in back and not early:
            yield find


def _fleets_cut(group: Group, examined: Examined) -> np.datetime64 | None:
    """Since when the whole fleet is at its present level, if somebody acknowledged that."""
    moments = [a.first_after.time for a in examined.known if a.of_fleet and same_series(a, group)]
    return np.datetime64(max(moments), "us") if moments else None


def _newest(site: Site, examined: Examined, metric: str) -> Iterator[tuple[Group, list[Stretch]]]:
    """The series that may have a baseline, each with the newest stretch of each line.

    Of series that only the asked conditions tell apart the one that was measured last counts.
    """
    by_group: dict[int, dict[int, Stretch]] = {}
    for stretch in examined.stretches:  # the last one of a line stays
        by_group.setdefault(id(stretch.group), {})[stretch.node] = stretch
    usual = {b.metric for b in site.baselines.values()}
    last: dict[tuple[object, ...], Group] = {}
    for group in examined.lines.groups:
        key, entry = group.key, site.catalogue.get(group.key.metric)
        asked = dict(key.conditions)
        if entry is None or not series.is_speed(entry) or key.role == FOREIGN or SWEEP in asked:
            continue
        if asked.get("mode") != CONTRACTUAL[0]:
            continue
        if not (metric or entry.headline or key.metric in usual):
            continue
        place = (key.metric, key.dims, key.environment, key.role, asked.get(LINK))
        if place not in last or last[place].times[-1] < group.times[-1]:
            last[place] = group
    for group in last.values():
        yield group, list(by_group[id(group)].values())


def _proposal(
    site: Site,
    h: History,
    group: Group,
    newest: Sequence[Stretch],
    finds: Mapping[int, list[Find]],
    start: np.datetime64 | None,
) -> Proposal:
    """start: older values do not count. Raises Refused."""
    fleet = [f for s in newest if s.node == FLEET for f in finds.get(id(s), ())]
    if fleet:
        raise Refused(f"the fleet as a whole is not stable: {_told(fleet[0])}")
    mine = [s for s in newest if s.node != FLEET]
    stable = [_since(s, start) for s in mine if id(s) not in finds]
    left_out = [
        f"{group.nodes[s.node]} is not stable: {_told(finds[id(s)][0])}"
        for s in mine
        if id(s) in finds
    ]
    sample = _sample(site, h, group)
    stable, failing = _keeping(site, group, stable, sample)
    left_out += failing
    if left_out and len(left_out) > BAD * len(mine):
        raise Refused(f"{len(left_out)} of {len(mine)} lines cannot count: {left_out[0]}")
    values, columns = _values(stable)
    runs = np.unique(columns)
    if runs.size < RUNS or values.size < VALUES:
        what = f"{runs.size} runs with {values.size} values"
        raise Refused(f"too few: {what}; {RUNS} runs and {VALUES} values are needed")
    middle = float(np.median(values))
    tolerance = _tolerance(values, middle)
    times = group.times[[runs[0], runs[-1]]].astype("datetime64[D]")
    asked, entry = (
        {**dict(group.key.dims), **dict(group.key.conditions)},
        site.catalogue[group.key.metric],
    )
    if unknown := [f"{k} {v}" for k, v in group.key.dims if k not in (*entry.conditions, LINK)]:
        raise Refused(f"a baseline cannot name {', '.join(unknown)}")
    return Proposal(
        group,
        middle,
        float(np.median(np.abs(values - middle))),
        tolerance,
        values.size,
        runs.size,
        sum(line.values.size > 0 for line in stable),
        times[0].item(),
        times[1].item(),
        asked.get(LINK, ""),
        asked.get("program", "") if entry.programs else "",
        {k: v for k, v in asked.items() if k in entry.conditions and k != LINK},
        sample,
        left_out,
        list(_short(group, stable, middle, tolerance)),
    )


def _short(
    group: Group, lines: Sequence[Stretch], middle: float, tolerance: float
) -> Iterator[str]:
    """The nodes that a baseline would accuse from its first day."""
    for line in lines:
        if line.raw.size:
            own = float(np.median(line.raw)) / middle - 1
            if (own if group.better == "higher" else -own) < -tolerance:
                yield group.nodes[line.node]


def _told(find: Find) -> str:
    change = f"{find.step.relative:+.1%}".replace("%", " %")
    return f"{find.kind} of {change}, {find.stretch.group.runs[find.column].moment}"


def _sample(site: Site, h: History, group: Group) -> Sample:
    """A sample as the newest of a series, for what a criterion asks of conditions."""
    rows = h.sql(
        "SELECT DISTINCT dims, conditions, mode FROM samples WHERE system = ? AND metric = ? "
        "AND session = ? AND environment = ? AND status = 'ok' ORDER BY ALL",
        [site.system.system, group.key.metric, group.runs[-1].session, group.key.environment],
    )
    found = [
        Sample(
            Header("", site.system.system, "", group.key.environment, "", "", "", mode=mode),
            "",
            group.key.metric,
            unit=group.unit,
            dims=json.loads(dims),
            own_conditions=json.loads(conditions),
        )
        for dims, conditions, mode in rows
    ]
    wanted = replace(group.key, role="")
    return next(
        sample
        for sample in found
        if series.alike(
            wanted, key_of(sample.metric, group.key.environment, sample.dims, sample.own_conditions)
        )
    )


def _keeping(
    site: Site, group: Group, lines: Sequence[Stretch], sample: Sample
) -> tuple[list[Stretch], list[str]]:
    """The lines of which every value keeps the contract, and the others in words."""
    limits = list(_limits(site, group, sample))
    kept, told = [], []
    for line in lines:
        bad = next(
            (
                (name, count)
                for name, low, high in limits
                if (count := int(((line.raw < low) | (line.raw > high)).sum()))
            ),
            None,
        )
        if bad:
            told.append(
                f"{group.nodes[line.node]} failed {bad[0]} in {bad[1]} of {line.raw.size} runs"
            )
        else:
            kept.append(line)
    return kept, told


def _limits(site: Site, group: Group, sample: Sample) -> Iterator[tuple[str, float, float]]:
    """What the contract asks of each value of a series, in its unit."""
    facts = site.hardware_of(group.key.role) if group.key.role in site.system.nodes else None
    for name, criterion in site.criteria.items():
        if (
            criterion.metric != group.key.metric
            or criterion.scope in MIDDLES
            or not _speaks_of(site, group, criterion)
            or refusal(criterion, sample)
        ):
            continue
        low, high = criterion.limits(group.unit, facts)
        yield (name, float(low.value) if low else -np.inf, float(high.value) if high else np.inf)


def _speaks_of(site: Site, group: Group, criterion: Criterion) -> bool:
    if criterion.links or group.key.role in (LINK, SYSTEM):
        return True  # the link is among the conditions
    return group.key.role in site.roles_of(criterion)


def _since(line: Stretch, start: np.datetime64 | None) -> Stretch:
    if start is None:
        return line
    kept = line.group.times[line.column] >= start
    return replace(line, column=line.column[kept], values=line.values[kept], raw=line.raw[kept])


def _values(lines: Sequence[Stretch]) -> tuple[Floats, Ints]:
    if not lines:
        return np.array([]), np.array([], dtype=np.int64)
    return (
        np.concatenate([line.raw for line in lines]),
        np.concatenate([line.column for line in lines]),
    )


def _tolerance(values: Floats, middle: float) -> float:
    """From the scatter of all values, of nodes and of runs alike. Raises Refused."""
    if middle <= 0:
        raise Refused(f"a median of {middle:.5g} has no share that would be usual")
    cv = robust_sd(values - middle, float(np.abs(values).max())) / middle
    tolerance = ceil(round(max(TIMES * cv, LEAST) / STEPS, 6)) * STEPS
    if tolerance > WIDEST:
        raise Refused(f"it varies by {cv:.0%}, which is no usual value")
    return tolerance


def _link(key: Series) -> str:
    link = dict(key.conditions).get(LINK) or dict(key.dims).get(LINK)
    return f" over {link}" if link else ""


def _unlike(proposals: Sequence[Proposal], refused: list[str]) -> list[Proposal]:
    """Baselines that would speak of the same samples: the one with most values stays."""
    best: dict[object, Proposal] = {}
    for one in sorted(proposals, key=lambda p: -p.count):
        key = (
            one.key.metric,
            one.key.role,
            one.link,
            one.program,
            tuple(sorted(one.conditions.items())),
        )
        if key in best:
            refused.append(
                f"{one.group.told} in {one.key.environment}: a baseline cannot tell it "
                f"from that in {best[key].key.environment}"
            )
        else:
            best[key] = one
    return sorted(best.values(), key=lambda p: (p.key.metric, p.key.role, p.link))
