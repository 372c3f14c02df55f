"""The cases of Slurm on recorded accounts, and a test of them with Slurm's client replaced."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError
from rows import rows
from served import MARK, job, steps_of

from siteproof import nodesets, sites
from siteproof.errors import UserError
from siteproof.services import slurm
from siteproof.services.slurm_cases import CASES, Cluster, differences
from siteproof.sites import Hardware, Service
from siteproof.slurm.client import Cause, Failure
from siteproof.slurm.configured import parse_nodes
from siteproof.slurm.records import Reservation, parse_jobs
from siteproof.units import Quantity

OUTPUTS = Path(__file__).parents[1] / "slurm" / "outputs"
ENTRY = {
    "kind": "slurm",
    "address": "compute",
    "timeout": "5 min",
    "preempting": ["--partition=urgent"],
    "prolog": "SITE_PROLOG",
    "epilog": "/run/ended/%j",
}
# As `scontrol show config` of the bed on which the accounts were recorded.
SETTINGS = {
    "AccountingStorageTRES": "cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/slot",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "JobAcctGatherParams": "OverMemoryKill",
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobRequeue": "1",
    "KillWait": "5 sec",
    "MaxArraySize": "2001",
    "MaxJobCount": "20000",
    "OverTimeLimit": "0 min",
    "PreemptType": "preempt/partition_prio",
    "SchedulerType": "sched/backfill",
    "TaskPlugin": "task/affinity",
}
NODE = (
    "NodeName=node{:03} Arch=x86_64 CoresPerSocket=2 CPUTot=2 AvailableFeatures={} Gres={} "
    "RealMemory=1024 Sockets=1 State=IDLE ThreadsPerCore=1 \n"
)
NODES = parse_nodes(
    "".join(NODE.format(n, "plain", "(null)") for n in range(1, 5))
    + "".join(NODE.format(n, "plain,fast", "slot:2") for n in range(5, 9))
)


def cluster(settings=SETTINGS, **keys):
    return Cluster(Service.model_validate(ENTRY | keys), settings, NODES)


def accounts(release):
    """By case and batch, what sacct printed: lines after `# CASE BATCH`."""
    found = {}
    for part in (OUTPUTS / release / "cases.sacct").read_text().split("# ")[1:]:
        heading, _, text = part.partition("\n")
        case, batch = heading.split()
        found.setdefault(case, {})[batch] = parse_jobs(text)
    return found


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_what_was_recorded_of_a_cluster_that_keeps_its_promises_is_as_promised(release):
    recorded, whole = accounts(release), cluster(over_memory="FAILED")
    assert recorded.keys() == CASES.keys() - {"agreement", "throughput"}
    wrong = {name: list(CASES[name].expect(whole, jobs)) for name, jobs in recorded.items()}
    assert {name: why for name, why in wrong.items() if why} == {}
    figures = {
        m: v for name, jobs in recorded.items() for m, v, _ in CASES[name].figures(whole, jobs)
    }
    assert 1 <= figures["memory_accounted"] < 1.1 and 1 <= figures["processor_accounted"] < 1.5
    assert 0 <= figures["beyond_limit"] <= 65


HERE = nodesets.parse("node001")


@rows(
    "case, batch, number, changes, why",
    [
        ("memory", "job", 0, {"state": "COMPLETED"}, "ended as COMPLETED, not FAILED"),
        ("memory", "job", 0, {"signal": 0}, "ended as FAILED, not FAILED"),
        ("time", "job", 0, {"state": "COMPLETED", "elapsed": 900}, "COMPLETED after 900 s"),
        ("time", "job", 0, {"elapsed": 200}, "140 s beyond its limit, at most 65 s"),
        ("cores", "job", 0, {"state": "FAILED", "exit": 102}, "1 processor could use 2"),
        ("accounting", "job", 0, {"resident": 0}, "memory accounted: 0 of what was used"),
        ("accounting", "job", 0, {"used": 0.0}, "processor accounted: 0 of"),
        ("accounting", "job", 0, {"processor_seconds": 1}, "CPUTime is 1 s"),
        ("accounting", "job", 0, {"partition": "urgent"}, "of urgent, not of compute"),
        ("array", "array", 0, {"number": "4_2"}, "of 1 to 6 once each"),
        ("array", "array", 0, {"start": 1, "end": 2**31}, "3 tasks ran at once, 2 were allowed"),
        ("dependency", "never", 0, {"nodes": HERE}, "in spite of afterok"),
        ("dependency", "afterok", 0, {"start": 1}, "afterok started before afternotok was over"),
        ("dependency", "fails", 0, {"exit": 1}, "a job that ended with 7 is FAILED, exit code 1:0"),
        ("heterogeneous", "both", 0, {"start": 1}, "did not start together"),
        ("gres", "job", 0, {"nodes": HERE}, "it ran on node001, without slot"),
        ("gres", "job", 0, {"allocated": frozenset()}, "gres/slot is not accounted"),
        ("feature", "job", 0, {"nodes": HERE}, "it ran on node001, without the feature fast"),
        ("preemption", "ordinary", 0, {"state": "COMPLETED"}, "the ordinary job was not preempted"),
        ("requeue", "job", 1, {"state": "FAILED", "exit": 1}, "FAILED, exit code 1:0"),
        ("prolog", "job", 0, {"state": "FAILED", "exit": 1}, "FAILED, exit code 1:0"),
        ("epilog", "next", 0, {"state": "FAILED", "exit": 1}, "FAILED, exit code 1:0"),
    ],
)
def test_what_is_not_as_promised_is_named(case, batch, number, changes, why):
    jobs = accounts("22.05")[case]
    if batch == "ordinary":  # of its two runs the first was preempted
        jobs[batch] = jobs[batch][:1]
    jobs[batch][number] = replace(jobs[batch][number], **changes)
    found = list(CASES[case].expect(cluster(over_memory="FAILED"), jobs))
    assert any(why in one for one in found), found


@rows(
    "case, changes, why",
    [
        ("memory", {"JobAcctGatherParams": "(null)"}, "limits on memory"),
        ("cores", {"TaskPlugin": "task/cgroup", "ConstrainCores": "no"}, "bind jobs"),
        ("time", {"OverTimeLimit": "UNLIMITED"}, "OverTimeLimit is UNLIMITED"),
        ("accounting", {"JobAcctGatherType": "jobacct_gather/none"}, "JobAcctGatherType is job"),
        ("heterogeneous", {"SchedulerType": "sched/builtin"}, "SchedulerType is sched/builtin"),
        ("preemption", {"PreemptType": "preempt/none"}, "PreemptType is preempt/none"),
        ("requeue", {"JobRequeue": "0"}, "JobRequeue is 0"),
        ("throughput", {"MaxArraySize": "1000"}, "MaxArraySize is 1000, 2000 jobs are wanted"),
    ],
)
def test_a_case_for_which_slurm_is_not_configured_says_so(case, changes, why):
    assert CASES[case].lacks(cluster(jobs=2000)) == ""
    assert why in CASES[case].lacks(cluster(SETTINGS | changes, jobs=2000))


def test_a_thousand_jobs_have_a_median_a_p99_and_a_rate():
    one = accounts("22.05")["array"]["array"][0]
    waits = [*range(100), 1000]
    records = [replace(one, submitted=50, start=50 + wait) for wait in waits]
    found = {
        metric: value
        for metric, value, _ in CASES["throughput"].figures(cluster(), {"array": records})
    }
    assert found == {"start_median": 50, "start_p99": 99, "start_rate": 0.101}


def test_nodes_that_slurm_has_otherwise_than_the_site_are_named_together():
    kind = Hardware(sockets=1, cores_per_socket=2, memory=Quantity(Decimal(1), "GiB"))
    other = kind.model_copy(update={"cores_per_socket": 64, "memory": Quantity(Decimal(2), "GiB")})
    stated = dict.fromkeys(list(NODES)[:6], kind) | {"node006": other, "node009": kind}
    assert sorted(differences(replace(cluster(), stated=stated))) == [
        "node006: 1024 MiB in Slurm, 2 GiB in the site",
        "node006: 2 cores in Slurm, 64 in the site",
        "node009: in the site, and not in Slurm's partition",
        "node[007-008]: in Slurm, and not in the site",
    ]
    whole = replace(cluster(), stated=dict.fromkeys(NODES, kind))
    assert differences(whole) == []
    asked = replace(whole, features=dict.fromkeys(NODES, ["fast", "plain"]))
    assert differences(asked) == ["node[001-004]: feature fast in the site's `access` only"]


def test_the_features_that_the_site_states_are_those_that_its_access_asks_for(monkeypatch):
    site = sites.load("testbed")
    for constraint, found in (("plain&fast", ["plain", "fast"]), ("plain|fast", None)):
        access = ["--partition=compute", f"--constraint={constraint}"]
        part = site.system.partitions["compute"].model_copy(update={"access": access})
        system = site.system.model_copy(update={"partitions": {"compute": part}})
        kinds, features = slurm._stated(replace(site, system=system), "compute")
        assert len(kinds) == 8 and features.get("node001") == found


def test_memory_beyond_a_limit_of_cgroup_names_what_was_to_end_the_job():
    settings = SETTINGS | {"ConstrainRAMSpace": "yes", "CgroupPlugin": "cgroup/v2"}
    jobs = accounts("22.05")["memory"]
    (why,) = CASES["memory"].expect(cluster(settings, over_memory="OUT_OF_MEMORY"), jobs)
    assert why.endswith("although ConstrainRAMSpace is yes (memory.max of cgroup v2)")


@rows(
    "keys, why",
    [
        ({"cases": ["epilog"], "epilog": ""}, "epilog without 'epilog'"),
        ({"timeout": "1 min"}, "a timeout below 5 min"),
        ({"partition": "compute"}, "kind slurm with 'partition'"),
        ({"address": "a b"}, "not an address of kind slurm"),
        ({"submit": ["id"]}, "'id' is not valid"),
        ({"prolog": "$(id)"}, "'$(id)' is not valid"),
    ],
)
def test_a_mistake_in_the_entry_is_named(keys, why):
    with pytest.raises(ValidationError, match=".") as error:
        Service.model_validate(ENTRY | keys)
    assert why in str(error.value)


CLUSTER = slurm._cluster

# ---- the test, with Slurm's client replaced


@pytest.fixture
def client(monkeypatch):
    """Slurm that takes each job and ends it at once, as `ends` has it by the number."""

    class Client:
        def __init__(self):
            self.submitted, self.changed, self.ends = [], [], {}
            self.asked, self.most = set(), 99

        def submit(self, words):
            if "--gres=slot:1" in words:
                raise UserError("sbatch", "Invalid generic resource (gres) specification")
            if len(self.submitted) - len(self.asked) >= self.most:
                raise UserError("sbatch", "error: QOSMaxSubmitJobPerUserLimit")
            self.submitted.append(words)
            return f"{len(self.submitted)}"

        def accounted(self, numbers, since):
            self.asked |= {*numbers}
            usual = accounts("22.05")["prolog"]["job"][0]
            return [replace(usual, **{"number": n, **self.ends.get(n, {})}) for n in numbers]

        def change(self, words):
            self.changed.append(words)
            return Failure(Cause.DENIED, "Access/permission denied")

        def version(self):
            return "22.05.8"

    known = Client()
    for name in ("submit", "accounted", "change", "version"):
        monkeypatch.setattr(slurm.client, name, getattr(known, name))
    monkeypatch.setattr(slurm, "PAUSE", 0)
    monkeypatch.setattr(slurm, "SHARE", 0)  # no case waits: one record stands for an array of six
    monkeypatch.setattr(slurm, "_cluster", lambda job: Cluster(job.service, SETTINGS, NODES))
    return known


def tried(tmp_path, **keys):
    ended, _ = steps_of(slurm, job(tmp_path, **(ENTRY | keys)))
    return {name: (status, why) for name, status, why in ended}


def test_one_case_that_fails_keeps_no_other_and_each_job_bears_the_mark(tmp_path, client):
    client.ends = {"1": {"state": "FAILED", "exit": 102}}
    found = tried(tmp_path, cases=["cores", "prolog", "gres"], submit=["--account=staff"])
    assert found["prolog"] == ("invalid", "job (job 1): FAILED, exit code 102:0")
    assert found["cores"] == ("ok", "")
    assert found["gres"] == ("generic", "sbatch: Invalid generic resource (gres) specification")
    for words in client.submitted:
        assert any(word.startswith(f"--job-name={MARK}-") for word in words)
        assert "--account=staff" in words and "--partition=compute" in words


def test_a_user_who_may_have_few_jobs_at_once_submits_a_case_when_its_turn_comes(tmp_path, client):
    client.most = 1
    found = tried(tmp_path, cases=["cores", "prolog", "requeue"])
    assert found["prolog"] == found["cores"] == found["requeue"] == ("ok", "")
    client.most = 0
    assert tried(tmp_path, cases=["cores"])["cores"] == (
        "generic",
        "sbatch: error: QOSMaxSubmitJobPerUserLimit",
    )


def test_an_array_that_somebody_cancels_is_over_although_its_tasks_are_one_record(
    tmp_path, client, monkeypatch
):
    monkeypatch.setattr(slurm, "SHARE", 1)
    client.ends = {"1": {"number": "1_[2-6]", "state": "CANCELLED"}}
    status, why = tried(tmp_path, cases=["array"])["array"]
    assert status == "invalid" and why.startswith("array (job 1_[2-6]): CANCELLED")


def test_an_option_that_a_case_or_the_site_gives_is_given_once(tmp_path, client):
    tried(tmp_path, cases=["requeue", "time"], submit=["--time=3", "--account=staff"])
    limited, requeued = client.submitted
    assert "--requeue" in requeued and "--no-requeue" not in requeued
    assert [word for word in limited if word.startswith("--time")] == ["--time=3", "--time=1"]


def test_what_this_user_may_not_or_the_site_does_not_state_is_absent_unless_promised(
    tmp_path, client
):
    found = tried(tmp_path, preempting=[])
    assert found["preemption"] == ("absent", "the site states no 'preempting' of the service")
    status, why = found["reservation"]
    assert status == "absent" and "only root, SlurmUser and operators" in why
    assert tried(tmp_path, cases=["reservation"])["reservation"][0] == "generic"


def test_only_names_that_tests_make_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(slurm.client, "own_names", lambda: {"wrap", MARK, "my-siteproof-job"})
    assert slurm.found(job(tmp_path, **ENTRY)) == [MARK]


def test_a_reservation_is_found_after_the_jobs_that_wait_for_it(monkeypatch, tmp_path):
    own, jobs = f"{MARK}-a", f"{MARK}-z\n{MARK}-z\n"
    monkeypatch.setattr(slurm.client, "_ask", lambda words: jobs)
    reserved = Reservation(own, 0, HERE, (slurm.client.user(),))
    monkeypatch.setattr(slurm.client, "reservations", lambda: {own: reserved})
    assert slurm.found(job(tmp_path, **ENTRY)) == [f"{MARK}-z", own]


@rows(
    "state, address, asked, why",
    [
        ("DOWN", "compute", None, "partition 'compute' is not UP"),
        ("UP", "other", None, "Slurm has no partition 'other' that this user may see"),
        ("UP", "compute", UserError("sacct", "Connection refused"), "sacct: Connection refused"),
    ],
)
def test_where_no_case_can_be_proved_no_job_is_submitted(
    tmp_path, monkeypatch, client, state, address, asked, why
):
    def accounted(numbers, since):
        if asked:
            raise asked

    partition = f"PartitionName=compute Nodes=node[001-008] State={state}\n"
    nodes = NODE.format(1, "plain", "(null)")
    monkeypatch.setattr(slurm, "_cluster", CLUSTER)
    monkeypatch.setattr(slurm.client, "settings", lambda: SETTINGS)
    monkeypatch.setattr(slurm.client, "configured", lambda: (nodes, partition))
    monkeypatch.setattr(slurm.client, "accounted", accounted)
    found = tried(tmp_path, address=address)
    assert found.keys() == {"configuration"} and found["configuration"][1].startswith(why)
    assert client.submitted == []


def test_what_slurm_is_not_configured_for_is_in_the_reason_of_a_case_that_is_promised(
    tmp_path, monkeypatch, client
):
    less = SETTINGS | {"JobRequeue": "0"}
    monkeypatch.setattr(slurm, "_cluster", lambda job: Cluster(job.service, less, NODES))
    client.ends = {"1": {"state": "CANCELLED"}}
    status, why = tried(tmp_path, cases=["requeue"])["requeue"]
    assert status == "invalid" and why.endswith("CANCELLED, exit code 0:0; JobRequeue is 0")


def test_a_path_of_an_epilog_is_no_command():
    batch = CASES["epilog"].batches(cluster(epilog="/run/a b;$(id)/%j.done"))[1]
    assert "until [ -e" in batch.script  # the account of a job may be closed before its epilog ends
    assert """[ -e '/run/a b;$(id)/'"${SLURM_JOB_NAME##*-after-}".done ]; do""" in batch.script
