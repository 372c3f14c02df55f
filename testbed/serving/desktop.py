"""A desktop of Debian: TigerVNC, openbox, a terminal, and noVNC for browsers."""

import secrets
import time
from contextlib import suppress

from errors import TestbedError

from serving import lines
from serving.place import Place

WHAT = "desktop: TigerVNC and noVNC"
PORT, BEHIND = 6080, 16080  # the page
VNC, DISPLAY = 5900, 7
NOVNC = "/usr/share/novnc"
PACKAGES = {
    "Xtigervnc": "tigervnc-standalone-server",
    "tigervncpasswd": "tigervnc-tools",
    "openbox": "openbox",
    "xterm": "xterm",
    "websockify": "websockify",
    f"{NOVNC}/vnc_lite.html": "novnc",
}
FAULTS = {
    **lines.FAULTS,
    "blank-screen": "no window is on the screen",
    "wrong-password": "the password is not accepted",
    "no-vnc": "the page is there, but no VNC server behind it",
}
# The next screen cannot start before this one has ended.
END = 'kill -KILL "$0" && while kill -0 "$0" 2>/dev/null; do sleep 0.02; done'
WINDOW = """\
#!/bin/sh
echo $$ >'{pid}'
exec xterm -geometry 90x30+20+20 -fn fixed -ut \\
    -e sh -c 'echo A desktop of the test bed.; date; exec sleep infinity'
"""
PATIENCE = 20  # seconds


def start(place: Place) -> None:
    """The screen with a terminal on it, its VNC server, and the page."""
    place.write("password", secrets.token_hex(4) + "\n")  # VNC looks at 8 characters
    _screen(place)
    _daemon(place, "page", ["websockify", "--web", NOVNC, *_ends()])
    place.wait_inside(BEHIND)
    place.relay(VNC, VNC + DISPLAY)
    place.relay(PORT, BEHIND)


def _ends() -> list[str]:
    return [f"127.0.0.1:{port}" for port in (BEHIND, VNC + DISPLAY)]


def _accept(place: Place, password: str) -> None:
    """The VNC server reads the file at each login."""
    program = 'umask 077; tigervncpasswd -f >"$0"'
    place.run(["sh", "-c", program, str(place.folder / "vnc")], given=password)


def _screen(place: Place) -> None:
    """X with a window manager and a window; its socket is the namespaces', no file in /tmp."""
    _accept(place, (place.folder / "password").read_text())
    size = ["-geometry", "1024x768", "-depth", "24", "-nolock", "-nolisten", "unix"]
    login = ["-rfbauth", str(place.folder / "vnc"), "-SecurityTypes", "VncAuth", "-localhost=1"]
    login += ["-BlacklistThreshold", "1000000"]  # else wrong passwords would lock all users out
    _daemon(place, "screen", ["Xtigervnc", f":{DISPLAY}", *size, *login])
    place.wait_inside(VNC + DISPLAY)
    # A window that asks to be shown while the window manager starts is never shown.
    place.write("window", WINDOW.format(pid=place.folder / "window.pid"), 0o700)
    _daemon(
        place, "manager", ["openbox", "--sm-disable", "--startup", str(place.folder / "window")]
    )
    end = time.monotonic() + PATIENCE
    while not (place.folder / "window.pid").exists():
        if time.monotonic() > end:
            raise TestbedError(f"no window within {PATIENCE} s: {place.tail()}")
        time.sleep(0.05)


def _daemon(place: Place, name: str, argv: list[str]) -> None:
    """Whose number in the namespaces is in a file, for `_end`."""
    env = {"HOME": str(place.folder), "DISPLAY": f":{DISPLAY}"}
    kept = str(place.folder / f"{name}.pid")
    place.daemon(["sh", "-c", 'echo $$ >"$0"; exec "$@"', kept, *argv], env=env)


def _end(place: Place, *names: str) -> None:
    for name in names:
        with suppress(TestbedError, FileNotFoundError):
            number = (place.folder / f"{name}.pid").read_text().strip()
            place.run(["sh", "-c", END, number])
        (place.folder / f"{name}.pid").unlink(missing_ok=True)


def facts(place: Place) -> dict[str, dict[str, object]]:
    """The page for a browser, and the VNC server behind it."""
    password = f"{place.folder}/password"
    page = f"http://{place.address}:{PORT}/vnc_lite.html?scale=true"
    return {
        "desktop": {"kind": "desktop", "address": page, "password": password},
        "vnc": {"kind": "desktop", "address": f"{place.address}:{VNC}", "password": password},
    }


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong."""
    if lines.fault(place, name, value):
        return
    if name == "blank-screen":
        _end(place, "window")
    elif name == "wrong-password":
        _accept(place, secrets.token_hex(4))
    elif name == "no-vnc":
        _end(place, "window", "manager", "screen")


def mend(place: Place) -> None:
    """As it was started: with a new screen."""
    _end(place, "window", "manager", "screen")
    _screen(place)
