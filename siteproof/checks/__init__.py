"""What the checks share; the only place that knows ReFrame.

from siteproof.checks import FileSystemCheck, PerNodeCheck, PerPairCheck, SweepCheck
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Load a base class when a check asks for it: the settings come first."""
    if name == "PerNodeCheck":
        from siteproof.checks.per_node import PerNodeCheck

        return PerNodeCheck
    if name == "PerPairCheck":
        from siteproof.checks.per_pair import PerPairCheck

        return PerPairCheck
    if name == "FileSystemCheck":
        from siteproof.checks.file_system import FileSystemCheck

        return FileSystemCheck
    if name == "SweepCheck":
        from siteproof.checks.sweep import SweepCheck

        return SweepCheck
    if name == "FileSystemSweep":
        from siteproof.checks.sweep_file_system import FileSystemSweep

        return FileSystemSweep
    raise AttributeError(name)
