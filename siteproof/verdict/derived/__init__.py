"""Values that follow from the samples of a campaign: computed when they are read, never stored."""
