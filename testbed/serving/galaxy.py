"""Galaxy with two small tools of its own, a worker for its tasks, and a user; all from PyPI.

A workflow of two steps, its input and the results that it must have are files of the folder. The
results are computed here, independently of the tools.
"""

import hashlib
import json
import random
import secrets
import shutil
import sqlite3
import time
import urllib.request
from contextlib import closing
from pathlib import Path

from errors import TestbedError

from serving import lines, venvs
from serving.place import ENVIRONMENT, Place

WHAT = "Galaxy with two tools and a workflow of them"
PORT, BEHIND = 8090, 18090
USER = "alice"
LOCK = Path(__file__).with_name("galaxy.lock")
SOURCES = ("dictobj", "docopt")  # of the lock, without wheels
PACKAGES = {"/usr/bin/pip3": "python3-pip"}
BASES = 12_000  # of the input: one sequence, 60 bases a line
FAULTS = {
    **lines.FAULTS,
    "500": "each request is answered with status 500",
    "expired-token": "the user's API key is not accepted any more",
    "wrong-result": "the second tool of the workflow prints other digits",
    "job-fails": "the first tool of the workflow exits with status 1",
    "tool-hangs": "the first tool of the workflow never ends",
    "queue-hangs": "no job is started any more",
}
CONFIG = """\
galaxy:
  config_dir: {folder}/config
  data_dir: {folder}/data
  tool_config_file: {folder}/tools/tool_conf.xml
  id_secret: {secret}
  admin_users: admin@example.org
  bootstrap_admin_api_key: {administrator}
  conda_auto_init: false
  watch_tools: false
  enable_celery_tasks: true
  metadata_strategy: directory_celery
"""
TOOL_CONF = """\
<toolbox>
  <section id="cloud" name="Cloud">
    <tool file="{folder}/tools/count.xml"/>
    <tool file="{folder}/tools/transpose.xml"/>
  </section>
</toolbox>
"""
TOOL = """\
<tool id="{name}" name="{name}" version="1.0.0" profile="22.05">
  <command detect_errors="exit_code">
    <![CDATA[python3 '$__tool_directory__/{name}.py' '$input' '$output']]>
  </command>
  <inputs><param name="input" type="data" format="{reads}"/></inputs>
  <outputs><data name="output" format="{writes}"/></outputs>
</tool>
"""
COUNT = """\
import sys
lines = [line.strip() for line in open(sys.argv[1]) if not line.startswith(">")]
bases = "".join(lines)
both = bases.count("G") + bases.count("C")
open(sys.argv[2], "w").write(f"{len(bases)}\\t{both}\\t{both / len(bases):.6f}\\n")
"""
TRANSPOSE = """\
import sys
text = open(sys.argv[1]).read()
open(sys.argv[2], "w").write(text.replace("\\t", "\\n"))
"""
WRONG = TRANSPOSE.replace("text.replace", 'text.translate(str.maketrans("012", "120")).replace')
FAILING = "import sys\nsys.exit('count: there is no room for the result')\n"
HANGING = "import time\ntime.sleep(86400)\n"


def start(place: Place) -> None:
    """Galaxy, its worker, a user with an API key, and a first job that has run."""
    venv = venvs.installed(place, LOCK, SOURCES)  # some minutes, 1.1 GB
    for name in ("administrator", "secret"):
        place.write(name, secrets.token_hex(16) + "\n")
    _write_tools(place)
    _write_work(place)
    _serve(place, venv)
    place.relay(PORT, BEHIND)
    body = {"username": USER, "email": f"{USER}@example.org", "password": secrets.token_hex(12)}
    user = _asked(place, "POST", "users", body)
    assert isinstance(user, dict)
    place.write("user", f"{user['id']}\n")
    _issue(place)
    _run_first_job(place)


