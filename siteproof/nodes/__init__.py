"""The state of every node: compared with its contract, its sisters and its past."""
