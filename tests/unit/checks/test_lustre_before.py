"""What file_system.sh does before it writes to Lustre, with a stand-in for `lfs`.

No Lustre runs here: `lfs` is a script that prints what the Lustre manual and lfs(1) describe, and
that notes how it was called. A folder of this machine stands for the file system.
"""

import os
import shutil
import subprocess

import pytest
from clone import TOP
from rows import rows

SHARED = TOP / "siteproof/checks/on_node"
LFS = """#!/bin/sh
echo "$*" >>"$ASKED"
case $1.$2 in
df.-i) cat "$INODES" ;;
df.*) cat "$BLOCKS"; [ ! -e "$BLOCKS.fails" ] ;;
setstripe.*) [ ! -e "$LAYOUT.refused" ] || { echo "error: setstripe: no such pool" >&2; exit 1; } ;;
getstripe.-y) cat "$LAYOUT" ;;
esac
"""
BLOCKS = """UUID                   1K-blocks        Used   Available Use% Mounted on
testfs-MDT0000_UUID     41699840        3840    41693952   1% /mnt/testfs[MDT:0]
testfs-OST0000_UUID     98706432     5615616    93088768   6% /mnt/testfs[OST:0] f
testfs-OST0001_UUID    100038656     3591168    96445440   4% /mnt/testfs[OST:1]

filesystem_summary:    198745088     9206784   189534208   5% /mnt/testfs
"""
INODES = """UUID                      Inodes       IUsed       IFree IUse% Mounted on
testfs-MDT0000_UUID     26214400      231452    25982948   1% /mnt/testfs[MDT:0]
testfs-OST0000_UUID       125656         137      125519   1% /mnt/testfs[OST:0]
testfs-OST0001_UUID       125656         137      125519   1% /mnt/testfs[OST:1]

filesystem_summary:       251312      231452       19860   5% /mnt/testfs
"""
PLAIN = """lmm_stripe_count:  4
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 1
lmm_pool:          flash
lmm_objects:
      - l_ost_idx: 1
        l_fid:     0x100010000:0x2:0x0
"""
COMPOSITE = """  lcm_layout_gen:    3
  lcm_mirror_count:  1
  lcm_entry_count:   2
  components:
  - lcme_id:             1
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1073741824
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   1048576
      lmm_pattern:       raid0
  - lcme_id:             2
    lcme_extent.e_start: 1073741824
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  -1
      lmm_stripe_size:   4194304
"""


class Client:
    """A stage, a folder as the file system, and the stand-in."""

    def __init__(self, folder):
        self.top, self.here, self.bin = folder / "testfs", folder / "here", folder / "bin"
        for path in (self.top, self.here, self.bin):
            path.mkdir()
        mounts = folder / "mounts"
        mounts.write_text(f"/dev/a / ext4 rw 0 0\n10.0.0.1@tcp:/testfs {self.top} lustre rw 0 0\n")
        for name in ("account.sh", "file_system.sh", "lustre_state.sh"):
            text = (SHARED / name).read_text().replace("/proc/self/mounts", str(mounts))
            (self.here / name).write_text(text)
        (self.bin / "lfs").write_text(LFS)
        (self.bin / "lfs").chmod(0o755)
        self.blocks, self.layout = folder / "blocks", folder / "layout"
        self.blocks.write_text(BLOCKS)
        (folder / "inodes").write_text(INODES)
        self.inodes = folder / "inodes"
        self.layout.write_text(PLAIN)
        self.asked = folder / "asked"
        self.path = f"{self.bin}:{os.environ['PATH']}"

    def run(self, **settings):
        """begin_test as a measuring script calls it: its end, and the facts."""
        (self.here / "meta").write_text("node=n1\n")
        (self.here / "facts").write_text("")
        values = {
            "FS_PATH": self.top, "FS_KIND": "lustre", "FS_SHARED": "yes", "NEEDED": 0,
            "TEST": "t", "NODES": "n1", "AT_ONCE": 1, "TURN": 5, "TOGETHER": 1,
            "SITEPROOF_ATTEMPT": 1, "SITEPROOF_LIMIT": 60, "MAX_FULL": 90, "STRIPE_COUNT": "",
            "STRIPE_SIZE": "", "STRIPE_POOL": "", "BLOCKS": self.blocks, "INODES": self.inodes,
            "LAYOUT": self.layout, "ASKED": self.asked, "PATH": self.path,
        } | settings  # fmt: skip
        text = '. ./file_system.sh; begin_test; echo written >"$folder/test.1"; echo measured'
        done = subprocess.run(
            ["sh", "-c", text, "measure", str(self.here)],
            cwd=self.here,
            env={key: str(value) for key, value in values.items()},
            capture_output=True,
            text=True,
        )
        lines = (self.here / "facts").read_text().splitlines()
        return done, dict(line.split("=", 1) for line in lines)

    def refusal(self, **settings):
        """Why nothing was written."""
        done, _ = self.run(**settings)
        assert done.returncode == 1, done
        assert "measured" not in done.stdout
        assert not list(self.top.iterdir()), "a test folder was left"
        [line] = done.stderr.splitlines()
        return line.removeprefix(f"{self.top}: ")


@pytest.fixture
def client(tmp_path):
    return Client(tmp_path)


def test_a_healthy_file_system_is_measured_and_its_striping_is_a_condition(client):
    done, facts = client.run()
    assert (done.returncode, done.stdout) == (0, "measured\n"), done
    assert (facts["stripe_count"], facts["stripe_size"], facts["stripe_pool"]) == (
        "4",
        "1048576",
        "flash",
    )
    assert not list(client.top.iterdir())
    called = client.asked.read_text()
    assert called.index(f"df {client.top}") < called.index("getstripe")
    assert "setstripe" not in called  # the site asks for none


