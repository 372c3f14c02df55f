"""What `siteproof describe` knows of a system's nodes, and how it prints findings on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from siteproof import files
from siteproof.answers.attempts import failure
from siteproof.cli.records import print_wrapped
from siteproof.cli.shared import site_of
from siteproof.record import campaign as campaigns
from siteproof.record import descriptions
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Site
from siteproof.wording.findings import sentence
from siteproof.wording.verdicts import own

MAX_LINES = 20  # of one kind; --all shows all of them
TITLES = {  # how a line on a finding begins
    Kind.FIELD_DIFFERS: "odd",
    Kind.NO_MAJORITY: "no majority",
    Kind.FIELD_NOT_READ: "not read",
    Kind.FACT_DIFFERS: "not as stated",
    Kind.FACT_NOT_READ: "not read",
    Kind.NOT_STATED: "not stated",
    Kind.CHANGED: "changed",
    Kind.RESTARTED_BETWEEN: "health, first to last look",
    Kind.COUNTER_GREW: "health, first to last look",
    Kind.COUNTER_UNKNOWN: "health, first to last look",
}
NOT_DESCRIBED = "not described"
OnNodes = tuple[Finding, Iterable[str]]
COLUMNS = ("kind", "role or nodes", "field", "value", "share of the nodes")


@dataclass(frozen=True)
class Described:
    """The nodes of a system: which samples, the fields of each node, and what it could not read."""

    site: Site
    campaign: str
    since: str
    chosen: str
    sessions: Sessions
    samples: Sequence[Sample]
    fields: Mapping[str, Mapping[str, str]]
    unread: Mapping[str, Mapping[str, str]]

    def following(self, *words: str) -> str:
        """A command of ours on the same system, campaign and time."""
        chosen = ["--since", self.since] if self.since else []
        return own(self.site.system.system, self.campaign, *words, *chosen)


def read(system: str, since: str, name: str) -> Described:
    """The newest description of each node, of a time or campaign. Raises UserError."""
    site = site_of(system)
    sessions = Sessions(files.perflogs(), site.system.system)
    start = campaigns.since(since, datetime.now(UTC)) if since else None

    def answers(job: Header) -> bool:
        return job.check == descriptions.CHECK and any(
            sample.metric == descriptions.COUNT for sample in sessions.of_job(job)
        )

    wanted, words = campaigns.choose(sessions.headers, campaign=name, start=start, answers=answers)
    chosen = sessions.of(wanted)
    if not descriptions.described(chosen):
        words = "no description yet; 'reframe -c checks/ -r -n SystemDescription' makes one"
    logs = files.perflogs()
    return Described(
        site, name, since, words, sessions, chosen, *descriptions.with_unreadable(chosen, logs)
    )


def roles_of(site: Site) -> list[str]:
    """The roles of nodes on which checks run."""
    return sorted({role for one in site.system.partitions.values() for role in one.roles})


def not_described(found: Described, missing: Iterable[str]) -> Iterator[OnNodes]:
    """Why each of these nodes is not described."""
    failed = {
        sample.node: sample
        for sample in found.samples
        if sample.status != "ok" and sample.metric.partition(".")[0] == descriptions.CHECK
    }
    for node in missing:
        why = Finding(Kind.NOT_MEASURED, check=descriptions.CHECK)
        if node in failed:
            why = replace(failure(failed[node]), since="")
        yield why, [node]


def finding_rows(findings: Iterable[Finding]) -> Iterator[Sequence[str]]:
    """A line a finding."""
    for why in findings:
        title = TITLES.get(why.kind, NOT_DESCRIBED)
        yield title, why.subject, str(why.get("field") or ""), sentence(why), ""


def print_findings(findings: Iterable[Finding], *, whole: bool) -> None:
    """A line each, under their titles; of each title the first ones, unless all are wanted."""
    lines: dict[str, list[str]] = {}
    for why in findings:
        line = f"{why.subject}: {sentence(replace(why, subject=''))}"
        lines.setdefault(TITLES.get(why.kind, NOT_DESCRIBED), []).append(line)
    for title, texts in lines.items():
        for line in texts if whole else texts[:MAX_LINES]:
            print_wrapped(f"  {title}: {line}")
        if len(texts) > MAX_LINES and not whole:
            print_wrapped(f"  {title}: and {len(texts) - MAX_LINES} more; --all shows them")
