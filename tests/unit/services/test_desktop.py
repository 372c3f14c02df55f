"""A picture in a real browser: pages that draw and ask as noVNC does, and pages that do not."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from served import job, pages, steps_of

from siteproof.services import desktop, steps
from siteproof.services import desktop as chromium
from siteproof.services.desktop import Look, seen

pytestmark = pytest.mark.deep

NEEDS = pytest.mark.skipif(not any(map(shutil.which, chromium.NAMES)), reason="no Chromium")
PASSWORD = "pass-of-the-test"
DRAW = """<canvas width=200 height=100></canvas><script>
const drawing = document.querySelector("canvas").getContext("2d");
const fill = (colour, width) => { drawing.fillStyle = colour; drawing.fillRect(0, 0, width, 100); };
const tell = (type, detail) => new CustomEvent(type, {detail});
%s</script>"""


SECONDS = 20  # for the start of Chromium, too, on a machine that does much else
SHORT = 0.2  # of these, for a picture that never comes


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(desktop, "SHARE", SHORT)
    monkeypatch.setattr(steps, "SHARE", SHORT)


def shown(tmp_path, script, *, password=""):
    keys = {}
    if password:
        keys["password"] = str(tmp_path / "password")
        Path(keys["password"]).write_text(password + "\n")
        Path(keys["password"]).chmod(0o600)
    with pages({"/vnc": (200, {"Content-Type": "text/html"}, (DRAW % script).encode())}) as place:
        address = f"http://{place}/vnc"
        given = job(tmp_path, kind="desktop", address=address, timeout=f"{SECONDS} s", **keys)
        steps, values = steps_of(desktop, given)
    assert [step[:2] for step in steps[:2]] == [("handshake", "ok"), ("browser", "ok")]
    return steps[2][1:], values


DRAWN = "tell('connect', {}); fill('red', 90); fill('blue', 40);"


@NEEDS
@pytest.mark.usefixtures("impatient")
def test_a_picture_of_a_page_that_met_no_server_is_no_desktop(tmp_path):
    frame, _ = shown(tmp_path, "fill('black', 200); fill('red', 50)")
    assert frame == ("timeout", "noVNC has no connection after 4 s")


@NEEDS
def test_a_picture_with_two_colours_is_a_desktop(tmp_path):
    frame, values = shown(
        tmp_path, "tell('connect', {}); fill('black', 200); setTimeout(() => fill('red', 50), 300)"
    )
    assert frame == ("ok", "")
    assert (values["colours"]["value"], values["colours"]["unit"]) == ("2", "count")


@NEEDS
@pytest.mark.usefixtures("impatient")
def test_a_picture_of_one_colour_is_blank(tmp_path):
    frame, values = shown(tmp_path, "tell('connect', {}); fill('grey', 150)")
    assert frame == ("timeout", "the picture is still blank after 4 s")
    assert values == {}


@NEEDS
@pytest.mark.usefixtures("impatient")
def test_a_mouse_pointer_alone_is_a_blank_picture(tmp_path):
    script = "tell('connect', {}); fill('grey', 200); drawing.fillStyle = 'red';"
    frame, _ = shown(tmp_path, script + "drawing.fillRect(0, 0, 32, 32)")
    assert frame == ("timeout", "the picture is still blank after 4 s")


@NEEDS
@pytest.mark.usefixtures("impatient")
def test_a_page_that_connects_to_nothing_is_a_timeout(tmp_path):
    frame, _ = shown(tmp_path, "")
    assert frame == ("timeout", "noVNC has no connection after 4 s")


@NEEDS
def test_a_page_without_end_is_a_timeout(tmp_path):
    frame, _ = shown(tmp_path, "for (;;) {}")
    assert frame == ("timeout", "no answer within 20 s")


@NEEDS
def test_a_refused_login_has_the_servers_words(tmp_path):
    script = "tell('securityfailure', {status: 1, reason: 'Authentication failure'})"
    frame, _ = shown(tmp_path, script)
    assert frame == ("login", "the VNC server refuses the login: Authentication failure")


@NEEDS
def test_a_lost_connection_is_generic(tmp_path):
    frame, _ = shown(tmp_path, "tell('connect', {}); tell('disconnect', {clean: false})")
    assert frame == ("generic", "noVNC lost the VNC server after the login")


@NEEDS
def test_the_password_is_typed_into_a_prompt(tmp_path):
    script = f"if (prompt('Password') === '{PASSWORD}') {{ {DRAWN} }}"
    assert shown(tmp_path, script, password=PASSWORD)[0] == ("ok", "")


@NEEDS
def test_the_password_is_typed_into_novncs_own_form_after_its_button(tmp_path):
    script = f"""document.body.insertAdjacentHTML("beforeend",
      "<button id=noVNC_connect_button></button>" +
      "<form><input id=noVNC_password_input><input type=submit id=send></form>");
    noVNC_connect_button.onclick = () => tell("credentialsrequired", {{types: ["password"]}});
    send.onclick = (event) => {{
      event.preventDefault();
      if (noVNC_password_input.value === '{PASSWORD}') {{ {DRAWN} }}
    }};"""
    assert shown(tmp_path, script, password=PASSWORD)[0] == ("ok", "")


@NEEDS
def test_a_password_that_is_asked_for_and_not_given_is_a_login(tmp_path):
    frame, _ = shown(tmp_path, "tell('credentialsrequired', {types: ['password']})")
    assert frame == ("login", "the VNC server asks for a password, and the site has none")


@NEEDS
def test_the_screen_is_a_tablets_wherever_the_scratch_folder_is(tmp_path):
    """A socket's path may have 107 characters."""
    folder = tmp_path / ("x" * 107)
    folder.mkdir()
    with chromium.browser(job(folder, kind="desktop", address="h:5901")) as page:
        page.prepare("")
        shape = "[innerWidth, innerHeight, devicePixelRatio, navigator.maxTouchPoints]"
        assert page.evaluate(shape) == [1024, 768, 2, 5]


