"""What the checks share; the only place that knows ReFrame.

    from siteproof.checks import FileSystemCheck, PerNodeCheck, PerPairCheck
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
    raise AttributeError(name)
