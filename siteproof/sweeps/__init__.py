"""Sweeps: one tool over many points. sweeps/NAME.yaml says which; nothing here knows ReFrame."""
