"""spack-envs/: described without a mistake, every mistake told in a line; locks and what is there.

No Spack is needed here: what Spack itself makes of the files is proved by building them.
"""

import json
import re
import shutil
import signal
import subprocess
from dataclasses import replace

import pytest
import yaml
from rows import rows

from siteproof.errors import UserError, UserErrors
from siteproof.sites import names
from siteproof.spack import build, env_files, registered
from siteproof.spack.registered import Registered

PACKAGES = "packages:\n  openmpi:\n    externals:\n    - {spec: openmpi@4.1.4, prefix: /usr}\n"
HASH = "abcdefghijklmnopqrstuvwxyz234567"
OTHER = "zyxwvutsrqponmlkjihgfedcba765432"


# ---- what is shipped


def test_no_environment_recipe_or_site_has_a_mistake():
    assert [str(e) for e in env_files.everything() + env_files.sites(names())] == []


@rows("name", env_files.names())
def test_an_environment_names_nothing_that_is_a_sites(name):
    text = (env_files.FOLDER / name / "spack.yaml").read_text()
    for word in ("externals", "prefix", "openmpi", "slurm", "gcc", "target="):
        assert word not in text, word


def root_specs():
    """What environments install, with the file that names it."""
    shared = yaml.safe_load((env_files.FOLDER / "common/definitions.yaml").read_text())
    for lists in shared["definitions"]:
        yield from (("common", spec) for specs in lists.values() for spec in specs)
    for name in env_files.names():
        described = yaml.safe_load((env_files.FOLDER / name / "spack.yaml").read_text())
        yield from ((name, spec) for spec in described["spack"]["specs"])


def test_what_is_installed_has_its_version_and_figures_do_not_change_with_recipes():
    found = list(root_specs())
    assert [one for one in found if "@" not in one[1].split()[0] and one[1][0] != "$"] == []
    assert ("io", "ior@4.0.0") in found and ("io", "fio@3.37 +libaio") in found
    for name in ("cpu-openblas", "cpu-mkl"):
        assert (name, "$mpi_benchmarks") in found


def test_each_version_in_a_recipe_of_ours_has_its_checksum():
    for path in env_files.RECIPES.glob("packages/*/package.py"):
        text, name = path.read_text(), path.parent.name.replace("_", " ").title().replace(" ", "")
        assert re.findall(r"^class (\w+)", text, re.MULTILINE) == [name]
        assert text.count(" version(") == len(re.findall(r'sha256="[0-9a-f]{64}"', text))


def test_what_environments_share_is_written_once():
    seen = {}
    for path in sorted(env_files.FOLDER.glob("*/*.yaml")):
        for line in path.read_text().splitlines():
            text = line.strip()
            if len(text) > 30 and not text.startswith("#") and path.name != "features.yaml":
                assert text not in seen, (text, path, seen[text])
                seen[text] = path


def test_every_feature_of_the_checks_that_packages_lack_is_brought_by_an_environment():
    for feature in (
        "hpl",
        "hpcc",
        "stream",
        "osu",
        "mkl",
        "ior",
        "mdtest",
        "fio",
        "iperf3",
        "nuttcp",
        "qperf",
    ):
        assert env_files.bringing([feature]), feature
    assert env_files.bringing(["likwid"]) == []


# ---- mistakes


def spoilt(tmp_path, monkeypatch, file, old, new):
    """A copy of spack-envs/ with a text replaced, and the mistakes in it."""
    copy = tmp_path / "spack-envs"
    shutil.copytree(env_files.FOLDER, copy)
    text = (copy / file).read_text()
    assert old in text
    (copy / file).write_text(text.replace(old, new, 1))
    return [
        str(e) for d in env_files.examine(file.partition("/")[0], copy) for e in d.sorted_mistakes()
    ]


