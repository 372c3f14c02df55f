"""`siteproof plan`: what a run will cost, before anything runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet
from rich.console import Console
from rich.table import Table

from siteproof import files, nodesets, sites
from siteproof.checks import selection, timetable
from siteproof.checks.budget import TOO_FEW, UNSHARED
from siteproof.errors import UserError
from siteproof.sites import Site


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def plan(options: tuple[str, ...]) -> None:
    """Show what a run would cost: jobs, nodes, node-hours, gigabytes, where.

    OPTIONS are ReFrame's, as for the run itself. Nothing is submitted or written. A link's pairs
    take their turns one after the other in one job, so that many pairs are many hours.

    \b
    siteproof plan --mode maintenance -S nodes=node[001-064]
    """
    cases = [c for c in _described(options) if "gigabytes" in c]
    if not cases:
        raise UserError(
            "plan", "no check is selected", hint="'reframe -c checks/ -l' lists the checks"
        )
    rows = [_row(case, name) for case in cases for name in case["valid_systems"]]
    for told in dict.fromkeys(row["told"] for row in rows if row["told"]):
        click.echo(told)
    _print([row for row in rows if row["nodes"]])


def _described(options: tuple[str, ...]) -> list[dict[str, Any]]:
    """ReFrame's own description of the checks that these options select."""
    reframe = Path(sys.executable).with_name("reframe")
    named = any(word.startswith(("-c", "--checkpath")) for word in options)
    checks = [] if named else ["-c", str(files.CLONE / "checks")]
    command = [str(reframe), *checks, *options, "--describe"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        last = (answer.stderr.strip() or answer.stdout.strip()).splitlines()[-1:]
        raise UserError("plan", " ".join(last).removeprefix("siteproof: ") or "reframe failed")
    for line in answer.stderr.splitlines():
        if line.startswith("siteproof: "):
            click.echo(line, err=True)
    described: list[dict[str, Any]] = json.loads(answer.stdout[answer.stdout.index("[") :])
    return described


def _row(case: dict[str, Any], where: str) -> dict[str, Any]:
    """One job: a check's chunk on one partition, or all pairs of a link."""
    system, _, partition = where.partition(":")
    site: Site = sites.load(system)
    of = case.get("link") or case.get("fs") or ""
    row = {
        "check": f"{case['@class']} {of}".strip(),
        "mode": case["mode"],
        "partition": where,
        "minutes": case["time_limit"] / 60,
        "told": "",
    }
    if "costs" in case:
        return row | _of_sweep(case, site, where)
    if "link" in case:
        row |= _of_pairs(case, site)
    elif not _may_use(site, case.get("fs"), partition):
        row["nodes"] = nodesets.of()  # SKIP: no job
    else:
        inventory = site.expected(site.partition(partition).role)
        spec = _spec(case, partition)
        chosen: NodeSet = selection.select(spec, inventory, {}) if spec else nodesets.of()
        chunk = case["chunk"] * selection.CHUNK
        row["nodes"] = chosen[chunk : chunk + selection.CHUNK]
    count = len(row["nodes"])
    return row | {
        "node_hours": count * case["time_limit"] / 3600,
        "gigabytes": count * case["gigabytes"],
    }


def _spec(case: dict[str, Any], partition: str) -> str:
    """The nodes that a check is to measure there, where it has found out which are missing."""
    missing = case["nodes"] == nodesets.MISSING
    return str(case["lacking"].get(partition, "")) if missing else str(case["nodes"])


def _of_sweep(case: dict[str, Any], site: Site, where: str) -> dict[str, Any]:
    """The nodes of a sweep's widest point, which may be others; none where no point fits."""
    nodes, seconds, points, left_out = case["costs"][where]
    of = case.get("fs") or case.get("link") or ""
    if case["time_limit"] > 1 and case["time_limit"] < seconds:
        seconds = case["time_limit"]
    inventory = site.expected(site.partition(where.partition(":")[2]).role)
    name = f"{case['@class']} {case['walk']}{f' {of}' if of else ''} on {where}"
    there = site.system.file_systems.get(case.get("fs") or "")
    too_few = TOO_FEW if there is None or there.shared else UNSHARED
    told = f"{name}: {points} points" + (f", {left_out} left out, {too_few}" if left_out else "")
    if not points and not left_out:
        told = f"{name}: SKIP, {_why_no_point(case, site, where.partition(':')[2])}"
    return {
        "nodes": inventory[:nodes],
        "minutes": seconds / 60,
        "told": told,
        "gigabytes": nodes * case["gigabytes"],
        "check": f"{case['@class']} {case['walk']} {of}".strip(),
        "node_hours": nodes * seconds / 3600,
    }


def _why_no_point(case: dict[str, Any], site: Site, partition: str) -> str:
    """A sweep has points: so they are there already, or it turns knobs where none may be."""
    if site.partition(partition).tuning:
        return "no point is missing"
    untuned = f"{partition} has no 'tuning: true' in system.yaml"
    return (
        f"no point is missing, or {untuned}"
        if case.get("resume")
        else (f"it changes settings of nodes, and {untuned}")
    )


def _may_use(site: Site, name: str | None, partition: str) -> bool:
    """Whether the site lets the partition's nodes measure a file system, if it is asked for one."""
    there = site.system.file_systems.get(name) if name else None
    return there is None or there.used_by(site.partition(partition).role)


def _of_pairs(case: dict[str, Any], site: Site) -> dict[str, Any]:
    """The nodes of a link's pairs, and how many turns they take for how long; or why none."""
    link, name = site.system.links.get(case["link"]), f"{case['@class']} over {case['link']}"
    if link is None:
        return {"nodes": nodesets.of(), "told": ""}
    try:
        rounds = timetable.rounds(
            site, link, case["pattern"], _spec(case, link.partition), "plan", light=case["light"]
        )
    except UserError as error:
        return {"nodes": nodesets.of(), "told": f"{name}: SKIP, {error}"}
    table = timetable.Timetable(rounds, case["trials"], 0)
    trials = f", {case['trials']} times over" if case["trials"] > 1 else ""
    return {
        "nodes": table.ends,
        "told": (
            f"{name}: {len(table.turns) // case['trials']} pairs in {len(rounds)} rounds "
            f"({case['pattern']}){trials}, {case['time_limit'] / 3600:.1f} h"
        ),
    }


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table(title="at most, if every job ran to its time limit", title_justify="left")
    for name in ("check", "mode", "partition", "nodes", "minutes", "node-hours", "GB written"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(
            row["check"],
            row["mode"],
            row["partition"],
            f"{len(row['nodes'])}: {row['nodes']}",
            f"{row['minutes']:.0f}",
            f"{row['node_hours']:.1f}",
            f"{row['gigabytes']:g}",
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    folder = files.folder()
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free / 10**9
    click.echo(f"samples and stage directories: {folder} ({free:.0f} GB free)")
    hours = sum(row["node_hours"] for row in rows)
    written = sum(row["gigabytes"] for row in rows)
    nodes = nodesets.of([n for row in rows for n in row["nodes"]])
    click.echo(
        f"{len(rows)} jobs on {len(nodes)} nodes, at most {hours:.1f} node-hours, {written:g} GB"
    )
