"""The sample: a reading with its context, written to and read from perflogs.

Each job of a session has a file `perflogs/<system>/<partition>/<session>.<check>.<job>.jsonl`: a
header line with what all samples share, then a short line for each sample. A file is written once
and renamed into place, so a reader sees it whole or not at all.

What a plain ReFrame test has measured: a test of the centre's own, without Siteproof's classes.

Its samples are written where it runs with our settings, and its perflogs can be imported. Both have
the same names: `Test %n=4` is the check `Test` with the dimension n, and a unit has its name here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache, cached_property
from pathlib import Path
from sys import intern
from typing import BinaryIO

from siteproof import files as safe
from siteproof import nodesets, units
from siteproof.errors import UserError, all_harmless, harmless
from siteproof.record.pair_units import PEER
from siteproof.units import COUNTED, UNITS

Order = tuple[int, str, str]
JobOrder = tuple[int, str, str, str]

FORMAT = 1
MEANINGS = {  # of each status
    "ok": "There is a value.",
    "login": "A login or an authentication failed.",
    "timeout": "A time limit ended it.",
    "checksum": "Data came back with another checksum: a wrong answer.",
    "invalid": "The tool's own validation failed: a wrong answer.",
    "unhealthy": "A node's health program finds something wrong now.",
    "parse": "The output is not understood, or has no value.",
    "killed": "A signal that no person sent ended it, also where memory ran out.",
    "node_lost": "The node was lost or not reached.",
    "tool_missing": "What could measure it is not there: a program, or a setting of Slurm.",
    "generic": "It failed for any other reason.",
    "interrupted": "A person ended the job; it changes no answer.",
    "lost": "Its record cannot be read, or has no line of a node that the job had to measure.",
    "implausible": "Its value is above what the hardware can do, or far better than all others.",
}
LOST = "lost"  # nobody knows how it ended: no record has it
IMPLAUSIBLE = "implausible"  # the record has a value (siteproof.answers.implausible)
STATUSES = tuple(status for status in MEANINGS if status not in (LOST, IMPLAUSIBLE))
INTERRUPTED = "interrupted"  # somebody ended the job; the status does not concern the node
NODE_LOST = "node_lost"
SWITCHES = "switches"  # provenance: `NAME=NODES` of each, as Slurm has them
UNREAD = "unread"  # provenance: the file whose header cannot be read, in place of all else
TOOL_MISSING = "tool_missing"  # the program is not installed where the check ran
NOT_RUN = (TOOL_MISSING, INTERRUPTED, NODE_LOST, LOST, "generic")  # none shows that one is there
SWEEP = "sweep"  # the condition that names it
MODES = ("quick", "maintenance", "acceptance", "published", "")
REPEATED = "repeated_warning"  # condition: measured at the second attempt, as the first crashed
EMULATED = "emulated"  # condition: by what the real thing is stood in for
PROCESSOR = "processor"  # ... where the node itself reports that its processor is software
HYPERVISOR = "hypervisor"  # ... where a cloud's servers are counted, and run nothing
PUBLISHED = "published"  # mode of published values, and the condition with their source
LAST_PLACE = 10**9  # more sessions than a system can have
MAX_DIGITS = 50  # before or after the point: 1E+999999 as an exact fraction fills the memory
LONGEST_NUMBER = 200  # characters; more cost the square of their number
FIRST_YEAR, LAST_YEAR = "1970", "2199"  # of a clock that was reset, and of any other wrong clock
_FAR = (datetime.now(UTC) + timedelta(days=366)).isoformat(timespec="seconds")
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)
LONGEST = safe.MIB  # bytes of a line: conditions, and a set of some thousand nodes
YEARS = range(int(FIRST_YEAR), int(LAST_YEAR) + 1)
MAX_TRIAL_NUMBER = 10**9
_PLAIN = re.compile(r"(?!\.)[^/\s\x00]{1,200}")  # a part of the file's path
_PARTS_OF_PATH = ("session", "system", "partition", "check", "job")
_MAX_QUOTED = 60  # characters of a wrong text that a message quotes
_OBJECTS = ("conditions", "provenance")
_BEGIN = re.compile(r"[0-9]{8}T[0-9]{6}Z")  # of a session's name: when it began
# A line with a number and nothing else, as most are; printable ASCII without escapes, so that JSON
# reads the same. Json takes three times as long.
_NUMBER_LINE = re.compile(
    r'\{"node":"([ !#-\[\]-~]*)","metric":"([ !#-\[\]-~]{0,200})",'
    r'"value":"(-?[0-9]{1,18}(?:\.[0-9]{1,18})?)","unit":"([ !#-\[\]-~]*)"\}'
)
_NO_NODE = re.compile(rf'"node" *: *""|"{PEER}" *:')  # in the lines of what is of no single node
_NOTHING: Mapping[str, str] = {}  # of a sample without dimensions or conditions: most have none
_HEADER = ("siteproof", "session", "system", "partition", "environment", "check", "job", "time")


@dataclass(frozen=True)
class Header:
    """What all samples of one job share.

    place: the session's number in the order of sessions, which does not depend on clocks; 0 of
    sessions that are older than numbers.
    time: when the job ended, UTC, ISO 8601. mode: quick, maintenance, acceptance, or published.
    campaign: a name that groups sessions; empty if none was given.
    expected: the nodes that the job had to measure, as a node set.
    conditions: what must be equal for two values to be comparable. provenance: suite revision,
    tools, user …
    """

    session: str
    system: str
    partition: str
    environment: str
    check: str
    job: str
    time: str
    mode: str = ""
    campaign: str = ""
    expected: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    place: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether a plain ReFrame test has measured them: its units may be unknown here."""
        return TEST in self.provenance

    @property
    def owes_lines(self) -> bool:
        """Whether each node that it had to measure owes a line; not in a sweep or a plain test."""
        return SWEEP not in self.conditions and not self.is_plain

    @property
    def is_unread(self) -> bool:
        """Whether only session, check, job and partition are known, by the name of its file."""
        return UNREAD in self.provenance

    @cached_property
    def order(self) -> Order:
        """The sort key of sessions: those without a number come first, by their clocks.

        One without a number whose time is more than a year ahead comes before all others.
        """
        return self.place or -int(self.time > _FAR), self.time, self.session

    @cached_property
    def job_order(self) -> JobOrder:
        """The key by which jobs are sorted."""
        return (*self.order, self.job)

    @property
    def began(self) -> float | None:
        """When the session began, by its name, in seconds since 1970; None if it has no time."""
        return began(self.session)


