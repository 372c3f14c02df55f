"""Nodes that are slow compared with the others of their role, or with their own past.

Modified z-score and its limit: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993).
Factors for few values: Croux and Rousseeuw, Time-Efficient Algorithms for Two Highly Robust
Estimators of Scale (1992).

Why there is no "every node within 3 % of the median": of 320 healthy nodes with a coefficient of
variation of 1 %, one or more leave that band 35 times in 100, because 320 nodes are 320 chances.
Hence a limit in robust standard deviations, a deficit worth a repair, and a second run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb, sqrt
from statistics import median
from typing import NamedTuple

Z_LIMIT = -3.5  # Iglewicz and Hoaglin
MIN_DEFICIT = 0.02  # a smaller loss is not worth a repair
MAD_TO_SIGMA = 1.4826  # for normally distributed values
MEDIAN_ERROR = 1.253  # standard error of a median as a multiple of that of a mean: sqrt(pi / 2)
RESOLUTION = 0.002  # of the median: closer than that, values are equal; also where the MAD is 0
FEW = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
MIN_FLEET = 4  # of three nodes two may be the bad ones, and a MAD of three means nothing

RETESTS = 3  # the newest runs that decide …
SLOW_RUNS = 2  # … and how many of them must be slow
BY_CHANCE = 0.002  # wanted: the share of healthy nodes that have as many slow runs
CLEAR_DEFICIT = 0.20  # so much below the median that one run will do
MIN_HISTORY = 3  # earlier values; with fewer a change is not judged
CLEAR_FALL = 0.10  # of a single run against its own history
MOVED_SD = 3  # standard errors: a larger change is one of the fleet
UNSTABLE_RUNS = 4  # fewer show no spread
UNSTABLE_SPREAD = 0.05
UNSTABLE_TIMES = 4  # more than the spread that the fleet's nodes have from run to run
MANY = 0.20  # of a role: with more bad nodes than that the median may be theirs


class State(StrEnum):
    """The state of a node, the most severe first: the first of several is shown."""

    FAILED = "FAILED"
    FLAPPING = "FLAPPING"
    SLOW = "SLOW"
    ODD = "ODD"
    UNTESTED = "UNTESTED"
    UNSTABLE = "UNSTABLE"
    OK = "OK"


MEANINGS = {  # of each state
    State.FAILED: "It misses a criterion, or could not be measured.",
    State.FLAPPING: "It failed more than once in its last ten sessions, and not in the newest.",
    State.SLOW: "It is worse than the nodes of its role, or than its own past.",
    State.ODD: "Its hardware, firmware or settings differ from the site's or the majority's.",
    State.UNTESTED: "It lacks a value that a criterion accepts, or others have; no other fault.",
    State.UNSTABLE: "Its values scatter.",
    State.OK: "Nothing is wrong with it.",
}


class Slow(StrEnum):
    """The result of the retest rule for a node in one metric."""

    NO = "no"
    UNCONFIRMED = "unconfirmed"  # one slow run, not so clear that it will do
    ONCE = "once"  # seen once, and clear
    CONFIRMED = "confirmed"


class Level(NamedTuple):
    """Where some values lie: median, median absolute deviation, how many they are."""

    median: float
    mad: float
    size: int

    @property
    def sd(self) -> float:
        """Robust standard deviation."""
        few = FEW.get(self.size, self.size / (self.size - 0.8))
        return max(MAD_TO_SIGMA * few * self.mad, RESOLUTION * abs(self.median))


def level(values: Collection[float]) -> Level:
    """Where one value or more lie."""
    centre = median(values)
    return Level(centre, median([abs(v - centre) for v in values]), len(values))


@dataclass(frozen=True)
class ByChance:
    """The shares of runs in which healthy nodes looked slow before: at all, and clearly so."""

    slow: float = 0.0
    clear: float = 0.0

    @property
    def needed(self) -> int:
        """How many of the last runs must be slow, so that hardly any healthy node has as many."""
        chances = {SLOW_RUNS: 3 * self.slow**2, RETESTS: self.slow**3}  # Bonferroni
        return next((n for n, chance in chances.items() if chance <= BY_CHANCE), RETESTS + 1)

    def explains(self, runs: int, slow: int) -> bool:
        """Whether so many clearly slow ones of the last runs, at least one, are nothing special."""
        p = self.clear
        chance = sum(comb(runs, n) * p**n * (1 - p) ** (runs - n) for n in range(slow, runs + 1))
        return slow > 0 and chance > BY_CHANCE


def retest_rule(slow: Sequence[bool], deficit: float, by_chance: ByChance = ByChance()) -> Slow:
    """Two of the last three runs; or the newest one alone if it is clear.

    slow: each run, oldest first. deficit: of the newest run. by_chance: where healthy nodes have
    such runs now and then, more of them are needed.
    """
    last = slow[-RETESTS:]
    always = len(slow) >= 2 * RETESTS and all(slow[-2 * RETESTS :])
    if sum(last) >= by_chance.needed or always:
        return Slow.CONFIRMED
    if not any(last):
        return Slow.NO
    is_clear = deficit >= CLEAR_DEFICIT and not by_chance.explains(1, 1)
    return Slow.ONCE if last[-1] and is_clear else Slow.UNCONFIRMED


def group_is_slow(members: Sequence[float], fleet: Level, better: str) -> float | None:
    """How far a rack's median is below the fleet's, if it is; else None.

    Each of its nodes may be within the fleet's spread, and their median still be too low.
    """
    if len(members) < MIN_HISTORY or fleet.median <= 0 or fleet.size < MIN_FLEET:
        return None
    sign, value = 1 if better == "higher" else -1, median(members)
    deficit = sign * (1 - value / fleet.median)
    errors = sign * (value - fleet.median) / fleet.sd * sqrt(len(members)) / MEDIAN_ERROR
    return deficit if errors < Z_LIMIT and deficit >= MIN_DEFICIT else None
