"""The OpenStack of `testbed/cloud`: real, each fault seen and mended, and nothing left."""

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

import openstack
import pytest
import services_fixture
from openstack import exceptions
from services_fixture import Faults, network_of, processes_in, until

pytestmark = [
    pytest.mark.services,
    pytest.mark.cloud,
    pytest.mark.tool("OpenStack"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),
]
APIS = {
    "keystone": 5000,
    "nova": 8774,
    "placement": 8778,
    "glance": 9292,
    "neutron": 9696,
    "cinder": 8776,
}
SOON = 90  # seconds until a state is reached, on a busy machine


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "openstack", program="cloud")


@pytest.fixture(scope="module")
def entry(bed):
    return bed.site["openstack"]


@pytest.fixture(scope="module")
def login(entry):
    """Makes a connection, as the user of the tests or as the administrator."""

    def make(file=None):
        text = (file or Path(entry["credentials"])).read_text()
        given = dict(line.split("=", 1) for line in text.splitlines())
        domains = {key: given[key] for key in ("user_domain", "project_domain")}
        return openstack.connect(
            load_yaml_config=False,
            load_envvars=False,
            auth_url=entry["address"],
            username=given["username"],
            password=given["password"],
            project_name=given["project"],
            user_domain_name=domains["user_domain"],
            project_domain_name=domains["project_domain"],
            region_name=given["region"],
        )

    return make


@pytest.fixture(scope="module")
def cloud(login):
    return login()


@pytest.fixture
def faulty(bed):
    """Makes the cloud go wrong, until the end of the test."""
    faults = Faults(bed)
    yield lambda fault, value="": faults("openstack", fault, "--value", value)
    faults.mend(*faults.broken)


@pytest.fixture
def launch(cloud, entry):
    """Requests a server, which is removed at the end."""
    made = []

    def make(zone="zone", **more):
        what = {
            "image_id": cloud.image.find_image(entry["image"]).id,
            "flavor_id": cloud.compute.find_flavor(entry["flavor"]).id,
            "availability_zone": entry[zone],
            "networks": "none",
        }
        server = cloud.compute.create_server(name=f"bed-{len(made)}", **{**what, **more})
        made.append(server)
        return server

    yield make
    for server in made:
        cloud.compute.delete_server(server, ignore_missing=True)
    for server in made:
        cloud.compute.wait_for_delete(server, interval=0.5, wait=SOON)


def reaches(cloud, server, status):
    """The server, as soon as it has a status and nothing is under way."""

    def look():
        seen = cloud.compute.get_server(server.id)
        assert status == "ERROR" or seen.status != "ERROR", seen.fault
        return seen if seen.status == status and not seen.task_state else None

    return until(look, f"the server is {status}", 0.3)


def status_of(cloud, volume):
    return cloud.block_storage.get_volume(volume.id).status


def answer(entry, name, seconds=10):
    """The status with which an API answers."""
    address = f"http://{socket_of(entry)}:{APIS[name]}/"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=seconds) as got:
            return got.status
    except urllib.error.HTTPError as error:
        return error.code


def socket_of(entry):
    """The address of the bed."""
    return entry["address"].split("/")[2].partition(":")[0]


# What it is


def test_the_site_names_what_the_cloud_has(cloud, entry):
    assert entry["kind"] == "openstack"
    assert cloud.image.find_image(entry["image"]).status == "active"
    tiny, small = (cloud.compute.find_flavor(entry[n]) for n in ("flavor", "resize_flavor"))
    assert (tiny.vcpus, tiny.ram, tiny.disk) == (1, 64, 1)
    assert small.vcpus == 2
    zones = {zone.name for zone in cloud.compute.availability_zones() if zone.state["available"]}
    assert zones >= {entry["zone"], entry["other_zone"]}


def test_credentials_are_for_root_only_and_of_a_user_without_rights_of_an_operator(
    bed, cloud, login, entry
):
    admin = bed.state / "openstack/admin"
    for path in (Path(entry["credentials"]), admin):
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(exceptions.ForbiddenException):
        list(cloud.compute.hypervisors())
    assert {one.name for one in login(admin).compute.hypervisors()} == {"site-a", "site-b"}


