"""Every `siteproof` command, option and file of the clone that the documentation names exists."""

import re
import shlex

import click
import pytest
from test_doc_links import PAGES, TOP

from siteproof import cli

BLOCK = re.compile(r"^```(?:console|sh|bash)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(siteproof [^`\n]+)`")
PATH = re.compile(
    r"`((?:benchmarks|checks|docs|sbatch|setup|siteproof|spack-envs|sweeps|testbed|tests)/[\w./*-]+)"
)
EXAMPLE = re.compile(r"^`([^`\n]+)`:$", re.MULTILINE)  # a file that the reader makes
NOT_OURS = {"docs/reference", "CHANGELOG.md"}  # made from the commands; the past


def commands(text: str) -> list[str]:
    """The command lines of a page that begin with `siteproof`, in blocks and in prose."""
    lines = "\n".join(BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    typed = (line.strip().removeprefix("$ ") for line in lines)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = [line for line in typed if re.match(r"siteproof [a-z-]", line)]
    return [*found, *INLINE.findall(prose)]


def unknown(line: str) -> list[str]:
    """The words of a command line that no command or option of Siteproof is."""
    try:
        words = shlex.split(line.replace(";", " ; "), comments=True)[1:]
    except ValueError:
        return [line]
    command: click.Command = cli.group
    bad = []
    for word in words:
        if word in ("--", "|", ">", "&&", ";"):
            break
        if word.startswith("--"):
            known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
            if word.split("=")[0].rstrip(",.") not in known | {"--help", "--version"}:
                bad.append(word)
        elif isinstance(command, click.Group):
            context = click.Context(command)
            found = command.get_command(context, word)
            if found is None and command is cli.group:
                return [word]
            command = found or command
    return bad


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_command_on_the_page_exists_with_its_options(page):
    if any(str(page.relative_to(TOP)).startswith(name) for name in NOT_OURS):
        return
    shown = commands(page.read_text(encoding="utf-8"))
    assert {line: bad for line in shown if (bad := unknown(line))} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_file_of_the_clone_on_the_page_exists(page):
    if any(str(page.relative_to(TOP)).startswith(name) for name in NOT_OURS):
        return
    text = page.read_text(encoding="utf-8")
    named = set(PATH.findall(text)) - set(EXAMPLE.findall(text))
    places = (TOP, TOP / "siteproof")  # the rooms of the package are named without it
    assert [name for name in sorted(named) if not any(any(p.glob(name)) for p in places)] == []


def test_a_command_and_an_option_that_do_not_exist_are_found():
    page = (
        "`siteproof verdicts`\n```\nsiteproof why node003 --becuase  # no\nsiteproof nodes\n```\n"
    )
    assert [unknown(line) for line in commands(page)] == [["--becuase"], [], ["verdicts"]]
