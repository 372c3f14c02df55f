"""`siteproof nodes`: which nodes are slow, broken or different, and why."""

from __future__ import annotations

from typing import Any

import click
from ClusterShell.NodeSet import NodeSet
from rich.table import Table
from rich.text import Text

from siteproof import files, nodesets, sites
from siteproof.cli.compare import share
from siteproof.cli.records import print_table
from siteproof.cli.shared import (
    SET_ASIDE,
    by_metric,
    json_option,
    print_left_out,
    print_text,
    which_answers,
)
from siteproof.errors import UserError
from siteproof.export import documents
from siteproof.nodes import states
from siteproof.nodes.states import FleetReport, MetricReport, NodeReport, State
from siteproof.record.sessions import Sessions
from siteproof.units import count, with_unit
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.wording.findings import full, fulls

COLOURS = {
    State.OK: "green",
    State.SLOW: "bold yellow",
    State.FAILED: "bold red",
    State.ODD: "magenta",
    State.UNSTABLE: "yellow",
    State.UNTESTED: "dim",
}
MAX_SETS = 5  # of nodes that lack the same values, the largest first
MAX_RANKED = 20  # nodes of a metric that are shown, the worst first


@click.command()
@which_answers
@click.option(
    "--metric",
    shell_complete=by_metric,
    default="",
    metavar="METRIC",
    help="Show the values of METRIC, the worst nodes first.",
)
@json_option("nodes")
@click.option("--untested", is_flag=True, help="Print only the nodes that lack a value, as a set.")
def nodes(
    system: str, since: str, campaign: str, as_of: str, metric: str, as_json: bool, untested: bool
) -> None:
    """Show whether each node is OK, SLOW, FAILED, ODD, UNSTABLE or UNTESTED, and why.

    A node is SLOW if it is far worse than the fleet's median in 2 of its last 3 runs, or in one
    run by a very large amount, or if it fell against its own past. Exit code 1: a node is neither
    OK nor UNTESTED; 3: nodes are UNTESTED.

    \b
    siteproof nodes --since 7d
    siteproof nodes --metric Stream.triad
    reframe -c checks/ -r -S nodes=$(siteproof nodes --untested --since 7d)
    """
    if untested and campaign and not _began(system, campaign):
        click.echo(str(_inventory(system)))
        return
    judged = judge_system(system, since=since, name=campaign, as_of=as_of)
    report = states.report(judged, states.lately(judged))
    print_left_out(judged.sessions, aside=untested)
    if untested:
        missing = nodesets.of(n.node for n in report.nodes.values() if n.untested)
        click.echo(str(missing), nl=bool(missing))
        return
    code = documents.nodes_exit_code(report)
    if as_json:
        click.echo(documents.dumps(documents.nodes(judged, report)))
    elif metric:
        _print_metric(judged, report, metric)
    else:
        _print(judged, report)
    raise SystemExit(code)


def _began(system: str, campaign: str) -> bool:
    """Whether a campaign has samples; before its first one all nodes are untested."""
    system = system or sites.recognise()
    sites.trust(system)
    sessions = Sessions(files.perflogs(), system)
    names = {header.campaign for header in sessions.headers}
    return campaign in names or campaign.rpartition("@")[0] in names - {""}


def _inventory(system: str) -> NodeSet:
    """All nodes on which checks run."""
    site = sites.load(system or sites.recognise())
    return site.having({role for one in site.system.partitions.values() for role in one.roles})


def _print(judged: Judgement, report: FleetReport) -> None:
    title = Text(f"{judged.site.system.system}: {judged.chosen}")
    table = Table(title=title, title_justify="left")
    for name in ("node", "state", "role", "why"):
        table.add_column(name, overflow="fold", no_wrap=name in ("node", "state"))
    for node in _bad_first(report):
        reasons = fulls(node.findings)
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        table.add_row(
            Text(node.node),
            Text(node.state, style=COLOURS[node.state]),
            Text(node.role),
            Text(reasons[0] + more),
        )
    if table.row_count:
        print_table(table)
    _print_summary(judged, report)