def test_each_api_of_the_catalogue_is_behind_a_relay(cloud, entry):
    at = socket_of(entry)
    kinds = ["identity", "image", "placement", "compute", "network", "block-storage"]
    urls = [cloud.session.get_endpoint(service_type=kind, interface="public") for kind in kinds]
    assert sorted(int(url.split("/")[2].removeprefix(f"{at}:")) for url in urls) == sorted(
        APIS.values()
    )


def test_an_image_comes_back_as_it_was(cloud):
    content = os.urandom(1 << 20)
    image = cloud.create_image(
        "bed", data=content, disk_format="raw", container_format="bare", wait=True
    )
    try:
        assert cloud.image.download_image(image).content == content
        assert cloud.image.get_image(image).hash_value == hashlib.sha512(content).hexdigest()
    finally:
        cloud.image.delete_image(image)


def test_a_server_lives_at_both_sites(cloud, entry, launch):
    network = cloud.network.create_network(name="bed")
    try:
        cloud.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.9.0.0/24")
        server = launch(networks=[{"uuid": network.id}])
        server = reaches(cloud, server, "ACTIVE")
        assert server.availability_zone == entry["zone"]
        assert server.addresses["bed"][0]["addr"].startswith("10.9.0.")
        moves_and_keeps(cloud, server, entry)
        cloud.compute.delete_server(server)
        cloud.compute.wait_for_delete(server, interval=0.5, wait=SOON)
    finally:
        cloud.network.delete_network(network)


def moves_and_keeps(cloud, server, entry):
    compute = cloud.compute
    for act, status in (
        (compute.suspend_server, "SUSPENDED"),
        (compute.resume_server, "ACTIVE"),
        (compute.shelve_server, "SHELVED_OFFLOADED"),
    ):
        act(server)
        reaches(cloud, server, status)
    to = {"unshelve": {"availability_zone": entry["other_zone"]}}
    moved = compute.post(f"/servers/{server.id}/action", json=to, microversion="2.91")
    assert moved.status_code == 202
    assert reaches(cloud, server, "ACTIVE").availability_zone == entry["other_zone"]
    compute.resize_server(server, compute.find_flavor(entry["resize_flavor"]).id)
    reaches(cloud, server, "VERIFY_RESIZE")
    compute.confirm_server_resize(server)
    assert reaches(cloud, server, "ACTIVE").flavor.vcpus == 2


def test_a_snapshot_of_a_server_has_bytes_and_boots(cloud, launch):
    server = reaches(cloud, launch(), "ACTIVE")
    image = cloud.compute.create_server_image(server, "bed-snapshot", wait=True, timeout=SOON)
    try:
        content = cloud.image.download_image(image).content
        assert server.id.encode() in content
        assert hashlib.sha512(content).hexdigest() == image.hash_value
        reaches(cloud, launch(image_id=image.id), "ACTIVE")
    finally:
        cloud.image.delete_image(image)


def test_a_volume_is_attached_copied_and_removed(cloud, launch):
    server = reaches(cloud, launch(), "ACTIVE")
    volume = cloud.create_volume(1, name="bed", wait=True, timeout=SOON)
    try:
        cloud.attach_volume(server, volume, wait=True, timeout=SOON)
        assert status_of(cloud, volume) == "in-use"
        cloud.detach_volume(server, volume, wait=True, timeout=SOON)
        snapshot = cloud.create_volume_snapshot(volume.id, wait=True, timeout=SOON)
        copy = cloud.create_volume(2, snapshot_id=snapshot.id, wait=True, timeout=SOON)
        assert status_of(cloud, copy) == "available"
        cloud.delete_volume(copy.id, wait=True, timeout=SOON)
        cloud.delete_volume_snapshot(snapshot.id, wait=True, timeout=SOON)
    finally:
        cloud.delete_volume(volume.id, wait=True, timeout=SOON)


# Faults