def began(session: str) -> float | None:
    """When a session of this name began, in seconds since 1970; None if it has no time."""
    if not _BEGIN.match(session):
        return None
    try:
        return datetime.fromisoformat(session[:16]).timestamp()
    except ValueError:
        return None


_NO_HEADER = Header("", "", "", "", "", "", "")


@dataclass(frozen=True)
class Sample:
    """One measured value, or why there is none.

    metric: with its check, such as `Stream.triad`; `Stream.*` if a failure concerns all of them.
    value: as the tool printed it; None unless status is `ok`. line: the tool's own line with it, if
    it missed a bound of the site when it was collected, and one line alone has it.
    """

    header: Header
    node: str
    metric: str
    value: Decimal | str | None = None
    unit: str = ""
    status: str = "ok"
    why: str = ""
    trial: int = 0
    dims: Mapping[str, str] = field(default_factory=dict)
    own_conditions: Mapping[str, str] = field(default_factory=dict)
    line: str = ""

    @property
    def conditions(self) -> dict[str, str]:
        """The header's conditions, with those of this node in their place."""
        return {**self.header.conditions, "mode": self.header.mode, **self.own_conditions}

    @property
    def key(self) -> tuple[str, str, str, str, int, str]:
        """A key that is the same when the sample is collected again."""
        dims = json.dumps(dict(self.dims), sort_keys=True)
        head = self.header
        return (head.session, head.job, self.node, self.metric, self.trial, dims)

    @property
    def number(self) -> Decimal:
        """The value as an exact number. Raises UserError where it is text or missing."""
        if not isinstance(self.value, Decimal):
            raise UserError(self.metric, f"'{self.value}' on {self.node} is not a number")
        return self.value


def file_name(header: Header) -> str:
    """The name of the header's file within perflogs/<system>/<partition>/."""
    return f"{header.session}.{header.check}.{header.job}.jsonl"


