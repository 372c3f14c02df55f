"""The one client of Slurm: `client` runs commands, `records` and `spelling` read their output."""
