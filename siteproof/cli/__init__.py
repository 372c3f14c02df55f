"""The `siteproof` command: one file a subcommand, loaded when it is called."""

from __future__ import annotations

import gc
import keyword
import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click

from siteproof import __version__
from siteproof.errors import ExitCode, UserError, UserErrors

COMMANDS = {
    "accept": "Accept a campaign as what later ones are compared with.",
    "build": "Build the software of a system with Spack, and offer it to the checks.",
    "calibrate": "Propose baselines from the history, as a change to review.",
    "collect": "Turn the raw files of lost sessions into samples.",
    "compare": "Say what became of every figure from one campaign to another.",
    "gate": "Decide which nodes go back into service, and quarantine the others.",
    "history": "Say what has been measured over the years, answer SQL, and export it.",
    "import": "Make history of results of others: published ones, or logs of ReFrame.",
    "describe": "Say what the nodes of each role are, and which are unlike the others.",
    "export": "Write verdicts for other tools: JUnit, OpenMetrics, JSON.",
    "lint": "Check the description of every system, all mistakes at once.",
    "matrix": "Show every pair of nodes, and who is behind the bad pairs.",
    "plan": "Show what a run would cost: jobs, nodes, node-hours, gigabytes, where.",
    "nodes": "Say of every node whether it is slow, broken or odd, and why.",
    "published": "Show which published values miss their criterion, and which keep it.",
    "report": "Write all that is known of a system on one page, HTML or Markdown.",
    "sites": "List the systems that are described, and what a key means.",
    "sweep": "Say what a parallel sweep found: the highest value, the plateau, the bound.",
    "trend": "Tell what changed over the years, where, and what else changed there.",
    "verdict": "Say for each criterion whether the system keeps it.",
    "why": "Explain a criterion's or a node's verdict from its samples.",
}


class _Lazy(click.Group):
    """Imports a subcommand only when it is called or asked for its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        word = f"{name}_" if keyword.iskeyword(name) else name
        command: click.Command = getattr(import_module(f"siteproof.cli.{word}"), word)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="siteproof")
def group() -> None:
    """Acceptance and regression of HPC systems: verdicts from what was measured.

    \b
    reframe -c checks/ -r       measures and keeps every value
    siteproof verdict           judges it against the contract

    Exit code: 0 all criteria in force are kept; 1 something failed; 2 wrong usage or input; 3
    nothing failed, but something is incomplete or pending, or could not run here.
    """


def main() -> None:
    """Run the command; a user's mistake becomes one line and exit code 2."""
    gc.set_threshold(50_000, 20, 100)  # a year of samples is no garbage: it took half of the time
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows ASCII only
    try:
        group(prog_name="siteproof")
    except (UserError, UserErrors) as error:
        for line in str(error).splitlines():
            print(f"siteproof: {line}", file=sys.stderr)
        raise SystemExit(ExitCode.USAGE) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(ExitCode.PASS) from None
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # DuckDB's word for Ctrl-C
            raise
        print("\nAborted!", file=sys.stderr)  # as click does
        raise SystemExit(1) from None
    except OSError as error:
        print(f"siteproof: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        os._exit(ExitCode.USAGE)  # an ordinary end would try to print what is left once more
