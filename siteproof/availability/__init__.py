"""Availability: how long a system, its nodes and services were up, by four definitions."""

from siteproof.availability.window_figures import WindowFigure, figures

__all__ = ["WindowFigure", "figures"]
