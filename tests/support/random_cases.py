"""How many random cases a property is tested with."""

import os

from hypothesis import HealthCheck, settings

QUICK = 20


def cases(most: int, *, suppress: tuple[HealthCheck, ...] = ()) -> settings:
    """So many of them; few where 'make quick' asks (HYPOTHESIS_PROFILE)."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "quick":
        most = min(most, QUICK)
    return settings(max_examples=most, suppress_health_check=[HealthCheck.too_slow, *suppress])
