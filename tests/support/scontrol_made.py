"""Composed outputs of `scontrol show nodes` and `show partitions`, as Slurm documents them.

No real machine printed them: the field names and their order are those of Slurm 23.02's manual and
of a test bed's own output, the names and numbers are made up.
"""

from siteproof import nodesets

NODE = """\
NodeName={name} Arch={arch} CoresPerSocket={cores}{blank}
   CPUAlloc=0 CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.01
   AvailableFeatures={features}
   ActiveFeatures={features}
   Gres={gres}
   NodeAddr={name} NodeHostName={name} Version=23.02.7
   OS=Linux 5.14.21-150400.24.46_12.0.83-cray_shasta_c #1 SMP Wed Mar 13 18:32:35 UTC 2024{blank}
   RealMemory={memory} AllocMem=0 FreeMem=240000 Sockets={sockets} Boards=1
   State={state} ThreadsPerCore={threads} TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions={partitions}{blank}
   BootTime=2026-10-01T10:00:00 SlurmdStartTime=2026-10-01T10:02:00
   CfgTRES=cpu={cpus},mem={memory}M,billing={cpus}
   AllocTRES=
   ExtSensorsJoules=n/a ExtSensorsWatts=0 ExtSensorsTemp=n/a
{comment}
"""
PARTITION = """\
PartitionName={name}
   AllowGroups=ALL AllowAccounts={accounts} AllowQos=ALL
   AllocNodes=ALL Default={default} QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime={limit} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes={nodes}
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   State={state} TotalCPUs=1 TotalNodes=1 SelectTypeParameters=NONE
   JobDefaults=(null)

"""


def nodes(names, **given):
    """The records of these nodes. features: a text, or a function of the node's number."""
    values = {
        "arch": "x86_64",
        "cores": 64,
        "sockets": 2,
        "threads": 2,
        "memory": 257_000,
        "features": "(null)",
        "gres": "(null)",
        "state": "IDLE",
        "partitions": "batch",
        "comment": "",
    } | given
    cpus = values["cores"] * values["sockets"] * values["threads"]
    texts = []
    for number, name in enumerate(nodesets.parse(names)):
        own = {key: value(number) if callable(value) else value for key, value in values.items()}
        texts.append(NODE.format(name=name, cpus=cpus, blank=" ", **own))
    return "".join(texts)


def partition(name, members, *, default=False, limit="1-00:00:00", state="UP", accounts="ALL"):
    """The record of a partition."""
    words = "YES" if default else "NO"
    return PARTITION.format(
        name=name, nodes=members, default=words, limit=limit, state=state, accounts=accounts
    )
