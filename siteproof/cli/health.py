"""siteproof health: Write the program that looks after the health of the nodes of a role."""

from __future__ import annotations

import click

from siteproof.cli.shared import text_option, which_system
from siteproof.errors import UserError
from siteproof.sites import health_program, load, recognise


@click.command()
@which_system
@text_option("--role", "ROLE", "The role of the nodes; needed where the system has several.")
def health(system: str, role: str) -> None:
    """Write the program that looks after the health of the nodes of a role.

    One file for sh on standard output: what the site states of the role, and how to look at it.
    Slurm runs it on the nodes as HealthCheckProgram, Prolog or Epilog; it says in one line what is
    wrong, and its exit code is then 1.

    \b
    siteproof health --role compute >health
    """
    site = load(system or recognise())
    roles = list(site.system.nodes)
    if not role and len(roles) > 1:
        raise UserError("--role", "missing: the system has several roles", roles)
    click.echo(health_program.text(site, role or roles[0]), nl=False)
