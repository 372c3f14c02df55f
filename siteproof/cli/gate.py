"""`siteproof gate`: which nodes go back into service, and the quarantine of the others."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.checks import session
from siteproof.cli.shared import json_option, print_left_out, which_answers
from siteproof.errors import ExitCode, UserError, harmless
from siteproof.export import documents
from siteproof.gate import act
from siteproof.gate.act import Scene
from siteproof.gate.commands import Cluster, Plan, Refusal, Wish, reservation_name
from siteproof.gate.decision import (
    KEEP_OUT,
    STATES,
    UNTESTED,
    Share,
    condemned,
    decide,
    out_of_service,
)
from siteproof.gate.reports import reports, waived
from siteproof.record.finding import Finding
from siteproof.record.pair_units import PEER
from siteproof.schema.yamlfile import clip
from siteproof.slurm import client
from siteproof.slurm.records import Node
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.wording.findings import few, fulls, sentence, sentences, warning

_USERS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(,[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_LIMIT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s*%?")
MAX_REASONS = 3  # of a node
CAPACITY_LIMIT = Fraction(1, 4)
FAULT_OF_CHECK = "the fault is probably not in the nodes; if it is, add"
CAPACITY = "few nodes would be left for users; if they are enough, add"


@dataclass(frozen=True)
class Options:
    """How to act."""

    apply: bool
    limit: Fraction
    capacity: Fraction
    certain: bool
    again: tuple[str, ...]


@click.command()
@which_answers
@click.option("--apply", is_flag=True, help="Run the commands; without it nothing is changed.")
@click.option(
    "--retest",
    is_flag=True,
    help="Test the quarantined nodes inside their reservation; REFRAME OPTIONS choose the checks.",
)
@click.option("--release", is_flag=True, help="Free the quarantined nodes that have passed.")
@click.option(
    "--keep-out",
    default=",".join(KEEP_OUT),
    show_default=True,
    metavar="STATES",
    help=f"The states that stay out, from {', '.join(STATES[:-1])}.",
)
@click.option(
    "--limit",
    default="10%",
    show_default=True,
    metavar="SHARE",
    help="Refuse if a measurement would newly keep out more of a partition's measured nodes; one "
    "node is always allowed.",
)
@click.option(
    "--capacity",
    default="",
    metavar="SHARE",
    help="Refuse if more of a partition would be out of service: quarantined, drained and down "
    "nodes together. Default: 25%, or --limit if that is more.",
)
@click.option(
    "--certain",
    is_flag=True,
    help="Where --apply refuses, keep out those that are dead or gave a wrong answer.",
)
@click.option("--drain", is_flag=True, help="Drain the quarantined nodes, too.")
@click.option(
    "--users",
    default="",
    metavar="NAMES",
    help="Who may run jobs in the reservation; without it you and root.",
)
@click.option(
    "--beside",
    "overlapping",
    multiple=True,
    metavar="RESERVATION",
    help="An existing reservation that the quarantine may overlap, such as that of the "
    "maintenance; may be repeated.",
)
@json_option("gate")
@click.argument("options", metavar="[-- REFRAME OPTIONS]", nargs=-1, type=click.UNPROCESSED)
def gate(
    system: str,
    since: str,
    campaign: str,
    as_of: str,
    apply: bool,
    retest: bool,
    release: bool,
    keep_out: str,
    limit: str,
    capacity: str,
    certain: bool,
    drain: bool,
    users: str,
    overlapping: tuple[str, ...],
    as_json: bool,
    options: tuple[str, ...],
) -> None:
    """Show which nodes go back into service; with --apply, quarantine the others.

    The quarantine is a Slurm reservation, because a drained node cannot be tested. Nodes that
    others have drained or reserved are left alone. perflogs/SYSTEM/gate.jsonl records what was
    done.

    Exit code: 0 all nodes go back; 1 some stay out, or the gate refused; 2 wrong usage or input;
    3 nothing was measured.

    \b
    siteproof gate --campaign winter-2026
    siteproof gate --campaign winter-2026 --apply
    siteproof gate --campaign winter-2026 --retest --apply -- -n Stream
    siteproof gate --campaign winter-2026 --release --apply
    """
    given = {"--apply": apply, "--retest": retest, "--release": release}
    acts = [name for name, on in given.items() if on]
    _check_options(acts, options, as_of, as_json)
    share = _share("--limit", limit)
    most = _share("--capacity", capacity) if capacity else max(share, CAPACITY_LIMIT)
    chosen = Options(apply, share, most, certain, options)
    judged = judge_system(system, since=since, name=campaign, as_of=as_of)
    scene = _scene(judged, _states(keep_out), Wish(_who(users), judged.chosen, drain, overlapping))
    print_left_out(judged.sessions)
    if as_json:
        record = _record(judged, scene, chosen)
        click.echo(documents.dumps(record))
        raise SystemExit(record["exit_code"])
    if _nothing_measured(judged, scene):
        still = " that still counts" if judged.samples else ""
        click.echo(f"nothing was measured{still}: {judged.chosen}; run 'reframe -c checks/ -r'")
        raise SystemExit(ExitCode.INCOMPLETE)
    try:
        work = _retest if retest else _release if release else _quarantine
        code = work(judged, scene, chosen)
    except Refusal as refusal:
        click.echo(f"siteproof: {harmless(str(refusal))}", err=True)
        code = ExitCode.FAIL
    raise SystemExit(code)


def _check_options(acts: list[str], options: tuple[str, ...], as_of: str, as_json: bool) -> None:
    """Raises UserError for options that contradict each other. acts: those that need today."""
    if "--retest" in acts and "--release" in acts:
        raise UserError("gate", "--retest and --release together", hint="Run one after the other")
    if options and "--retest" not in acts:
        raise UserError(
            "gate",
            f"'{options[0]}' without --retest",
            hint="Options after -- go to ReFrame, which only --retest starts",
        )
    if as_of and acts:
        what = "a past state cannot be acted on"
        raise UserError("--as-of", what, hint=f"Leave out {' and '.join(acts)}")
    if as_json and acts:
        hint = "--json prints the decision; perflogs/SYSTEM/gate.jsonl has what was done"
        raise UserError("--json", f"together with {' and '.join(acts)}", hint=hint)


def _scene(judged: Judgement, keep_out: list[str], wish: Wish) -> Scene:
    site, today = judged.site, datetime.now(UTC).date()
    decision = decide(reports(judged), waived(judged, today), keep_out)
    partitions: dict[str, NodeSet] = {}
    seen = nodesets.of()
    for name, partition in site.system.partitions.items():
        if partition.scheduler == "slurm":
            partitions[name] = site.expected(partition.role) - seen
            seen |= partitions[name]
    measured: dict[str, float] = {}
    for sample in judged.samples:
        if sample.status == "ok":
            time = datetime.fromisoformat(sample.header.time).timestamp()
            for node in filter(None, (sample.node, sample.dims.get(PEER))):
                measured[node] = max(time, measured.get(node, 0))
    return Scene(
        *(site.system.system, decision, partitions, wish, judged.chosen, session.user()), measured
    )


def _nothing_measured(judged: Judgement, scene: Scene) -> bool:
    rulings = scene.decision.rulings.values()
    return not judged.samples or all(ruling.state == UNTESTED for ruling in rulings)


def _record(judged: Judgement, scene: Scene, chosen: Options) -> dict[str, Any]:
    """The decision for programs, and the commands that --apply would run."""
    decision = scene.decision
    cluster, plans, silent = _planned(scene)
    if cluster:
        scene = scene.seen(cluster)
    decision = scene.decision
    rulings = decision.rulings.values()
    return {
        **documents.head(scene.system, judged.chosen),
        "exit_code": int(_decided(judged, scene)),
        "back": str(decision.back),
        "out": str(decision.out),
        "refused": _refused(judged, scene, chosen, cluster) or silent,
        "nodes": [
            {
                "node": ruling.node,
                "state": ruling.state,
                "back": ruling.back,
                "waived": [why.record() for why in ruling.waived],
                "findings": [why.record() for why in ruling.findings],
            }
            for ruling in rulings
        ],
        "commands": [shlex.join(c.argv) for plan in plans for c in plan.commands],
        "left_alone": [why.record() for plan in plans for why in plan.left_alone.values()],
        "findings": [why.record() for r in rulings if not r.back for why in r.findings],
    }


def _decided(judged: Judgement, scene: Scene) -> ExitCode:
    if _nothing_measured(judged, scene):
        return ExitCode.INCOMPLETE
    return ExitCode.FAIL if scene.decision.out else ExitCode.PASS


def _planned(scene: Scene) -> tuple[Cluster | None, list[Plan], str]:
    """What Slurm reports and what --apply would do; or nothing, and why that is not known."""
    if not scene.partitions:
        return None, [], ""
    try:
        cluster = act.look()
        return cluster, list(act.plan_quarantine(scene.seen(cluster), cluster, {}).values()), ""
    except (UserError, Refusal) as error:
        return None, [], str(error)


def _refused(judged: Judgement, scene: Scene, chosen: Options, cluster: Cluster | None) -> str:
    """Why --apply would keep too many nodes out; empty if it would not."""
    out_now = nodesets.of()
    if cluster:
        names = map(reservation_name, scene.partitions)
        out_now = cluster.out_of_service([n for n in names if n in cluster.reservations])
    new, total = {}, {}
    for name in scene.partitions:
        nodes = judged.site.expected(judged.site.partition(name).role)
        new[name] = condemned(scene.decision, nodes, out_now)
        total[name] = out_of_service(scene.decision, nodes, out_now)
    texts = [_too_many(new, chosen.limit, "measured nodes", "--limit", FAULT_OF_CHECK)]
    texts.append(_too_many(total, chosen.capacity, "nodes", "--capacity", CAPACITY))
    refused = "; ".join(filter(None, texts))
    certain = scene.decision.certain.out
    if refused and certain:
        refused += f"; --certain keeps out those that are dead or gave a wrong answer: {certain}"
    return refused


def _too_many(
    shares: Mapping[str, Share], limit: Fraction, what: str, option: str, reason: str
) -> str:
    """Which partitions exceed a limit, and which option allows it."""
    many = {name: share for name, share in shares.items() if share.exceeds(limit)}
    if not many:
        return ""
    text = ", ".join(
        f"{share.count} of {share.of} {what} of {name}" for name, share in many.items()
    )
    worst = max(-(-100 * share.count // share.of) for share in many.values())
    return (
        f"{text} would stay out, more than {float(100 * limit):g} %, so {reason} {option} {worst}%"
    )


def _quarantine(judged: Judgement, scene: Scene, chosen: Options) -> ExitCode:
    cluster, silent = (_look(scene), "") if chosen.apply else _look_if_possible(scene)
    if cluster:
        scene = scene.seen(cluster)
    _print_rulings(judged, scene)
    refused = _refused(judged, scene, chosen, cluster)
    whole = scene
    if refused and chosen.certain:
        scene = replace(scene, decision=scene.decision.certain)
    elif refused and chosen.apply:
        raise Refusal(refused)
    code, others = ExitCode.PASS, nodesets.of()
    try:
        code, others = _put(scene, cluster, chosen.apply, silent)
        if cluster:
            _print_passed(whole, cluster)
    except Refusal as refusal:
        if chosen.apply:
            raise
        refused = str(refusal)
    if refused:
        click.echo(harmless(f"{'refused' if chosen.apply else '--apply would refuse'}: {refused}"))
    click.echo(f"{whole.decision}" + (f"; left alone: {others}" if others else ""))
    return ExitCode.FAIL if whole.decision.out else code


def _put(
    scene: Scene, cluster: Cluster | None, apply: bool, silent: str
) -> tuple[ExitCode, NodeSet]:
    """Put nodes into quarantine, or print the commands; and the nodes that are left to others.

    silent: why Slurm does not answer, without a cluster.
    """
    if cluster is None:
        if silent and scene.decision.out:
            click.echo(
                f"Slurm does not answer here ({silent}); "
                "the commands assume that there is no quarantine yet:"
            )
        nobody = Cluster({node: Node(node) for node in scene.decision.out})
        _print_plans(act.plan_quarantine(scene, nobody, {}))
        return ExitCode.PASS, nodesets.of()
    plans = act.plan_quarantine(scene, cluster, {})
    if not apply:
        _print_plans(plans)
    _print_jobs(plans)
    code = ExitCode.PASS
    if apply:
        code = _apply(scene, "quarantine", act.plan_quarantine, cluster)
    return code, _left(plans)


def _look_if_possible(scene: Scene) -> tuple[Cluster | None, str]:
    """What Slurm reports; or nothing, and why it does not answer."""
    if not scene.partitions:
        return None, ""
    try:
        return act.look(), ""
    except UserError as error:
        return None, clip(error.what.partition(";")[0])


def _left(plans: Mapping[str, Plan]) -> NodeSet:
    return nodesets.of(n for plan in plans.values() for n in plan.left_alone)


def _release(judged: Judgement, scene: Scene, chosen: Options) -> ExitCode:
    cluster = _look(scene)
    if not (quarantines := act.quarantines(scene, cluster)):
        click.echo("nothing is in quarantine")
        return ExitCode.PASS
    plans = act.plan_release(scene, cluster, {})
    if chosen.apply:
        code = _apply(scene, "release", act.plan_release, cluster)
    else:
        _print_plans(plans, "stays")
        code = ExitCode.PASS
    members = nodesets.of(n for r in quarantines.values() for n in r.nodes)
    stay = _left(plans)
    freed, verb = members - stay, "freed" if chosen.apply and not code else "may be freed"
    rest = f", {len(stay)} stay ({stay})" if stay else ""
    click.echo(f"{len(freed)} of {len(members)} nodes {verb}{f' ({freed})' if freed else ''}{rest}")
    return ExitCode.FAIL if stay else code


def _retest(judged: Judgement, scene: Scene, chosen: Options) -> ExitCode:
    cluster = _look(scene)
    quarantines = act.quarantines(scene, cluster)
    if not quarantines:
        click.echo("nothing is in quarantine")
        return ExitCode.PASS
    plans, code = act.plan_resume(scene, cluster, {}), ExitCode.PASS
    if not chosen.apply:
        _print_plans(plans)
    elif any(plan.commands for plan in plans.values()):
        code = _apply(scene, "retest", act.plan_resume, cluster)
        silent = act.wait_until_they_answer(
            str(nodesets.of(n for r in quarantines.values() for n in r.nodes))
        )
        _print_left(silent)
    newest = max((s.header for s in judged.samples), key=lambda h: h.order)
    mode = newest.mode or judged.site.system.mode
    for name, reservation in quarantines.items():
        nodes = reservation.nodes - nodesets.of(plans[name].left_alone)
        if not nodes or code:
            continue
        partition = f"{scene.system}:{name}"
        argv = _reframe(partition, mode, nodes, reservation.name, chosen.again)
        code = _run_again(scene, argv, newest.campaign, chosen.apply)
    click.echo(_next(judged, newest.campaign))
    return code


def _run_again(scene: Scene, argv: list[str], campaign: str, apply: bool) -> ExitCode:
    """Print the command that tests a quarantine, and run it if that is wanted."""
    named = f"SITEPROOF_CAMPAIGN={shlex.quote(campaign)} " if campaign else ""
    click.echo(f"{named}{shlex.join(argv)}")
    failed = apply and act.retest(scene, argv, campaign)
    return ExitCode.FAIL if failed else ExitCode.PASS


def _reframe(
    partition: str, mode: str, nodes: NodeSet, reservation: str, again: tuple[str, ...]
) -> list[str]:
    """The command that tests nodes inside their reservation."""
    command = ["reframe", f"--system={partition}", "-c", "checks/", "-r", "--mode", mode]
    return [*command, "-S", f"nodes={nodes}", "-J", f"reservation={reservation}", *again]


def _next(judged: Judgement, campaign: str) -> str:
    """The command that decides again, with the samples of the retest."""
    start = min(s.header.time for s in judged.samples)
    which = f"--campaign {shlex.quote(campaign)}" if campaign else f"--since {start}"
    return f"next: siteproof gate {which} --release"


def _look(scene: Scene) -> Cluster:
    if not scene.partitions:
        raise UserError(
            "gate",
            f"no partition of {scene.system} uses Slurm",
            hint="Without --apply, --retest and --release the gate needs no Slurm",
        )
    try:
        return act.look()
    except UserError as error:
        raise UserError(
            error.where,
            error.what,
            hint="Without --apply, --retest and --release the gate needs no Slurm",
        ) from None


def _apply(scene: Scene, what: str, planner: act.Planner, seen: Cluster) -> ExitCode:
    done = act.act(scene, what, planner, seen)
    _print_left(done.left_alone, "stays" if what == "release" else "left alone")
    for command in done.commands:
        click.echo(f"done: {harmless(shlex.join(command.argv))}")
    for error in done.errors:
        click.echo(f"siteproof: {harmless(error)}", err=True)
    if not done.commands and not done.errors:
        click.echo("nothing to change")
    return ExitCode.FAIL if done.errors else ExitCode.PASS


def _print_rulings(judged: Judgement, scene: Scene) -> None:
    click.echo(f"{scene.system}: {judged.chosen}")
    for why in judged.warnings:
        click.echo(harmless(f"warning: {warning(why)}"))
    for ruling in scene.decision.rulings.values():
        reasons = few(fulls(ruling.findings), MAX_REASONS)
        if not ruling.back:
            click.echo(harmless(f"{ruling.node}  {ruling.state}  {reasons}"))
        elif ruling.state != "OK":
            remark = sentences(ruling.waived) or reasons
            click.echo(harmless(f"{ruling.node}  {ruling.state}, goes back: {remark}"))
    for result in judged.verdicts:
        for node in (n for n in result.nodes if n.waived):
            excuse = sentences(node.findings)
            click.echo(harmless(f"{node.node}  {result.id} does not count: {excuse}"))
    click.echo(f"go back: {scene.decision.back or '-'}")
    click.echo(f"stay out: {scene.decision.out or '-'}")
    if nowhere := scene.decision.out - nodesets.of(
        n for nodes in scene.partitions.values() for n in nodes
    ):
        click.echo(f"in no partition with Slurm, so there is no command for them: {nowhere}")


def _print_plans(plans: Mapping[str, Plan], verb: str = "left alone") -> None:
    for plan in plans.values():
        _print_left(plan.left_alone, verb)
        for command in plan.commands:
            click.echo(harmless(shlex.join(command.argv)))


def _print_left(left: Mapping[str, Finding], verb: str = "left alone") -> None:
    for node, why in sorted(left.items()):
        click.echo(harmless(f"{node}  {verb}: {sentence(why)}"))


def _print_jobs(plans: Mapping[str, Plan]) -> None:
    """A reservation ends no job: name those that still run there."""
    new = nodesets.of(
        n
        for plan in plans.values()
        for c in plan.commands
        if c.what in ("create", "update")
        for n in nodesets.parse(c.nodes)
    )
    for job in client.jobs_on(str(new)) if new else []:
        click.echo(f"still runs there, as a reservation ends no job: {job}")


def _print_passed(scene: Scene, cluster: Cluster) -> None:
    members = nodesets.of(n for r in act.quarantines(scene, cluster).values() for n in r.nodes)
    if passed := members & scene.decision.passed:
        click.echo(f"in quarantine and passed: {passed}; 'siteproof gate --release' frees them")


def _states(text: str) -> list[str]:
    words = [part.strip().upper() for part in text.split(",") if part.strip()]
    if not words or (bad := [w for w in words if w not in STATES[:-1]]):
        raise UserError("--keep-out", f"'{bad[0] if words else text}' is not a state", STATES[:-1])
    return words


def _share(option: str, text: str) -> Fraction:
    match = _LIMIT.fullmatch(text.strip())
    if not match or Fraction(match[1]) > 100:
        raise UserError(option, f"'{text}' is not a share of a partition", "0% to 100%")
    return Fraction(match[1]) / 100


def _who(text: str) -> str:
    users = text or ",".join(dict.fromkeys([session.user(), "root"]))
    if not _USERS.fullmatch(users):
        raise UserError(
            "--users",
            f"'{harmless(users)}' is not a list of users",
            "names, with commas between them",
        )
    return users
