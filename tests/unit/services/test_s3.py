"""ETags as S3 computes them, and what the library of HTTP says of a lost connection."""

import hashlib
from http.client import RemoteDisconnected

import pytest
from rows import rows
from urllib3.exceptions import HTTPError, ProtocolError

from siteproof.services import s3


@rows("size", [0, 1, s3.PART])
@pytest.mark.deep
def test_the_etag_of_one_part_is_its_md5(tmp_path, size):
    (tmp_path / "x").write_bytes(b"a" * size)
    assert s3.etag(tmp_path / "x") == hashlib.md5(b"a" * size).hexdigest()


def test_the_etag_of_several_parts_is_that_of_their_md5s(tmp_path, monkeypatch):
    monkeypatch.setattr(s3, "PART", 4)
    (tmp_path / "x").write_bytes(b"aaaabbbbc")
    parts = b"".join(hashlib.md5(part).digest() for part in (b"aaaa", b"bbbb", b"c"))
    assert s3.etag(tmp_path / "x") == hashlib.md5(parts).hexdigest() + "-3"


@rows(
    "error, said",
    [
        (
            ProtocolError("Connection aborted.", RemoteDisconnected("Remote end closed")),
            "Remote end closed",
        ),
        (
            HTTPError(
                "<urllib3.connection.HTTPConnection object at 0x7f>: Failed to establish a new "
                "connection: [Errno 111] Connection refused"
            ),
            "Failed to establish a new connection: [Errno 111] Connection refused",
        ),
        (
            HTTPError("HTTPConnection(host='h', port=1): Failed to establish a new connection"),
            "Failed to establish a new connection",
        ),
        (HTTPError(), "HTTPError"),
    ],
)
def test_a_lost_connection_is_named_without_classes(error, said):
    assert s3.lost(error) == said
