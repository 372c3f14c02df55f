"""The keys of `services` in system.yaml: what users of a research cloud meet, and how it is tested.

A credential is a file of mode 600; its content is in no sample, log, process list or report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from siteproof import units
from siteproof.errors import Mistake
from siteproof.sites.job_keys import Option
from siteproof.sites.key_types import Graded, Size, Time, shaped

Scenario = Literal["image", "network", "launch", "suspend", "snapshot", "volume", "move", "resize"]
SlurmCase = Literal[
    "preemption",
    "prolog",
    "epilog",
    "array",
    "dependency",
    "heterogeneous",
    "gres",
    "feature",
    "cores",
    "accounting",
    "memory",
    "reservation",
    "agreement",
    "time",
    "requeue",
    "throughput",
]
PORT = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
HOST = r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252})"
URL = re.compile(rf"https?://{HOST}(?::{PORT})?(?:/[!-~]{{0,400}})?")
_USER_AT = re.compile(rf"[A-Za-z_][A-Za-z0-9_.-]{{0,63}}@{HOST}(?::{PORT})?")
_LOGIN = re.compile(rf"(?:[A-Za-z_][A-Za-z0-9_.-]{{0,63}}@)?{HOST}(?::{PORT})?")
_COLLECTIONS = re.compile(r"[0-9a-f-]{36}>[0-9a-f-]{36}")
_SERVER = re.compile(rf"(?:{URL.pattern}|{HOST}:{PORT})")
PATH = re.compile(r"/[ -~]{0,400}")

Absolute = Annotated[
    str, shaped(r"(?:/[ -~]{0,400})?", "an absolute path such as /etc/siteproof/key")
]
Name = Annotated[str, shaped(r"(?:[!-~](?:[ -~]{0,253}[!-~])?)?", "up to 255 printable characters")]
Label = Annotated[str, shaped(r"[ -~]{1,200}", "up to 200 printable characters")]
Digest = Annotated[str, shaped(r"[0-9a-f]{64}", "64 digits from 0 to f")]
User = Annotated[str, shaped(r"(?:[a-z_][a-z0-9_-]{0,31})?", "a user's name such as debian")]
End = Annotated[str, shaped(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,62})?", "letters, digits, _ . -")]
_PROOF = r"(?:/[ -~]{1,400}|[A-Za-z_][A-Za-z0-9_]{0,99})?"
Proof = Annotated[str, shaped(_PROOF, "a variable, or a path such as /run/prolog/%j")]
Price = Annotated[str, shaped(r"(?:[0-9]{1,6}(?:\.[0-9]{1,6})?)?", "a number such as '0.09'")]


@dataclass(frozen=True)
class Needs:
    """What a kind of service must and may have. example: of its address."""

    address: re.Pattern[str]
    example: str
    must: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    transfers: bool = False


_SSH = ("key", "known_hosts")
_AMOUNT = (
    *("size", "files", "file_size", "here", "there", "most_written", "price", "most_price"),
    *Graded.model_fields,
)
KINDS: Mapping[str, Needs] = {
    "sftp": Needs(_LOGIN, "user@host:22", ("folder", *_SSH), _AMOUNT, transfers=True),
    "rsync": Needs(_LOGIN, "user@host:22", ("folder", *_SSH), _AMOUNT, transfers=True),
    "http": Needs(URL, "https://host/dav/", (), ("token", "certificates", *_AMOUNT), True),
    "s3": Needs(
        URL, "https://host:9000", ("bucket", "credentials"), ("certificates", *_AMOUNT), True
    ),
    "irods": Needs(
        _USER_AT, "user@host:1247", ("folder", "password"), ("certificates", *_AMOUNT), True
    ),
    "globus": Needs(
        _COLLECTIONS,
        "UUID of the source collection>UUID of the destination",
        ("folder", "credentials"),
        ("from_folder", *_AMOUNT),
        True,
    ),
    "kerberos": Needs(
        _LOGIN,
        "user@host:22",
        ("principal", "keytab", "known_hosts", "folder"),
        ("krb5_config", "forward", *_AMOUNT),
        True,
    ),
    "jupyterhub": Needs(URL, "https://hub.host", ("token", "user"), ("certificates",)),
    "web": Needs(URL, "https://portal.host", (), ("content", "http_status", "certificates")),
    "mount": Needs(PATH, "/lustre"),
    "desktop": Needs(_SERVER, "https://host/vnc_lite.html, or host:5901", (), ("password",)),
    "openstack": Needs(
        URL,
        "https://cloud.host:5000/v3, of Keystone",
        ("credentials", "image", "flavor"),
        (
            *("certificates", "network", "zone", "other_zone", "resize_flavor", "scenarios"),
            *("trials", "size", "volume_size", "volume_type", "guest_user", "reachable"),
        ),
    ),
    "galaxy": Needs(
        URL,
        "https://galaxy.host",
        ("token", "workflow", "inputs"),
        ("certificates", "reference_time", "results"),
    ),
    "slurm": Needs(
        re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}"),
        "the name of a partition of Slurm",
        (),
        ("cases", "submit", "jobs", "over_memory", "preempting", "prolog", "epilog"),
    ),
}
COMMON = ("description", "kind", "address", "partition", "timeout")
# By scenario and case: the key without which there is none.
_NEEDED_BY = {
    "move": "other_zone",
    "resize": "resize_flavor",
    "preemption": "preempting",
    "prolog": "prolog",
    "epilog": "epilog",
}
LEAST_OF_SLURM = 300  # seconds: Slurm starts a requeued job again after two minutes
SLURM = "slurm"  # the kind that the check Scheduler uses, and not Service


class Service(Graded):
    """A service that users meet, and that `reframe -n Service` uses as they do."""

    description: str = ""
    """What it is, for the report."""
    kind: Literal[*KINDS]  # type: ignore[valid-type]
    """How it is used. sftp, rsync, http (PUT and GET), s3, irods, globus: files there and back;
    kerberos: kinit, then files by ssh with the ticket; jupyterhub: a server, a kernel and a
    notebook; web: a page and its certificate; mount: a byte of a file system; desktop: a picture by
    VNC or noVNC; openstack: virtual machines; galaxy: a workflow, its results; slurm: small jobs,
    of the check Scheduler."""
    address: str
    """Where it is: user@host:port for sftp, rsync, irods and kerberos, a URL for http, s3,
    jupyterhub and web, the path for mount, a URL of noVNC or host:port of VNC for desktop, two
    collections for globus, the URL of Keystone for openstack, that of Galaxy for galaxy, the name
    of a partition of Slurm for slurm."""
    partition: str | None = None
    """The partition whose first free node uses it in a job; without it, the machine on which
    ReFrame runs."""
    timeout: Time = units.Quantity(Decimal(60), "s")
    """How long each step may take: 60 s."""
    folder: Absolute = ""
    """The folder at the far end; what is made there is removed. iRODS: a collection of the user's
    zone, /zone/home/user."""
    from_folder: Absolute = ""
    """Globus: the folder of the source collection."""
    bucket: str = ""
    """S3: the bucket."""
    user: str = ""
    """JupyterHub: the user whose server is started."""
    principal: str = ""
    """Kerberos: who logs in: alice@EXAMPLE.ORG."""
    key: Absolute = ""
    """SFTP and rsync: the file with the private key of ssh."""
    known_hosts: Absolute = ""
    """The file with the host keys that are accepted, as ssh writes it."""
    token: Absolute = ""
    """HTTP and JupyterHub: the file with the token; Galaxy: with the API key of a user."""
    credentials: Absolute = ""
    """The file with what a login needs, a KEY=VALUE a line; s3: access_key and secret_key; globus:
    client_id and client_secret; openstack: username, password, project, user_domain, project_domain
    and region, or application_credential_id and _secret."""
    keytab: Absolute = ""
    """Kerberos: the keytab of the principal."""
    password: Absolute = ""
    """Desktop and iRODS: the file with the password."""
    krb5_config: Absolute = ""
    """Kerberos: a krb5.conf in place of the system's."""
    forward: bool = False
    """Kerberos: whether the ticket is passed on by ssh, and must be at the far end."""
    certificates: Absolute = ""
    """The file with the certificates that are trusted; else the system's. iRODS: only with it is
    the connection encrypted."""
    content: str = ""
    """Web: a text that the page must have."""
    http_status: Annotated[int, Field(ge=200, le=599)] = 200
    """Web: the status of the page, after redirects."""
    size: Size = units.Quantity(Decimal(64), "MiB")
    """Size of the large file: 64 MiB."""
    files: Annotated[int, Field(ge=0, le=10_000)] = 20
    """How many small files are transferred, too; 0: none."""
    file_size: Size = units.Quantity(Decimal(64), "KiB")
    """Size of each small file: 64 KiB."""
    image: Name = ""
    """OpenStack: the name of the image that servers boot."""
    flavor: Name = ""
    """OpenStack: the name of the servers' flavor."""
    resize_flavor: Name = ""
    """OpenStack: the flavor after `resize`."""
    network: Name = ""
    """OpenStack: a network of the cloud; without it one is made for each test."""
    zone: Name = ""
    """OpenStack: the availability zone of the servers."""
    other_zone: Name = ""
    """OpenStack: the zone, or site, to which `move` goes."""
    scenarios: list[Scenario] | None = None
    """OpenStack: what is done after the login: image (up and down, hash), network (two servers on
    one network), launch, suspend (and stop), snapshot (and boot of it), volume, move (shelve, then
    unshelve in other_zone), resize. Without it: all for which the keys are given; []: the login
    alone."""
    trials: Annotated[int, Field(ge=1, le=50)] = 1
    """OpenStack: how often all of it is done; median and worst of each step."""
    volume_size: Size = units.Quantity(Decimal(1), "GiB")
    """OpenStack: size of a volume: 1 GiB."""
    volume_type: Name = ""
    """OpenStack: its type; else the cloud's default."""
    guest_user: User = ""
    """OpenStack: who logs in to a server by ssh, with a key that the test makes; what is written to
    a volume and a snapshot is then read back in another server. The image must print its host keys
    to the console, as cloud-init does."""
    reachable: Literal["ssh", ""] = ""
    """OpenStack, of a sweep of servers. ssh: a server counts when it is ACTIVE and its first
    address, a floating one before others, shows the version of an ssh server to this machine, a
    look of 5 s at a time, as long as servers are waited for. The project's default security group
    must let that pass. Without it: when it is ACTIVE."""
    workflow: Absolute = ""
    """Galaxy: the file with the workflow, as Galaxy exports it (.ga)."""
    inputs: dict[Label, Absolute] = {}
    """Galaxy: the label of each input of the workflow, and the file for it."""
    results: dict[Label, Digest] = {}
    """Galaxy: labels of outputs of the workflow, each with the SHA-256 that the file has on the
    reference installation; without them, none is compared."""
    reference_time: Time | None = None
    """Galaxy: what the workflow takes on the reference installation: its Service.run_time there."""
    cases: list[SlurmCase] | None = None
    """Slurm: what it must keep: each of these that does not hold is a failure, also where Slurm is
    not configured for it. Without it: all, and a case for which Slurm is not configured is a
    SKIP."""
    submit: list[Option] = []
    """Slurm: options of sbatch for each job, such as --account=staff."""
    jobs: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Slurm: how many small jobs `throughput` submits, as one array; 1000 in mode acceptance and
    none in other modes, if not given."""
    over_memory: Literal["OUT_OF_MEMORY", "FAILED", "CANCELLED"] = "OUT_OF_MEMORY"
    """Slurm: the state of a job that took more memory than it asked for. FAILED: ended by a signal,
    as JobAcctGatherParams=OverMemoryKill does."""
    preempting: list[Option] = []
    """Slurm: options of sbatch for a job that preempts one without them, such as --partition=urgent
    or --qos=high."""
    prolog: Proof = ""
    """Slurm: what shows in a job that the prolog has run: a variable that is set, or the path of a
    file on the node; %j is the job's number."""
    epilog: Absolute = ""
    """Slurm: the path of a file on the node that the epilog of a job leaves; %j is the job's
    number."""
    here: End = ""
    """The name of this end among the ends of transfers; the system's name, if not given."""
    there: End = ""
    """The name of the far end; the service's, if not given."""
    most_written: Size | None = None
    """The quota: a test that would write more does not begin: 10 GiB."""
    price: Price = ""
    """What each GB that is moved costs, as a number: '0.09'."""
    most_price: Price = ""
    """A test that would cost more does not begin, as a number: '1.50'."""

    @model_validator(mode="after")
    def _fitting(self) -> Service:
        needs = KINDS[self.kind]
        if not needs.address.fullmatch(self.address):
            what = f"'{self.address[:60]}' is not an address of kind {self.kind}"
            raise Mistake(what, f"such as {needs.example}")
        allowed = {*COMMON, *needs.must, *needs.may}
        for name in sorted(self.model_fields_set - allowed):
            raise Mistake(f"'{name}' with kind {self.kind}", ", ".join(sorted(allowed)))
        for name in needs.must:
            if not getattr(self, name):
                raise Mistake(f"kind {self.kind} without '{name}'", ", ".join(needs.must))
        if bool(self.price) != bool(self.most_price):
            raise Mistake("only one of price and most_price", "both, or none")
        for part in (*(self.scenarios or ()), *(self.cases or ())):
            if (key := _NEEDED_BY.get(part)) and not getattr(self, key):
                raise Mistake(f"{part} without '{key}'", key)
        return self

    @model_validator(mode="after")
    def _within_limits(self) -> Service:
        if self.files == 1:
            raise Mistake("one small file", "0, or 2 and more: one file is the large one")
        if not 1 <= self.timeout.to("s") <= 86_400:
            raise Mistake(f"timeout {self.timeout}", "1 s to 24 h")
        if self.kind == SLURM and (self.partition or self.timeout.to("s") < LEAST_OF_SLURM):
            what = "kind slurm with 'partition', or a timeout below 5 min"
            raise Mistake(what, "timeout: 10 min; address names the partition of its jobs")
        return self

    def as_written(self) -> dict[str, object]:
        """The keys that are given, with quantities as texts: for another process."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {k: str(v) if isinstance(v, units.Quantity) else v for k, v in given.items()}

    @property
    def chosen(self) -> list[Scenario]:
        """The scenarios of a cloud: those of the site, or all for which it has the keys."""
        possible = [one for one in get_args(Scenario) if getattr(self, _NEEDED_BY.get(one, "kind"))]
        return possible if self.scenarios is None else self.scenarios

    @property
    def most_steps(self) -> int:
        """How many steps one test of it has at most, with the removal of what it has created."""
        if self.kind == SLURM:
            return len(get_args(SlurmCase)) + 3
        return 12 if self.kind != "openstack" else 3 + 36 * self.trials

    @property
    def transfers(self) -> bool:
        """Whether it moves files."""
        return KINDS[self.kind].transfers

    @property
    def bytes_written(self) -> int:
        """What one test writes at the far end."""
        whole = int(self.size.to("B")) + self.files * int(self.file_size.to("B"))
        return whole if self.transfers else 0

    @property
    def cost(self) -> Decimal | None:
        """What one test costs: each byte goes there and comes back. None: it has no price."""
        if not self.price:
            return None
        return 2 * self.bytes_written * Decimal(self.price) / 10**9

    @property
    def price_of_test(self) -> str:
        """The same as a text of four digits; empty without a price."""
        return "" if self.cost is None else f"{float(self.cost):.4g}"

    @property
    def refusal(self) -> str:
        """Why a test of it must not begin; empty if it may."""
        if self.most_written and self.bytes_written > self.most_written.to("B"):
            written = units.size(self.bytes_written)
            return f"it would write {written}, most_written is {self.most_written}"
        if self.cost is not None and self.cost > Decimal(self.most_price):
            return f"it would cost {self.price_of_test}, most_price is {self.most_price}"
        return ""
