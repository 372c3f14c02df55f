"""Values that follow from others, each with its arithmetic: those that criteria were judged by."""

from __future__ import annotations

from collections.abc import Iterator

from siteproof.derivations.given import DerivedSample
from siteproof.report.material import Material
from siteproof.report.phrases import quantity
from siteproof.report.sections import Section, Table
from siteproof.units import count

COLUMNS = ("criterion", "metric", "of", "value", "follows from", "inputs")
MAX_UNITS = 6  # of one criterion
NOTE = "Computed when the page was made, and never stored; 'siteproof why ID' shows the inputs."


def chapter(material: Material) -> Section | None:
    """The derived values of the criteria; the worst units of each."""
    rows = list(_rows(material))
    if not rows:
        return None
    many = {row[0] for row in rows}
    lead = f"{count(len(many), 'criterion', 'criteria')} rest on values that follow from others."
    table = Table(COLUMNS, rows, NOTE, numeric=("value", "inputs"))
    return Section("derived", "Derived values", lead, [table])


def _rows(material: Material) -> Iterator[tuple[str, ...]]:
    for result in material.judged.verdicts:
        for unit in result.nodes[:MAX_UNITS]:
            sample = unit.sample
            if not isinstance(sample, DerivedSample) or sample.value is None:
                continue
            is_text = isinstance(sample.value, str)
            value = str(sample.value) if is_text else quantity(float(sample.number), sample.unit)
            metric, number = result.criterion.metric, str(len(sample.inputs))
            yield result.id, metric, unit.node, value, sample.why, number
