"""Checks of one node's host settings."""
