"""A page and its certificate, asked of a real server: good, wrong, hostile, not trusted."""

import socket
from datetime import UTC, datetime, timedelta

import pytest
from rows import rows
from served import certificate, job, pages, steps_of

from siteproof.services import web

PAGE = {"/": (200, {}, b"<h1>Portal</h1>")}


def looked(tmp_path, address, **keys):
    return steps_of(web, job(tmp_path, kind="web", address=address, timeout="5 s", **keys))


def test_a_page_of_the_right_status_and_content_passes(tmp_path):
    with pages(PAGE) as place:
        steps, values = looked(tmp_path, f"http://{place}/", content="Portal")
    assert steps == [("page", "ok", "")]
    assert values == {}


def test_redirects_are_followed_to_the_page(tmp_path):
    ways = {"/": (302, {"Location": "/a"}, b""), "/a": (301, {"Location": "/b"}, b"")}
    with pages({**ways, "/b": PAGE["/"]}) as place:
        steps, _ = looked(tmp_path, f"http://{place}", content="Portal")
    assert steps == [("page", "ok", "")]


def test_a_redirect_may_be_the_status_that_is_expected(tmp_path):
    with pages({"/": (302, {"Location": "https://login.invalid/"}, b"")}) as place:
        steps, _ = looked(tmp_path, f"http://{place}/", http_status=302)
    assert steps == [("page", "ok", "")]


@rows(
    "answer, why",
    [
        ((500, {}, b""), "HTTP status 500 (GET)"),
        ((200, {}, b"Sorry, we are closed"), "the page does not have 'Portal'"),
        ((200, {}, b"x" * 2**20 + b"Portal"), "the page does not have 'Portal'"),
        ((302, {"Location": "/"}, b""), "more than 5 redirects"),
        ((302, {}, b""), "HTTP status 302 without a Location (GET)"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "a redirect to what is not http or https"),
        ((302, {"Location": "http://a:b/"}, b""), "a redirect to what is not http or https"),
        (lambda to: to.wfile.write(b"garbage\r\n\r\n"), "answer not understood: BadStatusLine"),
        (lambda to: to.connection.shutdown(2), "closed the connection without an answer"),
        (
            lambda to: to.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
            "the answer ended in the middle",
        ),
        (
            lambda to: to.wfile.write(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf"
            ),
            "the answer ended in the middle",
        ),
    ],
)
def test_a_wrong_page_is_generic_and_says_what_is_wrong(tmp_path, answer, why):
    with pages({"/": answer}) as place:
        steps, _ = looked(tmp_path, f"http://{place}/", content="Portal")
    assert steps == [("page", "generic", why)]


def test_nothing_at_the_port_is_generic(tmp_path):
    with pages(PAGE) as place:
        pass
    steps, _ = looked(tmp_path, f"http://{place}/")
    assert steps == [("page", "generic", "Connection refused")]


@pytest.mark.deep
def test_a_server_that_never_answers_is_a_timeout(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        given = job(tmp_path, kind="web", address=f"http://127.0.0.1:{port}/", timeout="1 s")
        steps, _ = steps_of(web, given)
    assert steps == [("page", "timeout", "no answer within 1 s")]


def test_a_trusted_certificate_has_its_days_left(tmp_path):
    trusted = certificate(tmp_path / "pem", days=30.5)
    with pages(PAGE, trusted) as place:
        steps, values = looked(tmp_path, f"https://{place}/", certificates=trusted)
    assert steps == [("page", "ok", ""), ("certificate", "ok", "")]
    record = values["certificate_days"]
    assert record["unit"] == "d"
    assert 30.4 < float(record["value"]) <= 30.5


@rows(
    "made, why",
    [
        ({"days": -1}, "certificate has expired"),
        ({"days": 30, "since": 1}, "certificate is not yet valid"),
        ({"days": 30, "name": "192.0.2.1"}, "IP address mismatch"),
    ],
)
def test_a_certificate_that_is_not_valid_is_a_login_with_its_date(tmp_path, made, why):
    trusted = certificate(tmp_path / "pem", **made)
    with pages(PAGE, trusted) as place:
        steps, values = looked(tmp_path, f"https://{place}/", certificates=trusted)
    ((step, status, said),) = steps
    assert (step, status) == ("page", "login")
    assert why in said
    assert f"to {datetime.now(UTC) + timedelta(days=made['days']):%Y-%m-%d}" in said
    assert values == {}


def test_a_certificate_that_nobody_trusts_is_a_login_with_its_date(tmp_path):
    unknown = certificate(tmp_path / "pem", days=30)
    with pages(PAGE, unknown) as place:
        steps, _ = looked(tmp_path, f"https://{place}/")
    ((_, status, said),) = steps
    assert status == "login"
    assert said.startswith("certificate: self-signed certificate; it is valid from ")


def test_a_service_without_tls_at_an_https_address_is_generic(tmp_path):
    with pages(PAGE) as place:
        steps, _ = looked(tmp_path, f"https://{place}/")
    ((_, status, said),) = steps
    assert status == "generic"
    assert said.startswith("TLS: ")


def test_certificates_that_cannot_be_read_are_named(tmp_path):
    missing = str(tmp_path / "missing.pem")
    with pages(PAGE, certificate(tmp_path / "pem", days=30)) as place:
        steps, _ = looked(tmp_path, f"https://{place}/", certificates=missing)
    why = f"certificates: {missing} cannot be read: No such file or directory"
    assert steps == [("page", "login", why)]


def test_a_page_leaves_nothing_to_be_removed(tmp_path):
    given = job(tmp_path, kind="web", address="http://portal.invalid/")
    assert web.KINDS["web"].found(given) == []
