"""The program that a page carries applies bound and rounding again, and agrees with the page."""

import ast
import csv
import io
import os
import random
import re
import subprocess
import sys
import tokenize
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache

import pytest
import recomputed
from clone import TOP
from hypothesis import given
from hypothesis import strategies as st
from random_cases import cases, rounds
from test_agreement import KINDS, criterion, decimal_text, site
from test_agreement_pairs import criterion as of_pairs
from test_agreement_pairs import net as net
from test_agreement_pairs import promised, ways

from siteproof.record.samples import Header, Sample
from siteproof.report import html, recompute, value_tables
from siteproof.report.sections import Attached, Report
from siteproof.report.summary import Summary
from siteproof.sites import Baseline, Waiver
from siteproof.units import RULES
from siteproof.verdict import judgement

SCRIPT = TOP / "siteproof/report/recompute.py"
NOW = datetime.now(UTC)
TCP = "TcpBandwidth"
STATUSES = [
    "timeout",
    "invalid",
    "checksum",
    "node_lost",
    "tool_missing",
    "interrupted",
    "generic",
    "of a later version",
]


def header(number, hours, mode, **conditions):
    moment = NOW - timedelta(hours=hours)
    return Header(
        f"{moment:%Y%m%dT%H%M%S}Z-{number:04}",
        "here",
        "all",
        "system",
        "Check",
        str(number),
        moment.isoformat(timespec="seconds"),
        mode=mode,
        conditions=conditions,
        place=number,
    )


def random_criterion(rng, sizes):
    """Any bound, rounding, scope and age; and what it does not decide."""
    unit, of_step = rng.choice(list(sizes)), rng.choice(list(sizes))
    share = rng.random() < 0.2 and "GFLOPS" in sizes
    bound = f"{rng.randint(1, 100)} % of peak" if share else f"{decimal_text(rng)} {unit}"
    kind = rng.choice(["at_least", "at_least", "at_most", "equals"])
    keys = {kind: bound}
    if share:
        keys = {rng.choice(["at_least", "at_most"]): bound}
    if rng.random() < 0.5:
        step = rng.choice(["1", "0.1", "0.5", "10", "3", "100"])
        step_unit = "%" if share else of_step
        rule = rng.choice(list(RULES))
        ties = {"ties": "even"} if rule == "even" else {}
        keys |= {"rounding": f"{'nearest' if ties else rule} {step} {step_unit}", **ties}
    if rng.random() < 0.3:
        keys["trials"] = rng.randint(1, 3)
    if rng.random() < 0.15:
        keys["not_here"] = "no such thing"
    if rng.random() < 0.1:
        keys = {"report_only": "for interest"}
    if rng.random() < 0.5:
        keys["programs"] = ["tool"]
    scopes = ["every node", "every node", "median", "mean"]
    ages = ["7d", "2h", "none"]
    return criterion(scope=rng.choice(scopes), max_age=rng.choice(ages), **keys)


def random_value(rng, criteria, unit, sizes):
    """Often near a bound, where rounding decides."""
    bounds = [one.bound for one in criteria if one.bound and not one.bound.fact]
    if not bounds or rng.random() < 0.3:
        return Decimal(decimal_text(rng))
    bound = rng.choice(bounds).quantity
    number = bound.value * sizes[bound.unit].numerator * sizes[unit].denominator
    number = number / sizes[unit].numerator / sizes[bound.unit].denominator
    number = Decimal(f"{Decimal(f'{number:.10g}'):f}")
    return abs(number + rng.choice([0, 0, 1, -1]) * Decimal(rng.choice(["0.5", "0.05", "5"])))


def random_sample(rng, head, node, criteria, sizes):
    unit = head.conditions["unit"]
    if rng.random() < 0.15:
        status = rng.choice(STATUSES)
        return Sample(head, node, "Check.*", status=status, why="=cmd()", trial=rng.randint(0, 2))
    value = random_value(rng, criteria, unit, sizes)
    own = {"program": "stand-in"} if rng.random() < 0.1 else {}
    trial = rng.randint(0, 3)
    return Sample(head, node, "Check.figure", value, unit, trial=trial, own_conditions=own)


