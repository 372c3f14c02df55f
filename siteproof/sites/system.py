"""The keys of system.yaml, each with the sentence that `siteproof sites --keys` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from ClusterShell.NodeSet import NodeSet
from pydantic import Field, field_validator, model_validator

from siteproof import nodesets, units
from siteproof.errors import Mistake, hint
from siteproof.sites.job_keys import Device, Jobs, Loads, ModulesSystem, Option, Variables
from siteproof.sites.key_types import (
    NAME_RULE,
    Budget,
    Count,
    EntryName,
    Flops,
    Frequency,
    Graded,
    Health,
    HplBlock,
    Model,
    Names,
    Rate,
    Size,
    Target,
    Time,
    parse_tolerance,
    readable,
    shaped,
)  # fmt: skip
from siteproof.sites.service_keys import HOST, PATH, PORT, URL, Service
from siteproof.sites.stated import Expected, Fact, FactSection, Stated, Value

Mode = Literal["quick", "maintenance", "acceptance"]


class Recognise(Model):
    """How a machine of this system is recognised; all keys that are given must match."""

    cluster: str | None = None
    """ClusterName in the machine's slurm.conf; where none can be read, as 'scontrol show config'
    has it."""
    hostname: str | None = None
    """A regular expression that the whole short host name must match."""
    file: str | None = None
    """A path that exists on this system only."""
    fallback: bool = False
    """True: for a machine without Slurm that no other site recognises."""

    @field_validator("hostname")
    @classmethod
    def _is_pattern(cls, text: str | None) -> str | None:
        try:
            re.compile(text or "")
        except (re.error, OverflowError, RecursionError) as error:
            raise Mistake(f"'{text}' is not a valid regular expression ({error})") from None
        return text


class Nic(Model):
    """A network interface of the hardware."""

    speed: Rate | None = None
    """Line rate, for example 10 Gb/s."""
    mtu: Count | None = None
    """Largest packet that it must carry, in bytes."""


class Hardware(Model):
    """The facts of one kind of node; a criterion may require a share of them."""

    description: str = ""
    """Maker and model, for the report."""
    sockets: Count | None = None
    """Processor sockets of a node."""
    cores_per_socket: Count | None = None
    """Cores of each processor."""
    threads_per_core: Count | None = None
    """Hardware threads of a core that the system shows; 1 if switched off."""
    memory: Size | None = None
    """Memory of a node, all sockets together."""
    memory_bandwidth: Rate | None = None
    """Bandwidth of all memory channels of a node: channels x transfers a second x 8 bytes. STREAM
    above it is an error of the measurement."""
    last_level_cache: Size | None = None
    """Last-level cache of a node, all sockets together."""
    peak: Flops | None = None
    """Peak of a node in double precision, as the contract counts it."""
    avx_base: Frequency | None = None
    """Guaranteed clock under vector load, which is not what lscpu prints."""
    highest_clock: Frequency | None = None
    """Highest clock of a core. HPL above peak x highest_clock / avx_base, or above twice the peak
    where one of them is not given, is an error of the measurement."""
    flops_per_cycle: Count | None = None
    """Double-precision operations of a core in a cycle."""
    hpl_nb: HplBlock | None = None
    """Block size NB of HPL where -S Hpl.nb gives none; 192, if not given. Values with different NB
    are not compared with each other."""
    nics: dict[str, Nic] = {}
    """Network interfaces, by name."""
    target: Target | None = None
    """Processor target by archspec's name, for which software is built and which ReFrame's tests
    see as `processor.arch`: zen3, icelake, neoverse_v1."""
    devices: dict[str, Device] = {}
    """Accelerators of a node, by their type: gpu."""
    facts: dict[str, FactSection] = {}
    """What was bought: the fields that 'siteproof describe' reads of each node, with the values
    that they must have, by section of the description."""

    @property
    def cores(self) -> int:
        """Cores of a node; 0: not given."""
        return (self.sockets or 0) * (self.cores_per_socket or 0)

    @property
    def rate(self) -> Fraction:
        """b/s of all interfaces together; 0: one of them has no speed, or there is none."""
        rates = [nic.speed.to("b/s") if nic.speed else Fraction(0) for nic in self.nics.values()]
        return sum(rates, Fraction(0)) if all(rates) else Fraction(0)

    @cached_property
    def quantities(self) -> dict[str, units.Quantity]:
        """The quantities of which a criterion may require a share."""
        return {name: value for name, value in self if isinstance(value, units.Quantity)}

    @property
    def gpus(self) -> int:
        """GPUs of a node; 0: none is stated."""
        return self.devices["gpu"].count if "gpu" in self.devices else 0

    @cached_property
    def stated(self) -> dict[str, FactSection]:
        """What a node's description must show: `facts`, and the number of GPUs."""
        fields = {"gpu.count": Fact(exact=str(self.gpus))}
        own = FactSection(source="`devices` of the hardware in system.yaml", fields=fields)
        return {"devices": own, **self.facts} if self.gpus else self.facts

    def __hash__(self) -> int:
        return hash((self.description, *self.quantities.items()))


