"""What Siteproof's checks share, and the analyses behind the `siteproof` command."""

__version__ = "0.1.0"
