"""The gate at work: look, plan, look again, act, and write down what was done."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from siteproof import files, installed, nodesets
from siteproof.errors import UserError
from siteproof.gate import commands, decision, service
from siteproof.gate.commands import Cluster, Command, Plan, QuarantineOptions, Refusal
from siteproof.gate.decision import Decision
from siteproof.gate.service import Place, Quarantine
from siteproof.record.finding import Finding, Kind
from siteproof.sites import Site
from siteproof.slurm import client
from siteproof.slurm.records import Reservation

PATIENCE = 60  # seconds until a node that was resumed answers


@dataclass(frozen=True)
class Scope:
    """What the gate decides on. partitions: the inventory of each Slurm partition, no node twice.

    campaign: which samples the decision rests on, in words. measured: of each node, when it was
    measured last, in seconds since 1970.
    """

    system: str
    decision: Decision
    partitions: Mapping[str, NodeSet]
    options: QuarantineOptions
    campaign: str
    user: str
    measured: Mapping[str, float] = field(default_factory=dict)

    def seen(self, cluster: Cluster) -> Scope:
        """The same with the nodes that are dead now among those that stay out."""
        nodes = (cluster.nodes.get(node) for node in self.decision.rulings)
        dead = {
            node.name: commands.not_responding(node)
            for node in nodes
            if node and commands.standing(node) is commands.Standing.DEAD
        }
        return replace(self, decision=self.decision.without(dead)) if dead else self

    @property
    def log(self) -> Path:
        """The log of this system's gate."""
        return files.perflogs() / self.system / decision.NAME


@dataclass
class Done:
    """What was done, what went wrong, and what was left alone.

    handed_over: the commands for which the user lacks the right. refused_users: who could not be
    admitted to a quarantine.
    """

    commands: list[Command] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    left_alone: dict[str, Finding] = field(default_factory=dict)
    kept: dict[str, Finding] = field(default_factory=dict)
    handed_over: list[Command] = field(default_factory=list)
    refused_users: Sequence[str] = ()

    @property
    def quarantined(self) -> NodeSet:
        """The nodes that were put into a quarantine."""
        return _all(command.added for command in self.commands)

    @property
    def released(self) -> NodeSet:
        """The nodes that were taken out of one."""
        return _all(command.released for command in self.commands)


def _all(sets: Iterable[str]) -> NodeSet:
    return nodesets.of(node for text in sets for node in nodesets.parse(text))


Planner = Callable[[Scope, Cluster, Mapping[str, Finding]], dict[str, Plan]]
Journal = Callable[[Mapping[str, object]], None]  # what log.held gives


def look() -> Cluster:
    """All nodes and reservations. Raises UserError if Slurm does not answer."""
    cluster = Cluster(client.all_nodes(), client.reservations())
    reserved = [one.nodes for one in cluster.reservations.values() if one.nodes]
    if reserved and not any(node in cluster.nodes for nodes in reserved for node in nodes):
        what = "lists nodes of one cluster, and reservations of another"
        raise UserError("scontrol", what, hint="Run it again")
    return cluster


def _in_slurm(site: Site) -> list[str]:
    """The partitions of a site in Slurm; none where the machine of the command has no Slurm."""
    found = [name for name, one in site.system.partitions.items() if one.scheduler == "slurm"]
    return found if client.is_here() else []


def out_of_service(site: Site) -> list[Finding]:
    """Why nodes of a site take no users' jobs now, or that Slurm does not answer.

    None where the site, or the machine of the command, has no Slurm.
    """
    if not _in_slurm(site):
        return []
    try:
        known = client.all_nodes().values()
    except UserError as error:
        known_here = client.NO_CLUSTER not in error.what
        return [Finding(Kind.UNREADABLE, site.system.system, message=str(error))] * known_here
    found = (commands.out_of_service(node) for node in known if site.role_of(node.name))
    return list(filter(None, found))


def in_quarantine(site: Site) -> NodeSet:
    """The nodes of a site in a quarantine; none where Slurm is not here, or does not answer."""
    of_slurm = _in_slurm(site)
    try:
        known = client.reservations() if of_slurm else {}
    except UserError:
        return nodesets.of()
    names = filter(known.__contains__, map(commands.reservation_name, of_slurm))
    return nodesets.of(node for name in names for node in known[name].nodes)


def wait_until_they_answer(nodes: NodeSet) -> dict[str, Finding]:
    """Wait for nodes that were resumed; those that do not come back, with their state."""
    deadline = time.monotonic() + PATIENCE
    while True:
        known = look().nodes
        silent = {
            n: commands.not_responding(known[n])
            for n in nodes
            if n in known and known[n].state.silent
        }
        if not silent or time.monotonic() > deadline:
            return silent
        time.sleep(1)


