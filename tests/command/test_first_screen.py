"""The page's first screen: its numbers add up, its names lead somewhere, and nothing is markup."""

import json
import re
from contextlib import closing

import fleets
import pytest
import years
from asked import ask
from pages import Page

from siteproof import sites
from siteproof.compare.published import results
from siteproof.record import samples
from siteproof.record.finding import NOT_KEPT
from siteproof.report import html, markdown, material
from siteproof.report.summary import begin

COUNT, RUNS = 16, 24
CRITERIA = """\
C-READ: {description: Random reads, metric: RandomIo.read, at_least: 300 MB/s,
  source: 'contract, 5', scope: every node, max_age: none}
C-HPL: {description: HPL on every node, metric: Hpl.gflops, at_least: 2300 GFLOPS,
  rounding: nearest 10 GFLOPS, source: 'contract, 4.1.1', scope: every node, max_age: none}
C-TRIAD: {description: Memory of every node, metric: Stream.triad, at_least: 165 GB/s,
  source: 'contract, 4.1.2', scope: every node, max_age: none}
C-UPTIME: {description: It is there, metric: Availability.overall, subject: system, at_least: 95 %,
  source: 'contract, 6'}
"""
WAIVERS = """\
W-ONE: {nodes: n004, waives: C-TRIAD, problem: fan, owner: A. Colleague, expires: 2099-01-01}
W-WRONG: {nodes: n006, waives: C-HPL, problem: bits, owner: A. Colleague, expires: 2098-01-01}
W-FINE: {nodes: n007, waives: C-TRIAD, problem: old, owner: A. Colleague, expires: 2099-01-01}
W-PART: {nodes: n003, waives: C-HPL, problem: fan, owner: A. Colleague, expires: 2099-01-01}
W-OLD: {nodes: n001, waives: all, problem: fan, owner: A. Colleague, expires: 2020-01-01}
"""
BASELINES = """\
system: here
B: {metric: Stream.triad, at_least: 181 GB/s, tolerance: 2 %, source: us, taken: 2026-01-01}
"""
PLAN = {
    "runs": RUNS,
    "metrics": ("Stream.triad", "Hpl.gflops", "RandomIo.read"),
    "steps": [
        years.Step("Stream.triad", 12, -0.12, ("n003", "n004")),
        years.Step("Hpl.gflops", 12, -0.04),
    ],
    "gaps": [
        years.Gap(RUNS - 1, RUNS - 1, ("n005",), "RandomIo.read", "timeout"),
        years.Gap(RUNS - 1, RUNS - 1, ("n006",), "Hpl.gflops", "invalid"),
    ],
    "changes": [years.Change(12, "kernel", "6.1.0-99")],
    "campaigns": {5: "spring", RUNS - 1: "winter"},
}


def world(folder, monkeypatch, count=COUNT, criteria=CRITERIA, **site):
    """A site and its data; the folder below which samples are kept."""
    fleets.write_site(folder / "sites", count, criteria=criteria, **site)
    (folder / "data" / "perflogs").mkdir(parents=True)
    for name, path in (("SITES", "sites"), ("DATA", "data"), ("CACHE", "cache")):
        monkeypatch.setenv(f"SITEPROOF_{name}", str(folder / path))
    return folder / "data" / "perflogs"


def made(system="here", chapters=("criteria", "nodes", "changes", "untested"), **keys):
    """The report with some of its chapters, and its page."""
    with pytest.MonkeyPatch.context() as patch, closing(material.gather(system, **keys)) as found:
        patch.setattr(begin, "CHAPTERS", chapters)
        built = begin.assemble(found)
        return built, html.page(built, found.now)


@pytest.fixture(scope="module")
def winter(tmp_path_factory):
    """A campaign with a slow node, a waived one, one that broke, and a step of the whole fleet."""
    folder = tmp_path_factory.mktemp("winter")
    with pytest.MonkeyPatch.context() as patch:
        years.write(world(folder, patch), nodes=COUNT, **PLAN)
        (folder / "sites/here/waivers.yaml").write_text(WAIVERS)
        (folder / "sites/here/baselines.yaml").write_text(BASELINES)
        answers = {
            name: json.loads(ask(name, "--json", "--campaign", "winter")[1])
            for name in ("verdict", "nodes", "gate")
        }
        answers["trend"] = json.loads(ask("trend", "--json")[1])
        yield *made(name="winter", chapters=begin.CHAPTERS), answers


