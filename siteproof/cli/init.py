"""siteproof init: Lay out a folder to work in, with settings, checks, a site and data."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from siteproof import files
from siteproof.cli.shared import print_answer, refuse_strangers
from siteproof.errors import UserError
from siteproof.installed import SUITE
from siteproof.sites.site import SUPPLIED

LINKS = ("checks", "sweeps", "spack-envs", "sbatch", "reframe_settings.py")
FIRST_SITE = "thishost"
FOLDERS = ("site-config", "perflogs")
ACTIVATE = """\
# shellcheck shell=sh
# Made by 'siteproof init', which renews it. To set up a shell:  . {folder}/activate
export SITEPROOF_SITES={folder}/site-config
export SITEPROOF_DATA={folder}
export RFM_CONFIG_FILES={folder}/reframe_settings.py
case $PATH in
{programs}:*) ;;
*) export PATH={programs}:"$PATH" ;;
esac
"""
MARK = ACTIVATE.partition(",")[0]  # of each such file


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path), required=False)
def init(folder: Path | None) -> None:
    """Lay out DIR to work in, as a clone is: settings, checks, a first site, and a place for data.

    checks/, sweeps/, spack-envs/, sbatch/ and reframe_settings.py are links to what is installed.
    site-config/ gets the site 'thishost', the machine on which you are. To run it again, as after
    an upgrade, renews the links and 'activate', and keeps sites and data.

    \b
    siteproof init ~/siteproof && cd ~/siteproof && . ./activate
    reframe -c checks/ -r --mode quick
    siteproof verdict
    """
    if folder is None:
        raise UserError("init", "needs a folder", hint="Run 'siteproof init DIR'")
    top = folder.absolute()
    # A shell's comment, or a list of files, cannot have such a name.
    if not str(top).isprintable() or ":" in str(top):
        what = "has a colon or a control character in its name, or is not UTF-8"
        raise UserError(top, what, hint="Choose another folder")
    refuse_strangers(top)
    _refuse(top)
    programs = shlex.quote(str(Path(sys.prefix) / "bin"))
    activate = ACTIVATE.format(folder=shlex.quote(str(top)), programs=programs)
    for name in FOLDERS:
        (top / name).mkdir(parents=True, exist_ok=True)
    for name in LINKS:
        _put(top / name, partial(_link, SUITE / name))
    _put(top / "activate", lambda path: path.write_text(activate, encoding="utf-8"))
    if not any((top / "site-config").iterdir()):
        shutil.copytree(SUPPLIED / FIRST_SITE, top / "site-config" / FIRST_SITE)
    first = f"cd {shlex.quote(str(top))} && . ./activate && reframe -c checks/ -r --mode quick"
    print_answer(f"{top} has checks, settings, a site and a place for data", first)


def _refuse(top: Path) -> None:
    """Refuse a folder in which something else has one of the names. Raises UserError."""
    folders = [name for name in FOLDERS if not (top / name).is_dir()]
    links = [name for name in LINKS if not (top / name).is_symlink()]
    own = top / "activate"
    is_made = own.is_file() and files.read_named(own).startswith(MARK.encode())
    others = [] if is_made else [own.name]
    for name in [*folders, *links, *others]:
        if (top / name).exists():
            hint = "Choose another folder, or move it away"
            raise UserError(top / name, "is not of 'siteproof init'", hint=hint)


def _link(target: Path, path: Path) -> None:
    path.symlink_to(target)


def _put(path: Path, make: Callable[[Path], object]) -> None:
    """Make a file or link beside the path, and put it there at once."""
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        make(scratch / path.name)
        (scratch / path.name).replace(path)
    finally:
        shutil.rmtree(scratch)
