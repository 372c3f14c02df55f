"""The keys of `health`: what the program of `siteproof health` looks at on a node, and does."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from siteproof.sites.key_types import Model, Size, Time, shaped

_PRINTABLE = r"[!-~]([ -~]{0,398}[!-~])?"
LocalPath = Annotated[
    str, shaped(rf"(?=/){_PRINTABLE}", "an absolute path of printable ASCII, such as /tmp")
]
Spool = Annotated[
    str,
    shaped(
        rf"(?=/)(?!.*/(\.\.?)?(/|$))(?!/(tmp|var/tmp|dev|proc|sys|run)(/|$))(?!/$){_PRINTABLE}",
        "an absolute path of printable ASCII, and none in a folder in which all users may write",
    ),
]
Most = Annotated[int, Field(ge=0, le=10**9)]


class Health(Model):
    """What more the health program looks at on the nodes of a role, and what it does."""

    drain: bool = False
    """True: it drains a node on which something is wrong; it never puts one back."""
    spool: Spool = "/var/spool/siteproof"
    """The folder on the node for its record, which only root may write to."""
    free: dict[LocalPath, Size] = {}
    """Free space that a file system must have, by a path on it: 5 GiB."""
    clock_offset: Time | None = None
    """How far chrony may find the clock off: 100 ms. Needs chronyc."""
    corrected_memory_errors: Most | None = None
    """How many corrected memory errors EDAC may count since boot."""
    uncorrected_memory_errors: Most | None = None
    """The same for those that could not be corrected."""
    file_system_errors: Most | None = None
    """How many errors the ext4 file systems may have counted."""
    zombies: Most | None = None
    """How many processes may have ended without their parent's notice."""
    leftover_processes: Most | None = None
    """How many processes there may be of users none of whose processes belongs to a job. Needs
    Slurm's cgroups (proctrack/cgroup), which show what belongs to a job."""
