"""`siteproof build`: which Spack it takes, what it asks of it, where it goes on, what it says.

The `spack` of these tests is a fake: it notes its arguments and leaves what Spack would leave. That
Spack itself does what is asked of it is proved only by building with the real one.
"""

import json
import os

import pytest
from clone import PATIENCE, wait_for

from siteproof.spack import build

FAKE = r"""
echo "$*" >>'{log}'
[ "$1" != --version ] || {{ echo "${{FAKE_VERSION:-1.2.0 (0123abc)}}"; exit; }}
folder=$2 step=$3
[ "$step" != "${{FAKE_FAILS:-}}" ] || {{ echo "==> Error: no such package: ior" >&2; exit 1; }}
prefix='{store}/ior'
case $step in
concretize) echo '{lock}' >"$folder/spack.lock" ;;
install)
    [ -z "${{FAKE_HANGS:-}}" ] || {{
        trap "echo >'{log}.ended'; exit 130" INT; touch '{log}.hangs'; sleep 900 & wait
    }}
    mkdir -p "$prefix/.spack" "$prefix/bin" "$folder/view/bin"
    echo '{{"spec": {{"nodes": [{{"hash": "{hash}"}}]}}}}' >"$prefix/.spack/spec.json"
    for name in ior mdtest fio; do
        [ "$name" = "${{FAKE_LACKS:-}}" ] || touch "$prefix/bin/$name"
        ln -sf "$prefix/bin/$name" "$folder/view/bin/$name"
    done
    echo "[+] {short} ior@4.0.0 $prefix (2s)" ;;
find) echo "{hash} $prefix" ;;
repo) echo "[+] builtin v2.2 /nowhere" ;;
esac
"""
HASH = "abcdefghijklmnopqrstuvwxyz234567"
LOCK = {
    "roots": [{"hash": HASH, "spec": "ior"}],
    "concrete_specs": {HASH: {"name": "ior", "version": "4.0.0"}},
}


@pytest.fixture
def spack(world):
    """The fake, first on PATH; gives the calls so far."""
    world.data.mkdir()
    log = world.folder / "calls"
    world.fake(
        "spack",
        FAKE.format(
            log=log, store=world.folder / "store", lock=json.dumps(LOCK), hash=HASH, short=HASH[:7]
        ),
    )
    return lambda: [
        line.split()[2] for line in log.read_text().splitlines() if line.startswith("-D")
    ]


def test_without_spack_one_line_names_the_command_that_gets_the_pinned_release(world):
    world.data.mkdir()
    done = world.siteproof("build", "io", SPACK_ROOT="UNSET")
    assert done.code == 2 and done.err.count("\n") == 1
    assert "git clone --depth 1 --branch v1.2.0 https://github.com/spack/spack.git" in done.err


@pytest.mark.parametrize("version", ["1.1.0", "1.2.0.dev0 (4ce2a5e)", "garbage", ""])
def test_another_release_is_refused_before_anything_is_made(world, spack, version):
    done = world.siteproof("build", "io", FAKE_VERSION=version or " ")
    assert done.code == 2 and done.err.count("\n") == 1 and "--branch v1.2.0" in done.err
    assert not (world.data / "software").exists()


def test_another_release_may_be_asked_for_and_is_told(world, spack):
    done = world.siteproof("build", "io", "--other-spack", FAKE_VERSION="1.1.0")
    assert done.code == 0 and "built with other releases: Spack 1.1.0" in done.out


def test_a_lock_is_made_once_and_kept(world, spack):
    assert world.siteproof("build", "io").code == 0
    lock = (world.data / "software/thishost/io/spack.lock").read_bytes()
    assert world.siteproof("build", "io").code == 0
    assert spack() == ["concretize", "repo", "install", "find", "repo", "install", "find"]
    assert (world.data / "software/thishost/io/spack.lock").read_bytes() == lock
    assert world.siteproof("build", "io", "--update").code == 0
    assert spack()[-4] == "concretize"


