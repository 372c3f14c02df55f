"""What `siteproof gate` lists: the nodes by reason, what it leaves alone, and its commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from siteproof import nodesets
from siteproof.cli.records import print_plain, print_records, print_wrapped, record_of
from siteproof.cli.shared import print_text
from siteproof.gate import act
from siteproof.gate.act import Scene
from siteproof.gate.commands import Plan
from siteproof.gate.decision import Decision, Ruling
from siteproof.gate.service import Place
from siteproof.record.finding import Finding, Kind
from siteproof.slurm import client
from siteproof.verdict.judgement import Judgement
from siteproof.wording import node_groups
from siteproof.wording.findings import full, fulls, sentence, sentences, warning
from siteproof.wording.in_bounds_unit import Shown
from siteproof.wording.tallies import units

OK = "OK"
COLUMNS = ("node", "state", "goes back", "service", *node_groups.COLUMNS[3:])


def print_rulings(judged: Judgement, scene: Scene) -> None:
    """The nodes that are not OK, by reason, and what limits or changes the decision."""
    print_text(f"{scene.system}: {judged.chosen}")
    of_nodes = [full(why) for why in scene.decision.warnings if why not in judged.warnings]
    for text in (*map(warning, judged.warnings), *of_nodes):
        print_wrapped(f"warning: {text}")
    rulings, shown = scene.decision.rulings.values(), Shown(judged)
    out = node_groups.groups((r.node, r.state, r.findings) for r in rulings if not r.back)
    print_records([record_of(group, "bold", shown) for group in out])
    for line in _folded((*_with_remark(rulings, shown), *_not_counted(judged))):
        print_wrapped(line)
    in_slurm = nodesets.of(node for nodes in scene.partitions.values() for node in nodes)
    if nowhere := scene.decision.out - in_slurm:
        print_wrapped(f"in no partition with Slurm, so there is no command for them: {nowhere}")


def _with_remark(rulings: Iterable[Ruling], shown: Shown) -> Iterator[tuple[str, str]]:
    """The nodes that go back and are not OK: which waiver, or what else, they have."""
    for ruling in rulings:
        if ruling.back and ruling.state != OK:
            remark = sentences(ruling.waived) or "; ".join(fulls(shown.all(ruling.findings)))
            yield f"{ruling.state}, goes back: {remark}", ruling.node


def _not_counted(judged: Judgement) -> Iterator[tuple[str, str]]:
    """The nodes or pairs for which a criterion does not count."""
    for result in judged.verdicts:
        for node in result.nodes:
            if node.waived:
                yield f"{result.id} does not count: {sentences(node.findings)}", node.node


def _folded(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for all nodes or pairs of which the same is to be said."""
    nodes: dict[str, list[str]] = {}
    for text, node in lines:
        nodes.setdefault(text, []).append(node)
    for text, names in nodes.items():
        yield f"{units(names)}  {text}"


def print_rows(judged: Judgement, decision: Decision, places: Iterable[Place]) -> None:
    """A line a node, for programs."""
    shown, rows = Shown(judged), []
    for place in places:
        ruling = decision.rulings[place.node]
        head = (place.node, ruling.state, "yes" if ruling.back else "no", place.service.value)
        rows.append((*head, *node_groups.cells(ruling.findings, shown)))
    print_plain(COLUMNS, rows)


def print_plans(plans: Mapping[str, Plan], verb: str = "left alone") -> None:
    """What is left alone, and the commands, each on a line to copy."""
    for plan in plans.values():
        print_reasons(plan.left_alone, f"{verb}: ")
        print_reasons(plan.kept)
        for command in plan.commands:
            print_text(shlex.join(command.argv))


def print_reasons(of: Mapping[str, Finding], title: str = "") -> None:
    """The nodes that the gate, or their comment, leaves as they are, by reason."""
    for line in _folded((f"{title}{sentence(why)}", node) for node, why in sorted(of.items())):
        print_wrapped(line)


def print_in_slurm(judged: Judgement, node: str = "") -> None:
    """The nodes that Slurm has drained or down now, all or this one, and why."""
    for line in _folded(
        (f"in Slurm: {sentence(why)}", why.subject)
        for why in in_slurm(judged)
        if why.kind is Kind.UNREADABLE or node in ("", why.subject)
    ):
        print_wrapped(line)


def in_slurm(judged: Judgement) -> list[Finding]:
    """Why nodes take no users' jobs now; nothing of a moment of the past."""
    return [] if judged.past else act.out_of_service(judged.site)


def print_jobs(plans: Mapping[str, Plan]) -> None:
    """A reservation ends no job: name those that still run there."""
    commands = [c for plan in plans.values() for c in plan.commands]
    made = [c for c in commands if c.what in ("create", "update")]
    new = nodesets.of(node for c in made for node in nodesets.parse(c.nodes))
    for job in client.jobs_on(str(new)) if new else []:
        print_wrapped(f"still runs there, as a reservation ends no job: {job}")
