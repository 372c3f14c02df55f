"""siteproof collect: Turn the raw files of lost sessions into samples."""

from __future__ import annotations

import os
from pathlib import Path

import click

from siteproof.answers.attempts import with_lacking
from siteproof.cli.shared import author, must_give, text_option
from siteproof.collect import stages as collecting
from siteproof.errors import UserError, UserErrors, harmless
from siteproof.files import folder, name_of, perflogs, stages
from siteproof.record import manifest, samples, sessions
from siteproof.record.samples import LOST
from siteproof.units import count

LATER = "run 'siteproof collect' again when its job has ended"
GIVE_UP = "to give one up: siteproof collect --discard STAGE --why TEXT"


@click.command()
@text_option(
    "--discard",
    "STAGE",
    "Give up what is set aside in STAGE (a stage directory, or a folder with several), or what"
    " is lost of a file of samples.",
)
@text_option("--why", "TEXT", "Why it is given up: kept in the record.")
@author("Who gives it up")
def collect(discard: str, why: str, by: str) -> None:
    """Turn the raw files of lost sessions into samples.

    Every run does this when it starts. Collecting twice changes nothing. A broken stage directory
    is set aside: every verdict names it, and none ends with exit code 0, until it is collected or
    discarded. So is a file of samples of which something cannot be read: what it may have answered
    is lost. Discarding deletes nothing.

    \b
    siteproof collect
    siteproof collect --discard stage/20261121T180000Z-1f2e --why "power cut; measured again"
    siteproof collect --discard perflogs/here/compute/20261121T180000Z-1f2e.Hpl.17.jsonl --why ...
    """
    if discard:
        must_give("collect", {"--why": why})
        _discard(discard, by or name_of(os.getuid()), why)
        return
    if why or by:
        raise UserError("collect", "--why and --by need --discard")
    total, errors = 0, {}
    for stage, found in collecting.collect_lost(stages(), perflogs()):
        if isinstance(found, UserError):
            errors[stage] = found
            continue
        total += found
        click.echo(harmless(f"{count(found, 'sample')} from {stage}"))
    discarded = sessions.discarded(perflogs())
    running = [
        stage
        for stage in manifest.pending(stages())
        if stage not in errors and sessions.key(stage, perflogs()) not in discarded
    ]
    for stage in running:
        click.echo(harmless(f"not collected yet: {stage}: its job or its session still runs"))
    collected = f"{count(total, 'sample')} collected"
    if errors:
        click.echo(f"{collected}; not collected: {len(errors)}; {GIVE_UP}")
        raise UserErrors(list(errors.values()))
    if running:
        collected += f"; still running: {len(running)}; {LATER}"
    click.echo(collected if total or running else "nothing left to collect")


def _discard(text: str, by: str, why: str) -> None:
    below = Path(os.path.normpath(folder() / text))
    found = dict.fromkeys(sessions.below(perflogs(), below), "") or _lost(below)
    if not found:
        known = sessions.below(perflogs(), folder())
        what = f"nothing is set aside at {text}, and nothing is lost there"
        raise UserError("--discard", what, map(str, known[:5]))
    for path, wrong in found.items():
        done = sessions.discard(perflogs(), path, by, why, wrong)
        click.echo(harmless(f"discarded: {done.stage}"))


def _lost(path: Path) -> dict[Path, str]:
    """A file of samples of which something is lost, with the reason."""
    inner = path.relative_to(perflogs()).parts if path.is_relative_to(perflogs()) else ()
    if not inner or path not in samples.files(perflogs(), inner[0]):
        return {}
    try:
        samples.must_lie_at(path, samples.read_header(path))
        found = samples.read(path, with_lost=True)
    except UserError as error:
        return {path: error.message}
    metrics = {sample.metric for sample in found if sample.status in ("ok", LOST)}
    of_metrics = (with_lacking(found, metric) for metric in metrics)
    lost = [one.why for of_metric in of_metrics for one in of_metric if one.status == LOST]
    return {path: lost[0]} if lost else {}
