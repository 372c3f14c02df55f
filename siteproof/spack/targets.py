"""For which processor an environment is built: that of the nodes that run it, never this host's.

A target is archspec's name of a processor. Where the nodes of an environment differ, the newest
target that runs on all of them counts; an environment for each partition gives each its own.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from siteproof.errors import UserError
from siteproof.sites import Site, key_types
from siteproof.sites.system import Partition


def of(site: Site, environment: str) -> str:
    """The target of one of a site's environments; empty: no role states one, or none fits all."""
    stated = {one.target for one in _roles(site, environment) if one.target}
    return common(stated) if stated else ""


def common(names: Iterable[str]) -> str:
    """The newest target whose programs run on each of these; empty if there is none."""
    shared = frozenset.intersection(*map(key_types.runs, names))
    return max(sorted(shared), key=lambda name: len(key_types.runs(name)), default="")


def refuse(site: Site, environment: str, host: str) -> None:
    """Refuse what could only be built for the processor of this host. Raises UserError.

    host: the short name of this host, which may be a node itself.
    """
    where = site.folder / "system.yaml"
    target, by = of(site, environment), list(_roles(site, environment))
    if target:
        _refuse_other_family(where, environment, target)
    elif stated := sorted({one.target for one in by if one.target}):
        raise UserError(
            where,
            f"no processor target runs on all nodes of environment '{environment}': "
            f"{', '.join(stated)}",
            hint="Give each partition an environment of its own, with the same 'spack'",
        )
    for one in by:
        own = one.partition.scheduler == "local" or host in site.system.nodes[one.role].nodes
        if not one.target and (target or not own):
            raise UserError(
                where,
                f"the nodes of role '{one.role}' have no 'target', and {host} is not "
                f"one of them: '{environment}' would be built for another processor",
                hint="Add 'target:' to their hardware; 'spack arch -t' on a node prints it",
            )


class _Nodes(NamedTuple):
    """The nodes of one role in a partition, and their target; empty: the site states none."""

    partition: Partition
    role: str
    target: str


def _roles(site: Site, environment: str) -> Iterator[_Nodes]:
    """The nodes that run an environment."""
    for partition in site.system.partitions.values():
        if environment not in partition.environments:
            continue
        for role in partition.roles:
            yield _Nodes(partition, role, site.hardware_of(role).target or "")


def _refuse_other_family(where: object, environment: str, target: str) -> None:
    here, there = platform.machine(), key_types.family(target)
    if here != there:
        raise UserError(
            where,
            f"'{environment}' is for {target}, and this host is {here}: Spack builds for its own "
            "architecture only",
            hint="Run 'siteproof build' in a job on a node",
        )
