"""JupyterHub with a single-user server and an IPython kernel, all from PyPI.

The proxy is configurable-http-proxy in Python, which serves JupyterHub as the one of npm does, but
needs no Node.js. The token is one of the user's own; the hub's administrator issues it.
"""

import json
import secrets
import shutil
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from errors import TestbedError

from serving import lines, venvs
from serving.place import ENVIRONMENT, Place

WHAT = "JupyterHub with an IPython kernel"
PORT, BEHIND = 8000, 18000
USER = "alice"
LOCK = Path(__file__).with_name("hub.lock")
PACKAGES = {"/usr/bin/pip3": "python3-pip"}
FAULTS = {
    **lines.FAULTS,
    "500": "each request is answered with status 500",
    "expired-token": "the token is not accepted any more",
    "full-disk": "the user's folder has almost no room",
    "wrong-checksum": "each notebook is altered when it is written",
    "spawn-fails": "the program of the user's server cannot be executed",
    "spawn-hangs": "the user's server never answers",
    "kernel-wrong-answer": "digits that a kernel prints are altered",
}
CONFIG = """\
from pathlib import Path
folder = Path({folder!r})
c.JupyterHub.bind_url = "http://127.0.0.1:{behind}"
c.JupyterHub.db_url = f"sqlite:///{{folder}}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{{folder}}/cookie_secret"
c.JupyterHub.allow_named_servers = True
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
c.JupyterHub.services = [
    {{"name": "administrator", "api_token": (folder / "administrator").read_text().strip()}}
]
c.JupyterHub.load_roles = [
    {{"name": "administrator", "services": ["administrator"],
     "scopes": ["admin:users", "admin:servers", "tokens"]}}
]
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = (folder / "password").read_text().strip()
c.Authenticator.allowed_users = {{{user!r}}}
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{{folder}}/home/{{{{username}}}}"
c.Spawner.cmd = [f"{{folder}}/server"]
c.Spawner.args = ["--allow-root"]
c.Spawner.default_url = "/api"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.ConfigurableHTTPProxy.command = [{proxy!r}]
"""
SERVER = '#!/bin/sh\nexec {command} "$@"\n'
HANGING = "#!/bin/sh\necho $$ >>{folder}/hanging\nexec sleep 86400\n"
# What a user may put into a folder of settings: it is read when a server or a kernel starts.
ALTER_SAVED = """\
def alter(model, **_):
    if model["type"] == "notebook":
        for cell in model["content"]["cells"]:
            cell["source"] = cell["source"][1:]
c.FileContentsManager.pre_save_hook = alter
"""
ALTER_PRINTED = """\
import builtins
_print = builtins.print
def print(*words, **options):
    turned = str.maketrans("0123456789", "1234567890")
    _print(*(str(word).translate(turned) for word in words), **options)
builtins.print = print
"""


def start(place: Place) -> None:
    """The hub, its proxy, and a user with a token; no server of the user's."""
    venv = venvs.installed(place, LOCK)  # half a minute, 280 MB
    for name in ("administrator", "password"):
        place.write(name, secrets.token_hex(20) + "\n")
    (place.folder / "home").mkdir()
    _home(place).mkdir()
    proxy = str(venv / "bin/configurable-http-proxy")
    text = CONFIG.format(folder=str(place.folder), behind=BEHIND, user=USER, proxy=proxy)
    config = place.write("config.py", text)
    _serve_users(place)
    env = {"PATH": f"{venv}/bin:{ENVIRONMENT['PATH']}", "HOME": str(place.folder)}
    program = str(venv / "bin/jupyterhub")
    place.daemon(["env", "-C", str(place.folder), program, "-f", str(config)], env=env)
    place.wait_inside(BEHIND)
    place.relay(PORT, BEHIND)
    _until_it_answers(place)
    _issue(place)


def _home(place: Place) -> Path:
    return place.folder / "home" / USER


