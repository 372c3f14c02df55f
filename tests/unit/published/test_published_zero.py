"""Published figures of zero, and in several units: they are told, and no ratio breaks."""

import re
from dataclasses import replace
from decimal import Decimal
from itertools import cycle

import pytest

from siteproof import sites, units
from siteproof.published import imported, results
from siteproof.record import samples
from siteproof.report import html, material
from siteproof.report.assemble import build

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
            imported.keep(path, imported.read(path, name).values(), folder)
            held[name] = sites.load(name), results.stated(folder, name)
        return held


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
def test_tables_of_zeros_are_tables(stated, name, factors):
    site, found = stated[name]
    tables = results.tables(site, scaled(found, factors))
    assert [t.title for t in tables]
    for table in tables:
        assert {len(row) for row in table.rows} <= {len(table.columns)}
        assert not [cell for row in table.rows for cell in row if cell.split()[:1] == ["nan"]]


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
        page = html.page(build(held), held.now)
    finally:
        held.close()
    assert not re.findall(r"\bnan\b", page)
    assert ("No figure over the LAN is more than zero" in page) is (name == "sc11-wan")


def test_a_change_between_two_units_is_a_change_of_the_figure(stated):
    site, found = stated["jetstream-tacc"]
    before = next(s for s in found if "before" in s.header.campaign and s.unit == "MB/s")
    after = replace(
        before,
        header=replace(before.header, campaign=before.header.campaign.replace("before", "after")),
        value=before.number * Decimal("1.1") / 1000,
        unit="GB/s",
    )
    (table,) = [t for t in results.tables(site, [before, after]) if t.title == "Before and after"]
    assert table.rows[0][table.columns.index("change")] == "+10.0 %"