def ours(scope: Scope, cluster: Cluster, partition: str) -> Reservation | None:
    """The partition's quarantine, if there is one. Raises Refusal if it is somebody else's."""
    found = cluster.reservations.get(commands.reservation_name(partition))
    if found and not decision.made_by_us(decision.read(scope.log), found):
        raise Refusal(
            f"reservation {found.name} is not the gate's own, as {scope.log} does not have it; "
            f"nothing was changed; if nobody needs it: scontrol delete ReservationName={found.name}"
        )
    return found


def plan_quarantine(
    scope: Scope, cluster: Cluster, moved: Mapping[str, Finding]
) -> dict[str, Plan]:
    """What would put the nodes that stay out into quarantine, by partition."""
    return {
        name: commands.quarantine(
            name, nodes, scope.decision, cluster, ours(scope, cluster, name), scope.options, moved
        )
        for name, nodes in scope.partitions.items()
    }


def plan_release(scope: Scope, cluster: Cluster, moved: Mapping[str, Finding]) -> dict[str, Plan]:
    """What would free the nodes that have passed, by partition."""
    records, own = decision.read(scope.log), quarantines(scope, cluster)
    plans = {}
    for name, nodes in scope.partitions.items():
        none = Reservation(commands.reservation_name(name), 0, nodesets.of())
        inside = _inside(scope, records, cluster, own.get(name, none))
        put_in, reservation = nodesets.of(inside.since), inside.reservation
        plans[name] = commands.release(
            scope.decision, cluster, reservation, nodes, put_in, inside.tested, moved
        )
    return plans


def _inside(
    scope: Scope, records: list[dict[str, Any]], cluster: Cluster, reservation: Reservation
) -> Quarantine:
    """A quarantine. A node that booted after its test, as after a repair, needs another one."""
    put_in = decision.put_in(records, reservation.name)
    since = {n: max(moment, reservation.start) for n, moment in put_in.items()}
    booted = {n: cluster.nodes[n].booted for n in since if n in cluster.nodes}
    tested = [
        n
        for n, moment in since.items()
        if scope.measured.get(n, 0) >= max(moment, booted.get(n, 0))
    ]
    return Quarantine(reservation, since, nodesets.of(tested))


def places(scope: Scope, cluster: Cluster | None, left_alone: Mapping[str, Finding]) -> list[Place]:
    """The place of each node of the inventory, as Slurm has it now."""
    inside = []
    if cluster:
        records = decision.read(scope.log)
        names = map(commands.reservation_name, scope.partitions)
        known = [cluster.reservations[name] for name in names if name in cluster.reservations]
        own = [one for one in known if decision.made_by_us(records, one)]
        inside = [_inside(scope, records, cluster, reservation) for reservation in own]
    in_slurm = nodesets.of(n for nodes in scope.partitions.values() for n in nodes)
    return service.places(scope.decision, in_slurm, cluster, inside, left_alone)


def plan_resume(scope: Scope, cluster: Cluster, moved: Mapping[str, Finding]) -> dict[str, Plan]:
    """What would make the quarantined nodes run jobs of their reservation, by partition."""
    return {
        name: commands.resume(cluster, reservation, scope.user, moved)
        for name, reservation in quarantines(scope, cluster).items()
    }


def quarantines(scope: Scope, cluster: Cluster) -> dict[str, Reservation]:
    """Our reservations, by partition."""
    found = {name: ours(scope, cluster, name) for name in scope.partitions}
    return {name: reservation for name, reservation in found.items() if reservation}


def act(scope: Scope, what: str, planner: Planner, seen: Cluster) -> Done:
    """Plan anew from what Slurm reports now, and run it; what changed since `seen` is left alone.

    Raises Refusal, and UserError where Slurm does not answer or the log cannot be written.
    """
    done = Done()
    with decision.held(scope.log) as journal:
        now = look()
        scope = scope.seen(now)
        own = quarantines(scope, now)
        _adopt(scope, own.values(), journal)
        inside = [reservation.nodes for reservation in own.values()]
        about = nodesets.of(n for nodes in [*scope.partitions.values(), *inside] for n in nodes)
        plans = planner(scope, now, commands.changed(seen, now, about))
        for plan in plans.values():
            done.left_alone |= plan.left_alone
            done.kept |= plan.kept
        if any(plan.commands for plan in plans.values()):
            record = _record(
                scope,
                what,
                phase="plan",
                out={r.node: r.state for r in scope.decision.rulings.values() if not r.back},
                left_alone={n: why.record() for n, why in done.left_alone.items()},
                commands=[list(c.argv) for p in plans.values() for c in p.commands],
            )
            journal(record)
        with commands.noted() as received:
            for plan in plans.values():
                _run_all(scope, what, plan.commands, journal, done, received)
    if resumed := _all(c.nodes for c in done.commands if c.what == "resume"):
        with suppress(UserError):  # what was done is done
            wait_until_they_answer(resumed)  # until then they look dead
    return done


def _adopt(scope: Scope, own: Iterable[Reservation], journal: Journal) -> None:
    """Write the start of our reservations that the log knows only by their nodes, which change."""
    records = decision.read(scope.log)
    for found in own:
        if not any(decision.has_start(record, found) for record in records):
            of_it = {"reservation": found.name, "nodes": str(found.nodes), "start": found.start}
            journal(_record(scope, "adopt", what="create", phase="after", error="", **of_it))


