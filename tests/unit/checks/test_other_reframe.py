"""Which ReFrames can be used: the versions, what each patch needs, and what is in their Python."""

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


def test_only_a_version_outside_the_bounds_is_told_in_one_line(unpatched, monkeypatch, capsys):
    tried = "Siteproof was tried with 4.9.3 and later, below 4.12"
    for version, is_told in (
        *((version, False) for version in (adapter.PINNED, "4.9.3", "4.10.5", "4.11.0-dev1")),
        *((version, True) for version in ("4.9.2", "4.12.0", "4.12.0-dev.1", "5.0.0")),
    ):
        monkeypatch.setattr(reframe, "VERSION", version)
        adapter.apply(None)
        told = f"siteproof: this is ReFrame {version}; {tried}\n" if is_told else ""
        assert capsys.readouterr() == ("", told), version


def test_a_reframe_without_a_name_that_a_patch_needs_is_refused(unpatched, monkeypatch):
    there = adapter._there
    for patch in adapter.PATCHES:
        for needed in patch.needs:
            monkeypatch.setattr(
                adapter, "_there", lambda name, needed=needed: name != needed and there(name)
            )
            with pytest.raises(UserError, match=f"the patch '{patch.name}' needs"):
                adapter.apply(None, [patch.name])


def test_each_patch_has_an_issue_of_reframe_or_the_text_of_one():
    folder = TOP / "docs/upstream"
    table = (folder / "README.md").read_text()
    texts = {patch.upstream for patch in adapter.PATCHES if not patch.upstream.isdigit()}
    for name in {patch.upstream for patch in adapter.PATCHES}:
        assert f"({name}.md)" in table or f"issues/{name})" in table, name
    others = {"README", "sys-path", "spack-nuttcp", "spack-qperf"}  # what needs no patch
    assert {path.stem for path in folder.iterdir()} == texts | others


def test_a_name_that_is_gone_is_noticed():
    for needed in (
        "reframe.not_there:x",
        "reframe.frontend.loader:NotThere.load_all",
        "reframe.frontend.loader:RegressionCheckLoader.not_there",
        "reframe.frontend.loader:RegressionCheckLoader.__init__/_not_used",
        "reframe.core.schedulers.slurm:_SlurmJob.nodelist/fget",
    ):
        assert not adapter._there(needed), needed


OWN = """
import sys
import reframe as rfm

@rfm.simple_test
class Own(rfm.RunOnlyRegressionTest):
    print("kept:", "/last" in sys.path)
"""


def list_checks(folder, *words):
    """`reframe -l` with what `sitecustomize.py` in this folder does first."""
    return subprocess.run(
        ["reframe", "-C", TOP / "reframe_settings.py", "--system=thishost", *words, "-l"],
        env=os.environ | {"PYTHONPATH": f"{folder}:{TOP}"},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.command
def test_the_settings_take_no_entry_from_pythons_path(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.path.append('/last')\n")
    (tmp_path / "own.py").write_text(OWN)
    assert "kept: True" in list_checks(tmp_path, "-c", "own.py").stdout


@pytest.mark.command
def test_the_refusal_is_one_line_without_a_traceback(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "from reframe.core.logging import MultiFileHandler\ndel MultiFileHandler.close\n"
        "from reframe.frontend import executors\ndel executors._force_exit\n"
    )
    done = list_checks(tmp_path)
    assert done.returncode == 2, done
    assert "has no reframe.frontend.executors._force_exit, which the patch 'dropped signals'" in (
        done.stderr
    )
    assert len(done.stderr.splitlines()) == 1
