"""siteproof build: Build the software of a system with Spack, for its checks."""

from __future__ import annotations

import re
import signal
import time
from functools import partial
from pathlib import Path

import click

from siteproof import files, sites
from siteproof.cli.shared import by_environment, flag, refuse_unknown, text_option, which_system
from siteproof.errors import ExitCode, UserError
from siteproof.sites import Site, machine
from siteproof.spack import build as building
from siteproof.spack import env_files, registered
from siteproof.spack.build import Order
from siteproof.spack.registered import Inputs, Sources


@click.command()
@click.argument("environments", metavar="[ENV]...", nargs=-1, shell_complete=by_environment)
@which_system
@flag("--update", "Make new locks instead of keeping the existing ones.")
@flag("--list listed", "List the state of each environment, and build nothing.")
@click.option(
    "--jobs",
    default=0,
    metavar="N",
    type=click.IntRange(0, 4096),
    help="Parallel processes; without it, as Spack is configured.",
)
@flag("--other-spack", "Allow another release of Spack than the pinned one.")
@text_option(
    "--mirror from_mirror", "DIR", "Take sources, recipes and locks from this folder: no network."
)
@text_option("--make-mirror", "DIR", "Fill such a folder, where there is network; no build.")
@text_option("--cache", "URL", "Take built packages from here: a cache.")
@flag("--push", "Put what is built into the cache, too.")
@flag("--unsigned", "Packages of the cache need no signature.")
def build(
    environments: tuple[str, ...],
    system: str,
    update: bool,
    listed: bool,
    jobs: int,
    other_spack: bool,
    from_mirror: str,
    make_mirror: str,
    cache: str,
    push: bool,
    unsigned: bool,
) -> None:
    """Build the software that checks run with, by Spack, for this system.

    ENV is a folder of spack-envs/; without ENV, all that the environments of the system name with
    `spack`. It is built for the `target` of the nodes that run it. Call it again after an
    interruption: it continues. A finished build is checked. The lock is kept until --update.
    Exit code 1: an environment could not be built.

    \b
    siteproof build
    siteproof build io --system jetstream-iu
    siteproof build --make-mirror /media/disk, then elsewhere: siteproof build --mirror /media/disk
    siteproof build --cache file:///shared/cache --push --unsigned
    siteproof build --list
    """
    site = sites.load(system or sites.recognise())
    chosen = _chosen(site, environments)
    if listed:
        for inputs in chosen:
            label = registered.label(inputs.name, inputs.target)
            click.echo(f"{label}: {building.state(site.name, inputs)}")
        return
    sources = _sources(from_mirror, cache, push, unsigned)
    env_files.refuse([inputs.name for inputs in chosen], site.folder)
    _refuse_targets(site, [inputs.name for inputs in chosen])
    if not make_mirror:
        _refuse_absent(site)
        machine.refuse_stranger(site.name, site.system.recognise)
    files.must_exist()
    if bad := re.search(r"[\s$`{}'\"\\:]", str(registered.top())):
        what = f"the path contains {bad[0]!r}, so programs below it cannot be on PATH"
        raise UserError(registered.top(), what, hint="Set SITEPROOF_DATA to another folder")
    _end_as_by_ctrl_c(click.get_current_context())
    spack = building.find(other_spack)
    orders = [_order(site, inputs, update, jobs, sources, push) for inputs in chosen]
    if make_mirror:
        absent = env_files.absent(site.folder / env_files.SCOPE)
        raise SystemExit(_fill(orders, spack, Path(make_mirror).absolute(), absent))
    failed = [order.label for order in orders if not _one(order, spack)]
    if failed:
        click.echo(f"not built: {', '.join(failed)}; run 'siteproof build' again to continue")
    else:
        click.echo(f"built for {site.name}: {', '.join(order.label for order in orders)}")
    raise SystemExit(ExitCode.FAIL if failed else ExitCode.PASS)


def _end_as_by_ctrl_c(context: click.Context) -> None:
    """Whatever asks this command to end, Spack is ended first; what is ignored stays so."""
    for number in building.STOPS:
        before = signal.getsignal(number)
        if before is not signal.SIG_IGN:  # as by nohup
            signal.signal(number, signal.default_int_handler)
            context.call_on_close(partial(signal.signal, number, before))


