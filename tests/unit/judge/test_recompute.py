"""The program that a page carries judges the page's values alone, and agrees with the verdict."""

import contextlib
import csv
import hashlib
import io
import random
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from unittest import mock

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
        keys |= {"rounding": f"nearest {step} {step_unit}", "ties": rng.choice(["away", "even"])}
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
    """Often near a bound, where rounding and ties decide."""
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


@given(seed=st.integers(0, 10**9), word=st.sampled_from(recompute.ORDER))
@cases(25)
def test_another_verdict_on_the_page_is_found(seed, word):
    texts = recomputed.texts(random_campaign(seed))
    changed = recomputed.changed(texts, "criteria", "stated", lambda _old: word)
    if changed:
        differing, printed = recomputed.again(changed)
        old = [row["stated"] for row in recompute.rows_of(texts, "criteria")]
        assert differing == sum(one != word for one in old), printed


@given(seed=st.integers(0, 10**9))
@cases(25)
def test_another_value_or_bound_that_decides_is_found(seed):
    judged = random_campaign(seed)
    texts = recomputed.texts(judged)
    kinds = {result.id: result.criterion.kind for result in judged.verdicts}
    passed = {r.id for r in judged.verdicts if r.verdict in recompute.ORDER[6:] and r.nodes}
    for table, column in (("samples", "value"), ("criteria", "bound")):
        worse = {"samples": {"at_least": "-1e40", "at_most": "1e40", "equals": "1e40"}}.get(
            table, {"at_least": "1e40", "at_most": "-1e40", "equals": "1e40"}
        )
        for key in passed:
            changed = recomputed.changed(
                texts,
                table,
                column,
                lambda old, key=key, worse=worse: worse[kinds[key]] if old else old,
                lambda row, key=key: row["criterion"] == key,
            )
            assert changed and recomputed.again(changed)[0] == 1, (table, key)


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
        assert value_tables.harmless_cell(Decimal(number)) == str(Decimal(number))
        assert value_tables.harmless_cell(number) == number


FIRST = Summary("campaign winter", "now", "1 of 1 nodes", "", "PASS", "1 PASS of 1")


def page(*attached):
    made = Report("here", "It passed.", [], FIRST, [], attached)
    return html.page(made, NOW)


def test_a_file_of_a_page_breaks_out_of_nothing_and_comes_back_as_it_was(tmp_path, monkeypatch):
    evil = "a,b\n</script><script>alert(1)</script>,\"'><img src=x>&amp;%3C#\u2028\n"
    for limit in (html.LONGEST_ADDRESS, 10):
        monkeypatch.setattr(html, "LONGEST_ADDRESS", limit)
        text = page(Attached("criteria.csv", evil, "rows"))
        assert text.count("<script") == 1 and "<img" not in text
        (tmp_path / "page.html").write_text(text)
        assert recompute.read(str(tmp_path / "page.html"))[0] == {"criteria": evil}


def test_the_tables_of_many_nodes_and_metrics_are_small():
    """Below 2 MB for 320 nodes and 20 metrics, each of them below what a browser saves."""
    described = site({"C-STREAM-TRIAD": criterion(at_least="6 GB/s")}, "MB/s", nodes="n[1-320]")
    head = header(1, 1, "acceptance")
    found = [
        Sample(head, f"n{n}", "Check.figure", Decimal("184234.56"), "MB/s") for n in range(1, 321)
    ]
    texts = recomputed.texts(judgement.judge_samples(described, found, "all"))
    sizes = [
        20 * len(html.address(Attached(f"{name}.csv", text, ""))[1]) for name, text in texts.items()
    ]
    assert max(sizes) < html.LONGEST_ADDRESS
    assert sum(sizes) < 2 * 10**6


def without(texts, table, where):
    """The tables without some rows of one; None if there is no such row."""
    columns = value_tables.COLUMNS[table]
    rows = list(csv.DictReader(io.StringIO(texts[table], newline="")))
    kept = [row for row in rows if not where(row)]
    lines = [[row[name] for name in columns] for row in kept]
    return None if kept == rows else {**texts, table: value_tables.as_csv(columns, lines)}


