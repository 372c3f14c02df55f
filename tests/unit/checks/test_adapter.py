"""Every patch of ReFrame: that plain ReFrame needs it, and what it does."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields

import pytest
from clone import TOP

from siteproof.checks import adapter
from siteproof.errors import UserError

pytestmark = pytest.mark.command  # each runs ReFrame

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
MAIN = """
import sys
from reframe.frontend.cli import main
sys.argv = {}
main()
"""


@pytest.fixture(scope="module")
def server():
    """A process with plain ReFrame loaded, which runs scripts."""
    with subprocess.Popen(
        [sys.executable, TOP / "tests/support/plain_reframe.py"],
        env=os.environ | {"PYTHONPATH": str(TOP)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()


class Here:
    """A folder with a check and settings of plain ReFrame, and ReFrame itself."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.env = os.environ | {"HOME": str(folder), "PYTHONPATH": str(TOP)}
        for name in ("RFM_CONFIG_FILES", "RFM_CHECK_SEARCH_PATH", "RFM_SYSTEM"):
            self.env.pop(name, None)
        self.write("config.py", CONFIG)
        self.write("first.py", CHECK)

    def __truediv__(self, name):
        return self.folder / name

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def script(self, text, code=0):
        """What a script prints; it must end with this exit code."""
        said = self.folder / "said"
        asked = {"script": text, "here": str(self.folder), "env": self.env, "said": str(said)}
        print(json.dumps(asked), file=self.server.stdin, flush=True)
        ended = int(self.server.stdout.readline())
        assert ended == code, said.read_text()
        return said.read_text()

    def reframe(self, *words, code=0):
        """What a command of ReFrame prints; it must end with this exit code."""
        whole = ["reframe", "-C", "config.py", *words, "--nocolor"]
        return self.script(MAIN.format(whole), code)

    def last(self, text):
        """The last line that a script prints."""
        return (self.script(text).splitlines() or [""])[-1]

    def program(self, name, text):
        """A program that goes before others of its name."""
        self.write(name, f"#!/bin/sh\necho called >> {self.folder}/calls\n{text}\n")
        (self.folder / name).chmod(0o755)
        self.env["PATH"] = f"{self.folder}:{self.env['PATH']}"

    def calls(self):
        """How often such programs were called."""
        calls = self.folder / "calls"
        return calls.read_text().count("called") if calls.exists() else 0


@pytest.fixture
def here(tmp_path, server):
    return Here(tmp_path, server)


# ---- what plain ReFrame does; a test that fails here names a patch to delete


MODE = CONFIG.replace(
    '"environments": [', '"modes": [{"name": "m", "options": ["-S x=1"]}], "environments": ['
)


def options_with_a_mode(here):
    here.write("config.py", MODE)
    assert "Found 0 check(s)" in here.reframe("-c", "first.py", "-l", "-p", "other")
    assert "Found 1 check(s)" in here.reframe("-c", "first.py", "-l", "-p", "other", "--mode=m")


def options_as_read(here):
    """The settings are read by a command that has its options; nothing hands them over."""
    here.write("config.py", f"import sys\nprint('settings:', sys.argv[1:]){CONFIG}")
    assert "'--dry'" in next(
        line for line in here.reframe("-c", "first.py", "--dry").splitlines() if "settings:" in line
    )


def settings_read_before(here):
    """Of two files with handlers those of the second are left, and of both it warns."""
    for name in ("config.py", "later.py"):
        logs = PERFLOG.replace('"logs"', f'"{name}-logs"')
        here.write(name, CONFIG.replace('"environments"', f'{logs} "environments"'))
    said = here.reframe("-C", "later.py", "-c", "first.py", "-r")
    assert "redefinition of partition 'plain:node'" in said
    assert [path.name for path in here.folder.glob("*-logs")] == ["later.py-logs"]


def system_of_this_host(here):
    """After a selection only the selected system can be read."""
    script = """
from reframe.core import config
settings = config.load_config("config.py")
before = len(settings["systems"])
settings.select_subconfig()
print(settings.subconfig_system, before, len(settings["systems"]))
"""
    assert here.last(script) == "plain 2 1"


PERFLOG = """
    "logging": [{"handlers_perflog": [{"type": "filelog", "prefix": "x", "basedir": "logs",
        "level": "info", "format": "%(check_name)s"}]}],"""
VALUES = """
    @performance_function("s")
    def one(self):
        return 1

    @performance_function("s")
    def two(self):
        return 2
"""


def records_of_a_test(here):
    """A setting of all handlers decides whether a test has one record or one a variable."""
    check = CHECK.replace("import sanity_function", "import performance_function, sanity_function")
    here.write("first.py", check + VALUES)
    other = PERFLOG.partition("[{")[2].partition("[")[2].partition("]")[0].replace("logs", "others")
    both = PERFLOG.replace("}]}", f"}}, {other}], 'perflog_multiline': True}}")
    here.write("config.py", CONFIG.replace('"environments"', f'{both} "environments"'))
    here.reframe("-c", "first.py", "-r")
    for name in ("logs", "others"):
        (log,) = here.folder.glob(f"{name}/**/*.log")
        assert log.read_text().count("First") == 2


