"""Figures that others have published, as samples: one file a campaign, date and check.

They are marked by their mode, `published`, and by the condition of the same name: the kind of the
value. They can show that a criterion is missed, never that one is met
(answers/published_values.py).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import chain, count
from pathlib import Path

from siteproof import files, sites, units
from siteproof.errors import UserError, UserErrors
from siteproof.record import samples
from siteproof.record.pair_units import LINK, PEER
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.sites import published_csv, site_tables
from siteproof.sites.calendar_csv import period
from siteproof.sites.lint import Around, reference
from siteproof.sites.published_csv import Published
from siteproof.sites.schema import yamlfile
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site import SYSTEM

_BREAKS = re.compile(r"[^A-Za-z0-9_-]+")  # what no job's name has


class State(StrEnum):
    """What an import did with a file below perflogs; the value is what the command prints."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "unchanged"
    OBSOLETE = "no longer in the CSV, remove it by hand"


MADE = (State.NEW, State.CHANGED, State.SAME)


def read(path: Path, system: str = "") -> dict[int, Published]:
    """The figures of a file by their line, of one system or of all. Raises UserErrors."""
    document, rows = site_tables.read(path, Published)
    by_system: dict[str, dict[int, Published]] = {}
    for line, row in rows.items():
        reference(document, (line, "system"), row.system, "system", sites.names())
        by_system.setdefault(row.system, {})[line] = row
    if system:
        rows = by_system.get(system, {})
        if not rows and not document.mistakes:
            document.add((), f"no value of {system}", sorted(by_system))
    elif not rows and not document.mistakes:
        document.add((), "no value", hint="Add a line below that of the columns")
    for name in by_system.keys() & set(sites.names()):
        _lint(document, by_system[name], name)
    if document.mistakes:
        raise UserErrors(document.sorted_mistakes())
    return rows


def _lint(document: Document, rows: dict[int, Published], name: str) -> None:
    site = sites.load(name)
    around = Around(site.catalogue, site.system, yamlfile.read(site.folder / SYSTEM))
    for line, row in rows.items():
        row.lint(document, line, around, rows.values())


def keep(path: Path, rows: Iterable[Published], perflogs: Path) -> tuple[int, dict[Path, State]]:
    """Write the figures of a file below perflogs; how many they are, and what became of each file.

    Raises OSError, UserError. Each file is written whole or not at all. An import that was cut
    short is completed by the next one, and one that has been done before changes nothing.
    """
    made = list(_samples(path, rows))
    for head, found in made:
        _refuse_twice(path, head, found, perflogs)
    done = {}
    for head, found in made:
        target = samples.path_of(perflogs, head)
        done[target] = _write(target, samples.dump(head, found), perflogs)
    obsolete = dict.fromkeys(_obsolete(path, done.keys()), State.OBSOLETE)
    return sum(len(found) for _, found in made), done | obsolete


def _write(target: Path, text: bytes, perflogs: Path) -> State:
    """Write a file, unless an earlier import has. Raises OSError, UserError."""
    state = State.NEW
    if files.exists(target):
        state = State.CHANGED
        if files.read(target, below=perflogs, limit=files.SAMPLES) == text:
            return State.SAME
    files.write(target, text, below=perflogs)
    return state


def _refuse_twice(path: Path, head: Header, found: Iterable[Sample], perflogs: Path) -> None:
    """A figure under two files' names would be two values, and one value is no repetition."""
    target = samples.path_of(perflogs, head)
    keys = {_key(sample) for sample in found}
    for file in sorted(set(target.parent.glob(f"{head.session}.{head.check}.*.jsonl")) - {target}):
        for one in samples.read(file):
            if one.header.mode == PUBLISHED and _key(one) in keys:
                what = f"{one.metric} of {head.campaign or head.time} was imported before, from"
                raise UserError(
                    path,
                    f"{what} {one.header.provenance.get('imported')}",
                    hint=f"Import the file under that name, or remove {file}",
                )