SHARE_OF = ("memory", "last_level_cache", "peak", "avx_base")


class Switch(Model):
    """A kind of switch, which runs no check: what LLDP shows of it, and its uplinks as stated."""

    description: str = ""
    """Maker, model and place, for the report."""
    lldp: str
    """The description that it gives of itself by LLDP, a glob: '*MXL*'."""
    uplinks: Count
    """How many uplinks each one has."""
    speed: Rate
    """Line rate of an uplink: 40 Gb/s."""

    def is_one(self, text: str) -> bool:
        """Whether a description by LLDP is that of such a switch."""
        return fnmatchcase(text, self.lldp)

    @property
    def rate(self) -> Fraction:
        """b/s of all uplinks of one switch."""
        return self.uplinks * self.speed.to("b/s")


class Role(Model):
    """A group of nodes with the same hardware and task."""

    set: str
    """The nodes, in ClusterShell's syntax: node[001-320]."""
    hardware: str | None = None
    """The kind of node, a key of `hardware`."""
    overlaps: list[str] = []
    """Roles that may contain the same nodes."""
    facts: dict[str, FactSection] = {}
    """As `facts` of the hardware, for what belongs to this role alone; a section of both has the
    fields of both."""

    @cached_property
    def nodes(self) -> NodeSet:
        """The nodes as a set; group names are never looked up."""
        return nodesets.parse(self.set)


class NicParameters(Model):
    """Expected settings of a network interface."""

    mtu: Value | None = None
    """Maximum transmission unit in bytes."""
    txqueuelen: Value | None = None
    """Length of the transmit queue, packets."""
    speed: Value | None = None
    """Link rate in Mb/s, as the kernel prints it."""
    flow_control: Value | None = None
    """Pause frames, 'on' or 'off'."""


class BondParameters(Model):
    """Expected state of a bond of network interfaces."""

    mode: Value | None = None
    """Bonding mode, for example 802.3ad."""
    members: list[str] | None = None
    """Interfaces that must be in the bond and up, in any order."""


Sysctl = Annotated[
    str, shaped(r"[a-z0-9_]+([./][A-Za-z0-9_.:-]+)+", "a dotted name such as net.core.rmem_max")
]
Interface = Annotated[
    str, shaped(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}", "a name such as eth0 or bond0")
]


class HostParameters(Model):
    """The expected host parameters of a role."""

    sysctl: dict[Sysctl, Value] = {}
    """Kernel parameters by their dotted name."""
    nic: dict[Interface, NicParameters] = {}
    """Network interfaces, by name."""
    bond: dict[Interface, BondParameters] = {}
    """Bonds of interfaces, by name."""

    def by_name(self) -> dict[str, Expected]:
        """Each expected value under one name: sysctl.KEY, nic.eth0.mtu, bond.bond0.members.

        A bond's members are one text, sorted.
        """
        found = {f"sysctl.{key}": rule for key, rule in self.sysctl.items()}
        devices: list[tuple[str, Model]] = [(f"nic.{name}", nic) for name, nic in self.nic.items()]
        devices += [(f"bond.{name}", bond) for name, bond in self.bond.items()]
        for name, settings in devices:
            for key, rule in settings:
                if isinstance(rule, list):
                    rule = Expected(exact=" ".join(sorted(rule)))
                if rule is not None:
                    found[f"{name}.{key}"] = rule
        return found