def _serve_users(place: Place) -> None:
    command = f"{place.cache}/hub/bin/jupyterhub-singleuser"
    place.write("server", SERVER.format(command=command), 0o700)


def _asked(place: Place, method: str, path: str, body: object = None) -> dict[str, object]:
    """The hub's answer to its administrator. Raises OSError."""
    token = (place.folder / "administrator").read_text().strip()
    request = urllib.request.Request(
        f"http://{place.address}:{PORT}/hub/api/{path}",
        method=method,
        headers={"Authorization": f"token {token}"},
        data=None if body is None else json.dumps(body).encode(),
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        return dict(json.loads(answer.read() or "{}"))


def _until_it_answers(place: Place, seconds: float = 60) -> None:
    """The proxy takes connections before the hub is behind it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            _asked(place, "GET", "")
        except OSError:
            if time.monotonic() > deadline:
                what = f"hub: no answer within {seconds:g} s: {place.tail()}"
                raise TestbedError(what) from None
            time.sleep(0.1)
        else:
            return


def _issue(place: Place) -> None:
    """A token of the user's, in place of an earlier one."""
    made = _asked(place, "POST", f"users/{USER}/tokens", {"note": "for checks"})
    place.write("token", f"{made['token']}\n")
    place.write("token_id", str(made["id"]))


def _revoke(place: Place) -> None:
    """Twice is once."""
    kept = (place.folder / "token_id").read_text()
    try:
        _asked(place, "DELETE", f"users/{USER}/tokens/{kept}")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise


def facts(place: Place) -> dict[str, dict[str, object]]:
    """The hub, and one user of it."""
    entry: dict[str, object] = {
        "kind": "jupyterhub",
        "address": f"http://{place.address}:{PORT}",
        "token": f"{place.folder}/token",
        "user": USER,
    }
    return {"hub": entry}


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong: those of the user's server concern servers that are started later."""
    if lines.fault(place, name, value):
        return
    if name == "500":
        place.behave("500")
    elif name == "expired-token":
        _revoke(place)
    elif name == "full-disk":
        place.fill(_home(place))
    elif name == "wrong-checksum":
        _put(place, ".jupyter/jupyter_server_config.py", ALTER_SAVED)
    elif name == "spawn-fails":
        (place.folder / "server").chmod(0o600)
    elif name == "spawn-hangs":
        place.write("server", HANGING.format(folder=place.folder), 0o700)
    elif name == "kernel-wrong-answer":
        _put(place, ".ipython/profile_default/startup/altered.py", ALTER_PRINTED)


def _stop_servers(place: Place, seconds: float = 60) -> None:
    """All of the user's, also those that are still starting."""
    deadline = time.monotonic() + seconds
    while servers := _asked(place, "GET", f"users/{USER}")["servers"]:
        for name in dict(servers):  # type: ignore[call-overload]
            which = f"servers/{name}" if name else "server"
            with suppress(urllib.error.HTTPError):  # one that ends is asked for again
                _asked(place, "DELETE", f"users/{USER}/{which}", {"remove": True} if name else None)
        if time.monotonic() > deadline:
            raise TestbedError(f"hub: the server of {USER} does not stop: {place.tail()}")
        time.sleep(0.2)


def _put(place: Place, name: str, text: str) -> None:
    path = _home(place) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def mend(place: Place) -> None:
    """As it was started, and with no server of the user's that was started meanwhile."""
    _until_it_answers(place)
    _stop_servers(place)
    place.empty(_home(place))
    for name in (".jupyter", ".ipython"):
        shutil.rmtree(_home(place) / name, ignore_errors=True)
    _serve_users(place)
    hanging = place.folder / "hanging"
    if hanging.exists():
        with suppress(TestbedError):
            place.run(["kill", "-KILL", *hanging.read_text().split()])
        hanging.unlink()
    _revoke(place)
    _issue(place)
