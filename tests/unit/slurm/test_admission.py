"""What Slurm would not start is refused first: on made answers of its commands."""

import pytest
from ClusterShell.NodeSet import NodeSet
from rows import rows

from siteproof.errors import UserError
from siteproof.slurm import configured

UP = "PartitionName=compute Default=YES State=UP Nodes=n[1-3] MaxTime=UNLIMITED"
IDLE = "n1|idle|none\nn2|idle|none\nn3|idle|none"
NIGHT = "ReservationName=night StartTime=1 EndTime=2 Nodes=n[1-2] NodeCnt=2 Users=root"
FULL = "LicenseName=hpl Total=4 Used=3 Free=1 Reserved=0 Remote=no"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """slurm(...): what its commands print; sbatch: a script."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def answers(nodes=IDLE, partitions=UP, reservations=NIGHT, licences=FULL, sbatch="exit 0"):
        scontrol = f"""case "$4$3" in
            nodes*) echo "NodeName=n1" ;;
            partitions*) echo "{partitions}" ;;
            reservations*) echo "{reservations}" ;;
            licenses*) echo "{licences}" ;; esac"""
        scripts = {"sinfo": f"echo '{nodes}'", "scontrol": scontrol, "sbatch": sbatch}
        for name, script in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)

    answers()
    return answers


def refused(*options):
    with pytest.raises(UserError) as error:
        configured.refuse(options, NodeSet("n[1-3]"))
    return str(error.value)


def test_where_jobs_would_start_the_nodes_that_take_none_are_named(slurm):
    assert configured.refuse(["-p", "compute"], NodeSet("n[1-3]")) == {}
    slurm(nodes=IDLE.replace("n2|idle|none", "n2|down$|bad DIMM"))
    lost = configured.refuse([], NodeSet("n[1-3]"))
    assert configured.folded(lost) == "n2 down (maintenance): bad DIMM"


def test_a_reservation_that_does_not_exist_is_named_with_those_that_do(slurm):
    told = refused("--reservation=nigth")
    assert told.startswith("--reservation: no reservation 'nigth' (did you mean 'night'?)")
    lost = configured.refuse(["--reservation", "night"], NodeSet("n[1-3]"))
    assert lost == {"n3": "not in the reservation night"}


def test_a_partition_that_is_down_and_nodes_that_are_all_drained_are_refused(slurm):
    slurm(partitions=UP.replace("State=UP", "State=DOWN"))
    for options in ([], ["-pcompute"], ["--partition=compute"]):
        assert refused(*options).startswith("partition compute: is not UP in Slurm")
    slurm(nodes=IDLE.replace("idle|none", "drained|new cooling"))
    assert refused() == "Slurm: no node can take a job: n[1-3] drained: new cooling"


@rows(
    "message",
    [
        "allocation failure: Invalid qos specification",
        "allocation failure: Invalid account or account/partition combination specified",
        "allocation failure: Job violates accounting/QOS policy",
    ],
)
def test_what_sbatch_refuses_is_told_in_its_words(slurm, message):
    slurm(sbatch=f"echo {message} >&2; exit 1")
    assert refused("--qos=none") == f"sbatch: {message}"


def test_a_licence_that_is_in_use_is_refused_as_jobs_would_wait(slurm):
    assert refused("--licenses=hpl:2") == "licence hpl: 1 of 4 are free, so jobs would wait"
    assert configured.refuse(["-L", "hpl"], NodeSet("n[1-3]")) == {}
