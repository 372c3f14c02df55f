"""siteproof sites: List the systems, and explain the keys of their files."""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from siteproof import files, nodesets
from siteproof.cli import shared
from siteproof.cli.shared import (
    applies,
    by_system,
    flag,
    forms,
    print_answer,
    print_text,
    print_unapplied,
    print_wrapped,
    repeated,
    text_option,
)
from siteproof.errors import ExitCode, UserError, harmless
from siteproof.porting import grouping, new_site
from siteproof.record.samples import MEANINGS
from siteproof.sites import Site, catalogue, folder, machine, manual, names, recognise
from siteproof.sites.manual import Key
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site import examine, find
from siteproof.slurm import client, configured
from siteproof.sweeps.keys import COMMON, TOOLS, Sweep
from siteproof.units import count

WIDTH = 100
T = TypeVar("T")
MAX_BYTES = 256 * files.MIB  # of a saved output: 40,000 nodes are some 40 MB
FILE = click.Path(dir_okay=False, path_type=Path)
FILES = {**manual.FILES, "sweeps/NAME.yaml": Sweep}


Rows = tuple[Sequence[str], Sequence[tuple[str, ...]]]  # the columns, and the cells of each row


class Listing(NamedTuple):
    """Nodes and partitions by name, the cluster's name if it is known, and where they come from."""

    nodes: Mapping[str, configured.ConfiguredNode]
    partitions: Mapping[str, configured.ConfiguredPartition]
    cluster: str
    where: str


