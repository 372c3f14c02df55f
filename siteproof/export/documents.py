"""Verdicts and states of nodes as JSON documents; answers.schema.json explains them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteproof.analysis.slow_nodes import State
from siteproof.errors import ExitCode
from siteproof.judge.criterion import CriterionVerdict, NodeVerdict
from siteproof.record.samples import Sample
from siteproof.severity import Verdict
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.tally import Standing, Tally
from siteproof.wording import tallies
from siteproof.wording.findings import full, fulls
from siteproof.wording.verdicts import awaited, bound, digits, number, reasons, why

if TYPE_CHECKING:
    from siteproof.nodes.states import FleetReport, NodeReport

FORMAT = 1  # another number only if a key is removed or changes its meaning


def dumps(record: Mapping[str, Any]) -> str:
    """A document as text, ASCII only; JSON has no NaN and no infinity."""
    return json.dumps(record, indent=1, allow_nan=False)


def verdict(judged: Judgement, report: FleetReport | None = None) -> dict[str, Any]:
    """The verdicts on a system; with a report, also the states of its nodes."""
    times = sorted(s.header.time for s in judged.samples)
    record = {
        **_head(judged),
        "as_of": judged.as_of and judged.as_of.isoformat(timespec="seconds"),
        "exit_code": int(judged.exit_code),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "sessions": sorted({s.header.session for s in judged.samples}),
        "awaited": awaited(judged),
        "counts": {str(v): sum(r.verdict is v for r in judged.verdicts) for v in Verdict},
        "warnings": [
            {"text": full(why), "nodes": why.subject, "finding": why.record()}
            for why in judged.warnings
        ],
        "unjudged": list(judged.unjudged),
        "criteria": [criterion(judged, result) for result in judged.verdicts],
    }
    return record | ({"fleet": nodes(judged, report)} if report else {})


def nodes(judged: Judgement, report: FleetReport) -> dict[str, Any]:
    """The states of all nodes."""
    record: dict[str, Any] = _finite(
        {
            **_head(judged),
            "exit_code": int(nodes_exit_code(report)),
            "suspect_share": report.suspect_share,
            "warnings": list(map(full, report.warnings)),
            "findings": [why.record() for why in report.warnings],
            "retest": str(report.retest),
            "states": {str(state): str(report.of(state)) for state in State},
            "nodes": [_node_report(node) for node in report.nodes.values()],
        }
    )
    return record


def _node_report(node: NodeReport) -> dict[str, Any]:
    """A node with its findings; reasons and notes: those findings as sentences."""
    return {
        "node": node.node,
        "role": node.role,
        "state": node.state,
        "reasons": fulls(node.findings),
        "findings": [why.record() for why in node.findings],
        "metrics": {name: dict(vars(metric)) for name, metric in node.metrics.items()},
        "notes": fulls(node.notes),
        "note_findings": [why.record() for why in node.notes],
        "repair": node.repair and node.repair.record(),
        "suspect": node.suspect,
        "untested": node.untested,
        "wrong": [
            {"reason": full(why), "check": why.check, "status": why.status}
            for why in node.findings
            if why.is_wrong_answer
        ],
    }


def nodes_exit_code(report: FleetReport) -> ExitCode:
    """Some node is not OK, or is only untested."""
    return state_exit_code(n.state for n in report.nodes.values())


def state_exit_code(found: Iterable[State]) -> ExitCode:
    """That of nodes in these states; without a node nothing was tested."""
    of_nodes = set(found)
    if of_nodes - {State.OK, State.UNTESTED}:
        return ExitCode.FAIL
    return ExitCode.PASS if of_nodes == {State.OK} else ExitCode.INCOMPLETE


def common(samples: Iterable[Sample]) -> dict[str, str]:
    """The conditions that all of these samples were measured under."""
    found: dict[str, str] | None = None
    for sample in samples:
        own = sample.conditions
        found = own if found is None else {k: v for k, v in found.items() if own.get(k) == v}
    return found or {}


def answers(result: CriterionVerdict) -> list[Sample]:
    """The samples that a verdict rests on."""
    return [node.sample for node in result.nodes if node.sample]


def head(system: str, chosen: str) -> dict[str, Any]:
    """What every document begins with. chosen: which samples it rests on, in words."""
    return {
        "format": FORMAT,
        "version": _version(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": system,
        "samples_of": chosen,
    }


def _head(judged: Judgement) -> dict[str, Any]:
    set_aside = judged.sessions.set_aside if judged.sessions else []
    return head(judged.site.system.system, judged.chosen) | {"set_aside": list(map(str, set_aside))}


def _version() -> str:
    try:
        return metadata.version("siteproof")
    except metadata.PackageNotFoundError:  # a clone that is only on PYTHONPATH
        return "unknown"


def criterion(judged: Judgement, result: CriterionVerdict) -> dict[str, Any]:
    """A criterion with its nodes, pairs or links."""
    required, shared = result.criterion, common(answers(result))
    limit = required.bound
    return {
        "id": result.id,
        "verdict": result.verdict,
        "why": why(result),
        "findings": [found.record() for found in result.findings],
        "excused": result.excused,
        "metric": required.metric,
        "description": required.description,
        "phase": required.phase,
        "subject": required.subject,
        "scope": required.scope,
        "links": required.links,
        "bound": bound(judged, result),
        "kind": required.kind,
        "limit": limit
        and {"value": str(limit.quantity.value), "unit": limit.quantity.unit, "of": limit.fact},
        "rounding": required.rounding_rule,
        "source": required.source,
        "note": required.note,
        "by_rounding": result.by_rounding,
        **_counted(judged, result),
        "nodes_ok": result.ok,
        "nodes_expected": result.units,
        "oldest": result.oldest and result.oldest.isoformat(timespec="seconds"),
        "age": None if result.age is None else int(result.age.total_seconds()),
        "conditions": shared,
        "nodes": [_node(n, shared) for n in result.nodes],
    }


def _counted(judged: Judgement, result: CriterionVerdict) -> dict[str, Any]:
    """How many units have which standing, and the worst value against the limit, in one unit."""
    tally = Tally.of(judged.site, result)
    number = tally.worst_value
    limits = {"lowest": tally.limits[0], "highest": tally.limits[1]}
    worst = None
    if tally.worst and number is not None:
        shown = {"value": tally.shown(number), "number": float(number), "unit": tally.unit}
        worst = {"node": tally.worst.node, **shown}
    return {
        "counts": {
            "expected": tally.expected,
            **{standing.key: len(units) for standing, units in tally.standings.items()},
            "waived": sum(unit.waived for units in tally.standings.values() for unit in units),
            "reported": tally.reported,
        },
        "sets": {
            standing.key: tallies.units([unit.node for unit in units])
            for standing, units in tally.standings.items()
            if standing is not Standing.PASSED
        },
        "worst": worst,
        "passes": {
            side: limit and {"value": float(limit.value), "inclusive": limit.inclusive}
            for side, limit in limits.items()
        },
        "margin": None if tally.margin is None else float(tally.margin),
    }


def _node(result: NodeVerdict, shared: Mapping[str, str]) -> dict[str, Any]:
    sample, value = result.sample, result.value
    return {
        "node": result.node,
        "verdict": result.verdict,
        "why": reasons(result.findings),
        "findings": [found.record() for found in result.findings],
        "value": None if value is None else digits(result),
        "number": None if value is None else float(value),
        "unit": (sample.unit or None) if sample else None,
        "rounded": None if result.rounded is None else number(result.rounded, 12),
        "by_rounding": result.by_rounding,
        "waived": result.waived,
        "session": sample.header.session if sample else None,
        **_context(sample, shared),
    }


def _context(sample: Sample | None, shared: Mapping[str, str]) -> dict[str, Any]:
    """Where, when and how a sample was measured, without the conditions that all share."""
    if sample is None:
        return {key: None for key in ("status", "time", "partition", "environment")} | {
            "dims": {},
            "conditions": {},
        }
    head = sample.header
    return {
        "status": sample.status,
        "time": head.time,
        "partition": head.partition,
        "environment": head.environment,
        "dims": dict(sample.dims),
        "conditions": {k: v for k, v in sample.conditions.items() if shared.get(k) != v},
    }


def _finite(value: Any) -> Any:
    """The same with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(part) for part in value]
    return value


FILE = Path(__file__).with_name("answers.schema.json")
DOCUMENTS = (
    *("verdict", "nodes", "why", "gate", "compare", "trend"),
    *("matrix", "sweep", "describe", "published", "availability"),
)


def schema_of(document: str) -> dict[str, Any]:
    """The schema of a document, complete in itself. document: one of DOCUMENTS."""
    whole: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    if document == DOCUMENTS[0]:
        return whole
    about = {key: whole[key] for key in ("$schema", "$defs")}
    return {**about, "title": f"siteproof {document} --json", "$ref": f"#/$defs/{document}"}
