"""The running session: which site and software, where the data goes, and under which name.

Set once by reframe_settings.py, read by the checks. Nothing else in the package has such a state.
Environments that Spack has built offer what they bring.
"""

from __future__ import annotations

import functools
import os
import re
import socket
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import reframe

from siteproof import __version__, files, installed
from siteproof.errors import UserError
from siteproof.record import clocks
from siteproof.record.manifest import LONGEST_CAMPAIGN
from siteproof.sites import Site
from siteproof.slurm import client
from siteproof.spack import registered
from siteproof.spack.registered import Registered


def built(site: Site) -> dict[str, Registered]:
    """What is built here of the site's environments, by the name that the site gives them.

    Raises UserError if a registration is not whole.
    """
    found = {
        name: registered.read(site.name, environment.spack, registered.target_of(site, name))
        for name, environment in site.system.environments.items()
        if environment.spack
    }
    return {name: one for name, one in found.items() if one}


def offering(site: Site, found: Mapping[str, Registered]) -> Site:
    """The site, each of whose environments has what was built for it."""
    environments = dict(site.system.environments)
    for name, one in found.items():
        plain = environments[name]
        environments[name] = plain.model_copy(
            update={
                "features": list(dict.fromkeys([*plain.features, *one.features])),
                "variables": {**one.environment(), **plain.variables},
            }
        )
    return replace(site, system=site.system.model_copy(update={"environments": environments}))


def default_environment(site: Site, names: Iterable[str], programs: Iterable[str]) -> str:
    """The environment in which a check runs that needs none in particular.

    names: a partition's environments. It is the first that offers one of the check's programs; else
    the first that is not built by Spack.
    """
    environments, wanted = site.system.environments, set(programs)
    ordered = list(names)
    having = [name for name in ordered if wanted & set(environments[name].features)]
    there = [name for name in ordered if not environments[name].spack]
    return [*having, *there, *ordered][0]


def provenance_of(found: Mapping[str, Registered], name: str) -> dict[str, str]:
    """The provenance of samples measured with this software."""
    if name not in found:
        return {}
    return {"software_lock": f"{found[name].name}@{found[name].lock}", "spack": found[name].spack}


def remedy(programs: Iterable[str]) -> str:
    """What would bring one of these programs or features; empty if nothing is known."""
    wanted = sorted(set(programs))
    return " or ".join(filter(None, [_packages(wanted), registered.remedy(wanted)]))


def _packages(programs: Collection[str]) -> str:
    """The command that installs the distribution's packages with one of these commands, or empty.

    It names a set of setup/packages.list: the first row with a command is of a set that measures.
    """
    table = installed.SUITE / "setup/packages.list"
    if not table.is_file():  # a wheel has no setup/
        return ""
    for row in table.read_text().splitlines():
        words = row.split()
        # Debian's nwchem.openmpi is the nwchem that a check looks for.
        if row[:1].isalpha() and {words[2], words[2].partition(".")[0]} & set(programs):
            return f"'setup/packages {words[0]}'"
    return ""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def _campaign() -> str:
    """The campaign that the environment names. Raises UserError."""
    name = os.environ.get("SITEPROOF_CAMPAIGN", "")
    if name != name.strip() or not name.isprintable() or len(name) > LONGEST_CAMPAIGN:
        allowed = f"at most {LONGEST_CAMPAIGN} printable characters, without blanks at the ends"
        raise UserError("SITEPROOF_CAMPAIGN", f"{name!r} is not a name", allowed)
    return name


@dataclass(frozen=True)
class Session:
    """One run of ReFrame on one system.

    continued: of a session that --restore-session names. place: its number in the order of
    sessions, taken when it begins to measure; 0 until then.
    """

    site: Site
    folder: Path = field(default_factory=files.folder)
    campaign: str = field(default_factory=_campaign)
    name: str = field(default_factory=lambda: clocks.new_name(datetime.now(UTC)))
    software: dict[str, Registered] = field(default_factory=dict)  # built, by environment
    continued: bool = False
    place: int = 0
    requested: str = ""  # the partition that --system names
    # the jobs of what -S nodes selects, by the roles, its value, and whether states count
    selected: dict[tuple[tuple[str, ...], str, bool], list[list[str]]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)  # nodes that see the folder
    blind: dict[str, str] = field(default_factory=dict)  # nodes that cannot see the folder, why

    def measured_on(self, partition: str) -> list[str]:
        """The roles whose nodes this run measures on a partition, unless a link needs others."""
        where = self.site.partition(partition)
        if self.requested:
            return where.roles if partition == self.requested else []
        return where.measured


_current: Session | None = None


def start(site: Site, report: str | None = None, requested: str = "") -> Session:
    """Begin the session of this process; ReFrame may read its settings more than once.

    report: what --restore-session names; that session goes on, so that one verdict covers it.
    requested: the partition that --system names.
    """
    global _current
    if _current is None or _current.site.system.system != site.system.system:
        name = "" if report is None else _restored(report, files.stages())
        found = built(site)
        _current = Session(
            offering(site, found),
            software=found,
            name=name or clocks.new_name(datetime.now(UTC)),
            continued=bool(name),
            requested=requested,
        )
    return _current


def take_place() -> clocks.TooHigh | None:
    """Give the session its number, once. Returns a file whose number is too high, if any.

    Raises UserError.
    """
    global _current
    active = current()
    if active.place:
        return None
    perflogs, system = active.folder / "perflogs", active.site.system.system
    place, too_high = clocks.take(perflogs, system, active.name, continued=active.continued)
    _current = replace(active, place=place)
    return too_high


def _restored(report: str, stages: Path) -> str:
    """The session's name in ReFrame's report, the newest one if none is named; empty: unknown."""
    own = files.folder() / "output" / files.user()
    try:
        if report:
            path = Path(report.partition(",")[0])
            text = files.read_named(path, files.REPORT)
        else:
            path = max(own.glob("run-report-*.json"), key=lambda found: found.lstat().st_mtime)
            text = files.read(path, below=files.folder(), limit=files.REPORT)
        stage = Path(files.loads(path, text)["session_info"]["prefix_stage"])
    except (OSError, ValueError, LookupError, TypeError, UserError):
        return ""  # ReFrame reports what is wrong with the report
    return stage.name if stage.parent == stages and _NAME.fullmatch(stage.name) else ""


def current() -> Session:
    """The session of this process. Raises UserError where ReFrame runs without our settings."""
    if _current is None:
        raise UserError(
            "checks",
            "ReFrame runs without Siteproof's settings",
            hint="Run '. ./activate' first, then 'reframe -c checks/ -r'",
        )
    return _current


@functools.cache
def provenance(clone: Path) -> dict[str, str]:
    """Provenance that all samples of a session share."""
    return {
        "suite": f"wheel {__version__}" if installed.IS_WHEEL else revision(clone),
        "reframe": reframe.VERSION,
        "user": files.user(),
        "login": socket.gethostname(),
        **({"slurm": version} if (version := client.version()) else {}),  # if Slurm answers
    }


def revision(clone: Path) -> str:
    """The clone's commit, with + where files differ from it; unknown without git."""
    command = ["git", "-C", str(clone), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip()
