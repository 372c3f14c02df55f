"""siteproof evening: Measure after maintenance, and decide which nodes go back into service."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet

from siteproof import files, nodesets
from siteproof.checks import selection
from siteproof.cli import shared
from siteproof.cli.gate_answer import Options
from siteproof.cli.steps import Screen, Steps, Stopped, checks_ended
from siteproof.compare import accepted
from siteproof.errors import ExitCode, UserError
from siteproof.gate import children
from siteproof.gate.decision import KEEP_OUT
from siteproof.sites import Site
from siteproof.sites.catalogue import MODES
from siteproof.slurm import admission, client

MEASURED = (ExitCode.PASS, ExitCode.FAIL)
JUDGED = (*MEASURED, ExitCode.INCOMPLETE)
REST = 30  # seconds between two looks for idle nodes
EXPORTS = {"junit": "junit.xml", "openmetrics": "siteproof.prom", "json": "verdict.json"}
_JOB_OPTION = re.compile(r"(?:-J|--job-option)=?")


@dataclass(frozen=True)
class CommandLine:
    """The command line. options: those for ReFrame."""

    campaign: str
    nodes: str
    reservation: str
    mode: str
    limit: str
    capacity: str
    keep_out: str
    rolling: int
    apply: bool
    certain: bool
    options: tuple[str, ...]

    @property
    def in_reservation(self) -> list[str]:
        """The option of ReFrame; a job that this process is part of is in it already."""
        outside = self.reservation and not os.environ.get("SLURM_JOB_ID")
        return ["-J", f"reservation={self.reservation}"] if outside else []

    @property
    def chosen(self) -> str:
        """What -S nodes selects."""
        return self.nodes or os.environ.get("SLURM_JOB_NODELIST", "") or "all"

    def of_reframe(self, nodes: str = "") -> list[str]:
        """The options of a run, which are those of its plan."""
        chosen = ["-S", f"nodes={nodes or self.chosen}", *self.in_reservation]
        return ["--mode", self.mode, *chosen, *self.options]

    def gate(self, *words: str) -> list[str]:
        """The gate on this campaign, with the evening's limits."""
        named = {
            "--limit": self.limit,
            "--capacity": self.capacity,
            "--keep-out": self.keep_out,
            "--beside": self.reservation,
        }
        given = [part for option in named.items() if option[1] for part in option]
        return ["siteproof", "gate", "--campaign", self.campaign, *given, *words]

    def evening(self, **replaced: str) -> list[str]:
        """This evening once more."""
        words = ["sbatch/evening"]
        for name, value in (vars(self) | replaced | {"options": ()}).items():
            if value:
                words.append("--" + name.replace("_", "-"))
                words += [] if value is True else [str(value)]
        return [*words, "--", *self.options] if self.options else words


@click.command()
@shared.text_option("--campaign", "NAME", "The campaign; the same name continues it.")
@shared.text_option("--nodes", "SET", "node[001-320], all (default), idle, missing or a number.")
@shared.text_option(
    "--reservation", "NAME", "The reservation of the maintenance, in which the jobs run."
)
@shared.text_option(
    "--mode",
    "MODE",
    "quick, maintenance or acceptance.",
    default="maintenance",
    show_default=True,
    shell_complete=shared.by_mode,
)
@shared.flag(
    "--apply",
    "Quarantine failed nodes, test them again, release those that pass; without it nothing is "
    "changed.",
)
@shared.text_option("--limit", "SHARE", "As of 'siteproof gate'.")
@shared.text_option("--capacity", "SHARE", "As of 'siteproof gate'.")
@shared.flag("--certain", "As of 'siteproof gate'.")
@shared.text_option("--keep-out", "STATES", "As of 'siteproof gate'.")
@click.option(
    "--rolling",
    metavar="HOURS",
    type=click.IntRange(min=0),
    default=0,
    help="While users run jobs: measure nodes as they become idle, each node once, until all are "
    "measured or the hours are over.",
)
@click.argument("options", metavar="[-- REFRAME OPTIONS]", nargs=-1, type=click.UNPROCESSED)
def evening(**named: Any) -> None:
    """Measure after maintenance, and decide which nodes go back into service.

    sbatch/evening starts it on a login node; submitted, it measures the nodes of its job in steps
    of that job. It ends with the verdict, which nodes stay out, why and since when, and the next
    command. output/reports/NAME has the report, files for other programs, and in evening-TIME.log
    all that its steps printed. A signal ends the step that runs, and no other begins; so does a
    step that fails, where the next needs it.

    Exit code: that of 'siteproof gate'; 2 wrong usage or input; 130 interrupted.

    \b
    siteproof evening --campaign winter-2026
    siteproof evening --campaign winter-2026 --reservation maint --apply
    siteproof evening --campaign winter-2026 --rolling 8 -- -T network
    """
    call = CommandLine(**named)
    _check(call)
    site = shared.site_of("")
    os.environ["SITEPROOF_CAMPAIGN"] = call.campaign
    with children.noted() as received:
        start, seen = time.monotonic(), _look(call, site)
        # Where it leaves what it has found, whatever the campaign is called.
        name = re.sub(r"^[.-]|[^A-Za-z0-9._-]", "_", call.campaign)
        steps = Steps(Screen(files.folder() / "output" / "reports" / name), received)
        steps.screen.note(f"== {shlex.join(call.evening())}")
        steps.ended("look at Slurm", start, seen)
        try:
            code = _Evening(call, site, steps).run()
        except (Stopped, children.Interrupted) as end:
            code = steps.stopped(end)
    raise SystemExit(code)


