"""The command line: arguments in, one call, one exit code."""

import argparse
import contextlib
import os
import pwd
import re
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import accounting
import cgroups
import faults
import guest
import network
import node
import outages
import quota
import room
import runserver
import slurm
import suite
import wan
from errors import TestbedError, UsageError
from state import ENVIRONMENT, LOGIN, Settings, State, new_mark, node_names

_MAX_NODES = 400  # their links have two neighbours each; the kernel's ARP table holds 1024
_HEALTHY = ("idle", "planned", "allocated", "mixed", "completing")
_PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "slurm-client",
    "slurmdbd": "slurmdbd",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
_HELP = """\
A real Slurm cluster on this one machine, for tests. Each node is a set of Linux namespaces with
an address, a host name, processes, /tmp and /dev/shm of its own; munge, slurmctld, slurmdbd,
MariaDB and slurmd are Debian's. All nodes see the host's files at the same paths.
"""
_EXAMPLES = """\
examples:
  testbed up                          8 nodes, node001 to node008, and the login node
  testbed run sinfo                   on the login node, as you
  testbed run --user nobody srun -N8 hostname
  testbed run --node node003 ip addr
  testbed power-off node003           then watch sinfo; 'testbed power-on node003' boots it
                                      (if it ran jobs: once slurmctld has noticed the loss)
  testbed fault                       what else can go wrong
  testbed fault capped-link node002 node003 --value 100mbit
  testbed mend node002 node003        undo all their faults, or one: mend node002 capped-link
  testbed quota node004 0.5           half a core; 'none' takes the limit away
  testbed up 8 --sites 2 --wan 50.5ms,10gbit
                                      four nodes here, four there, and one long link between
  testbed up 4 --guests node003:virtio,node004:e1000
                                      two of the nodes are virtual machines
  testbed up 8 --slurm-from trixie    the Slurm of another Debian
  testbed attach node003 rbd:volumes/x:conf=/etc/ceph/ceph.conf
  testbed down

exit codes: 0 success, 1 failure or not all nodes in service, 2 wrong usage; run: the command's own.
The environment variable SITEPROOF_TESTBED_STATE names another state folder than
/run/siteproof-testbed; two testbeds with two folders do not meet.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="testbed", description=_HELP, epilog=_EXAMPLES, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, what: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")

    up = add("up", "make a cluster; returns when all nodes are idle")
    up.add_argument("size", metavar="N", nargs="?", type=_size, default=8, help="nodes (8)")
    up.add_argument("--cpu-quota", metavar="CORES", type=quota.cores, help="limit of every node")
    up.add_argument(
        "--share",
        metavar="DIR",
        action="append",
        default=[],
        help="folder below /tmp or /dev/shm that all nodes see (may be repeated); "
        "the clone of this program is always seen",
    )
    up.add_argument(
        "--guests",
        metavar="NODE:CARD,…",
        default="",
        help="nodes that are virtual machines, without KVM, and their network card: "
        f"{' or '.join(guest.CARDS)}; commands reach them by srun alone",
    )
    up.add_argument("--sites", type=int, choices=(1, 2), default=1, help="2: half the nodes each")
    up.add_argument(
        "--wan",
        metavar="RTT,RATE",
        help=f"network between the sites: RTT,RATE[,LOSS each way] ({wan.DEFAULT})",
    )
    up.add_argument(
        "--names",
        metavar="A,B,…",
        type=_names,
        default=(),
        help="names of the nodes, in place of N",
    )
    up.add_argument(
        "--slurm",
        metavar="FILE",
        help="lines for slurm.conf in place of those for ClusterName, nodes and partitions",
    )
    up.add_argument(
        "--slurm-from",
        metavar="SUITE",
        type=_suite,
        help="Slurm, munge, MariaDB and nuttcp of this Debian suite (trixie, sid)",
    )
    add("sites", "show which node is at which site")
    add("down", "remove the cluster completely, in whatever state it is")
    add("status", "show the nodes' states and faults; exit code 0 if all are idle or at work")
    run = add("run", "run a command on the login node, in this folder, as you")
    run.add_argument("--user", metavar="NAME", help="as this user (root only)")
    run.add_argument("--node", metavar="NODE", default=LOGIN, help="on this node")
    run.add_argument("argv", metavar="CMD", nargs=argparse.REMAINDER)
    for name, what in (
        ("power-off", "power loss: kill nodes without a shutdown"),
        ("power-on", "boot nodes, or start their slurmd, and wait until they are in service"),
        ("kill-slurmd", "kill -9 the slurmd of nodes; power-on undoes it"),
    ):
        add(name, what).add_argument("nodes", metavar="NODE", nargs="+")
    add("restart-slurmctld", "stop slurmctld and start it again")
    fault = add("fault", "inject a fault; without a name: list all faults")
    fault.add_argument("name", metavar="NAME", nargs="?", choices=faults.FAULTS)
    fault.add_argument("nodes", metavar="NODE", nargs="*")
    fault.add_argument(
        "--value", metavar="V", help="size of the fault; the list of faults has the default"
    )
    mend = add("mend", "undo a fault, or all faults, and wait until the nodes are in service")
    mend.add_argument("words", metavar="NODE… [NAME]", nargs="+")
    attach = add("attach", "give a guest a disk, as its next /dev/vdX")
    attach.add_argument("guest", metavar="NODE")
    attach.add_argument(
        "source", metavar="SOURCE", help="a file, or rbd:POOL/IMAGE:conf=FILE on the login node"
    )
    add("detach", "take that disk away").add_argument("guest", metavar="NODE")
    limit = add("quota", "limit the CPUs of a node")
    limit.add_argument("node", metavar="NODE")
    limit.add_argument("cores", metavar="CORES|none", type=_cores_or_none)
    return parser


def _size(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_NODES:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to {_MAX_NODES}")
    return int(text)


def _suite(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,20}(-backports)?", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a suite of Debian")
    return text


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not all(re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name) for name in names):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of host names")
    if len(set(names)) < len(names) or LOGIN in names or len(names) > _MAX_NODES:
        raise argparse.ArgumentTypeError(f"'{text}': each name once, and none is '{LOGIN}'")
    return names


def _cores_or_none(text: str) -> float | None:
    return None if text == "none" else quota.cores(text)


def _say(words: str) -> None:
    with contextlib.suppress(OSError):  # stderr is closed: no reason to stop half-way
        os.write(2, f"testbed: {words}\n".encode())


def _need_root(command: str) -> None:
    if os.geteuid() != 0:
        raise UsageError(f"'{command}' needs root")


def _need_packages(packages: Mapping[str, str]) -> None:
    path = ENVIRONMENT["PATH"]
    missing = sorted({pkg for cmd, pkg in packages.items() if not shutil.which(cmd, path=path)})
    if missing:
        raise UsageError(f"missing Debian packages: {' '.join(missing)}")


def _shares(named: list[str], state: State) -> tuple[str, ...]:
    """The folders to keep in sight: those named, the clone, and the state folder."""
    for share in named:
        if not Path(share).is_dir():
            raise UsageError(f"--share {share}: no such folder")
        if Path(share).resolve() in node.PRIVATE:
            raise UsageError(f"--share {share}: every node has its own; name a folder below it")
    folders = [*map(Path, named), Path(__file__).parent.parent, state.path]
    return tuple(sorted({str(folder.resolve()) for folder in folders}))


def _up(args: argparse.Namespace, state: State) -> int:
    _need_root("up")
    if args.guests and args.slurm_from:
        raise UsageError("--slurm-from: guests have this machine's Slurm; leave out --guests")
    _need_packages(
        _PACKAGES
        | (guest.PACKAGES if args.guests else {})
        | (suite.COMMAND if args.slurm_from else {})
    )
    if args.cpu_quota is not None:
        quota.check()
    joined = _wan(args)
    os.umask(0o022)
    shares = _shares(args.share, state)
    size = len(args.names) or args.size
    slurm = Path(args.slurm).read_text() if args.slurm else ""
    names = list(args.names) or node_names(size)
    guests = guest.parse(args.guests, names) if args.guests else {}
    source = str(suite.root(args.slurm_from)) if args.slurm_from else ""
    settings = Settings(
        new_mark(), size, shares, args.cpu_quota, joined, args.names, slurm, guests, source
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        state.create(settings)
        if guests:
            guest.prepare(state)
        _fill(state)
    except TestbedError:
        raise
    except BaseException:
        for number in (signal.SIGINT, signal.SIGTERM):  # a second one would leave it half away
            signal.signal(number, signal.SIG_IGN)
        _say("removing what was created so far")
        _take_away(state, settings.mark)
        raise
    return 0


def _fill(state: State) -> None:
    try:
        room.create(state)
        room.inside(state, _build)
    except TestbedError as error:  # the logs stay for a look
        raise TestbedError(f"{error}. 'testbed down' removes what is there") from None
    state.ready_file.touch()


def _wan(args: argparse.Namespace) -> str | None:
    """What shall join the two sites, if there are two."""
    if args.sites == 1:
        if args.wan:
            raise UsageError("--wan needs --sites 2")
        return None
    if args.size < 2:
        raise UsageError("two sites need two nodes")
    joined = args.wan or wan.DEFAULT
    wan.parse(joined)
    wan.check()
    return joined


def _build(state: State) -> None:
    """Everything from the empty room to the last idle node. The database works meanwhile."""
    start = time.monotonic()
    names = state.names()

    def progress(words: str) -> None:
        _say(f"{time.monotonic() - start:5.1f} s  {words}")

    network.write_hosts(state)
    slurm.write_configuration(state)
    if state.settings.cpu_quota is not None:
        for name in names:
            quota.remember(state, name, state.settings.cpu_quota)
    if state.settings.wan is not None:
        wan.start(state)
        progress(f"WAN of {state.settings.wan} between sites a and b")
    node.boot(state, [LOGIN])
    slurm.make_key(state)
    slurm.start_munge(state, LOGIN)
    state.versions_file.write_text(f"{suite.versions(state)}\n")
    progress(f"login node up, munge runs; {state.versions_file.read_text().strip()}")
    database = os.fork()
    if database == 0:
        os._exit(node.attempt(state, lambda state, _: accounting.start(state), LOGIN))
    node.boot(state, names)
    progress(f"{len(names)} nodes booted")
    if os.waitpid(database, 0)[1]:
        raise TestbedError((state.log / "nodes.log").read_text().splitlines()[-1])
    progress("MariaDB and slurmdbd run")
    slurm.start_slurmctld(state)
    progress("slurmctld runs")
    node.for_all(state, slurm.boot_slurmd, names)
    progress("slurmd runs on all nodes")
    slurm.wait_until_in_service(state, names)
    progress(f"all {len(names)} nodes idle")


def _take_away(state: State, mark: str | None = None) -> None:
    """Leave nothing. mark: only if the testbed is still the one with this mark."""
    with state.locked() as exists:
        if not exists:
            return
        try:
            found = state.settings.mark
        except UsageError:  # `up` was killed before it made anything, or it is no testbed's folder
            state.remove_empty()
            return
        if mark in (None, found):
            room.kill(state)
            cgroups.remove_all(state)
            state.remove()


def _down(_args: argparse.Namespace, state: State) -> int:
    _need_root("down")
    if not state.path.exists():
        _say("no testbed is up")
        return 0
    _take_away(state)
    return 0


def _status(_args: argparse.Namespace, state: State) -> int:
    if not state.settings_file.exists():
        print("down")
        return 1
    if not state.ready_file.exists():
        print("half up; 'testbed down' removes it")
        return 1
    read, write = os.pipe()
    words = ["timeout", "30", "sinfo", "--noheader", "--format=%T %D %N"]
    code = runserver.call(state, LOGIN, words, stdout=write)
    os.close(write)
    with os.fdopen(read) as pipe:
        groups = [line.split() for line in pipe]
    if not groups:
        raise TestbedError(f"slurmctld does not answer; see {state.log}/slurmctld.log")
    print(f"up, {state.settings.size} nodes")
    for word, count, names in groups:
        print(f"{word:12} {count:>4}  {names}")
    for fault, value, faulty in faults.present(state):
        print(f"{'fault':12} {len(faulty):>4}  {','.join(faulty)}  {fault} {value}".rstrip())
    print(f"versions     {state.versions_file.read_text().strip()}")
    if state.settings.wan is not None:
        print(f"wan          {state.settings.wan}{'' if wan.is_alive(state) else '  DEAD'}")
        _print_sites(state)
    healthy = wan.is_alive(state) and all(word in _HEALTHY for word, _, _ in groups)
    return 0 if healthy and code == 0 else 1


def _print_sites(state: State) -> None:
    for site, names in state.sites().items():
        print(f"site         {len(names):>4}  {site}  {','.join(names)}")


def _sites(_args: argparse.Namespace, state: State) -> int:
    for site, names in state.sites().items():
        for name in names:
            print(name, site)
    return 0


def _run(args: argparse.Namespace, state: State) -> int:
    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        raise UsageError("run: a command is required, for example: testbed run sinfo")
    _ = state.settings  # complains if no testbed is up
    if args.node != LOGIN:
        state.check_nodes([args.node])
    cwd = str(Path.cwd())
    environment = dict(os.environ)
    if args.user:
        environment |= _become(args.user)
    return runserver.call(state, args.node, argv, cwd=cwd, environment=environment)


def _become(name: str) -> dict[str, str]:
    """Be that user from here on, as the run server will see. Returns the user's variables."""
    _need_root("run --user")
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise UsageError(f"no user '{name}'") from None
    os.initgroups(name, user.pw_gid)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    return {"USER": name, "LOGNAME": name, "HOME": user.pw_dir}


