"""All series at once, and one by one: where the first sees nothing, the second finds nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from siteproof.analysis import shape
from siteproof.analysis.quiet import LONGEST, quiet
from siteproof.analysis.spread import UNKNOWN, typical

pytestmark = pytest.mark.filterwarnings("error")
ROWS = 20
KINDS = ("noise", "wandering", "stepping", "outliers", "coarse", "ends", "drifting", "scattering")


def table(rng, kind, runs):
    """Series of a kind, around 100."""
    z, half = rng.standard_normal((ROWS, runs)), int(rng.integers(1, runs))
    size = rng.uniform(-6, 6, (ROWS, 1))
    if kind == "wandering":
        z += 0.5 * np.cumsum(z, axis=1)
    elif kind == "stepping":
        z[:, half:] += size
    elif kind == "outliers":
        z = np.clip(rng.standard_t(2, z.shape), -20, 20)
    elif kind == "coarse":
        z = np.round(z)
    elif kind == "ends":
        z[:, :1] += size
        z[:, -2:] -= size
    elif kind == "drifting":
        z += size * np.linspace(0, 1, runs)
    elif kind == "scattering":
        z[:, half:] *= np.abs(size)
    return 100 + rng.choice([0.1, 1, 4]) * z


def shows_something(values, kind):
    seen = shape.explain(np.arange(values.size) * 86400.0, values, kind, may_swing=False)
    return bool(seen.changes or seen.drift or seen.modes or seen.scatter)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(KINDS), st.integers(2, LONGEST + 2), st.booleans())
def test_the_search_finds_nothing_in_a_series_that_is_quiet(seed, kind, runs, is_known):
    rows = table(np.random.default_rng(seed), kind, runs)
    usual = typical(rows) if is_known and runs > 2 else UNKNOWN
    for values in rows[quiet(rows, usual)]:
        assert not shows_something(values, usual)


def test_nearly_all_series_of_noise_are_quiet_and_none_with_a_step_is():
    rng = np.random.default_rng(1)
    for runs in (30, LONGEST):
        rows = 100 + rng.standard_normal((400, runs))
        assert quiet(rows, UNKNOWN).mean() > 0.9, runs
        rows[:, runs // 2 :] += 12
        assert not quiet(rows, UNKNOWN).any(), runs
