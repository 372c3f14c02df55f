"""What follows from a node's readings and the site's facts. Pure functions.

Each module has `derive(readings, conditions, raw, facts)` and returns the readings and conditions
that count; it raises OutputError where the node's own account says that the answer is not valid.
For a link whose pairs all run together, `of_link(moved, facts)` returns the readings of the whole.
"""
