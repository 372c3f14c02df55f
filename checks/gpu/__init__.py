"""Checks of the GPUs of nodes."""
