"""Hpl on Intel MKL: what proves that it served, what is said without it, how it is installed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from clone import OUTPUTS, PATIENCE, TOP, World

from siteproof.collect.derive import Measured
from siteproof.collect.derive.cpu import hpl
from siteproof.collect.raw import Raw
from siteproof.errors import OutputError
from siteproof.parsers import blas, hpcc

ON_MKL = ("-r", "-n", "Hpl", "-p", "mkl")
SOLVED = (OUTPUTS / "hpcc/1.5.0-n4000_mkl.txt").read_text()
SERVED = (OUTPUTS / "blas/mkl_2026.2-on_both_ranks.txt").read_text()
NOT_SERVED = (OUTPUTS / "blas/mkl_2026.2-not_preloaded.txt").read_text()
META = {
    "swap_before": "0",
    "swap_after": "0",
    "cpus": "2",
    "memory_kib": "8000000",
    "flags": "avx avx2 fma avx512f",
}

# ---- the proof


def conditions_of(stderr, promised="mkl", flags=META["flags"]):
    """The conditions of a recorded answer of two ranks, whose script said this on stderr."""
    raw = Raw({**META, "flags": flags}, {}, SOLVED, stderr)
    facts = {"blas": promised} if promised else {}
    return hpl(Measured(hpcc.parse(SOLVED), hpcc.conditions(SOLVED), raw, facts))[1]


def test_an_answer_whose_ranks_all_called_mkl_says_which_mkl():
    found = conditions_of(SERVED)
    assert (found["blas"], found["blas_version"], found["blas_kernel"]) == (
        "mkl",
        "2026 Update 2",
        "def",
    )
    assert found["blas_library"] == "/opt/intel/mkl/lib/libmkl_def.so.3"


@pytest.mark.parametrize(
    ("stderr", "ranks"),
    [
        (NOT_SERVED, 0),
        (
            SERVED.replace(
                "2 ranks loaded /opt/intel/mkl/lib/libmkl_def",
                "1 ranks loaded /opt/intel/mkl/lib/libmkl_def",
            ),
            1,
        ),
        # Loaded and never called: a library that was preloaded in vain has no kernel.
        ("".join(line for line in SERVED.splitlines(keepends=True) if "mkl_def" not in line), 0),
        (SERVED.replace("2 ranks", "3 ranks"), 3),
        ("", 0),
    ],
)
def test_an_answer_with_a_rank_that_did_not_call_mkl_is_invalid(stderr, ranks):
    with pytest.raises(OutputError, match=f"promises MKL; .*: {ranks}, expected 2") as error:
        conditions_of(stderr)
    assert error.value.status == "invalid"


def test_without_a_promise_the_blas_is_what_the_libraries_say():
    assert conditions_of(NOT_SERVED, promised="")["blas"] == "openblas"


@pytest.mark.parametrize(
    ("kernel", "flags", "told"),
    [
        ("def", "avx avx2 fma avx512f", "kernel def does not use avx512f"),
        ("def", "avx avx2 fma", ""),
        ("avx2", "avx avx2 fma avx512f", "kernel avx2 does not use avx512f"),
        ("avx512", "avx avx2 fma avx512f", ""),
        ("mc3", "avx avx2 fma", "kernel mc3 does not use avx2"),
    ],
)
def test_mkl_that_leaves_out_what_the_processor_has_is_told(kernel, flags, told):
    found = conditions_of(SERVED.replace("mkl_def", f"mkl_{kernel}"), flags=flags)
    assert found["blas_kernel"] == kernel
    assert told in found.get("blas_warning", "")
    assert found.get("blas_warning", "").startswith("MKL does not use all") == bool(told)


def test_mkls_vector_functions_are_no_proof_of_its_blas():
    assert blas.ranks_on_mkl("2 ranks loaded /opt/mkl/lib/libmkl_vml_def.so.3\n") == 0


# ---- runs


def real(world):
    """The machine's own hpcc, whatever a test has put on PATH."""
    for program in ("hpcc", "mpirun"):
        if not shutil.which(program):
            pytest.skip(f"HPL ON MKL NOT TESTED: no {program}")
    (world.bin / "nproc").unlink()
    return world


def header(world):
    """The header of the only samples."""
    (path,) = world.samples()
    return json.loads(path.read_text().splitlines()[0])


def test_where_mkl_is_missing_the_case_is_skipped_and_says_how_to_get_it(good):
    done = good.reframe(*ON_MKL)
    assert done.code == 0, done
    assert (
        f"tool missing: no libmkl_rt in {good.folder}/no-mkl: 'make mkl', or set MKLROOT"
        in done.out
    )
    assert "1 skipped" in done.out
    assert not good.samples()


def test_a_node_without_the_mkl_of_its_site_says_how_to_get_it(good):
    good.edit("system", "[hpcc, mkl]", "[hpcc, mkl]\n    prepare_cmds: [':']")
    done = good.reframe(*ON_MKL)
    assert "SKIP" in done.out, done
    assert f"no libmkl_rt in {good.folder}/no-mkl: 'make mkl', or set MKLROOT" in done.out
    assert good.statuses() == {"Hpl.*": "tool_missing"}


def test_the_site_may_name_the_mkl(good):
    good.edit("system", "[hpcc, mkl]", "[hpcc, mkl]\n    variables: {MKLROOT: $HOME/mkl}")
    done = good.reframe(*ON_MKL)
    assert f"no libmkl_rt in {good.folder}/home/mkl:" in done.out, done


def test_what_needs_no_environment_is_measured_once_and_not_for_mkl_too(good):
    done = good.reframe("--dry-run", "-n", "HostParameters|Stream")
    assert [line.split("@")[1] for line in done.out.splitlines() if "DRY" in line] == [
        "thishost:node+system",
        "thishost:node+system",
    ], done