def _fault(args: argparse.Namespace, state: State) -> int:
    """List the faults, or inject one."""
    if args.name is None:
        for fault in faults.FAULTS.values():
            value = f" ({fault.default})" if fault.default else ""
            print(f"{fault.name:21} {fault.sentence}{value}")
        return 0
    _need_root("fault")
    fault = faults.FAULTS[args.name]
    if args.value is not None and not fault.default:
        raise UsageError(f"fault: {fault.name} takes no value")
    if bool(args.nodes) == (fault.name == faults.RESTART):
        what = "takes no node" if args.nodes else "needs a node, for example node001"
        raise UsageError(f"fault: {fault.name} {what}")
    value = fault.default if args.value is None else args.value
    fault.check(value)
    state.check_nodes(args.nodes)
    room.inside(state, lambda state: faults.inject(state, fault, args.nodes, value))
    return 0


def _mend(args: argparse.Namespace, state: State) -> int:
    _need_root("mend")
    *nodes, last = args.words
    fault = last if last in faults.FAULTS else None
    if fault is None:
        nodes.append(last)
    if not nodes:
        raise UsageError("mend: a node is required, for example: testbed mend node001")
    state.check_nodes(nodes)
    room.inside(state, lambda state: faults.mend(state, nodes, fault))
    return 0


