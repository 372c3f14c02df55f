"""Whole stage directories, damaged at random: each costs itself, and nothing else."""

import os
import random
import re
from collections import Counter

import pytest
import stages_made
from stages_made import KINDS, SECRET, damage

from siteproof.collect import outcome, stages
from siteproof.errors import UserError
from siteproof.record import descriptions, samples, sessions

QUICK, BATCHES = 120, 2
MANY, MANY_BATCHES = 10_000, 10
RESULT = re.compile(
    r"[A-Za-z_][\w-]*/[A-Za-z_][\w-]*/[\w-]+\.\w+\.[\w.-]+\.(jsonl|fields\.json\.gz)"
)
NOTE = re.compile(r"\.set-aside/[0-9a-f]{32}\.json")


def case(folder, seed):
    """One damaged stage directory beside a whole one, collected; what became of it."""
    rng = random.Random(seed)
    outside = folder / "outside"
    outside.mkdir(parents=True)
    (outside / "shadow").write_text(SECRET)
    kind = KINDS[seed % len(KINDS)]
    copy = rng.random() < 0.7
    made = kind(folder, copy=copy)
    whole = stages_made.of_nodes(folder, "Whole", nodes=1)
    text = (made.stage / stages_made.NAME).read_bytes()
    how = f"seed {seed}, {kind.__name__}, copy {copy}: {damage(made, seed)}"
    found = dict(stages.collect_lost(made.stages, made.perflogs))
    assert found[whole.stage] == 2, how
    assert sorted(p.name for p in outside.iterdir()) == ["shadow"], how
    assert (outside / "shadow").read_text() == SECRET, how
    kept = read_back(made.perflogs, how)
    if made.stage not in found:
        assert not copy, how  # what the session has noted is never lost
        return "gone"
    if isinstance(found[made.stage], UserError):
        told = [str(one) for one in sessions.of_system(made.perflogs, "here")]
        assert any(made.stage.name in one for one in told), how
        return "set aside"
    try:
        same = (made.stage / stages_made.NAME).read_bytes() == text
    except OSError:
        same = False
    if copy or same:
        missing = expected(made) - {told for one in kept for told in speaks_of(made, one)}
        assert not missing, f"{how}: {missing}"
    bad = [s for s in kept if s.status != "ok" and s.header.check == made.job.check]
    assert not [s.why for s in bad if outcome.UNFORESEEN in s.why], how
    return "an error" if bad else "no harm"


def read_back(perflogs, how):
    """All samples; every file lies where it may, is read again, and holds nobody's secret."""
    kept = []
    for top, _, names in os.walk(perflogs):
        for name in names:
            path = f"{os.path.relpath(top, perflogs)}/{name}"
            full = perflogs / path
            assert RESULT.fullmatch(path) or NOTE.fullmatch(path), f"{how}: {path}"
            assert not full.is_symlink(), how
            assert SECRET.encode() not in full.read_bytes(), how
            if name.endswith(".jsonl"):
                kept += samples.read(full)
            elif name.endswith(".gz"):
                descriptions.read(full)
    return kept


def expected(made):
    """What a job has to account for: nodes, turns or points."""
    if made.job.points:
        return {(p.values["depth"], p.trial) for p in made.job.points.values()}
    if made.job.turns:
        return {(frozenset((a, b)), trial) for trial, a, b in made.job.turns}
    return set(stages.expected(made.job))


def speaks_of(made, sample):
    if sample.header.check != made.job.check:
        return []
    if made.job.points:
        return [(sample.dims.get("depth"), sample.trial)]
    if made.job.turns:
        return [(frozenset((sample.node, sample.dims.get("peer"))), sample.trial)]
    return [sample.node]


def run(folder, seeds):
    return Counter(case(folder / str(seed), seed) for seed in seeds)


@pytest.mark.deep
@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_damaged_stage_directory_costs_itself_and_nothing_else(tmp_path, batch, record_property):
    each = QUICK // BATCHES
    told = run(tmp_path, range(batch * each, (batch + 1) * each))
    assert told["an error"] and told["set aside"] and told["no harm"], told


@pytest.mark.long
@pytest.mark.parametrize("batch", range(MANY_BATCHES))
def test_ten_thousand_of_them_do_no_more_harm(tmp_path, batch):
    each = MANY // MANY_BATCHES
    for seed in range(QUICK + batch * each, QUICK + (batch + 1) * each):
        case(tmp_path / str(seed), seed)


def test_the_kinds_are_whole_before_they_are_damaged(tmp_path):
    for kind in KINDS:
        made = kind(tmp_path / kind.__name__)
        stages.collect(made.stage, made.perflogs)
        kept = read_back(made.perflogs, kind.__name__)
        own = [
            s for s in kept if "link" not in s.dims
        ]  # which these recorded runs are too short for
        assert {s.status for s in own} == {"ok"}, [s.why for s in own]
        missing = expected(made) - {told for one in kept for told in speaks_of(made, one)}
        assert not missing
