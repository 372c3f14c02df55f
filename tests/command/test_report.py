"""The report of a made-up fleet: each question that a reader asks is answered on the page."""

import json
import os
import re
from contextlib import closing
from datetime import UTC, datetime

import fleets
import pytest
import years
from click.testing import CliRunner
from clone import TOP
from pages import Page

from siteproof import sites
from siteproof.cli.report import report
from siteproof.compare.comparison import Comparison
from siteproof.compare.published import results
from siteproof.errors import UserError, UserErrors
from siteproof.record import samples
from siteproof.report import CHAPTERS, html, markdown, material
from siteproof.report.chapters import changes
from siteproof.report.summary import begin
from siteproof.verdict import judgement

CHAPTERS_FOLDER = TOP / "siteproof/report/chapters"
CRITERIA = """\
C-HPL: {description: HPL on every node, metric: Hpl.gflops, at_least: 2200 GFLOPS,
  rounding: nearest 10 GFLOPS, source: 'contract, 4.1.1', scope: every node, max_age: none}
C-TRIAD: {description: Memory of every node, metric: Stream.triad, at_least: 165 GB/s,
  source: 'contract, 4.1.2', scope: every node, max_age: none}
C-READ: {description: Random reads, metric: RandomIo.read, at_least: 300 MB/s,
  source: 'contract, 5', scope: every node, max_age: none}
C-UPTIME: {description: It is there, metric: Availability.overall, subject: system, at_least: 95 %,
  source: 'contract, 6'}
"""
RUNS, NODES = 24, 16
MODULES = {path.stem: path.read_text() for path in CHAPTERS_FOLDER.glob("[a-z]*.py")}
PLOTS = re.compile(r"siteproof\.report\.figure import|figure\.style|figure\.line_plot")
SMALL = ("criteria",)  # whose figures are small ones in a cell
TEXTS = tuple(name for name in CHAPTERS if name in SMALL or not PLOTS.search(MODULES[name]))
HPL = {"n": "180000", "nb": "192", "p": "8", "q": "6", "blas": "openblas", "memory_share": "0.9412"}


def world(folder, monkeypatch, count=NODES, criteria=CRITERIA, more=""):
    """A site and its data; the folder below which samples are kept."""
    fleets.write_site(folder / "sites", count, criteria=criteria, more=more)
    (folder / "data" / "perflogs").mkdir(parents=True)
    for name, path in (("SITES", "sites"), ("DATA", "data"), ("CACHE", "cache")):
        monkeypatch.setenv(f"SITEPROOF_{name}", str(folder / path))
    return folder / "data" / "perflogs"


def write(perflogs, **keys):
    """A campaign in spring and one in winter, in which n003 is slow and n005 has no reads."""
    plan = {
        "nodes": NODES,
        "runs": RUNS,
        "metrics": ("Stream.triad", "Hpl.gflops", "RandomIo.read"),
        "steps": [years.Step("Stream.triad", 12, -0.12, ("n003",))],
        "gaps": [years.Gap(RUNS - 1, RUNS - 1, ("n005",), "RandomIo.read", "timeout")],
        "changes": [years.Change(0, key, text, "conditions", "Hpl") for key, text in HPL.items()]
        + [years.Change(12, "kernel", "6.1.0-99")],
        "campaigns": {5: "spring", RUNS - 1: "winter"},
    }
    years.write(perflogs, **plan | keys)


@pytest.fixture(autouse=True)
def texts(monkeypatch):
    """Most tests look at no figure, and figures take most of a report's time."""
    monkeypatch.setattr(begin, "CHAPTERS", TEXTS)


def test_the_page_has_every_chapter_of_the_folder_and_some_have_no_figure():
    assert set(MODULES) == set(CHAPTERS)
    assert {"criteria", "results"} <= set(TEXTS) < set(CHAPTERS)


def made(**keys):
    found = material.gather("here", **keys)
    try:
        return begin.assemble(found), found
    finally:
        found.close()


@pytest.fixture(scope="module")
def winter(tmp_path_factory):
    """The report on the campaign in winter, as a page and as Markdown."""
    with pytest.MonkeyPatch.context() as patch:
        write(world(tmp_path_factory.mktemp("winter"), patch))
        built, found = made()
        yield Page(html.page(built, found.now)), markdown.page(built, found.now)


