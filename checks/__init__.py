"""The checks run on Siteproof's settings only, never on ReFrame's built-in configuration.

ReFrame loads this file before any check.
"""

import sys

import reframe.core.runtime as runtime

if not any(str(s).endswith("reframe_settings.py") for s in runtime.runtime().site_config.sources):
    print(
        "siteproof: checks: ReFrame runs without Siteproof's settings. "
        "Run '. ./activate' first, then 'reframe -c checks/ -r'.",
        file=sys.stderr,
    )
    sys.exit(2)