def _key(sample: Sample) -> tuple[object, ...]:
    _, _, *place = sample.key  # without session and job
    conditions = tuple(sorted(sample.own_conditions.items()))
    return (*place, sample.value, sample.unit, sample.status, conditions)


def _samples(path: Path, rows: Iterable[Published]) -> Iterator[tuple[Header, list[Sample]]]:
    """Each file's header and samples."""
    files: dict[tuple[str, str, str, str], list[Published]] = {}
    order: dict[tuple[str, date], dict[str, int]] = {}  # a day's campaigns, as the file has them
    for row in rows:
        check = row.metric.partition(".")[0]
        files.setdefault((row.system, row.campaign, row.date, check), []).append(row)
        day = order.setdefault((row.system, period(row.date)[1]), {})
        day.setdefault(row.campaign, len(day))
    for (system, campaign, days, check), found in files.items():
        after = order[system, period(days)[1]][campaign]
        head = _header(path, check, found, timedelta(seconds=after))
        taken, free = defaultdict[object, set[int]](set), defaultdict[object, Iterator[int]](count)
        kept = []
        for row in sorted(found, key=lambda row: row.trial is None):  # those with a place first
            for sample in _of_row(head, row):
                trial = _trial(row.trial, taken[sample.key], free[sample.key])
                kept.append(replace(sample, trial=trial))
        yield head, kept


def _trial(stated: int | None, taken: set[int], free: Iterator[int]) -> int:
    """The trial that the source gives, or the next one, as two figures may not share one."""
    wanted = [stated - 1] if stated else []
    trial = next(trial for trial in chain(wanted, free) if trial not in taken)
    taken.add(trial)
    return trial


def _header(path: Path, check: str, rows: Sequence[Published], after: timedelta) -> Header:
    """What a file's samples share. after: how long after midnight, to keep the file's order."""
    first, last = period(rows[0].date)
    campaign = rows[0].campaign
    provenance = {
        "imported": path.name,
        "date": rows[0].date,
        "source": "; ".join(dict.fromkeys(r.source for r in rows)),
    }
    return Header(
        session=f"{first:%Y%m%d}T000000Z-{campaign or PUBLISHED}",
        system=rows[0].system,
        partition=PUBLISHED,
        environment=PUBLISHED,
        check=check,
        job=_BREAKS.sub("-", path.stem),
        time=(datetime.combine(last, time.min, UTC) + after).isoformat(),
        mode=PUBLISHED,
        campaign=campaign,
        provenance={key: text for key, text in provenance.items() if text},
    )


def _of_row(head: Header, row: Published) -> Iterator[Sample]:
    """A figure is one sample, a range are two: its ends; a failure is one without a value."""
    conditions, dims = dict(row.conditions), {}
    if row.peer:
        dims[PEER] = row.peer
    elif not row.node and LINK in conditions:  # of the link as a whole, as our own samples say it
        dims[LINK] = conditions.pop(LINK)
    bare = Sample(
        head,
        row.node,
        row.metric,
        unit=row.unit,
        dims=dims,
        own_conditions={**conditions, PUBLISHED: row.statistic},
        why=row.note,
    )
    if row.status != "ok":
        printed_as = f"printed as '{row.value}'" if row.value else ""
        why = "; ".join(filter(None, (printed_as, row.note)))
        yield replace(bare, unit="", status=row.status, why=why)
    elif units.kind(row.unit) == "text":
        yield replace(bare, value=row.value)
    else:
        for digits, stated in published_csv.parts(row.value):
            own = {**bare.own_conditions, **({published_csv.STATED: stated} if stated else {})}
            yield replace(bare, value=Decimal(digits), own_conditions=own)


def _obsolete(path: Path, kept: Set[Path]) -> list[Path]:
    """Files of an earlier import of such a file, which no line of it yields any more.

    kept: those that it yields, in the systems that it covers.
    """
    near = {file for target in kept for file in target.parent.glob("[!.]*.jsonl")}
    return sorted(
        file
        for file in near - kept
        if any(s.header.provenance.get("imported") == path.name for s in samples.read(file)[:1])
    )
