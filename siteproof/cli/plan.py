"""siteproof plan: Show what a run would cost: jobs, nodes, node-hours, gigabytes, where."""

from __future__ import annotations

import functools
import json
import os
import resource
import runpy
import shlex
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from siteproof import files, installed, nodesets, sites, units
from siteproof.answers import expected
from siteproof.checks import selection, timetable
from siteproof.checks.selection import ALL, NO_FILE_SYSTEM, TOO_FEW, UNSHARED
from siteproof.cli.shared import (
    Entry,
    by_mode,
    by_system,
    flag,
    forms,
    print_answer,
    print_records,
    print_rows,
    print_text,
    print_wrapped,
    text_option,
)
from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header
from siteproof.sites import Site, catalogue, pairs
from siteproof.sweeps.keys import SWEEPS_ONLY
from siteproof.units import count
from siteproof.verdict.others import asked

OWN = "siteproof: "  # how a line of Siteproof in ReFrame's output begins
Case = dict[str, Any]  # what `reframe --describe` prints of one check
# What two chunks of one check differ in.
OF_CHUNK = {"chunk", "valid_systems", "roles", "hashcode"} | {
    f"{kind}name" for kind in ("", "display_", "short_", "unique_")
}


NOTHING_MISSING = "nothing is missing"
MAX_LINES = 10  # of the most expensive rows, unless all are wanted: then a plan fits 24 lines
MAX_REASONS = 4  # why checks do not run, unless all are wanted


@dataclass(frozen=True)
class Row:
    """The jobs of one check on a partition, if each runs to its time limit.

    nodes: of all its jobs; none if nothing is submitted. hours: the time limit of a job.
    gigabytes: what all its nodes write. note: about its pairs, points or program. why: the reason
    why there is no job. set_by: the criteria that set it, by the values that they require.
    local: it runs on this host, which is no node of the system.
    """

    check: str
    mode: str
    partition: str
    nodes: Sequence[str] = ()
    hours: float = 0.0
    gigabytes: float = 0.0
    note: str = ""
    jobs: int = 1
    why: str = ""
    set_by: Sequence[str] = ()
    local: bool = False

    @property
    def taken(self) -> Sequence[str]:
        """The nodes of the system that it takes."""
        return () if self.local else self.nodes

    @property
    def place(self) -> str:
        """Its partition and nodes, as a heading."""
        where = "this host" if self.local else count(len(self.nodes), "node")
        return f"{self.partition}: {where} {_folded(tuple(self.nodes))}"

    @property
    def node_hours(self) -> float:
        """All of these for all their time."""
        return len(self.taken) * self.hours

    @property
    def below(self) -> list[str]:
        """What is shown below its line."""
        return [*filter(None, [self.note]), *(f"set by {line}" for line in self.set_by)]

    @property
    def document(self) -> dict[str, Any]:
        """Its fields for programs, in the order of the columns of --plain."""
        return {
            "check": self.check,
            "partition": self.partition,
            "mode": self.mode,
            "jobs": self.jobs if self.nodes else 0,
            "nodes": len(self.taken),
            "minutes": round(60 * self.hours) if self.nodes else 0,
            "node_hours": round(self.node_hours, 3),
            "gigabytes": round(self.gigabytes, 3),
            "node_set": _folded(tuple(self.taken)),
            "note": self.note,
            "why_not": self.why,
            "set_by": "; ".join(self.set_by),
        }


