"""Whether a run of this site can answer a criterion at all, and what is lacking where none can.

Attempts are planned as a run makes them, in each mode and on each link, file system or service,
with the settings that criteria require; the one rule of answers decides (`attempts.refusal`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.answers import expected
from siteproof.answers.attempts import APPLICATION, PLANNED, SERVICE, of_system, refusal
from siteproof.installed import SUITE
from siteproof.record import pair_units
from siteproof.record.finding import Finding, note
from siteproof.record.manifest import KNOB
from siteproof.record.samples import EMULATED, Header, Sample
from siteproof.sites import Criterion, Partition, Site, bought, catalogue, pairs
from siteproof.sites.catalogue import MODES, Metric, read
from siteproof.sites.lint import at
from siteproof.sites.system import Scaled

FILE_SYSTEM, AT_ONCE, PATTERN = "file_system", "at_once", "pattern"
REACHABLE = "reachable"  # condition: how servers of a cloud were asked before they counted
SCALING, NODES = "scaling", "nodes"  # key of system.yaml; condition: on how many nodes
PLATEAU = "Scaling.plateau"  # the fewest nodes that do as well as any more
SECTION = "section"  # condition: of the facts of nodes
OF_COMMAND: Mapping[str, Callable[[Scaled], bool]] = {  # metrics of a command of the site's
    "printed": lambda one: bool(one.prints),
    "speed": lambda one: not one.prints,
    **dict.fromkeys(("result", "differing_results"), lambda one: bool(one.result)),
}
TUNING = "Tuning"  # the check of the sweeps that change settings of nodes
Values = Mapping[str, str]


@dataclass(frozen=True)
class Sweeps:
    """The values of all points that sweeps measure, by check. only: checks that need a sweep."""

    points: Mapping[str, Sequence[Values]] = field(default_factory=dict)
    only: Collection[str] = ()


def lacking(site: Site, criterion: Criterion, sweeps: Sweeps) -> Finding | None:
    """Why nothing of this site can answer a criterion; None if something can.

    A derived metric that compares needs one of its inputs on each side; others need all of them.
    """
    entry = site.catalogue[criterion.metric]
    if criterion.answered_by == "evidence":
        return None
    if not entry.answerable:
        return note("no check yields {metric}", metric=criterion.metric)
    if why := _unstated(site, criterion, entry) or _of_no_program(site, criterion, entry):
        return why
    for side in _sides(site, criterion, entry):
        found = [_Asked(site, one, site.catalogue[one.metric], sweeps).lacking() for one in side]
        reasons = list(filter(None, found))
        if reasons and (len(reasons) == len(side) or not entry.compared_by):
            return reasons[0]
    return None


def _sides(site: Site, criterion: Criterion, entry: Metric) -> list[list[Criterion]]:
    """The inputs of a criterion, of each side that it compares; itself, if it is measured."""
    found = [one for one in expected.answering(site, criterion) if one.metric in site.catalogue]
    two = bool(criterion.against) and not entry.check
    return [found[::2], found[1::2]] if two else [found]


def _unstated(site: Site, criterion: Criterion, entry: Metric) -> Finding | None:
    """The first key that system.yaml lacks, and without which nothing yields the metric."""
    rule = criterion.conditions.get(SERVICE)
    for key in entry.needs:
        place = key.format(service=rule.exact if rule and rule.exact else "*")
        if not any(given for _, given in at(site.system, place)):
            return note("system.yaml has no {key}", metric=criterion.metric, key=place)
    if SCALING in entry.needs and (why := _without_application(site, criterion)):
        return why
    section = criterion.conditions.get(SECTION)
    if section and not any(section.met_by(name) for name in _with_fields(site, criterion)):
        text = "no field of section {section} is stated of these nodes"
        return note(text, metric=criterion.metric, section=f"{section}")
    return None


def _without_application(site: Site, criterion: Criterion) -> Finding | None:
    """Why no program over several nodes answers it: its name, or its numbers of nodes."""
    named, on = _named(site, criterion), criterion.conditions.get(NODES)
    if not named:
        key = f"{SCALING}.{criterion.conditions[APPLICATION]}"
        return note("system.yaml has no {key}", metric=criterion.metric, key=key)
    numbers = {number for one in named.values() for number in one.nodes}
    if on and "all" not in numbers and not any(on.met_by(str(number)) for number in numbers):
        text = "no application of scaling in system.yaml runs on {nodes} nodes"
        return note(text, metric=criterion.metric, nodes=f"{on}")
    if criterion.metric == PLATEAU and criterion.kind == "at_least":
        return _too_small(site, criterion.bound_value().value, numbers)
    return None


def _named(site: Site, criterion: Criterion) -> dict[str, Scaled]:
    """The programs over several nodes that a criterion names; all where it names none."""
    name = criterion.conditions.get(APPLICATION)
    return {k: one for k, one in site.system.scaling.items() if name is None or name.met_by(k)}


def _of_no_program(site: Site, criterion: Criterion, entry: Metric) -> Finding | None:
    """Why none of the programs over several nodes that it may name yields its metric."""
    if SCALING not in entry.needs:
        return None
    named = _named(site, criterion)
    if any(_yields(site, one, criterion.metric) for one in named.values()):
        return None
    text = "{applications} of scaling in system.yaml: no program that yields {metric}"
    return note(text, metric=criterion.metric, applications=", ".join(named))


def _yields(site: Site, one: Scaled, metric: str) -> bool:
    """Whether a metric is one of the program's: its own check has those of the same programs."""
    if of_command := OF_COMMAND.get(metric.partition(".")[2]):
        return bool(one.command) and of_command(one)
    wanted, check = {*site.catalogue[metric].programs}, one.program.capitalize()
    own = (known.programs for known in site.catalogue.values() if known.check == check)
    return not wanted or any(wanted & {*programs} for programs in own)


