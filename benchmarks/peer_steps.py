"""Steps as another project finds them; run by score_peers.py with that project's own Python.

    PYTHON peer_steps.py < SERIES > FOUND

SERIES: one series a line, a JSON list. FOUND: for each detector that PYTHON has, and each series,
one JSON list of the detector's name, its CPU seconds, and the first index after each step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Detect = Callable[[list[float]], list[int]]


def detectors() -> Iterator[tuple[str, Detect]]:
    """Those that can be imported: name and function."""
    try:
        from asv import step_detect

        yield "asv", lambda values: [step[0] for step in step_detect.detect_steps(values)[1:]]
    except ImportError:
        pass
    try:
        from otava.analysis import compute_change_points
    except ImportError:
        return
    for name, most in (("Otava, p .001", 0.001), ("Otava, p 1e-5", 1e-5)):
        yield name, otava(compute_change_points, most)


def otava(compute_change_points: Any, most: float) -> Detect:
    """Its change points; most: the p-value; the rest by default."""
    return lambda values: [
        point.index for point in compute_change_points(values, max_pvalue=most)[0]
    ]


def answer() -> None:
    """All series from stdin."""
    known = list(detectors())
    for line in sys.stdin:
        values = json.loads(line)
        for name, detect in known:
            begin = time.process_time()
            found = detect(values)
            print(json.dumps([name, time.process_time() - begin, [int(at) for at in found]]))


if __name__ == "__main__":
    answer()