EMULATED = (
    "What emulates or replaces it, such as netem. Its values then answer only criteria "
    "with that condition."
)


Pool = Annotated[
    str, shaped(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,14})?", "at most 15 letters and digits")
]


class Striping(Model):
    """How files of the checks are striped over the targets of a Lustre file system."""

    count: Annotated[int, Field(ge=-1, le=100_000)] | None = None
    """Targets of a file; -1: all of them."""
    size: Size | None = None
    """Bytes on a target before the next: 1 MiB."""
    pool: Pool = ""
    """The pool of targets, by its name."""

    @field_validator("count")
    @classmethod
    def _some_targets(cls, count: int | None) -> int | None:
        if count == 0:  # lfs takes it for the file system's own default
            raise Mistake("'0' is not a number of targets", "1 or more, or -1 for all of them")
        return count

    @field_validator("size")
    @classmethod
    def _whole_pieces(cls, size: units.Quantity | None) -> units.Quantity | None:
        if size and size.to("B") % 65536:
            raise Mistake("not a multiple of 64 KiB", "a size such as 1 MiB")
        return size


NO_NETWORK = "none"
# Beginnings of the kernel's names; an xfs that all nodes see may be a disk of one machine.
NETWORK_KINDS = (
    "nfs", "lustre", "ceph", "gpfs", "beegfs", "cifs", "smb", "gluster", "pvfs", "orangefs",
    "panfs", "weka", "afs", "sshfs", "daos", "dfuse", "dvs", "cvmfs",
)  # fmt: skip


def is_of_network(kind: str) -> bool:
    """Whether a file system of this kind, as the kernel names it, is one that all nodes see."""
    return kind.removeprefix("fuse.").startswith(NETWORK_KINDS)


MountPoint = Annotated[str, shaped(r"(?s)/.*", "a path that begins with /")]


PathBelow = Annotated[
    str, shaped(r"(?!(.*/)?\.\.(/|$))[^/].*", "a path below that of the file system")
]


class FileSystem(Model):
    """A file system that checks may use."""

    path: MountPoint
    """Where it is mounted, an absolute path."""
    kind: str
    """Its type as the kernel names it: lustre, ceph, nfs, xfs. Nodes on which the path is of
    another type are not measured; any: every type is measured."""
    shared: bool = False
    """True if all nodes see the same files."""
    emulated: str = Field("", description=EMULATED)
    description: str = ""
    """What it is for."""
    roles: list[str] | None = None
    """Roles whose nodes measure it, keys of `nodes`; all, if not given."""
    at_once: Count = 4
    """If it is shared: how many nodes of a partition measure it at the same time; at least one of
    each job."""
    servers: str | None = None
    """The role whose nodes serve it, a key of `nodes`: their network limits the rates of a
    sweep."""
    network: str | None = None
    """What carries its data and limits the rates of a sweep: a key of `links`, or 'none' where its
    disk is the nodes' own. Without it, the fastest interface of a node, if it has `servers`, or is
    shared and of a kind such as nfs or lustre."""
    most_full: Annotated[int, Field(ge=1, le=100)] = 90
    """If it is Lustre: in per cent, how full its fullest target may be before a check writes to
    it."""
    striping: Striping | None = None
    """If it is Lustre: how files of the checks are striped; without it, as the file system's own
    default. Checks refuse to write where files have another."""
    owners: PathBelow | None = None
    """If it is Lustre: a file below its path with a line `PATH UID` for each path whose owner is
    compared with the mapped one."""
    server_memory: Size | None = None
    """Memory of all its servers together: data that fits into it may come from a cache. Without it,
    the memory of the nodes of `servers`."""
    storage_version: str = ""
    """Version of the software that serves it; values are kept apart by it."""

    @property
    def is_remote(self) -> bool:
        """Whether a network carries its data."""
        if self.network is not None:
            return self.network != NO_NETWORK
        return self.servers is not None or self.shared and is_of_network(self.kind)

    def used_by(self, role: str) -> bool:
        """Whether nodes of this role measure it."""
        return self.roles is None or role in self.roles