def _disk(args: argparse.Namespace, state: State) -> int:
    _need_root(args.command)
    if args.guest not in state.settings.guests:
        raise UsageError(f"{args.guest} is no guest; 'testbed up --guests' makes one")
    if args.command == "detach":
        guest.detach(state, args.guest)
    else:
        guest.attach(state, args.guest, args.source)
    return 0


def _act(args: argparse.Namespace, state: State) -> int:
    """The older commands that act within the room."""
    _need_root(args.command)
    if "nodes" in args:
        state.check_nodes(args.nodes)
    actions = {
        "power-off": lambda state: faults.power_off(state, args.nodes),
        "power-on": lambda state: faults.power_on(state, args.nodes),
        "kill-slurmd": lambda state: faults.kill_slurmd(state, args.nodes),
        "restart-slurmctld": outages.restart_slurmctld,
        "quota": lambda state: faults.set_quota(state, args.node, args.cores),
    }
    if args.command == "quota":
        quota.check()
        state.check_nodes([args.node])
    room.inside(state, actions[args.command])
    return 0


def main() -> int:
    """The program. Returns its exit code."""
    commands = {
        "up": _up, "down": _down, "status": _status, "run": _run, "fault": _fault, "mend": _mend,
        "sites": _sites, "attach": _disk, "detach": _disk,
    }  # fmt: skip
    try:
        args = _parser().parse_args()
        return commands.get(args.command, _act)(args, State())
    except TestbedError as error:
        _say(str(error))
        return error.code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
