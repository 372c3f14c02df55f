"""`python -m siteproof.services FILE`: what a job of the check Service runs.

With KEY=VALUE arguments: a point of the check Cloud, as siteproof.services.capacity reads them.
"""

import sys
from importlib import import_module

if __name__ == "__main__":  # setup imports every module
    room = "capacity" if sys.argv[2:] else "runner"
    import_module(f"siteproof.services.{room}").main(*sys.argv[1:])
