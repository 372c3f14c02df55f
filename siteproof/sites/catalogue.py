"""checks/**/catalogue.yaml: the metrics that criteria may name, and features of environments.

The Python files of checks: whether they hold those of the catalogue, and the features they name.

They are read as text: no check is imported, nor ReFrame, which takes a second.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from siteproof import errors, files, units
from siteproof.errors import UserError
from siteproof.installed import SUITE
from siteproof.record.pair_units import GPU
from siteproof.sites.key_types import Model
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document, Loc, shown
from siteproof.sites.stated import Expected

if TYPE_CHECKING:
    from siteproof.sites.site import Site

FOLDER = SUITE / "checks"
NAME = "catalogue.yaml"
FEATURES = "features"
SOURCES = ("descriptions", "sessions", "timeline.csv", "probes", "criteria", "site")
MODES = ("quick", "maintenance", "acceptance")

End = Annotated[Decimal, Field(ge=-(10**15), le=10**15)]


class Feature(Model):
    """Something that an environment offers, and that checks ask for."""

    description: str
    """What it is, and the checks that ask for it."""
    programs: list[str]
    """Names under which distributions and Spack install its programs; one is enough."""
    modules: list[str]
    """Names of its module files without versions, in lower case."""


class Features(Model):
    """The key of a catalogue that is not a metric."""

    features: dict[str, Feature] = {}
    """What an environment may offer, by name."""


class Setting(Model):
    """What a condition of a criterion sets of the runs of a check, and which values it may have."""

    least: Decimal = Decimal(1)
    """The lowest number allowed."""
    most: Decimal | None = None
    """The highest number allowed."""
    step: Decimal = Decimal(1)
    """What a number must be a multiple of."""
    words: list[str] = []
    """The words allowed, where it is not a number."""
    several: bool = False
    """Whether one run measures each of several values."""

    def __str__(self) -> str:
        most = "" if self.most is None else f", at most {self.most}"
        return " or ".join(self.words) or f"at least {self.least}{most}"

    def allows(self, text: str) -> bool:
        """Whether a run can have this value."""
        if self.words:
            return text in self.words
        try:
            number = Decimal(text)
        except InvalidOperation:
            return False
        below = self.most is None or number <= self.most
        return number >= self.least and below and not number % self.step

    def able(self, rule: Expected) -> list[str]:
        """The values nearest to those that a rule names, of which each meets it."""
        named = [*rule.texts, rule.about, rule.at_least, rule.at_most]
        found = [text for text in named if text is not None]
        if not self.words:
            found = [text for name in found for text in self._multiples(name)]
        return [text for text in found if self.allows(text) and rule.met_by(text)]

    def _multiples(self, text: str) -> list[str]:
        """The multiples of the step next to a number, as texts; none of what is not a number."""
        try:
            lower = Decimal(text) // self.step * self.step
        except InvalidOperation:
            return []
        return [f"{lower.normalize():f}", f"{(lower + self.step).normalize():f}"]


class Metric(Model):
    """One metric that a check yields, or will yield."""

    check: str | None
    """The check's class; null: no check yields it yet, so criteria are PENDING unless it is
    derived."""
    derived_from: list[str] = []
    """What it is computed from when it is read: metrics, or the site's own files and records
    (descriptions, sessions, timeline.csv, probes, criteria)."""
    computed: str = ""
    """How it is computed from them: a function of siteproof/verdict/derived/, and which of its
    choices, such as 'inventory.total of cores'."""
    file: str | None = None
    """The check's file, below the clone; in the catalogue of a site's own checks, below their
    folder."""
    compared_by: list[str] = []
    """What `against` of a criterion may name, where the metric compares two sides: link, nodes,
    group, campaign, or a condition. It must name one, unless it is campaign."""
    unit: str
    """The unit of its samples, as the tool prints it."""
    better: Literal["higher", "lower", "neither"]
    """Which direction is good."""
    lowest: End | None = Decimal(0)
    """The lowest value possible, in its unit; null: there is none."""
    highest: End | None = None
    """The highest value possible, in its unit."""
    programs: list[str] = []
    """Programs that can measure it."""
    formerly: list[str] = []
    """Programs that measured it in older reports, and that no check runs."""
    conditions: list[str] = []
    """Conditions that a criterion may name."""
    settings: dict[str, Setting] = {}
    """Conditions that a criterion sets, as its check can be run with them; in the entry of one
    metric of the check."""
    needs: list[str] = []
    """What system.yaml must have, or nothing yields it: links.*.round_trip; {service} is the
    service that the criterion names."""
    point: list[str] = []
    """What belongs to its point, such as block: a sample without it is refused, and values of
    different points are never put together."""
    directed: bool = True
    """False: a pair has one value, not one for each direction."""
    of_system: bool = False
    """True: a system has one value at a point, and not each node or pair."""
    headline: bool = False
    """True: written to ReFrame's own perflog too."""
    description: str
    """What it is."""

    @property
    def answerable(self) -> bool:
        """Whether a check or a derivation yields it."""
        return bool(self.check or self.derived_from)

    @property
    def of_pairs(self) -> bool:
        """Whether its values are of pairs of nodes."""
        return "link" in self.conditions or {"from", "to"} <= set(self.point)

    @property
    def subject(self) -> Literal["system", "pair", "gpu", "node"]:
        """What one value belongs to."""
        if self.of_gpus:
            return "gpu"
        if self.of_system:
            return "system"
        return "pair" if self.of_pairs else "node"

    @property
    def of_gpus(self) -> bool:
        """Whether its values are of GPUs of a node, or of two of them."""
        return GPU in self.point

    @property
    def is_of_site(self) -> bool:
        """Whether it is of a site's own check, whose file has an absolute path."""
        return Path(self.file or "").is_absolute()


