"""The values that the verdicts rest on, as CSV: a page carries them, and recompute.py judges them.

Everything that decides is in the tables, so that nobody needs perflogs or Siteproof to check a
verdict; docs/recompute.md describes each column.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.derivations.given import DerivedSample, compared_dims
from siteproof.errors import UserError
from siteproof.judge import published_values
from siteproof.judge.criterion import (
    CriterionVerdict,
    NodeVerdict,
    attempts_at,
    refusal,
    units,
    why_not,
)
from siteproof.judge.severity import Verdict
from siteproof.record import pair_units, shown
from siteproof.record.ages import moment_of
from siteproof.record.finding import Kind
from siteproof.record.samples import PUBLISHED, Header, Sample, path_of
from siteproof.report.material import Material
from siteproof.report.sections import Attached
from siteproof.sites import Baseline, Criterion, Hardware
from siteproof.sites.printed import STATED
from siteproof.sites.promise import Promise
from siteproof.units import count
from siteproof.verdict.judgement import covered

HERE = Path(__file__).parent
SCRIPT = "recompute.py"
MAX_WHY = 200  # characters of the reason of a failure
Row = Sequence[object]
COLUMNS = {
    "criteria": (
        *("criterion", "stated", "met", "of", "description", "metric", "subject", "scope"),
        *("kind", "bound", "bound_unit", "bound_of", "step", "step_unit", "ties", "trials"),
        *("answered_by", "has_check", "report_only", "not_here", "tried", "max_age_hours", "now"),
        *("derivation", "worst", "covers", "conditions", "programs", "source"),
    ),
    "units": ("criterion", "unit", "stated", "facts", "waivers", "updated"),
    "samples": (
        *("criterion", "unit", "use", "job", "metric", "group", "trial", "value", "value_unit"),
        *("status", "baselines", "of", "why"),
    ),
    "jobs": (
        *("job", "session", "check", "id", "partition", "environment", "mode", "campaign"),
        *("time", "confirmed", "conditions", "file", "sha256"),
    ),
    "baselines": (
        *("baseline", "metric", "scope", "kind", "bound", "bound_unit", "bound_of", "tolerance"),
        *("step", "step_unit", "ties", "taken", "source"),
    ),
    "waivers": ("waiver", "nodes", "waives", "wrong_answers", "expires", "problem", "owner"),
    "checks": ("check", "node", "partition", "environment", "mode", "session", "status", "why"),
}
WHAT = {
    "criteria": "each criterion with its rule and the verdict that this page states",
    "units": "each node, pair or link that owes a value",
    "samples": "each value that a verdict rests on, as the tool printed it",
    "jobs": "the session, job, time and file of each value",
    "baselines": "the baselines with their tolerances",
    "waivers": "the waivers that hold",
    "checks": "the checks that failed, and that no criterion has decided",
}
ARITHMETIC = {  # of derived values whose inputs are on the page
    "TcpBandwidth.best": "max",
    "TcpBandwidth.median": "median",
    "TcpBandwidth.trials": "count",
    "TcpBandwidth.asymmetry": "asymmetry",
    "PathMtu.difference": "difference",
}
GIVEN = "given"
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# Spreadsheets take a cell that begins so for a formula; with another separator a cell begins
# within ours.
_FORMULA = re.compile(r"""(^|[;,|\t\n\r"])(?=[=+\-@'\t\r\N{FULLWIDTH EQUALS SIGN}])""")


def attached(material: Material) -> list[Attached]:
    """The tables and the script that judges them, for a page."""
    if not material.judged.verdicts:
        return []
    tables = material.once(rows_of)
    made = [
        Attached(
            f"{name}.csv", as_csv(COLUMNS[name], rows), f"{WHAT[name]} ({count(len(rows), 'row')})"
        )
        for name, rows in tables.items()
    ]
    script = (HERE / SCRIPT).read_text(encoding="utf-8")
    return [*made, Attached(SCRIPT, script, "the program that judges these tables again")]


def rows_of(material: Material) -> dict[str, list[Row]]:
    """The rows of each table; of a page they are computed once."""
    return Tables(material).rows()


def dicts(material: Material, name: str) -> list[dict[str, Any]]:
    """The rows of one table, by column."""
    rows = material.once(rows_of)[name]
    return [dict(zip(COLUMNS[name], row, strict=True)) for row in rows]


def as_csv(columns: Row, rows: Iterable[Row]) -> str:
    """Rows as CSV in which no cell is a formula; numbers are as they were."""
    out = io.StringIO()
    writer = csv.writer(out)  # lines end as in RFC 4180, so that CR and LF in a cell are quoted
    writer.writerow(columns)
    writer.writerows([harmless_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def harmless_cell(cell: object) -> str:
    """A text with an apostrophe wherever a spreadsheet could see the begin of a formula."""
    text = "" if cell is None else str(cell)
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1'", text)


@dataclass
class Tables:
    """The tables of a judgement; the jobs and baselines are those that were named."""

    material: Material
    jobs: dict[int, tuple[int, Header, Sample]] = field(default_factory=dict)
    samples: list[Row] = field(default_factory=list)
    units: list[Row] = field(default_factory=list)
    waivers: dict[str, None] = field(default_factory=dict)

    def rows(self) -> dict[str, list[Row]]:
        """The rows of each table."""
        site = self.material.site
        criteria = [self._criterion(result) for result in self.material.judged.verdicts]
        baselines = [_baseline(key, one) for key, one in site.baselines.items()]
        waivers = [self._waiver(key) for key in self.waivers]
        jobs = [self._job(*one) for one in self.jobs.values()]
        return {
            "criteria": criteria,
            "units": self.units,
            "samples": self.samples,
            "jobs": jobs,
            "baselines": baselines,
            "waivers": waivers,
            "checks": list(map(_failed_check, self.material.judged.failed_besides)),
        }

    @cached_property
    def _keys(self) -> dict[int, str]:
        """The key of each baseline of the site."""
        return {id(one): key for key, one in self.material.site.baselines.items()}

    def _criterion(self, result: CriterionVerdict) -> Row:
        judged, criterion = self.material.judged, result.criterion
        entry = judged.site.catalogue[criterion.metric]
        evidence = criterion.answered_by == "evidence"
        derived = bool(entry.derived_from and not entry.check) and not evidence
        has_check = judged.site.can_answer(criterion) or evidence or bool(criterion.report_only)
        tried, how = "", ""
        if has_check:
            tried, how = self._units_of(result, _judged_as(criterion, derived=derived))
        decides = bool(result.nodes) and not criterion.report_only
        bound = criterion.bound
        return (
            result.id,
            result.verdict,
            result.ok if decides else "",
            len(result.nodes) if decides else "",
            criterion.description,
            criterion.metric,
            criterion.subject,
            criterion.scope,
            criterion.kind,
            *(_bound(criterion) if bound else (criterion.equals, "text", "")),
            *_rounding(criterion),
            "" if derived else criterion.trials,
            criterion.answered_by,
            "yes" if has_check else "no",
            criterion.report_only,
            criterion.not_here,
            tried,
            criterion.oldest.total_seconds() / 3600 if criterion.oldest else "",
            _moment(judged.as_of or self.material.now),
            how if derived else "",
            "highest" if entry.better == "lower" else "lowest",
            " ".join(criterion.links or criterion.nodes),
            "; ".join(f"{key} {rule}" for key, rule in criterion.conditions.items()),
            " ".join(criterion.programs),
            criterion.source,
        )

    def _units_of(self, result: CriterionVerdict, own: Criterion) -> tuple[str, str]:
        """Add the units and samples; whether a unit was tried, and how values were derived."""
        judged = self.material.judged
        found = judged.samples_of(result)
        today = self.material.now.date()
        expected, baselines, excused = covered(judged.site, result.id, own, judged.samples, today)
        if own.answered_by == "evidence":
            baselines, excused = {}, {}
        lost: dict[str, list[Any]] = {node.node: [] for node in result.nodes if node.lost}
        attempts, excused = attempts_at(found, own) | lost, excused | lost
        stated = {node.node: node.verdict for node in result.nodes}
        hows: list[str] = []
        each = [NodeVerdict(unit, Verdict.SKIP) for unit in expected]
        if not own.report_only:
            each = units(own, found, expected, baselines, judged.fresh)
        for node in each:
            hardware, typical = expected[node.node], baselines.get(node.node, ())
            keys = [key for key, _ in excused.get(node.node, ())]
            self.waivers |= dict.fromkeys(keys)
            facts, updated = _facts(hardware, [own, *typical]), _updated(node)
            verdict = stated.get(node.node)
            self.units.append((result.id, node.node, verdict, facts, " ".join(keys), updated))
            hows += self._unit(result.id, node.node, own, attempts.get(node.node, ()), typical)
            self._published_of(result.id, node.node, own, attempts.get(node.node, ()), hardware)
        of_all = published_values.newest_of_all(found, own)
        self._published(result.id, "", own, of_all, published_values.facts_of(expected))
        late = {node.node for node in each if node.too_old}
        in_time = (attempts.get(unit, ()) for unit in expected if unit not in late)
        tried = any(_could_answer(own, samples) for samples in in_time)
        return "yes" if tried else "", next(iter(hows), GIVEN)

    def _unit(
        self,
        key: str,
        unit: str,
        own: Criterion,
        attempts: Sequence[Sample],
        baselines: Sequence[Baseline],
    ) -> Iterator[str]:
        """Add the samples on which the verdict on a unit rests; how derived ones follow."""
        for use, sample in _answers(own, attempts):
            fitting = [one for one in baselines if not why_not(one, sample)]
            self._sample(key, unit, use, sample, baselines=fitting)
            yield from self._inputs(key, unit, own, sample)

    def _sample(
        self,
        criterion: str,
        unit: str,
        use: str,
        sample: Sample,
        group: str | None = None,
        baselines: Iterable[Baseline] = (),
        of: str = "",
    ) -> None:
        dims = " ".join(f"{name}={value}" for name, value in sorted(sample.dims.items()))
        good = sample.status == "ok"
        self.samples.append(
            (
                criterion,
                unit,
                use,
                self._number(sample),
                sample.metric,
                dims if group is None else group,
                sample.trial or "",
                sample.value if good else "",
                sample.unit if good else "",
                sample.status,
                " ".join(self._keys[id(one)] for one in baselines),
                of,
                sample.why[:MAX_WHY] if not good or isinstance(sample, DerivedSample) else "",
            )
        )

    def _inputs(self, key: str, unit: str, own: Criterion, sample: Sample) -> Iterator[str]:
        """Add the inputs of a derived value, where its arithmetic is simple; which that is."""
        if not isinstance(sample, DerivedSample) or sample.status != "ok":
            return
        how = ARITHMETIC.get(sample.metric, GIVEN)
        if sample.whole:
            how = "change" if sample.metric.endswith(".change") else "share"
        yield how
        if how == GIVEN:
            return
        whole = {id(one) for one in sample.whole}
        parts = {one.metric for one in sample.inputs if id(one) not in whole}
        alike = parts == {one.metric for one in sample.whole}
        for one in sample.inputs:
            group = " ".join([one.metric, *compared_dims(own, one)]) if alike else ""
            use = "whole" if id(one) in whole else "input"
            self._sample(key, unit, use, one, group, of=_place(one))

    def _published_of(
        self, key: str, unit: str, own: Criterion, attempts: Sequence[Sample], hardware: Hardware
    ) -> None:
        """Add what others have published of a unit that was not measured."""
        if attempts and not _answers(own, attempts):
            self._published(key, unit, own, attempts[0], [hardware])

    def _published(
        self, key: str, unit: str, own: Criterion, sample: Sample | None, facts: Sequence[Hardware]
    ) -> None:
        """Add a published value that the criterion covers. unit: whose; empty: of all together."""
        if sample is None or PUBLISHED not in sample.own_conditions:
            return
        if published_values.outcome(own, sample, facts) is not None:
            of = "unit" if published_values.own(own, sample) else "all"
            group = sample.own_conditions.get(STATED, "")
            self._sample(key, unit, "published", sample, group, of=of)

    def _number(self, sample: Sample) -> int:
        """The number of the job that measured it."""
        head = sample.header
        number, _, first = self.jobs.get(id(head), (len(self.jobs) + 1, head, sample))
        if isinstance(first, DerivedSample):  # of the inputs the file is known
            first = sample
        self.jobs[id(head)] = number, head, first
        return number

    def _job(self, number: int, head: Header, sample: Sample) -> Row:
        fresh = self.material.judged.fresh
        confirmed = fresh.ages.measured(head) if fresh else None
        top = self.material.perflogs
        path = shown.path_of(top, head) if head.session == shown.FOLDER else path_of(top, head)
        there = path.exists() and not isinstance(sample, DerivedSample)
        return (
            number,
            head.session,
            head.check,
            head.job,
            head.partition,
            head.environment,
            head.mode,
            head.campaign,
            _moment(moment_of(head)),
            _moment(confirmed) if confirmed else "",
            "; ".join(f"{key} {value}" for key, value in head.conditions.items()),
            path.relative_to(top) if there else "",
            _sha256(path, top) if there else "",
        )

    def _waiver(self, key: str) -> Row:
        waiver = self.material.site.waivers[key]
        wrong = " ".join(waiver.wrong_answers)
        expires = waiver.expires.isoformat()
        return key, str(waiver.set), waiver.waives, wrong, expires, waiver.problem, waiver.owner


def _judged_as(criterion: Criterion, *, derived: bool) -> Criterion:
    """The criterion as it is judged: evidence is of the whole system, derived values are single."""
    if criterion.answered_by == "evidence":
        return criterion.like(subject="system", scope="system", nodes=[], links=[], programs=[])
    return criterion.like(trials=None) if derived else criterion


def _could_answer(own: Criterion, attempts: Iterable[Sample]) -> bool:
    """Whether a measurement was tried that could have answered, which not_here does not excuse."""
    return any(s.status != "tool_missing" and not why_not(own, s) for s in attempts)


def _answers(own: Criterion, attempts: Sequence[Sample]) -> list[tuple[str, Sample]]:
    """The samples on which the verdict on a unit rests, each with its use; the newest first."""
    counted = [s for s in attempts if not why_not(own, s)]
    if not counted:
        return []
    newest = pair_units.job(counted[0])
    in_job = [s for s in attempts if pair_units.job(s) == newest and not refusal(own, s)]
    there = {pair_units.dimensions(s) for s in in_job if s.status == "ok"}
    answers = [s for s in in_job if not why_not(own, s)]
    lacking = [s for s in in_job if pair_units.lacks_its_own(s, there)]
    return [*(("answer", s) for s in answers), *(("lacking", s) for s in lacking)]


def _sha256(path: Path, below: Path) -> str:
    """The SHA-256 of a file of samples or of evidence; empty where it is refused."""
    try:
        return hashlib.sha256(files.read(path, below=below, limit=files.SAMPLES)).hexdigest()
    except (OSError, UserError):
        return ""


def _place(sample: Sample) -> str:
    """What a sample is of: a node, a pair or a link."""
    peer = sample.dims.get(pair_units.PEER)
    link = pair_units.link_of(sample)
    name = f"{sample.node}>{peer}" if peer else sample.node
    return f"{name} over {link}".strip() if link else name


def _facts(hardware: Hardware, promises: Iterable[Promise]) -> str:
    """The facts of a unit of which a bound is a share."""
    names = {one.bound.fact for one in promises if one.bound and one.bound.fact}
    known: Mapping[str, object] = hardware.quantities
    return "; ".join(f"{name}={known[name]}" for name in sorted(names) if name in known)


def _updated(node: NodeVerdict) -> str:
    """What was updated after an answer that does not count any more for it."""
    found = next((f for f in node.findings if f.kind is Kind.UPDATED_SINCE), None)
    if not (node.too_old and found):
        return ""
    return "; ".join(f"{name} {text}" for name, text in found.details if name != "age") or "yes"


def _bound(promise: Promise) -> Row:
    bound = promise.bound
    assert bound is not None
    return bound.quantity.value, bound.quantity.unit, bound.fact


def _rounding(promise: Promise) -> Row:
    step = promise.step
    return (step.value, step.unit, promise.ties) if step else ("", "", "")


def _baseline(key: str, one: Baseline) -> Row:
    return (
        key,
        one.metric,
        one.scope,
        one.kind,
        *_bound(one),
        one.tolerance,
        *_rounding(one),
        one.taken,
        one.source,
    )


def _failed_check(one: Sample) -> Row:
    head = one.header
    place = head.partition, head.environment, head.mode, head.session
    return (head.check, one.node, *place, one.status, one.why)


def _moment(moment: datetime) -> str:
    """A time in UTC, as recompute.py reads it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