def random_campaign(seed):
    """A judgement of a few criteria, with baselines and waivers, from the samples of some jobs."""
    rng = random.Random(seed)
    sizes = KINDS[rng.choice(["rate", "flops", "time", "count"])]
    criteria = {f"C-{n}": random_criterion(rng, sizes) for n in range(rng.randint(1, 3))}
    unit = rng.choice(list(sizes))
    baselines = {
        f"B-{n}": Baseline(
            metric="Check.figure",
            scope=rng.choice(["every node", "every node", "median", "mean"]),
            tolerance=rng.choice([None, "5 %", "0.1 x"]),
            source="s",
            taken="2026-11-21",
            programs=rng.choice([[], ["tool"]]),
            **{rng.choice(["at_least", "at_most"]): f"{decimal_text(rng)} {unit}"},
        )
        for n in range(rng.choice([0, 1, 2]))
    }
    nodes = ["n1", "n2", "n3"][: rng.randint(1, 3)]
    waivers = {
        f"W-{n}": Waiver(
            nodes=rng.choice(nodes),
            waives=rng.choice(["all", "C-0", "Check.figure"]),
            wrong_answers=rng.choice([[], ["invalid"], ["invalid", "checksum"]]),
            problem="fan",
            owner="@me",
            expires=rng.choice(["2999-12-31", "2000-01-01"]),
        )
        for n in range(rng.choice([0, 0, 1, 2]))
    }
    better = rng.choice(["higher", "lower"])
    set_ = "n[1-3]"[: 0 if len(nodes) < 3 else None] or ",".join(nodes)
    described = site(criteria, unit, better, baselines, f"{decimal_text(rng)} GFLOPS", set_)
    described = replace(described, waivers=waivers)
    found = []
    for number in range(1, rng.randint(1, 4)):
        mode = rng.choice(["acceptance", "maintenance", "quick"])
        of_job = rng.choice([unit, rng.choice(list(sizes))])
        head = header(number, rng.choice([1, 1, 3, 200]), mode, program="tool", unit=of_job)
        owing = [node for node in nodes if rng.random() < 0.9]
        for node in owing:
            one = random_sample(rng, head, node, criteria.values(), sizes)
            more = rng.choice([0, 0, 1, 2])
            again = (random_sample(rng, head, node, criteria.values(), sizes) for _ in range(more))
            trials = rng.sample(range(9), 1 + more)
            each = zip([one, *again], trials, strict=True)
            found += [replace(sample, trial=trial) for sample, trial in each]
    return judgement.judge_samples(described, found, "all")


@given(seed=st.integers(0, 10**9))
@cases(150)
def test_every_random_campaign_is_judged_alike_from_its_page_alone(seed):
    recomputed.must_agree(random_campaign(seed))


def random_pairs(net, rng):
    """Criteria over the pairs of a star, of which trials, sizes and failures are random."""
    keys = {rng.choice(["at_least", "at_most"]): f"{rng.randint(1, 9)} Gb/s"}
    if rng.random() < 0.5:
        keys["trials"] = rng.randint(1, 3)
    if rng.random() < 0.2:
        keys |= {"subject": "system", "scope": "system"}
    if rng.random() < 0.2:
        keys["not_here"] = "no second rack"
    found = []
    for number in (1, 2):
        head = replace(header(number, 1, "acceptance", program="iperf3", at_once="1"), check=TCP)
        head = replace(head, conditions={**head.conditions, "link": "lan"})
        for a, b in ways(net):
            for size in rng.choice([[""], ["8", "64"]]):
                dims = {"peer": b} | ({"size": size} if size else {})
                own = {"trial": rng.randint(0, 4), "dims": dims}
                if rng.random() < 0.25:
                    status = rng.choice(STATUSES)
                    found.append(Sample(head, a, f"{TCP}.*", status=status, **own))
                elif rng.random() < 0.9:
                    value = Decimal(rng.randint(0, 20)) / 2
                    unit = rng.choice(["Gb/s", "Gb/s", "GB/s"])
                    found.append(Sample(head, a, f"{TCP}.throughput", value, unit, **own))
    return judgement.judge_samples(promised(net, C=of_pairs(**keys)), found, "all")


