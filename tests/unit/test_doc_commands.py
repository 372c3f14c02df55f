"""Every `siteproof` command, option and file of the clone that the documentation names exists."""

import re
import shlex

import click
from test_doc_links import PAGES, TOP

from siteproof import cli

BLOCK = re.compile(r"^```(?:console|sh|bash)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(siteproof [^`\n]+)`")
PATH = re.compile(
    r"`((?:benchmarks|checks|docs|sbatch|setup|siteproof|spack-envs|sweeps|testbed|tests)/[\w./*-]+)"
)
EXAMPLE = re.compile(r"^`([^`\n]+)`:$", re.MULTILINE)  # a file that the reader makes
NOT_OURS = ("docs/reference", "CHANGELOG.md")  # made from the commands; the past


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


def ours() -> dict[str, str]:
    """The pages that are written by hand, by their names."""
    pages = {str(page.relative_to(TOP)): page.read_text(encoding="utf-8") for page in PAGES}
    return {name: text for name, text in pages.items() if not name.startswith(NOT_OURS)}


def test_every_command_on_a_page_exists_with_its_options():
    shown = {(page, line) for page, text in ours().items() for line in commands(text)}
    assert len(shown) > 50
    assert {at: bad for at in shown if (bad := unknown(at[1]))} == {}


def test_every_file_of_the_clone_on_a_page_exists():
    places = (TOP, TOP / "siteproof")  # the rooms of the package are named without it
    missing = {
        (page, name)
        for page, text in ours().items()
        for name in set(PATH.findall(text)) - set(EXAMPLE.findall(text))
        if not any(any(place.glob(name)) for place in places)
    }
    assert missing == set()


def test_a_command_and_an_option_that_do_not_exist_are_found():
    page = (
        "`siteproof verdicts`\n```\nsiteproof why node003 --becuase  # no\nsiteproof nodes\n```\n"
    )
    assert [unknown(line) for line in commands(page)] == [["--becuase"], [], ["verdicts"]]
