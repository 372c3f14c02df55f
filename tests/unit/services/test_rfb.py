"""The first words of VNC servers, as Xtigervnc and others send them, and what is none."""

import socket
import threading

import pytest
from rows import rows

from siteproof.services import desktop
from siteproof.services.steps import StepFailed


def greeted(*parts):
    """What we make of a server that sends these, and what we have sent."""
    ours, theirs = socket.socketpair()
    heard = []

    def serve():
        with theirs:
            theirs.sendall(parts[0])
            for part in parts[1:]:
                heard.append(theirs.recv(12))
                theirs.sendall(part)

    thread = threading.Thread(target=serve)
    thread.start()
    with ours:
        try:
            return desktop.greeted(ours), heard
        finally:
            thread.join()


def refused(*parts):
    with pytest.raises(StepFailed) as caught:
        greeted(*parts)
    return caught.value.status, str(caught.value)


def test_a_server_of_3_8_offers_its_security_types():
    answer, heard = greeted(b"RFB 003.008\n", b"\x02\x02\x13")
    assert answer == ("RFB 3.8", "VNC Authentication, VeNCrypt")
    assert heard == [b"RFB 003.008\n"]


def test_a_server_of_3_3_decides_itself():
    answer, heard = greeted(b"RFB 003.003\n", b"\x00\x00\x00\x02")
    assert answer == ("RFB 3.3", "VNC Authentication")
    assert heard == [b"RFB 003.003\n"]


@rows(
    "theirs, spoken",
    [
        ("003.005", "003.003"),
        ("003.889", "003.008"),
        ("004.001", "003.008"),
        ("003.007", "003.007"),
    ],
)
def test_another_version_is_answered_with_one_that_rfc_6143_has(theirs, spoken):
    answer = b"\x00\x00\x00\x01" if spoken == "003.003" else b"\x01\x01"
    _, heard = greeted(f"RFB {theirs}\n".encode(), answer)
    assert heard == [f"RFB {spoken}\n".encode()]


def test_an_unknown_security_type_has_its_number():
    assert greeted(b"RFB 003.008\n", b"\x01\xc8")[0] == ("RFB 3.8", "type 200")


def test_a_refusal_is_a_login_in_the_servers_words():
    words = b"Too many security failures"
    why = "the VNC server refuses the connection: Too many security failures"
    assert refused(b"RFB 003.008\n", b"\0" + len(words).to_bytes(4) + words) == ("login", why)


def test_a_refusal_of_any_length_is_cut():
    status, why = refused(b"RFB 003.008\n", b"\0\xff\xff\xff\xff" + b"x" * 500)
    assert status == "login"
    assert why.endswith(": " + "x" * desktop.MAX_REASON)


@rows(
    "parts, why",
    [
        ((b"SSH-2.0-OpenSSH_9.2p1\r\n",), "this is not a VNC server: it sent 'SSH-2.0-Open'"),
        ((b"RFB 3.8\n",), "this is not a VNC server: it sent 'RFB 3.8'"),
        ((b"",), "the VNC server has closed the connection"),
        ((b"RFB 003.008\n", b""), "the VNC server has closed the connection"),
    ],
)
def test_what_is_not_vnc_is_generic(parts, why):
    assert refused(*parts) == ("generic", why)


def test_a_list_of_types_that_is_cut_off_is_not_called_another_server():
    status, why = refused(b"RFB 003.008\n", b"\x04\x01\x02")
    assert (status, why) == ("generic", "the VNC server has closed the connection")
