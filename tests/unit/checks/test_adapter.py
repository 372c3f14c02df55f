"""Every patch of ReFrame: that plain ReFrame needs it, what it does, and that no other is made."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import reframe

from siteproof.checks import adapter
from siteproof.errors import UserError

pytestmark = pytest.mark.command  # ReFrame is started again and again

TOP = next(p for p in Path(__file__).resolve().parents if (p / "reframe_settings.py").exists())
REFRAME = Path(sys.executable).with_name("reframe")
CONFIG = """
site_configuration = {
    "systems": [{"name": "plain", "hostnames": [".*"], "partitions": [{
        "name": "node", "scheduler": "local", "launcher": "local", "environs": ["plain"]}]}],
    "environments": [{"name": "plain"}], "general": [{"remote_detect": False}],
}
"""
CHECK = """
import reframe as rfm
from reframe.core.builtins import sanity_function

@rfm.simple_test
class First(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "true"

    @sanity_function
    def fine(self):
        return True
"""
# Written before a script: the patches, with hooks that print.
PATCHED = """
from siteproof.checks import adapter
from dataclasses import fields
adapter.apply(adapter.Hooks(*(
    lambda *what, name=hook.name: print("hook:", name) or what[0]
    for hook in fields(adapter.Hooks))))
"""
SCHEDULER = """
from types import SimpleNamespace
from reframe.core import config, runtime
settings = config.load_config("config.py")
settings.select_subconfig("plain")
runtime.init_runtime(settings)
from reframe.core.schedulers.slurm import SlurmJobScheduler, _SlurmJob, slurm_state_pending
job = _SlurmJob("x")
"""
COUNT = """
import sys
from reframe.core import fields, variables
calls = {fields.__name__: 0, variables.__name__: 0}
def counting(module, warn):
    def called(*words, **more):
        calls[module.__name__] += warn.__name__ == "user_deprecation_warning"
        return warn(*words, **more)
    return called
for module in (fields, variables):
    module.user_deprecation_warning = counting(module, module.user_deprecation_warning)
from reframe.frontend.cli import main
sys.argv = ["reframe", "-C", "config.py", "-c", "first.py", "-r"]
try:
    main()
except SystemExit:
    print("calls:", *(name for name, count in calls.items() if count))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a check and settings of plain ReFrame."""
    (tmp_path / "config.py").write_text(CONFIG)
    (tmp_path / "first.py").write_text(CHECK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    for name in ("RFM_CONFIG_FILES", "RFM_CHECK_SEARCH_PATH", "RFM_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def plain(*words):
    """Run plain ReFrame; it must end with exit code 0. Returns what it prints."""
    done = subprocess.run(
        [REFRAME, "-C", "config.py", *words, "--nocolor"],
        timeout=120,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def python(script):
    """The last word that a script prints."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1] if done.stdout else ""


def program(here, name, text, monkeypatch):
    """A program that goes before others of its name."""
    (here / name).write_text(f"#!/bin/sh\necho called >> {here}/calls\n{text}\n")
    (here / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(here), prepend=":")


# ---- what plain ReFrame does; a test that fails here names a patch to delete


MODE = CONFIG.replace(
    '"environments": [', '"modes": [{"name": "m", "options": ["-S x=1"]}], "environments": ['
)


def options_with_a_mode(here, _monkeypatch):
    (here / "config.py").write_text(MODE)
    assert "Found 0 check(s)" in plain("-c", "first.py", "-l", "-p", "other")
    assert "Found 1 check(s)" in plain("-c", "first.py", "-l", "-p", "other", "--mode=m")


def options_as_read(here, _monkeypatch):
    """The settings are read by a command that has its options; nothing hands them over."""
    (here / "config.py").write_text(f"import sys\nprint('settings:', sys.argv[1:]){CONFIG}")
    assert "'--dry'" in next(
        line for line in plain("-c", "first.py", "--dry").splitlines() if "settings:" in line
    )


def broken_files(here, _monkeypatch):
    (here / "first.py").write_text(f"{CHECK}\nimport not_there\n")
    said = plain("-c", "first.py", "-r")
    assert "skipping test file" in said
    assert "PASSED" in said


def unknown_variables(_here, _monkeypatch):
    said = plain("-c", "first.py", "-r", "-S", "Frist.executable=false")
    assert "PASSED" in said
    assert "Frist" not in "".join(said.splitlines(keepends=True)[8:])  # above is the command


def start_and_end_of_a_run(_here, _monkeypatch):
    assert "PASSED" in plain("-c", "first.py", "-r", "-n", "Nothing")


def places_that_fit(here, _monkeypatch):
    (here / "first.py").write_text(CHECK.replace('valid_systems = ["*"]', 'valid_systems = ["no"]'))
    said = plain("-c", "first.py", "-l")
    assert "Found 0 check(s)" in said
    assert "First" not in said


def end_of_a_test(here, _monkeypatch):
    """A test that fails before its sanity stage has no record for any perflog."""
    (here / "config.py").write_text(CONFIG.replace("],", f"],{PERFLOG}", 1))
    (here / "first.py").write_text(CHECK.replace('= "true"', '= "true"\n    sourcesdir = "none"'))
    said = subprocess.run(
        [REFRAME, "-C", "config.py", "-c", "first.py", "-r"], capture_output=True, timeout=120
    )
    assert said.returncode == 1
    assert not list(here.glob("logs/**/*.log"))


PERFLOG = """
    "logging": [{"handlers_perflog": [{"type": "filelog", "prefix": "x", "basedir": "logs",
        "level": "info", "format": "%(check_name)s"}]}],"""


def dropped_signals(_here, _monkeypatch):
    """A log record asks for the user's name: osext.osuser swallows whatever comes then."""
    assert python(SIGNAL) == "went on, and hears no further signal"


SIGNAL = """
import getpass, os, signal
from reframe.frontend import executors
from reframe.utility import osext
signal.signal(signal.SIGTERM, executors._force_exit)
getpass.getuser = lambda: os.kill(os.getpid(), signal.SIGTERM)
osext.osuser()
ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
print("went on, and hears", "no further signal" if ignored else "others")
"""


def resized_jobs(here, monkeypatch):
    """The recording of a job that lost a node: ReFrame waits for its RESIZING record."""
    assert polled(here, monkeypatch, "10") == "RESIZING,CANCELLED True"


def polled(here, monkeypatch, job, before=""):
    """State of a recorded job as ReFrame reads it, and whether it takes it for pending."""
    recorded = next(TOP.glob("tests/**/22.05/jobs.sacct"))
    program(here, "sacct", f"cat {recorded}", monkeypatch)
    return python(f"""{before}{SCHEDULER}
scheduler = object.__new__(SlurmJobScheduler)
vars(scheduler).update(
    _sacct="sacct", _max_sacct_failures=0, _num_sacct_failures=0, _update_state_count=0,
    _pending_job_reason_poll_freq=9, _cancel_if_pending_too_long=lambda jobs: None)
job._jobid, job._submit_time = "{job}", 1795317800.0
scheduler.poll(job)
print(job.state, slurm_state_pending(job.state))
""")


def nodes_of_a_job(here, monkeypatch):
    assert hostnames(here, monkeypatch) == 3


def hostnames(here, monkeypatch, before="", spec="node001"):
    """How often three log records of a job that has ended ask Slurm for its nodes."""
    program(here, "scontrol", "echo node001", monkeypatch)
    python(f"""{before}{SCHEDULER}
job._state, job._nodespec = "COMPLETED", "{spec}"
for _ in range(3):
    assert job.nodelist == ["node001"]
""")
    calls = here / "calls"
    return calls.read_text().count("called") if calls.exists() else 0


def version_of_srun(here, monkeypatch):
    assert versions(here, monkeypatch) == 3


def versions(here, monkeypatch, before=""):
    """How often three launchers ask for the version; each must know what it means."""
    program(here, "srun", "echo slurm-wlm 21.08.5", monkeypatch)
    python(f"""{before}
from reframe.core.launchers.mpi import SrunLauncher
made = [SrunLauncher() for _ in range(3)]
made[0].options.append("--overlap")
assert [(one.use_cpus_per_task, one.options) for one in made[1:]] == 2 * [(False, [])]
""")
    return (here / "calls").read_text().count("called")


def attributes_in_logs(here, _monkeypatch):
    assert reads(here)[0] > 10


LOGGED = CONFIG.replace(
    '"environments": [',
    """"logging": [{"handlers": [{"type": "file", "name": "debug", "level": "debug2",
        "format": "%(check_info)s: %(message)s"}],
    "handlers_perflog": [{"type": "filelog", "basedir": "logs", "prefix": "%(check_system)s",
        "level": "info", "format": "%(check_name)s costly=%(check_costly)s"}]}],
    "environments": [""",
)
LOGGABLE = (
    CHECK.replace("sanity_function\n", "loggable, performance_function, sanity_function\n", 1)
    + """
    @loggable
    @property
    def costly(self):
        print("read")
        return "value"

    @performance_function("s")
    def speed(self):
        return 1
"""
)


def reads(here, before=""):
    """How often a run reads an attribute of its test for its logs; both logs."""
    (here / "config.py").write_text(before + LOGGED)
    (here / "first.py").write_text(LOGGABLE)
    count = plain("-c", "first.py", "-r").count("read\n")
    [perflog] = (here / "logs").rglob("*.log")
    return count, (here / "debug").read_text(), perflog.read_text()


def second_job(_here, _monkeypatch):
    """What is submitted again is over before it has begun."""
    assert (
        python(f"""{SCHEDULER}
scheduler = SimpleNamespace(
    _sched_access_in_submit=False, _resubmit_on_errors=[],
    sbatch=lambda words: SimpleNamespace(stdout="Submitted batch job 2"))
job._jobid, job._state = "1", "NODE_FAIL"
SlurmJobScheduler.submit(scheduler, job)
print(job.jobid, job.state)
""")
        == "2 NODE_FAIL"
    )


def files_of_a_job(here, _monkeypatch):
    assert "secret" in after_a_job_that_links(here)
    assert python(SCRIPT) == "echo hello"


def after_a_job_that_links(here, *, fine=True):
    """What ReFrame prints and keeps of a job that has put a link in place of its output."""
    (here / "key").write_text("secret\n")
    link = f"postrun_cmds = ['rm rfm_job.out', 'ln -s {here}/key rfm_job.out']"
    check = CHECK.replace('executable = "true"', f'executable = "true"\n    {link}')
    (here / "first.py").write_text(check.replace("return True", f"return {fine}"))
    done = subprocess.run(
        [REFRAME, "-C", "config.py", "-c", "first.py", "-r", "--nocolor", f"--prefix={here}/p"],
        timeout=120,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    kept = sorted((here / "p/output").rglob("rfm_job.out"))
    return done.stdout + "".join(path.read_text() for path in kept)


def full_disk(here, _monkeypatch):
    assert "No space left" in python(CLOSE.format("except OSError as error: print(error)"))


SCRIPT = """
from pathlib import Path
from reframe.core import shell
Path("victim").write_text("mine")
Path("job.sh").symlink_to("victim")
with shell.generate_script("job.sh") as script:
    script.write("echo hello")
print(Path("victim").read_text().splitlines()[-1])
"""
CLOSE = """
from reframe.core.logging import MultiFileHandler
handler = MultiFileHandler("log", mode="w")
full = open("/dev/full", "w")
full.write("a record")
handler._MultiFileHandler__streams = {{"log": full}}
try:
    handler.close()
    print("closed")
{}
"""


def deprecations_of_fields(_here, _monkeypatch):
    assert "reframe.core.fields" in python(COUNT)


def deprecations_of_variables(_here, _monkeypatch):
    assert "reframe.core.variables" in python(COUNT)


NEEDED = {
    test.__name__.replace("_", " "): test
    for test in (
        options_with_a_mode,
        options_as_read,
        broken_files,
        places_that_fit,
        unknown_variables,
        start_and_end_of_a_run,
        end_of_a_test,
        dropped_signals,
        resized_jobs,
        nodes_of_a_job,
        version_of_srun,
        second_job,
        files_of_a_job,
        full_disk,
        attributes_in_logs,
        deprecations_of_fields,
        deprecations_of_variables,
    )
}


@pytest.mark.parametrize("name", [patch.name for patch in adapter.PATCHES])
def test_plain_reframe_needs_the_patch(name, here, monkeypatch):
    NEEDED[name](here, monkeypatch)


# ---- what the patches do; what the hooks refuse, test_run_local.py tells


@pytest.mark.parametrize(("environment", "found"), [("other", 0), ("plain", 1)])
def test_an_environment_is_chosen_in_a_mode_too(here, environment, found):
    (here / "config.py").write_text(PATCHED + MODE)
    said = plain("-c", "first.py", "-l", "-p", environment, "--mode=m")
    assert f"Found {found} check(s)" in said


def test_options_are_known_as_reframe_has_read_them(here, monkeypatch):
    told = "given = adapter.given()\nprint('given:', given.dry_run, given.system, given.run)"
    (here / "config.py").write_text(f"{PATCHED}{told}{CONFIG}")
    monkeypatch.setenv("RFM_SYSTEM", "plain")
    assert "given: True plain None\n" in plain("-c", "first.py", "--dry")


def test_settings_that_another_command_reads_are_refused():
    with pytest.raises(UserError, match="its options are unknown"):
        adapter.given()


@pytest.mark.parametrize(
    ("words", "hook"),
    [
        ([], "file_loaded"),
        ([], "load_path"),
        ([], "all_loaded"),
        (["-r", "-n", "Nothing"], "before_run"),
        (["-r"], "after_run"),
        (["-r"], "test_ended"),
    ],
)
def test_a_hook_is_called(words, hook, here):
    (here / "config.py").write_text(f"{PATCHED}{CONFIG}")
    said = plain("-c", "first.py", *(words or ["-l"]))
    assert f"hook: {hook}\n" in said


def test_a_file_that_is_no_python_is_told(here):
    (here / "config.py").write_text(f"{PATCHED}{CONFIG}")
    (here / "first.py").write_text("def (")
    done = subprocess.run(
        [REFRAME, "-C", "config.py", "-c", "first.py", "-l"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "hook: file_broken\n" in done.stdout


def test_a_dropped_signal_is_raised_again(here):
    script = SIGNAL.replace("executors._force_exit)", "executors._force_exit)", 1)
    again = "\ntry:\n    adapter.repeat_signal()\nexcept BaseException as error:\n    print(error)"
    assert python(f"{PATCHED}{script}{again}") == "received signal 15"


def test_a_resized_job_ends(here, monkeypatch):
    assert polled(here, monkeypatch, "10", PATCHED) == "CANCELLED False"


def test_the_nodes_of_a_job_are_asked_for_once(here, monkeypatch):
    assert hostnames(here, monkeypatch, PATCHED) == 0
    assert hostnames(here, monkeypatch, PATCHED, spec="None assigned@") == 1


@pytest.mark.parametrize("fine", [True, False])
def test_what_a_job_has_put_in_place_of_its_output_is_not_followed(fine, here):
    (here / "config.py").write_text(f"{PATCHED}{CONFIG}")
    said = after_a_job_that_links(here, fine=fine)
    assert "refused: it is a link" in said
    assert "secret" not in said
    assert "Traceback" not in said


def test_no_script_is_written_through_a_link_of_a_job(here):
    assert python(f"{PATCHED}{SCRIPT}") == "mine"
    assert (here / "job.sh").is_symlink() is False
    assert "echo hello" in (here / "job.sh").read_text()


def test_a_full_disk_is_told_to_the_hook(here):
    script = CLOSE.format("except OSError as error: print(error)").replace(
        'print("closed")', "pass"
    )
    assert python(PATCHED + script) == "hook: log_lost"


def test_a_full_disk_under_the_log_of_a_run_is_told_to_the_hook_at_its_end(here):
    script = """
import logging
from reframe.core import logging as own
handler = logging.FileHandler("log")
handler.stream = open("/dev/full", "w")
handler.stream.write("a record")
own._logger = own.Logger("reframe")
own._logger.addHandler(handler)
"""
    assert python(PATCHED + script) == "hook: log_lost"


def test_the_version_of_srun_is_asked_for_once(here, monkeypatch):
    assert versions(here, monkeypatch, PATCHED) == 1


def test_only_a_log_that_prints_attributes_reads_them(here):
    count, debug, perflog = reads(here, PATCHED)
    assert 1 <= count <= 3, "by the perflog"
    assert re.search(r"\nFirst .*@plain:node\+plain: Entering stage: sanity\n", debug)
    assert perflog.endswith("First costly=value\n")


def test_nothing_is_warned_of_when_patched(here):
    assert python(PATCHED + COUNT) == "calls:"


# ---- another ReFrame


@pytest.fixture
def unpatched(monkeypatch):
    """Patches that change nothing, so that this process keeps its ReFrame."""
    from dataclasses import replace

    monkeypatch.setattr(
        adapter,
        "PATCHES",
        tuple(replace(patch, put=lambda hooks: None) for patch in adapter.PATCHES),
    )


def test_the_verified_version_is_the_pin_and_is_not_told(unpatched, capsys):
    pins = next(TOP.glob("**/requirements.in")).read_text()
    assert f"ReFrame-HPC=={adapter.VERIFIED}\n" in pins
    adapter.apply(None)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("version", ["4.10.5", "4.11.0", "5.0.0-dev.1", "4.9.2"])
def test_another_version_is_told_in_one_line(version, unpatched, monkeypatch, capsys):
    monkeypatch.setattr(reframe, "VERSION", version)
    adapter.apply(None)
    assert capsys.readouterr().err == (
        f"siteproof: this is ReFrame {version}; Siteproof was verified with {adapter.VERIFIED}\n"
    )


@pytest.mark.parametrize(
    ("patch", "needed"),
    [(patch.name, needed) for patch in adapter.PATCHES for needed in patch.needs],
)
def test_a_reframe_without_a_name_that_a_patch_needs_is_refused(
    patch, needed, unpatched, monkeypatch
):
    there = adapter._there
    monkeypatch.setattr(adapter, "_there", lambda name: name != needed and there(name))
    with pytest.raises(UserError, match=f"the patch '{patch}' needs"):
        adapter.apply(None, [patch])


@pytest.mark.parametrize(
    "needed",
    [
        "reframe.not_there:x",
        "reframe.frontend.loader:NotThere.load_all",
        "reframe.frontend.loader:RegressionCheckLoader.not_there",
        "reframe.frontend.loader:RegressionCheckLoader.__init__/_not_used",
        "reframe.core.schedulers.slurm:_SlurmJob.nodelist/fget",
    ],
)
def test_a_name_that_is_gone_is_noticed(needed):
    assert not adapter._there(needed)


def test_the_refusal_is_one_line_without_a_traceback(here, monkeypatch):
    (here / "sitecustomize.py").write_text(
        "from reframe.core.logging import MultiFileHandler\ndel MultiFileHandler.close\n"
        "from reframe.frontend import executors\ndel executors._force_exit\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{here}:{TOP}")
    done = subprocess.run(
        [REFRAME, "-C", TOP / "reframe_settings.py", "--system=thishost", "-l"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done
    assert "has no reframe.frontend.executors._force_exit, which the patch 'dropped signals'" in (
        done.stderr
    )
    assert len(done.stderr.splitlines()) == 1


# ---- nobody else


def files():
    """Every file of ours that may meet ReFrame's objects, but for the adapter."""
    for folder in ("siteproof", "checks", "sweeps"):
        for path in (TOP / folder).rglob("*.py"):
            text = path.read_text()
            checks = "checks" in path.relative_to(TOP).parts
            if path.name != "adapter.py" and (checks or "import reframe" in text):
                yield path, ast.parse(text)


def from_reframe(tree):
    """The names of ReFrame's that a file imports, each with the name that it has there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            for name in node.names:
                if (module or name.name).split(".")[0] == "reframe":
                    yield name.name, (name.asname or name.name).split(".")[0]


def own(tree):
    """What a file itself defines: functions, classes, names, and attributes of self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and (ast.unparse(node.value) == "self")
        ):
            yield node.attr


def strange(tree):
    """Names of ReFrame's internals that a file uses, and what it assigns to ReFrame's."""
    yield from (name for name, _ in from_reframe(tree) if name.startswith("_"))
    theirs, mine = {name for _, name in from_reframe(tree)}, set(own(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr.startswith("_") and not node.attr.endswith("__") and node.attr not in mine:
            yield node.attr
        root = ast.unparse(node).split(".")[0]
        if isinstance(node.ctx, ast.Store) and root in theirs:
            yield f"{ast.unparse(node)} ="


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from reframe.core.schedulers.slurm import _SlurmJob", "_SlurmJob"),
        ("import reframe.frontend.executors as e\ne.Runner.runall = 1", "e.Runner.runall ="),
        ("class A:\n def f(self):\n  self.job._state = 1", "_state"),
        ("class A:\n def f(self):\n  self._setup_run_job()", "_setup_run_job"),
    ],
)
def test_the_rule_notices(text, found):
    assert list(strange(ast.parse(text))) == [found]


def test_no_other_file_touches_reframes_internals():
    found = {f"{path.relative_to(TOP)}: {name}" for path, tree in files() for name in strange(tree)}
    assert found == set()
