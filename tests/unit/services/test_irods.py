"""Files to iRODS and back, by the library and a stand-in for a server: no real one was used."""

import socket
import threading

import irods_standin
import pytest
from served import MARK, job, steps_of

from siteproof.services import irods, runner

DONE = ["login", "quota", "put", "get", "put_many", "get_many"]
FOLDER = "/zone/home/alice"


@pytest.fixture
def far():
    with irods_standin.served() as (standin, port):
        standin.port = port
        yield standin


def service(tmp_path, port, password="open sesame", **keys):
    (tmp_path / "password").write_text(password)
    (tmp_path / "password").chmod(0o600)
    given = {"folder": FOLDER, "size": "9 MiB", "files": 2, "timeout": "5 s", **keys}
    address = f"alice@127.0.0.1:{port}"
    return job(tmp_path, kind="irods", address=address, password=f"{tmp_path}/password", **given)


@pytest.mark.parametrize("scheme", ["sha2", "md5", "sha512"])
def test_files_go_to_irods_and_back_and_nothing_is_left(tmp_path, far, scheme):
    far.scheme = scheme
    test = service(tmp_path, far.port)
    ended, values = steps_of(irods, test)
    assert ended == [(name, "ok", "") for name in DONE]
    assert "rate" in values
    assert {len(data) for data in far.objects.values()} == {9 << 20, 64 << 10}
    kind = irods.KINDS["irods"]
    assert kind.found(test) == [MARK]
    kind.remove(test, MARK)
    kind.remove(test, MARK)  # what is gone is no error
    assert (kind.found(test), far.objects) == ([], {})


@pytest.mark.parametrize("scheme", ["sha2", "sha512"])
def test_what_the_server_has_changed_has_another_checksum(tmp_path, far, scheme):
    far.spoil, far.scheme = True, scheme
    *_, (step, status, why) = steps_of(irods, service(tmp_path, far.port))[0]
    assert (step, status) == ("put" if scheme == "sha2" else "get", "checksum")
    assert "another checksum: 1 file" in why


def test_a_wrong_password_is_a_failed_login_and_in_no_reason(tmp_path, far):
    ended, _ = steps_of(irods, service(tmp_path, far.port, "guessed wrong"))
    assert ended == [("login", "login", "CAT_INVALID_AUTHENTICATION")]


def test_a_collection_that_is_not_there_is_named(tmp_path, far):
    ended, _ = steps_of(irods, service(tmp_path, far.port, folder="/zone/home/bob"))
    assert ended == [("login", "generic", "no such collection, or no right to see it")]


def test_what_could_not_be_removed_is_left_behind(tmp_path, far):
    test = service(tmp_path, far.port)
    steps_of(irods, test)
    far.keep = True
    records = list(runner.watched(test, runner.clean))
    assert [r["why"] for r in records if "end" in r] == [f"1 thing left behind: {MARK}"]


def test_a_server_that_does_not_answer_is_a_timeout_and_none_at_all_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        test = service(tmp_path, port, timeout="1 s")
        assert steps_of(irods, test)[0] == [("login", "timeout", "no answer within 1 s")]
    ((step, status, why),) = steps_of(irods, service(tmp_path, port))[0]
    assert (step, status) == ("login", "generic")
    assert why.startswith("Could not connect to specified host and port")


def test_an_answer_that_is_too_long_is_not_read(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = threading.Thread(
            target=lambda: server.accept()[0].sendall(b"HTTP/1.1 400 Bad Request")
        )
        far.start()
        ended = steps_of(irods, service(tmp_path, server.getsockname()[1]))[0]
        far.join()
    ((step, status, why),) = ended
    announced = "an answer of 1213486160 bytes is announced: no iRODS server"
    assert (step, status, why) == ("login", "generic", announced)


def test_a_server_without_tls_is_refused_where_certificates_are_given(tmp_path, far):
    certificates = "/etc/ssl/certs/ca-certificates.crt"
    ((step, status, _),) = steps_of(irods, service(tmp_path, far.port, certificates=certificates))[
        0
    ]
    assert (step, status) == ("login", "generic")
