"""What Siteproof's checks share, and the analyses behind the `siteproof` command."""
