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
from siteproof.answers.attempts import MIDDLES, refusal
from siteproof.record import series
from siteproof.record.finding import Finding, note
from siteproof.record.pair_units import LINK, grouped, is_gpu
from siteproof.record.samples import SWEEP, Header, Sample
from siteproof.record.series import CONTRACTUAL, SYSTEM, Series
from siteproof.sites import Criterion, Site
from siteproof.trend.finds import FLEET, Find, Region
from siteproof.trend.lines import FOREIGN, Floats, Ints, RoleSeries, key_of
from siteproof.trend.survey import Examined, same_series
from siteproof.units import count

if TYPE_CHECKING:
    from siteproof.history import History

RUNS = 10  # of a series, with fewer its level is not known …
VALUES = 20  # … and values of all its nodes together, for the scatter
TIMES = 4.5  # coefficients of variation: of 320 healthy nodes, one in a thousand runs has one out
LEAST = 0.02  # no tolerance is smaller: a smaller change does not matter
STEPS = 0.005  # tolerances are rounded up to half a per cent
WIDEST = 0.5  # a metric that needs more has no baseline
BAD = 0.1  # of the nodes may be left out; with more of them the series itself is unstable


@dataclass(frozen=True)
class Proposal:
    """A baseline. median, mad: in the group's unit. tolerance: a share. left_out: nodes, and why.

    program, conditions, link: what a sample must have to be compared with it. short: nodes whose
    own median is short of it already.
    """

    group: RoleSeries
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
    left_out: Sequence[Finding] = ()
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
    def comment(self) -> str:
        """What it rests on, for the file."""
        per = f"{self.mad / self.median:.1%}".replace("%", " %")
        who = count(self.nodes, "GPU" if any(map(is_gpu, self.group.nodes)) else "node")
        if self.key.role in (LINK, SYSTEM):
            who = f"the {self.key.role}"
        elif self.link:
            who = f"{who} over {self.link}"
        return (
            f"{self.count} values of {who} in {self.runs} runs from {self.first} to "
            f"{self.last}: median {self.median:.5g} {self.group.unit}, MAD {per} of it"
        )