_LAUNCH = re.compile(r"(?<![\w./-])launch\s+\S")


class Program(Model):
    """A program that the site names: one of checks/apps, or its own."""

    command: str = ""
    """Instead of `program`, a program of the centre's own: lines for the shell, in an empty folder,
    with the number of the node's cores in CORES."""
    answer: str = ""
    """With `command`: a line that its output has if its answer is right; * is any text."""
    prints: str = ""
    """With `command`: a line of its output with a figure of which more is better; # is the figure,
    * any text."""

    def must_be_one(self, program: str, *of_command: str) -> None:
        """Raises a mistake unless it has one program, and what belongs to it."""
        if bool(program) == bool(self.command):
            raise Mistake("an application has 'program' or 'command'", "one of them")
        if bool(self.command) != bool(self.answer):
            raise Mistake("only one of 'command' and 'answer'", "both, or none")
        for key in ("prints", *of_command):
            if getattr(self, key) and not self.command:
                raise Mistake(f"'{key}' without 'command'", "only with 'command'")
        for key in ("prints", "result"):
            if key in self.model_fields_set and getattr(self, key).count("#") != 1:
                raise Mistake(
                    f"'{key}' does not have one #",
                    "one #, where the figure stands, and quotes around it",
                )
        if self.command and not self.answer.strip("* "):
            raise Mistake("any line has this 'answer'", "a line that only a right answer has")


class Application(Program):
    """A program of users in the site's workload."""

    program: Literal["lammps", "gromacs", "nwchem", "openfoam", "minimap2", ""] = ""
    """The program of checks/apps that it runs, with that check's input."""
    nodes: Count
    """On how many nodes it runs, on each by itself."""
    tasks: Count | None = None
    """With `command`: it runs once, and its line `launch PROGRAM...` starts the program in so many
    tasks over its nodes, on each the same number."""

    @model_validator(mode="after")
    def _one_program(self) -> Application:
        self.must_be_one(self.program, "tasks")
        if self.tasks and not _LAUNCH.search(self.command):
            raise Mistake("'tasks' without a line 'launch PROGRAM' in 'command'", "both, or none")
        if self.tasks and self.tasks % self.nodes:
            raise Mistake("'tasks' is not the same on each node", "a multiple of 'nodes'")
        return self


NumberOfNodes = Annotated[str, shaped(r"all|[1-9][0-9]{0,5}", "a whole number such as 2, or all")]


class Scaled(Program):
    """A program over several nodes, once on each number of them."""

    program: Literal["hpl", "hpcg", "lammps", ""] = ""
    """The program of a check that it runs over all of its nodes."""
    nodes: list[NumberOfNodes] = Field(min_length=1)
    """On how many nodes: a list; all: on all nodes of the partition."""
    tasks_per_node: Count
    """How many tasks each node has."""
    scaling: Literal["weak", "strong"]
    """How the problem grows: weak, with the nodes; strong, not at all: it is that of the smallest
    number of nodes. PARTS of a `command` is its size in those of one node."""
    memory_share: Annotated[str, readable(parse_tolerance)] | None = None
    """With `program: hpl`: the share of the memory that the matrix takes; without it half, and in a
    quick run a small matrix."""
    time_limit: Time | None = None
    """Longest time on one number of nodes; without it 5 min in a quick run, 1 h in maintenance, 6 h
    in acceptance."""
    result: str = ""
    """With `command`: a line of its output with a figure that must not depend on nodes and MPI
    library; # is the figure, * any text."""
    tolerance: Annotated[str, readable(parse_tolerance)] = "0 %"
    """With `result`: by how much two of these figures may differ."""
    environments: list[str] = []
    """With `command`: the environments in which it runs, such as one for each MPI library; without
    it the first."""

    @model_validator(mode="after")
    def _one_program(self) -> Scaled:
        self.must_be_one(self.program, "result", "environments")
        if self.command and not _LAUNCH.search(self.command):
            raise Mistake("no line 'launch PROGRAM' in 'command'", "one that starts the tasks")
        if self.program == "hpcg" and self.scaling == "strong":
            raise Mistake("'scaling: strong' with 'program: hpcg'", "weak: its grid is a task's")
        if self.memory_share and self.program != "hpl":
            raise Mistake("'memory_share' without 'program: hpl'", "only with it")
        if "tolerance" in self.model_fields_set and not self.result:
            raise Mistake("'tolerance' without 'result'", "only with 'result'")
        return self


