"""Figures: plain data in, the text of an <svg> element or a PNG out. Made with matplotlib.

Each tells what it shows without colour, by shape, line, hatch and words.
"""

from siteproof.figure.curves import Line, Picture, curves, png, svg, xs_of

__all__ = ["Line", "Picture", "curves", "png", "svg", "xs_of"]
