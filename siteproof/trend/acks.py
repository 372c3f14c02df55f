"""Acknowledged changes: by whom, when, and why.

Each record is a file, `perflogs/<system>/trend/<time>.json`, that is never changed and never
removed: one that takes another back is a record of its own. A record holds the whole alert, so that
it can be shown when its runs are no longer looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.record import evidence_records, finding
from siteproof.record.finding import Finding
from siteproof.record.finding import Kind as FindingKind
from siteproof.record.series import Series
from siteproof.trend.alerts import Ack, Alert, Moment

_KEYS = ("ack", "who", "why", "when", "takes_back", "alert")
_MOMENTS = ("last_before", "first_after", "earliest", "latest", "made_good")
_KINDS: dict[object, Any] = {
    "str": str,
    "Kind": str,
    "bool": bool,
    "int": int,
    "float": (int, float),
}
_PLAIN = {f.name: _KINDS[f.type] for f in fields(Alert) if f.type in _KINDS}
_CAUSES = (  # what an alert may give as its cause
    FindingKind.CHANGED,
    FindingKind.NOTHING_CHANGED,
    FindingKind.CHANGE_UNKNOWN,
)


@dataclass(frozen=True)
class AckFile:
    """One file. takes_back: whether it ends an earlier one on the same alert."""

    ack: Ack
    alert: Alert
    takes_back: bool


def folder(perflogs: Path, system: str) -> Path:
    """Where a system's records are kept."""
    return perflogs / system / "trend"


def write(
    perflogs: Path, system: str, alert: Alert, who: str, why: str, *, takes_back: bool = False
) -> Ack:
    """Acknowledge an alert, or take that back. Raises OSError where perflogs cannot be written."""
    now = datetime.now(UTC)
    ack = Ack(alert.id, who, why, now.isoformat())
    record = {
        "ack": alert.id,
        "who": who,
        "why": why,
        "when": ack.when,
        "takes_back": takes_back,
        "alert": as_record(alert),
    }
    target = folder(perflogs, system) / f"{now:%Y%m%dT%H%M%S.%fZ}.json"
    evidence_records.keep(target, perflogs, record)
    return ack


def read_all(perflogs: Path, system: str) -> list[AckFile]:
    """Every record, oldest first. Raises UserError for a broken one."""
    return [_read(path) for path in sorted(folder(perflogs, system).glob("[!.]*.json"))]


def standing(records: Iterable[AckFile]) -> list[Alert]:
    """The alerts that are acknowledged and not taken back, each with its ack, oldest first."""
    found: dict[str, Alert] = {}
    for record in records:
        found.pop(record.alert.id, None)
        if not record.takes_back:
            found[record.alert.id] = replace(record.alert, ack=record.ack)
    return list(found.values())


def as_record(alert: Alert) -> dict[str, Any]:
    """An alert as plain data."""
    plain: dict[str, Any] = {name: getattr(alert, name) for name in _PLAIN}
    for name in _MOMENTS:
        moment = getattr(alert, name)
        plain[name] = moment and {"time": moment.iso, "session": moment.session}
    return plain | {
        "nodes": str(alert.nodes),
        "changed": [why.record() for why in alert.changed],
        "series": {"dims": dict(alert.series.dims), "conditions": dict(alert.series.conditions)},
    }


def _read(path: Path) -> AckFile:
    record = evidence_records.plain(path, "an acknowledgement")
    try:
        if set(record) != set(_KEYS):
            raise ValueError
        ack = Ack(*(_is(record, key, str) for key in ("ack", "who", "why", "when")))
        return AckFile(ack, _alert(record["alert"]), _is(record, "takes_back", bool))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise UserError(path, "not an acknowledgement", _KEYS) from None


def _alert(plain: dict[str, Any]) -> Alert:
    own: dict[str, Any] = {name: _is(plain, name, kind) for name, kind in _PLAIN.items()}
    own |= {name: _moment(plain[name]) for name in _MOMENTS}
    pairs = [
        tuple(sorted((str(k), str(v)) for k, v in plain["series"][key].items()))
        for key in ("dims", "conditions")
    ]
    series = Series(own["metric"], pairs[0], own["environment"], own["role"], pairs[1])
    nodes = nodesets.parse(_is(plain, "nodes", str))
    if own["last_before"] is None or own["first_after"] is None:
        raise ValueError
    changed = [_finding(cause) for cause in plain["changed"]]
    return Alert(**own, nodes=nodes, series=series, changed=changed)


def _finding(plain: Any) -> Finding:
    """What changed, as recorded."""
    found = finding.read(plain)
    if found.kind not in _CAUSES:  # the sentences of others need details that this one may lack
        raise ValueError
    return found


def _moment(plain: Any) -> Moment | None:
    if plain is None:
        return None
    time = datetime.fromisoformat(plain["time"])
    if time.tzinfo is None:
        raise ValueError
    return Moment(time.astimezone(UTC).replace(tzinfo=None), str(plain["session"]))


def _is(record: dict[str, Any], key: str, kind: Any) -> Any:
    if not isinstance(record[key], kind):
        raise TypeError
    return record[key]