# Names of at most 40 characters: they are part of longer ones.
ShortName = Annotated[
    str, shaped(r"[a-zA-Z_][a-zA-Z0-9_-]{0,39}", f"{NAME_RULE}; at most 40 characters")
]


class Workload(Model):
    """Applications that run at the same time, each on nodes of its own."""

    description: str = ""
    """Whose workload it is, for the report."""
    emulated: str = Field("", description=EMULATED)
    file_systems: list[str]
    """File systems on which they work, one after the other: keys of `file_systems`."""
    applications: dict[ShortName, Application]
    """The applications, by name: letters, digits, '-' and '_'."""

    @property
    def nodes(self) -> int:
        """The nodes of all applications together."""
        return sum(application.nodes for application in self.applications.values())

    @property
    def mix(self) -> str:
        """How many nodes each application has, the largest first: 8+7+1."""
        sizes = sorted((one.nodes for one in self.applications.values()), reverse=True)
        return "+".join(map(str, sizes))


class Partition(Jobs):
    """A ReFrame partition: where and how jobs run."""

    description: str
    """What it is, for the report."""
    role: Names
    """The nodes that it runs on: a key of `nodes`, or a list of them. Each node is measured and
    judged as one of its role; of two roles, of the first here."""
    scheduler: Literal["slurm", "local"] = "slurm"
    """slurm, or local: no jobs."""
    access: list[Option] = []
    """Slurm options of each job, as ReFrame's `access`: --partition=NAME, --account=NAME,
    --qos=NAME, --constraint=NAME. An account that each user has of their own: $SBATCH_ACCOUNT and
    $SLURM_ACCOUNT, or -J account=NAME."""
    environments: list[str] = []
    """Software to run with, keys of `environments`; all of them, if not given."""
    measures: list[str] | None = None
    """The roles of it whose nodes are measured here; all, if not given. []: none, only links, as
    where another partition measures the same nodes. '--system SITE:PARTITION' measures all."""
    tuning: bool = False
    """True: sweeps may change settings of its nodes for a while, as root. Do not set it for nodes
    that others use at that time."""
    origin: Literal["munge", "user", "none"] = "munge"
    """The proof that a result is of its node, where Slurm uses munge. munge: a credential that the
    user made on this node; user: one made on any host, for nodes whose munged and Slurm use
    different addresses; none: no proof, as nodes have no munge."""
    reframe: dict[str, Any] = {}
    """Keys that are copied unchanged into ReFrame's entry of this partition."""

    @property
    def roles(self) -> list[str]:
        """All roles of its nodes."""
        return self.role

    @property
    def measured(self) -> list[str]:
        """The roles whose nodes are measured here, if no partition is named."""
        return self.role if self.measures is None else self.measures


PATTERNS = ("star", "all", "together", "random:3")
PATTERN = re.compile(r"star|all|together|random:[1-9][0-9]{0,5}")
Address = Annotated[
    str,
    shaped(
        r"(?:[A-Za-z0-9][A-Za-z0-9._-]*)?\{node\}[A-Za-z0-9._-]*",
        "{node} with letters, digits, '.', '_' and '-' around it",
    ),
]
InfiniBandDevice = Annotated[
    str,
    shaped(
        r"(?:[A-Za-z][A-Za-z0-9_-]{0,39}(:[1-9][0-9]?)?)?",
        "such as mlx5_0, or mlx5_0:2 with a port",
    ),
]


