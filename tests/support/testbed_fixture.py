"""The fixture `testbed`: one 8-node Slurm cluster for all tests of a pytest run."""

import json
import os
import socket
import subprocess
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from clone import PATIENCE

PROGRAM = Path(__file__).parents[2] / "testbed" / "testbed"
VARIABLE = "SITEPROOF_TESTBED_STATE"
SUITE = "SITEPROOF_SLURM_FROM"  # the Debian of which the beds have Slurm; else this machine's
_PREFIX = "/run/siteproof-testbed-pytest-"  # never the folder of a testbed made by hand
_UNAVAILABLE = ("needs root", "missing Debian packages")
LOGIN = "login"
_FOREIGN = ("SLURM_", "SBATCH_", "SITEPROOF_TESTBED")  # variables of another cluster
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def until(condition, what, seen=None, every=0.2):
    """The first true answer of condition(), which is asked again and again.

    what: that for which is waited; seen(): what there is instead. Both are told on giving up.
    """
    end = time.monotonic() + PATIENCE
    while not (answer := condition()):
        if time.monotonic() > end:
            last = seen() if seen else answer
            raise AssertionError(f"waited {PATIENCE} s for {what}; last seen: {last!r}")
        time.sleep(every)
    return answer


class Testbed:
    """A testbed with a state folder of its own.

    program: the command. state: its state folder.
    environment: what to set so that the command means this testbed.
    """

    __test__ = False
    program = PROGRAM

    def __init__(self, name=""):
        self.state = Path(f"{_PREFIX}{os.getpid()}{name}")
        self.environment = {VARIABLE: str(self.state)}

    @property
    def path(self):
        """A folder that every user can write and every node sees; it goes with the testbed."""
        return next(Path("/var/tmp").glob(f"siteproof-testbed.{self.mark}/scratch"))

    @property
    def mark(self):
        """What is in the name of everything that this testbed makes."""
        return (self.state / "testbed.json").read_text().split('"mark": "')[1].split('"')[0]

    def command(self, *words, timeout=3 * PATIENCE, **kw):
        """Run `testbed WORDS…`."""
        env = os.environ | self.environment | kw.pop("env", {})
        options = {"text": True, "capture_output": True} | kw
        return subprocess.run([PROGRAM, *map(str, words)], timeout=timeout, env=env, **options)

    def must(self, *words, **kw):
        """As command, but it has to succeed. Returns stdout."""
        done = self.command(*words, **kw)
        assert done.returncode == 0, f"testbed {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def up(self, *words):
        """Make it, or skip the test, loudly, where no testbed can be."""
        suite = os.environ.get(SUITE)
        done = self.command("up", *words, *(["--slurm-from", suite] if suite else []))
        if done.returncode == 2 and any(reason in done.stderr for reason in _UNAVAILABLE):
            reason = f"NO TESTBED, NOT TESTED: {done.stderr.strip()}"
            warnings.warn(reason, stacklevel=2)
            pytest.skip(reason)
        assert done.returncode == 0, done.stderr

    def run(self, argv, user=None, node=None, timeout=3 * PATIENCE, **kw):
        """Run argv on the login node, or on node, as root or as user; in .path unless cwd says."""
        cwd, node, argv = str(kw.get("cwd", self.path)), node or LOGIN, [*map(str, argv)]
        env, text = kw.get("env", {}), kw.get("input", "")
        if user:  # the run server asks the kernel who asks, so this has to be a process of its own
            words = ["run", "--user", user, "--node", node, "--", *argv]
            return self.command(*words, timeout=timeout, cwd=cwd, input=text, env=env)
        request = {"node": node, "cwd": cwd, "umask": 0o022, "argv": argv}
        request["environment"] = _own() | env
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(text.encode())
            given.seek(0)
            try:
                answer = _ask(self.state / "run.socket", request, [given, out, err], timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(argv, timeout) from None
            out.seek(0)
            err.seek(0)
            said, told = (stream.read().decode(errors="replace") for stream in (out, err))
        if "error" in answer:
            answer, told = {"exit": 1}, f"{told}testbed: {answer['error']}\n"
        return subprocess.CompletedProcess(argv, answer["exit"], said, told)

    def versions(self):
        """Of Slurm, munge and MariaDB."""
        return (self.state / "versions").read_text().strip()

    def lose_power(self, *nodes):
        """Kill nodes as by a power loss, and tell slurmctld what it would find a minute later."""
        self.power_off(*nodes)
        words = ["State=DOWN", "Reason=Not responding"]
        done = self.run(["scontrol", "update", f"NodeName={','.join(nodes)}", *words])
        assert done.returncode == 0, done.stderr

    def power_off(self, *nodes):
        """Kill nodes as by a power loss."""
        self.must("power-off", *nodes)

    def power_on(self, *nodes):
        """Boot nodes and wait until Slurm has them back."""
        self.must("power-on", *nodes)

    def fault(self, name, *nodes, value=None):
        """Inject a fault; `testbed fault` lists them."""
        self.must("fault", name, *nodes, *(["--value", value] if value else []))

    def mend(self, *nodes):
        """Undo all faults of nodes and wait until Slurm has them back."""
        self.must("mend", *nodes)

    def restart_slurmctld(self):
        """Stop and start slurmctld; wait until it has its nodes back."""
        self.must("restart-slurmctld")

    def down(self):
        """Take it away."""
        self.must("down")


def _own():
    """This process's environment, as far as it means something on the login node."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
    kept.pop("HOSTNAME", None)
    return kept | {"PATH": f"{kept.get('PATH', '')}:{_PATH}"}


def _ask(server, request, streams, timeout):
    """The answer of testbed/runserver.py, without a process that would only wait for it."""
    body = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(server))
        connection.settimeout(timeout)
        files = [stream.fileno() for stream in streams]
        socket.send_fds(connection, [len(body).to_bytes(4, "big")], files)
        connection.sendall(body)
        raw = b""
        with suppress(ConnectionResetError):  # it ended before the server had read everything
            while part := connection.recv(4096):
                raw += part
    return json.loads(raw)


def _clear_stale():
    """Take away what a killed pytest run has left; others' that still run are left alone."""
    for folder in Path("/run").glob(f"{Path(_PREFIX).name}*"):
        pid = folder.name.removeprefix(Path(_PREFIX).name).partition("-")[0]
        if not Path(f"/proc/{pid}").exists():
            subprocess.run([PROGRAM, "down"], env=os.environ | {VARIABLE: str(folder)})


@pytest.fixture(scope="session")
def testbed(tmp_path_factory):
    """Eight idle nodes. Leave them idle; who breaks one mends it.

    All nodes see tmp_path at its own path. Ordinary users cannot enter it: use testbed.path.
    """
    if os.geteuid() == 0:
        _clear_stale()
    bed = Testbed()
    try:
        bed.up("8", "--share", tmp_path_factory.getbasetemp())
        warnings.warn(f"the test bed ran {bed.versions()}", stacklevel=2)
        yield bed
    finally:
        if bed.state.exists():
            bed.down()