@rounds(25, 400)
def test_random_pairs_with_trials_sizes_and_failures_are_judged_alike(net, count):
    rng = random.Random(13)  # a PASS, which is rare, is among the first
    verdicts = set()
    for _ in range(count):
        judged = random_pairs(net, rng)
        verdicts.add(str(judged.verdicts[0].verdict))
        recomputed.must_agree(judged)
    assert {"PASS", "FAIL", "ERROR", "INCOMPLETE"} <= verdicts


def test_values_in_several_units_have_one_mean_and_one_median():
    """Two programs print MB/s and GB/s; 5, 6 and 7 GB/s are at least 6."""
    head = header(1, 1, "acceptance")
    values_ = [("5000", "MB/s"), ("6", "GB/s"), ("7", "GB/s")]
    found = [
        Sample(head, f"n{n}", "Check.figure", Decimal(value), unit)
        for n, (value, unit) in enumerate(values_, 1)
    ]
    for scope in ("mean", "median"):
        described = site({"C": criterion(at_least="6 GB/s", scope=scope)}, "MB/s")
        judged = judgement.judge_samples(described, found, "all")
        assert judged.verdicts[0].verdict == "PASS", scope
        recomputed.must_agree(judged)


def test_trials_in_several_units_have_one_median_and_the_worst_node_is_known():
    described = site({"C": criterion(at_least="6 GB/s", trials=3)}, "MB/s")
    head = header(1, 1, "acceptance")
    trials = {"n1": "5000 M, 5 G, 7 G", "n2": "5 M, 6 G, 7000 M", "n3": "5.1 G, 5 G, 7000 M"}
    found = [
        Sample(head, node, "Check.figure", Decimal(text[:-2]), f"{text[-1]}B/s", trial=trial)
        for node, texts in trials.items()
        for trial, text in enumerate(texts.split(", "))
    ]
    judged = judgement.judge_samples(described, found, "all")
    assert [(n.node, n.verdict) for n in judged.verdicts[0].nodes] == [
        ("n1", "FAIL"),
        ("n3", "FAIL"),
        ("n2", "PASS"),
    ]
    recomputed.must_agree(judged)


OF_VALUES = {"PASS", "REGRESSED", "FAIL"}


@given(seed=st.integers(0, 10**9), word=st.sampled_from(recompute.ORDER))
@cases(25)
@pytest.mark.deep
def test_another_verdict_in_the_tables_is_found(seed, word):
    judged = random_campaign(seed)
    decide = {one.id for one in judged.verdicts if not one.criterion.report_only}
    page = recomputed.page(judged)
    for table in ("criteria", "units"):
        changed = recomputed.changed(
            page,
            table,
            "stated",
            lambda _old: word,
            lambda row: row["criterion"] in decide and {row["stated"], word} & OF_VALUES - {""},
        )
        assert changed is None or recomputed.again(changed)[0], (table, word)


WORSE = {
    ("samples", "value"): {"at_least": "-1e40", "at_most": "1e40", "equals": "1e40"},
    ("criteria", "bound"): {"at_least": "1e40", "at_most": "-1e40", "equals": "1e40"},
    ("criteria", "step"): {"at_least": "1e50", "at_most": "1e50", "equals": "1e50"},
}


@given(seed=st.integers(0, 10**9))
@cases(25)
def test_another_value_bound_or_rounding_that_decides_is_found(seed):
    judged = random_campaign(seed)
    page = recomputed.page(judged)
    passed = {r.id: r.criterion for r in judged.verdicts if r.verdict == "PASS" and r.nodes}
    for (table, column), worse in WORSE.items():
        for key, rule in passed.items():
            changed = recomputed.changed(
                page,
                table,
                column,
                lambda old, text=worse[rule.kind]: text if old else old,
                lambda row, key=key: row["criterion"] == key,
            )
            nothing = rule.step is None or rule.kind == "at_most"
            if column != "step" or not nothing:
                assert changed and recomputed.again(changed)[0], (table, key)


