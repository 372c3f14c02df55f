"""Services that users meet: transfers, gateways, desktops."""

import reframe as rfm

from siteproof.checks import ServiceCheck
from siteproof.parsers import service


@rfm.simple_test
class Service(ServiceCheck):
    """Each service of the site, by the module of its kind in siteproof/services."""

    descr = "A service, used as its users do"
    tags = {"service"}
    script = "service.sh"
    parsers = {"service": service}
    metrics = ("failures", "seconds")
    headline = ("failures",)
