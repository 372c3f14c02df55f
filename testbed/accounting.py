"""MariaDB and slurmdbd on the login node, made from nothing at every `up`."""

import secrets
import subprocess
import time
from collections.abc import Callable

import node
from errors import TestbedError
from state import ENVIRONMENT, LOGIN, State

PATIENCE = 240  # seconds for a daemon to answer or a node to register, on a busy machine


def start(state: State) -> None:
    """From within the room; takes some four seconds, most of it for the empty database."""
    password = secrets.token_urlsafe(24)  # made anew at every `up`
    _start_database(state)
    _create_account(state, password)
    _write_configuration(state, password)
    node.must_run(state, LOGIN, ["slurmdbd"])
    wait_for(
        lambda: node.run(state, LOGIN, ["sacctmgr", "-n", "show", "cluster"]).returncode == 0,
        f"slurmdbd does not answer; see {state.log}/slurmdbd.log",
    )


def wait_for(true: Callable[[], bool], complaint: str, patience: float = PATIENCE) -> None:
    """Ask until true() holds. Raises TestbedError with the complaint after patience seconds."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            raise TestbedError(complaint)
        time.sleep(0.1)


def _client(state: State) -> list[str]:
    return ["mariadb", "--no-defaults", f"--socket={state.data}/db/mysql.sock", "--user=root"]


def _start_database(state: State) -> None:
    folder = state.data / "db"
    folder.mkdir(mode=0o700)
    node.must_run(state, LOGIN, ["chown", "mysql:mysql", str(folder)])
    common = ["--no-defaults", "--user=mysql", f"--datadir={folder}"]
    node.must_run(state, LOGIN, [
        "mariadb-install-db", *common, "--skip-test-db",
        "--auth-root-authentication-method=socket", "--auth-root-socket-user=root",
        "--innodb-log-file-size=16M",
    ])  # fmt: skip
    with (state.log / "mariadbd.log").open("w") as log:
        subprocess.Popen(
            node.command(state, LOGIN, [
                "mariadbd", *common,
                f"--socket={folder}/mysql.sock", f"--pid-file={folder}/mysqld.pid",
                "--bind-address=127.0.0.1", "--port=3306", "--skip-name-resolve",
                # slurmdbd asks for these two; durability is of no use here.
                "--innodb-buffer-pool-size=128M", "--innodb-lock-wait-timeout=900",
                "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0",
                "--innodb-doublewrite=0",
            ]),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT,
            start_new_session=True,
        )  # fmt: skip
    wait_for(
        lambda: node.run(state, LOGIN, [*_client(state), "--execute=select 1"]).returncode == 0,
        f"MariaDB does not answer; see {state.log}/mariadbd.log",
    )


def _create_account(state: State, password: str) -> None:
    """The password goes through stdin: a command line is for all to see."""
    node.must_run(
        state,
        LOGIN,
        _client(state),
        "create database slurm_acct_db;"
        f"create user 'slurm'@'127.0.0.1' identified by '{password}';"
        "grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1';",
    )


def _write_configuration(state: State, password: str) -> None:
    path = state.etc / "slurmdbd.conf"
    path.touch(mode=0o600)
    path.write_text(f"""\
AuthType=auth/munge
AuthInfo=socket={state.path}/munge/socket
DbdHost={LOGIN}
SlurmUser=root
LogFile={state.log}/slurmdbd.log
PidFile={state.data}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=3306
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
CommitDelay=1
TrackSlurmctldDown=yes
""")
