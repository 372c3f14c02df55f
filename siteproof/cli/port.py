"""siteproof port: Make a site of ReFrame's settings, or carry criteria from site to site."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

from siteproof.checks import centre_settings
from siteproof.cli.shared import (
    applies,
    by_system,
    by_system_to_copy,
    print_answer,
    print_table,
    print_text,
    print_unapplied,
    print_wrapped,
    repeated,
    table,
)
from siteproof.cli.sites import Listing, listed, of_slurm, print_new
from siteproof.errors import ExitCode, UserError
from siteproof.porting import carry, from_settings, grouping, new_site
from siteproof.porting.carry import Carried, Part
from siteproof.sites import Site, catalogue, load, load_to_copy
from siteproof.units import count

OPTIONS = {"--role": Part.ROLE, "--link": Part.LINK, "--file-system": Part.FILE_SYSTEM}


def _of_parts(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each part of a system that may have another name."""
    for option, part in reversed(OPTIONS.items()):
        about = f"The {part} of TO that stands for it, as OLD=NEW"
        command = repeated(option, "OLD=NEW", about)(command)
    return command


@click.command()
@click.argument("source", metavar="FROM", shell_complete=by_system_to_copy)
@click.argument("target", metavar="[TO]", default="", shell_complete=by_system)
@_of_parts
@of_slurm
@applies("Write them")
@click.pass_context
def port(
    context: click.Context,
    /,
    source: str,
    target: str,
    nodes: Path | None,
    partitions: Path | None,
    cluster: str,
    apply: bool,
    **given: tuple[str, ...],
) -> None:
    """Make a site of ReFrame's settings, or carry the criteria of a site over to another.

    FROM with an ending (settings.py, .yaml or .json) is a file of ReFrame settings: its system TO,
    else that of this host, becomes a site. Partitions and environments keep their names; nodes and
    hardware are what Slurm lists, live or in saved files. What is not carried over as it is is
    named. The file is read by ReFrame; a settings.py is a program, and root does not run it.

    Otherwise both are sites. A bound is kept if it is a share or 0; any other is a gap with the
    bound of FROM, which you replace by that of TO. Each source is a gap, as TO has a contract of
    its own; no criterion is in force before its gaps are filled in. Roles, links, file systems and
    metrics that TO does not have are listed. Baselines are never carried over: TO has its own
    history. FROM may be a site that comes with Siteproof.

    Exit code 0: everything has a counterpart; 2: wrong usage or input; 3: something has none.

    \b
    siteproof port ~/reframe/settings.py mycluster --apply
    siteproof port jetstream-iu mycluster --role compute=batch --link ethernet=fabric --apply
    """
    if Path(source).suffix:
        if any(given.values()):
            raise UserError("port", "a counterpart of a file of settings", "of a site")
        _of_settings(context, Path(source), target, Slurm(nodes, partitions, cluster), apply)
    if nodes or partitions or cluster:
        raise UserError("port", "what Slurm lists, for two sites", "for a file of settings")
    _of_site(context, source, target, given, apply)


class Slurm(NamedTuple):
    """What was given in place of a live cluster."""

    nodes: Path | None
    partitions: Path | None
    cluster: str


def _of_settings(
    context: click.Context, file: Path, wanted: str, slurm: Slurm, apply: bool
) -> NoReturn:
    """Make a site of a system of ReFrame's settings. Raises UserError, UserErrors, OSError."""
    settings, notes = centre_settings.read(file, wanted), from_settings.Notes()
    name = str(settings.system["name"])
    new_site.refuse(name)
    found = Listing({}, {}, slurm.cluster, file.name)
    if from_settings.needs_slurm(settings):
        found = listed(*slurm)
    reached = from_settings.reached(settings, *found[:3], notes)
    grouped = grouping.group(found.nodes, reached, apart=True)
    features = catalogue.read().features
    given = from_settings.sections(settings, grouped, found.cluster, features, notes)
    if not given.partitions:
        raise UserError(file, f"no partition of {name} is left", hint="; ".join(notes.missing))
    known = new_site.Known(
        name=name,
        cluster=found.cluster,
        grouped=grouped,
        described={},
        offers=(),
        features=features,
        slurm=f"{file.name} and {found.where}" if found.nodes else file.name,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        command=f"port {file.name} {name}",
        given=given,
    )
    texts = new_site.files(known)
    if not apply:
        click.echo(texts["system.yaml"], nl=False)
    print_text(*notes.kept, title="changed: ", err=not apply)
    print_text(*notes.missing, title="no counterpart: ", err=not apply)
    if apply:
        print_new(name, *new_site.write(name, texts), grouped)
    else:
        answer = f"{name}: {len(notes.missing)} without a counterpart"
        print_unapplied(context, answer, err=True)
    raise SystemExit(ExitCode.INCOMPLETE if notes.missing else ExitCode.PASS)


