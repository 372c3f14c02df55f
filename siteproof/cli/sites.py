"""`siteproof sites`: the systems that have a site, the one of this machine, and the keys."""

from __future__ import annotations

import textwrap

import click

from siteproof.errors import ExitCode, UserError
from siteproof.sites import Site, folder, manual, names, recognise
from siteproof.sites.manual import Key
from siteproof.sites.site import examine, find
from siteproof.sweeps.keys import Sweep
from siteproof.sweeps.tools import COMMON, TOOLS
from siteproof.units import count

WIDTH = 100
FILES = {**manual.FILES, "sweeps/NAME.yaml": Sweep}


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--keys", is_flag=True, help="Explain every key of the files instead.")
def sites(name: str | None, keys: bool) -> None:
    """List the systems, or show the nodes and criteria of NAME.

    The last line names the system of this machine.

    \b
    siteproof sites
    siteproof sites testbed
    siteproof sites --keys
    """
    if keys:
        _print_manual()
        return
    chosen = [find(name, "sites")] if name else names()
    here = _here()
    for site_name in chosen:
        site, documents = examine(site_name)
        if site is None:
            mistakes = count(sum(len(document.mistakes) for document in documents), "mistake")
            click.echo(f"{site_name}  {mistakes}, see 'siteproof lint {site_name}'")
        else:
            click.echo("\n".join(_summary(site, detailed=bool(name))))
    if not chosen:
        click.echo(f"no site in {folder()}: SITEPROOF_SITES names the folder of sites")
        raise SystemExit(ExitCode.USAGE)
    click.echo(f"this machine: {here}")


def _here() -> str:
    """The site of this machine, or the reason why there is none."""
    try:
        return recognise()
    except UserError as error:
        return str(error)


def _summary(site: Site, *, detailed: bool) -> list[str]:
    roles = ", ".join(f"{len(site.expected(r))} {r}" for r in site.system.nodes)
    what = count(len(site.criteria), "criterion", "criteria")
    lines = [f"{site.name}  {site.system.description}; {roles}; {what}"]
    if not detailed:
        return lines
    for role, entry in site.system.nodes.items():
        hardware = site.hardware_of(role).description
        lines.append(f"  {role}  {entry.nodes}" + (f"  {hardware}" if hardware else ""))
    for name, partition in site.system.partitions.items():
        environments = ", ".join(partition.environments)
        lines.append(f"  partition {name}  {partition.scheduler}, {environments}")
    for key, criterion in site.criteria.items():
        lines.append(f"  {key}  {criterion.description} ({criterion.source})")
    return lines


def _print_manual() -> None:
    for file in FILES:
        _print_keys(file, manual.keys(file, FILES))
    _print_keys("VALUE: of a parameter or condition", manual.expected_values())
    _print_keys("FACT: of a field in facts", manual.stated_values())
    for tool, found in axes().items():
        _print_keys(f"axes of a sweep: {tool}", found)
    click.echo("Choose NAME and ID yourself; keys with (*) are required")


def axes() -> dict[str, list[Key]]:
    """The axes of a sweep, by tool; those of all tools first."""
    known = {"any tool": COMMON, **{name: tool.axes for name, tool in TOOLS.items()}}
    return {
        name: [Key(axis, one.needed, one.sentence, one.words) for axis, one in keys.items()]
        for name, keys in known.items()
    }


def _print_keys(title: str, found: list[Key]) -> None:
    click.echo(title)
    for key in found:
        click.echo(f"  {key.place}{' (*)' if key.required else ''}")
        words = f" One of: {', '.join(key.choices)}." if key.choices else ""
        click.echo(textwrap.indent(textwrap.fill(key.sentence + words, WIDTH - 6), " " * 6))
    click.echo()