@rows(
    "file, old, new, told",
    [
        ("io/spack.yaml", "spack:", "spock:", "unknown key 'spock'"),
        ("io/spack.yaml", "  specs:", "  spacs:", "unknown key 'spacs' (did you mean 'specs'?)"),
        ("io/spack.yaml", "ior@4.0.0", "'$(touch /tmp/x)'", "'$(touch /tmp/x)' is not valid"),
        ("io/spack.yaml", "[../common]", "[../comon]", "unknown value '../comon'"),
        ("io/spack.yaml", "ior@4.0.0", "$(id)", "'$(id)' is not valid"),
        (
            "cpu-mkl/spack.yaml",
            "require: [intel",
            "externals: [{spec: 'x@1', prefix: /x}] #",
            "externals of blas",
        ),
        ("cpu-mkl/spack.yaml", "require: [intel", "require: {a: b} #", "neither a text nor a list"),
        ("io/features.yaml", "[ior]", "[]", "nothing given in features.ior"),
        ("io/features.yaml", "[ior]", "[../../ior]", "Allowed: a file such as xhpl"),
        ("io/features.yaml", "ior:", "'a b':", "'a b' is not valid"),
        ("cpu-mkl/features.yaml", "MKLROOT:", "mkl-root:", "is not valid"),
    ],
)
def test_a_mistake_in_an_environment_is_one_line(tmp_path, monkeypatch, file, old, new, told):
    found = spoilt(tmp_path, monkeypatch, file, old, new)
    assert found and all("\n" not in line for line in found)
    assert any(told in line for line in found), found


@rows(
    "file, text, told",
    [
        ("packages.yaml", PACKAGES, None),
        ("packages.yaml", PACKAGES.replace("prefix: /usr", "prefix: usr"), "'usr' is not valid"),
        ("packages.yaml", PACKAGES.replace(", prefix: /usr", ""), "neither prefix nor modules"),
        ("packages.yaml", PACKAGES.replace("@4.1.4", ""), "'openmpi' without a version"),
        ("packages.yaml", PACKAGES.replace("spec: openmpi", "spec: mpich"), "is not openmpi"),
        ("packages.yaml", PACKAGES.replace("externals", "external"), "unknown key 'external'"),
        (
            "packages.yaml",
            "packages: {all: {require: [target=zen4]}}\n",
            "a target, which belongs to the nodes",
        ),
        ("packages.yaml", "packages: [a]\n", "not a mapping of keys"),
        ("packages.yaml", "externals: {}\n", "unknown key 'externals'"),
        ("packages.yaml", "packages: {openmpi: &a [*a]}\n", "an alias that contains itself"),
        ("packages.yaml", "\x00", "a control character"),
        ("package.yaml", PACKAGES, "Spack does not read a file 'package.yaml'"),
    ],
)
def test_a_mistake_in_a_sites_externals_is_one_line(tmp_path, file, text, told):
    (tmp_path / file).write_text(text)
    found = [str(e) for d in env_files.scope(tmp_path) for e in d.sorted_mistakes()]
    assert all("\n" not in line for line in found)
    assert any(told in line for line in found) if told else found == []


# ---- the environment that Spack works in


def test_the_joined_environment_includes_the_site_and_changes_nothing_of_the_specs():
    source = env_files.FOLDER / "io/spack.yaml"
    text = registered.joined("io", source, ["/sites/x/spack", "/data/defaults"])
    assert "ior@4.0.0" in text and "fio@3.37 +libaio" in text
    assert "- /sites/x/spack\n  - /data/defaults" in text
    assert str(env_files.RECIPES) in text and "reuse: false" in text


def test_a_lock_is_known_to_be_older_than_what_it_was_made_from(tmp_path):
    scope, folder = tmp_path / "spack", tmp_path / "io"
    scope.mkdir()
    folder.mkdir()
    inputs = registered.Inputs("io", scope)
    registered.remember(inputs, folder)
    assert not registered.changed(inputs, folder)
    assert registered.changed(replace(inputs, target="zen3"), folder)
    (scope / "packages.yaml").write_text(PACKAGES)
    assert registered.changed(inputs, folder)


@rows("text", ["", "[]", "spack: 3", "spack: {", "spack: {specs: []}"])
def test_a_spack_yaml_changed_by_hand_is_one_line(tmp_path, text):
    (tmp_path / "spack.yaml").write_text(text)
    with pytest.raises(UserError, match="is not what 'siteproof build' wrote"):
        registered.joined("io", tmp_path / "spack.yaml", [])