def of_folder(folder):
    """The processes whose arguments name a folder, with those arguments."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words:
            found[int(process.name)] = words
    return found


def gone(folder):
    """Whether they end; what a kill leaves of Chromium ends a moment later."""
    end = time.monotonic() + 30
    while of_folder(folder) and time.monotonic() < end:
        time.sleep(0.1)
    return not of_folder(folder)


@NEEDS
def test_the_password_is_in_no_list_of_processes_and_no_process_is_left(tmp_path):
    with chromium.browser(job(tmp_path, kind="desktop", address="h:5901")) as page:
        page.prepare("")
        page.evaluate(desktop._TYPE % json.dumps(PASSWORD))
        arguments = of_folder(tmp_path)
    assert arguments
    assert not [words for words in arguments.values() if PASSWORD.encode() in words]
    assert gone(tmp_path)


@NEEDS
def test_no_process_is_left_of_a_test_that_is_killed(tmp_path):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with chromium.browser(job(tmp_path, kind="desktop", address="h:5901")) as page:
                page.prepare("")
                os.write(writing, b"open")
                time.sleep(60)
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 4) == b"open"
    assert of_folder(tmp_path)
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert gone(tmp_path)


def test_a_browser_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(chromium, "NAMES", ("chromium-that-nobody-has",))
    with pages({"/": (200, {}, b"")}) as place:
        given = job(tmp_path, kind="desktop", address=f"http://{place}/")
        steps, _ = steps_of(desktop, given)
    why = "chromium-that-nobody-has is not installed"
    assert steps[1:] == [("browser", "tool_missing", why)]


def test_a_browser_that_cannot_start_has_its_last_words(tmp_path, monkeypatch):
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\necho 'No usable sandbox!' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(chromium, "NAMES", (str(broken),))
    with pages({"/": (200, {}, b"")}) as place:
        given = job(tmp_path, kind="desktop", address=f"http://{place}/")
        steps, _ = steps_of(desktop, given)
    assert steps[1:] == [("browser", "generic", "chromium has ended: No usable sandbox!")]


def test_a_page_that_is_not_there_is_generic(tmp_path):
    with pages({}) as place:
        given = job(tmp_path, kind="desktop", address=f"http://{place}/vnc.html")
        steps, _ = steps_of(desktop, given)
    assert steps == [("handshake", "generic", "HTTP status 404 (GET)")]


def test_a_greeting_that_is_not_vnc_is_generic(tmp_path):
    with pages({}) as place:
        given = job(tmp_path, kind="desktop", address=place, timeout="1 s")
        steps, _ = steps_of(desktop, given)
    assert steps == [("handshake", "timeout", "no answer within 1 s")]


def test_what_a_page_returns_is_read_as_data():
    good = {"colours": 3, "pixels": 99, "events": [["connect", ""], ["disconnect", "x"]]}
    assert seen(good) == Look(3, 99, {"connect": "", "disconnect": "x"})


@pytest.mark.parametrize(
    "value",
    [None, 5, "x", [], {}, {"events": 5}, {"events": [[], ["a"], [1, 2], "ab", None]},
     {"colours": "9", "pixels": 1.5}],
)  # fmt: skip
def test_what_a_hostile_page_returns_is_a_blank_picture(value):
    look = seen(value)
    assert look == Look(0, 0, {})
    assert look.is_blank