def path_of(folder: Path, header: Header) -> Path:
    """The header's file under perflogs."""
    return folder / header.system / header.partition / file_name(header)


def write(
    folder: Path, header: Header, samples: Iterable[Sample], *, owner: int | None = None
) -> Path:
    """Write one job's samples under perflogs, whole or not at all.

    owner: of the raw files; a file that root writes belongs to this owner, too, and replaces no
    file of another user. Raises OSError if it cannot be written, UserError if it must not be.
    """
    target = path_of(folder, header)
    data = dump(header, samples)
    if data.index(b"\n") > LONGEST:
        raise UserError(target, "not written: its header is too long", f"{LONGEST} bytes")

    write_result(folder, target, data, owner, lambda handle: not _is_of_another(handle, header))
    return target


def write_result(
    folder: Path,
    target: Path,
    data: bytes,
    owner: int | None,
    may_replace: Callable[[int], bool] = lambda _handle: True,
) -> None:
    """Write a file of perflogs/<system>/<partition>/. owner: as of `write`.

    An old file is replaced if it belongs to this owner, or to the user who collects it (unless that
    is root), and `may_replace` permits it, too.
    """
    owners = {owner} if os.geteuid() == 0 else {owner, os.geteuid()}

    def may(handle: int) -> bool:
        return (owner is None or os.fstat(handle).st_uid in owners) and may_replace(handle)

    inner = target.relative_to(folder).parts
    if len(inner) != 3 or any(part.startswith(".") for part in inner):
        raise UserError(target, "not written: samples must be in perflogs/SYSTEM/PARTITION/")
    kept = owner if os.geteuid() == 0 else None
    safe.write(target, data, below=folder, may_replace=may, belongs_to=kept)


def _is_of_another(handle: int, header: Header) -> bool:
    """Whether an old file can be read, and is of another job."""
    with os.fdopen(os.dup(handle), "rb") as stream:
        line = stream.readline(LONGEST + 1)
    try:
        old = header_of("", line.decode("utf-8", "replace"))
    except UserError:
        return False
    return any(getattr(old, name) != getattr(header, name) for name in _PARTS_OF_PATH)


def dump(header: Header, samples: Iterable[Sample]) -> bytes:
    """The content of a file with these samples."""
    own = {name: getattr(header, name) for name in Header.__dataclass_fields__}
    lines = [_dumps({"siteproof": FORMAT, **_without_empty(own)})]
    lines += [_dumps(_line(sample)) for sample in sorted(samples, key=lambda s: s.key)]
    return ("\n".join(lines) + "\n").encode()


def read(
    path: Path, nodes: Collection[str] | None = None, *, with_lost: bool = False
) -> list[Sample]:
    """All samples of one file, or those of some nodes. Raises UserError with file and line.

    Each line is checked, whoever it is of. with_lost: nodes without a line are lost.
    """
    with _opened(path) as stream:
        header = _header(path, stream)
        text = _text(path, safe.rest(stream.read, safe.SAMPLES))
    found: list[Sample] = []
    number = 1  # the header
    if nodes is not None and f'"{TOOL_MISSING}"' in text:
        nodes = None  # whether the others have it matters
    try:
        for line in text.removesuffix("\n").split("\n") if text else []:
            number += 1
            plain = _number_in(line)
            if plain is None:
                sample = _read_line("", header, _loads("", line))
                if nodes is None or sample.node in nodes:
                    found.append(sample)
            elif nodes is None or plain[0] in nodes:
                found.append(_of_number(header, *plain))
    except UserError as error:
        raise UserError(f"{path}:{number}", error.what, error.allowed, error.hint) from None
    found = _missing_here(found)
    return [*found, *_lost(path, header, text, found, nodes)] if with_lost else found


def _missing_here(found: list[Sample]) -> list[Sample]:
    """Those of a job, with a failure of each node that lacks a program which others have run."""
    if all(sample.status != TOOL_MISSING for sample in found):
        return found
    there: dict[str, set[str]] = {}  # the nodes that have run what gives a metric, or any
    for sample in found:
        if sample.status not in NOT_RUN:
            for metric in (sample.metric, sample.metric.partition(".")[0] + ".*"):
                there.setdefault(metric, set()).add(sample.node)
    lacking = "is not on this node, and on others of its job"
    return [
        replace(sample, status="generic", why=f"{sample.why} ({lacking})")
        if sample.status == TOOL_MISSING
        and sample.node
        and not sample.dims  # a pair lacks it at either end
        and there.get(sample.metric, set()) - {sample.node}
        else sample
        for sample in found
    ]


