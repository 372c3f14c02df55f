"""What `up` leaves on disk for the other commands, and where.

The state folder (in /run) holds what is small: settings, process ids, configuration, sockets.
The data folder (in /var/tmp) holds what grows: database, spools, logs.
"""

import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from errors import UsageError

DEFAULT = "/run/siteproof-testbed"
VARIABLE = "SITEPROOF_TESTBED_STATE"
LOGIN = "login"


@dataclass(frozen=True)
class Settings:
    """What the user asked for at `up`. mark names all that this testbed makes."""

    mark: str
    size: int
    shares: tuple[str, ...] = ()
    cpu_quota: float | None = None


class State:
    """The state folder of a testbed that is up, half up, or not there."""

    def __init__(self) -> None:
        self.path = Path(os.environ.get(VARIABLE) or DEFAULT)
        self.settings_file = self.path / "testbed.json"
        self.socket = self.path / "run.socket"
        self.etc = self.path / "etc"
        self.slurm_conf = self.etc / "slurm.conf"
        self.secrets = self.path / "secrets"
        self.room_file = self.path / "room"

    def create(self, settings: Settings) -> None:
        """Claim the state folder; only one of several `up` at once can have it."""
        try:
            self.path.mkdir(mode=0o755)
        except FileExistsError:
            raise UsageError(f"{self.path} exists: a testbed is up; 'testbed down' first") from None
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None
        self.settings_file.write_text(json.dumps(asdict(settings)))
        self.secrets.mkdir(mode=0o700)
        for folder in (self.etc, self.path / "nodes", self.path / "munge"):
            folder.mkdir()
        self.data.mkdir(mode=0o755)
        for folder in ("log", "spool"):
            (self.data / folder).mkdir()
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
        return Settings(**raw | {"shares": tuple(raw["shares"])})

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
        return [f"node{number:03}" for number in range(1, self.settings.size + 1)]

    def node_file(self, node: str, what: str) -> Path:
        """A file with one fact about a node: pid, hostname, quota."""
        return self.path / "nodes" / f"{node}.{what}"

    def check_nodes(self, nodes: list[str]) -> None:
        """Raises UsageError for a name that is no compute node."""
        known = self.names()
        for node in nodes:
            if node not in known:
                raise UsageError(f"no node '{node}'. Allowed: {known[0]} to {known[-1]}")

    def remove(self) -> None:
        """Delete both folders, if they are a testbed's."""
        try:
            data = self.data
        except UsageError:  # killed between making the folder and writing the settings
            self.settings_file.unlink(missing_ok=True)
            self.path.rmdir()
            return
        if data.exists():
            shutil.rmtree(data)
        # The settings last: without them a second `down` would not know the folder as ours.
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry != self.settings_file:
                entry.unlink()
        self.settings_file.unlink()
        self.path.rmdir()


def new_mark() -> str:
    """Eight random digits."""
    return secrets.token_hex(4)
