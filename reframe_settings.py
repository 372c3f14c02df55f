"""ReFrame's settings: one system, described by site-config/, chosen by recognition or --system."""

import sys
from pathlib import Path

CLONE = str(Path(__file__).resolve().parent)
sys.path.insert(0, CLONE)  # before any other Siteproof

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

# ReFrame removes the last entry by its index, so none may move (docs/upstream/sys-path.md).
sys.path.remove(CLONE)
sys.path.append(CLONE)

site_configuration = configuration(sys.argv[1:])
