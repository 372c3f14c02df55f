"""What jobs may have answered whose files cannot be read: nobody knows how they ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from siteproof.record.samples import LOST, UNREAD, Header, Sample, expected_nodes
from siteproof.record.sessions import Sessions
from siteproof.sites import Site


def of_system(site: Site, sessions: Sessions) -> dict[str, list[Sample]]:
    """For each such job, by `file_of`: a sample of each node, and one of all else."""
    return {file_of(header): _of_job(site, header) for header in sessions.unread}


def of_job(
    unread: Mapping[str, Sequence[Sample]], sessions: Sessions, job: Header, nodes: Collection[str]
) -> Sequence[Sample]:
    """The samples of one job, at least those of some nodes. unread: as of `of_system`."""
    return unread[file_of(job)] if job.is_unread else sessions.of_job(job, nodes)


def file_of(header: Header) -> str:
    """The file of such a job, below the system's folder."""
    return f"{header.partition}/{header.provenance[UNREAD]}"


def _of_job(site: Site, header: Header) -> list[Sample]:
    partition = site.system.partitions.get(header.partition)
    nodes = site.having(partition.roles) if partition else site.system.inventory
    why = f"{header.provenance[UNREAD]} cannot be read"
    return [
        Sample(header, node, f"{header.check}.*", status=LOST, why=why)
        for node in ("", *(expected_nodes(header.expected) or nodes))
    ]
