"""The program of a node's health: what it finds, what it records, and what it never runs."""

import random
import re
import shlex
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from clone import SITES

from siteproof.errors import UserError
from siteproof.sites import health_program, load
from siteproof.sites.key_types import Health
from siteproof.sites.site import examine
from siteproof.sites.stated import Fact

NODE = {
    "proc/meminfo": "MemTotal:       131000000 kB\nMemFree: 1 kB\n",
    "proc/mounts": "host:/x / nfs rw,a 0 0\nmds@tcp:/fs /scratch lustre rw,flock 0 0\n",
    "proc/1/stat": "1 (init) S 0 1",
    "proc/1/cgroup": "0::/init.scope\n",
    "sys/devices/system/cpu/online": "0-11,12-23\n",
    "sys/class/net/em1/operstate": "up\n",
    "sys/class/net/em1/speed": "10000\n",
    "sys/class/net/em1/mtu": "9000\n",
    "sys/class/dmi/id/bios_version": "1.1.11\n",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/rate": "40 Gb/sec (4X QDR)\n",
    "sys/devices/system/edac/mc/mc0/ce_count": "1000\n",
    "sys/devices/system/edac/mc/mc0/ue_count": "0\n",
    "sys/fs/ext4/sda1/errors_count": "0\n",
    "sys/class/drm/renderD128/device/vendor": "0x1002\n",
    "sys/class/drm/renderD129/device/vendor": "0x1002\n",
    "sys/class/drm/card0/device/vendor": "0x1a03\n",
}
CHRONY = "A9FEA9FE,ntp,3,1764.5,{},0.000002,0.00001,-1.2,0.0,0.03,0.01,0.0005,64.4,{}"
DRAINED = "State=DRAIN Reason=health check: siteproof"


class Node:
    """A node whose /proc and /sys are folders, and whose tools are made."""

    def __init__(self, top: Path, shell: str) -> None:
        self.top, self.shell, self.spool = top, shell, top / "spool"
        for name, text in NODE.items():
            self.has(name, text)
        (top / "dev").mkdir()
        self.tool("chronyc", f"echo {CHRONY.format('0.000012345', 'Normal')}")
        self.tool("scontrol", f'echo "$*" >>{top}/scontrol\necho "NodeName=n State=IDLE Reason="')

    def has(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def tool(self, name: str, script: str) -> None:
        self.has(f"bin/{name}", f"#!/bin/sh\n{script}\n")
        (self.top / "bin" / name).chmod(0o755)

    def run(self, *words: str, text: str = "", patience: str = "20", **variables: str):
        text = text or health_program.text(load("fullest"), "compute")
        text = re.sub(r"(?<![\w/.])/(proc|sys|dev)/(?!null)", rf"{self.top}/\1/", text)
        text = text.replace("PATH=/usr/sbin", f"PATH={self.top}/bin:/usr/sbin")
        text = text.replace("PATIENCE=0.5", f"PATIENCE={patience}")
        text = text.replace("spool=/var/spool/siteproof", f"spool={self.spool}")
        text = text.replace("free /tmp 5242880", f"free {self.top} 4")
        self.has("health", text)
        command = [self.shell, self.top / "health", *words]
        return subprocess.run(
            command, text=True, capture_output=True, env={"SLURMD_NODENAME": "n"} | variables
        )

    def says(self) -> str:
        done = self.run("--report")
        assert done.stderr == ""
        return done.stdout.partition("\n")[0]

    def asked(self) -> list[str]:
        path = self.top / "scontrol"
        return path.read_text().splitlines() if path.exists() else []

    def recorded(self) -> list[str]:
        lines = (self.spool / "health").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines]


@pytest.fixture(autouse=True)
def sites(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))


@pytest.fixture(params=[shell for shell in ("dash", "bash") if shutil.which(shell)])
def node(tmp_path, request):
    return Node(tmp_path, request.param)


