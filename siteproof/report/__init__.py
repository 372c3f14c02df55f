"""The report: what was measured of a system and what it means, on one page."""

CHAPTERS: tuple[str, ...] = (  # modules of siteproof.report.chapters, in the order of the page
    "criteria",
    "evidence",
    "nodes",
    "changes",  # what a reader asks first
    "distribution",
    "heatmap",
    "trend",
    "sweeps",
    "links",
    "matrix",
    "daily",
    "tested",
    "scenarios",
    "availability",
    "soak",  # the figures
    "own_tests",
    "conditions",
    "description",
    "timeline",
    "samples",
    "results",  # what it rests on
    "untested",  # what is not there
)
OF_MEMBERS = ("criteria", "evidence", "samples")  # those of a system that consists of others
