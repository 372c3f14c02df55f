"""Virtual machines of an OpenStack cloud, through their life: launched, moved, kept, removed.

The scenarios are those of a user without rights of an administrator. All that is created is named
by the job's mark. Where the site names a user of the guests, what they write is read back in them;
without one, only the cloud's own view is tested (condition `guest`).

Source: PTI-TR16-005, 4.2 (Jetstream); Magellan slides, Setup and Tuning (network).
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from openstack.exceptions import raise_from_response

from siteproof.record.samples import EMULATED, HYPERVISOR
from siteproof.services import openstack_api, transfers
from siteproof.services.openstack_api import Cloud, Guest, fault
from siteproof.services.steps import Job, StepFailed, Steps

CIDR = "10.213.0.0/20"  # of a network that a test makes: 4093 addresses
HASHES = ("sha512", "sha256")  # of images


def test(job: Job, steps: Steps) -> None:
    """The login, then the service's scenarios, as often as it has trials."""
    cloud = Cloud(job)
    with steps.step("login"):
        cloud.api.session.get_token()
    trials = job.service.trials
    guest = "yes" if job.service.guest_user else "no"
    steps.condition(guest=guest, tool=f"openstacksdk {version('openstacksdk')}")
    took: dict[str, list[float]] = defaultdict(list)
    for number in range(1, trials + 1):
        made = _Trial(cloud, steps, number if trials > 1 else 0, took)
        for scenario in job.service.chosen:
            SCENARIOS[scenario](made)
        made.end()
    for name, seconds in took.items() if trials > 1 else ():
        for metric, value in (("median", median(seconds)), ("worst", max(seconds))):
            exact = Decimal(f"{value:.3f}")
            steps.value(f"seconds_{metric}", exact, "s", step=name, trials=f"{len(seconds)}")


class _Trial:
    """One time through the scenarios: the things that they share."""

    def __init__(
        self, cloud: Cloud, steps: Steps, number: int, took: dict[str, list[float]]
    ) -> None:
        self.cloud, self.api, self.job = cloud, cloud.api, cloud.job
        self.service = cloud.job.service
        self._steps, self._took = steps, took
        self._dims = {"trial": f"{number}"} if number else {}
        self._servers: list[Any] = []
        self._names = 0
        self._volumes: list[Any] = []
        self._known = False  # whether the hypervisor is

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step of the test, whose seconds are kept."""
        begun = time.monotonic()
        with self._steps.step(name, seconds=None, **self._dims):
            yield
        self._took[name].append(time.monotonic() - begun)

    def name(self, what: str) -> str:
        """A new name for a thing of this test."""
        self._names += 1
        return f"{self.job.mark}-{what}-{self._names}"

    @cached_property
    def first(self) -> Any:
        """The server of most scenarios, launched when the first one needs it."""
        return self.launch("launch", self.service.zone)

    @cached_property
    def second(self) -> Any:
        """Another one on the same network, at the other site if there is one."""
        return self.launch("launch_other", self.service.other_zone or self.service.zone)

    @cached_property
    def network(self) -> Any:
        """The site's network, or one that is made."""
        if self.service.network:
            return self.api.network.find_network(self.service.network, ignore_missing=False)
        with self.step("network"):
            made = self.api.network.create_network(name=self.name("net"))
            self.api.network.create_subnet(
                name=self.name("subnet"), network_id=made.id, ip_version=4, cidr=CIDR
            )
            return self.api.network.get_network(made.id)

    @cached_property
    def key(self) -> tuple[str, Path]:
        """A key pair that the cloud makes for the guests' user: its name, its private half."""
        name = self.name("key")
        path = self.job.scratch / f"key-{self._names}"
        path.touch(mode=0o600)
        path.write_text(f"{self.api.compute.create_keypair(name=name).private_key}")
        return name, path

    def launch(self, step: str, zone: str, image: Any = None) -> Any:
        """A server that is ACTIVE. image: in place of the site's."""
        network = self.network
        with self.step(step):
            image = image or self.api.image.find_image(self.service.image, ignore_missing=False)
            flavor = self.api.compute.find_flavor(self.service.flavor, ignore_missing=False)
            more = {"availability_zone": zone} if zone else {}
            if self.service.guest_user:
                more["key_name"] = self.key[0]
            made = self.api.compute.create_server(
                name=self.name("server"),
                image_id=image.id,
                flavor_id=flavor.id,
                networks=[{"uuid": network.id}],
                **more,
            )
            server = self.cloud.server_is(made, "ACTIVE")
            if zone and server.availability_zone != zone:
                raise StepFailed(f"the server is in zone {server.availability_zone}")
        self._servers.append(server)
        if not self._known:
            self._known = True
            kind = self.cloud.hypervisor(server)
            fake = {EMULATED: HYPERVISOR} if kind == "fake" else {}
            self._steps.condition(hypervisor=kind, **fake)
        return server

    def act(self, step: str, act: Callable[[Any], None], status: str) -> Any:
        """Do something with the first server, until it has a status."""
        server = self.first
        with self.step(step):
            act(server)
            return self.cloud.server_is(server, status)

    def guest(self, server: Any) -> Guest | None:
        """The guest in a server, by ssh; None: the site names no user of it."""
        if not self.service.guest_user:
            return None
        return Guest(self.cloud, server, self.key[1])

    def delete(self, step: str, *servers: Any) -> None:
        """Delete servers, and wait until the cloud does not list them any more."""
        wanted = {server.id for server in servers}
        with self.step(step):
            for server in servers:
                self.api.compute.delete_server(server)
            self.cloud.until(
                lambda: {one.id for one in self.cloud.things("servers")} & wanted,
                lambda left: not left,
            )
        self._servers = [server for server in self._servers if server.id not in wanted]

    def end(self) -> None:
        """Delete the servers; all else is removed at the end of the test."""
        if self._servers:
            self.delete("delete", *self._servers)


