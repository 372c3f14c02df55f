"""What `siteproof gate` prints: the nodes by reason and place, its commands, and the next one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.answers.criterion import CriterionVerdict
from siteproof.cli.shared import Entry, print_plain, print_records, print_text, print_wrapped
from siteproof.compare.accepted import ACCEPTABLE
from siteproof.errors import ExitCode, UserError
from siteproof.gate import act, service
from siteproof.gate.act import Scope
from siteproof.gate.commands import Cluster, Plan
from siteproof.gate.decision import STATES, UNTESTED, Decision, Ruling
from siteproof.gate.service import Place, Service
from siteproof.record.clocks import moment_of
from siteproof.record.finding import RANKS, Finding, Kind
from siteproof.record.pair_units import grouped
from siteproof.sites.schema.yamlfile import clip
from siteproof.slurm import client
from siteproof.units import count
from siteproof.verdict.judgement import Judgement
from siteproof.wording import in_bounds_unit
from siteproof.wording.findings import full, fulls, sentence, sentences, warning
from siteproof.wording.in_bounds_unit import NodeGroup, Shown
from siteproof.wording.tallies import units
from siteproof.wording.verdicts import heading, measure, own, own_command

OK = "OK"
COLUMNS = ("node", "state", "goes back", "service", *in_bounds_unit.COLUMNS[3:])
RETEST = "--retest"
CAPACITY_LIMIT = Fraction(1, 4)
_LIMIT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s*%?")


def _share(option: str, text: str) -> Fraction:
    match = _LIMIT.fullmatch(text.strip())
    if not match or Fraction(match[1]) > 100:
        raise UserError(option, f"'{text}' is not a share of a partition", "0% to 100%")
    return Fraction(match[1]) / 100


@dataclass(frozen=True)
class Options:
    """The command line. options: those for ReFrame. given: those that the next command needs."""

    system: str = ""
    since: str = ""
    campaign: str = ""
    as_of: str = ""
    apply: bool = False
    retest: bool = False
    release: bool = False
    keep_out: str = ""
    limit: str = ""
    capacity: str = ""
    certain: bool = False
    drain: bool = False
    users: str = ""
    overlapping: tuple[str, ...] = ()
    brief: bool = False
    form: str = ""
    options: tuple[str, ...] = ()
    given: Sequence[tuple[str, ...]] = ()

    @property
    def acts(self) -> list[str]:
        """Those that do something, or would."""
        named = {"--apply": self.apply, "--retest": self.retest, "--release": self.release}
        return [name for name, on in named.items() if on]

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """--limit and --capacity. Raises UserError."""
        limit = _share("--limit", self.limit)
        default = max(limit, CAPACITY_LIMIT)
        return limit, _share("--capacity", self.capacity) if self.capacity else default

    @property
    def states(self) -> list[str]:
        """--keep-out. Raises UserError."""
        words = [part.strip().upper() for part in self.keep_out.split(",") if part.strip()]
        wrong = [state for state in words if state not in STATES[:-1]]
        if wrong or not words:
            what = f"'{wrong[0] if words else self.keep_out}' is not a state"
            raise UserError("--keep-out", what, STATES[:-1])
        return words

    def command(self, *words: str) -> str:
        """The gate with the same choice of samples, states and limits, and with other words."""
        kept = [option for option in self.given if option[0] not in words]
        given = [text for option in kept for text in option]
        return shlex.join(["siteproof", "gate", *given, *words])


@dataclass(frozen=True)
class Work:
    """What a command did. done: in words; refused: why it did nothing, or would do nothing.

    acts: its own options. cluster: Slurm as it still is. allow: the options that allow what was
    refused. handed_over: how many commands somebody else has to run.
    """

    code: ExitCode
    done: str
    acts: tuple[str, ...] = ()
    cluster: Cluster | None = None
    left_alone: Mapping[str, Finding] = field(default_factory=dict)
    refused: str = ""
    allow: tuple[str, ...] = ()
    handed_over: int = 0
    failed: bool = False


def look_if_possible(scope: Scope) -> tuple[Cluster | None, str]:
    """What Slurm reports; or nothing, and why it does not answer."""
    if not scope.partitions:
        return None, ""
    try:
        return act.look(), ""
    except UserError as error:
        return None, clip(error.what.partition(";")[0])


def print_answer(judged: Judgement, scope: Scope, chosen: Options, work: Work) -> list[Place]:
    """Where each node is; then what was done, who stays out and why, and the next command.

    Returns the places.
    """
    cluster = work.cluster
    if chosen.apply or work.refused:
        cluster, _ = look_if_possible(scope)
    if cluster:
        scope = scope.seen(cluster)
    places = act.places(scope, cluster, work.left_alone)
    if not chosen.brief:
        print_wrapped(*service.table(places, scope.decision))
    done = work.done
    if work.refused:
        done = f"{'refused' if chosen.apply else '--apply would refuse'}: {work.refused}"
    print_wrapped(done)
    print_wrapped(service.who_stays_out(places, scope.decision))
    command = _next(judged, scope, chosen, work, places)
    print_wrapped(*_by_hand(scope, chosen, work, places))
    inside = (scope.decision.rulings[node] for node in _by_service(places).get(Service.BY_US, ()))
    broken = nodesets.of(one.node for one in inside if not (one.back or one.state == UNTESTED))
    if RETEST in command and broken and not work.failed:
        print_wrapped(f"first repair {broken}")
    if command:
        print_text(f"next: {command}")
    return places


def _next(
    judged: Judgement, scope: Scope, chosen: Options, work: Work, places: Sequence[Place]
) -> str:
    """The command that an operator needs next; nothing acts on a moment of the past."""
    if judged.past:
        return _explained(judged, scope)
    if work.failed:
        return chosen.command(*work.acts)
    if work.handed_over:
        return chosen.command()
    if missing := _missing(judged, scope, places):
        return missing
    if work.refused and not work.allow:
        return chosen.command()
    if work.refused and _certain(scope, chosen, places):
        return chosen.command("--certain", "--apply")
    if work.refused and "--limit" not in work.allow:
        return chosen.command(*work.allow, "--apply")
    if work.refused:  # the nodes are hardly at fault
        return _explained(judged, scope)
    return _for_nodes(judged, scope, chosen, places) or _when_all_is_well(judged)


def _by_hand(scope: Scope, chosen: Options, work: Work, places: Sequence[Place]) -> Iterator[str]:
    """What a person does before the next command, or decides against it."""
    if work.handed_over and not work.failed:
        what = count(work.handed_over, "command")
        yield f"first somebody with the right runs the {what} above"
    elif work.refused and work.allow:
        if chosen.certain:
            kept = scope.decision.certain.out
            left = scope.decision.out - kept
            yield f"--certain keeps out {kept or 'no node'}, and leaves {left or 'no node'} alone"
        elif certain := _certain(scope, chosen, places):
            yield f"--certain keeps out {certain}, dead or with a wrong answer"
        yield f"{shlex.join(work.allow)} keeps all of them out"


def _missing(judged: Judgement, scope: Scope, places: Sequence[Place]) -> str:
    """The command that measures untested nodes, where most that should be out are of them."""
    out = [p.node for p in places if p.service in (Service.STILL_IN_SERVICE, Service.STAYS_OUT)]
    untested = [node for node in out if scope.decision.rulings[node].state == UNTESTED]
    if 2 * len(untested) <= len(out):
        return ""
    return measure(judged, nodesets.of(untested))


def _by_service(places: Sequence[Place]) -> dict[Service, list[str]]:
    return grouped((place.service, place.node) for place in places)


def _for_nodes(judged: Judgement, scope: Scope, chosen: Options, places: Sequence[Place]) -> str:
    """The command that brings nodes further; empty if none does."""
    where = _by_service(places)
    if Service.DOWN in where or any(
        place.service is Service.STILL_IN_SERVICE and not place.why for place in places
    ):
        return chosen.command("--apply")
    if Service.PASSED in where:
        return chosen.command("--release", "--apply")
    if Service.BY_US in where:
        return chosen.command(RETEST, "--apply")
    elsewhere = where.get(Service.STILL_IN_SERVICE, []) + where.get(Service.STAYS_OUT, [])
    return _why(judged, scope, elsewhere[0]) if elsewhere else ""


def _certain(scope: Scope, chosen: Options, places: Sequence[Place]) -> NodeSet:
    """The nodes that --certain would keep out, and that are not in quarantine yet."""
    inside = nodesets.of(_by_service(places).get(Service.BY_US, ()))
    return nodesets.of() if chosen.certain and chosen.apply else scope.decision.certain.out - inside


def _explained(judged: Judgement, scope: Scope) -> str:
    """Why the worst criterion is not met, or the first node stays out; empty where all is well."""
    unmet = [one.id for one in sorted(_unmet(judged), key=lambda v: RANKS[v.verdict])]
    subjects = [*unmet[:1], *scope.decision.out]
    return _why(judged, scope, subjects[0]) if subjects else ""


def _why(judged: Judgement, scope: Scope, subject: str) -> str:
    """What explains a criterion or node; the campaign lacks what failed after it."""
    ruling, end = scope.decision.rulings.get(subject), judged.as_of
    if ruling and end and any(why.since > end.isoformat() for why in ruling.findings):
        return own(judged.site.system.system, "why", subject)
    return own_command(judged, "why", subject)


def _unmet(judged: Judgement) -> list[CriterionVerdict]:
    return [v for v in judged.verdicts if v.verdict not in ACCEPTABLE and not v.excused]


def _when_all_is_well(judged: Judgement) -> str:
    if unmet := _unmet(judged):
        return own_command(judged, "why", unmet[0].id)
    if judged.campaign:
        return own(judged.site.system.system, "accept", judged.campaign, "--why", "TEXT")
    return own_command(judged, "report")


def record_of(group: NodeGroup, shown: Shown) -> Entry:
    """A group of nodes."""
    return Entry(in_bounds_unit.head(group, shown), in_bounds_unit.phrases(group, shown))


def print_rulings(judged: Judgement, scope: Scope) -> None:
    """The nodes that are not OK, by reason, and what limits or changes the decision."""
    print_wrapped(heading(judged) + _until_now(judged))
    of_nodes = [full(why) for why in scope.decision.warnings if why not in judged.warnings]
    print_wrapped(*map(warning, judged.warnings), *of_nodes, title="warning: ")
    rulings, shown = scope.decision.rulings.values(), Shown(judged)
    out = in_bounds_unit.groups((r.node, r.state, r.findings) for r in rulings if not r.back)
    print_records([record_of(group, shown) for group in out])
    print_wrapped(*with_remark(rulings, shown), *_folded(_not_counted(judged)))
    in_slurm = nodesets.of(node for nodes in scope.partitions.values() for node in nodes)
    if nowhere := scope.decision.out - in_slurm:
        print_wrapped(f"in no partition with Slurm, so there is no command for them: {nowhere}")


def _until_now(judged: Judgement) -> str:
    """That later failures count, where something was measured after what is judged."""
    end, jobs = judged.as_of, judged.sessions.headers if judged.sessions else []
    later = end is not None and any(moment_of(job) > end for job in jobs)
    return "; later failures count, too" if later and not judged.past else ""


def with_remark(rulings: Iterable[Ruling], shown: Shown) -> Iterator[str]:
    """The nodes that go back and are not OK: which waiver, or what else, they have."""
    return _folded(
        (
            f"{one.state}, goes back: "
            f"{sentences(one.waived) or '; '.join(fulls(shown.all(one.findings)))}",
            one.node,
        )
        for one in rulings
        if one.back and one.state != OK
    )


def _not_counted(judged: Judgement) -> Iterator[tuple[str, str]]:
    """The nodes or pairs for which a criterion does not count."""
    for result in judged.verdicts:
        for node in result.nodes:
            if node.waived:
                yield f"{result.id} does not count: {sentences(node.findings)}", node.node


def _folded(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for all nodes or pairs of which the same is to be said."""
    for text, names in grouped(lines).items():
        yield f"{units(names)}  {text}"