CELLS = st.text(st.sampled_from("=+-@'\t\r\n;,|\" aä5.\uff1d\u2028"), max_size=12)


@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=4))
@cases(100)
def test_a_cell_is_read_as_it_was_and_begins_no_formula(rows):
    text = value_tables.as_csv(("a", "b"), rows)
    back = [(row["a"], row["b"]) for row in recompute.rows_of({"t": text}, "t")]
    assert back == [tuple(row) for row in rows]
    for line in list(csv.reader(io.StringIO(text, newline="")))[1:]:
        for cell in (part for whole in line for part in re.split(r"[;,|\t\n\r\"]", whole)):
            number = re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", cell)
            assert number or not re.match(r"[=+\-@\uff1d]", cell), line


def test_a_number_is_not_changed():
    for number in ("-5", "-0.25", "1E-7", "-1.5e+3", "007.10"):
        assert value_tables.harmless_cell(number) == number


FIRST = Summary("campaign winter", "now", "1 of 1 nodes", "", "PASS", "1 PASS of 1")


def page(*attached):
    made = Report("here", FIRST, [], attached)
    return html.page(made, NOW)


def test_a_file_of_a_page_breaks_out_of_nothing_and_comes_back_as_it_was(monkeypatch):
    evil = "a,b\n</script><script>alert(1)</script>,\"'><img src=x>&amp;%3C#\u2028\n"
    for limit in (html.LONGEST, 10):
        monkeypatch.setattr(html, "LONGEST", limit)
        text = page(Attached("criteria.csv", evil, "rows"))
        assert text.count("<script") == 1 and "<img" not in text
        assert recompute.Page(text).files == {"criteria": evil}


def test_the_tables_of_many_nodes_and_metrics_are_small():
    """Below 2 MB for 320 nodes and 20 metrics, each of them below what a browser saves."""
    described = site({"C-STREAM-TRIAD": criterion(at_least="6 GB/s")}, "MB/s", nodes="n[1-320]")
    head = header(1, 1, "acceptance")
    found = [
        Sample(head, f"n{n}", "Check.figure", Decimal("184234.56"), "MB/s") for n in range(1, 321)
    ]
    page = recomputed.page(judgement.judge_samples(described, found, "all"))
    files = recompute.Page(page).files
    sizes = [20 * len(recomputed.address(name, files[name])) for name in recompute.TABLES]
    assert max(sizes) < 2 * html.LONGEST
    assert sum(sizes) < 2 * 10**6


@pytest.mark.parametrize("table", ["criteria", "units", "samples"])
def test_rows_that_were_taken_away_are_missed(table, measured):
    page = recomputed.page(measured)
    for row in recomputed.rows_of(page, table):
        fewer = recomputed.changed(page, table, "criterion", lambda _old: None, row.__eq__)
        assert recomputed.again(fewer)[0], row


@cache
def excused():
    """The page of a random campaign in which a waiver excuses what fails otherwise."""
    for seed in range(2000):
        judged = random_campaign(seed)
        if any(node.unwaived == "FAIL" for r in judged.verdicts for node in r.nodes):
            return recomputed.page(judged)
    raise AssertionError("no waiver")


@pytest.mark.parametrize(
    ("table", "column", "text"),
    [
        ("waivers", "expires", "2000-01-01"),
        ("waivers", "waives", "Other.one"),
        ("waivers", "nodes", "n7 n8"),
        ("units", "waivers", ""),
    ],
)
def test_what_a_waiver_does_not_cover_is_not_excused(table, column, text):
    assert recomputed.again(excused())[0] == 0
    changed = recomputed.changed(excused(), table, column, lambda old: text if old else old)
    assert recomputed.again(changed)[0]