def _image(trial: _Trial) -> None:
    """An image of random bytes up and down; its hash on both sides."""
    file = transfers.random_file(trial.job.scratch / "image", int(trial.service.size.to("B")))
    with trial.step("image_up"):
        made = trial.api.image.create_image(
            trial.name("image"),
            filename=f"{file.path}",
            disk_format="raw",
            container_format="bare",
            visibility="private",
        )
        image = trial.cloud.becomes(trial.api.image.get_image, made, "active")
        known = image.hash_algo in HASHES
        kind, found = (image.hash_algo, image.hash_value) if known else ("md5", image.checksum)
        if found != transfers.checksum(file.path, kind):
            raise StepFailed(f"the cloud has another {kind} of the image", "checksum")
    file.path.unlink()
    with trial.step("image_down"):
        if _download(trial, image, file.size) != file.sha256:
            raise StepFailed("the image that came back has another checksum", "checksum")
    with trial.step("image_delete"):
        trial.api.image.delete_image(image)
        _until_gone(trial, "images", image.id)


def _download(trial: _Trial, image: Any, most: int) -> str:
    """The SHA-256 of an image that is read, and not kept. Raises StepFailed."""
    digest, size = hashlib.sha256(), 0
    answer = trial.api.image.download_image(image, stream=True)
    for part in answer.iter_content(transfers.MEBI):
        size += len(part)
        if size > most:
            raise StepFailed(f"the image that came back has more than {most} bytes", "checksum")
        digest.update(part)
    return digest.hexdigest()


def _network(trial: _Trial) -> None:
    """Two servers on one network, each with a port and an address of its own."""
    servers = [trial.first, trial.second]
    with trial.step("network_ports"):
        ports = [_port(trial, server) for server in servers]
        subnets = [
            ipaddress.ip_network(f"{trial.api.network.get_subnet(one).cidr}")
            for one in trial.network.subnet_ids
        ]
        addresses = [ipaddress.ip_address(f"{p.fixed_ips[0]['ip_address']}") for p in ports]
        if len(set(addresses)) < len(ports):
            raise StepFailed(f"both servers have the address {addresses[0]}")
        outside = [one for one in addresses if not any(one in net for net in subnets)]
        if outside:
            raise StepFailed(f"{outside[0]} is in no subnet of the network")
    if guest := trial.guest(servers[0]):
        with trial.step("network_ping"):
            guest.run(f"ping -c 3 -W 5 {addresses[1]}")


def _port(trial: _Trial, server: Any) -> Any:
    """The port of a server, once it is ACTIVE. Raises StepFailed."""

    def look() -> Any:
        found = list(trial.api.network.ports(device_id=server.id, network_id=trial.network.id))
        if len(found) != 1 or not found[0].fixed_ips:
            raise StepFailed(f"a server has {len(found)} ports on the network")
        return found[0]

    return trial.cloud.until(look, lambda seen: seen.status == "ACTIVE")


def _launch(trial: _Trial) -> None:
    """A server of the image, its console, and a login where there is a guest."""
    server = trial.first
    with trial.step("console"):
        shown = trial.api.compute.get_server_console_output(server, length=100)
        if not f"{shown.get('output') or ''}".strip():
            raise StepFailed("the console shows nothing")
    if guest := trial.guest(server):
        with trial.step("ssh"):
            guest.run("true")


