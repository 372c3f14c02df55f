"""The clients of transfers against real services, and against each of their faults.

What a user sees of it by reframe and verdict: test_service_checks.
"""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
import services_fixture
from services_fixture import breaking, ends, jobs, records

from siteproof.services import runner, s3, sftp

TOOLS = pytest.mark.tool("OpenSSH", "rsync", "nginx", "versitygw (S3)", "MIT Kerberos")
pytestmark = [pytest.mark.services, TOOLS]
SMALL = {"size": "2 MiB", "files": 3, "file_size": "4 KiB"}
OF = {"sftp": "sftp", "rsync": "sftp", "http": "http", "s3": "s3", "kerberos": "kdc"}
FOLDERS = ("sftp/incoming", "http/data/dav", "s3/data/siteproof", "kdc/incoming")
STEPS = ["login", "quota", "put", "get", "put_many", "get_many", "clean"]
HALF = ("killed-in-the-middle", "--value", "500000")
SLOW = ("slow-line", "--value", "100000")
CUT_OFF = "closed|reset|Broken pipe|EOF|without response|in the middle|write error"
SILENT = "no answer within (2|5|10) s|timed out"
CHANGED = "REMOTE HOST IDENTIFICATION HAS CHANGED"
NO_ROOM = "the service has .* free, 2.012 MiB are needed"
# For each step: some where no answer comes in time; else nobody waits for it, so that it is ample.
SECONDS = {("s3", "full-disk"): 8, ("kerberos", "hang"): 10, "hang": 2, "slow-line": 5}
AMPLE = 60

FAULTS = [
    ("sftp", ("wrong-host-key",), "login", "login", CHANGED),
    ("sftp", ("refused-key",), "login", "login", r"Permission denied \(publickey"),
    ("sftp", ("full-disk",), "quota", "generic", NO_ROOM),
    ("sftp", ("wrong-checksum",), "put", "checksum", "the far end has another checksum"),
    ("sftp", ("hang",), "login", "timeout", SILENT),
    ("sftp", ("down",), "login", "generic", "closed|reset"),
    ("sftp", SLOW, "put", "timeout", SILENT),
    ("sftp", HALF, "put", "generic", f"put large: .*({CUT_OFF})"),
    ("rsync", ("full-disk",), "quota", "generic", NO_ROOM),
    ("rsync", ("wrong-checksum",), "put", "checksum", "the far end has another checksum"),
    ("rsync", HALF, "put", "generic", f"rsync.*({CUT_OFF})"),
    ("http", ("500",), "login", "generic", r"HTTP status 500 \(of the folder\)"),
    ("http", ("expired-token",), "login", "login", r"HTTP status 401 \(of the folder\)"),
    ("http", ("expired-certificate",), "login", "login", "certificate has expired"),
    ("http", ("full-disk",), "put", "generic", r"HTTP status 50[07] \(PUT\)"),
    ("http", ("wrong-checksum",), "get", "checksum", "what came back has another checksum"),
    ("http", ("hang",), "login", "timeout", SILENT),
    ("http", HALF, "put", "generic", CUT_OFF),
    ("s3", ("500",), "login", "generic", "HTTP status 500"),
    ("s3", ("expired-token",), "login", "login", "SignatureDoesNotMatch"),
    # An S3 server may answer before it has the file, and read no further: both are seen.
    ("s3", ("full-disk",), "put", "generic|timeout", ".+"),
    ("s3", ("wrong-checksum",), "get", "checksum", "what came back has another checksum"),
    ("s3", ("hang",), "login", "timeout", SILENT),
    ("s3", HALF, "put", "generic", CUT_OFF),
    ("kerberos", ("expired-keytab",), "ticket", "login", "Password incorrect|Preauthentication"),
    ("kerberos", ("no-kdc",), "ticket", "generic", "Cannot contact any KDC"),
]
# The same code of ours meets the same fault as in a row above: of ssh, of sftp, or of the runner.
AGAIN = [
    ("rsync", ("wrong-host-key",), "login", "login", CHANGED),
    ("rsync", ("hang",), "login", "timeout", SILENT),
    ("rsync", SLOW, "put", "timeout", SILENT),
    ("http", SLOW, "put", "timeout", SILENT),
    ("s3", SLOW, "put", "timeout", SILENT),
    ("kerberos", ("wrong-host-key",), "login", "login", CHANGED),
    ("kerberos", ("full-disk",), "quota", "generic", NO_ROOM),
    ("kerberos", ("hang",), "login", "timeout", SILENT),
    ("kerberos", HALF, "put", "generic", f"put large: .*({CUT_OFF})"),
]


def named(rows, *marks):
    return [pytest.param(*row, id=f"{row[0]}-{row[1][0]}", marks=marks) for row in rows]


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "sftp", "http", "s3", "kdc")


@pytest.fixture
def job(bed, tmp_path):
    return jobs(bed, tmp_path, **SMALL, timeout=f"{AMPLE} s")


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


def files_left(bed):
    """What is on the services' disks, without what they keep for themselves."""
    found = [p for folder in FOLDERS for p in (bed.state / folder).rglob("*")]
    return [p for p in found if p.name not in ("filler", ".sgwtmp") and not of_the_gateway(p)]


def of_the_gateway(path):
    """A file that was cut off, if the S3 server was mended, thus killed, before it removed that."""
    return path.parent.name == ".sgwtmp" and path.is_file()


def must_not_show_secrets(bed, text):
    """The token, the keys of S3, and the private key without its frame."""
    hidden = [(bed.state / "http/token").read_text().strip()]
    hidden += [line.split("=")[1] for line in (bed.state / "s3/credentials").read_text().split()]
    hidden += (bed.state / "sftp/user").read_text().splitlines()[1:3]
    assert not any(secret in text for secret in hidden)


