"""Slurm as users rely on it: small jobs of this user's, and what its accounting reports of them.

All jobs are submitted at once, but for those that must follow others; then each case waits for its
own. Only jobs and reservations with the test's mark in their names are ever cancelled.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from siteproof import nodesets, sites
from siteproof.errors import UserError
from siteproof.services.slurm_cases import CASES, Batch, Case, Cluster
from siteproof.services.steps import PREFIX, SHARE, Job, Kind, StepFailed, Steps
from siteproof.sites import Hardware, Site
from siteproof.slurm import client, configured
from siteproof.slurm.client import Cause
from siteproof.slurm.records import JobRecord, last_runs

PAUSE = 3.0  # seconds between two looks at the accounting
TOO_MANY = "MaxSubmit"  # in the names of Slurm's limits on the jobs of a user, account or QOS
MAX_NAMED = 3  # what is not as promised, in a reason


def test(job: Job, steps: Steps) -> None:
    """All cases that the site names, or all; one that fails does not keep the others."""
    with steps.step("configuration"):
        bench = _Bench(job, _cluster(job))
    with steps.step("submit"):  # not the first: what it leaves is removed if it fails, too
        bench.until = time.monotonic() + job.seconds - 1.5 * client.TIMEOUT
        chosen = [name for name in CASES if name in (job.service.cases or CASES)]
        for name in chosen:
            bench.begin(name)
    steps.condition(slurm=client.version(), jobs=f"{bench.cluster.jobs}")
    steps.alone = True
    for name in chosen:
        with suppress(StepFailed), steps.step(name):
            bench.prove(name, steps)


def _cluster(job: Job) -> Cluster:
    """What Slurm is configured for. Raises StepFailed where it keeps no account of jobs."""
    settings, (nodes, partitions) = client.settings(), client.configured()
    if "slurmdbd" not in settings.get("AccountingStorageType", ""):
        raise StepFailed(
            "Slurm has no accounting (slurmdbd), from which all is read", "tool_missing"
        )
    own = configured.parse_partitions(partitions).get(job.service.address)
    if own is None:
        why = f"Slurm has no partition '{job.service.address}' that this user may see"
        raise StepFailed(why)
    if not own.up:
        raise StepFailed(f"partition '{own.name}' is not UP: none of its jobs would start")
    client.accounted(["1"], time.time())  # raises what sacct says where slurmdbd does not answer
    there = {name: one for name, one in configured.parse_nodes(nodes).items() if name in own.nodes}
    return Cluster(job.service, settings, there, *_stated(sites.load(job.system), own.name))


def _stated(site: Site, partition: str) -> tuple[dict[str, Hardware], dict[str, list[str]]]:
    """The nodes that the site has on a partition of Slurm, each with what it states of them, and
    with the features that its `access` asks for: of names with & between, not of other expressions.
    """
    found, features = dict[str, Hardware](), dict[str, list[str]]()
    for one in site.system.partitions.values():
        if configured.value_of(one.access, "--partition", "-p") == partition:
            asked = configured.value_of(one.access, "--constraint", "-C")
            for role in one.roles:
                nodes = site.expected(role)
                found |= dict.fromkeys(nodes, site.hardware_of(role))
                if re.fullmatch(r"[\w.-]+(&[\w.-]+)*", asked):
                    features |= dict.fromkeys(nodes, asked.split("&"))
    return found, features


@dataclass
class _Bench:
    """The jobs of a test. refused: cases whose jobs Slurm did not take, and why.

    until: when the case that is waited for has had its time. postponed: cases whose jobs would be
    more at once than this user may have. begun: in seconds since 1970.
    """

    job: Job
    cluster: Cluster
    numbers: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: dict[str, Exception] = field(default_factory=dict)
    until: float = 0.0
    postponed: set[str] = field(default_factory=set)
    begun: float = field(default_factory=time.time)

    def begin(self, name: str) -> None:
        """Submit what need not follow another job."""
        case = CASES[name]
        if case.late or self._absent(case):
            return
        try:
            if time.monotonic() > self.until:
                why = "not submitted: Slurm took too long for the jobs before"
                raise StepFailed(why, "timeout")
            self._submit_all(name, case)
        except (UserError, StepFailed) as error:
            if TOO_MANY in str(error):
                self.postponed.add(name)
            else:
                self.refused[name] = error

    def prove(self, name: str, steps: Steps) -> None:
        """Wait for a case's jobs and compare. Raises StepFailed for what is not as promised."""
        case = CASES[name]
        if why := self._absent(case):
            raise StepFailed(why, "absent")
        try:
            self._prove(name, case, steps)
        except (UserError, StepFailed) as error:
            if not (lacks := case.lacks(self.cluster)):
                raise
            raise StepFailed(f"{error}; {lacks}", getattr(error, "status", "generic")) from None

    def _prove(self, name: str, case: Case, steps: Steps) -> None:
        if name in self.refused:
            raise self.refused[name]
        self.until = time.monotonic() + SHARE * self.job.seconds
        with self._reservation(case):
            if case.late or name in self.postponed:
                self._submit_all(name, case)
            for batch in case.batches(self.cluster):
                if batch.follows:
                    self._submit(name, batch, self._node_of(name, batch))
            jobs = {one.name: self._ended(name, one) for one in case.batches(self.cluster)}
        for metric, value, unit in case.figures(self.cluster, jobs):
            steps.value(metric, round(value, 3), unit)
        wrong = list(case.expect(self.cluster, jobs))
        if wrong:
            more = f"; {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
            raise StepFailed("; ".join(wrong[:MAX_NAMED]) + more, "invalid")

    def _absent(self, case: Case) -> str:
        """Why a case is not tried; what the site names is tried however Slurm is configured."""
        is_named = self.job.service.cases is not None
        return case.unstated(self.cluster) or ("" if is_named else case.lacks(self.cluster))

    def _submit_all(self, name: str, case: Case) -> None:
        for batch in case.batches(self.cluster):
            if not batch.follows and batch.name not in self.numbers.get(name, {}):
                self._submit(name, batch)

    def _submit(self, name: str, batch: Batch, node: str = "") -> None:
        own, mark = self.numbers.setdefault(name, {}), self.job.mark
        words = {**self.cluster.words(), **own, "mark": mark, "node": node}
        given = []
        for option in batch.options:
            if option == "{preempting}":
                given += self.job.service.preempting
            else:
                given.append(option.format(**words))
        wanted = {_key(option) for option in (*given, *self.job.service.submit)}
        usual = ["--time=5", "--ntasks=1", "--no-requeue", "--output=/dev/null", "--chdir=/"]
        usual += [f"--partition={self.job.service.address}", f"--job-name={mark}-{name}"]
        usual = [option for option in usual if _key(option) not in wanted]
        usual += self.job.service.submit
        if ":" in given:  # a second component, of which sbatch knows nothing by the first
            given += usual
        own[batch.name] = client.submit([*usual, *given, f"--wrap={batch.script}"])

    def _node_of(self, name: str, batch: Batch) -> str:
        """A node of the job that a batch follows, when it is over or, if that is wanted, runs."""
        first = replace(batch, name=batch.follows, records=1)
        if not batch.as_soon_as_it_runs:
            return str(self._ended(name, first)[0].nodes[0])
        number, found = self.numbers[name][first.name], nodesets.of()

        def waits() -> str:
            for one in client.accounted([number], self.begun):
                found.update(one.nodes if one.state == "RUNNING" else "")
            return "" if found else f"job {number} does not run yet"

        self._wait(waits, number)
        return str(found[0])

    def _ended(self, name: str, batch: Batch) -> list[JobRecord]:
        """Each run of a batch's jobs, when all are over."""
        number, found = self.numbers[name][batch.name], list[JobRecord]()

        def waits() -> str:
            try:
                found[:] = client.accounted([number], self.begun)
            except UserError as error:  # slurmdbd may be restarted at any time
                return str(error)
            left = [one for one in last_runs(found) if not one.over]
            over = len(last_runs(found)) - len(left)
            if over >= batch.records or any(one.state == "PREEMPTED" for one in found):
                return ""  # Slurm keeps a job that was preempted waiting for minutes
            if over and not left and any(one.state == "CANCELLED" for one in found):
                return ""  # tasks that have not begun are one record
            state = left[-1].state if left else "not"
            return f"{over} of {batch.records} over; job {number} is {state} in the accounting"

        self._wait(waits, number)
        return found

    def _wait(self, still: Callable[[], str], number: str) -> None:
        """Look until nothing is left to wait for, or the case has had its time."""
        while left := still():
            if time.monotonic() > self.until:
                why = client.why_pending(number)
                after = f" after {SHARE * self.job.seconds:g} s" + (f": {why}" if why else "")
                raise StepFailed(left + after, "timeout")
            time.sleep(PAUSE)

    @contextmanager
    def _reservation(self, case: Case) -> Iterator[None]:
        """A node for five minutes, which is given back at once. Raises StepFailed."""
        if not case.reserves:
            yield
            return
        name = f"{self.job.mark}-own"
        words = [
            f"ReservationName={name}",
            *(f"Users={client.user()}", "StartTime=now", "Duration=5", "NodeCnt=1"),
            f"PartitionName={self.job.service.address}",
        ]
        if failure := client.change(["scontrol", "create", "reservation", *words]):
            denied = failure.cause is Cause.DENIED and self.job.service.cases is None
            raise StepFailed(str(failure), "absent" if denied else "generic")
        try:
            yield
        finally:
            client.change(["scontrol", "delete", f"ReservationName={name}"])


def _key(option: str) -> str:
    """What an option of sbatch sets."""
    return option.partition("=")[0].replace("--no-", "--")


def found(job: Job) -> list[str]:
    """The names of this user's jobs, and of reservations, that tests have made."""
    return [name for name in client.own_names() if name.startswith(PREFIX)]


def remove(job: Job, name: str) -> None:
    """Cancel the jobs of a name, and delete the reservation."""
    client.cancel(name)
    if name in client.reservations():
        client.change(["scontrol", "delete", f"ReservationName={name}"])


def explain(error: Exception) -> Exception:
    """What Slurm refuses, in its own words."""
    return StepFailed(str(error)) if isinstance(error, UserError) else error


KINDS = {"slurm": Kind(test, found, remove, explain)}
