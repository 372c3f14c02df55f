"""Volumes that are sparse files, for cinder.

It is copied into cinder.volume.drivers of the test bed's OpenStack.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

from cinder import interface  # type: ignore[import-not-found]
from cinder.volume import driver  # type: ignore[import-not-found]

FOLDER = Path("/var/lib/cinder/volumes")
GIB = 1 << 30


@interface.volumedriver
class Driver(driver.VolumeDriver):  # type: ignore[misc]
    """One file a volume, and one a snapshot. A host is given the file's path."""

    VERSION = "1.0"

    def check_for_setup_error(self) -> None:
        """The folder is made here."""
        FOLDER.mkdir(parents=True, exist_ok=True)

    def _update_volume_stats(self) -> None:
        self._stats = {
            "volume_backend_name": "siteproof",
            "vendor_name": "Siteproof",
            "driver_version": self.VERSION,
            "storage_protocol": "local",
            "total_capacity_gb": 100_000,
            "free_capacity_gb": 100_000,
            "reserved_percentage": 0,
            "multiattach": False,
        }

    def create_volume(self, volume: Any) -> None:
        """An empty file of that size."""
        with _path(volume).open("xb") as file:
            file.truncate(volume["size"] * GIB)

    def delete_volume(self, volume: Any) -> None:
        """Twice is once."""
        _path(volume).unlink(missing_ok=True)

    def create_snapshot(self, snapshot: Any) -> None:
        """A copy."""
        _copy(_path(snapshot["volume"]), _path(snapshot))

    def delete_snapshot(self, snapshot: Any) -> None:
        """Twice is once."""
        _path(snapshot).unlink(missing_ok=True)

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        """A copy, made larger if that is wanted."""
        _copy(_path(snapshot), _path(volume))
        self.extend_volume(volume, volume["size"])

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        """As of a snapshot."""
        self.create_volume_from_snapshot(volume, src_vref)

    def extend_volume(self, volume: Any, new_size: int) -> None:
        """new_size: GiB."""
        os.truncate(_path(volume), new_size * GIB)

    def copy_image_to_volume(
        self, context: Any, volume: Any, image_service: Any, image_id: str, **_: Any
    ) -> None:
        """The image is at the volume's beginning."""
        with _path(volume).open("r+b") as file:
            image_service.download(context, image_id, file)

    def ensure_export(self, context: Any, volume: Any) -> None:
        """Nothing is exported."""

    def create_export(self, context: Any, volume: Any, connector: Any) -> None:
        """Nothing is exported."""

    def remove_export(self, context: Any, volume: Any) -> None:
        """Nothing is exported."""

    def initialize_connection(self, volume: Any, connector: Any) -> dict[str, object]:
        """What a host needs to open it."""
        return {"driver_volume_type": "local", "data": {"device_path": str(_path(volume))}}

    def terminate_connection(self, volume: Any, connector: Any, **options: Any) -> None:
        """Nothing was opened."""


def _path(entry: Any) -> Path:
    return FOLDER / str(entry["id"])


def _copy(one: Path, other: Path) -> None:
    """With its holes."""
    subprocess.run(["cp", "--sparse=always", str(one), str(other)], check=True)