def test_a_composite_layout_has_the_values_of_each_component(client):
    client.layout.write_text(COMPOSITE)
    _, facts = client.run()
    assert (facts["stripe_count"], facts["stripe_size"], facts["stripe_pool"]) == (
        "1,-1",
        "1048576,4194304",
        "none",
    )


@rows(
    "old, new, told",
    [
        (
            "3591168    96445440   4% ",
            "96037110     4001546  96% ",
            "testfs-OST0001_UUID: 96 % full, at most 90 % are allowed",
        ),
        ("3840    41693952   1% ", "40699840  1000000  98% ", "testfs-MDT0000_UUID: 98 % full, at"),
        ("[OST:1]", "[OST:1] N", "testfs-OST0001_UUID takes no new objects (N)"),
        ("[OST:1]", "[OST:1] fR", "testfs-OST0001_UUID takes no new objects (fR)"),
    ],
)
def test_a_target_that_is_too_full_or_disabled_is_named_and_nothing_is_written(
    tmp_path, old, new, told
):
    client = Client(tmp_path)
    client.blocks.write_text(BLOCKS.replace(old, new))
    assert client.refusal().startswith(told)


@rows(
    "line, told",
    [
        ("OST0001_UUID         : inactive device", "OST0001_UUID is inactive"),
        ("testfs-OST0001_UUID : inactive device", "testfs-OST0001_UUID is inactive"),
        (
            "testfs-OST0001_UUID : Resource temporarily unavailable",
            "testfs-OST0001_UUID does not answer: Resource temporarily unavailable",
        ),
    ],
)
def test_a_target_that_is_inactive_or_does_not_answer_is_named(tmp_path, line, told):
    client = Client(tmp_path)
    lines = BLOCKS.splitlines()
    client.blocks.write_text("\n".join([*lines[:3], line, *lines[4:]]) + "\n")
    (client.blocks.parent / "blocks.fails").touch()
    assert client.refusal() == told


def test_inodes_count_as_well(client):
    client.inodes.write_text(INODES.replace("231452    25982948   1% ", "25952256  262144  99% "))
    assert client.refusal() == (
        "testfs-MDT0000_UUID: 99 % of its inodes used, at most 90 % are allowed"
    )


def test_the_limit_is_the_sites(client):
    client.blocks.write_text(BLOCKS.replace("  4% ", " 91% "))
    assert "91 % full" in client.refusal(MAX_FULL=90)
    done, _ = client.run(MAX_FULL=95)
    assert done.returncode == 0, done


def test_an_lfs_that_names_no_target_is_no_proof(client):
    client.blocks.write_text("error: lfs df: cannot open\n")
    client.inodes.write_text("")
    assert "lfs df" in client.refusal()


def test_the_striping_that_the_site_names_is_set_and_read_again(client):
    done, facts = client.run(STRIPE_COUNT="4", STRIPE_SIZE="1048576", STRIPE_POOL="flash")
    assert done.returncode == 0, done
    assert facts["stripe_count"] == "4"
    assert "setstripe -c 4 -S 1048576 -p flash /" in client.asked.read_text()


@rows(
    "settings, told",
    [
        ({"STRIPE_COUNT": "8"}, "stripe count 4, the site names 8"),
        ({"STRIPE_SIZE": "4194304"}, "stripe size 1048576, the site names 4194304"),
        ({"STRIPE_POOL": "disk"}, "stripe pool flash, the site names disk"),
    ],
)
def test_files_that_are_striped_otherwise_are_refused(tmp_path, settings, told):
    client = Client(tmp_path)
    assert client.refusal(**settings) == told


def test_all_targets_are_as_many_as_the_file_has(client):
    done, facts = client.run(STRIPE_COUNT="-1")
    assert (done.returncode, facts["stripe_count"]) == (0, "4"), done


def test_a_striping_that_cannot_be_set_is_refused_with_the_tools_reason(client):
    (client.layout.parent / "layout.refused").touch()
    assert client.refusal(STRIPE_POOL="none_such") == (
        "lfs setstripe failed: error: setstripe: no such pool"
    )


def test_without_lfs_it_is_measured_and_says_what_was_not_read(client):
    (client.bin / "lfs").unlink()
    assert not shutil.which("lfs", path=client.path), "this machine has Lustre"
    done, facts = client.run()
    assert done.returncode == 0, done
    assert facts["lustre_warning"] == "targets and striping not read: lfs is not installed"
    assert "lfs, which sets it, is not installed" in client.refusal(STRIPE_COUNT="4")


def test_a_file_system_of_another_kind_asks_no_lfs(client):
    mounts = client.here.parent / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\n/dev/b {client.top} xfs rw 0 0\n")
    done, facts = client.run(FS_KIND="xfs")
    assert done.returncode == 0, done
    assert not client.asked.exists()
    assert "stripe_count" not in facts


def test_a_degraded_target_is_named_and_what_is_measured_counts(client):
    client.blocks.write_text(BLOCKS.replace("[OST:0] f", "[OST:0] fD"))
    done, facts = client.run()
    assert done.stdout == "measured\n", done
    assert facts["lustre_warning"] == "degraded targets, which are slower: testfs-OST0000_UUID"
    client.blocks.write_text(BLOCKS)
    assert "lustre_warning" not in client.run()[1]
