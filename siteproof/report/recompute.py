#!/usr/bin/env python3
"""Compare the verdicts of a Siteproof report with the values that its page carries.

    python3 recompute.py PAGE.html

It needs Python 3.6 and nothing else, and shares no line with Siteproof. All arithmetic is exact.
A line a criterion; exit code 0: all agree, 1: something differs, 2: bad file.

Of each unit the median of its values is converted, rounded and compared with bound and baselines
again; of each criterion the verdicts are put together and counted; and what the page prints is
compared with that. What is taken as given is in the last lines, and in docs/recompute.md.
"""

import sys

if __name__ == "__main__":
    del sys.path[0]  # no file next to this one is loaded in place of a module of Python

# ruff: noqa: E402
import base64
import csv
import hashlib
import io
import os
import re
from collections import Counter
from fractions import Fraction
from gzip import decompress as gunzip
from html.parser import HTMLParser
from statistics import median
from typing import Dict, List, NamedTuple, Optional, Set, TextIO, Tuple

Row = Dict[str, str]  # by column; of what the page shows the text of each cell
ORDER = ["FAIL", "ERROR", "REGRESSED", "INCOMPLETE", "PENDING", "SKIP", "PASS"]  # worst first
BECAME = {"PASS": "passed", "REGRESSED": "below baseline", "FAIL": "failed"}
MIDDLES, WRONG = ("median", "mean", "sum"), ("invalid", "checksum", "unhealthy")
TABLES = ("criteria", "units", "samples", "jobs", "baselines", "waivers", "checks")
POWERS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
POWERS.update({"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50})
ONE = Fraction(1)
SIZES = {"ns": ONE / 10**9, "us": ONE / 10**6, "ms": ONE / 1000, "min": ONE * 60, "h": ONE * 3600}
SIZES.update({"d": ONE * 86400, "%": ONE / 100, "b/s": ONE / 8, "bit/s": ONE / 8})
PLAIN = "B|B/s|FLOPS|Hz|IOPS|count|nodes|tasks|ranks|packets|VMs|instances|s|x|[a-z-]+/s"
UNIT = re.compile("([KMGTP]i|[kMGTP]?)(%s|%s)" % ("|".join(SIZES), PLAIN))
NUMBER = re.compile("[+-]?[0-9]{1,60}([.][0-9]{1,60})?([eE][+-]?[0-9]{1,2})?")
SIGNS = {"at_least": -1, "at_most": 1, "equals": 0}
FILE = "file below perflogs"  # a column
LINE, TOP = "not met", "verdict at the top"  # a column and a line of the first screen
CELLS = {"verdict": "stated", "required": "limit", "limit": "limit", "worst value": "worst"}
CELLS.update({"margin": "margin", "counts": "counts"})
COUNTED = "([0-9]+) (passed|below baseline|failed|without a value)"
SAID = "(?:([0-9]+) |([^ ]+) [(])?(?<![\\w-])(%s)(?![\\w-])"
SAID %= "|".join([*ORDER, "PUBLISHED", "UNDECIDED"])
GIVEN = """Taken as given, as the tables state it: which units owe a value, which values answer, and
why one is missing or does not count; facts of the hardware, which baselines are compared;
the words of evidence, the arithmetic of %d derived values; verdicts of %d criteria with a reason
%d criteria: %d agree, %d differ; %d more differences on the page
"""


class Page(HTMLParser):
    """The files that a page carries, and the text, hidden or not, of what has `data-of`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.files, self.rows = {}, []  # type: Dict[str, str], List[Row]
        self.column, self.ends = "", ""  # of the open cell, and the tag that ends it
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        """A file, a row, a cell, or a sentence begins."""
        given = {name: value or "" for name, value in reversed(attrs)}  # of two the first counts
        if given.get("download"):
            self.add_file(given["download"], given.get("href", ""))
        if tag == "tr" or "data-of" in given and tag == "p":
            self.rows.append({})
        if "data-of" in given and self.rows:
            self.column, self.ends = given["data-of"], tag
            self.rows[-1].setdefault(self.column, "")

    def handle_endtag(self, tag: str) -> None:
        """The open cell ends."""
        if tag == self.ends:
            self.column = self.ends = ""

    def handle_data(self, data: str) -> None:
        """A text is of the open cell."""
        if self.column:
            self.rows[-1][self.column] += data

    def add_file(self, name: str, address: str) -> None:
        """Keep a file; a browser saves the same from its address."""
        if name.split(".")[0] in self.files:
            raise ValueError("it has %s twice" % name)
        found = base64.b64decode(address.partition(",")[2])
        text = (gunzip(found) if name.endswith(".gz") else found).decode()
        self.files[name.split(".")[0]] = text


def rows_of(texts: Dict[str, str], name: str) -> List[Row]:
    """The rows of a table, without the apostrophes that keep a spreadsheet from computing."""
    mark = "(^|[;,|\t\n\r\"])'(?=[=+\\-@'\t\r\uff1d])"
    lines = csv.reader(io.StringIO(texts[name], newline=""), strict=True)
    columns, *rows = [[re.sub(mark, r"\1", cell) for cell in line] for line in lines]
    return [dict(zip(columns, row)) for row in rows]


def quantity(number: str, unit: str) -> Fraction:
    """A number in bytes, operations, seconds, or parts of one, exactly as it is printed."""
    found = UNIT.fullmatch(unit)
    if not NUMBER.fullmatch(number) or not found:
        raise ValueError("'%s %s' is no number with a known unit" % (number[:40], unit[:40]))
    return Fraction(number) * POWERS[found.group(1)] * SIZES.get(found.group(2), ONE)


def rounded(value: Fraction, step: Fraction, rule: str) -> Fraction:
    """The multiple of the step that a value is rounded to; Python rounds half to even."""
    n, half = value / step, Fraction(1 if value >= 0 else -1, 2)
    return step * {"nearest": int(n + half), "even": round(n)}[rule]


def fact_of(rule: Row, facts: str) -> Fraction:
    """The fact of which a bound is a share; else 1. facts: `peak=806 GFLOPS; ...`."""
    if not rule["bound_of"]:
        return ONE
    return quantity(*dict(fact.split("=") for fact in facts.split("; "))[rule["bound_of"]].split())


def meets(rule: Row, value: Fraction, facts: str) -> bool:
    """Whether a value meets the bound of a criterion or baseline."""
    fact, sign = fact_of(rule, facts), SIGNS[rule["kind"]]
    if rule["step"]:
        value = rounded(value, quantity(rule["step"], rule["step_unit"]) * fact, rule["rounding"])
    bound = quantity(rule["bound"], rule["bound_unit"]) * fact
    if rule.get("tolerance"):
        bound *= 1 + sign * quantity(*rule["tolerance"].split())
    return sign * value <= sign * bound if sign else value == bound


class Unit(NamedTuple):
    """What a node, pair, link or GPU gives. waived: its own verdict, if one is excused.

    value: in bytes, operations or seconds; None without one.
    """

    row: Row
    verdict: str
    waived: str = ""
    value: Optional[Fraction] = None


def counts_of(units: List[Unit]) -> str:
    """How many of them have passed, failed and so on."""
    due = Counter(BECAME.get(one.waived or one.verdict, "without a value") for one in units)
    return str(sorted((str(many), what) for what, many in due.items()))


class Judge:
    """All tables; judges one criterion after the other."""

    def __init__(self, texts: Dict[str, str]) -> None:
        self.tables = {name: rows_of(texts, name) for name in TABLES}
        self.baselines = {row["baseline"]: row for row in self.tables["baselines"]}
        self.waivers = {row["waiver"]: row for row in self.tables["waivers"]}
        self.answers = {}  # type: Dict[Tuple[str, str], List[Row]]
        for row in self.tables["samples"]:
            if row["use"] != "input":
                self.answers.setdefault((row["criterion"], row["unit"]), []).append(row)

    def criterion(self, rule: Row) -> List[str]:
        """What is stated otherwise than its units give it."""
        rows = [row for row in self.tables["units"] if row["criterion"] == rule["criterion"]]
        each = [] if rule["report_only"] else [self.unit(rule, row) for row in rows]
        counted = self.counted(rule, each)
        verdict = min([u.verdict for u in counted if not u.waived] or ["SKIP"], key=ORDER.index)
        if rule["given"] and rule["stated"] not in ("PASS", "REGRESSED"):
            verdict = rule["stated"]  # by a reason; what values must show is never given
        stated = sorted(re.findall(COUNTED, rule["counts"]))
        pairs = [("all", rule["stated"], verdict), ("counts", str(stated), counts_of(counted))]
        pairs += [(one.row["unit"], one.row["stated"], one.verdict) for one in each]
        return ["%s: stated '%s', recomputed '%s'" % one for one in pairs if one[1] != one[2]]

    def counted(self, rule: Row, each: List[Unit]) -> List[Unit]:
        """The units, or in their place the median, mean or sum of those that decide.

        Of a system that consists of others: the last one of so many that must meet it.
        """
        deciding = [one for one in each if not one.waived]
        needed = {"all": str(len(each)), "any": "1"}.get(rule["scope"], rule["scope"])
        if needed.isdigit() and each:
            return [sorted(each, key=lambda one: -ORDER.index(one.verdict))[int(needed) - 1]]
        return [self.middle(rule, deciding)] if rule["scope"] in MIDDLES and deciding else each

    def unit(self, rule: Row, row: Row) -> Unit:
        """One node, pair or link: what its values or its status give, or what a waiver excuses."""
        verdict, value = row["stated"], None
        if row["status"] == "ok":
            verdict, value = self.of_answers(rule, row)
        elif row["status"]:
            verdict = "FAIL" if row["status"] in WRONG else "ERROR"
        elif verdict in ("", *BECAME):  # why no value counts is given, but not what one must show
            verdict = "INCOMPLETE"
        if any(self.waives(rule, row, self.waivers[key]) for key in row["waivers"].split()):
            return Unit(row, "SKIP", verdict, value)
        in_middle = rule["scope"] in MIDDLES and value is not None  # it has no verdict by itself
        return Unit(row, "" if in_middle else verdict, "", value)

    def of_answers(self, rule: Row, row: Row) -> Tuple[str, Optional[Fraction]]:
        """The verdict on the median of the values of a unit, and that value."""
        answers = self.answers.get((rule["criterion"], row["unit"]), [])
        single = any(sample["use"] != "answer" for sample in answers)  # derived or published
        if len(answers) < int(rule["trials"] or 1) and not single:
            return "INCOMPLETE", None
        if rule["bound_unit"] == "text":
            return "PASS" if {s["value"] for s in answers} == {rule["bound"]} else "FAIL", None
        value = median(quantity(s["value"], s["value_unit"]) for s in answers)
        return self.of_value(rule, row, value), value

    def of_value(self, rule: Row, row: Row, value: Fraction, middle: str = "") -> str:
        """The verdict on a value: the bound, and then the baselines, which may be of a middle."""
        if not meets(rule, value, row["facts"]):
            return "FAIL"
        known = [self.baselines[key] for key in row["baselines"].split()]
        own = [b for b in known if (b["scope"] if b["scope"] in MIDDLES else "") == middle]
        return "PASS" if all(meets(b, value, row["facts"]) for b in own) else "REGRESSED"

    def waives(self, rule: Row, row: Row, waiver: Row) -> bool:
        """Whether a waiver excuses what a unit misses; a wrong answer must be named in it."""
        of_node = set(re.split(">| over | gpu", row["unit"])) & set(waiver["nodes"].split())
        gpus = {"all", *re.findall("[ >]gpu([0-9]+)", row["unit"])} & set(waiver["gpus"].split())
        about = waiver["waives"] in ("all", rule["criterion"], rule["metric"])
        right = row["status"] not in WRONG or row["status"] in waiver["wrong_answers"].split()
        return bool(of_node and gpus) and about and right and waiver["expires"] >= rule["now"][:10]

    def middle(self, rule: Row, deciding: List[Unit]) -> Unit:
        """Median, mean or sum of all units, once each has a value."""
        if any(one.value is None for one in deciding):
            return min(deciding, key=lambda one: ORDER.index(one.verdict or "PASS"))
        values = [one.value for one in deciding if one.value is not None]
        value = median(values) if rule["scope"] == "median" else sum(values, ONE * 0)
        value /= len(values) if rule["scope"] == "mean" else 1
        return Unit(deciding[0].row, self.of_value(rule, deciding[0].row, value, rule["scope"]))


def unlike_cells(rule: Row, rows: List[Row]) -> List[str]:
    """The cells of the page that are not as criteria.csv has them, and rows that it lacks."""
    own = [row for row in rows if row.get(LINE, row.get("criterion")) == rule["criterion"]]
    own = [row for row in own if "verdict" in row]
    cells = [(column, text) for row in own for column, text in row.items() if column in CELLS]
    wrong = [cell for cell in cells if not is_right(rule, *cell)]
    found = ["the page shows %s '%s'" % (column, text[:80]) for column, text in wrong]
    places = sum(LINE not in row for row in own)
    return found if places == 1 else [*found, "it is not once in the chapter on the criteria"]


def is_right(rule: Row, column: str, text: str) -> bool:
    """Whether a cell is as criteria.csv has it, and what follows."""
    mark = "^-$|^links: |^pairs: |^GPUs: |^%s " % re.escape(rule["metric"])
    text = re.sub("^[^A-Z]*" if column == "verdict" else mark, "", text)
    due = rule[CELLS[column]]
    free = column == "counts" and not due  # only reasons
    return free or re.match(re.escape(due) + "($|[;,] )", text) is not None


def unlike_page(judge: Judge, rows: List[Row]) -> List[str]:
    """The sentences of the page with other verdicts than the tables, and unknown criteria."""
    rules = judge.tables["criteria"]
    verdicts = {rule["criterion"]: rule["stated"] for rule in rules}
    each = [rule["stated"] for rule in rules if not (rule["given"] and rule["stated"] == "SKIP")]
    each += [row["stated"] for row in judge.tables["checks"]]
    mark = worst = min(each, key=ORDER.index, default="UNDECIDED")
    texts = {name: text for row in rows for name, text in row.items()}
    if "PUBLISHED" in texts[TOP] and {j["mode"] for j in judge.tables["jobs"]} <= {"published"}:
        mark = "PUBLISHED"
    due = {TOP: [mark], "lead of criteria": [], "lead of sheet": [worst] if each else []}
    wrong = [name for name in due if not is_said(texts[name], due[name], verdicts)]
    shown = named(rows) - verdicts.keys()
    found = ["%s is on the page and not in criteria.csv" % key for key in sorted(shown)]
    return found + ["the page's %s is '%s'" % (name, texts[name][:120]) for name in wrong]


def named(rows: List[Row]) -> Set[str]:
    """The criteria that have a row on the page."""
    return {row[name] for row in rows for name in (LINE, "criterion") if name in row}


def is_said(text: str, due: List[str], verdicts: Row) -> bool:
    """Whether the verdicts in a sentence are right: `ID (VERDICT)`, `2 VERDICT`, or alone."""
    said = re.findall(SAID, text)
    numbers = {verdict: int(many) for many, _, verdict in said if many}
    right = due == [verdict for many, key, verdict in said if not many and not key]
    right = right and all(verdicts.get(key) == verdict for _, key, verdict in said if key)
    return right and numbers in ({}, Counter(verdicts.values()))


def unlike_sums(judge: Judge, rows: List[Row], texts: Row) -> List[str]:
    """The SHA-256 on the page of which the file is another one, and files without one."""
    due = {row["file"]: row["sha256"] for row in judge.tables["jobs"] if row["sha256"]}
    for name, text in texts.items():
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        due["%s.%s of this page" % (name, "csv" if name in TABLES else "py")] = digest
    sums = [row for row in rows if "SHA-256" in row]
    said = {(row.get(FILE, "").strip("-") or row.get("of", ""), row["SHA-256"]) for row in sums}
    other = [key for key, digest in said if key and due.get(key, "-") != digest]
    wrong = sorted({key for key, _ in set(due.items()) - said} | set(other))
    return ["the page states another SHA-256 of %s" % key for key in wrong]


def recompute(text: str) -> int:
    """Print a line a criterion, and each difference; how many there are."""
    page, differing, lines = Page(text), 0, []
    judge = Judge(page.files)
    rules = judge.tables["criteria"]
    for rule in rules:
        found = judge.criterion(rule) + unlike_cells(rule, page.rows)
        differing += bool(found)
        counts = rule["given"] or rule["counts"]
        lines.append("%-24s %-10s  %s" % (rule["criterion"], rule["stated"], counts))
        lines += ["    differs: " + one for one in found]
    more = unlike_page(judge, page.rows) + unlike_sums(judge, page.rows, page.files)
    derived = sum(row["use"] == "derived" for row in judge.tables["samples"])
    given = sum(bool(rule["given"]) for rule in rules)
    end = (derived, given, len(rules), len(rules) - differing, differing, len(more))
    lines += ["differs: " + one for one in more] + (GIVEN % end).splitlines()
    for line in lines:
        show(line)
    return differing + len(more)


def show(line: str, to: Optional[TextIO] = None) -> None:
    """Print a line; what a terminal cannot show, or would obey, is replaced."""
    code = (to or sys.stdout).encoding or "ascii"
    line = "".join(c if c.isprintable() else "?" for c in line)
    print(line.encode(code, "backslashreplace").decode(code), file=to or sys.stdout)


def main() -> int:
    """The exit code."""
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        show("usage: python3 recompute.py PAGE.html", sys.stderr)
        return 2
    try:
        with open(sys.argv[1], encoding="utf-8") as handle:
            differs = recompute(handle.read())
        sys.stdout.flush()
        return 1 if differs else 0
    except BrokenPipeError:  # whoever reads this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except Exception as error:  # a page may be damaged in any way
        what = (sys.argv[1], type(error).__name__, error)
        show("recompute: %s: not a page with criteria, or damaged: %s %s" % what, sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