def _suspend(trial: _Trial) -> None:
    """Suspended and resumed, stopped and started."""
    compute = trial.api.compute
    trial.act("suspend", compute.suspend_server, "SUSPENDED")
    trial.act("resume", compute.resume_server, "ACTIVE")
    trial.act("stop", compute.stop_server, "SHUTOFF")
    trial.act("start", compute.start_server, "ACTIVE")


def _snapshot(trial: _Trial) -> None:
    """A changed server as an image, and another server of it that has the change."""
    server, change = trial.first, secrets.token_hex(16)
    if guest := trial.guest(server):
        with trial.step("snapshot_write"):
            guest.write(change)
    with trial.step("snapshot"):
        made = trial.api.compute.create_server_image(server, trial.name("snapshot"))
        image = trial.cloud.becomes(trial.api.image.get_image, made, "active")
        if not image.size:
            raise StepFailed("the snapshot is empty")
        trial.cloud.server_is(server, "ACTIVE")
    again = trial.launch("snapshot_boot", trial.service.zone, image)
    if guest := trial.guest(again):
        with trial.step("snapshot_read"):
            guest.must_have(change)
    trial.delete("snapshot_delete", again)


def _volume(trial: _Trial) -> None:
    """A volume: attached, written, detached, attached elsewhere, read, kept as a snapshot."""
    api, data = trial.api.block_storage, secrets.token_hex(16)
    with trial.step("volume_create"):
        more = {"volume_type": trial.service.volume_type} if trial.service.volume_type else {}
        size = max(1, round(trial.service.volume_size.to("GiB")))
        made = api.create_volume(name=trial.name("volume"), size=size, **more)
        volume = trial.cloud.becomes(api.get_volume, made, "available")
    for step, server in (("volume_attach", trial.first), ("volume_elsewhere", trial.second)):
        with trial.step(step):
            trial.api.compute.create_volume_attachment(server, volume)
            volume = trial.cloud.becomes(api.get_volume, volume, "in-use")
            if [one.get("server_id") for one in volume.attachments] != [server.id]:
                raise StepFailed("the volume is not attached to the server")
        if guest := trial.guest(server):
            with trial.step(f"{step}_data"):
                guest.volume(f"{volume.id}", data, write=step == "volume_attach")
        with trial.step(f"{step}_end"):
            trial.api.compute.delete_volume_attachment(server, volume)
            volume = trial.cloud.becomes(api.get_volume, volume, "available")
    with trial.step("volume_snapshot"):
        started = api.create_snapshot(volume_id=volume.id, name=trial.name("snapshot"))
        kept = trial.cloud.becomes(api.get_snapshot, started, "available")
    with trial.step("volume_delete"):
        api.delete_snapshot(kept)
        _until_gone(trial, "volume snapshots", kept.id)
        api.delete_volume(volume)
        _until_gone(trial, "volumes", volume.id)


def _until_gone(trial: _Trial, kind: str, key: str) -> None:
    left = trial.cloud.until(
        lambda: [one for one in trial.cloud.things(kind) if one.id == key],
        lambda left: not left or "error" in f"{left[0].status}",
    )
    if left:
        raise StepFailed(fault(left[0]))


def _move(trial: _Trial) -> None:
    """Shelved here, unshelved at the other site: how Jetstream's users move a machine."""
    trial.act("shelve", trial.api.compute.shelve_server, "SHELVED_OFFLOADED")
    zone = trial.service.other_zone

    def unshelve(server: Any) -> None:
        body = {"unshelve": {"availability_zone": zone}}
        answer = trial.api.compute.post(
            f"/servers/{server.id}/action", json=body, microversion="2.77"
        )
        raise_from_response(answer)

    server = trial.act("unshelve", unshelve, "ACTIVE")
    if server.availability_zone != zone:
        raise StepFailed(f"the server is in zone {server.availability_zone}")


def _resize(trial: _Trial) -> None:
    """Another flavor, confirmed."""
    compute = trial.api.compute
    flavor = compute.find_flavor(trial.service.resize_flavor, ignore_missing=False)
    trial.act("resize", lambda server: compute.resize_server(server, flavor), "VERIFY_RESIZE")
    server = trial.act("resize_confirm", compute.confirm_server_resize, "ACTIVE")
    if server.flavor.get("original_name", flavor.name) != flavor.name:
        raise StepFailed(f"the server has flavor {server.flavor['original_name']}")


SCENARIOS: dict[str, Callable[[_Trial], None]] = {
    "image": _image,
    "network": _network,
    "launch": _launch,
    "suspend": _suspend,
    "snapshot": _snapshot,
    "volume": _volume,
    "move": _move,
    "resize": _resize,
}


KINDS = openstack_api.kinds(test)
