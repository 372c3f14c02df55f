"""A site for a machine that has none: from what Slurm lists, and from another system's site."""