def broken_files(here):
    here.write("first.py", f"{CHECK}\nimport not_there\n")
    said = here.reframe("-c", "first.py", "-r")
    assert "skipping test file" in said
    assert "PASSED" in said


def unknown_variables(here):
    said = here.reframe("-c", "first.py", "-r", "-S", "Frist.executable=false")
    assert "PASSED" in said
    assert "Frist" not in "".join(said.splitlines(keepends=True)[8:])  # above is the command


def start_and_end_of_a_run(here):
    assert "PASSED" in here.reframe("-c", "first.py", "-r", "-n", "Nothing")


def places_that_fit(here):
    here.write("first.py", CHECK.replace('valid_systems = ["*"]', 'valid_systems = ["no"]'))
    said = here.reframe("-c", "first.py", "-l")
    assert "Found 0 check(s)" in said
    assert "First" not in said


def dropped_signals(here):
    """A log record asks for the user's name: osext.osuser swallows whatever comes then."""
    assert here.last(SIGNAL) == "went on, and hears no further signal"


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


def resized_jobs(here):
    """The recording of a job that lost a node: ReFrame waits for its RESIZING record."""
    assert polled(here, "10") == "RESIZING,CANCELLED True"


def polled(here, job, before=""):
    """State of a recorded job as ReFrame reads it, and whether it takes it for pending."""
    recorded = next(TOP.glob("tests/**/22.05/jobs.sacct"))
    here.program("sacct", f"cat {recorded}")
    return here.last(f"""{before}{SCHEDULER}
scheduler = object.__new__(SlurmJobScheduler)
vars(scheduler).update(
    _sacct="sacct", _max_sacct_failures=0, _num_sacct_failures=0, _update_state_count=0,
    _pending_job_reason_poll_freq=9, _cancel_if_pending_too_long=lambda jobs: None)
job._jobid, job._submit_time = "{job}", 1795317800.0
scheduler.poll(job)
print(job.state, slurm_state_pending(job.state))
""")


def nodes_of_a_job(here):
    assert hostnames(here) == 3


def hostnames(here, before="", spec="node001"):
    """How often three log records of a job that has ended ask Slurm for its nodes."""
    here.program("scontrol", "echo node001")
    here.last(f"""{before}{SCHEDULER}
job._state, job._nodespec = "COMPLETED", "{spec}"
for _ in range(3):
    assert job.nodelist == ["node001"]
""")
    return here.calls()


def version_of_srun(here):
    assert versions(here) == 3


def versions(here, before=""):
    """How often three launchers ask for the version; each must know what it means."""
    here.program("srun", "echo slurm-wlm 21.08.5")
    here.last(f"""{before}
from reframe.core.launchers.mpi import SrunLauncher
made = [SrunLauncher() for _ in range(3)]
made[0].options.append("--overlap")
assert [(one.use_cpus_per_task, one.options) for one in made[1:]] == 2 * [(False, [])]
""")
    return here.calls()


def attributes_in_logs(here):
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
    here.write("config.py", before + LOGGED)
    here.write("first.py", LOGGABLE)
    count = here.reframe("-c", "first.py", "-r").count("read\n")
    [perflog] = (here / "logs").rglob("*.log")
    return count, (here / "debug").read_text(), perflog.read_text()


def second_job(here):
    """What is submitted again is over before it has begun."""
    assert (
        here.last(f"""{SCHEDULER}
scheduler = SimpleNamespace(
    _sched_access_in_submit=False, _resubmit_on_errors=[],
    sbatch=lambda words: SimpleNamespace(stdout="Submitted batch job 2"))
job._jobid, job._state = "1", "NODE_FAIL"
SlurmJobScheduler.submit(scheduler, job)
print(job.jobid, job.state)
""")
        == "2 NODE_FAIL"
    )


def files_of_a_job(here):
    assert "secret" in after_a_job_that_links(here)
    assert here.last(SCRIPT) == "echo hello"


def after_a_job_that_links(here, *, fine=True):
    """What ReFrame prints and keeps of a job that has put a link in place of its output."""
    here.write("key", "secret\n")
    link = f"postrun_cmds = ['rm rfm_job.out', 'ln -s {here.folder}/key rfm_job.out']"
    check = CHECK.replace('executable = "true"', f'executable = "true"\n    {link}')
    here.write("first.py", check.replace("return True", f"return {fine}"))
    words = ("-c", "first.py", "-r", f"--prefix={here.folder}/p")
    told = here.reframe(*words, code=0 if fine else 1)
    kept = sorted((here / "p/output").rglob("rfm_job.out"))
    return told + "".join(path.read_text() for path in kept)


def full_disk(here):
    assert "No space left" in here.last(CLOSE.format("except OSError as error: print(error)"))


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


def deprecations_of_fields(here):
    assert "reframe.core.fields" in here.last(COUNT)


