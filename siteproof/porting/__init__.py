"""A site for a machine that has none: of what Slurm lists, ReFrame settings, another site."""
