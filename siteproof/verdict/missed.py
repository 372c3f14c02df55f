"""Why a value misses its bound: what differs from the site, or from the other nodes of its job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from siteproof.answers.attempts import SERVICE
from siteproof.collect.derive.host import leaf
from siteproof.record import finding, series
from siteproof.record.finding import Finding, Kind, note
from siteproof.record.grouped import grouped
from siteproof.record.samples import Header, Sample
from siteproof.sites import Site

Job = tuple[str, str, str]  # node, session, job
PARAMETER, PARAMETERS = "HostParameters.mismatch", "HostParameters.mismatches"
MAX_SHOWN = 5  # differing fields, and mismatches, of a node


class Missed:
    """What explains that samples of a site miss their bounds."""

    def __init__(self, site: Site, found: Iterable[Sample]) -> None:
        self._site = site
        self._parameters = grouped(
            (job_of(sample), _parameter(sample))
            for sample in found
            if sample.metric == PARAMETER and "parameter" in sample.dims
        )

    def why(self, sample: Sample) -> tuple[Finding, ...]:
        """The steps of a service that failed, or what else is not as it should be."""
        if sample.why and SERVICE in sample.conditions:
            return (note("{message}", metric=sample.metric, message=sample.why),)
        named = self.parameters(sample)
        more = {"count": len(named) - MAX_SHOWN}
        rest = [finding.of(Kind.FIELDS_DIFFER, more)] if len(named) > MAX_SHOWN else []
        return (*named[:MAX_SHOWN], *rest, *unlike(sample), *self._steered(sample))

    def parameters(self, sample: Sample) -> list[Finding]:
        """The parameters of a node that a count of mismatches, or of one kind of them, is about."""
        check, _, name = sample.metric.partition(".")
        kind = name.removesuffix("mismatches").removesuffix("_")
        if check != PARAMETERS.partition(".")[0] or not name.endswith("mismatches"):
            return []
        of_job = self._parameters.get(job_of(sample), [])
        return [why for why in of_job if kind in ("", leaf(str(why["parameter"])))]

    def _steered(self, sample: Sample) -> Iterator[Finding]:
        """The variables that controlled a library, but for those that the site's own file sets."""
        own = self._set_by_site(sample.header)
        names = {name: name.removeprefix(series.VARIABLE) for name in sample.conditions}
        shown = [
            f"{plain}={sample.conditions[name]}"
            for name, plain in sorted(names.items())
            if name != plain and plain not in own
        ]
        if shown:
            variables = " ".join(shown)
            yield note("measured with {variables}", metric=sample.metric, variables=variables)

    def _set_by_site(self, header: Header) -> set[str]:
        """The words of what the site sets for a partition and an environment."""
        system, texts = self._site.system, list[object]()
        if partition := system.partitions.get(header.partition):
            texts += [partition.variables, partition.prepare_cmds]
        if environment := system.environments.get(header.environment):
            texts += [environment.variables, environment.prepare_cmds, environment.reframe]
        return set(re.findall(r"\w+", str(texts)))


def unlike(sample: Sample) -> Iterator[Finding]:
    """The conditions in which a node differs from most nodes of its job."""
    own, common = series.conditions(sample), sample.header.conditions
    for key in sorted(sample.own_conditions.keys() & common.keys() & own.keys()):
        if own[key] != common[key]:
            details = {"condition": key, "found": own[key], "majority": common[key]}
            yield finding.of(Kind.CONDITION_DIFFERS, details)


def _parameter(sample: Sample) -> Finding:
    found = finding.of(Kind.PARAMETER_DIFFERS, {"parameter": sample.dims["parameter"]})
    return replace(found, check=sample.header.check, metric=PARAMETERS, value=str(sample.value))


def job_of(sample: Sample) -> Job:
    """The job that measured a node: each job has its own parameters."""
    return sample.node, sample.header.session, sample.header.job
