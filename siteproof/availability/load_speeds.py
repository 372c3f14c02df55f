"""Speed under load: each headline metric over the rounds of a soak, first against last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from siteproof.analysis import drift
from siteproof.analysis.before_after import Change, compare
from siteproof.availability.rounds import Session, moment
from siteproof.record import series
from siteproof.record.grouped import grouped
from siteproof.record.samples import Sample
from siteproof.record.series import JobValue
from siteproof.sites import Metric, Site

SHARE, FEWEST = 4, 3  # the first and last quarter of the rounds are compared, of three at least


@dataclass(frozen=True)
class AtRound:
    """A metric in a round.

    begin: When the round began.
    share: Median over the nodes of each value as a share of the node's own median.
    """

    begin: datetime
    share: float


@dataclass(frozen=True)
class Speed:
    """A headline metric over the rounds.

    metric: The metric, with its dimensions.
    unit: The unit of first and last.
    nodes: How many nodes have values.
    rounds: How many rounds have values.
    first: Median in the first rounds that are compared; null with fewer than 6 rounds.
    last: Median in the last rounds that are compared.
    compared: How many rounds are compared at each end.
    change: From first to last, as a share.
    effect: Better, worse, the same, or undecidable, by the rule of 'siteproof compare'.
    drift: Change over all rounds by the slope, as a share; null with fewer than 30 rounds.
    drifts: Whether that slope is proven and large enough, by the rule of 'siteproof trend'.
    shares: The metric in each round with values.
    """

    metric: str
    unit: str
    nodes: int
    rounds: int
    first: float | None
    last: float | None
    compared: int
    change: float | None
    effect: str
    drift: float | None
    drifts: bool
    shares: Sequence[AtRound]


def speeds(site: Site, rounds: Sequence[Session], found: Sequence[Sample]) -> list[Speed]:
    """Each headline speed of nodes, links and the system, in the order of the catalogue."""
    begins = {one.name: one.begin for one in rounds}
    places = {name: place for place, name in enumerate(site.catalogue)}
    values = series.collect(site, found, series.is_headline, of_system=True)
    ordered = sorted(values, key=lambda key: (places[key.metric], key.name, key.role))
    return [_speed(site.catalogue[key.metric], key.name, values[key], begins) for key in ordered]


def _speed(
    metric: Metric, name: str, nodes: Mapping[str, Sequence[JobValue]], begins: Mapping[str, int]
) -> Speed:
    own = {node: median(value.value for value in values) for node, values in nodes.items()}
    shares = _shares(nodes, own, begins)
    size = max(FEWEST, len(shares) // SHARE)
    change: Change | None = None
    if len(shares) >= 2 * size:
        values = [median(own.values()) * share for share in shares.values()]
        change = compare(values[:size], values[-size:], metric.better)
    slope = None
    if len(shares) >= drift.LONG_ENOUGH:
        slope = drift.slope(list(shares), list(shares.values()))
    return Speed(
        *(name, metric.unit, len(nodes), len(shares)),
        first=change.before if change else None,
        last=change.after if change else None,
        compared=size if change else 0,
        change=change.change if change else None,
        effect=change.text if change else "too few rounds",
        drift=slope.relative if slope else None,
        drifts=slope is not None and drift.worth_an_alert(slope),
        shares=[AtRound(moment(begin), share) for begin, share in shares.items()],
    )


def _shares(
    nodes: Mapping[str, Sequence[JobValue]], own: Mapping[str, float], begins: Mapping[str, int]
) -> dict[int, float]:
    """By the begin of each round: the median over the nodes of a value as a share of its node's.

    So a round without a fast or a slow node is not slower or faster.
    """
    found = grouped(
        (begins[value.session], value.value / own[node])
        for node, values in nodes.items()
        for value in values
        if own[node]
    )
    return {begin: median(found[begin]) for begin in sorted(found)}