def _too_small(site: Site, needed: Decimal, numbers: Iterable[int | str]) -> Finding | None:
    """That no partition has as many nodes as a plateau needs, or no program runs on so many."""
    there = max(len(site.nodes_of(name)) for name in site.system.partitions)
    able = [there if number == "all" else int(number) for number in numbers]
    most = max((number for number in able if number <= there), default=0)
    text = "no application of scaling runs on {needed} nodes; the most is {most}"
    return note(text, metric=PLATEAU, needed=f"{needed}", most=most) if needed > most else None


def _with_fields(site: Site, criterion: Criterion) -> Iterator[str]:
    """The sections of which the site states a field, of a node of each role."""
    for role in criterion.nodes or site.system.nodes:
        for node in list(site.expected(role))[:1]:
            sections = bought.sections_of(site, node).items()
            yield from (name for name, section in sections if section.fields)


@dataclass(frozen=True)
class _Asked:
    """A criterion on a metric that a check yields."""

    site: Site
    criterion: Criterion
    entry: Metric
    sweeps: Sweeps

    def lacking(self) -> Finding | None:
        """Why no attempt answers it; None if one does."""
        if why := _unstated(self.site, self.criterion, self.entry):
            return why
        if self.criterion.links:
            each = [self._at(pair_units.LINK, link) for link in self.criterion.links]
            return next(filter(None, each), None)
        system = self.site.system
        if SERVICE in self.entry.conditions:
            return self._at_one_of(SERVICE, system.services)
        if FILE_SYSTEM in self.entry.conditions:
            return self._at_one_of(FILE_SYSTEM, system.file_systems)
        return self._at("", "")

    def _at_one_of(self, name: str, known: Collection[str]) -> Finding | None:
        """Why none on these answers it; of several that it names each is a point of its own."""
        rule, thing = self.criterion.conditions.get(name), name.replace("_", " ")
        named = rule.texts if rule else []
        if unknown := [text for text in named if text not in known]:
            return self._note("the site has no {thing} '{name}'", thing=thing, name=unknown[0])
        if not known:
            return self._note("the site has no {thing}", thing=thing)
        reasons = [self._at(name, text) for text in named or known]
        decides = all if not named else any
        return next(filter(None, reasons), None) if decides(reasons) else None

    def _note(self, text: str, **values: str) -> Finding:
        return note(text, metric=self.criterion.metric, **values)

    def _at(self, name: str, place: str) -> Finding | None:
        """Why none on a link, a file system or a service answers it; or on the nodes."""
        if why := self._without_nodes(name, place):
            return why
        found = [
            refusal(self.criterion, attempt) or self._too_few(attempt.dims, place)
            for attempt in self._planned(name, place)
        ]
        if not found:
            text = "only sweeps measure {check}, and 'tuning: true' is missing for those that can"
            return self._note(text, check=str(self.entry.check))
        return None if None in found else found[-1]

    # ---- which nodes

    def _without_nodes(self, name: str, place: str) -> Finding | None:
        """Why nodes that it covers are not measured: by no partition, or without the program."""
        system = self.site.system
        if name == SERVICE:
            return None
        if name == pair_units.LINK:
            where = system.links[place].partition
            there = {where: system.partitions[where]}
            return None if self._offering(there) else self._no_program(there)
        return (name == FILE_SYSTEM and self._unfit(place)) or self._unmeasured(place)

    def _unmeasured(self, file_system: str) -> Finding | None:
        partitions = self.site.system.partitions
        having = {key: self._nodes(one, file_system) for key, one in partitions.items()}
        owed = self.site.promised(self.criterion)
        there = {key: one for key, one in partitions.items() if owed & having[key]}
        able = _all(having[key] for key in self._offering(there))
        if owed <= able or (of_system(self.criterion) and owed & able):
            return None
        if left := owed - _all(having[key] for key in there):
            values = {"nodes": str(left), "place": file_system}
            return self._note("no partition measures {nodes}{place: on %s}", **values)
        return self._no_program(there)

    def _nodes(self, where: Partition, file_system: str) -> NodeSet:
        """The nodes that are measured in a partition, on a file system if one is named."""
        there = self.site.system.file_systems.get(file_system)
        roles = [role for role in where.measured if there is None or there.used_by(role)]
        return self.site.having(roles)

    def _too_few(self, values: Values, file_system: str) -> Finding | None:
        """Why a run on a file system does not have as many nodes as it needs at the same time."""
        there = self.site.system.file_systems.get(file_system)
        if there is None:
            return None
        partitions = self.site.system.partitions.values()
        most = max(len(self._nodes(one, file_system)) for one in partitions)
        if (needed := self._nodes_at_once(values)) > most:
            text = "needs {needed:n node} of {name} at the same time; the most is {most}"
            return note(text, needed=needed, name=file_system, most=most)
        servers = len(self.site.having([there.servers])) if there.servers else None
        needed = _number(values.get("servers", ""))
        if servers is not None and needed > servers:
            text = "needs {needed:n server} of {name}; the most is {most}"
            return note(text, needed=needed, name=file_system, most=servers)
        return None

    def _nodes_at_once(self, values: Values) -> int:
        """How many nodes a point needs; 0: as many as there are."""
        workload = self.site.system.workload
        if self.entry.check == "Workload" and workload:
            return workload.nodes
        each = _number(values.get("tasks_per_node", "")) or 1
        return _number(values.get("clients", "")) or -(-_number(values.get("tasks", "")) // each)

    def _unfit(self, file_system: str) -> Finding | None:
        there, kind = self.site.system.file_systems[file_system], self._declared.get("only_kind")
        if kind and there.kind != kind:
            values = {"name": file_system, "found": there.kind, "expected": str(kind)}
            return self._note("file system {name} is of kind {found}, not {expected}", **values)
        if self._declared.get("only_shared") and not there.shared:
            return self._note("file system {name} is not shared", name=file_system)
        return None

    def _offering(self, there: Mapping[str, Partition]) -> list[str]:
        """The partitions of which an environment offers a program that may answer."""
        wanted, environments = set(self._features), self.site.system.environments
        return [
            key
            for key, one in there.items()
            if not wanted or any(wanted & {*environments[n].features} for n in one.environments)
        ]

    def _no_program(self, there: Iterable[str]) -> Finding:
        lacks = {"features": " or ".join(self._features), "partitions": ", ".join(there)}
        return self._note("no environment of {partitions} offers {features}", **lacks)

    @property
    def _features(self) -> Sequence[str]:
        """Those of which the check needs one, with a program that may answer."""
        declared = self._declared.get("features", ())
        known, programs = read().features, set(self.criterion.programs)
        named = [f for f in declared if programs & {f, *(known[f].programs if f in known else ())}]
        return named or declared

    @property
    def _declared(self) -> Mapping[str, Any]:
        file = SUITE / (self.entry.file or "")
        return catalogue.declared(Path(file), str(self.entry.check)) if self.entry.file else {}

    # ---- which attempts

    def _planned(self, name: str, place: str) -> Iterator[Sample]:
        """What the check by itself, and each point of its sweeps, would leave in each mode."""
        check = str(self.entry.check)
        where, known = {name: place} if name else {}, self._known(name, place)
        if emulated := known.pop(EMULATED, ""):
            where[EMULATED] = emulated
        of_whole = expected.WHOLE in self.entry.conditions or check == TUNING
        for mode in filter(self.criterion.sets, MODES):
            job = Header("", "", "", "", check, "", "", mode, conditions=where)
            if check not in self.sweeps.only and not of_whole:
                yield self._attempt(job, {**known, **self._set(job, known)})
            for values in filter(self._allowed, self.sweeps.points.get(check, ())):
                yield self._attempt(job, {} if of_whole else {**known, **values})

    def _allowed(self, values: Values) -> bool:
        """Whether the site allows what a point of a sweep does to nodes."""
        turns = any(name.startswith(KNOB) for name in values)
        return not turns or any(one.tuning for one in self.site.system.partitions.values())

    def _attempt(self, job: Header, known: Values) -> Sample:
        return Sample(job, "", self.criterion.metric, status=PLANNED, dims=known)

    def _known(self, name: str, place: str) -> dict[str, str]:
        """What is known of a run there: how many measure at once, and over which pattern."""
        system = self.site.system
        if name == FILE_SYSTEM:
            there = system.file_systems[place]
            return {EMULATED: there.emulated, AT_ONCE: str(there.at_once if there.shared else 1)}
        if name == SERVICE:
            return {REACHABLE: system.services[place].reachable or "no"}
        if name != pair_units.LINK:
            return {}
        link = system.links[place]
        ends = pairs.servers(self.site, link), pairs.clients(self.site, link)
        able = self._declared.get("patterns", [link.pattern.partition(":")[0]])
        pattern = link.pattern if link.pattern.partition(":")[0] in able else "star"
        laid = pairs.rounds(pattern, *ends, 0)
        if pattern == "star" and self._declared.get("light"):
            laid = pairs.side_by_side(laid)
        known = {EMULATED: link.emulated, AT_ONCE: str(pairs.at_once(laid))}
        return {**known, PATTERN: pattern}

    def _set(self, job: Header, known: Values) -> Values:
        """The values of settings in a run of this mode, as far as the criterion requires them."""
        found = {}
        own = expected.settings(self.site, job.check)
        for name in own.keys() & self.criterion.conditions.keys():
            able = own[name].able(self.criterion.conditions[name])
            if not own[name].several:
                able = [expected.one(self.site, job, name, known.get(name, ""))]
            found[name] = able[0] if able and able[0] else f"{own[name]}"
        if most := known.get(AT_ONCE):
            fewer = found.get(AT_ONCE, "").isdigit() and known.get(PATTERN) != "together"
            found[AT_ONCE] = min(found[AT_ONCE], most, key=int) if fewer else most
        return found


def _all(sets: Iterable[NodeSet]) -> NodeSet:
    found = nodesets.of()
    for one in sets:
        found.update(one)
    return found


def _number(text: str) -> int:
    """What a condition is as a number; 0 where it is none, or more than one."""
    return int(text) if text.isdecimal() and len(text) < 16 else 0