def test_faults_are_listed_and_a_wrong_one_is_refused(bed):
    listed = {line.split()[1] for line in bed.must("fault").splitlines() if "openstack" in line}
    assert listed >= {"500", "hang", "expired-token", "quota-full", "server-error", "no-host"}
    for words in (("500", "--value", "swift"), ("no-host", "--value", "1")):
        done = bed.command("fault", "openstack", *words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert "fault:" not in bed.must("status")


def test_one_api_answers_500_or_all(bed, entry, faulty):
    faulty("500", "nova")
    assert [name for name in APIS if answer(entry, name) == 500] == ["nova"]
    assert bed.command("status").returncode == 1
    faulty("500")
    assert {answer(entry, name) for name in APIS} == {500}
    bed.must("mend", "openstack")
    assert {answer(entry, name) for name in APIS} == {200, 300}
    assert "answers" in bed.must("status")


def test_one_api_hangs_or_all(bed, entry, faulty):
    faulty("hang", "cinder")
    with pytest.raises(TimeoutError):
        answer(entry, "cinder", 1)
    assert answer(entry, "keystone") == 300
    faulty("hang")
    with pytest.raises(TimeoutError):
        answer(entry, "keystone", 1)
    bed.must("mend", "openstack")
    assert answer(entry, "cinder") == 300


LINE = [("down", "", ""), ("slow-line", "50", "timed out"), ("killed-in-the-middle", "100", "")]


@pytest.mark.parametrize(("fault", "value", "why"), LINE)
def test_a_fault_of_the_line_is_seen(entry, faulty, fault, value, why):
    faulty(fault, value)
    with pytest.raises((OSError, urllib.error.URLError), match=why):
        answer(entry, "keystone", 3)


def test_password_and_tokens_are_refused(bed, login, faulty):
    before = login()
    token = before.auth_token
    faulty("expired-token")
    with pytest.raises(exceptions.SDKException, match="401"):
        login().authorize()
    address = before.session.get_endpoint(service_type="compute", interface="public")
    request = urllib.request.Request(f"{address}/servers", headers={"X-Auth-Token": token})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError, match="401"):
        opener.open(request, timeout=SOON)
    bed.must("mend", "openstack")

    def is_taken():
        try:
            list(login().compute.servers())
        except exceptions.HttpException:
            return False
        return True

    # Keystone revokes by the second: a token of the one in which a password is set is revoked, too.
    until(is_taken, "a token that is not revoked")


def test_a_full_quota_refuses_servers_volumes_and_ports(bed, cloud, launch, faulty):
    faulty("quota-full")
    with pytest.raises(exceptions.ForbiddenException, match="Quota exceeded"):
        launch()
    with pytest.raises(exceptions.HttpException, match="exceeds allowed volumes quota|VolumeLimit"):
        cloud.block_storage.create_volume(name="bed", size=1)
    bed.must("mend", "openstack")
    reaches(cloud, launch(), "ACTIVE")


def test_a_server_ends_in_error(bed, cloud, launch, faulty):
    faulty("server-error")
    seen = reaches(cloud, launch(), "ERROR")
    assert seen.fault["message"]
    bed.must("mend", "openstack")
    reaches(cloud, launch(), "ACTIVE")


def test_no_host_is_found(bed, cloud, launch, faulty):
    faulty("no-host")
    seen = reaches(cloud, launch(), "ERROR")
    assert "No valid host" in seen.fault["message"]
    bed.must("mend", "openstack")
    reaches(cloud, launch(), "ACTIVE")


def stopped(process):
    """Whether a process takes nothing until it is told to go on."""
    return (process / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_volume_stays_in_between(bed, cloud, launch, faulty):
    server = reaches(cloud, launch(), "ACTIVE")
    attached = cloud.create_volume(1, name="bed", wait=True, timeout=SOON)
    cloud.attach_volume(server, attached, wait=True, timeout=SOON)
    faulty("volume-stuck")
    new = cloud.create_volume(1, name="bed", wait=False)
    cloud.detach_volume(server, attached, wait=False)
    # A volume service that is stopped never does what it is asked.
    inside = processes_in(network_of(bed))
    volumes = [one for one in inside if b"bin/cinder-volume" in (one / "cmdline").read_bytes()]
    assert any(map(stopped, volumes)), volumes
    between = ("creating", "detaching")
    until(lambda: (status_of(cloud, new), status_of(cloud, attached)) == between, f"{between}")
    bed.must("mend", "openstack")
    for volume in (new, attached):
        until(lambda volume=volume: status_of(cloud, volume) == "available", "a volume", 0.3)
        cloud.delete_volume(volume.id, wait=True, timeout=SOON)