def _lost(
    path: Path, header: Header, text: str, found: Sequence[Sample], nodes: Collection[str] | None
) -> Iterator[Sample]:
    """Each of some nodes that the job had to measure and that has no line, where each owes one.

    A job with values of pairs or of the system as a whole owes none.
    """
    if not header.owes_lines or _NO_NODE.search(text):
        return
    expected = expected_nodes(header.expected)
    wanted = expected if nodes is None else expected.intersection(nodes)
    for node in sorted(wanted - {sample.node for sample in found}):
        why = f"{path.name} has no line of it"
        yield Sample(header, node, f"{header.check}.*", status=LOST, why=why)


@cache
def expected_nodes(text: str) -> frozenset[str]:
    """The nodes that a job had to measure; none where its header names none."""
    if not text:
        return frozenset()
    try:
        return frozenset(nodesets.parse(text))
    except ValueError:
        return frozenset()


def read_as_written(line: str) -> Sample | None:
    """The sample of a line that `write` writes exactly so, with an empty header; None of others."""
    try:
        sample = _read_line("", _NO_HEADER, _loads("", line))
    except UserError:
        return None
    return sample if _dumps(_line(sample)) == line else None


def read_header(path: Path) -> Header:
    """What all samples of one file share. Raises UserError."""
    with _opened(path) as stream:
        return _header(path, stream)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file below perflogs/<system>/<partition>/. Raises UserError."""
    below = path.parents[min(2, len(path.parents) - 1)]
    try:
        with safe.opened(path, below=below, limit=safe.SAMPLES) as handle:
            yield os.fdopen(handle, "rb", closefd=False)
    except OSError as error:
        raise UserError(path, f"cannot be read: {error.strerror}") from None


def _header(path: Path, stream: BinaryIO) -> Header:
    line = stream.readline(LONGEST + 1).removesuffix(b"\n")
    return header_of(f"{path}:1", _text(path, line))


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserError(path, f"cannot be read: {error}") from None


def must_lie_at(path: Path, header: Header) -> None:
    """Raises UserError for a file that was renamed or copied: its header does not fit its path."""
    wanted = path_of(Path(), header)
    if path.parts[-3:] != wanted.parts:
        raise UserError(f"{path}:1", f"its header is that of another file: {wanted}")


def header_of(where: str, line: str) -> Header:
    """The header in a file's first line. Raises UserError."""
    record = _loads(where, line)
    if missing := [key for key in _HEADER if key not in record]:
        raise UserError(where, f"header without {', '.join(missing)}", _HEADER)
    if record.pop("siteproof") != FORMAT:
        raise UserError(where, "written by another version of the format", str(FORMAT))
    if unknown := set(record) - set(Header.__dataclass_fields__):
        raise UserError(where, f"unknown key '{min(unknown)}'", Header.__dataclass_fields__)
    _check_types(where, record)
    for key in _PARTS_OF_PATH:
        if not _PLAIN.fullmatch(str(record[key])):
            raise UserError(where, f"'{key}' {_short(record[key])} is not a plain name")
    if (mode := record.get("mode", "")) not in MODES:
        raise UserError(where, f"unknown mode {_short(mode)}", MODES[:-1])
    record["time"] = _in_utc(where, str(record["time"]))
    return Header(**record)  # type: ignore[arg-type]


def files(folder: Path, system: str) -> Iterator[Path]:
    """The sample files of a system in the order of their names. Raises UserError."""
    top = folder / system
    try:
        found = [path for part in _folders(top) for path in _in_folder(part)]
    except FileNotFoundError:
        return iter(())
    except OSError as error:
        raise UserError(error.filename or top, f"cannot be read: {error.strerror}") from None
    return iter(sorted(found, key=lambda path: path.name))


def _folders(top: Path) -> list[Path]:
    """The partitions of a system; a link is listed, too, and its reader refuses it."""
    if top.is_symlink():
        return [top]
    with os.scandir(top) as found:
        kept = [e for e in found if e.name[0] != "." and safe.has_plain_name(Path(e))]
        return [Path(e) for e in kept if e.is_dir() or e.is_symlink()]