def _write_tools(place: Place) -> None:
    """The tools as they should be."""
    folder = place.folder / "tools"
    folder.mkdir(exist_ok=True)
    (folder / "tool_conf.xml").write_text(TOOL_CONF.format(folder=place.folder))
    count = TOOL.format(name="count", reads="txt,fasta", writes="tabular")
    transpose = TOOL.format(name="transpose", reads="tabular", writes="txt")
    for name, text in (
        ("count.xml", count),
        ("count.py", COUNT),
        ("transpose.xml", transpose),
        ("transpose.py", TRANSPOSE),
    ):
        (folder / name).write_text(text)


def _write_work(place: Place) -> None:
    """A workflow, its input, and the SHA-256 of its results."""
    bases = "".join(random.choices("ACGT", k=BASES))
    rows = [bases[n : n + 60] for n in range(0, BASES, 60)]
    place.write("sequences.fasta", "\n".join([">sequence", *rows]) + "\n")
    place.write("workflow.ga", json.dumps(_workflow(), indent=1))
    both = sum(base in "GC" for base in bases)
    figures = [str(BASES), str(both), f"{both / BASES:.6f}"]
    results = {"counts": "\t".join(figures) + "\n", "figures": "\n".join(figures) + "\n"}
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in results.items()}
    place.write("results.json", json.dumps(digests))


def _workflow() -> dict[str, object]:
    """As Galaxy exports it: the input, then each tool with the step before as its input."""
    first: dict[str, object] = {
        "id": 0,
        "type": "data_input",
        "label": "sequences",
        "name": "Input dataset",
        "tool_id": None,
        "tool_state": '{"optional": false}',
        "input_connections": {},
        "workflow_outputs": [],
    }
    steps: dict[str, object] = {"0": first}
    for number, (tool, label) in enumerate([("count", "counts"), ("transpose", "figures")], 1):
        steps[f"{number}"] = {
            "id": number,
            "type": "tool",
            "label": tool,
            "name": tool,
            "tool_id": tool,
            "tool_version": "1.0.0",
            "tool_state": '{"input": {"__class__": "ConnectedValue"}}',
            "input_connections": {"input": {"id": number - 1, "output_name": "output"}},
            "outputs": [{"name": "output", "type": "data"}],
            "workflow_outputs": [{"output_name": "output", "label": label}],
            "post_job_actions": {},
        }
    return {
        "a_galaxy_workflow": "true",
        "format-version": "0.1",
        "name": "Bases of a sequence",
        "annotation": "",
        "steps": steps,
    }


def _serve(place: Place, venv: Path) -> None:
    """The server and its worker, at the same time once a database with its tables is kept."""
    kept = venv / "universe.sqlite"
    words = {
        name: (place.folder / name).read_text().strip() for name in ("administrator", "secret")
    }
    config = place.write("galaxy.yml", CONFIG.format(folder=place.folder, **words))
    data = place.folder / "data"
    for folder in (data, place.folder / "config"):
        folder.mkdir()
    env = {
        "PATH": f"{venv}/bin:{ENVIRONMENT['PATH']}",
        "HOME": str(place.folder),
        "GALAXY_CONFIG_FILE": str(config),
    }
    here = ["env", "-C", str(place.folder)]
    server = [f"{venv}/bin/galaxy-web", "-c", str(config), "-b", f"127.0.0.1:{BEHIND}"]
    worker = [f"{venv}/bin/celery", "--app", "galaxy.celery", "worker", "--pool", "threads"]
    worker += ["--concurrency", "2", "--queues", "galaxy.internal,galaxy.external"]
    is_kept = kept.exists()
    if is_kept:
        shutil.copyfile(kept, data / "universe.sqlite")
        place.daemon([*here, *worker], env=env)
    place.daemon([*here, *server], env=env)
    place.wait_inside(BEHIND, 240)
    if not is_kept:
        _keep(data / "universe.sqlite", kept)
        place.daemon([*here, *worker], env=env)


