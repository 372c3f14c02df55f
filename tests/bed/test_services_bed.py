"""Beds of `testbed/services`: up, interrupted, down, and nothing left."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from services_clients import CLIENTS, run, split, ssh_words
from services_fixture import PROGRAMS, Services, link_to, own, processes_of, until
from testbed_fixture import Testbed

NAMES = ("sftp", "http", "kdc")
pytestmark = [pytest.mark.services, pytest.mark.tool("OpenSSH", "rsync", "nginx")]


@pytest.fixture
def other(request):
    """A bed that nothing is in yet."""
    yield from own(request)


@pytest.fixture
def data(tmp_path):
    """A file of random bytes."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(2_000_000))
    return path


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def traces():
    """What a bed could leave: processes, links, mounts, files. A namespace needs a process."""
    processes = {}
    for proc in Path("/proc").glob("[0-9]*"):
        line = _read(proc / "cmdline").replace(b"\0", b" ").decode(errors="replace")
        with contextlib.suppress(OSError):
            since = (proc / "stat").read_text().rpartition(")")[2].split()[19]
            processes[proc.name, since] = line, (proc / "ns/net").readlink()
    folders = ("/run", "/tmp", "/var/tmp", "/var/lib/krb5kdc", "/etc", "/root", "/dev/shm")
    return {
        "processes": processes,
        "links": {path.name for path in Path("/sys/class/net").iterdir()},
        "mounts": set(Path("/proc/mounts").read_text().splitlines()),
        "files": {path for folder in folders for path in Path(folder).iterdir()},
    }


def of(bed, before, now):
    """What is there now and was not before, of this bed: other tests run beside this one."""
    pid = json.loads((bed.state / "bed.json").read_text())["pid"]
    space = (Path("/proc") / pid / "ns/net").readlink()
    return {
        "processes": {
            one
            for one, (line, net) in now["processes"].items()
            if net == space or str(bed.state) in line or f"nsenter -t {pid} " in line
        },
        "links": {link_to(split(bed.site["sftp"])[0].partition("@")[2])},
    }


def files_left(bed, before):
    """Files that are new and bear a name of the bed or of its daemons."""
    new = traces()["files"] - before["files"]
    return [p for p in new if p == bed.state or re.search("krb5|sshd|nginx|ssh-", p.name)]


def mounts_left(bed):
    return [
        line for line in Path("/proc/mounts").read_text().splitlines() if str(bed.state) in line
    ]


def test_down_leaves_nothing_behind_after_use_and_faults(other, data):
    before = traces()
    other.up(*NAMES)
    for name, client in CLIENTS.items():
        assert client(other.site[name], data)[1]
    for name in NAMES:
        other.must("fault", name, "full-disk")
    other.must("fault", "sftp", "hang")
    login, port = split(other.site["sftp"])
    run("sftp", *ssh_words(other.site["sftp"]), "-P", port, login, limit=1)  # hangs
    mine = of(other, before, traces())
    assert len(mine["processes"]) > 10 and mine["links"]
    other.must("down")
    after = traces()
    assert not mine["processes"] & set(after["processes"])
    assert not mine["links"] & after["links"]
    assert not mounts_left(other) and not files_left(other, before)
    assert not other.state.exists()
    assert other.command("status").returncode == 1
    assert other.command("down").returncode == 0


def starting(bed, *names):
    argv = [PROGRAMS / "services", "up", *names]
    return subprocess.Popen(argv, env=bed.environment, stderr=subprocess.PIPE, text=True)


INTERRUPTED = [  # when a folder of the bed is there; of Ctrl-C and SIGTERM the same becomes
    (signal.SIGINT, "http"),
    (signal.SIGTERM, "kdc"),
    (signal.SIGKILL, "."),
    (signal.SIGKILL, "http"),
    (signal.SIGKILL, "kdc"),
]
ALSO = [(n, w) for n in (signal.SIGINT, signal.SIGTERM) for w in (".", "http", "kdc")]
ALSO = [pytest.param(*one, marks=pytest.mark.long) for one in ALSO if one not in INTERRUPTED]


@pytest.mark.parametrize(("number", "folder"), INTERRUPTED + ALSO)
def test_an_interrupted_up_is_removed_by_down(other, number, folder):
    before = traces()
    process = starting(other, *NAMES)
    until((other.state / folder).exists, f"the folder {folder} of a bed that starts", every=0.01)
    process.send_signal(number)
    assert "Traceback" not in process.communicate(timeout=60)[1]
    assert process.returncode in (128 + number, -number)
    if process.returncode > 0:
        assert not other.state.exists()
    other.must("down")
    assert not other.state.exists()
    assert not mounts_left(other) and not files_left(other, before)
    # What was not yet noted down ends by itself.
    until(lambda: not processes_of(other), "no process of the bed")


