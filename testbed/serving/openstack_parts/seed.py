"""What a cloud's operator enters once: seed.py people|cloud, with a JSON object as standard input.

`people` needs keystone only: service users, catalogue, the project and the users of the test bed.
`cloud` needs all services: zones, flavours, an image, a kind of volume.
"""

import json
import sys
from typing import Any

import openstack  # type: ignore[import-not-found, unused-ignore]

DOMAIN = "default"
REGION = "RegionOne"
IMAGE_SIZE = 300_000  # bytes
FLAVORS = {"tiny": {"vcpus": 1, "ram": 64, "disk": 1}, "small": {"vcpus": 2, "ram": 128, "disk": 1}}


def main() -> None:
    """Enter it."""
    given = json.load(sys.stdin)
    cloud = openstack.connect(
        auth_url="http://127.0.0.1:5000/v3",
        username="admin",
        password=given["admin"],
        project_name="admin",
        user_domain_name="Default",
        project_domain_name="Default",
        region_name=REGION,
        interface="internal",
        identity_api_version="3",
    )
    {"people": _people, "cloud": _cloud}[sys.argv[1]](cloud, given)


def _people(cloud: Any, given: dict[str, Any]) -> None:
    identity = cloud.identity
    identity.create_role(name="service")
    service = identity.create_project(name="service", domain_id=DOMAIN)
    _user(identity, "service", given["service"], service, ["admin", "service"])
    project = identity.create_project(name="siteproof", domain_id=DOMAIN)
    _user(identity, "siteproof", given["siteproof"], project, ["member"])
    for name, (kind, url) in given["catalogue"].items():
        entry = identity.create_service(type=kind, name=name)
        for interface in ("public", "internal", "admin"):
            identity.create_endpoint(
                service_id=entry.id, interface=interface, url=url, region_id=REGION
            )


def _user(identity: Any, name: str, password: str, project: Any, roles: list[str]) -> None:
    user = identity.create_user(name=name, password=password, domain_id=DOMAIN)
    for role in roles:
        identity.assign_project_role_to_user(project, user, identity.find_role(role))


def _cloud(cloud: Any, given: dict[str, Any]) -> None:
    for zone in given["zones"]:
        group = cloud.compute.create_aggregate(name=zone, availability_zone=zone)
        cloud.compute.add_host_to_aggregate(group, zone)
    for name, size in FLAVORS.items():
        cloud.compute.create_flavor(name=name, **size)
    cloud.create_image(
        "siteproof-menu",
        data=bytes(range(256)) * (IMAGE_SIZE // 256),
        disk_format="raw",
        container_format="bare",
        visibility="public",
        wait=True,
    )
    cloud.block_storage.create_type(name="siteproof")


main()