def test_what_is_not_as_stated_is_in_one_line(node):
    assert node.says() == "now OK"
    for name, text, what in (
        ("proc/meminfo", "MemTotal: 120000000 kB\n", "memory 117187 MiB, stated 128 GiB"),
        ("proc/mounts", "host:/x / nfs rw 0 0\n", "/scratch is not mounted as lustre"),
        ("proc/mounts", "a /scratch tmpfs rw 0 0\n", "/scratch is not mounted as lustre"),
        ("proc/mounts", "a /scratch lustre ro,flock 0 0\n", "/scratch is read-only"),
        ("sys/devices/system/cpu/online", "0-22\n", "23 processors, stated 24"),
        ("sys/devices/system/cpu/online", "0-47\n", "48 processors, stated 24"),
        ("sys/class/net/em1/operstate", "down\n", "em1 is down"),
        ("sys/class/net/em1/speed", "1000\n", "em1 has 1000 Mb/s, stated 10000"),
        ("sys/class/net/em1/mtu", "1500\n", "em1 has an MTU of 1500, stated 9000"),
        ("sys/class/dmi/id/bios_version", "1.1.1\n", "bios.version is 1.1.1"),
        ("sys/class/dmi/id/bios_version", "\x1b[2J\n", "bios.version is another text"),
        ("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n", "mlx5_0:1 is 1: DOWN"),
        ("sys/class/infiniband/mlx5_0/ports/1/rate", "10 Gb\n", "mlx5_0:1 has 10 Gb/s, stated 40"),
        ("sys/class/drm/renderD128", None, "1 GPUs, stated 2"),
        (
            "sys/devices/system/edac/mc/mc1/ce_count",
            "1\n",
            "more than 1000 corrected memory errors",
        ),
        ("sys/devices/system/edac/mc/mc0/ue_count", "1\n", "more than 0 uncorrected memory errors"),
        ("sys/fs/ext4/sda1/errors_count", "3\n", "more than 0 errors of ext4 file systems"),
        ("proc/7/stat", "".join(f"{n} (a b) Z 1\n" for n in range(11)), "more than 10 zombies"),
    ):
        if text is None:
            shutil.rmtree(node.top / name)
        else:
            node.has(name, text)
        assert node.says() == f"now BAD {what}"
        if text is None:
            node.has(f"{name}/device/vendor", "0x1002\n")
        elif name in NODE:
            node.has(name, NODE[name])
        else:
            (node.top / name).unlink()
    node.tool("chronyc", f"echo {CHRONY.format('-0.2', 'Normal')}")
    assert node.says() == "now BAD the clock is off by more than 100 ms"
    node.tool("chronyc", f"echo {CHRONY.format('0', 'Not synchronised')}")
    node.has("proc/mounts", "\n")
    assert node.says().count(";") == 1


def test_only_processes_of_users_without_a_job_are_left_over(node):
    node.tool("stat", f'[ "$2" = "%u %n" ] && cat {node.top}/owners || exec /usr/bin/stat "$@"')
    manager = "0::/user.slice/user-1002.slice/user@1002.service"
    node.has("proc/2/cgroup", f"{manager}/app.slice/job_1.service\n")  # as a user may name it
    node.has("proc/3/cgroup", "0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0\n")
    owner = f"{{}} {node.top}/proc/{{}}\n"
    of_user_with_job = owner.format(1001, 2) + owner.format(1001, 3)
    node.has("owners", owner.format(0, 1) + of_user_with_job + owner.format(1002, 9))
    assert node.says() == "now OK"
    node.has("owners", of_user_with_job + owner.format(1002, 2))
    assert node.says() == "now BAD more than 0 processes of users without a job"


def test_a_file_system_that_hangs_does_not_hang_it(node):
    node.tool("stat", '[ "$1" = -f ] && exec sleep 6 || exec /usr/bin/stat "$@"')
    begun = time.monotonic()
    done = node.run("--report", patience="0.5")
    assert f"{node.top} does not answer" in done.stdout
    assert time.monotonic() - begun < 5


