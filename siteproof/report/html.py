"""A report as one HTML page that needs no other file and no network.

Its one script sorts and filters tables; the page is whole without it, and no other script runs.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.filters import do_mark_safe

from siteproof.report.sections import (
    Address,
    Attached,
    Drawn,
    Figure,
    Marked,
    Numbering,
    Place,
    Report,
    Table,
    when,
)
from siteproof.units import count
from siteproof.wording.findings import SIGNS, look

ARROW = "\N{RIGHTWARDS ARROW}"  # one character, which no line break splits
HERE = Path(__file__).parent
WIDE = 3  # columns from which on a table becomes blocks on a narrow screen
BROAD = 110  # characters that need the whole width, where each cell has at most WRAPPED a line
WRAPPED = 30
LONG = 220  # characters of a row that would have too many lines on half of the width
_ID = re.compile(r"""(\bid=["']|url\(["']?#|href=["']#)""")
_NAME = re.compile(r'(?<=<g) id="[^"]*"')  # which nothing refers to
LONG_WORD = 20  # characters, from which on a word may have to be broken
_LONG = re.compile(rf"\S{{{LONG_WORD},}}")
LONGEST = 1_000_000  # bytes of a file that is not compressed: a browser saves none above 2 MB
# What these join, or are filled with, is escaped.
_BREAK, _NOTHING = do_mark_safe("<wbr>"), do_mark_safe("")
_PLACE = do_mark_safe('<a href="{}">{}</a>')
_STATE = do_mark_safe('<span class="word {}"><span aria-hidden="true">{}</span> {}</span>')
_LOOK, _SPACE = do_mark_safe('<span class="word {}">{}</span>'), do_mark_safe(" ")
_PIECE = re.compile(r"[^,/_]{0,29}[,/_]+|[^,/_]{1,30}")


def page(report: Report, now: datetime) -> str:
    """The page. now: when it is made."""
    template = _environment().get_template("page.html.j2")
    numbering = Numbering(report)
    css = (HERE / "style.css").read_text(encoding="utf-8")
    script = (HERE / "page.js").read_text(encoding="utf-8")
    title = f"{report.system}: {report.summary.mark}"
    cell = partial(_cell, numbering)
    return template.render(
        report=report,
        numbers=numbering,
        made=when(now),
        look=look,
        signs=SIGNS,
        cell=cell,
        cells=lambda table, row: _cells(table, row, cell),
        breakable=breakable,
        places=places,
        count=count,
        drawing=drawing,
        address=address,
        wide=WIDE,
        is_broad=is_broad,
        style=do_mark_safe(css),
        script=do_mark_safe(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        running=do_mark_safe(_css_text(f"Siteproof report on {title}")),
        title=title,
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _cell(numbering: Numbering, text: str) -> str:
    """A text; a state has its look and its sign."""
    if isinstance(text, Drawn):
        return do_mark_safe(text.given)
    if isinstance(text, Address):
        return _PLACE.format(text.given, breakable(text))
    if isinstance(text, Marked):
        return _SPACE.join(_LOOK.format(of_it, breakable(part)) for part, of_it in text.given)
    if found := numbering.refer(text):
        return places(found)
    known = look(text)
    return _STATE.format(known, SIGNS[known], text) if known else breakable(text)


def places(found: Sequence[Place]) -> str:
    """Links to them; a comma is part of its link, so that no line begins with it."""
    commas = [","] * (len(found) - 1) + [""]
    labels = [breakable(one.label + comma) for one, comma in zip(found, commas, strict=True)]
    links = zip(found, labels, strict=True)
    return _SPACE.join(_PLACE.format(f"#{one.anchor}", label) for one, label in links)


def _cells(table: Table, row: Sequence[str], cell: Callable[[str], str]) -> str:
    """The cells of a row that is plain, of which each is escaped."""
    begins = ('<td class="n">' if column in table.numeric else "<td>" for column in table.columns)
    texts = zip(begins, row, strict=True)
    return do_mark_safe("".join(f"{begin}{cell(text)}</td>" for begin, text in texts))


def is_broad(table: Table) -> bool:
    """Whether it takes the whole width: no other table or figure is next to it."""
    cells = zip(table.columns, *table.rows, strict=True)
    widths = [max(map(len, column)) for column in cells]
    return sum(widths) > LONG or sum(min(width, WRAPPED) for width in widths) > BROAD


def breakable(text: str) -> str:
    """A text whose long words may break after a comma or slash; a node set is one word."""
    text, parts, end = text.replace("->", ARROW), [], 0
    if len(text) < LONG_WORD:
        return _NOTHING + text
    for long in _LONG.finditer(text):
        parts += [text[end : long.start()], _BREAK.join(_PIECE.findall(long[0]))]
        end = long.end()
    return _NOTHING.join([*parts, text[end:]])


def address(attached: Attached) -> tuple[str, str]:
    """The name of a file and the address that holds it; a long one is compressed."""
    name, kind = attached.name, "text/csv" if attached.name.endswith(".csv") else "text/plain"
    data = attached.text.encode("utf-8", "backslashreplace")
    if len(data) > LONGEST:
        name, kind, data = f"{name}.gz", "application/gzip", gzip.compress(data, mtime=0)
    return name, f"data:{kind};base64,{base64.b64encode(data).decode()}"


def drawing(figure: Figure) -> str:
    """The drawing with ids that are unique in the page. It is of siteproof.report.figure only."""
    return do_mark_safe(_ID.sub(rf"\g<1>{figure.name}-", _NAME.sub("", figure.svg)))


def _css_text(text: str) -> str:
    """A text as the content of a CSS string, with everything else escaped."""
    return "".join(
        c if c.isalnum() and c.isascii() or c in " .:-" else f"\\{ord(c):06x}" for c in text
    )