@given(seed=st.integers(0, 10**9), table=st.sampled_from(["criteria", "units", "jobs"]))
@cases(25)
def test_a_row_without_which_others_have_no_meaning_is_missed(seed, table):
    texts = recomputed.texts(random_campaign(seed))
    owned = {row["unit"] for row in recompute.rows_of(texts, "samples")} - {""}
    name = {"criteria": "criterion", "units": "unit", "jobs": "job"}[table]
    for row in recompute.rows_of(texts, table):
        fewer = without(texts, table, lambda one, key=row[name]: one[name] == key)
        if table != "units" or row["unit"] in owned:
            with pytest.raises(recompute.BadFile):
                recompute.Judge(fewer)


@given(seed=st.integers(0, 10**9))
@cases(25)
def test_samples_that_were_taken_away_of_a_decided_criterion_are_missed(seed):
    judged = random_campaign(seed)
    texts = recomputed.texts(judged)
    answered = {(r["criterion"], r["unit"]) for r in recompute.rows_of(texts, "samples")}
    whole = {r.id: r for r in judged.verdicts if r.verdict in ("PASS", "FAIL") and r.nodes}
    for key, unit in answered:
        fewer = without(texts, "samples", lambda one, key=key: one["criterion"] == key)
        if key in whole and unit:
            assert recomputed.again(fewer)[0] == 1, (key, unit)


def test_a_row_that_is_there_twice_is_refused():
    _, texts = decided()
    for table in ("criteria", "units", "jobs"):
        lines = texts[table].splitlines(keepends=True)
        with pytest.raises(recompute.BadFile, match="two rows with the same"):
            recompute.Judge({**texts, table: "".join([*lines, lines[-1]])})


@cache
def excused():
    """The tables of a random campaign in which a waiver excuses what fails otherwise."""
    for seed in range(2000):
        judged = random_campaign(seed)
        if any(node.waived for r in judged.verdicts for node in r.nodes):
            return recomputed.texts(judged)
    raise AssertionError("no waiver")


def test_a_waiver_that_has_expired_or_waives_something_else_excuses_nothing():
    for column, text in (("expires", "2000-01-01"), ("waives", "Other.one")):
        changed = recomputed.changed(excused(), "waivers", column, lambda _old, text=text: text)
        assert recomputed.again(changed)[0], column


def test_a_criterion_that_was_taken_from_the_tables_is_missed_on_the_page():
    judged, _ = decided()
    texts, rows = recomputed.read(recomputed.page(judged))
    gone = judged.verdicts[0].id
    for table in ("criteria", "units", "samples"):
        texts = without(texts, table, lambda one: one["criterion"] == gone) or texts
    differing, printed = recomputed.again(texts, rows)
    assert differing
    assert f"{gone} is on the page and not in criteria.csv" in printed


def page_of(judged, change):
    """How much differs on a page that was changed, and what was printed."""
    text = recomputed.page(judged)
    changed = change(text)
    assert changed != text
    return recomputed.again(*recomputed.read(changed))


@pytest.fixture(scope="module")
def measured():
    """Three nodes: two pass 165 GB/s, one fails."""
    described = site({"C": criterion(at_least="165 GB/s", rounding="nearest 1 GB/s")}, "GB/s")
    values_ = ("146.9", "170.25", "183")
    found = [
        Sample(header(1, 1, "acceptance"), f"n{n}", "Check.figure", Decimal(value), "GB/s")
        for n, value in enumerate(values_, 1)
    ]
    return judgement.judge_samples(described, found, "all")


PRINTED = [  # on the first screen, in the chapter and on the sheet
    (">146.9 GB/s<", ">176.9 GB/s<"),
    ("146.9 GB/s, worst n1", "176.9 GB/s, worst n1"),
    ("146.9 GB/s, worst n1", "146.9 GB/s, worst n2"),
    ("146.9 GB/s, worst n1", "146.9 TB/s, worst n1"),
    ("\u2265 165", "\u2265 140"),
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
    ('data-of="verdict"', 'data-of="Verdict"'),
    ('data-of="verdict at the top"', ""),
    ('data-of="criteria of the line"', ""),
    ('data-of="counts and reasons"', ""),
]


