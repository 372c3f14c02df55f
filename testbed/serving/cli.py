"""The command line: arguments in, one call, one exit code."""

import argparse
import importlib
import importlib.util
import ipaddress
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from errors import TestbedError, UsageError

from serving import lines
from serving.place import PATIENCE, Bed, Place, need_root

PROGRAM = Path(sys.argv[0]).name  # services or cloud
NAMES = tuple(
    name
    for name in {
        "services": ("sftp", "http", "s3", "kdc", "hub", "desktop"),
        "cloud": ("openstack", "ceph", "galaxy"),
    }.get(PROGRAM, ())
    if importlib.util.find_spec(f"serving.{name}")
)
_HELP = {
    "services": """\
Real services on this one machine, for tests: each is the program that centres run, from the
distribution, PyPI, npm or Go's module proxy, in namespaces of its own.
""",
    "cloud": """\
A real research cloud on this one machine, for tests: OpenStack with a fake hypervisor, Ceph and
Galaxy, from the distribution and PyPI, in namespaces of its own. The first start of each fetches
its packages, which takes minutes; later ones take them from the cache.
""",
}
_EXAMPLES = {
    "services": """\
examples:
  services up sftp http          returns when both answer
  services site                  prints `services:` for system.yaml
  services fault                 what can go wrong
  services fault http expired-token
  services mend http
  testbed run --node node003 -- /path/to/services up sftp --at 10.78.1.1
                                 on a node of `testbed`, at its address; so are the other commands
  services down

exit codes: 0 success, 1 failure or a service does not answer, 2 wrong usage. The environment
variable SITEPROOF_SERVICES_STATE names another state folder than /run/siteproof-services.
""",
    "cloud": """\
examples:
  cloud up openstack             returns when its API answers
  cloud site                     prints `services:` for system.yaml
  cloud fault                    what can go wrong
  cloud fault openstack no-host
  cloud mend openstack
  cloud down

exit codes: 0 success, 1 failure or a service does not answer, 2 wrong usage. The environment
variable SITEPROOF_CLOUD_STATE names another state folder than /run/siteproof-cloud.
""",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def main() -> int:
    """Run one command."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        args = _parser().parse_args()
        return int(globals()[f"_{args.command}"](args, Bed(PROGRAM)))
    except TestbedError as error:
        _say(str(error))
        return error.code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog=PROGRAM, description=_HELP[PROGRAM], epilog=_EXAMPLES[PROGRAM], formatter_class=raw
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, what: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")

    up = add("up", "start services; returns when each answers")
    up.add_argument("names", metavar="NAME", nargs="+", choices=NAMES)
    up.add_argument(
        "--at",
        metavar="ADDRESS",
        type=_address,
        help="of this host, in place of an address of their own: for a node of `testbed`",
    )
    add("down", "remove all services completely, in whatever state they are")
    add("status", "show which services are up, and their faults; exit code 0 if all answer")
    add("site", "print the services that are up as `services:` of a system.yaml")
    fault = add(
        "fault", "make a service go wrong, in place of its fault before; without a name: list all"
    )
    fault.add_argument("name", metavar="NAME", nargs="?", choices=NAMES)
    fault.add_argument("what", metavar="FAULT", nargs="?")
    fault.add_argument("--value", metavar="V", default="", help="size of the fault")
    add("mend", "undo all faults of a service").add_argument("name", choices=NAMES)
    needed = add("packages", "show the Debian packages that services need and that are missing")
    needed.add_argument("names", metavar="NAME", nargs="*", choices=(*NAMES, []))
    return parser


def _address(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not an address such as 10.78.1.1") from None


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"serving.{name}")


def _say(words: str) -> None:
    os.write(2, f"{PROGRAM}: {words}\n".encode())


def _started(bed: Bed) -> list[str]:
    return [name for name in NAMES if (bed.path / name / "up").exists()]


def _missing(names: list[str]) -> list[str]:
    wanted = {"ip": "iproute2", "unshare": "util-linux", "pkill": "procps"}
    for name in names:
        wanted |= _module(name).PACKAGES
    found = {
        package
        for what, package in wanted.items()
        if not (Path(what).exists() if what[0] == "/" else shutil.which(what, path=PATH))
    }
    return sorted(found)


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _packages(args: argparse.Namespace, bed: Bed) -> int:
    missing = _missing(args.names or list(NAMES))
    print(*missing, sep="\n", end="\n" if missing else "")
    return 1 if missing else 0


def _up(args: argparse.Namespace, bed: Bed) -> int:
    need_root()
    if missing := _missing(args.names):
        raise UsageError(f"missing Debian packages: {' '.join(missing)}")
    os.umask(0o022)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with bed.locked(make=True):
        begun = time.monotonic()
        fresh = not bed.pid
        try:
            bed.make(args.at or "")
            for name in args.names:
                if name not in _started(bed):
                    _start(bed, name)
                    _say(f"{time.monotonic() - begun:5.1f} s  {name} answers")
        except UsageError:
            raise
        except TestbedError as error:  # the logs stay for a look
            raise TestbedError(f"{error}. '{PROGRAM} down' removes what is there") from None
        except BaseException:
            for number in (signal.SIGINT, signal.SIGTERM):  # a second one would leave it half away
                signal.signal(number, signal.SIG_IGN)
            if fresh:
                bed.remove()
            raise
    return 0


def _start(bed: Bed, name: str) -> None:
    place = Place(bed, name)
    place.clear()
    place.folder.mkdir(mode=0o700)
    _module(name).start(place)
    _wait(place)
    place.write("up", "")


def _answers(place: Place) -> None:
    """Raises TestbedError unless the service itself answers, as its users meet it."""
    module = _module(place.name)
    if hasattr(module, "probe"):
        module.probe(place)
    else:
        place.wait(module.PORT, 5)


def _wait(place: Place) -> None:
    """Until it answers."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _answers(place)
        except TestbedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _down(args: argparse.Namespace, bed: Bed) -> int:
    need_root()
    with bed.locked() as there:
        if there:
            bed.remove()
    return 0


def _status(args: argparse.Namespace, bed: Bed) -> int:
    need_root()
    bad = 0
    for name in _started(bed):
        place = Place(bed, name)
        state = "answers"
        try:
            _answers(place)
        except TestbedError:
            state, bad = "does not answer", 1
        if fault := place.fault:
            state += f", fault: {fault}"
        print(f"{name:8} {bed.address}:{_module(name).PORT}  {state}")
    if not _started(bed):
        print("no service is up")
        return 1
    return bad


def _site(args: argparse.Namespace, bed: Bed) -> int:
    need_root()
    print("services:" if _started(bed) else "services: {}")
    for name in _started(bed):
        for key, facts in _module(name).facts(Place(bed, name)).items():
            inner = ", ".join(f"{k}: {_quoted(v)}" for k, v in facts.items())
            print(f"  {key}: {{{inner}}}")
    return 0


def _quoted(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _fault(args: argparse.Namespace, bed: Bed) -> int:
    if not args.name:
        for name in NAMES:
            for fault, what in _module(name).FAULTS.items():
                print(f"{name:8} {fault:22} {what}")
        return 0
    known = _module(args.name).FAULTS
    if args.what not in known:
        what = f"no fault '{args.what}'" if args.what else "these faults"
        raise UsageError(f"{args.name} has {what}; it has: {', '.join(known)}")
    if args.value and "--value" not in known[args.what]:
        raise UsageError(f"{args.what} takes no value")
    lines.mode(args.what, args.value)  # before the fault that it has is mended
    need_root()
    with _one(bed, args.name) as place:
        if place.fault:
            _undo(place)
        place.write("fault", f"{args.what} {args.value}".strip())
        _module(args.name).fault(place, args.what, args.value)
    return 0


@contextmanager
def _one(bed: Bed, name: str) -> Iterator[Place]:
    """A service that is up, and nobody else changes it meanwhile."""
    with bed.locked():
        if name not in _started(bed):
            raise UsageError(f"{name} is not up")
        yield Place(bed, name)


def _undo(place: Place) -> None:
    place.behave("")
    _module(place.name).mend(place)
    _wait(place)
    (place.folder / "fault").unlink(missing_ok=True)


def _mend(args: argparse.Namespace, bed: Bed) -> int:
    need_root()
    with _one(bed, args.name) as place:
        _undo(place)
    return 0
