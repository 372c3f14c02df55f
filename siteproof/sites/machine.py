"""Which site this machine is: from a few files and the host name.

Slurm is asked only where no slurm.conf that can be read names the cluster, as where nodes and login
hosts get it from the controller.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError
from siteproof.sites import site
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.system import Recognise
from siteproof.slurm import client

SLURM_CONF = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/run/slurm/conf/slurm.conf",  # where a node without a file of its own keeps the copy
)
MAX_BYTES, MAX_FILES = 16 * files.MIB, 200  # of slurm.conf and what it includes
_CLUSTER = re.compile(r'(?:^|\s)ClusterName\s*=\s*"?([^"\s#]+)', re.IGNORECASE)
_INCLUDE = re.compile(r"\s*include\s+(\S.*?)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Machine:
    """What sites can recognise this machine by. conf: its slurm.conf, if it has Slurm."""

    host: str
    conf: Path | None
    cluster: str | None

    def fits(self, rule: Recognise) -> bool:
        """Whether all that the rule names holds; a rule that names nothing fits no machine."""
        holds = []
        if rule.cluster is not None:
            holds.append(self.cluster is not None and rule.cluster.lower() == self.cluster.lower())
        if rule.hostname is not None:
            holds.append(re.fullmatch(rule.hostname, self.host) is not None)
        if rule.file is not None:
            holds.append(os.path.exists(rule.file))  # noqa: PTH110 - Path.exists raises on odd names
        return bool(holds) and all(holds)

    def __str__(self) -> str:
        if self.cluster:
            return f"host {self.host}, cluster {self.cluster}"
        if self.conf:
            return f"host {self.host}, no cluster named in {self.conf}"
        return f"host {self.host}, no Slurm"


def this() -> Machine:
    """The machine on which this process runs."""
    conf = slurm_conf()
    host = socket.gethostname().partition(".")[0]
    cluster = cluster_name(conf) if conf else None
    return Machine(host, conf, cluster or client.cluster_name() or None)


def recognise() -> str:
    """The name of the site of this machine.

    $SITEPROOF_SYSTEM decides if it is set. Raises UserError if no site or more than one fits.
    """
    if given := os.environ.get("SITEPROOF_SYSTEM"):
        return site.find(given, "$SITEPROOF_SYSTEM")
    rules, broken = _rules()
    machine = this()
    fits = [name for name, rule in rules.items() if machine.fits(rule)]
    if not fits:
        for error in broken:
            print(f"siteproof: warning: {error}", file=sys.stderr)
        has_no_slurm = machine.conf is None and machine.cluster is None
        fits = [name for name, rule in rules.items() if rule.fallback and has_no_slurm]
    where = f"this machine ({machine})"
    if len(fits) > 1:
        hint = "Name one with --system, or make 'recognise' fit one of them only"
        raise UserError(where, "recognised by several sites", fits, hint)
    if not fits:
        known = site.names()
        hint = "Name one with --system" if known else f"Add a site to {site.folder()}"
        raise UserError(where, "recognised by no site", known, hint)
    return fits[0]


def _rules() -> tuple[dict[str, Recognise], list[UserError]]:
    """The `recognise` of each site, and the mistakes in those that are wrong."""
    rules: dict[str, Recognise] = {}
    broken: list[UserError] = []
    for name in site.names():
        document = yamlfile.read(site.folder() / name / site.SYSTEM)
        rule = None
        if site.MEMBERS in (document.data or {}):
            continue
        if document.data is not None:
            document.mistakes = []  # only what is wrong with `recognise` matters here
            raw = document.data.get("recognise", {})
            rule = shapes.validate(document, ("recognise",), Recognise, raw)
            if "recognise" not in document.data:
                document.add((), "missing key 'recognise'")
        if rule is None or document.mistakes:
            broken += document.sorted_mistakes()
        else:
            rules[name] = rule
    return rules, broken


def refuse_stranger(system: str, rule: Recognise) -> None:
    """Nothing may be measured in the name of a system to which this machine does not belong.

    Raises UserError. A fallback is any machine, so each may be it.
    """
    machine = this()
    if not rule.fallback and not machine.fits(rule):
        keys = rule.model_dump(exclude_none=True, exclude={"fallback"})
        expected = [f"{key} {value}" for key, value in keys.items()]
        raise UserError(system, f"this machine ({machine}) is not this system", expected)


def slurm_conf() -> Path | None:
    """The slurm.conf of this machine, which may be unreadable; None: no Slurm here."""
    if given := os.environ.get("SLURM_CONF"):
        return Path(given)
    return next((Path(p) for p in SLURM_CONF if Path(p).exists()), None)


def cluster_name(conf: Path) -> str | None:
    """ClusterName in slurm.conf, its include lines followed; the last one counts."""
    found = map(_CLUSTER.search, _lines(conf, conf.parent, set()))
    return next((match[1] for match in reversed(list(found)) if match), None)


def _lines(conf: Path, base: Path, seen: set[Path]) -> Iterator[str]:
    if conf in seen or len(seen) >= MAX_FILES:
        return
    seen.add(conf)
    try:
        text = files.read_named(conf, MAX_BYTES).decode("utf-8", "replace")
    except (OSError, UserError):
        return
    for line in text.replace("\\\n", " ").splitlines():
        line = line.partition("#")[0]
        if include := _INCLUDE.fullmatch(line):
            yield from _lines(base / include[1], base, seen)
        else:
            yield line
