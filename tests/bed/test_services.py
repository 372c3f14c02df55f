"""`testbed/services` itself: each service by its own real client, each fault, and nothing left."""

import os
import re
import signal
import time
from pathlib import Path

import pytest
import services_fixture
import urllib3
from services_clients import CLIENTS, by_curl, by_sftp, curl, run, same
from services_fixture import breaking, own, until

SIZE = 2_000_000  # bytes of a file

pytestmark = [
    pytest.mark.services,
    pytest.mark.tool("OpenSSH", "rsync", "nginx", "versitygw (S3)", "MIT Kerberos"),
]


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "sftp", "http", "s3", "kdc")


@pytest.fixture
def other(request):
    yield from own(request)


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


@pytest.fixture
def data(tmp_path):
    """A file of random bytes."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.mark.parametrize("name", CLIENTS)
def test_a_real_client_moves_a_file_there_and_back(bed, data, name):
    done, right = CLIENTS[name](bed.site[name], data)
    assert done.returncode == 0, done.stderr
    assert right


def test_the_site_names_files_that_only_their_owner_may_read(bed):
    named = {"sftp": "key", "http": "token", "s3": "credentials", "kerberos": "keytab"}
    files = {bed.site[name][key] for name, key in named.items()}
    assert len(files) == 4
    assert {Path(path).stat().st_mode & 0o777 for path in files} == {0o600}


def test_http_refuses_who_has_no_token_or_trusts_nobody(bed):
    service = bed.site["http"]
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"]
    done = run(*words, "--cacert", service["certificates"], service["address"])
    assert done.stdout == "401"
    assert run(*words, service["address"]).returncode == 60  # the certificate is not trusted


def test_the_front_page_is_open_to_all(bed):
    portal = bed.site["portal"]
    done = run("curl", "-sS", "--cacert", portal["certificates"], portal["address"])
    assert portal["content"] in done.stdout


def test_sshd_takes_no_other_key_than_the_users(bed, data):
    service = bed.site["sftp"] | {"key": bed.site["sftp"]["key"].replace("user", "other")}
    done, _ = by_sftp(service, data)
    assert "Permission denied" in done.stderr


def test_s3_by_a_client_of_s3(bed, faulty, data):
    """Built from the module proxy of Go the first time: some minutes."""
    minio = pytest.importorskip("minio")
    service = bed.site["s3"]
    keys = dict(line.split("=", 1) for line in Path(service["credentials"]).read_text().split())
    host = service["address"].removeprefix("http://")
    once = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(20))
    client = minio.Minio(
        host, keys["access_key"], keys["secret_key"], secure=False, http_client=once
    )
    back = data.with_name("back")

    def there_and_back():
        client.fput_object(service["bucket"], "x", str(data))
        client.fget_object(service["bucket"], "x", str(back))
        client.remove_object(service["bucket"], "x")
        return same(data, back)

    assert there_and_back()
    faulty("s3", "wrong-checksum")
    assert not there_and_back()
    for fault, why in (
        ("expired-token", "SignatureDoesNotMatch"),
        ("500", "500"),
        ("down", "closed|aborted|reset"),
        ("full-disk", "500|InternalError|No space|timed out|reset|closed"),
    ):
        faulty("s3", fault)
        with pytest.raises((minio.error.MinioException, urllib3.exceptions.HTTPError), match=why):
            there_and_back()
    faulty.mend("s3")
    assert there_and_back()


# Faults

OF = {"kerberos": "kdc"}
CASES = [  # what rsync says of the faults of the sftp server: test_service_transfers
    *(
        (name, ("down",), "closed|reset|SSL_ERROR_SYSCALL|unexpected eof")
        for name in ("sftp", "http", "kerberos")
    ),
    ("http", ("killed-in-the-middle", "--value", "500kB"), "closed|Broken|reset|SSL|lost|Empty"),
    *((name, ("wrong-host-key",), "verification failed") for name in ("sftp", "kerberos")),
    ("sftp", ("refused-key",), "Permission denied"),
    *(
        (name, ("full-disk",), "Failure|No space left|error: 50")
        for name in ("sftp", "http", "kerberos")
    ),
    ("http", ("500",), "error: 500"),
    ("http", ("expired-token",), "error: 401"),
    ("http", ("expired-certificate",), "certificate has expired"),
    ("kerberos", ("expired-keytab",), "Preauthentication failed|Password incorrect"),
    ("kerberos", ("no-kdc",), "Cannot contact any KDC"),
]


@pytest.mark.parametrize(
    ("name", "fault", "why"), CASES, ids=[f"{one[0]}-{one[1][0]}" for one in CASES]
)
def test_a_client_meets_a_fault_until_it_is_mended(bed, faulty, data, name, fault, why):
    of = OF.get(name, name)
    faulty(of, *fault)
    done, _ = CLIENTS[name](bed.site[name], data)
    assert done.returncode not in (0, -signal.SIGKILL), done
    assert re.search(why, done.stderr), done
    faulty.mend(of)
    done, right = CLIENTS[name](bed.site[name], data)
    assert done.returncode == 0 and right, done.stderr


def test_a_client_of_a_service_that_hangs_has_no_answer_until_it_is_mended(bed, faulty, data):
    faulty("http", "hang")
    done = curl(bed.site["http"], bed.site["http"]["address"], limit=2)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, "", "")
    faulty.mend("http")
    done, right = by_curl(bed.site["http"], data)
    assert done.returncode == 0 and right, done.stderr


def test_a_slow_line_takes_its_time_each_way_and_alters_nothing(bed, faulty, data):
    data.write_bytes(os.urandom(100_000))
    faulty("http", "slow-line", "--value", "800kbit")
    begun = time.monotonic()
    done, right = by_curl(bed.site["http"], data)
    assert done.returncode == 0 and right, done.stderr
    assert time.monotonic() - begun >= 2  # a busy machine only makes it longer


@pytest.mark.parametrize("name", ["sftp", "http", "kerberos"])
def test_altered_bytes_come_back_without_an_error(bed, faulty, data, name):
    faulty(OF.get(name, name), "wrong-checksum")
    for _ in range(3):  # a file may have the inode of the one before it
        done, right = CLIENTS[name](bed.site[name], data)
        assert done.returncode == 0, done.stderr
        assert not right


def test_a_mended_service_leaves_the_fault_of_another(bed, faulty, data):
    faulty("sftp", "wrong-checksum")
    faulty("kdc", "wrong-checksum")
    bed.must("mend", "kdc")
    assert not by_sftp(bed.site["sftp"], data)[1]


def test_a_fault_takes_the_place_of_the_one_before(bed, faulty, data):
    faulty("sftp", "refused-key")
    faulty("sftp", "wrong-checksum")
    faulty("sftp", "wrong-checksum")  # twice altered would be right again
    done, right = by_sftp(bed.site["sftp"], data)
    assert done.returncode == 0 and not right


def test_status_names_a_fault_and_a_service_that_does_not_answer(bed, faulty):
    assert bed.command("status").returncode == 0
    faulty("http", "full-disk")
    done = bed.command("status")
    assert done.returncode == 0
    assert "answers, fault: full-disk" in done.stdout
    faulty("sftp", "hang")
    done = bed.command("status")
    assert done.returncode == 1
    assert re.search(r"sftp .* does not answer, fault: hang", done.stdout), done.stdout


def test_a_service_that_has_died_does_not_answer(bed, faulty):
    """Its relay still takes connections."""
    faulty("sftp", "down")  # so that it is mended at the end, whatever happens
    bed.must("mend", "sftp")
    for proc in Path("/proc").glob("[0-9]*"):
        with_conf = f"{bed.state}/sftp/sshd.conf".encode()
        if with_conf in _read(proc / "cmdline") and (proc / "comm").read_text() == "sshd\n":
            os.kill(int(proc.name), signal.SIGKILL)
    until(lambda: bed.command("status").returncode == 1, "status says that sftp has died")


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


MISTAKES = [
    (("fault", "sftp", "500"), "sftp has no fault '500'; it has: "),
    (("fault", "sftp", "hang", "--value", "1"), "hang takes no value"),
    (("fault", "sftp", "slow-line", "--value", "fast"), "'fast' is not a valid "),
    (("fault", "sftp", "slow-line", "--value", "0"), "'0' is out of range"),
    (("fault", "sftp", "killed-in-the-middle", "--value", "x"), "'x' is not a valid size"),
    (("up", "ftp"), "invalid choice: 'ftp'"),
]
NOT_UP = [(("fault", "s3", "hang"), "s3 is not up"), (("mend", "s3"), "s3 is not up")]


def test_a_mistake_is_one_line_that_says_what_is_allowed(bed, other):
    wrong = {}
    for given, rows in ((bed, MISTAKES), (other, NOT_UP)):
        for words, why in rows:
            done = given.command(*words)
            if done.returncode != 2 or why not in done.stderr or done.stderr.count("\n") != 1:
                wrong[words] = done
    assert not wrong


def test_the_list_of_faults_has_those_of_every_service(bed):
    rows = [line.split()[:2] for line in bed.must("fault").splitlines()]
    assert {name for name, _ in rows} >= {"sftp", "http", "s3", "kdc"}
    assert ["http", "expired-certificate"] in rows


# Beds


def test_two_beds_do_not_meet(bed, other, data):
    other.up("sftp")
    assert other.site["sftp"]["address"] != bed.site["sftp"]["address"]
    other.must("fault", "sftp", "refused-key")
    assert by_sftp(bed.site["sftp"], data)[1]
    other.must("down")
    assert by_sftp(bed.site["sftp"], data)[1]


def test_what_is_up_stays(bed):
    key = Path(bed.site["sftp"]["key"]).read_text()
    bed.must("up", "sftp")
    assert Path(bed.site["sftp"]["key"]).read_text() == key
