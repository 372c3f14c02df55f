"""Where the services run: one set of Linux namespaces, whose first process takes all down with it.

The bed has an address that this machine reaches through a veth pair. Each service has a folder of
the state folder, and a relay in front of it that can be slow, hang, or end in the middle.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from errors import TestbedError, UsageError

CACHE, CACHE_VARIABLE = "/var/cache/siteproof-services", "SITEPROOF_SERVICES_CACHE"
RELAY = Path(__file__).with_name("relay.py")
CORRUPTER = Path(__file__).with_name("corrupter.py")
HOLD = """\
import signal, sys
if not sys.stdin.read(1):  # who made this has died before it noted it down
    sys.exit()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so the kernel removes what has ended
while True:
    signal.pause()
"""
# Files of daemons in /run (sshd needs a folder there) are in the namespaces only; the state stays.
PRIVATE_RUN = """\
case $1 in /run/*) mount --bind "$1" /mnt ;; esac
mount -t tmpfs -o mode=755 tmpfs /run
case $1 in /run/*) mkdir -p "$1"; mount --move /mnt "$1" ;; esac
mkdir -m 755 /run/sshd
"""
# Who comes next needs the port of what ends. The pattern is no argument, or this were found, too.
STOP = """\
IFS= read -r pattern
found=$(pgrep -f -- "$pattern") || exit 0
kill -KILL $found 2>/dev/null
for one in $found; do while kill -0 "$one" 2>/dev/null; do sleep 0.02; done; done
"""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
}
TAIL = 300  # characters of a log in an error
PATIENCE = 30  # seconds


class Bed:
    """The state folder, and the namespaces if there are any."""

    def __init__(self, program: str) -> None:
        """program: services or cloud."""
        variable = f"SITEPROOF_{program.upper()}_STATE"
        self.path = Path(os.environ.get(variable) or f"/run/siteproof-{program}").resolve()
        self.cache = Path(os.environ.get(CACHE_VARIABLE) or CACHE).absolute()
        number = zlib.crc32(str(self.path).encode()) % 16_000
        self.link = f"svc{number}"
        self.here, there = (f"10.213.{number // 64}.{number % 64 * 4 + n}" for n in (1, 2))
        self._file = self.path / "bed.json"
        self.address = self.kept.get("at") or there

    @contextmanager
    def locked(self, *, make: bool = False) -> Iterator[bool]:
        """Only one command at a time changes it. make: the folder, if it is not there.

        Yields whether the folder is there. Raises UsageError if it is of something else.
        """
        if make:
            self._claim()
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            yield False
            return
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            there = self.path.exists() and self.path.samefile(f"/proc/self/fd/{folder}")
            if there and not self._file.exists() and any(self.path.iterdir()):
                raise UsageError(f"{self.path} is not a folder of services; nothing was changed")
            if make and not there:
                raise TestbedError("the services were taken away meanwhile; try again")
            yield there
        finally:
            os.close(folder)

    def _claim(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None

    @property
    def kept(self) -> dict[str, str]:
        """What is known of it: pid and start time of its first process, what else it has made."""
        try:
            found: dict[str, str] = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return found

    def keep(self, **more: str) -> None:
        """Remember something until `down`."""
        self._file.write_text(json.dumps({**self.kept, **more}))

    @property
    def pid(self) -> int:
        """Of the first process, as seen from here; 0: it does not live."""
        kept = self.kept
        pid = int(kept.get("pid", "0"))
        return pid if pid and _start_of(pid) == kept.get("start") else 0

    def make(self, at: str = "") -> None:
        """The namespaces, and the link to them, unless they are there.

        at: an address of this machine; the network is then this machine's own.
        """
        if self.pid:
            if at and at != self.address:
                raise UsageError(f"services are up at {self.address}")
            return
        self.keep(at=at)  # from here on the folder is known as ours
        self.address = at or self.address
        command = ["unshare", "--pid", "--mount", "--uts", "--ipc", "--fork"]
        command += [] if at else ["--net"]
        holder = subprocess.Popen(
            [*command, "--kill-child", "--mount-proc", sys.executable, "-c", HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        pid = _first_child(holder.pid)
        self.keep(pid=str(pid), start=_start_of(pid))
        assert holder.stdin
        with holder.stdin as go:
            go.write(b"g")
        self.run(["sh", "-ec", PRIVATE_RUN, "sh", str(self.path)])
        if not at:
            self._connect(pid)

    def _connect(self, pid: int) -> None:
        _ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _ip("address", "add", f"{self.here}/30", "dev", self.link)
        _ip("link", "set", self.link, "up")
        for words in (
            ("address", "add", f"{self.address}/30", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            self.run(["ip", *words])

    def run(
        self,
        argv: Sequence[str],
        *,
        given: str = "",
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> str:
        """A command in the namespaces; what it prints. Raises TestbedError."""
        try:
            done = subprocess.run(
                self._inside(argv),
                input=given,
                env=ENVIRONMENT | dict(env or {}),
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                cwd="/",
            )
        except subprocess.TimeoutExpired:
            raise TestbedError(f"{argv[0]} did not end within {timeout:g} s") from None
        if done.returncode:
            words = " ".join((done.stderr or done.stdout).split())[-TAIL:]
            raise TestbedError(f"{argv[0]} exited with {done.returncode}: {words}")
        return done.stdout

    def start(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        """A daemon in the namespaces, which ends with them."""
        with log.open("ab") as out:
            subprocess.Popen(
                self._inside(argv),
                env=ENVIRONMENT | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                cwd="/",
            )

    def _inside(self, argv: Sequence[str]) -> list[str]:
        if not self.pid:
            raise TestbedError("no service is up")
        return ["nsenter", "-t", str(self.pid), "-n", "-p", "-m", "-u", "-i", "--", *argv]

    def remove(self) -> None:
        """All of it, in whatever state it is."""
        pid = self.pid
        if pid:
            waiting = _waiting_for(pid)
            os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + PATIENCE
            while self.pid or any(map(_start_of, waiting)):
                if time.monotonic() > deadline:
                    raise TestbedError(f"process {pid} does not end although it was killed")
                time.sleep(0.02)
        subprocess.run(["ip", "link", "delete", self.link], capture_output=True, check=False)
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                _remove_tree(entry)
            elif entry != self._file:
                entry.unlink()
        self._file.unlink(missing_ok=True)  # the last: by it a second `down` knows the folder
        self.path.rmdir()


def _remove_tree(path: Path) -> None:
    """Remove a folder in which a program that was just ended may still have made a file."""
    deadline = time.monotonic() + PATIENCE
    while path.exists():
        try:
            shutil.rmtree(path)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class Place:
    """One service's folder and address in a bed."""

    def __init__(self, bed: Bed, name: str) -> None:
        self.bed, self.name = bed, name
        self.folder = bed.path / name
        self.address = bed.address
        self.cache = bed.cache

    @property
    def fault(self) -> str:
        """The fault that it has, with its value; empty: none."""
        with suppress(OSError):
            return (self.folder / "fault").read_text()
        return ""

    def clear(self) -> None:
        """Remove what a start that failed has left: processes, mounts, files."""
        if self.folder.exists():
            self.stop(f"{self.folder}/")
            for path in self.run(["findmnt", "-rno", "TARGET"]).split():
                if Path(path).is_relative_to(self.folder):
                    self.empty(Path(path))
            shutil.rmtree(self.folder)

    def run(self, argv: Sequence[str], **options: object) -> str:
        """As Bed.run."""
        return self.bed.run(argv, **options)  # type: ignore[arg-type]

    def daemon(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """As Bed.start, with a log in the folder."""
        self.bed.start(argv, self.folder / "log", env)

    def stop(self, pattern: str) -> None:
        """End the daemons whose command line has a text, as `pgrep -f` finds them."""
        with suppress(TestbedError):
            self.run(["sh", "-c", STOP], given=f"{pattern}\n")

    def write(self, name: str, text: str, mode: int = 0o600) -> Path:
        """A file of the folder."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def relay(self, port: int, target: int) -> None:
        """Take connections at a port of the address, and pass them on to one of localhost."""
        self.write("mode", "")
        argv = [sys.executable, str(RELAY), self.address, str(port), str(target)]
        self.daemon([*argv, str(self.folder / "mode")])
        self.wait(port)

    def behave(self, mode: str) -> None:
        """What the relay does with later connections; empty: its work."""
        self.write("mode", mode)

    def wait(self, port: int, seconds: float = 60) -> None:
        """Until the service takes a connection at a port. Raises TestbedError."""
        deadline = time.monotonic() + seconds
        while True:
            with suppress(OSError), socket.create_connection((self.address, port), 1):
                return
            if time.monotonic() > deadline:
                raise TestbedError(f"{self.name}: no answer within {seconds:g} s: {self.tail()}")
            time.sleep(0.05)

    def wait_inside(self, port: int, seconds: float = 60) -> None:
        """Until something in the namespaces takes a connection at a port of localhost."""
        probe = f"exec 3<>/dev/tcp/127.0.0.1/{port}"  # a tenth of the time that Python needs
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.run(["bash", "-c", probe])
            except TestbedError:
                if time.monotonic() > deadline:
                    what = f"{self.name}: no answer within {seconds:g} s: {self.tail()}"
                    raise TestbedError(what) from None
                time.sleep(0.05)
            else:
                return

    def hear(self, port: int, expected: bytes, say: bytes = b"", *, tls: bool = False) -> None:
        """Say something at a port; raises TestbedError unless the answer begins as expected."""
        heard = b""
        with suppress(OSError), socket.create_connection((self.address, port), 5) as raw:
            connection: socket.socket = raw
            if tls:
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                connection = context.wrap_socket(raw)
            connection.sendall(say)
            while len(heard) < len(expected) and (part := connection.recv(len(expected))):
                heard += part
        if heard != expected:
            raise TestbedError(f"{self.name} does not answer: {self.tail()}")

    def tail(self) -> str:
        """The end of its log."""
        with suppress(OSError):
            return " ".join((self.folder / "log").read_text(errors="replace").split())[-TAIL:]
        return "no log"

    def fill(self, folder: Path) -> None:
        """Make the file system of a folder full: 1 MiB, of which 16 KiB are free."""
        self.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)])
        self.run(["dd", "if=/dev/zero", f"of={folder}/filler", "bs=16k", "count=63"])

    def empty(self, folder: Path) -> None:
        """Undo `fill`."""
        with suppress(TestbedError):
            self.run(["umount", "-l", str(folder)])

    def corrupt(self, folder: Path) -> None:
        """Alter each file that is written below a folder."""
        ready = self.folder / "corrupts"
        ready.unlink(missing_ok=True)
        self.daemon([sys.executable, str(CORRUPTER), str(folder), str(ready)])
        deadline = time.monotonic() + 20
        while not ready.exists():
            if time.monotonic() > deadline:
                raise TestbedError(f"{CORRUPTER.name} does not start")
            time.sleep(0.02)

    def spare(self, folder: Path) -> None:
        """Undo `corrupt`."""
        self.stop(f"{CORRUPTER} {folder}")


def need_root() -> None:
    """Raises UsageError."""
    if os.geteuid() != 0:
        raise UsageError("needs root")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise TestbedError(f"ip {' '.join(words)}: {done.stderr.strip()[:TAIL]}")


def _first_child(pid: int) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if children and b"pause" in Path(f"/proc/{children[0]}/cmdline").read_bytes():
                return int(children[0])
        time.sleep(0.02)
    raise TestbedError("the namespaces could not be made")


def _start_of(pid: int) -> str:
    """Clock ticks from the machine's start to the process's; empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _waiting_for(first: int) -> list[int]:
    """The processes here that wait for one in the namespaces: unshare, and nsenter of daemons."""
    wanted = f"nsenter\0-t\0{first}\0".encode()
    found = [int(p.name) for p in Path("/proc").glob("[0-9]*") if _line_of(p).startswith(wanted)]
    stat = Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()
    return [int(stat[1]), *found] if stat[1] != "1" else found


def _line_of(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
