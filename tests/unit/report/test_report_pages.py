"""Pages made of sections: what is on them, and what no hostile text can put there."""

import base64
import hashlib
import re
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from pages import Page

from siteproof.gate.decision import Ruling
from siteproof.record import finding
from siteproof.record.finding import Kind
from siteproof.report import html, markdown
from siteproof.report.chapters import nodes, samples, untested
from siteproof.report.sections import Figure, Link, Place, Report, Section, Table, limited_points
from siteproof.report.summary import Step, Summary

NOW = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
SVG = (
    '<svg role="img" '
    'xmlns="http://www.w3.org/2000/svg"><title id="t">A title</title><defs><path id="p" '
    'd="M0 0"/></defs><g clip-path="url(#p)"><use href="#p"/></g></svg>'
)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b `c` *d* _e_ [f](g)",
    "{{ 7 * 7 }}",
    "]]><!--",
    "</style><b>",
    "\\u001b[31m",
    "https://example.org/x",
    "&lt;",
)


def figure(name="curve", **keys):
    return Figure(
        name,
        "A figure",
        SVG,
        "3 values in MB/s.",
        Table(("node", "MB/s"), [("n001", "100")], numeric=("MB/s",)),
        **keys,
    )


def report(*sections, system="here", **parts):
    first = Summary("campaign winter", "now", "1 of 1 nodes", "", "FAIL", "1 FAIL of 1", **parts)
    return Report(system, first, sections)


def pages(made):
    return html.page(made, NOW), markdown.page(made, NOW)


def read(made):
    return Page(html.page(made, NOW))


def test_every_hostile_text_is_shown_as_it_is():
    for text in HOSTILE:
        table = Table((text, "b"), [(text, text)], text, title=text)
        made = report(
            Section(
                "one",
                text,
                text,
                [table],
                points=[text],
                figures=[Figure("f", text, SVG, text, table)],
            ),
            system=text,
        )
        page = read(made)
        assert page.text.count(" ".join(text.split())) >= 9, text
        assert [tag for tag, _ in page.tags if tag in ("script", "img")] == ["script"]  # its own
        assert not any(name.startswith("on") for _, held in page.tags for name in held)


def test_hostile_texts_are_no_markup_in_markdown():
    for text in HOSTILE:
        plain = markdown.text(text)
        assert not re.search(r"(?<!\\)[`*_\[\]<>|]", plain), plain
        assert "https:" not in plain


def test_a_cell_with_a_bar_or_a_line_break_does_not_end_its_row():
    made = report(Section("one", "One", "", [Table(("a", "b"), [("1|2\n3", "4")])]))
    assert r"| 1\|2 3 | 4 |" in markdown.page(made, NOW)


def test_the_page_asks_for_no_other_file_and_runs_its_own_script_only():
    text, _ = pages(report(Section("one", "One", "", figures=[figure()])))
    page = Page(text)
    assert all(address.startswith("#") for address in page.addresses)
    assert "@import" not in text
    assert not re.search(r"url\((?![\"']?#)", text)
    assert not {"link", "iframe", "object"} & {tag for tag, _ in page.tags}
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in text
    assert "http" not in script and "innerHTML" not in script


def test_ids_are_single_and_every_link_leads_somewhere():
    page = read(
        report(
            Section(
                "one", "One", "", [Table(("a", "see"), [("1", Link([("", "Stream.triad")], "-"))])]
            ),
            Section("two", "Two", "", figures=[figure("f", metrics=["Stream.triad"]), figure("g")]),
        )
    )
    assert len(page.ids) == len(set(page.ids))
    assert {a.removeprefix("#") for a in page.addresses} <= set(page.ids)
    assert "#figure-f" in page.addresses


def test_headings_are_in_order_and_numbered():
    deep = Section("a", "A", "", sections=[Section("b", "B", "", sections=[Section("c", "C", "")])])
    page = read(report(deep, Section("d", "D", "")))
    assert page.headings == [(1, "here"), (2, "1 A"), (3, "1.1 B"), (4, "1.1.1 C"), (2, "2 D")]


def test_no_line_begins_with_the_comma_between_two_links():
    links = html.places([Place("Figure 5", "a"), Place("Figure 7", "b")])
    assert links == '<a href="#a">Figure 5,</a> <a href="#b">Figure 7</a>'


def test_tables_say_whose_cells_they_are_and_figures_have_theirs():
    page = read(report(Section("one", "One", "", [Table(("a", "b"), [("1", "2")])], [figure()])))
    scopes = [held["scope"] for tag, held in page.tags if tag == "th"]
    assert scopes == ["col", "col", "row"] * 2
    tags = [tag for tag, _ in page.tags]
    assert tags.index("figcaption") < tags.index("svg") < tags.index("details")
    assert "Figure 1. A figure. 3 values in MB/s." in page.text


def test_a_verdict_is_told_in_words_and_by_a_mark():
    page = read(report(Section("one", "One", "", [Table(("a", "b"), [("x", "FAILED")])])))
    assert "\N{BALLOT X} FAIL 1 FAIL of 1" in page.text
    assert page.rows[-1] == ["x", "\N{BALLOT X} FAILED"]


def test_one_click_selects_the_whole_path_and_checksum_of_a_job():
    table = Table(samples.JOBS, [["x"] * len(samples.JOBS)])
    page, _ = pages(report(Section("s", "S", "", [table])))
    for column in samples.JOBS[-2:]:
        assert f'[data-of="{column}"] > span' in page.partition("user-select")[0]
        assert f'data-of="{column}"><span>' in page


