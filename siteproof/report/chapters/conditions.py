"""Under which conditions each check was run: problem, software, machine, mode, who and when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation

from siteproof.record.pair_units import grouped
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, few, nodes, period, when
from siteproof.units import count
from siteproof.wording.findings import quantity

HPL = "Hpl"
WORDS = {  # conditions in the order of the page, and their names for people
    "n": "problem size N",
    "nb": "block size NB",
    "p": "process rows P",
    "q": "process columns Q",
    "memory_share": "share of the memory that the problem takes",
    "program": "program",
    "version": "version",
    "ranks": "ranks",
    "threads": "threads",
    "blas": "BLAS",
    "blas_version": "BLAS version",
    "blas_kernel": "BLAS kernel",
    "blas_library": "BLAS library",
    "mpi": "MPI",
    "swap": "swap used",
}
SHARES = ("memory_share",)  # of 1, shown in per cent
MACHINE = {  # of the provenance
    "processor": "processor",
    "kernel": "kernel",
    "slurm": "Slurm",
    "spack": "Spack",
    "software_lock": "software lock",
    "modules": "modules loaded",
    "suite": "suite revision",
    "reframe": "ReFrame",
    "user": "measured by",
    "login": "from the login host",
    "source": "source",
    "imported": "imported from",
    "date": "date as published",
}
MAX_VALUES = 4  # of a condition
MAX_SESSIONS = 4  # sessions
COLUMNS = ("check", "mode", "environment", "conditions", "nodes", "when", "jobs")

Group = tuple[str, str, str]  # check, environment, mode
Values = Mapping[str, Mapping[str, Collection[str]]]  # of each condition its values with nodes


def chapter(material: Material) -> Section:
    """What all checks share, then a row for each check with its own conditions, HPL first."""
    shared = _shared(material)
    groups = material.once(_groups).items()
    rows = [_row(group, found, shared) for group, found in groups if group[2] != PUBLISHED]
    tables = (
        Table(("what", "value"), shared, title="The same in all checks"),
        Table(COLUMNS, rows, title="Each check, by mode and environment"),
    )
    return Section("conditions", "Conditions of the measurements", brief(material), tables)


def brief(material: Material) -> str:
    """The conditions under which HPL was run, in a sentence."""
    groups = material.once(_groups).items()
    texts = [_sentence(found) for (check, *_), found in groups if check == HPL]
    failed = [s for s in material.judged.samples if s.header.check == HPL]
    if not texts and failed:
        why = ": ".join(filter(None, (failed[-1].status, failed[-1].why)))
        names = nodes({s.node for s in failed} - {""})
        return f"HPL gave no value{f' on {names}' if names else ''}: {why}."
    heads = [h for h in material.sessions.headers if h.check == HPL and h.mode != PUBLISHED]
    last = when(max(h.time for h in heads)) if heads else "never"
    return " ".join(texts) or f"HPL was not run in what is judged; the last run: {last}."


def _sentence(found: Sequence[Sample]) -> str:
    """HPL's problem, software and machine."""
    head, named = found[-1].header, {*WORDS.values()} - {WORDS["blas_library"]}
    texts = [f"{name} {value}" for name, value in _conditions(found) if name in named]
    listed = ", ".join(texts) or "no recorded condition"
    if head.mode == PUBLISHED:
        source = head.provenance.get("source", "no source")
        return f"HPL was not run here; its value is published ({source}), with {listed}."
    return (
        f"HPL ({head.mode or 'no mode'}, environment {head.environment}) ran on "
        f"{count(len({s.node for s in found} - {''}), 'node')} with {listed}; "
        f"{period([s.header.time for s in found])}."
    )


def _groups(material: Material) -> Mapping[Group, Sequence[Sample]]:
    """The good samples of each check, environment and mode; HPL's first.

    Published values have few conditions, which are in their own chapter; HPL's are here, too.
    """
    groups = grouped(
        ((s.header.check, s.header.environment, s.header.mode), s)
        for s in material.good
        if s.header.check == HPL or s.header.mode != PUBLISHED
    )
    return dict(sorted(groups.items(), key=lambda item: (item[0][0] != HPL, item[0])))


def _row(key: Group, found: Sequence[Sample], shared: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """One check, without what all share."""
    check, environment, mode = key
    own = [*_conditions(found), *(item for item in _machine(found) if item not in shared)]
    heads, measured = _heads(found), {s.node for s in found} - {""}
    jobs = count(len({(h.session, h.job) for h in heads}), "job")
    return (
        check,
        mode or "none",
        environment,
        "; ".join(f"{name} {value}" for name, value in own) or "-",
        f"{len(measured)}: {nodes(measured)}" if measured else "none of its own",
        period([h.time for h in heads]),
        f"{jobs} of {few(sorted({h.session for h in heads}), MAX_SESSIONS)}",
    )


def _shared(material: Material) -> list[tuple[str, str]]:
    """What is the same in every check: suite, who measured, kernel and the like."""
    groups = material.once(_groups)
    if not groups:
        return []
    first, *others = (_machine(found) for found in groups.values())
    rows = [row for row in first if all(row in other for other in others)]
    known = material.site.system.environments
    for name in sorted({environment for _, environment, _ in groups}):
        words = f"{name}: {known[name].description}" if name in known else name
        rows.append(("environment", words))
    return rows


def _conditions(found: Sequence[Sample]) -> list[tuple[str, str]]:
    values = _values(found)
    ordered = [name for name in WORDS if name in values] + sorted(values.keys() - WORDS)
    return [
        (WORDS.get(name, name.replace("_", " ")), _shown(name, values[name])) for name in ordered
    ]


def _machine(found: Sequence[Sample]) -> list[tuple[str, str]]:
    """What the headers say in addition to the conditions."""
    heads, rows = _heads(found), []
    for name, words in MACHINE.items():
        values = sorted({h.provenance[name] for h in heads if name in h.provenance})
        if values:
            rows.append((words, few(values, MAX_VALUES, "; ")))
    return rows


def _heads(found: Sequence[Sample]) -> list[Header]:
    return list({id(s.header): s.header for s in found}.values())


def _values(found: Iterable[Sample]) -> Values:
    """Of each condition the values with their nodes; what a sweep varied is no condition."""
    values: dict[str, dict[str, set[str]]] = {}
    for sample in found:
        for name in sample.conditions.keys() - sample.dims.keys() - {"mode", PUBLISHED}:
            nodes_of = values.setdefault(name, {})
            nodes_of.setdefault(sample.conditions[name], set()).add(sample.node)
    return values


def _shown(name: str, values: Mapping[str, Collection[str]]) -> str:
    """The value; of several each with its nodes; of many numbers the least and the largest."""
    if len(values) == 1:
        return _text(name, next(iter(values)))
    if len(values) > MAX_VALUES:
        with suppress(InvalidOperation):
            low, *_, high = sorted(values, key=Decimal)
            return f"{_text(name, low)} to {_text(name, high)} ({len(values)} values)"
    parts = []
    for value, names in sorted(values.items(), key=lambda item: -len(item[1])):
        where = nodes(set(names) - {""}) or "the system"
        parts.append(f"{_text(name, value)} ({where})")
    return few(parts, MAX_VALUES, "; ")


def _text(name: str, value: str) -> str:
    if name in SHARES:
        with suppress(ValueError):
            return quantity(100 * float(value), "%")
    return value or "empty"