def test_it_says_at_once_whether_it_passed(winter):
    page, text = winter
    begin = page.text[: page.text.index("Criteria")]
    assert "FAIL 1 FAIL, 1 ERROR, 1 INCOMPLETE, 1 PASS of 4" in begin
    assert "campaign winter" in begin
    assert "16 of 16 nodes" in begin
    assert "0123456789ab" in page.text
    answer = page.lead("criteria")
    assert "C-TRIAD (FAIL)" in answer
    assert "C-READ (ERROR)" in answer
    assert text.startswith("# here: FAIL")


def test_it_says_which_nodes_stay_out_and_why(winter):
    assert winter[0].lead("nodes") == "2 of 16 nodes stay out."
    table = winter[0].text.rpartition("Nodes that stay out (2)")[2]
    assert re.search(r"n003\b.{1,9}FAILED.{1,20}C-TRIAD", table)
    assert re.search(r"n005\b.{1,9}FAILED.{1,20}RandomIo: no value: timeout: planted", table)


def test_it_says_what_got_worse_since_the_last_time(winter):
    answer = winter[0].lead("changes")
    assert answer.startswith("Compared with campaign spring of 2025-11-26 02:15 UTC: ")
    assert "worse for the whole fleet: 0 of" in answer
    assert " single nodes fell in 1. " in answer
    assert re.search(r"Stream\.triad.* n003 -1[123]\.\d %", winter[0].text)
    assert "kernel: 6.1.0-12 \N{RIGHTWARDS ARROW} 6.1.0-99" in winter[0].text


def test_it_names_the_sessions_that_it_compares_with_an_earlier_one(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch)
    plan = {"nodes": NODES, "campaigns": {}, "gaps": ()}
    write(perflogs, **plan, runs=6)
    write(perflogs, **plan, runs=7, first=6, metrics=("Stream.triad",))
    built, found = made()
    page = Page(html.page(built, found.now))
    assert len(found.names) == 2
    answer = page.lead("changes")
    before, own = answer.split(":", 1)[0], [years.session_of(n) for n in (5, 6)]
    assert f"session {years.session_of(4)}" in before
    assert all(name in answer for name in own)


def test_a_table_without_a_change_is_left_out():
    assert not changes._metrics(None, Comparison()).rows


def test_it_says_what_was_not_tested(winter):
    answer = winter[0].lead("untested")
    assert "1 node lacks some value (n005)" in answer
    assert "1 criterion (C-UPTIME)" in answer
    assert "system.yaml has no probes" in winter[0].text
    assert "sweeps of the suite" in answer


def test_it_says_under_which_conditions_hpl_was_run(winter):
    answer = winter[0].lead("conditions")
    for told in (
        "maintenance",
        "environment system",
        "16 nodes",
        "problem size N 180000",
        "block size NB 192",
        "process rows P 8",
        "94.12 %",
        "BLAS openblas",
        "xhpl",
        "2025-12-14 02:15 UTC",
    ):
        assert told in answer, told


def test_each_criterion_has_its_bound_its_paragraph_and_its_worst_value(winter):
    row = next(row for row in winter[0].rows if row[0] == "C-TRIAD" and len(row) > 6)
    assert "FAIL" in row[1]
    assert "Stream.triad >= 165 GB/s; every node" in row[3]
    assert row[4].endswith("by stream")
    assert row[5] == "-3.9 %"
    assert re.search(r"stream on n003: 1\d{5}\S* MB/s$", row[7])  # as the tool printed it
    assert row[6] == "15 passed; 1 failed n003"
    assert row[9].endswith(" d")
    assert row[10] == "contract, 4.1.2"


def test_the_page_is_whole_and_its_links_lead_somewhere(winter):
    page, _ = winter
    assert len(page.ids) == len(set(page.ids))
    carried = ("data:image/png;", "data:text/csv;", "data:text/plain;")
    leads = {a.removeprefix("#") for a in page.addresses if not a.startswith(carried)}
    assert leads <= set(page.ids)
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))


