"""What the checks share; the only place that knows ReFrame.

from siteproof.checks import ApplicationCheck, FileSystemCheck, PerNodeCheck, PerPairCheck
from siteproof.checks import ServiceCheck, SweepCheck, TogetherCheck
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from siteproof.checks.file_system import FileSystemCheck as FileSystemCheck
    from siteproof.checks.file_system import FileSystemSweep as FileSystemSweep
    from siteproof.checks.per_node import ApplicationCheck as ApplicationCheck
    from siteproof.checks.per_node import PerNodeCheck as PerNodeCheck
    from siteproof.checks.per_node import ServiceCheck as ServiceCheck
    from siteproof.checks.per_pair import PerPairCheck as PerPairCheck
    from siteproof.checks.sweep import SweepCheck as SweepCheck
    from siteproof.checks.sweep import TogetherCheck as TogetherCheck

_HOMES = {
    "ApplicationCheck": "per_node",
    "FileSystemCheck": "file_system",
    "FileSystemSweep": "file_system",
    "PerNodeCheck": "per_node",
    "PerPairCheck": "per_pair",
    "ServiceCheck": "per_node",
    "SweepCheck": "sweep",
    "TogetherCheck": "sweep",
}


def __getattr__(name: str) -> Any:
    """Load a base class when a check asks for it: the settings come first."""
    if name in _HOMES:
        return getattr(import_module(f"siteproof.checks.{_HOMES[name]}"), name)
    raise AttributeError(name)
