#!/usr/bin/env python3
"""What every command prints and every page shows, on five data sets: compared, or recorded anew.

    python tests/golden/record.py            compare; the differences; exit code 1 if there are any
    python tests/golden/record.py --write    record anew, and show what that changes

Siteproof is used as a program: its words, its files, its exit code. The commands are in cases.py.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import json
import logging
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import click

HERE = Path(__file__).resolve().parent
CLONE = HERE.parents[1]
sys.path[:0] = [str(HERE), str(CLONE)]

import shown  # noqa: E402
from cases import CASES, Case, day_of  # noqa: E402

SETS = HERE / "sets"
RECORDED = HERE / "recorded"
PROGRAMS = ("sh", "env", "git", "uname", "nproc", "python3", "getconf")  # no Slurm, no Spack
CUT = 400  # lines of a printed answer or file that are kept as they are; the rest is counted
ENDS = 60  # lines of those at its end
ROWS = 40  # the same of a file with a row a line
WIDE = 100  # columns; a value of JSON that fits is on one line
NAMED = 20  # paths of a JSON answer that differ and are named


# ---- the clock


class _Kind(type):
    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, datetime)


class _Stopped(datetime, metaclass=_Kind):
    """A datetime whose now is what it is told; every other way makes an ordinary datetime."""

    moment = datetime.now(UTC)

    def __new__(cls, *words: object, **keys: object) -> datetime:  # type: ignore[misc]
        return datetime(*words, **keys)  # type: ignore[arg-type]

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """The moment at which the clock stands."""
        return cls.moment.astimezone(tz)


@cache
def _load_everything() -> None:
    """Import all of the package, so that no module that comes later asks the real clock."""
    package = importlib.import_module("siteproof")
    errors = importlib.import_module("siteproof.errors")
    for module in pkgutil.walk_packages(package.__path__, "siteproof.", onerror=lambda _name: None):
        with suppress(errors.UserError):  # parts of it work inside ReFrame only
            importlib.import_module(module.name)


@contextmanager
def stopped_clock(begin: datetime, minute: int) -> Iterator[None]:
    """Every module of Siteproof in this process sees the same moment, so many after `begin`."""
    _load_everything()
    _Stopped.moment = begin + timedelta(minutes=minute)
    with ExitStack() as patched:
        for name, module in list(sys.modules.items()):
            if name.startswith("siteproof.") and getattr(module, "datetime", None) is datetime:
                patched.enter_context(mock.patch.object(module, "datetime", _Stopped))
        patched.enter_context(mock.patch("time.time", _Stopped.moment.timestamp))
        yield


def _apart(command: list[str]) -> tuple[int, str, str]:
    """What `plan` runs, in a process of its own, as this one has loaded more than `plan` does."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def forget_help() -> None:
    """Let each command make its help option anew.

    click keeps the first, and where a test has called a command without the group, that lacks -h.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("siteproof.cli"):
            for found in vars(module).values():
                if isinstance(found, click.Command):
                    found._help_option = None


# ---- a set, unpacked


@cache
def _run_folder() -> tempfile.TemporaryDirectory[str]:
    """What lives as long as this process."""
    return tempfile.TemporaryDirectory(prefix="golden-")


@cache
def _unpacked(name: str) -> Path:
    """A set's files, unpacked once and copied by each world that may change them."""
    folder = Path(_run_folder().name) / "sets"
    source = SETS / f"{name}.tar.gz"
    (folder / name).mkdir(parents=True)
    if source.exists():
        with tarfile.open(source) as packed:
            packed.extraction_filter = getattr(tarfile, "data_filter", None)  # new in 3.11.4
            packed.extractall(folder)
    return folder / name


@cache
def shared(name: str) -> World:
    """A set for commands that only read: one world in a process."""
    return World(name, Path(_run_folder().name) / "shared" / name)


