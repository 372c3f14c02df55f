"""lustre.sh: real packages and owners; lfs and lctl are the texts of the Lustre manual."""

import os
import shutil
import subprocess

import pytest
from clone import TOP
from rows import rows

from siteproof.collect.derive import Measured, host
from siteproof.collect.raw import Raw
from siteproof.parsers import lustre as parser

SHARED = TOP / "siteproof/checks/on_node"
SCRIPT = TOP / "checks/storage/lustre.sh"
LFS = """#!/bin/sh
case $1 in
osts) echo OBDS:; echo "0: testfs-OST0000_UUID ACTIVE"; echo "1: testfs-OST0001_UUID ACTIVE" ;;
df) cat "$ANSWERS" ;;
esac
"""
LCTL = """#!/bin/sh
echo "$*" >>"$ASKED"
[ "$2" = "$REFUSED" ] && { echo "error: get_param: param_path '$2': No such file" >&2; exit 2; }
case $2 in *.ost_conn_uuid)
    echo "osc.testfs-OST0000-osc-ffff8800.ost_conn_uuid=10.0.0.2@tcp"
    echo "osc.testfs-OST0001-osc-ffff8800.ost_conn_uuid=10.0.0.2@tcp"
    exit ;;
esac
echo "${2%\\**}x.srpc_info="
echo "rpc flavor:     $FLAVOR"
"""
ANSWERS = """UUID                   1K-blocks        Used   Available Use% Mounted on
testfs-OST0000_UUID     98706432     5615616    93088768   6% /mnt/testfs[OST:0]
testfs-OST0001_UUID    100038656     3591168    96445440   4% /mnt/testfs[OST:1]
"""
needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="NOT TESTED: no dpkg")


class Client:
    """A folder as a file system, Lustre's tools, and a system of packages of its own."""

    def __init__(self, folder):
        self.top, self.here, self.root = folder / "testfs", folder / "here", folder / "root"
        for path in (self.top, self.here, folder / "bin", self.root / "var/lib/dpkg/updates"):
            path.mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").touch()
        self.bin, self.deb = folder / "bin", folder / "deb"
        self.program("lfs", LFS)
        self.program("lctl", LCTL)
        mounts = folder / "mounts"
        mounts.write_text(f"/dev/a / ext4 rw 0 0\n10.0.0.1@tcp:/testfs {self.top} lustre rw 0 0\n")
        for name in ("account.sh", "file_system.sh"):
            text = (SHARED / name).read_text().replace("/proc/self/mounts", str(mounts))
            (self.here / name).write_text(text)
        answers, self.asked = folder / "answers", folder / "asked"
        answers.write_text(ANSWERS)
        self.values = {
            "ANSWERS": answers,
            "ASKED": self.asked,
            "FLAVOR": "krb5i",
            "REFUSED": "",
            "FS_PATH": self.top,
            "FS_KIND": "lustre",
            "PACKAGES": "lustre*",
            "OWNERS": "",
            "DPKG_ROOT": self.root,
            "DPKG_ADMINDIR": self.root / "var/lib/dpkg",
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self):
        """The script's end, with what it has printed."""
        text = f". ./account.sh; . {SCRIPT}"
        (self.here / "meta").write_text("node=n1\n")
        words = ["sh", "-c", text, "measure", str(self.here)]
        environ = os.environ | {key: str(value) for key, value in self.values.items()}
        return subprocess.run(words, cwd=self.here, env=environ, capture_output=True, text=True)

    def read(self):
        """Counts and named things, as they become samples."""
        done = self.run()
        assert done.returncode == 0, done
        given = Measured(parser.parse(done.stdout), {}, Raw({}, {}, done.stdout, done.stderr), {})
        readings = host.lustre(given)[0]
        counts = {r.metric: int(r.value) for r in readings if r.unit == "count"}
        named = {
            next(iter(r.dims.values()), r.metric): r.value for r in readings if r.unit == "text"
        }
        return counts, named

    def install(self, name, **files):
        """A real package with files below /opt; `etc` is marked as configuration."""
        (self.deb / "DEBIAN").mkdir(parents=True)
        (self.deb / "opt").mkdir()
        for file, text in files.items():
            (self.deb / "opt" / file).write_text(text)
        if "etc" in files:
            (self.deb / "DEBIAN/conffiles").write_text("/opt/etc\n")
        about = (
            f"Package: {name}\nVersion: 2.15\nArchitecture: all\nMaintainer: x\nDescription: x\n"
        )
        (self.deb / "DEBIAN/control").write_text(about)
        sums = subprocess.check_output("md5sum opt/*", shell=True, cwd=self.deb)
        (self.deb / "DEBIAN/md5sums").write_bytes(sums)
        package = self.deb.with_suffix(".deb")
        environ = {key: value for key, value in os.environ.items() if not key.startswith("DPKG_")}
        for words in (
            ["dpkg-deb", "--root-owner-group", "-b", self.deb, package],
            ["dpkg", f"--root={self.root}", "--force-not-root", "--log=/dev/null", "-i", package],
        ):
            subprocess.run(words, check=True, env=environ, capture_output=True)
        return self.root / "opt"


