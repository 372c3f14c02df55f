"""A new site's folder: written whole under a hidden name, checked, and then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from siteproof.errors import UserError, UserErrors
from siteproof.sites import Site, folder
from siteproof.sites.key_types import NAME, NAME_RULE
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site import examine

# ReFrame's own system; the commands after `siteproof sites`; what YAML reads as no value.
RESERVED = ("generic", "new", "show", "null")


def refuse(name: str) -> Path:
    """Where the site will be. Raises UserError for a name that is none, or is taken."""
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise UserError("sites new", f"'{name[:40]}' is not a valid name of a system", NAME_RULE)
    target = folder() / name
    if target.exists() or target.is_symlink():
        raise UserError(target, "exists already", hint="Choose another name, or move it away")
    if not folder().is_dir():
        hint = "Make it, or set SITEPROOF_SITES to the folder of sites"
        raise UserError(folder(), "is not a folder", hint=hint)
    return target


def write(name: str, texts: Mapping[str, str]) -> tuple[Path, list[Document]]:
    """Write all files or none; gives the folder and the files with their gaps and warnings.

    Raises UserErrors if lint finds a mistake in them, UserError if the folder exists, OSError.
    """
    target = refuse(name)
    with _checked(name, texts) as made:
        refuse(name)
        made.rename(target)
    return target, examine(name)[1]


def add(site: Site, name: str, text: str) -> Path:
    """Add a file to a site, whole or not at all; it must be one that lint has no mistake in.

    Raises UserErrors with the mistakes, UserError if there is such a file, OSError.
    """
    target = site.folder / name
    try:
        with _checked(site.name, {name: text}, site.folder) as made:
            os.link(made / name, target)  # fails where there is one; a rename would replace it
    except FileExistsError:
        raise UserError(target, "exists already", hint="Move it away first") from None
    return target


@contextmanager
def _checked(name: str, texts: Mapping[str, str], site: Path | None = None) -> Iterator[Path]:
    """A site's folder below a hidden one: a copy of this site, if there is one, and these files.

    Raises UserErrors with what lint finds, UserError that names the parent, which the user knows.
    """
    parent = site.parent if site else folder()
    try:
        hidden = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=parent))
    except OSError as error:
        what = f"no folder can be made in it: {error.strerror}"
        hint = "Set SITEPROOF_SITES to a folder in which you may write"
        raise UserError(parent, what, hint=hint) from None
    try:
        made = hidden / name
        if site:
            shutil.copytree(site, made)
        else:
            made.mkdir()
        for file, text in texts.items():
            (made / file).write_text(text, encoding="utf-8")
        _, documents = examine(name, made)
        if mistakes := [one for document in documents for one in document.sorted_mistakes()]:
            raise UserErrors([_not_written(one, made) for one in mistakes])
        yield made
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _not_written(mistake: UserError, hidden: Path) -> UserError:
    """A mistake in a file that is not kept: its name and line without the folder."""
    where = mistake.where.removeprefix(f"{hidden}{os.sep}")
    hint = "Correct what was given"
    return UserError(f"not written: {where}", mistake.what, mistake.allowed, mistake.hint or hint)
