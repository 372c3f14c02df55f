"""The house of DESIGN.md: who may import whom, and why. Types alone are no import."""

import ast
from collections import defaultdict
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import sources
from clone import TOP

from siteproof.services import runner, steps
from siteproof.sites.service_keys import KINDS

PACKAGE = TOP / "siteproof"
FOUNDATIONS = (*("errors", "files", "installed", "locks"), *("nodesets", "units"))
FLOORS = {  # a floor knows those below it; 1 at the bottom
    8: ("cli",),
    7: ("export", "report"),
    6: ("gate", "wording"),
    5: (*("availability", "compare", "curves", "links"), *("nodes", "trend", "verdict")),
    4: ("history", "porting"),
    3: ("checks", "collect", "probes", "services", "spack", "sweeps"),
    2: ("analysis", "answers", "parsers", "record", "sites", "slurm"),
    1: FOUNDATIONS,
}
NEIGHBOURS = {  # rooms of one floor that know each other, each with its reason
    ("files", "installed"): "where no folder of data is named, it is the clone",
    ("verdict", "compare"): "a setting that a person accepted is no change any more",
    ("nodes", "links"): "a node that explains bad pairs is a bad node",
    ("nodes", "verdict"): "a node that breaks the contract is a bad node",
    ("gate", "wording"): "a node's comment in Slurm says why it stays out",
    ("trend", "compare"): "what changed beside a figure explains its step",
    ("verdict", "availability"): "how long services were up is a derived value, too",
    ("verdict", "links"): "what a day's transfers are is the daily matrix's",
    ("verdict", "curves"): "a criterion may speak of what only a whole sweep has",
    ("checks", "collect"): "a check collects its job's raw files when it ends",
    ("checks", "services"): "what a test creates carries the session's name",
    ("checks", "spack"): "a check takes the software that is built here",
    ("checks", "sweeps"): "a sweep is a check over many points",
    ("probes", "services"): "a probe may use a service instead of a look at it",
    ("collect", "sweeps"): "the raw files of a tuning sweep name its knobs",
    ("analysis", "record"): "restarts and counters are read from samples",
    ("answers", "record"): "an attempt is a sample of the record",
    ("answers", "sites"): "a question is what a site promises",
    ("record", "sites"): "a series follows the catalogue of the site's metrics",
    ("sites", "slurm"): "Slurm names its cluster where no slurm.conf can be read",
    ("sites", "record"): "published.csv names the status of what has no figure",
    ("files", "errors"): "a folder that is not there is a user's mistake",
    ("locks", "errors"): "a lock that somebody holds is told as a user's mistake is",
    ("locks", "files"): "a lock file may be written by somebody else",
    ("units", "errors"): "an unknown unit is a user's mistake",
}
PURE = {  # stricter than the floors: all of ours that a room may know
    "parsers": (("errors", "parsers"), "text in, readings out"),
    "analysis": (("analysis", "errors", "record", "units"), "pure functions: no file, site or job"),
    "slurm": (("errors", "nodesets", "slurm"), "one client, which knows no check and no gate"),
}
HOME = {  # a library, and the rooms that may know it
    "reframe": ("checks",),
    "click": ("cli",),
    "rich": ("cli",),
    "matplotlib": ("report",),
    "duckdb": ("history",),
    "scipy": ("analysis", "availability"),
    "bioblend": ("services",),
    "globus_sdk": ("services",),
    "keystoneauth1": ("services",),
    "openstack": ("services",),
    "requests": ("services",),
    "jinja2": ("porting", "report"),
    "minio": ("services",),
    "irods": ("services",),
    "cryptography": ("services",),
    "urllib3": ("services",),
    "websocket": ("services",),
    "pydantic": ("record", "sites", "spack", "sweeps"),
    "yaml": ("sites", "spack", "trend"),
}
# A file a tool, kind …
OWN_NAMES = ("parsers", "collect/derive", "cli", "report/chapters", "services")


def modules():
    return sources.of("siteproof")


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def imported(path):
    """What a file imports, by its whole name, but for types."""
    types = {
        id(below)
        for node in sources.nodes(path)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for below in ast.walk(node)
    }
    found = []
    for node in sources.nodes(path):
        if id(node) in types:
            continue
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{name.name}" for name in node.names]
    return found


@cache
def relations():
    """Each room with those that it imports, and by which files."""
    found = defaultdict(set)
    for path in modules():
        for name in imported(path):
            if name.startswith("siteproof."):
                other = name.split(".")[1]
                if other not in (room_of(path), "__version__"):
                    found[room_of(path), other].add(str(path.relative_to(PACKAGE)))
    return found


