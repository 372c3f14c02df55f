"""Three quarters of ReFrame's CPU a local case, saved.

In ReFrame 4.10 every log record reads the deprecated attribute `variables`, and the warning of it
walks the whole stack (inspect.stack). Nothing of ours uses what is deprecated.
"""

from __future__ import annotations

from typing import Any

import reframe.core.fields
import reframe.core.variables


def _no_warning(*_args: Any, **_kwargs: Any) -> None:
    """Say nothing."""


def save_cpu() -> None:
    """Replace the deprecation warning by nothing; `benchmarks/` measures what that saves."""
    for module in (reframe.core.fields, reframe.core.variables):
        if hasattr(module, "user_deprecation_warning"):
            module.user_deprecation_warning = _no_warning
