"""The files of a new site: what Slurm, a node and the modules list, and gaps for the rest.

A new site's folder: written whole under a hidden name, checked, and then renamed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from siteproof.errors import UserError, UserErrors
from siteproof.porting.grouping import Grouped, OneNode
from siteproof.sites import Site, folder
from siteproof.sites.catalogue import Feature
from siteproof.sites.key_types import NAME, NAME_RULE
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site import examine
from siteproof.slurm.configured import ConfiguredNode

Keys = Mapping[str, Any]  # of an entry in system.yaml
FILES = ("system.yaml", "criteria.yaml", "baselines.yaml")
MAX_MODULES = 50_000
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]{0,199}")
_MIG = re.compile(r"[0-9]g\.[0-9]+gb")
# CUDA-12.1 or gompic in the name of a module, as EasyBuild and Spack give them.
_FOR_GPUS = re.compile(r"cuda|rocm|(?<![a-z])(?:hip|gpu|gompic|goolfc)(?![a-z])", re.IGNORECASE)
_MARK = re.compile(r"(?:\s*(?:\([^()\s]*\)|<[^<>\s]*>))+$")  # (D), (latest:default), <aL>


@dataclass(frozen=True)
class Offer:
    """A module and the features that it brings. for_gpus: to nodes with GPUs only."""

    module: str
    features: tuple[str, ...]
    for_gpus: bool = False

    @property
    def environment(self) -> str:
        """The name of the environment that loads it."""
        return f"module-{self.features[0]}"


def parse_modules(text: str) -> list[str]:
    """The modules that `module -t avail` prints: no folders, no headers, marks such as (D) cut."""
    lines = [_MARK.sub("", line.strip()) for line in text.splitlines()[:MAX_MODULES]]
    names = (name for name in lines if not name.endswith((":", "/")))
    return list(dict.fromkeys(filter(_MODULE.fullmatch, names)))


def offers(
    modules: list[str], known: Mapping[str, Feature], with_gpus: Collection[bool]
) -> list[Offer]:
    """Of each feature the newest module that has its name; one module may bring several.

    with_gpus: whether nodes have GPUs, of each role. A build for GPUs is taken where all have
    them, or where there is no other and some have.
    """
    by_module: dict[str, list[str]] = {}
    for feature, about in known.items():
        named = [module for module in modules if _is_of(module, about.modules)]
        plain = [module for module in named if not _FOR_GPUS.search(module)]
        candidates = named if False not in with_gpus else plain
        if not candidates and True in with_gpus:
            candidates = named
        if candidates:
            by_module.setdefault(max(candidates, key=_version), []).append(feature)
    return [
        Offer(module, tuple(features), bool(_FOR_GPUS.search(module)))
        for module, features in by_module.items()
    ]


def _is_of(module: str, names: list[str]) -> bool:
    """Whether a module is one of these names, whatever its version: `apps/GROMACS/2024.1`."""
    return not set(names).isdisjoint(module.lower().split("/")[-2:])


def _version(module: str) -> list[tuple[int, object]]:
    """A version that compares by its numbers: 2024.10 is newer than 2024.9."""
    terms = re.findall(r"[0-9]+|[A-Za-z]+", module.partition("/")[1] and module.rpartition("/")[2])
    return [(1, int(term)) if term.isdigit() else (0, term) for term in terms]


@dataclass(frozen=True)
class Sections:
    """What of system.yaml a centre's own settings give: lines, or keys by the name of an entry.

    hardware: of a kind of node. nodes: roles that Slurm does not list.
    """

    head: Sequence[str] = ()
    hardware: Mapping[str, Keys] = field(default_factory=dict)
    nodes: Sequence[str] = ()
    partitions: Mapping[str, Keys] = field(default_factory=dict)
    environments: Mapping[str, Keys] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """What a new site is made from.

    described: by the name of the hardware. day: of the query, 2026-11-23. slurm: where nodes and
    partitions come from, in words. features: those that checks know. modules_system: what loads the
    modules of the offers, by ReFrame's name. command: which one writes it. given: by a centre's
    settings, in place of what would be made of Slurm's partitions.
    """

    name: str
    cluster: str
    grouped: Grouped
    described: Mapping[str, OneNode]
    offers: Sequence[Offer]
    features: Mapping[str, Feature]
    slurm: str
    day: str
    modules_system: str = "nomod"
    extra: Mapping[str, str] = field(default_factory=dict)
    command: str = "sites new"
    given: Sections | None = None


@dataclass(frozen=True)
class _Hardware:
    """A kind of node as Slurm has it, and one that was looked at."""

    name: str
    kind: ConfiguredNode
    node: OneNode

    @property
    def stated(self) -> tuple[int, ...]:
        """Sockets, cores of each and threads of a core in Slurm."""
        return self.kind.sockets, self.kind.cores_per_socket, self.kind.threads_per_core

    @property
    def reported(self) -> tuple[int, ...]:
        """The same as the node reports them; empty: it does not report all of them."""
        sockets, cores = self.node.number("cpu.sockets"), self.node.number("cpu.cores")
        found = sockets, cores // (sockets or 1), self.node.number("cpu.threads_per_core")
        return found if all(found) else ()

    @property
    def topology(self) -> tuple[int, ...]:
        """Those of the node, else of Slurm; empty: slurm.conf has CPUs alone, shown as sockets."""
        only_processors = self.kind.sockets > 1 and self.stated[1:] == (1, 1)
        return self.reported or (() if only_processors else self.stated)

    @property
    def threads(self) -> int:
        """Hardware threads of a node; 0 if CPUs agree neither with them nor with the cores."""
        cores = self.kind.sockets * self.kind.cores_per_socket
        found = cores * self.kind.threads_per_core
        return found if self.kind.processors in (0, cores, found) else 0


def files(known: Known) -> dict[str, str]:
    """The text of each file, by its name."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # no other command needs it

    roles = known.grouped.roles
    hardware: dict[str, _Hardware] = {}
    for one in roles:
        node = known.described.get(one.hardware) or OneNode("")
        hardware.setdefault(one.hardware, _Hardware(one.hardware, one.kind, node))
    words = {
        "known": known,
        "given": known.given or Sections(),
        "roles": roles,
        "hardware": hardware.values(),
        "count": sum(len(one.nodes) for one in roles),
        "file_systems": _file_systems(known),
        "offered": _offered(known),
    }
    texts = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    texts.filters |= {"quoted": in_quotes, "gap": marked, "in_line": in_line}
    texts.globals |= {"gpus": gpus, "has_gpus": has_gpus}
    return {name: texts.get_template(f"{name}.j2").render(words) for name in FILES}


