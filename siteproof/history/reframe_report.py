"""ReFrame's run reports, JSON of versions 3 and 4: performance variables of test cases.

3.x has `perfvars`, a list of objects, and no time a case; 4.x has `perfvalues`, by
`system:partition:variable`, [value, reference, lower, upper, unit], and the time. Figures that were
restored from another session are in that session's report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from siteproof.errors import UserError, harmless
from siteproof.history import reframe_context, reframe_figures, reframe_time
from siteproof.history.reframe_context import Context, Refused
from siteproof.history.reframe_figures import REFUSED, Figures
from siteproof.history.reframe_rows import Table
from siteproof.history.reframe_types import Batch

_OURS = "reframe_settings.py"  # the settings file of Siteproof's runs
_NO_FIELD = ("perfvalues", "perfvars", "check_vars", "check_params", "fail_info", "nodelist",
             "environment", "perf_var")
_PREFIXES = ("build_", "dependencies_", "time_", "job_std")
_NOT_OF_A_TEST = ("description", "fail_severe", "filename", "fixture", "run_index", "scheduler",
                  "session_uuid", "uuid", "runid")


@dataclass(frozen=True)
class Case:
    """A test case. variables: name, value and unit. time: when it ended, in microseconds."""

    context: Context
    variables: Sequence[tuple[str, object, str]]
    figures: Figures
    time: int
    job: str
    node: str


def read(path: Path, system: str, file: str, zone: ZoneInfo | None) -> Batch:
    """All rows of a run report. Raises OSError, and UserError where it is none."""
    report = _load(path)
    table, refused, systems = Table(file), [], set()
    start = _moment(path, report["session_info"], "time_start", zone)
    end = _moment(path, report["session_info"], "time_end", zone)
    for number, trial, case in _cases(path, report):
        try:
            found = _case(case, system, end)
        except Refused as error:
            refused.append(f"{path}: test case {number}: {error}")
            continue
        if found.variables:
            _add(found, table, {"number": number, "began": start}, trial)
            systems.add(found.context.conditions.get("system", found.context.system))
    batch = table.batch()
    batch.refused, batch.systems = refused, systems - {""}
    batch.told = table.notes()
    return batch


def _load(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UserError(path, "not UTF-8") from None
    except RecursionError:
        raise UserError(path, "no run report: nested too deeply") from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise UserError(f"{path}:{line}", "broken JSON: cut short?", "a whole run report") from None
    if not isinstance(report, dict) or not isinstance(report.get("session_info"), dict):
        raise UserError(path, "no run report of ReFrame")
    settings = report["session_info"].get("config_files") or []
    if any(str(name).endswith(f"/{_OURS}") for name in settings if isinstance(settings, list)):
        raise UserError(path, "a run report of Siteproof's own checks, whose figures are in the "
                        "samples", "run reports of other checks")
    return report


def _cases(path: Path, report: Mapping[str, Any]) -> Iterator[tuple[int, int, Any]]:
    """Each test case with its number, from 1, and that of its run: retries are later runs."""
    runs = report.get("runs")
    if not isinstance(runs, list) or not all(
            isinstance(r, dict) and isinstance(r.get("testcases"), list) for r in runs):
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
    except (ValueError, OverflowError, OSError):
        raise UserError(path, f"no {key} in its session_info") from None


def _instant(seconds: float) -> int:
    """Microseconds since 1970. Raises ValueError where it is no time of a test."""
    text = repr(float(seconds)).encode()
    cells = np.frombuffer(text.ljust(-(-len(text) // 8) * 8, b"\0"), dtype=np.uint8)
    found = int(reframe_time.of_seconds(cells[None])[0])
    if found == reframe_time.BAD:
        raise ValueError(seconds)
    return found


def _case(case: Any, site: str, end: int) -> Case:
    """A test case. Raises Refused."""
    try:
        context, variables = reframe_context.of(_fields(case), site), _variables(case)
        node = reframe_context.node(_text(case.get("job_nodelist") or case.get("nodelist")))
        done, job = case.get("job_completion_time_unix"), case.get("jobid")
        time = _instant(done) if done else end
    except Refused:
        raise
    except (LookupError, AttributeError, TypeError, ValueError, OverflowError, OSError):
        raise Refused("not as ReFrame writes a test case") from None
    figures = reframe_figures.texts([value for _, value, _ in variables])
    if (bad := figures.kinds == REFUSED).any():
        raise Refused(f"'{str(figures.digits[bad][0])[:40]}' is no number that a test gives")
    return Case(context, variables, figures, time, "" if job is None else harmless(str(job)),
                node)


def _add(case: Case, table: Table, line: dict[str, int], trial: int) -> None:
    pairs = zip(case.variables, case.figures.kinds.tolist(), strict=True)
    template = [table.template(case.context, name, unit, kind) for (name, _, unit), kind in pairs]
    head, node = table.head(case.context), table.node(case.node)
    table.add_one({**line, "time": case.time, "job": case.job, "head": head, "node": node},
                  np.array(template), case.figures, trial)


def _variables(case: Mapping[str, Any]) -> list[tuple[str, object, str]]:
    """Name, value and unit of each performance variable."""
    held = case.get("perfvalues") or case.get("perfvars") or {}
    if isinstance(held, list):
        found = [(v["name"], v["value"], v["unit"]) for v in held if isinstance(v, dict)]
    else:
        found = [(key.rpartition(":")[2], info[0], info[4]) for key, info in held.items()]
    if len(found) != len(held) or not all(
            isinstance(v, (int, float, type(None))) and not isinstance(v, bool)
            for _, v, _ in found):
        raise Refused("its performance variables are not as ReFrame writes them")
    return [(harmless(str(n)), v, "" if u is None else str(u)) for n, v, u in found]


def _fields(case: Mapping[str, Any]) -> dict[str, str]:
    """What a case says of itself, in the words of a perflog."""
    flat = {k: v for k, v in case.items() if k not in _NO_FIELD}
    for key in ("check_vars", "check_params"):  # 3.x
        flat = {**(case.get(key) or {}), **flat}
    found = {
        key: _text(value) for key, value in flat.items()
        if not key.startswith(_PREFIXES) and key not in _NOT_OF_A_TEST}
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
