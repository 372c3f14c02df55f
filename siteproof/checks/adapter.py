"""All that Siteproof changes inside ReFrame, and the only file that knows ReFrame's internals.

Each patch names what it changes, why, and which of ReFrame's names it needs; `apply` refuses a
ReFrame that lacks one of them. `tests/unit/checks/test_adapter.py` runs plain ReFrame and fails for
a patch that is no longer needed. `Hooks` decide what is refused and reported.
"""

from __future__ import annotations

import copy
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import reframe
from reframe.core.settings import site_configuration

from siteproof import files, nodesets
from siteproof.errors import ExitCode, UserError, harmless
from siteproof.slurm.spelling import without_resizing

Function = TypeVar("Function", bound=Callable[..., Any])
_CLI = "reframe.frontend.cli"
PINNED = "4.10.4"  # by requirements.in
LEAST, BELOW = "4.9.3", "4.12"  # the bounds of pyproject.toml, within which the patches were tried


@dataclass(frozen=True)
class Hooks:
    """What the suite does where ReFrame has no hook of its own. Each may end the run."""

    # a file's name, the checks in it, and why ReFrame skips it, if it does
    file_loaded: Callable[[str, list[Any], BaseException | None], None]
    file_broken: Callable[[str, BaseException], None]  # the file is then left out
    load_path: Callable[[Sequence[str]], list[str]]  # of -c, and what is loaded instead
    all_loaded: Callable[[list[Any], Iterable[str]], None]  # all checks; names set by -S
    before_run: Callable[[Sequence[Any]], None]  # the test cases
    after_run: Callable[[Sequence[Any], int], None]  # skipped tasks; how many test cases there were
    log_lost: Callable[[OSError], None]
    test_ended: Callable[
        [Any], str
    ]  # a task; the session with its samples, empty if there are none


@dataclass(frozen=True)
class Patch:
    """One change of ReFrame. upstream: the number of ReFrame's issue, or the page in docs/upstream/
    with the text of one. needs: ReFrame's names as 'module:attribute', and as
    'module:function/name' where a function has to use the name.
    """

    name: str
    upstream: str
    needs: tuple[str, ...]
    put: Callable[[Hooks], None]


PATCHES: list[Patch] = []
_ARGUMENTS = "reframe.frontend.argparse:ArgumentParser"
_EXECUTORS = "reframe.frontend.executors"
_LOADER = "reframe.frontend.loader:RegressionCheckLoader"
_JOB = "reframe.core.schedulers.slurm:_SlurmJob"


def _patch(name: str, upstream: str, *needs: str) -> Callable[[Callable[[Hooks], None]], None]:
    """For a function that puts a patch: what it changes, and what happens otherwise."""
    return lambda put: PATCHES.append(Patch(name, upstream, needs, put))


def _needed_by(name: str, upstream: str, *needs: str) -> Callable[[Function], Function]:
    """For a function that is called where it is needed, and puts nothing."""
    PATCHES.append(Patch(name, upstream, needs, _ignore))
    return lambda function: function


def _ignore(*_args: Any, **_kwargs: Any) -> None:
    """In place of a warning or a patch's function."""


def apply(hooks: Hooks, names: Iterable[str] = ()) -> None:
    """Apply these patches to ReFrame, all if none are named. Raises UserError if one cannot be."""
    chosen = [patch for patch in PATCHES if not names or patch.name in names]
    for patch in chosen:
        for needed in patch.needs:
            if not _there(needed):
                raise UserError(
                    f"ReFrame {reframe.VERSION}",
                    f"has no {needed.replace(':', '.')}, which the patch '{patch.name}' needs",
                    hint=f"Install ReFrame {PINNED}, as 'make venv' in a clone does",
                )
    if not _numbers(LEAST) <= _numbers(reframe.VERSION) < _numbers(BELOW):
        tried = f"{LEAST} and later, below {BELOW}"
        print(
            f"siteproof: this is ReFrame {reframe.VERSION}; Siteproof was tried with {tried}",
            file=sys.stderr,
        )
    for patch in chosen:
        patch.put(hooks)


