"""`testbed/services` itself: each service by its own real client, each fault, and nothing left."""

import contextlib
import hashlib
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
import services_fixture
import urllib3
import yaml
from clone import wait_for
from services_fixture import PROGRAMS, Services, breaking
from testbed_fixture import Testbed

NAMES = ("sftp", "http", "kdc")
SIZE = 2_000_000  # bytes of a file
pytestmark = [pytest.mark.services, pytest.mark.tool("OpenSSH", "rsync", "nginx")]


@pytest.fixture(scope="module")
def bed(request):
    yield from services_fixture.started(request, *NAMES)


@pytest.fixture
def other(request):
    """A bed that nothing is in yet."""
    bed = Services(f"-{request.node.name[:40]}")
    yield bed
    bed.command("down")


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


@pytest.fixture
def data(tmp_path):
    """A file of random bytes."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(SIZE))
    return path


def site(bed):
    """The services that are up, as a site names them."""
    return yaml.safe_load(bed.must("site"))["services"]


def run(*argv, limit=8, **options):
    """A client; it fails if it has no answer within some seconds."""
    words = ["timeout", "--signal=KILL", str(limit), *map(str, argv)]
    return subprocess.run(words, capture_output=True, text=True, **options)


def same(one, two):
    """Whether two files have the same bytes."""
    return hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(two.read_bytes()).digest()


# The clients: a file there and back. Each gives what it said, and whether the bytes are right


def ssh_words(service, *more):
    words = ["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    words += ["-o", f"UserKnownHostsFile={service['known_hosts']}"]
    return [*words, "-o", "GlobalKnownHostsFile=/dev/null", *more]


def split(service):
    """Login and port of an address."""
    login, port = service["address"].rsplit(":", 1)
    return login, port


def by_sftp(service, data, *how, env=None):
    login, port = split(service)
    how = how or ("-i", service["key"], "-o", "IdentitiesOnly=yes")
    back = data.with_name("back")
    batch = f"put {data} {service['folder']}/x\nget {service['folder']}/x {back}\n"
    batch += f"rm {service['folder']}/x\n"
    words = ["sftp", "-b", "-", *ssh_words(service, *how), "-P", port, login]
    done = run(*words, input=batch, env=env)
    return done, back.exists() and same(data, back)


def by_rsync(service, data):
    login, port = split(service)
    ssh = ["ssh", *ssh_words(service, "-i", service["key"]), "-p", port]
    back, far = data.with_name("back"), f"{login}:{service['folder']}/x"
    for pair in ((data, far), (far, back)):
        done = run("rsync", "-e", " ".join(ssh), *pair)
        if done.returncode:
            break
    run(*ssh, login, f"rm -f {service['folder']}/x")
    return done, back.exists() and same(data, back)


def curl(service, *words):
    token = Path(service["token"]).read_text().strip()
    how = ["curl", "-sS", "--fail", "--cacert", service["certificates"], "-K", "-"]
    return run(*how, *words, input=f'header = "Authorization: Bearer {token}"\n')


def by_curl(service, data):
    back, far = data.with_name("back"), f"{service['address']}x"
    done = curl(service, "-T", data, far)
    if done.returncode == 0:
        done = curl(service, "-o", back, far)
        curl(service, "-X", "DELETE", far)
    return done, back.exists() and same(data, back)


def by_kerberos(service, data):
    env = os.environ | {
        "KRB5_CONFIG": service["krb5_config"],
        "KRB5CCNAME": f"FILE:{data.with_name('ticket')}",
    }
    done = run("kinit", "-k", "-t", service["keytab"], service["principal"], env=env)
    if done.returncode:
        return done, False
    how = "PubkeyAuthentication=no", "GSSAPIAuthentication=yes"
    return by_sftp(service, data, "-o", how[0], "-o", how[1], env=env)


CLIENTS = {"sftp": by_sftp, "rsync": by_rsync, "http": by_curl, "kerberos": by_kerberos}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_real_client_moves_a_file_there_and_back(bed, data, name):
    done, right = CLIENTS[name](site(bed)[name], data)
    assert done.returncode == 0, done.stderr
    assert right


def test_the_site_names_files_that_only_their_owner_may_read(bed):
    files = {
        path
        for service in site(bed).values()
        for key in ("key", "token", "keytab", "credentials")
        if (path := service.get(key))
    }
    assert len(files) == 3
    assert {Path(path).stat().st_mode & 0o777 for path in files} == {0o600}


def test_http_refuses_who_has_no_token_or_trusts_nobody(bed):
    service = site(bed)["http"]
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"]
    done = run(*words, "--cacert", service["certificates"], service["address"])
    assert done.stdout == "401"
    assert run(*words, service["address"]).returncode == 60  # the certificate is not trusted


def test_the_front_page_is_open_to_all(bed):
    portal = site(bed)["portal"]
    done = run("curl", "-sS", "--cacert", portal["certificates"], portal["address"])
    assert portal["content"] in done.stdout


def test_sshd_takes_no_other_key_than_the_users(bed, data):
    service = site(bed)["sftp"] | {"key": site(bed)["sftp"]["key"].replace("user", "other")}
    done, _ = by_sftp(service, data)
    assert "Permission denied" in done.stderr


def test_s3_by_a_client_of_s3(other, data):
    """Built from the module proxy of Go the first time: some minutes."""
    minio = pytest.importorskip("minio")
    other.up("s3")
    service = site(other)["s3"]
    keys = dict(line.split("=", 1) for line in Path(service["credentials"]).read_text().split())
    host = service["address"].removeprefix("http://")
    client = minio.Minio(host, keys["access_key"], keys["secret_key"], secure=False)
    back = data.with_name("back")

    def there_and_back():
        client.fput_object(service["bucket"], "x", str(data))
        client.fget_object(service["bucket"], "x", str(back))
        client.remove_object(service["bucket"], "x")
        return same(data, back)

    assert there_and_back()
    other.must("fault", "s3", "wrong-checksum")
    assert not there_and_back()
    other.must("mend", "s3")
    for fault, why in (
        ("expired-token", "SignatureDoesNotMatch"),
        ("500", "500"),
        ("full-disk", "500"),
    ):
        other.must("fault", "s3", fault)
        with pytest.raises((minio.error.MinioException, urllib3.exceptions.HTTPError), match=why):
            there_and_back()
        other.must("mend", "s3")
    assert there_and_back()


# Faults

LINE = ("sftp", "rsync", "http", "kerberos")
OF = {"rsync": "sftp", "kerberos": "kdc"}
CASES = [
    *((name, ("hang",), "") for name in LINE),
    *((name, ("down",), "closed|reset|SSL_ERROR_SYSCALL|unexpected eof") for name in LINE),
    *((name, ("slow-line", "--value", "800kbit"), "") for name in LINE),
    *(
        (name, ("killed-in-the-middle", "--value", "500kB"), "closed|broken|reset|SSL|Broken|lost")
        for name in LINE
    ),
    *((n, ("wrong-host-key",), "verification failed") for n in ("sftp", "rsync", "kerberos")),
    *((name, ("refused-key",), "Permission denied") for name in ("sftp", "rsync")),
    # 11: rsync, which sometimes has no words for it
    *((n, ("full-disk",), "Failure|No space left|error: 50|exit code 11$") for n in LINE),
    ("http", ("500",), "error: 500"),
    ("http", ("expired-token",), "error: 401"),
    ("http", ("expired-certificate",), "certificate has expired"),
    ("kerberos", ("expired-keytab",), "Preauthentication failed|Password incorrect"),
    ("kerberos", ("no-kdc",), "Cannot contact any KDC"),
]


@pytest.mark.parametrize(("name", "fault", "why"), CASES)
def test_a_client_meets_a_fault_until_it_is_mended(bed, faulty, data, name, fault, why):
    of = OF.get(name, name)
    faulty(of, *fault)
    done, _ = CLIENTS[name](site(bed)[name], data)
    assert done.returncode != 0
    text = f"{done.stderr} exit code {done.returncode}"
    assert re.search(why, text), text
    if not why:
        assert done.returncode == -signal.SIGKILL, done.stderr  # no answer within its time
    bed.must("mend", of)
    done, right = CLIENTS[name](site(bed)[name], data)
    assert done.returncode == 0 and right, done.stderr


@pytest.mark.parametrize("name", LINE)
def test_altered_bytes_come_back_without_an_error(bed, faulty, data, name):
    faulty(OF.get(name, name), "wrong-checksum")
    for _ in range(3):  # a file may have the inode of the one before it
        done, right = CLIENTS[name](site(bed)[name], data)
        assert done.returncode == 0, done.stderr
        assert not right


def test_a_mended_service_leaves_the_fault_of_another(bed, faulty, data):
    faulty("sftp", "wrong-checksum")
    faulty("kdc", "wrong-checksum")
    bed.must("mend", "kdc")
    assert not by_sftp(site(bed)["sftp"], data)[1]


def test_a_fault_takes_the_place_of_the_one_before(bed, faulty, data):
    faulty("sftp", "refused-key")
    faulty("sftp", "wrong-checksum")
    faulty("sftp", "wrong-checksum")  # twice altered would be right again
    done, right = by_sftp(site(bed)["sftp"], data)
    assert done.returncode == 0 and not right


def test_status_names_a_fault_and_a_service_that_does_not_answer(bed, faulty):
    assert bed.command("status").returncode == 0
    faulty("http", "full-disk")
    done = bed.command("status")
    assert done.returncode == 0
    assert "answers, fault: full-disk" in done.stdout
    faulty("sftp", "hang")
    done = bed.command("status")
    assert done.returncode == 1
    assert re.search(r"sftp .* does not answer, fault: hang", done.stdout), done.stdout


def test_a_service_that_has_died_does_not_answer(bed, faulty):
    """Its relay still takes connections."""
    faulty("sftp", "down")  # so that it is mended at the end, whatever happens
    bed.must("mend", "sftp")
    for proc in Path("/proc").glob("[0-9]*"):
        with_conf = f"{bed.state}/sftp/sshd.conf".encode()
        if with_conf in _read(proc / "cmdline") and (proc / "comm").read_text() == "sshd\n":
            os.kill(int(proc.name), signal.SIGKILL)
    wait_for(lambda: bed.command("status").returncode == 1)


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("fault", "sftp", "500"), "sftp has no fault '500'; it has: "),
        (("fault", "sftp", "hang", "--value", "1"), "hang takes no value"),
        (("fault", "sftp", "slow-line", "--value", "fast"), "'fast' is not a valid "),
        (("fault", "sftp", "slow-line", "--value", "0"), "'0' is out of range"),
        (("fault", "sftp", "killed-in-the-middle", "--value", "x"), "'x' is not a valid size"),
        (("fault", "s3", "hang"), "s3 is not up"),
        (("mend", "s3"), "s3 is not up"),
        (("up", "ftp"), "invalid choice: 'ftp'"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_is_allowed(bed, words, why):
    done = bed.command(*words)
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_list_of_faults_has_those_of_every_service(bed):
    rows = [line.split()[:2] for line in bed.must("fault").splitlines()]
    assert {name for name, _ in rows} >= {"sftp", "http", "s3", "kdc"}
    assert ["http", "expired-certificate"] in rows


# Up and down


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
        "links": {f"svc{number}" for number in re.findall(r"svc(\d+)", _links_of(bed))},
    }


def _links_of(bed):
    """Of the address of the bed, the link on this side."""
    address = site(bed)["sftp"]["address"].split("@")[1].split(":")[0]
    done = subprocess.run(["ip", "route", "get", address], capture_output=True, text=True)
    return done.stdout


def files_left(bed, before):
    """Files that are new and bear a name of the bed or of its daemons."""
    new = traces()["files"] - before["files"]
    return [p for p in new if p == bed.state or re.search("krb5|sshd|nginx|ssh-", p.name)]


def processes_of(bed):
    """Those that name its folder, in their command or environment."""
    name = str(bed.state).encode() + b"\0"
    procs = Path("/proc").glob("[0-9]*")
    return [p for p in procs if name in _read(p / "cmdline") + _read(p / "environ") + b"\0"]


def mounts_left(bed):
    return [
        line for line in Path("/proc/mounts").read_text().splitlines() if str(bed.state) in line
    ]


def test_down_leaves_nothing_behind_after_use_and_faults(other, data):
    before = traces()
    other.up(*NAMES)
    for name, client in CLIENTS.items():
        assert client(site(other)[name], data)[1]
    for name in NAMES:
        other.must("fault", name, "full-disk")
    other.must("fault", "sftp", "hang")
    login, port = split(site(other)["sftp"])
    run("sftp", *ssh_words(site(other)["sftp"]), "-P", port, login, limit=1)  # hangs
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("when", [0.05, 0.2, 0.5])
def test_an_interrupted_up_is_removed_by_down(other, number, when):
    before = traces()
    env = os.environ | {"SITEPROOF_SERVICES_STATE": str(other.state)}
    process = subprocess.Popen(
        [PROGRAMS / "services", "up", *NAMES], env=env, stderr=subprocess.PIPE, text=True
    )
    wait_for(other.state.exists)
    time.sleep(when)
    process.send_signal(number)
    assert "Traceback" not in process.communicate(timeout=60)[1]
    if process.returncode > 0:
        assert not other.state.exists()
    other.must("down")
    assert not other.state.exists()
    assert not mounts_left(other) and not files_left(other, before)
    wait_for(lambda: not processes_of(other))  # what was not yet noted down ends by itself


def test_an_interrupted_second_up_leaves_the_first(other):
    other.up("sftp")
    env = os.environ | {"SITEPROOF_SERVICES_STATE": str(other.state)}
    process = subprocess.Popen(
        [PROGRAMS / "services", "up", "http"], env=env, stderr=subprocess.PIPE
    )
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert "sftp" in other.must("status")
    other.up("http")
    assert "http" in other.must("status")


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


def test_two_beds_do_not_meet(bed, other, data):
    other.up("sftp")
    assert site(other)["sftp"]["address"] != site(bed)["sftp"]["address"]
    other.must("fault", "sftp", "refused-key")
    assert by_sftp(site(bed)["sftp"], data)[1]
    other.must("down")
    assert by_sftp(site(bed)["sftp"], data)[1]


def test_what_is_up_stays(bed):
    key = Path(site(bed)["sftp"]["key"]).read_text()
    bed.must("up", "sftp")
    assert Path(site(bed)["sftp"]["key"]).read_text() == key


@pytest.mark.parametrize("words", [("up", "sftp"), ("down",), ("status",), ("site",)])
def test_who_is_not_root_is_told_so(words):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # all may enter
        Path(folder).chmod(0o755)
        program = Path(folder) / "testbed"
        shutil.copytree(PROGRAMS, program)
        script = "import os, sys; os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
        words = [sys.executable, "-c", script, program / "services", *words]
        done = subprocess.run(words, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (2, "services: needs root\n")


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
