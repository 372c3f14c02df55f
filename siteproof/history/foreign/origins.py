"""Where, what, and under which conditions a test of ReFrame measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from siteproof.errors import harmless
from siteproof.record import plain_tests

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
_NOTHING = ("", "{}", "[]", "false", "False")
FIRST, LAST = 2000, 2099  # years of a test
FAILED = ("fail", "failure", "failed", "abort", "aborted")
LONGEST = 100_000  # characters: a list of some ten thousand nodes


class Refused(ValueError):
    """The reason why a line cannot be read."""


@dataclass(frozen=True)
class Origin:
    """What all values of a test's run share, apart from time and job.

    check: the test's class. dims: its parameters.
    """

    system: str
    partition: str
    environment: str
    check: str
    result: str = ""
    why: str = ""
    dims: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)

    @property
    def system_in_file(self) -> str:
        """The system that the file names; it may be imported as another."""
        return self.conditions.get("system", self.system)


def of(fields: Mapping[str, str], site: str = "") -> Origin:
    """The origin in named texts. Raises Refused.

    site: the system that the values are imported for; another name in them is a condition.
    """
    if any(len(text) > LONGEST for text in fields.values()):
        raise Refused(f"a text of more than {LONGEST} characters")
    name, dims = _named(fields)
    place = _place(fields)
    conditions = {
        harmless(key): harmless(text)
        for key, text in fields.items()
        if key and key not in NO_CONDITION and key not in dims and text not in _NOTHING
    }
    system = site or place["system"]
    if place["system"] not in ("", system):
        conditions["system"] = place["system"]
    if place["partition"]:
        conditions["partition"] = place["partition"]
    result = fields.get("result", "")
    if not _WORD.fullmatch(result):
        raise Refused(f"'{harmless(result[:40])}' is not a result of a test")
    return Origin(
        system,
        place["partition"],
        place["environ"],
        name,
        result,
        harmless(fields.get("fail_reason", "")),
        dims,
        conditions,
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
        raise Refused(f"'{harmless(text[:40])}' is not the name of a test" if text else "no name")
    return check, dims


def _place(fields: Mapping[str, str]) -> dict[str, str]:
    match = _INFO.fullmatch(fields.get("info", ""))
    found = {}
    for key in ("system", "partition", "environ"):
        found[key] = fields.get(key) or (match[key] if match and match[key] else "")
        if not _PLACE.fullmatch(found[key]):
            raise Refused(f"'{harmless(found[key][:40])}' is not a {key}")
    return found


def instant(seconds: float) -> datetime:
    """A time in UTC, without a zone. Raises ValueError if no test can have ended then."""
    if not 0 < seconds < 1e10:
        raise ValueError(seconds)
    found = datetime(1970, 1, 1) + timedelta(microseconds=round(seconds * 1e6))  # noqa: DTZ001
    if not FIRST <= found.year <= LAST:
        raise ValueError(seconds)
    return found