class Refused(Exception):
    """No baseline can be proposed. findings: why."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        super().__init__(findings)


Without = tuple[str, Sequence[Finding]]  # a series, and why it has no baseline


def propose(
    site: Site, h: History, examined: Examined, *, metric: str = "", since: datetime | None = None
) -> tuple[list[Proposal], list[Without]]:
    """Proposals, and each series that has none. metric: also if it is not a headline metric."""
    proposals: list[Proposal] = []
    without: list[Without] = []
    start = np.datetime64(since.astimezone(UTC).replace(tzinfo=None), "us") if since else None
    finds = grouped((id(find.stretch), find) for find in _open(examined.reported(), start))
    for group, newest in _newest(site, examined, metric):
        begins = [t for t in (start, _fleets_cut(group, examined)) if t is not None]
        try:
            proposals.append(_proposal(site, h, group, newest, finds, max(begins, default=None)))
        except Refused as refused:
            without.append((f"{group.name}{_link(group.key)}", refused.findings))
    return _distinct(proposals, without), without


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


def _fleets_cut(group: RoleSeries, examined: Examined) -> np.datetime64 | None:
    """Since when the whole fleet is at its present level, if somebody acknowledged that."""
    moments = [a.first_after.time for a in examined.known if a.of_fleet and same_series(a, group)]
    return np.datetime64(max(moments), "us") if moments else None


def _newest(
    site: Site, examined: Examined, metric: str
) -> Iterator[tuple[RoleSeries, list[Region]]]:
    """The series that may have a baseline, each with the newest stretch of each line.

    Of series that differ only in conditions that a run requires, the newest counts.
    """
    by_group: dict[int, dict[int, Region]] = {}
    for stretch in examined.stretches:  # the last one of a line stays
        by_group.setdefault(id(stretch.group), {})[stretch.node] = stretch
    last: dict[tuple[object, ...], RoleSeries] = {}
    for group in examined.lines.groups:
        if _is_calibrated(site, group.key, metric):
            key, link = group.key, dict(group.key.conditions).get(LINK)
            place = (key.metric, key.dims, key.environment, key.role, link)
            if place not in last or last[place].times[-1] < group.times[-1]:
                last[place] = group
    for group in last.values():
        yield group, list(by_group[id(group)].values())


def _is_calibrated(site: Site, key: Series, metric: str) -> bool:
    """Whether a series may have a baseline. metric: the requested one; others only by default."""
    entry, conditions = site.catalogue.get(key.metric), dict(key.conditions)
    if entry is None or not series.is_speed(entry) or key.role == FOREIGN:
        return False
    if SWEEP in conditions or conditions.get("mode") != CONTRACTUAL[0]:
        return False
    known = entry.headline or any(b.metric == key.metric for b in site.baselines.values())
    return known or bool(metric)


def _proposal(
    site: Site,
    h: History,
    group: RoleSeries,
    newest: Sequence[Region],
    finds: Mapping[int, list[Find]],
    start: np.datetime64 | None,
) -> Proposal:
    """start: older values do not count. Raises Refused."""
    sample = _sample(site, h, group)
    stable, left_out = _stable(site, group, newest, finds, start, sample)
    values, columns = _values(stable)
    runs = np.unique(columns)
    if runs.size < RUNS or values.size < VALUES:
        raise Refused(
            note(
                "too few: {runs} runs with {values} values; {needed_runs} runs and {needed_values} "
                "values are needed",
                runs=runs.size,
                values=values.size,
                needed_runs=RUNS,
                needed_values=VALUES,
            )
        )
    middle = float(np.median(values))
    tolerance = _tolerance(values, middle)
    first, last = group.times[[runs[0], runs[-1]]].astype("datetime64[D]")
    conditions, program = _conditions(site, group)
    return Proposal(
        group,
        middle,
        float(np.median(np.abs(values - middle))),
        tolerance,
        values.size,
        runs.size,
        sum(line.values.size > 0 for line in stable),
        first.item(),
        last.item(),
        _link_of(group.key),
        program,
        conditions,
        sample,
        left_out,
        list(_short(group, stable, middle, tolerance)),
    )


def _stable(
    site: Site,
    group: RoleSeries,
    newest: Sequence[Region],
    finds: Mapping[int, list[Find]],
    start: np.datetime64 | None,
    sample: Sample,
) -> tuple[list[Region], list[Finding]]:
    """The lines that count, and why others do not. Raises Refused where these are too many."""
    stable: list[Region] = []
    left_out: list[Finding] = []
    nodes = [line for line in newest if line.node != FLEET]
    for line in newest:
        changes = finds.get(id(line))
        if changes and line.node == FLEET:
            raise Refused(_unstable(changes[0], "the fleet as a whole"))
        if changes:
            left_out.append(_unstable(changes[0], "{subject}"))
        elif line.node != FLEET:
            stable.append(_since(line, start))
    stable, failing = _keeping(site, group, stable, sample)
    left_out += failing
    if left_out and len(left_out) > BAD * len(nodes):
        text = "{count} of {of} series cannot count"
        raise Refused(note(text, count=len(left_out), of=len(nodes)), left_out[0])
    return stable, left_out


def _conditions(site: Site, group: RoleSeries) -> tuple[dict[str, str], str]:
    """The conditions and the program that a baseline names. Raises Refused."""
    entry = site.catalogue[group.key.metric]
    unknown = [f"{k} {v}" for k, v in group.key.dims if k not in (*entry.conditions, LINK)]
    if unknown:
        raise Refused(note("a baseline cannot name {dimensions}", dimensions=", ".join(unknown)))
    every = {**dict(group.key.dims), **dict(group.key.conditions)}
    named = {k: v for k, v in every.items() if k in entry.conditions and k != LINK}
    return named, every.get("program", "") if entry.programs else ""


def _short(
    group: RoleSeries, lines: Sequence[Region], middle: float, tolerance: float
) -> Iterator[str]:
    """The nodes that a baseline would accuse from its first day."""
    for line in lines:
        if line.raw.size:
            own = float(np.median(line.raw)) / middle - 1
            if (own if group.better == "higher" else -own) < -tolerance:
                yield group.nodes[line.node]


def _unstable(find: Find, name: str) -> Finding:
    """The change for which a line does not count."""
    group = find.stretch.group
    return note(
        name + " is not stable: {what} of {change:change} at {since:minute}",
        subject="" if find.stretch.node == FLEET else group.nodes[find.stretch.node],
        since=group.moment(find.column).iso,
        what=find.kind,
        change=find.relative,
    )


def _sample(site: Site, h: History, group: RoleSeries) -> Sample:
    """A sample with the conditions of the newest of a series, to compare with a criterion's."""
    rows = h.sql(
        "SELECT DISTINCT dims, conditions, mode FROM samples WHERE system = ? AND metric = ? "
        "AND session = ? AND environment = ? AND status = 'ok' ORDER BY ALL",
        [site.system.system, group.key.metric, group.sessions[-1], group.key.environment],
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
    site: Site, group: RoleSeries, lines: Sequence[Region], sample: Sample
) -> tuple[list[Region], list[Finding]]:
    """The lines of which every value meets the contract, and what the others miss."""
    limits = list(_limits(site, group, sample))
    kept: list[Region] = []
    missed: list[Finding] = []
    for line in lines:
        name, number = _first_missed(line, limits)
        if not number:
            kept.append(line)
            continue
        text = "{subject} failed {criterion} in {count} of {runs} runs"
        why = note(
            text, subject=group.nodes[line.node], criterion=name, count=number, runs=line.raw.size
        )
        missed.append(why)
    return kept, missed


