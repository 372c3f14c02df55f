"""Under which conditions each check was run: problem, software, machine, mode, who and when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from siteproof.analysis.verdict import PUBLISHED
from siteproof.report.material import Material
from siteproof.report.model import Section, Table
from siteproof.report.words import count, few, figure, nodes, period, when
from siteproof.samples import Sample

HPL = "Hpl"
WORDS = {  # what a reader asks first, in this order, and its name for people
    "n": "problem size N", "nb": "block size NB", "p": "process rows P", "q": "process columns Q",
    "memory_share": "share of the memory that the problem takes", "program": "program",
    "version": "version", "ranks": "ranks", "threads": "threads", "blas": "BLAS",
    "blas_version": "BLAS version", "blas_kernel": "BLAS kernel", "blas_library": "BLAS library",
    "mpi": "MPI", "swap": "swap used", "file_system": "file system", "cached": "cached",
}
SHARES = ("memory_share",)  # of 1, told in per cent
MACHINE = {  # of the provenance
    "processor": "processor", "kernel": "kernel", "slurm": "Slurm", "spack": "Spack",
    "software_lock": "software lock", "suite": "suite revision", "reframe": "ReFrame",
    "user": "measured by", "login": "from the login host", "source": "source",
    "imported": "imported from", "date": "date as published",
}
SEVERAL = 4  # values of a condition that are told one by one
NAMED = 5  # jobs or sessions


def chapter(material: Material) -> Section:
    """A table a check, that of HPL first."""
    groups = material.once(_groups)
    parts = [_check(material, key, found, number) for number, (key, found)
             in enumerate(groups.items())]
    return Section("conditions", "Conditions of the measurements", brief(material), sections=parts)


def brief(material: Material) -> str:
    """The conditions under which HPL was run, in a sentence."""
    found = [held for (check, *_), held in material.once(_groups).items() if check == HPL]
    if not found:
        return _never(material)
    return " ".join(_sentence(held) for held in found)


def _never(material: Material) -> str:
    heads = [h for h in material.sessions.headers if h.check == HPL]
    times = [h.time for h in heads if h.mode != PUBLISHED]
    last = f"; the last time was {when(max(times))}" if times else ", and never before"
    last += ", beside published figures" if len(times) < len(heads) else ""
    failed = [s for s in material.judged.samples if s.header.check == HPL]
    if failed:
        why = f"{failed[-1].status}: {failed[-1].why}".removesuffix(": ")
        return (f"HPL gave no value on {nodes({s.node for s in failed if s.node}) or 'any node'} "
                f"({why}), so it has no conditions.")
    return f"HPL was not run in what is judged{last}."


def _sentence(found: Sequence[Sample]) -> str:
    """HPL's problem, software and machine."""
    held, head = _values(found), found[-1].header
    if head.mode == PUBLISHED:
        return (f"HPL was not run here; its figure is published "
                f"({head.provenance.get('source', 'no source')}), with "
                f"{_listed(held) or 'no condition told'}.")
    measured = {s.node for s in found if s.node}
    return (f"HPL ({head.mode or 'no mode'}, environment {head.environment}) ran on "
            f"{count(len(measured), 'node')} with {_listed(held) or 'no condition recorded'}; "
            f"{period([s.header.time for s in found])}.")


def _listed(held: Mapping[str, Mapping[str, Collection[str]]]) -> str:
    names = [name for name in WORDS if name in held and name != "blas_library"]
    return ", ".join(f"{WORDS[name]} {_told(name, held[name])}" for name in names)


def _groups(material: Material) -> Mapping[tuple[str, str, str], Sequence[Sample]]:
    """The good samples of each check, environment and mode; HPL's first."""
    held: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in material.good:
        head = sample.header
        held.setdefault((head.check, head.environment, head.mode), []).append(sample)
    return dict(sorted(held.items(), key=lambda item: (item[0][0] != HPL, item[0])))


def _check(
    material: Material, key: tuple[str, str, str], found: Sequence[Sample], number: int
) -> Section:
    """One check: its conditions, and whose figures they are."""
    check, environment, mode = key
    held = _values(found)
    ordered = [name for name in WORDS if name in held] + sorted(held.keys() - WORDS)
    rows = [(WORDS.get(name, name.replace("_", " ")), _told(name, held[name]))
            for name in ordered]
    heads = list({id(s.header): s.header for s in found}.values())
    for name, words in MACHINE.items():
        if told := sorted({h.provenance[name] for h in heads if name in h.provenance}):
            rows.append((words, few(told, SEVERAL, "; ")))
    described = material.site.system.environments.get(environment)
    measured = sorted({s.node for s in found if s.node})
    jobs = f"{count(len({(h.session, h.job) for h in heads}), 'job')} of " \
           f"{few(sorted({h.session for h in heads}), NAMED)}"
    rows += [
        ("mode", mode or "none"),
        ("environment", f"{environment}: {described.description}" if described else environment),
        ("nodes", f"{len(measured)}: {nodes(measured)}" if measured else "none of its own"),
        ("when", period([h.time for h in heads])), ("jobs", jobs),
    ]
    lead = f"{count(len(found), 'value')} of {few(sorted({s.metric for s in found}), NAMED)}."
    return Section(f"conditions-{number}", f"{check} ({mode or 'no mode'}, {environment})", lead,
                   [Table(("condition", "value"), rows)])


def _values(found: Iterable[Sample]) -> Mapping[str, Mapping[str, Collection[str]]]:
    """Of each condition the values, and of each value the nodes; what a sweep varied is none."""
    held: dict[str, dict[str, set[str]]] = {}
    for sample in found:
        for name, text in sample.conditions.items():
            if name not in ("mode", PUBLISHED) and name not in sample.dims:
                held.setdefault(name, {}).setdefault(text, set()).add(sample.node)
    return held


def _told(name: str, values: Mapping[str, Collection[str]]) -> str:
    """The value; of several each with its nodes; of many figures the least and the largest."""
    told = {_text(name, value): names for value, names in values.items()}
    if len(told) == 1:
        return next(iter(told))
    if len(told) > SEVERAL and (range_ := _range(values)):
        low, high = (_text(name, text) for text in range_)
        return f"{low} to {high} ({len(values)} values)"
    ranked = sorted(told.items(), key=lambda item: -len(item[1]))
    return few([f"{text} ({nodes(n for n in names if n) or 'the system'})"
                for text, names in ranked], SEVERAL, "; ")


def _text(name: str, value: str) -> str:
    try:
        return figure(100 * float(value), "%") if name in SHARES else value or "empty"
    except ValueError:
        return value


def _range(values: Iterable[str]) -> tuple[str, str] | None:
    try:
        ranked = sorted(values, key=Decimal)
    except InvalidOperation:
        return None
    return ranked[0], ranked[-1]