def _numbers(version: str) -> list[int]:
    """The numbers of a version, without what makes it a pre-release."""
    return [int(number) for number in version.partition("-")[0].split(".")]


def save_cpu() -> None:
    """Only the patches that need nothing else of the suite; `benchmarks/` measures them."""
    nothing: Any = None
    apply(
        Hooks(*[nothing] * len(fields(Hooks))),
        ("nodes of a job", "deprecations of fields", "deprecations of variables"),
    )


def _there(needed: str) -> bool:
    """Whether this ReFrame has a name, or a function that uses it."""
    module, _, path = needed.partition(":")
    path, _, used = path.partition("/")
    try:
        found = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return not used or used in found.__code__.co_names
    except (ImportError, AttributeError):
        return False


# ---- options


@_needed_by("options as read", "hooks-of-a-run", "reframe.frontend.cli:main")
def given() -> Any:
    """ReFrame's options as it has read them itself: shortened ones and variables included.

    Otherwise: the settings are read without them, and what reads the command line once more
    knows no shortened option (--ru) and no variable (RFM_STAGE_DIR).
    """
    frame: FrameType | None = sys._getframe()
    while frame and (frame.f_globals.get("__name__"), frame.f_code.co_name) != (_CLI, "main"):
        frame = frame.f_back
    if frame is None or "options" not in frame.f_locals:
        raise UserError(
            f"ReFrame {reframe.VERSION}",
            "the command 'reframe' does not read these settings, so its options are unknown",
            hint=f"Install ReFrame {PINNED}, as 'make venv' in a clone does",
        )
    return frame.f_locals["options"]


@_needed_by(
    "settings read before",
    "several-settings",
    "reframe.core.config:_SiteConfig.load_config_python/update_config",
    "reframe.core.config:_SiteConfig.select_subconfig",
)
def earlier_settings(system: Mapping[str, Any]) -> dict[str, Any]:
    """What settings files before ours have for a system, by section; {}: there is none.

    They are taken out of ReFrame's, so that they must be in ours. Otherwise: of two files ReFrame
    keeps the handlers of one only, and warns of each partition that both have.
    """
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_code.co_name != "load_config_python":
        frame = frame.f_back
    config = frame.f_locals["self"] if frame else None
    if config is None or len(config.sources) < 2:  # the first is ReFrame's own
        return {}
    fresh = type(config)()
    fresh.update_config(site_configuration, "<builtin>")
    read = copy.deepcopy(config._site_config)
    read["systems"] = [dict(system)]
    config._site_config, config._definitions = fresh._site_config, fresh._definitions
    fresh._site_config = read
    fresh.select_subconfig(system["name"], ignore_resolve_errors=True)
    return {name: fresh[name] for name in fresh}


@_needed_by(
    "system of this host", "several-settings", "reframe.core.config:_SiteConfig._detect_system"
)
def system_of_this_host(config: Any) -> str:
    """The name of the system whose patterns fit this host.

    Otherwise: only a selection finds it, after which the whole settings cannot be read any more.
    """
    return str(config._detect_system())


@_patch(
    "options with a mode",
    "options-with-a-mode",
    f"{_ARGUMENTS}.parse_args",
    f"{_ARGUMENTS}.parse_args/_update_defaults",
)
def _parse_args(_hooks: Hooks) -> None:
    """`parse_args` takes no default for a value that was given.

    Otherwise: with --mode the command line is read a second time and -p added to its own
    default, which is every environment: hours of unwanted jobs.
    """
    from reframe.frontend.argparse import ArgumentParser

    original = ArgumentParser.parse_args

    def parse_args(
        self: Any, args: Any = None, namespace: Any = None, suppress_required: bool = False
    ) -> Any:
        if namespace is not None:
            for name, default in vars(self._defaults).items():
                if getattr(namespace, name, None) is default:
                    setattr(namespace, name, None)
        return original(self, args, namespace, suppress_required)

    ArgumentParser.parse_args = parse_args


