"""What plain ReFrame tests have measured, apart from what the catalogue describes."""

from __future__ import annotations

from siteproof.record import samples
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, day, few
from siteproof.units import count, with_unit

MAX_ROWS = 100
MAX_NAMES = 5  # tests in the lead
_COLUMNS = ("metric", "parameters", "where", "newest", "reference", "nodes", "values", "from", "to")
# One row a metric of a test, its parameters, partition and environment: the newest value or
# failure, and ReFrame's reference, which is in the provenance of its run.
_NEWEST = f"""
SELECT check_name, metric, dims, concat(partition, '+', environment) AS env,
    arg_max(CASE WHEN status = 'ok' THEN coalesce(s.digits, value::VARCHAR) ELSE status END, time),
    arg_max(CASE WHEN status = 'ok' THEN unit ELSE '' END, time),
    coalesce(arg_max(provenance ->> concat('$."{samples.REFERENCE}',
        substr(metric, length(check_name) + 2), '"'), time), ''),
    count(DISTINCT nullif(node, '')), count(*), min(time), max(time)
FROM stored s JOIN live_runs r USING (run) WHERE system = $system
    AND (source = 'reframe' OR contains(provenance, '"{samples.TEST}":'))
GROUP BY check_name, metric, dims, env ORDER BY check_name, metric, dims, env"""


def chapter(material: Material) -> Section | None:
    """A row for each metric; None where all is in the catalogue."""
    found = material.history.sql(_NEWEST, {"system": material.system})
    rows, metrics = [], dict[str, set[str]]()
    for check, metric, dims, place, value, unit, reference, *rest in found:
        if metric in material.site.catalogue:
            continue
        nodes, values, first, last = rest
        metrics.setdefault(check, set()).add(metric)
        shown = with_unit(value, unit)
        ends = day(first), day(last)
        parameters = dims.strip("{}").replace('"', "").replace(":", " ").replace(",", ", ")
        rows.append((metric, parameters, place, shown, reference, str(nodes), str(values), *ends))
    if not rows:
        return None
    named = [f"{check}, {count(len(names), 'metric')}" for check, names in metrics.items()]
    lead = f"Not in the catalogue: {few(named, MAX_NAMES, '; ')}."
    table = Table(
        _COLUMNS,
        rows,
        most=MAX_ROWS,
        command="siteproof history",
        numeric=("nodes", "values"),
        title="Metrics of plain ReFrame tests, in the whole history",
        note="No criterion can name them; a catalogue.yaml in a folder of 'checks' in system.yaml "
        "describes them.",
    )
    return Section("own_tests", "Tests that are not in the catalogue", lead, [table])
