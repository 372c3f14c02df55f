"""YAML that people write: lines, shapes, and every mistake at once."""
