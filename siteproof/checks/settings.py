"""From a site's description to ReFrame's configuration. `reframe_settings.py` calls it."""

from __future__ import annotations

import atexit
import os
import re
import socket
import stat
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reframe.utility.cpuinfo import cpuinfo

from siteproof import files, installed, locks, sites
from siteproof.checks import (
    adapter,
    centre_settings,
    data_folder,
    loading,
    options,
    plain,
    progress,
    selection,
    session,
)
from siteproof.collect import stages
from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.locks import Lock
from siteproof.record import manifest
from siteproof.sites import Hardware, Site, machine
from siteproof.sites.catalogue import MODES
from siteproof.sites.job_keys import Device, Jobs
from siteproof.slurm import client
from siteproof.units import count

ELSEWHERE = "SITEPROOF_DATA may name another folder"
LOOK_EVERY = 0.5  # seconds between two looks at another session's turn
_turns: dict[Path, Lock] = {}  # of this process
IN_THE_CLONE = (
    "lies in the clone, where 'git clean -fdx' removes all results: "
    "set SITEPROOF_DATA to a folder outside, and move perflogs/ there"
)
LOG_LINE = (
    "%(check_job_completion_time_unix)s|%(version)s|%(check_display_name)s|%(check_system)s|"
    "%(check_partition)s|%(check_environ)s|%(check_jobid)s|%(check_result)s|"
    "%(check_perf_var)s|%(check_perf_value)s|%(check_perf_unit)s|%(check_perf_ref)s|"
    "%(check_perf_lower_thres)s|%(check_perf_upper_thres)s|%(check_perf_result)s|"
    "%(check_siteproof_session)s"  # the session with its samples; none: they are not kept
)


def configuration(arguments: list[str]) -> dict[str, Any]:
    """ReFrame's configuration of the active system; a user's mistake ends here, in one line."""
    try:
        given = adapter.given()
        site = sites.load((given.system or "").partition(":")[0] or sites.recognise())
        options.refuse(given, site)
        refuse_later_settings(given.config_files or [])
        loading.report_missing_checks(site, given.checkpath or [installed.SUITE / "checks"])
        active = session.start(site, given.restore_session, (given.system or "").partition(":")[2])
        if given.run:
            machine.refuse_stranger(site.name, site.system.recognise)
        if given.run or given.dry_run:
            make_folders(active)
        settings = with_earlier(build(active, one_at_a_time=of_sweeps(arguments)))
        if given.run:
            collect_lost(active)
        adapter.apply(hooks(given, active.site))
    except (UserError, UserErrors) as error:
        loading.refuse(error)
    except KeyboardInterrupt:
        raise SystemExit(ExitCode.INTERRUPTED) from None
    return settings


def refuse_later_settings(named: Sequence[str]) -> None:
    """Of several files of settings ours must be the last. Raises UserError."""
    if named and Path(named[-1].removeprefix(":")).resolve() != installed.SETTINGS:
        name = installed.SETTINGS.name
        what, remedy = f"{named[-1]} comes after {name}", f"Name {name} last"
        raise UserError("-C, or RFM_CONFIG_FILES", what, hint=remedy)


def with_earlier(own: dict[str, Any]) -> dict[str, Any]:
    """Our own settings, with what those have that ReFrame has read before."""
    earlier = adapter.earlier_settings(own["systems"][0])
    if not earlier:
        return own
    if centre_settings.logs_one_record(earlier):
        adapter.log_one_record()
    return centre_settings.joined(own, earlier)


def with_own_checks(site: Site, paths: Sequence[str]) -> list[str]:
    """The paths of -c, with the site's own checks where those of the clone are among them."""
    named = {Path(path).resolve() for path in paths}
    if installed.SUITE / "checks" not in named:
        return list(paths)
    own = sites.own_checks(site.folder, site.system)
    return [*paths, *(str(folder) for folder in own if folder.resolve() not in named)]


