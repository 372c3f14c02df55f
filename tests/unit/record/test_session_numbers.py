"""The numbers of sessions: taken once, in order, whatever lies in their folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clone import TOP
from fleets import header

from siteproof import locks
from siteproof.errors import UserError
from siteproof.record import clocks, samples

TAKE = """
import sys
from pathlib import Path
from siteproof.record import clocks as session_numbers
for turn in range(20):
    print(session_numbers.take(Path(sys.argv[1]), "here", f"s{sys.argv[2]}-{turn}")[0])
"""


def take(folder, session="s1", **keys):
    return clocks.take(folder, "here", session, **keys)[0]


@pytest.fixture
def numbers(tmp_path):
    (tmp_path / "here/.sessions").mkdir(parents=True)
    return tmp_path / "here/.sessions"


def test_each_session_takes_the_next_number_and_leaves_its_name(tmp_path):
    assert [take(tmp_path, f"s{n}") for n in (1, 2, 3)] == [1, 2, 3]
    assert (tmp_path / "here/.sessions/000002").read_text() == "s2\n"


def test_no_two_of_many_processes_get_the_same_number(tmp_path):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE, str(tmp_path), str(n)],
            cwd=TOP,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    found = [[int(word) for word in process.communicate()[0].split()] for process in started]
    assert all(mine == sorted(mine) for mine in found)
    assert sorted(n for mine in found for n in mine) == list(range(1, 81))


def test_a_continued_session_keeps_its_number(tmp_path):
    assert [take(tmp_path, s) for s in ("s1", "s2")] == [1, 2]
    assert take(tmp_path, "s1", continued=True) == 1
    assert take(tmp_path, "older than numbers", continued=True) == 3


def test_a_number_that_samples_have_is_not_given_again(tmp_path):
    samples.write(tmp_path, header(1, place=7), [])
    samples.write(tmp_path, header(2, place=5), [])
    samples.path_of(tmp_path, header(3)).write_text("{broken\n")
    assert take(tmp_path) == 8


def test_a_number_far_beyond_the_others_does_not_count_and_is_named(tmp_path, numbers):
    take(tmp_path, "s1")
    (numbers / "999999998").write_text("mine\n")
    assert clocks.take(tmp_path, "here", "s2") == (2, (numbers / "999999998", 1))
    samples.write(tmp_path, header(1, place=900_000_000), [])
    assert take(tmp_path, "s3") == 3


def test_names_that_are_no_numbers_and_things_that_are_no_files_stop_nobody(tmp_path, numbers):
    for name in ("٠٠٠٠٠٩", "9", "000009.bak", "0000009", "1" * 200):
        (numbers / name).write_text("s1")
    (numbers / "000001").symlink_to("/dev/zero")
    (numbers / "000002").mkdir()
    os.mkfifo(numbers / "000003")
    (numbers / "000004").write_text("x" * 100_000)
    (numbers / "000005").symlink_to("nowhere")
    assert take(tmp_path, "s1", continued=True) == 6
    assert take(tmp_path, "s1", continued=True) == 6


def test_when_all_numbers_are_taken_one_line_says_so(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(samples, "LAST_PLACE", 3)
    assert [take(tmp_path, s) for s in ("s1", "s2")] == [1, 2]
    with pytest.raises(UserError, match="no number is left"):
        take(tmp_path, "s3")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "here").write_text("")
    with pytest.raises(UserError, match="here/.sessions: no number for this session: ") as raised:
        take(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_link_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here/.sessions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="no number for this session"):
        take(tmp_path)
    assert list(Path(tmp_path / "elsewhere").iterdir()) == []


def test_without_links_in_the_file_system_numbers_are_taken_too(tmp_path, monkeypatch):
    def link(*_args, **_keys):
        raise OSError(locks.NO_LINKS[0], "no links here")

    monkeypatch.setattr(os, "link", link)
    assert [take(tmp_path, s) for s in ("s1", "s2")] == [1, 2]