def floor_of(room):
    return next(floor for floor, rooms in FLOORS.items() if room in rooms)


def test_at_the_root_stand_the_foundations_and_every_room_has_a_floor():
    there = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.name != "__init__.py" and (path.suffix == ".py" or any(path.glob("*.py")))
    }
    assert there == {room for rooms in FLOORS.values() for room in rooms}
    assert len(there) <= 32 and len(FLOORS) <= 10
    assert {path.stem for path in PACKAGE.glob("*.py")} == {*FOUNDATIONS, "__init__"}


def test_a_floor_knows_only_the_floors_below_it():
    upward = {
        pair: files for pair, files in relations().items() if floor_of(pair[1]) > floor_of(pair[0])
    }
    assert upward == {}


def test_rooms_of_one_floor_know_each_other_only_for_a_reason():
    level = {pair for pair in relations() if floor_of(pair[0]) == floor_of(pair[1])}
    assert level - NEIGHBOURS.keys() == set()


def test_no_reason_is_left_that_nobody_needs():
    types = {("record", "sites")}  # these know each other's types only
    assert NEIGHBOURS.keys() - relations().keys() - types == set()


def test_no_room_is_reached_from_itself():
    below = defaultdict(set)
    for room, other in relations():
        below[room].add(other)

    def reached(room, seen):
        for other in below[room] - seen:
            seen.add(other)
            reached(other, seen)
        return seen

    assert [room for room in list(below) if room in reached(room, set())] == []


def test_a_pure_room_knows_nothing_else():
    for room, (allowed, why) in PURE.items():
        known = {other for mine, other in relations() if mine == room}
        assert known <= set(allowed), (room, why)


def test_a_library_is_known_in_its_own_place_only():
    users = defaultdict(set)
    for path in modules():
        for name in imported(path):
            users[name.split(".")[0]].add(room_of(path))
    assert {name: users[name] for name in HOME} == {name: set(HOME[name]) for name in HOME}
    drawing = {
        path for path in modules() if any(n.startswith("matplotlib") for n in imported(path))
    }
    assert {path.parent for path in drawing} == {PACKAGE / "report" / "figure"}


def test_each_kind_of_service_needs_what_its_modules_import():
    def libraries(module, seen):
        found = set()
        for name in imported(PACKAGE / f"services/{module}.py"):
            below = name.split(".")[2] if name.startswith("siteproof.services.") else ""
            if below and below not in seen:
                seen.add(below)
                found |= libraries(below, seen)
            found.add(name.split(".")[0])
        return found & HOME.keys()

    modules = {kind: "sftp" if kind in steps.OVER_SSH else kind for kind in KINDS}
    needs = {kind: libraries(module, set()) for kind, module in modules.items()}
    needs["openstack"] |= libraries("capacity", set())
    assert {kind: set(runner.MODULES.get(kind, ())) for kind in KINDS} == needs


def test_a_name_is_said_of_one_file_only():
    held = defaultdict(list)
    for path in modules():
        place = str(path.relative_to(PACKAGE))
        if path.stem != "__init__" and not place.startswith(OWN_NAMES):
            held[path.stem].append(place)
    rooms = {room for rooms in FLOORS.values() for room in rooms} - set(FOUNDATIONS)
    assert {name: places for name, places in held.items() if len(places) > 1} == {}
    assert held.keys() & rooms == set()


def test_no_name_begins_with_that_of_its_room():
    assert [
        str(path.relative_to(PACKAGE))
        for path in modules()
        if path.parent != PACKAGE and path.stem.startswith(f"{path.parent.name}_")
    ] == []


def test_a_command_has_one_file_of_its_name():
    from siteproof.cli import COMMANDS

    files = {path.stem.removesuffix("_") for path in (PACKAGE / "cli").glob("[a-z]*.py")}
    # what all forms of the gate share, and all commands
    assert files == {*COMMANDS, "gate_answer", "shared"}


def test_every_module_says_first_what_it_is_for():
    assert [str(path) for path in modules() if not ast.get_docstring(sources.tree(path))] == []


def test_tests_lie_as_the_rooms_do():
    rooms = {room for rooms in FLOORS.values() for room in rooms}
    folders = {
        path.name
        for path in (TOP / "tests/unit").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    }
    assert folders <= rooms | {"foundations", "hostile"}  # the second attacks several rooms
    assert Path(__file__).parent == TOP / "tests/unit"


def test_each_base_class_of_checks_is_loaded_from_the_file_that_has_it():
    for name, file in import_module("siteproof.checks")._HOMES.items():
        text = find_spec(f"siteproof.checks.{file}").loader.get_source(f"siteproof.checks.{file}")
        assert f"\nclass {name}(" in text, name