def _keep(source: Path, target: Path) -> None:
    """A copy of a database that is in use."""
    partial = target.with_suffix(".partial")
    with closing(sqlite3.connect(source)) as used, closing(sqlite3.connect(partial)) as copy:
        used.backup(copy)
    partial.replace(target)


def _asked(
    place: Place, method: str, path: str, body: object = None, key: str = "administrator"
) -> object:
    """Galaxy's answer to the owner of an API key. Raises OSError."""
    request = urllib.request.Request(
        f"http://{place.address}:{PORT}/api/{path}",
        method=method,
        headers={
            "x-api-key": (place.folder / key).read_text().strip(),
            "Content-Type": "application/json",
        },
        data=None if body is None else json.dumps(body).encode(),
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        return json.loads(answer.read() or "null")


def _issue(place: Place) -> None:
    """An API key of the user's, in place of an earlier one."""
    user = (place.folder / "user").read_text().strip()
    place.write("token", f"{_asked(place, 'POST', f'users/{user}/api_key')}\n")


def _revoke(place: Place) -> None:
    """Twice is once."""
    user = (place.folder / "user").read_text().strip()
    _asked(place, "DELETE", f"users/{user}/api_key")


def _run_first_job(place: Place, seconds: float = 180) -> None:
    """An upload: with the first task the worker loads what all later ones need."""
    history = _asked(place, "POST", "histories", {"name": "first"}, "token")
    assert isinstance(history, dict)
    element = {"src": "pasted", "paste_content": "first\n", "ext": "txt", "name": "first"}
    target = {"destination": {"type": "hdas"}, "elements": [element]}
    _asked(
        place, "POST", "tools/fetch", {"history_id": history["id"], "targets": [target]}, "token"
    )
    deadline = time.monotonic() + seconds
    while True:
        shown = _asked(place, "GET", f"histories/{history['id']}", key="token")
        assert isinstance(shown, dict)
        if shown["state"] in ("ok", "error"):
            break
        if time.monotonic() > deadline:
            raise TestbedError(f"galaxy: no job ran within {seconds:g} s: {place.tail()}")
        time.sleep(0.3)
    if shown["state"] == "error":
        raise TestbedError(f"galaxy: the first job failed: {place.tail()}")
    _asked(place, "DELETE", f"histories/{history['id']}", {"purge": True}, "token")


def probe(place: Place) -> None:
    """It shows its version."""
    ask = f"GET /api/version HTTP/1.1\r\nHost: {place.address}\r\nConnection: close\r\n\r\n"
    place.hear(PORT, b"HTTP/1.1 200", ask.encode())


def facts(place: Place) -> dict[str, dict[str, object]]:
    """A workflow for one user."""
    entry: dict[str, object] = {
        "kind": "galaxy",
        "address": f"http://{place.address}:{PORT}",
        "token": f"{place.folder}/token",
        "workflow": f"{place.folder}/workflow.ga",
        "inputs": {"sequences": f"{place.folder}/sequences.fasta"},
        "results": json.loads((place.folder / "results.json").read_text()),
    }
    return {"galaxy": entry}


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong: those of tools concern jobs that are started later."""
    if lines.fault(place, name, value):
        return
    if name == "500":
        place.behave("500")
    elif name == "expired-token":
        _revoke(place)
    elif name == "queue-hangs":
        _asked(place, "PUT", "job_lock", {"active": True})
    else:
        tool, text = {
            "wrong-result": ("transpose", WRONG),
            "job-fails": ("count", FAILING),
            "tool-hangs": ("count", HANGING),
        }[name]
        (place.folder / "tools" / f"{tool}.py").write_text(text)


def mend(place: Place) -> None:
    """As it was started, with no tool that hangs and another API key."""
    _write_tools(place)
    place.stop(f"{place.folder}/tools/")
    _asked(place, "PUT", "job_lock", {"active": False})
    _revoke(place)
    _issue(place)
