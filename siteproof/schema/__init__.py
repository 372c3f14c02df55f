"""YAML and CSV that people write: lines, shapes, and every mistake at once."""
