"""One criterion and its samples: kept or not, and by which nodes. Pure functions."""
