"""Checks of what a node is, and of how well it has been."""
