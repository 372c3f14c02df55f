"""Probes: one look at a service from outside, each kind with a time limit."""
