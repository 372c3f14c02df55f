"""The values that the verdicts rest on, by criterion and by node, with the jobs and their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from siteproof.answers.criterion import CriterionVerdict
from siteproof.record.finding import RANKS, Verdict
from siteproof.record.pair_units import ends, grouped
from siteproof.report import value_tables
from siteproof.report.material import Material
from siteproof.report.sections import NOTHING, Link, Section, Table, anchor, few, to_rows, when
from siteproof.units import count, with_unit

JOBS = ("job", "session", "check", "ended", "file below perflogs", "SHA-256")  # recompute.py reads
MAX_UNITS = 400  # of a criterion, the most severe verdicts first
MAX_VALUES = 3  # of a unit in a cell
MAX_OF_NODE = 40  # values in a cell
MAX_NODES = 2000
MAX_JOBS_OF_UNIT = 8
NOTE = "samples.csv, below, has every value with all of its jobs."
Given = Mapping[str, Any]
Units = Mapping[tuple[str, str], Sequence[Given]]  # by criterion and unit


def chapter(material: Material) -> Section | None:
    """A table for each criterion, one of the nodes, and one of the jobs; None without a sample."""
    values = material.once(of_units)
    jobs = material.once(value_tables.rows_of)["jobs"]
    if not jobs:
        return None
    verdicts = {
        (one["criterion"], one["unit"]): str(one["stated"] or NOTHING)
        for one in material.once(value_tables.rows_of)["units"]
    }
    title = f"Jobs with their files ({len(jobs)})"
    ids = [anchor("job", str(job["job"])) for job in jobs]
    found = [Table(JOBS, list(map(_job, jobs)), NOTE, title=title, ids=ids)]
    found += [_of_criterion(material, one, verdicts, values) for one in material.judged.verdicts]
    found.append(_of_nodes(material, verdicts, values))
    lead = (
        f"Each verdict rests on values of {count(len(jobs), 'job')}. A criterion and a node lead "
        "to their values, a value to its job, and a job to its file."
    )
    return Section("samples", "Samples", lead, found)


def of_units(material: Material) -> dict[tuple[str, str], list[Given]]:
    """The samples on which the verdict on each unit rests."""
    samples = material.once(value_tables.rows_of)["samples"]
    return grouped(((row["criterion"], row["unit"]), row) for row in samples)


def jobs_of(material: Material, samples: Iterable[Given]) -> list[tuple[str, str]]:
    """The jobs of some samples by their ids in Slurm, with where they are on the page."""
    ids = material.once(_ids)
    numbers = sorted({int(one["job"]) for one in samples})
    return [(ids[number], anchor("job", str(number))) for number in numbers]


def _ids(material: Material) -> dict[int, str]:
    return {int(job["job"]): str(job["id"]) for job in material.once(value_tables.rows_of)["jobs"]}


def _job(job: Given) -> tuple[str, ...]:
    file, digest = str(job["file"]) or NOTHING, job["sha256"] or NOTHING
    return job["id"], job["session"], job["check"], when(job["time"]), file, digest


def _of_criterion(
    material: Material,
    result: CriterionVerdict,
    verdicts: Mapping[tuple[str, str], str],
    values: Units,
) -> Table:
    """A row for each unit with a value, or with the reason why it has none."""
    ranks = {str(verdict): rank for verdict, rank in RANKS.items()}  # others come last
    rows = []
    for unit in [unit for key, unit in values if key == result.id]:
        samples = values[result.id, unit]
        jobs = Link(jobs_of(material, samples)[:MAX_JOBS_OF_UNIT])
        verdict = verdicts.get((result.id, unit), NOTHING)
        # From what a derived value follows; 'siteproof why ID' shows the inputs.
        derived = [one for one in samples if one["use"] == "derived" and one["status"] == "ok"]
        value = ", ".join(["; ".join(_shown(samples)), *(one["why"] for one in derived)])
        rows.append((to_rows("node", unit or "all"), value, verdict, jobs))
    rows.sort(key=lambda row: ranks.get(row[2], len(ranks)))
    return Table(
        ("node", "value", "verdict", "jobs"),
        rows,
        NOTE if len(rows) > MAX_UNITS else "",
        title=f"{result.id}: {count(len(rows), 'unit')} with a value or a reason",
        name=anchor("values", result.id),
        metrics=[result.criterion.metric],
        folded=True,
        most=MAX_UNITS,
    )


def _shown(samples: Sequence[Given]) -> Iterator[str]:
    """The values as printed, or why there are none."""
    own = [one for one in samples if one["use"] != "input"]
    for one in own[:MAX_VALUES]:
        text = with_unit(str(one["value"]), one["value_unit"])
        if one["status"] != "ok":
            text = ": ".join(filter(None, (one["status"], one["why"])))
        yield f"{text} ({one['group']})" if one["group"] and one["use"] == "answer" else text
    if len(own) > MAX_VALUES:
        yield f"{len(own) - MAX_VALUES} more"


def _of_nodes(material: Material, verdicts: Mapping[tuple[str, str], str], values: Units) -> Table:
    """A row for each node: its values, the criteria that it misses, and the jobs."""
    of_node = grouped(  # a pair is of both of its ends
        (node, (key, unit))
        for key, unit in values
        for node in ends(unit)
        if material.site.role_of(node)
    )
    names = sorted(of_node)[:MAX_NODES]
    rows = [(node, *_of_node(material, of_node[node], verdicts, values)) for node in names]
    return Table(
        ("node", "values", "criteria not passed", "jobs"),
        rows,
        title=f"Nodes: {count(len(of_node), 'node')} with a value or a reason",
        ids=[anchor("node", row[0]) for row in rows],
        name="values-by-node",
        folded=True,
    )


def _of_node(
    material: Material,
    own: Sequence[tuple[str, str]],
    verdicts: Mapping[tuple[str, str], str],
    values: Units,
) -> tuple[str, str, str]:
    missed = {one[0] for one in own if verdicts.get(one) != Verdict.PASS}
    jobs = Link(jobs_of(material, (sample for one in own for sample in values[one])))
    texts = []
    for key, unit in own:
        pair = f" {unit}" if len(ends(unit)) > 1 else ""
        shown = next(_shown(values[key, unit]), NOTHING)
        texts.append(f"{key}{pair} {shown} {verdicts.get((key, unit), NOTHING)}")
    return few(texts, MAX_OF_NODE, "; "), to_rows("criterion", *sorted(missed)), jobs
