"""`siteproof collect`: samples of sessions that ended before they could collect them."""

from __future__ import annotations

import click

from siteproof.collect import stages as collecting
from siteproof.errors import UserError, UserErrors
from siteproof.files import perflogs, stages


@click.command()
def collect() -> None:
    """Turn the raw files of lost sessions into samples.

    It also happens at the start of every run. Collecting twice changes nothing.

    \b
    siteproof collect
    """
    total, errors = 0, []
    for stage, found in collecting.collect_lost(stages(), perflogs()):
        if isinstance(found, UserError):
            errors.append(found)
            continue
        total += found
        click.echo(f"{found} samples from {stage}")
    click.echo(f"{total} samples collected" if total else "nothing left to collect")
    if errors:
        raise UserErrors(errors)
