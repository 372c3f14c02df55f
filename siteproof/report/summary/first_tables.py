"""What the first screen answers: which nodes stay out, what is not met, worse, or not measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from siteproof.analysis.before_after import Effect
from siteproof.record.severity import NOT_KEPT
from siteproof.report.chapters import changes, criteria, nodes, untested
from siteproof.report.material import Material
from siteproof.report.sections import NOTHING, Link, Table, day, few, to_rows
from siteproof.trend import Alert
from siteproof.units import count
from siteproof.verdict.tally import of_all
from siteproof.wording import tallies
from siteproof.wording.amounts import change
from siteproof.wording.findings import fulls
from siteproof.wording.verdicts import published_only

MAX_ROWS = 8  # of a table; the chapters have the rest
MAX_CHANGES, MAX_REASONS = 2, 1
OUT = ("nodes", "state", "why", "since", "change")
NOT_MET = ("not met", "verdict", "why", "worst value", "limit", "margin")  # recompute.py compares
WORSE = ("worse", "where", "change", "since", "details", "id")
MISSING = ("not measured", "which")
HISTORY = ("Over the whole history", "section-history")  # the part of the page


def tables(material: Material) -> list[Table]:
    """A table for each question that has an answer; none where nothing was measured here."""
    if published_only(material.judged):
        return []
    found = (_out(material), not_met(material), _worse(material), _missing(material))
    return [table for table in found if table.rows]


def _out(material: Material) -> Table:
    """The nodes that stay out, those with alike reasons together, why, and since when."""
    groups, _ = material.once(nodes.in_rows)
    rows = [
        (
            nodes.to_reason(material, group.nodes[0], str(group)),
            group.state,
            few(group.reasons, MAX_REASONS, "; ") or "no reason known",
            group.since,
            to_rows("change", *group.changes),
        )
        for group in groups
    ]
    out = sum(len(group.nodes) for group in groups)
    title = f"Nodes that stay out ({out} of {len(material.gate.rulings)})"
    return Table(OUT, rows, title=title, most=MAX_ROWS)


def not_met(material: Material) -> Table:
    """The criteria that failed, with value and limit."""
    found = criteria.by_severity(material.judged.verdicts)
    rows = [
        (
            to_rows("criterion", tally.result.id),
            str(tally.result.verdict),
            few(tallies.reasons(tally), MAX_REASONS, "; ") or NOTHING,
            ", ".join(filter(None, (tallies.value(tally), tallies.worst(tally)))),
            tallies.limit(tally),
            tallies.margin(tally),
        )
        for tally in of_all(material.site, found)
        if tally.result.verdict in NOT_KEPT
    ]
    return Table(NOT_MET, rows, title="Criteria that are not met", most=MAX_ROWS)


def _worse(material: Material) -> Table:
    """What fell since the last time, each metric of a unit once; then how much fell before.

    Where there is no last time, what fell in the whole history and is still open.
    """
    since = material.once(changes.last_time) if material.judged.samples else None
    if since is None:
        rows = list(map(_open, material.open_changes))
        return Table(WORSE, rows, title="Worse over all runs", most=MAX_ROWS)
    newer = [one for one in material.open_changes if one.begin.time > since.until]
    rows = list(_compared(material, since, newer))
    shown = {str(row[-1]) for row in rows}
    rows += [_open(one) for one in newer if one.id not in shown]
    rows += _older([one for one in material.open_changes if one.begin.time <= since.until])
    return Table(WORSE, rows, title=f"Worse since {since.words}", most=MAX_ROWS)


def _older(alerts: Sequence[Alert]) -> Iterator[tuple[str, ...]]:
    """How many changes are older than what is compared with, and which."""
    if alerts:
        named = [f"{one.series_name} of {changes.where(one)}" for one in alerts]
        what = f"{count(len(alerts), 'change')} before that, not acknowledged"
        yield what, few(named, MAX_CHANGES, "; "), "", "", "", Link([HISTORY])


def _compared(
    material: Material, since: changes.Since, alerts: Sequence[Alert]
) -> Iterator[tuple[str, ...]]:
    """Rows of the comparison, each with day, cause and id of its change in the history, if known.

    Nodes that a change of the history names have its row, and none here.
    """
    for row in since.result.rows:
        of_row = [one for one in alerts if (one.series_name, one.role) == (row.name, row.role)]
        if row.change.effect is Effect.WORSE:
            levels = " -> ".join(changes.levels_of(material.site, row))
            known = (_open(one)[3:] for one in of_row if one.of_fleet)
            begin, causes, name = next(known, ("", "", ""))
            details = "; ".join(filter(None, (levels, causes)))
            yield (row.name, row.role, change(row.change.change), begin, details, name)
        elif names := changes.worst(row, {node for one in of_row for node in one.nodes}):
            yield (row.name, names, "", "", "", "")


def _open(alert: Alert) -> tuple[str, ...]:
    since = f"{day(alert.begin.time)}{', provisional' if alert.provisional else ''}"
    since += f", meets its bound on {alert.meets}" if alert.meets else ""
    by = f"{change(alert.relative)}{' drift' if alert.kind == 'drift' else ''}"
    what = few(fulls(alert.changed), MAX_CHANGES, "; ")
    return alert.series_name, changes.where(alert), by, since, what, to_rows("change", alert.id)


def _missing(material: Material) -> Table:
    """What was not measured, and which."""
    rows = [(what, few(names, untested.MAX_NAMES)) for what, names in untested.missing(material)]
    return Table(MISSING, rows, title="Not measured")
