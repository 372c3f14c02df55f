"""Where, what, and under which conditions a test of ReFrame measured: what many lines share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from siteproof.errors import harmless
from siteproof.history import tables
from siteproof.record import plain_tests
from siteproof.record.samples import Header, Sample

SESSION = "siteproof_session"  # of Siteproof's settings: the session with the samples of a line
NAMES = ("display_name", "name", "info", "unique_name", "short_name")  # of a test, best first
# What is no condition: fields that ReFrame's defaults leave out of a perflog, what differs from
# run to run by chance, and what has a column of its own in the history.
NO_CONDITION = frozenset(
    f"""
    build_locally build_time_limit display_name executable executable_opts hashcode keep_files
    local maintainers max_pending_time outputdir prebuild_cmds prefix prerun_cmds
    postbuild_cmds postrun_cmds readonly_files sourcepath sourcesdir stagedir strict_check
    tags time_limit valid_prog_environs valid_systems variables descr info name short_name
    unique_name version jobid job_submit_time job_exitcode result fail_phase fail_reason
    osuser osgroup hostname asctime created levelname message perf_var perf_value perf_unit
    perf_ref perf_lower perf_upper perf_lower_thres perf_upper_thres perf_result system
    partition environ {SESSION} job_nodelist job_completion_time job_completion_time_unix
    perfvalues perfvars check_vars check_params fail_info nodelist environment description
    fail_severe filename fixture run_index scheduler session_uuid uuid runid
    """.split()
) | {"reframe version"}

_INFO = re.compile(  # 4.x: NAME %p=v /hash @system:partition+environment; 3.0: NAME on … using …
    r"(?P<name>\S+(?: %\S.*?)?)(?: ~\S+)?(?: /[0-9a-f]{8})?"
    r"(?: (?:@|on )(?P<system>[^\s:+]+)(?::(?P<partition>[^\s+]+))?"
    r"(?:(?:\+| using )(?P<environ>\S+))?)?"
)
_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PLACE = re.compile(r"[\w.+-]*")
_CHECK = re.compile(r"[A-Za-z_][\w.:<>~+@/-]*")
_WORD = re.compile(r"[a-z_]*")
_DISTRIBUTED = ("$nodes", "$nid", ".nid")  # parameters that --distribute makes
_NOTHING = ("", "{}", "[]", "false", "False")
FIRST, LAST = 2000, 2099  # years of a test
LONGEST = 100_000  # characters: a list of some ten thousand nodes
MAX_KNOWN = 10_000  # origins of a file that are remembered
MAX_NAME = 200  # characters of a variable
_ANY_TIME = "2000-01-01T00:00:00+00:00"  # of a header whose runs have times of their own
_FAILED = ("fail", "failure", "failed", "abort", "aborted")
_NO_VALUE = {"value": None, "digits": None, "unit": "", "factor": None, "kind": ""}
NOT_FINITE = {**_NO_VALUE, "status": "invalid", "why": "the value is not a finite number"}


class Refused(Exception):
    """The reason why a line cannot be read."""


@dataclass(frozen=True)
class Variable:
    """A performance variable of a test. unit: as printed; empty if there is none.

    reference: ReFrame's, as `record.plain_tests.reference` writes it; empty if there is none.
    """

    name: str
    unit: str
    reference: str = ""

    def __post_init__(self) -> None:
        if "=" in self.name or "|" in self.name or len(self.name) > MAX_NAME:
            raise Refused(f"'{self.name[:40]}' is not a valid name of a variable")


@dataclass(frozen=True, eq=False)
class Origin:
    """What all values of a test's runs share, apart from time and job.

    variables: one for each value of a line. dims: the test's parameters. no_value: the columns of
    a row without a value. node: that of ReFrame's --distribute. system_in_file: the file's; it may
    be imported as another. is_ours: of Siteproof's runs.
    """

    header: Header
    variables: Sequence[Variable]
    dims: Mapping[str, str]
    conditions: Mapping[str, str]
    no_value: Mapping[str, Any]
    system_in_file: str
    is_ours: bool
    node: str = ""

    @cached_property
    def context(self) -> tables.Context:
        """The conditions of all values."""
        return tables.context(self.header, self.conditions)

    @cached_property
    def run(self) -> dict[str, Any]:
        """What the rows of all runs share."""
        return tables.run_row(self.header, "", 0, len(self.variables))

    @cached_property
    def samples(self) -> Sequence[dict[str, Any]]:
        """What the rows of each variable share, if they have a value."""
        return [self._sample(variable) for variable in self.variables]

    def _sample(self, variable: Variable) -> dict[str, Any]:
        metric = f"{self.header.check}.{variable.name}"
        unit = plain_tests.known_unit(variable.unit) or harmless(variable.unit)
        sample = Sample(self.header, "", metric, Decimal(0), unit, dims=self.dims)
        return tables.row(sample, 0, self.context)


def of(fields: Mapping[str, str], variables: Sequence[Variable], site: str = "") -> Origin:
    """The origin in named texts. Raises Refused.

    site: the system that the values are imported for; another name in them is a condition.
    """
    if any(len(text) > LONGEST for text in fields.values()):
        raise Refused(f"a text of more than {LONGEST} characters")
    name, dims = _named(fields)
    own = next((dims.pop(key) for key in _DISTRIBUTED if key in dims), "")
    place = _place(fields)
    conditions = {
        harmless(key): harmless(text)
        for key, text in fields.items()
        if key and key not in NO_CONDITION and key not in dims and text not in _NOTHING
    }
    if place["system"] not in ("", site or place["system"]):
        conditions["system"] = place["system"]
    if place["partition"]:
        conditions["partition"] = place["partition"]
    header = Header(
        session="",
        system=site or place["system"],
        partition=place["partition"],
        environment=place["environ"],
        check=name,
        job="",
        time=_ANY_TIME,
        mode=tables.IMPORTED,
        provenance={plain_tests.REFERENCE + v.name: v.reference for v in variables if v.reference},
    )
    return Origin(
        header,
        variables,
        dims,
        conditions,
        _no_value(fields),
        place["system"] or site,
        bool(fields.get(SESSION)),
        node(own),
    )


def node(text: str) -> str:
    """The node on which a test ran; empty if there were several, or it is unknown."""
    name = text.removeprefix("job_nodelist=").strip()
    return name if _NODE.fullmatch(name) and name not in ("null", "None") else ""


def _named(fields: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The test's class, and its parameters as in `Stream %threads=4`."""
    text = next((fields[name] for name in NAMES if fields.get(name)), "")
    match = _INFO.fullmatch(text)
    check, dims = plain_tests.named(match["name"] if match else "")
    if not _CHECK.fullmatch(check):
        raise Refused(f"'{text[:40]}' is not the name of a test" if text else "no name")
    return check, dims