class Link(Graded):
    """A network path between two sets of nodes, and the pairs that measure it."""

    description: str
    """What it is, for the report."""
    partition: str
    """The partition whose jobs run on it: it has all nodes of the link, and Slurm."""
    servers: str
    """The nodes that run the server program: a role, or a set of nodes."""
    clients: str
    """The nodes that run the client program: a role, or a set of nodes."""
    pattern: str = "star"
    """star: each client with one server in turn, one pair at a time; all: every two nodes, in
    rounds; random:3: three random rounds; together: as star, all at once."""
    speed: Rate | None = None
    """Line rate of its slowest part: 10 Gb/s."""
    mtu: Count | None = None
    """Largest packet that it must carry, in bytes."""
    round_trip: Time | None = None
    """Round trip of a small packet: 0.2 ms."""
    emulated: str = Field("", description=EMULATED)
    address: Address = "{node}"
    """How a node is addressed on this network, for example {node}-ib."""
    device: InfiniBandDevice = ""
    """The InfiniBand or RoCE device that carries it on each node, mlx5_0, or a port of it,
    mlx5_0:2; without it RdmaWrite takes the first device."""
    gid_index: Annotated[int, Field(ge=0, le=255)] | None = None
    """The entry of the port's GID table that RoCE uses, as perftest's -x."""

    @field_validator("pattern")
    @classmethod
    def _known_pattern(cls, text: str) -> str:
        if not PATTERN.fullmatch(text):
            raise Mistake(f"unknown pattern '{text}'{hint(text, PATTERNS)}", ", ".join(PATTERNS))
        return text

    def address_of(self, node: str) -> str:
        """How this node is addressed on the link."""
        return self.address.replace("{node}", node)


VariableNames = Annotated[
    str, shaped(r"[A-Za-z_][A-Za-z0-9_]{0,99}\*?|\*", "a name such as UCX_TLS or UCX_*, or *")
]


class Environment(Loads):
    """A ReFrame environment: the software that checks run with."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {  # ReFrame's
        "descr": "description",
        "env_vars": "variables",
        **{name: f"reframe: {{{name}: …}}" for name in ("cc", "cxx", "ftn", "nvcc", "extras")},
    }

    description: str
    """What it is, for the report."""
    features: list[str] = []
    """The programs that it provides."""
    spack: str | None = None
    """The folder of spack-envs/ that 'siteproof build' builds for it; its features come with it."""
    variables: Variables = {}
    """Environment variables to set."""
    keep_variables: list[VariableNames] = []
    """Variables that control a BLAS, OpenMP or MPI, by name or as 'UCX_*', and that Hpl and Stream
    keep as the user has set them. They unset all others that neither `variables` nor `reframe`
    sets."""
    reframe: dict[str, Any] = {}
    """Keys that are copied unchanged into ReFrame's entry of this environment."""


# By kind: what a probe's target must look like, with an example.
TARGETS = {
    "http": (URL, "https://host/path"),
    "tcp": (re.compile(rf"{HOST}:{PORT}"), "host:6817"),
    "ssh": (re.compile(rf"{HOST}(?::{PORT})?"), "login1 or login1:2222"),
    "mount": (PATH, "/scratch"),
    "service": (re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}"), "a key of services"),
}
ServiceName = Annotated[
    str, shaped(r"(?:(?!all$)[A-Za-z_][A-Za-z0-9_-]{0,99})?", "letters, digits, _ -")
]


def _has_address(target: str) -> bool:
    """Whether what stands in brackets as a target's host, if anything does, is an address."""
    _, _, after = target.partition("://")
    try:
        urlsplit(f"//{after or target}")
    except ValueError:
        return False
    return True


