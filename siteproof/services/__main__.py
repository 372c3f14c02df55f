"""`python -m siteproof.services FILE`: what a job of the check Service runs."""

import sys

from siteproof.services.runner import main

if __name__ == "__main__":  # setup imports every module
    main(sys.argv[1])
