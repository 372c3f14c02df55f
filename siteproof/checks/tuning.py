"""Tuning: what a sweep that turns knobs needs in addition to every sweep.

It runs only where the site allows it. Its scripts set, read back and restore (knob.sh); a knob that
they could not restore is a failed sample of the node (siteproof/collect/of_system.py).
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before

from siteproof.checks import session
from siteproof.checks.job import ON_NODE
from siteproof.record.point import KNOB, Point
from siteproof.sweeps import knobs
from siteproof.sweeps.reading import SweepFile, combinations

SCRIPTS = ("knob.sh", "knob_hold.sh", "knob_kinds.sh")
PATIENCE = 20  # seconds in which the nodes of a job that was ended restore; Slurm's KillWait is 30


class Tuning(rfm.RegressionTestPlugin):
    """Mixed into SweepCheck; does nothing for sweeps without a knob."""

    sweep_file: SweepFile | None
    points: dict[int, Point]

    @property
    def turns_knobs(self) -> bool:
        """Whether the sweep changes settings of the nodes."""
        return bool(self.sweep_file and self.sweep_file.sweep.turns_knobs)

    @run_after("setup")
    def skip_without_tuning(self) -> None:
        """No node is changed unless its site allows it."""
        where = session.current().site.partition(self.current_partition.name)
        if self.turns_knobs and not where.tuning:
            self.skip(
                f"{self.current_partition.fullname} has no 'tuning: true' in system.yaml, "
                "and this sweep changes settings of nodes"
            )

    @run_before("run")
    def place_knobs(self) -> None:
        """The scripts, and the values of each combination that the points need."""
        if not self.turns_knobs:
            return
        stage = Path(self.stagedir)
        for script in SCRIPTS:
            shutil.copy(ON_NODE / script, stage / script)
        named = [name for point in self.points.values() for name in point.values]
        every = [name for name in dict.fromkeys(named) if name.startswith(KNOB)]
        numbers = combinations(self.points)
        each = {number: self.points[point].knobs for point, number in reversed(numbers.items())}
        lines = knobs.lines([each[number] for number in sorted(each)], every)
        (stage / "knobs").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    @run_before("sanity")
    def wait_for_restored(self) -> None:
        """The nodes of a cancelled job restore their knobs while the job has already ended."""
        for _ in range(PATIENCE):
            if not (self.turns_knobs and knobs.not_restored(Path(self.stagedir))):
                break
            time.sleep(1)
