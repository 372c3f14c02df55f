"""siteproof probe: Look at the services that are due, and record whether they answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from siteproof import files, probes, sites
from siteproof.cli.shared import by_service, print_text, refuse_unknown, which_system
from siteproof.errors import ExitCode, UserError
from siteproof.record import availability_log
from siteproof.record.availability_log import ProbeResult
from siteproof.sites import Probe, Site
from siteproof.sites.machine import refuse_stranger
from siteproof.units import count


@click.command()
@click.argument("services", metavar="[SERVICE]...", nargs=-1, shell_complete=by_service)
@which_system
def probe(services: tuple[str, ...], system: str) -> None:
    """Look at the services of `probes` in system.yaml that are due, and record what they did.

    Named services are probed even if they are not due. There is no daemon: cron or scrontab runs
    it each minute. A round that was missed is a gap, and no up time. 'siteproof availability'
    computes shares from what was recorded.

    Exit code: 0 all answered, or nothing was due; 1 some did not answer; 2 wrong usage or input.

    \b
    siteproof probe
    siteproof probe login portal
    """
    site = sites.load(system or sites.recognise())
    refuse_stranger(site.name, site.system.recognise)
    files.must_exist()
    number = bad = 0
    chosen = _chosen(site, services)
    lacking = probes.lacking(site, chosen.values())
    able = {name: one for name, one in chosen.items() if not probes.lacking(site, [one])}
    for result in probes.run_round(able, site):
        # As it comes, so that lines are in the order of time.
        availability_log.append(files.perflogs(), site.name, result)
        print_text(f"{result.probe}: {_answer(result)}")
        number += 1
        bad += not result.ok
    if number:
        click.echo(f"{number - bad} of {count(number, 'probe')} answered")
    elif not lacking:
        click.echo("nothing is due")
    if lacking:  # no answer of the service, so nothing is recorded of it
        raise UserError("probe", lacking)
    raise SystemExit(ExitCode.FAIL if bad else ExitCode.PASS)


def _answer(result: ProbeResult) -> str:
    if result.ok:
        return f"up, {result.took:.3f} s"
    return f"DOWN: {result.why} ({result.kind} {result.target})"


def _chosen(site: Site, services: Sequence[str]) -> dict[str, Probe]:
    """The probes of the named services, or those that are due. Raises UserError."""
    every = site.system.probes
    if not every:
        hint = "Add 'probes'; 'siteproof sites --keys' explains them"
        raise UserError(site.folder / "system.yaml", "the site has no probes", hint=hint)
    known = sorted({one.service or name for name, one in every.items()})
    refuse_unknown("probe", "service", services, known)
    if services:
        return {name: one for name, one in every.items() if (one.service or name) in services}
    now = datetime.now(UTC)
    log = availability_log.recent(files.perflogs(), site.name, now)
    last = availability_log.last_times(log.results)
    return probes.due(every, last, int(now.timestamp()))
