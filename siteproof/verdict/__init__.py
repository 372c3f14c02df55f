"""The criteria of a system, judged from the samples of a campaign."""