class _Total:
    """What all rows cost together."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.runs = [row for row in rows if row.nodes]
        self.jobs = sum(row.jobs for row in self.runs)
        self.nodes = len({node for row in self.runs for node in row.taken})
        self.node_hours = sum(row.node_hours for row in self.runs)
        self.gigabytes = round(sum(row.gigabytes for row in self.runs), 2)

    def __str__(self) -> str:
        return (
            f"{count(self.jobs, 'job')} on {count(self.nodes, 'node')}, "
            f"at most {self.node_hours:.1f} node-hours, {self.gigabytes:g} GB written"
        )


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", metavar="[REFRAME OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
@text_option(
    "--mode",
    "MODE",
    "quick, maintenance or acceptance; without it, that of the site.",
    shell_complete=by_mode,
)
@text_option(
    "--system",
    "NAME[:PARTITION]",
    "The system; without it, the system that this machine belongs to.",
    shell_complete=by_system,
)
@flag("--all every", "Show all rows, and all that does not run.")
@forms(about="one JSON object; `rows` has the columns of --plain, a row each")
def plan(options: tuple[str, ...], mode: str, system: str, every: bool, form: str) -> None:
    """Show what a run would cost: jobs, nodes, node-hours, gigabytes, where.

    Give the same REFRAME OPTIONS as for the run itself. Nothing is submitted or written. The pairs
    of a link are measured one after the other in one job, so a link with many pairs takes hours.

    Of a system that consists of others, it shows which checks of these answer its criteria.

    \b
    siteproof plan
    siteproof plan --mode maintenance -S nodes=node[001-064]
    siteproof plan -c sweeps/ -n IorTasks
    """
    whole = sites.load(system, whole=True) if system in sites.names() else None
    if whole and whole.members and not form:
        print_wrapped(*_of_members(whole))
        first = shlex.join(["siteproof", "plan", "--system", next(iter(whole.members))])
        print_answer(f"{whole.name} is measured by runs of its members", first)
        return
    given = (("--system", system), ("--mode", mode))
    options = (*(part for option in given if option[1] for part in option), *options)
    cases = _described(options)
    if not cases:
        raise _nothing_selected(options, system)
    if refusal := next(filter(None, (case.get("refusal") for case in cases)), ""):
        raise UserError("plan", refusal)
    load = functools.cache(sites.load)
    rows = [
        _row(chunks, load(where.partition(":")[0]), where)
        for (where, _), chunks in grouped(_by_check_and_partition(cases)).items()
    ]
    documents = [row.document for row in rows]
    if form == "json":
        total = _Total(rows)
        document = {
            "jobs": total.jobs,
            "nodes": total.nodes,
            "node_hours": round(total.node_hours, 3),
            "gigabytes": total.gigabytes,
            "rows": documents,
        }
        click.echo(json.dumps(document, indent=1))
    elif form:
        print_rows(list(documents[0]), [list(one.values()) for one in documents], form)
    else:
        checks = () if _names_checks(options) else ("-c", "checks/")
        _print(rows, shlex.join(["reframe", *checks, "-r", *options]), every=every)


def _of_members(whole: Site) -> list[str]:
    """Of each member a line for each check whose runs answer criteria of the whole."""
    found: dict[str, list[str]] = {}
    for name, member in whole.members.items():
        for key, criterion in asked(whole, member).criteria.items():
            needed = expected.answering(member, criterion)
            checks = [member.catalogue[one.metric].check for one in needed]
            for check in dict.fromkeys(filter(None, checks)) or ["siteproof probe"]:
                found.setdefault(f"{name}  {check}", []).append(key)
    return [f"{place}: {', '.join(keys)}" for place, keys in found.items()]


def _nothing_selected(options: Sequence[str], system: str) -> UserError:
    """Which program or role is missing where these options select no check."""
    nothing = "no check is selected"
    cases = _described((*options, "--skip-system-check", "--skip-prgenv-check"))
    if not cases and (of_sweeps := sorted(SWEEPS_ONLY.intersection(options))):
        nothing += f": {of_sweeps[0]} is measured by sweeps only"
        return UserError("plan", nothing, hint="'reframe -c sweeps/ -l' lists the sweeps")
    if not cases:
        return UserError("plan", nothing, hint="'reframe -c checks/ -l' lists the checks")
    name, software = cases[0]["@class"], cases[0]["software"]
    alike = [case for case in cases if case["@class"] == name]
    site = sites.load(system.partition(":")[0] or sites.recognise())
    places = sorted({f"{site.name}:{place}" for case in alike for place in case["roles"]})
    if ":" in system and system not in places:
        return UserError("plan", f"{nothing}: {name} measures no role of {system}", places)
    if not software:
        what = f"{nothing}: {name} does not run in the environment of -p"
        return UserError("plan", what, hint="'siteproof plan' without -p shows where it runs")
    what = f"{nothing}: {name} needs an environment that offers {' or '.join(software)}"
    known = site.system.environments.items()
    offering = [one for one, has in known if {*software} & {*has.features}]
    hint = "" if offering else "'siteproof build' makes some environments"
    return UserError("plan", what, offering, hint=hint)


def _described(options: Sequence[str]) -> list[Case]:
    """ReFrame's own description of the checks of this suite that these options select.

    Raises UserError.
    """
    reframe = Path(sys.executable).with_name("reframe")
    checks = [] if _names_checks(options) else ["-c", str(installed.SUITE / "checks")]
    catalogue.read()  # here, so that ReFrame's process has it, too
    code, out, err = forked([str(reframe), *checks, *options, "--describe"])
    if code:
        raise _failure(code, err.strip() or out.strip())
    for line in err.splitlines():
        if line.startswith(OWN):
            click.echo(line, err=True)
    # ReFrame prints its own messages before the JSON document.
    return [case for case in json.loads(out[out.index("[") :]) if "gigabytes" in case]


def forked(command: list[str]) -> tuple[int, str, str]:
    """Exit code and outputs of a Python program, in a copy of this process.

    What this process has imported and read, the program has, too: a third of the time of both.
    """
    with _memory() as out, _memory() as err:
        child = os.fork()
        if child == 0:
            _become(command, out, err)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for text in (out, err):
            text.seek(0)
        return code, out.read(), err.read()


def _memory() -> TextIO:
    """A file in memory, for whatever a program prints."""
    return os.fdopen(os.memfd_create("plan"), "w+", encoding="utf-8", errors="backslashreplace")


def _become(command: list[str], out: TextIO, err: TextIO) -> NoReturn:
    """Be this program until it ends."""
    code = 1
    try:
        os.dup2(out.fileno(), 1)  # of the commands that it starts
        os.dup2(err.fileno(), 2)
        os.environ.update(RFM_COLORIZE="n")
        sys.argv, sys.stdout, sys.stderr = command, out, err
        runpy.run_path(command[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            out.flush()
            err.flush()
        finally:  # whatever happens, it never goes on as a second parent
            os._exit(code)


def _names_checks(options: Iterable[str]) -> bool:
    return any(option.startswith(("-c", "--checkpath")) for option in options)


def _failure(code: int, text: str) -> UserError | UserErrors:
    """Why ReFrame failed: Siteproof's own lines, ReFrame's last one, or how it was ended."""
    own = [line.removeprefix(OWN) for line in text.splitlines() if line.startswith(OWN)]
    if code == ExitCode.USAGE and len(own) > 1:
        parts = (line.partition(": ") for line in own)
        return UserErrors(UserError(where, what) for where, _, what in parts)
    used = units.size(1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    last = "".join(text.splitlines()[-1:]).removeprefix(OWN)
    if code < 0:
        name = f"signal {-code} ({signal.strsignal(-code)})"
        hint = f"If nobody ended it, the memory of {socket.gethostname()} ran out: see 'dmesg'"
        what = f"reframe was ended by {name} when it used {used} of memory"
        return UserError("plan", what, hint=hint if -code == signal.SIGKILL else "")
    if "MemoryError" in last:
        return UserError("plan", f"reframe ran out of memory when it used {used}")
    return UserError("plan", last or f"reframe ended with exit code {code} and no message")


def _by_check_and_partition(cases: list[Case]) -> Iterator[tuple[tuple[str, str], Case]]:
    """Each case by SYSTEM:PARTITION, and by what differs in the chunk of the nodes only."""
    for case in cases:
        alike = {key: value for key, value in case.items() if key not in OF_CHUNK}
        # A sweep or a link has no chunks: each case of it is one of its own.
        name = json.dumps(alike) if case.get("chunk") is not None else case["unique_name"]
        for where in case["valid_systems"]:
            yield (where, name), case


def _row(chunks: list[Case], site: Site, where: str) -> Row:
    """A sweep, all pairs of a link, or the chunks of a check's nodes on SYSTEM:PARTITION."""
    case = chunks[0]
    if "costs" in case:
        row = _of_sweep(case, site, where)
    elif "link" in case:
        row = _of_pairs(case, site, where)
    elif "service" in case:
        return _of_service(case, site, where)
    else:
        row = _of_nodes(chunks, site, where)
    if row.nodes and where.partition(":")[2] in case["unoffered"]:
        offered = "no environment offers its program"
        return _of(case, where, note=" or ".join(case["software"]), why=offered)
    return replace(row, set_by=_set_by(case, site)) if row.nodes else row


