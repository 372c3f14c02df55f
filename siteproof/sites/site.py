"""One site: its files, read and checked together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ClusterShell.NodeSet import NodeSet

from siteproof import errors, files, installed, nodesets
from siteproof.errors import UserError, UserErrors
from siteproof.record import pair_units
from siteproof.sites import catalogue as metrics
from siteproof.sites import job_keys, plausible, site_tables
from siteproof.sites.catalogue import Metric
from siteproof.sites.lint import Around, lint_system, reference
from siteproof.sites.lint_promise import lint_owner, lint_promise, lint_waiver
from siteproof.sites.promise import Baseline, Criterion, Promise, Waiver
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site_tables import HostRow, Milestone, PlannedWindow, Published, facts
from siteproof.sites.stated import FactSection
from siteproof.sites.system import Hardware, HostParameters, Partition, Recognise, System, Whole

P = TypeVar("P", Criterion, Baseline)
SUPPLIED = installed.SUITE / "site-config"  # the sites that come with Siteproof
SYSTEM, CRITERIA, BASELINES = "system.yaml", "criteria.yaml", "baselines.yaml"
MEMBERS = "members"  # the key of system.yaml of a system that consists of others
MORE_CRITERIA = "criteria-*.yaml"  # optional: more criteria than fit into one file
WAIVERS = "waivers.yaml"  # optional
MAX_SHOWN = 20  # mistakes with which a command ends; lint lists all


@dataclass(frozen=True)
class Site:
    """A system, its criteria, baselines and waivers, and the catalogue of metrics.

    gaps: what is still to be filled in; a criterion with a gap is not among the criteria.
    members: the systems of which it consists, by name; those of one without partitions of its own.
    """

    name: str
    folder: Path
    system: System
    criteria: dict[str, Criterion]
    baselines: dict[str, Baseline]
    catalogue: dict[str, Metric]
    waivers: dict[str, Waiver] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, FactSection]] = field(default_factory=dict)
    milestones: Sequence[Milestone] = ()
    windows: Sequence[PlannedWindow] = ()
    gaps: Sequence[UserError] = ()
    members: Mapping[str, Site] = field(default_factory=dict)
    _roles: dict[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def owed(self) -> dict[str, Criterion]:
        """The criteria that its runs must answer: its own, and those of systems that it is part of.

        The key of one of these begins with the system's name: `jetstream JS-4.2-CAP640`.
        """
        found = dict(self.criteria)
        for whole in sorted(self.folder.parent.glob(f"*/{SYSTEM}")):
            if _names_members(whole, self.name) and (site := examine(whole.parent.name)[0]):
                own = site.criteria if self.name in site.members else {}
                for key, one in own.items():
                    found |= {f"{site.name} {key}": one.like(over="")} if one.over else {}
        return found

    def expected(self, role: str) -> NodeSet:
        """The nodes that a role must have. Raises UserError for an unknown role."""
        return self.system.nodes[self._role(role)].nodes.copy()

    def size(self, role: str) -> int:
        """How many nodes a role must have: without a copy of them. Raises UserError."""
        return len(self.system.nodes[self._role(role)].nodes)

    def can_answer(self, criterion: Criterion) -> bool:
        """Whether a check or a derivation yields its metric, of a service that the site has."""
        if self.members:
            return all(one.can_answer(criterion) for one in self.members.values())
        rule = criterion.conditions.get("service")
        has = rule is None or rule.exact is None or rule.exact in self.system.services
        return self.catalogue[criterion.metric].answerable and has

    def partition(self, name: str) -> Partition:
        """A partition by name. Raises UserError if there is none."""
        found = self.system.partitions.get(name)
        if found is None:
            names = self.system.partitions
            what = f"no partition '{name}'{errors.hint(name, names)}"
            raise UserError(self.name, what, names)
        return found

    def nodes_of(self, partition: str) -> NodeSet:
        """The nodes of a partition, of all its roles. Raises UserError."""
        return self.having(self.partition(partition).roles)

    def having(self, roles: Iterable[str]) -> NodeSet:
        """The nodes of several roles together. Raises UserError for an unknown role."""
        return nodesets.union(self.system.nodes[self._role(role)].nodes for role in roles)

    def role_of(self, node: str) -> str | None:
        """The role of a node, or of the node of a GPU; the first if it has several.

        None for a node not listed.
        """
        if not self._roles:
            for role in reversed(self.system.nodes):
                self._roles.update(dict.fromkeys(self.system.nodes[role].nodes, role))
        return self._roles.get(pair_units.node_of(node))

    def hardware_of(self, role: str) -> Hardware:
        """The hardware of a role; without facts if the site gives none."""
        return self.system.hardware_of(self._role(role))

    def server_memory(self, file_system: str) -> int | None:
        """Bytes that a file system's servers may hold; None: unknown. 0: it is a node's own."""
        there = self.system.file_systems[file_system]
        if there.server_memory:
            return int(there.server_memory.to("B"))
        if there.servers and (memory := self.hardware_of(there.servers).memory):
            return int(memory.to("B")) * len(self.expected(there.servers))
        return None if there.shared else 0

    def parameters(self, role: str) -> HostParameters:
        """The expected host parameters of a role; empty if the site gives none."""
        return self.system.parameters.get(self._role(role)) or HostParameters()

    def roles_of(self, promise: Promise) -> list[str]:
        """The roles that a criterion or baseline covers."""
        return promise.nodes or list(self.system.nodes)

    def promised(self, promise: Promise) -> NodeSet:
        """The nodes that a criterion or baseline covers."""
        return self.having(self.roles_of(promise))

    def _role(self, role: str) -> str:
        if role not in self.system.nodes:
            names = self.system.nodes
            raise UserError(self.name, f"no role '{role}'{errors.hint(role, names)}", names)
        return role


def folder() -> Path:
    """Where the sites are: $SITEPROOF_SITES, else site-config in the clone."""
    given = os.environ.get("SITEPROOF_SITES")
    return Path(given).expanduser() if given else SUPPLIED


def names(*, broken: bool = False, where: Path | None = None) -> list[str]:
    """The sites, by name; with `broken` also folders that lack a system.yaml.

    where: another folder than that of the sites. Raises UserError if it cannot be read.
    """
    where = where or folder()
    try:
        found = [p for p in where.iterdir() if p.is_dir() and not p.name.startswith(".")]
        return sorted(p.name for p in found if broken or (p / SYSTEM).exists())
    except OSError as error:
        what = f"the folder of sites cannot be read: {error.strerror}"
        raise UserError(where, what, hint="Set SITEPROOF_SITES to the folder of sites") from None


def find(name: str, where: str = "system") -> str:
    """The name of a site, if there is such a site. Raises UserError."""
    return _known(name, where, names(), f" in {folder()}")


def _known(name: str, where: str, among: list[str], place: str = "") -> str:
    if name not in among:
        what = f"no site '{yamlfile.clip(name)}'{errors.hint(name, among)}{place}"
        raise UserError(where, what, among)
    return name


def load(name: str, *, whole: bool = False) -> Site:
    """The site. Raises UserErrors with every mistake in its files, UserError if there is none.

    whole: one that consists of other systems will do, too.
    """
    site = _load(find(name))
    if site.members and not whole:
        what = "consists of other systems, and has no partition, node or service of its own"
        raise UserError(name, what, list(site.members), "Name one of them")
    return site


def names_to_copy() -> list[str]:
    """The sites, and those that come with Siteproof, without those of members. Raises UserError."""
    each = [(folder(), name) for name in names()]
    each += [(SUPPLIED, name) for name in names(where=SUPPLIED)]
    alone = [name for where, name in each if not _names_members(where / name / SYSTEM)]
    return list(dict.fromkeys(alone))


def load_to_copy(name: str, where: str) -> Site:
    """A site, or one of this name that comes with Siteproof, whatever $SITEPROOF_SITES is.

    where: what the user gave the name for. Raises UserErrors, UserError.
    """
    if name in names():
        return load(name)
    return _load(_known(name, where, names_to_copy()), SUPPLIED / name)


def _load(name: str, where: Path | None = None) -> Site:
    site, documents = examine(name, where)
    mistakes = [error for document in documents for error in document.sorted_mistakes()]
    if (more := len(mistakes) - MAX_SHOWN) > 1:  # a line for one would save nothing
        hint = f"'siteproof lint --system {name}' lists all {len(mistakes)}"
        mistakes = [*mistakes[:MAX_SHOWN], UserError(name, f"{more} more mistakes", hint=hint)]
    if mistakes or site is None:
        raise UserErrors(mistakes)
    for one in [site, *site.members.values()]:
        _trust(one.system.trusted_owners)
    return site


def trust(name: str = "") -> None:
    """Read what the `trusted_owners` of a site, or of all, have written; nothing else is checked.

    For whoever reads samples without the site.
    """
    for site in [name] if name else names():
        data = yamlfile.read(folder() / site / SYSTEM).data
        owners = data.get("trusted_owners") if data else None
        if isinstance(owners, list):
            _trust(map(str, owners))


def _trust(owners: Iterable[str]) -> None:
    files.trust([uid for owner in owners if (uid := files.uid_of(owner)) is not None])


def examine(name: str, where: Path | None = None) -> tuple[Site | None, list[Document]]:
    """The site, if it has no mistake, and its files with their mistakes.

    where: its folder, if it is not among the others.
    """
    where = where or folder() / name
    system_file = yamlfile.read(where / SYSTEM)
    if MEMBERS in (system_file.data or {}):
        return _examine_whole(name, where, system_file)
    system = None
    if system_file.data is not None:
        system = shapes.validate(system_file, (), System, system_file.data)
    table, documents = _catalogue(where, system_file, system)
    around = Around(table, system, system_file)
    if system is not None:
        lint_system(around, name, _features(where, system))
    if system is not None and not around.broken:
        plausible.check_system(system_file, system)
    criteria_files, criteria = _criteria(where, around)
    baselines_file = yamlfile.read(where / BASELINES)
    lint_owner(baselines_file, name)  # takes the one key that is no id out of the data
    baselines = _promises(baselines_file, Baseline, around)
    for key in baselines.keys() & criteria.keys():
        baselines_file.add((key,), f"'{key}' is also the id of a criterion", "an id of its own")
    about = {name: metric.of_gpus for name, metric in table.items()}
    about |= {key: criterion.subject == "gpu" for key, criterion in criteria.items()}
    waivers_file, waivers = _waivers(where, around.inventory, about)
    hosts_file, hosts = site_tables.of_site(where, name, HostRow, around)
    published_file, _ = site_tables.of_site(where, name, Published, around)
    timeline_file, milestones = site_tables.of_site(where, name, Milestone, around)
    windows_file, windows = site_tables.of_site(where, name, PlannedWindow, around)
    own = [system_file, *criteria_files, baselines_file, *waivers_file, *hosts_file]
    documents = [*own, *documents, *published_file, *timeline_file, *windows_file]
    if system is None or any(document.mistakes for document in documents):
        return None, documents
    gaps = [gap for document in documents for gap in document.listed_gaps()]
    site = Site(
        *(name, where, system, criteria, baselines, table, waivers),
        *({row.node: facts(row) for row in hosts}, milestones, windows, gaps),
    )
    return site, documents


def _examine_whole(
    name: str, where: Path, system_file: Document
) -> tuple[Site | None, list[Document]]:
    """The same of a system that consists of others: `system` has nothing but its name."""
    whole = shapes.validate(system_file, (), Whole, system_file.data)
    members = _members(system_file, name, whole) if whole else {}
    around = [
        Around(one.catalogue, one.system, yamlfile.read(one.folder / SYSTEM))
        for one in members.values()
    ]
    files_of_it, criteria = _criteria(where, *around) if around else ([], {})
    for file in (BASELINES, WAIVERS):
        if (where / file).exists():
            what = f"{file} has no effect in a system with `members`"
            system_file.add((MEMBERS,), what, hint="Move its entries to the members' own files")
    documents = [system_file, *files_of_it]
    if whole is None or any(document.mistakes for document in documents):
        return None, documents
    system = System(
        **{"system": name, "description": whole.description, "recognise": Recognise()},
        **dict.fromkeys(("nodes", "partitions", "environments"), {}),
    )
    gaps = [gap for document in documents for gap in document.listed_gaps()]
    table = {key: one for part in around for key, one in part.metrics.items()}
    return Site(name, where, system, criteria, {}, table, gaps=gaps, members=members), documents


def _members(document: Document, name: str, whole: Whole) -> dict[str, Site]:
    """The members, if all of them can be read; otherwise the mistakes are noted."""
    if whole.system != name:
        document.add(("system",), f"'{whole.system}' is not the folder's name", name)
    known = ((one, folder() / one / SYSTEM) for one in names())
    others = [one for one, path in known if one != name and not _names_members(path)]
    for place, member in enumerate(whole.members):
        if member in names() and member not in others:
            what = "the system itself" if member == name else "a system with members"
            document.add((MEMBERS, place), f"'{member}' is {what}", others)
        else:
            reference(document, (MEMBERS, place), member, "system", others)
    return {} if document.mistakes else _read_members(document, whole)


def _read_members(document: Document, whole: Whole) -> dict[str, Site]:
    found: dict[str, Site] = {}
    for member in whole.members:
        if site := examine(member)[0]:
            found[member] = site
        else:
            hint = f"'siteproof lint --system {member}' lists them"
            document.add((MEMBERS,), f"'{member}' has mistakes", hint=hint)
    return found


def _names_members(path: Path, name: str = "") -> bool:
    """Whether a system.yaml has the key `members`, and this name; it is not read as YAML."""
    try:
        text = files.read_named(path, yamlfile.MAX_BYTES).decode("utf-8", "replace")
    except (OSError, UserError):
        return False
    return f"\n{MEMBERS}:" in f"\n{text}" and name in text


def _catalogue(
    where: Path, system_file: Document, system: System | None
) -> tuple[dict[str, Metric], list[Document]]:
    """All metrics that a criterion may name: Siteproof's, and those of the site's own checks."""
    table, documents, _ = metrics.read()
    written = system.checks if system else []
    for index, folder in enumerate(own_checks(where, system) if system else ()):
        if not folder.is_dir():
            what = f"'{yamlfile.clip(written[index])}' is not a folder"
            system_file.add(("checks", index), what, "a folder with ReFrame tests")
            continue
        own, files_of_it = metrics.of_site(folder, table)
        table, documents = {**table, **own}, [*documents, *files_of_it]
    return table, documents


def _features(where: Path, system: System) -> set[str]:
    """All features that an environment may offer: of Siteproof's checks, and of the site's own."""
    own = map(metrics.features_of, own_checks(where, system))
    return set(metrics.read().features).union(*own)


def own_checks(where: Path, system: System) -> list[Path]:
    """The folders with a site's own checks. where: the site's folder."""
    return [(where / Path(text).expanduser()).absolute() for text in system.checks]


def _criteria(where: Path, *around: Around) -> tuple[list[Document], dict[str, Criterion]]:
    """The criteria and their files. around: of the system, or of each of its members."""
    paths = [where / CRITERIA, *sorted(where.glob(MORE_CRITERIA))]
    documents = [yamlfile.read(path) for path in paths]
    found: dict[str, Criterion] = {}
    for document in documents:
        for key in found.keys() & (document.data or {}).keys():
            document.add((key,), f"'{key}' is also an id in another file", "an id of its own")
        found |= _promises(document, Criterion, *around)
    return documents, found


def lint_sites(chosen: list[str]) -> list[Document]:
    """The files of these sites, with every mistake in them, and between the sites."""
    documents: dict[Path, Document] = {}
    rules: dict[str, str] = {}
    for name in chosen:
        site, read = examine(name)
        documents |= {document.path: document for document in read}
        rule = str((read[0].data or {}).get("recognise") or name)
        other = rules.setdefault(rule, name)
        if other != name:
            hint = "Make 'recognise' distinguish the two"
            what = f"the same machines as site '{other}'"
            read[0].add(("recognise",), what, hint=hint)
        if site is not None:
            _without_effect(read[0], site.system)
    return list(documents.values())


def _without_effect(document: Document, system: System) -> None:
    """Note users that this machine lacks, and variables that no check would unset."""
    for owner in system.trusted_owners:
        if files.uid_of(owner) is None:
            what = f"this machine has no user '{yamlfile.clip(owner)}'"
            document.add(("trusted_owners",), what, "a name of 'getent passwd', or a number")
    kept = ((key, name) for key, one in system.environments.items() for name in one.keep_variables)
    for key, name in kept:
        if not job_keys.may_steer(name):
            loc = ("environments", key, "keep_variables")
            what = f"'{name}' has no effect: checks unset only variables that control libraries"
            document.add(loc, what, job_keys.OF_LIBRARIES.split())


def _promises(document: Document, model: type[P], *around: Around) -> dict[str, P]:
    found = {}
    for key, promise in shapes.entries(document, model, gaps=True):
        lint_promise(document, key, promise, *around)
        if not document.gap_below((key,)):
            found[key] = promise
    return found


def _waivers(
    where: Path, inventory: NodeSet | None, metrics_and_criteria: Mapping[str, bool]
) -> tuple[list[Document], dict[str, Waiver]]:
    """The waivers and their file, if there is one."""
    if not (where / WAIVERS).exists():
        return [], {}
    document = yamlfile.read(where / WAIVERS)
    found = dict(shapes.entries(document, Waiver))
    for key, waiver in found.items():
        lint_waiver(document, key, waiver, inventory, metrics_and_criteria)
    return [document], found
