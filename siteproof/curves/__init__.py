"""What the run of a parallel sweep found: curves, plateaus, bounds, the best setting."""
