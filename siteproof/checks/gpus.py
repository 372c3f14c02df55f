"""OnGpus: what checks of GPUs share: on which nodes they run, and that their jobs get all GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import session
from siteproof.checks.job import LOCAL

if TYPE_CHECKING:
    from ClusterShell.NodeSet import NodeSet

    from siteproof.checks.job import JobCheck as Base
else:
    Base = rfm.RegressionTestPlugin

SCRIPTS = ("gpu.sh", "other_tools.sh")


class OnGpus(Base):
    """Mixed into a check, before its other base class.

    It runs where the hardware states GPUs. This machine alone, which a site may know little of,
    is asked in any case, and SKIPs with its reason.
    """

    no_role = variable(str, value="the site states no GPUs of these nodes")  # for the plan

    def roles_on(self, partition: str) -> list[str]:
        """Those of the roles that have GPUs."""
        site = session.current().site
        here = super().roles_on(partition)
        if site.partition(partition).scheduler == LOCAL:
            return here
        return [role for role in here if site.hardware_of(role).gpus]

    def expected_nodes(self) -> NodeSet:
        """As the other base class has it; without a GPU the test SKIPs."""
        if not self.roles_on(self.current_partition.name):
            self.skip(
                f"no GPU: no hardware of {self.current_partition.fullname} has "
                "'devices: {gpu: {count: …}}' in system.yaml"
            )
        return super().expected_nodes()

    def settings(self) -> dict[str, str]:
        """How many GPUs a node has by the site; 0: it does not state it."""
        return {**super().settings(), "GPUS": str(self.hardware.gpus)}

    def pin(self, nodes: NodeSet) -> None:
        """With all GPUs of the nodes, which Slurm may otherwise keep from the job."""
        self.num_gpus_per_node = self.hardware.gpus or None
        super().pin(nodes)