class Probe(Model):
    """A service that `siteproof probe` looks at, from outside, as its users do."""

    description: str = ""
    """What it is, for the report."""
    service: ServiceName = ""
    """The service that it belongs to, which is up while all of its probes are; the probe's own
    name, if not given."""
    kind: Literal["http", "tcp", "ssh", "mount", "service"]
    """What up means. http: the answer is 2xx, redirects are followed; tcp: the port takes a
    connection; ssh: the server shows its version; mount: a file system is mounted and answers;
    service: each step of the test of one of `services` succeeds."""
    target: str
    """What is probed: a URL for http, host:port for tcp, a host or host:port for ssh, an absolute
    path for mount, the name of a service of `services`."""
    interval: Time = units.Quantity(Decimal(5), "min")
    """How often it runs; a good probe proves an up time of no more than this and a tenth of it: 5
    min."""
    timeout: Time = units.Quantity(Decimal(10), "s")
    """Time limit of the whole probe; a later answer does not count: 10 s."""
    gateway: bool = False
    """True: a gateway, which is compared with the system and is not part of it."""

    @model_validator(mode="after")
    def _fitting(self) -> Probe:
        pattern, example = TARGETS[self.kind]
        if not pattern.fullmatch(self.target) or not _has_address(self.target):
            what = f"'{self.target[:60]}' is not a target of kind {self.kind}"
            raise Mistake(what, f"such as {example}")
        seconds, limit = self.interval.to("s"), self.timeout.to("s")
        if seconds.denominator != 1 or not 10 <= seconds <= 86_400:
            raise Mistake(f"interval {self.interval}", "whole seconds, 10 s to 24 h")
        if limit >= seconds or limit > 600:
            raise Mistake(f"timeout {self.timeout}", "less than the interval, at most 10 min")
        return self


_USER = r"[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_.@-]{0,63}\$?"
Owner = Annotated[str, shaped(_USER, "a user's name or number")]


class Requested(Model):
    """A measurement that somebody has requested: Coverage.missing counts those without a value."""

    metric: str
    """The metric, Check.metric of checks/*/catalogue.yaml."""
    what: str = ""
    """What it stands for, in a few words."""
    subject: Literal["node", "vm", "client", "pair", "system"] | None = None
    """What one value belongs to; pair if links are given, else node."""
    nodes: list[str] = []
    """Roles that it covers; without it, all roles."""
    links: list[str] = []
    """Links over which it must have been measured."""
    facts: dict[str, Stated] = {}
    """What the nodes that it was measured on must be: as `fields` of the facts of `hardware`, by
    their description in the same session."""
    conditions: dict[str, Value] = Field(
        {"mode": ["maintenance", "acceptance"]}, validate_default=True
    )
    """The conditions that a value must have to count."""
    days: Count = 1
    """On how many days each unit must have been measured."""

    @model_validator(mode="after")
    def _of_nodes(self) -> Self:
        if self.facts and self.subject == "system":
            raise Mistake("'facts' of a value of the whole system", "only of nodes and pairs")
        return self


class Whole(Model):
    """What a system is that consists of other systems, such as a cloud of several sites."""

    system: EntryName
    """The system's name, which is the folder's."""
    description: str
    """What it is, for the report."""
    members: list[EntryName]
    """Instead of all other keys: the systems of the same folder that together are this one. Each is
    measured by itself; `over` of a criterion is how they answer together."""

    @field_validator("members")
    @classmethod
    def _several(cls, members: list[str]) -> list[str]:
        if len(members) < 2:
            raise Mistake(units.count(len(members), "member"), "two systems or more")
        return members


