"""Files that somebody else may have written: what is read, and what is refused in one line."""

import json
import os
import pwd
import resource
import socket

import pytest
from refusals import refusal

from siteproof import files

NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root gives files away")


@pytest.fixture
def site(tmp_path):
    """A folder that a site names, behind a link of its own, with a file two folders down."""
    (tmp_path / "real/a/b").mkdir(parents=True)
    (tmp_path / "real/a/b/file").write_text("text")
    (tmp_path / "site").symlink_to(tmp_path / "real")
    return tmp_path / "site"


def of_a_file(path, below, **how):
    told = refusal(files.read, path, below=below, **how)
    assert told.startswith(str(path))
    assert "\n" not in told
    return told


def test_a_regular_file_is_read_and_a_link_above_the_root_is_the_sites(site):
    assert files.read(site / "a/b/file", below=site) == b"text"


def test_a_link_below_the_root_is_not_followed_wherever_it_is(site, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (site / "a/b/link").symlink_to(tmp_path / "secret")
    (site / "a/inside").symlink_to(site / "a/b")
    (site / "loop").symlink_to("loop")
    for path in ("a/b/link", "a/inside/file", "loop"):
        assert "link" in of_a_file(site / path, site)


def test_what_is_no_regular_file_is_refused_and_never_waited_for(site):
    os.mkfifo(site / "fifo")
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(site / "socket"))
    for name in ("fifo", "socket", "a"):
        assert "regular file" in of_a_file(site / name, site)
    bound.close()


def test_a_path_that_leads_out_of_its_folder_is_refused(site):
    assert "out of its folder" in of_a_file(site / "a/../../real/a/b/file", site)


def test_a_missing_file_is_missing_and_not_refused(site):
    for path in ("none", "none/file"):
        with pytest.raises(FileNotFoundError):
            files.read(site / path, below=site)


def test_a_sparse_file_is_refused_unread_and_the_limit_itself_is_allowed(site):
    with (site / "large").open("wb") as stream:
        stream.truncate(40 << 30)
    assert "too large" in of_a_file(site / "large", site)
    assert files.read(site / "a/b/file", below=site, limit=4) == b"text"
    assert "too large" in of_a_file(site / "a/b/file", site, limit=3)


@root_only
def test_a_file_of_another_user_is_refused_unless_the_site_trusts_its_owner(site, monkeypatch):
    monkeypatch.setattr(files, "_trusted", set())
    os.chown(site / "a/b/file", NOBODY, -1)
    assert "belongs to" in of_a_file(site / "a/b/file", site)
    assert "belongs to" in of_a_file(site / "a/b/file", site, owners={0})
    assert files.read(site / "a/b/file", below=site, owners={NOBODY}) == b"text"
    files.trust([NOBODY])
    assert files.read(site / "a/b/file", below=site) == b"text"


@root_only
def test_the_owner_of_the_folder_and_its_group_may_write_what_is_read(site, monkeypatch):
    monkeypatch.setattr(files, "_trusted", set())
    os.chown(site / "a/b/file", NOBODY, -1)
    os.chown(site, -1, pwd.getpwuid(NOBODY).pw_gid)
    assert "belongs to" in of_a_file(site / "a/b/file", site)
    site.chmod(0o2775)
    assert files.read(site / "a/b/file", below=site) == b"text"
    site.chmod(0o755)
    os.chown(site, NOBODY, -1)
    assert files.read(site / "a/b/file", below=site) == b"text"


def test_json_that_would_harm_its_reader_is_refused():
    for text in (
        "[" * 60 + "]" * 60,
        "[" * 100_000,
        '{"a":' * 2000 + "1" + "}" * 2000,
        "[[]," * 49 + "[" * 51 + "]" * 51 + "]" * 49,
        "1" * 5000,
        "1." + "1" * 5000,
        "1e999",
        "NaN",
        "-Infinity",
        "",
        '{"a": 1',
        "\udcff",
    ):
        whole = text.encode("utf-8", "surrogateescape")
        assert refusal(files.loads, "here", whole).startswith("here: broken JSON"), text
        if text.isascii():
            assert refusal(files.loads, "here", text).startswith("here: broken JSON"), text


def test_json_of_many_small_values_is_read():
    held = {"a": [{"b": [1, 2.5, None, True, "[[["]}] * 100}
    assert files.loads("here", json.dumps(held)) == held


def test_a_users_number_has_32_bits():
    assert files.uid_of("4294967294") == files.MAX_UID
    assert files.uid_of("4294967295") is None  # -1, which stands for no user
    assert files.uid_of("9999999999") is None


def test_an_error_of_the_disk_names_the_file(tmp_path):
    for put in (files.write, files.append):
        own = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, own[1]))  # as a full disk
        try:
            with pytest.raises(OSError, match="File too large") as caught:
                put(tmp_path / "a/file", b"text\n", below=tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, own)
        assert caught.value.filename == str(tmp_path / "a/file"), put
