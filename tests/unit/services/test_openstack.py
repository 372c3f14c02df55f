"""What of a cloud can be tested without one: its keys, credentials, names, and host keys."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from rows import rows
from served import step

from siteproof.errors import UserError
from siteproof.services import openstack_api, steps
from siteproof.services.openstack_api import Cloud, fault
from siteproof.services.steps import Job, StepFailed
from siteproof.sites import Service

ENTRY = {
    "kind": "openstack",
    "address": "https://cloud.host:5000/v3",
    "credentials": "/etc/siteproof/openstack",
    "image": "menu",
    "flavor": "tiny",
}
MARK = "siteproof-cloud-20261125T120000Z-0123456"


def service(**more):
    return Service.model_validate({**ENTRY, **more})


def test_without_scenarios_all_are_chosen_for_which_the_keys_are_given():
    assert service().chosen == ["image", "network", "launch", "suspend", "snapshot", "volume"]
    every = service(other_zone="b", resize_flavor="small")
    assert every.chosen == [*service().chosen, "move", "resize"]


def test_no_scenario_is_the_login_alone():
    assert service(scenarios=[]).chosen == []


@rows(
    "more, why",
    [
        ({"scenarios": ["move"]}, "without 'other_zone'"),
        ({"scenarios": ["resize"]}, "without 'resize_flavor'"),
        ({"scenarios": ["explode"]}, "explode"),
        ({"trials": 0}, "trials"),
        ({"image": ""}, "kind openstack without 'image'"),
        ({"flavor": "a\nb"}, "is not valid"),
        ({"guest_user": "root;id"}, "is not valid"),
        ({"bucket": "x"}, "'bucket' with kind openstack"),
        ({"address": "cloud"}, "not an address of kind openstack"),
    ],
)
def test_a_key_that_does_not_fit_is_refused(more, why):
    with pytest.raises((ValueError, UserError)) as error:
        service(**more)
    assert why in str(error.value)


@rows(
    "lines, lacks",
    [
        ("username=a\npassword=b\n", "project"),
        ("application_credential_id=a\n", "application_credential_secret"),
        ("project=x\n", "username"),
    ],
)
def test_a_line_that_the_credentials_lack_is_named(tmp_path, lines, lacks):
    path = tmp_path / "credentials"
    path.touch(mode=0o600)
    path.write_text(lines)
    job = Job("cloud", service(credentials=f"{path}"), MARK, tmp_path, "mine")
    with pytest.raises(StepFailed, match=f"credentials: no line {lacks}=") as error:
        Cloud(job).api  # noqa: B018
    assert error.value.status == "login"


@rows("name", ["x", MARK, f"{MARK} (secrets)", f"{MARK} (servers) (servers)"])
def test_a_name_that_is_none_of_ours_removes_nothing(tmp_path, name):
    with pytest.raises(StepFailed, match="is not a name that a test has given"):
        Cloud(Job("cloud", service(), MARK, tmp_path, "mine")).remove(name)


def test_the_names_of_what_is_left_carry_the_mark():
    assert all(steps.marked(f"{MARK} ({kind})") for kind in openstack_api.THINGS)


class Seen:
    """A server as openstacksdk gives it."""

    def __init__(self, status, fault=None):
        self.status, self.fault = status, fault


@rows(
    "given, words",
    [
        (Seen("ERROR", {"message": "No valid host was found."}), "No valid host was found."),
        (Seen("ERROR"), "seen is ERROR"),
        (Seen("ERROR", "text"), "seen is ERROR"),
        (Seen("ERROR", {"code": 500}), "seen is ERROR"),
    ],
)
def test_why_a_server_is_in_error_is_in_the_clouds_own_words(given, words):
    assert words in fault(given)


CONSOLE = """\
ci-info: | Authorized keys from /home/debian/.ssh/authorized_keys |
-----BEGIN SSH HOST KEY KEYS-----
ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBK root@vm
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl root@vm
-----END SSH HOST KEY KEYS-----
[   12.3] cloud-init[500]: Cloud-init v. 22.4 finished
"""


def test_the_host_keys_of_a_guest_are_those_that_cloud_init_prints():
    keys = openstack_api.host_keys(CONSOLE)
    assert [key.split()[0] for key in keys] == ["ecdsa-sha2-nistp256", "ssh-ed25519"]
    assert all(re.fullmatch(r"\S+ \S+", key) for key in keys)


@rows(
    "console",
    [
        "",
        CONSOLE[:90],
        CONSOLE.replace("BEGIN", "BEGUN"),
        "-----BEGIN SSH HOST KEY KEYS-----\n* @cert-authority x\n-----END SSH HOST KEY KEYS-----",
    ],
)
def test_a_console_without_host_keys_has_none(console):
    assert openstack_api.host_keys(console) == []


@rows("volume", ["../../../etc", "vda", "", "0" * 36])
def test_a_volume_whose_identifier_is_no_uuid_is_not_used(tmp_path, volume):
    one = openstack_api.Guest(
        Cloud(Job("cloud", service(), MARK, tmp_path, "mine")), None, tmp_path
    )
    with pytest.raises(StepFailed, match="not a UUID"):
        one.volume(volume, "0" * 32, write=True)


class Elsewhere(BaseHTTPRequestHandler):
    """Sends each request to another place, and counts those that come there."""

    came: ClassVar[list[str]] = []

    def do_GET(self):
        self.came.append(self.path)
        if not self.path.startswith("/other"):
            self.send_response(302)
            port = self.server.server_address[1]
            self.send_header("Location", f"http://127.0.0.1:{port}/other")
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_POST = do_GET

    def log_message(self, *args):
        pass


@pytest.mark.deep
def test_an_api_that_sends_us_elsewhere_gets_no_password_there(tmp_path):
    path = tmp_path / "credentials"
    path.touch(mode=0o600)
    path.write_text("username=a\npassword=secret\nproject=b\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/v3"
        job = Job("cloud", service(credentials=f"{path}", address=address), MARK, tmp_path, "mine")
        with pytest.raises(StepFailed), step(openstack_api.explain):
            Cloud(job).api.session.get_token()
    finally:
        server.shutdown()
    assert Elsewhere.came
    assert not [one for one in Elsewhere.came if one.startswith("/other")]
