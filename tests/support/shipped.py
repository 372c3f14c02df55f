"""The sites that come with Siteproof, each read once for all tests that only look at it."""

from functools import cache

import pytest

from siteproof import sites


@cache
def site(name: str) -> sites.Site:
    """One of them, wherever a test has its own sites. Nobody changes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SITEPROOF_SITES", raising=False)
        return sites.load(name, whole=True)


with pytest.MonkeyPatch.context() as _patch:
    _patch.delenv("SITEPROOF_SITES", raising=False)
    NAMES = sites.names()
