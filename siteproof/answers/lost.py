"""What jobs may have answered whose files cannot be read: nobody knows how they ended."""

from __future__ import annotations

from collections.abc import Collection

from siteproof.record.samples import LOST, UNREAD, Header, Sample, expected_nodes
from siteproof.record.sessions import Sessions
from siteproof.sites import Site


def of_system(site: Site, sessions: Sessions) -> dict[str, list[Sample]]:
    """For each such job, by `file_of`: a sample of each node, and one of all else."""
    return {file_of(header): _of_job(site, header) for header in sessions.unread}


def file_of(header: Header) -> str:
    """The file of such a job, below the system's folder."""
    return f"{header.partition}/{header.provenance[UNREAD]}"


def with_unknown(metrics: Collection[str], samples: list[Sample]) -> list[Sample]:
    """Samples, of which those of metrics that no check yields say nothing but that one is lost."""
    known = {sample.metric for sample in samples} & set(metrics)
    if all(sample.metric in known or _is_failure(sample) for sample in samples):
        return samples
    return [
        sample if sample.metric in known or _is_failure(sample) else _unknown(sample)
        for sample in samples
    ]


def _is_failure(sample: Sample) -> bool:
    """Whether it is that of a check as a whole, or of a test whose metrics no catalogue names."""
    return sample.metric.endswith(".*") or sample.header.is_plain


def _unknown(sample: Sample) -> Sample:
    check, why = sample.header.check, f"{sample.metric} is no metric of {sample.header.check}"
    return Sample(sample.header, sample.node, f"{check}.*", status=LOST, why=why)


def _of_job(site: Site, header: Header) -> list[Sample]:
    partition = site.system.partitions.get(header.partition)
    nodes = site.having(partition.roles) if partition else site.system.inventory
    why = f"{header.provenance[UNREAD]} cannot be read"
    return [
        Sample(header, node, f"{header.check}.*", status=LOST, why=why)
        for node in ("", *(expected_nodes(header.expected) or nodes))
    ]
