"""A real PostgreSQL of the distribution for one test: a cluster of its own, and nothing left."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest

OWNER = "postgres"  # of the package; PostgreSQL refuses root
SOCKETS = "-c listen_addresses= -c unix_socket_directories={} -c fsync=off"


class Centre:
    """The database of a centre, whose tables are there, and a role that may only write to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def psql(self, *words: object, data: str = "", role: str = OWNER, code: int | None = 0) -> str:
        """What psql prints, of an error the message; `data` is its standard input.

        code: with which it must end; None: with any.
        """
        argv = ["psql", "-X", "-h", self.folder, "-U", role, "-d", "postgres", *words]
        done = subprocess.run(
            [*map(str, argv)], input=data.encode("utf-8", "replace"), capture_output=True
        )
        assert code in (None, done.returncode), done.stderr.decode()
        return done.stdout.decode() if not code else done.stderr.decode()

    def ask(self, query: str) -> list[list[str]]:
        """The rows of a query, each cell as text."""
        out = self.psql("-At", "-F", "\t", "-c", query)
        return [line.split("\t") for line in out.splitlines()]


@contextmanager
def centre(schema: str, rights: str):
    """A cluster with the tables of `schema`, and the role `siteproof` with `rights` on them."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found or not shutil.which("psql"):
        warnings.warn("NO POSTGRESQL, NOT TESTED: setup/packages services", stacklevel=2)
        pytest.skip("NO POSTGRESQL, NOT TESTED: setup/packages services")
    folder = Path(tempfile.mkdtemp(prefix="siteproof-postgres-", dir="/var/tmp"))
    shutil.chown(folder, OWNER)
    folder.chmod(0o755)

    def run(program: str, *words: object) -> None:
        argv = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"]
        command = [*argv, found[-1] / program, "-D", folder / "data", *words]
        log = (folder / "log").open("ab")
        assert not subprocess.run(
            [*map(str, command)], stdout=log, stderr=log, cwd=folder
        ).returncode, (folder / "log").read_text()

    try:
        run("initdb", "--auth=trust", "--encoding=UTF8", "--no-sync")
        run("pg_ctl", "start", "-w", "-o", SOCKETS.format(folder))
        made = Centre(folder)
        made.psql("-q", "-v", "ON_ERROR_STOP=1", data=schema + rights)
        yield made
    finally:
        if (folder / "data/postmaster.pid").exists():
            run("pg_ctl", "stop", "-m", "immediate")
        shutil.rmtree(folder)
