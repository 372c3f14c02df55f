"""`siteproof build` with the real Spack: no network, a home that cannot be written, one program.

They run where SPACK_ROOT names a Spack whose Python has clingo; elsewhere they are skipped.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from own_spack import BROKEN, SpackWorld

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.tool("Spack")]
FOLDER = "software/thishost/tiny"


@pytest.fixture
def spack(tmp_path):
    """The real Spack, with its recipes as if they had been fetched."""
    made = SpackWorld(tmp_path)
    made.fetched(made.world.data)
    yield made
    made.world.end_processes()


def lock(data, folder=FOLDER):
    specs = json.loads((data / folder / "spack.lock").read_text())["concrete_specs"]
    return next(spec for spec in specs.values() if spec["name"] == "tinyio")


def target(name):
    """The target in a lock: a name, or a mapping for a processor that archspec knows."""
    found = lock(*name)["arch"]["target"]
    return found if isinstance(found, str) else found["name"]


def run(data, folder=FOLDER):
    program = data / folder / "view/bin/tinyio"
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def state_with(spack, target):
    spack.world.edit(
        "system", "    description: Whatever", f"    target: {target}\n    description: Whatever"
    )


def listing(top):
    """Every file below a folder and when it was written; compiled Python is not counted."""
    paths = (
        p for p in Path(top).rglob("*") if "__pycache__" not in p.parts and ".git" not in p.parts
    )
    return {str(p): p.lstat().st_mtime_ns for p in paths if not p.is_dir()}


def test_a_program_is_built_without_network_home_or_a_file_in_spacks_own_folder(spack):
    before = listing(spack.variables["SPACK_ROOT"])
    done = spack.build()
    assert done.code == 0 and "built for thishost: tiny\n" in done.out, str(done)
    assert run(spack.world.data) == "tiny 1.0\n"
    assert listing(spack.variables["SPACK_ROOT"]) == before
    assert not list((spack.world.folder / "home").iterdir())


@pytest.mark.parametrize("name", ["x86_64_v2", "haswell", "zen5"])
def test_the_lock_has_the_target_of_the_nodes_and_not_of_this_host(spack, name):
    state_with(spack, name)
    done = spack.build()
    assert done.code == 0, str(done)
    assert target((spack.world.data, f"{FOLDER}-{name}")) == name
    assert run(spack.world.data, f"{FOLDER}-{name}") == "tiny 1.0\n"


def test_a_mirror_made_with_a_network_is_enough_without_one(spack):
    mirror, data = spack.world.folder / "a mirror", spack.world.folder / "elsewhere"
    done = spack.build("--make-mirror", mirror)
    assert done.code == 0 and f"siteproof build --mirror {mirror}" in done.out, str(done)
    spack.upstream.rename(spack.world.folder / "gone")
    spack.recipes.rename(spack.world.folder / "no-recipes")
    assert spack.build(data=data).code == 1  # neither recipes nor sources
    shutil.rmtree(data)
    done = spack.build("--mirror", mirror, data=data)
    assert done.code == 0 and "takes the lock of the mirror" in done.out, str(done)
    assert run(data) == "tiny 1.0\n"
    assert lock(data)["hash"] == lock(spack.world.data)["hash"]


def test_a_mirror_made_where_the_compiler_is_not_has_sources_and_no_lock(spack):
    mirror, data = spack.world.folder / "mirror", spack.world.folder / "elsewhere"
    packages = spack.scope / "packages.yaml"
    text = packages.read_text()
    packages.write_text(text.replace("prefix: /usr", "prefix: /opt/gone"))
    done = spack.build("--make-mirror", mirror)
    assert done.code == 0 and "not on this machine: gcc@12.2.0 in /opt/gone" in done.out, str(done)
    assert not list(mirror.rglob("spack.lock"))
    assert not (spack.world.data / FOLDER / "spack.lock").exists()
    packages.write_text(text)
    spack.upstream.rename(spack.world.folder / "gone")
    done = spack.build("--mirror", mirror, data=data)
    assert done.code == 0 and "making its lock" in done.out, str(done)
    assert run(data) == "tiny 1.0\n"


def test_a_lock_for_another_operating_system_is_not_taken(spack):
    mirror, data = spack.world.folder / "mirror", spack.world.folder / "elsewhere"
    assert spack.build("--make-mirror", mirror).code == 0
    kept = next(mirror.rglob("spack.lock"))
    text = kept.read_text()
    here = lock(spack.world.data)["arch"]["platform_os"]
    kept.write_text(text.replace(f'"platform_os":"{here}"', '"platform_os":"rhel8"'))
    assert kept.read_text() != text
    done = spack.build("--mirror", mirror, data=data)
    assert done.code == 0, str(done)
    assert f"the lock of the mirror is for rhel8, not {here}" in done.out
    assert lock(data)["arch"]["platform_os"] == here


def test_what_one_system_pushes_another_takes_from_the_cache(spack):
    cache, data = spack.world.folder / "cache", spack.world.folder / "elsewhere"
    done = spack.build("--cache", cache, "--push", "--unsigned")
    assert done.code == 0 and "built here: tinyio@1.0/" in done.out, str(done)
    assert f"pushed to file://{cache}" in done.out
    spack.upstream.rename(spack.world.folder / "gone")
    spack.fetched(data)
    done = spack.build("--cache", cache, data=data)
    assert done.code == 1, done  # no signature, and no source
    done = spack.build("--cache", cache, "--unsigned", data=data)
    assert done.code == 0 and "from the cache: tinyio@1.0/" in done.out, str(done)
    assert "built here" not in done.out
    assert run(data) == "tiny 1.0\n"


def test_a_signed_cache_needs_a_key_that_this_user_trusts(spack):
    cache, data = spack.world.folder / "cache", spack.world.folder / "elsewhere"
    public = spack.world.folder / "public.key"
    spack.gpg("keys", "create", "site", "site@localhost")
    spack.gpg("keys", "export", str(public))
    done = spack.build("--cache", cache, "--push", **spack.keys("keys"))
    assert done.code == 0 and "pushed to" in done.out, str(done)
    spack.upstream.rename(spack.world.folder / "gone")
    spack.fetched(data)
    assert spack.build("--cache", cache, data=data, **spack.keys("others")).code == 1
    spack.gpg("others", "trust", str(public))
    done = spack.build("--cache", cache, data=data, **spack.keys("others"))
    assert done.code == 0 and "from the cache: tinyio@1.0/" in done.out, str(done)


def test_the_compilers_own_words_are_the_reason_of_a_failed_build(spack):
    spack.publish(BROKEN)
    shutil.rmtree(spack.world.data / "software")
    spack.fetched(spack.world.data)
    done = spack.build()
    assert done.code == 1, str(done)
    assert "tiny: not built: tinyio@1.0 failed in its phase install" in done.out
    assert "'undeclared' undeclared" in done.out
    log = next(line for line in done.out.splitlines() if "log of the package:" in line)
    assert Path(log.split()[-1]).read_text()
    assert "run 'siteproof build' again to continue" in done.out


def test_a_source_that_cannot_be_had_is_the_reason_of_a_failed_build(spack):
    shutil.rmtree(spack.upstream)
    done = spack.build()
    assert done.code == 1 and "tinyio@1.0 failed in its phase staging" in done.out, str(done)
    assert "All fetchers failed" in done.out
