"""Comparable settings of a system's jobs: which of them are new, and wait for a person.

The past of a node begins with the last job that a person accepted, or with its first one. Where
threads, ranks or sizes are not as they were there, its values are compared with no older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from siteproof.record import series
from siteproof.record.grouped import grouped
from siteproof.record.samples import PUBLISHED, Header, Sample, expected_nodes

Place = tuple[object, ...]  # check, environment, mode and where: what may be compared


class Settings:
    """The settings of all jobs. accepted: the sessions that a person accepted."""

    def __init__(self, headers: Iterable[Header], accepted: Collection[str] = ()) -> None:
        self._accepted = accepted
        self._of_nodes: dict[Place, dict[str, list[Header]]] = {}
        ordered = sorted(filter(_counts, headers), key=lambda header: header.job_order)
        found = grouped((_place(header, header.conditions), header) for header in ordered)
        self._jobs = {place: _with_settings(jobs) for place, jobs in found.items()}
        self._varying = {place for place, jobs in self._jobs.items() if _vary(jobs)}

    def changed(self, sample: Sample, nodes: Sequence[str]) -> dict[str, str]:
        """Each setting that is not as it was where the past of a unit begins, as `64 -> 32`.

        nodes: those of the unit. What differs within a session is a point, and no change.
        """
        place = _place(sample.header, sample.conditions)
        if place not in self._varying and not sample.own_conditions:
            return {}  # as nearly always
        own = series.settings(sample.conditions)
        found = [
            {} if job.session == sample.header.session else series.differences(job.conditions, own)
            for job in self._begin(sample, nodes)
        ]
        return min(found, key=len, default={})

    def is_accepted(self, sample: Sample, nodes: Sequence[str]) -> bool:
        """Whether a person accepted a job of the unit that has these settings."""
        first = self._begin(sample, nodes)
        return any(job.session in self._accepted for job in first) and not self.changed(
            sample, nodes
        )

    def _begin(self, sample: Sample, nodes: Sequence[str]) -> Sequence[Header]:
        """The jobs of the session in which the past of a unit begins."""
        place = _place(sample.header, sample.conditions)
        if place not in self._jobs or not _counts(sample.header):
            return ()
        jobs = self._by_node(place).get(nodes[0], ()) if nodes else self._jobs[place]
        if len(nodes) > 1:
            jobs = [job for job in jobs if expected_nodes(job.expected).issuperset(nodes)]
        if not jobs:
            return ()
        accepted = (job for job in reversed(jobs) if job.session in self._accepted)
        first = next(accepted, jobs[0]).session
        return [job for job in jobs if job.session == first]

    def _by_node(self, place: Place) -> Mapping[str, list[Header]]:
        if place not in self._of_nodes:
            self._of_nodes[place] = grouped(
                (node, job) for job in self._jobs[place] for node in expected_nodes(job.expected)
            )
        return self._of_nodes[place]

    def newest(
        self, nodes: Collection[str], wanted: Callable[[Header], bool], alone: Collection[str]
    ) -> Iterator[Mapping[str, Header]]:
        """For each place the newest job that had to measure each of these nodes, if it counts.

        A quick job does not where a newer one of a stricter mode is there. Not where all settings
        are alike. wanted: which jobs. alone: the checks of which nodes have settings of their own.
        """
        found: dict[Place, dict[str, Header]] = {}
        for place, jobs in self._jobs.items():
            newest = found[place] = {}
            left = set(nodes)
            for job in filter(wanted, reversed(jobs)):
                newest |= dict.fromkeys(own := left & expected_nodes(job.expected), job)
                left -= own
        for place, newest in found.items():
            check, environment, _, *where = place
            if place not in self._varying and check not in alone:
                continue  # as nearly always
            stricter = found.get((check, environment, series.CONTRACTUAL[0], *where), {})
            yield {
                node: job
                for node, job in newest.items()
                if stricter.get(node, job).job_order <= job.job_order
            }


def _with_settings(jobs: Sequence[Header]) -> list[Header]:
    """Those with most of the settings: one that failed has only what was requested."""
    known = [len(series.settings(job.conditions)) for job in jobs]
    return [job for job, count in zip(jobs, known, strict=True) if 2 * count > max(known)]


def _vary(jobs: Sequence[Header]) -> bool:
    seen: dict[str, str] = {}
    for job in jobs:
        own = series.settings(job.conditions)
        if series.differences(seen, own):
            return True
        seen |= own
    return False


def _counts(header: Header) -> bool:
    """Whether it is a job of a check with its own settings: a sweep varies them."""
    return header.owes_lines and not header.is_unread and header.mode != PUBLISHED


def _place(header: Header, conditions: Mapping[str, str]) -> Place:
    mode = series.CONTRACTUAL[0] if header.mode in series.CONTRACTUAL else header.mode
    where = [(key, conditions.get(key)) for key in series.PLACES if key != "mode"]
    return header.check, header.environment, mode, *where
