"""Accepted campaigns: which one later ones are compared with, who accepted it, when, and why.

Each acceptance is a file `perflogs/<system>/accepted/<time>.json`, which is never changed or
removed. The newest one is valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from siteproof import nodesets
from siteproof.errors import UserError, hint
from siteproof.record import campaign, evidence_records
from siteproof.record.finding import Verdict, in_order
from siteproof.record.samples import Header, Order
from siteproof.record.series import CONTRACTUAL

if TYPE_CHECKING:
    from siteproof.verdict.judgement import Judgement

ACCEPTABLE = (Verdict.PENDING, Verdict.PASS)  # and a SKIP that the site excuses
LATEST, PREVIOUS, ACCEPTED = "latest", "previous", "accepted"
WORDS = (ACCEPTED, LATEST, PREVIOUS)


@dataclass(frozen=True)
class Acceptance:
    """One acceptance. name: of the campaign or session. when: UTC, ISO 8601.

    verdicts: the number of criteria with each verdict. suite: the revisions that measured.
    despite: the criteria that were not met, and the checks that failed besides, if it was accepted
    nevertheless.
    """

    name: str
    sessions: list[str]
    who: str
    why: str
    when: str
    verdicts: dict[str, int]
    suite: list[str]
    despite: list[str]


@dataclass(frozen=True)
class LastTime:
    """What is compared with where no name is given. acceptance: if it was accepted."""

    name: str
    headers: Sequence[Header]
    acceptance: Acceptance | None = None

    @cached_property
    def _ids(self) -> set[int]:
        return set(map(id, self.headers))

    def holds(self, header: Header) -> bool:
        """Whether a job is of it."""
        return id(header) in self._ids


def last_time(
    headers: Sequence[Header], sessions: Collection[str], before: Sequence[Acceptance]
) -> LastTime | None:
    """What was accepted last before these sessions; else the last that measured the same."""
    judged = [h for h in headers if h.session in sessions]
    if not judged:
        return None
    start = min(h.order for h in judged)
    campaigns = {h.campaign for h in judged} - {""}
    earlier = [
        h
        for h in headers
        if h.order < start and h.session not in sessions and h.campaign not in campaigns
    ]
    for record in reversed(before):
        if known := [h for h in earlier if h.session in record.sessions]:
            return LastTime(record.name, known, record)
    return _last_alike(judged, earlier)


def _last_alike(judged: Sequence[Header], earlier: Sequence[Header]) -> LastTime | None:
    """The last that measured the same: for a campaign another one, if there is any."""
    kinds = {_kind(h) for h in judged}
    alike = [h for h in earlier if _kind(h) in kinds]
    if any(h.campaign for h in judged):
        alike = [h for h in alike if h.campaign] or alike
    if not alike:
        return None
    name = names(alike)[-1]
    return LastTime(name, [h for h in earlier if name in (h.campaign, h.session)])


def _kind(header: Header) -> tuple[str, str, str]:
    mode = CONTRACTUAL[0] if header.mode in CONTRACTUAL else header.mode
    return header.check, header.environment, mode


def in_the_way(judged: Judgement) -> list[str]:
    """The criteria whose verdict does not allow an acceptance, and the checks that failed besides.

    Each with its verdict or status, and a check with its nodes.
    """
    failed: dict[str, list[str]] = {}
    for one in judged.failed_besides:
        failed.setdefault(f"{one.header.check} {one.status}", []).append(one.node)
    criteria = (v for v in judged.verdicts if v.verdict not in ACCEPTABLE and not v.excused)
    return [f"{v.id} {v.verdict}" for v in criteria] + [
        f"{what} on {nodesets.of(nodes)}" for what, nodes in failed.items()
    ]


def accept(judged: Judgement, name: str, who: str, why: str, perflogs: Path) -> Acceptance:
    """Record an acceptance. Raises OSError if perflogs cannot be written, and UserError."""
    now = datetime.now(UTC)
    record = Acceptance(
        name,
        sorted({s.header.session for s in judged.samples}),
        who,
        why,
        now.isoformat(),
        in_order(Counter(str(v.verdict) for v in judged.verdicts)),
        sorted({s.header.provenance.get("suite", "unknown") for s in judged.samples}),
        in_the_way(judged),
    )
    target = folder(perflogs, judged.site.system.system) / f"{now:%Y%m%dT%H%M%S.%fZ}.json"
    evidence_records.keep(target, perflogs, asdict(record))
    return record


def folder(perflogs: Path, system: str) -> Path:
    """The folder of a system's acceptances."""
    return perflogs / system / "accepted"


def read_all(perflogs: Path, system: str) -> list[Acceptance]:
    """Every acceptance of a system, oldest first. Raises UserError for a broken record."""
    found = sorted(folder(perflogs, system).glob("[!.]*.json"))
    return [_read(path) for path in found]


def resolve(given: str, headers: Sequence[Header], accepted: Sequence[Acceptance]) -> str:
    """The campaign or session that a name or one of WORDS selects. Raises UserError."""
    order = names(headers)
    if given == ACCEPTED:
        if not accepted:
            command = "'siteproof accept CAMPAIGN --why TEXT' accepts one"
            raise UserError(ACCEPTED, "nothing has been accepted yet", hint=command)
        return accepted[-1].name
    if given in (LATEST, PREVIOUS):
        place = -1 if given == LATEST else -2
        if len(order) < -place:
            raise UserError(given, f"there are {len(order)} campaigns and sessions", order)
        return order[place]
    return given


def jobs_of(name: str, headers: Sequence[Header]) -> Callable[[Header], bool]:
    """Whether a job is of a campaign, or of a session. Raises UserError if none is."""
    if name and any(h.campaign in (name, name.rpartition("@")[0]) for h in headers if h.campaign):
        return campaign.choose(headers, campaign=name)[0]
    if name and any(h.session == name for h in headers):
        return lambda h: h.session == name
    if not headers:
        raise UserError(name or "''", campaign.NOTHING, hint=campaign.MEASURE)
    known = names(headers)
    what = f"unknown campaign or session{hint(name, [*known, *WORDS])}"
    raise UserError(name or "''", what, [*known[-8:], *WORDS])


def names(headers: Sequence[Header]) -> list[str]:
    """Campaigns, and sessions without a campaign, the newest at the end."""
    newest: dict[str, Order] = {}
    for header in headers:
        if not header.campaign:
            newest[header.session] = max(newest.get(header.session, header.order), header.order)
    parts = campaign.all_parts(headers)
    last = {part[0].campaign: part for part in parts}
    for part in parts:
        name = part[0].campaign
        newest[name if part is last[name] else campaign.address(part)] = part[-1].order
    return sorted(newest, key=lambda name: (newest[name], name))


def _read(path: Path) -> Acceptance:
    record = evidence_records.of_kind(path, Acceptance, "an acceptance")
    record |= {key: list(map(str, v)) for key, v in record.items() if isinstance(v, list)}
    return Acceptance(**record | {"verdicts": in_order(record["verdicts"])})
