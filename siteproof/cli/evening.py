"""siteproof evening: Measure after maintenance, and decide which nodes go back into service."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet

from siteproof import files, installed, nodesets
from siteproof.checks import selection
from siteproof.cli import shared
from siteproof.cli.gate_answer import Options
from siteproof.cli.shared import INDENT, print_text, print_wrapped
from siteproof.compare import accepted
from siteproof.errors import ExitCode, UserError, harmless
from siteproof.gate import commands
from siteproof.gate.decision import KEEP_OUT
from siteproof.sites import Site
from siteproof.sites.catalogue import MODES
from siteproof.slurm import client, configured
from siteproof.wording.findings import shorten

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
    with commands.noted() as received:
        start, seen = time.monotonic(), _look(call, site)
        # Where it leaves what it has found, whatever the campaign is called.
        name = re.sub(r"^[.-]|[^A-Za-z0-9._-]", "_", call.campaign)
        steps = Steps(Screen(files.folder() / "output" / "reports" / name), received)
        steps.screen.note(f"== {shlex.join(call.evening())}")
        steps.ended("look at Slurm", start, seen)
        try:
            code = _Evening(call, site, steps).run()
        except (Stopped, commands.Interrupted) as end:
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
            lost = configured.refuse([*words, *_of_jobs(call.of_reframe())], wanted)
        except UserError as error:
            errors.append(error)
            continue
        without = f"; left out: {configured.folded(lost)}" if lost else ""
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


# ---- the steps: a child process each, a line each, and all output in a file

FIRST, OFTEN = 10, 10  # seconds until progress is shown, and between two lines on a terminal
MAX_LINE = 300  # characters of an answer in the line of its step
NEXT = "; next: "  # the answer of a command ends here; the evening has one next command
# A line of ReFrame: how a check ended, of how many, and its name.
_ENDED = re.compile(r"^\[ +(OK|FAIL|SKIP) \] \( *\d+/(\d+)\) (.+?)(?: /[0-9a-f]+)? @", re.MULTILINE)


class Stopped(Exception):
    """A step failed, and the next has no ground. The text is the reason."""

    def __init__(self, why: str, code: ExitCode) -> None:
        super().__init__(why)
        self.code = code


class Screen:
    """What a person sees, which the log has, too. folder: of the campaign's report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live = sys.stdout.isatty()
        self.path = folder / f"evening-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.log"
        files.write(self.path, b"", below=files.folder())
        self.log = files.no_link(str(self.path), os.O_RDWR | os.O_APPEND)

    def line(self, text: str, *, whole: bool = False) -> None:
        """A line that stays. whole: never broken, as it is to copy."""
        self.note(text)
        self._clear()
        (print_text if whole else print_wrapped)(text)
        sys.stdout.flush()

    def progress(self, text: str) -> None:
        """A line that the next one replaces on a terminal."""
        width = shutil.get_terminal_size().columns - 1
        self._clear()
        click.echo(harmless(text)[: width if self.live else MAX_LINE], nl=not self.live)
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """A line of the log alone."""
        os.write(self.log, f"{harmless(text)}\n".encode())

    def size(self) -> int:
        """Bytes of the log so far."""
        return os.fstat(self.log).st_size

    def since(self, begin: int) -> str:
        """What the log has got since it had so many bytes."""
        return os.pread(self.log, self.size() - begin, begin).decode(errors="replace")

    def _clear(self) -> None:
        if self.live:
            click.echo("\r\x1b[K", nl=False)


