"""The wheel: it measures, judges and reports without the clone. No network, no package."""

import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from clone import PATIENCE, TOP
from setup_clone import run


def pip(*words):
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    subprocess.run(command, check=True, timeout=PATIENCE, cwd="/", stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this clone."""
    folder = tmp_path_factory.mktemp("wheel")
    before = set(TOP.iterdir())
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(TOP))
    assert set(TOP.iterdir()) == before, "building leaves nothing behind"
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """The bin/ of an environment with the wheel, and the libraries of this one but the clone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    pip("--python", str(folder / "bin/python"), "install", "--no-deps", "--no-index", str(wheel))
    packages = next(folder.glob("lib/python3*/site-packages"))
    # A .pth file is not followed into those of the folder that it names: the clone stays out.
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    reframe = folder / "bin/reframe"
    reframe.write_text(f"#!{folder}/bin/python\nfrom reframe.frontend.cli import main\nmain()\n")
    reframe.chmod(0o755)
    return folder / "bin"


@pytest.fixture
def at_work(programs, tmp_path):
    """A command run in a folder of `siteproof init`, as its last line says."""
    work = tmp_path / "work"
    done = run(programs / "siteproof", "init", work, cwd="/")
    assert done.returncode == 0, done.stdout

    def command(script):
        return run("sh", "-c", f". ./activate; {script}", cwd=work)

    return work, command


def test_a_wheel_has_what_a_clone_has_to_measure_with(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.check_output(["git", "-C", TOP, "ls-files"], text=True).splitlines()
    suite = ("checks/", "sweeps/", "spack-envs/", "site-config/", "sbatch/", "reframe_settings.py")
    wanted = {name for name in listed if name.startswith("siteproof/")}
    wanted |= {f"siteproof/suite/{name}" for name in listed if name.startswith(suite)}
    held = {name for name in names if ".dist-info/" not in name}
    assert held == wanted | {"siteproof/suite/docs/files.md"}


def test_an_installed_wheel_measures_judges_and_reports_without_the_clone(at_work):
    work, command = at_work
    done = command("reframe -c checks/ -r -n HostParameters")
    assert done.returncode == 0, done.stdout
    assert str(TOP) not in done.stdout
    done = command("siteproof verdict")
    assert done.returncode == 3  # two criteria wait for checks that were not run
    assert "PASS        HERE-PARAMETERS" in done.stdout
    assert "+wheel" not in done.stdout
    samples = "".join(path.read_text() for path in work.glob("perflogs/thishost/*/*.jsonl"))
    assert '"suite":"wheel ' in samples
    assert command("siteproof report --output page.html").returncode == 0
    assert (work / "page.html").stat().st_size > 10_000
    done = command("siteproof lint; sbatch/daily quick -n HostParameters")
    assert "no mistake" in done.stdout
    assert len(list(work.glob("output/reports/daily-*/junit.xml"))) == 1


def test_a_wheel_without_a_folder_of_data_says_what_to_do(programs, tmp_path):
    done = run(programs / "siteproof", "nodes", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == (
        "siteproof: SITEPROOF_DATA: is not set, so there is no folder of data. "
        "Run 'siteproof init DIR', then '. DIR/activate'.\n"
    )


def test_init_again_renews_its_links_and_keeps_sites_and_data(at_work, programs):
    work, _ = at_work
    (work / "checks").unlink()
    (work / "checks").symlink_to("/nowhere")
    kept = work / "site-config/thishost/system.yaml"
    kept.write_text(kept.read_text() + "# mine\n")
    assert run(programs / "siteproof", "init", work, cwd="/").returncode == 0
    assert (work / "checks/catalogue.yaml").is_file()
    assert kept.read_text().endswith("# mine\n")


@pytest.mark.parametrize("name", ["checks", "site-config", "activate"])
def test_init_replaces_nothing_that_it_has_not_made(name, programs, tmp_path):
    (tmp_path / name).write_text("mine")
    done = run(programs / "siteproof", "init", tmp_path, cwd="/")
    assert done.returncode == 2
    assert done.stdout.startswith(f"siteproof: {tmp_path / name}: is not of 'siteproof init'")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_the_wheel_names_its_readme_licence_and_extras(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(name).decode()
    assert "License-Expression: BSD-3-Clause" in text
    assert "Provides-Extra: services" in text
    assert Path(TOP / "README.md").read_text().splitlines()[0] in text
