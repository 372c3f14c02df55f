"""What `up` leaves on disk for the other commands, and where.

The state folder (in /run) holds what is small: settings, process ids, configuration, sockets.
The data folder (in /var/tmp) holds what grows: database, spools, logs.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from errors import UsageError

DEFAULT = "/run/siteproof-testbed"
VARIABLE = "SITEPROOF_TESTBED_STATE"
LOGIN = "login"
# Of all that root starts in a testbed; nothing of the caller's.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


@dataclass(frozen=True)
class Settings:
    """What the user asked for at `up`. mark names all that this testbed makes.

    wan: what joins the nodes' two sites, as "RTT,RATE"; None if there is one site.
    names: those of the nodes, if they are not node001 and so on. slurm: lines for slurm.conf in
    place of those for cluster, nodes and partitions. guests: the nodes that are virtual machines,
    with the network card of each. slurm_from: the folder of another Debian suite's programs.
    """

    mark: str
    size: int
    shares: tuple[str, ...] = ()
    cpu_quota: float | None = None
    wan: str | None = None
    names: tuple[str, ...] = ()
    slurm: str = ""
    guests: dict[str, str] = field(default_factory=dict)
    slurm_from: str = ""


class State:
    """The state folder of a testbed that is up, half up, or not there."""

    def __init__(self) -> None:
        self.path = Path(os.environ.get(VARIABLE) or DEFAULT).absolute()
        self.settings_file = self.path / "testbed.json"
        self.socket = self.path / "run.socket"
        self.etc = self.path / "etc"
        self.slurm_conf = self.etc / "slurm.conf"
        self.secrets = self.path / "secrets"
        self.ready_file = self.path / "ready"
        self.room_file = self.path / "room"
        self.versions_file = self.path / "versions"

    def create(self, settings: Settings) -> None:
        """Claim the state folder; only one of several `up` at once can have it."""
        try:
            self.path.mkdir(mode=0o755)
        except FileExistsError:
            what = f"a testbed is up ({self.path} exists)"
            raise UsageError(f"{what}: run 'testbed down' first") from None
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None
        whole = self.settings_file.with_suffix(".part")  # whoever sees the file sees all of it
        whole.write_text(json.dumps(asdict(settings)))
        whole.rename(self.settings_file)
        self.secrets.mkdir(mode=0o700)
        for folder in (self.etc, self.path / "nodes", self.path / "munge"):
            folder.mkdir()
        self.data.mkdir(mode=0o755)
        for name in ("log", "spool"):
            (self.data / name).mkdir()
        (self.data / "slurmctld").mkdir(mode=0o700)
        scratch = self.data / "scratch"
        scratch.mkdir()
        scratch.chmod(0o1777)

    @property
    def settings(self) -> Settings:
        """Raises UsageError if no testbed is up."""
        try:
            raw = json.loads(self.settings_file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            raise UsageError("no testbed is up; 'testbed up' makes one") from None
        return Settings(**raw | {key: tuple(raw[key]) for key in ("shares", "names")})

    @property
    def data(self) -> Path:
        """The data folder; its name cannot be guessed beforehand."""
        return Path("/var/tmp") / f"siteproof-testbed.{self.settings.mark}"

    @property
    def log(self) -> Path:
        """The folder of all daemons' logs."""
        return self.data / "log"

    def names(self) -> list[str]:
        """All compute nodes, in order."""
        return list(self.settings.names) or node_names(self.settings.size)

    def site(self, node: str) -> str:
        """Site of a node: "b" for the second half if there are two sites, else "a"."""
        if self.settings.wan is None or node == LOGIN:
            return "a"
        names = self.names()
        return "ab"[names.index(node) >= (len(names) + 1) // 2]

    def sites(self) -> dict[str, list[str]]:
        """All nodes, by site."""
        sites: dict[str, list[str]] = {}
        for node in [LOGIN, *self.names()]:
            sites.setdefault(self.site(node), []).append(node)
        return sites

    def node_file(self, node: str, what: str) -> Path:
        """A file with one fact about a node: pid, hostname, quota, a fault."""
        return self.path / "nodes" / f"{node}.{what}"

    def check_nodes(self, nodes: list[str]) -> None:
        """Raises UsageError for a name that is no compute node."""
        known = self.names()
        for node in nodes:
            if node not in known:
                raise UsageError(f"no node '{node}'. Allowed: {known[0]} to {known[-1]}")

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Make every other `down` wait. Yields whether the state folder still exists."""
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            yield False
            return
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield self.path.exists() and self.path.samefile(f"/proc/self/fd/{folder}")
        finally:
            os.close(folder)

    def remove(self) -> None:
        """Delete both folders."""
        if self.data.exists():
            shutil.rmtree(self.data)
        # The settings last: without them a second `down` would not know the folder as ours.
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry != self.settings_file:
                entry.unlink()
        self.remove_empty()

    def remove_empty(self) -> None:
        """Delete a state folder that holds nothing but settings, which may be half written."""
        if set(self.path.iterdir()) - {self.settings_file}:
            raise UsageError(f"{self.path} is not a testbed's folder; nothing was removed")
        self.settings_file.unlink(missing_ok=True)
        self.path.rmdir()


def node_names(size: int) -> list[str]:
    """Of nodes that no one has named."""
    return [f"node{number:03}" for number in range(1, size + 1)]


def new_mark() -> str:
    """Eight random digits."""
    return secrets.token_hex(4)
