"""Made-up campaigns of a shipped site: samples as its checks keep them, written to perflogs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path

from siteproof import sites
from siteproof.record import descriptions, samples
from siteproof.record.samples import Header, Sample
from siteproof.sites import bought, pairs
from siteproof.sites.stated import NODE, Fact

Value = Callable[[str], object]  # of a node or pair `a>b`


@dataclass
class Campaign:
    """The jobs of one session. hours: how long ago it ended; minutes: how long it ran."""

    site: sites.Site
    hours: float = 1
    minutes: int = 30
    name: str = ""
    place: int = 1
    mode: str = "acceptance"
    environment: str = "system"
    jobs: list[list[Sample]] = field(default_factory=list)
    fields: list[tuple[Header, dict[str, dict[str, str]]]] = field(default_factory=list)

    def head(self, check: str, **conditions: str) -> Header:
        """A job of the session: one for each check and set of conditions."""
        end = datetime.now(UTC) - timedelta(hours=self.hours)
        begin = end - timedelta(minutes=self.minutes)
        return Header(
            session=f"{begin:%Y%m%dT%H%M%SZ}-{self.place:04}",
            system=self.site.system.system,
            partition="all",
            environment=self.environment,
            check=check,
            job=str(len(self.jobs) + 1),
            time=end.isoformat(timespec="seconds"),
            mode=self.mode,
            campaign=self.name,
            conditions=dict(conditions),
            place=self.place,
        )

    def pairs(
        self,
        link: str,
        metric: str,
        value: Value | object,
        *,
        trials: int = 1,
        dims: Sequence[Mapping[str, str]] = ({},),
        unit: str = "",
        **conditions: str,
    ) -> None:
        """A value of every directed pair of a link, or of each client where there is one way."""
        described = self.site.system.links[link]
        entry = self.site.catalogue[metric]
        both = pairs.directed if entry.directed else pairs.planned
        head = self.head(
            metric.partition(".")[0], link=link, pattern=described.pattern, **conditions
        )
        self.jobs.append(
            [
                Sample(
                    head,
                    a,
                    metric,
                    _decimal(value, f"{a}>{b}"),
                    unit or entry.unit,
                    trial=trial,
                    dims={"peer": b, "link": link, **more},
                )
                for a, b in both(self.site, described)
                for trial in range(1, trials + 1)
                for more in dims
            ]
        )

    def whole(
        self,
        metric: str,
        value: object,
        *,
        dims: Mapping[str, str] | None = None,
        **conditions: str,
    ) -> None:
        """A value of the system, or of a link as a whole where the dimensions name it."""
        head = self.head(metric.partition(".")[0], **conditions)
        unit = self.site.catalogue[metric].unit
        one = Sample(head, "", metric, _decimal(value, ""), unit, dims=dict(dims or {}))
        self.jobs.append([one])

    def nodes(
        self, roles: Sequence[str], metrics: Mapping[str, Value | object], **conditions: str
    ) -> None:
        """Values of every node of some roles, of one check."""
        head = self.head(next(iter(metrics)).partition(".")[0], **conditions)
        self.jobs.append(
            [
                Sample(head, node, metric, _decimal(value, node), self._unit(metric))
                for role in roles
                for node in self.site.expected(role)
                for metric, value in metrics.items()
            ]
        )

    def describe(self, roles: Sequence[str], of: Callable[[str], dict[str, str]]) -> None:
        """The fields of every node of some roles."""
        head = self.head(descriptions.CHECK)
        kept = {node: of(node) for role in roles for node in self.site.expected(role)}
        self.fields.append((head, kept))
        self.jobs.append(
            [
                sample
                for node, own in kept.items()
                for sample in (
                    Sample(head, node, descriptions.COUNT, Decimal(len(own)), "count"),
                    Sample(head, node, descriptions.DIGEST, _digest(own), "text"),
                )
            ]
        )

    def write(self, perflogs: Path) -> None:
        """Keep the jobs as collecting keeps them."""
        for head, kept in self.fields:
            descriptions.write(perflogs, head, kept)
        for found in self.jobs:
            samples.write(perflogs, found[0].header, found)

    def _unit(self, metric: str) -> str:
        entry = self.site.catalogue.get(metric)
        return entry.unit if entry else "text"


def _decimal(value: Value | object, place: str) -> Decimal | str:
    found = value(place) if callable(value) else value
    return found if isinstance(found, str) else Decimal(str(found))


def _digest(fields: Mapping[str, str]) -> str:
    """That of the fields that were read."""
    unread = descriptions.UNREADABLE
    return descriptions.digest({k: v for k, v in fields.items() if not k.startswith(unread)})


def as_stated(site: sites.Site, node: str) -> dict[str, str]:
    """Fields of a node that meet all facts that its site states of it."""
    stated = [one for s in bought.sections_of(site, node).values() for one in s.fields.items()]
    most: dict[str, int] = {}
    for glob, fact in stated:
        most[glob] = max(most.get(glob, 0), 1 if fact.count is None else fact.count)
    facts: dict[str, list[Fact]] = {}
    for glob, fact in stated:
        for number in range(most[glob] if fact.count is None else fact.count):
            facts.setdefault(glob.replace("*", f"x{number}"), []).append(fact)
    found = {name: _meeting_all(own, name, node) for name, own in facts.items()}
    return {"gpu.count": "0", "host.name": node} | found


def _meeting_all(facts: Sequence[Fact], name: str, node: str) -> str:
    """A value that meets several facts: one of the texts, or two of them joined."""
    each = [_meeting(fact).replace(NODE, node) for fact in facts]
    joined = [" ".join(order) for size in (1, 2) for order in permutations(each, size)]
    return next(t for t in joined if all(fact.met_by(t, name, node) for fact in facts))


def _meeting(fact: Fact) -> str:
    """A value that meets a fact."""
    texts = fact.pattern or fact.one_of or [fact.exact or fact.about or fact.at_least or ""]
    return texts[0].replace("*", "7").replace("?", "-")
