"""Sysctls, NICs and bonds of every node against what the site expects."""

import reframe as rfm

from siteproof.checks import PerNodeCheck
from siteproof.parsers import host_parameters
from siteproof.sites import HostParameters as Parameters


@rfm.simple_test
class HostParameters(PerNodeCheck):
    """Counts mismatches, and keeps each one with key, expected and found."""

    descr = "Host parameters of every node"
    tags = {"host"}
    script = "parameters.sh"
    parsers = {"proc": host_parameters}
    derive = "host.host_parameters"
    metrics = ("mismatches", "unreadable", "bond_members_up")
    headline = ("mismatches",)
    time_limit = "5m"

    def settings(self) -> dict[str, str]:
        """The keys and interfaces that the site has expected values for."""
        expects = self.expected_parameters()
        return {
            "SYSCTLS": " ".join(expects.sysctl),
            "NICS": " ".join(expects.nic),
            "BONDS": " ".join(expects.bond),
        }

    def facts(self) -> dict[str, object]:
        """The expected values, each under the name that the parser gives it."""
        rules = self.expected_parameters().by_name()
        return {
            "parameters": {name: rule.model_dump(exclude_none=True) for name, rule in rules.items()}
        }

    def expected_parameters(self) -> Parameters:
        """What the site expects of the hosts of this role."""
        return self.site.parameters(self.role)