def _run_all(
    scope: Scope,
    what: str,
    planned: Iterable[Command],
    journal: Journal,
    done: Done,
    received: Sequence[int],
) -> None:
    """Run one partition's commands, up to the first error: the rest depend on it.

    Those for which the user lacks the right are handed over instead; the log then knows the
    reservation as ours. received: signals, which end it between two commands, so that the log has
    each command's end.
    """
    for wanted in planned:
        if received:
            raise KeyboardInterrupt
        # Who may not change reservations may not change nodes either.
        lacks_right = any(wanted.of_nodes or not other.of_nodes for other in done.handed_over)
        command, outcome = wanted, Outcome(denied=True)
        if not lacks_right:
            command, outcome = _run(scope, what, wanted, journal)
        if outcome.denied:
            journal(_record(scope, what, **command.record(), phase=decision.HANDED_OVER))
            done.handed_over.append(command)
        elif outcome.error:
            done.errors.append(f"{shlex.join(command.argv)}: {outcome.error}")
            return
        else:
            done.commands.append(command)
            if command is not wanted:
                done.refused_users = scope.options.colleagues


def _run(scope: Scope, what: str, command: Command, journal: Journal) -> tuple[Command, Outcome]:
    """Run a command, or the other one where Slurm refuses it: which, and what became of it."""
    journal(_record(scope, what, **command.record(), phase="before"))
    outcome = _outcome(command, client.change(command.argv))
    known: dict[str, object] = {"perhaps": 1} if outcome.perhaps else {}
    known |= {} if outcome.start is None else {"start": outcome.start}
    end = {"phase": "after", "error": outcome.error, **known}
    journal(_record(scope, what, **command.record(), **end))
    if outcome.refused and command.instead:
        other = replace(command, argv=command.instead, instead=())
        return _run(scope, what, other, journal)
    return command, outcome


@dataclass(frozen=True)
class Outcome:
    """What became of a command. perhaps: nobody knows; the next gate looks it up.

    refused: it did not happen, as far as Slurm shows. denied: the user lacks the right. start: of a
    reservation that was created.
    """

    error: str = ""
    perhaps: bool = False
    refused: bool = False
    denied: bool = False
    start: int | None = None


def _outcome(command: Command, failure: client.Failure | None) -> Outcome:
    """What became of a command, as Slurm has it now: silence is not a no."""
    if failure and failure.certain:
        denied = failure.cause is client.Cause.DENIED
        return Outcome(str(failure), refused=True, denied=denied)
    if not failure and command.what not in ("create", "update"):
        return Outcome()
    known = [str(failure)] if failure else []
    try:
        cluster = look()
    except UserError as error:
        known += [str(error), "'siteproof gate' looks it up the next time"]
        return Outcome("; ".join(known), perhaps=True)
    lack = commands.lack(command, cluster)
    reservation = cluster.reservations.get(command.reservation)
    created = command.what == "create" and not (lack and failure)
    start = reservation.start if created and reservation else None
    if not lack:
        return Outcome(start=start)
    # Slurm answered in words that are not known, and then shows nothing of it.
    refused = failure is not None and failure.cause is client.Cause.UNSURE
    return Outcome("; ".join([*known, lack]), perhaps=True, refused=refused, start=start)


def retest(
    scope: Scope, argv: Sequence[str], campaign: str, reservation: str, nodes: NodeSet
) -> int:
    """Run ReFrame on nodes of a quarantine, with the same output. Returns its exit code."""
    about = {"what": decision.TESTED, "reservation": reservation, "nodes": str(nodes)}
    test = {**about, "command": list(argv)}
    with decision.held(scope.log, wait=True) as journal:
        journal(_record(scope, "retest", **test, phase="before"))
    own = Path(sys.executable).with_name("reframe")
    program = str(own) if own.exists() else shutil.which("reframe") or "reframe"
    environment = os.environ | {"RFM_CONFIG_FILES": installed.settings_files()}
    if campaign:
        environment["SITEPROOF_CAMPAIGN"] = campaign
    with commands.noted() as received:
        try:
            words = [program, *argv[1:]]
            code = commands.run(words, received, cwd=installed.SUITE, env=environment)
        except commands.Interrupted:
            raise KeyboardInterrupt from None  # ReFrame has cancelled its jobs
    with decision.held(scope.log, wait=True) as journal:
        journal(_record(scope, "retest", **test, phase="after", exit_code=code))
    return code


def _record(scope: Scope, action: str, /, **more: object) -> dict[str, object]:
    now = datetime.now(UTC)
    return {
        "time": now.isoformat(timespec="seconds"),
        "unix": int(now.timestamp()),
        "user": scope.user,
        "host": socket.gethostname(),
        "samples_of": scope.campaign,
        "action": action,
        **more,
    }
