"""Figures that others have published: read, judged and set side by side."""
