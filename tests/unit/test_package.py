"""What the package imports, and what it does without."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from types import SimpleNamespace

import pytest
import sources
from clone import TOP
from packaging.requirements import Requirement
from rows import rows

from siteproof.checks import adapter
from siteproof.services import runner

NOT_IMPORTED = {"pip", "hatchling", "jsonschema"}  # what installs the rest; by tests only
NAMES = {  # of a module, where it is not that of its distribution
    "ClusterShell": "clustershell",
    "reframe": "reframe-hpc",
    "openstack": "openstacksdk",
    "yaml": "pyyaml",
    "globus_sdk": "globus-sdk",
    "irods": "python-irodsclient",
    "websocket": "websocket-client",
}


# ---- the libraries


@cache
def declared():
    """The direct dependencies by their names: those of all, and those of the extra."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    lists = project["dependencies"], project["optional-dependencies"]["services"]
    return [{canonical(Requirement(one).name): Requirement(one) for one in all_} for all_ in lists]


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def libraries(*folders):
    """The libraries that files import, or find, also those whose types alone they use.

    mpi4py is that of an environment of nodes: the program that runs there imports nothing of ours.
    """
    found = set()
    for path in sources.of(*folders):
        if path.parent.name == "on_node":
            continue
        for node in sources.nodes(path):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "find_spec":
                found.update(one.value for one in node.args if isinstance(one, ast.Constant))
    found -= {"siteproof", "checks", *sys.stdlib_module_names}
    return {NAMES.get(name, name) for name in found}


@pytest.mark.deep
def test_each_library_is_declared_and_each_that_is_declared_is_imported():
    plain, runner = map(set, declared())
    assert libraries("siteproof", "checks") == plain | runner
    assert plain.isdisjoint(runner)
    assert len(plain) <= 12


def test_the_pins_are_of_what_is_declared_and_within_its_bounds():
    plain, runner = declared()
    lines = (TOP / "setup/requirements.in").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    pinned = {canonical(pin.name): next((one.version for one in pin.specifier), "") for pin in pins}
    assert pinned.keys() - NOT_IMPORTED == plain.keys() | runner.keys()
    for name, requirement in (plain | runner).items():
        assert not pinned[name] or pinned[name] in requirement.specifier, name
    bounds = {str(one) for one in plain["reframe-hpc"].specifier}
    assert bounds == {f">={adapter.LEAST}", f"<{adapter.BELOW}"}
    assert pinned["reframe-hpc"] == adapter.PINNED


# ---- without the extra


def brought(names):
    """These distributions and all that they need, by their metadata."""
    found, left = set(), list(names)
    while left:
        name = canonical(left.pop())
        with suppress(PackageNotFoundError):  # not needed on this machine, or by Siteproof
            needs = [] if name in found else map(Requirement, distribution(name).requires or ())
            left += [r.name for r in needs if not r.marker or r.marker.evaluate({"extra": ""})]
        found.add(name)
    return found


@pytest.fixture(scope="module")
def no_extra(tmp_path_factory):
    """A folder for PYTHONPATH, with which there is only what the plain dependencies bring."""
    there = brought(declared()[0]) | {"siteproof"}
    owners = packages_distributions().items()
    hidden = [name for name, of in owners if there.isdisjoint(map(canonical, of))]
    assert {"bioblend", "cryptography", "globus_sdk", "minio", "openstack"} <= set(hidden)
    folder = tmp_path_factory.mktemp("no-extra")
    text = f"import sys\nsys.modules.update(dict.fromkeys({sorted(hidden)}))\n"
    (folder / "sitecustomize.py").write_text(text)
    return folder


@pytest.mark.deep
def test_without_the_extra_all_but_kinds_of_services_can_be_imported(no_extra):
    look = """if True:
        import pkgutil, siteproof
        from importlib import import_module
        for module in pkgutil.walk_packages(siteproof.__path__, "siteproof."):
            if not module.name.startswith("siteproof.checks."):  # of a run of ReFrame
                try:
                    import_module(module.name)
                except ModuleNotFoundError:
                    print(module.name)
        """
    paths = {"PYTHONPATH": f"{no_extra}:{TOP}"}
    done = subprocess.run(
        [sys.executable, "-c", look], env=os.environ | paths, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    unusable = set(done.stdout.split())
    kinds = {f"siteproof.services.{kind}" for kind in runner.MODULES}
    assert kinds <= unusable
    free = {"runner", "steps", "sftp", "ssh"}
    assert unusable.isdisjoint(f"siteproof.services.{name}" for name in free)
    assert {name for name in unusable if not name.startswith("siteproof.services.")} == set()


LACKS = "need the extra 'services'"
SERVICES = """
services:
  files: {kind: sftp, address: 'me@127.0.0.1:9', folder: /srv, key: /k, known_hosts: /n}
  store: {kind: s3, address: 'http://127.0.0.1:9', bucket: b, credentials: /c, timeout: 9 s}
  cloud: {kind: openstack, address: 'http://127.0.0.1:9/v3', credentials: /c, image: i, flavor: f}
probes:
  store: {kind: service, target: store, interval: 1 min, timeout: 9 s}
  root: {kind: mount, target: /, interval: 1 min, timeout: 9 s}
"""


@pytest.fixture
def lacking(world, no_extra):
    """A world with services, in which commands do without the extra."""
    path = world.site() / "system.yaml"
    path.write_text(path.read_text() + SERVICES)
    world.data.mkdir()
    lacks = {"PYTHONPATH": f"{no_extra}:{world.clone}"}
    return SimpleNamespace(
        site=partial(world.siteproof, **lacks), reframe=partial(world.reframe, **lacks)
    )


def test_without_the_extra_a_service_skips_by_name_and_nothing_else_does(lacking):
    assert "verdict on thishost: 3 INCOMPLETE" in lacking.site("verdict").out
    listed = lacking.reframe("-l")
    assert (listed.code, "- Service %service=store" in listed.out) == (0, True), listed
    done = lacking.reframe("-n", "Service%service=store", "-r")
    why = " ".join(done.out.split())
    assert f"services of kind s3 {LACKS} (not installed: minio)" in why, done
    assert "'make venv' in the clone, or pip install 'siteproof[services]'" in why
    plan = lacking.site("plan", "--all", "-c", "checks/", "-c", "sweeps/").out
    assert f"services of kind openstack {LACKS} (not installed: " in plan, plan
    assert f"services of kind s3 {LACKS}" in plan, plan
    assert "Service files" in plan


def test_without_the_extra_a_command_says_so_in_one_line(lacking):
    shown = lacking.site("services", "list").out
    assert shown.count("not tested: services of kind") == 2, shown
    why = f"services clean: services of kind openstack, s3 {LACKS}"
    assert why in lacking.site("services", "clean", "store", "cloud").refused()
    done = lacking.site("probe")
    assert f"probe: services of kind s3 {LACKS}" in done.refused()
    assert done.out.splitlines()[-1] == "1 of 1 probe answered"


# ---- when they are imported


@pytest.mark.deep
@rows(
    "command, library",
    [
        ("verdict", "numpy"),
        ("why", "numpy"),
        ("plan", "reframe"),  # ReFrame describes the checks in a process of its own
        ("sites", "siteproof.verdict.judgement"),
    ],
)
def test_a_command_does_not_wait_for_what_it_does_not_need(command, library):
    look = f"import sys, siteproof.cli.{command}; print('{library}' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