def of(summary, start):
    """The numbers that are named so, together."""
    found = [card.number for card in summary.cards if card.label.startswith(start)]
    assert found, start
    return sum(found)


def answer(summary, column):
    """The rows of the answer that begins with this column, by column."""
    table = next(table for table in summary.answers if table.columns[0] == column)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def criteria_of(report):
    """The rows of the chapter on the criteria, by column."""
    (table,) = next(s for s in report.sections if s.name == "criteria").tables
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_the_cards_add_up_to_all_nodes_and_are_those_of_the_gate(winter):
    first, _, answers = winter
    cards = [card for card in first.summary.cards if card.of_nodes]
    assert sum(card.number for card in cards) == COUNT
    rulings = answers["gate"]["nodes"]
    assert of(first.summary, "back") == sum(one["back"] for one in rulings)
    for label, state in (("failed", "FAILED"), ("slow", "SLOW"), ("untested", "UNTESTED")):
        out = [one for one in rulings if not one["back"] and one["state"] == state]
        assert of(first.summary, label) == len(out), label


def test_changes_and_waivers_are_counted_as_by_the_commands(winter):
    first, _, answers = winter
    found = [*answers["trend"]["fleet"], *answers["trend"]["alerts"], *answers["trend"]["drifts"]]
    proven = [alert for alert in found if alert["open"] and not alert["provisional"]]
    assert of(first.summary, "change") == len(proven) > 0
    assert of(first.summary, "waiver in use") == 1


def test_each_waiver_is_named_once_with_what_it_excuses_or_why_not(winter):
    first, page, answers = winter
    card = next(card for card in first.summary.cards if card.label == "waiver in use")
    assert card.note == "the first ends 2099-01-01, 3 without effect, 1 expired"
    assert '<a href="#section-waivers">waiver in use</a>' in page
    rows = {row[0]: row[-1] for row in Page(page).rows if row and row[0].startswith("W-")}
    assert page.count("W-OLD") == 1
    assert rows["W-ONE"] == "excuses n004 from C-TRIAD; goes back into service: n004"
    wrong = "does not excuse the wrong answer of n006: wrong_answers does not name invalid"
    assert rows["W-WRONG"] == wrong
    assert rows["W-FINE"] == "nothing: its nodes miss nothing that it waives"
    assert rows["W-PART"].endswith("stays out for C-TRIAD, Stream.triad: n003")
    assert rows["W-OLD"] == "nothing: it has expired"
    (attached,) = (one.text for one in first.attached if one.name == "waivers.csv")
    assert [line.partition(",")[0] for line in attached.splitlines()[1:]] == [
        *("W-ONE", "W-WRONG", "W-FINE", "W-PART")
    ]
    back = {one["node"] for one in answers["gate"]["nodes"] if one["back"]}
    assert "n004" in back and not back & {"n003", "n006"}


def test_each_criterion_has_the_numbers_of_the_verdict(winter):
    first, _, answers = winter
    rows = criteria_of(first)
    assert set(rows) == {one["id"] for one in answers["verdict"]["criteria"]}
    for one in answers["verdict"]["criteria"]:
        row = rows[one["id"]]
        assert row["verdict"] == one["verdict"]
        counts = re.findall(r"(\d+) (passed|below baseline|failed|without a value)", row["counts"])
        assert sum(int(number) for number, _ in counts) == one["counts"]["expected"]
        for number, standing in counts:
            key = "no_value" if standing == "without a value" else standing.replace(" ", "_")
            assert int(number) == one["counts"][key]
        if worst := one["worst"]:
            begin = f"{worst['value']} {worst['unit']}, worst {worst['node']}"
            assert row["worst value"].startswith(begin)
            assert row["margin"].startswith("-") is (one["margin"] < 0)
            assert row["spread"].given.count("<title>") > 2
    assert "(from 2295)" in rows["C-HPL"]["required"]
    assert "2 failed n[003-004] (1 waived: n004)" in rows["C-TRIAD"]["counts"]
    assert 'class="baseline' in rows["C-TRIAD"]["spread"].given


def test_the_criteria_that_are_not_met_are_in_the_same_order_everywhere(winter):
    first, page, answers = winter
    bad = [(row["verdict"], row["not met"]) for row in answer(first.summary, "not met")]
    assert {verdict for verdict, _ in bad} <= set(NOT_KEPT)
    assert bad[-1] == ("ERROR", "C-READ")  # the first in criteria.yaml
    named = re.search(r"Not met: (.*?)\.\s*<", page)[1]
    assert {(verdict, name) for name, verdict in re.findall(r"(\S+) \((\w+)\)", named)} == set(bad)
    assert re.findall(r"\((\w+)\)", named) == [verdict for verdict, _ in bad]


