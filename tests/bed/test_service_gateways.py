"""Pages, JupyterHub and desktops as their users meet them, and each of their faults."""

import json
import re
import shutil
import time

import pytest
import services_fixture
from clone import wait_for
from services_fixture import breaking, ends, jobs, kill_at, records

from siteproof.services import browser, desktop, jupyterhub, runner

pytestmark = [
    pytest.mark.services,
    pytest.mark.tool("JupyterHub", "TigerVNC, noVNC and Chromium", "nginx"),
    pytest.mark.skipif(not any(map(shutil.which, browser.NAMES)), reason="no Chromium"),
]
OF = {"hub": "hub", "desktop": "desktop", "vnc": "desktop", "portal": "http"}
STEPS = {
    "hub": ["login", "spawn", "kernel", "notebook", "stop", "clean"],
    "desktop": ["handshake", "browser", "frame", "clean"],
    "vnc": ["handshake", "browser", "frame", "clean"],
    "portal": ["page", "certificate", "clean"],
}
SILENT = "no answer within 8 s"
SLOW = ("slow-line", "--value", "20000")
CUT_OFF = "closed|reset|in the middle"

FAULTS = [
    ("hub", ("500",), "login", "generic", r"HTTP status 500 \(version\)"),
    ("hub", ("expired-token",), "login", "login", r"HTTP status 40[13] \(user\)"),
    ("hub", ("hang",), "login", "timeout", SILENT),
    ("hub", ("down",), "login", "generic", CUT_OFF),
    ("hub", ("killed-in-the-middle", "--value", "100"), "login", "generic", CUT_OFF),
    ("hub", ("spawn-fails",), "spawn", "generic", "the server has not started"),
    ("hub", ("spawn-hangs",), "spawn", "timeout", "the server is still starting after 7.2 s"),
    ("hub", ("full-disk",), "notebook", "generic", r"HTTP status 500 \(upload\).*space"),
    ("hub", ("wrong-checksum",), "notebook", "checksum", "the notebook is not as it was uploaded"),
    (
        "hub",
        ("kernel-wrong-answer",),
        "notebook",
        "checksum",
        "the notebook printed '.*', expected",
    ),
    ("desktop", ("hang",), "handshake", "timeout", SILENT),
    ("desktop", ("down",), "handshake", "generic", CUT_OFF),
    ("desktop", ("killed-in-the-middle", "--value", "500"), "handshake", "generic", CUT_OFF),
    ("desktop", ("killed-in-the-middle", "--value", "20000"), "frame", "timeout", "no connection"),
    ("desktop", SLOW, "frame", "timeout", "no connection|no answer"),
    ("desktop", ("wrong-password",), "frame", "login", "refuses the login: Authentication fail"),
    ("desktop", ("no-vnc",), "frame", "generic", "noVNC lost the VNC server before the login"),
    ("desktop", ("blank-screen",), "frame", "generic", "the picture is still blank after 7.2 s"),
    ("vnc", ("hang",), "handshake", "timeout", SILENT),
    ("vnc", ("down",), "handshake", "generic", CUT_OFF),
    ("vnc", ("killed-in-the-middle", "--value", "60"), "frame", "generic", "noVNC lost the VNC"),
    ("vnc", ("no-vnc",), "handshake", "generic", CUT_OFF),
    ("vnc", ("wrong-password",), "frame", "login", "refuses the login: Authentication failure"),
    ("vnc", ("blank-screen",), "frame", "generic", "the picture is still blank after 7.2 s"),
    ("portal", ("500",), "page", "generic", r"HTTP status 500 \(GET\)"),
    ("portal", ("expired-certificate",), "page", "login", "certificate has expired; it is valid"),
    ("portal", ("hang",), "page", "timeout", SILENT),
    ("portal", ("down",), "page", "generic", CUT_OFF),
]


@pytest.fixture(scope="module")
def bed(request):
    yield from services_fixture.started(request, "hub", "desktop", "http")


@pytest.fixture
def job(bed, tmp_path):
    return jobs(bed, tmp_path)


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


def nothing_is_left(bed, job):
    """Asked of the service, and seen in the user's folder."""
    assert runner.module(job).found(job) == []
    assert not list((bed.state / "hub/home/alice").rglob("siteproof-*"))


def no_secret_is_in(bed, found):
    text = json.dumps(found)
    for name in ("hub/token", "hub/administrator", "desktop/password"):
        assert (bed.state / name).read_text().strip() not in text


@pytest.mark.parametrize("name", STEPS)
def test_a_service_that_works_passes_each_step(bed, job, name):
    given = job(name)
    found = records(given)
    assert ends(found) == dict.fromkeys(STEPS[name], ("ok", ""))
    nothing_is_left(bed, given)
    no_secret_is_in(bed, found)
    values = {r["metric"]: float(r["value"]) for r in found if "metric" in r}
    if OF[name] == "desktop":
        assert values["colours"] >= 2
    if name == "portal":
        assert values["certificate_days"] > 0


@pytest.mark.parametrize(
    ("name", "fault", "step", "status", "why"),
    FAULTS,
    ids=[f"{one[0]} {' '.join(one[1])}" for one in FAULTS],
)
def test_a_fault_has_its_step_its_status_and_its_reason(
    bed, job, faulty, name, fault, step, status, why
):
    faulty(OF[name], *fault)
    given = job(name, timeout="8 s")
    found = records(given)
    failed = {s: end for s, end in ends(found).items() if end[0] != "ok" and s != "clean"}
    assert list(failed) == [step]
    assert failed[step][0] == status
    assert re.search(why, failed[step][1])
    assert "Traceback" not in json.dumps(found)
    no_secret_is_in(bed, found)
    bed.must("mend", OF[name])
    nothing_is_left(bed, given)


def test_a_hub_that_allows_no_user_is_a_login(job):
    assert ends(records(job("hub", user="mallory")))["login"] == (
        "login",
        "no user mallory that the token may see",
    )


@pytest.mark.parametrize("step", ["kernel", "notebook", "stop"])
def test_a_test_of_a_hub_that_is_killed_leaves_nothing_behind(bed, job, step):
    given = job("hub")
    kill_at(given, step)
    wait_for(lambda: jupyterhub.found(given) == [])
    nothing_is_left(bed, given)


def test_what_a_killed_test_has_left_is_seen_and_removed_by_its_name(bed, job):
    given = job("hub")
    hub = jupyterhub._Hub(given)
    server = hub.spawn(time.time())
    note = f"{given.mark}.ipynb"
    model = {"type": "notebook", "content": jupyterhub.notebook([])}
    hub.must("PUT", jupyterhub._file(hub, server, note), model)
    assert jupyterhub.found(given) == [note, given.mark]
    for name in jupyterhub.found(given):
        jupyterhub.remove(given, name)
        jupyterhub.remove(given, name)  # gone is no error
    nothing_is_left(bed, given)


def test_a_vnc_server_without_novnc_on_this_machine_is_greeted_only(job, monkeypatch):
    monkeypatch.setattr(desktop, "NOVNC", ())
    found = ends(records(job("vnc")))
    assert found["handshake"] == ("ok", "")
    assert found["browser"] == (
        "tool_missing",
        "noVNC is not installed: only the handshake was made",
    )
