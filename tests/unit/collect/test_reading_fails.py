"""The collecting side cannot read for a moment, or one node links to another's result."""

import errno
import os

import pytest
from rows import rows
from stages_made import of_nodes, of_pairs, of_sweep

from siteproof.collect import stages
from siteproof.errors import UserError
from siteproof.record import sessions

MOMENTARY = [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.ENOMEM, errno.EMFILE]
CALLS = ["read", "fstat", "open", "lstat", "scandir"]
MADE = {"nodes": of_nodes, "pairs": of_pairs, "points": of_sweep}


class Failing:
    """A call of the system that fails for what is at a path, so many times."""

    def __init__(self, monkeypatch, call, aim, error, times):
        self.real, self.error, self.left = getattr(os, call), error, times
        self.aim = (aim.stat().st_dev, aim.stat().st_ino)
        monkeypatch.setattr(os, call, self)

    def __call__(self, what, *words, **keys):
        found = self.at(what, keys)
        if found and self.left:
            self.left -= 1
            raise OSError(self.error, os.strerror(self.error))
        return self.real(what, *words, **keys)

    def at(self, what, keys):
        try:
            if isinstance(what, int):
                found = os.stat(what)  # noqa: PTH116 - a descriptor
            else:
                found = os.stat(what, dir_fd=keys.get("dir_fd"), follow_symlinks=False)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self.aim


def aim_of(made, call):
    folder = min((made.stage / "raw").glob("[!.]*"))
    return folder if call in ("lstat", "scandir") else folder / "meta"


def values(found):
    return sorted((s.node, s.metric, s.value, s.status) for s in found)


@rows("call, error", [(call, error) for call in CALLS for error in MOMENTARY])
@pytest.mark.deep
def test_one_failed_read_is_repeated_and_costs_nothing(tmp_path, monkeypatch, call, error):
    (tmp_path / "whole").mkdir()
    whole = of_nodes(tmp_path / "whole")
    wanted = values(stages.collect(whole.stage, whole.perflogs))
    made = of_nodes(tmp_path)
    Failing(monkeypatch, call, aim_of(made, call), error, times=1)
    assert values(stages.collect(made.stage, made.perflogs)) == wanted


@pytest.mark.deep
@rows("kind, call, error", [(k, c, e) for k in MADE for c in CALLS for e in MOMENTARY[:3]])
def test_a_stage_that_cannot_be_read_now_waits_and_the_next_collection_brings_it(
    tmp_path, monkeypatch, kind, call, error
):
    made = MADE[kind](tmp_path)
    failing = Failing(monkeypatch, call, aim_of(made, call), error, times=10**6)
    told = dict(stages.collect_lost(made.stages, made.perflogs))[made.stage]
    assert isinstance(told, UserError) and os.strerror(error) in told.message
    assert not list(made.perflogs.glob("*/*/*.jsonl")), "no node is written down as failed"
    assert len(list(sessions.below(made.perflogs, made.stages))) == 1, "verdicts name it"
    failing.left = 0
    assert dict(stages.collect_lost(made.stages, made.perflogs))[made.stage] > 0
    assert not sessions.below(made.perflogs, made.stages)


def test_the_session_itself_leaves_such_a_stage_to_the_next_collection(tmp_path, monkeypatch):
    made = of_nodes(tmp_path)
    failing = Failing(monkeypatch, "read", aim_of(made, "read"), errno.EIO, times=10**6)
    with pytest.raises(UserError, match="Input/output error"):
        stages.collect(made.stage, made.perflogs, job=made.job)
    failing.left = 0
    assert dict(stages.collect_lost(made.stages, made.perflogs))[made.stage] > 0


# ---- links between results


def link(made, old, new):
    new = made.stage / "raw" / new
    new.unlink()
    new.hardlink_to(made.stage / "raw" / old)


def statuses(made):
    found = stages.collect(made.stage, made.perflogs)
    return {s.node: (s.status, s.why) for s in found}


def test_a_node_whose_whole_result_is_its_neighbours_does_not_spoil_that(tmp_path):
    made = of_nodes(tmp_path)
    for name in ("meta", "facts", "stdout", "stderr"):
        link(made, f"n1/{name}", f"n2/{name}")
    found = statuses(made)
    assert found["n1"][0] == found["n3"][0] == "ok"
    assert found["n2"] == ("generic", "its account is of node 'n1'")


@pytest.mark.parametrize("name", ["meta", "facts", "stdout", "stderr"])
def test_a_node_that_links_one_file_of_its_neighbour_spoils_only_its_own(tmp_path, name):
    made = of_nodes(tmp_path)
    link(made, f"n1/{name}", f"n2/{name}")
    found = statuses(made)
    assert found["n1"][0] == found["n3"][0] == "ok"


def test_a_second_name_of_a_healthy_result_elsewhere_costs_nothing(tmp_path):
    made = of_nodes(tmp_path)
    (tmp_path / "copy").hardlink_to(made.stage / "raw/n1/stdout")
    found = statuses(made)
    assert {status for status, _ in found.values()} == {"ok"}


# ---- names that are not UTF-8

STRANGE = os.fsdecode(b"\xff")
PLACES = {
    "the stage": lambda made: made.stage.parent / STRANGE,
    "the folder of an environment": lambda made: made.stage.parents[1] / STRANGE / "x",
    "the session": lambda made: made.stages / STRANGE,
    "a result": lambda made: made.stage / "raw" / STRANGE,
    "a run": lambda made: made.stage / "raw/n1" / STRANGE,
}


@rows("where, manifest", [(where, whole) for where in PLACES for whole in (True, False)])
def test_a_folder_whose_name_is_not_utf_8_costs_nothing_else(tmp_path, where, manifest):
    made = of_nodes(tmp_path)
    strange = PLACES[where](made)
    strange.mkdir(parents=True)
    text = (made.stage / "siteproof-job.json").read_bytes() if manifest else b"{"
    (strange / "siteproof-job.json").write_bytes(text)
    found = dict(stages.collect_lost(made.stages, made.perflogs))
    assert found[made.stage] == 6
    for stage, told in found.items():
        assert stage == made.stage or isinstance(told, UserError) or told > 0


def test_a_job_in_a_stage_whose_name_is_not_utf_8_is_collected(tmp_path):
    made = of_nodes(tmp_path, copy=False)
    made.stage.rename(PLACES["the stage"](made))
    assert list(dict(stages.collect_lost(made.stages, made.perflogs)).values()) == [6]