def _in_folder(part: Path) -> list[Path]:
    if part.is_symlink():
        return [part] if part.is_dir() else []
    try:
        with os.scandir(part) as found:
            names = [e.name for e in found if e.name.endswith(".jsonl") and e.name[0] != "."]
    except PermissionError:
        return [part]  # its reader reports the owner
    return [part / name for name in names if safe.has_plain_name(part / name)]


def _dumps(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=True, separators=(",", ":"))


def _loads(where: str, line: str) -> dict[str, object]:
    try:
        record = json.loads(line) if len(line) <= LONGEST else None
    except (ValueError, RecursionError):
        raise UserError(where, "broken line", "one JSON object a line") from None
    if line.count("[") + line.count("{") > safe.DEEPEST and safe.is_deep(record):
        raise UserError(where, "broken line", f"at most {safe.DEEPEST} levels")
    if not isinstance(record, dict):
        raise UserError(where, "broken line", "one JSON object a line, of at most 1 MiB")
    # JSON can contain a control character only as an escape, such as "\\u001b".
    return record if line.isprintable() and "\\" not in line else all_harmless(record)


def _without_empty(record: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in record.items() if value not in ("", {}, None, 0)}


def _line(sample: Sample) -> dict[str, object]:
    record: dict[str, object] = {"node": sample.node, "metric": sample.metric}
    if sample.status == "ok":
        record |= {"value": str(sample.value), "unit": sample.unit}
    else:
        record |= {"status": sample.status}
    rest = {
        "why": sample.why,
        "trial": sample.trial or "",
        "dims": dict(sample.dims),
        "conditions": dict(sample.own_conditions),
        "line": sample.line,
    }
    return record | _without_empty(rest)


def _check_types(where: str, record: dict[str, object]) -> None:
    for key, value in record.items():
        if key in _OBJECTS:
            _texts(where, record, key)
        elif key == "place":
            if type(value) is not int or not 0 < value < LAST_PLACE:
                raise UserError(where, f"'place' {str(value)[:20]} is not the number of a session")
        elif not isinstance(value, str):
            raise UserError(where, f"'{key}' is not text")


def _in_utc(where: str, text: str) -> str:
    """A time in UTC and in one form, as times are compared as texts."""
    try:
        moment = datetime.fromisoformat(text)
        in_utc = text if _UTC.fullmatch(text) else moment.astimezone(UTC).isoformat()
        if moment.tzinfo is not None and FIRST_YEAR <= in_utc[:4] <= LAST_YEAR:
            return in_utc
    except (ValueError, OverflowError):
        pass
    what = f"{_short(text)} is not a time with its zone, in {FIRST_YEAR} to {LAST_YEAR}"
    raise UserError(where, what, "2026-11-21T18:00:00+00:00")


def _short(value: object) -> str:
    """A wrong value for a message."""
    text = repr(value) if isinstance(value, (dict, list)) else f"'{value}'"
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"


def _texts(where: str, record: Mapping[str, object], key: str) -> Mapping[str, str]:
    """An object of texts, empty if there is none."""
    if key not in record:
        return _NOTHING
    texts = record[key]
    if not (isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())):
        raise UserError(where, f"'{key}' is not an object of texts")
    return texts


def _number_in(line: str) -> tuple[str, str, str, str] | None:
    """Node, metric, digits and unit of a line with a number and nothing else; None of any other."""
    match = _NUMBER_LINE.fullmatch(line)
    if match is None:
        return None
    node, metric, digits, unit = match.groups()
    if unit not in UNITS or unit == "text" or not nodesets.is_name(node):
        return None
    return node, metric, digits, unit


def _of_number(header: Header, node: str, metric: str, digits: str, unit: str) -> Sample:
    """What `_read_line` gives of such a line."""
    value = Decimal(digits)
    names = intern(node), intern(metric)
    return Sample(header, *names, value, intern(unit), dims=_NOTHING, own_conditions=_NOTHING)


