"""From the raw files that nodes left to samples in perflogs."""