def print_rows(judged: Judgement, decision: Decision, places: Iterable[Place]) -> None:
    """A line a node, for programs."""
    shown, rows = Shown(judged), []
    for place in places:
        ruling = decision.rulings[place.node]
        head = (place.node, ruling.state, "yes" if ruling.back else "no", place.service.value)
        rows.append((*head, *in_bounds_unit.cells(ruling.findings, shown)))
    print_plain(COLUMNS, rows)


def print_plans(plans: Mapping[str, Plan], verb: str = "left alone") -> None:
    """What is left alone, and the commands, each on a line to copy."""
    for plan in plans.values():
        print_reasons(plan.left_alone, f"{verb}: ")
        print_reasons(plan.kept)
        print_text(*(shlex.join(command.argv) for command in plan.commands))


def print_reasons(of: Mapping[str, Finding], title: str = "") -> None:
    """The nodes that the gate, or their comment, leaves as they are, by reason."""
    print_wrapped(*_folded((f"{title}{sentence(why)}", node) for node, why in sorted(of.items())))


def print_in_slurm(judged: Judgement, node: str = "") -> None:
    """The nodes that Slurm has drained or down now, all or this one, and why."""
    lines = _folded(
        (f"in Slurm: {sentence(why)}", why.subject)
        for why in in_slurm(judged)
        if why.kind is Kind.UNREADABLE or node in ("", why.subject)
    )
    print_wrapped(*lines)


def in_slurm(judged: Judgement) -> list[Finding]:
    """Why nodes take no users' jobs now; nothing of a moment of the past."""
    return [] if judged.past else act.out_of_service(judged.site)


def print_jobs(plans: Mapping[str, Plan]) -> None:
    """A reservation ends no job: name those that still run there."""
    commands = [c for plan in plans.values() for c in plan.commands]
    made = [c for c in commands if c.what in ("create", "update")]
    new = nodesets.of(node for c in made for node in nodesets.parse(c.nodes))
    jobs = client.jobs_on(str(new)) if new else []
    print_wrapped(*map(str, jobs), title="still runs there, as a reservation ends no job: ")