def hooks(given: Any, site: Site) -> adapter.Hooks:
    """What ends a run that ReFrame would let go on; and what becomes of plain tests."""
    without = () if site.system.scaling else ("Scaling",)
    by_file = loading.promised(site.catalogue, installed.SUITE, without)
    names = {metric.check for metric in site.catalogue.values() if metric.check}
    return adapter.Hooks(
        file_loaded=partial(loading.refuse_lost_checks, by_file),
        file_broken=partial(loading.refuse_broken_file, by_file),
        load_path=partial(with_own_checks, site),
        all_loaded=partial(all_loaded, given, names),
        before_run=partial(before_run, options.of_jobs(given.job_options)),
        after_run=progress.report_skipped,
        log_lost=lambda error: loading.report(
            f"ReFrame's perflogs and log are incomplete: {error.strerror}"
        ),
        test_ended=partial(plain.keep, options.mode_of(given, site)),
    )


def all_loaded(
    given: Any, promised: Collection[str], checks: Sequence[Any], variables: Iterable[str]
) -> None:
    """Refuse options that match no check; report tests that fit no place of the site."""
    try:
        options.refuse_unknown(given, promised, checks, variables)
    except UserError as error:
        loading.refuse(error)
    plain.report_unfit(given.names or (), checks)


def before_run(job_options: Sequence[str], testcases: Sequence[Any]) -> None:
    """Refuse an empty run or one on blind nodes, report sweeps' costs, take the session's number.

    job_options: what -J adds to each job.
    """
    loading.refuse_empty_run(testcases)
    options.refuse_above(session.current().site, testcases)
    options.report_costs(testcases)
    if testcases[0].check.is_dry_run():
        return
    # A service that is used from here needs no node.
    on_nodes = [case for case in testcases if not getattr(case.check, "local", False)]
    data_folder.look(on_nodes, job_options)
    try:
        too_high = session.take_place()
    except UserError as error:
        loading.refuse(error)
    if too_high:
        loading.report(
            f"{too_high.file}: its number is far above the last session's, {too_high.last}; "
            "it does not count"
        )


def of_sweeps(arguments: list[str]) -> bool:
    """Whether a run may be one of sweeps: they would measure each other, so jobs take turns."""
    named = [*arguments, *os.environ.get("RFM_CHECK_SEARCH_PATH", "").split(":")]
    paths = (argument.rpartition("=")[2].rstrip("/") for argument in named)
    return any(path.endswith(("sweeps", "sweeps.py")) for path in paths)


def make_folders(active: session.Session) -> None:
    """Make the data folder usable, or refuse before anything is measured. Raises UserError."""
    if bad := re.search(r"[\s$`{}'\"\\]", str(active.folder)):
        what = f"ReFrame cannot use a path with {bad[0]!r}"
        raise UserError(active.folder, what, hint=ELSEWHERE)
    perflogs, system = active.folder / "perflogs", active.site.system
    _make_folder(perflogs)
    if active.folder == installed.SUITE and not _is_local(active) and system.system != "testbed":
        loading.report(f"warning: {perflogs} {IN_THE_CLONE}")
    if perflogs.stat().st_mode & stat.S_IWGRP:
        os.umask(0o002)  # a folder of a group of operators: what one writes, the others may add to
    folders = [active.folder / "stage", active.folder / "output"]
    for folder in folders + [perflogs / system.system / name for name in system.partitions]:
        _make_folder(folder)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(folder, f"cannot be created: {error.strerror}", hint=ELSEWHERE) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(folder, f"not writable for {files.user()}", hint=ELSEWHERE)


def collect_lost(active: session.Session) -> None:
    """Collect the stage directories of lost sessions, and report each."""
    if _is_local(active):
        _take_turn(active.folder / "stage")
    for stage, found in stages.collect_lost(active.folder / "stage", active.folder / "perflogs"):
        if isinstance(found, UserError):
            loading.report(found)
        else:
            loading.report(f"collected {count(found, 'sample')} of a lost session: {stage}")


def _take_turn(stages: Path) -> None:
    """Wait until no other session, and no job of a lost session, measures on this machine.

    The turn ends with this process, however it ends.
    """
    # Machines that share the folder have one lock each.
    folder = stages / f".turn-{re.sub(r'[^A-Za-z0-9._-]', '_', socket.gethostname())}"
    if folder not in _turns:
        try:
            _turns[folder] = _wait_for_turn(folder)
            atexit.register(_turns[folder].release)
        except UserError as error:
            loading.report(f"{error}; make sure that only one session runs at a time")
    for stage in manifest.pending(stages):
        _outwait(stage, stages)


