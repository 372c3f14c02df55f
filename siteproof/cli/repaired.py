"""siteproof repaired: Record that nodes were repaired: older failures do not make them FLAPPING."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from siteproof import files, nodesets, sites
from siteproof.cli.shared import author, must_give, print_answer, site_of, text_option, which_system
from siteproof.errors import UserError
from siteproof.record import evidence_records
from siteproof.record.evidence_records import Repair
from siteproof.wording.verdicts import own


@click.command()
@click.argument("nodes")
@which_system
@author("Who has repaired them")
@click.option("--why", required=True, metavar="TEXT", help="What was repaired.")
@text_option("--ticket", "TICKET", "Where more is written about it.")
def repaired(nodes: str, system: str, by: str, why: str, ticket: str) -> None:
    """Record that NODES were repaired.

    Failures before the repair do not make a node FLAPPING, and what is wrong with it now is so
    since the repair at most. It clears no failure: only a measurement does. The record is kept
    with the samples and never changed.

    \b
    siteproof repaired node[003,017] --by "J. Doe" --why "new DIMM" --ticket HW-17
    """
    site = site_of(system)
    named = _known(site, nodes)
    texts = evidence_records.texts({"--by": by or files.user(), "--why": why, "--ticket": ticket})
    must_give("repaired", {name: texts[name] for name in ("--by", "--why")})
    record = Repair(
        *(named, *texts.values()), recorded=datetime.now(UTC).isoformat(), who=files.user()
    )
    evidence_records.write(files.perflogs(), site.system.system, record)
    one = ["why", named] if site.role_of(named) else ["nodes"]
    print_answer(f"recorded: {named} repaired by {record.by}", own(site.system.system, *one))


def _known(site: sites.Site, text: str) -> str:
    """The nodes, all of which the site has. Raises UserError."""
    try:
        found = nodesets.parse(text)
    except ValueError as error:
        raise UserError("siteproof repaired", str(error)) from None
    unknown = nodesets.of(node for node in found if site.role_of(node) is None)
    if unknown or not found:
        allowed = [str(site.system.inventory)]
        raise UserError("siteproof repaired", f"no node of the site: '{unknown or text}'", allowed)
    return str(found)
