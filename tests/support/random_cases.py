"""How many random cases a property is tested with."""

import os
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, settings

QUICK = 20


def cases(most: int, *, suppress: tuple[HealthCheck, ...] = ()) -> settings:
    """So many of them; few where 'make quick' asks (HYPOTHESIS_PROFILE)."""
    return settings(
        max_examples=_asked(most), suppress_health_check=[HealthCheck.too_slow, *suppress]
    )


def sources(what: str, most: int) -> Iterator[Random]:
    """So many sources of chance, of a name, where an example is cheaper than its drawing."""
    for number in range(_asked(most)):
        yield Random(f"{os.environ['SITEPROOF_SEED']} {what} {number}")


def rounds(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with so `many` random cases too, as its `count`, with the long tests."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.long)])


def _asked(most: int) -> int:
    return min(most, QUICK) if os.environ.get("HYPOTHESIS_PROFILE") == "quick" else most
