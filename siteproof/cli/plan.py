"""`siteproof plan`: what a run will cost, before anything runs."""

from __future__ import annotations

import functools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from siteproof import files, nodesets, sites, units
from siteproof.checks import selection, timetable
from siteproof.checks.budget import ALL, NO_FILE_SYSTEM, TOO_FEW, UNSHARED
from siteproof.cli.shared import print_table
from siteproof.errors import UserError
from siteproof.sites import Site, pairs
from siteproof.units import count

Case = dict[str, Any]  # what `reframe --describe` prints of one check
# What two chunks of one check differ in.
OF_CHUNK = {"chunk", "valid_systems", "roles", "hashcode"} | {
    f"{kind}name" for kind in ("", "display_", "short_", "unique_")
}


@dataclass(frozen=True)
class Row:
    """The jobs of one check on a partition, if each runs to its time limit.

    nodes: of all its jobs; none if nothing is submitted. hours: the time limit of a job. written:
    gigabytes that each node writes. note: a line about its pairs or points, or why there is no job.
    """

    check: str
    mode: str
    partition: str
    nodes: list[str]
    hours: float
    written: float
    note: str = ""
    jobs: int = 1

    @property
    def node_hours(self) -> float:
        """All its nodes for all their time."""
        return len(self.nodes) * self.hours

    @property
    def gigabytes(self) -> float:
        """What all its nodes write."""
        return len(self.nodes) * self.written


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", metavar="[REFRAME OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
def plan(options: tuple[str, ...]) -> None:
    """Show what a run would cost: jobs, nodes, node-hours, gigabytes, where.

    Give the same REFRAME OPTIONS as for the run itself. Nothing is submitted or written. The pairs
    of a link are measured one after the other in one job, so a link with many pairs takes hours.

    \b
    siteproof plan
    siteproof plan --mode maintenance -S nodes=node[001-064]
    siteproof plan -c sweeps/ -n IorTasks
    """
    cases = [case for case in _described(options) if "gigabytes" in case]  # checks of this suite
    if not cases:
        raise UserError(
            "plan", "no check is selected", hint="'reframe -c checks/ -l' lists the checks"
        )
    if refusal := next(filter(None, (case.get("refusal") for case in cases)), ""):
        raise UserError("plan", refusal)
    load = functools.cache(sites.load)
    rows = [
        _row(chunks, load(where.partition(":")[0]), where)
        for where, chunks in _by_check_and_partition(cases)
    ]
    for note in dict.fromkeys(row.note for row in rows if row.note):
        click.echo(note)
    _print([row for row in rows if row.nodes])


def _described(options: tuple[str, ...]) -> list[Case]:
    """ReFrame's own description of the checks that these options select. Raises UserError."""
    reframe = Path(sys.executable).with_name("reframe")
    names_checks = any(option.startswith(("-c", "--checkpath")) for option in options)
    checks = [] if names_checks else ["-c", str(files.CLONE / "checks")]
    command = [str(reframe), *checks, *options, "--describe"]
    plain = os.environ | {"RFM_COLORIZE": "n"}
    answer = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise _failure(answer.returncode, answer.stderr.strip() or answer.stdout.strip())
    for line in answer.stderr.splitlines():
        if line.startswith("siteproof: "):
            click.echo(line, err=True)
    # ReFrame prints its own messages before the JSON document.
    described: list[Case] = json.loads(answer.stdout[answer.stdout.index("[") :])
    return described


def _failure(code: int, text: str) -> UserError:
    """Why ReFrame failed: its own last line, or how it was ended and its largest memory."""
    used = units.size(1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    last = "".join(text.splitlines()[-1:]).removeprefix("siteproof: ")
    if code < 0:
        name = f"signal {-code} ({signal.strsignal(-code)})"
        hint = f"If nobody ended it, the memory of {socket.gethostname()} ran out: see 'dmesg'"
        return UserError(
            "plan",
            f"reframe was ended by {name} when it used {used} of memory",
            hint=hint if -code == signal.SIGKILL else "",
        )
    if "MemoryError" in last:
        return UserError("plan", f"reframe ran out of memory when it used {used}")
    return UserError("plan", last or f"reframe ended with exit code {code} and no message")


def _by_check_and_partition(cases: list[Case]) -> list[tuple[str, list[Case]]]:
    """SYSTEM:PARTITION and the cases there that differ in their chunk of the nodes only."""
    found: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        alike = {key: value for key, value in case.items() if key not in OF_CHUNK}
        # A sweep or a link has no chunks: each case of it is one of its own.
        name = json.dumps(alike) if case.get("chunk") is not None else case["unique_name"]
        for where in case["valid_systems"]:
            found.setdefault((where, name), []).append(case)
    return [(where, chunks) for (where, _), chunks in found.items()]


def _row(chunks: list[Case], site: Site, where: str) -> Row:
    """A sweep, all pairs of a link, or the chunks of a check's nodes on SYSTEM:PARTITION."""
    case = chunks[0]
    if "costs" in case:
        return _of_sweep(case, site, where)
    if "link" in case:
        return _of_pairs(case, site, where)
    jobs = _jobs(case, site, where.partition(":")[2])
    numbers = sorted(one["chunk"] for one in chunks if one["chunk"] < len(jobs))
    names = [name for number in numbers for name in jobs[number]]
    return replace(_of(case, where, names), jobs=len(numbers))


def _of(case: Case, where: str, nodes: list[str], note: str = "", walk: str = "") -> Row:
    measured = case.get("link") or case.get("fs")
    words = filter(None, [case["@class"], walk, measured])
    hours = case["time_limit"] / 3600
    return Row(" ".join(words), case["mode"], where, nodes, hours, case["gigabytes"], note)


def _jobs(case: Case, site: Site, partition: str) -> list[list[str]]:
    """The nodes of each job of a check; none where it is skipped or has nothing to measure."""
    spec, roles = _spec(case, partition), case["roles"][partition]
    if not spec or not roles or case.get("unfit"):
        return []
    by_number = selection.needs_states(spec)
    whole = site.having(roles) if by_number else site.nodes_of(partition)
    selected = selection.select(spec, whole, {})
    return selection.jobs(selected, [site.expected(role) for role in roles])


def _spec(case: Case, partition: str) -> str:
    """The nodes that a check is to measure there, where it has found out which are missing."""
    if case["nodes"] == nodesets.MISSING:
        return str(case["lacking"].get(partition, ""))
    return str(case["nodes"])


def _of_sweep(case: Case, site: Site, where: str) -> Row:
    """The nodes of a sweep's widest point; none where no point fits."""
    nodes, seconds, points, left_out, above_caps = case["costs"][where]
    if 1 < case["time_limit"] < seconds:  # a limit of its own; 1 s stands for none
        seconds = case["time_limit"]
    inventory = site.having(case["roles"][where.partition(":")[2]])
    row = _of(case | {"time_limit": seconds}, where, list(inventory)[:nodes], walk=case["walk"])
    if not points and not left_out and above_caps:
        note = "SKIP, no point of it is within the caps"
    elif not points and not left_out:
        note = f"SKIP, {_why_no_point(case, site, where.partition(':')[2])}"
    else:
        note = count(points, "point")
    if left_out:
        file_system = site.system.file_systems.get(case.get("fs") or "")
        reason = TOO_FEW if file_system is None or file_system.shared else UNSHARED
        reason = reason if case.get("fs", reason) else NO_FILE_SYSTEM
        note += f", {left_out} left out, {reason}"
    if above_caps:
        note += f", {above_caps} above the caps of -S"
    return replace(row, note=f"{row.check} on {where}: {note}")


def _why_no_point(case: Case, site: Site, partition: str) -> str:
    """The check has no point here, all have been measured, or the partition forbids its knobs."""
    if case["walk"] == ALL:  # of a check, not of a file in sweeps/
        return (
            "no point is missing"
            if case.get("resume")
            else "the site states nothing for it to measure"
        )
    if site.partition(partition).tuning:
        return "no point is missing"
    untuned = f"{partition} has no 'tuning: true' in system.yaml"
    if case.get("resume"):
        return f"no point is missing, or {untuned}"
    return f"the sweep changes settings of nodes, and {untuned}"


def _of_pairs(case: Case, site: Site, where: str) -> Row:
    """The nodes of a link's pairs; how many rounds they take, or why there is none."""
    link = site.system.links.get(case["link"])
    if link is None:
        return _of(case, where, [])
    name = f"{case['@class']} over {case['link']}"
    spec = _spec(case, link.partition)
    try:
        rounds = timetable.rounds(site, link, case["pattern"], spec, "plan", light=case["light"])
    except UserError as error:
        return _of(case, where, [], f"{name}: SKIP, {error}")
    trials = case["trials"]
    repeated = f", {trials} times over" if trials > 1 else ""
    note = (
        f"{name}: {count(pairs.count(rounds), 'pair')} in {count(len(rounds), 'round')} "
        f"({case['pattern']}){repeated}, {case['time_limit'] / 3600:.1f} h"
    )
    return _of(case, where, sorted(pairs.ends(rounds)), note)


def _print(rows: list[Row]) -> None:
    table = Table(title="at most, if every job ran to its time limit", title_justify="left")
    for name in ("check", "mode", "partition", "nodes", "minutes", "node-hours", "GB written"):
        table.add_column(name, overflow="fold")
    folded = functools.cache(lambda names: str(nodesets.of(names)))
    for row in rows:
        table.add_row(
            row.check,
            row.mode,
            row.partition,
            f"{_amount(row)}: {folded(tuple(row.nodes))}",
            f"{60 * row.hours:.0f}",
            f"{row.node_hours:.1f}",
            f"{row.gigabytes:g}",
        )
    print_table(table)
    folder = files.folder()
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free / 10**9
    click.echo(f"samples and stage directories: {folder} ({free:.0f} GB free)")
    hours = sum(row.node_hours for row in rows)
    written = sum(row.gigabytes for row in rows)
    nodes = {node for row in rows for node in row.nodes}
    click.echo(
        f"{count(sum(row.jobs for row in rows), 'job')} on {count(len(nodes), 'node')}, "
        f"at most {hours:.1f} node-hours, {written:g} GB written"
    )


def _amount(row: Row) -> str:
    jobs = f" in {row.jobs} jobs" if row.jobs > 1 else ""
    return f"{len(row.nodes)}{jobs}"
