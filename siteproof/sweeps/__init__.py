"""Sweeps: one tool over many points. sweeps/NAME.yaml lists them; nothing here knows ReFrame."""