def test_markdown_says_what_the_page_says(winter):
    page, text = winter
    plain = " ".join(re.sub(r"\\(.)", r"\1", text).split())
    for name in ("nodes", "untested", "changes", "conditions"):
        assert page.lead(name).replace("\N{RIGHTWARDS ARROW}", "->") in plain


def test_no_figure_has_more_digits_than_a_tool_prints(winter):
    assert re.search(r"\d\.\d{9}", winter[0].text) is None


def test_without_any_sample_the_page_says_so(tmp_path, monkeypatch):
    world(tmp_path, monkeypatch)
    built, found = made()
    page = Page(html.page(built, found.now))
    assert built.summary.mark == "INCOMPLETE"
    assert "No node of 16 was measured" in page.lead("nodes")
    assert "Nothing was measured" in page.lead("changes")
    assert "HPL was not run" in page.lead("conditions")
    assert "16 nodes lack some value (n[001-016])" in page.lead("untested")


def test_before_the_first_run_there_is_no_folder_of_samples_and_yet_a_page(tmp_path, monkeypatch):
    world(tmp_path, monkeypatch).rmdir()
    assert made()[0].summary.mark == "INCOMPLETE"


def test_without_any_criterion_the_newest_run_is_shown(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch, criteria="{}\n")
    write(perflogs, campaigns={})
    years.write(
        perflogs, nodes=NODES, runs=RUNS + 1, first=RUNS, mode="quick", metrics=("Stream.triad",)
    )
    built, found = made()
    page = Page(html.page(built, found.now))
    assert built.summary.mark == "ERROR"  # by a check that failed
    assert found.judged.chosen == f"session {years.session_of(RUNS - 1)}"  # the quick one is newer
    assert "no metric was measured both times" not in page.lead("changes")
    assert "HPL (maintenance" in page.lead("conditions")


def test_of_one_session_without_history_there_is_nothing_to_compare(tmp_path, monkeypatch):
    write(world(tmp_path, monkeypatch), runs=1, steps=(), gaps=(), campaigns={})
    built, found = made()
    page = Page(html.page(built, found.now))
    assert "There is no earlier measurement" in page.lead("changes")
    assert page.lead("nodes") == "0 of 16 nodes stay out."


def test_a_site_that_promises_nothing_passes_nothing(tmp_path, monkeypatch):
    world(tmp_path, monkeypatch, criteria="{}\n")
    built, found = made()
    assert built.summary.mark == "UNDECIDED"
    assert "The site has no criteria" in Page(html.page(built, found.now)).lead("criteria")


def test_alike_reasons_are_one_line_with_the_least_and_the_largest_figure(tmp_path, monkeypatch):
    write(
        world(tmp_path, monkeypatch),
        gaps=(),
        steps=[years.Step("Stream.triad", 12, -0.12, ("n003", "n004", "n005", "n006"))],
    )
    built, _ = made()
    rows = next(s for s in built.sections if s.name == "nodes").tables[0].rows
    assert [row[0] for row in rows] == ["n[003-006]"]
    assert re.search(r"Stream\.triad.*: \d+ to \d+ GB/s ", rows[0][4])


def test_a_figure_that_the_whole_fleet_lost_is_told_with_its_size(tmp_path, monkeypatch):
    write(
        world(tmp_path, monkeypatch),
        steps=[years.Step("Hpl.gflops", 12, -0.08)],
        changes=[years.Change(12, "kernel", "6.1.0-99")],
    )
    built, found = made()
    page = Page(html.page(built, found.now))
    answer = page.lead("changes")
    assert "worse for the whole fleet: 1 of 3 metrics" in answer
    assert "1 open change for the worse" in answer
    worse = next(s for s in built.sections if s.name == "changes").tables[0].rows[0]
    assert (*worse[:3], worse[7]) == ("worse", "Hpl.gflops", "compute", "16")


