"""OpenMetrics text for a dashboard: verdicts, worst values, states of nodes, headline metrics.

One series for each criterion and verdict, node and state, node and headline metric: 320 nodes with
all 33 headline metrics make 12,600. Of pairs there are counts by the grades of their link; values
of pairs and of sweeps are left out, as there may be millions of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from statistics import median

from siteproof import units
from siteproof.answers.criterion import CriterionVerdict
from siteproof.curves import sweep_runs
from siteproof.errors import harmless
from siteproof.links import matrix
from siteproof.links.transfers import Grade
from siteproof.nodes.states import FleetReport, State
from siteproof.record.finding import Verdict
from siteproof.record.pair_units import GPU, LINK, grouped, job, link_of, of_pairs
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Hardware
from siteproof.sites.system import System
from siteproof.trend import Alert
from siteproof.units import UNITS
from siteproof.verdict.judgement import Judgement

END = "# EOF\n"
FAILED = "failed"  # a grade of pairs without a value
SUFFIX = {  # of a name, by the kind of its unit; values are in the kind's base unit
    "size": "bytes",
    "rate": "bytes_per_second",
    "flops": "flops_per_second",
    "frequency": "hertz",
    "iops": "operations_per_second",
    "time": "seconds",
    "share": "ratio",
    "hours a month": "hours_per_month",
    "percentage points": "percentage_points",
    "count": "",
    units.SIMULATION_RATE: "nanoseconds_per_day",
    units.SIMULATION_COST: "days_per_nanosecond",
    **{
        kind: unit.replace("/s", "_per_second").replace("-", "_")
        for kind, unit in units.COUNTED.items()
    },
    "energies an hour": "energies_per_hour",
    units.PROBLEM_RATE: "problems_per_hour",
    "electrical energy": "joules",
    "electrical power": "watts",
    "temperature": "celsius",
    "whole-number operations a second": "operations_per_second",
    "energy": "hartree",
    "molar energy": "kilojoules_per_mole",
    "drift of a molar energy": "kilojoules_per_mole_per_picosecond",
}
BASE = {kind: unit for unit, (kind, size) in reversed(UNITS.items()) if size == 1}
HELP = {
    "open_changes": "Changes of the history for the worse, still there and not acknowledged",
    "exit_code": "Exit code of siteproof verdict: 0 passed, 1 something failed, 3 something is "
    "missing",
    "export_timestamp": "When these values were written",
    "last_run_timestamp": "When the newest job ended that is judged",
    "criteria": "Criteria by their verdict",
    "criterion_verdict": "1 for the verdict on a criterion, 0 for all others",
    "criterion_nodes_ok": "Nodes of a criterion that are ok; pairs or links if it covers these",
    "criterion_nodes_expected": "Nodes of a criterion that are expected; pairs or links if it "
    "covers these",
    "criterion_worst": "The value of a criterion's worst node, pair or link",
    "criterion_bound": "The bound of a criterion, before any rounding",
    "link_pairs": "Pairs of a link by their grade: below its critical rate, up to its warn, above "
    "it, or failed",
    "link_threshold": "The rate below which a pair of a link is critical, or up to which it is "
    "worth a look",
    "nodes": "Nodes by their state",
    "node_state": "1 for the state of a node, 0 for all others",
}


class Families:
    """The values of a file, by name: the lines that describe a name, then a line for each value."""

    def __init__(self) -> None:
        self.lines: dict[str, dict[str, str]] = {}

    def put(
        self, name: str, value: float, labels: Mapping[str, str], unit: str = "", about: str = ""
    ) -> None:
        """Add a value. Of two values with equal labels the first counts.

        name: without its unit. unit: a suffix of SUFFIX, or empty. about: what it is, unless HELP
        has that.
        """
        whole = "_".join(filter(None, ("siteproof", name, unit)))
        lines = self.lines.setdefault(whole, {})
        if not lines:
            lines["TYPE"] = f"# TYPE {whole} gauge"
            if unit:
                lines["UNIT"] = f"# UNIT {whole} {unit}"
            # A quotation mark is escaped in OpenMetrics and must not be in Prometheus' text format.
            described = harmless(about or HELP[name]).replace("\\", "\\\\").replace('"', "'")
            lines["HELP"] = f"# HELP {whole} {described}"
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items() if text)
        series = f"{whole}{{{inside}}}" if inside else whole
        lines.setdefault(series, f"{series} {_number(value)}")

    def text(self) -> str:
        """The whole exposition."""
        return "".join(f"{line}\n" for one in self.lines.values() for line in one.values()) + END


def base(value: Decimal | Fraction, unit: str) -> tuple[float, str]:
    """A value in the base unit of its kind, and the suffix that names this unit."""
    kind = units.kind(unit)
    return float(units.convert(value, unit, BASE[kind])), SUFFIX[kind]


def _escaped(text: str) -> str:
    return harmless(text).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    text = f"{float(value):.15g}"
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(text, text)


_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def text(
    judged: Judgement, report: FleetReport, now: datetime, changes: Sequence[Alert] = ()
) -> str:
    """The exposition of a judgement and of the state of its nodes.

    changes: those of the history for the worse that are open.
    """
    families = Families()
    _whole(families, judged, now)
    families.put("open_changes", len(changes), {"system": judged.site.system.system})
    for result in judged.verdicts:
        _criterion(families, judged, result)
    _nodes(families, judged.site.system.system, report)
    _links(families, judged)
    _figures(families, judged)
    return families.text()


def _whole(families: Families, judged: Judgement, now: datetime) -> None:
    own = {"system": judged.site.system.system}
    families.put("exit_code", judged.exit_code, own)
    families.put("export_timestamp", now.timestamp(), own, "seconds")
    newest: dict[str, datetime] = {}
    for sample in judged.samples:
        if sample.header.mode != PUBLISHED:  # measured by this suite
            moment, part = datetime.fromisoformat(sample.header.time), sample.header.partition
            newest[part] = max(newest.get(part, moment), moment)
    for part, moment in sorted(newest.items()):
        labels = {**own, "partition": part}
        families.put("last_run_timestamp", moment.timestamp(), labels, "seconds")
    for verdict in Verdict:
        count = sum(r.verdict is verdict for r in judged.verdicts)
        families.put("criteria", count, {**own, "verdict": verdict})


def _criterion(families: Families, judged: Judgement, result: CriterionVerdict) -> None:
    criterion = result.criterion
    own = {"system": judged.site.system.system, "criterion": result.id, "metric": criterion.metric}
    for verdict in Verdict:
        labels = {**own, "verdict": verdict}
        families.put("criterion_verdict", result.verdict is verdict, labels)
    families.put("criterion_nodes_ok", result.ok, own)
    families.put("criterion_nodes_expected", result.units, own)
    worst = result.worst
    if worst and worst.sample and worst.value is not None:
        value, unit = base(worst.value, worst.sample.unit)
        families.put("criterion_worst", value, own, unit)
    if criterion.bound is None:
        return
    roles = judged.site.roles_of(criterion) if criterion.bound.fact else [""]
    for role in roles:
        facts = judged.site.hardware_of(role) if role else Hardware()
        limit = criterion.bound_value(facts)
        value, unit = base(limit.value, limit.unit)
        labels = {**own, "kind": criterion.kind, "role": role}
        families.put("criterion_bound", value, labels, unit)


def _nodes(families: Families, system: str, report: FleetReport) -> None:
    for state in State:
        families.put("nodes", len(report.of(state)), {"system": system, "state": state})
    for node in report.nodes.values():
        for state in State:
            labels = {"system": system, "role": node.role, "node": node.node, "state": state}
            families.put("node_state", node.state is state, labels)


def _links(families: Families, judged: Judgement) -> None:
    """The thresholds of each link, and how many of its pairs are beyond which."""
    system = judged.site.system
    _thresholds(families, system)
    own = [s for s in judged.samples if of_pairs(s) and s.header.mode != PUBLISHED]
    for name in sorted({s.metric for s in own if _is_graded(judged, s)}):
        for key, found in _by_grade(matrix.collect(judged.site, own, name)).items():
            labels = {"system": system.system, "link": key, "metric": name}
            for grade in (*filter(None, Grade), FAILED):
                families.put("link_pairs", found[grade], {**labels, "grade": grade})


def _thresholds(families: Families, system: System) -> None:
    """The two rates of each link."""
    stated = [(key, *rate) for key, link in system.links.items() for rate in system.graded(link)]
    for key, kind, rate in stated:
        if rate is not None:
            value, unit = base(rate.value, rate.unit)
            labels = {"system": system.system, "link": key, "kind": kind}
            families.put("link_threshold", value, labels, unit)


def _by_grade(matrices: Iterable[matrix.Matrix]) -> dict[str, Counter[str]]:
    """Of each link how many pairs have which grade, or failed."""
    counts: dict[str, Counter[str]] = {}
    for one in matrices:
        here = counts.setdefault(one.link, Counter())
        here.update(one.grades.grade(value) for value in one.values.values())
        here[FAILED] += len(one.failed)
    return counts


def _is_graded(judged: Judgement, sample: Sample) -> bool:
    """Whether it is a headline rate over a link that has a threshold."""
    known = judged.site.catalogue.get(sample.metric)
    link = judged.site.system.links.get(link_of(sample))
    if known is None or not known.headline or known.better != "higher" or link is None:
        return False
    rates = judged.site.system.graded(link)
    return units.kind(known.unit) == "rate" and bool(rates.warn or rates.critical)


def _figures(families: Families, judged: Judgement) -> None:
    """The newest value of each headline metric and node; of several trials the median."""
    shown = (sample for sample in judged.samples if _is_headline(judged, sample))
    groups = grouped((tuple(_labels(judged, sample).items()), sample) for sample in shown)
    for labels, found in sorted(groups.items(), key=lambda item: item[1][0].metric):
        last = max(map(job, found))
        value, unit = _middle(sample for sample in found if job(sample) == last)
        metric = found[0].metric
        about = f"{metric}: {judged.site.catalogue[metric].description}"
        families.put(snake(metric), value, dict(labels), unit, about)


def _is_headline(judged: Judgement, sample: Sample) -> bool:
    known = judged.site.catalogue.get(sample.metric)
    return (
        known is not None
        and known.headline
        and isinstance(sample.value, Decimal)
        and not of_pairs(sample)
        and not sweep_runs.of_sweep(sample)
        and PUBLISHED not in sample.own_conditions
    )


def _labels(judged: Judgement, sample: Sample) -> dict[str, str]:
    """The labels of a value. dimensions: those that have no label of their own, as one text."""
    have, head = {**sample.conditions, **sample.dims}, sample.header
    rest = {k: v for k, v in sample.dims.items() if k not in (LINK, GPU, "trial")}
    return {
        "system": head.system,
        "partition": head.partition,
        "environment": head.environment,
        "role": judged.site.role_of(sample.node) or "",
        "node": sample.node,
        "gpu": sample.dims.get(GPU, ""),
        "link": have.get(LINK, ""),
        "file_system": have.get("file_system", ""),
        "dimensions": ", ".join(f"{k} {v}" for k, v in sorted(rest.items())),
        "metric": sample.metric,
    }


def _middle(samples: Iterable[Sample]) -> tuple[float, str]:
    """The median in the base unit, and its suffix."""
    values = [base(sample.number, sample.unit) for sample in samples]
    return median(value for value, _ in values), values[0][1]


def snake(metric: str) -> str:
    """A metric as part of a name: TcpBandwidth.throughput is tcp_bandwidth_throughput."""
    return "_".join(filter(None, _WORDS.split(metric))).lower()
