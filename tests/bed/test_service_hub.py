"""A JupyterHub as its users meet it, each of its faults, and what a killed test leaves behind."""

import json
import re
import time
import urllib.error
import urllib.request
import uuid

import pytest
import services_fixture
import websocket
from services_fixture import breaking, ends, jobs, kill_at, records, until

from siteproof.services import jupyterhub, runner

pytestmark = [pytest.mark.services, pytest.mark.tool("JupyterHub")]
STEPS = ["login", "spawn", "kernel", "notebook", "stop", "clean"]
CUT_OFF = "closed|reset|in the middle"
AMPLE = 120  # seconds for each step that ends by itself
# Seconds for each step where no answer comes in time; those before it need a part of that.
SECONDS = {"hang": 2, "slow-line": 5, "spawn-hangs": 10}

FAULTS = [
    (("500",), "login", "generic", r"HTTP status 500 \(version\)"),
    (("expired-token",), "login", "login", r"HTTP status 40[13] \(user\)"),
    (("hang",), "login", "timeout", "no answer within 2 s"),
    (("spawn-fails",), "spawn", "generic", "the server has not started"),
    (("full-disk",), "notebook", "generic", r"HTTP status 500 \(upload\).*space"),
    (("wrong-checksum",), "notebook", "checksum", "the notebook is not as it was uploaded"),
    (("kernel-wrong-answer",), "notebook", "checksum", "the notebook printed '.*', expected"),
]
# The line: as of any page (test_web), and of other services.
LONG = [
    (("down",), "login", "generic", CUT_OFF),
    (("slow-line", "--value", "20"), "login", "timeout", "no answer within 5 s"),
    (("killed-in-the-middle", "--value", "100"), "login", "generic", CUT_OFF),
    (("spawn-hangs",), "spawn", "timeout", "the server is still starting after 9 s"),
]


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "hub")


@pytest.fixture
def job(bed, tmp_path):
    return jobs(bed, tmp_path, timeout=f"{AMPLE} s")


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


def nothing_is_left(bed, job):
    """Asked of the service, and seen in the user's folder."""
    assert runner.kind_of(job).found(job) == []
    assert not list((bed.state / "hub/home/alice").rglob("siteproof-*"))


def no_secret_is_in(bed, found):
    text = json.dumps(found)
    for name in ("hub/token", "hub/administrator"):
        assert (bed.state / name).read_text().strip() not in text


def named(rows, *marks):
    return [pytest.param(*row, id=row[0][0], marks=marks) for row in rows]


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
        until(lambda: self.servers()[""]["ready"], "the user's server is ready")

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
    until(lambda: not hub.servers(), "the user has no server")


@pytest.mark.parametrize(
    ("fault", "step", "status", "why"), named(FAULTS) + named(LONG, pytest.mark.long)
)
def test_a_fault_has_its_step_its_status_and_its_reason(bed, job, faulty, fault, step, status, why):
    faulty("hub", *fault)
    given = job("hub", timeout=f"{SECONDS.get(fault[0], AMPLE)} s")
    found = records(given)
    failed = {s: end for s, end in ends(found).items() if end[0] != "ok" and s != "clean"}
    assert list(failed) == [step]
    assert failed[step][0] == status
    assert re.search(why, failed[step][1])
    assert "Traceback" not in json.dumps(found)
    no_secret_is_in(bed, found)
    faulty.mend("hub")
    nothing_is_left(bed, job("hub"))


def test_a_hub_that_allows_no_user_is_a_login(job):
    assert ends(records(job("hub", user="mallory")))["login"] == (
        "login",
        "no user mallory that the token may see",
    )


@pytest.mark.parametrize(
    "step", ["notebook", *(pytest.param(one, marks=pytest.mark.long) for one in ("kernel", "stop"))]
)
def test_a_test_of_a_hub_that_is_killed_leaves_nothing_behind(bed, job, step):
    """At the notebook there are a server, a kernel and a file; at the others fewer."""
    given = job("hub")
    kill_at(given, step)
    until(lambda: jupyterhub.found(given) == [], "nothing is left at the hub", every=0.2)
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


def test_a_hub_that_works_passes_each_step(bed, job):
    """The last: also after all the faults above, which were mended."""
    given = job("hub")
    found = records(given)
    assert ends(found) == dict.fromkeys(STEPS, ("ok", ""))
    nothing_is_left(bed, given)
    no_secret_is_in(bed, found)


def test_credentials_are_for_root_only(bed):
    for path in ("hub/token", "hub/administrator", "hub/password"):
        assert (bed.state / path).stat().st_mode & 0o777 == 0o600
