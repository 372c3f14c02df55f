"""A command asked in this process, on the system `here`."""

import re

from click.testing import CliRunner

from siteproof import cli
from siteproof.errors import UserError, UserErrors

OF_NO_SYSTEM = ("collect",)


def unwrapped(told):
    """The lines of a text, each with those that continue it, which are indented."""
    return re.sub(r"\n {6}(?=\S)", " ", told).splitlines()


def ask(*words):
    """What a command prints, with its exit code; a user's mistake is 2, in lines."""
    done = CliRunner().invoke(
        cli.group,
        [*words, *(() if {*words} & {*OF_NO_SYSTEM} else ("--system", "here"))],
        prog_name="siteproof",
    )
    if isinstance(done.exception, (UserError, UserErrors)):
        told = str(done.exception)
        assert told.isprintable() or "\n" in told
        return 2, told
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.output
