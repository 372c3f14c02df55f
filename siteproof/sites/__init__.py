"""Sites: a system (system.yaml), its contract (criteria.yaml) and baselines (baselines.yaml)."""

from siteproof.sites.catalogue import Metric
from siteproof.sites.machine import recognise
from siteproof.sites.promise import Baseline, Bound, Criterion, Promise
from siteproof.sites.service_keys import Service
from siteproof.sites.site import (
    Site,
    folder,
    load,
    load_to_copy,
    names,
    names_to_copy,
    own_checks,
    trust,
)
from siteproof.sites.system import (
    BondParameters,
    Environment,
    Expected,
    FileSystem,
    Hardware,
    HostParameters,
    Link,
    NicParameters,
    Partition,
    Probe,
    Role,
    System,
)
from siteproof.sites.waiver import Waiver

__all__ = [
    "Baseline",
    "BondParameters",
    "Bound",
    "Criterion",
    "Environment",
    "Expected",
    "FileSystem",
    "Hardware",
    "HostParameters",
    "Link",
    "Metric",
    "NicParameters",
    "Partition",
    "Probe",
    "Promise",
    "Role",
    "Service",
    "Site",
    "System",
    "Waiver",
    "folder",
    "load",
    "load_to_copy",
    "names",
    "names_to_copy",
    "own_checks",
    "recognise",
    "trust",
]
