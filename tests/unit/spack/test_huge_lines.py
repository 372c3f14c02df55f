"""Spack's output with lines that no terminal shows: read at once, and printed shortened."""

import time

from siteproof.spack.build import _failure

FAILED = "[x] abcdefg pkg failed: /tmp/log"


def test_a_line_of_many_blanks_is_read_at_once():
    began = time.process_time()
    _, why = _failure([FAILED, f">{' ' * 100_000}", f"> {'x ' * 100_000}"], 1)
    assert time.process_time() - began < 5  # it took 40 s
    assert [len(line) <= 200 for line in why] == [True, True]


def test_the_name_of_a_log_is_no_longer_than_a_path():
    _, why = _failure([f"[x] abcdefg pkg failed: {'y' * 100_000}"], 1)
    assert len(why[-1]) < 5000
