"""Availability from the node events of a real slurmdbd, and from a service that is stopped."""

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from clone import TOP
from testbed_fixture import until

pytestmark = [pytest.mark.testbed, pytest.mark.tool("Slurm", "MariaDB and slurmdbd")]

PROBES = """
probes:
  controller: {kind: tcp, target: 'login:6817', interval: 9 min, timeout: 5 s}
  portal: {kind: http, target: 'http://node002:8080/', interval: 9 min, timeout: 5 s, gateway: true}
"""
SERVER = """
import http.server, os
print(os.getpid(), flush=True)
http.server.test(http.server.SimpleHTTPRequestHandler, port=8080)
"""


@pytest.fixture
def siteproof(testbed, tmp_path):
    """Runs siteproof on the login node, with a site that has probes."""
    sites, data = tmp_path / "sites", tmp_path / "data"
    shutil.copytree(TOP / "site-config/testbed", sites / "testbed")
    path = sites / "testbed/system.yaml"
    port = testbed.must("run", "scontrol", "show", "config").partition("SlurmctldPort")[2]
    probes = PROBES.replace("6817", port.split()[1])
    path.write_text(path.read_text() + probes)
    data.mkdir()

    def run(*words):
        line = (
            f"cd '{TOP}' && . ./activate && SITEPROOF_SITES='{sites}' SITEPROOF_DATA='{data}' "
            f"exec siteproof {' '.join(words)}"
        )
        return testbed.run(["sh", "-c", line])

    return run


@pytest.fixture
def portal(testbed):
    """Starts a web server on node002; gives what stops it."""
    line = [testbed.program, "run", "--node", "node002", "--", sys.executable, "-c", SERVER]
    process = subprocess.Popen(
        line,
        env=os.environ | testbed.environment,
        cwd=testbed.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    number = process.stdout.readline().strip()  # of the process within the node

    def stop():
        if process.poll() is None:
            testbed.must("run", "--node", "node002", "kill", number)
            process.wait(30)

    yield stop
    stop()
    process.stdout.close()


def now():
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"


class Outage:
    """How long something can have been away, in seconds: between these two bounds."""

    def __init__(self, take, give):
        begin = time.time()
        take()
        taken = time.time()
        # Slurm counts whole seconds: an outage within one of them has no length.
        until(lambda: time.time() > taken + 2, "the clock to go on")
        back = time.time()
        give()
        self.least, self.most = back - taken - 1, time.time() - begin + 1

    def __contains__(self, seconds):
        return self.least <= seconds <= self.most


def test_events_of_slurmdbd_and_a_stopped_service_give_their_shares(testbed, siteproof, portal):
    until(lambda: siteproof("probe", "portal").returncode == 0, "the portal")
    begin = now()
    assert siteproof("probe", "controller", "portal").returncode == 0

    def update(*words):
        testbed.must("run", "scontrol", "update", *words)

    drained = Outage(
        lambda: update("nodename=node003", "state=drain", "reason=fan|loud"),
        lambda: update("nodename=node003", "state=resume"),
    )
    portal()
    stopped = time.time()
    done = siteproof("probe", "controller", "portal")
    assert (done.returncode, "portal: DOWN" in done.stdout) == (1, True)
    lost = Outage(lambda: testbed.lose_power("node005"), lambda: testbed.power_on("node005"))
    back = time.time()
    until(lambda: time.time() > back + 2, "the clock to go on")
    assert siteproof("probe", "controller", "portal").returncode == 1
    done = siteproof("availability", "--fetch", "--from", begin, "--json")
    read = json.loads(done.stdout)
    rows = {one["name"]: one for one in read["subjects"]}
    nodes = {name: row for name, row in rows.items() if row["kind"] == "node"}
    assert {name for name, row in nodes.items() if row["failures"]} == {"node003", "node005"}
    assert nodes["node003"]["unscheduled_hours"] * 3600 in drained
    assert nodes["node005"]["unscheduled_hours"] * 3600 in lost
    down = sum(row["unscheduled_hours"] for row in nodes.values())
    measured = sum(row["measured_hours"] for row in nodes.values())
    assert read["definitions"]["node_overall"] == pytest.approx(100 * (1 - down / measured))
    assert read["definitions"]["system_overall"] == 100, "one node of eight is not the system"
    assert len(nodes) == 8
    assert rows["portal"]["unscheduled_hours"] * 3600 > back - stopped - 1
    assert all(why["kind"] != "lines_broken" for why in read["findings"])
    again = siteproof("availability", "--from", begin, "--to", read["end"][:19], "--json")
    told = json.loads(again.stdout)
    assert told["definitions"] == read["definitions"], "the record answers without slurmdbd"