def deprecations_of_variables(here):
    assert "reframe.core.variables" in here.last(COUNT)


NEEDED = {
    test.__name__.replace("_", " "): test
    for test in (
        options_with_a_mode,
        options_as_read,
        settings_read_before,
        system_of_this_host,
        broken_files,
        places_that_fit,
        records_of_a_test,
        unknown_variables,
        start_and_end_of_a_run,
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
def test_plain_reframe_needs_the_patch(name, here):
    NEEDED[name](here)


# ---- what the patches do; what the hooks refuse, test_run_local.py tells


def test_an_environment_is_chosen_in_a_mode_too(here):
    here.write("config.py", PATCHED + MODE)
    for environment, found in (("other", 0), ("plain", 1)):
        said = here.reframe("-c", "first.py", "-l", "-p", environment, "--mode=m")
        assert f"Found {found} check(s)" in said


def test_options_are_known_as_reframe_has_read_them(here):
    told = "given = adapter.given()\nprint('given:', given.dry_run, given.system, given.run)"
    here.write("config.py", f"{PATCHED}{told}{CONFIG}")
    here.env["RFM_SYSTEM"] = "plain"
    assert "given: True plain None\n" in here.reframe("-c", "first.py", "--dry")


def test_settings_that_another_command_reads_are_refused():
    with pytest.raises(UserError, match="its options are unknown"):
        adapter.given()


def test_each_hook_is_called(here):
    here.write("config.py", f"{PATCHED}{CONFIG}")
    said = here.reframe("-c", "first.py", "-r")
    called = set(re.findall(r"hook: (\w+)\n", said))
    others = {"file_broken", "log_lost"}
    assert called | others == {hook.name for hook in fields(adapter.Hooks)}, said
    assert "hook: before_run\n" in here.reframe("-c", "first.py", "-r", "-n", "Nothing")
    here.write("first.py", "def (")
    assert "hook: file_broken\n" in here.reframe("-c", "first.py", "-l")


def test_each_test_that_has_ended_is_told_however_it_ended(here):
    """The second one fails before it has any values; the third one should fail, and does not."""
    second = CHECK.replace("First", "Second").replace('= "true"', '= "true"\n    sourcesdir = "no"')
    third = CHECK.replace("First", "Third").replace("@rfm", "@rfm.xfail('known')\n@rfm")
    here.write("config.py", f"{PATCHED}{CONFIG}")
    here.write("first.py", CHECK + second + third)
    said = here.reframe("-c", "first.py", "-r", code=1)
    assert said.count("hook: test_ended\n") == 3, said
    assert "unexpected success" in said


def test_a_dropped_signal_is_raised_again(here):
    again = "\ntry:\n    adapter.repeat_signal()\nexcept KeyboardInterrupt:\n    print('again')"
    assert here.last(f"{PATCHED}{SIGNAL}{again}") == "again"


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGTERM"])
def test_no_guard_of_a_parser_takes_a_signal_for_its_own_error(here, name):
    script = f"""
import os, signal
os.close(2)  # as of a terminal that is gone
from reframe.frontend import executors
signal.signal(signal.{name}, executors._force_exit)
try:
    try:
        os.kill(os.getpid(), signal.{name})
    except Exception:
        print("swallowed")
except KeyboardInterrupt:
    print("ended")
"""
    assert here.last(PATCHED + script) == "ended"


def test_a_resized_job_ends(here):
    assert polled(here, "10", PATCHED) == "CANCELLED False"


def test_the_nodes_of_a_job_are_asked_for_once(here):
    assert hostnames(here, PATCHED) == 0
    assert hostnames(here, PATCHED, spec="None assigned@") == 1


def test_what_a_job_has_put_in_place_of_its_output_is_not_followed(here):
    here.write("config.py", f"{PATCHED}{CONFIG}")
    for fine in (True, False):
        said = after_a_job_that_links(here, fine=fine)
        assert "refused: it is a link" in said
        assert "secret" not in said
        assert "Traceback" not in said


def test_no_script_is_written_through_a_link_of_a_job(here):
    assert here.last(f"{PATCHED}{SCRIPT}") == "mine"
    assert (here / "job.sh").is_symlink() is False
    assert "echo hello" in (here / "job.sh").read_text()


def test_a_full_disk_is_told_to_the_hook(here):
    script = CLOSE.format("except OSError as error: print(error)")
    assert here.last(PATCHED + script.replace('print("closed")', "pass")) == "hook: log_lost"


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
    assert here.last(PATCHED + script) == "hook: log_lost"


def test_the_version_of_srun_is_asked_for_once(here):
    assert versions(here, PATCHED) == 1


def test_only_a_log_that_prints_attributes_reads_them(here):
    count, debug, perflog = reads(here, PATCHED)
    assert 1 <= count <= 3, "by the perflog"
    assert re.search(r"\nFirst .*@plain:node\+plain: Entering stage: sanity\n", debug)
    assert perflog.endswith("First costly=value\n")


def test_nothing_is_warned_of_when_patched(here):
    assert here.last(PATCHED + COUNT) == "calls:"
