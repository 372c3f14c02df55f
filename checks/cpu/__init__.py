"""Checks of one node's processor and memory."""