def test_each_printed_text_that_the_tables_do_not_give_is_found(measured):
    recomputed.must_agree(measured)
    page, missed = recomputed.page(measured), []
    for old, new in PRINTED:
        parts = page.split(old)
        assert parts[1:], old
        for place in range(1, len(parts)):
            changed = old.join(parts[:place]) + new + old.join(parts[place:])
            if not recomputed.again(*recomputed.read(changed))[0]:
                missed.append((old, new, place))
    assert not missed, missed


def test_a_sum_that_is_not_that_of_the_table_is_found(measured):
    digest = hashlib.sha256(recomputed.texts(measured)["samples"].encode()).hexdigest()
    differing, printed = page_of(measured, lambda text: text.replace(digest[:8], 8 * "0"))
    assert differing == 1 and "another SHA-256 of samples.csv of this page" in printed
    assert printed.splitlines()[-1].endswith("; 1 more differences on the page")


def test_a_verdict_is_printed_with_the_worst_value_that_it_rests_on(measured):
    texts = recomputed.texts(measured)
    judge = recompute.Judge(texts)
    for rule in judge.criteria:
        _, counted, _ = judge.criterion(rule)
        values = [one.value for one in counted if one.verdict == "PASS" and one.value is not None]
        if values and len(values) == len(counted):
            worst = max(values) if rule["kind"] == "at_most" else min(values)
            assert float(recompute.in_words(rule, counted).split()[2]) == pytest.approx(
                float(worst)
            )


def test_a_cell_that_was_emptied_or_a_job_of_another_mode_differs(measured):
    texts = recomputed.texts(measured)
    rows = [("criteria", "met", ""), ("units", "stated", ""), ("jobs", "mode", "quick")]
    for table, column, text in rows:
        changed = recomputed.changed(texts, table, column, lambda _old, text=text: text)
        assert recomputed.again(changed)[0] == 1, (table, column)


def test_a_table_with_a_byte_order_mark_is_read_as_without(measured):
    texts = recomputed.texts(measured)
    assert recomputed.again({**texts, "criteria": "\ufeff" + texts["criteria"]})[0] == 0


def test_what_is_wrong_with_a_table_is_named(measured):
    texts = recomputed.texts(measured)
    for old, new, told in (
        ("GB/s", "furlong", "unit 'furlong'"),
        ("bound_unit", "unit", "no column 'bound_unit'"),
        ("\r\nC,", "\r\nC,,", "criteria.csv, row 2 has not 29 cells"),
    ):
        with pytest.raises(recompute.BadFile, match=told):
            recomputed.again({**texts, "criteria": texts["criteria"].replace(old, new)})


def test_a_copied_answer_is_no_second_trial(measured):
    texts = recomputed.texts(measured)
    lines = texts["samples"].splitlines(keepends=True)
    with pytest.raises(recompute.BadFile, match="samples.csv has the same answer twice: C n1"):
        recompute.Judge({**texts, "samples": "".join([*lines, lines[1]])})


def test_a_waiver_excuses_only_the_nodes_that_it_names():
    changed = recomputed.changed(excused(), "waivers", "nodes", lambda _old: "n[7-9]")
    with pytest.raises(recompute.BadFile, match=r"units.csv: waiver W-\d does not name n\d"):
        recompute.Judge(changed)


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
        [sys.executable, "-S", "-B", SCRIPT, *map(str, words)], capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def call(*words):
    """The same in this process."""
    out = io.StringIO()
    argv = mock.patch.object(sys, "argv", ["recompute.py", *map(str, words)])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), argv:
        return recompute.main(), out.getvalue()


@pytest.fixture
def saved(tmp_path):
    """A page with all of its tables, as a file."""
    (tmp_path / "page.html").write_text(recomputed.page(decided()[0]))
    return tmp_path / "page.html"


def test_page_and_saved_tables_are_judged_alike(saved, tmp_path):
    code, printed = alone(saved, "--save", tmp_path)
    assert code == 0, printed
    assert "C-0" in printed and "0 differ" in printed
    assert alone(tmp_path) == call(tmp_path) == (0, printed)


def test_a_verdict_that_the_page_shows_otherwise_is_found(saved):
    text = saved.read_text()
    places = text.count("</span> FAIL</span>")
    assert places > 2
    for most in range(1, places + 1):
        saved.write_text(text.replace("</span> FAIL</span>", "</span> PASS</span>", most))
        code, printed = call(saved)
        assert (code, "the page shows verdict" in printed) == (1, True), printed