def _set_by(case: Case, site: Site) -> list[str]:
    """A line for each point that criteria require of a check: the criteria, and its values."""
    places = {"link": case.get("link"), "file_system": case.get("fs")}
    where = {name: place for name, place in places.items() if place}
    if (link := site.system.links.get(case.get("link", ""))) and link.emulated:
        where["emulated"] = link.emulated
    job = Header("", "", "", "", case["@class"], "", "", case["mode"], conditions=where)
    found = [
        (" ".join(f"{name}={value}" for name, value in point.items()), key)
        for key, every in expected.set_by(site, job)
        # A value of -S overrides that of a criterion.
        if (point := {k: v for k, v in every.items() if str(case.get(k) or v) == v})
    ]
    return [f"{', '.join(dict.fromkeys(keys))}: {at}" for at, keys in grouped(found).items()]


def _of_nodes(chunks: list[Case], site: Site, where: str) -> Row:
    """The nodes of all jobs of a check."""
    case, partition = chunks[0], where.partition(":")[2]
    if why := _why_no_node(case, partition):
        return _of(case, where, why=why)
    spec, roles = _spec(case, partition), case["roles"][partition]
    by_number = selection.needs_states(spec)
    whole = site.having(roles) if by_number else site.nodes_of(partition)
    selected = selection.select(spec, whole, {})
    jobs = selection.jobs(selected, [site.expected(role) for role in roles])
    numbers = sorted(one["chunk"] for one in chunks if one["chunk"] < len(jobs))
    names = [name for number in numbers for name in jobs[number]]
    why = "" if names else "no node of it is selected"
    return replace(_of(case, where, names, why=why), jobs=len(numbers))


