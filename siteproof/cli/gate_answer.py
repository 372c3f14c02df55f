"""The answer of `siteproof gate`: where each node is, what was done, and the next command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from siteproof import nodesets
from siteproof.cli.records import print_wrapped
from siteproof.cli.shared import print_text
from siteproof.compare.accepted import ACCEPTABLE
from siteproof.errors import ExitCode, UserError
from siteproof.gate import act, service
from siteproof.gate.act import Scene
from siteproof.gate.commands import Cluster
from siteproof.gate.decision import STATES, UNTESTED
from siteproof.gate.service import Place, Service
from siteproof.judge.criterion import CriterionVerdict
from siteproof.record.finding import Finding
from siteproof.schema.yamlfile import clip
from siteproof.severity import RANKS
from siteproof.units import count
from siteproof.verdict.judgement import Judgement
from siteproof.wording.verdicts import measure, own_command

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

    @property
    def of_system(self) -> str:
        """The words that select the system, if they were given."""
        named = [option for option in self.given if option[0] == "--system"]
        return f" {shlex.join(named[0])}" if named else ""


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


def look_if_possible(scene: Scene) -> tuple[Cluster | None, str]:
    """What Slurm reports; or nothing, and why it does not answer."""
    if not scene.partitions:
        return None, ""
    try:
        return act.look(), ""
    except UserError as error:
        return None, clip(error.what.partition(";")[0])


def print_answer(judged: Judgement, scene: Scene, chosen: Options, work: Work) -> None:
    """Where each node is; then what was done, who stays out and why, and the next command."""
    cluster = work.cluster
    if chosen.apply or work.refused:
        cluster, _ = look_if_possible(scene)
    if cluster:
        scene = scene.seen(cluster)
    places = act.places(scene, cluster, work.left_alone)
    for line in service.table(places, scene.decision):
        print_wrapped(line)
    done = work.done
    if work.refused:
        done = f"{'refused' if chosen.apply else '--apply would refuse'}: {work.refused}"
    print_wrapped(done)
    print_wrapped(service.who_stays_out(places, scene.decision))
    command = _next(judged, scene, chosen, work, places)
    for line in _by_hand(scene, chosen, work):
        print_wrapped(line)
    inside = (scene.decision.rulings[node] for node in _by_service(places).get(Service.BY_US, ()))
    broken = nodesets.of(one.node for one in inside if not (one.back or one.state == UNTESTED))
    if RETEST in command and broken and not work.failed:
        print_wrapped(f"first repair {broken}")
    print_text(f"next: {command}")


def _next(
    judged: Judgement, scene: Scene, chosen: Options, work: Work, places: Sequence[Place]
) -> str:
    """The command that an operator needs next."""
    if work.failed:
        return chosen.command(*work.acts)
    if work.handed_over:
        return chosen.command()
    if missing := _missing(judged, scene, places):
        return missing
    if work.refused:
        return _past_refusal(judged, scene, chosen, work)
    return _for_nodes(chosen, places) or _when_all_is_well(judged, chosen)


def _by_hand(scene: Scene, chosen: Options, work: Work) -> Iterator[str]:
    """What a person does before the next command, or decides against it."""
    if work.handed_over and not work.failed:
        what = count(work.handed_over, "command")
        yield f"first somebody with the right runs the {what} above"
    elif work.refused and work.allow:
        if scene.decision.certain.out and not chosen.certain:
            yield f"--certain keeps out {scene.decision.certain.out}, dead or with a wrong answer"
        yield f"{shlex.join(work.allow)} keeps all of them out"


def _missing(judged: Judgement, scene: Scene, places: Sequence[Place]) -> str:
    """The command that measures untested nodes, where most that should be out are of them."""
    out = [p.node for p in places if p.service in (Service.STILL_IN_SERVICE, Service.STAYS_OUT)]
    untested = [node for node in out if scene.decision.rulings[node].state == UNTESTED]
    if 2 * len(untested) <= len(out):
        return ""
    return measure(judged, nodesets.of(untested))


def _by_service(places: Sequence[Place]) -> dict[Service, list[str]]:
    where: dict[Service, list[str]] = {}
    for place in places:
        where.setdefault(place.service, []).append(place.node)
    return where


def _for_nodes(chosen: Options, places: Sequence[Place]) -> str:
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
    return f"siteproof why {elsewhere[0]}{chosen.of_system}" if elsewhere else ""


def _past_refusal(judged: Judgement, scene: Scene, chosen: Options, work: Work) -> str:
    """After a refusal: keep out what is certain; where the nodes are hardly at fault, look why."""
    if not work.allow:
        return chosen.command()
    if scene.decision.certain.out and not chosen.certain:
        return chosen.command("--certain", "--apply")
    if "--limit" not in work.allow:
        return chosen.command(*work.allow, "--apply")
    if unmet := _unmet(judged):
        return own_command(judged, "why", min(unmet, key=lambda v: RANKS[v.verdict]).id)
    return own_command(judged, "nodes")


def _unmet(judged: Judgement) -> list[CriterionVerdict]:
    return [v for v in judged.verdicts if v.verdict not in ACCEPTABLE and not v.excused]


def _when_all_is_well(judged: Judgement, chosen: Options) -> str:
    if unmet := _unmet(judged):
        return f"siteproof why {unmet[0].id}{chosen.of_system}"
    if judged.campaign:
        return f"siteproof accept {shlex.quote(judged.campaign)} --why TEXT{chosen.of_system}"
    return f"siteproof report{chosen.of_system}"
