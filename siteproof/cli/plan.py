"""`siteproof plan`: what a run will cost, before anything runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet
from rich.table import Table

from siteproof import files, nodesets, sites
from siteproof.checks import selection, timetable
from siteproof.checks.budget import TOO_FEW, UNSHARED
from siteproof.cli.shared import print_table
from siteproof.errors import UserError
from siteproof.sites import Site, pairs
from siteproof.units import count

Case = dict[str, Any]  # what `reframe --describe` prints of one check


@dataclass(frozen=True)
class Job:
    """One job, if it runs to its time limit. No nodes: it is not submitted.

    hours: the time limit. written: gigabytes that each node writes. note: a line about its pairs or
    points, or why there is no job.
    """

    check: str
    mode: str
    partition: str
    nodes: NodeSet
    hours: float
    written: float
    note: str = ""

    @property
    def node_hours(self) -> float:
        """All its nodes for all its time."""
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
    jobs = [_job(case, name) for case in cases for name in case["valid_systems"]]
    for note in dict.fromkeys(job.note for job in jobs if job.note):
        click.echo(note)
    _print([job for job in jobs if job.nodes])


def _described(options: tuple[str, ...]) -> list[Case]:
    """ReFrame's own description of the checks that these options select. Raises UserError."""
    reframe = Path(sys.executable).with_name("reframe")
    names_checks = any(option.startswith(("-c", "--checkpath")) for option in options)
    checks = [] if names_checks else ["-c", str(files.CLONE / "checks")]
    command = [str(reframe), *checks, *options, "--describe"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        last = (answer.stderr.strip() or answer.stdout.strip()).splitlines()[-1:]
        raise UserError("plan", " ".join(last).removeprefix("siteproof: ") or "reframe failed")
    for line in answer.stderr.splitlines():
        if line.startswith("siteproof: "):
            click.echo(line, err=True)
    # ReFrame prints its own messages before the JSON document.
    described: list[Case] = json.loads(answer.stdout[answer.stdout.index("[") :])
    return described


def _job(case: Case, where: str) -> Job:
    """The job of a case on SYSTEM:PARTITION: a sweep, all pairs of a link, or a chunk of nodes."""
    system, _, partition = where.partition(":")
    site: Site = sites.load(system)
    if "costs" in case:
        return _of_sweep(case, site, where)
    if "link" in case:
        return _of_pairs(case, site, where)
    return _of(case, where, _chunk(case, site, partition))


def _of(case: Case, where: str, nodes: NodeSet, note: str = "", walk: str = "") -> Job:
    measured = case.get("link") or case.get("fs")
    words = filter(None, [case["@class"], walk, measured])
    hours = case["time_limit"] / 3600
    return Job(" ".join(words), case["mode"], where, nodes, hours, case["gigabytes"], note)


def _chunk(case: Case, site: Site, partition: str) -> NodeSet:
    """The nodes of one job of a check; none where it is skipped or has nothing to measure."""
    spec = _spec(case, partition)
    if not spec or not _may_use(site, case.get("fs"), partition):
        return nodesets.of()
    inventory = site.expected(site.partition(partition).role)
    chosen: NodeSet = selection.select(spec, inventory, {})
    first = case["chunk"] * selection.CHUNK
    return chosen[first : first + selection.CHUNK]


def _spec(case: Case, partition: str) -> str:
    """The nodes that a check is to measure there, where it has found out which are missing."""
    if case["nodes"] == nodesets.MISSING:
        return str(case["lacking"].get(partition, ""))
    return str(case["nodes"])


def _may_use(site: Site, name: str | None, partition: str) -> bool:
    """Whether the partition's nodes may measure a file system; True for a check without one."""
    there = site.system.file_systems.get(name) if name else None
    return there is None or there.used_by(site.partition(partition).role)


def _of_sweep(case: Case, site: Site, where: str) -> Job:
    """The nodes of a sweep's widest point; none where no point fits."""
    nodes, seconds, points, left_out = case["costs"][where]
    if 1 < case["time_limit"] < seconds:  # a limit of its own; 1 s stands for none
        seconds = case["time_limit"]
    partition = site.partition(where.partition(":")[2])
    inventory = site.expected(partition.role)
    job = _of(case | {"time_limit": seconds}, where, inventory[:nodes], walk=case["walk"])
    if not points and not left_out:
        note = f"SKIP, {_why_no_point(case, site, where.partition(':')[2])}"
    else:
        note = count(points, "point")
    if left_out:
        file_system = site.system.file_systems.get(case.get("fs") or "")
        reason = TOO_FEW if file_system is None or file_system.shared else UNSHARED
        note += f", {left_out} left out, {reason}"
    return replace(job, note=f"{job.check} on {where}: {note}")


def _why_no_point(case: Case, site: Site, partition: str) -> str:
    """All points have been measured, or the sweep turns knobs on a partition that forbids it."""
    if site.partition(partition).tuning:
        return "no point is missing"
    untuned = f"{partition} has no 'tuning: true' in system.yaml"
    if case.get("resume"):
        return f"no point is missing, or {untuned}"
    return f"the sweep changes settings of nodes, and {untuned}"


def _of_pairs(case: Case, site: Site, where: str) -> Job:
    """The nodes of a link's pairs; how many rounds they take, or why there is none."""
    link = site.system.links.get(case["link"])
    if link is None:
        return _of(case, where, nodesets.of())
    name = f"{case['@class']} over {case['link']}"
    spec = _spec(case, link.partition)
    try:
        rounds = timetable.rounds(site, link, case["pattern"], spec, "plan", light=case["light"])
    except UserError as error:
        return _of(case, where, nodesets.of(), f"{name}: SKIP, {error}")
    trials = case["trials"]
    table = timetable.Timetable(rounds, trials, 0)
    repeated = f", {trials} times over" if trials > 1 else ""
    note = (
        f"{name}: {pairs.count(rounds)} pairs in {len(rounds)} rounds "
        f"({case['pattern']}){repeated}, {case['time_limit'] / 3600:.1f} h"
    )
    return _of(case, where, table.ends, note)


def _print(jobs: list[Job]) -> None:
    table = Table(title="at most, if every job ran to its time limit", title_justify="left")
    for name in ("check", "mode", "partition", "nodes", "minutes", "node-hours", "GB written"):
        table.add_column(name, overflow="fold")
    for job in jobs:
        table.add_row(
            job.check,
            job.mode,
            job.partition,
            f"{len(job.nodes)}: {job.nodes}",
            f"{60 * job.hours:.0f}",
            f"{job.node_hours:.1f}",
            f"{job.gigabytes:g}",
        )
    print_table(table)
    folder = files.folder()
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free / 10**9
    click.echo(f"samples and stage directories: {folder} ({free:.0f} GB free)")
    hours = sum(job.node_hours for job in jobs)
    written = sum(job.gigabytes for job in jobs)
    nodes = nodesets.of([node for job in jobs for node in job.nodes])
    click.echo(
        f"{count(len(jobs), 'job')} on {count(len(nodes), 'node')}, "
        f"at most {hours:.1f} node-hours, {written:g} GB written"
    )