def test_the_page_of_the_manual_names_every_column():
    text = (TOP / "docs/recompute.md").read_text()
    columns = {name for names in value_tables.COLUMNS.values() for name in names}
    assert {name for name in columns if f"`{name}`" not in text} == set()


def test_a_verdict_that_was_changed_in_a_saved_table_ends_with_1(saved, tmp_path):
    call(saved, "--save", tmp_path)
    table = tmp_path / "criteria.csv"
    lines = list(csv.reader(table.open(newline="")))
    lines[1][1] = "PASS" if lines[1][1] != "PASS" else "FAIL"
    with table.open("w", newline="") as out:
        csv.writer(out).writerows(lines)
    assert call(tmp_path)[0] == 1


@cache
def decided():
    """The tables of a random campaign with a PASS, a FAIL and a limit of age."""
    campaigns = (random_campaign(seed) for seed in range(1000))
    both = {"PASS", "FAIL"}
    judged = next(
        one
        for one in campaigns
        if both <= {str(r.verdict) for r in one.verdicts}
        and any(r.criterion.oldest for r in one.verdicts)
    )
    return judged, recomputed.texts(judged)


CORRUPT = 'units.csv.gz" href="data:application/gzip;base64,'


def test_a_damaged_page_ends_with_2_and_one_line(saved):
    damages = [
        lambda _text: "",
        lambda text: text.replace('download="units.csv"', ""),
        lambda text: text.replace('download="units.csv"', 'download="samples.csv"'),
        lambda text: text.replace("stated", "states"),
        lambda text: re.sub(r"C-0,[A-Z]+", "C-0", text),
        lambda text: text.replace('units.csv" href="data:text/csv;charset=utf-8,', CORRUPT),
        lambda text: re.sub(
            r"(?<=,)[kMGT]?i?(B/s|b/s|FLOPS|s|ms|us|min|count)(?=,)", "ell", text, count=1
        ),
    ]
    told = [call(saved.parent / "nothing.html"), call(saved, "--save", saved / "nowhere")]
    whole = saved.read_text()
    for damage in damages:
        saved.write_text(damage(whole))
        told.append(call(saved))
    for code, printed in [*told, alone(saved)]:
        assert (code, printed.count("\n"), "Traceback" in printed) == (2, 1, False), printed


def test_what_it_prints_steers_no_terminal_and_needs_no_utf_8(saved, tmp_path):
    call(saved, "--save", tmp_path)
    for table in tmp_path.glob("*.csv"):
        table.write_text(table.read_text().replace("C-0", "C-\x1b[31mä\u202e0"))
    done = subprocess.run(
        [sys.executable, "-S", "-B", SCRIPT, tmp_path],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert done.stderr == b""
    assert b"C-?[31m\\xe4?0" in done.stdout


def test_it_knows_nothing_of_ours_and_is_of_python_3_6():
    import ast

    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names <= sys.stdlib_module_names
    assert "siteproof" not in SCRIPT.read_text()


NO_CELLS = [
    *[("samples", "value", text) for text in ("3/2", "1_000", "1e309", "1e99999999", "\u0663")],
    ("criteria", "bound", "330/2"),
    ("criteria", "kind", "atleast"),
    ("samples", "use", "answr"),
    ("criteria", "scope", "best node"),
    ("criteria", "stated", ""),
    ("criteria", "max_age_hours", "nan"),
    ("criteria", "now", "2026-11-24"),
    ("jobs", "time", "yesterday"),
    ("jobs", "time", "2027-02-31T00:00:00.000000Z"),
    ("waivers", "expires", "2027-02-31"),
    *[("waivers", "expires", text) for text in ("whenever", "31.01.2027", "2027-1-3", "")],
]


def test_a_cell_that_is_no_number_day_or_known_word_is_named_and_refused():
    for table, column, text in NO_CELLS:
        found = excused() if table == "waivers" else decided()[1]
        changed = recomputed.changed(found, table, column, lambda old, t=text: t if old else old)
        where = rf"{table}\.csv, row \d+, column {column}"
        with pytest.raises(recompute.BadFile, match=where):
            recompute.Judge(changed)
