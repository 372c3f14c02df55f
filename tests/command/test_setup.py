"""The way from a fresh clone to a run: setup/, activate and the lock. No network, no package."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import tomllib

import pytest
from clone import PATIENCE, TOP, wait_for
from setup_clone import apt_calls, program, run, sourced

SHELLS = ("sh", "bash")


# activate


@pytest.mark.parametrize("shell", SHELLS)
def test_activate_in_a_clone_that_is_not_set_up_says_what_to_do(shell, clone):
    done = sourced(shell, f'. "{clone}/activate"; echo "code $?"')
    assert done.stdout == f"siteproof: {clone} has no .venv: run 'make venv' first\ncode 2\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_activate_works_from_any_directory_and_twice(shell, ready):
    done = sourced(
        shell,
        f"""set -eu; . "{ready}/activate"; . "{ready}/activate"
        echo "$PATH"; echo "$RFM_CONFIG_FILES"; echo "$SITEPROOF_SITES"; echo "$SITEPROOF_DATA"
        set | grep ^_siteproof || true""",
    )
    path, *others = done.stdout.splitlines()
    assert path.startswith(f"{ready}/.venv/bin:")
    assert path.count(".venv") == os.environ["PATH"].count(".venv") + 1
    assert others == [f"{ready}/reframe_settings.py", f"{ready}/site-config", str(ready)]


@pytest.mark.parametrize("shell", SHELLS)
def test_activate_leaves_sites_and_data_that_the_user_chose(shell, ready):
    done = sourced(
        shell,
        f'. "{ready}/activate"; echo "$SITEPROOF_SITES $SITEPROOF_DATA"',
        SITEPROOF_SITES="/srv/sites",
        SITEPROOF_DATA="/srv/data",
    )
    assert done.stdout == "/srv/sites /srv/data\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_activate_takes_over_from_another_clone(shell, ready):
    done = sourced(
        shell,
        f'. "{ready}/activate"; echo "$SITEPROOF_SITES $SITEPROOF_DATA"',
        SITEPROOF_CLONE="/old",
        SITEPROOF_SITES="/old/site-config",
        SITEPROOF_DATA="/old",
    )
    assert done.stdout == f"{ready}/site-config {ready}\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_activate_refuses_a_virtual_environment_that_was_moved(shell, ready):
    moved = ready.rename(ready.with_name("moved"))
    done = sourced(shell, f'. "{moved}/activate"; echo "code $?"')
    assert done.stdout.startswith(f"siteproof: .venv was made for {ready}: run 'make venv'")
    assert done.stdout.endswith("code 2\n")


# setup/venv


def test_venv_does_nothing_where_it_is_current(ready):
    done = run(ready / "setup/venv")
    assert (done.returncode, done.stdout) == (0, "")


def test_ci_asks_for_the_tests_before_the_docs_which_then_keep_their_tools(ready):
    shutil.copytree(TOP / ".ci", ready / ".ci")
    (ready / ".venv/docs").mkdir()
    for script in ("docs", "test"):
        program(ready / "setup" / script, f'setup/venv --tests && echo "{script} $*"')
    shutil.copy(ready / "setup/venv", ready / "setup/real")
    program(ready / "setup/venv", 'echo "venv $*" && exec setup/real "$@"')
    done = run(ready / ".ci/run")
    calls = [line for line in done.stdout.splitlines() if line != "venv --tests"]
    assert done.stdout.startswith("venv --tests\nvenv --tests\ndocs ")
    assert [call.strip() for call in calls] == ["docs", "test", "test --services"]
    assert (ready / ".venv/docs").exists()


def test_venv_waits_for_the_one_who_makes_it(ready):
    with (ready / "setup/requirements.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen([ready / "setup/venv"], stdout=subprocess.PIPE, text=True)
        told = second.stdout.readline()
    assert told == "siteproof: another process makes .venv: waiting until it ends\n"
    assert second.wait(timeout=PATIENCE) == 0


def test_venv_refuses_an_old_python_in_one_line(clone, tmp_path):
    program(tmp_path / "python", "exit 1")
    done = run(clone / "setup/venv", PYTHON=str(tmp_path / "python"))
    assert done.returncode == 2
    assert done.stdout.startswith("siteproof: Python 3.11 to 3.13 is required")
    assert done.stdout.count("\n") == 1


def test_venv_names_a_folder_of_wheels_that_is_not_there(clone):
    done = run(clone / "setup/venv", "--wheels", "/nonexistent")
    assert done.returncode == 2
    assert done.stdout.startswith("siteproof: no folder of wheels: /nonexistent")
    assert done.stdout.count("\n") == 1


def test_venv_takes_no_network_for_an_empty_name_of_a_folder(clone):
    done = run(clone / "setup/venv", "--wheels", "")
    assert done.returncode == 2
    assert done.stdout == "siteproof: setup/venv --wheels needs one folder\n"


def test_venv_runs_no_pip_that_the_lock_does_not_know(clone, tmp_path):
    (tmp_path / "pip-1.0-py3-none-any.whl").write_bytes(b"foreign")
    done = run(clone / "setup/venv", SITEPROOF_WHEELS=str(tmp_path))
    assert done.returncode == 2
    assert "lacks the pip of requirements.lock" in done.stdout.splitlines()[-1]
    assert not (clone / ".venv").exists()


def test_venv_of_before_comes_back_when_a_new_one_fails(ready, tmp_path):
    (ready / "setup/requirements.lock").write_text("# another lock\n")
    done = run(ready / "setup/venv", SITEPROOF_WHEELS=str(tmp_path))
    assert done.returncode == 2
    assert done.stdout.endswith("siteproof: the previous .venv is restored\n")
    assert (ready / ".venv/bin/reframe").exists()
    assert not (ready / ".venv.old").exists()


# setup/packages


def test_packages_lists_what_is_lost_without_each(clone, machine):
    done = run(clone / "setup/packages", "--list", machine=machine)
    assert done.returncode == 3
    assert re.search(r"^hpcc +missing: Hpl", done.stdout, re.MULTILINE)
    assert apt_calls(machine) == []


def test_every_package_of_a_run_serves_a_check():
    rows = (TOP / "setup/packages.list").read_text().splitlines()
    proofs = {row.split()[2] for row in rows if row.startswith("run ")}
    scripts = " ".join(script.read_text() for script in (TOP / "checks").rglob("*.sh"))
    assert {p for p in proofs if p not in scripts} <= {"lib:libopenblas.so.0"}  # hpcc's library


def test_packages_says_so_before_it_installs(clone, machine):
    program(
        machine / "bin/apt-get",
        """echo "apt-get got: $*" >>"$TMPDIR/said"
        case $* in *install*)
        for c in ethtool fio hpcc mpirun likwid-bench ping qperf ib_write_bw; do
        printf '#!/bin/sh\\n' >"${0%/*}/$c"; /bin/chmod +x "${0%/*}/$c"; done ;; esac""",
    )
    program(machine / "bin/ldconfig", "echo libopenblas.so.0")
    done = run(clone / "setup/packages", "--yes", machine=machine, TMPDIR=str(machine))
    assert done.returncode == 0
    first, last = done.stdout.splitlines()
    assert "belongs to no cluster: Debian packages to install: " in first
    assert last.startswith("siteproof: installed: ")
    said = (machine / "said").read_text()
    assert re.search(r"install --yes --no-install-recommends .*hpcc .*likwid", said)


def test_packages_without_network_is_one_line_and_no_end(clone, machine):
    program(machine / "bin/apt-get", 'echo "E: Unable to fetch some archives"; exit 100')
    done = run(clone / "setup/packages", "--yes", machine=machine, TMPDIR=str(machine))
    assert done.returncode == 3
    assert done.stdout.count("E: Unable to fetch some archives") == 1
    assert "siteproof: missing: hpcc: Hpl" in done.stdout


def test_packages_installs_nothing_when_there_is_nobody_to_ask(clone, machine):
    done = run(clone / "setup/packages", machine=machine)
    assert "standard input is no terminal" in done.stdout
    assert apt_calls(machine) == []


def test_packages_installs_nothing_for_an_ordinary_user(clone, machine):
    program(machine / "bin/id", "echo 1000")
    done = run(clone / "setup/packages", "--yes", machine=machine)
    assert done.returncode == 3
    assert "no package is installed: this is not root" in done.stdout
    assert "siteproof: missing: hpcc: Hpl" in done.stdout
    assert apt_calls(machine) == []


@pytest.mark.parametrize(
    ("manager", "command", "unknown"),
    [
        (
            "dnf",
            "dnf install ethtool fio iputils openblas-threads openmpi perftest qperf",
            "hpcc likwid",
        ),
        (
            "zypper",
            "zypper install ethtool fio iputils libopenblas_pthreads0 openmpi4 perftest qperf",
            "hpcc likwid",
        ),
        (
            "apt-get",
            "apt-get install ethtool fio hpcc iputils-ping libopenblas0-pthread likwid openmpi-bin "
            "perftest qperf",
            "",
        ),
    ],
)
@pytest.mark.parametrize("words", [["--list"], ["--yes"]])
def test_packages_prints_the_command_of_the_distribution(
    words, manager, command, unknown, clone, machine
):
    (machine / "bin/apt-get").unlink()
    program(machine / "bin" / manager, "exit 1")
    program(machine / "bin/id", "echo 1000")
    program(machine / "bin/ldconfig", "exit 0")
    script = clone / "setup/packages"  # without the programs of this machine
    script.write_text(script.read_text().replace(":/usr/local/sbin:/usr/sbin:/sbin", ""))
    done = run(clone / "setup/packages", *words, machine=machine)
    assert done.returncode == 3
    assert f"siteproof: as root: {command}\n" in done.stdout
    assert (f"is known for: {unknown} (" in done.stdout) == bool(unknown)
    assert apt_calls(machine) == []


def test_every_package_has_its_name_in_other_distributions():
    rows = [row.split() for row in (TOP / "setup/packages.list").read_text().splitlines()]
    rows = [row for row in rows if row and row[0].isalpha()]
    others = {row[1]: row[2:] for row in rows if row[0] == "other"}
    assert {row[1] for row in rows if row[0] != "other"} == set(others)
    assert {len(names) for names in others.values()} == {2}


SIGNS = [
    "etc/slurm/slurm.conf",
    "etc/slurm/gres.conf",
    "etc/slurm-llnl/slurm.conf",
    "run/slurm/conf",
    "etc/pbs.conf",
]


def test_packages_installs_nothing_where_a_file_speaks_of_a_cluster(clone, machine):
    for sign in SIGNS:
        path = machine / "machine" / sign
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        done = run(clone / "setup/packages", "--yes", machine=machine)
        assert f"this machine belongs to a cluster: {path} is there" in done.stdout
        assert apt_calls(machine) == []
        path.unlink()


def test_packages_installs_nothing_where_slurm_conf_is_set(clone, machine):
    done = run(clone / "setup/packages", "--yes", machine=machine, SLURM_CONF="/opt/s/slurm.conf")
    assert "belongs to a cluster: SLURM_CONF is set" in done.stdout
    assert apt_calls(machine) == []


def test_packages_installs_nothing_beside_a_parallel_file_system(clone, machine):
    (machine / "machine/proc/mounts").write_text("mgs:/home /home lustre rw 0 0\n")
    done = run(clone / "setup/packages", "--yes", machine=machine)
    assert "belongs to a cluster: /home is a lustre file system" in done.stdout
    assert apt_calls(machine) == []


@pytest.mark.parametrize(("namespace", "belongs"), [("pid:[1]", True), ("pid:[2]", False)])
def test_a_slurmd_counts_unless_it_runs_in_a_namespace_of_its_own(
    namespace, belongs, clone, machine
):
    for process, space in (("self", "pid:[1]"), ("77", namespace)):
        (machine / f"machine/proc/{process}/ns").mkdir(parents=True)
        (machine / f"machine/proc/{process}/ns/pid").symlink_to(space)
    (machine / "machine/proc/77/comm").write_text("slurmd\n")
    done = run(clone / "setup/packages", "--yes", machine=machine, TMPDIR=str(machine))
    assert ("belongs to a cluster: slurmd runs" in done.stdout) == belongs
    assert bool(apt_calls(machine)) != belongs


def test_debians_own_empty_slurm_folder_is_no_cluster(clone, machine):
    (machine / "machine/etc/slurm/plugstack.conf.d").mkdir(parents=True)
    done = run(clone / "setup/packages", machine=machine)
    assert "root on a machine that belongs to no cluster" in done.stdout


# setup/run and setup/test


ENDS = [(0, 0, 0), (0, 3, 3), (1, 1, 1), (1, 3, 3), (1, 0, 1), (0, 2, 2)]


def test_run_ends_with_the_verdict_and_never_well_if_reframe_failed(ready, cluster):
    for row in ENDS:
        checks, verdict, code = row
        program(ready / ".venv/bin/reframe", f'echo "reframe $*"; exit {checks}')
        program(ready / ".venv/bin/siteproof", f'echo "siteproof $*"; exit {verdict}')
        done = run(ready / "setup/run", machine=cluster, SITEPROOF_DATA="/srv/data")
        assert done.returncode == code, row
        assert "\nreframe -c checks/ -r --mode quick\nsiteproof verdict" in done.stdout, row
        last = done.stdout.splitlines()[-2:]
        assert last[1].startswith(f"siteproof: make run: exit code {code}: "), row
        assert max(len(line) for line in last) <= 80, row
        # What comes next, but not where the verdict itself could not be made.
        assert ("\n  siteproof report --system thishost" in done.stdout) == (verdict != 2), row
        assert ("\n  siteproof sites new --help" in done.stdout) == (verdict != 2), row


def test_run_refuses_a_data_folder_that_reframe_cannot_work_in(ready, cluster):
    done = run(ready / "setup/run", machine=cluster)
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1].startswith("siteproof: ReFrame cannot run jobs in")


CLOSINGS = [
    ("3 passed in 0.12s", 0, "6 passed, 0 failed, 0 skipped", 0),
    ("1 failed, 3 passed, 2 skipped in 61.0s (0:01:01)", 1, "6 passed, 1 failed, 2 skipped", 1),
    ("2 passed, 1 error in 0.12s", 1, "5 passed, 1 failed, 0 skipped", 1),
    ("no tests ran in 0.01s", 5, "3 passed, 1 failed, 0 skipped", 1),
    ("Segmentation fault", 139, "3 passed, 1 failed, 0 skipped", 1),
]


def test_the_last_line_of_make_test_is_honest(ready, cluster):
    for closing, pytest_code, last, code in CLOSINGS:
        program(ready / ".venv/bin/pytest", f"echo '{closing}'; exit {pytest_code}")
        done = run(ready / "setup/test", machine=cluster)
        assert done.stdout.splitlines()[-1] == last, closing
        assert done.returncode == code, closing
        assert "LEFT OUT: the test bed's tests, because this machine belongs" in done.stdout


@pytest.mark.parametrize(
    ("processor", "reason"),
    [
        ("aarch64", "no MKL for aarch64: Intel makes it for x86_64 only"),
        ("x86_64", "pip could not install mkl.lock: see above"),
    ],
)
def test_make_test_installs_mkl_and_says_why_where_it_cannot(processor, reason, ready, cluster):
    program(cluster / "bin/uname", f"echo {processor}")
    program(ready / ".venv/bin/pytest", "echo '3 passed in 0.12s'")
    program(ready / ".venv/bin/python", 'case "$*" in *pip*) exit 1 ;; esac')
    done = run(ready / "setup/test", machine=cluster)
    assert f"\nLEFT OUT: HPL on the real MKL, because {reason}" in done.stdout
    assert done.returncode == 0, done.stdout


def test_make_test_says_that_shellcheck_is_missing(ready, cluster):
    program(ready / ".venv/bin/pytest", "echo '3 passed in 0.12s'")
    done = run(ready / "setup/test", machine=cluster)
    assert "LEFT OUT: shellcheck, because it is not installed" in done.stdout


def test_make_test_fails_if_a_linter_does(ready, cluster):  # ruff is two of the three
    program(ready / ".venv/bin/pytest", "echo '3 passed in 0.12s'")
    program(ready / ".venv/bin/ruff", "exit 1")
    done = run(ready / "setup/test", machine=cluster)
    assert done.stdout.splitlines()[-1] == "4 passed, 2 failed, 0 skipped"
    assert done.returncode == 1


def test_shell_scripts_are_found_by_name_first_line_or_directive(clone):
    run("git", "init", "-q", clone)
    (clone / "a.sh").write_text("true\n")
    program(clone / "b", "true")
    (clone / "c").write_text("#!/usr/bin/env bash\n")
    (clone / "d.py").write_text("#!/usr/bin/env python3\n")
    found = run(clone / "setup/shell-scripts").stdout.split()
    assert {"a.sh", "b", "c", "activate", "setup/lib.sh", "setup/test"} <= set(found)
    assert "d.py" not in found


# the lock


def test_the_lock_has_a_hash_for_every_package_and_no_address():
    text = (TOP / "setup/requirements.lock").read_text()
    packages = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    assert len(packages) > 20
    assert [p.split()[0] for p in packages if "--hash=sha256:" not in p] == []
    assert "://" not in text
    assert "index" not in text


def test_the_lock_holds_what_the_project_asks_for():
    lock = (TOP / "setup/requirements.lock").read_text().lower()
    wanted = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = (TOP / "setup/requirements.in").read_text()
    pins = re.findall(r"^[\w-]+==[\w.]+$", pinned, re.MULTILINE)
    assert [p for p in pins if f"\n{p.lower()} " not in lock] == []
    assert [w for w in wanted if f"\n{re.split('[<>=~ ]', w)[0].lower()}==" not in lock] == []


# progress


def clock(machine, step):
    """A date that is `step` seconds later at each call."""
    program(
        machine / "bin/date",
        f"""n=$(cat "{machine}/clock" 2>/dev/null || echo 0)
        echo $((n + {step})) | tee "{machine}/clock" """,
    )


def test_progress_says_how_far_it_is_and_fits_the_terminal(clone, machine):
    clock(machine, 10)
    script = f"""set -eu; . "${{0%/*}}/lib.sh"
        far() {{ echo "pip: 23 of 47 packages fetched, and more that does not fit at all"; }}
        code=0; follow far "{machine}/log" sh -c 'echo out; sleep 1; exit 3' || code=$?
        echo "code $code" """
    done = run("sh", "-c", script, clone / "setup/x", machine=machine, COLUMNS="40")
    *progress, code = done.stdout.splitlines()
    assert code == "code 3"
    assert progress[0].startswith("siteproof: 10 s: pip: 23 of 47 packages"[:40])
    assert {len(line) for line in progress} == {40}
    assert (machine / "log").read_text() == "out\n"


def test_apt_gets_progress_is_packages_of_all_packages(clone, machine):
    clock(machine, 10)
    program(
        machine / "bin/apt-get",
        """case $* in *install*) echo "0 upgraded, 70 newly installed, 0 to remove"
        echo "Get:1 http://m bookworm/main a"; echo "Unpacking a (1) ..."; echo "Unpacking b"
        sleep 1 ;; esac""",
    )
    done = run(clone / "setup/packages", "--yes", machine=machine, TMPDIR=str(machine))
    assert re.search(
        r"^siteproof: \d+ s: apt-get install: 2 of 70 packages unpacked$", done.stdout, re.MULTILINE
    )


def test_run_does_not_end_before_apt_get_does_where_there_is_no_venv(clone, machine, tmp_path):
    program(machine / "bin/apt-get", f'sleep 1; echo "$*" >>"{tmp_path}/apt-calls"')
    program(machine / "python", "exit 1")
    program(machine / "bin/python3", "exit 1")
    (clone / "setup/venv").write_text('#!/bin/sh\n[ "$1" = --pip ] || exit 2\n')
    done = run(clone / "setup/run", machine=machine, TMPDIR=str(machine))
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == "siteproof: no .venv, so nothing was run"
    assert any("install" in call for call in apt_calls(machine))


def test_an_interrupted_setup_leaves_no_pip_behind_and_the_previous_venv(ready, tmp_path):
    (ready / "setup/requirements.lock").write_text("# another lock\n")
    python = tmp_path / "python"
    program(
        python,
        f"""case $* in
        *-c*) echo "11 {python}" ;;
        *venv*) mkdir -p "{ready}/.venv/bin" && cp "$0" "{ready}/.venv/bin/python" ;;
        *install*) echo $$ >"{tmp_path}/pip"; exec sleep {PATIENCE} ;;
        esac""",
    )
    setup = subprocess.Popen(
        [ready / "setup/venv"],
        env={"PATH": os.environ["PATH"], "PYTHON": str(python)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for(lambda: (tmp_path / "pip").exists() and (tmp_path / "pip").read_text().strip())
    os.killpg(setup.pid, signal.SIGINT)
    told, _ = setup.communicate(timeout=PATIENCE)
    assert setup.returncode == 130
    assert told.endswith("siteproof: the previous .venv is restored\n")
    assert (ready / ".venv/bin/reframe").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pip").read_text()), 0)