def _of(case: Case, where: str, nodes: Sequence[str] = (), note: str = "", why: str = "") -> Row:
    measured = case.get("link") or case.get("fs") or case.get("service")
    walk = case["walk"] if case.get("walk", ALL) != ALL else ""
    parts = filter(None, [case["@class"], walk, measured, case.get("application")])
    hours, written = case["time_limit"] / 3600, len(nodes) * case["gigabytes"]
    name, local = " ".join(parts), case["local"]
    return Row(name, case["mode"], where, nodes, hours, written, note, why=why, local=local)


def _why_no_node(case: Case, partition: str) -> str:
    """Why a check of nodes has nothing to measure on a partition; empty if it has."""
    if case.get("fs") == "":
        return NO_FILE_SYSTEM.removeprefix("because ")
    if case.get("unfit"):
        return f"the file system {case['unfit'].removeprefix(case['fs']).strip()}"
    if not case["roles"][partition]:
        return case.get("no_role") or "none of the partition's roles is measured there"
    return "" if _spec(case, partition) else NOTHING_MISSING


def _spec(case: Case, partition: str) -> str:
    """The nodes that a check is to measure there, where it has found out which are missing."""
    if case["nodes"] == nodesets.MISSING:
        return str(case["lacking"].get(partition, ""))
    return str(case["nodes"])


def _of_sweep(case: Case, site: Site, where: str) -> Row:
    """The nodes of a sweep's widest point; none where no point fits."""
    partition = where.partition(":")[2]
    if why := case.get("unfit") or ("" if case["roles"][partition] else case.get("no_role")):
        return _of(case, where, why=why)
    nodes, seconds, points, left_out, above_caps, written = case["costs"][where]
    if 1 < case["time_limit"] < seconds:  # a limit of its own; 1 s stands for none
        seconds = case["time_limit"]
    why = _why_left_out(case, site) if left_out else _why_no_point(case, site, partition)
    if above_caps and not left_out:
        why = "no point of it is within the caps"
    notes = [f"{left_out} left out"] if left_out else []
    if points:
        of_points = [count(points, "point"), *(f"{note}, {why}" for note in notes)]
        notes, why = [*of_points, case.get("largest", "")], ""
    notes += [f"{above_caps} above the caps of -S"] if above_caps else []
    able = [socket.gethostname()] if case["local"] else list(site.having(case["roles"][partition]))
    note = ", ".join(filter(None, notes))
    row = _of(case | {"time_limit": seconds}, where, able[:nodes], note, why)
    return replace(row, why=row.why.removeprefix("because "), gigabytes=written / 1e9)


def _why_left_out(case: Case, site: Site) -> str:
    """Why points of a sweep do not fit."""
    if not case.get("fs", "none"):
        return NO_FILE_SYSTEM
    if not case.get("service", "none"):
        return "because the site names no services of kind openstack"
    file_system = site.system.file_systems.get(case.get("fs") or "")
    return TOO_FEW if file_system is None or file_system.shared else UNSHARED


def _why_no_point(case: Case, site: Site, partition: str) -> str:
    """The check has none here, all have been measured, or the partition forbids its knobs."""
    if case["answered"]:
        return NOTHING_MISSING
    is_check = case["walk"] == ALL  # and not of a file in sweeps/
    measured = "no point is missing"
    if is_check and not case.get("resume"):
        return "the site states nothing for it to measure"
    if is_check or site.partition(partition).tuning:
        return measured
    before = f"{measured}, or" if case.get("resume") else "the sweep changes settings of nodes, and"
    return f"{before} {partition} has no 'tuning: true' in system.yaml"


