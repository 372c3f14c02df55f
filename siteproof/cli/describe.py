"""`siteproof describe`: what the nodes of each role are, and which are unlike the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click

from siteproof import files, nodesets, sites
from siteproof.analysis import counters
from siteproof.analysis.uniformity import Uniformity, drift, is_identity, vote
from siteproof.cli.shared import which_samples
from siteproof.compare import accepted
from siteproof.errors import ExitCode, UserError
from siteproof.record import campaign as campaigns
from siteproof.record import descriptions
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Site

SHOWN = 20  # lines of one kind; --all shows every one
BULK = ("cpu.flag.", "cpu.vulnerability.", "module.", "package.", "pci.", "sysctl.", "mount./sys/")
# ... thousands of fields that nobody reads one after the other


@dataclass(frozen=True)
class Described:
    """The nodes of a system: which samples, what each node says, what it could not read."""

    site: Site
    chosen: str
    sessions: Sessions
    samples: Sequence[Sample]
    fields: Mapping[str, Mapping[str, str]]
    unread: Mapping[str, Mapping[str, str]]


@dataclass
class Answer:
    """What the last line and the exit code say. odd: in how many fields each such node differs."""

    alike: int = 0
    odd: dict[str, int] = field(default_factory=dict)
    split: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@click.command()
@click.argument("node", required=False)
@which_samples
@click.option(
    "--against",
    default="",
    metavar="CAMPAIGN",
    help="Show changes since CAMPAIGN; without it, since the accepted one.",
)
@click.option("--all", "show_all", is_flag=True, help="Every field, and every field that differs.")
def describe(
    node: str | None, system: str, since: str, campaign: str, against: str, show_all: bool
) -> None:
    """Show hardware and software of the nodes of each role, and which nodes differ.

    With NODE: everything that the node reported, and where it differs from the majority of its
    role. Exit code 1: nodes of a role differ; 3: nodes have not been described.

    \b
    siteproof describe
    siteproof describe node003
    """
    found = _read(system, since, campaign)
    if node is not None:
        raise SystemExit(_node(found, node))
    most = None if show_all else SHOWN
    click.echo(f"{found.site.system.system}: {found.chosen}")
    answer = Answer()
    for role in _roles(found.site):
        _role(found, role, answer, most)
    _drift(found, against, most)
    _health(found.samples, most)
    click.echo(_last_line(answer))
    raise SystemExit(_code(answer))


def _read(system: str, since: str, name: str) -> Described:
    site = sites.load(system or sites.recognise())
    files.must_exist()
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
        site,
        words,
        sessions,
        chosen,
        descriptions.of(chosen, logs),
        descriptions.unreadable(chosen, logs),
    )


def _roles(site: Site) -> list[str]:
    return sorted({partition.role for partition in site.system.partitions.values()})


def _compare(found: Described, role: str) -> Uniformity:
    nodes = [node for node in found.site.expected(role) if node in found.fields]
    return vote({n: found.fields[n] for n in nodes}, {n: found.unread[n] for n in nodes})


def _role(found: Described, role: str, answer: Answer, most: int | None) -> None:
    """Print what the nodes of a role are and add them to the answer."""
    expected = list(found.site.expected(role))
    same = _compare(found, role)
    click.echo(f"{role}: {len(same.nodes)} of {len(expected)} nodes described")
    for name, held in same.majority.items():
        if held.value is not None and (most is None or not name.startswith(BULK)):
            click.echo(f"  {name} = {held.value}{_share(held.share)}")
    odd: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for node, differences in same.odd.items():
        for d in differences:
            odd[d.field, _value(d.value), _value(d.majority)].append(node)
    _list(
        "odd",
        [
            f"{_set(nodes)}: {name}: found {value}, majority {other}"
            for (name, value, other), nodes in odd.items()
        ],
        most,
    )
    _list(
        "no majority",
        [
            f"{name}: " + "; ".join(f"{_value(v)} ({_set(nodes)})" for v, nodes in values.items())
            for name, values in same.undecided.items()
        ],
        most,
    )
    _list("not read", _unread({n: found.unread[n] for n in same.nodes}), most)
    missing = [node for node in expected if node not in found.fields]
    _list("not described", _why_missing(found, missing), most)
    answer.odd |= {node: len(differences) for node, differences in same.odd.items()}
    answer.split += same.undecided
    answer.missing += missing
    answer.alike += len(same.nodes) - len(same.odd)


def _unread(unread: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Each thing that could not be read, with the reason and the nodes."""
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, names in unread.items():
        for name, why in names.items():
            told[name, why].append(node)
    return [f"{name}: {why} ({_set(nodes)})" for (name, why), nodes in sorted(told.items())]