# ---- loading


@_patch("broken files", "3598", f"{_LOADER}.load_from_file", f"{_LOADER}.load_from_file/what")
def _load_from_file(hooks: Hooks) -> None:
    """`load_from_file` reports which checks a file has, or why it has none.

    Otherwise: ReFrame skips a file with an error in it and ends with exit code 0: a check that
    is missing looks like a check that passed.
    """
    from reframe.frontend import loader

    original, describe = loader.RegressionCheckLoader.load_from_file, loader.what
    skipped: BaseException | None = None  # the error that load_from_file catches itself

    def what(kind: Any, error: BaseException, trace: Any) -> Any:
        nonlocal skipped
        skipped = error
        return describe(kind, error, trace)

    def load_from_file(self: Any, filename: str, force: bool = False) -> list[Any]:
        nonlocal skipped
        skipped = None
        try:
            checks: list[Any] = original(self, filename, force)
        except (Exception, SystemExit) as error:  # the file may raise anything
            hooks.file_broken(filename, error)
            return []
        hooks.file_loaded(filename, checks, skipped)
        return checks

    loader.RegressionCheckLoader.load_from_file = load_from_file
    loader.what = what


@_patch(
    "unknown variables",
    "what-matches-nothing",
    f"{_LOADER}.load_all",
    f"{_LOADER}.__init__/_load_path",
    f"{_LOADER}.__init__/_external_vars",
)
def _load_all(hooks: Hooks) -> None:
    """`load_all` reports which names -S sets, and loads a site's own checks, too.

    Otherwise: -S with a check that does not exist is ignored silently; with --mode the options
    are read again, so that settings cannot add a path to -c.
    """
    from reframe.frontend.loader import RegressionCheckLoader

    original = RegressionCheckLoader.load_all

    def load_all(self: Any, force: bool = False) -> list[Any]:
        self._load_path = hooks.load_path(self._load_path)
        checks: list[Any] = original(self, force)
        hooks.all_loaded(checks, self._external_vars)
        return checks

    RegressionCheckLoader.load_all = load_all


@_needed_by("places that fit", "what-matches-nothing", "reframe.core.runtime:valid_sysenv_comb")
def fits(check: Any) -> bool:
    """Whether a partition of the system has an environment in which the test can run.

    Otherwise: a test for other systems or environments is left out without a word.
    """
    from reframe.core.runtime import valid_sysenv_comb

    return any(valid_sysenv_comb(check.valid_systems, check.valid_prog_environs).values())


# ---- running


@_patch(
    "start and end of a run",
    "hooks-of-a-run",
    f"{_EXECUTORS}:Runner.runall",
    f"{_EXECUTORS}:Runner.policy",
    f"{_EXECUTORS}:Runner.stats",
    f"{_EXECUTORS}:TestStats.skipped",
    f"{_EXECUTORS}:ExecutionPolicy.__init__/task_listeners",
    f"{_EXECUTORS}:RegressionTask._notify_listeners",
    f"{_EXECUTORS}:RegressionTask.__init__/_perflogger",
)
def _runall(hooks: Hooks) -> None:
    """`runall` reports the test cases before the first one runs, each test that has ended, before
    its line in a perflog is written, and in the end the skipped ones; interrupted it ends with 130.

    Otherwise: a run without any test case is called PASSED; there is no hook between the choice
    of tests and the first job, where a sweep's cost must be reported; a plain test has no hook of
    ours, and one that fails before its values has no line in any perflog; of the skipped ones the
    summary has the number only; and a run that was interrupted ends with 1, as one does whose
    tests fail, so that a script goes on.
    """
    from reframe.frontend.executors import Runner

    original = Runner.runall

    def runall(self: Any, testcases: Sequence[Any], *rest: Any) -> Any:
        hooks.before_run(testcases)
        # Before ReFrame's own, which may end the run (--max-failures).
        self.policy.task_listeners.insert(0, _Ended(hooks))
        try:
            return original(self, testcases, *rest)
        except KeyboardInterrupt:
            with suppress(OSError):  # the terminal may be gone
                print("siteproof: interrupted; what was measured is kept", file=sys.stderr)
            raise SystemExit(ExitCode.INTERRUPTED) from None
        finally:
            hooks.after_run(self.stats.skipped(), len(testcases))

    Runner.runall = runall