@pytest.fixture
def client(tmp_path):
    return Client(tmp_path)


def test_targets_and_connections_of_this_file_system_are_counted(client):
    counts, named = client.read()
    assert counts["osts_up"] == counts["osts"] == 2
    assert named["targets_of_servers"] == "1x2"
    assert (counts["connections"], counts["without_kerberos"]) == (3, 0)
    asked = client.asked.read_text().split("\n")
    assert asked[:3] == [
        "get_param osc.testfs-*.srpc_info",
        "get_param mdc.testfs-*.srpc_info",
        "get_param mgc.*.srpc_info",
    ]


def test_a_target_that_does_not_answer_is_not_up(client):
    answers = client.values["ANSWERS"]
    answers.write_text(ANSWERS.replace(ANSWERS.splitlines()[2], "OST0001 : Connection timed out"))
    counts, named = client.read()
    assert (counts["osts"], counts["osts_up"]) == (2, 1)
    assert named["testfs-OST0001_UUID"] == "does not answer"


def test_connections_of_another_flavour_are_counted_and_named(client):
    client.values["FLAVOR"] = "null"
    counts, named = client.read()
    assert counts["without_kerberos"] == 3
    assert named["osc.testfs-x"] == "null"


def test_flavours_that_may_not_be_read_are_no_zero(client):
    client.values["REFUSED"] = "mdc.testfs-*.srpc_info"
    counts, named = client.read()
    assert "without_kerberos" not in counts
    assert "No such file" in named["without_kerberos"]


def test_without_packages_or_a_list_there_is_no_zero(client):
    counts, named = client.read()
    assert not {"altered_files", "wrong_owners"} & counts.keys()
    assert named["altered_files"] == "no package of lustre* is installed"
    assert named["wrong_owners"].startswith("no list is given by 'owners' of the file system")


@needs_dpkg
@pytest.mark.tool("dpkg")
def test_an_altered_and_a_missing_file_of_a_real_package_are_counted(client):
    there = client.install("lustre-client-utils", lfs="a program", man="a page", etc="a setting")
    counts, _ = client.read()
    assert (counts["packages"], counts["altered_files"], counts["altered_settings"]) == (1, 0, 0)
    (there / "lfs").write_text("another program")
    (there / "man").unlink()
    (there / "etc").write_text("another setting")
    counts, named = client.read()
    assert (counts["packages"], counts["altered_files"], counts["altered_settings"]) == (1, 2, 1)
    assert named["/opt/lfs"] == "??5??????"
    assert named["/opt/man"] == "missing"


@needs_dpkg
def test_packages_of_other_names_are_not_compared(client):
    client.install("other", lfs="a program")
    assert "altered_files" not in client.read()[0]


def test_owners_are_compared_with_the_list(client):
    client.values["OWNERS"] = "owners of uf"
    user = os.getuid()
    (client.top / "a b").touch()
    (client.top / "link").symlink_to("nowhere")
    (client.top / "owners of uf").write_text(
        f"# path, uid\n\na b {user}\nlink {user}\na b {user + 1}\ngone {user}\n"
    )
    counts, named = client.read()
    assert (counts["owners"], counts["wrong_owners"]) == (4, 2)
    assert named["a b"] == f"expected {user + 1}, found {user}"
    assert named["gone"] == f"expected {user}, found none"


@rows("text", ["../x 1\n", "/etc/passwd 1\n", "1\n", "a x\n", "a\n", "a 1\n" * 1001])
def test_a_list_that_is_none_is_not_read(tmp_path, text):
    client = Client(tmp_path)
    client.values["OWNERS"] = "list"
    (client.top / "a").touch()
    (client.top / "list").write_text(text)
    counts, named = client.read()
    assert "wrong_owners" not in counts
    assert named["wrong_owners"].startswith(f"{client.top}/list has ")


def test_a_client_without_lfs_is_named(client):
    (client.bin / "lfs").unlink()
    client.values["PATH"] = f"{client.bin}:/usr/bin:/bin"
    done = client.run()
    assert (done.returncode, done.stderr) == (127, "lfs is not installed: it is a part of Lustre\n")


def test_another_file_system_at_the_path_is_refused(client):
    client.values["FS_PATH"] = client.here
    done = client.run()
    assert done.returncode == 1
    assert "expected lustre as in the site: is it mounted?" in done.stderr