class World:
    """A set's files in a folder of their own, and commands that know no other."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder.resolve()
        self.data = self.folder / name
        shutil.copytree(_unpacked(name), self.data)
        for part in ("perflogs", "sites", "home", "bin"):
            (self.data / part).mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            if found := shutil.which(program, path="/usr/bin:/bin"):
                (self.data / "bin" / program).symlink_to(found)

    def environment(self) -> dict[str, str]:
        """All variables that a command sees."""
        shipped = str(CLONE / "site-config")
        sites = self.data / "sites"
        return {
            "PATH": str(self.data / "bin"),
            "HOME": str(self.data / "home"),
            "USER": "golden",
            "PYTHONPATH": str(CLONE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "80",
            "LINES": "40",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "TMPDIR": str(self.folder),
            "SITEPROOF_CLONE": str(CLONE),
            "SITEPROOF_DATA": str(self.data),
            "SITEPROOF_CACHE": str(self.data / "cache"),
            "SITEPROOF_SITES": str(sites) if any(sites.iterdir()) else shipped,
            "RFM_CONFIG_FILES": str(CLONE / "reframe_settings.py"),
            "RFM_COLORIZE": "n",
            "MKLROOT": str(self.data / "no-mkl"),
            **(
                {"SITEPROOF_SWEEPS": str(self.data / "sweeps")}
                if (self.data / "sweeps").is_dir()
                else {}
            ),
        }

    def told(self, words: tuple[str, ...], minute: int = 0, **variables: str) -> str:
        """Run `siteproof WORDS…` in this process: its exit code and all that it printed."""
        code, *streams = self.asked(words, minute, **variables)
        texts = [
            f"--- {name}\n{_whole_lines(shorten(text))}"
            for name, text in zip(("stdout", "stderr"), streams, strict=True)
            if text
        ]
        return f"exit code {code}\n" + "".join(texts)

    def asked(
        self, words: tuple[str, ...], minute: int = 0, **variables: str
    ) -> tuple[object, str, str]:
        """The exit code, and the two streams in full."""
        from siteproof import cli

        forget_help()
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "oe")
        code: object = 0
        with (
            stopped_clock(datetime.fromisoformat(f"{day_of(self.name)}T12:00+00:00"), minute),
            _inside(self.data),
            warnings.catch_warnings(),
            mock.patch.dict(os.environ, self.environment() | variables, clear=True),
            mock.patch.object(sys, "argv", ["siteproof", *words]),
            mock.patch.object(sys.modules["siteproof.cli.plan"], "forked", _apart),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            warnings.simplefilter("ignore")  # Python tells each once a process, with its line
            try:
                cli.main()
            except SystemExit as end:
                code = end.code or 0
        printed, said = (self.plain(one.buffer.getvalue().decode()) for one in (out, err))
        return code, printed, _without_progress(said)

    def plain(self, text: str) -> str:
        """A text without what differs from place to place."""
        text = text.replace(str(self.data), "<data>").replace(str(self.folder), "<folder>")
        text = text.replace(str(CLONE), "<clone>")
        text = re.sub(r"\d+ (check|sweep)s\b(?=.* of the suite|, no mistake)", r"<n> \1s", text)
        text = re.sub(r"\(\d+ GB free\)", "(<free> GB free)", text)
        return re.sub(r"history-[0-9a-f]{16}", "history-<path>", text)

    def shown(self, path: Path) -> str:
        """A file that a command has written, as text."""
        if not path.exists():
            return "no such file\n"
        if path.suffix in (".html", ".htm"):
            return _whole_lines(self.plain(shown.text_of(path.read_text(encoding="utf-8"))))
        if path.suffix == ".svg":
            return shown.digest(path.read_text(encoding="utf-8")) + "\n"
        if path.suffix in (".png", ".parquet"):
            return f"{path.suffix[1:]}, written: {path.stat().st_size > 0}\n"
        most = (ROWS, ROWS // 4) if path.suffix in (".csv", ".jsonl") else (CUT, ENDS)
        return _whole_lines(shorten(self.plain(path.read_text(encoding="utf-8")), *most))


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _without_progress(text: str) -> str:
    """Without the lines that say what takes long, which depend on the machine's load."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("report: ")
    )


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def shorten(text: str, cut: int = CUT, ends: int = ENDS) -> str:
    """A long text without its middle, of which the digest is kept."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= cut:
        return text
    middle = lines[cut - ends : -ends]
    told = f"[{len(middle)} lines more, sha256 {shown.sha256(''.join(middle))}]\n"
    return "".join([*lines[: cut - ends], told, *lines[-ends:]])


# ---- an answer in JSON


def spelled(value: Any, margin: int = 0) -> str:
    """JSON that a diff is readable of: what fits is on one line, what does not has one an item."""
    flat = json.dumps(value, ensure_ascii=False)
    if margin + len(flat) <= WIDE or not value or not isinstance(value, dict | list):
        return flat
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key)}: {spelled(one, margin + len(key) + 5)}"
            for key, one in value.items()
        ]
        begin, end = "{", "}"
    else:
        items = [spelled(one, margin + 1) for one in value]
        begin, end = "[", "]"
    rows = ",\n".join(items).replace("\n", "\n ")
    return f"{begin}\n {rows}\n{end}"


def unlike(old: Any, new: Any, path: str = "$") -> Iterator[str]:
    """The paths at which two documents differ, each with what it was and what it is."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key in old and key in new:
                yield from unlike(old[key], new[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}: {'only recorded' if key in old else 'only now'}"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: {len(old)} items -> {len(new)} items"
        for number, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from unlike(before, after, f"{path}[{number}]")
    elif old != new or type(old) is not type(new):
        yield f"{path}: {json.dumps(old)} -> {json.dumps(new)}"


# ---- a case


def record(case: Case, world: World) -> str:
    """What a case's commands say and leave, as one text."""
    if case.of_data:
        return _document(case, world)
    parts = []
    for name in () if case.alone else case.files:
        (world.data / name).unlink(missing_ok=True)  # another case's
    for file, old, new in case.edits:
        path = world.data / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        assert old in text, f"{path} does not hold {old!r}"
        path.write_text(text.replace(old, new, 1) if old else new, encoding="utf-8")
        if path.parent.name == "bin":
            path.chmod(0o755)
        parts.append(f"$ edit {file}: {old!r} -> {new!r}\n")
    for minute, words in enumerate(case.lines):
        told = world.told(words, minute)
        parts.append(f"$ siteproof {' '.join(_quoted(word) for word in words)}\n{told}")
    for name in case.files:
        path = next(world.data.glob(name), world.data / name)
        parts.append(f"--- file {path.relative_to(world.data)}\n{world.shown(path)}")
    for pattern in case.left:
        parts.append(
            f"--- left below {pattern}\n"
            + "".join(
                f"{path.relative_to(world.data)}\n" for path in sorted(world.data.glob(pattern))
            )
        )
    return "\n".join(parts)


def _document(case: Case, world: World) -> str:
    (words,) = case.lines
    code, out, err = world.asked(words)
    told = {
        "siteproof": " ".join(words),
        "exit code": code,
        "stderr": err,
        "answer": json.loads(out),
    }
    return spelled(told) + "\n"


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./:=,@%+\[\]>-]+", word) else f"'{word}'"


