"""A node's past is the same from the store of the history as from the files of samples."""

import shutil
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from functools import partial

import nets
import pytest
from fleets import broken, header, judged, run_of

from siteproof.answers import implausible
from siteproof.nodes import pair_ends, speeds, states
from siteproof.record import samples, series
from siteproof.record.samples import Sample
from siteproof.record.sessions import Sessions

NODES = ("n1", "n2", "n3", "n4")


def pair(run, sender, receiver, value, link="lan", unit="Gb/s"):
    head = header(run, "TcpBandwidth", conditions={"link": link}, job=link)
    dims = {"peer": receiver}
    return Sample(head, sender, "TcpBandwidth.throughput", Decimal(value), unit, dims=dims)


def session(run):
    """A session with much that a past may hold."""
    stream = run_of({n: 100.0 + run for n in NODES}, run, conditions={"n": str(1000 + run % 2)})
    first = stream[0]
    return [
        *stream[1:],
        replace(first, trial=1, value=Decimal("90.12345678901234567")),
        replace(first, trial=2, value=Decimal(70 + run), own_conditions={"n": "1001"}),
        replace(first, trial=3, value=Decimal("0.0715"), unit="GB/s"),
        replace(first, node="stranger"),
        replace(first, metric="Stream.copy", own_conditions={"threads": str(run % 2)}),
        replace(first, metric="Stream.copy", node="n2", dims={"size": "1"}),
        replace(first, metric="Stream.copy", node="n3", unit="GB/s", value=Decimal("0.123")),
        broken("n4", "timeout", run, conditions={"n": str(1000 + run % 2)}),
        pair(run, "n1", "n2", "9.4"),
        pair(run, "n2", "n1", f"9.{run}"),
        pair(run, "n1", "stranger", "9.1"),
        pair(run, "n3", "n1", "9300", unit="Mb/s"),
        *([pair(run, "n3", "n4", "3.3", link="wan")] if run % 2 else []),
    ]


def keep(folder, found):
    heads = {(s.header.session, s.header.check, s.header.job): s.header for s in found}
    return [
        samples.write(folder, head, [s for s in found if s.header == head])
        for head in heads.values()
    ]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder of all sessions, written once, and the files in it."""
    folder = tmp_path_factory.mktemp("kept")
    paths = [path for run in range(1, 41) for path in keep(folder, session(run))]
    return folder, [path.relative_to(folder) for path in paths]


def earlier_values(course):
    """The values of each node before what is judged, as texts, since NaN differs from itself."""
    return {
        node: course.values[row, : course.judged].astype(str).tolist()
        for node, row in course.nodes.items()
    }


@pytest.fixture
def world(kept, tmp_path, monkeypatch):
    """Sessions 1 to 40, of which the newest is judged; a past from the store, or from files."""
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path / "cache"))
    site = nets.load(tmp_path / "sites", monkeypatch, count=4)
    folder = shutil.copytree(kept[0], tmp_path / "perflogs")

    def past(of_store):
        monkeypatch.setattr(speeds, "MANY_BYTES", 0 if of_store else 10**9)
        sessions = Sessions(tmp_path / "perflogs", "here")
        now = sessions.of(lambda h: h.session == "s0040")
        table = states.lately(replace(judged(site, now), sessions=sessions))
        parts = (
            (table.where(table.peer < 0), pair_ends.alone(now)),
            (speeds.both_ends(table), pair_ends.ends(now)),
        )
        of_both = (speeds.of_series(site, p, series.collect(site, f)) for p, f in parts)
        courses = ({key: earlier_values(c) for key, c in of.items()} for of in of_both)
        return *courses, sorted(map(str, sessions.left_out))

    past.paths, past.cache = [folder / path for path in kept[1]], tmp_path / "cache"
    past.folder, past.site = folder, site
    return past


def failures(world, site, monkeypatch, of_store):
    """Node, metric and status of what has no value in all sessions, with the runs of each."""
    monkeypatch.setattr(speeds, "MANY_BYTES", 0 if of_store else 10**9)
    sessions = Sessions(world.folder, "here", partial(implausible.checked, site))
    found = speeds.failures(site, sessions, lambda _header: True)
    return Counter((s.node, s.metric, s.status) for s in found)


def test_the_store_and_the_files_give_the_same_failures(world, monkeypatch):
    """A value that cannot be right is one, and a program that is missing on a node alone."""
    site = world.site
    far = [replace(s, value=s.value * 1000) for s in run_of(dict.fromkeys(NODES[:1], 100.0), 41)]
    lacks = [broken("n4", "tool_missing", 42), *run_of(dict.fromkeys(NODES[:3], 100.0), 42)]
    keep(world.folder, [*far, *run_of(dict.fromkeys(NODES[1:], 100.0), 41)])
    keep(world.folder, lacks)
    found = failures(world, site, monkeypatch, of_store=True)
    assert found == failures(world, site, monkeypatch, of_store=False)
    assert found["n1", "Stream.triad", "implausible"] == found["n4", "Stream.*", "generic"] == 1


def values(past):
    of_one, of_pairs, _ = past
    return [v for found in (of_one, of_pairs) for of in found.values() for v in of.values()]


def test_the_store_and_the_files_give_the_same_past(world):
    of_store = world(of_store=True)
    assert list(world.cache.glob("*/*.parquet"))
    assert of_store == world(of_store=False)
    assert max(map(len, values(of_store))) == speeds.RECENT
    assert {key.metric for key in of_store[1]} == {"TcpBandwidth.throughput"}
    assert {dict(key.dims).get("side") for key in of_store[1]} == {"sends", "receives"}


def test_a_file_that_the_store_refuses_is_left_out_and_named(world):
    torn = world.paths[-9]
    torn.write_text(torn.read_text() + "{\n")
    of_store = world(of_store=True)
    assert of_store == world(of_store=False)
    (error,) = of_store[2]
    assert torn.name in error


def test_a_number_that_is_far_too_high_counts_for_none_in_the_store_too(world):
    path = world.paths[-9]
    path.write_text(path.read_text().replace('"mode"', '"place":99999999,"mode"', 1))
    assert world(of_store=True) == world(of_store=False)


def test_a_store_that_cannot_be_used_changes_nothing(world):
    """It is damaged, then others may write to it."""
    known = world(of_store=True)
    for mode in (0o700, 0o777):
        for part in world.cache.glob("*/*.samples.parquet"):
            data = bytearray(part.read_bytes())
            data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
            part.write_bytes(data)
        for folder in world.cache.iterdir():
            folder.chmod(mode)
        assert world(of_store=True) == known


def test_only_the_jobs_in_question_are_read_into_the_store(world):
    world(of_store=True)
    (index,) = world.cache.glob("*/index.json")
    assert "s0010" in index.read_text()
    assert "s0005" not in index.read_text()