class System(Model):
    """What the system is."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {  # ReFrame's
        "name": "system",
        "descr": "description",
        "hostnames": "recognise: {hostname: …}",
        "modules": "modules of a partition or environment",
        "max_local_jobs": "reframe: {max_local_jobs: …}",
        "resourcesdir": "reframe: {resourcesdir: …}",
    }

    system: EntryName
    """The system's name, which is the folder's."""
    description: str
    """What it is, for the report."""
    recognise: Recognise
    """How its machines are recognised."""
    mode: Mode = "maintenance"
    """The mode of a run without --mode."""
    budgets: dict[Mode, Budget] = {}
    """The most node-hours that a run may take, by mode: acceptance: 500 node-hours. A run that may
    take more is refused."""
    modules_system: ModulesSystem = "nomod"
    """What loads the `modules` of partitions and environments on the nodes, as in ReFrame: lmod;
    envmod or tmod4 (Environment Modules from 4.1); spack; nomod: nothing."""
    checks: list[str] = []
    """Folders with the centre's own ReFrame tests, relative to the site's folder; a catalogue.yaml
    in them describes metrics that criteria may name. 'reframe -c checks/' loads them, too."""
    trusted_owners: list[Owner] = []
    """Users, by name or number, whose files below the data folder are trusted; needed where a file
    system maps owners, as NFS does for root."""
    hardware: dict[EntryName, Hardware] = {}
    """Kinds of nodes, by name."""
    nodes: dict[EntryName, Role]
    """The inventory: sets of nodes, by role."""
    groups: dict[EntryName, str] = {}
    """Nodes that share something, such as a rack or a switch: sets, by name."""
    switches: dict[EntryName, Switch] = {}
    """Kinds of switches, by name, for Inventory.oversubscription."""
    parameters: dict[str, HostParameters] = {}
    """Expected host parameters, by role."""
    health: dict[str, Health] = {}
    """What the program of 'siteproof health' looks at on the nodes, by role."""
    file_systems: dict[EntryName, FileSystem] = {}
    """File systems, by name."""
    workload: Workload | None = None
    """Applications that the check Workload runs alone, then at the same time."""
    scaling: dict[ShortName, Scaled] = {}
    """Programs that the check Scaling runs over growing numbers of nodes."""
    partitions: dict[EntryName, Partition]
    """Where checks run, by name."""
    environments: dict[EntryName, Environment]
    """Software, by name."""
    links: dict[EntryName, Link] = {}
    """Networks that are measured between two nodes at a time, by name."""
    mesh: Graded = Graded()
    """The same two rates for every link and service without its own."""
    requested: dict[str, list[Requested]] = {}
    """Lists of measurements that were requested, by name, for Coverage.missing."""
    probes: dict[EntryName, Probe] = {}
    """Services whose availability 'siteproof probe' measures, by name."""
    services: dict[ShortName, Service] = {}
    """Services that the check Service uses as users do, by name: transfers, gateways, desktops."""
    reframe: dict[str, Any] = {}
    """Keys that are copied unchanged into ReFrame's entry of this system."""

    @model_validator(mode="after")
    def _all_environments(self) -> Self:
        for name, partition in self.partitions.items():
            if not partition.environments:
                every = {"environments": list(self.environments)}
                self.partitions[name] = partition.model_copy(update=every)
        return self

    @cached_property
    def inventory(self) -> NodeSet:
        """All nodes of all roles. Raises ValueError where a role's set is not valid."""
        return nodesets.union(role.nodes for role in self.nodes.values())

    def hardware_of(self, role: str) -> Hardware:
        """The hardware of a role; without facts if the site gives none, or no such role."""
        kind = self.nodes[role].hardware if role in self.nodes else None
        return self.hardware.get(kind or "") or Hardware()

    def graded(self, part: Graded | None) -> Graded:
        """The rates from which on a link or service is slow: its own, else those of the mesh."""
        own = {name: getattr(part, name, None) for name in Graded.model_fields}
        return self.mesh.model_copy(update={name: rate for name, rate in own.items() if rate})

    def emulations(self) -> set[str]:
        """By what its links, file systems and workload are emulated."""
        parts = [*self.links.values(), *self.file_systems.values(), self.workload]
        return {part.emulated for part in parts if part} - {""}

    def sections(self) -> set[str]:
        """The sections of the contract's description that facts belong to."""
        of_hardware = (section for one in self.hardware.values() for section in one.facts)
        return {section for one in self.nodes.values() for section in one.facts}.union(of_hardware)

    def group(self, name: str) -> NodeSet:
        """The nodes of a group."""
        return nodesets.parse(self.groups[name])

    def members(self, text: str) -> NodeSet:
        """The nodes of a role, or of a set of nodes as written. Raises ValueError."""
        return self.nodes[text].nodes.copy() if text in self.nodes else nodesets.parse(text)