class Catalogue(NamedTuple):
    """Metrics and features by name, and the files with their mistakes."""

    metrics: dict[str, Metric]
    documents: list[Document]
    features: dict[str, Feature]


@lru_cache(maxsize=4)
def read(folder: Path = FOLDER) -> Catalogue:
    """What all catalogues below a folder describe."""
    return _read(folder)


def of_site(folder: Path, known: Mapping[str, Metric]) -> tuple[dict[str, Metric], list[Document]]:
    """The same of a folder with a site's own checks. known: the other metrics."""
    found, documents, _ = _read(folder)
    taken = {metric.check for metric in known.values()} - {None}
    for document in documents:
        described = (document.data or {}).keys()
        if FEATURES in described:
            what = "features, which a site's own checks need not describe"
            document.add((FEATURES,), what, "names of the site's own checks")
        for name in found.keys() & described:
            if name in known or found[name].check in taken:
                what = f"'{name}' is of a check in another catalogue"
                document.add((name,), what, "names of the site's own checks")
            if found[name].derived_from:
                document.add((name, "derived_from"), "derived", "metrics of the site's checks")
    return {
        name: metric.model_copy(update={"file": str(folder / metric.file)})
        if metric.file
        else metric
        for name, metric in found.items()
    }, documents


def _read(folder: Path) -> Catalogue:
    found = Catalogue({}, [], {})
    for path in sorted(folder.rglob(NAME)):
        document = yamlfile.read(path)
        found.documents.append(document)
        _read_features(document, found.features)
        for name, metric in shapes.entries(document, Metric, apart=FEATURES):
            if name in found.metrics:
                _twice(document, (name,))
            else:
                found.metrics[name] = metric
                _lint(document, name, metric)
    for document in found.documents:
        _lint_derived(document, found.metrics)
    return found


def _read_features(document: Document, found: dict[str, Feature]) -> None:
    described = (document.data or {}).get(FEATURES, {})
    offered = shapes.validate(document, (), Features, {FEATURES: described})
    for name, feature in offered.features.items() if offered else ():
        if name in found:
            _twice(document, (FEATURES, name))
        found[name] = feature


def _twice(document: Document, loc: Loc) -> None:
    document.add(loc, f"'{loc[-1]}' is in two catalogues", "one entry a metric or feature")