def test_every_bar_of_a_spread_is_counted_once(winter):
    first, *_ = winter
    drawn = 0
    for name, row in criteria_of(first).items():
        bars = map(int, re.findall(r"<title>(\d+) at ", getattr(row["spread"], "given", "")))
        counts = re.findall(r"(\d+) (?:passed|below baseline|failed)\b", row["counts"])
        measured = sum(map(int, counts))
        measured -= name == "C-HPL"  # a wrong answer failed, and has no value
        found = sum(bars)
        assert found in (0, measured)
        drawn += found
    assert drawn


def test_there_is_a_cell_for_each_node(winter):
    first, page, _ = winter
    assert [cell.label.partition(":")[0] for cell in first.summary.cells] == fleets.names(COUNT)
    assert re.search(r'<a class="bad" title="n003: FAILED" href="#state-n003"', page)
    assert re.search(r'<a class="remark" title="n004: SLOW, back into service with a remark"', page)


def test_a_node_that_stays_out_has_its_reason_the_day_and_the_change_that_explains_it(winter):
    first, *_ = winter
    worse = answer(first.summary, "worse")
    step = next(row for row in worse if row["id"] and "n[003-004]" in row["where"])
    assert (step["worse"], step["since"]) == ("Stream.triad", "2025-12-03")
    assert "kernel: 6.1.0-12 -> 6.1.0-99" in step["details"]
    out = {row["nodes"]: row for row in answer(first.summary, "nodes")}
    slow = out["n003"]
    assert "C-TRIAD" in slow["why"] and slow["since"] == "2025-12-03"
    assert slow["change"].given == step["id"].given
    assert "timeout" in out["n005"]["why"]


def test_every_link_of_the_page_leads_somewhere_and_ids_are_single(winter):
    _, text, _ = winter
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    leads = {a.removeprefix("#") for a in page.addresses if a.startswith("#")}
    assert leads <= set(page.ids)
    for start in ("criterion-C-TRIAD", "node-n003", "change-", "figure-trend-"):
        assert any(lead.startswith(start) for lead in leads), start


def test_the_next_commands_are_named_with_system_and_campaign(winter):
    first, *_ = winter
    commands = [step.command for step in first.summary.steps]
    assert "siteproof why n003 --campaign winter --system here" in commands
    assert any(command.startswith("SITEPROOF_CAMPAIGN=winter reframe ") for command in commands)
    assert any(re.match(r"siteproof trend ack \w{6} --system here", text) for text in commands)
    # No partition of this site is run by Slurm, where the gate could keep nodes out.
    assert not any(command.startswith("siteproof gate") for command in commands)


def test_a_step_of_the_whole_fleet_has_its_day_and_what_changed_then(winter):
    first, *_ = winter
    rows = answer(first.summary, "worse")
    step = next(row for row in rows if row["worse"] == "Hpl.gflops" and row["id"])
    assert re.fullmatch(r"-[34]\.\d %", step["change"])
    assert step["since"] == "2025-12-03"
    assert step["details"].endswith(" GFLOPS; kernel: 6.1.0-12 -> 6.1.0-99")


def test_what_is_worse_since_the_last_time_is_named_once_and_what_is_older_is_counted(
    tmp_path, monkeypatch
):
    triad = (12, -0.12, ("n003",)), (40, -0.2, ("n005",))
    steps = [years.Step("Hpl.gflops", 40, -0.04), *(years.Step("Stream.triad", *s) for s in triad)]
    named = {"steps": steps, "campaigns": {30: "spring", 59: "winter"}}
    plan = {**PLAN, "runs": 60, "gaps": [], **named}
    years.write(world(tmp_path, monkeypatch), nodes=COUNT, **plan)
    *recent, older = answer(made(name="winter", chapters=("changes",))[0].summary, "worse")
    named = [(row["worse"], row["where"]) for row in recent]
    assert named == [("Hpl.gflops", "compute"), ("Stream.triad", "compute: n005")]
    assert all(row["id"] and row["since"] for row in recent)
    assert older["worse"] == "1 change before that, not acknowledged"
    assert older["where"] == "Stream.triad of compute: n003" and older["id"].given
    past = answer(made(name="spring", chapters=("changes",))[0].summary, "worse")
    assert [row["where"] for row in past] == ["Stream.triad of compute: n003"]


