"""Under which conditions each check was run: problem, software, machine, mode, who and when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.report.material import Material
from siteproof.report.phrases import count, few, figure, nodes, period, when
from siteproof.report.sections import Section, Table

HPL = "Hpl"
WORDS = {  # what a reader asks first, in this order, and its name for people
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
    "file_system": "file system",
    "cached": "cached",
}
SHARES = ("memory_share",)  # of 1, told in per cent
MACHINE = {  # of the provenance
    "processor": "processor",
    "kernel": "kernel",
    "slurm": "Slurm",
    "spack": "Spack",
    "software_lock": "software lock",
    "suite": "suite revision",
    "reframe": "ReFrame",
    "user": "measured by",
    "login": "from the login host",
    "source": "source",
    "imported": "imported from",
    "date": "date as published",
}
SEVERAL = 4  # values of a condition that are told one by one
NAMED = 5  # jobs or sessions


def chapter(material: Material) -> Section:
    """HPL's conditions one by one, what all checks share, and a line a check."""
    groups = material.once(_groups)
    shared = _shared(material)
    parts = [
        _hpl(material, key, found, number)
        for number, (key, found) in enumerate(groups.items())
        if key[0] == HPL
    ]
    tables = [Table(("what", "value"), shared, title="Alike in all checks")] if shared else []
    rows = [_line(key, found, dict(shared)) for key, found in groups.items() if key[2] != PUBLISHED]
    columns = ("check", "mode", "environment", "conditions", "nodes", "when", "jobs")
    if rows:
        parts.append(
            Section(
                "conditions-all",
                "All checks",
                f"{count(len(rows), 'check')} by "
                "mode and environment; what all of them share is told above.",
                [Table(columns, rows)],
            )
        )
    return Section(
        "conditions", "Conditions of the measurements", brief(material), tables, sections=parts
    )


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
        return (
            f"HPL gave no value on {nodes({s.node for s in failed if s.node}) or 'any node'} "
            f"({why}), so it has no conditions."
        )
    return f"HPL was not run in what is judged{last}."


def _sentence(found: Sequence[Sample]) -> str:
    """HPL's problem, software and machine."""
    held, head = _values(found), found[-1].header
    if head.mode == PUBLISHED:
        return (
            f"HPL was not run here; its figure is published "
            f"({head.provenance.get('source', 'no source')}), with "
            f"{_listed(held) or 'no condition told'}."
        )
    measured = {s.node for s in found if s.node}
    return (
        f"HPL ({head.mode or 'no mode'}, environment {head.environment}) ran on "
        f"{count(len(measured), 'node')} with {_listed(held) or 'no condition recorded'}; "
        f"{period([s.header.time for s in found])}."
    )


def _listed(held: Mapping[str, Mapping[str, Collection[str]]]) -> str:
    names = [name for name in WORDS if name in held and name != "blas_library"]
    return ", ".join(f"{WORDS[name]} {_told(name, held[name])}" for name in names)


def _groups(material: Material) -> Mapping[tuple[str, str, str], Sequence[Sample]]:
    """The good samples of each check, environment and mode; HPL's first.

    What others have published has few conditions, which its own chapter tells.
    """
    held: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in material.good:
        head = sample.header
        if head.mode == PUBLISHED and head.check != HPL:
            continue
        held.setdefault((head.check, head.environment, head.mode), []).append(sample)
    return dict(sorted(held.items(), key=lambda item: (item[0][0] != HPL, item[0])))


def _hpl(
    material: Material, key: tuple[str, str, str], found: Sequence[Sample], number: int
) -> Section:
    """HPL: a line a condition."""
    check, environment, mode = key
    rows = [
        *_conditions(found),
        *_machine(found),
        ("mode", mode or "none"),
        ("environment", _environment(material, environment)),
        ("nodes", _nodes(found)),
        ("when", period([s.header.time for s in found])),
        ("jobs", _jobs(found)),
    ]
    lead = f"{count(len(found), 'value')} of {few(sorted({s.metric for s in found}), NAMED)}."
    return Section(
        f"conditions-{number}",
        f"{check} ({mode or 'no mode'}, {environment})",
        lead,
        [Table(("condition", "value"), rows)],
    )


def _line(
    key: tuple[str, str, str], found: Sequence[Sample], shared: Mapping[str, str]
) -> tuple[str, ...]:
    """One check in a line, without what all share."""
    check, environment, mode = key
    own = [*_conditions(found), *(item for item in _machine(found) if item[0] not in shared)]
    return (
        check,
        mode or "none",
        environment,
        "; ".join(f"{name} {told}" for name, told in own) or "-",
        _nodes(found),
        period([s.header.time for s in found]),
        _jobs(found),
    )


def _shared(material: Material) -> list[tuple[str, str]]:
    """What is the same in every check: suite, who measured, kernel and the like."""
    groups = material.once(_groups)
    held = [dict(_machine(found)) for found in groups.values()]
    rows = [
        (name, told)
        for name, told in (held[0] if held else {}).items()
        if all(other.get(name) == told for other in held)
    ]
    modes, names = {mode or "none" for _, _, mode in groups}, {name for _, name, _ in groups}
    rows += [("mode", next(iter(modes)))] if len(modes) == 1 else []
    return rows + [("environment", _environment(material, name)) for name in sorted(names)]


def _conditions(found: Sequence[Sample]) -> list[tuple[str, str]]:
    held = _values(found)
    ordered = [name for name in WORDS if name in held] + sorted(held.keys() - WORDS)
    return [(WORDS.get(name, name.replace("_", " ")), _told(name, held[name])) for name in ordered]


def _machine(found: Sequence[Sample]) -> list[tuple[str, str]]:
    """What the headers say beside the conditions."""
    heads = _heads(found)
    return [
        (words, few(told, SEVERAL, "; "))
        for name, words in MACHINE.items()
        if (told := sorted({h.provenance[name] for h in heads if name in h.provenance}))
    ]


def _heads(found: Sequence[Sample]) -> list[Header]:
    return list({id(s.header): s.header for s in found}.values())


def _environment(material: Material, name: str) -> str:
    described = material.site.system.environments.get(name)
    return f"{name}: {described.description}" if described else name


def _nodes(found: Sequence[Sample]) -> str:
    measured = sorted({s.node for s in found if s.node})
    return f"{len(measured)}: {nodes(measured)}" if measured else "none of its own"


def _jobs(found: Sequence[Sample]) -> str:
    heads = _heads(found)
    jobs = count(len({(h.session, h.job) for h in heads}), "job")
    return f"{jobs} of {few(sorted({h.session for h in heads}), SEVERAL)}"


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
    return few(
        [f"{text} ({nodes(n for n in names if n) or 'the system'})" for text, names in ranked],
        SEVERAL,
        "; ",
    )


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
