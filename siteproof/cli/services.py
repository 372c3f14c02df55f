"""siteproof services: List the services, and remove what killed tests have left there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from siteproof import files, sites, units
from siteproof.cli.shared import (
    applies,
    print_answer,
    print_text,
    print_unapplied,
    refuse_unknown,
    which_system,
)
from siteproof.errors import ExitCode, UserError
from siteproof.record import manifest, samples
from siteproof.services import runner, steps
from siteproof.sites import Service, Site
from siteproof.sites.machine import refuse_stranger
from siteproof.slurm import client
from siteproof.units import count

OLD = (
    14 * 86_400
)  # seconds: a session that this folder does not know may still run, of another user
_NO_TEST = "00000000T000000Z-0000000"  # in the mark of a job that creates nothing


@click.group()
def services() -> None:
    """List the services of a system, and remove what killed tests have left there.

    'reframe -c checks/ -n Service -r' uses each service of `services` in system.yaml as its users
    do. What a test creates there carries the name of its session, and is removed at its end.

    \b
    siteproof services list
    siteproof services clean
    """


@services.command("list")
@which_system
def list_(system: str) -> None:
    """Show each service: its kind and address, from where it is used, and what a test costs."""
    site = sites.load(system or sites.recognise())
    for name, service in _chosen(site, ()).items():
        print_text(f"{name}: {service.kind} {service.address}")
        print_text(f"  {', '.join(_details(service))}")
    number = count(len(site.system.services), "service")
    print_answer(f"{number} of {site.name}", "reframe -c checks/ -n Service -r")


def _details(service: Service) -> list[str]:
    where = f"in a job on {service.partition}" if service.partition else "from this machine"
    details = [where, f"each step at most {service.timeout}"]
    if service.transfers:
        details.append(f"writes {units.size(service.bytes_written)}")
    if service.price_of_test:
        details.append(f"costs {service.price_of_test}")
    refusal = service.refusal or runner.lacking(service.kind)
    return [*details, *([f"not tested: {refusal}"] if refusal else [])]


@services.command()
@click.argument("names", metavar="[SERVICE]...", nargs=-1)
@which_system
@applies("Remove it")
@click.pass_context
def clean(context: click.Context, names: tuple[str, ...], system: str, apply: bool) -> None:
    """Remove what tests that were killed have left at services; all services, if none is named.

    What is there is read from each service. Removed, with --apply, is what carries the name of a
    session that has ended. What tests that still run have created stays, and what a session of
    another user has created in the last 14 days.

    Exit code: 0 nothing is left; 1 something is left, or a service did not answer; 2 wrong usage.

    \b
    siteproof services clean
    siteproof services clean sftp s3 --apply
    """
    site = sites.load(system or sites.recognise())
    refuse_stranger(site.name, site.system.recognise)
    ended = _ended(_running())
    chosen = _chosen(site, names)
    lacking = runner.lacking(*(one.kind for one in chosen.values()))
    able = {name: one for name, one in chosen.items() if not runner.lacking(one.kind)}
    results = [_clean(site, name, one, ended, apply) for name, one in able.items()]
    bad = sum(not good for good in results)
    if able:
        answer = f"{len(results) - bad} of {count(len(results), 'service')} clean"
        if bad and not apply:
            print_unapplied(context, answer)
        else:
            print_answer(answer)
    if lacking:
        raise UserError("services clean", lacking)
    raise SystemExit(ExitCode.FAIL if bad else ExitCode.PASS)


def _chosen(site: Site, names: Sequence[str]) -> dict[str, Service]:
    """The named services, or all. Raises UserError."""
    every = site.system.services
    if not every:
        hint = "Add 'services'; 'siteproof sites --keys' explains them"
        raise UserError(site.folder / "system.yaml", "the site has no services", hint=hint)
    refuse_unknown("services", "service", names, every)
    return {name: one for name, one in every.items() if not names or name in names}


def _clean(
    site: Site, name: str, service: Service, ended: Callable[[str], bool], apply: bool
) -> bool:
    """Clean a service, or only look; print what became of each thing, and whether none is left."""
    job = runner.job_of(site.name, name, service, steps.mark(_NO_TEST, name))
    things: dict[str, list[str]] = {"removed": [], "kept": [], "left": []}
    why = ""
    try:
        for record in runner.watched(job, runner.clean_all(ended, apply=apply)):
            if "thing" in record:
                things[record["state"]].append(record["thing"])
            elif record.get("status", "ok") != "ok":
                why = f"{record['why']} ({record['status']})"
    finally:
        shutil.rmtree(job.scratch, ignore_errors=True)
    for state, found in things.items():
        print_text(*found, title=f"{name}: {state}  ")
    if why:
        print_text(f"{name}: {why}")
    elif not any(things.values()):
        print_text(f"{name}: nothing is left")
    return not why and not things["left"]


def _running() -> set[str]:
    """The sessions whose tests are not over, as far as this folder shows."""
    found = set()
    for stage in manifest.pending(files.stages()):
        with suppress(UserError):  # a broken one is named by 'siteproof collect'
            job = manifest.load(stage, files.stages())
            in_queue = job.scheduler == "slurm" and client.queued(job.jobs)
            if in_queue or job.watched(stage) or manifest.still_runs(stage, job):
                found.add(job.session)
    return found


def _ended(running: set[str]) -> Callable[[str], bool]:
    """Whether a session, by its name, is over."""
    here, now = files.stages(), time.time()

    def ended(name: str) -> bool:
        if name in running:
            return False
        if (here / name).is_dir():
            return name not in _running()  # it may have begun meanwhile
        began = samples.began(name)
        return began is not None and now - began > OLD

    return ended