def test_what_was_not_tested_comes_last_and_the_criteria_first(winter):
    first, *_ = winter
    names = [section.name for section in first.sections]
    assert names[0] == "criteria"
    assert names[-1] == "untested"


def test_markdown_has_the_numbers_of_the_first_screen(winter):
    first, *_ = winter
    text = markdown.page(first, years.BEGIN)
    for card in first.summary.cards:
        assert f"| {card.number} | {card.label}" in text
    for row in answer(first.summary, "not met"):
        assert row["not met"] in text and row["margin"] in text
    for step in first.summary.steps:
        assert f"    {step.command}" in text


@pytest.mark.parametrize("racks", [False, True])
def test_a_large_fleet_is_folded_and_its_cells_hold_all_nodes(tmp_path, monkeypatch, racks):
    names = fleets.names(1200)
    more = ""
    if racks:
        parts = [
            f"  r{n:02}: '{names[40 * n]},{','.join(names[40 * n + 1 : 40 * n + 40])}'"
            for n in range(30)
        ]
        more = "groups:\n" + "\n".join(parts) + "\n"
    criteria = CRITERIA[CRITERIA.index("C-HPL") : CRITERIA.index("C-UPTIME")]
    perflogs = world(tmp_path, monkeypatch, 1200, criteria, more=more)
    steps = [years.Step("Stream.triad", 1, -0.3, names[100:103])]
    years.write(perflogs, nodes=1200, runs=2, metrics=("Stream.triad", "Hpl.gflops"), steps=steps)
    built, text = made(chapters=("nodes",))
    cells = built.summary.cells
    assert len(cells) == (30 if racks else 60 * 4)
    held = [int(n) for cell in cells for n in re.findall(r"(\d+) (?:back|failed)", cell.label)]
    assert sum(held) == 1200
    (bad,) = [cell for cell in cells if cell.look == "bad"]
    assert bad.number == 3 and "3 failed" in bad.label
    assert bad.label.startswith("r02:") is racks
    assert len(Page(text).ids) < 100


def test_published_values_alone_begin_with_those_and_no_red_word(tmp_path, monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    path = sites.folder() / "jetstream-tacc" / "published.csv"
    results.keep(path, results.read_published(path).values(), tmp_path / "perflogs")
    built, text = made("jetstream-tacc", ("untested",))
    summary = built.summary
    assert summary.mark == "PUBLISHED"
    assert (summary.cards[0].number, summary.cards[0].label) == (120, "published values and texts")
    assert not (summary.cells or summary.answers or summary.sentence)
    begin = text[text.index("<header") : text.index('id="section-untested"')]
    assert 'class="word bad"' not in begin and 'class="verdict open"' in begin


def test_without_any_sample_all_nodes_are_not_tested(tmp_path, monkeypatch):
    world(tmp_path, monkeypatch)
    built, _ = made()
    assert of(built.summary, "untested") == COUNT
    assert built.summary.when == "nothing was measured here"


def test_a_broken_note_on_changes_leaves_all_other_numbers(tmp_path, monkeypatch):
    perflogs = world(tmp_path, monkeypatch)
    years.write(perflogs, nodes=COUNT, **PLAN | {"runs": 2, "campaigns": {}, "gaps": ()})
    (perflogs / "here" / "trend").mkdir()
    (perflogs / "here/trend/20251130T100000.000000Z.json").write_text("{")
    built, text = made(chapters=("criteria", "nodes"))
    assert sum(card.number for card in built.summary.cards if card.of_nodes) == COUNT
    assert re.search(r"This cannot be answered: \S+/trend/20251130T100000", Page(text).text)


def test_no_name_or_text_of_others_becomes_markup(tmp_path, monkeypatch):
    hostile = '"><script>alert(1)</script>{{ 7 * 7 }}'
    criteria = CRITERIA.replace("Memory of every node", json.dumps(hostile))
    criteria = criteria.replace("'contract, 5'", json.dumps(hostile))
    perflogs = world(tmp_path, monkeypatch, criteria=criteria)
    changes = [years.Change(12, "kernel", hostile)]
    years.write(perflogs, nodes=COUNT, **PLAN | {"changes": changes})
    head = fleets.header(400, "Health", job="9")
    samples.write(
        perflogs, head, [fleets.broken("n001", "timeout", 400, hostile, "Health", job="9")]
    )
    built, text = made()
    page = Page(text)
    assert [tag for tag, _ in page.tags].count("script") == 1  # the page's own
    assert page.text.count(hostile) >= 3
    assert hostile not in markdown.page(built, years.BEGIN)