@pytest.fixture(scope="module")
def measured():
    """Three nodes: two pass 165 GB/s, one fails."""
    described = site({"C": criterion(at_least="165 GB/s", rounding="nearest 1 GB/s")}, "GB/s")
    values_ = ("146.9", "170.25", "183")
    found = [
        Sample(
            header(1, 1, "acceptance"),
            f"n{n}",
            "Check.figure",
            Decimal(value),
            "GB/s",
            line=f"Figure: <b> {value}",
        )
        for n, value in enumerate(values_, 1)
    ]
    return judgement.judge_samples(described, found, "all")


PRINTED = [  # on the first screen and in the chapter, with the first sentence of its sheet
    ("146.9 GB/s, worst n1", "176.9 GB/s, worst n1"),
    ("146.9 GB/s, worst n1", "146.9 GB/s, worst n2"),
    ("146.9 GB/s, worst n1", "146.9 TB/s, worst n1"),
    ("&gt;= 165", "&gt;= 140"),
    ("&gt;= 165", "&lt;= 165"),
    ("from 164.5", "from 144.5"),
    ("(from 164.5)", ""),
    ("-10.7 %", "+10.7 %"),
    ("-10.7 %", "-1.7 %"),
    ("1 failed n1", "1 failed n2"),
    ("1 failed n1", "0 failed n1"),
    ("1 failed n1", "1 passed"),
    ("1 failed n1", "1 failed n1 (waived)"),
    ("1 FAIL", "1 PASS"),
    ("C (FAIL)", "C (PASS)"),
    ("all: FAIL", "all: PASS"),
    ("</span> FAIL</strong>", "</span> PASS</strong>"),
    ("</span> FAIL</span>", "</span> PASS<i hidden> FAIL</i></span>"),
    ('data-of="verdict at the top"', ""),
]


def test_each_printed_text_that_the_tables_do_not_give_is_found(measured):
    page, missed = recomputed.page(measured), []
    assert recomputed.again(page)[0] == 0
    for old, new in PRINTED:
        parts = page.split(old)
        assert parts[1:], old
        for place in range(1, len(parts)):
            changed = old.join(parts[:place]) + new + old.join(parts[place:])
            try:
                if not recomputed.again(changed)[0]:
                    missed.append((old, new, place))
            except KeyError:
                pass  # a sentence is gone: exit code 2
    assert missed == []


def test_the_tools_own_line_stands_beside_a_value_that_failed(measured):
    page = recomputed.page(measured)
    assert "Check on n1: Figure: &lt;b&gt; 146.9" in page


def test_a_sum_that_is_not_that_of_the_table_is_found(measured):
    page = recomputed.page(measured)
    digest = recomputed.digest("samples", recompute.Page(page).files["samples"])
    differing, printed = recomputed.again(page.replace(digest[:8], 8 * "0"))
    assert differing == 1 and "another SHA-256 of samples.csv of this page" in printed
    assert printed.splitlines()[-1].endswith("; 1 more differences on the page")


def test_the_last_lines_are_what_was_taken_as_given(measured):
    *_, first, _, third, end = recomputed.again(recomputed.page(measured))[1].splitlines()
    assert first.startswith("Taken as given, as the tables state it: which units owe a value")
    assert third.endswith("of 0 derived values; verdicts of 0 criteria with a reason")
    assert end == "1 criteria: 1 agree, 0 differ; 0 more differences on the page"


def test_a_reason_in_place_of_units_is_never_a_pass(measured):
    page = recomputed.changed(recomputed.page(measured), "criteria", "given", lambda _: "too_old")
    changed = recomputed.changed(page, "criteria", "stated", lambda _old: "PASS")
    assert "all: stated 'PASS', recomputed 'FAIL'" in recomputed.again(changed)[1]


def test_the_worst_of_several_sizes_is_known_where_their_units_differ():
    described = site({"C": criterion(at_least="1 GB/s")}, "GB/s")
    head = header(1, 1, "acceptance")
    found = [
        Sample(head, "n1", "Check.figure", Decimal(value), unit, dims={"size": size})
        for value, unit, size in (("3", "GB/s", "8"), ("1500", "MB/s", "64"))
    ]
    recomputed.must_agree(judgement.judge_samples(described, found, "all"))


