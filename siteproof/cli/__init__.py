"""The `siteproof` command: one file a subcommand, loaded when it is called."""

from __future__ import annotations

import gc
import keyword
import os
import re
import resource
import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

import click

from siteproof import __version__, files, installed
from siteproof.errors import ExitCode, UserError, UserErrors, harmless

# Of DuckDB, which is imported only where it is needed.
OUT_OF_MEMORY = "OutOfMemoryException"
INTERRUPTED = "siteproof: interrupted"
_FIRST = re.compile('"""siteproof (?P<name>[a-z]+): (?P<sentence>.+)"""$')
NEEDED = "a small system needs some 1500 MiB, years of a large one several GiB"


def _commands() -> dict[str, str]:
    """Each command with its sentence, as the first line of its file has both.

    The files are not imported for that, which would take a second.
    """
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        with path.open(encoding="utf-8") as text:
            if named := _FIRST.match(text.readline()):
                found[named["name"]] = named["sentence"]
    return dict(sorted(found.items()))


COMMANDS = _commands()


class _Lazy(click.Group):
    """Imports a subcommand only when it is called or its help is shown."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = f"{name}_" if keyword.iskeyword(name) else name  # 'import' is in import_.py
        command: click.Command = getattr(import_module(f"siteproof.cli.{module}"), module)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


# click lists and suggests the names of these empty ones.
@click.group(
    cls=_Lazy,
    commands=list(map(click.Command, COMMANDS)),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="siteproof")
def group() -> None:
    """Acceptance and regression tests of HPC systems: judge what was measured.

    Exit code: 0 all criteria in force are met; 1 something failed; 2 wrong usage or input; 3
    nothing failed, but something is incomplete or pending, or could not run here.

    \b
    siteproof plan              what a run would cost
    reframe -c checks/ -r       measure and keep every value
    siteproof verdict           judge the values against the contract
    siteproof COMMAND --help    explain a command
    """


def _usage(error: click.UsageError) -> str:
    """A mistake in the words of a command, in one line with the command that explains it."""
    path = error.ctx.command_path if error.ctx else "siteproof"
    where = path.removeprefix("siteproof").strip()
    what = " ".join(error.format_message().split())
    what += "" if what.endswith((".", "?")) else "."
    return f"{where}{': ' if where else ''}{what} '{path} --help' shows what is allowed."


def _print_mistake(mistake: str) -> None:
    """A user's mistake: one line, but on a terminal as wide as that."""
    if sys.stderr.isatty():
        from siteproof.cli.shared import print_wrapped  # rich, which nothing else needs here

        print_wrapped(f"siteproof: {mistake}", err=True)
    else:
        print(f"siteproof: {mistake}", file=sys.stderr)


def _run() -> int:
    """The exit code of the command that was called, with what click would print of its end."""
    try:
        code: int | None = group(prog_name="siteproof", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:  # its message is the help
        error.show()
        return ExitCode.USAGE
    except click.UsageError as error:
        _print_mistake(_usage(error))
        return ExitCode.USAGE
    except click.Abort:  # Ctrl-C
        print(INTERRUPTED, file=sys.stderr)
        return ExitCode.INTERRUPTED
    finally:
        for path in sorted(files.left_out):
            _print_mistake(harmless(f"{path}: left out: its name is not UTF-8"))
        files.left_out.clear()
    return code or ExitCode.PASS


def _lacking() -> str:
    """What a process that ran out of memory had, and what it needs."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return f"this machine has too little; {NEEDED}"
    return f"a process may have {most >> 20} MiB here (ulimit -v); {NEEDED}"


def main() -> None:
    """Run the command; a user's mistake becomes one line and exit code 2."""
    installed.refuse()
    with suppress(UserError):  # no folder of data: what needs one says so
        # What matplotlib keeps of fonts would be in HOME.
        os.environ.setdefault("MPLCONFIGDIR", str(files.cache_folder() / "matplotlib"))
    gc.set_threshold(500_000, 20, 100)  # searching a year of samples for garbage took half the time
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII-only terminal
    try:
        code = _run()
    except BrokenPipeError:
        sys.stderr.close()
        code = ExitCode.PASS
    except OSError as error:
        print(f"siteproof: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        os._exit(ExitCode.USAGE)  # an ordinary exit would try to flush the same output again
    except Exception as error:
        code = _code_of(error)
    raise SystemExit(code)


def _code_of(error: Exception) -> ExitCode:
    """The exit code of an error, whose words are printed; raises what is a defect."""
    if str(error) == "Query interrupted":  # what DuckDB raises after Ctrl-C
        print(f"\n{INTERRUPTED}", file=sys.stderr)
        return ExitCode.INTERRUPTED
    if isinstance(error, MemoryError) or type(error).__name__ == OUT_OF_MEMORY:
        error = UserError("memory", _lacking())
    if not isinstance(error, UserError | UserErrors):
        raise error
    for line in str(error).splitlines():
        _print_mistake(line)
    return ExitCode.USAGE
