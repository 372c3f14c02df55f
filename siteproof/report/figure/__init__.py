"""Figures: plain data in, the text of an <svg> element or a PNG out. Made with matplotlib.

Each module has a kind of figure and its `draw(title, ...) -> str` for a page; `style` has what all
share.
No figure depends on colour alone: shapes, lines, hatches and texts show the same.
"""
