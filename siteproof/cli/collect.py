"""`siteproof collect`: samples of sessions that ended before they could collect them."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import click

from siteproof.collect import stages as collecting
from siteproof.errors import UserError, UserErrors, harmless
from siteproof.files import folder, name_of, perflogs, stages
from siteproof.record import manifest, set_aside
from siteproof.units import count

LATER = "run 'siteproof collect' again when its job has ended"
GIVE_UP = "to give one up: siteproof collect --discard STAGE"


@click.command()
@click.option(
    "--discard",
    default="",
    metavar="STAGE",
    help="Give up what is set aside in STAGE: a stage directory, or a folder with several.",
)
def collect(discard: str) -> None:
    """Turn the raw files of lost sessions into samples.

    Every run does this when it starts. Collecting twice changes nothing. A broken stage directory
    is set aside: every verdict names it, and none ends with exit code 0, until it is collected or
    discarded. Discarding deletes nothing.

    \b
    siteproof collect
    siteproof collect --discard stage/20261121T180000Z-1f2e
    """
    if discard:
        _discard(discard)
        return
    total, errors = 0, {}
    for stage, found in collecting.collect_lost(stages(), perflogs()):
        if isinstance(found, UserError):
            errors[stage] = found
            continue
        total += found
        click.echo(harmless(f"{count(found, 'sample')} from {stage}"))
    running = _still_running(errors)
    for stage in running:
        click.echo(harmless(f"not collected yet: {stage}: its job or its session still runs"))
    collected = f"{count(total, 'sample')} collected"
    if errors:
        click.echo(f"{collected}; not collected: {len(errors)}; {GIVE_UP}")
        raise UserErrors(list(errors.values()))
    if running:
        click.echo(f"{collected}; still running: {len(running)}; {LATER}")
    elif total:
        click.echo(collected)
    else:
        click.echo("nothing left to collect")


def _still_running(errors: Collection[Path]) -> list[Path]:
    """Stage directories left to collect that are neither broken nor discarded."""
    discarded = set_aside.discarded(perflogs())
    return [
        stage
        for stage in manifest.pending(stages())
        if stage not in errors and set_aside.key(stage, perflogs()) not in discarded
    ]


def _discard(text: str) -> None:
    below = Path(os.path.normpath(folder() / text))
    found = set_aside.below(perflogs(), below)
    if not found:
        known = set_aside.below(perflogs(), folder())
        raise UserError("--discard", f"nothing is set aside at {text}", map(str, known[:5]))
    for stage in found:
        try:
            done = set_aside.discard(perflogs(), stage, name_of(os.getuid()))
        except OSError as error:
            raise UserError(stage, f"cannot be discarded: {error.strerror}") from None
        click.echo(harmless(f"discarded: {done.stage}"))
