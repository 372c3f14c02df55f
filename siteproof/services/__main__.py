"""`python -m siteproof.services FILE`: what a job of the check Service runs."""

import sys

from siteproof.services.runner import main

main(sys.argv[1])
