"""ReFrame's settings: one system, described by site-config/, chosen by recognition or --system."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

try:
    from siteproof import installed

    installed.refuse()
    from siteproof.checks.settings import configuration
except ModuleNotFoundError as error:
    print(
        f"siteproof: this ReFrame's Python has no {error.name}: 'make venv', then '. ./activate'",
        file=sys.stderr,
    )
    sys.exit(2)

site_configuration = configuration(sys.argv[1:])