def marked(text: str) -> str:
    """A gap in YAML, with what to fill in."""
    return f"!gap {in_quotes(text)}"


def in_quotes(text: str) -> str:
    """A text in YAML, in quotes."""
    return "'" + text.replace("'", "''") + "'"


def in_line(value: object) -> str:
    """Data in one line of YAML, of which JSON is a part."""
    return json.dumps(value, ensure_ascii=False)


def has_gpus(kind: ConfiguredNode) -> bool:
    """Whether GRES has GPUs, or parts of one."""
    return "gpu" in (name.partition(":")[0] for name, _ in kind.gres)


def gpus(kind: ConfiguredNode) -> int:
    """GPUs of a node, as GRES counts them; 0 if it has instances of MIG, parts of one."""
    counts = {name: count for name, count in kind.gres if name.partition(":")[0] == "gpu"}
    of_parts = any(map(_MIG.search, counts))
    return 0 if of_parts else sum(int(count) for count in counts.values() if count.isdigit())


def _file_systems(known: Known) -> str:
    """What to fill in, with what is mounted on the nodes that were looked at."""
    text = "file systems that jobs use: NAME: {path: a folder in which you may write, "
    text += "kind: as mount names it, shared: true, description: what it is for}"
    looked = known.described.values()
    seen = {pair: node.name for node in looked for pair in node.shared_file_systems}
    listed = ", ".join(f"{path} ({kind}, on {node})" for (path, kind), node in seen.items())
    return f"{text}. Mounted: {listed}" if seen else text


def _offered(known: Known) -> str:
    """The features whose programs are on PATH of all nodes that were looked at; else a gap."""
    looked = [node for node in known.described.values() if node.programs is not None]
    if not looked:
        return marked("features whose programs are on PATH of the nodes; [] for none")
    programs = frozenset.intersection(*(node.programs or frozenset() for node in looked))
    found = [name for name, one in known.features.items() if programs & set(one.programs)]
    return f"[{', '.join(found)}]  # on PATH of {', '.join(node.name for node in looked)}"


# ReFrame's own system; the commands after `siteproof sites`; what YAML reads as no value.
RESERVED = ("generic", "new", "show", "null")


def refuse(name: str) -> Path:
    """Where the site will be. Raises UserError for a name that is none, or is taken."""
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise UserError("sites new", f"'{name[:40]}' is not a valid name of a system", NAME_RULE)
    target = folder() / name
    if target.exists() or target.is_symlink():
        raise UserError(target, "exists already", hint="Choose another name, or move it away")
    if not folder().is_dir():
        hint = "Make it, or set SITEPROOF_SITES to the folder of sites"
        raise UserError(folder(), "is not a folder", hint=hint)
    return target


def write(name: str, texts: Mapping[str, str]) -> tuple[Path, list[Document]]:
    """Write all files or none; gives the folder and the files with their gaps and warnings.

    Raises UserErrors if lint finds a mistake in them, UserError if the folder exists, OSError.
    """
    target = refuse(name)
    with _checked(name, texts) as made:
        refuse(name)
        made.rename(target)
    return target, examine(name)[1]


def add(site: Site, name: str, text: str) -> Path:
    """Add a file to a site, whole or not at all; it must be one that lint has no mistake in.

    Raises UserErrors with the mistakes, UserError if there is such a file, OSError.
    """
    target = site.folder / name
    try:
        with _checked(site.name, {name: text}, site.folder) as made:
            os.link(made / name, target)  # fails where there is one; a rename would replace it
    except FileExistsError:
        raise UserError(target, "exists already", hint="Move it away first") from None
    return target


@contextmanager
def _checked(name: str, texts: Mapping[str, str], site: Path | None = None) -> Iterator[Path]:
    """A site's folder below a hidden one: a copy of this site, if there is one, and these files.

    Raises UserErrors with what lint finds, UserError that names the parent, which the user knows.
    """
    parent = site.parent if site else folder()
    try:
        hidden = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=parent))
    except OSError as error:
        what = f"no folder can be made in it: {error.strerror}"
        hint = "Set SITEPROOF_SITES to a folder in which you may write"
        raise UserError(parent, what, hint=hint) from None
    try:
        made = hidden / name
        if site:
            shutil.copytree(site, made)
        else:
            made.mkdir()
        for file, text in texts.items():
            (made / file).write_text(text, encoding="utf-8")
        _, documents = examine(name, made)
        if mistakes := [one for document in documents for one in document.sorted_mistakes()]:
            raise UserErrors([_not_written(one, made) for one in mistakes])
        yield made
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _not_written(mistake: UserError, hidden: Path) -> UserError:
    """A mistake in a file that is not kept: its name and line without the folder."""
    where = mistake.where.removeprefix(f"{hidden}{os.sep}")
    hint = "Correct what was given"
    return UserError(f"not written: {where}", mistake.what, mistake.allowed, mistake.hint or hint)