def _read_line(where: str, header: Header, record: dict[str, object]) -> Sample:
    status = str(record.get("status", "ok"))
    if status not in STATUSES:
        raise UserError(where, f"unknown status {_short(status)}", STATUSES)
    node, metric = record.get("node"), record.get("metric")
    if not (isinstance(node, str) and isinstance(metric, str)):
        raise UserError(where, "sample without node or metric")
    if not nodesets.is_name(node):
        raise UserError(where, f"{_short(node)} is not the name of a node")
    if status == "ok" and not ("value" in record and "unit" in record):
        raise UserError(where, "sample without value or unit")
    unit, trial = str(record.get("unit", "")), record.get("trial", 0)
    if status == "ok" and unit not in UNITS and not header.is_plain:
        raise UserError(where, f"unknown unit {_short(unit)}", UNITS)
    if type(trial) is not int or abs(trial) > MAX_TRIAL_NUMBER:
        raise UserError(where, f"trial {_short(trial)} is not a whole number")
    return Sample(
        header=header,
        node=intern(node),  # so that all samples of a node share one text
        metric=intern(metric),
        status=status,
        value=_value(where, record["value"], unit) if status == "ok" else None,
        unit=unit,
        why=str(record.get("why", "")),
        trial=trial,
        dims=_texts(where, record, "dims"),
        own_conditions=_texts(where, record, "conditions"),
        line=str(record.get("line", "")),
    )


def _value(where: str, text: object, unit: str) -> Decimal | str:
    if unit == "text":
        return str(text)
    try:
        value = Decimal(str(text))
    except InvalidOperation:
        raise UserError(where, f"{_short(text)} is not a number") from None
    too_long = len(str(text)) > LONGEST_NUMBER or abs(value.adjusted()) > MAX_DIGITS
    if too_long or not value.is_finite():
        raise UserError(where, f"{_short(text)} is not a value that any tool prints")
    return value


_SECOND = r"(?:s|sec|secs|second|seconds)"
_RATE = re.compile(rf"([kKMGTP]?i?)(B|[Bb]ytes?|b|[Bb]its?)(?:/{_SECOND}|ps)")
_FLOPS = re.compile(rf"([kKMGTP]?)(?:(?:flops?|FLOPs?|FLOPS?|Flops?)/{_SECOND}|flops|FLOPS|Flops)")
_PER_SECOND = re.compile(rf"(\w+/){_SECOND}")
_WORDS = {name: unit for name, unit in units.SPELLINGS.items() if len(name) > 2} | {
    "\u00b5s": "us",
    "\u03bcs": "us",
    "KB": "kB",
    "bytes": "B",
    "ns/d": "ns/day",
    "day/ns": "days/ns",
    "it/s": "iterations/s",
    "timesteps/s": "steps/s",
    "step/s": "steps/s",
}


@cache
def known_unit(text: str) -> str:
    """The name of a unit in siteproof.units; empty if it is unknown there."""
    if text in UNITS and text != "text":
        return text
    name = _WORDS.get(text, "")
    if match := _RATE.fullmatch(text):
        prefix = match[1] if match[1] == "Ki" else match[1].replace("K", "k")
        name = prefix + ("b/s" if match[2] in ("b", "bit", "bits") else "B/s")
    elif match := _FLOPS.fullmatch(text):
        name = match[1].replace("K", "k") + "FLOPS"
    elif (match := _PER_SECOND.fullmatch(text)) and f"{match[1]}s" in COUNTED.values():
        name = f"{match[1]}s"
    return name if name in UNITS else ""


TEST = "plain_test"  # provenance: the test's file; no other samples have it
REFERENCE = "reference "  # provenance: its beginning, before the variable


def named(display_name: str) -> tuple[str, dict[str, str]]:
    """The test's class and its parameters, from `Stream %threads=4`, as ReFrame displays it."""
    check, *parameters = display_name.split(" %")
    pairs = [parameter.partition("=") for parameter in parameters]
    return check, {harmless(key): harmless(value) for key, _, value in pairs}


def reference(value: object, lower: object, upper: object, unit: str) -> str:
    """ReFrame's reference as its 3.x perflogs print it; empty where there is none.

    lower, upper: shares by which a value may differ; None: no limit.
    """
    if lower is None and upper is None:
        return ""
    shown = ["null" if limit is None else f"{limit}" for limit in (lower, upper)]
    return harmless(f"{value} (l={shown[0]}, u={shown[1]}) {unit}".strip())
