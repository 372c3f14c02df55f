"""What changed over the years, since when, where, and what else changed there."""

from siteproof.trend.model import Ack, Alert, Line, Moment, Rhythm, Survey

__all__ = ["Ack", "Alert", "Line", "Moment", "Rhythm", "Survey"]
