"""Every link of a page resolves: from a criterion to its values, and from those to their jobs."""

import random
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import Page
from random_cases import cases
from test_agreement_pairs import net as net
from test_recompute import random_campaign, random_pairs

from siteproof.report import html, markdown
from siteproof.report.chapters import criteria, samples
from siteproof.report.material import Material
from siteproof.report.sections import Link, Numbering, Report, Section, Table, anchor, to_rows
from siteproof.report.summary import Summary

NOW = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
FIRST = Summary("campaign winter", "now", "1 of 1 nodes", "", "PASS", "1 PASS of 1")


def report_on(judged):
    material = Material(judged, Path("nowhere"), datetime.now(UTC))
    found = [criteria.chapter(material), samples.chapter(material)]
    return Report("here", FIRST, [one for one in found if one])


def links_resolve(made):
    page = Page(html.page(made, NOW))
    assert len(page.ids) == len(set(page.ids))
    leads = [address.removeprefix("#") for address in page.addresses if address.startswith("#")]
    assert set(leads) <= set(page.ids), set(leads) - set(page.ids)
    return page, leads


@given(seed=st.integers(0, 10**9))
@cases(20)
@pytest.mark.deep
def test_every_link_of_a_random_campaign_resolves(seed):
    judged = random_campaign(seed)
    page, leads = links_resolve(report_on(judged))
    for result in judged.verdicts:
        assert anchor("criterion", result.id) in page.ids
        if any(node.sample for node in result.nodes) and not result.criterion.report_only:
            assert anchor("values", result.id) in leads
    jobs = {one for one in page.ids if one.startswith("job-")}
    assert jobs <= set(leads), "each job is reached from a value"


def test_every_link_of_random_pairs_resolves(net):
    rng = random.Random(20261125)
    for _ in range(8):
        links_resolve(report_on(random_pairs(net, rng)))


NAMES = st.text(min_size=1, max_size=6).filter(lambda name: name != "-")


@given(st.lists(NAMES, unique=True, max_size=8))
@cases(50)
def test_rows_with_any_names_have_anchors_of_their_own_and_links_reach_them(names):
    ids = [anchor("criterion", name) for name in names]
    owned = Table(("criterion", "a"), [(name, "1") for name in names], ids=ids)
    other = Table(("criterion", "b"), [(to_rows("criterion", name), "2") for name in names])
    _, leads = links_resolve(Report("here", FIRST, [Section("one", "One", "", [owned, other])]))
    assert len(leads) == len(names) + 1  # and the chapter's


def test_a_cell_leads_to_each_place_that_the_page_has_and_else_shows_its_text():
    jobs = Table(("job", "file"), [("1", "a"), ("2", "b")], ids=["job-1", "job-2"])
    numbers = Numbering(Report("here", FIRST, [Section("one", "One", "", [jobs])]))
    for names in (["1", "2"], ["2", "1"], ["1"]):
        cell = to_rows("job", *names)
        assert cell == ", ".join(names)
        assert [place.label for place in numbers.refer(cell)] == names
    assert [place.label for place in numbers.refer(to_rows("job", "1", "3"))] == ["1"]
    assert numbers.refer(to_rows("job", "3")) == numbers.refer("1") == []
    assert Link([("3", "job-3")], "none") == "none"


def test_markdown_has_the_same_anchors():
    for seed in range(5):
        text = markdown.page(report_on(random_campaign(seed)), NOW)
        ids = re.findall(r'<a id="([^"]+)"></a>', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= set(ids)
