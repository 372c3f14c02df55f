"""What every node is: hardware, firmware, kernel, settings, software, field by field."""

import reframe as rfm

from siteproof.checks import PerNodeCheck
from siteproof.parsers import description


@rfm.simple_test
class SystemDescription(PerNodeCheck):
    """Keeps every field; `siteproof describe` names nodes that differ from the majority."""

    descr = "What every node is, field by field"
    tags = {"system"}
    script = "description.sh"
    shared_scripts = (*PerNodeCheck.shared_scripts, "other_tools.sh")
    parsers = {"sysfs": description}
    derive = "host.description"
    metrics = ("fields", "unreadable")
    headline = ("unreadable",)
    time_limit = "5m"
