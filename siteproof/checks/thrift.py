"""What ReFrame 4.10 spends on its log records, saved.

Every record reads the deprecated attribute `variables`, and the warning of it walks the whole stack
(inspect.stack): three quarters of ReFrame's CPU a local case. Nothing of ours uses what is
deprecated. Every record of a Slurm job that has ended asks `scontrol show hostname` for its nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import reframe.core.fields
import reframe.core.variables
from reframe.core.schedulers import slurm


def _no_warning(*_args: Any, **_kwargs: Any) -> None:
    """Say nothing."""


def save_cpu() -> None:
    """Take both out of ReFrame; `benchmarks/` measures what that saves."""
    for module in (reframe.core.fields, reframe.core.variables):
        if hasattr(module, "user_deprecation_warning"):
            module.user_deprecation_warning = _no_warning
    kind = getattr(slurm, "_SlurmJob", None)
    if isinstance(getattr(kind, "nodelist", None), property):
        kind.nodelist = property(_asked_once(kind.nodelist.fget))


def _asked_once(ask: Callable[[Any], list[str]]) -> Callable[[Any], list[str]]:
    """A job's nodes, asked for again only where Slurm says that it has others."""
    known: WeakKeyDictionary[Any, tuple[str, list[str]]] = WeakKeyDictionary()

    def nodelist(job: Any) -> list[str]:
        spec, names = known.get(job, ("", []))
        if not names or spec != job._nodespec:
            names = ask(job)
            known[job] = (job._nodespec, names)
        return names

    return nodelist