# ---- what is installed, compared with the lock


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An environment `io` of one package, as Spack leaves it, registered."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    prefix = tmp_path / "software/store/ior-4.0.0"
    folder = registered.folder("here", "io")
    for path in (prefix / "bin", prefix / ".spack", folder / "view/bin"):
        path.mkdir(parents=True)
    (prefix / "bin/ior").write_text("")
    (folder / "view/bin/ior").symlink_to(prefix / "bin/ior")
    (prefix / ".spack/spec.json").write_text(json.dumps({"spec": {"nodes": [{"hash": HASH}]}}))
    mpi = {"hash": OTHER, "name": "openmpi", "parameters": {"deptypes": ["link"]}}
    tool = {"hash": "tool", "name": "m4", "parameters": {"deptypes": ["build"]}}
    specs = {
        HASH: {"name": "ior", "version": "4.0.0", "dependencies": [mpi, tool]},
        OTHER: {"name": "openmpi", "version": "4.1.4", "external": {"path": "/usr"}},
        "tool": {"name": "m4", "version": "1.4"},
    }
    (folder / "spack.lock").write_text(
        json.dumps({"roots": [{"hash": HASH, "spec": "ior"}], "concrete_specs": specs})
    )
    found = Registered(
        "io",
        registered.digest(folder / "spack.lock"),
        {"ior": [str(folder / "view/bin/ior")]},
        [str(folder / "view/bin")],
        {},
        {HASH: str(prefix)},
        "1.2.0",
        "v1",
        "now",
    )
    found.save(folder)
    return folder, prefix


def differs():
    return registered.difference("here", registered.read("here", "io"))


def test_what_is_as_the_lock_says_differs_in_nothing(installed):
    assert differs() == ""


def test_what_is_needed_only_to_build_may_be_gone(installed):
    assert [b.name for b in registered.read_lock(installed[0] / "spack.lock").needed] == [
        "ior",
        "openmpi",
    ]


def test_a_package_that_was_removed_is_named(installed):
    shutil.rmtree(installed[1])
    assert differs() == f"not installed: ior@4.0.0/{HASH[:7]}"


def test_another_build_in_the_same_place_is_not_what_the_lock_says(installed):
    (installed[1] / ".spack/spec.json").write_text(
        json.dumps({"spec": {"nodes": [{"hash": OTHER}]}})
    )
    assert differs() == f"not installed: ior@4.0.0/{HASH[:7]}"


def test_a_lock_that_was_made_anew_is_told(installed):
    with (installed[0] / "spack.lock").open("a") as file:
        file.write("\n")
    assert differs() == "its lock has changed since it was built"


def test_a_program_of_somebody_else_in_the_view_is_told(installed):
    (installed[0] / "view/bin/ior").unlink()
    (installed[0] / "view/bin/ior").symlink_to("/bin/true")
    assert differs().endswith("view/bin/ior belongs to no package of the lock")


def test_a_view_without_the_program_is_told(installed):
    (installed[0] / "view/bin/ior").unlink()
    assert differs().endswith("view/bin/ior is missing")


@rows("text", ["", "[]", "{}", '{"roots": [{}], "concrete_specs": {}}', "\x00"])
def test_a_broken_lock_is_one_line(tmp_path, text):
    (tmp_path / "spack.lock").write_text(text)
    with pytest.raises(UserError, match="is not a lock file of Spack"):
        registered.read_lock(tmp_path / "spack.lock")


@rows("text", ["", "[]", "{}", '{"name": 3}', "\x00"])
def test_a_broken_registration_names_the_command_that_mends_it(installed, text):
    (installed[0] / "environment.json").write_text(text)
    with pytest.raises(UserError, match="siteproof build io"):
        registered.read("here", "io")


def test_versions_that_pin_no_release_are_refused(tmp_path, monkeypatch):
    (tmp_path / "versions.yaml").write_text(
        "spack: {git: x, tag: develop}\npackages: {git: x, tag: y}\n"
    )
    monkeypatch.setattr(env_files, "FOLDER", tmp_path)
    env_files.versions.cache_clear()
    with pytest.raises(UserErrors, match="'develop' is not valid"):
        env_files.versions()
    env_files.versions.cache_clear()


# ---- what is running


def test_ctrl_c_while_spack_is_being_started_ends_it_too(tmp_path, monkeypatch):
    started, start = [], subprocess.Popen

    def interrupted(*words, **named):
        started.append(start(*words, **named))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(build.subprocess, "Popen", interrupted)
    program = tmp_path / "spack"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    spack = build.Spack(str(program), "1.2.0")
    with pytest.raises(KeyboardInterrupt):
        spack.run(tmp_path, "install", line=print)
    assert started[0].poll() == -signal.SIGINT