def _of_pairs(case: Case, site: Site, where: str) -> Row:
    """The nodes of a link's pairs; how many rounds they take, or why there is none."""
    link = site.system.links.get(case["link"])
    if link is None:
        return _of(case, where, why="the site names no links")
    if site.partition(link.partition).scheduler == "local":
        return _of(case, where, why="a pair needs two nodes, and the partition has no Slurm")
    spec = _spec(case, link.partition)
    if not spec:
        return _of(case, where, why=NOTHING_MISSING)
    try:
        light, most = case["light"], case["at_once"]
        rounds = timetable.rounds(site, link, case["pattern"], spec, "plan", light=light, most=most)
    except UserError as error:
        return _of(case, where, why=f"{error}".rstrip("."))
    note = f"{count(pairs.count(rounds), 'pair')} in {count(len(rounds), 'round')}"
    note += f" ({case['pattern']})"
    if case["trials"] > 1:
        note += f", {case['trials']} times over"
    ends = sorted(pairs.ends(rounds))
    return _of(case, where, ends, note, "" if ends else NOTHING_MISSING)


def _of_service(case: Case, site: Site, where: str) -> Row:
    """A job of one node, or this machine; what it writes at the far end, and what that costs."""
    if why := case["unfit"] or (NOTHING_MISSING if case["answered"] else ""):
        return _of(case, where, why=why)
    of_jobs = site.system.services[case["service"]].partition
    able = list(site.nodes_of(of_jobs)) if of_jobs else [socket.gethostname()]
    note = f"costs {case['cost']}" if case["cost"] else ""
    return replace(_of(case, where, able[:1], note), gigabytes=case["written"])


# ---- the answer


@functools.cache
def _folded(names: tuple[str, ...]) -> str:
    return str(nodesets.of(names))


def _print(rows: Sequence[Row], command: str, *, every: bool) -> None:
    """Counts, the most expensive rows, what does not run by reason, and the answer."""
    total = _Total(rows)
    idle = [row for row in rows if not row.nodes]
    modes = "/".join(dict.fromkeys(row.mode for row in rows))
    system = rows[0].partition.partition(":")[0]
    print_text(f"{count(len(total.runs), 'check')} to run, {len(idle)} not: {system}, {modes}")
    ordered = sorted(total.runs, key=lambda row: -row.node_hours)
    shown = ordered if every else _fitting(ordered)
    _print_rows(shown)
    if hidden := ordered[len(shown) :]:
        print_text(f"{len(hidden)} more, cheaper ones: {_Total(hidden)}; see --all")
    if idle:
        _print_idle(idle, every=every)
    folder = files.folder()
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free / 10**9
    print_text(f"samples and stage directories: {folder} ({free:.0f} GB free)")
    for mode, budget in sites.load(system).system.budgets.items():
        hours = _Total(row for row in rows if row.mode == mode).node_hours
        if hours > budget:
            print_text(f"above the budget of {mode}, {budget} node-hours: a run is refused")
    if total.jobs:
        print_answer(str(total), command)
    else:
        print_answer(f"{total}: nothing would run", f"siteproof sites {system}")


def _fitting(rows: Sequence[Row]) -> Sequence[Row]:
    """As many of the first ones as MAX_LINES hold: each with its note, below its nodes."""
    lines, places = 0, set[str]()
    for number, row in enumerate(rows):
        lines += 1 + len(row.below) + (row.place not in places)
        places.add(row.place)
        if lines > MAX_LINES:
            return rows[:number]
    return rows


def _print_rows(rows: Sequence[Row]) -> None:
    """A line a row, below the partition and nodes that it shares with others."""
    records = []
    for place, there in grouped((row.place, row) for row in rows).items():
        records.append(Entry([place]))
        for row in there:
            cells = [
                f"  {row.check}",
                count(row.jobs, "job"),
                f"{60 * row.hours:>3.0f} min",
                f"{row.node_hours:>5.1f} node-hours",
                f"{round(row.gigabytes, 2):g} GB" if row.gigabytes else "",
            ]
            records.append(Entry(cells, row.below))
    print_records(records)


def _print_idle(rows: Sequence[Row], *, every: bool) -> None:
    """What does not run: how many for each reason, and one of them; or each of them."""
    by_reason = grouped((row.why, row) for row in rows)
    reasons = sorted(by_reason, key=lambda why: -len(by_reason[why]))
    shown = reasons if every else reasons[:MAX_REASONS]
    print_text("not run:")
    for why in shown:
        alike = by_reason[why]
        print_wrapped(f"{len(alike):4}  {why}: {_named(alike[0])}")
        print_wrapped(*map(_named, alike[1:] if every else ()), title=" " * 6)
    if left := sum(len(by_reason[why]) for why in reasons[len(shown) :]):
        print_text(f"{left:4}  for other reasons; see --all")


def _named(row: Row) -> str:
    note = f" ({row.note})" if row.note else ""
    return f"{row.check} on {row.partition.partition(':')[2]}{note}"
