"""A desktop as its users meet it, in a browser, and each of its faults."""

import base64
import io
import json
import re
import shutil
import socket
from pathlib import Path

import pytest
import services_fixture
from PIL import Image
from services_fixture import breaking, ends, jobs, records, until

from siteproof.services import desktop

pytestmark = [
    pytest.mark.services,
    pytest.mark.tool("TigerVNC, noVNC and Chromium"),
    pytest.mark.skipif(not any(map(shutil.which, desktop.NAMES)), reason="no Chromium"),
]
STEPS = ["handshake", "browser", "frame", "clean"]
CUT_OFF = "closed|reset|in the middle"
AMPLE = 120  # seconds for each step that ends by itself
SECONDS = {"hang": 2, "slow-line": 15, "killed-in-the-middle": 15, "blank-screen": 15}
GREETING = 4  # seconds: 12 bytes of it take 6 on the slow line of the VNC server

FAULTS = [
    ("vnc", ("hang",), "handshake", "timeout", "no answer within 2 s"),
    ("vnc", ("down",), "handshake", "generic", CUT_OFF),
    ("vnc", ("no-vnc",), "handshake", "generic", CUT_OFF),
    ("desktop", ("no-vnc",), "frame", "generic", "noVNC lost the VNC server before the login"),
    ("desktop", ("wrong-password",), "frame", "login", "refuses the login: Authentication fail"),
]
# The same in a browser, by pages that behave so: test_desktop; an address as of any page: test_web.
LONG = [
    ("vnc", ("killed-in-the-middle", "--value", "60"), "frame", "generic", "noVNC lost the VNC"),
    ("vnc", ("wrong-password",), "frame", "login", "refuses the login: Authentication failure"),
    ("vnc", ("blank-screen",), "frame", "timeout", "the picture is still blank after 13.5 s"),
    ("vnc", ("slow-line", "--value", "2"), "handshake", "timeout", "no answer within 4 s"),
    ("desktop", ("hang",), "handshake", "timeout", "no answer within 2 s"),
    ("desktop", ("down",), "handshake", "generic", CUT_OFF),
    ("desktop", ("killed-in-the-middle", "--value", "500"), "handshake", "generic", CUT_OFF),
    ("desktop", ("killed-in-the-middle", "--value", "20000"), "frame", "timeout", "no connection"),
    ("desktop", ("slow-line", "--value", "20000"), "frame", "timeout", "no connection|no answer"),
    ("desktop", ("blank-screen",), "frame", "timeout", "the picture is still blank after 13.5 s"),
]


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "desktop")


@pytest.fixture
def job(bed, tmp_path):
    return jobs(bed, tmp_path, timeout=f"{AMPLE} s")


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


def named(rows, *marks):
    return [pytest.param(*row, id=f"{row[0]} {' '.join(row[1])}", marks=marks) for row in rows]


def no_secret_is_in(bed, found):
    assert (bed.state / "desktop/password").read_text().strip() not in json.dumps(found)


@pytest.mark.parametrize(
    ("name", "fault", "step", "status", "why"), named(FAULTS) + named(LONG, pytest.mark.long)
)
def test_a_fault_has_its_step_its_status_and_its_reason(
    bed, job, faulty, name, fault, step, status, why
):
    faulty("desktop", *fault)
    greeted = (name, fault[0]) == ("vnc", "slow-line")
    seconds = GREETING if greeted else SECONDS.get(fault[0], AMPLE)
    found = records(job(name, timeout=f"{seconds} s"))
    failed = {s: end for s, end in ends(found).items() if end[0] != "ok" and s != "clean"}
    assert list(failed) == [step]
    assert failed[step][0] == status
    assert re.search(why, failed[step][1])
    assert "Traceback" not in json.dumps(found)
    no_secret_is_in(bed, found)


def drawn(page):
    """The share of a browser's picture of the page that is not of its commonest colour."""
    shot = page.send("Page.captureScreenshot", format="png")["data"]
    picture = Image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB")
    counts = [count for count, _ in picture.getcolors(2**24)]
    return 1 - max(counts) / sum(counts)


def connected(page, service):
    """Let the browser show the desktop alone, without the bar above it."""
    page.answers = [Path(service.password).read_text().strip()]
    page.go(service.address)
    text = "document.body ? document.body.innerText : ''"
    until(lambda: "Connected" in (page.evaluate(text) or ""), "noVNC shows 'Connected'")
    page.evaluate("document.querySelector('#top_bar').remove()")


def test_a_screenshot_shows_a_window_and_without_it_a_pointer_at_most(job, faulty):
    pointer = 0.001  # of the picture: twice what one covers
    given = job("desktop")
    with desktop.browser(given) as page:
        page.prepare("")
        connected(page, given.service)
        until(lambda: drawn(page) > 100 * pointer, "a window on the screen", every=0.2)
        faulty("desktop", "blank-screen")
        until(lambda: drawn(page) < pointer, "no window on the screen", every=0.2)
        faulty.mend("desktop")  # with a new screen
        connected(page, given.service)
        until(lambda: drawn(page) > 100 * pointer, "a window on the screen again", every=0.2)


def test_the_vnc_server_greets(job):
    host, _, port = job("vnc").service.address.partition(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        greeted = desktop.greeted(connection)
    assert greeted == ("RFB 3.8", "VNC Authentication")


@pytest.mark.parametrize("name", ["desktop", "vnc"])
def test_a_desktop_that_works_passes_each_step(bed, job, name):
    """After all the faults above, which were mended, too."""
    found = records(job(name))
    assert ends(found) == dict.fromkeys(STEPS, ("ok", ""))
    no_secret_is_in(bed, found)
    values = {r["metric"]: float(r["value"]) for r in found if "metric" in r}
    assert values["colours"] >= 2


def test_a_vnc_server_without_novnc_on_this_machine_is_greeted_only(job, monkeypatch):
    monkeypatch.setattr(desktop, "NOVNC", ())
    found = ends(records(job("vnc")))
    assert found["handshake"] == ("ok", "")
    assert found["browser"] == (
        "tool_missing",
        "noVNC is not installed: only the handshake was made",
    )


def test_the_password_is_for_root_only(bed):
    assert (bed.state / "desktop/password").stat().st_mode & 0o777 == 0o600