def test_a_lock_from_elsewhere_is_installed_as_it_is(world, spack):
    folder = world.data / "software/thishost/io"
    folder.mkdir(parents=True)
    (folder / "spack.lock").write_text(json.dumps(LOCK))
    assert world.siteproof("build", "io").code == 0
    assert "concretize" not in spack()
    assert json.loads((folder / "spack.lock").read_text()) == LOCK


def test_a_changed_description_is_told_and_the_lock_stays(world, spack):
    world.siteproof("build", "io")
    path = world.site() / "spack/packages.yaml"
    path.write_text(path.read_text().replace("4.1.4", "4.1.5"))
    done = world.siteproof("build", "io")
    assert "have changed since; the lock stays, and '--update'" in done.out
    assert spack().count("concretize") == 1


@pytest.mark.parametrize("step", ["concretize", "install", "find"])
def test_an_environment_that_failed_is_named_and_goes_on_at_the_missing_step(world, spack, step):
    done = world.siteproof("build", "io", FAKE_FAILS=step)
    assert done.code == 1 and "no such package: ior" in done.out
    assert "not built: io; run 'siteproof build' again to continue" in done.out
    assert "Traceback" not in done.err
    assert world.siteproof("build", "io").code == 0
    assert spack().count("concretize") == (2 if step == "concretize" else 1)


def test_a_failed_package_names_its_phase_the_errors_of_its_log_and_the_log(world, spack):
    """As Spack 1.2 prints it; what the real one prints is in test_build_for_real.py."""
    log, name = "/tmp/root/spack-stage/ior.log", f"{HASH[:7]} ior@4.0.0"
    printed = [f"[ ] {name} configure (1s)", f"[ ] {name} build (9s)"]
    printed += [f"[x] {name} failed: {log} (9s)", "-- lines 1 to 9 --", "  make: noise"]
    printed += [f"> ior.c:{n}: error: \033[31m" + 300 * "x" for n in range(9)]
    printed += ["==> Error: The following packages failed to install:", f"ior@4.0.0/{HASH}: {log}"]
    (world.folder / "printed").write_text("\n".join(printed) + "\n")
    old = (world.bin / "spack").read_text()
    failing = f"install)\n    cat '{world.folder}/printed'; exit 1"
    (world.bin / "spack").write_text(old.replace("install)", failing))
    done = world.siteproof("build", "io")
    lines = done.out.splitlines()
    at = lines.index("io: not built: ior@4.0.0 failed in its phase build")
    assert [line[:22] for line in lines[at + 1 : at + 6]] == [
        f"io:   ior.c:{n}: error: " for n in range(5)
    ]
    assert lines[at + 6] == "io:   … and 4 more"
    assert lines[at + 7] == f"io:   log of the package: {log}"
    assert "make: noise" not in done.out and "\033" not in done.out
    assert max(map(len, lines)) < 300


def test_a_newer_login_node_asks_spack_for_the_target_of_the_nodes(world, spack):
    world.edit(
        "system", "    description: Whatever", "    target: haswell\n    description: Whatever"
    )
    done = world.siteproof("build", "io")
    assert done.code == 0 and "built for thishost: io-haswell\n" in done.out, str(done)
    folder = world.data / "software/thishost/io-haswell"
    assert "target=haswell" in (folder / "defaults/packages.yaml").read_text()
    assert "@thishost:node+io" in world.reframe("--dry-run", "-n", "RandomIo").out
    assert world.siteproof("build", "io", "--list").out.startswith("io-haswell: built")


def test_a_login_node_whose_nodes_have_no_target_is_refused_before_spack_is_called(world, spack):
    world.edit("system", "    scheduler: local", "    scheduler: slurm")
    world.edit("system", "set: localhost", "set: 'c[1-9]'")
    done = world.siteproof("build", "io")
    assert "the nodes of role 'node' have no 'target'" in done.refused()
    assert not (world.folder / "calls").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--push"], "--push: without a cache"),
        (["--unsigned"], "--unsigned: without a cache"),
        (["--cache", "cache"], "'cache' is not a cache"),
        (["--cache", "ftp://x/y"], "'ftp://x/y' is not a cache"),
        (["--mirror", "/nowhere"], "/nowhere is not a mirror"),
    ],
)
def test_a_source_of_packages_that_cannot_be_one_is_one_line(world, spack, words, told):
    assert told in world.siteproof("build", "io", *words).refused()
    assert not (world.folder / "calls").exists()


