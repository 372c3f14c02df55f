"""Checks of the network between two nodes."""