def test_an_interrupted_second_up_leaves_the_first(other):
    other.up("sftp")
    process = starting(other, "http")
    until((other.state / "http").exists, "the folder of http, which starts", every=0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert "sftp" in other.must("status")
    other.up("http")
    assert "http" in other.must("status")


def test_nothing_is_left_of_a_hub_and_a_desktop_and_a_desktop_comes_up_again(other):
    sockets = [Path("/tmp/.X7-lock"), Path("/tmp/.X11-unix/X7")]
    before = [path.exists() for path in sockets]
    for names in (("hub", "desktop"), ("desktop",)):
        other.up(*names)
        assert other.command("status").returncode == 0
        link = link_to(other.site["vnc"]["address"].partition(":")[0])
        assert processes_of(other)
        other.must("down")
        assert not other.state.exists()
        assert not Path("/sys/class/net", link).exists()
        assert processes_of(other) == []
        assert [path.exists() for path in sockets] == before


def test_down_removes_no_folder_that_is_none_of_services(tmp_path):
    bed = Services("")
    bed.state = tmp_path / "of-mine"
    bed.state.mkdir()
    (bed.state / "thesis").write_text("dear")
    for words in (("down",), ("up", "sftp")):
        done = bed.command(*words)
        assert done.returncode == 2
        assert f"{bed.state} is not a folder of services" in done.stderr
    assert [p.name for p in bed.state.iterdir()] == ["thesis"]


def test_a_command_on_no_bed_makes_none(other):
    for words in (("fault", "sftp", "hang"), ("mend", "sftp"), ("status",), ("down",)):
        other.command(*words)
        assert not other.state.exists(), words


def test_who_is_not_root_is_told_so():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # all may enter
        Path(folder).chmod(0o755)
        program = Path(folder) / "testbed"
        shutil.copytree(PROGRAMS, program)
        script = "import os, sys; os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
        said = {}
        for words in (("up", "sftp"), ("down",), ("status",), ("site",)):
            argv = [sys.executable, "-c", script, program / "services", *words]
            done = subprocess.run(argv, capture_output=True, text=True)
            said[words] = done.returncode, done.stderr
        assert set(said.values()) == {(2, "services: needs root\n")}, said


def test_services_at_the_address_of_a_host_are_in_its_network(other):
    """A network that is another process's, as a node's; over the long link: the test below."""
    address = "10.78.1.1"
    script = f"ip link set lo up; ip address add {address}/32 dev lo; echo up; exec sleep infinity"
    argv = ["unshare", "--net", "sh", "-ec", script]
    host = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def there(*words):
        argv = ["nsenter", "-t", str(host.pid), "-n", "--", *words]
        return subprocess.run(argv, env=other.environment, capture_output=True, text=True)

    def ssh(address):
        return ["ssh", *ssh_words(service, "-i", service["key"]), address, "echo", "met"]

    services = PROGRAMS / "services"
    try:
        assert host.stdout.readline() == "up\n"
        for words in (("up", "sftp", "--at", address), ("status",)):
            done = there(services, *words)
            assert done.returncode == 0, done.stderr
        wrong = there(services, "up", "http", "--at", "10.1.1.1")
        assert (wrong.returncode, wrong.stderr) == (2, f"services: services are up at {address}\n")
        service = yaml.safe_load(there(services, "site").stdout)["services"]["sftp"]
        assert service["address"] == f"root@{address}:22"
        met = there(*ssh(f"root@{address}"))
        assert (met.returncode, met.stdout) == (0, "met\n"), met.stderr
        assert there(services, "down").returncode == 0
        assert not other.state.exists()
    finally:
        there(services, "down")
        host.kill()
        host.communicate()


@pytest.mark.long
def test_a_service_on_a_node_is_met_over_the_long_link(other):
    """On node003, at the other site; from node001 a round trip takes its 50.5 ms."""
    cluster = Testbed("-services")
    cluster.environment |= {"SITEPROOF_SERVICES_STATE": str(other.state)}
    try:
        cluster.up("4", "--sites", "2", "--wan", "50.5ms,1gbit")
        env = os.environ | cluster.environment
        shown = cluster.run(["ip", "-o", "-4", "addr", "show", "eth0"], node="node003").stdout
        address = re.search(r"inet ([0-9.]+)", shown)[1]

        def services(*words):
            return cluster.run([PROGRAMS / "services", *words], node="node003", env=env)

        for words in (("up", "sftp", "--at", address), ("status",)):
            done = services(*words)
            assert done.returncode == 0, done.stderr
        wrong = services("up", "http", "--at", "10.1.1.1")
        assert (wrong.returncode, wrong.stderr) == (2, f"services: services are up at {address}\n")
        service = yaml.safe_load(services("site").stdout)["services"]["sftp"]
        assert service["address"] == f"root@{address}:22"
        login, port = split(service)
        words = ["ssh", *ssh_words(service, "-i", service["key"]), "-p", port, login, "hostname"]
        begun = time.monotonic()
        far = cluster.run(words, node="node001")
        assert time.monotonic() - begun > 3 * 0.0505, far  # TCP, and SSH's own greetings and keys
        assert far.returncode == 0, far.stderr
        assert services("down").returncode == 0
        assert not other.state.exists()
    finally:
        cluster.down()
