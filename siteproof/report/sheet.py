"""The acceptance sheet: each requirement with its answer, its evidence, and a place to sign."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from siteproof.judge.criterion import CriterionVerdict
from siteproof.record import shown
from siteproof.record.samples import PUBLISHED
from siteproof.report import value_tables
from siteproof.report.chapters import criteria, samples
from siteproof.report.material import Material
from siteproof.report.numbering import NOTHING
from siteproof.report.phrases import few, period, when
from siteproof.report.sections import Section, Table
from siteproof.units import count
from siteproof.verdict.tally import Tally
from siteproof.wording import tallies

COLUMNS = (
    *("criterion", "requirement", "source", "limit", "worst value", "margin", "verdict"),
    *("counts and reasons", "waived", "jobs"),
)
FILES = ("job", "of", "file below perflogs", "SHA-256")
SIGNED = ("for", "name", "role", "date", "signature")
DECIDED = ("decision", "mark", "remarks")
DECISIONS = ("accepted", "accepted with reservations", "refused")
SESSIONS = ("session", "first job", "last job", "jobs")
BOX = "[   ]"
PARTIES = ("the vendor", "the operator")
LINE = "_" * 24
MAX_REASONS = 2  # of a criterion
MAX_WAIVERS = 6
MAX_SUITES = 4
SHEET_NOTE = (
    "Jobs are the numbers of the files below. A limit counts for values of mode maintenance or "
    "acceptance, unless another is named. The value of median and mean is that of all nodes. "
    "A waived node misses its limit, and its owner answers for it up to the day given."
)
FILES_NOTE = (
    "recompute.py applies bounds and rounding to the tables that this page carries; 'sha256sum' on "
    "the files that are saved from it, and below perflogs, must give these sums."
)


def section(material: Material) -> Section | None:
    """The sheet; None where there is no criterion."""
    verdicts = material.judged.verdicts
    if not verdicts:
        return None
    rows = [_row(material, result) for result in verdicts]
    title = f"Requirements ({len(rows)})"
    found = [
        Table(COLUMNS, rows, SHEET_NOTE, title=title),
        Table(DECIDED, [(one, BOX, LINE) for one in DECISIONS], title="Decision"),
        Table(SIGNED, [(party, *[LINE] * 4) for party in PARTIES], title="Signatures"),
        Table(SESSIONS, _sessions(material), title="Sessions", numeric={"jobs"}),
        Table(FILES, [*_files(material), *_tables(material)], FILES_NOTE, title="Evidence"),
    ]
    return Section("sheet", "Acceptance sheet", _lead(material), found)


def _lead(material: Material) -> str:
    """What is signed: system, campaign with its times, suite and day."""
    heads = [s.header for s in material.judged.samples if s.header.mode != PUBLISHED]
    suites = sorted({head.provenance.get("suite", "") for head in heads} - {""})
    measured = few(suites, MAX_SUITES) or "not recorded"
    verdict = material.judged.most_severe or "undecided"
    return (
        f"System {material.system}, {material.judged.chosen}: {verdict}. "
        f"{count(len(material.judged.verdicts), 'requirement')}; measured "
        f"{period([head.time for head in heads])}; suite revision {measured}; made "
        f"{when(material.now)}."
    )


def _row(material: Material, result: CriterionVerdict) -> tuple[str, ...]:
    tally, criterion = Tally.of(material.site, result), result.criterion
    values = material.once(samples.of_units)
    own = [row for (key, _), rows in values.items() if key == result.id for row in rows]
    return (
        result.id,
        criterion.description,
        criterion.source,
        "; ".join(criteria.required(tally)),
        ", ".join(filter(None, (tallies.value(tally), tallies.worst(tally)))),
        tallies.margin(tally),
        str(result.verdict),
        "; ".join([*tallies.counts(tally), *tallies.reasons(tally)[:MAX_REASONS]]) or NOTHING,
        "; ".join(_waived(material, result)) or NOTHING,
        ", ".join(samples.jobs_of(own)) or NOTHING,
    )


def _waived(material: Material, result: CriterionVerdict) -> list[str]:
    """The waivers that excuse a node of a criterion: nodes, key, owner and last day."""
    excused = {node.node for node in result.nodes if node.waived}
    by_key: dict[str, list[str]] = {}
    for row in value_tables.dicts(material, "units"):
        if row["criterion"] == result.id and row["unit"] in excused:
            for key in row["waivers"].split():
                by_key.setdefault(key, []).append(row["unit"])
    waivers = material.site.waivers
    texts = [
        f"{tallies.units(units)}: {key}, {waivers[key].owner}, until {waivers[key].expires}"
        for key, units in by_key.items()
    ]
    return texts[:MAX_WAIVERS]


def _sessions(material: Material) -> list[tuple[str, ...]]:
    """Each session that the values come from, and the times of its first and last job."""
    times: dict[str, list[str]] = {}
    for job in value_tables.dicts(material, "jobs"):
        times.setdefault(str(job["session"]), []).append(str(job["time"]))
    return [
        (name, when(min(of)), when(max(of)), str(len(of))) for name, of in sorted(times.items())
    ]


def _files(material: Material) -> Iterator[tuple[str, ...]]:
    """The file of each job; of evidence the record, and the file that a person has shown."""
    records = {one.name: one for one in shown.read_all(material.perflogs, material.system)}
    for job in value_tables.dicts(material, "jobs"):
        of = job["check"]
        if job["session"] == shown.FOLDER and job["id"] in records:
            one = records[job["id"]]
            of = f"{one.file} (SHA-256 {one.sha256}), shown by {one.by} on {one.on}"
        yield str(job["job"]), of, str(job["file"]) or NOTHING, job["sha256"] or NOTHING


def _tables(material: Material) -> Iterator[tuple[str, ...]]:
    """The tables and the script that the page carries, so that a signature covers them."""
    for one in material.once(value_tables.attached):
        digest = hashlib.sha256(one.text.encode("utf-8", "backslashreplace")).hexdigest()
        yield NOTHING, f"{one.name} of this page", NOTHING, digest