class _Sites(click.Group):
    """`sites new …` is a command; any other first word is the name of a site."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, and the names of the sites."""
        found = by_system(ctx, self.params[0], incomplete)
        return [*map(CompletionItem, found), *super().shell_complete(ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_Sites, invoke_without_command=True, subcommand_metavar="[NAME | new NAME]")
@flag("--keys", "Explain every key of the files instead.")
@flag("--metrics", "List the metrics that a criterion may name.")
@flag("--features", "List the features that an environment may offer.")
@flag("--tools", "List the tools that a sweep may use.")
@flag("--statuses", "List why a sample may have no value.")
@flag("--files places", "List what is on the disk, and who writes it.")
@flag("--variables", "List the environment variables that are read.")
@forms()
@click.pass_context
def sites(ctx: click.Context, /, form: str, **lists: bool) -> None:
    """List the systems, or show the nodes and criteria of NAME; 'sites new' writes a new site.

    The last lines name the system of this machine and the next command. The other lists are those
    of Siteproof's own checks; a site's own checks may add to them.

    \b
    siteproof sites
    siteproof sites testbed
    siteproof sites --keys
    siteproof sites --features --json
    siteproof sites new NAME --help
    """
    chosen = [name for name, wanted in lists.items() if wanted]
    if form and (len(chosen) > 1 or ctx.invoked_subcommand):
        raise UserError(f"--{form}", "goes with one list")
    if form:
        shared.print_rows(*(LISTS[chosen[0]] if chosen else _sites)(), form)
        ctx.exit()
    for name in chosen:
        columns, rows = LISTS[name]()
        if name == "keys":
            _print_keys(rows)
        else:
            shared.print_table(shared.table(columns, rows))
    if chosen:
        ctx.exit()
    if ctx.invoked_subcommand is None:
        _list(names(), detailed=False)


@sites.command(hidden=True)
@click.argument("name")
def show(name: str) -> None:
    """Show the nodes and criteria of a site."""
    _list([find(name, "sites")], detailed=True)


def _list(chosen: list[str], *, detailed: bool) -> None:
    try:
        here = recognise()
    except UserError as error:
        here = str(error)
    for site_name in chosen:
        site, documents = examine(site_name)
        if site is None:
            mistakes = count(sum(len(document.mistakes) for document in documents), "mistake")
            print_wrapped(f"{site_name}  {mistakes}, see 'siteproof lint --system {site_name}'")
        else:
            print_wrapped(*_summary(site, detailed=detailed))
    if not chosen:
        click.echo(f"no site in {folder()}: SITEPROOF_SITES names the folder of sites")
        raise SystemExit(ExitCode.USAGE)
    following = ["sites", here if here in chosen else chosen[0]]
    if detailed:
        following = ["plan" if examine(chosen[0])[0] else "lint", "--system", chosen[0]]
    print_answer(f"this machine: {here}", shlex.join(["siteproof", *following]))


def _sites() -> Rows:
    rows = []
    for name in names():
        site, documents = examine(name)
        mistakes = str(sum(len(document.mistakes) for document in documents))
        if site is None:
            rows.append((name, "", "", "", mistakes))
            continue
        nodes = ", ".join(f"{role} {one.nodes}" for role, one in site.system.nodes.items())
        rows.append((name, site.system.description, nodes, str(len(site.criteria)), mistakes))
    return ("site", "description", "nodes", "criteria", "mistakes"), rows


def _metrics() -> Rows:
    better = {"neither": "", "higher": "higher is better", "lower": "lower is better"}
    found = catalogue.read().metrics.items()
    rows = [(n, one.unit, better[one.better], one.description) for n, one in found]
    return ("metric", "unit", "better", "description"), rows


def _features() -> Rows:
    found = sorted(catalogue.read().features.items())
    return ("feature", "description"), [(name, one.description) for name, one in found]


def _tools() -> Rows:
    rows = [(name, tool.sentence, tool.check) for name, tool in TOOLS.items()]
    return ("tool", "description", "check"), rows


def _places() -> Rows:
    return ("below", "path", "description", "written by", "may be deleted"), manual.places()


def of_slurm(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that stand for a live cluster."""
    command = text_option("--cluster", "NAME", "ClusterName, for saved files.")(command)
    about = "What 'scontrol show partitions' printed."
    command = click.option("--partitions", type=FILE, help=about)(command)
    about = "What 'scontrol show nodes' printed; without it, live."
    return click.option("--nodes", type=FILE, help=about)(command)


@sites.command()
@click.argument("name")
@of_slurm
@repeated("--node looked_at", "NODE=FILE", "What lscpu or description.sh printed on a node")
@flag("--describe", "Look at an idle node of each kind by a short job.")
@click.option("--modules", type=FILE, help="What 'module -t avail' printed, on any of the nodes.")
@click.option(
    "--modules-system",
    type=click.Choice(["lmod", "envmod"]),
    help="Lmod or Environment Modules; without it, that of this shell.",
)
@text_option("--account", "NAME", "Slurm's account of all jobs.")
@text_option("--qos", "NAME", "Slurm's QOS of all jobs.")
@applies("Write the site")
@click.pass_context
def new(
    context: click.Context,
    name: str,
    nodes: Path | None,
    partitions: Path | None,
    cluster: str,
    looked_at: tuple[str, ...],
    describe: bool,
    modules: Path | None,
    modules_system: str | None,
    account: str,
    qos: str,
    apply: bool,
) -> None:
    """Write the site NAME from what Slurm lists; nothing is invented.

    Without --apply, system.yaml is printed, and nothing is written. What cannot be known is a gap,
    which 'siteproof lint --system NAME' lists with what to fill in. Nodes are roles by processors,
    memory, GRES and features, each reached by one partition. An existing folder is never changed.

    Exit code 0: written, or it could be; 2: wrong usage or input, and nothing is written.

    \b
    siteproof sites new mycluster --describe --apply
    siteproof sites new far --nodes nodes.txt --partitions partitions.txt --cluster far \\
        --node nid000001=lscpu.txt --modules modules.txt --apply
    """
    if nodes and describe:
        raise UserError("--describe", "runs a job on a live cluster", "--node NODE=FILE")
    new_site.refuse(name)
    found = listed(nodes, partitions, cluster)
    grouped = grouping.group(found.nodes, found.partitions)
    if not grouped.roles:
        left = "; ".join(f"{nodes}: {why}" for why, nodes in grouped.left_out.items())
        hint = "List them while they are there, and in a partition"
        raise UserError("sites new", f"no node is left for a role; {left[:300]}", hint=hint)
    given_options = {"account": account, "qos": qos}
    options = {key: f"--{key}={_word(key, text)}" for key, text in given_options.items() if text}
    described = _described(grouped, looked_at)
    if describe:
        live, missing = grouping.through_slurm(
            grouped.roles, catalogue.read().features, options.values()
        )
        described = {**live, **described}
        for hardware, why in missing.items():
            print_text(f"siteproof: warning: {hardware} is not described: {why}", err=True)
    offers = _offers(modules, grouped) if modules else []
    known = new_site.Known(
        name=name,
        cluster=found.cluster,
        grouped=grouped,
        described=described,
        offers=offers,
        modules_system=_modules_system(modules_system) if modules else "nomod",
        features=catalogue.read().features,
        slurm=found.where,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        extra=options,
    )
    texts = new_site.files(known)
    if apply:
        print_new(name, *new_site.write(name, texts), grouped)
        return
    click.echo(texts["system.yaml"], nl=False)
    print_unapplied(context, count(len(grouped.roles), "role"), err=True)


def _modules_system(given: str | None) -> str:
    """What loads modules, as stated or as this shell has it. Raises UserError if neither is."""
    of_shell = {"LMOD_VERSION": "lmod", "MODULES_CMD": "envmod"}
    found = given or next((of_shell[name] for name in of_shell if name in os.environ), "")
    if not found:
        what = "this shell has neither Lmod nor Environment Modules"
        raise UserError("--modules", what, hint="Add '--modules-system lmod' or 'envmod'")
    return found


def _offers(path: Path, grouped: grouping.Grouped) -> list[new_site.Offer]:
    """What the listed modules offer; warns where it is nothing. Raises as _read."""
    listed = new_site.parse_modules(_read(path))
    with_gpus = {new_site.has_gpus(one.kind) for one in grouped.roles}
    offers = new_site.offers(listed, catalogue.read().features, with_gpus)
    if not offers:
        what = f"none of {count(len(listed), 'module')} is of a program that checks use"
        hint = "'module -t avail' prints a module a line"
        print_text(f"siteproof: warning: --modules: {path}: {what}; {hint}", err=True)
    return offers


def _word(key: str, text: str) -> str:
    """A name that is handed on to Slurm. Raises UserError."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.,+-]{0,99}", text):
        raise UserError(f"--{key}", f"'{text[:40]}' is not a valid name", "letters, digits, _ . -")
    return text


def _read(path: Path) -> str:
    """A file that the user names. Raises UserError, OSError."""
    return files.read_named(path, MAX_BYTES).decode("utf-8", "replace")


def listed(nodes: Path | None, partitions: Path | None, cluster: str) -> Listing:
    """What scontrol lists, live or in saved files. Raises UserError, OSError."""
    if nodes and partitions:
        texts = _read(nodes), _read(partitions)
        where = harmless(f"{nodes.name} and {partitions.name}, what scontrol printed")
    elif nodes or partitions:
        raise UserError("--nodes", "without --partitions, or the other way", "both")
    else:
        texts = _live()
        cluster = cluster or machine.this().cluster or ""
        where = "what scontrol lists"
    if cluster:
        _word("cluster", cluster)
    read = _parsed(configured.parse_nodes, texts[0], "--nodes", nodes)
    unread = {text for one in read.values() for text in one.unread}
    for text in sorted(unread):
        having = nodesets.of(one.name for one in read.values() if text in one.unread)
        what = f"GRES '{text[:60]}' of {having} is not understood, so the site lacks it"
        print_text(f"siteproof: warning: {what}", err=True)
    known = _parsed(configured.parse_partitions, texts[1], "--partitions", partitions)
    return Listing(read, known, cluster, where)


def _parsed(parse: Callable[[str], T], text: str, option: str, path: Path | None) -> T:
    """What scontrol printed, as records. Raises UserError, which names the file, if it is one."""
    try:
        return parse(text)
    except UserError as error:
        where = f"{option} {path}" if path else error.where
        raise UserError(where, error.what, error.allowed, error.hint) from None


def _live() -> tuple[str, str]:
    """What scontrol lists here. Raises UserError, which names what does without it."""
    try:
        return client.configured()
    except UserError as error:
        hint = "Or give what scontrol printed elsewhere: --nodes FILE --partitions FILE"
        raise UserError(error.where, error.what.partition("; it is")[0], hint=hint) from None


def _described(
    grouped: grouping.Grouped, looked_at: tuple[str, ...]
) -> dict[str, grouping.OneNode]:
    """What nodes printed, by the kind of hardware. Raises UserError."""
    found: dict[str, grouping.OneNode] = {}
    for text in looked_at:
        node, equals, path = text.partition("=")
        role = next((one for one in grouped.roles if node in one.nodes), None)
        if not equals or role is None:
            what = f"'{node[:40]}' is not a node of a partition, with a file"
            raise UserError(f"--node {text[:60]}", what, "NODE=FILE")
        if known := found.get(role.hardware):
            what = f"{known.name}, which is given, too, has the same hardware"
            raise UserError(f"--node {text[:60]}", what, "one node of each kind")
        found[role.hardware] = grouping.read(node, _read(Path(path)))
    return found


def print_new(
    name: str, target: Path, documents: Sequence[Document], grouped: grouping.Grouped
) -> None:
    """What was written: roles, nodes that were left out, gaps, and the next command."""
    for one in grouped.roles:
        reached = f"{count(len(one.nodes), 'node')}, {one.nodes}, by partition {one.partition}"
        others = f"; also in {', '.join(one.others)}" if one.others else ""
        asked = f"; it asks for {', '.join(one.restricted)}" if one.restricted else ""
        print_text(f"{one.name}  {reached}{others}{asked}")
    for why, nodes in grouped.left_out.items():
        print_text(f"left out, {why}: {count(len(nodes), 'node')}, {nodes}")
    gaps = [gap for document in documents for gap in document.listed_gaps()]
    print_text(*map(str, gaps), title="gap: ")
    answer = f"{target}: {count(len(grouped.roles), 'role')}, {count(len(gaps), 'gap')}"
    print_answer(answer, f"siteproof {'lint' if gaps else 'plan'} --system {name}")


def _summary(site: Site, *, detailed: bool) -> list[str]:
    roles = ", ".join(f"{len(site.expected(r))} {r}" for r in site.system.nodes)
    roles = roles or ", ".join(site.members)
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


def _keys() -> Rows:
    """Every key of the files, by the part of the manual that explains it."""
    parts = {file: manual.keys(file, FILES) for file in FILES}
    parts["VALUE: of a parameter or condition"] = manual.forms()["VALUE"]
    parts["FACT: of a field in facts"] = manual.forms()["FACT"]
    parts |= {f"axes of a sweep: {tool}": found for tool, found in axes().items()}
    rows = [
        (part, key.place, "required" if key.required else "", key.sentence, ", ".join(key.choices))
        for part, found in parts.items()
        for key in found
    ]
    return ("part", "key", "required", "description", "one of"), rows


def axes() -> dict[str, list[Key]]:
    """The axes of a sweep, by tool; those of all tools first."""
    known = {"any tool": COMMON, **{name: tool.axes for name, tool in TOOLS.items()}}
    return {
        name: [Key(axis, one.needed, one.sentence, one.words) for axis, one in keys.items()]
        for name, keys in known.items()
    }


def _print_keys(rows: Sequence[tuple[str, ...]]) -> None:
    for part, of_part in groupby(rows, itemgetter(0)):
        click.echo(part)
        for _, key, required, sentence, choices in of_part:
            click.echo(f"  {key}{' (*)' if required else ''}")
            words = f" One of: {choices}." if choices else ""
            click.echo(textwrap.indent(textwrap.fill(sentence + words, WIDTH - 6), " " * 6))
        click.echo()
    click.echo("Choose NAME and ID yourself; keys with (*) are required")


LISTS: dict[str, Callable[[], Rows]] = {
    "keys": _keys,
    "metrics": _metrics,
    "features": _features,
    "tools": _tools,
    "statuses": lambda: (("status", "description"), list(MEANINGS.items())),
    "places": _places,
    "variables": lambda: (("variable", "description"), list(manual.variables().items())),
}