class _Ended:
    """A listener of tests, as ReFrame's TaskEventListener."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks

    def ended(self, task: Any) -> None:
        task._perflogger.extra["check_siteproof_session"] = self.hooks.test_ended(task)

    on_task_success = on_task_failure = on_task_abort = ended
    on_task_xfailure = on_task_xsuccess = ended
    on_task_setup = on_task_compile = on_task_compile_exit = _ignore
    on_task_run = on_task_exit = on_task_skip = _ignore


_received = 0  # the last signal


@_patch(
    "dropped signals",
    "dropped-signals",
    f"{_EXECUTORS}:_force_exit",
    f"{_EXECUTORS}:Runner.__init__/_force_exit",
)
def _signals(_hooks: Hooks) -> None:
    """SIGINT, SIGHUP and SIGTERM are noted and raise KeyboardInterrupt.

    Otherwise: a signal that comes while a log record asks for the user's name (osext.osuser),
    or within any `except Exception`, is swallowed, and after a SIGTERM no further one is heard:
    the run goes on, and a parser that was interrupted seems to have failed.
    """
    from reframe.core.exceptions import ForceExitError
    from reframe.frontend import executors

    force_exit = executors._force_exit

    def note(number: int, frame: FrameType | None) -> None:
        global _received
        _received = number
        if number != signal.SIGINT:
            with suppress(OSError):  # the terminal may be gone
                os.write(2, f"siteproof: received {signal.Signals(number).name}\n".encode())
            with suppress(ForceExitError):  # it is an Exception: who guards a parser would catch it
                force_exit(number, frame)
        raise KeyboardInterrupt

    executors._force_exit = note
    signal.signal(signal.SIGINT, note)


def repeat_signal() -> None:
    """Raise a signal again that ReFrame dropped; called whenever ReFrame polls a job."""
    if _received:
        raise KeyboardInterrupt


# ---- jobs of Slurm


@_patch(
    "resized jobs",
    "resized-jobs",
    f"{_JOB}.state.fget",
    "reframe.core.schedulers.slurm:slurm_state_pending",
)
def _state(_hooks: Hooks) -> None:
    """A Slurm job's state leaves out RESIZING.

    Otherwise: Slurm keeps that record of a job that lost a node for ever, and ReFrame takes it
    for a job that still waits, so it never ends.
    """
    from reframe.core.schedulers.slurm import _SlurmJob

    original = _SlurmJob.state.fget
    _SlurmJob.state = property(lambda job: without_resizing(original(job)))


@_patch(
    "nodes of a job",
    "commands-of-slurm",
    f"{_JOB}.nodelist.fget",
    f"{_JOB}.__init__/_nodespec",
    "reframe.core.schedulers.slurm:slurm_state_completed",
)
def _nodelist(_hooks: Hooks) -> None:
    """A Slurm job's nodes are expanded once, by ClusterShell.

    Otherwise: every log record of a job that has ended runs `scontrol show hostname`.
    """
    from reframe.core.schedulers.slurm import _SlurmJob

    ask = _SlurmJob.nodelist.fget
    known: WeakKeyDictionary[Any, tuple[str, list[str]]] = WeakKeyDictionary()

    def nodelist(job: Any) -> list[str]:
        spec, names = known.get(job, ("", []))
        if not names or spec != job._nodespec:
            names = _expanded(job) or ask(job)
            known[job] = (job._nodespec, names)
        return names

    _SlurmJob.nodelist = property(nodelist)


def _expanded(job: Any) -> list[str]:
    """The nodes of a job that has ended; none if their text is not a node set."""
    from reframe.core.schedulers.slurm import slurm_state_completed

    try:
        return list(nodesets.parse(job._nodespec)) if slurm_state_completed(job.state) else []
    except (TypeError, ValueError):
        return []


@_patch(
    "version of srun",
    "commands-of-slurm",
    "reframe.core.launchers.mpi:SrunLauncher.__init__/use_cpus_per_task",
    "reframe.core.launchers.mpi:SrunLauncher.__init__/run_command",
)
def _srun_version(_hooks: Hooks) -> None:
    """The launcher srun asks for Slurm's version once.

    Otherwise: every test case starts `srun --version`: 8,000 processes for 40,000 nodes.
    """
    from reframe.core.launchers.mpi import SrunLauncher

    ask = SrunLauncher.__init__
    known: dict[str, bool] = {}

    def begin(self: Any) -> None:
        if known:
            self.options = []
            vars(self).update(known)
        else:
            ask(self)
            known["use_cpus_per_task"] = self.use_cpus_per_task

    SrunLauncher.__init__ = begin


@_needed_by("second job", "second-job", "reframe.core.pipeline:RegressionTest._setup_run_job")
def renew_job(check: Any) -> None:
    """Give a check another job to submit, in place of the one that has ended.

    Otherwise: a check has one job only: submitted again, it still has the end of the first one.
    """
    check._setup_run_job()


def end_job(check: Any) -> None:
    """Take a job that Slurm no longer knows for one that has ended, whatever is accounted."""
    check.job._state = "NODE_FAIL"


# ---- files in a stage directory, to which the job can write


@_patch(
    "files of a job",
    "links-in-the-stage-directory",
    "reframe.core.pipeline:RegressionTest._copy_job_files",
    "reframe.utility.osext:tail",
    "reframe.core.shell:generate_script.__init__/ShellScriptGenerator",
    "reframe.core.shell:generate_script.__exit__/finalize",
)
def _files_of_a_job(_hooks: Hooks) -> None:
    """What lies in a stage directory is copied, shown and written as siteproof.files does.

    Otherwise: a job can put a link or a device in their place: ReFrame copies and prints
    /etc/shadow, fills the disk from /dev/zero, and writes the script of a second job through
    the link.
    """
    from reframe.core.pipeline import RegressionTest
    from reframe.core.shell import ShellScriptGenerator, generate_script
    from reframe.utility import osext

    def copy_job_files(self: Any, job: Any, folder: str) -> None:
        for name in (job.stdout, job.stderr, job.script_filename) if job else ():
            try:
                files.write(
                    Path(folder, name), _read(Path(self.stagedir, name)), below=Path(folder)
                )
            except (OSError, UserError) as error:  # no result depends on the copy
                self.logger.warning(f"{harmless(str(error))}: no copy of it is kept")

    def tail(name: str, count: int = 10) -> list[str]:
        try:
            lines = _read(Path(name)).decode("utf-8", "replace").splitlines()
        except UserError as error:
            raise OSError(error.what) from None
        return [f"{harmless(line.expandtabs())}\n" for line in lines[-count:]]

    def begin(self: Any, name: str, mode: int | None = None, *words: Any, **more: Any) -> None:
        self._shgen = ShellScriptGenerator(*words, **more)
        self._path, self._mode = Path.cwd() / name, mode

    def end(self: Any, *_error: object) -> None:
        data, mode = self._shgen.finalize().encode(), self._mode
        with suppress(OSError):
            self._path.unlink()  # a link, too
        files.write(self._path, data, below=self._path.parent, mode=0o766 if mode is None else mode)

    RegressionTest._copy_job_files = copy_job_files
    osext.tail = tail
    generate_script.__init__ = begin
    generate_script.__exit__ = end


def _read(path: Path) -> bytes:
    return files.read(path, below=path.parent, limit=files.OUTPUT)


# ---- logs


@_patch(
    "attributes in logs",
    "cost-of-log-records",
    "reframe.core.logging:LoggerAdapter._update_check_extras/loggable_attrs",
    "reframe.core.logging:LoggerAdapter.process/_update_check_extras",
)
def _attributes_in_logs(_hooks: Hooks) -> None:
    """A record for handlers that print no attribute of a check reads none.

    Otherwise: every record of the debug log, some fifty a test case, reads all attributes of
    its check: two thirds of ReFrame's CPU for a dry run.
    """
    from reframe.core.logging import LoggerAdapter

    read_all = LoggerAdapter._update_check_extras

    def update(self: Any) -> None:
        if (
            self.check is None
            or not self.logger
            or any(map(_prints_attributes, self.logger.handlers))
        ):
            read_all(self)
        else:
            self.extra["check_info"] = self.check.info()

    LoggerAdapter._update_check_extras = update


def _prints_attributes(handler: logging.Handler) -> bool:
    """Whether a handler needs attributes of a check beyond its name."""
    form = getattr(handler.formatter, "_fmt", None)
    if not isinstance(handler, logging.StreamHandler) or form is None:
        return True  # it may send the whole record
    return "%(check_" in form.replace("%(check_info)", "")


@_patch("records of a test", "several-settings", "reframe.core.logging:LoggerAdapter.log_result")
def _log_result(_hooks: Hooks) -> None:
    """Where a centre's settings want it, all handlers of perflogs but ours have one record a test.

    Otherwise: ReFrame has one setting for all, so that a centre's logs would have a record a
    variable.
    """
    from reframe.core.logging import LoggerAdapter

    original = LoggerAdapter.log_result

    def log_result(self: Any, level: int, task: Any, *words: Any, **named: Any) -> None:
        if not _one_record or not self.logger:
            original(self, level, task, *words, **named)
            return
        every = self.logger.handlers  # ours is the first
        try:
            for of_each_variable, handlers in ((True, every[:1]), (False, every[1:])):
                self.logger.handlers = handlers
                original(self, level, task, *words, **named | {"multiline": of_each_variable})
        finally:
            self.logger.handlers = every

    LoggerAdapter.log_result = log_result


_one_record = False


def log_one_record() -> None:
    """All handlers of perflogs but the first, which is ours, have one record a test."""
    global _one_record
    _one_record = True


@_patch("full disk", "full-disk", "reframe.core.logging:MultiFileHandler.close")
def _close(hooks: Hooks) -> None:
    """Closing a perflog or log reports an error; logging prints no traceback.

    Otherwise: a full disk under ReFrame's own logs gives a page of tracebacks for each record.
    """
    from reframe.core.logging import MultiFileHandler

    logging.raiseExceptions = False
    for handler in (MultiFileHandler, logging.FileHandler):
        _report_errors_of_close(handler, hooks)


def _report_errors_of_close(handler: Any, hooks: Hooks) -> None:
    original = handler.close

    def close(self: Any) -> None:
        try:
            original(self)
        except OSError as error:
            hooks.log_lost(error)

    handler.close = close


def _deprecation(module: str, _hooks: Hooks) -> None:
    """Neither module prints a deprecation warning.

    Otherwise: every log record reads the deprecated attribute `variables`, whose warning walks the
    whole stack: three quarters of ReFrame's CPU for a local test case.
    """
    owner: Any = import_module(module)
    owner.user_deprecation_warning = _ignore


for _module in ("reframe.core.fields", "reframe.core.variables"):
    PATCHES.append(
        Patch(
            f"deprecations of {_module.rpartition('.')[2]}",
            "cost-of-log-records",
            (f"{_module}:user_deprecation_warning",),
            partial(_deprecation, _module),
        )
    )
