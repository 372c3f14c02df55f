"""Which kinds of services need the extra `services` of pyproject.toml, and whether it is there.

All else works without it. A module of a kind is imported when such a service is used.
"""

from __future__ import annotations

from importlib.util import find_spec

MODULES = {  # by kind: of the extra's libraries; the kinds over ssh need none
    "http": ("cryptography",),
    "s3": ("minio", "urllib3"),
    "globus": ("globus_sdk",),
    "jupyterhub": ("cryptography", "websocket"),
    "web": ("cryptography",),
    "desktop": ("cryptography",),
    "openstack": ("keystoneauth1", "openstack", "requests"),
    "galaxy": ("bioblend", "cryptography"),
}


def lacking(*kinds: str) -> str:
    """Why services of these kinds cannot be used: what is not installed; empty if they can be."""
    missing = {
        kind: [name for name in MODULES.get(kind, ()) if find_spec(name) is None] for kind in kinds
    }
    unusable = sorted(kind for kind, names in missing.items() if names)
    if not unusable:
        return ""
    modules = ", ".join(sorted({name for names in missing.values() for name in names}))
    return (
        f"services of kind {', '.join(unusable)} need the extra 'services' (not installed: "
        f"{modules}): 'make venv' in the clone, or pip install 'siteproof[services]'"
    )
