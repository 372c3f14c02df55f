"""ReFrame's run reports, JSON of versions 3 and 4: performance variables of test cases.

3.x has `perfvars`, a list of objects, and no time of a case; 4.x has `perfvalues`, by
`system:partition:variable`, [value, reference, lower, upper, unit], and the time. Figures that were
restored from another session are in that session's report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import origins
from siteproof.history.foreign.figures import File, Line
from siteproof.history.foreign.origins import (
    MAX_KNOWN,
    NAMES,
    NO_CONDITION,
    SESSION,
    Origin,
    Refused,
    Variable,
)
from siteproof.record import plain_tests

_REFERENCE = ("reference", "thres_lower", "thres_upper")  # of a variable of 3.x
_OURS = "reframe_settings.py"  # the settings file of Siteproof's runs
_NO_FIELD = NO_CONDITION - {*NAMES, "system", "partition", "result", "fail_reason"}
_PREFIXES = ("build_", "dependencies_", "time_", "job_std")


class Report:
    """A run report. Raises UserError for another file."""

    PART = " test case "  # what the number of a line counts

    def __init__(self, file: File, data: bytes) -> None:
        self.file, self.report = file, _load(file.path, data)
        info = self.report["session_info"]
        self.start, self.end = (_moment(file, info, key) for key in ("time_start", "time_end"))
        settings = info.get("config_files")
        # Of a run with Siteproof's settings all values are in samples.
        self.is_ours = isinstance(settings, list) and any(
            Path(str(s)).name == _OURS for s in settings
        )
        self.origin = lru_cache(MAX_KNOWN)(self._origin)

    def parts(self) -> Iterator[tuple[int, Any]]:
        """Each test case and its number, from 1, with that of its run: retries are later runs."""
        cases = [
            (trial, one)
            for trial, run in enumerate(self.report["runs"])
            for one in run["testcases"]
        ]
        return enumerate(cases, start=1)

    def line(self, part: tuple[int, Any]) -> Line | None:
        """The values of a test case; None if it has none. Raises Refused."""
        try:
            return self._line(*part)
        except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError):
            raise Refused("not as ReFrame writes a test case") from None

    def _line(self, trial: int, case: Any) -> Line | None:
        values = _variables(case)
        if not values:
            return None
        job, done = case.get("jobid"), case.get("job_completion_time_unix")
        return Line(
            self.origin(tuple(_fields(case).items()), tuple(variable for variable, _ in values)),
            origins.instant(done) if done else self.end,
            self.start,
            origins.node(_text(case.get("job_nodelist") or case.get("nodelist"))),
            "" if job is None else harmless(str(job)),
            ["" if value is None else repr(value) for _, value in values],
            trial,
        )

    def _origin(self, fields: Sequence[tuple[str, str]], variables: Sequence[Variable]) -> Origin:
        session = {SESSION: "with its settings"} if self.is_ours else {}
        return origins.of({**dict(fields), **session}, variables, self.file.site)


def _load(path: Path, data: bytes) -> dict[str, Any]:
    if len(data) > files.REPORT:
        raise UserError(path, "too large", f"at most {files.REPORT >> 20} MiB")
    try:
        report: dict[str, Any] = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise UserError(f"{path}:{line}", "broken JSON: cut short?", "a whole run report") from None
    if files.is_deep(report):
        raise UserError(path, "not a run report: nested too deeply")
    match report:
        case {"session_info": dict(), "runs": [*runs]}:
            if all(
                isinstance(run, dict) and isinstance(run.get("testcases"), list) for run in runs
            ):
                return report
    raise UserError(path, "not a run report of ReFrame: no session_info, or no list of runs")


def _moment(file: File, info: Mapping[str, Any], key: str) -> datetime:
    """When the session began or ended, in UTC. Raises UserError."""
    try:
        if isinstance(seconds := info.get(f"{key}_unix"), (int, float)):
            return origins.instant(seconds)
        return file.in_utc(str(info.get(key)))
    except (ValueError, ArithmeticError):
        raise UserError(file.path, f"no valid {key} in its session_info") from None


def _variables(case: Mapping[str, Any]) -> list[tuple[Variable, object]]:
    """The performance variables and their values. Raises LookupError and others.

    A value that is not a number is refused as a text would be.
    """
    of_4, of_3 = case.get("perfvalues") or {}, case.get("perfvars") or []
    found = [(key.rpartition(":")[2], *texts[:5]) for key, texts in of_4.items()]
    for one in of_3:
        found.append((one["name"], one["value"], *map(one.get, _REFERENCE), one["unit"]))
    variables = []
    for name, value, expected, lower, upper, unit in found:
        unit = "" if unit is None else str(unit)
        reference = plain_tests.reference(expected, lower, upper, unit)
        variables.append((Variable(harmless(str(name)), unit, reference), value))
    return variables


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