def _lint(document: Document, name: str, metric: Metric) -> None:
    check, dot, own = name.partition(".")
    if not (check.isidentifier() and dot and own.isidentifier()):
        document.add((name,), f"'{yamlfile.clip(name)}' is not a valid name", "Check.metric")
    if metric.check not in (None, check):
        document.add((name, "check"), f"check '{metric.check}'", f"{check}, null")
    if metric.check and metric.derived_from:
        document.add((name, "derived_from"), f"derived, and check '{metric.check}'", "null")
    if bool(metric.computed) != bool(metric.derived_from):
        document.add((name,), "'computed' and 'derived_from' belong together", "both")
    if metric.check and not metric.file:
        document.add((name,), "missing key 'file'")
    if metric.unit not in units.UNITS:
        known = errors.hint(metric.unit, units.UNITS)
        document.add((name, "unit"), f"unknown unit '{metric.unit}'{known}", units.UNITS)


def _lint_derived(document: Document, metrics: dict[str, Metric]) -> None:
    """What a metric is derived from is measured, or is one of SOURCES."""
    for name in (name for name in document.data or {} if name in metrics):
        for source in metrics[name].derived_from:
            if source in SOURCES or (source in metrics and metrics[source].check):
                continue
            document.add((name, "derived_from"), f"'{source}' is not measured", SOURCES)


MAX_BYTES = 1_000_000
MAX_NAMES = 6  # in one message


class Loss(Enum):
    """Why a file does not hold a check, as a sentence to which the file is the subject."""

    MISSING = "does not exist"
    UNREADABLE = "{}"  # read_named has said what it is: a folder, too large, not for this user
    NOT_PYTHON = "is not valid Python{}"
    NO_CLASS = "has no class {}"
    NO_TEST = "has {} without @rfm.simple_test"


@dataclass(frozen=True)
class Lost:
    """A check that is not in its file. file: below the clone. elsewhere: the file that has it."""

    check: str
    file: str
    loss: Loss
    detail: str = ""
    elsewhere: str = ""

    @property
    def what(self) -> str:
        """The reason, to be printed after the file's name."""
        return self.loss.value.format(self.detail)

    @property
    def is_readable(self) -> bool:
        """Whether there is a file, which ReFrame will load."""
        return self.loss not in (Loss.MISSING, Loss.UNREADABLE)

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


def lost(table: Mapping[str, Metric], bare: Collection[str], root: Path = SUITE) -> dict[str, Lost]:
    """The checks whose files do not hold them, by name.

    bare: checks that are no tests by themselves, but classes of which sweeps make tests.
    """
    found = {}
    for check, file in {m.check: m.file for m in table.values() if m.check and m.file}.items():
        if not file.startswith("checks/"):  # sweeps.py makes its classes while it is loaded
            continue
        if loss := _loss(root / file, check, bare):
            found[check] = Lost(check, file, *loss, _elsewhere(root, check, bare))
    return found


def missing(
    table: Mapping[str, Metric], bare: Collection[str], root: Path = SUITE
) -> dict[str, Lost]:
    """Those of them that no other file holds, so that nothing measures their metrics."""
    return {name: one for name, one in lost(table, bare, root).items() if not one.elsewhere}


def lint(
    chosen: Iterable[Site],
    sweeps: Mapping[str, Collection[str]],
    bare: Collection[str],
    root: Path = SUITE,
) -> list[UserError]:
    """A mistake for each lost check: what it measures, and which sites and sweeps need it.

    sweeps: the sweeps of each check.
    """
    table, documents, _ = read()
    sites, mistakes = list(chosen), []
    for check, one in lost(table, bare, root).items():
        metrics = [name for name, metric in table.items() if metric.check == check]
        what = f"{one}, so nothing measures {_shortened(metrics)}"
        hint = f"Restore the file, or name the one that has the test class {check}"
        if one.elsewhere:
            what, hint = str(one), f"Name {one.elsewhere}, which has {check}"
        if needed := _needed(sites, check, sweeps.get(check, ())):
            what += f"; needed by {', '.join(needed)}"
        where = _where(documents, metrics[0])
        mistakes.append(UserError(where, f"{what} in {metrics[0]}.file", hint=hint))
    return mistakes


