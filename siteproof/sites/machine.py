"""Which site this machine is: from a few files and the host name, without any client call."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError
from siteproof.schema import shapes, yamlfile
from siteproof.schema.yamlfile import Document
from siteproof.sites import site
from siteproof.sites.system import Recognise

SLURM_CONF = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/run/slurm/conf/slurm.conf",  # where a node without a file of its own keeps the copy
)
LARGEST, MOST_FILES = 16 * files.MIB, 200  # of slurm.conf and what it includes
_CLUSTER = re.compile(r'(?:^|\s)ClusterName\s*=\s*"?([^"\s#]+)', re.IGNORECASE)
_INCLUDE = re.compile(r"\s*include\s+(\S.*?)\s*", re.IGNORECASE)


def recognise() -> str:
    """The name of the site of this machine.

    $SITEPROOF_SYSTEM decides if it is set. Raises UserError if no site or more than one fits.
    """
    if given := os.environ.get("SITEPROOF_SYSTEM"):
        return site.find(given, "$SITEPROOF_SYSTEM")
    rules, broken = _rules()
    conf = slurm_conf()
    cluster = cluster_name(conf) if conf else None
    host = socket.gethostname().partition(".")[0]
    fits = [name for name, rule in rules.items() if _fits(rule, cluster, host)]
    if not fits:
        for document in broken:
            for error in document.sorted_mistakes():
                print(f"siteproof: warning: {error}", file=sys.stderr)
        fits = [name for name, rule in rules.items() if rule.fallback and conf is None]
    if len(fits) == 1:
        return fits[0]
    slurm = f"cluster {cluster}" if cluster else f"{conf} names no cluster" if conf else "no Slurm"
    where = f"this machine ({host}, {slurm})"
    if fits:
        what = f"recognised by {' and '.join(fits)}"
        raise UserError(
            where,
            what,
            fits,
            hint="Name one with --system, or make 'recognise' fit one of them only",
        )
    known = site.names()
    hint = "Name one with --system" if known else f"No site is described in {site.folder()}"
    raise UserError(where, "recognised by no site", known, hint)


def _rules() -> tuple[dict[str, Recognise], list[Document]]:
    """The `recognise` of each site, and the files in which it is wrong."""
    rules, broken = {}, []
    for name in site.names():
        document = yamlfile.read(site.folder() / name / site.FILES[0])
        rule = _rule(document) if document.data is not None else None
        if rule is None:
            broken.append(document)
        else:
            rules[name] = rule
    return rules, broken


def _rule(document: Document) -> Recognise | None:
    """What the file's `recognise` says; None, and only that mistake in the file, if it is wrong."""
    document.mistakes = []
    if "recognise" not in document.data:
        document.add((), "missing key 'recognise'")
        return None
    rule = shapes.validate(document, ("recognise",), Recognise, document.data["recognise"])
    return rule if rule and not document.mistakes and _compiles(rule, document) else None


def _compiles(rule: Recognise, document: Document) -> bool:
    try:
        re.compile(rule.hostname or "")
    except (re.error, OverflowError, RecursionError):
        document.add(("recognise", "hostname"), "bad regular expression")
        return False
    return True


def _fits(rule: Recognise, cluster: str | None, host: str) -> bool:
    """Whether all that the rule names holds; a rule that names nothing fits no machine."""
    holds = []
    if rule.cluster is not None:
        holds.append(cluster is not None and rule.cluster.lower() == cluster.lower())
    if rule.hostname is not None:
        holds.append(re.fullmatch(rule.hostname, host) is not None)
    if rule.file is not None:
        holds.append(os.path.exists(rule.file))  # noqa: PTH110 - Path.exists raises on odd names
    return bool(holds) and all(holds)


def refuse_stranger(system: str, rule: Recognise) -> None:
    """Nothing may be measured in the name of a system to which this machine does not belong.

    Raises UserError. A fallback is nobody in particular, so any machine may be it.
    """
    conf = slurm_conf()
    cluster = cluster_name(conf) if conf else None
    host = socket.gethostname().partition(".")[0]
    if not rule.fallback and not _fits(rule, cluster, host):
        said = f"host {host}, cluster {cluster}" if cluster else f"host {host}, no Slurm cluster"
        wanted = ", ".join(f"{k} {v}" for k, v in rule.model_dump(exclude_none=True).items() if v)
        raise UserError(system, f"this machine ({said}) is not this system", wanted)


def slurm_conf() -> Path | None:
    """The slurm.conf of this machine, which may be unreadable; None: no Slurm here."""
    if given := os.environ.get("SLURM_CONF"):
        return Path(given)
    return next((Path(p) for p in SLURM_CONF if Path(p).exists()), None)


def cluster_name(conf: Path) -> str | None:
    """ClusterName as slurm.conf says, its include lines followed; the last one counts."""
    name = None
    for line in _lines(conf, conf.parent, set()):
        if match := _CLUSTER.search(line):
            name = match[1]
    return name


def _lines(conf: Path, base: Path, seen: set[Path]) -> Iterator[str]:
    if conf in seen or len(seen) >= MOST_FILES:
        return
    seen.add(conf)
    try:
        text = files.read_named(conf, LARGEST).decode("utf-8", "replace")
    except (OSError, UserError):
        return
    for line in text.replace("\\\n", " ").splitlines():
        line = line.partition("#")[0]
        if include := _INCLUDE.fullmatch(line):
            yield from _lines(base / include[1], base, seen)
        else:
            yield line