def _why_missing(found: Described, missing: Iterable[str]) -> list[str]:
    whys = {
        s.node: f"{s.status}: {s.why}"
        for s in found.samples
        if s.status != "ok" and s.metric.partition(".")[0] == descriptions.CHECK
    }
    groups: dict[str, list[str]] = defaultdict(list)
    for node in missing:
        groups[whys.get(node, "nobody has asked it")].append(node)
    return [f"{_set(nodes)}: {why}" for why, nodes in groups.items()]


def _drift(found: Described, against: str, most: int | None) -> None:
    """Print what has changed since a campaign, or since what was accepted last before it."""
    if against:
        wanted, words = campaigns.choose(found.sessions.headers, campaign=against)
    else:
        newest = {s.header.session for s in found.samples}
        records = [
            a
            for a in accepted.read_all(files.perflogs(), found.site.system.system)
            if not newest.intersection(a.sessions)
        ]
        if not records:
            return
        last = records[-1]
        wanted = lambda header: header.session in last.sessions  # noqa: E731
        words = f"{last.name}, accepted by {last.who}"
    before = descriptions.of(found.sessions.of(wanted), files.perflogs())
    if not (before or against):
        return
    if not before:
        raise UserError("--against", f"no description in {words}")
    changes = drift(before, found.fields)
    both = len(before.keys() & found.fields)
    click.echo(f"since {words}: {_fields(len(changes), 'change')}, {both} nodes compared")
    _list(
        "changed",
        [f"{_set(c.nodes)}: {c.field}: {_value(c.before)} -> {_value(c.after)}" for c in changes],
        most,
    )


def _health(found: Sequence[Sample], most: int | None) -> None:
    """Print what has grown between the first and the last look at each node."""
    lines = []
    for delta in counters.deltas(*counters.around(found)):
        if delta.rebooted:
            lines.append(f"{delta.node}: rebooted in between, so no counter can be compared")
        grown = ", ".join(f"{name} +{n}" for name, n in delta.grown.items())
        lines += [f"{delta.node}: {grown}"] if grown else []
        lines += [f"{delta.node}: {name} {why}" for name, why in delta.unknown.items()]
    _list("health, first to last look", lines, most)


def _node(found: Described, node: str) -> ExitCode:
    """Print everything that one node said, and where it is odd."""
    role = next((r for r in _roles(found.site) if node in list(found.site.expected(r))), None)
    if role is None:
        raise UserError(
            "describe",
            f"'{node}' is no node of {found.site.system.system}",
            [str(found.site.expected(r)) for r in _roles(found.site)],
        )
    if node not in found.fields:
        click.echo(f"{found.site.system.system}: {found.chosen}")
        click.echo("\n".join(_why_missing(found, [node])))
        return ExitCode.INCOMPLETE
    odd = {d.field: d for d in _compare(found, role).odd.get(node, ())}
    for name, value in sorted(found.fields[node].items()):
        own = "  [its own]" if is_identity(name) else ""
        told = f"  [odd: majority {_value(odd[name].majority)}]" if name in odd else own
        click.echo(f"{name} = {value}{told}")
    for name, difference in odd.items():
        if difference.value is None:
            click.echo(f"{name} is absent  [odd: majority {_value(difference.majority)}]")
    for name, why in sorted(found.unread[node].items()):
        click.echo(f"not read: {name}: {why}")
    click.echo(f"{node} is odd in {_fields(len(odd))}" if odd else f"{node} is like the others")
    return ExitCode.FAIL if odd else ExitCode.PASS


def _list(title: str, lines: Sequence[str], most: int | None) -> None:
    for line in lines[:most]:
        click.echo(f"  {title}: {line}")
    if most is not None and len(lines) > most:
        click.echo(f"  {title}: and {len(lines) - most} more; --all shows them")


def _last_line(answer: Answer) -> str:
    parts = []
    if answer.odd:
        verb = "is" if len(answer.odd) == 1 else "are"
        parts.append(f"{_set(answer.odd)} {verb} odd in {_odd_in(answer.odd.values())}")
    if answer.split:
        parts.append(f"no majority in {_fields(len(answer.split))}")
    if answer.missing:
        parts.append(f"{_set(answer.missing)} not described")
    if answer.alike or not parts:
        parts.append(f"{answer.alike} nodes alike" if answer.alike != 1 else "1 node described")
    return ", ".join(parts)


def _code(answer: Answer) -> ExitCode:
    if answer.odd or answer.split:
        return ExitCode.FAIL
    return ExitCode.INCOMPLETE if answer.missing or not answer.alike else ExitCode.PASS


def _odd_in(counts: Collection[int]) -> str:
    few, many = min(counts), max(counts)
    return _fields(many) if few == many else f"{few} to {_fields(many)}"


def _fields(count: int, word: str = "field") -> str:
    return f"{count} {word}{'s' if count != 1 else ''}"


def _share(share: float) -> str:
    return "" if share == 1 else f"  ({share:.1%} of the nodes)"


def _value(value: str | None) -> str:
    return "nothing" if value is None else f"'{value}'"


def _set(nodes: Iterable[str]) -> str:
    return str(nodesets.of(nodes))
