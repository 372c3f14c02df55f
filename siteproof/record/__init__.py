"""What was measured and kept: samples, sessions, series, campaigns, manifests."""