def _of_site(
    context: click.Context,
    source: str,
    target: str,
    given: Mapping[str, tuple[str, ...]],
    apply: bool,
) -> NoReturn:
    """Carry the criteria of a site over to another. Raises UserError, UserErrors."""
    if not target:
        raise UserError("port", "no site TO", hint="Name the site that the criteria are for")
    old, new = load_to_copy(source, "FROM"), load(target)
    if source == target:
        raise UserError("port", f"'{source}' twice", "two sites")
    renamed = {part: _pairs(option, given[part.name.lower()]) for option, part in OPTIONS.items()}
    found = carry.carry(old, new, carry.Counterparts(old, new, renamed))
    _print(old, new, found)
    if hints := _counterparts(new, found):
        print_wrapped(f"name counterparts: {', '.join(hints)}")
    if not any(one.entry for one in found):
        print_answer(_answer(found))
    elif apply:
        where = new_site.add(new, f"criteria-{source}.yaml", _text(old, new, found))
        print_answer(f"{_answer(found)}; written to {where}", f"siteproof lint --system {target}")
    else:
        print_unapplied(context, _answer(found))
    raise SystemExit(ExitCode.INCOMPLETE if any(one.missing for one in found) else ExitCode.PASS)


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """OLD=NEW as a mapping. Raises UserError."""
    found = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UserError(option, f"'{text[:60]}' is not a pair of names", "OLD=NEW")
        found[old] = new
    return found


def _print(old: Site, new: Site, found: Sequence[Carried]) -> None:
    rows = []
    for one in found:
        becomes = "-" if not (one.entry and one.bound) else "kept" if one.keeps_bound else "gap"
        rows.append((one.id, one.bound or "only reported", becomes, ", ".join(one.missing)))
    columns = ("criterion", f"bound of {old.name}", f"in {new.name}", "without a counterpart")
    print_table(table(columns, rows, f"{old.name} to {new.name}"))
    if old.baselines:
        print_text(f"not carried over: {count(len(old.baselines), 'baseline')} of {old.name}")
    if old.system.parameters:
        print_text(f"not carried over: the expected host parameters of {old.name}")


def _counterparts(new: Site, found: Sequence[Carried]) -> list[str]:
    """The options for what has none, with the names that TO has."""
    known, missing = carry.parts(new), [part for one in found for part in one.missing]
    return [
        f"{option} OLD=NEW (NEW: {' or '.join(sorted(known[part]))})"
        for option, part in OPTIONS.items()
        if known[part] and any(text.startswith(f"{part} ") for text in missing)
    ]


def _text(old: Site, new: Site, found: Sequence[Carried]) -> str:
    head = [
        f"# Criteria of {old.name}, by 'siteproof port {old.name} {new.name} --apply' on",
        f"# {datetime.now(UTC):%Y-%m-%d}. None is in force before its gaps are filled in.",
    ]
    return "\n".join([*head, *(line for one in found for line in one.entry)]) + "\n"


def _answer(found: Sequence[Carried]) -> str:
    carried = [one for one in found if one.entry]
    numbers = {
        "with their bound": sum(bool(one.bound) and one.keeps_bound for one in carried),
        "with a gap as bound": sum(not one.keeps_bound for one in carried),
        "only reported": sum(not one.bound for one in carried),
        "not carried": len(found) - len(carried),
    }
    text = ", ".join(f"{number} {what}" for what, number in numbers.items() if number)
    missing = sum(bool(one.missing) for one in found)
    text += f"; {missing} without a counterpart" if missing else ""
    return f"{count(len(found), 'criterion', 'criteria')}: {text}"
