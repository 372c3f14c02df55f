"""What changed over the years, since when, where, and what else changed there."""

from siteproof.trend.alerts import Ack, Alert, Line, Moment, Rhythm, Survey
from siteproof.trend.survey import dates, history_of, survey

__all__ = ["Ack", "Alert", "Line", "Moment", "Rhythm", "Survey", "dates", "history_of", "survey"]
