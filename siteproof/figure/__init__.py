"""Figures: plain data in, the text of an <svg> element or a PNG out. Made with matplotlib.

Each module has `draw(name, caption, data) -> str` for a page; `svg` and `png` make files of curves.
No figure depends on colour alone: shapes, lines, hatches and texts show the same.
"""

from siteproof.figure.line_plot import Line, LinePlot, png, svg

__all__ = ["Line", "LinePlot", "png", "svg"]
