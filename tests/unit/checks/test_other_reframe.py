"""Another version of ReFrame is told, and one that lacks what a patch needs is refused."""

import os
import subprocess
from dataclasses import replace

import pytest
import reframe
from clone import TOP

from siteproof.checks import adapter
from siteproof.errors import UserError


@pytest.fixture
def unpatched(monkeypatch):
    """Patches that change nothing, so that this process keeps its ReFrame."""
    monkeypatch.setattr(
        adapter,
        "PATCHES",
        tuple(replace(patch, put=lambda hooks: None) for patch in adapter.PATCHES),
    )


def test_the_verified_version_is_the_pin_and_is_not_told(unpatched, capsys):
    pins = next(TOP.glob("**/requirements.in")).read_text()
    assert f"ReFrame-HPC=={adapter.VERIFIED}\n" in pins
    adapter.apply(None)
    assert capsys.readouterr() == ("", "")


def test_another_version_is_told_in_one_line(unpatched, monkeypatch, capsys):
    for version in ("4.10.5", "4.11.0", "5.0.0-dev.1", "4.9.2"):
        monkeypatch.setattr(reframe, "VERSION", version)
        adapter.apply(None)
        verified = f"Siteproof was verified with {adapter.VERIFIED}"
        assert capsys.readouterr().err == f"siteproof: this is ReFrame {version}; {verified}\n"


def test_a_reframe_without_a_name_that_a_patch_needs_is_refused(unpatched, monkeypatch):
    there = adapter._there
    for patch in adapter.PATCHES:
        for needed in patch.needs:
            monkeypatch.setattr(
                adapter, "_there", lambda name, needed=needed: name != needed and there(name)
            )
            with pytest.raises(UserError, match=f"the patch '{patch.name}' needs"):
                adapter.apply(None, [patch.name])


def test_a_name_that_is_gone_is_noticed():
    for needed in (
        "reframe.not_there:x",
        "reframe.frontend.loader:NotThere.load_all",
        "reframe.frontend.loader:RegressionCheckLoader.not_there",
        "reframe.frontend.loader:RegressionCheckLoader.__init__/_not_used",
        "reframe.core.schedulers.slurm:_SlurmJob.nodelist/fget",
    ):
        assert not adapter._there(needed), needed


@pytest.mark.command
def test_the_refusal_is_one_line_without_a_traceback(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "from reframe.core.logging import MultiFileHandler\ndel MultiFileHandler.close\n"
        "from reframe.frontend import executors\ndel executors._force_exit\n"
    )
    done = subprocess.run(
        ["reframe", "-C", TOP / "reframe_settings.py", "--system=thishost", "-l"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{TOP}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done
    assert "has no reframe.frontend.executors._force_exit, which the patch 'dropped signals'" in (
        done.stderr
    )
    assert len(done.stderr.splitlines()) == 1
