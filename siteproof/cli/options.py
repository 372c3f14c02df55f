"""Options that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from siteproof.sessions import Sessions

_OPTIONS = (
    click.option(
        "--system",
        default="",
        metavar="NAME",
        help="The system; without it, the one that this machine belongs to.",
    ),
    click.option(
        "--since",
        default="",
        metavar="TIME",
        help="All sessions since then: 12h, 7d, 2026-11-21T18:00 (UTC).",
    ),
    click.option("--campaign", default="", metavar="NAME", help="All sessions of a campaign."),
)


def which_samples(command: Callable[..., Any]) -> Callable[..., Any]:
    """--system, --since and --campaign: of which samples a verdict speaks."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def tell_left_out(sessions: Sessions | None) -> None:
    """Name the old files that could not be read, where a command goes on without them."""
    for line in sessions.left_out if sessions else ():
        click.echo(f"siteproof: left out: {line}", err=True)
