"""Plain ReFrame tests that run with our settings: what each has measured becomes samples.

A test of the centre's own knows nothing of Siteproof. When ReFrame has ended it, its performance
variables are written as samples of the running session, with the mode of the run: so history,
trend, report and verdict treat them as any others. A value that misses ReFrame's reference is a
value; a test that fails before it has values has a status for each variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from siteproof import installed, nodesets, units
from siteproof.checks import adapter, loading, options, session
from siteproof.errors import UserError, harmless
from siteproof.record import samples
from siteproof.record.samples import Header, Sample
from siteproof.slurm import client

# Settings of a job that decide its values, and are conditions under ReFrame's own names.
CONDITIONS = ("num_tasks", "num_tasks_per_node", "num_cpus_per_task")
LONGEST = 500  # characters of the reason of a failure
_NOT_IN_A_PATH = re.compile(r"[/\s\x00]")
_OF_STATE = {  # of a job in Slurm, or of ReFrame's local scheduler
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "NODE_FAIL": "node_lost",
    "BOOT_FAIL": "node_lost",
    "OUT_OF_MEMORY": "killed",
    "PREEMPTED": samples.INTERRUPTED,
    "CANCELLED": samples.INTERRUPTED,
}
_OF_STAGE = {"sanity": "invalid", "performance": "parse"}
_named: set[str] = set()  # tests whose name was reported


def is_plain(check: object) -> bool:
    """Whether a test is not one of Siteproof's checks."""
    from siteproof.checks.job import JobCheck  # it defines tests: the settings come first

    return not isinstance(check, JobCheck)


def keep(mode: str, task: Any) -> str:
    """Write what a test that has ended measured; the session that has it, or empty.

    mode: of the run. A check of Siteproof has written its samples itself.
    """
    check, active = task.check, session.current()
    if check.is_dry_run():
        return ""
    if not is_plain(check):
        return active.name
    name, dims = samples.named(check.display_name)
    name = _NOT_IN_A_PATH.sub("_", name.split(" ")[0])
    if any(m.check == name and not m.is_of_site for m in active.site.catalogue.values()):
        if name not in _named:
            _named.add(name)
            loading.report(
                f"{_file(check)}: {name} is a check of Siteproof, so values of this test are not "
                "kept: give it another name"
            )
        return ""
    nodes = _nodes(task)
    header = _header(task, name, mode, nodes)
    found = list(_samples(task, header, nodes, dims))
    if not found:
        return ""
    try:
        samples.write(active.folder / "perflogs", header, found)
    except (OSError, UserError) as error:
        loading.report(f"{name}: its values are not kept: {error}")
        return ""
    return active.name


def report_unfit(wanted: Iterable[str], checks: Iterable[Any]) -> None:
    """Report tests that ReFrame leaves out silently: no partition with its environments fits them.

    wanted: what -n selects; nothing: all.
    """
    patterns, seen = list(wanted), set[str]()
    for check in checks:
        name = samples.named(check.display_name)[0].split(" ")[0]
        if name in seen or check.is_fixture() or not is_plain(check) or adapter.fits(check):
            continue
        seen.add(name)
        if not patterns or any(options.found_in(pattern, [name]) for pattern in patterns):
            loading.report(
                f"{_file(check)}: {name} is not run: no partition and environment of "
                f"{session.current().site.name} is one of valid_systems {check.valid_systems} with "
                f"valid_prog_environs {check.valid_prog_environs}"
            )


def _file(check: Any) -> str:
    import inspect

    return str(Path(inspect.getfile(type(check))))


def _header(task: Any, name: str, mode: str, nodes: NodeSet) -> Header:
    check, active = task.check, session.current()
    partition, environment = task.testcase.partition.name, task.testcase.environ.name
    ended = check.job.completion_time if check.job else None
    when = datetime.fromtimestamp(ended, UTC) if ended else datetime.now(UTC)
    return Header(
        session=active.name,
        system=active.site.system.system,
        partition=partition,
        environment=environment,
        check=name,
        job=_job(task),
        time=when.isoformat(timespec="seconds"),
        mode=mode,
        campaign=active.campaign,
        expected=str(nodes),
        conditions=_conditions(check),
        provenance=session.provenance(installed.SUITE)
        | session.provenance_of(active.software, environment)
        | {samples.TEST: _file(check), "origin": "none: a plain ReFrame test"}
        | _references(check),
        place=active.place,
    )


