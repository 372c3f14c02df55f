"""One criterion and its samples: met or missed, and by which nodes. Pure functions."""
