"""A folder of `siteproof init` is sourced by a shell: who may have made it, and its name."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from rows import rows

from siteproof.cli import group
from siteproof.errors import UserError


def mistake(folder):
    done = CliRunner().invoke(group, ["init", str(folder)])
    assert isinstance(done.exception, UserError), done.output
    return str(done.exception)


@rows("name", ["a\ntouch ran\n", "a:b", "a\udcff"])
def test_a_name_that_a_shell_would_run_or_split_is_refused(tmp_path, name):
    assert "has a colon or a control character in its name" in mistake(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("user", [0, 1000])
def test_a_folder_in_which_others_could_replace_what_is_sourced_is_refused(
    tmp_path, monkeypatch, user
):
    folder = tmp_path / "work"
    folder.mkdir()
    folder.chmod(0o777)
    assert "everybody may write to it" in mistake(folder)
    folder.chmod(0o755)
    real = Path.stat
    found = os.stat_result([*real(folder)[:4], 4321, *real(folder)[5:10]])
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(Path, "stat", lambda p, **how: found if p == folder else real(p, **how))
    assert "belongs to user 4321" in mistake(folder)
    assert not list(folder.iterdir())