def _sources(mirror: str, cache: str, push: bool, unsigned: bool) -> Sources:
    """Where packages come from. Raises UserError."""
    if (push or unsigned) and not cache:
        raise UserError("--push" if push else "--unsigned", "without a cache", "--cache URL")
    if cache and not re.fullmatch(r"(file|https?|s3|gs|oci)://\S+", cache):
        if not cache.startswith("/"):
            allowed = "a folder from /, or a URL: file://, https://, s3://, gs://, oci://"
            raise UserError("--cache", f"'{cache}' is not a cache", allowed)
        cache = Path(cache).as_uri()
    folder = Path(mirror).absolute() if mirror else None
    if folder and not (folder / registered.SOURCES).is_dir():
        hint = "'siteproof build --make-mirror DIR' makes one where there is network"
        raise UserError("--mirror", f"{folder} is not a mirror", hint=hint)
    tag = env_files.versions().packages.tag
    recipes = folder / registered.RECIPES if folder else None
    if recipes and recipes.exists() and not building.has_tag(recipes, tag):
        hint = "'siteproof build --make-mirror' adds them where there is network"
        raise UserError("--mirror", f"{folder} has no recipes of {tag}", hint=hint)
    return Sources(folder, cache, unsigned)


def _chosen(site: Site, environments: tuple[str, ...]) -> list[Inputs]:
    """The requested environments, or all of the system, for each target. Raises UserError."""
    own = {key: e.spack for key, e in site.system.environments.items() if e.spack}
    _refuse_unknown(site, environments, list(own.values()))
    scope = site.folder / env_files.SCOPE
    found = []
    for name in dict.fromkeys(environments or own.values()):
        by = [registered.target_of(site, key) for key, spack in own.items() if spack == name]
        found += [Inputs(name, scope, target) for target in dict.fromkeys(by or [""])]
    return found


def _refuse_unknown(site: Site, environments: tuple[str, ...], named: list[str]) -> None:
    """Refuse environments that do not exist, and warn of those that no check uses."""
    known = env_files.names()
    refuse_unknown("build", "environment", environments, known)
    if not environments and not named:
        what = "no environment has 'spack', so there is nothing to build"
        hint = "Add one to 'environments:', such as 'io: {description: IOR, spack: io}'"
        raise UserError(site.folder / "system.yaml", what, known, hint=hint)
    for name in environments:
        if name not in named:
            what = f"no environment of {site.name} has 'spack: {name}', so no check will use it"
            click.echo(f"siteproof: warning: {what}", err=True)


def _refuse_targets(site: Site, chosen: list[str]) -> None:
    """Refuse what would be built for the processor of this host. Raises UserError."""
    for key, environment in site.system.environments.items():
        if environment.spack in chosen:
            registered.refuse_target(site, key, machine.this().host)


def _refuse_absent(site: Site) -> None:
    """Refuse externals that are not here, before Spack is called. Raises UserError."""
    scope = site.folder / env_files.SCOPE
    if missing := env_files.absent(scope):
        what = f"not on this machine: {', '.join(missing)}"
        hint = "Remove these externals, or correct their prefix"
        raise UserError(scope / "packages.yaml", what, hint=hint)


def _order(
    site: Site, inputs: Inputs, update: bool, jobs: int, sources: Sources, push: bool
) -> Order:
    label = registered.label(inputs.name, inputs.target)

    def report(text: str) -> None:
        click.echo(f"{label}: {text}")

    return Order(site.name, inputs, update, jobs, report, sources, push)


def _fill(orders: list[Order], spack: building.Spack, folder: Path, absent: list[str]) -> ExitCode:
    """Fill a mirror with these environments. absent: externals that are not here."""
    if absent:
        click.echo(
            f"not on this machine: {', '.join(absent)}; so the mirror gets sources, and the system "
            "makes its own locks"
        )
    failed = []
    for order in orders:
        try:
            building.fill(order, spack, folder, absent=absent)
        except building.Failed as error:
            _report_failure(order, "not in the mirror", error)
            failed.append(order.label)
    if not failed:
        kept = building.keep_recipes(folder)
        if not kept:
            click.echo("the recipes are not in the mirror, as the site's repos.yaml names its own")
        click.echo(f"next, on the system: siteproof build --mirror {folder}")
    return ExitCode.FAIL if failed else ExitCode.PASS


def _report_failure(order: Order, what: str, error: building.Failed) -> None:
    order.report(f"{what}: {error}")
    for line in error.why:
        order.report(f"  {line}")


def _one(order: Order, spack: building.Spack) -> bool:
    """Build one environment, and report the result. True: it is built."""
    began, report = time.monotonic(), order.report
    try:
        found = building.build(order, spack)
    except building.Failed as error:
        _report_failure(order, "not built", error)
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
