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
import logging
import os
import pkgutil
import re
import shutil
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path
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


class World:
    """A set's files in a folder of their own, and commands that know no other."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder.resolve()
        source = SETS / f"{name}.tar.gz"
        if source.exists():
            with tarfile.open(source) as packed:
                packed.extractall(self.folder, filter="data")
        self.data = self.folder / name
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

    def told(self, words: tuple[str, ...], minute: int = 0) -> str:
        """Run `siteproof WORDS…` in this process: its exit code and all that it printed."""
        from siteproof import cli

        forget_help()
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "oe")
        code: object = 0
        with (
            stopped_clock(datetime.fromisoformat(f"{day_of(self.name)}T12:00+00:00"), minute),
            _inside(self.data),
            warnings.catch_warnings(),
            mock.patch.dict(os.environ, self.environment(), clear=True),
            mock.patch.object(sys, "argv", ["siteproof", *words]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            warnings.simplefilter("ignore")  # Python tells each once a process, with its line
            try:
                cli.main()
            except SystemExit as end:
                code = end.code or 0
        texts = []
        for name, stream in (("stdout", out), ("stderr", err)):
            assert isinstance(stream.buffer, io.BytesIO)
            text = self.plain(stream.buffer.getvalue().decode())
            if name == "stderr":
                text = _without_progress(text)
            if text:
                texts.append(f"--- {name}\n{_whole_lines(shorten(text))}")
        return f"exit code {code}\n" + "".join(texts)

    def plain(self, text: str) -> str:
        """A text without what differs from place to place."""
        text = text.replace(str(self.data), "<data>").replace(str(self.folder), "<folder>")
        text = text.replace(str(CLONE), "<clone>")
        text = re.sub(r"\d+ (check|sweep)s\b(?=.* of the suite|, no mistake)", r"<n> \1s", text)
        text = re.sub(r"\(\d+ GB free\)", "(<free> GB free)", text)
        return re.sub(r"history-[0-9a-f]{16} \([\d.]+ MB\)", "history-<path> (<size> MB)", text)

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
        return _whole_lines(shorten(self.plain(path.read_text(encoding="utf-8"))))


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


def shorten(text: str) -> str:
    """A long text without its middle, of which the digest is kept."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= CUT:
        return text
    middle = lines[CUT - ENDS : -ENDS]
    told = f"[{len(middle)} lines more, sha256 {shown.sha256(''.join(middle))}]\n"
    return "".join([*lines[: CUT - ENDS], told, *lines[-ENDS:]])


# ---- a case


def record(case: Case, world: World) -> str:
    """What a case's commands say and leave, as one text."""
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


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./:=,@%+\[\]>-]+", word) else f"'{word}'"


class Worlds:
    """Unpacked sets: one that cases which only read share, and one for each that writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shared: dict[str, World] = {}
        self._made = 0

    def of(self, case: Case) -> World:
        """The world of a case."""
        if not case.alone and case.set in self._shared:
            return self._shared[case.set]
        self._made += 1
        made = World(case.set, Path(tempfile.mkdtemp(prefix="golden-", dir=self.folder)))
        if not case.alone:
            self._shared[case.set] = made
        return made


def path_of(case: Case) -> Path:
    """Where a case is recorded; its number is its place among those of its set."""
    number = [other for other in CASES if other.set == case.set].index(case) + 1
    return RECORDED / case.set / f"{number:02}-{case.name}.txt"


def difference(case: Case, text: str) -> str:
    """The unified diff from what is recorded to what was told now; '' if they agree."""
    path = path_of(case)
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    name = str(path.relative_to(CLONE))
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
    return sorted(path for path in RECORDED.glob("*/*.txt") if path not in known)


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
    with tempfile.TemporaryDirectory() as folder:
        worlds = Worlds(Path(folder))
        for case in (c for c in CASES if wanted.only in f"{c.set}/{c.name}"):
            text = record(case, worlds.of(case))
            told = difference(case, text)
            changed += bool(told)
            sys.stdout.write(told)
            if wanted.write:
                path_of(case).parent.mkdir(parents=True, exist_ok=True)
                path_of(case).write_text(text, encoding="utf-8")
    for path in left_over():
        changed += 1
        print(f"{path.relative_to(CLONE)}: no case records it" + (", removed" * wanted.write))
        if wanted.write:
            path.unlink()
    print(f"{changed} of {len(CASES)} recordings " + ("renewed" if wanted.write else "differ"))
    return 1 if changed and not wanted.write else 0


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    sys.exit(main())