def alone(*words):
    """As a vendor calls it: a plain Python without packages or the clone."""
    done = subprocess.run(
        [sys.executable, "-S", "-B", SCRIPT, *map(str, words)],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii"},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def saved(tmp_path, measured):
    """A page with all of its tables, as a file."""
    (tmp_path / "page.html").write_text(recomputed.page(measured))
    return tmp_path / "page.html"


def test_a_page_is_judged_by_a_plain_python_and_what_differs_ends_with_1(saved):
    code, printed, _ = alone(saved)
    assert (code, " 0 differ" in printed) == (0, True), printed
    saved.write_text(saved.read_text().replace("</span> FAIL</span>", "</span> PASS</span>"))
    code, printed, _ = alone(saved)
    assert (code, "the page shows verdict" in printed) == (1, True), printed


UNITS = 'units.csv" href="data:text/csv;base64,'
CORRUPT = 'units.csv.gz" href="data:application/gzip;base64,'
DAMAGES = [
    lambda _text: "",
    lambda text: text.replace('download="units.csv"', ""),
    lambda text: text.replace('download="units.csv"', 'download="samples.csv"'),
    lambda text: text.replace(UNITS, f"{UNITS}YWJj"),  # its first column has another name
    lambda text: text.replace(UNITS, CORRUPT),
]


def test_a_damaged_page_ends_with_2_and_one_line(saved):
    told = [alone(saved.parent / "nothing.html")]
    whole = saved.read_text()
    for damage in DAMAGES:
        assert damage(whole) != whole
        saved.write_text(damage(whole))
        told.append(alone(saved))
    for code, _, printed in told:
        assert (code, printed.count("\n"), "Traceback" in printed) == (2, 1, False), printed


def test_without_a_page_it_shows_how_it_is_called_and_a_reader_may_leave(saved):
    for words in ((), ("--help",), (saved, saved)):
        assert alone(*words) == (2, "", "usage: python3 recompute.py PAGE.html\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, SCRIPT, saved], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (2, b"")


NO_NUMBERS = ["3/2", "1_000", "1e309", "1e99999999", "\u0663", "nan", ""]


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(("table", "column"), [("samples", "value"), ("criteria", "bound")])
def test_a_number_that_is_none_and_a_unit_that_nobody_knows_are_refused(
    table, column, text, measured
):
    page = recomputed.page(measured)
    for name, new in ((column, text), (f"{column}_unit", "furlong")):
        with pytest.raises(ValueError, match="is no number with a known unit"):
            recomputed.again(recomputed.changed(page, table, name, lambda _old, new=new: new))


def test_what_it_prints_steers_no_terminal_and_needs_no_utf_8(saved):
    page = recomputed.changed(
        saved.read_text(), "criteria", "criterion", lambda _old: "C-\x1b[31m\u00e4\u202e0"
    )
    saved.write_text(page)
    _, printed, errors = alone(saved)
    assert errors == "" and "C-?[31m\\xe4?0" in printed


def test_it_is_short_knows_nothing_of_ours_and_is_of_python_3_6():
    text = SCRIPT.read_text()
    tree = ast.parse(text, feature_version=(3, 6))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {one.name for node in found if isinstance(node, ast.Import) for one in node.names}
    names |= {str(node.module) for node in found if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    assert "siteproof" not in text
    assert len(own_lines(text, tree)) <= 255, "a vendor reads it whole"


def own_lines(text, tree):
    """The numbers of its lines without blanks, comments and docstrings."""
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found -= set(range(node.lineno, node.end_lineno + 1))
    return found


def test_the_page_of_the_manual_names_every_column():
    text = (TOP / "docs/recompute.md").read_text()
    columns = {name for names in value_tables.COLUMNS.values() for name in names}
    assert {name for name in columns if f"`{name}`" not in text} == set()
