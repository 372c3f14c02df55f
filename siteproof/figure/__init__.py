"""Figures: plain data in, the text of an <svg> element or a PNG out. Made with matplotlib.

Each module has `draw(name, says, data) -> str` for a page; `svg` and `png` draw curves into files.
Shapes, lines, hatches and words show without colour what they show with it.
"""

from siteproof.figure.line_plot import Line, LinePlot, png, svg

__all__ = ["Line", "LinePlot", "png", "svg"]
