"""JupyterHub and the desktop of `testbed/services`: real, each fault seen, and nothing left."""

import base64
import io
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pytest
import services_fixture
import websocket
import yaml
from clone import TOP, wait_for
from PIL import Image

from siteproof.services import rfb, steps
from siteproof.sites import Service

pytestmark = [pytest.mark.services, pytest.mark.tool("JupyterHub", "TigerVNC, noVNC and Chromium")]
SESSION = "20261125T120000Z-0123456"
LINE = [  # what goes wrong in front of any service
    ("hang", "timeout"),
    ("down", "generic"),
    ("slow-line", "timeout"),
    ("killed-in-the-middle", "generic"),
]
# Bytes a second, and bytes, that carry no whole answer: a greeting of VNC is 12 bytes each way, and
# websockify waits 3 s for a request.
FEW = {"hub": ("20", "40"), "desktop": ("200", "400"), "vnc": ("2", "8")}


@pytest.fixture(scope="module")
def bed(request):
    yield from services_fixture.started(request, "hub", "desktop")


@pytest.fixture
def faulty(bed):
    """Makes a service go wrong, until the end of the test."""
    mended = []

    def make(name, fault, value=""):
        mended.append(name)
        bed.must("fault", name, fault, "--value", value)

    yield make
    for name in mended:
        bed.must("mend", name)


@pytest.fixture
def job(bed, tmp_path):
    """A test of a service as a site would have it."""

    def make(name, seconds=60):
        entry = yaml.safe_load(bed.must("site"))["services"][name]
        service = Service(**entry, timeout=f"{seconds} s")
        return steps.Job(name, service, steps.mark(SESSION, name), tmp_path, "here")

    return make


def ends(job):
    """How each step of a service's test ended in a job, and what was measured."""
    path = job.scratch.parent / f"{job.scratch.name}.json"
    entry = job.service.model_dump(mode="json", exclude_unset=True)
    entry["timeout"] = f"{job.seconds:g} s"
    path.write_text(json.dumps(dict(system="x", name=job.name, mark=job.mark, service=entry)))
    argv = [sys.executable, "-m", "siteproof.services", str(path)]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    found = [json.loads(line) for line in done.stdout.splitlines()]
    ended = {r["end"]["step"]: (r["status"], r["why"]) for r in found if "end" in r}
    return ended, {r["metric"]: float(r["value"]) for r in found if "metric" in r}


def failed(job):
    """The step that failed, its class and its reason; the steps before it were made."""
    ended, _ = ends(job)
    bad = {step: end for step, end in ended.items() if end[0] != "ok"}
    assert len(bad) >= 1, ended
    step = next(iter(bad))
    return step, *bad[step]


# JupyterHub


class Hub:
    """Its REST API, as its documentation has it."""

    def __init__(self, job):
        self.address, self.user = job.service.address, f"/hub/api/users/{job.service.user}"
        self.headers = {"Authorization": f"token {job.secret('token')}"}
        self.own = f"/user/{job.service.user}/api"

    def ask(self, method, path, body=None):
        """The status, and the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, self.headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def servers(self):
        return self.ask("GET", self.user)[1]["servers"]

    def spawn(self):
        assert self.ask("POST", f"{self.user}/server")[0] == 202
        wait_for(lambda: self.servers()[""]["ready"])

    def printed(self, code):
        """What a new kernel prints."""
        _, kernel = self.ask("POST", f"{self.own}/kernels", {"name": "python3"})
        url = f"{self.address.replace('http', 'ws')}{self.own}/kernels/{kernel['id']}/channels"
        channel = websocket.create_connection(url, header=self.headers, timeout=60)
        number = uuid.uuid4().hex
        header = {"msg_id": number, "msg_type": "execute_request", "session": "s", "username": "u"}
        request = {"header": {**header, "version": "5.3"}, "parent_header": {}, "metadata": {}}
        content = {"code": code, "silent": False}
        channel.send(json.dumps({**request, "channel": "shell", "content": content}))
        while True:
            answer = json.loads(channel.recv())
            if answer["parent_header"].get("msg_id") == number and answer["msg_type"] == "stream":
                channel.close()
                return answer["content"]["text"].strip()


def test_a_hub_starts_a_server_and_computes_in_a_kernel(bed, job):
    hub = Hub(job("hub"))
    hub.spawn()
    assert hub.printed("print(6 * 7)") == "42"
    assert hub.ask("DELETE", f"{hub.user}/server")[0] in (202, 204)
    wait_for(lambda: not hub.servers())


def test_the_check_of_a_hub_passes(job):
    ended, _ = ends(job("hub"))
    assert set(ended.values()) == {("ok", "")}
    assert {"login", "spawn", "kernel", "notebook", "stop"} <= set(ended)
    assert Hub(job("hub")).servers() == {}


HUB = [
    ("500", "login", "generic", "500"),
    ("expired-token", "login", "login", "403"),
    ("full-disk", "notebook", "generic", "No space left"),
    ("wrong-checksum", "notebook", "checksum", "not as it was uploaded"),
    ("spawn-fails", "spawn", "generic", "not started"),
    ("spawn-hangs", "spawn", "timeout", "still starting"),
    ("kernel-wrong-answer", "notebook", "checksum", "printed"),
]


@pytest.mark.parametrize(("fault", "step", "status", "why"), HUB)
def test_a_fault_of_a_hub_is_seen_and_mended(bed, job, faulty, fault, step, status, why):
    faulty("hub", fault)
    seconds = 8 if status == "timeout" else 60
    found = failed(job("hub", seconds))
    assert found[:2] == (step, status), found
    assert why in found[2]
    bed.must("mend", "hub")
    assert set(ends(job("hub"))[0].values()) == {("ok", "")}


@pytest.mark.parametrize(("fault", "status"), LINE)
@pytest.mark.parametrize("name", FEW)
def test_a_fault_of_the_line_is_seen(job, faulty, name, fault, status):
    value = dict(zip(("slow-line", "killed-in-the-middle"), FEW[name], strict=True)).get(fault, "")
    faulty("hub" if name == "hub" else "desktop", fault, value)
    step, found, why = failed(job(name, 5))
    assert (step, found) == ("login" if name == "hub" else "handshake", status), why


# The desktop


LOOK = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from siteproof.services.browser import browser
url, password, scratch = sys.argv[1:]
with browser(SimpleNamespace(seconds=60, scratch=Path(scratch))) as page:
    page.prepare("")
    page.answers = [Path(password).read_text().strip()]
    page.go(url)
    while "Connected" not in (page.evaluate("document.body.innerText") or ""):
        time.sleep(0.1)
    page.evaluate("document.querySelector('#top_bar').remove()")
    time.sleep(1)  # a picture is drawn some time after the connection
    print(page.send("Page.captureScreenshot", format="png")["data"])
"""


