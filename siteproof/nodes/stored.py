"""What a node's state needs of older jobs: few files are read, many come from the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from siteproof.record import value_table
from siteproof.record.campaign import Wanted
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.record.value_table import NO_VALUES, ValueTable
from siteproof.sites import Site

MANY_BYTES = 8_000_000  # of files: reading them takes longer than to start DuckDB


def values(
    site: Site, sessions: Sessions, wanted: Wanted, metrics: Mapping[str, str]
) -> ValueTable:
    """The values of some jobs. metrics: those that count, each with its unit."""
    jobs, table, there = _many(sessions, wanted), NO_VALUES, set[str]()
    if jobs:
        # DuckDB takes longer to import than few files to read.
        from siteproof.history import values as store

        table, there = store.read(sessions.perflogs, site, jobs, metrics)
    return table.plus(value_table.of_samples(_others(sessions, wanted, jobs, there), metrics))


def failures(site: Site, sessions: Sessions, wanted: Wanted) -> list[Sample]:
    """The samples without a value of some jobs."""
    jobs, found, there = _many(sessions, wanted), list[Sample](), set[str]()
    if jobs:
        from siteproof.history import values as store

        found, there = store.failures(sessions.perflogs, site, jobs)
    others = _others(sessions, wanted, jobs, there)
    return found + [sample for sample in others if sample.status != "ok"]


def _many(sessions: Sessions, wanted: Wanted) -> Mapping[str, Header]:
    """Some jobs, by their files below perflogs, if these are many."""
    paths = sessions.paths(wanted)
    if sum(map(_size, paths)) <= MANY_BYTES:
        return {}
    return {path.relative_to(sessions.perflogs).as_posix(): h for path, h in paths.items()}


def _others(
    sessions: Sessions, wanted: Wanted, jobs: Mapping[str, Header], there: set[str]
) -> list[Sample]:
    """The samples of the jobs that the store does not have as they count."""
    stored = {id(header) for file, header in jobs.items() if file in there}
    return sessions.of(lambda h: wanted(h) and id(h) not in stored, needed=False)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # its reader names the reason