def test_one_row_is_counted_in_the_singular():
    one = Figure("one", "Title", "<svg></svg>", "Caption", Table(("a",), [("1",)]))
    page, _ = pages(report(Section("s", "S", "", figures=[one])))
    assert "as a table (1 row)" in page


def test_columns_that_hold_and_refer_to_nothing_are_left_out():
    table = Table(
        ("a", "none", "see"), [("1", "-", Link([("", "Hpl.gflops")], "-")), ("2", "", "-")]
    )
    for text in pages(report(Section("one", "One", "", [table]))):
        assert "none<" not in text
        assert "| none" not in text


def test_a_next_step_that_needs_no_words_has_no_empty_comment():
    steps = (Step("siteproof why C-1", ""), Step("siteproof why n001", "all that is known of it"))
    text = markdown.page(report(steps=steps), NOW)
    assert "    siteproof why C-1\n" in text
    assert "    siteproof why n001  # all that is known of it\n" in text


def test_both_pages_say_the_same():
    table = Table(("node", "why"), [("n[001-003]", "C-X: is 1.5 MB/s, asked 2 -> 3")], "A note.")
    made = report(Section("one", "One", "A lead.", [table], [figure()], ["A point."]))
    page, text = read(made), markdown.page(made, NOW)
    plain = re.sub(r"\\(.)", r"\1", text)
    told = [" ".join(cell.split()) for row in page.rows for cell in row]
    for words in (*told, "A lead.", "A note.", "A point.", "3 values in MB/s.", "1 One"):
        assert words.replace("\N{RIGHTWARDS ARROW}", "->") in plain, words


def test_the_running_head_of_the_print_holds_any_name():
    text = html.page(report(system='a"; } body { display: none'), NOW)
    style = text[text.index("<style>") : text.index("</style>")]
    assert re.search(r"\}\s*body \{ display", style) is None
    assert style.count('"') % 2 == 0


def test_a_row_of_another_length_is_refused():
    made = report(Section("one", "One", "", [Table(("a", "b"), [("1",)])]))
    for page in (html.page, markdown.page):
        with pytest.raises(ValueError, match="shorter"):
            page(made, NOW)


def test_the_same_report_is_the_same_page():
    made = report(Section("one", "One", "", figures=[figure()]))
    assert pages(made) == pages(made)


def test_of_many_lines_and_rows_those_that_are_left_out_are_counted():
    lines = [f"line {n}" for n in range(8)]
    assert limited_points(lines, 5) == [*lines[:5], "Lines left out: 3"]
    assert limited_points(lines, 8) == lines
    rows, ids = [(line,) for line in lines], [f"id-{line[-1]}" for line in lines]
    whole = Table(("a",), rows, "A note.", ids=ids, most=5, command="siteproof nodes")
    left = "A note. Rows left out: 3; 'siteproof nodes' prints all of them."
    assert (whole.limited.rows, whole.limited.note) == (rows[:5], left)
    assert whole.limited.ids == ids[:5]
    page = read(report(Section("one", "One", "", [whole])))
    assert left in page.text and "line 4" in page.text and "line 5" not in page.text
    assert "id-4" in page.ids and "id-5" not in page.ids
    assert Table(("a",), [("b",)], most=5).limited.note == ""


def test_a_table_without_rows_is_not_shown_and_nothing_leads_to_it():
    empty = Table(("a", "b"), [], "A note.", title="A title", name="here")
    lead = Table(("c", "d"), [(Link([("x", "here")]), "y")])
    for text in pages(report(Section("one", "One", "", [empty, lead]))):
        assert "A title" not in text and "A note." not in text
        assert 'id="here"' not in text and '"#here"' not in text and "(#here)" not in text


def test_nodes_with_findings_that_differ_only_in_numbers_are_one_group():
    rulings = [
        Ruling(node, "FAILED", False, (finding.of(kind, check="Health", metric=metric, value=n),))
        for node, kind, metric, n in (
            ("n1", Kind.MISSES_BOUND, "Health.errors", "3"),
            ("n2", Kind.MISSES_BOUND, "Health.errors", "5"),
            ("n3", Kind.MISSES_BOUND, "Health.faults", "5"),
            ("n4", Kind.BELOW_BASELINE, "Health.errors", "3"),
        )
    ]
    assert [group.nodes for group in nodes.alike(rulings)] == [["n1", "n2"], ["n3"], ["n4"]]


def test_untested_nodes_are_grouped_by_the_fields_of_their_findings():
    states = {
        name: SimpleNamespace(node=name, untested=True, findings=[found])
        for name, found in (
            ("n1", finding.of(Kind.TOO_OLD, {"age": 90000, "limit": 3600}, check="Hpl")),
            ("n2", finding.of(Kind.TOO_OLD, {"age": 99000, "limit": 3600}, check="Hpl")),
            ("n3", finding.of(Kind.NOT_MEASURED, check="Hpl")),
            ("n4", finding.of(Kind.NOT_MEASURED, check="Stream")),
        )
    }
    found = list(untested._nodes(SimpleNamespace(fleet=SimpleNamespace(nodes=states))))
    assert [row[:2] for row in found] == [("n[1-2]", "2"), ("n3", "1"), ("n4", "1")]