class Steps:
    """Runs the steps. received: of children.noted(). again: how to go on after an end."""

    def __init__(self, screen: Screen, received: Sequence[int]) -> None:
        self.screen, self.received = screen, received
        self.again: Sequence[str] = ()
        self.name = ""

    def do(
        self,
        name: str,
        argv: Sequence[str],
        good: Collection[int],
        summary: Callable[[str], str] = lambda printed: answer(printed),
        progress: Callable[[], str] = lambda: "",
    ) -> str:
        """A step. Returns the line that answers it: summary(output).

        good: the exit codes after which the next step has ground. progress: what it does just now.
        Raises Stopped, Interrupted.
        """
        self.name, start = name, time.monotonic()
        line = summary(self.round(argv, good, self.follow(name, progress)))
        self.ended(name, start, line)
        return line

    def follow(self, name: str, progress: Callable[[], str]) -> Callable[[], None]:
        """What shows how far a step is, which may be several rounds."""
        self.name = name
        return _Progress(self.screen, name, progress)

    def round(self, argv: Sequence[str], good: Collection[int], look: Callable[[], None]) -> str:
        """A command of a step. Returns its output. look: of follow(). Raises as do."""
        return self._child(argv, good, self.screen.log, look)[1]

    def ask(self, name: str, argv: Sequence[str], good: Collection[int]) -> tuple[ExitCode, str]:
        """A command's exit code, and what it prints on standard output. Raises as do."""
        self.name = name
        with TemporaryFile() as kept:
            code, _ = self._child(argv, good, kept.fileno())
            kept.seek(0)
            return ExitCode(code), kept.read().decode(errors="replace")

    def rest(self, seconds: float, look: Callable[[], None]) -> None:
        """Do nothing for a while. Raises Interrupted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.received:
                raise commands.Interrupted(self.received[0])
            time.sleep(commands.LOOK_EVERY)
            look()

    def last(self, verdict: str, argv: Sequence[str], good: Collection[int]) -> ExitCode:
        """The last screen: the verdict once more, and what a command prints. Its exit code."""
        code, printed = self.ask("gate", argv, good)
        self.screen.line(verdict)
        for line in printed.splitlines():
            self.screen.line(line, whole=True)
        return code

    def stopped(self, end: Stopped | commands.Interrupted) -> ExitCode:
        """Why the evening ends here, and how to go on. Returns the exit code."""
        why, code = f"interrupted by {end} at '{self.name}', which was ended", ExitCode.INTERRUPTED
        if isinstance(end, Stopped):
            why, code = f"stopped at '{self.name}': {end}", end.code
        with suppress(OSError):  # the terminal may be gone; the log has both lines
            self.screen.line(f"{why}; no further step was run; what was measured is kept")
        with suppress(OSError):
            self.screen.line(f"next: {shlex.join(self.again)}", whole=True)
        return code

    def _child(
        self,
        argv: Sequence[str],
        good: Collection[int],
        output: int,
        look: Callable[[], None] = lambda: None,
    ) -> tuple[int, str]:
        """Run a command. Returns its exit code, and what it has added to the log."""
        self.screen.note(f"== {self.name}: {shlex.join(argv)}")
        program = shutil.which(argv[0]) or str(Path(sys.executable).with_name(argv[0]))
        settings = {"RFM_CONFIG_FILES": installed.settings_files()}
        begin = self.screen.size()
        code = commands.run(
            [program, *argv[1:]],
            self.received,
            output=output,
            errors=self.screen.log,
            cwd=installed.SUITE,
            env=os.environ | settings,
            look=look,
        )
        printed = self.screen.since(begin)
        if code not in good:
            why = answer(printed).removeprefix("siteproof: ") or "no message"
            if code != ExitCode.USAGE:
                why = f"exit code {code}: {why}"
            is_known = code in (ExitCode.USAGE, ExitCode.INTERRUPTED)
            raise Stopped(why, ExitCode(code) if is_known else ExitCode.FAIL)
        return code, printed

    def ended(self, name: str, start: float, answer: str) -> None:
        """The line of a step. start: of time.monotonic()."""
        took = _duration(time.monotonic() - start)
        self.screen.line(f"{name}, {took}: {shorten(answer, MAX_LINE)}")


class _Progress:
    """Shows what a step does, once it takes longer than FIRST seconds.

    On a terminal every OFTEN seconds in one line; elsewhere in lines ever further apart.
    """

    def __init__(self, screen: Screen, name: str, now: Callable[[], str]) -> None:
        self.screen, self.name, self.now = screen, name, now
        self.start, self.due, self.begin = time.monotonic(), float(FIRST), screen.size()

    def __call__(self) -> None:
        took = time.monotonic() - self.start
        if took < self.due:
            return
        self.due = took + OFTEN if self.screen.live else 2 * self.due
        printed = self.screen.since(self.begin)
        known = filter(None, (checks_ended(printed), self.now() or _last_line(printed)))
        self.screen.progress(f"  {self.name}, {_duration(took)}: {'; '.join(known) or 'runs'}")


def _last_line(printed: str) -> str:
    """What a step printed last; ReFrame's own lines are counted, not shown."""
    lines = [line.strip() for line in printed.splitlines() if not line.startswith(("[", "== "))]
    return next(filter(None, reversed(lines)), "")


def answer(printed: str) -> str:
    """The last line of a command, which answers the question, without the next command.

    Where it was wrapped it is put together again.
    """
    lines = [line for line in printed.splitlines() if line.strip()]
    if lines and lines[-1].startswith("next: "):
        lines.pop()
    text = lines.pop() if lines else ""
    while lines and text.startswith(" " * INDENT):
        text = f"{lines.pop()} {text.strip()}"
    return text.partition(NEXT)[0]


def checks_ended(printed: str) -> str:
    """How many checks of a run have ended, and which failed; empty before the first."""
    ended = _ENDED.findall(printed)
    if not ended:
        return ""
    failed = list(dict.fromkeys(name for how, _, name in ended if how == "FAIL"))
    of = f" of {ended[-1][1]}" if len(ended) <= int(ended[-1][1]) else ""  # else of several runs
    text = f"{len(ended)}{of} checks ended"
    return f"{text}; failed: {', '.join(failed)}" if failed else text


def _duration(seconds: float) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds:.0f} s"