def _job(task: Any) -> str:
    """The job's number; of a test that had no job, its hash and its environment."""
    job = task.check.job
    if job and job.jobid:
        return str(job.jobid)
    return f"{task.check.hashcode}.{task.testcase.environ.name}"


def _nodes(task: Any) -> NodeSet:
    """The nodes of the job, by their names in the site; ReFrame may know only some of them."""
    site, job = session.current().site, task.check.job
    where = site.partition(task.testcase.partition.name)
    if where.scheduler == "local":
        return site.having(where.roles)
    if not job or not job.jobid:
        return nodesets.of()
    names = [name for name in job.nodelist or () if name and nodesets.is_name(name)]
    with suppress(UserError):
        return client.nodes_of(str(job.jobid), job.submit_time or 0) | nodesets.of(names)
    return nodesets.of(names)


def _conditions(check: Any) -> dict[str, str]:
    found = {name: str(value) for name in CONDITIONS if (value := getattr(check, name, None))}
    words = str(getattr(check, "executable", "") or "").split()
    return found | ({"program": harmless(Path(words[0]).name)} if words else {})


def _references(check: Any) -> dict[str, str]:
    each = {
        samples.REFERENCE + name: samples.reference(value, lower, upper, unit or "")
        for name, (_, value, lower, upper, unit, _) in _values(check).items()
    }
    return {name: text for name, text in each.items() if text}


def _values(check: Any) -> Mapping[str, tuple[Any, ...]]:
    """By variable: value, reference, lower and upper limit, unit, result."""
    return {
        harmless(key.rpartition(":")[2]): tuple(found) for key, found in check.perfvalues.items()
    }


def _samples(
    task: Any, header: Header, nodes: NodeSet, dims: Mapping[str, str]
) -> Iterator[Sample]:
    """A sample of each performance variable: its value, or why it has none."""
    node = str(nodes[0]) if len(nodes) == 1 else ""
    status, why = _failure(task)
    values = _values(task.check)
    patterns = getattr(task.check, "perf_patterns", None) or {}
    names = dict.fromkeys([*values, *map(harmless, [*task.check.perf_variables, *patterns])])
    if not names and task.failed:  # it failed before it made its variables
        yield Sample(header, node, f"{header.check}.*", status=status, why=why, dims=dims)
    for name in names:
        metric = f"{header.check}.{name}"
        # Of a test that fails, ReFrame makes the variables in a dry run: each is None.
        if name in values and values[name][0] is not None:
            yield _of_value(header, node, metric, values[name], dims)
        else:
            yield Sample(header, node, metric, status=status, why=why, dims=dims)


def _of_value(
    header: Header, node: str, metric: str, found: tuple[Any, ...], dims: Mapping[str, str]
) -> Sample:
    value, unit = found[0], str(found[4] or "")
    unit = samples.known_unit(unit) or harmless(unit)
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        why = f"'{harmless(str(value))[:40]}' is not a number"
        return Sample(header, node, metric, status="parse", why=why, dims=dims)
    if not number.is_finite() or number and abs(number.adjusted()) > samples.MAX_DIGITS:
        why = f"{number} is not a value that any test prints"
        return Sample(header, node, metric, status="invalid", why=why, dims=dims)
    entry, known = session.current().site.catalogue.get(metric), unit in units.UNITS
    if entry and not (known and units.kind(unit) == units.kind(entry.unit)):
        why = f"its unit is '{unit}', and that of the site's catalogue is {entry.unit}"
        loading.report(f"{metric}: {why}")
        return Sample(header, node, metric, status="parse", why=why, dims=dims)
    return Sample(header, node, metric, number, unit, dims=dims)


def _failure(task: Any) -> tuple[str, str]:
    """The status of a variable without a value, and the reason."""
    from reframe.core.exceptions import what

    stage = task.failed_stage or "performance"
    why = what(*task.exc_info) if task.failed_stage else "the test gave no value"
    why = harmless(" ".join(str(why).split()))[:LONGEST]
    state = str(getattr(task.check.job, "state", "") or "")
    for name, status in _OF_STATE.items():
        if name in state:
            return status, f"{name}: {why}"
    return _OF_STAGE.get(stage, "generic"), f"{stage}: {why}"
