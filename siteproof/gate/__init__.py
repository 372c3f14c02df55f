"""The gate: which nodes go back into service, and the quarantine of those that do not."""
