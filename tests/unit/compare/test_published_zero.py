"""Published figures of zero, and in several units: they are told, and no ratio breaks."""

import re
from dataclasses import replace
from itertools import cycle

import pytest

from siteproof import sites, units
from siteproof.compare.published import results
from siteproof.record import samples
from siteproof.report import html, material
from siteproof.report.summary.begin import assemble

SEEDS = ("jetstream-tacc", "sc11-wan", "magellan", "extenci", "nebula-sriov")
FACTORS = {"all": (0,), "every other": (0, 1), "the others": (1, 0), "signs": (-1, 0, 1)}


def scaled(found, factors):
    """The samples with each figure times the next factor."""
    return [
        replace(s, value=s.number * factor)
        if s.status == "ok" and units.kind(s.unit) != "text"
        else s
        for s, factor in zip(found, cycle(factors), strict=False)
    ]


@pytest.fixture(scope="module")
def stated(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SITEPROOF_SITES", raising=False)
        folder, held = tmp_path_factory.mktemp("perflogs"), {}
        for name in SEEDS:
            path = sites.folder() / name / "published.csv"
            results.keep(path, results.read_published(path, name).values(), folder)
            held[name] = sites.load(name), results.read(folder, name)
        return held


@pytest.mark.deep
@pytest.mark.parametrize("name", SEEDS)
def test_tables_of_zeros_are_tables(stated, name):
    site, found = stated[name]
    for label, factors in FACTORS.items():
        tables = results.tables(site, scaled(found, factors))
        assert [t.title for t in tables], label
        for table in tables:
            assert {len(row) for row in table.rows} <= {len(table.columns)}, label
            assert not [cell for row in table.rows for cell in row if cell.split()[:1] == ["nan"]]


@pytest.mark.deep
@pytest.mark.parametrize("name", ["sc11-wan", "nebula-sriov"])
def test_a_page_of_zeros_is_a_page(stated, name, tmp_path, monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    site, found = stated[name]
    for head in {id(s.header): s.header for s in found}.values():
        samples.write(
            tmp_path / "perflogs", head, scaled([s for s in found if s.header is head], (0,))
        )
    held = material.gather(name)
    try:
        page = html.page(assemble(held), held.now)
    finally:
        held.close()
    assert not re.findall(r"\bnan\b", page)


def test_values_in_two_units_are_compared_as_values(stated):
    site, found = stated["sc11-wan"]
    near = next(s for s in found if s.unit == "GB/s" and s.own_conditions.get("network") == "lan")
    far = replace(
        near,
        own_conditions={**near.own_conditions, "network": "wan"},
        value=near.number * 1100,
        unit="MB/s",
    )
    (table,) = [t for t in results.tables(site, [near, far]) if "differ" in t.title]
    assert table.rows[0][table.columns.index("other of one")] == "110.00 %"
