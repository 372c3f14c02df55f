"""Kinds of noise that no constant of a detector may be chosen on.

They were written after the constants of siteproof/analysis, by somebody who had not read them, and
differ in nature from those of made_noise.py. Each gives factors as there: their robust sd from run
to run is the coefficient of variation, but for what the kind adds to it by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
from made_noise import Noise, Random
from made_sites import Floats, hours

Times = Sequence[datetime]


def _around(draw: Callable[[Random, tuple[int, int]], Floats], cv: float) -> tuple[float, float]:
    """Median of a distribution, and what makes its robust sd the coefficient of variation."""
    sample = draw(np.random.default_rng(0), (1000, 1000))
    middle = float(np.median(sample))
    return middle, cv / (1.4826 * float(np.median(np.abs(sample - middle))))


def long_tail(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """A lognormal loss with a sigma of 1: 1 % of the runs lack 16 times the robust sd."""

    def draw(chance: Random, shape: tuple[int, int]) -> Floats:
        return chance.lognormal(0, 1, shape)

    middle, factor = _around(draw, cv)
    return 1 - factor * (draw(chance, (len(times), nodes)) - middle)


def weibull(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """A Weibull loss of shape 0.7: most runs are close to the best."""

    def draw(chance: Random, shape: tuple[int, int]) -> Floats:
        return chance.weibull(0.7, shape)

    middle, factor = _around(draw, cv)
    return 1 - factor * (draw(chance, (len(times), nodes)) - middle)


def queue_wait(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Six runs of ten wait for nobody; the others lose an exponential time of three cv."""
    waits = (chance.random((len(times), nodes)) < 0.4) * chance.exponential(3, (len(times), nodes))
    return 1 + cv * (0.3 * chance.standard_normal((len(times), nodes)) - waits)


def markov(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal, and two states 3 cv apart, each kept with .7 from run to run."""
    flips = np.cumsum(chance.random((len(times), nodes)) < 0.3, axis=0)
    flips += chance.integers(0, 2, nodes)
    return 1 + cv * (chance.standard_normal((len(times), nodes)) - 3.0 * (flips % 2))


def _coloured(chance: Random, runs: int, nodes: int, d: float) -> Floats:
    """Noise whose power falls with frequency to the 2d, of sd 1; cut from four times as many."""
    whole = 4 * runs
    weights = np.arange(whole // 2 + 1, dtype=float)
    weights[1:] **= -d
    weights[0] = 0
    waves = np.fft.rfft(chance.standard_normal((whole, nodes)), axis=0) * weights[:, None]
    values = np.fft.irfft(waves, whole, axis=0)[:runs]
    return np.asarray(values / np.sqrt(np.mean(weights[1:] ** 2)))


def long_memory(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Fractional noise of d = .3: neighbours agree with .43, and far runs still do."""
    return 1 + cv * _coloured(chance, len(times), nodes, 0.3)


def pink(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """1/f noise: it has no level, and wanders at every scale."""
    return 1 + cv * _coloured(chance, len(times), nodes, 0.5)


def slow_wave(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal; the scatter itself swings between 0.3 and 1.7 cv, in 50 runs, each node by itself."""
    phase = chance.uniform(0, 2 * np.pi, nodes)
    wave = 1 + 0.7 * np.sin(2 * np.pi * np.arange(len(times))[:, None] / 50 + phase)
    return 1 + cv * wave * chance.standard_normal((len(times), nodes))


def good_outliers(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal, and 2 % of the runs are 5 to 15 cv better."""
    good = chance.random((len(times), nodes)) < 0.02
    extra = good * chance.uniform(5, 15, (len(times), nodes))
    return 1 + cv * (chance.standard_normal((len(times), nodes)) + extra)


def clock_states(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Multiples of 1.5 cv, as of a processor's clock, with a jitter of a tenth of cv."""
    states = 1.5 * np.round(chance.standard_normal((len(times), nodes)) / 1.5)
    return 1 + cv * (states + 0.1 * chance.standard_normal((len(times), nodes)))


def weather(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Half of the variance is AR(1) of .8 that all nodes share, as the air of one room."""
    air = chance.standard_normal(len(times))
    for at in range(1, len(times)):
        air[at] = 0.8 * air[at - 1] + 0.6 * air[at]
    own = chance.standard_normal((len(times), nodes))
    return 1 + cv * np.sqrt(0.5) * (air[:, None] + own)


def calendar(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal; each weekday and each hour has a level of its own, 1.5 cv of sd."""
    weekdays, of_day = chance.standard_normal(7), chance.standard_normal(24)
    level = np.array([weekdays[moment.weekday()] for moment in times])
    level = level + of_day[hours(times).astype(int) % 24]
    return 1 + cv * (chance.standard_normal((len(times), nodes)) + 1.5 * level[:, None])


def unlike_scatter(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal, and each node has a scatter of its own: lognormal around cv, a sigma of .8."""
    own = np.exp(0.8 * chance.standard_normal(nodes))
    return 1 + cv * own * chance.standard_normal((len(times), nodes))


def repeated(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal; six of ten runs give exactly the value of the run before, as from a cache."""
    values = chance.standard_normal((len(times), nodes))
    again = chance.random((len(times), nodes)) < 0.6
    for at in range(1, len(times)):
        values[at] = np.where(again[at], values[at - 1], values[at])
    return 1 + cv * values


def ceiling(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal with twice the cv, and cut at the level, as a link's rate: half of the runs tie."""
    return np.minimum(1, 1 + 2 * cv * chance.standard_normal((len(times), nodes)))


def sawtooth(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal; a node loses .15 cv a run until it is booted, every 25 runs on average."""
    boots = chance.random((len(times), nodes)) < 1 / 25
    up = np.zeros((len(times), nodes))
    up[0] = chance.geometric(1 / 25, nodes)
    for at in range(1, len(times)):
        up[at] = np.where(boots[at], 0, up[at - 1] + 1)
    return 1 + cv * (chance.standard_normal((len(times), nodes)) - 0.15 * np.minimum(up, 60))


def busy_sessions(chance: Random, times: Times, nodes: int, cv: float) -> Floats:
    """Normal; in 5 % of the runs all nodes lack 3 to 12 %, as when others use the file system."""
    busy = (chance.random(len(times)) < 0.05) * chance.uniform(0.03, 0.12, len(times))
    return 1 - busy[:, None] + cv * chance.standard_normal((len(times), nodes))


KINDS: dict[str, Noise] = {
    "long tail": long_tail,
    "Weibull": weibull,
    "queue wait": queue_wait,
    "Markov": markov,
    "long memory": long_memory,
    "pink": pink,
    "slow wave": slow_wave,
    "good outliers": good_outliers,
    "clock states": clock_states,
    "weather": weather,
    "calendar": calendar,
    "unlike scatter": unlike_scatter,
    "repeated": repeated,
    "ceiling": ceiling,
    "sawtooth": sawtooth,
    "busy sessions": busy_sessions,
}

PATTERNS = (calendar, markov)  # whose pattern a page may name
TWICE_A_DAY = (calendar,)  # so that hours matter
CVS = (0.01, 0.02, 0.05)
