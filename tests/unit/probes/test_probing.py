"""Probes of real servers: good, stopped, slow, hostile."""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from queue import Queue

import pytest
from rows import rows

from siteproof import probes
from siteproof.probes import NotUp, look
from siteproof.services import capacity, mount, ssh
from siteproof.services.capacity import Instance, Listing, Seen
from siteproof.sites import Probe

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SECONDS = 2.0


@contextmanager
def server(answer):
    """A real server on a free port; answer: called with each connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection = listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection):
        with connection, suppress(OSError):
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def sends(*parts):
    def answer(connection):
        connection.recv(4096)
        for part in parts:
            connection.sendall(part)

    return answer


def without_end(part, first=b""):
    def answer(connection):
        connection.sendall(first)
        while True:
            connection.sendall(part)

    return answer


def status(line, *headers):
    return sends("\r\n".join([f"HTTP/1.1 {line}", *headers, "Content-Length: 0", "", ""]).encode())


def why(kind, target, seconds=SECONDS):
    with pytest.raises(NotUp) as caught:
        look(kind, target, seconds)
    return str(caught.value)


# ---- http


def test_an_answer_of_2xx_is_up():
    for line in ("200 OK", "204 No Content", "299 Odd"):
        with server(status(line)) as port:
            look("http", f"http://127.0.0.1:{port}/", SECONDS)


def test_any_other_answer_is_down_with_its_status():
    for line in ("404 Not Found", "500 Error", "503 Busy", "304 Not Modified", "302 Found"):
        with server(status(line)) as port:
            assert why("http", f"http://127.0.0.1:{port}/x") == f"HTTP status {line[:3]}"


def test_a_redirect_is_followed_and_one_without_end_is_down():
    asked = []

    def twice(connection):
        asked.append(connection.recv(4096).split()[1])
        line = b"HTTP/1.1 302 Found\r\nLocation: /b?c=d\r\n\r\n" if len(asked) == 1 else OK
        connection.sendall(line)

    with server(twice) as port:
        look("http", f"http://127.0.0.1:{port}/a", SECONDS)
    assert asked == [b"/a", b"/b?c=d"]
    with server(status("302 Found", "Location: /again")) as port:
        assert why("http", f"http://127.0.0.1:{port}/") == "more than 5 redirects"


@rows("place", ["file:///etc/passwd", "ftp://a/", "//", "http://", "x:", "\x01"])
def test_a_redirect_to_another_kind_of_place_is_down(place):
    with server(status("302 Found", f"Location: {place}")) as port:
        assert why("http", f"http://127.0.0.1:{port}/")


def test_a_redirect_to_a_line_break_sends_nothing_of_it():
    with server(status("302 Found", "Location: /a%0d%0aX\tY")) as port:
        assert why("http", f"http://127.0.0.1:{port}/")


@rows(
    "answer",
    [
        sends(b"SSH-2.0-x\r\n"),
        sends(b""),
        sends(b"\x00" * 100_000),
        sends(b"HTTP/1.1 999999999 x\r\n\r\n"),
        sends(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500),
        sends(b"HTTP/1.1 200 OK\r\n" + b"a" * 200_000),
    ],
)
def test_an_answer_that_is_not_http_is_down(answer):
    with server(answer) as port:
        assert why("http", f"http://127.0.0.1:{port}/")


def test_a_body_is_never_read():
    with server(without_end(b"x" * 65536, b"HTTP/1.1 200 OK\r\n\r\n")) as port:
        start = time.monotonic()
        look("http", f"http://127.0.0.1:{port}/", 30)
        assert time.monotonic() - start < 10


# ---- tcp, ssh, mount


def test_a_port_is_up_until_its_server_is_stopped():
    with server(sends()) as port:
        look("tcp", f"127.0.0.1:{port}", SECONDS)
    assert why("tcp", f"127.0.0.1:{port}") == "Connection refused"


def test_a_host_that_nobody_knows_is_down():
    assert why("tcp", "no-such-host.invalid:22")


@rows("first", [b"SSH-2.0-OpenSSH_9.2\r\n", b"Welcome\r\nSSH-1.99-x\r\n"])
def test_a_server_that_shows_its_version_is_up_and_is_shown_ours(first):
    seen = Queue()

    def answer(connection):
        connection.sendall(first)
        seen.put(connection.recv(100))

    with server(answer) as port:
        look("ssh", f"127.0.0.1:{port}", SECONDS)
        assert seen.get(timeout=30) == ssh.OUR_VERSION


@rows(
    "answer, counts",
    [
        (sends(b"SSH-2.0-OpenSSH_9.2\r\n"), True),
        (sends(b"HTTP/1.1 200 OK\r\n\r\n"), False),
        (sends(b""), False),
    ],
)
def test_a_virtual_machine_answers_where_an_ssh_server_shows_its_version(answer, counts):
    with server(answer) as port:
        assert capacity.answers("127.0.0.1", port) == counts
    assert not capacity.answers("127.0.0.1", port)  # nobody is there any more
    assert not capacity.answers("")


def test_no_server_of_a_cloud_is_looked_at_after_the_time_for_its_launch(monkeypatch):
    launch = object.__new__(capacity._Launch)
    launch.seen = Seen(answered=set())
    launch.seen.take(Listing(0.0, {"a": Instance(1, "ACTIVE", address="192.0.2.1")}))
    monkeypatch.setattr(capacity, "answers", bool)
    for seconds, counted in ((-1, set()), (60, {"a"})):
        launch._knock(time.monotonic() + seconds)
        assert launch.seen.answered == counted


@rows(
    "answer, expected",
    [
        (sends(b"HTTP/1.1 200 OK\r\n\r\n"), "sent no ssh version"),
        (sends(b"SSH-1.5-old\r\n"), "ssh version SSH-1.5-old"),
        (without_end(b"Welcome to all\r\n"), "sent no ssh version"),
        (without_end(b"x"), "sent no ssh version"),
        (lambda connection: time.sleep(5), "no answer within 0.5 s"),
    ],
)
@pytest.mark.deep
def test_anything_else_is_no_ssh(answer, expected):
    with server(answer) as port:
        assert why("ssh", f"127.0.0.1:{port}", 0.5) in (expected, "Connection reset by peer")


def test_a_mount_is_up_and_a_plain_folder_is_not(tmp_path):
    look("mount", "/", 20)
    look("mount", "/proc", 20)
    assert why("mount", str(tmp_path), 20) == "nothing is mounted there"
    assert why("mount", str(tmp_path / "missing"), 20) == "cannot be read"


def test_a_mount_that_hangs_is_left_alone(monkeypatch):
    monkeypatch.setattr(mount, "MOUNTED", "import time; time.sleep(60)")
    start = time.monotonic()
    assert why("mount", "/", 0.3) == "no answer within 0.3 s"
    assert time.monotonic() - start < 10


# ---- rounds


def probe(kind, target, timeout="1 s", **more):
    return Probe(kind=kind, target=target, interval="5 min", timeout=timeout, **more)


@pytest.mark.deep
def test_a_round_takes_no_longer_than_its_longest_limit_whatever_services_do():
    def drips(connection):
        connection.recv(100)
        while True:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.05)

    with server(drips) as slow, server(status("200 OK")) as good:
        slow_and_good = {f"slow{n}": probe("http", f"http://127.0.0.1:{slow}/") for n in range(20)}
        slow_and_good["good"] = probe("http", f"http://127.0.0.1:{good}/", service="web")
        start = time.monotonic()
        found = list(probes.run_round(slow_and_good))
        assert time.monotonic() - start < 5
    assert {result.probe for result in found} == set(slow_and_good)
    assert (found[0].probe, found[0].ok) == ("good", True), "it is not held up by the others"
    assert (found[0].service, found[0].interval) == ("web", 300)
    assert {result.why for result in found[1:]} == {"no answer within 1 s"}


def test_a_probe_that_breaks_ends_itself_only(monkeypatch):
    def broken(_target, _seconds):
        raise MemoryError

    monkeypatch.setitem(probes._KINDS, "tcp", broken)
    found = list(probes.run_round({"a": probe("tcp", "h:1"), "b": probe("mount", "/", "20 s")}))
    assert [(one.ok, one.why) for one in found] == [
        (False, "the probe broke: MemoryError"),
        (True, ""),
    ]


def test_no_probes_are_no_round():
    assert list(probes.run_round({})) == []


def test_a_probe_is_due_after_its_interval_less_a_tenth():
    one = {"a": probe("tcp", "h:1")}
    for age, expected in ((0, False), (269, False), (270, True), (300, True), (10**6, True)):
        assert bool(probes.due(one, {"a": 10**9}, 10**9 + age)) is expected
    assert probes.due(one, {}, 10**9) == one


def test_a_line_of_the_future_delays_no_round():
    one = {"a": probe("tcp", "h:1")}
    assert probes.due(one, {"a": 10**9 + 3600}, 10**9) == one
    assert not probes.due(one, {"a": 10**9 + 30}, 10**9)


@rows(
    "kind, target",
    [
        ("tcp", "host:22\nx"),
        ("tcp", "host:22\r"),
        ("tcp", "host"),
        ("tcp", "host:65536"),
        ("tcp", "[::::]:80"),
        ("ssh", "[1.2:3::]"),
        ("http", "https://[1:2]/"),
        ("http", "https://host:99999/a:1"),
        ("tcp", "-oProxyCommand=x:22"),
        ("ssh", "host;reboot"),
        ("ssh", "user@host"),
        ("http", "http://host/a b"),
        ("http", "http://host/\nHost: other"),
        ("http", "http://user:password@host/"),
        ("http", "ftp://host/"),
        ("mount", "scratch"),
        ("mount", "/a\nb"),
        ("mount", ""),
    ],
)
def test_a_target_that_is_more_than_an_address_is_a_mistake(kind, target):
    with pytest.raises(ValueError, match="is not a target of kind"):
        probe(kind, target)


@rows(
    "kind, target",
    [
        ("tcp", "[2001:db8::1]:443"),
        ("ssh", "login1.example.org:2222"),
        ("http", "https://[::1]:8443/a?b=c%20d"),
        ("mount", "/home/with space"),
    ],
)
def test_addresses_of_all_forms_are_targets(kind, target):
    assert probe(kind, target).target == target


@pytest.mark.deep
def test_no_thread_of_a_round_holds_the_process(tmp_path):
    code = (
        "import time\nfrom siteproof import probes\n"
        "from siteproof.sites import Probe\n"
        "probes._KINDS['tcp'] = lambda target, seconds: time.sleep(60)\n"
        "p = Probe(kind='tcp', target='h:1', interval='5 min', timeout='1 s')\n"
        "print(next(probes.run_round({'a': p})).why)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, env=os.environ
    )
    assert done.stdout == "no answer within 1 s\n", done.stderr
