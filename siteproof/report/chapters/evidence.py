"""What persons have shown, listed for signature, and what still is due."""

from __future__ import annotations

from siteproof.record import evidence_records
from siteproof.record.evidence_records import Evidence
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, few, to_rows
from siteproof.units import count

COLUMNS = ("criterion", "shows", "by", "on", "file", "SHA-256", "note", "state", "signature")
LINE = "____________"
NOTE = "The file itself is not kept here; its SHA-256 proves which one was shown."
MAX_DUE = 8


def chapter(material: Material) -> Section | None:
    """All records, with those that were withdrawn; none where no criterion needs evidence."""
    criteria = material.site.criteria
    wanted = [key for key, one in criteria.items() if one.answered_by == "evidence"]
    shown = evidence_records.shown(evidence_records.read_all(material.perflogs, material.system))
    if not (wanted or shown):
        return None
    valid = {one.criterion for one, back in shown if not back}
    due = [key for key in wanted if key not in valid]
    lead = f"{count(len(wanted), 'criterion', 'criteria')} are answered by a person's evidence"
    lead += f"; due: {few(due, MAX_DUE)}." if due else "; all have it."
    rows = [_row(*one) for one in shown]
    return Section("evidence", "Evidence", lead, [Table(COLUMNS, rows, NOTE)])


def _row(record: Evidence, back: Evidence | None) -> tuple[str, ...]:
    state = f"withdrawn by {back.by}: {back.note}" if back else "counts"
    return (
        to_rows("criterion", record.criterion),
        record.shows,
        record.by,
        record.on,
        f"{record.file} ({record.size} B)",
        record.sha256,
        record.note or "-",
        state,
        "-" if back else LINE,
    )
