"""What `siteproof compare --json` tells of single nodes, pairs and counts beside the medians."""

import json
import random
import shutil
from itertools import product

import fleets
import nets
import pytest
from asked import ask
from fleets import names, run_of

from siteproof.record import samples


@pytest.fixture
def told(tmp_path, monkeypatch):
    """The rows by metric, of two sessions."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))

    def tell(before, after):
        shutil.rmtree(tmp_path / "perflogs", ignore_errors=True)  # of an earlier pair
        for found in (before, after):
            samples.write(tmp_path / "perflogs", found[0].header, found)
        code, out = ask("compare", before[0].header.session, after[0].header.session, "--json")
        return code, {row["metric"]: row for row in json.loads(out)["rows"]}

    tell.sites = tmp_path / "sites"
    return tell


def test_a_node_that_lost_most_of_its_rate_is_named_though_the_median_rose(told, monkeypatch):
    for row in product((3, 4, 8, 64), (0.01, 0.05, 0.1), (0.05, 0.4)):
        count, cv, left = row
        fleets.load(told.sites, monkeypatch, count=count)
        chance = random.Random(f"{count} {cv} {left}")
        before = {n: 2.1 * chance.gauss(1, cv) for n in names(count)}
        after = {n: v * chance.gauss(1.1, cv) for n, v in before.items()}
        after["n002"] = before["n002"] * left
        unit = {"metric": "Stream.triad", "unit": "GB/s"}
        code, rows = told(run_of(before, 1, **unit), run_of(after, 2, **unit))
        assert code == 1, row
        assert "n002" in rows["Stream.triad"]["worst"], row
        if count < 64 and cv < 0.1:
            assert list(rows["Stream.triad"]["worst"]) == ["n002"], row


@pytest.mark.parametrize("count", [3, 4, 8])
@pytest.mark.parametrize("slow", ["n1>n2", "n3>n1"])
def test_a_pair_that_lost_most_of_its_rate_is_named_though_its_nodes_median_did_not(
    told, monkeypatch, count, slow
):
    nets.load(
        told.sites, monkeypatch, count=count, pattern="all", servers="compute", criteria="{}\n"
    )
    chance = random.Random(f"{count} {slow}")
    nodes = [f"n{number}" for number in range(1, count + 1)]
    pairs = [f"{a}>{b}" for a in nodes for b in nodes if a != b]

    def run(number, level, **other):
        values = {pair: round(level * chance.gauss(1, 0.02), 3) for pair in pairs} | other
        return [nets.ok(pair, value, number) for pair, value in values.items()]

    code, rows = told(run(1, 2.1), run(2, 2.3, **{slow: 0.1}))
    (row,) = (row for name, row in rows.items() if name.startswith(nets.METRIC))
    assert code == 1
    assert slow in row["worst"]
    assert {name for name in row["worst"] if ">" in name} == {slow}


def test_a_count_that_was_zero_is_named(told, monkeypatch):
    kind = {"metric": "HostParameters.mismatches", "unit": "count"}
    for count, number in product((2, 8, 64), (1, 5)):
        fleets.load(told.sites, monkeypatch, count=count)
        zero = dict.fromkeys(names(count), 0)
        code, rows = told(run_of(zero, 1, **kind), run_of(zero | {"n002": number}, 2, **kind))
        assert code == 1, (count, number)
        assert rows["HostParameters.mismatches"]["worst"] == {"n002": None}, (count, number)


def test_the_same_twice_names_nobody(told, monkeypatch):
    fleets.load(told.sites, monkeypatch, count=64)
    chance = random.Random(1)
    before, after = ({n: 2.1 * chance.gauss(1, 0.02) for n in names(64)} for _ in range(2))
    code, rows = told(run_of(before, 1), run_of(after, 2))
    assert (code, rows["Stream.triad"]["worst"]) == (0, {})