def test_what_was_accepted_is_the_last_time(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch)
    write(perflogs)
    record = {
        "siteproof": 1,
        "name": "third",
        "sessions": [years.session_of(3)],
        "who": "Ann",
        "why": "new <b>",
        "when": "2025-11-30T10:00:00+00:00",
        "verdicts": {"PASS": 3},
        "suite": ["0123"],
        "despite": [],
    }
    (perflogs / "here" / "accepted").mkdir()
    (perflogs / "here/accepted/20251130T100000.000000Z.json").write_text(json.dumps(record))
    built, found = made()
    page = Page(html.page(built, found.now))
    answer = page.lead("changes")
    assert answer.startswith("Compared with third, accepted by Ann on 2025-11-30 10:00 UTC")
    assert "new <b>" in page.text


def test_a_broken_record_of_one_chapter_leaves_the_others(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch)
    write(perflogs, runs=2)
    (perflogs / "here" / "accepted").mkdir()
    (perflogs / "here/accepted/20251130T100000.000000Z.json").write_text("{")
    built, found = made()
    told = {s.name: s.lead for s in built.sections}
    assert told["timeline"].startswith("This chapter could not be made: ")
    assert "T100000.000000Z.json: broken JSON" in told["timeline"]
    assert told["nodes"].endswith("nodes stay out.")
    page = Page(html.page(built, found.now))
    assert "This cannot be answered" in page.text
    assert page.text.count("could not be made") == 2  # the chapters that need the record
    assert "HPL (maintenance" in page.lead("conditions")


@pytest.mark.skipif(not material.spare_processor(), reason="one processor")
def test_what_another_process_finds_is_what_would_be_found_here(tmp_path, monkeypatch):
    class Stopped(datetime):
        """Both reports are of one moment, however long the first one takes."""

        moment = datetime.now(UTC)

        @classmethod
        def now(cls, tz=None):
            return cls.moment.astimezone(tz)

    for module in (material, judgement):
        monkeypatch.setattr(module, "datetime", Stopped)
    monkeypatch.setattr(begin, "CHAPTERS", CHAPTERS)
    write(world(tmp_path, monkeypatch))
    here, _ = made()
    monkeypatch.setattr(material, "MANY_JOBS", 0)
    there, found = made()
    assert found._search is not None
    assert here.sections == there.sections


@pytest.mark.skipif(not material.spare_processor(), reason="one processor")
def test_the_mistake_that_ends_another_process_is_reported(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch)
    write(perflogs, runs=2)
    (perflogs / "here" / "trend").mkdir()
    (perflogs / "here/trend/20251130T100000.000000Z.json").write_text("{")
    monkeypatch.setattr(material, "MANY_JOBS", 0)
    built, _ = made()
    told = next(s for s in built.sections if s.name == "changes").lead
    assert "trend/20251130T100000.000000Z.json" in told


def test_a_broken_old_file_is_left_out_and_named(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch)
    write(perflogs)
    old = next(perflogs.rglob(f"{years.session_of(9)}.Hpl.*.jsonl"))
    old.write_text(old.read_text() + "{broken\n")
    built, _ = made()
    part = next(s for s in built.sections if s.name == "changes").sections[0]
    assert [point for point in part.points if f"{old.name}:{NODES + 2}: broken line" in point]


def test_what_tools_and_people_wrote_is_shown_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(begin, "CHAPTERS", CHAPTERS)
    text = '<script>alert("1")</script>|{{ 2 * 3 }}'
    criteria = CRITERIA.replace("Memory of every node", json.dumps(text))
    perflogs = world(tmp_path, monkeypatch, criteria=criteria)
    write(
        perflogs,
        runs=2,
        changes=[
            years.Change(0, "blas", text, "conditions", "Hpl"),
            years.Change(0, "kernel", text),
        ],
    )
    samples.write(
        perflogs,
        fleets.header(400, "Health", job="9"),
        [fleets.broken("n001", "timeout", 400, text, "Health", job="9")],
    )
    built, found = made(since="2025-01-01")
    page = Page(html.page(built, found.now))
    assert [tag for tag, _ in page.tags].count("script") == 1  # the page's own
    assert page.text.count(text) >= 4
    assert text not in markdown.page(built, found.now)