def _first_missed(line: Region, limits: Sequence[tuple[str, float, float]]) -> tuple[str, int]:
    """The first criterion that some values miss, and how many do."""
    for name, low, high in limits:
        if number := int(((line.raw < low) | (line.raw > high)).sum()):
            return name, number
    return "", 0


def _limits(site: Site, group: RoleSeries, sample: Sample) -> Iterator[tuple[str, float, float]]:
    """The limits of the contract for each value of a series, in its unit."""
    facts = site.hardware_of(group.key.role) if group.key.role in site.system.nodes else None
    for name, criterion in site.criteria.items():
        if (
            criterion.metric != group.key.metric
            or criterion.scope in MIDDLES
            or not _covers(site, group, criterion)
            or refusal(criterion, sample)
        ):
            continue
        low, high = criterion.limits(group.unit, facts)
        yield (name, float(low.value) if low else -np.inf, float(high.value) if high else np.inf)


def _covers(site: Site, group: RoleSeries, criterion: Criterion) -> bool:
    if criterion.links or group.key.role in (LINK, SYSTEM):
        return True  # the link is among the conditions
    return group.key.role in site.roles_of(criterion)


def _since(line: Region, start: np.datetime64 | None) -> Region:
    if start is None:
        return line
    kept = line.group.times[line.column] >= start
    return replace(line, column=line.column[kept], values=line.values[kept], raw=line.raw[kept])


def _values(lines: Sequence[Region]) -> tuple[Floats, Ints]:
    if not lines:
        return np.array([]), np.array([], dtype=np.int64)
    return (
        np.concatenate([line.raw for line in lines]),
        np.concatenate([line.column for line in lines]),
    )


def _tolerance(values: Floats, middle: float) -> float:
    """From the scatter of all values, of nodes and of runs alike. Raises Refused."""
    if middle <= 0:
        text = "a tolerance in per cent needs a median above 0, and it is {median:5g}"
        raise Refused(note(text, median=middle))
    cv = robust_sd(values - middle, float(np.abs(values).max())) / middle
    tolerance = ceil(round(max(TIMES * cv, LEAST) / STEPS, 6)) * STEPS
    if tolerance > WIDEST:
        raise Refused(note("it varies by {spread:whole}, too much for a baseline", spread=cv))
    return tolerance


def _link(key: Series) -> str:
    return f" over {_link_of(key)}" if _link_of(key) else ""


def _link_of(key: Series) -> str:
    return dict(key.conditions).get(LINK) or dict(key.dims).get(LINK, "")


def _distinct(proposals: Sequence[Proposal], without: list[Without]) -> list[Proposal]:
    """Of baselines that would cover the same samples the one with most values."""
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
            text = "a baseline cannot distinguish it from that in {environment}"
            same = note(text, environment=best[key].key.environment)
            without.append((f"{one.group.name} in {one.key.environment}", [same]))
        else:
            best[key] = one
    return sorted(best.values(), key=lambda p: (p.key.metric, p.key.role, p.link))
