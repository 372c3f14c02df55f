"""What `siteproof describe` knows of a system's nodes, and how it prints findings on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from siteproof import files
from siteproof.cli.records import print_wrapped
from siteproof.cli.shared import site_of
from siteproof.record import campaign as campaigns
from siteproof.record import descriptions
from siteproof.record.finding import Finding
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Site
from siteproof.wording.findings import sentence, title
from siteproof.wording.verdicts import own

MAX_LINES = 20  # of one kind; --all shows all of them
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


def finding_rows(findings: Iterable[Finding]) -> Iterator[Sequence[str]]:
    """A line a finding."""
    for why in findings:
        yield title(why), why.subject, str(why.get("field") or ""), sentence(why), ""


def print_findings(findings: Iterable[Finding], *, whole: bool) -> None:
    """A line each, under their titles; of each title the first ones, unless all are wanted."""
    lines: dict[str, list[str]] = {}
    for why in findings:
        line = f"{why.subject}: {sentence(replace(why, subject=''))}"
        lines.setdefault(title(why), []).append(line)
    for begin, texts in lines.items():
        for line in texts if whole else texts[:MAX_LINES]:
            print_wrapped(f"  {begin}: {line}")
        if len(texts) > MAX_LINES and not whole:
            print_wrapped(f"  {begin}: and {len(texts) - MAX_LINES} more; --all shows them")
