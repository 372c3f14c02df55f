"""The style of all figures, and a drawing as SVG or PNG. No state is kept between drawings.

The same data give the same bytes. Layout, legends and ticks are matplotlib's own.
Colours: Okabe and Ito, Color Universal Design (2008).
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # the names of these types for all figures; nothing is imported for them
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis as Axis
    from matplotlib.figure import Figure as Figure
    from matplotlib.figure import SubFigure as SubFigure
    from matplotlib.typing import RcKeyType

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", (0, (4, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (2, 2)))
SOFT, GRID, PALE = "#666666", "#dddddd", "#c9d3dc"
HATCHED: dict[str, Any] = {"facecolor": "none", "edgecolor": "#8a8a8a", "linewidth": 0}
WIDTH, UNITS = 400.0, 72  # units of a figure, and of an inch; 8 units can be read on a phone
LETTERS = 80  # that fit side by side into a figure
LEGEND = 13.0  # units of a line
NAME = 26  # letters of a name at an axis
DOTS = 160  # an inch, in PNG
DAY = 86_400.0  # seconds; dates on an axis are days since 1970
_STYLE: dict[RcKeyType, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "siteproof",
    "font.sans-serif": ["DejaVu Sans"],  # a page sets its own
    "font.size": 9.0,
    "legend.fontsize": 8.4,
    "legend.frameon": False,
    "xtick.labelsize": 8.4,
    "ytick.labelsize": 8.4,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-5, 12),
    "date.converter": "concise",
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "text.parse_math": False,  # a $ is a $
}

Draw = Callable[["Figure"], object]


def svg(title: str, height: float, draw: Draw) -> str:
    """One figure as the text of an <svg> element, with its title and a legend of all labels.

    height: in units, without the legend. draw: draws into an empty figure.
    """
    text = save("svg", title, height, draw).decode()
    return text[text.index("<svg") :]


def save(kind: str, title: str, height: float, draw: Draw) -> bytes:
    """The same as an SVG or PNG; its parts have a legend each."""
    import matplotlib as mpl  # takes half a second, which other commands need not wait for
    from matplotlib import rcsetup
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    unsaid = ("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",)
    target = io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # without the user's own matplotlibrc
        lines = rcsetup.cycler(color=COLOURS, marker=MARKERS, linestyle=DASHES)
        mpl.rcParams.update(_STYLE | {"axes.prop_cycle": lines})
        made = Figure(figsize=(WIDTH / UNITS, 1), dpi=DOTS, layout="constrained")
        draw(made)
        parts: list[Figure | SubFigure] = [*made.subfigs] or [made]
        height += LEGEND * sum(map(_legend, parts))
        made.set_figheight(height / UNITS)
        # Not savefig, which finds the layout and draws twice.
        written = (
            FigureCanvasSVG(made).print_svg if kind == "svg" else FigureCanvasAgg(made).print_png
        )
        written(target, metadata={"Title": title, **dict.fromkeys(unsaid)})
    return target.getvalue()


def _legend(part: Figure | SubFigure) -> int:
    """What has a label, below the plots, in as many columns as fit; how many lines it takes."""
    found: dict[str, Any] = {}
    for place in part.axes:
        handles, texts = place.get_legend_handles_labels()
        found |= zip(texts, handles, strict=True)
    if not found:
        return 0
    labels = ["\n".join(textwrap.wrap(text, LETTERS - 8)) for text in found]
    columns = LETTERS // (8 + max(len(line) for text in labels for line in text.splitlines()))
    part.legend(found.values(), labels, loc="outside lower left", ncols=max(columns, 1))
    return -(-sum(text.count("\n") + 1 for text in labels) // max(columns, 1))


def short(text: str) -> str:
    """A name for an axis; an ellipsis stands for the end of a long one."""
    return text if len(text) <= NAME else f"{text[: NAME - 1]}…"


def days(times: Sequence[datetime]) -> np.ndarray:
    """Times as places on an axis of dates."""
    return np.array([at.timestamp() / DAY for at in times])