def _check(call: CommandLine) -> None:
    """Raises UserError."""
    shared.must_give("evening", {"--campaign": call.campaign})
    if call.mode not in MODES:
        raise UserError("--mode", f"unknown mode '{call.mode}'", MODES)
    keep_out = call.keep_out or ",".join(KEEP_OUT)
    gate = Options(limit=call.limit or "0%", capacity=call.capacity, keep_out=keep_out)
    gate.shares, gate.states  # noqa: B018


def _look(call: CommandLine, site: Site) -> str:
    """What Slurm would do with the jobs. Raises UserError where none would start."""
    if client.allocation():
        return "inside a job, whose nodes are measured in steps"
    errors, found = [], []
    for name, where in site.system.partitions.items():
        if where.scheduler != "slurm":
            continue
        try:
            wanted = selection.select(call.chosen, site.nodes_of(name), client.first_look())
            words = [part for option in where.access for part in shlex.split(option)]
            lost = admission.refuse([*words, *_of_jobs(call.of_reframe())], wanted)
        except UserError as error:
            errors.append(error)
            continue
        without = f"; left out: {admission.folded(lost)}" if lost else ""
        able = f"{len(wanted) - len(lost)} of {len(wanted)}"
        found.append(f"{able} nodes of {name} take jobs{without}")
    if errors and not found:
        raise errors[0]
    return "; ".join([*found, *map(str, errors)]) or "no partition uses Slurm"