def _wait_for_turn(folder: Path) -> Lock:
    last = ""
    while True:
        try:
            return locks.take(folder)
        except locks.Taken as error:
            if str(error) != last:
                last = str(error)
                loading.report(
                    f"another session measures on this machine; waiting until it ends: {last}"
                )
        time.sleep(LOOK_EVERY)


def _outwait(stage: Path, stages: Path) -> None:
    """Wait for a job whose session is lost; its time limit ends it."""
    try:
        job = manifest.load(stage, stages)
    except UserError:
        return  # reported when it is collected
    if not job.watched(stage) and (process := manifest.still_runs(stage, job)):
        loading.report(
            f"{stage}: a job of a lost session still measures on this machine; waiting until it "
            f"ends; to end it now: 'kill -- -{process}'"
        )
        while manifest.still_runs(stage, job):
            time.sleep(LOOK_EVERY)


def _is_local(active: session.Session) -> bool:
    partitions = active.site.system.partitions.values()
    return all(partition.scheduler == "local" for partition in partitions)


def build(active: session.Session, *, one_at_a_time: bool = False) -> dict[str, Any]:
    """The configuration as ReFrame's documentation describes it."""
    system = active.site.system
    output = active.folder / "output" / files.user()
    coloured = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return {
        "systems": [_system(active, one_at_a_time)],
        "environments": [_environment(name, e) for name, e in system.environments.items()],
        "modes": [{"name": mode, "options": [f"-S mode={mode}"]} for mode in MODES],
        "logging": [_logging(active)],
        "general": [
            {
                "check_search_recursive": True,
                "remote_detect": False,
                "colorize": not os.environ.get("NO_COLOR")
                and bool(os.environ.get("FORCE_COLOR") or coloured),
                "use_login_shell": False,
                # Modules are loaded on the node, in the job: a login node may have others, or none.
                "resolve_module_conflicts": False,
                # Nothing in HOME, which may be missing, full or read-only on a login node.
                "report_file": str(output / "run-report-{sessionid}.json"),
                "topology_prefix": str(output / "topology"),
                # A client call of ours is load on slurmctld: once a second, then every ten. A
                # process of this machine costs nothing to look at, and the next check waits for it.
                "poll_rate_max": 10.0 if _is_local(active) else 1.0,
                "poll_rate_min": 1.0 if _is_local(active) else 0.1,
                "poll_randomize_ms": [-50, 50],
            }
        ],
        "storage": [{"sqlite_db_file": str(output / "results.db")}],
    }


def _system(active: session.Session, one_at_a_time: bool) -> dict[str, Any]:
    system = active.site.system
    return {
        "name": system.system,
        "descr": system.description,
        "hostnames": [".*"],
        "modules_system": "envmod" if system.modules_system == "tmod4" else system.modules_system,
        # A stage directory a session: the first of two runs to end deletes only its own.
        "stagedir": str(active.folder / "stage" / active.name),
        "outputdir": str(active.folder / "output"),
        # On one machine two checks at a time would disturb each other, as would two services.
        "max_local_jobs": 1,
        "partitions": [
            _partition(active, name, p, one_at_a_time) for name, p in system.partitions.items()
        ],
        **system.reframe,
    }


def _partition(
    active: session.Session, name: str, partition: Any, one_at_a_time: bool
) -> dict[str, Any]:
    local = partition.scheduler == "local"
    nodes = active.site.nodes_of(name)
    hardware = [active.site.hardware_of(role) for role in partition.roles]
    chunks = len(selection.jobs(nodes, [active.site.expected(role) for role in partition.roles]))
    # A job over nodes that this process's own job holds would wait for itself: only steps, then.
    inside = not local and bool(client.allocation() & nodes)
    return {
        "name": name,
        "descr": partition.description,
        "scheduler": "local" if inside else partition.scheduler,
        "launcher": partition.launcher or ("local" if local else "srun"),
        "access": [] if inside else list(partition.access),
        "environs": list(partition.environments),
        # As many jobs as one check has chunks: two checks never share the nodes.
        "max_jobs": 1
        if local or inside or one_at_a_time
        else max(1, min(partition.max_jobs or chunks, chunks)),
        # Tests of a centre ask for the processors. Of this machine ReFrame would keep a file.
        **({"processor": cpuinfo()} if local else _processor(hardware)),
        **_jobs(partition, hardware),
        **partition.reframe,
    }


