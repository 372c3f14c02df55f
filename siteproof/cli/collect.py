"""`siteproof collect`: samples of sessions that ended before they could collect them."""

from __future__ import annotations

import click

from siteproof import collect as collecting
from siteproof.data import perflogs, stages
from siteproof.errors import UserError


@click.command()
def collect() -> None:
    """Turn the raw files of lost sessions into samples.

    It also happens at the start of every run. Collecting twice changes nothing.

    \b
    siteproof collect
    """
    total = 0
    for stage in collecting.orphans(stages()):
        try:
            found = collecting.collect(stage, perflogs(), ended="whose session was lost")
        except OSError as error:
            raise UserError(perflogs(), f"samples cannot be written: {error.strerror}") from None
        total += len(found)
        click.echo(f"{len(found)} samples from {stage}")
    click.echo(f"{total} samples collected" if total else "nothing left to collect")
