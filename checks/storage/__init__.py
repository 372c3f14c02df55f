"""Checks of a file system from one client at a time, or from a few."""
