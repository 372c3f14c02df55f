"""The `siteproof` command, and the library that it shares with Siteproof's checks."""

__version__ = "0.1.0"
