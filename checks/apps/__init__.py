"""Checks of programs as users run them."""
