"""The values that the verdicts rest on, as CSV: a page carries them, for recompute.py and readers.

The tables state which values decide, so that nobody needs perflogs or Siteproof to apply bound and
rounding again; docs/recompute.md describes each column.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.answers import published_values
from siteproof.answers.attempts import attempts_at, why_not
from siteproof.answers.criterion import CriterionVerdict, NodeVerdict
from siteproof.answers.expected import covered
from siteproof.errors import UserError
from siteproof.record import evidence_records, pair_units
from siteproof.record.clocks import moment_of
from siteproof.record.finding import BROKEN, most_severe, of_status
from siteproof.record.samples import PUBLISHED, Sample, path_of
from siteproof.report.material import Material
from siteproof.report.sections import Attached
from siteproof.sites import Baseline, Hardware
from siteproof.sites.promise import SUM, Promise
from siteproof.sites.site_tables import STATED
from siteproof.units import count
from siteproof.verdict.derived.given import DerivedSample
from siteproof.verdict.tally import STANDINGS, Tally
from siteproof.wording import tallies
from siteproof.wording.findings import sentence

HERE = Path(__file__).parent
SCRIPT = "recompute.py"
MAX_WHY = 200  # characters of the reason of a failure
Row = Mapping[str, Any]  # by column
COLUMNS = {
    "criteria": (
        *("criterion", "stated", "given", "limit", "worst", "margin", "counts"),
        *("description", "metric", "subject", "scope", "kind", "bound", "bound_unit", "bound_of"),
        *(
            "rounding",
            "step",
            "step_unit",
            "trials",
            "answered_by",
            "report_only",
            "not_here",
            "now",
        ),
        *("covers", "conditions", "programs", "source"),
    ),
    "units": ("criterion", "unit", "stated", "status", "facts", "baselines", "waivers"),
    "samples": (
        *("criterion", "unit", "use", "job", "metric", "group", "trial", "value", "value_unit"),
        *("status", "of", "why"),
    ),
    "jobs": (
        *("job", "session", "check", "id", "partition", "environment", "mode", "campaign"),
        *("time", "conditions", "file", "sha256"),
    ),
    "baselines": (
        *("baseline", "metric", "scope", "kind", "bound", "bound_unit", "bound_of", "tolerance"),
        *("rounding", "step", "step_unit", "taken", "source"),
    ),
    "waivers": (
        *("waiver", "nodes", "gpus", "waives", "wrong_answers", "expires", "problem", "owner"),
    ),
    "checks": (
        *("check", "node", "stated", "partition", "environment", "mode", "session"),
        *("status", "why"),
    ),
}
WHAT = {
    "criteria": "each criterion with its rule and the verdict that this page states",
    "units": "each node, pair, link or GPU that owes a value",
    "samples": "each value that a verdict rests on, as the tool printed it",
    "jobs": "the session, job, time and file of each value",
    "baselines": "the baselines with their tolerances",
    "waivers": "the waivers that hold",
    "checks": "the checks that failed, and that no criterion has decided",
}
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# Spreadsheets take a cell that begins so for a formula; with another separator a cell begins
# within ours.
_FORMULA = re.compile(r"""(^|[;,|\t\n\r"])(?=[=+\-@'\t\r\N{FULLWIDTH EQUALS SIGN}])""")


def attached(material: Material) -> list[Attached]:
    """The tables and the script that judges them, for a page."""
    if not material.judged.verdicts:
        return []
    made = []
    for name, rows in material.once(rows_of).items():
        text = as_csv(COLUMNS[name], (row.values() for row in rows))
        made.append(Attached(f"{name}.csv", text, f"{WHAT[name]} ({count(len(rows), 'row')})"))
    script = (HERE / SCRIPT).read_text(encoding="utf-8")
    return [*made, Attached(SCRIPT, script, "the program that compares them with the verdicts")]


def rows_of(material: Material) -> dict[str, list[Row]]:
    """The rows of each table; of a page they are computed once."""
    return Tables(material).rows()


def _row(table: str, about: object, **own: object) -> Row:
    """What is given of each column, and of the others what the object has under that name."""
    return {name: own[name] if name in own else getattr(about, name) for name in COLUMNS[table]}


def as_csv(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV in which no cell is a formula; numbers are as they were."""
    out = io.StringIO()
    writer = csv.writer(out)  # lines end as in RFC 4180, so that CR and LF in a cell are quoted
    writer.writerow(columns)
    harmless = cache(harmless_cell)  # of each text once: most cells are as those above them
    texts = (["" if cell is None else str(cell) for cell in row] for row in rows)
    writer.writerows(map(harmless, row) for row in texts)
    return out.getvalue()


def harmless_cell(text: str) -> str:
    """A text with an apostrophe wherever a spreadsheet could see the begin of a formula."""
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1'", text)


@dataclass
class Tables:
    """The tables of a judgement; the jobs and baselines are those that were named."""

    material: Material
    jobs: dict[tuple[str, ...], tuple[int, Sample]] = field(default_factory=dict)
    samples: list[Row] = field(default_factory=list)
    units: list[Row] = field(default_factory=list)

    def rows(self) -> dict[str, list[Row]]:
        """The rows of each table."""
        site = self.material.site
        criteria = [self._criterion(result) for result in self.material.judged.verdicts]
        baselines = [_baseline(key, one) for key, one in site.baselines.items()]
        today = self.material.now.date()
        known = self.material.site.waivers.items()
        waivers = [self._waiver(key) for key, waiver in known if waiver.holds(today)]
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

    def _criterion(self, result: CriterionVerdict) -> Row:
        criterion, tally = result.criterion, Tally.of(self.material.site, result)
        self._units_of(result)
        worst = ", ".join(filter(None, (tallies.value(tally), tallies.worst(tally))))
        bound = {"bound": criterion.equals, "bound_unit": "text", "bound_of": ""}
        return _row(
            "criteria",
            criterion,
            criterion=result.id,
            scope=criterion.combines or criterion.scope,
            stated=result.verdict,
            given=_given(result),
            limit=tallies.limit(tally),
            worst=_printed(worst),
            margin=_printed(tallies.margin(tally)),
            counts=_printed("; ".join(tallies.counts(tally))),
            **(_bound(criterion) if criterion.bound else bound),
            **_rounding(criterion),
            now=_moment(self.material.judged.as_of or self.material.now),
            covers=" ".join(criterion.links or criterion.nodes),
            conditions="; ".join(f"{key} {rule}" for key, rule in criterion.conditions.items()),
            programs=" ".join(criterion.programs),
        )

    def _units_of(self, result: CriterionVerdict) -> None:
        """Add the units that owe a value, and the values that decided of each."""
        judged, own = self.material.judged, result.criterion
        today = self.material.now.date()
        expected, baselines, excused = covered(judged.site, result.id, own, judged.samples, today)
        for node, in_middle in _each(result):
            keys = [key for key, _ in excused.get(node.node, ())] if node.waived else []
            typical = [
                b
                for b in baselines.get(node.node, ())
                if node.sample and not why_not(b, node.sample)
            ]
            self.units.append(
                _row(
                    "units",
                    result,
                    criterion=result.id,
                    unit=node.node,
                    # What a unit of a median or mean gives by itself is no verdict.
                    stated="" if in_middle and node.value is not None else node.verdict,
                    status=_status(node),
                    facts=_facts(expected.get(node.node), [own, *typical]),
                    baselines=" ".join(self._keys[id(one)] for one in typical),
                    waivers=" ".join(keys),
                )
            )
            for sample in node.trials or filter(None, [node.sample]):
                self._sample(result.id, node.node, _use(sample), sample)
        self._published(result, published_values.facts_of(expected))

    @cached_property
    def _keys(self) -> dict[int, str]:
        """The key of each baseline of the site."""
        return {id(one): key for key, one in self.material.site.baselines.items()}

    def _published(self, result: CriterionVerdict, facts: Sequence[Hardware]) -> None:
        """Add what others have published of all units together, and of those without a value."""
        own, found = result.criterion, self.material.judged.samples_of(result)
        attempts = attempts_at(found, own)
        lacking = [node.node for node in result.nodes if not node.sample]
        each = [(unit, attempts[unit][0]) for unit in lacking if unit in attempts]
        of_all = published_values.newest_of_all(found, own)
        for unit, sample in [*each, *([("", of_all)] if of_all else [])]:
            published = PUBLISHED in sample.own_conditions
            if published and published_values.outcome(own, sample, facts) is not None:
                self._sample(result.id, unit, "published", sample)

    def _sample(self, criterion: str, unit: str, use: str, sample: Sample, of: str = "") -> None:
        dims = " ".join(f"{name}={value}" for name, value in sorted(sample.dims.items()))
        good, derived = sample.status == "ok", isinstance(sample, DerivedSample)
        self.samples.append(
            _row(
                "samples",
                sample,
                criterion=criterion,
                unit=unit,
                use=use,
                job=self._number(sample),
                group=sample.own_conditions.get(STATED, "") if use == "published" else dims,
                trial=sample.trial or "",
                value=sample.value if good else "",
                value_unit=sample.unit if good else "",
                of=of,
                why=sample.why[:MAX_WHY] if not good or derived else "",
            )
        )
        for one in sample.inputs if isinstance(sample, DerivedSample) else ():
            self._sample(criterion, unit, "input", one, _place(one))

    def _number(self, sample: Sample) -> int:
        """The number of the job that measured it; what follows from a job has the job's own."""
        head = sample.header
        key = head.session, head.system, head.partition, head.check, head.job
        number, first = self.jobs.get(key, (len(self.jobs) + 1, sample))
        if isinstance(first, DerivedSample):  # of the inputs the file is known
            first = sample
        self.jobs[key] = number, first
        return number

    def _job(self, number: int, sample: Sample) -> Row:
        top, head = self.material.perflogs, sample.header
        path = (
            evidence_records.path_of(top, head)
            if head.session == evidence_records.FOLDER
            else path_of(top, head)
        )
        there = path.exists() and not isinstance(sample, DerivedSample)
        return _row(
            "jobs",
            head,
            job=number,
            id=head.job,
            time=_moment(moment_of(head)),
            conditions="; ".join(f"{key} {value}" for key, value in head.conditions.items()),
            file=path.relative_to(top) if there else "",
            sha256=_sha256(path, top) if there else "",
        )

    def _waiver(self, key: str) -> Row:
        waiver = self.material.site.waivers[key]
        nodes, wrong = " ".join(waiver.set), " ".join(waiver.wrong_answers)
        expires = waiver.expires.isoformat()
        return _row(
            "waivers",
            waiver,
            waiver=key,
            nodes=nodes,
            gpus=" ".join(sorted(waiver.gpu_set)) or "all",
            wrong_answers=wrong,
            expires=expires,
        )


def _each(result: CriterionVerdict) -> Iterator[tuple[NodeVerdict, bool]]:
    """The units that owe a value, and whether it counts only in a median, mean or sum."""
    criterion = result.criterion
    in_middle = not criterion.over or criterion.combines == SUM
    for node in result.nodes:
        members = node.members if criterion.combines or not criterion.over else ()
        yield from [(one, in_middle) for one in members] or [(node, False)]


def _printed(text: str) -> str:
    """A text of the page, without what stands there for none, and the kind of its units."""
    return re.sub("^-$|^links: |^pairs: |^GPUs: ", "", text)


def _given(result: CriterionVerdict) -> str:
    """Why a verdict is another one than that of its units, or decides nothing; empty: it is not."""
    deciding = [node.verdict for node in result.nodes if not node.waived]
    if most_severe(deciding) is result.verdict and not result.excused:
        return ""
    if not result.findings:
        return "unknown"
    why = result.findings[0]
    return sentence(why) if why.text else str(why.kind)


def _status(node: NodeVerdict) -> str:
    """`ok` where its value decides, a status where that does; empty where it has neither."""
    verdict, sample = node.unwaived or node.verdict, node.sample
    if sample and sample.status == "ok":
        return "ok" if verdict in STANDINGS else ""
    if verdict not in BROKEN:
        return ""
    return sample.status if sample else next((f.status for f in node.findings if f.status), "")


def _use(sample: Sample) -> str:
    """What a sample is to the unit for which it decides."""
    if PUBLISHED in sample.own_conditions:
        return "published"
    return "derived" if isinstance(sample, DerivedSample) else "answer"


def _sha256(path: Path, below: Path) -> str:
    """The SHA-256 of a file of samples or of evidence; empty where it is refused."""
    try:
        return hashlib.sha256(files.read(path, below=below, limit=files.SAMPLES)).hexdigest()
    except (OSError, UserError):
        return ""


def _place(sample: Sample) -> str:
    """What a sample is of: a node, a pair, a link or a GPU."""
    peer = sample.dims.get(pair_units.PEER)
    link = pair_units.link_of(sample)
    name = f"{sample.node}>{peer}" if peer else pair_units.unit_of(sample)
    return f"{name} over {link}".strip() if link else name


def _facts(hardware: Hardware | None, promises: Iterable[Promise]) -> str:
    """The facts of a unit of which a bound is a share."""
    names = {one.bound.fact for one in promises if one.bound and one.bound.fact}
    known: Mapping[str, object] = hardware.quantities if hardware else {}
    return "; ".join(f"{name}={known[name]}" for name in sorted(names) if name in known)


def _bound(promise: Promise) -> Row:
    bound = promise.bound
    assert bound is not None
    unit = bound.quantity.unit
    return {"bound": bound.quantity.value, "bound_unit": unit, "bound_of": bound.fact}


def _rounding(promise: Promise) -> Row:
    if promise.rounds is None:
        return {"rounding": "", "step": "", "step_unit": ""}
    rule, step = promise.rounds
    return {"rounding": rule, "step": step.value, "step_unit": step.unit}


def _baseline(key: str, one: Baseline) -> Row:
    return _row("baselines", one, baseline=key, **_bound(one), **_rounding(one))


def _failed_check(one: Sample) -> Row:
    own = {"node": one.node, "status": one.status, "why": one.why}
    return _row("checks", one.header, stated=of_status(one.status), **own)


def _moment(moment: datetime) -> str:
    """A time in UTC, as recompute.py reads it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
