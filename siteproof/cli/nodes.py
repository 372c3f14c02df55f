"""siteproof nodes: Show the state of every node: slow, failed, odd or fine, and why."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet

from siteproof import files, nodesets, sites
from siteproof.cli import shared
from siteproof.cli.compare import against
from siteproof.cli.gate_answer import in_slurm, print_in_slurm, record_of, with_remark
from siteproof.errors import UserError, hint
from siteproof.export import documents
from siteproof.export.documents import dumps
from siteproof.gate import reports
from siteproof.nodes.states import FleetReport, MetricReport, State
from siteproof.record.finding import Finding, Kind
from siteproof.record.sessions import Sessions
from siteproof.units import with_unit
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.wording import in_bounds_unit
from siteproof.wording.findings import change, full
from siteproof.wording.in_bounds_unit import Shown
from siteproof.wording.verdicts import heading, measure, own_command

MAX_RANKED = 20  # nodes of a metric that are shown, the worst first
RANKED = ("node", "state", "value", "fleet's median", "deficit", "z", "own history", "slow")


@click.command()
@shared.which_answers
@shared.metric_option("Show the values of METRIC, the worst nodes first.")
@shared.forms(documents.Nodes)
@shared.flag("--untested", "Print only the nodes that lack a value, as a set.")
def nodes(
    system: str, since: str, campaign: str, as_of: str, metric: str, form: str, untested: bool
) -> None:
    """Show which nodes are FAILED, FLAPPING, SLOW, ODD, UNTESTED or UNSTABLE, and why.

    A node is SLOW if it is far worse than the fleet's median in 2 of its last 3 runs, or in one
    run by a very large amount, or if it fell against its own past. The line 'against'
    names the 'siteproof compare' that shows what single nodes lost since the last time. Exit code
    1: a node is neither OK nor UNTESTED; 3: nodes are UNTESTED.

    \b
    siteproof nodes --since 7d
    siteproof nodes --metric Stream.triad
    reframe -c checks/ -r -S nodes=$(siteproof nodes --untested --since 7d)
    """
    if untested and campaign and not _began(system, campaign):
        click.echo(str(_inventory(system)))
        return
    judged = judge_system(system, since=since, name=campaign, as_of=as_of)
    report = reports.fleet(judged)
    shared.print_left_out(*judged.all_sessions, aside=untested)
    if untested:
        missing = nodesets.of(n.node for n in report.nodes.values() if n.untested)
        click.echo(str(missing), nl=bool(missing))
        return
    code = documents.nodes_exit_code(report.nodes.values())
    if form == "json":
        click.echo(dumps(documents.nodes(judged, report, in_slurm(judged))))
    elif metric:
        _print_metric(judged, report, metric, form)
    elif form == "plain":
        _print_plain(judged, report)
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
    """A record a group of nodes, what limits the trust, what to run, and the answer."""
    shown = Shown(judged)
    shared.print_wrapped(heading(judged))
    found = in_bounds_unit.groups(
        (n.node, n.state, n.findings) for n in report.nodes.values() if n.state is not State.OK
    )
    shared.print_records([record_of(group, shown) for group in found])
    shared.print_wrapped(*_remarks(judged, report))
    print_in_slurm(judged)
    _print_commands(judged, report)
    counts = {state: len(report.of(state)) for state in State}
    states_ = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
    of = f" of {len(report.nodes)}" if len(counts) - list(counts.values()).count(0) > 1 else ""
    answer = f"nodes of {judged.site.system.system}: {states_ or 'none'}{of}"
    shared.print_answer(answer, _next(judged, report))


def _print_plain(judged: Judgement, report: FleetReport) -> None:
    """A line a node, the most severe first."""
    shown, rows = Shown(judged), []
    for group in in_bounds_unit.groups(
        (n.node, n.state, n.findings) for n in report.nodes.values()
    ):
        for node in map(report.nodes.__getitem__, group.nodes):
            head = (node.node, str(node.state), node.role)
            rows.append((*head, *in_bounds_unit.cells(node.findings, shown)))
    shared.print_plain(in_bounds_unit.COLUMNS, rows)


def _remarks(judged: Judgement, report: FleetReport) -> Iterator[str]:
    """Warnings, stages that were set aside, what proves nothing yet, and in which racks nodes are.

    A note that only reports that nodes are too few to be ranked is among the warnings already.
    """
    yield from _doubts(judged, report)
    notes: dict[object, dict[str, Finding]] = {}
    for node in report.nodes.values():
        repair = [node.repair] if node.repair and node.state is not State.OK else []
        for note in (*(n for n in node.notes if n.kind is not Kind.NOT_RANKED), *repair):
            notes.setdefault(note.alike, {})[node.node] = note
    shown = Shown(judged)
    yield from with_remark(reports.excused(judged, report.nodes), shown)
    for same in notes.values():
        yield f"{nodesets.of(same)}: {full(*shown.all(same.values()))}"
    for state in (state for state in State if state is not State.OK):
        if racks := _by_group(judged, report.of(state)):
            yield f"{state} by group: {racks}"


def _doubts(judged: Judgement, report: FleetReport) -> Iterator[str]:
    yield from (f"warning: {full(why)}" for why in report.warnings)
    yield from (f"{shared.SET_ASIDE}{stage}" for stage in judged.set_aside)


def _print_commands(judged: Judgement, report: FleetReport) -> None:
    """What measures the nodes that one more run decides, and those that lack a value.

    And what shows which nodes lost against the last time.
    """
    untested = report.of(State.UNTESTED)
    for title, found in (("run again", report.retest), ("measure", untested)):
        if found and not judged.past:
            shared.print_text(f"{title}: {measure(judged, found)}")
    if last := against(judged):
        shared.print_text(f"against {last[0]}: {last[1]}")


def _next(judged: Judgement, report: FleetReport) -> str:
    """The next command: the gate, unless nothing but values is missing."""
    found = {n.state for n in report.nodes.values()} - {State.OK}
    if found == {State.UNTESTED} and not judged.past:
        return measure(judged, report.of(State.UNTESTED))
    return own_command(judged, "gate")


def _by_group(judged: Judgement, found: Any) -> str:
    """How many of them are in which rack."""
    system = judged.site.system
    counts = {name: len(system.group(name) & found) for name in system.groups}
    shown = [f"{name} {n}" for name, n in sorted(counts.items(), key=lambda i: -i[1]) if n]
    everywhere = len(found) >= sum(len(system.group(name)) for name in system.groups)
    return "" if everywhere else ", ".join(shown)


def _print_metric(judged: Judgement, report: FleetReport, metric: str, form: str) -> None:
    """The nodes by their value of a metric, or that of their worst GPU, and the slow ones."""
    names = sorted({name for n in report.nodes.values() for name in n.metrics})
    if metric not in names:
        raise UserError(
            "--metric", f"no node has a value of '{metric}'{hint(metric, names)}", names
        )
    ranked = sorted(
        (n for n in report.nodes.values() if metric in n.metrics),
        key=lambda n: -n.metrics[metric].deficit,
    )
    shown = Shown(judged)
    rows = [(n.units[metric], n.state, *_cells(shown, metric, n.metrics[metric])) for n in ranked]
    if form:
        shared.print_plain(RANKED, rows)
        return
    shared.print_table(shared.table(RANKED, rows[:MAX_RANKED], f"{metric}: {judged.chosen}"))
    if len(ranked) > MAX_RANKED:
        shared.print_text(f"{len(ranked) - MAX_RANKED} better nodes are not shown, see --plain")
    shared.print_wrapped(*_doubts(judged, report))
    slow = [n for n in ranked if n.metrics[metric].slow_runs]
    found = f"slow in some run: {nodesets.of(n.node for n in slow)}" if slow else "no slow run"
    command = own_command(judged, "why", slow[0].node) if slow else ""
    shared.print_answer(f"{metric}: {found}", command)


def _cells(shown: Shown, metric: str, m: MetricReport) -> tuple[str, ...]:
    z = "-" if m.z is None else f"{m.z:.1f}"
    value, unit = shown.value(metric, Fraction(m.value), m.unit)
    middle, _ = shown.value(metric, Fraction(m.median), m.unit)
    return (
        with_unit(value, unit),
        with_unit(middle, unit),
        change(m.deficit).lstrip("+"),
        z,
        change(m.change),
        f"{m.slow_runs} of {m.runs} runs",
    )