class _Evening:
    """The steps, in their order; Stopped or Interrupted ends them."""

    def __init__(self, call: CommandLine, site: Site, steps: Steps) -> None:
        self.call, self.site, self.steps = call, site, steps

    def run(self) -> ExitCode:
        """All steps. Returns the exit code."""
        call, steps = self.call, self.steps
        steps.again = call.evening()
        steps.do("plan", ["siteproof", "plan", *call.of_reframe()], (ExitCode.PASS,))
        steps.again = call.evening(nodes=nodesets.MISSING)
        self.measure()
        steps.again = call.gate()
        verdict = self.judge()
        steps.do("nodes", ["siteproof", "nodes", "--campaign", call.campaign], JUDGED)
        self.compare()
        if call.apply and self.act():
            verdict = self.judge()
        self.report()
        certain = ["--certain"] if call.certain else []
        return steps.last(verdict, call.gate(*certain, "--brief"), JUDGED)

    # ---- measure and judge

    def measure(self) -> None:
        """All nodes, or those that become idle, each once."""
        if not self.call.rolling:
            self.steps.do("measure", self.run_of(""), MEASURED, checks_ended, _jobs)
            return
        start, tried = time.monotonic(), nodesets.of()
        look = self.steps.follow("measure", _jobs)
        while left := self.untested() - tried:
            if time.monotonic() > start + 3600 * self.call.rolling:
                break
            idle = [name for name, node in client.node_states().items() if node.state.idle]
            now = left & nodesets.of(idle)
            tried |= now
            if now:
                self.steps.name = "measure"
                self.steps.round(self.run_of(str(now)), MEASURED, look)
            else:
                self.steps.rest(REST, look)
        self.steps.ended("measure", start, f"tried: {tried or 'none'}; left: {left or 'none'}")

    def run_of(self, nodes: str) -> list[str]:
        """The command of a run on these nodes, or on all that were chosen."""
        return ["reframe", "-c", "checks/", "-r", *self.call.of_reframe(nodes)]

    def untested(self) -> NodeSet:
        """The nodes that this campaign has not measured."""
        words = ["siteproof", "nodes", "--campaign", self.call.campaign, "--untested"]
        _, printed = self.steps.ask("nodes that are not measured", words, (ExitCode.PASS,))
        return nodesets.parse(printed.strip())

    def judge(self) -> str:
        """The verdict, in the line that answers it."""
        words = ["siteproof", "verdict", "--campaign", self.call.campaign]
        return self.steps.do("verdict", words, JUDGED)

    def compare(self) -> None:
        """With the accepted campaign, where there is one; no other step needs it."""
        if accepted.read_all(files.perflogs(), self.site.name):
            words = ["siteproof", "compare", "accepted", self.call.campaign]
            self.steps.do("compare with the accepted campaign", words, tuple(ExitCode))

    # ---- act

    def act(self) -> bool:
        """Quarantine, test again, release, as far as each has ground. Whether something was tested.

        Nothing follows a refusal: the nodes in quarantine are then not all that should be there.
        """
        call, steps = self.call, self.steps
        decided = self.decide()
        if decided["refused"] and not call.certain:
            steps.screen.line(f"quarantine: refused: {decided['refused']}")
            return False
        certain = ["--certain"] if call.certain else []
        tested = False
        if decided["commands"]:
            steps.again = call.gate(*certain, "--apply")
            decided = self.act_once("quarantine", steps.again)
        of_others = nodesets.of(why["subject"] for why in decided["left_alone"])
        if _at(decided, "still_in_service", "down") - of_others and not call.certain:
            return False  # Slurm refused it, or gave no answer; the last screen has what is next
        if _at(decided, "by_us"):
            steps.again = call.gate("--retest", "--apply")
            words = [*steps.again, *(["--", *call.options] if call.options else [])]
            decided, tested = self.act_once("test again, in quarantine", words), True
        if _at(decided, "passed"):
            steps.again = call.gate("--release", "--apply")
            self.act_once("release", steps.again)
        steps.again = call.gate()
        return tested

    def act_once(self, name: str, words: Sequence[str]) -> dict[str, Any]:
        """One act of the gate, and where the nodes are then."""
        decided: dict[str, Any] = {}

        def after(_printed: str) -> str:
            decided.update(self.decide())
            inside = _at(decided, "by_us", "passed")
            return f"in quarantine: {inside}" if inside else "no node is in quarantine"

        self.steps.do(name, words, MEASURED, after, _jobs)
        return decided

    def decide(self) -> dict[str, Any]:
        """The gate's decision, and where each node is."""
        _, printed = self.steps.ask("decide", self.call.gate("--json"), JUDGED)
        decided: dict[str, Any] = files.loads("siteproof gate --json", printed)
        return decided

    def report(self) -> None:
        """The page, and the files for other programs; no other step needs them."""
        call, folder = self.call, self.steps.screen.folder
        named = ["--campaign", call.campaign, "--output"]
        page = ["siteproof", "report", *named, str(folder / "report.html")]
        self.steps.do("report", page, tuple(ExitCode), lambda _: str(folder))
        for document, name in EXPORTS.items():
            words = ["siteproof", "export", document, *named, str(folder / name)]
            self.steps.ask(f"export {document}", words, tuple(ExitCode))
        if pages := os.environ.get("SITEPROOF_PAGES"):
            self.steps.ask("pages", ["siteproof", "report", "--site", pages], tuple(ExitCode))


def _at(decided: dict[str, Any], *services: str) -> NodeSet:
    """The nodes in these places; see GateNode.service."""
    found = (one["node"] for one in decided["nodes"] if one["service"] in services)
    return nodesets.of(found)


def _of_jobs(options: Sequence[str]) -> list[str]:
    """The options of sbatch that -J passes on."""
    found, left = [], iter(options)
    for option in left:
        if match := _JOB_OPTION.match(option):
            value = option[match.end() :] or next(left, "")
            found += shlex.split(value) if value.startswith("-") else [f"--{value}"]
    return found


def _jobs() -> str:
    """The jobs of checks, each with its time, or the reason for which Slurm lets it wait."""
    found = []
    for name, state, what in client.own_jobs(str(files.folder() / "stage")):
        check = re.sub(r"^rfm_|_[0-9a-f]{8}$", "", name)
        found.append(f"{check} {what}" if state == "RUNNING" else f"{check} waits: {what}")
    return ", ".join(found)