def _bad_first(report: FleetReport) -> list[NodeReport]:
    """The bad nodes, the worst first. Untested nodes are printed as a set: they may be many."""
    order = list(State)
    bad = [n for n in report.nodes.values() if n.state not in (State.OK, State.UNTESTED)]
    return sorted(bad, key=lambda n: (order.index(n.state), n.node))


def _print_summary(judged: Judgement, report: FleetReport) -> None:
    """Warnings, what a retest would decide, and the node sets."""

    def line(text: str) -> None:
        print_text(text)

    for why in report.warnings:
        line(f"warning: {full(why)}")
    for stage in judged.sessions.set_aside if judged.sessions else ():
        line(f"{SET_ASIDE}{stage}")
    for node in report.nodes.values():
        for note in node.notes:
            line(f"{node.node}: {full(note)}")
    for state in State:
        if found := report.of(state):
            line(f"{state:8} {found}{_by_group(judged, found)}")
    for text in _lacking(report):
        line(text)
    if report.retest:
        line(f"run again: reframe -c checks/ -r -S nodes={report.retest}")
    counts = {state: len(report.of(state)) for state in State}
    shown = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
    line(f"nodes of {judged.site.system.system}: {shown or 'none'}")


def _lacking(report: FleetReport) -> list[str]:
    """What the untested nodes lack: a line for each set of nodes that lack the same."""
    alike: dict[object, list[NodeReport]] = {}
    for node in report.nodes.values():
        if node.state is State.UNTESTED:
            alike.setdefault(tuple(why.alike for why in node.findings), []).append(node)
    largest = sorted(alike.values(), key=lambda nodes: -len(nodes))
    shown = []
    for nodes in largest[:MAX_SETS]:
        reasons = [full(*same) for same in zip(*(n.findings for n in nodes), strict=True)]
        names = nodesets.of(n.node for n in nodes)
        shown.append(f"untested: {names}: {'; '.join(dict.fromkeys(reasons))}")
    left = len(largest) - len(shown)
    return shown + ([f"untested for {count(left, 'more reason')}, see --json"] if left else [])


def _by_group(judged: Judgement, found: Any) -> str:
    """How many of them are in which rack."""
    system = judged.site.system
    counts = {name: len(system.group(name) & found) for name in system.groups}
    shown = [f"{name} {n}" for name, n in sorted(counts.items(), key=lambda i: -i[1]) if n]
    return (
        f"  ({', '.join(shown)})"
        if shown and len(found) < sum(len(system.group(name)) for name in system.groups)
        else ""
    )


def _print_metric(judged: Judgement, report: FleetReport, metric: str) -> None:
    names = sorted({name for n in report.nodes.values() for name in n.metrics})
    if metric not in names:
        raise UserError("--metric", f"no node has a value of '{metric}'", names)
    ranked = sorted(
        (n for n in report.nodes.values() if metric in n.metrics),
        key=lambda n: -n.metrics[metric].deficit,
    )
    table = Table(title=Text(f"{metric}: {judged.chosen}"), title_justify="left")
    for name in ("node", "state", "value", "fleet's median", "deficit", "z", "own history", "slow"):
        table.add_column(name, overflow="fold")
    for node in ranked[:MAX_RANKED]:
        table.add_row(
            Text(node.node),
            Text(node.state, style=COLOURS[node.state]),
            *map(Text, _cells(node.metrics[metric])),
        )
    print_table(table)
    if len(ranked) > MAX_RANKED:
        print_text(f"{len(ranked) - MAX_RANKED} better nodes are not shown, see --json")
    for stage in judged.sessions.set_aside if judged.sessions else ():
        print_text(f"{SET_ASIDE}{stage}")
    for why in report.warnings:
        print_text(f"warning: {full(why)}")
    slow = [n for n in ranked if n.metrics[metric].slow_runs]
    shown = f"slow in some run: {nodesets.of(n.node for n in slow)}" if slow else "no slow run"
    print_text(f"{metric}: {shown}")


def _cells(m: MetricReport) -> tuple[str, ...]:
    z = "-" if m.z is None else f"{m.z:.1f}"
    return (
        with_unit(f"{m.value:.6g}", m.unit),
        f"{m.median:.6g}",
        share(m.deficit).lstrip("+"),
        z,
        share(m.change),
        f"{m.slow_runs} of {m.runs} runs",
    )
