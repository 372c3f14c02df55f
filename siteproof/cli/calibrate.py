"""siteproof calibrate: Propose baselines from the history, as a change to review."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import click

from siteproof import files, nodesets
from siteproof.cli import shared
from siteproof.cli.shared import print_answer, print_unapplied
from siteproof.cli.trend import opened
from siteproof.errors import ExitCode, UserError
from siteproof.record import campaign
from siteproof.sites.schema.yamlfile import shown
from siteproof.trend import baselines
from siteproof.trend.propose import Proposal, Without, propose
from siteproof.trend.survey import examine
from siteproof.wording.findings import sentence, sentences
from siteproof.wording.verdicts import own

MAX_LINES = 40  # of each kind


@click.command()
@shared.which_system
@shared.metric_option("Only this metric; without it, headline metrics and those with a baseline.")
@shared.text_option("--since", "TIME", "Only values since TIME: 30d, 12w, 2026-11-21 (UTC).")
@shared.applies("Change baselines.yaml")
@click.pass_context
def calibrate(context: click.Context, system: str, metric: str, since: str, apply: bool) -> None:
    """Propose baselines from the history: the median, with 4.5 times the typical scatter.

    Only values that meet the contract count, since the last acknowledged change; a series that is
    not stable gets no baseline. The change is printed as a diff; --apply makes it. Review it with
    'git diff'. Exit code 3: no metric could get a baseline.

    \b
    siteproof calibrate --since 12w
    siteproof calibrate --metric Stream.triad --apply
    """
    start = campaign.since(since, datetime.now(UTC)) if since else None
    with opened(system) as (site, h):
        if metric and metric not in site.catalogue:
            hint = "checks/*/catalogue.yaml lists the metrics"
            raise UserError("--metric", f"unknown metric '{metric}'", hint=hint)
        examined = examine(site, h, metric)
        proposals, without = propose(site, h, examined, metric=metric, since=start)
    made = baselines.changes(site, proposals)
    path, old = baselines.text_of(site)
    new = baselines.applied(site, path, old, made) if made else old
    click.echo(baselines.diff(path, old, new), nl=False)
    _print_left_out(proposals, without)
    if apply and made:
        files.write(path, new.encode(), below=path.parent)
    added = sum(change.new for change in made)
    answer = (
        f"{shown(path)}: {added} new, {len(made) - added} changed, "
        f"{len(proposals) - len(made)} unchanged, {len(without)} without a baseline"
    )
    if not (proposals or without):
        answer += "; the metric was not measured in maintenance or acceptance mode"
    if made and not apply:
        print_unapplied(context, answer, err=True)
    else:
        written = "; written, see 'git diff'" if made else ""
        print_answer(f"{answer}{written}", own(site.name, "verdict"), err=True)
    raise SystemExit(ExitCode.PASS if proposals else ExitCode.INCOMPLETE)


def _print_left_out(proposals: Sequence[Proposal], without: Sequence[Without]) -> None:
    """What does not count, and why."""
    nodes = [f"{one.group.name}: {sentence(why)}" for one in proposals for why in one.left_out]
    short = [
        f"{one.group.name}: {nodesets.of(one.short)} would miss this baseline now"
        for one in proposals
        if one.short
    ]
    series = [f"{name}: {sentences(whys)}" for name, whys in without]
    warn = partial(shared.print_text, err=True)
    shared.print_some("left out of ", nodes, MAX_LINES, "--metric", show=warn)
    shared.print_some("", short, MAX_LINES, "--metric", show=warn)
    shared.print_some("no baseline for ", series, MAX_LINES, "--metric", show=warn)