def _place(fields: Mapping[str, str]) -> dict[str, str]:
    match = _INFO.fullmatch(fields.get("info", ""))
    found = {}
    for key in ("system", "partition", "environ"):
        found[key] = fields.get(key) or (match[key] if match and match[key] else "")
        if not _PLACE.fullmatch(found[key]):
            raise Refused(f"'{found[key][:40]}' is not a {key}")
    return found


def _no_value(fields: Mapping[str, str]) -> dict[str, Any]:
    """The columns of a row without a value, with the reason."""
    result = fields.get("result", "")
    if not _WORD.fullmatch(result):
        raise Refused(f"'{result[:40]}' is not a result of a test")
    if result not in _FAILED:
        return {**_NO_VALUE, "status": "parse", "why": "the test gave no value"}
    why = harmless(fields.get("fail_reason", "")) or "the test failed, without a value"
    return {**_NO_VALUE, "status": "generic", "why": why}


def instant(seconds: float) -> datetime:
    """A time in UTC, without a zone. Raises ValueError if no test can have ended then."""
    if not 0 < seconds < 1e10:
        raise ValueError(seconds)
    found = datetime(1970, 1, 1) + timedelta(microseconds=round(seconds * 1e6))  # noqa: DTZ001
    if not FIRST <= found.year <= LAST:
        raise ValueError(seconds)
    return found
