"""What a sweep over knobs gives the contract: how many values of each were measured, how often.

A value counts where a figure was measured while the nodes read it back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

from siteproof.samples import Sample
from siteproof.sweep_runs import SweepRun
from siteproof.sweeps.point import KNOB, OWN

CHECKS = ("Ior", "Lnet")  # those whose knobs the criteria of a file system speak of
POINTS, SAMPLES = "Tuning.points", "Tuning.samples"


def of_run(run: SweepRun) -> list[Sample]:
    """Tuning.points of each knob, with its name and its lowest and highest value; Tuning.samples.

    The name is the parameter's own, as max_dirty_mb of knob.lustre.osc.*.max_dirty_mb.
    """
    measured = [s for s in run.good if any(name.startswith(KNOB) for name in s.dims)]
    if run.check not in CHECKS or not measured:
        return []
    each = Counter((s.metric, tuple(sorted(s.dims.items()))) for s in measured)
    told = {
        k: v
        for k, v in measured[0].conditions.items()
        if k != "mode"
        and not k.startswith(KNOB)
        and all(s.conditions.get(k) == v for s in measured)
    }
    header = replace(run.newest.header, conditions=told, expected="")
    found = [Sample(header, "", SAMPLES, Decimal(min(each.values())), "count")]
    for knob in sorted({name for s in measured for name in s.dims if name.startswith(KNOB)}):
        values = sorted({int(s.dims[knob]) for s in measured if _was_set(s, knob)})
        if values:
            ends = {"from": str(values[0]), "to": str(values[-1])}
            found.append(
                Sample(
                    header,
                    "",
                    POINTS,
                    Decimal(len(values)),
                    "count",
                    own_conditions={"parameter": knob.rpartition(".")[2], **ends},
                )
            )
    return found


def _was_set(sample: Sample, knob: str) -> bool:
    """Whether a number was asked for, and the nodes read that number."""
    asked = sample.dims.get(knob, OWN)
    read = sample.conditions.get(knob, "")
    return (
        asked.isdecimal()
        and read.replace(".", "", 1).isdecimal()
        and (Decimal(read) == Decimal(asked))
    )