def test_hpcc_without_a_trace_of_mkl_is_refused(good):
    library = good.folder / "no-mkl/lib/libmkl_rt.so.3"
    library.parent.mkdir(parents=True)
    library.touch()
    done = good.reframe(*ON_MKL)
    assert done.code == 1, done
    assert "invalid: the environment promises MKL; ranks that used it: 0, expected 2" in done.out
    assert good.statuses() == {"Hpl.*": "invalid"}


@pytest.mark.slow
@pytest.mark.long
def test_the_real_hpcc_that_could_not_preload_mkl_and_stayed_on_its_own_blas_is_refused(world):
    library = real(world).folder / "no-mkl/lib/libmkl_rt.so.3"
    library.parent.mkdir(parents=True)
    library.write_text("no library\n")
    done = world.reframe(*ON_MKL, "-S", "Hpl.n=1500")
    assert done.code == 1, done
    assert "invalid: the environment promises MKL; ranks that used it: 0" in done.out
    assert world.statuses() == {"Hpl.*": "invalid"}


@pytest.mark.tool("Intel MKL", "HPCC")
@pytest.mark.slow
@pytest.mark.long
def test_the_real_hpcc_on_the_real_mkl_passes_and_names_it(tmp_path):
    if not list((TOP / ".mkl").glob("lib/libmkl_rt.so*")):
        pytest.skip("HPL ON MKL NOT TESTED: no .mkl ('make mkl')")
    world = real(World(tmp_path))
    world.edit("criteria", "2 GFLOPS", "0.01 GFLOPS")  # other tests use the processors, too
    done = world.reframe(*ON_MKL, "-S", "Hpl.n=1200", MKLROOT="UNSET")
    assert done.code == 0, done
    found = header(world)
    assert found["environment"] == "mkl"
    assert found["conditions"]["blas"] == "mkl"
    assert found["conditions"]["blas_version"].startswith("20")
    assert found["conditions"]["blas_kernel"] in {"def", "mc3", "avx2", "avx512", "avx10"}


# ---- make mkl


@pytest.fixture
def clone(tmp_path):
    """A clone whose mkl.lock asks for a small wheel that lies in wheels/, and a real pip."""
    folder = tmp_path / "clone"
    shutil.copytree(TOP / "setup", folder / "setup")
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    for path, text in ((python, f'exec "{sys.executable}" "$@"'), (folder / "setup/venv", "")):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / "wheels").mkdir()
    lock(folder, wheel(folder / "wheels", "first"))
    return folder


def wheel(folder, text):
    """A wheel that puts its library where MKL's puts its own."""
    path = folder / "mkl-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as held:
        held.writestr("mkl-1.0.data/data/lib/libmkl_rt.so.3", text)
        held.writestr(
            "mkl-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mkl\nVersion: 1.0\n"
        )
        held.writestr(
            "mkl-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        held.writestr("mkl-1.0.dist-info/RECORD", "")
    return path


def lock(folder, path):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "setup/mkl.lock").write_text(f"mkl==1.0 --hash=sha256:{digest}\n")


def make_mkl(folder, *words, **variables):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(
        [folder / "setup/mkl", *words],
        env=env,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def library(folder):
    return (folder / ".mkl/lib/libmkl_rt.so.3").read_text()


def test_make_mkl_installs_what_the_lock_says_and_then_does_nothing(clone):
    done = make_mkl(clone, "--wheels", clone / "wheels")
    assert done.returncode == 0, done.stdout
    assert library(clone) == "first"
    again = make_mkl(clone, PIP_NO_INDEX="1")
    assert again.stdout == "siteproof: .mkl is up to date with mkl.lock\n"


def test_make_mkl_follows_a_new_lock(clone):
    make_mkl(clone, "--wheels", clone / "wheels")
    lock(clone, wheel(clone / "wheels", "second"))
    assert make_mkl(clone, "--wheels", clone / "wheels").returncode == 0
    assert library(clone) == "second"


def test_make_mkl_refuses_a_wheel_with_another_hash_and_keeps_what_is_there(clone):
    make_mkl(clone, "--wheels", clone / "wheels")
    (clone / "setup/mkl.lock").write_text(f"mkl==1.0 --hash=sha256:{'0' * 64}\n")
    done = make_mkl(clone, "--wheels", clone / "wheels")
    assert done.returncode == 2
    assert "siteproof: pip could not install mkl.lock" in done.stdout
    assert library(clone) == "first"
    assert not (clone / ".mkl.new").exists()


def test_make_mkl_without_network_says_what_to_do(clone):
    done = make_mkl(clone, PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == (
        "siteproof: pip could not install mkl.lock: see above (without network: setup/mkl "
        "--wheels DIR, or name a site's MKL by MKLROOT)"
    )
    assert not (clone / ".mkl").exists()


def test_make_mkl_on_another_processor_says_that_there_is_none(clone):
    (clone / "bin").mkdir()
    uname = clone / "bin/uname"
    uname.write_text("#!/bin/sh\necho aarch64\n")
    uname.chmod(0o755)
    done = make_mkl(clone, PATH=f"{clone}/bin:{os.environ['PATH']}")
    assert done.returncode == 2
    assert done.stdout == "siteproof: no MKL for aarch64: Intel makes it for x86_64 only\n"


def test_the_lock_of_mkl_is_of_mkl_alone_with_hashes_and_no_address():
    text = Path(TOP / "setup/mkl.lock").read_text()
    (pin,) = [line for line in (TOP / "setup/mkl.in").read_text().splitlines() if line[0] != "#"]
    assert f"\n{pin} \\\n    --hash=sha256:" in text
    assert text.count("==") == 1
    assert "://" not in text
