"""Baselines from history: what is usual, how much it varies, and so what would be news."""