def test_a_limit_that_passes_between_two_steps_hangs_nothing_and_skips_nothing(node):
    text = health_program.text(load("fullest"), "compute")
    slow = "sleep 1.5\n"
    done = node.run("--report", text=text.replace("    free ", f"{slow}free "), patience="1")
    assert done.stdout.startswith("now OK\n")
    two = text.replace("    free ", f"free / 1 x\n{slow}free ")
    done = node.run("--report", text=two, patience="1")
    assert done.stdout.startswith(f"now BAD {node.top} does not answer\n")
    node.tool("stat", '[ "$1" = -f ] && exec sleep 6 || exec /usr/bin/stat "$@"')
    begun = time.monotonic()
    done = node.run("--report", text=text.replace("wait $!", f"{slow}wait $!"), patience="1")
    assert f"{node.top} does not answer" in done.stdout
    assert time.monotonic() - begun < 5


def test_only_changes_are_recorded(node):
    for speed in ("10000", "10000", "1000", "1000", "10000"):
        node.has("sys/class/net/em1/speed", speed)
        done = node.run()
        assert done.returncode == (speed == "1000")
        assert done.stdout.count("\n") == 1
    bad = "BAD em1 has 1000 Mb/s, stated 10000"
    assert node.recorded() == ["OK", bad, "OK"]
    with (node.spool / "health").open("a") as record:
        record.write(f"1 BAD {'x' * 399}\n" * 200)
    node.run()
    assert (node.spool / "health.old").stat().st_size > 65536
    assert node.recorded() == ["OK"]
    assert "record 1 BAD" not in node.run("--report").stdout


def test_of_two_that_rename_a_large_record_at_the_same_time_none_is_lost(node):
    node.run()
    large = f"1 BAD {'x' * 399}\n" * 200
    (node.spool / "health").write_text(large)
    first = "mv -f health health.old; echo '2 BAD rival' >health"  # another has done it meanwhile
    text = health_program.text(load("fullest"), "compute")
    node.run(text=text.replace("    mv -f health ", f"    {first}; mv -f health ", 1))
    assert (node.spool / "health.old").read_text() == large
    assert sorted(node.recorded()) == ["BAD rival", "OK"]
    assert {path.name for path in node.spool.iterdir()} == {"health", "health.old"}


def test_a_path_that_echo_would_change_is_one_line_and_recorded_once(node):
    for path in ("/a b", "/a\\c/x", "/a\nb"):
        text = health_program.text(_with_scratch(load("fullest"), path), "compute")
        first, again = node.run(text=text).stdout, node.run(text=text).stdout
        escaped = health_program._as_in_mounts(path)
        assert first == again == f"BAD {escaped} is not mounted as lustre\n"
        assert node.recorded()[-1] == first.strip()
        assert f"record {int(time.time()) // 1000}" in node.run("--report", text=text).stdout
    assert len(node.recorded()) == 3


def _with_scratch(site, path):
    scratch = site.system.file_systems["scratch"].model_copy(update={"path": path})
    system = site.system.model_copy(update={"file_systems": {"scratch": scratch}})
    return replace(site, system=system)


def test_nothing_is_recorded_where_others_could_write(node):
    target = node.top / "target"
    node.spool.mkdir()
    node.spool.chmod(0o1777)
    assert "not a folder that only this user can write to" in node.run().stdout
    node.spool.chmod(0o755)
    (node.spool / "health").symlink_to(target)
    assert node.run().returncode == 1
    node.spool.rename(node.top / "other")
    node.spool.symlink_to(node.top / "other")
    assert node.run().returncode == 1
    assert not target.exists()


def test_a_folder_that_becomes_a_link_while_it_is_checked_gets_no_record(node):
    target, moved = node.top / "target", node.top / "moved"
    target.mkdir()
    swap = f"mv {node.spool} {moved}; ln -s {target} {node.spool}; exec /usr/bin/stat"
    node.tool("stat", f'[ "$2" = %a ] && {{ {swap} "$@"; }}; exec /usr/bin/stat "$@"')
    node.run()
    assert not [*target.iterdir()] and (moved / "health").exists()
    shutil.rmtree(moved)
    node.run()  # the folder of another place, which only this user can write to
    assert not [*target.iterdir()]


