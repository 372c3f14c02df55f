"""Numbers, shares and places of an axis, as sweeps print them."""

from __future__ import annotations

from siteproof.sweeps.tools import SIZES
from siteproof.units import size


def at(axis: str, value: object) -> str:
    """A place on an axis with its unit: 32 tasks, 64 servers, 1 MiB, depth 4."""
    text = f"{value}"
    if isinstance(value, float):
        text = f"{value:.4g}" if value < 10_000 else f"{value:.0f}"
    if axis in SIZES and text.isdigit():
        return size(int(text))
    if axis in ("tasks", "servers"):
        return f"1 {axis[:-1]}" if text == "1" else f"{text} {axis}"
    return f"{axis} {text}"


def number(value: float) -> str:
    """A value for people: four significant digits, and no exponent."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def per_cent(share: float) -> str:
    """A share; below a tenth of a per cent it is printed as 0."""
    return f"{100 * share:.3g} %" if abs(share) >= 0.0005 else "0 %"


def change(share: float) -> str:
    """A change with its sign."""
    return f"+{per_cent(share)}" if share > 0 else per_cent(share)
