"""A hypervisor without guests, for nova: as nova's own fake one, with snapshots that have bytes.

It is copied into nova.virt of the test bed's OpenStack. A server fails to start while the file
SPAWN_FAILS exists.
"""

import io
from pathlib import Path
from typing import Any

from nova import exception  # type: ignore[import-not-found]
from nova.image import glance  # type: ignore[import-not-found]
from nova.virt import fake  # type: ignore[import-not-found]

SPAWN_FAILS = Path("/etc/siteproof/spawn-fails")
REPEATED = 4000  # so that a snapshot has some hundred KB


class Driver(fake.FakeLiveMigrateDriver):  # type: ignore[misc]
    """What differs from nova's fake driver."""

    def spawn(self, context: Any, instance: Any, *args: Any, **options: Any) -> None:
        """Start a server."""
        if SPAWN_FAILS.exists():
            raise exception.NovaException("the hypervisor cannot start a guest")
        super().spawn(context, instance, *args, **options)

    def snapshot(self, context: Any, instance: Any, image_id: str, update_task_state: Any) -> None:
        """Upload bytes: nova's fake driver leaves the image without any."""
        super().snapshot(context, instance, image_id, update_task_state)
        content = f"snapshot of server {instance.uuid}\n".encode() * REPEATED
        glance.API().update(
            context,
            image_id,
            {"disk_format": "raw", "container_format": "bare", "properties": {}},
            data=io.BytesIO(content),
            purge_props=False,
        )