def world_of(case: Case) -> World:
    """One that all cases share which only read, or one of its own."""
    if not case.alone:
        return shared(case.set)
    return World(case.set, Path(tempfile.mkdtemp(prefix="own-", dir=_run_folder().name)))


def path_of(case: Case) -> Path:
    """Where a case is recorded."""
    return RECORDED / case.set / f"{case.name}.{'json' if case.of_data else 'txt'}"


def difference(case: Case, text: str) -> str:
    """What differs between what is recorded and what was told now; '' if they agree.

    Of a text its unified diff, of a JSON answer the first paths.
    """
    path = path_of(case)
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    name = f"{case.set}/{path.name}"
    if case.of_data:
        found = list(unlike(json.loads(old or "{}"), json.loads(text), ""))
        more = [f"and {len(found) - NAMED} more"] if len(found) > NAMED else []
        return "".join(f"{name}: {one}\n" for one in [*found[:NAMED], *more])
    return "".join(
        difflib.unified_diff(
            old.splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"recorded {name}",
            f"now {name}",
        )
    )


def left_over() -> list[Path]:
    """Recordings that no case makes any more."""
    known = {path_of(case) for case in CASES}
    return sorted(path for path in RECORDED.glob("*/*") if path not in known)


def main() -> int:
    """Compare or record; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--check", action="store_true", help="compare (default)")
    way.add_argument("--write", action="store_true", help="record anew, and show the difference")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only the cases of whose SET/NAME this is a part"
    )
    wanted = parser.parse_args()
    changed = 0
    for case in (c for c in CASES if wanted.only in f"{c.set}/{c.name}"):
        text = record(case, world_of(case))
        told = difference(case, text)
        changed += bool(told)
        sys.stdout.write(told)
        if wanted.write:
            path_of(case).parent.mkdir(parents=True, exist_ok=True)
            path_of(case).write_text(text, encoding="utf-8")
    for path in left_over():
        changed += 1
        print(f"{path.relative_to(RECORDED)}: no case records it" + (", removed" * wanted.write))
        if wanted.write:
            path.unlink()
    print(f"{changed} of {len(CASES)} recordings " + ("renewed" if wanted.write else "differ"))
    return 1 if changed and not wanted.write else 0


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    sys.exit(main())
