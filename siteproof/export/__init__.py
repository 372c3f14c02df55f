"""What other tools read: JUnit XML, OpenMetrics text, and JSON with its schema. Pure functions."""
