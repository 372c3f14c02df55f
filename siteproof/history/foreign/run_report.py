"""ReFrame's run reports, JSON of versions 3 and 4: performance variables of test cases.

3.x has `perfvars`, a list of objects, and no time a case; 4.x has `perfvalues`, by
`system:partition:variable`, [value, reference, lower, upper, unit], and the time. Figures that were
restored from another session are in that session's report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import origins, source, times, values
from siteproof.history.foreign.arrays import Batch, Ints
from siteproof.history.foreign.columns import NAMES, NO_CONDITION
from siteproof.history.foreign.joined import Lines, Table
from siteproof.history.foreign.origins import Context, Refused
from siteproof.history.foreign.values import REFUSED, Figures

_OURS = "reframe_settings.py"  # the settings file of Siteproof's runs
_NO_FIELD = (NO_CONDITION - {*NAMES, "system", "partition", "result", "fail_reason"}) | {
    "perfvalues",
    "perfvars",
    "check_vars",
    "check_params",
    "fail_info",
    "nodelist",
    "environment",
    "description",
    "fail_severe",
    "filename",
    "fixture",
    "run_index",
    "scheduler",
    "session_uuid",
    "uuid",
    "runid",
}
_PREFIXES = ("build_", "dependencies_", "time_", "job_std")


@dataclass(frozen=True)
class Case:
    """A test case. number: from 1. trial: of which run it is. time: when it ended, microseconds.

    variables: name, value and unit.
    """

    number: int
    trial: int
    context: Context
    variables: Sequence[tuple[str, object, str]]
    time: int
    job: str
    node: str


def read(path: Path, system: str, file: str, zone: ZoneInfo | None) -> Batch:
    """All rows of a run report. Raises OSError, and UserError where it is none."""
    report = _load(path)
    table, refused, cases = Table(file), [], []
    start = _moment(path, report["session_info"], "time_start", zone)
    end = _moment(path, report["session_info"], "time_end", zone)
    contexts: dict[tuple[object, ...], Context] = {}
    for number, trial, case in _cases(path, report):
        try:
            cases.append(_case(case, number, trial, (system, end), contexts))
        except Refused as error:
            refused.append((number, str(error)))
    kept, figures, bad = _figures(cases)
    _add(table, kept, figures, start)
    batch = table.batch()
    batch.refused = [f"{path}: test case {i}: {why}" for i, why in sorted(refused + bad)]
    batch.systems = {c.context.conditions.get("system", c.context.system) for c in kept} - {""}
    batch.told = table.notes()
    return batch


def _load(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(source.content(path, files.REPORT).decode())
    except UnicodeDecodeError:
        raise UserError(path, "not UTF-8") from None
    except RecursionError:
        raise UserError(path, "no run report: nested too deeply") from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise UserError(f"{path}:{line}", "broken JSON: cut short?", "a whole run report") from None
    if files.is_deep(report):
        raise UserError(path, "no run report: nested too deeply")
    if not isinstance(report, dict) or not isinstance(report.get("session_info"), dict):
        raise UserError(path, "no run report of ReFrame")
    settings = report["session_info"].get("config_files") or []
    if any(str(name).endswith(f"/{_OURS}") for name in settings if isinstance(settings, list)):
        raise UserError(
            path,
            "a run report of Siteproof's own checks, whose figures are in the samples",
            "run reports of other checks",
        )
    return report


def _cases(path: Path, report: Mapping[str, Any]) -> Iterator[tuple[int, int, Any]]:
    """Each test case with its number, from 1, and that of its run: retries are later runs."""
    runs = report.get("runs")
    if not isinstance(runs, list) or not all(
        isinstance(r, dict) and isinstance(r.get("testcases"), list) for r in runs
    ):
        raise UserError(path, "no run report of ReFrame: no list of runs")
    number = 0
    for trial, run in enumerate(runs):
        for case in run["testcases"]:
            number += 1
            yield number, trial, case


def _moment(path: Path, info: Mapping[str, Any], key: str, zone: ZoneInfo | None) -> int:
    """When the session began or ended, in microseconds since 1970. Raises UserError."""
    try:
        if isinstance(seconds := info.get(f"{key}_unix"), (int, float)):
            return _instant(seconds)
        found = datetime.fromisoformat(str(info.get(key)))
        return _instant((found if found.tzinfo else found.replace(tzinfo=zone or UTC)).timestamp())
    except (ValueError, ArithmeticError):
        raise UserError(path, f"no {key} in its session_info") from None


def _instant(seconds: float) -> int:
    """Microseconds since 1970. Raises ValueError where it is no time of a test."""
    if not times.FIRST <= seconds * 1_000_000 < times.LAST:
        raise ValueError(seconds)
    return int(Decimal(repr(seconds)) * 1_000_000)


def _case(
    case: Any,
    number: int,
    trial: int,
    told: tuple[str, int],
    contexts: dict[tuple[object, ...], Context],
) -> Case:
    """A test case. Raises Refused. told: the site, and when the session ended."""
    try:
        fields, variables = _fields(case), _variables(case)
        key = tuple(fields.items())
        if key not in contexts:
            contexts[key] = origins.of(fields, told[0])
        node = origins.node(_text(case.get("job_nodelist") or case.get("nodelist")))
        done, job = case.get("job_completion_time_unix"), case.get("jobid")
        time = _instant(done) if done else told[1]
    except Refused:
        raise
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError):
        raise Refused("not as ReFrame writes a test case") from None
    return Case(
        number,
        trial,
        contexts[key],
        variables,
        time,
        "" if job is None else harmless(str(job)),
        node,
    )


def _figures(cases: Sequence[Case]) -> tuple[list[Case], Figures, list[tuple[int, str]]]:
    """Cases with figures, these, and why other cases are refused."""
    found = values.texts([value for c in cases for _, value, _ in c.variables])
    owner = np.repeat(np.arange(len(cases)), [len(c.variables) for c in cases])
    wrong = np.flatnonzero(found.kinds == REFUSED)
    bad = {
        int(owner[i]): f"'{str(found.digits[i])[:40]}' is no number that a test gives"
        for i in wrong
    }
    kept = [case for i, case in enumerate(cases) if i not in bad and case.variables]
    good = np.flatnonzero(~np.isin(owner, list(bad)))
    return kept, found.some(good), [(cases[i].number, why) for i, why in bad.items()]


def _add(table: Table, cases: Sequence[Case], figures: Figures, start: int) -> None:
    pairs = zip(((c, v) for c in cases for v in c.variables), figures.kinds.tolist(), strict=True)
    template = [table.template(c.context, name, unit, kind) for (c, (name, _, unit)), kind in pairs]
    owner = np.repeat(np.arange(len(cases)), [len(c.variables) for c in cases])
    trial = np.array([c.trial for c in cases], dtype=np.int32)[owner]
    lines = Lines(
        _numbers(c.number for c in cases),
        _numbers(c.time for c in cases),
        np.full(len(cases), start),
        np.array([c.job for c in cases], dtype=object),
        _numbers(table.head(c.context) for c in cases),
        _numbers(table.node(c.node) for c in cases),
    )
    table.add_several(lines, owner, _numbers(template), figures, trial)


def _numbers(found: Iterable[int]) -> Ints:
    return np.array(list(found), dtype=np.int64)


def _variables(case: Mapping[str, Any]) -> list[tuple[str, object, str]]:
    """Name, value and unit of each performance variable."""
    held = case.get("perfvalues") or case.get("perfvars") or {}
    if isinstance(held, list):
        found = [(v["name"], v["value"], v["unit"]) for v in held if isinstance(v, dict)]
    else:
        found = [(key.rpartition(":")[2], info[0], info[4]) for key, info in held.items()]
    if len(found) != len(held) or not all(
        isinstance(v, (int, float, type(None))) and not isinstance(v, bool) for _, v, _ in found
    ):
        raise Refused("its performance variables are not as ReFrame writes them")
    return [(harmless(str(n)), v, "" if u is None else str(u)) for n, v, u in found]


def _fields(case: Mapping[str, Any]) -> dict[str, str]:
    """What a case says of itself, in the words of a perflog."""
    flat = case
    for key in ("check_vars", "check_params"):  # 3.x
        flat = {**(case.get(key) or {}), **flat}
    found = {
        key: _text(value)
        for key, value in flat.items()
        if value is not None and key not in _NO_FIELD and not key.startswith(_PREFIXES)
    }
    found["environ"] = _text(case.get("environ") or case.get("environment"))
    found["system"], _, part = found.get("system", "").partition(":")  # 3.x: system:partition
    found["partition"] = found.get("partition") or part
    return found


def _text(value: Any) -> str:
    """A value as ReFrame's logs have it."""
    if value is None or value == "<undefined>":
        return ""
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)
