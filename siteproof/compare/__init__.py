"""Two campaigns: how every metric changed, and what else changed."""