def test_it_drains_where_the_site_says_so_and_leaves_alone_what_others_drained(node):
    node.run()
    node.has("sys/class/net/em1/operstate", "down\n")
    node.tool("scontrol", "exit 1")
    assert "not drained, as Slurm does not answer" in node.run().stdout
    script = f'echo "$*" >>{node.top}/scontrol; echo "NodeName=n State={{}} Reason=x"'
    node.tool("scontrol", script.format("IDLE"))
    node.run()
    node.run()  # no change
    assert node.asked() == ["-o show node n", f"update NodeName=n {DRAINED}"]
    node.has("sys/class/net/em1/operstate", "up\n")
    node.run()  # it comes back, and stays drained
    node.tool("scontrol", script.format("IDLE+DRAIN"))
    node.has("sys/class/net/em1/operstate", "down\n")
    node.run()
    assert node.asked()[2:] == ["-o show node n"]


def test_without_drain_it_asks_slurm_nothing_and_no_prolog_fails(node):
    node.has("sys/class/net/em1/operstate", "down\n")
    text = health_program.text(load("fullest"), "compute").replace("drain=yes", "drain=no")
    assert node.run(text=text).returncode == 1
    assert node.run(text=text, SLURM_SCRIPT_CONTEXT="prolog_slurmd").returncode == 0
    assert node.run(SLURM_SCRIPT_CONTEXT="epilog_slurmd").returncode == 1
    assert node.asked() == []


def test_nothing_that_a_site_states_is_run(node, monkeypatch):
    site, dice = load("fullest"), random.Random(47)
    parts = ["'", '"', "$(touch ran)", "`touch ran`", "\n", ";touch ran;", "}", "\\", "*", "[", " "]
    for _ in range(30):
        hostile = "/" + "".join(dice.choices(parts, k=8))
        system = site.system
        scratch = system.file_systems["scratch"].model_copy(update={"path": hostile})
        hardware = system.hardware["blade"]
        nics = {hostile: hardware.nics["em1"]}
        section = hardware.facts["3.1.3"]
        fact = section.fields["bios.version"].model_copy(update={"one_of": [hostile]})
        section = section.model_copy(update={"fields": {"bios.version": fact}})
        blade = hardware.model_copy(update={"nics": nics, "facts": {"3.1.3": section}})
        changed = {"file_systems": {"scratch": scratch}, "hardware": {"blade": blade}}
        whole = site.__class__(
            site.name, site.folder, system.model_copy(update=changed), {}, {}, site.catalogue
        )
        done = node.run("--report", text=health_program.text(whole, "compute"))
        assert done.stderr == "", hostile
        assert done.stdout.startswith("now BAD ")
        assert not (Path.cwd() / "ran").exists()
        quoted = health_program.text(whole, "compute").partition("stated() {")[2].partition("}\n#")
        assert shlex.split(quoted[0])


def test_a_literal_value_is_no_pattern_and_a_pattern_is_one():
    assert health_program._globs(Fact(exact="a*[b]?\\")) == ["a\\*\\[b\\]\\?\\\\"]


def test_a_role_that_there_is_not_is_named():
    with pytest.raises(UserError, match="no role 'compte'"):
        health_program.text(load("fullest"), "compte")


def test_a_program_that_would_look_at_nothing_is_not_written():
    site = load("smallest")
    for rules in ({}, {"compute": Health(drain=True)}):
        changed = replace(site, system=site.system.model_copy(update={"health": rules}))
        with pytest.raises(UserError, match="nothing is stated of role 'compute'"):
            health_program.text(changed, "compute")


def test_paths_that_are_no_single_line_or_open_to_all_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    shutil.copytree(SITES / "fullest", tmp_path / "fullest")
    path = tmp_path / "fullest" / "system.yaml"
    text = path.read_text()
    of_all = ("/tmp/x", "//tmp/x", "/var//tmp/x")
    for spool in (*of_all, "/var/tmp", "/var/../tmp/x", "spool", "/", r"'/a\nb'", '"/a\\nb"'):
        path.write_text(text.replace("spool: /var/spool/siteproof", f"spool: {spool}"))
        site, documents = examine("fullest")
        assert (site is None) == (spool != r"'/a\nb'"), spool
    path.write_text(text.replace("free: {/tmp: 5 GiB}", 'free: {"/a\\nb": 5 GiB}'))
    site, documents = examine("fullest")
    assert site is None
