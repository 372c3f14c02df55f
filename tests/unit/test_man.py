"""The man pages: one for each command, all that its help says, and roff without a mistake."""

import re
import shutil
import subprocess
import sys

import click
import pytest
from clone import TOP

from siteproof import cli

sys.path[:0] = [str(TOP / "setup")]
import man  # noqa: E402

mandoc = pytest.mark.skipif(not shutil.which("mandoc"), reason="NOT TESTED: no mandoc")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man1")
    (folder / "siteproof-gone.1").touch()
    man.write(folder)
    return folder


def test_each_command_has_a_page_and_one_that_is_gone_has_none(pages):
    names = {path.stem for path in pages.iterdir()}
    assert {"siteproof", "siteproof-trend-why"} | {
        f"siteproof-{name}" for name in cli.COMMANDS
    } <= names
    assert "siteproof-gone" not in names


@mandoc
def test_mandoc_finds_nothing_in_a_page(pages):
    done = subprocess.run(
        ["mandoc", "-Tlint", "-W", "warning", *pages.iterdir()], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


@mandoc
def test_a_page_has_every_word_of_the_help(pages):
    missing = {}
    for words, context in man.commands(cli.group, ["siteproof"]):
        context.max_content_width = 1000
        name = "-".join(words)
        command = ["mandoc", "-Tutf8", pages / f"{name}.1"]
        bold = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        shown = re.sub(".\b", "", bold)
        asked = words_of(context.command.get_help(context))
        missing[name] = asked - words_of(shown) - {"Usage", "Options", "Commands", "Exit", "code"}
    assert {name: words for name, words in missing.items() if words} == {}


def words_of(text):
    return set(re.findall(r"\w+", text))


def test_what_means_something_to_roff_is_plain_text():
    @click.command()
    @click.option("--as-of", help=r"'a' \fB ~ ^ `b`")
    def odd(as_of):
        """.TH is a request.

        Exit code: 0 well; 1 not.
        """

    page = man.page(["odd"], click.Context(odd), "2026-11-21")
    assert "\\&.TH is a request." in page
    assert r"\(aqa\(aq \efB \(ti \(ha \(gab\(ga" in page
    assert ".SH EXIT STATUS\n0 well\n.br\n1 not." in page
    assert r"\fB\-\-as\-of\fR TEXT" in page