def test_of_published_figures_alone_it_says_that_nothing_was_measured(tmp_path, monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    path = sites.folder() / "jetstream-tacc" / "published.csv"
    results.keep(path, results.read_published(path).values(), tmp_path / "perflogs")
    found = material.gather("jetstream-tacc")
    with closing(found):
        built = begin.assemble(found)
    page = Page(html.page(built, found.now))
    assert built.summary.mark == "PUBLISHED"
    assert page.text.index("nothing was measured here") < page.text.index("FAIL")
    assert "by published values: 2 FAIL" in page.text
    assert "0 of 513 nodes" in page.text
    stated = "120 values and texts of 2016-02-24 to 2016-08, by PTI-TR16-005;"
    assert page.lead("results").startswith(stated)
    assert "its value is published" in page.lead("conditions")
    shown = [s.name for s in built.sections]
    assert {"timeline", "results"} <= set(shown)
    assert shown == [name for name in CHAPTERS if name in shown]


def test_the_file_is_named_and_is_whole(tmp_path, monkeypatch):
    write(world(tmp_path, monkeypatch), runs=2)
    for name in ("page.html", "page.md"):
        done = CliRunner().invoke(report, ["--system", "here", "--output", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert name in done.output
        assert " 0.0 MB" not in done.output
    assert (tmp_path / "page.html").read_text().endswith("</html>")
    assert (tmp_path / "page.md").read_text().startswith("# here")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(report, ["--system", "here"])
    session = max(tmp_path.rglob("*.jsonl")).name.split(".")[0]
    day = f"{session[:4]}-{session[4:6]}-{session[6:8]}"  # of the newest value, and not of today
    assert done.stdout.startswith(f"here-{day}-{session}.html: ")
    assert {p.name for p in tmp_path.glob("*.html")} == {"page.html", done.stdout.split(":")[0]}
    assert [p for p in tmp_path.iterdir() if p.name.endswith(".tmp")] == []
    done = CliRunner().invoke(report, ["--system", "here", "--as-of", "2026-03-04"])
    assert done.stdout.startswith("here-2026-03-04")  # the other page stays as it is


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_page_of_a_colleague_is_not_replaced(tmp_path, monkeypatch):
    write(world(tmp_path, monkeypatch), runs=2)
    monkeypatch.chdir(tmp_path)
    page = tmp_path / CliRunner().invoke(report, ["--system", "here"]).stdout.split(":")[0]
    os.chown(page, 65534, -1)
    done = CliRunner().invoke(report, ["--system", "here"])
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == (
        f"{page.name}: exists and belongs to nobody. --output FILE names another file."
    )
    assert CliRunner().invoke(report, ["--system", "here", "--output", page.name]).exit_code == 0


def test_a_page_of_a_campaign_has_its_name(tmp_path, monkeypatch):
    write(world(tmp_path, monkeypatch), runs=2, campaigns={1: "winter 2026/1"})
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(report, ["--system", "here", "--campaign", "winter 2026/1"])
    assert re.match(r"here-\d{4}-\d\d-\d\d-winter_2026_1\.html: ", done.stdout), done.exception


NO_PAGE = {
    "page.pdf": "FILE.html, FILE.md",
    "no/page.html": "a file in an existing folder",
    "data/": "a file",
    "some.html": "a file",
}


def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    world(tmp_path, monkeypatch)
    (tmp_path / "some.html").mkdir()
    monkeypatch.chdir(tmp_path)
    for output, allowed in NO_PAGE.items():
        done = CliRunner().invoke(report, ["--system", "here", "--output", output])
        assert isinstance(done.exception, UserError), output
        assert str(done.exception).endswith(f"Allowed: {allowed}."), output


def test_an_earlier_page_stays_where_a_new_one_cannot_be_made(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch)
    write(perflogs, runs=2)
    (tmp_path / "page.html").write_text("before")
    with max(perflogs.rglob("*.Stream.*.jsonl")).open("a") as newest:
        newest.write("{")
    done = CliRunner().invoke(report, ["--system", "here", "--output", str(tmp_path / "page.html")])
    assert isinstance(done.exception, UserErrors)
    assert (tmp_path / "page.html").read_text() == "before"


def test_an_unknown_campaign_is_a_mistake(tmp_path, monkeypatch):
    write(world(tmp_path, monkeypatch), runs=2)
    done = CliRunner().invoke(report, ["--system", "here", "--campaign", "summer"])
    assert isinstance(done.exception, UserError)
    assert "summer" in str(done.exception)
