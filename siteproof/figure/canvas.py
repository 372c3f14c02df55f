"""A drawing as the text of one <svg> element, or as a PNG. No state is kept between drawings.

A page may have many elements: each has ids of its own, takes the width that it gets, and keeps its
texts as texts in the page's font. The same data give the same bytes.
Colours: Okabe and Ito, Color Universal Design (2008).
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", (0, (4, 1, 1, 1, 1, 1)), (0, (1, 1)))
SOFT, GRID, PALE = "#666666", "#dddddd", "#c9d3dc"
WIDTH = 400.0  # units of a figure; text of 8 units is readable on a phone
UNITS = 72  # of one inch
WIDEST = 1.75  # pixels of the page that a unit gets at most
SMALL = 8.4  # units: the texts inside of a figure
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif"
_TAG = re.compile(r"<[^>]*>")
_GROUP = re.compile(r'<g id="[^"]*"')
_FAMILY = re.compile(r"(?:; )?font-family: [^;\"]*")
_DIGITS = re.compile(r"(\.\d\d)\d+")


@dataclass(frozen=True)
class Placed:
    """A PNG in a drawing. box: left, bottom, width, height as shares of the figure."""

    box: tuple[float, float, float, float]
    png: bytes


@dataclass(frozen=True)
class Hover:
    """The values that a browser shows over a part of a drawing. box: as that of a Placed."""

    box: tuple[float, float, float, float]
    text: str


Draw = Callable[["Figure"], Sequence[Placed | Hover]]


def svg(name: str, title: str, caption: str, height: float, draw: Draw) -> str:
    """One figure for a page. name: a slug, once a page; height in units, of WIDTH.

    draw: draws into an empty figure, and gives the PNGs that lie below everything, and the values
    over its parts.
    """
    placed: list[Placed | Hover] = []
    drawn = save(lambda made: placed.extend(draw(made)), "svg", WIDTH, height, name)
    head = f'width="100%" role="img" style="max-width:{WIDEST * WIDTH:.0f}px;height:auto"'
    images = "".join(_image(one, height) for one in placed if isinstance(one, Placed))
    hovers = "".join(_hover(one, height) for one in placed if isinstance(one, Hover))
    made = _element(drawn, (WIDTH, height), head, title, caption, images)
    group = f'<g fill="none" stroke="none" pointer-events="all">{hovers}</g>\n' if hovers else ""
    return made.removesuffix("</svg>\n") + f"{group}</svg>\n"


def save(
    draw: Callable[[Figure], object],
    kind: str,
    width: float,
    height: float,
    salt: str,
    **options: Any,
) -> bytes:
    """A drawing as the bytes of an SVG or PNG; sizes in units. salt: makes ids its own."""
    import matplotlib as mpl  # takes half a second, which other commands need not wait for
    from matplotlib.figure import Figure

    style: dict[RcKeyType, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.size": 9.0,
        "font.family": "sans-serif",
        "axes.titlesize": 10.0,
        "axes.titlelocation": "left",
        "text.parse_math": False,  # a $ is a $
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.7,
        "axes.axisbelow": True,
        "hatch.linewidth": 0.5,
    }
    if kind == "svg":
        options["metadata"] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    target = io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # without the user's own matplotlibrc
        mpl.rcParams.update(style)
        made = Figure(figsize=(width / UNITS, height / UNITS))
        draw(made)
        if kind == "svg":
            made.patch.set_visible(False)
        made.savefig(target, format=kind, **options)
    return target.getvalue()


def plain_svg(drawn: bytes, width: float, height: float, title: str) -> str:
    """An SVG for a file of its own, in points."""
    return _element(drawn, (width, height), f'width="{width:g}pt" height="{height:g}pt"', title)


def _element(
    made: bytes,
    size: tuple[float, float],
    head: str,
    title: str,
    caption: str = "",
    images: str = "",
) -> str:
    """The element with title and description, without the names and digits that a page ignores."""
    drawn, (width, height) = made.decode(), size
    start = drawn.index("<g ", drawn.index("<svg"))
    body = _TAG.sub(lambda tag: _lean(tag[0]), drawn[start:])
    text = f"<title>{escape(title, quote=False)}</title>"
    if caption:
        text += f"<desc>{escape(caption, quote=False)}</desc>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" {head} font-family="{FONTS}" stroke-linejoin="round">'
        f'{text}<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>{images}\n'
        + re.sub(r">\s*\n\s*<", ">\n<", body).rstrip()
        + "\n"
    )


def _lean(tag: str) -> str:
    """A tag without a group's id, with two decimals at most, and in the page's font."""
    tag = _GROUP.sub("<g", tag)
    tag = _FAMILY.sub("", tag)
    return _DIGITS.sub(r"\1", " ".join(tag.split()))


def _hover(one: Hover, height: float) -> str:
    left, bottom, wide, high = one.box
    return (
        f'<rect x="{left * WIDTH:.1f}" y="{(1 - bottom - high) * height:.1f}" '
        f'width="{wide * WIDTH:.1f}" height="{high * height:.1f}">'
        f"<title>{escape(one.text, quote=False)}</title></rect>"
    )


def _image(one: Placed, height: float) -> str:
    left, bottom, wide, high = one.box
    text = base64.b64encode(one.png).decode()
    return (
        f'<image x="{left * WIDTH:.2f}" y="{(1 - bottom - high) * height:.2f}" '
        f'width="{wide * WIDTH:.2f}" height="{high * height:.2f}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'xlink:href="data:image/png;base64,{text}"/>'
    )