def before_run(one: Lost, site: Site) -> str:
    """The line that a run prints that lacks a check."""
    ids = [key for key, promise in site.criteria.items() if _check(promise.metric) == one.check]
    if not ids:
        return f"warning: {one}: {one.check} is not run; no criterion of {site.name} needs it"
    return f"{one}: {one.check} is not run, so nothing new answers {_shortened(ids)} of {site.name}"


def _needed(sites: Iterable[Site], check: str, sweeps: Collection[str]) -> list[str]:
    found = []
    for site in sites:
        promises = [*site.criteria.items(), *site.baselines.items()]
        if ids := [key for key, promise in promises if _check(promise.metric) == check]:
            found.append(f"{_shortened(ids)} of {site.name}")
    return [*found, f"the sweeps {_shortened(sweeps)}"] if sweeps else found


def _check(metric: str) -> str:
    return metric.partition(".")[0]


def _shortened(names: Collection[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MAX_NAMES} more" if len(listed) > MAX_NAMES else ""
    return ", ".join(listed[:MAX_NAMES]) + more


def _where(documents: Iterable[Document], metric: str) -> str:
    document = next(d for d in documents if metric in (d.data or {}))
    return f"{shown(document.path)}:{document.line((metric, 'file'))}"


def _elsewhere(root: Path, check: str, bare: Collection[str]) -> str:
    for path in sorted((root / "checks").rglob("*.py")):
        if _loss(path, check, bare) is None:
            return str(path.relative_to(root))
    return ""


@cache
def declared(path: Path, check: str) -> Mapping[str, Any]:
    """What the body of a check's class states by itself: its features, patterns and the like.

    Empty where the file does not hold it, which `lint` reports.
    """
    if _loss(path, check, [check]) is not None:
        return {}
    body = ast.parse(files.read_named(path, MAX_BYTES)).body
    stated = next(s for s in reversed(body) if isinstance(s, ast.ClassDef) and s.name == check).body
    found = {}
    for line in stated:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            with suppress(ValueError):  # not a literal
                found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def _loss(path: Path, check: str, bare: Collection[str]) -> tuple[Loss, str] | None:
    """Why a file does not hold a check, with a detail; None if it does."""
    try:
        body = ast.parse(files.read_named(path, MAX_BYTES)).body
    except FileNotFoundError:
        return Loss.MISSING, ""
    except UserError as error:
        return Loss.UNREADABLE, error.what
    except SyntaxError as error:
        return Loss.NOT_PYTHON, f" (line {error.lineno or 1}: {error.msg})"
    except (ValueError, RecursionError, MemoryError):  # a NUL byte, or endless brackets
        return Loss.NOT_PYTHON, ""
    classes = [s for s in body if isinstance(s, ast.ClassDef) and s.name == check]
    if not classes:
        return Loss.NO_CLASS, check
    if check not in bare and not classes[-1].decorator_list:
        return Loss.NO_TEST, check
    return None


MAX_FILES = 2_000  # Python files of a centre's own checks


def features_of(folder: Path) -> set[str]:
    """The features that the Python files of a folder name, in valid_prog_environs or `features`.

    The files are read as text. A file that is not valid Python names none: a run reports it.
    """
    found: set[str] = set()
    for path in sorted(folder.rglob("*.py"))[:MAX_FILES]:
        try:
            tree = ast.parse(files.read_named(path, MAX_BYTES))
        except (OSError, UserError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found.update(_named(tree))
    return found


def _named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_features(node):
            yield from _texts(node.value)
        elif isinstance(node, ast.Compare):  # 'mkl' in self.current_environ.features
            if any(ast.unparse(side).endswith("features") for side in node.comparators):
                yield from _texts(node.left)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (part[1:] for part in node.value.split() if part.startswith("+"))


def _is_features(node: ast.Assign | ast.AnnAssign) -> bool:
    """Whether it is `features = …` of a class, or `self.features = …`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [ast.unparse(target).rpartition(".")[2] for target in targets]
    return "features" in names


def _texts(node: ast.AST | None) -> Iterator[str]:
    for below in ast.walk(node) if node else ():
        if isinstance(below, ast.Constant) and isinstance(below.value, str):
            yield below.value
