"""Figures: plain data in, the text of an <svg> element or a PNG out. Made with matplotlib.

Each module has `draw(name, says, data) -> str` for a page; `svg` and `png` draw curves into files.
They tell without colour what they show, by shape, line, hatch and words.
"""

from siteproof.figure.line_chart import Line, Picture, png, svg, xs_of

__all__ = ["Line", "Picture", "png", "svg", "xs_of"]
