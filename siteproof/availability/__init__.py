"""Availability: how long a system, its nodes and services were up, by four definitions."""
