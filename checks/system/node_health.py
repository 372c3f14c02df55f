"""Whether every node is as its health program wants it, and what that has recorded."""

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import variable

from siteproof.checks import PerNodeCheck, session
from siteproof.parsers import node_health
from siteproof.sites import health_program


@rfm.simple_test
class NodeHealth(PerNodeCheck):
    """Runs the program that `siteproof health` writes, and reads its record on the node.

    The roles of `health` in system.yaml only. Something wrong now is a failure of the node.
    """

    descr = "What the health program finds on every node"
    tags = {"system"}
    script = "node_health.sh"
    parsers = {"sysfs": node_health}
    metrics = ("findings",)  # the others where there is a record
    headline = ("findings",)
    time_limit = "2m"

    no_role = variable(str, value="the site states no health of these nodes")  # for the plan

    def roles_on(self, partition: str) -> list[str]:
        """Those of `health`."""
        stated = session.current().site.system.health
        return [role for role in super().roles_on(partition) if role in stated]

    def expected_nodes(self) -> NodeSet:
        """As every check's, where the site states `health`."""
        if not self.roles_on(self.current_partition.name):
            self.skip(self.no_role)
        return super().expected_nodes()

    def settings(self) -> dict[str, str]:
        """The program itself."""
        return {"HEALTH_PROGRAM": health_program.text(self.site, self.role)}
