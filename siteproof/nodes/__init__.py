"""The state of every node: compared with its contract, its role and its past."""