@pytest.mark.parametrize("name", OF)
def test_files_go_there_and_back_and_nothing_is_left(bed, job, name):
    found = records(job(name))
    wanted = (["ticket"] if name == "kerberos" else []) + STEPS
    assert ends(found) == {step: ("ok", "") for step in wanted}
    rates = [r for r in found if r.get("metric") == "rate"]
    ways = [(r["dims"]["sender"], r["dims"]["receiver"], r["dims"]["files"]) for r in rates]
    assert sorted(ways) == sorted(
        (*way, n) for way in (("mine", name), (name, "mine")) for n in "13"
    )
    assert all(float(r["value"]) > 0 for r in rates)
    checksum = "read back" if name == "http" else "far end"
    assert {"checksum": checksum} in [r["conditions"] for r in found if "conditions" in r]
    assert files_left(bed) == []
    must_not_show_secrets(bed, json.dumps(found))


def test_a_ticket_is_passed_on_and_one_that_may_not_be_is_missing_there(bed, job, monkeypatch):
    assert ends(records(job("kerberos", forward=True)))["forward"] == ("ok", "")
    first = (*sftp._AUTH, "GSSAPIDelegateCredentials no")  # the first of a key counts
    monkeypatch.setattr(sftp, "_AUTH", first)
    status, why = ends(records(job("kerberos", forward=True)))["forward"]
    assert (status, "klist" in why) == ("generic", True), why


@pytest.mark.parametrize(
    ("name", "fault", "step", "status", "why"), named(FAULTS) + named(AGAIN, pytest.mark.long)
)
def test_a_fault_is_named_and_what_was_made_can_be_removed(
    bed, job, faulty, capfd, name, fault, step, status, why
):
    faulty(OF[name], *fault)
    seconds = SECONDS.get((name, fault[0])) or SECONDS.get(fault[0], AMPLE)
    found = records(job(name, timeout=f"{seconds} s"))
    first = next(r for r in found if r.get("status", "ok") != "ok")
    assert first["end"]["step"] == step, ends(found)
    assert first["status"] in status.split("|"), ends(found)
    assert re.search(why, first["why"]), first["why"]
    shown = json.dumps(found) + "".join(capfd.readouterr())
    assert "Traceback" not in shown
    must_not_show_secrets(bed, shown)
    faulty.mend(OF[name])
    again = job(name)
    kind = runner.kind_of(again)
    for left in kind.found(again):
        kind.remove(again, left)
    assert kind.found(again) == []
    assert files_left(bed) == []


def test_what_is_not_ours_is_neither_found_nor_removed(bed, job):
    """A name that begins as ours, and one that would be a path or an option."""
    for name, folder in zip(OF, ("sftp", "sftp", "http", "s3", "kdc"), strict=True):
        top = next(bed.state / f for f in FOLDERS if f.startswith(folder))
        for other in ("notes", "siteproof-x y", "-rf"):
            (top / other).mkdir()
        one = job(name)
        kind = runner.kind_of(one)
        assert kind.found(one) == []
        kind.remove(one, one.mark)  # it is gone: no error
        assert {p.name for p in top.iterdir()} >= {"notes", "siteproof-x y", "-rf"}
        for other in ("notes", "siteproof-x y", "-rf"):
            (top / other).rmdir()


def test_an_upload_to_s3_that_was_not_completed_is_found_and_removed(bed, job):
    one = job("s3")
    bucket = s3.Bucket(one)
    key = f"{one.mark}/large"
    bucket._s3._create_multipart_upload(one.service.bucket, key, {})
    assert s3.KINDS["s3"].found(one) == [one.mark]
    s3.KINDS["s3"].remove(one, one.mark)
    assert s3.KINDS["s3"].found(one) == []


def test_a_large_object_is_sent_in_parts_and_its_etag_agrees(bed, job, monkeypatch):
    monkeypatch.setattr(s3, "PART", 5 * 2**20)
    found = records(job("s3", size="12 MiB", files=0))
    assert ends(found)["put"] == ends(found)["get"] == ends(found)["clean"] == ("ok", "")


def test_a_folder_with_any_characters_is_a_folder(bed, job):
    folder = bed.state / "sftp/incoming" / 'of [all] *\'s "data" \\ 100% $HOME'
    folder.mkdir()
    for name in ("sftp", "rsync"):
        found = records(job(name, folder=str(folder)))
        assert {status for status, _ in ends(found).values()} == {"ok"}, ends(found)
    assert list(folder.iterdir()) == []
    folder.rmdir()


def test_a_folder_that_is_not_there_is_named(bed, job):
    for name in ("sftp", "rsync", "kerberos"):
        status, why = ends(records(job(name, folder="/no/such/folder")))["login"]
        assert status == "generic"
        assert "/no/such/folder" in why
        assert "No such file" in why


def test_credentials_are_in_no_argument_and_no_environment_of_a_process(bed, job, faulty):
    for name in ("sftp", "http", "s3"):
        faulty(name, "slow-line", "--value", "3000000")
    seen = []
    for name in OF:
        runner.run(job(name), lambda record: seen.append(_processes()))
    assert any("ssh_config" in text for text in seen)
    must_not_show_secrets(bed, "".join(seen))


def _processes():
    """What any user sees of all processes, and their owner besides; not of the S3 server."""
    texts = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if b"/versitygw" not in text:
                texts.append(text.decode(errors="replace"))
    return "".join(texts)


def test_a_certificate_that_nobody_trusts_is_named(bed, job, tmp_path):
    other = tmp_path / "ca.pem"
    other.write_text(Path("/etc/ssl/certs/ca-certificates.crt").read_text())
    status, why = ends(records(job("http", certificates=str(other))))["login"]
    assert status == "login"
    assert "unable to get local issuer certificate" in why
