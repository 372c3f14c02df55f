"""For which processor software is built: that of the nodes; what a site leaves to chance."""

import platform
from dataclasses import replace

import archspec.cpu
import pytest
from rows import rows

from siteproof.errors import UserError
from siteproof.sites import key_types, load
from siteproof.sites.system import Role
from siteproof.spack import env_files, registered

HOST = "login1"


def site(partitions, **hardware):
    """A site whose environment `io` runs in these partitions; hardware: target by kind, or None."""
    plain = load("jetstream-iu")
    system, kind = plain.system, plain.system.hardware["m630"]
    partition = system.partitions["compute"]
    return replace(
        plain,
        system=system.model_copy(
            update={
                "hardware": {
                    name: kind.model_copy(update={"target": target})
                    for name, target in hardware.items()
                },
                "nodes": {name: Role(set=f"{name}[1-9]", hardware=name) for name in hardware},
                "partitions": {
                    name: partition.model_copy(
                        update={"role": name, "environments": ["io"], "scheduler": "slurm"}
                    )
                    for name in partitions
                },
            }
        ),
    )


@rows(
    "stated, found",
    [
        ({"a": "zen3"}, "zen3"),
        ({"a": "zen3", "b": "zen4"}, "zen3"),
        ({"a": "zen3", "b": "icelake"}, "x86_64_v3"),
        ({"a": "haswell", "b": "skylake_avx512"}, "haswell"),
        ({"a": "zen3", "b": "neoverse_v1"}, ""),
        ({"a": None}, ""),
    ],
)
def test_several_kinds_of_nodes_share_the_newest_target_that_runs_on_all(stated, found):
    assert registered.target_of(site(list(stated), **stated), "io") == found


def test_the_processors_are_those_of_archspec():
    known = archspec.cpu.TARGETS
    ancestors = {name: {one.name for one in target.ancestors} for name, target in known.items()}
    assert {name: key_types.runs(name) - {name} for name in key_types.TARGETS} == ancestors
    families = {name: str(target.family) for name, target in known.items()}
    assert {name: key_types.family(name) for name in key_types.TARGETS} == families
    assert platform.machine() == str(archspec.cpu.host().family)


def test_partitions_that_do_not_run_an_environment_do_not_count():
    assert registered.target_of(site(["a"], a="zen4", b="haswell"), "io") == "zen4"


@rows(
    "stated, told",
    [
        ({"a": None}, "the nodes of role 'a' have no 'target', and login1 is not one of them"),
        ({"a": "haswell", "b": None}, "the nodes of role 'b' have no 'target'"),
        ({"a": "haswell", "b": "neoverse_v1"}, "no processor target runs on all nodes"),
    ],
)
def test_what_would_be_built_for_the_login_nodes_processor_is_refused(stated, told, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(UserError, match=told):
        registered.refuse_target(site(list(stated), **stated), "io", HOST)


def test_a_login_node_of_the_same_architecture_builds_for_the_nodes(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    registered.refuse_target(site(["a"], a="haswell"), "io", HOST)


def test_a_login_node_of_another_architecture_names_where_to_build(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(UserError, match="this host is x86_64.*in a job on a node"):
        registered.refuse_target(site(["a"], a="neoverse_v1"), "io", HOST)


def test_a_host_that_is_one_of_the_nodes_needs_no_target():
    registered.refuse_target(site(["a"], a=None), "io", "a3")


def test_a_target_is_required_of_every_package_and_may_be_newer_than_the_host():
    content = registered.defaults("zen5", registered.Sources())
    assert content["packages.yaml"]["packages"] == {"all": {"require": ["target=zen5"]}}
    assert content["concretizer.yaml"]["concretizer"] == {"targets": {"host_compatible": False}}
    assert registered.defaults("", registered.Sources())["packages.yaml"] == {"packages": {}}


# ---- what a site leaves to chance

COMPILER = """packages:
  gcc:
    externals:
    - {spec: gcc@12.2.0, prefix: /usr, extra_attributes: {compilers: {c: /usr/bin/gcc}}}
  mpi: {require: [openmpi]}
"""
LUSTRE = "  lustre: {externals: [{spec: lustre@2.15.5, prefix: /usr}], buildable: false}\n"


@rows(
    "text, told",
    [
        (
            "packages: {}\n",
            ["has no compiler", "does not require an MPI", "'home' is Lustre, and spack/packages"],
        ),
        (COMPILER, ["'home' is Lustre, and spack/packages"]),
        (COMPILER + "  ior: {require: [+lustre]}\n", ["without externals of 'lustre'"]),
        (COMPILER + LUSTRE + "  ior: {require: [+lustre]}\n", []),
        (COMPILER + LUSTRE + "  ior: {variants: +lustre}\n", []),
        (COMPILER + "  ior: {require: ['~lustre']}\n", []),
        ("packages: 3\n", ["has no compiler", "does not require an MPI", "'home' is Lustre"]),
    ],
)
@pytest.mark.deep
def test_what_a_site_leaves_to_chance_is_a_warning(tmp_path, text, told):
    (tmp_path / "spack").mkdir()
    (tmp_path / "spack/packages.yaml").write_text(text)
    plain = load("jetstream-iu")
    system = plain.system
    some = next(iter(system.file_systems.values()))
    home = {"home": some.model_copy(update={"kind": "lustre"})}
    here = replace(plain, folder=tmp_path, system=system.model_copy(update={"file_systems": home}))
    found = list(env_files.unstated(here))
    assert len(found) == len(told)
    assert all(part in one for part, one in zip(told, found, strict=True)), found


def test_a_site_that_builds_nothing_by_spack_is_warned_of_nothing():
    assert list(env_files.unstated(load("testbed"))) == []
