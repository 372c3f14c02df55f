"""The acceptance sheet of a page, and the way from a criterion on it to the file of its samples."""

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import recomputed
from pages import Page
from test_report import CRITERIA, TEXTS, world, write

from siteproof.report import html, material, recompute
from siteproof.report.summary import begin

WAIVERS = """\
W-N003: {nodes: n003, waives: C-TRIAD, problem: a slow bank, owner: A. Vendor, expires: 2099-12-31}
"""


@pytest.fixture(scope="module")
def winter(tmp_path_factory):
    """Its page, and the folder of its perflogs, which no test changes."""
    folder = tmp_path_factory.mktemp("sheet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(begin, "CHAPTERS", TEXTS)
        perflogs = world(folder, patch, criteria=CRITERIA)
        write(perflogs)
        (next((folder / "sites").iterdir()) / "waivers.yaml").write_text(WAIVERS)
        found = material.gather("here", name="winter")
        (folder / "page.html").write_text(html.page(begin.assemble(found), datetime.now(UTC)))
        found.close()
    return folder / "page.html", perflogs


def read(winter):
    return Page(winter[0].read_text())


def requirement(page, text):
    return next(row for row in page.rows if text in row and row[2] == text)


def test_each_requirement_has_its_answer_its_evidence_and_its_waiver(winter):
    page = read(winter)
    row = requirement(page, "Memory of every node")
    assert row[0] == "C-TRIAD"
    assert row[1].endswith("PASS") and row[3] == "Stream.triad >= 165 GB/s; every node"
    assert row[4].endswith("by stream") and row[5].endswith(" %")
    assert "1 failed n003 (waived)" in row[6]
    assert row[10:12] == ["contract, 4.1.2", "n003: W-N003, A. Vendor, until 2099-12-31"]
    assert row[12]
    for words in ("suite revision 0123456789ab", "campaign winter", "the vendor", "the operator"):
        assert words in page.text
    assert {"name", "role", "date", "signature"} <= {
        held["data-of"] for _, held in page.tags if "data-of" in held
    }


def test_the_evidence_has_the_sums_of_the_files_and_of_the_tables(winter):
    path, perflogs = winter
    page = read(winter)
    sums = {row[4]: row[5] for row in page.rows if len(row) == 6 and row[4].endswith(".jsonl")}
    assert sums
    for name, digest in sums.items():
        assert hashlib.sha256((perflogs / name).read_bytes()).hexdigest() == digest
    texts = recompute.Page(path.read_text()).files
    for name in recompute.TABLES:
        row = next(row for row in page.rows if f"{name}.csv of this page" in row)
        assert row[-1] == hashlib.sha256(texts[name].encode()).hexdigest()


def test_the_sheet_has_the_decision_the_remarks_the_sessions_and_the_sum_of_the_script(winter):
    path, _ = winter
    page = read(winter)
    for words in ("accepted", "accepted with reservations", "refused"):
        assert any(len(row) == 3 and row[0] == words for row in page.rows)
    script = Path(recompute.__file__).read_bytes()
    row = next(row for row in page.rows if "recompute.py of this page" in row)
    assert row[-1] == hashlib.sha256(script).hexdigest()
    jobs = recomputed.rows_of(path.read_text(), "jobs")
    sessions = {job["session"] for job in jobs}
    listed = {row[0] for row in page.rows if len(row) == 4 and row[0] in sessions}
    assert sessions and listed == sessions


def test_times_on_the_sheet_are_to_the_minute_and_the_campaign_has_its_period(winter):
    page = read(winter)
    minute = r"\d{4}-\d\d-\d\d \d\d:\d\d"
    listed = [row for row in page.rows if len(row) == 4 and re.fullmatch(r"\d+T\S+", row[0])]
    assert listed
    for row in listed:
        assert all(re.fullmatch(f"{minute} UTC", time) for time in row[1:3])
    measured = rf"measured {minute}( to {minute})? UTC"
    assert re.search(rf"requirements?, those above; {measured}; suite", page.text)


def test_in_print_a_folded_table_says_where_its_rows_are(winter):
    assert "not printed: the values are in samples.csv of this page" in winter[0].read_text()


def test_a_criterion_leads_to_its_values_a_value_to_its_node_and_job(winter):
    text = winter[0].read_text()
    start = text.index('<table id="values-C-TRIAD">')
    table = text[start : text.index("</table>", start)]
    assert table.count("</tr>") == 17
    assert '<a href="#node-n003">n003</a>' in table
    jobs = recomputed.rows_of(text, "jobs")
    ids = {(job["job"], job["id"]) for job in jobs if job["check"] == "Stream"}
    assert set(re.findall(r'<a href="#job-(\d+)">(\d+)</a>', table)) == ids  # as 'why' has them
    assert text.count('href="#values-C-TRIAD"') >= 1
    assert '<tr role="row" id="job-1">' in text and '<tr id="node-n003">' in text
