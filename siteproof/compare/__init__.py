"""Two campaigns: what became of every figure, and what else changed."""
