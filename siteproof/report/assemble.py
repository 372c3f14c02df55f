"""Build a report: its first screen and every chapter in its order."""

from __future__ import annotations

from importlib import import_module

from siteproof.errors import UserError, UserErrors
from siteproof.report import CHAPTERS, OF_MEMBERS, value_tables
from siteproof.report.material import Material
from siteproof.report.sections import Report, Section
from siteproof.report.summary import begin

LAST = ("nodes", "changes", "trend")  # made last, as they need the search for steps


def build(material: Material) -> Report:
    """The report on a system. Raises UserErrors where samples cannot be read at all."""
    material.begin()
    names = OF_MEMBERS if material.site.members else CHAPTERS
    ordered = sorted(names, key=lambda name: name in LAST)
    made = {name: _chapter(name, material) for name in ordered}
    sections = [section for name in names if (section := made[name])]
    return Report(
        material.system, begin.build(material), sections, material.once(value_tables.attached)
    )


def _chapter(name: str, material: Material) -> Section | None:
    """A chapter; the error where a file that it needs is broken, so that the others are made."""
    material.progress(f"chapter {name}")
    made = import_module(f"siteproof.report.chapters.{name}")
    try:
        return made.chapter(material)  # type: ignore[no-any-return]
    except (UserError, UserErrors) as error:
        return Section(name, name.capitalize(), f"This chapter could not be made: {error}")