def _jobs(partition: Jobs, hardware: Sequence[Hardware]) -> dict[str, Any]:
    """What the scripts of a partition's jobs do first, and what tests of a centre may ask for."""
    resources = dict(partition.resources)
    devices: dict[str, Device] = {}  # of several roles the fewest of a kind
    for kind, device in (item for one in hardware for item in one.devices.items()):
        devices[kind] = min(devices.get(kind, device), device, key=lambda one: one.count)
    if "gpu" in devices:
        resources.setdefault("_rfm_gpu", ["--gres=gpu:{num_gpus_per_node}"])
    limit = partition.time_limit
    return {
        "modules": list(partition.modules),
        "prepare_cmds": list(partition.prepare_cmds),
        "env_vars": _variables(partition.variables),
        "features": list(partition.features),
        "extras": dict(partition.extras),
        "devices": [
            {"type": kind, "num_devices": device.count}
            | ({"arch": device.arch} if device.arch else {})
            | ({"model": device.model} if device.model else {})
            for kind, device in devices.items()
        ],
        "resources": [{"name": name, "options": found} for name, found in resources.items()],
        "container_platforms": [
            {"type": kind, "modules": list(p.modules), "env_vars": _variables(p.variables)}
            for kind, p in partition.container_platforms.items()
        ],
        **({"time_limit": f"{int(limit.to('s'))}s"} if limit else {}),
    }


def _variables(variables: Mapping[str, str]) -> list[list[str]]:
    return [[name, _quoted(name, value)] for name, value in variables.items()]


def _processor(hardware: Sequence[Hardware]) -> dict[str, Any]:
    """What a test may ask of a partition's processors: those of its role with the fewest.

    The numbers only where the site states them of each role, the target where it is of all.
    """
    [target, *others] = {kind.target for kind in hardware}
    known: dict[str, Any] = {"arch": target} if target and not others else {}
    each = [_numbers(kind) for kind in hardware]
    fewest = min(each, key=lambda numbers: numbers.get("num_cpus", 0))
    known |= fewest
    return {"processor": known} if known else {}


def _numbers(hardware: Hardware) -> dict[str, int]:
    sockets, cores = hardware.sockets, hardware.cores_per_socket
    if not sockets or not cores:
        return {}
    threads = hardware.threads_per_core or 1
    return {
        "num_cpus": sockets * cores * threads,
        "num_cpus_per_socket": cores * threads,
        "num_cpus_per_core": threads,
        "num_sockets": sockets,
    }


def _environment(name: str, environment: Any) -> dict[str, Any]:
    return {
        "name": name,
        "cc": "cc",
        "cxx": "c++",
        "ftn": "gfortran",
        "features": list(environment.features),
        "modules": list(environment.modules),
        "prepare_cmds": list(environment.prepare_cmds),
        "env_vars": _variables(environment.variables),
        **environment.reframe,
    }


def _quoted(name: str, value: str) -> str:
    """For a shell: $NAME and ${NAME} are what they stand for, and everything else is text."""
    if "$(" in value or "`" in value:  # ReFrame itself runs these, quoted or not
        raise UserError("variables", f"{name} contains a command: {value}", "text, $NAME, ${NAME}")
    if re.fullmatch(r"(\w|[-./:,=+@%]|\$\w|\${\w+})*", value):
        return value
    return '"' + re.sub(r'[\\"]|\$(?!\w|{\w+})', r"\\\g<0>", value) + '"'


def _logging(active: session.Session) -> dict[str, Any]:
    log = active.folder / "output" / f"reframe-{files.user()}.log"
    debug = {
        "type": "file",
        "name": str(log),
        "level": "debug",
        "append": False,
        "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
    }
    return {
        "perflog_multiline": True,
        "handlers": [
            {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
            *([debug] if os.access(log.parent, os.W_OK) else []),
        ],
        "handlers_perflog": [
            {
                "type": "filelog",
                "prefix": "%(check_system)s/%(check_partition)s",
                "level": "info",
                "basedir": str(active.folder / "perflogs"),
                "append": True,
                "format": LOG_LINE,
            }
        ],
    }
