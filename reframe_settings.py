"""ReFrame's settings: one system, described by site-config/, chosen by recognition or --system."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from siteproof.checks.settings import configuration  # noqa: E402

site_configuration = configuration(sys.argv[1:])
