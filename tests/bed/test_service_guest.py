"""A guest by ssh, against a real sshd: only what the cloud reports of it is made up here."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import services_fixture
from services_fixture import jobs

from siteproof.services.openstack_api import Guest
from siteproof.services.steps import StepFailed

pytestmark = [pytest.mark.services, pytest.mark.tool("OpenSSH")]
TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "sftp")


def answered(look, done):
    """As the cloud waits: what is seen once it is done, or the last error."""
    services_fixture.until(lambda: done(look()), "what a guest has to answer")
    return look()


@pytest.fixture
def guest(bed):
    """Makes a guest whose console and address are given, and whose server is the bed's sshd."""

    # ssh's socket lies below: its path has at most 108 characters, more than pytest leaves.
    short = Path(tempfile.mkdtemp(prefix="guest-"))

    def make(console=None, **changes):
        job = jobs(bed, short, timeout="20 s")("sftp")
        user, _, address = job.service.address.partition("@")
        if console is None:
            lines = Path(job.service.known_hosts).read_text().splitlines()
            keys = "\n".join(f"{line.split(' ', 1)[1]} root@vm" for line in lines)
            console = (
                f"[ 9.1] -----BEGIN SSH HOST KEY KEYS-----\n{keys}\n"
                "-----END SSH HOST KEY KEYS-----\n"
            )
        service = job.service.model_copy(update={"guest_user": user, "key": "", "known_hosts": ""})
        addresses = {"net": [{"addr": address.partition(":")[0], "OS-EXT-IPS:type": "fixed"}]}
        server = SimpleNamespace(id="one", addresses=addresses)
        cloud = SimpleNamespace(
            job=replace(job, service=service),
            until=answered,
            api=SimpleNamespace(
                compute=SimpleNamespace(get_server_console_output=lambda _: {"output": console})
            ),
        )
        return Guest(cloud, server, changes.get("key", Path(job.service.key)))

    yield make
    shutil.rmtree(short)


def test_what_is_written_in_a_guest_is_read_there(guest):
    one = guest()
    one.write(TOKEN)
    one.must_have(TOKEN)


def test_a_guest_without_the_change_is_a_checksum(guest):
    one = guest()
    one.write("something else")
    with pytest.raises(StepFailed, match="the change is not in the guest") as error:
        one.must_have(TOKEN)
    assert error.value.status == "checksum"


def test_a_guest_with_another_host_key_than_its_console_shows_is_a_login(guest):
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    frame = "-----{} SSH HOST KEY KEYS-----"
    console = f"{frame.format('BEGIN')}\n{key}\n{frame.format('END')}\n"
    with pytest.raises(StepFailed, match="(?i)host key|identification") as error:
        guest(console).run("true")
    assert error.value.status == "login"


def test_a_guest_that_does_not_know_the_key_is_a_login(guest, tmp_path):
    other = tmp_path / "other"
    other.touch(mode=0o600)
    with pytest.raises(StepFailed) as error:
        guest(key=other).run("true")
    assert error.value.status == "login"


def test_a_volume_that_the_guest_does_not_have_is_named(guest):
    with pytest.raises(StepFailed) as error:
        guest().volume("01234567-89ab-cdef-0123-456789abcdef", TOKEN, write=True)
    assert error.value.status == "generic"
