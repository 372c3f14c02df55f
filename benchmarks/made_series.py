"""Series of which the truth is known, for the benchmarks of the detectors.

All have a level of 100 and noise of one robust sd (MAD x 1.4826) of the given share of it, so that
a step of k robust sd is alike in each kind of noise. Daily runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Random = np.random.Generator
Noise = Callable[[Random, tuple[int, int]], Floats]

LEVEL, CV = 100.0, 0.01
APART = 15  # runs between two steps, and before the first and after the last
DAY = 86400.0
BEGIN = 1_700_000_000.0  # a Tuesday


def gauss(chance: Random, shape: tuple[int, int]) -> Floats:
    """Normal."""
    return chance.standard_normal(shape)


def student(chance: Random, shape: tuple[int, int]) -> Floats:
    """Student's t with three degrees of freedom."""
    return chance.standard_t(3, shape)


def outliers(chance: Random, shape: tuple[int, int]) -> Floats:
    """Normal, and 5 % of the values 4 to 12 sd too low."""
    return gauss(chance, shape) - (chance.random(shape) < 0.05) * chance.uniform(4, 12, shape)


def resembling(chance: Random, shape: tuple[int, int]) -> Floats:
    """AR(1) of 0.4."""
    values = gauss(chance, shape)
    values[:, 0] /= np.sqrt(1 - 0.4**2)
    for at in range(1, shape[1]):
        values[:, at] += 0.4 * values[:, at - 1]
    return values


def skewed(chance: Random, shape: tuple[int, int]) -> Floats:
    """Gamma of shape 2: a long tail to the worse side of a run time."""
    return chance.gamma(2, 1, shape)


def quantised(chance: Random, shape: tuple[int, int]) -> Floats:
    """Normal, rounded to a whole sd: five figures or so occur."""
    return np.round(gauss(chance, shape))


def bimodal(chance: Random, shape: tuple[int, int]) -> Floats:
    """Seven runs of ten at one level, three 4 sd lower, in no order."""
    return gauss(chance, shape) - 4 * (chance.random(shape) < 0.3)


NOISES: dict[str, Noise] = {
    "Gauss": gauss,
    "t3": student,
    "5 % low outliers": outliers,
    "AR(1) 0.4": resembling,
    "gamma": skewed,
    "quantised": quantised,
    "bimodal": bimodal,
}


@cache
def _unit(noise: Noise) -> tuple[float, float]:
    """Median and robust sd of the noise."""
    values = noise(np.random.default_rng(0), (1000, 1000)).ravel()
    middle = float(np.median(values))
    return middle, 1.4826 * float(np.median(np.abs(values - middle)))


def stable(noise: Noise, chance: Random, count: int, points: int) -> Floats:
    """So many series without a step, in robust sd around 0."""
    middle, sd = _unit(noise)
    return (noise(chance, (count, points)) - middle) / sd


def places(chance: Random, points: int, most: int = 3) -> list[int]:
    """Where 1 to 3 steps are, each place alike as long as they are APART; fewer if none fit."""
    count = int(chance.integers(1, min(most, points // APART - 1) + 1))
    free = points - APART * (count + 1)
    return [
        int(at) + APART * (i + 1)
        for i, at in enumerate(sorted(chance.integers(0, free + 1, count)))
    ]


def matched(found: list[int], truth: list[int], tolerance: int) -> int:
    """How many of the steps were found, each by one of its own."""
    left, right = list(found), 0
    for at in truth:
        near = min(left, key=lambda one: abs(one - at), default=None)
        if near is not None and abs(near - at) <= tolerance:
            left.remove(near)
            right += 1
    return right