def test_what_is_installed_without_its_programs_is_not_registered(world, spack):
    done = world.siteproof("build", "io", FAKE_LACKS="mdtest")
    assert done.code == 1 and "mdtest is not in it" in done.out
    assert "locked, not completely installed" in world.siteproof("build", "io", "--list").out


@pytest.mark.parametrize("number", build.STOPS)
def test_a_signal_ends_spack_too_and_says_that_it_goes_on(world, spack, number):
    process = world.start("siteproof", "build", "io", FAKE_HANGS="yes")
    wait_for((world.folder / "calls.hangs").exists)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (world.folder / "calls.ended").exists()
    assert process.returncode == 130 and "run 'siteproof build' again to continue" in out, out + err
    assert world.siteproof("build", "io").code == 0


def test_without_names_all_that_the_system_names_is_built_and_each_state_is_shown(world, spack):
    text = (world.site() / "system.yaml").read_text().splitlines(keepends=True)
    kept = [line for line in text if "spack:" not in line or "spack: io" in line]
    (world.site() / "system.yaml").write_text("".join(kept))
    assert world.siteproof("build", "--list").out == "io: not built\n"
    done = world.siteproof("build")
    assert done.code == 0 and "built for thishost: io\n" in done.out
    assert "lock" in world.siteproof("build", "--list").out


def test_an_unknown_environment_is_one_line(world, spack):
    done = world.siteproof("build", "ioo")
    assert done.code == 2 and "no environment 'ioo' (did you mean 'io'?)" in done.err


def test_a_site_that_names_none_is_one_line(world, spack):
    world.site("testbed")
    done = world.siteproof("build", "--system", "testbed", "--list")
    assert done.code == 2 and done.err.count("\n") == 1 and "no environment has 'spack'" in done.err


def test_a_mistake_in_the_sites_externals_ends_it_before_spack_is_called(world, spack):
    path = world.site() / "spack/packages.yaml"
    path.write_text(path.read_text().replace("prefix: /usr}", "prefix: /gone}", 1))
    done = world.siteproof("build", "io")
    assert done.code == 2 and "not on this machine: openmpi@4.1.4 in /gone" in done.err
    path.write_text("packages: 3\n")
    assert world.siteproof("build", "io").code == 2
    assert not (world.folder / "calls").exists()


@pytest.mark.parametrize("name", ["a b", "a'b", "a:b"])
def test_a_data_folder_that_cannot_be_on_path_is_refused(world, spack, name):
    (world.folder / name).mkdir()
    done = world.siteproof("build", "io", SITEPROOF_DATA=str(world.folder / name))
    assert done.code == 2 and "cannot be on PATH" in done.err


# ---- what a check makes of it


def test_a_check_whose_software_is_missing_names_the_command_that_brings_it(world):
    world.data.mkdir()
    done = world.reframe("-r", "-n", "IorSingle")
    assert "offers ior: 'siteproof build io' brings it]" in done.out


def test_a_check_runs_in_the_environment_that_has_its_program(world, spack):
    assert world.siteproof("build", "io").code == 0
    assert "@thishost:node+io" in world.reframe("--dry-run", "-n", "RandomIo").out


def test_software_that_is_not_what_its_lock_says_measures_nothing(world, spack):
    world.siteproof("build", "io")
    (world.folder / "store/ior/.spack/spec.json").unlink()
    done = world.reframe("-r", "-n", "RandomIo")
    assert done.code == 1
    assert "environment io: differs from its lock file: not installed: ior@4.0.0" in done.out
    assert "Run 'siteproof build io'" in done.out
    assert not list((world.data / "perflogs").rglob("*.jsonl"))


def test_a_broken_registration_ends_the_run_in_one_line(world, spack):
    world.siteproof("build", "io")
    (world.data / "software/thishost/io/environment.json").write_text("{")
    done = world.reframe("-l")
    assert done.code == 2 and "'siteproof build io'" in done.err and "Traceback" not in done.err
