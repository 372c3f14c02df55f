"""Steps: found where they are, and nowhere else."""

import numpy as np
import pytest

from siteproof.analysis import steps


def noise(seed, size=365):
    return np.random.default_rng(seed).normal(100, 1, size)


@pytest.mark.parametrize("size", [-5, 5])
def test_a_step_of_five_sd_is_found_where_it_is(size):
    values = noise(1)
    values[200:] += size
    assert steps.screen(values[None])[0]
    [at] = steps.find(values)
    assert abs(at - 200) <= 2


@pytest.mark.parametrize("seed", range(20))
def test_noise_has_no_step(seed):
    assert not steps.screen(noise(seed)[None])[0]
    assert steps.find(noise(seed)) == []
