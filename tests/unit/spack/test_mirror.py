"""The recipes in a mirror: those of the pinned release, whatever an earlier mirror has left."""

import shutil
import subprocess

import pytest
from click.testing import CliRunner

from siteproof import cli
from siteproof.errors import UserError
from siteproof.spack import build, env_files, registered

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="NOT TESTED: git is not installed")


def repository(folder, tag):
    """A repository with one commit that has this tag."""
    folder.mkdir(parents=True)
    who = ["-c", "user.name=x", "-c", "user.email=x@example"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", tag], ["tag", tag]):
        subprocess.run(["git", "-C", str(folder), *who, *words], check=True, timeout=60)


def tags(folder):
    words = ["git", "--git-dir", str(folder), "tag"]
    done = subprocess.run(words, check=True, timeout=60, capture_output=True, text=True)
    return done.stdout.split()


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A mirror's folder, next to what Spack has fetched at the pinned release."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path / "data"))
    pinned = env_files.versions().packages.tag
    repository(registered.recipes(pinned), pinned)
    (tmp_path / "disk" / registered.SOURCES).mkdir(parents=True)
    return tmp_path / "disk"


def test_a_mirror_of_an_earlier_release_gets_the_recipes_of_this_one(disk):
    repository(disk / registered.RECIPES, "v2020.01.0")
    assert build.keep_recipes(disk)
    assert tags(disk / registered.RECIPES) == [env_files.versions().packages.tag]


def test_what_an_interrupted_copy_has_left_is_no_mirror(disk):
    for left in (registered.RECIPES, f".{registered.RECIPES}.part"):
        (disk / left / "objects").mkdir(parents=True)
    assert build.keep_recipes(disk)
    assert build.keep_recipes(disk)  # and again, with nothing to do
    assert tags(disk / registered.RECIPES) == [env_files.versions().packages.tag]
    assert sorted(p.name for p in disk.iterdir()) == [registered.RECIPES, registered.SOURCES]


def test_a_build_from_a_mirror_of_another_release_is_refused_in_one_line(disk):
    repository(disk / registered.RECIPES, "v2020.01.0")
    words = ["build", "--system", "thishost", "--mirror", str(disk), "io"]
    with pytest.raises(UserError) as error:
        CliRunner().invoke(cli.group, words, catch_exceptions=False)
    pinned = env_files.versions().packages.tag
    assert f"--mirror: {disk} has no recipes of {pinned}. 'siteproof build" in str(error.value)
