"""ReFrame's run reports, JSON of versions 3 and 4: performance variables of test cases.

3.x has `perfvars`, a list of objects, and no time of a case; 4.x has `perfvalues`, by
`system:partition:variable`, [value, reference, lower, upper, unit], and the time. Figures that were
restored from another session are in that session's report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import origins
from siteproof.history.foreign.figures import File, Known, Line, Variable
from siteproof.history.foreign.origins import NAMES, NO_CONDITION, Refused
from siteproof.record import plain_tests

_REFERENCE = ("reference", "thres_lower", "thres_upper")  # of a variable of 3.x
_OURS = "reframe_settings.py"  # the settings file of Siteproof's runs
_NO_FIELD = NO_CONDITION - {*NAMES, "system", "partition", "result", "fail_reason"}
_PREFIXES = ("build_", "dependencies_", "time_", "job_std")
Value = tuple[str, object, str, str]  # a performance variable: name, value, unit, reference


def lines(file: File, data: bytes) -> Iterator[Line]:
    """All cases of a run report that give rows. Raises UserError for another file."""
    file.label = " test case "
    report = _load(file.path, data)
    info = report["session_info"]
    start, end = (_moment(file, info, key) for key in ("time_start", "time_end"))
    is_ours = _is_ours(info)
    for number, trial, case in _cases(file.path, report):
        try:
            values = _variables(case)
            words = ["" if value is None else repr(value) for _, value, *_ in values]
            if not values or file.leaves_out(known := _known(file, case, values, is_ours), words):
                continue
            job, done = case.get("jobid"), case.get("job_completion_time_unix")
            yield Line(
                number,
                known,
                origins.instant(done) if done else end,
                start,
                origins.node(_text(case.get("job_nodelist") or case.get("nodelist"))),
                "" if job is None else harmless(str(job)),
                words,
                trial,
            )
        except Refused as error:
            file.refuse(number, str(error))
        except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError):
            file.refuse(number, "not as ReFrame writes a test case")


def _is_ours(info: Mapping[str, Any]) -> bool:
    """Whether it is of a run with Siteproof's settings, whose values are all in samples."""
    settings = info.get("config_files")
    return isinstance(settings, list) and any(Path(str(s)).name == _OURS for s in settings)


def _known(file: File, case: Any, values: Sequence[Value], is_ours: bool) -> Known:
    """What the case's values have in common, made once. Raises Refused and others."""
    fields = _fields(case)
    variables = tuple(Variable(name, unit, reference) for name, _, unit, reference in values)
    key = (*fields.items(), variables)
    return file.known.get(key) or file.learn(key, fields, variables, is_ours=is_ours)


def _load(path: Path, data: bytes) -> dict[str, Any]:
    if len(data) > files.REPORT:
        raise UserError(path, "too large", f"at most {files.REPORT >> 20} MiB")
    try:
        report = json.loads(data.decode())
    except UnicodeDecodeError:
        raise UserError(path, "not UTF-8") from None
    except RecursionError:
        raise UserError(path, "not a run report: nested too deeply") from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise UserError(f"{path}:{line}", "broken JSON: cut short?", "a whole run report") from None
    if files.is_deep(report):
        raise UserError(path, "not a run report: nested too deeply")
    if not isinstance(report, dict) or not isinstance(report.get("session_info"), dict):
        raise UserError(path, "not a run report of ReFrame")
    return report


def _cases(path: Path, report: Mapping[str, Any]) -> Iterator[tuple[int, int, Any]]:
    """Each test case with its number, from 1, and that of its run: retries are later runs."""
    runs = report.get("runs")
    if not isinstance(runs, list) or not all(
        isinstance(r, dict) and isinstance(r.get("testcases"), list) for r in runs
    ):
        raise UserError(path, "not a run report of ReFrame: it has no list of runs")
    number = 0
    for trial, run in enumerate(runs):
        for case in run["testcases"]:
            number += 1
            yield number, trial, case


def _moment(file: File, info: Mapping[str, Any], key: str) -> datetime:
    """When the session began or ended, in UTC. Raises UserError."""
    try:
        if isinstance(seconds := info.get(f"{key}_unix"), (int, float)):
            return origins.instant(seconds)
        return file.in_utc(str(info.get(key)))
    except (ValueError, ArithmeticError):
        raise UserError(file.path, f"no valid {key} in its session_info") from None


def _variables(case: Mapping[str, Any]) -> list[Value]:
    """Name, value, unit and reference of each performance variable. Raises LookupError and others.

    A value that is not a number is refused as a text would be.
    """
    of_4, of_3 = case.get("perfvalues") or {}, case.get("perfvars") or []
    found = [(key.rpartition(":")[2], *texts[:5]) for key, texts in of_4.items()]
    for one in of_3:
        found.append((one["name"], one["value"], *map(one.get, _REFERENCE), one["unit"]))
    return [
        (
            harmless(str(name)),
            value,
            "" if unit is None else str(unit),
            plain_tests.reference(
                value_of_reference, lower, upper, "" if unit is None else str(unit)
            ),
        )
        for name, value, value_of_reference, lower, upper, unit in found
    ]


def _fields(case: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a case, with their names in a perflog."""
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
    """A value as in ReFrame's perflogs."""
    if value is None or value == "<undefined>":
        return ""
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)
