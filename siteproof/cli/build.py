"""`siteproof build`: the software of a system, by Spack, offered to its checks."""

from __future__ import annotations

import re
import time

import click

from siteproof import files, sites
from siteproof.cli.shared import by_environment, which_system
from siteproof.errors import ExitCode, UserError
from siteproof.schema import shapes
from siteproof.sites import Site, machine
from siteproof.spack import build as building
from siteproof.spack import command, env_files, lint_envs, places


@click.command()
@click.argument("environments", metavar="[ENV]...", nargs=-1, shell_complete=by_environment)
@which_system
@click.option("--update", is_flag=True, help="Make new locks instead of keeping the existing ones.")
@click.option("--show", is_flag=True, help="Show the state of each environment, and build nothing.")
@click.option(
    "--jobs",
    default=0,
    metavar="N",
    type=click.IntRange(0, 4096),
    help="Parallel processes; without it, as Spack is configured.",
)
@click.option(
    "--other-spack", is_flag=True, help="Allow another release of Spack than the pinned one."
)
def build(
    environments: tuple[str, ...],
    system: str,
    update: bool,
    show: bool,
    jobs: int,
    other_spack: bool,
) -> None:
    """Build the software that checks run with, by Spack, for this system.

    ENV is a folder of spack-envs/; without ENV, all that the environments of the system name with
    `spack`. Call it again after an interruption: it continues. A finished build is checked. The
    lock is kept until --update. Exit code 1: an environment could not be built.

    \b
    siteproof build
    siteproof build io --system jetstream-iu
    siteproof build --show
    """
    site = sites.load(system or sites.recognise())
    chosen = _chosen(site, environments)
    scope = site.folder / lint_envs.SCOPE
    if show:
        for name in chosen:
            click.echo(f"{name}: {building.state(site.name, name, scope)}")
        return
    _refuse_mistakes(site, chosen)
    machine.refuse_stranger(site.name, site.system.recognise)
    files.must_exist()
    if bad := re.search(r"[\s$`{}'\"\\:]", str(places.top())):
        raise UserError(
            places.top(),
            f"the path contains {bad[0]!r}, so programs below it cannot be on PATH",
            hint="Set SITEPROOF_DATA to another folder",
        )
    spack = command.find(other_spack)
    failed = [name for name in chosen if not _one(site, name, update, jobs, spack)]
    if failed:
        click.echo(f"not built: {', '.join(failed)}; run 'siteproof build' again to continue")
    else:
        click.echo(f"built for {site.name}: {', '.join(chosen)}")
    raise SystemExit(ExitCode.FAIL if failed else ExitCode.PASS)


def _chosen(site: Site, environments: tuple[str, ...]) -> list[str]:
    """The requested environments, or all of the system. Raises UserError."""
    known = env_files.names()
    for name in environments:
        if name not in known:
            raise UserError("build", f"no environment '{name}'{shapes.hint(name, known)}", known)
    named = [e.spack for e in site.system.environments.values() if e.spack]
    if not environments and not named:
        raise UserError(
            site.folder / "system.yaml",
            "no environment has 'spack', so there is nothing to build",
            known,
            hint="Add one to 'environments:', such as 'io: {description: IOR, spack: io}'",
        )
    for name in environments:
        if name not in named:
            click.echo(
                f"siteproof: warning: no environment of {site.name} has 'spack: {name}', "
                "so no check will use it",
                err=True,
            )
    return list(dict.fromkeys(environments or named))


def _refuse_mistakes(site: Site, chosen: list[str]) -> None:
    """Every mistake in what Spack would read, at once. Raises UserErrors."""
    lint_envs.refuse(chosen, site.folder)
    if missing := lint_envs.absent(site.folder / lint_envs.SCOPE):
        raise UserError(
            site.folder / lint_envs.SCOPE / "packages.yaml",
            f"not on this machine: {', '.join(missing)}",
            hint="Remove these externals, or correct their prefix",
        )


def _one(site: Site, name: str, update: bool, jobs: int, spack: command.Spack) -> bool:
    """Build one environment, and report the result. True: it is built."""
    began = time.monotonic()

    def report(text: str) -> None:
        click.echo(f"{name}: {text}")

    order = building.Order(site.name, name, site.folder / lint_envs.SCOPE, update, jobs, report)
    try:
        found = building.build(order, spack)
    except command.Failed as error:
        report(f"not built: {error}")
        return False
    except KeyboardInterrupt:
        report("interrupted; what is installed stays, and run 'siteproof build' again to continue")
        raise SystemExit(130) from None
    pinned = env_files.versions()
    if (found.spack, found.packages) != (pinned.release, pinned.packages.tag):
        report(f"built with other releases: Spack {found.spack}, packages {found.packages}")
    report(
        f"built in {time.monotonic() - began:.0f} s: {', '.join(found.features)}; lock {found.lock}"
    )
    return True
