"""siteproof gate: Decide which nodes go back into service, and quarantine the others."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet

from siteproof import files, nodesets
from siteproof.analysis.slow_nodes import State
from siteproof.cli import gate_answer, shared
from siteproof.cli.gate_answer import Options, Work, look_if_possible, print_answer
from siteproof.cli.shared import print_wrapped
from siteproof.errors import ExitCode, UserError
from siteproof.export.documents import Answer, dumps, same
from siteproof.gate import act, decision
from siteproof.gate.act import Scope
from siteproof.gate.commands import Cluster, Plan, QuarantineOptions, Refusal, reservation_name
from siteproof.gate.decision import KEEP_OUT, STATES, Ruling, condemned, decide, out_of_service
from siteproof.gate.reports import fleet, waived
from siteproof.gate.service import Place, waits_for_us
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import PEER
from siteproof.record.samples import PUBLISHED
from siteproof.slurm.records import Node
from siteproof.units import count
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.wording.in_bounds_unit import Shown
from siteproof.wording.verdicts import measure, next_command

_USERS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(,[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
SHARED_CAUSE = "look first for a cause that they share"
CAPACITY = "few nodes would be left for users"
NOTHING = "nothing was changed"
HANDED_OVER = "Slurm refuses these to you; they are for somebody with the right:"
MANY_OPERATORS = 50  # a larger group is one of users, who must not run jobs on sick nodes
NOT_REPEATED = ("apply", "retest", "release", "certain", "brief", "form", "options")


@dataclass(frozen=True)
class GateNode:
    """A node of the inventory.

    node: Its name.
    state: Its state.
    back: Whether it goes back.
    waived: The waivers for which it goes back, or the event of its whole role.
    findings: Why it is in its state.
    service: Whether users' jobs can run on it now: in_service; still_in_service, though it should
        be out; passed, and still in quarantine; out, by_us or by_others; down, and not in
        quarantine. goes_back and stays_out: Slurm does not have it, or does not answer.
    since: When it was put into quarantine; null if it is not there, or that is not known.
    """

    node: str
    state: State
    back: bool
    waived: Sequence[Finding]
    findings: Sequence[Finding]
    service: str
    since: datetime | None


@dataclass(frozen=True)
class Gate(Answer):
    """Which nodes go back into service: 'siteproof gate --json'.

    exit_code: 0 all nodes go back; 1 some stay out; 3 nothing was measured.
    back: The nodes that go back, as a node set.
    out: The nodes that stay out, as a node set.
    refused: Why --apply would refuse, or why Slurm cannot be queried; may be empty. A sentence for
        people.
    nodes: Each node of the inventory.
    commands: What --apply would run.
    left_alone: The nodes that --apply would leave to others, and why.
    kept: The nodes whose comment is somebody else's, and stays.
    findings: Why nodes stay out.
    """

    back: NodeSet
    out: NodeSet
    refused: str
    nodes: Sequence[GateNode]
    commands: Sequence[str]
    left_alone: Sequence[Finding]
    kept: Sequence[Finding]
    findings: Sequence[Finding]


@click.command()
@shared.which_answers
@shared.flag("--apply", "Run the commands; without it nothing is changed.")
@shared.flag(
    "--retest",
    "Test the quarantined nodes inside their reservation; REFRAME OPTIONS choose the checks.",
)
@shared.flag("--release", "Free the quarantined nodes that have passed.")
@shared.text_option(
    "--keep-out",
    "STATES",
    f"The states that stay out, from {', '.join(STATES[:-1])}.",
    default=",".join(KEEP_OUT),
    show_default=True,
)
@shared.text_option(
    "--limit",
    "SHARE",
    "Refuse if a measurement would newly keep out more of a partition's measured nodes; one "
    "node is always allowed.",
    default="10%",
    show_default=True,
)
@shared.text_option(
    "--capacity",
    "SHARE",
    "Refuse if more of a partition would be out of service: quarantined, drained and down "
    "nodes together. Default: 25%, or --limit if that is more.",
)
@shared.flag(
    "--certain", "Where --apply refuses, keep out those that are dead or gave a wrong answer."
)
@shared.flag("--drain", "Drain the quarantined nodes, too.")
@shared.text_option(
    "--users",
    "NAMES",
    "Who may run jobs in the reservation; without it you, root, and the group that may write "
    "to perflogs/SYSTEM if it has at most 50 members.",
)
@shared.repeated(
    "--beside overlapping",
    "RESERVATION",
    "An existing reservation that the quarantine may overlap, such as that of the maintenance",
)
@shared.flag("--brief", "Print only the answer: who stays out, why, and the next command.")
@shared.forms(Gate)
@click.argument("options", metavar="[-- REFRAME OPTIONS]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def gate(context: click.Context, /, **named: Any) -> None:
    """Show which nodes go back into service; with --apply, quarantine the others.

    The quarantine is a Slurm reservation, because a drained node cannot be tested. Nodes that
    others have drained or reserved are left alone. perflogs/SYSTEM/gate.jsonl records what was
    done. It ends with what was done, which nodes stay out and why, and the next command.

    Exit code: 0 all nodes go back; 1 some stay out, or the gate refused; 2 wrong usage or input;
    3 nothing was measured.

    \b
    siteproof gate --campaign winter-2026
    siteproof gate --campaign winter-2026 --apply
    siteproof gate --campaign winter-2026 --retest --apply -- -n Stream
    siteproof gate --campaign winter-2026 --release --apply
    """
    chosen = Options(**named, given=shared.given(context, NOT_REPEATED))
    _check(chosen)
    judged, scope = _begin(chosen)
    shared.print_left_out(*judged.all_sessions)
    if chosen.form:
        raise SystemExit(_print_for_programs(judged, scope, chosen))
    if not _measured(judged, scope):
        still = " that still counts" if judged.samples else ""
        command = next_command(judged) if judged.past else measure(judged, "all")
        shared.print_answer(f"nothing was measured{still}: {judged.chosen}", command)
        raise SystemExit(ExitCode.INCOMPLETE)
    try:
        run = _retest if chosen.retest else _release if chosen.release else _quarantine
        work = run(judged, scope, chosen)
    except Refusal as refusal:
        work = Work(ExitCode.FAIL, "", tuple(chosen.acts), refused=str(refusal))
    if chosen.retest and chosen.apply:
        judged, scope = _begin(chosen)  # with what the test has measured
    places = print_answer(judged, scope, chosen, work)
    stay_out = bool(chosen.acts) and waits_for_us(places)
    raise SystemExit(ExitCode.FAIL if stay_out else work.code)


def _begin(chosen: Options) -> tuple[Judgement, Scope]:
    """What is known now, and the decision."""
    judged = judge_system(
        chosen.system, since=chosen.since, name=chosen.campaign, as_of=chosen.as_of, to_now=True
    )
    return judged, _scope(judged, chosen.states, _wish(judged, chosen))


def _print_for_programs(judged: Judgement, scope: Scope, chosen: Options) -> ExitCode:
    """The decision as --json or --plain prints it; its exit code."""
    cluster, silent = look_if_possible(scope)
    plans: dict[str, Plan] = {}
    if cluster:
        scope = scope.seen(cluster)
        try:
            plans = act.plan_quarantine(scope, cluster, {})
        except Refusal as refusal:
            silent = str(refusal)
    left, decision = _left(plans), scope.decision
    places = act.places(scope, cluster, left)
    code = ExitCode.FAIL if decision.out else ExitCode.PASS
    if not _measured(judged, scope):
        code = ExitCode.INCOMPLETE
    if chosen.form == "plain":
        gate_answer.print_rows(judged, decision, places)
        return code
    refused, _ = _refused(judged, scope, chosen, cluster)
    answer = Gate(
        *(scope.system, judged.chosen, code),
        back=decision.back,
        out=decision.out,
        refused=refused or silent,
        nodes=[_gate_node(decision.rulings[place.node], place) for place in places],
        commands=[shlex.join(c.argv) for plan in plans.values() for c in plan.commands],
        left_alone=list(left.values()),
        kept=[why for plan in plans.values() for why in plan.kept.values()],
        findings=[why for one in decision.rulings.values() if not one.back for why in one.findings],
    )
    click.echo(dumps(answer))
    return code


def _gate_node(ruling: Ruling, place: Place) -> GateNode:
    known = place.since is not None and place.since != inf
    return GateNode(
        **same(ruling, "node", "state", "back", "waived", "findings"),
        service=place.service.name.lower(),
        since=datetime.fromtimestamp(place.since or 0, UTC) if known else None,
    )


def _check(chosen: Options) -> None:
    """Raises UserError for options that are not valid, or that contradict each other."""
    acts = " and ".join(chosen.acts)
    if chosen.retest and chosen.release:
        raise UserError("gate", "--retest and --release together", hint="Run one after the other")
    if chosen.options and not chosen.retest:
        hint = "Options after -- go to ReFrame, which only --retest starts"
        raise UserError("gate", f"'{chosen.options[0]}' without --retest", hint=hint)
    if chosen.as_of and acts:
        raise UserError("--as-of", "a past state cannot be acted on", hint=f"Leave out {acts}")
    if chosen.form and acts:
        option = f"--{chosen.form}"
        hint = f"{option} prints the decision; perflogs/SYSTEM/gate.jsonl has what was done"
        raise UserError(option, f"together with {acts}", hint=hint)
    if chosen.brief and (chosen.form or acts):
        raise UserError("--brief", f"together with {acts or f'--{chosen.form}'}")
    chosen.shares  # noqa: B018


def _scope(judged: Judgement, keep_out: list[str], options: QuarantineOptions) -> Scope:
    site, today = judged.site, datetime.now(UTC).date()
    report = fleet(judged)
    decision = decide(report.nodes, waived(judged, today), keep_out)
    decision = replace(decision, warnings=report.warnings)
    partitions: dict[str, NodeSet] = {}
    seen = nodesets.of()
    of_slurm = {n: p for n, p in site.system.partitions.items() if p.scheduler == "slurm"}
    # A node is retested where it is measured.
    measured_in = [(name, site.having(one.measured)) for name, one in of_slurm.items()]
    for name, nodes in (*measured_in, *((name, site.nodes_of(name)) for name in of_slurm)):
        partitions[name] = partitions.get(name, nodesets.of()) | (nodes - seen)
        seen |= nodes
    measured: dict[str, float] = {}
    for sample in judged.samples:
        if sample.status == "ok":
            time = datetime.fromisoformat(sample.header.time).timestamp()
            for node in filter(None, (sample.node, sample.dims.get(PEER))):
                measured[node] = max(time, measured.get(node, 0))
    return Scope(
        *(site.system.system, decision, partitions, options, judged.chosen, files.user()), measured
    )


def _measured(judged: Judgement, scope: Scope) -> bool:
    """Whether anything was measured here that still counts, and not only published by others.

    What was lost of it counts, too.
    """
    findings = [why for ruling in scope.decision.rulings.values() for why in ruling.findings]
    too_old = bool(findings) and all(why.kind is Kind.TOO_OLD for why in findings)
    measured = any(sample.header.mode != PUBLISHED for sample in judged.samples)
    return not too_old and (measured or bool(judged.failed))


def _refused(
    judged: Judgement, scope: Scope, chosen: Options, cluster: Cluster | None
) -> tuple[str, tuple[str, ...]]:
    """Why --apply would keep too many nodes out, and the options that allow it; empty if not."""
    out_now = nodesets.of()
    if cluster:
        names = map(reservation_name, scope.partitions)
        out_now = cluster.out_of_service([n for n in names if n in cluster.reservations])
    new, total = {}, {}
    for name in scope.partitions:
        nodes = judged.site.nodes_of(name)
        new[name] = condemned(scope.decision, nodes, out_now)
        total[name] = out_of_service(scope.decision, nodes, out_now)
    texts, allow = [], []
    of_measured, of_all = chosen.shares
    for shares, limit, what, option, reason in (
        (new, of_measured, "measured nodes", "--limit", SHARED_CAUSE),
        (total, of_all, "nodes", "--capacity", CAPACITY),
    ):
        many = {name: share for name, share in shares.items() if share.exceeds(limit)}
        if not many:
            continue
        named = ", ".join(f"{s.count} of {s.of} {what} of {name}" for name, s in many.items())
        worst = max(-(-100 * share.count // share.of) for share in many.values())
        texts.append(f"{named} would stay out, more than {float(100 * limit):g} %, so {reason}")
        allow += [option, f"{worst}%"]
    return "; ".join(texts), tuple(allow)


def _quarantine(judged: Judgement, scope: Scope, chosen: Options) -> Work:
    cluster, silent = (_look(scope), "") if chosen.apply else look_if_possible(scope)
    if cluster:
        scope = scope.seen(cluster)
    _show(chosen, gate_answer.print_rulings, judged, scope)
    refused, allow = _refused(judged, scope, chosen, cluster)
    code = ExitCode.FAIL if scope.decision.out else ExitCode.PASS
    if refused and chosen.apply and not chosen.certain:
        return Work(ExitCode.FAIL, "", refused=refused, allow=allow)
    if refused and chosen.certain:
        scope = replace(scope, decision=scope.decision.certain)
    if cluster is None:
        _show(chosen, _print_blind, scope, silent)
        return Work(code, "nothing was changed", refused=refused, allow=allow)
    try:
        plans = act.plan_quarantine(scope, cluster, {})
        _show(chosen, gate_answer.print_jobs, plans)
        if chosen.apply:
            work = _apply(scope, "quarantine", act.plan_quarantine, cluster)
        else:
            _show(chosen, gate_answer.print_plans, plans)
            before = decision.read(scope.log)
            done = _moved(*decision.done(before, scope.campaign))
            work = Work(
                ExitCode.PASS,
                f"so far, on these samples: {done}" if done else NOTHING,
                cluster=cluster,
                left_alone=_left(plans),
                handed_over=_handed_over(before, plans),
            )
    except Refusal as refusal:
        return Work(ExitCode.FAIL, "", refused=str(refusal))
    if refused and chosen.apply:
        refused += f"; {work.done}"
    return replace(work, code=code or work.code, refused=refused, allow=allow)


def _show(chosen: Options, show: Callable[..., None], *about: object) -> None:
    """Print what --brief leaves out."""
    if not chosen.brief:
        show(*about)


def _print_blind(scope: Scope, silent: str) -> None:
    """The commands, where Slurm does not answer. silent: why."""
    if silent and scope.decision.out:
        print_wrapped(
            f"Slurm does not answer here ({silent}); "
            "the commands assume that there is no quarantine yet:"
        )
    nobody = Cluster({node: Node(node) for node in scope.decision.out})
    gate_answer.print_plans(act.plan_quarantine(scope, nobody, {}))


def _handed_over(before: Iterable[Mapping[str, Any]], plans: Mapping[str, Plan]) -> int:
    """How many of the commands Slurm has refused to the user before."""
    refused = [one.get("command") for one in before if one.get("phase") == decision.HANDED_OVER]
    return sum(list(c.argv) in refused for plan in plans.values() for c in plan.commands)


def _moved(quarantined: NodeSet, released: NodeSet) -> str:
    named = {"quarantined": quarantined, "released": released}
    return ", ".join(f"{what} {nodes}" for what, nodes in named.items() if nodes)


def _left(plans: Mapping[str, Plan]) -> dict[str, Finding]:
    return {node: why for plan in plans.values() for node, why in plan.left_alone.items()}


def _release(judged: Judgement, scope: Scope, chosen: Options) -> Work:
    cluster = _look(scope)
    quarantines = act.quarantines(scope, cluster)
    plans = act.plan_release(scope, cluster, {})
    left = _left(plans)
    if not (quarantines or left or any(plan.commands for plan in plans.values())):
        return Work(ExitCode.PASS, "nothing is in quarantine", cluster=cluster)
    code = ExitCode.FAIL if left else ExitCode.PASS
    if chosen.apply:
        work = _apply(scope, "release", act.plan_release, cluster)
        return replace(work, code=code or work.code)
    gate_answer.print_plans(plans, "stays")
    members = nodesets.of(n for r in quarantines.values() for n in r.nodes)
    freed = len(members - nodesets.of(left))
    done = f"{NOTHING}; {freed} of {count(len(members), 'node')} may be released"
    return Work(code, done, cluster=cluster, left_alone=left)


def _retest(judged: Judgement, scope: Scope, chosen: Options) -> Work:
    cluster = _look(scope)
    quarantines = act.quarantines(scope, cluster)
    if not quarantines:
        return Work(ExitCode.PASS, "nothing is in quarantine", cluster=cluster)
    plans = act.plan_resume(scope, cluster, {})
    work = Work(ExitCode.PASS, NOTHING, cluster=cluster, left_alone=_left(plans))
    cannot = nodesets.of(work.left_alone)
    if not chosen.apply:
        gate_answer.print_plans(plans)
    elif any(plan.commands for plan in plans.values()):
        work = _apply(scope, "retest", act.plan_resume, cluster)
        members = nodesets.of(n for r in quarantines.values() for n in r.nodes)
        silent = act.wait_until_they_answer(members - cannot)
        gate_answer.print_reasons(silent, "left alone: ")
        drained = [n.name for n in act.look().nodes.values() if n.state.taken_out]
        cannot = nodesets.of([*cannot, *silent, *drained])
    if work.failed:
        return work
    return _test(judged, scope, chosen, work, {n: r.nodes - cannot for n, r in quarantines.items()})


def _test(
    judged: Judgement, scope: Scope, chosen: Options, work: Work, sets: Mapping[str, NodeSet]
) -> Work:
    """Test nodes inside their quarantine, by partition, or print the commands that do."""
    newest = max((s.header for s in judged.samples), key=lambda h: h.order)
    mode, campaign = newest.mode or judged.site.system.mode, newest.campaign
    named = f"SITEPROOF_CAMPAIGN={shlex.quote(campaign)} " if campaign else ""
    code, tested = work.code, nodesets.of()
    for name, nodes in ((name, nodes) for name, nodes in sets.items() if nodes):
        reservation = reservation_name(name)
        argv = ["reframe", f"--system={scope.system}:{name}", "-c", "checks/", "-r"]
        argv += ["--mode", mode, "-S", f"nodes={nodes}", "-J", f"reservation={reservation}"]
        argv += chosen.options
        click.echo(f"{named}{shlex.join(argv)}")
        if chosen.apply and act.retest(scope, argv, campaign, reservation, nodes):
            code = ExitCode.FAIL
        tested |= nodes
    done = f"tested {tested or 'no node'} in quarantine" if chosen.apply else work.done
    return replace(work, code=code, done=done)


def _look(scope: Scope) -> Cluster:
    hint = "Without --apply, --retest and --release the gate needs no Slurm"
    if not scope.partitions:
        raise UserError("gate", f"no partition of {scope.system} uses Slurm", hint=hint)
    try:
        return act.look()
    except UserError as error:
        raise UserError(error.where, error.what, hint=hint) from None


def _apply(scope: Scope, what: str, planner: act.Planner, seen: Cluster) -> Work:
    done = act.act(scope, what, planner, seen)
    gate_answer.print_reasons(done.left_alone, "stays: " if what == "release" else "left alone: ")
    gate_answer.print_reasons(done.kept)
    shared.print_text(*(shlex.join(command.argv) for command in done.commands), title="done: ")
    if done.refused_users:
        names = ",".join(done.refused_users)
        print_wrapped(f"warning: Slurm does not admit {names} to the reservation: see --users")
    if done.handed_over:
        click.echo(HANDED_OVER)
        shared.print_text(*(shlex.join(command.argv) for command in done.handed_over))
    shared.print_text(*map(str, done.errors), title="siteproof: ", err=True)
    return Work(
        ExitCode.FAIL if done.errors or done.handed_over else ExitCode.PASS,
        _summary(done),
        ("--apply",) if what == "quarantine" else (f"--{what}", "--apply"),
        left_alone=done.left_alone,
        handed_over=len(done.handed_over),
        failed=bool(done.errors),
    )


def _summary(done: act.Done) -> str:
    """What was done, in a line."""
    moved = _moved(done.quarantined, done.released)
    if not moved and done.commands:
        moved = f"{count(len(done.commands), 'command')} done"
    if done.errors:
        return f"stopped by an error of Slurm; {moved or 'nothing was done'}"
    if done.handed_over:
        refused = f"{count(len(done.handed_over), 'command')} refused to you"
        return f"{moved or 'nothing was done'}; {refused}"
    return moved or "nothing to change"


def _wish(judged: Judgement, chosen: Options) -> QuarantineOptions:
    if chosen.users and not _USERS.fullmatch(chosen.users):
        what = f"'{chosen.users}' is not a list of users"
        raise UserError("--users", what, "names, with commas between them")
    users, colleagues = chosen.users.split(","), []
    if not chosen.users:
        users = list(dict.fromkeys([files.user(), "root"]))
        colleagues = [user for user in _operators(judged) if user not in users]
    return QuarantineOptions(
        *(users, judged.chosen, chosen.drain, chosen.overlapping, colleagues),
        shown=Shown(judged).all,
    )


def _operators(judged: Judgement) -> list[str]:
    """The members of the group that may write to the system's perflogs, if they are few."""
    try:
        members = files.group_members(files.perflogs() / judged.site.system.system)
    except OSError:
        return []
    named = [user for user in members if _USERS.fullmatch(user)]
    return named if len(named) <= MANY_OPERATORS else []