@pytest.fixture
def looked(job, tmp_path):
    """The share of a browser's picture of the page that is not of its commonest colour."""

    def look():
        service = job("desktop").service
        argv = [sys.executable, "-c", LOOK, service.address, service.password, str(tmp_path)]
        shot = subprocess.run(argv, cwd=TOP, capture_output=True, text=True, timeout=120)
        assert shot.returncode == 0, shot.stderr
        picture = Image.open(io.BytesIO(base64.b64decode(shot.stdout))).convert("RGB")
        counts = [count for count, _ in picture.getcolors(2**24)]
        return 1 - max(counts) / sum(counts)

    return look


def test_the_vnc_server_greets(job):
    host, _, port = job("vnc").service.address.partition(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        greeted = rfb.greeting(connection)
    assert greeted == rfb.Greeting("3.8", ("VNC Authentication",))


@pytest.mark.parametrize("name", ["desktop", "vnc"])
def test_the_check_of_a_desktop_passes(job, name):
    ended, values = ends(job(name))
    assert set(ended.values()) == {("ok", "")}
    assert values["colours"] > 1


def test_a_screenshot_shows_a_window_and_without_it_a_pointer_at_most(bed, looked, faulty):
    pointer = 0.001  # of the picture: twice what one covers
    assert looked() > 100 * pointer
    faulty("desktop", "blank-screen")
    assert looked() < pointer
    bed.must("mend", "desktop")
    assert looked() > 100 * pointer


DESKTOP = [
    pytest.param(
        *("blank-screen", "frame", "generic", "blank"),
        marks=pytest.mark.xfail(
            strict=True, reason="the check takes the pointer, of 128 pixels, for a picture"
        ),
    ),
    ("wrong-password", "frame", "login", "refuses the login"),
    ("no-vnc", "frame", "generic", "lost the VNC server"),
]


@pytest.mark.parametrize(("fault", "step", "status", "why"), DESKTOP)
def test_a_fault_of_a_desktop_is_seen_and_mended(bed, job, faulty, fault, step, status, why):
    faulty("desktop", fault)
    found = failed(job("desktop", 10))
    assert found[:2] == (step, status), found
    assert why in found[2]
    bed.must("mend", "desktop")
    assert set(ends(job("desktop"))[0].values()) == {("ok", "")}


# The bed


def test_credentials_are_for_root_only(bed):
    for path in ("hub/token", "hub/administrator", "hub/password", "desktop/password"):
        assert (bed.state / path).stat().st_mode & 0o777 == 0o600


def processes(state):
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            words = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
        except OSError:
            continue
        if int(proc.name) != os.getpid() and str(state).encode() in words:
            found.append(words)
    return found


def test_nothing_is_left_after_down_and_both_come_up_again():
    bed = services_fixture.Services("-web-down")
    sockets = [Path("/tmp/.X7-lock"), Path("/tmp/.X11-unix/X7")]
    before = [path.exists() for path in sockets]
    try:
        for _ in range(2):
            bed.up("hub", "desktop")
            assert bed.command("status").returncode == 0
            link = link_to(yaml.safe_load(bed.must("site"))["services"]["vnc"]["address"])
            assert processes(bed.state)
            bed.must("down")
            assert not bed.state.exists()
            assert not Path("/sys/class/net", link).exists()
            assert processes(bed.state) == []
            assert [path.exists() for path in sockets] == before
    finally:
        bed.command("down")


def link_to(address):
    """The name of the link by which this machine reaches the bed."""
    argv = ["ip", "-o", "route", "get", address.partition(":")[0]]
    words = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    return words[words.index("dev") + 1]
