#!/usr/bin/env python3
"""Judge the criteria of a Siteproof report again, from the values that its page carries.

    python3 recompute.py PAGE.html               or the folder with the saved .csv files
    python3 recompute.py PAGE.html --save DIR    save the .csv files, too
    python3 recompute.py PAGE.html --perflogs DIR    compare files and values with the perflogs, too

It needs Python 3.6 and nothing else, and shares no line with Siteproof. All arithmetic is exact.
A line a criterion; exit code 0: all agree, 1: a verdict, a count or a value differs, 2: bad file.

It compares, too, what the page prints of a criterion on the first screen, in the chapter on the
criteria and on the acceptance sheet, and the SHA-256 of the tables: docs/recompute.md.

Taken as given, as the tables state it: which samples answer a criterion (the newest that meet its
conditions), which units owe a value, the status that the tool's own validation gave, facts of the
hardware, which nodes baselines cover, updates of software, what evidence shows, and derived values
whose inputs are not in the tables; the last two are counted in the last line.
"""

import sys

if __name__ == "__main__":
    del sys.path[0]  # no file next to this one is loaded in place of a module of Python

# ruff: noqa: E402
import argparse
import base64
import csv
import hashlib
import io
import json
import os
import re
import urllib.parse
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from gzip import decompress as gunzip
from html.parser import HTMLParser
from itertools import product, takewhile
from statistics import median
from typing import Dict, List, Optional, Sequence, Set, TextIO, Tuple

Row = Dict[str, str]
ORDER = ["FAIL", "ERROR", "REGRESSED", "INCOMPLETE", "PENDING", "SKIP", "PASS"]  # worst first
OF_STATUS = dict.fromkeys(("node_lost", "interrupted", "lost"), "INCOMPLETE")
OF_STATUS["tool_missing"] = "SKIP"
WHOLE = ("criteria", "stated")  # never empty
WRONG, MIDDLES = ("invalid", "checksum"), ("median", "mean")  # wrong answers; scopes
HOUR, ONE = timedelta(hours=1), Fraction(1)
TABLES = ("criteria", "units", "samples", "jobs", "baselines", "waivers", "checks")
POWERS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
POWERS.update({"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50})
SIZES = {"ns": ONE / 10**9, "us": ONE / 10**6, "ms": ONE / 1000, "s": ONE, "min": ONE * 60}
SIZES.update({"h": ONE * 3600, "d": ONE * 86400, "%": ONE / 100, "x": ONE})
SIZES.update(dict.fromkeys(("count", "nodes", "tasks", "ranks", "packets", "VMs"), ONE))
SIZES["instances"] = ONE
NUMBER = "[+-]?[0-9]{1,60}([.][0-9]{1,60})?([eE][+-]?[0-9]{1,2})?"
DAY = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
MOMENT = DAY + "T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z"
ALLOWED = {  # in these columns; a number may be empty, or a text where the unit is text
    "value": NUMBER,
    "bound": NUMBER,
    "step": NUMBER,
    "expires": DAY,
    "kind": "at_least|at_most|equals|report_only",
    "ties": "|away|even",
    "answered_by": "measurement|evidence",
    "has_check": "yes|no",
    "scope": "every node|every pair|median|mean|system",
    "now": MOMENT,
    "time": MOMENT,
    "confirmed": MOMENT + "|",
    "stated": "FAIL|ERROR|REGRESSED|INCOMPLETE|PENDING|SKIP|PASS|",
    "max_age_hours": "|[0-9]{1,9}([.][0-9]{1,20})?",
    "met": "|[0-9]{1,9}",
    "trials": "|[0-9]{1,9}",
    "use": "answer|lacking|input|whole|published",
}
UNIT = re.compile("([KMGTP]i|[kMGTP]?)(B|B/s|b/s|bit/s|FLOPS|Hz|IOPS|[a-z-]+/s)")


class BadFile(Exception):
    """The file is not a page of Siteproof, or it is damaged."""


class Line(Dict[str, str]):
    """A row of a table by column."""

    def __missing__(self, column: str) -> str:
        raise BadFile("a table has no column '%s'" % column)


Cells = Dict[str, str]  # the text of each cell of a row, or of a sentence, by its column


class Page(HTMLParser):
    """The files that a page carries, and the text, hidden or not, of what has `data-of`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.files, self.rows = {}, []  # type: Dict[str, str], List[Cells]
        self.column, self.ends = "", ""  # of the open cell, and the tag that ends it
        self.feed(text)
        self.close()

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
        elif tag == "small":
            self.handle_data("; ")

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
        kind, _, data = address.partition(",")
        plain = name.split(".")[0]
        if plain in self.files:
            raise BadFile("it has %s twice" % name)
        coded = kind.endswith("base64")
        found = base64.b64decode(data) if coded else urllib.parse.unquote_to_bytes(data)
        self.files[plain] = (gunzip(found) if name.endswith(".gz") else found).decode()


def read(place: str) -> Tuple[Dict[str, str], List[Cells]]:
    """The text of each file, and the rows and sentences that the page shows; a folder has none."""
    if os.path.isdir(place):
        texts = {}
        for name in TABLES:
            with open(os.path.join(place, name + ".csv"), encoding="utf-8", newline="") as table:
                texts[name] = table.read()
        return texts, []
    with open(place, encoding="utf-8") as handle:
        page = Page(handle.read())
    return page.files, [row for row in page.rows if row]


def rows_of(texts: Dict[str, str], name: str, *key: str) -> List[Row]:
    """The rows of a table, without the apostrophes that keep a spreadsheet from computing.

    key: the columns in which no two rows may be the same.
    """
    if name not in texts:
        raise BadFile("it has no table " + name)
    mark = "(^|[;,|\t\n\r\"])'(?=[=+\\-@'\t\r\uff1d])"
    lines = csv.reader(io.StringIO(re.sub("^\ufeff", "", texts[name]), newline=""), strict=True)
    columns, *rows = [[re.sub(mark, r"\1", cell) for cell in line] for line in lines]
    for line, row in enumerate(rows, 2):
        if len(row) != len(columns):
            raise BadFile("%s.csv, row %d has not %d cells" % (name, line, len(columns)))
    found = [Line(zip(columns, row)) for row in rows]  # type: List[Row]
    must_be_allowed(name, found)
    if key and len({tuple(row[column] for column in key) for row in found}) < len(found):
        raise BadFile("table %s has two rows with the same %s" % (name, " and ".join(key)))
    return found


def must_be_allowed(name: str, rows: List[Row]) -> None:
    """Raises BadFile for the first cell that holds neither a number, a day nor a known word."""
    for line, row in enumerate(rows, 2):
        for column in ALLOWED.keys() & row.keys():
            text = row[column]
            no_number = not text or row.get(column + "_unit") == "text"
            free = no_number and ALLOWED[column] == NUMBER
            known = re.fullmatch(ALLOWED[column], text) and (text or (name, column) != WHOLE)
            if not free and not (known and exists(text)):
                where = (name, line, column, text[:40])
                raise BadFile("%s.csv, row %d, column %s: '%s' is not allowed" % where)


def exists(text: str) -> bool:
    """Whether a text is no day, or one that a calendar has."""
    try:
        return not re.match(DAY, text) or bool(datetime.strptime(text[:10], "%Y-%m-%d"))
    except ValueError:
        return False


def size(unit: str) -> Fraction:
    """A unit in bytes, operations, seconds, or parts of one."""
    found = UNIT.fullmatch(unit)
    if unit in SIZES:
        return SIZES[unit]
    if not found:
        raise BadFile("a value or a bound has the unit '%s', which is not known" % unit[:40])
    return Fraction(POWERS[found.group(1)], 8 if found.group(2) in ("b/s", "bit/s") else 1)


def convert(value: Fraction, unit: str, to: str) -> Fraction:
    """A value in another unit."""
    return value if unit == to else value * size(unit) / size(to)


def number(sample: Row, unit: str) -> Fraction:
    """The value of a sample in a unit, exactly as the tool printed it."""
    return convert(Fraction(sample["value"]), sample["value_unit"], unit)


def rounded(value: Fraction, step: Fraction, ties: str) -> Fraction:
    """The multiple of the step that is nearest to a value."""
    steps = abs(value / step)
    whole = steps.numerator // steps.denominator
    half = steps - whole == Fraction(1, 2)
    up = (ties == "away" or whole % 2 == 1) if half else steps - whole > Fraction(1, 2)
    return (whole + up) * step * (1 if value >= 0 else -1)


def fact_of(rule: Row, facts: str) -> Tuple[Fraction, str]:
    """The fact of which a bound is a share, and its unit. facts: `peak=806 GFLOPS; ...`."""
    number_, unit = dict(f.split("=") for f in facts.split("; "))[rule["bound_of"]].split()
    return Fraction(number_), unit


def as_bound(rule: Row, value: Fraction, unit: str, facts: str) -> Fraction:
    """A value in the unit of a bound; of a share of a fact, such as 80 % of peak, as a share."""
    if not rule["bound_of"]:
        return convert(value, unit, rule["bound_unit"])
    fact, of = fact_of(rule, facts)
    return convert(value, unit, of) / fact / convert(ONE, rule["bound_unit"], "x")


def meets(rule: Row, value: Fraction, unit: str, facts: str) -> bool:
    """Whether a value meets the bound of a criterion or baseline."""
    own, value = rule["bound_unit"], as_bound(rule, value, unit, facts)
    if rule["step"]:
        step = convert(Fraction(rule["step"]), rule["step_unit"], own)
        value = rounded(value, step, rule["ties"])
    bound, sign = Fraction(rule["bound"]), -1 if rule["kind"] == "at_least" else 1
    if rule.get("tolerance"):
        part, of = rule["tolerance"].split()
        bound *= 1 + sign * convert(Fraction(part), of, "x")
    return value == bound if rule["kind"] == "equals" else sign * value <= sign * bound


def moment(text: str) -> datetime:
    """A time in UTC."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")


class Outcome:
    """What one unit gives: verdict and reason, the sample that decides, and its value."""

    def __init__(self, verdict: str, why: str = "", sample: Optional[Row] = None) -> None:
        self.verdict, self.why, self.sample = verdict, why, sample
        self.name, self.waived = "", ""  # of the unit; the verdict that a waiver excuses
        self.value, self.unit, self.facts = None, "", ""  # type: Optional[Fraction], str, str
        self.points = []  # type: List[Outcome]  # at each point

    def at(self, point: str) -> "Outcome":
        """The outcome at a point; of a unit that has no value there, what it has instead."""
        own = self.points or [self]
        lacking = [one for one in own if one.value is None] + [Outcome("INCOMPLETE", "no value")]
        return next(
            (one for one in own if one.value is not None and one.point == point), lacking[0]
        )

    @property
    def point(self) -> str:
        """The point of its value."""
        return self.sample["group"] if self.sample else ""


def rank(one: Outcome) -> int:
    """The place of its verdict; the worst is 0."""
    return ORDER.index(one.verdict)


def without_value(sample: Row) -> Outcome:
    """The outcome of a measurement that has no value, by its status."""
    verdict = "FAIL" if sample["status"] in WRONG else OF_STATUS.get(sample["status"], "ERROR")
    return Outcome(verdict, sample["status"], sample)


def sign_of(rule: Row) -> int:
    """Whether high values are good: 1, or -1."""
    return -1 if rule["kind"] == "at_most" else 1


def worst_of(found: List[Outcome], sign: int) -> Outcome:
    """Of some outcomes that of the worst verdict, and of these of the worst value."""
    to = next((one.unit for one in found if one.value is not None), "")
    values = [ONE * 0 if one.value is None else convert(one.value, one.unit, to) for one in found]
    return min(zip(found, values), key=lambda pair: (rank(pair[0]), sign * pair[1]))[0]


class Judge:
    """All tables; judges one criterion after the other."""

    def __init__(self, texts: Dict[str, str]) -> None:
        self.criteria = rows_of(texts, "criteria", "criterion")
        self.units = rows_of(texts, "units", "criterion", "unit")
        self.jobs = {row["job"]: row for row in rows_of(texts, "jobs", "job")}
        self.baselines = {row["baseline"]: row for row in rows_of(texts, "baselines", "baseline")}
        self.waivers = {row["waiver"]: row for row in rows_of(texts, "waivers", "waiver")}
        self.checks = rows_of(texts, "checks")
        self.excused_whole = set()  # type: Set[str]  # the criteria that decide nothing
        self.samples = {}  # type: Dict[Tuple[str, str, str], List[Row]]
        for row in rows_of(texts, "samples"):
            self.samples.setdefault((row["criterion"], row["unit"], row["use"]), []).append(row)
        self.must_be_whole()
        self.must_count_once()
        self.must_cover()

    def must_count_once(self) -> None:
        """Raises BadFile where a row of an answer is there twice: it would be two trials."""
        for key, rows in self.samples.items():
            each = [tuple(row.values()) for row in rows]
            if key[2] == "answer" and len(set(each)) < len(each):
                raise BadFile("samples.csv has the same answer twice: %s %s" % key[:2])

    def must_cover(self) -> None:
        """Raises BadFile where a waiver excuses a unit of which it does not name a node."""
        nodes = {key: expand(row["nodes"]) for key, row in self.waivers.items()}
        for row in self.units:
            ends = set(row["unit"].partition(" over ")[0].split(">"))
            for key in row["waivers"].split():
                if ends.isdisjoint(nodes[key]):
                    raise BadFile("units.csv: waiver %s does not name %s" % (key, row["unit"]))

    def must_be_whole(self) -> None:
        """Raises BadFile where a row names what another table lacks."""
        keys = {row["criterion"] for row in self.criteria}
        owing = {(row["criterion"], row["unit"]) for row in self.units}
        for key, unit in owing | {(key, unit) for key, unit, _ in self.samples}:
            if key not in keys or unit and (key, unit) not in owing:
                raise BadFile("criteria.csv or units.csv has no row of %s %s" % (key, unit))
        jobs = {row["job"] for rows in self.samples.values() for row in rows}
        if jobs - self.jobs.keys():
            raise BadFile("jobs.csv has no job " + min(jobs - self.jobs.keys()))

    def has_only_published(self) -> bool:
        """Whether nothing was measured on the system."""
        return {job["mode"] for job in self.jobs.values()} <= {"published"}

    def of(self, rule: Row, unit: str, use: str) -> List[Row]:
        """The samples of a unit that have one use."""
        return self.samples.get((rule["criterion"], unit, use), [])

    def criterion(self, rule: Row) -> Tuple[str, List[Outcome], Dict[str, Outcome]]:
        """The verdict, the outcomes that are counted, and that of each unit."""
        nothing = self.excused_whole.add
        if rule["report_only"] or rule["has_check"] == "no" and rule["not_here"]:
            nothing(rule["criterion"])
            return "SKIP", [], {}
        if rule["has_check"] == "no":
            return "PENDING", [], {}
        units = {r["unit"]: r for r in self.units if r["criterion"] == rule["criterion"]}
        each = self.each(rule, units)
        waived = self.waive(rule, units, each)
        deciding = [one for one in each.values() if not one.waived]
        if rule["scope"] in MIDDLES and deciding:
            deciding = [self.middle(rule, deciding)]
        counted = deciding + waived
        if waived and not deciding:
            nothing(rule["criterion"])
            return "SKIP", counted, each
        return self.decide(rule, units, deciding, counted), counted, each

    def waive(self, rule: Row, units: Dict[str, Row], each: Dict[str, Outcome]) -> List[Outcome]:
        """The outcomes that a waiver excuses, marked so."""
        found = [each[name] for name, row in units.items() if self.waived(rule, row, each[name])]
        for name, one in each.items():
            one.name = name
        for one in found:
            one.waived, one.verdict, one.why = one.verdict, "SKIP", "waived"
        return found

    def decide(
        self, rule: Row, units: Dict[str, Row], deciding: List[Outcome], counted: List[Outcome]
    ) -> str:
        """The worst verdict, or what is published of all units together."""
        verdict = min(deciding, key=rank, default=Outcome("INCOMPLETE")).verdict
        if verdict == "INCOMPLETE" and not any(one.sample for one in counted):
            verdict = self.of_all(rule, [row["facts"] for row in units.values()])
        return self.excused(rule, verdict, deciding)

    def each(self, rule: Row, units: Dict[str, Row]) -> Dict[str, Outcome]:
        """The outcome of each unit by itself."""
        each = {name: self.unit(rule, row) for name, row in units.items()}
        if any(one.verdict != "SKIP" for one in each.values()):
            for one in each.values():  # where it can run on some units, the others owe a value
                one.verdict = one.verdict.replace("SKIP", "INCOMPLETE")
        for name, row in units.items() if rule["scope"] not in MIDDLES else ():
            if each[name].sample is None:
                each[name] = self.published(rule, row, each[name])
        return each

    def excused(self, rule: Row, verdict: str, deciding: List[Outcome]) -> str:
        """SKIP of what cannot be measured on this system and was not; PENDING of evidence due."""
        if rule["not_here"] and not rule["tried"] and verdict in ("INCOMPLETE", "SKIP"):
            final = "SKIP"
            self.excused_whole.add(rule["criterion"])
        elif rule["answered_by"] == "evidence":
            final = verdict.replace("INCOMPLETE", "PENDING")
        else:
            return verdict
        for one in deciding:
            one.verdict = final
        return final

    def unit(self, rule: Row, row: Row) -> Outcome:
        """One node, pair or link: the worst of its points, of the newest job of each."""
        answers = self.of(rule, row["unit"], "answer")
        if not answers:
            return Outcome("INCOMPLETE", "no value")
        found = []  # type: List[Outcome]
        for job in sorted({sample["job"] for sample in answers}):
            found += self.points(rule, [s for s in answers if s["job"] == job], row["facts"])
        lacking = [without_value(s) for s in self.of(rule, row["unit"], "lacking")]
        for one in lacking:
            one.verdict = one.verdict.replace("SKIP", "INCOMPLETE")
        found = [self.timely(rule, row, one) for one in found + lacking]
        worst = worst_of(found, sign_of(rule))
        worst.points = found
        return worst

    def points(self, rule: Row, answers: List[Row], facts: str) -> List[Outcome]:
        """The outcomes of one job: at each point that of its trials."""
        groups = {}  # type: Dict[str, List[Row]]
        for sample in answers:
            if sample["status"] == "ok":
                groups.setdefault(sample["group"], []).append(sample)
        failed = [without_value(s) for s in answers if s["status"] != "ok"]
        worst = min(failed, key=rank) if failed else None
        if worst and (not groups or worst.why in WRONG):
            return [worst]
        return [self.trials(rule, trials, facts) for trials in groups.values()]

    def trials(self, rule: Row, trials: List[Row], facts: str) -> Outcome:
        """The median of some trials."""
        unit = trials[0]["value_unit"]
        if len(trials) < int(rule["trials"] or 1):
            return Outcome("INCOMPLETE", "%s trials" % len(trials), trials[0])
        if unit == "text":
            wrong = [s for s in trials if s["value"] != rule["bound"]]
            return Outcome("FAIL" if wrong else "PASS", (wrong or trials)[0]["value"], trials[0])
        value = median(number(s, unit) for s in trials)
        nearest = min(trials, key=lambda s: abs(number(s, unit) - value))
        typical = [key for key in self.typical(nearest) if key["scope"] not in MIDDLES]
        return self.value(rule, value, nearest, unit, facts, typical)

    def typical(self, sample: Row) -> List[Row]:
        """The baselines with which a value may be compared."""
        return [self.baselines[key] for key in sample["baselines"].split()]

    def value(
        self, rule: Row, value: Fraction, sample: Row, unit: str, facts: str, typical: List[Row]
    ) -> Outcome:
        """A value against the bound, and then against its baselines."""
        found = Outcome("PASS", "%.12g %s" % (float(value), unit), sample)
        found.value, found.unit, found.facts = value, unit, facts
        if not meets(rule, value, unit, facts):
            found.verdict = "FAIL"
        elif not all(meets(one, value, unit, facts) for one in typical):
            found.verdict = "REGRESSED"
        return found

    def timely(self, rule: Row, row: Row, found: Outcome) -> Outcome:
        """An answer that is too old, from before an update or without a baseline is INCOMPLETE."""
        if row.get("setting") and found.verdict in ("PASS", "REGRESSED"):
            return Outcome("INCOMPLETE", "another setting", found.sample)
        if not found.sample or found.verdict in ("INCOMPLETE", "SKIP") or not rule["max_age_hours"]:
            return found
        job = self.jobs[found.sample["job"]]
        known = moment(job["confirmed"]) if job["confirmed"] else None
        age = None if known is None else max(timedelta(0), moment(rule["now"]) - known)
        sure = known is not None and abs(known - moment(job["time"])) <= HOUR
        if found.verdict in ("FAIL", "ERROR") and not sure:
            age = timedelta(0)  # where the clock was wrong, what was not met stays so
        limit = HOUR * float(rule["max_age_hours"])
        if job["mode"] == "published" or age is not None and age <= limit and not row["updated"]:
            return found
        return Outcome("INCOMPLETE", "too old", found.sample)

    def waived(self, rule: Row, row: Row, found: Outcome) -> bool:
        """Whether a waiver excuses what a unit misses; a wrong answer must be named in it."""
        status = found.sample["status"] if found.sample else ""
        given = [self.waivers[key] for key in row["waivers"].split()]
        valid = [one for one in given if one["expires"] >= rule["now"][:10]]
        about = ("all", rule["criterion"], rule["metric"])
        named = [one["wrong_answers"].split() for one in valid if one["waives"] in about]
        return found.verdict != "PASS" and any(status not in WRONG or status in w for w in named)

    def middle(self, rule: Row, deciding: List[Outcome]) -> Outcome:
        """The worst of the medians or means of all units at each point."""
        each = [one for unit in deciding for one in unit.points if one.value is not None]
        points = sorted({one.point for one in each}) or [""]
        found = [self.middle_at(rule, [one.at(point) for one in deciding]) for point in points]
        return worst_of(found, sign_of(rule))

    def middle_at(self, rule: Row, deciding: List[Outcome]) -> Outcome:
        """Median or mean of all units at one point, once each has a value."""
        lacking = [one for one in deciding if one.value is None]
        first = min(lacking, key=rank) if lacking else deciding[0]
        if lacking or first.sample is None:
            return Outcome(first.verdict, first.why, first.sample)
        values = [convert(one.value or ONE * 0, one.unit, first.unit) for one in deciding]
        value = median(values) if rule["scope"] == "median" else sum(values) / len(values)
        typical = [key for key in self.typical(first.sample) if key["scope"] == rule["scope"]]
        return self.value(rule, Fraction(value), first.sample, first.unit, first.facts, typical)

    def misses(self, rule: Row, sample: Row, facts: List[str]) -> bool:
        """Whether a published value proves a miss; `more than 5` proves nothing of at_least 8."""
        value, unit = Fraction(sample["value"]), sample["value_unit"]
        known = [text for text in facts if not rule["bound_of"] or rule["bound_of"] + "=" in text]
        good = all(meets(rule, value, unit, text) for text in known)
        helps = {"more than": "at_least", "less than": "at_most"}.get(sample["group"])
        return not good and helps != rule["kind"] and rule["scope"] not in MIDDLES

    def published(self, rule: Row, row: Row, found: Outcome) -> Outcome:
        """A unit that was not measured fails where its own published value misses."""
        whole = [s for s in self.of(rule, "", "published") if s["of"] == "unit"]
        values = self.of(rule, row["unit"], "published") or whole
        # A unit without an answer that has a waiver is excused.
        if row["waivers"] or not values or not self.misses(rule, values[0], [row["facts"]]):
            return found
        one = Outcome("FAIL", values[0]["value"] + " published", values[0])
        one.unit, one.facts = values[0]["value_unit"], row["facts"]
        one.value = number(values[0], one.unit)
        return one

    def of_all(self, rule: Row, facts: List[str]) -> str:
        """What a published value of all units together shows of a criterion without an answer."""
        values = self.of(rule, "", "published")
        return "FAIL" if values and self.misses(rule, values[0], facts) else "INCOMPLETE"

    def of_other_modes(self, rule: Row) -> List[str]:
        """The jobs whose answers do not count, as the criterion requires another mode."""
        match = re.search("(?:^|; )mode ([a-z]+(?: or [a-z]+)*)(?:;|$)", rule["conditions"])
        if not match or rule["derivation"] or rule["answered_by"] != "measurement":
            return []
        known = match.group(1).split(" or ") + ["published"]
        units = [row["unit"] for row in self.units if row["criterion"] == rule["criterion"]]
        jobs = {s["job"] for unit in units for s in self.of(rule, unit, "answer")}
        other = sorted(job for job in jobs if self.jobs[job]["mode"] not in known)
        text = "job %s has mode %s, required is " + match.group(1)
        return [text % (job, self.jobs[job]["mode"]) for job in other]

    def derived(self, rule: Row) -> Tuple[List[str], int]:
        """The derived values that do not follow from their inputs; how many have no inputs."""
        wrong, given = [], 0
        units = [row["unit"] for row in self.units if row["criterion"] == rule["criterion"]]
        answers = [s for unit in units for s in self.of(rule, unit, "answer")]
        for answer in answers if rule["derivation"] else []:
            inputs = at_point(self.of(rule, answer["unit"], "input"), answer)
            if answer["status"] != "ok" or rule["derivation"] == "given":
                given += answer["status"] == "ok"
                continue
            if not inputs:
                wrong.append("%s: the table lacks its inputs" % (answer["unit"] or "all"))
                continue
            whole, value = self.of(rule, answer["unit"], "whole"), answer["value"]
            whole = at_point(whole, answer)
            exact = derive(rule, inputs, whole, answer["value_unit"])
            if abs(Fraction(value) - exact) > abs(exact) * Fraction(6, 10**12):  # it has 12 digits
                what = "%s: the value is %s, its inputs give %.12g"
                wrong.append(what % (answer["unit"] or "all", value, float(exact)))
        return wrong, given


def at_point(rows: List[Row], answer: Row) -> List[Row]:
    """The inputs of a derived value at its point; all where it is of several."""
    return [row for row in rows if row["group"] == answer["group"]] or rows


def middles(rows: Sequence[Row], key: str, unit: str) -> Dict[str, Fraction]:
    """The median of some samples by one of their columns."""
    names = {s[key] for s in rows}
    return {one: median(number(s, unit) for s in rows if s[key] == one) for one in names}


def derive(rule: Row, inputs: List[Row], whole: List[Row], unit: str) -> Fraction:
    """A derived value from its inputs, in its unit."""
    how, own = rule["derivation"], inputs[0]["value_unit"]
    if how == "count":
        return Fraction(len({s["trial"] for s in inputs}))
    if how == "asymmetry":
        each = middles(inputs, "of", own).values()
        return convert(min(each) / max(each), "x", unit)
    if how in ("share", "change"):
        return convert(share(rule, inputs, whole), "x", unit)
    values = sorted(number(s, unit) for s in inputs)
    known = {"max": values[-1], "median": median(values), "difference": values[-1] - values[0]}
    return known[how]


def share(rule: Row, inputs: List[Row], whole: List[Row]) -> Fraction:
    """The worst of the parts, each of the medians of all units over their trials."""
    parts = []
    for group in {s["group"] for s in inputs}:
        sides = [[s for s in side if s["group"] == group] for side in (inputs, whole)]
        unit = sides[0][0]["value_unit"]
        part, of = [median(middles(side, "of", unit).values()) for side in sides]
        parts.append(part / of - (1 if rule["derivation"] == "change" else 0))
    return max(parts) if rule["worst"] == "highest" else min(parts)


def in_words(rule: Row, counted: List[Outcome]) -> str:
    """What a verdict rests on."""
    found = [one.verdict for one in counted]
    many = ", ".join("%s %s" % (found.count(one), one) for one in ORDER if one in found)
    if not counted:
        return rule["report_only"] or "nothing to judge"
    worst = worst_of(counted, -1 if rule["kind"] == "at_most" else 1)
    return "%s: %s" % (many, worst.why)


def differences(judge: Judge, rule: Row, rows: List[Cells]) -> Tuple[str, str, List[str]]:
    """The verdict on a criterion, what it rests on, and what the page states otherwise."""
    verdict, counted, each = judge.criterion(rule)
    found = Stated(judge, rule, counted).unlike(rows) if rows else []
    met = len([one for one in counted if one.verdict in ("PASS", "REGRESSED")])
    due = (str(met), str(len(counted))) if counted else ("", "")
    if (rule["met"], rule["of"]) != due:
        stated = (rule["met"], rule["of"]) + due
        found.append("stated is that %s of %s meet it, recomputed %s of %s" % stated)
    for row in [row for row in judge.units if row["criterion"] == rule["criterion"]]:
        own = each.get(row["unit"])
        given = row["stated"] or rule["scope"] not in MIDDLES
        if own and given and row["stated"] != own.verdict:
            found.append("%s: stated %s, recomputed %s" % (row["unit"], row["stated"], own.verdict))
    return verdict, in_words(rule, counted), found + judge.of_other_modes(rule)


def near(text: str, exact: Fraction) -> bool:
    """Whether a printed number is the exact one, within half of its last digit."""
    digits, _, power = text.partition("e")
    places = len(digits.partition(".")[2]) - int(power or 0)
    short = bool(power) and abs(exact) < 10**15
    return not short and abs(Fraction(text) - exact) * 2 <= Fraction(10) ** -places


def expand(text: str) -> Set[str]:
    """The names of a set: `n[1-3,5]`, `a1,b[01-20]`, `n1>n[2-4] over lan, n2>n1`."""
    names = set()  # type: Set[str]
    for term in text.split(", ") if ">" in text else re.split(r", ?(?![^\[]*\])", text):
        term, over, link = term.partition(" over ")
        sides = term.split(">")
        if len(sides) > 1:
            names |= {">".join(pair) + over + link for pair in product(*map(expand, sides))}
            continue
        parts = [numbers(part) for part in re.split(r"\[([^\]]*)\]", term)[1::2]]
        names |= {re.sub(r"\[[^\]]*\]", "%s", term) % one for one in product(*parts)}
    return names


def numbers(text: str) -> List[str]:
    """The numbers of a range such as `08-11,15`, or `1-9/2`."""
    found = []  # type: List[str]
    for part in text.split(","):
        match = re.fullmatch("([0-9]{1,9})(?:-([0-9]{1,9})(?:/([1-9][0-9]{0,5}))?)?", part)
        if not match or int(match.group(2) or 0) - int(match.group(1)) > 10**5:
            raise BadFile("the page shows a set of nodes that is none: %s" % text[:40])
        first, last, step = match.groups()
        each = range(int(first), int(last or first) + 1, int(step or 1))
        found += [str(one).zfill(len(first)) for one in each]
    return found


COUNT = re.compile(
    "(?:(?:links|pairs): )?([0-9]+) (passed|below baseline|failed|no value)(?: (?![(])(.*?))?"
    "(?: [(](waived|([0-9]+) waived: (.*))[)])?"
)
LIMIT = re.compile(
    "(?:([^ ]+) )?(>=|<=|=) (-?[0-9.]+(?:e[+]?[0-9]+)?)((?: [^ ,(;]+)?)((?:, [^(;]+)?)"
    "(?: [(]([^)]*)[)])?"
)
VALUE = re.compile(
    "(-?[0-9.]+(?:e[+]?[0-9]+)?)((?: [^ ,;]+)?)(?:(?:; |, worst )(.*?))?(?:, (?:at|by) .*)?"
)
TOP, LINE = "verdict at the top", "criteria of the line"
SENTENCES = (TOP, "lead of criteria", "lead of sheet")
SIGNS = {"at_least": ">=", "at_most": "<=", "equals": "="}
BECAME = {"PASS": "passed", "REGRESSED": "below baseline", "FAIL": "failed"}
PLACES = {"chapter": ("required", "counts"), "acceptance sheet": ("limit", "counts and reasons")}


class Stated:
    """What a page must state of a criterion: its limit, worst value, margin and counts."""

    def __init__(self, judge: Judge, rule: Row, counted: List[Outcome]) -> None:
        self.judge, self.rule, self.counted = judge, rule, counted
        facts = [row["facts"] for row in judge.units if row["criterion"] == rule["criterion"]]
        scales = {fact_of(rule, text) for text in facts} if rule["bound_of"] else set()
        self.unit, self.scale, self.shared = rule["bound_unit"], ONE, len(scales) > 1
        if len(scales) == 1:  # the fact is the same on all units: their values are in its unit
            fact, self.unit = scales.pop()
            self.scale = fact * convert(ONE, rule["bound_unit"], "x")
        self.worst = self.worst_of()

    def value(self, one: Outcome) -> Fraction:
        """The value of a unit in the unit of the page."""
        return as_bound(self.rule, one.value or ONE * 0, one.unit, one.facts) * self.scale

    def worst_of(self) -> Optional[Outcome]:
        """The unit of the worst verdict, and of these of the worst value."""
        sign = sign_of(self.rule)
        each = [one for one in self.counted if one.value is not None and not one.waived]
        key = lambda one: (0 if self.shared else rank(one), sign * self.value(one))  # noqa: E731
        return min(each, key=key, default=None)

    def limits(self) -> Dict[str, Tuple[Fraction, bool]]:
        """The lowest and the highest value that pass before rounding, and whether it does."""
        rule, found = self.rule, {}
        step = convert(Fraction(rule["step"]), rule["step_unit"], rule["bound_unit"])
        for side, sign in (("at_least", 1), ("at_most", -1)):
            if rule["kind"] in (side, "equals"):
                steps = sign * Fraction(rule["bound"]) / step
                whole = -((-steps.numerator) // steps.denominator)
                tie = whole % 2 == 0 if rule["ties"] == "even" else whole > 0
                found[side] = sign * (whole - Fraction(1, 2)) * step * self.scale, tie
        return found

    def unlike(self, rows: List[Cells]) -> List[str]:
        """The cells of the page that do not agree with the tables, and rows that it lacks."""
        own = [row for row in rows if row.get("criterion") == self.rule["criterion"]]
        found = []
        for name, (limit, counts) in PLACES.items():
            whole = [row for row in own if {"verdict", limit} <= row.keys()]
            if not whole:
                found.append("the page does not show it in the %s" % name)
            # A column is left out where no criterion has any.
            for row, column in product(whole, (counts, "worst value", "margin")):
                row.setdefault(column, "-")
        return found + self.unlike_cells(own + self.lines_of(rows))

    def lines_of(self, rows: List[Cells]) -> List[Cells]:
        """The line of the first screen on this criterion; of one with others the verdict."""
        found, key = [], self.rule["criterion"]
        for row in rows:
            title, _, more = row.get(LINE, "").partition("; ")
            if title == key:
                found.append(row)
            elif re.fullmatch("[0-9]+ criteria", title) and key in more.split(", "):
                found.append({"verdict": row.get("verdict", "")})
        return found

    def unlike_cells(self, own: List[Cells]) -> List[str]:
        """The cells of its rows that do not agree with the tables."""
        checks = {"verdict": self.verdict, "worst value": self.worst_value, "margin": self.margin}
        checks.update({"required": self.limit, "limit": self.limit, "counts": self.counts})
        checks["counts and reasons"] = self.counts
        cells = [cell for row in own for cell in row.items() if cell[0] in checks]
        wrong = [(column, text[:80]) for column, text in cells if not checks[column](text)]
        return ["the page shows %s '%s'" % one for one in wrong]

    def verdict(self, text: str) -> bool:
        """Whether a cell has the verdict, after its mark."""
        return re.sub("^[^A-Z]*", "", text) == self.rule["stated"]

    def worst_value(self, text: str) -> bool:
        """`147 GB/s, worst n002, by stream`."""
        if self.rule["report_only"]:
            return True
        if self.worst is None:
            return re.fullmatch("-?(, by .*)?", text) is not None
        match, value = VALUE.fullmatch(text), self.value(self.worst)
        if not match or match.group(2).strip() != self.unit.replace("count", ""):
            return False
        names = {
            one.name for one in self.counted if one.value is not None and self.value(one) == value
        }
        named = match.group(3) or self.rule["scope"] in MIDDLES or len(self.counted) == 1
        right = not match.group(3) or self.rule["scope"] in MIDDLES or match.group(3) in names
        return bool(named and right) and near(match.group(1), value)

    def margin(self, text: str) -> bool:
        """`+1.3 %`: by how much the worst value is on the right side of its limit."""
        rule = self.rule
        if rule["report_only"] or self.worst is None or rule["kind"] == "equals":
            return text in ("", "-")
        limit = Fraction(rule["bound"]) * self.scale
        if rule["step"]:
            limit = self.limits()[rule["kind"]][0]
        if not limit:
            return text in ("", "-")
        share = (self.value(self.worst) - limit) / abs(limit)
        share *= -100 if rule["kind"] == "at_most" else 100
        match = re.fullmatch("([+-])([0-9.]+(?:e[+][0-9]+)?) %", text)
        if not match or (match.group(1) == "-") != (share < 0):
            return False
        return near(match.group(2), abs(share))

    def limit(self, text: str) -> bool:
        """`Stream.triad >= 165 GB/s (from 164.5); every node of compute`; or without the metric."""
        rule, text = self.rule, text.replace("\u2265", ">=").replace("\u2264", "<=")
        text, *more = re.sub("; passes (.*)", r" (\1)", text).split("; ")
        scope = more[0] if more else rule["scope"]
        if not (scope + " ").startswith(rule["scope"] + " "):
            return False
        plain = ("reported only", "= " + rule["bound"])[not rule["report_only"]]
        if rule["report_only"] or rule["bound_unit"] == "text":
            return text in (plain, rule["metric"] + " " + plain)
        match = LIMIT.fullmatch(text)
        if not match or match.group(1) not in (None, rule["metric"]):
            return False
        _, sign, bound, unit, of, passes = match.groups()
        whole = ", %s %s of %s" % (rule["bound"], rule["bound_unit"], rule["bound_of"])
        right = sign == SIGNS[rule["kind"]] and unit.strip() == self.unit.replace("count", "")
        right = right and of == (whole if rule["bound_of"] else "")
        return right and near(bound, Fraction(rule["bound"]) * self.scale) and self.passes(passes)

    def passes(self, text: Optional[str]) -> bool:
        """`from 64.5`, `up to 5.5`: the limits before rounding."""
        if not self.rule["step"]:
            return text is None
        printed = re.findall("(from|above|up to|below) (-?[0-9.]+(?:e[+]?[0-9]+)?)", text or "")
        words = {"at_least": ("above", "from"), "at_most": ("below", "up to")}
        due = [(words[side][tie], value) for side, (value, tie) in self.limits().items()]
        same = [side for side, _ in printed] == [side for side, _ in due]
        return same and all(near(one[1], value) for one, (_, value) in zip(printed, due))

    def counts(self, text: str) -> bool:
        """`6 passed; 2 failed n[002,007]`, and reasons after them."""
        if self.rule["report_only"]:
            return True
        due = {}  # type: Dict[str, List[Outcome]]
        counted = [one for one in self.counted if not one.waived]
        if self.rule["scope"] not in MIDDLES or not counted:
            counted = self.counted
        for one in counted:
            due.setdefault(BECAME.get(one.waived or one.verdict, "no value"), []).append(one)
        matches = map(COUNT.fullmatch, re.split("; | \u00b7 ", text))
        printed = [match.groups() for match in takewhile(bool, matches) if match]
        right = sorted(one[1] for one in printed) == sorted(due)
        return right and all(right_count(one, due[one[1]]) for one in printed)


def right_count(printed: Sequence[Optional[str]], units: List[Outcome]) -> bool:
    """Whether one count, its names and what is waived of it are those of the tables."""
    number_, _, names, waived, _, some = printed
    excused = [one for one in units if one.waived]
    right = int(number_ or 0) == len(units) and same_names(names, units)
    right = right and same_names(some, excused) and (waived is not None) == bool(excused)
    return right and (waived != "waived" or len(excused) == len(units))


def same_names(text: Optional[str], units: List[Outcome]) -> bool:
    """Whether a printed set has these units; where it is left out or shortened, it may."""
    short = not text or re.search("[0-9] pairs? of ", text)
    return bool(short) or expand(text or "") == {one.name for one in units}


def unlike_sentences(judge: Judge, rows: List[Cells], verdicts: Dict[str, str]) -> List[str]:
    """The sentences of a page with other verdicts than the tables, and those that it lacks."""
    texts = {name: text for row in rows for name, text in row.items() if name in SENTENCES}
    found = ["the page lacks its %s" % name for name in SENTENCES if name not in texts]
    each = [verdict for key, verdict in verdicts.items() if key not in judge.excused_whole]
    each += [without_value(row).verdict for row in judge.checks]
    worst = [min(each, key=ORDER.index)] if each else ["UNDECIDED"]
    right = {TOP: worst, "lead of criteria": [], "lead of sheet": worst if each else []}
    published = "PUBLISHED" in texts.get(TOP, "") and judge.has_only_published()
    if published:
        right[TOP] = ["PUBLISHED"]
    for name, text in texts.items():
        if not right_sentence(text, right[name], verdicts, must_count(name, text, published)):
            found.append("the page's %s is '%s'" % (name, text[:120]))
    return found


def must_count(name: str, text: str, published: bool) -> bool:
    """Whether a sentence counts verdicts; at the top, those of published values may be below it."""
    if name == TOP and published:
        return re.search("[0-9] [A-Z]", text) is not None
    return name != "lead of sheet"


def right_sentence(text: str, due: List[str], verdicts: Dict[str, str], counted: bool) -> bool:
    """Whether the verdicts in a sentence are right: `ID (VERDICT)`, `2 VERDICT`, or alone."""
    words = "|".join(ORDER)
    named, counts = "([^ ]+) [(](%s)[)]" % words, "([0-9]+) (%s)\\b" % words
    plain = re.sub(named, "", text)
    alone = "(?<![\\w-])(%s|PUBLISHED|UNDECIDED)(?![\\w-])" % words
    numbers_ = {verdict: int(n) for n, verdict in re.findall(counts, plain)}
    right = all(verdicts.get(key) == verdict for key, verdict in re.findall(named, text))
    right = right and (numbers_ == Counter(verdicts.values()) if counted else not numbers_)
    return right and re.findall(alone, re.sub(counts, "", plain)) == due


def unlike_first_screen(judge: Judge, rows: List[Cells]) -> List[str]:
    """Whether the lines of the first screen, and what it names of more, are all criteria."""
    first = [row for row in rows if LINE in row]
    several = [re.match("([0-9]+) criteria; ", row[LINE]) for row in first]
    many = sum(int(one.group(1)) if one else 1 for one in several)
    more = [re.match("[0-9]+", row["more criteria"]) for row in rows if "more criteria" in row]
    many += sum(int(one.group()) for one in more if one)
    whole = {"verdict", "limit", "worst value", "margin", "counts"}
    right = many == len(judge.criteria) and all(whole <= row.keys() for row in first)
    return [] if right else ["the first screen does not show all criteria whole"]


def unlike_sums(judge: Judge, rows: List[Cells], texts: Dict[str, str]) -> List[str]:
    """The SHA-256 on the page of which the file is another one, and files without one."""
    due = {}
    for name, text in texts.items():
        sha256 = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        due["%s.%s of this page" % (name, "csv" if name in TABLES else "py")] = sha256
    due.update((key, job["sha256"] or "-") for key, job in judge.jobs.items())
    printed = {}  # type: Dict[str, Set[str]]
    for row in rows:
        key = row.get("job", "-") if row.get("job", "-") != "-" else row.get("of", "")
        if "SHA-256" in row:
            printed.setdefault(key, set()).add(row["SHA-256"])
    return [
        "the page states another SHA-256 of %s" % key
        for key in due
        if printed.get(key) != {due[key]}
    ]


Kept = Dict[Tuple[str, str, str], List[str]]  # nodes by metric, value and unit


def kept_in(path: str) -> Tuple[str, Kept]:
    """The SHA-256 of a file of perflogs, and the values in it; evidence has none."""
    with open(path, "rb") as handle:
        data = handle.read()
    found = {}  # type: Kept
    lines = data.decode("utf-8", "replace").split("\n")[1:] if path.endswith(".jsonl") else []
    for one in [json.loads(line) for line in lines if line]:
        key = (one["metric"], str(one.get("value", "")), str(one.get("unit", "")))
        found.setdefault(key, []).append(one["node"])
    return hashlib.sha256(data).hexdigest(), found


def lacks(kept: Kept, known: Set[str], row: Row) -> bool:
    """Whether a file has not a value of a unit. known: its nodes; the system is none."""
    nodes = kept.get((row["metric"], row["value"], row["value_unit"]), [])
    place = set(re.split(">| over ", row["of"] or row["unit"]))
    return not nodes or not place.isdisjoint(known) and place.isdisjoint(nodes)


def unlike_file(path: str, sha256: str, samples: List[Row]) -> List[str]:
    """What a file of perflogs has otherwise than the tables."""
    if not os.path.isfile(path):
        return ["no file " + path]
    digest, kept = kept_in(path)
    known = {node for nodes in kept.values() for node in nodes}
    found = [] if digest == sha256 else [path + " has another SHA-256"]
    for row in [row for row in samples if kept and lacks(kept, known, row)]:
        what = (path, row["metric"], row["value"], row["unit"] or "all")
        found.append("%s does not hold %s %s of %s" % what)
    return found


def unlike_perflogs(judge: Judge, top: str) -> List[str]:
    """The files that are not as jobs.csv states, and the values that they do not hold."""
    found = []
    samples = {}  # type: Dict[str, List[Row]]
    for row in [row for rows in judge.samples.values() for row in rows if row["value"]]:
        samples.setdefault(row["job"], []).append(row)
    for number, job in judge.jobs.items():
        if top and job["file"]:
            path = os.path.join(top, job["file"])
            found += unlike_file(path, job["sha256"], samples.get(number, []))
    return found


def recompute(texts: Dict[str, str], rows: List[Cells], top: str = "") -> int:
    """Print a line a criterion, and each difference; how many there are. top: perflogs."""
    judge, differing, given, evidence = Judge(texts), 0, 0, 0
    lines = []
    for rule in judge.criteria:
        verdict, why, found = differences(judge, rule, rows)
        wrong, without = judge.derived(rule)
        given += without
        evidence += rule["answered_by"] == "evidence"
        differing += bool(found or wrong or verdict != rule["stated"])
        line = (rule["criterion"], rule["stated"], verdict, why)
        lines.append("%-24s stated %-10s  recomputed %-10s  %s" % line)
        lines += ["    differs: %s" % text for text in found + wrong]
    verdicts = {rule["criterion"]: rule["stated"] for rule in judge.criteria}
    counts = (len(verdicts), len(verdicts) - differing, differing, given, evidence)
    end = "%d criteria: %d agree, %d differ; "
    end += "taken as given: %d derived values, evidence of %d criteria"
    unlike = unlike_perflogs(judge, top)
    if rows:
        shown = sorted({row["criterion"] for row in rows if "criterion" in row} - verdicts.keys())
        unlike += ["%s is on the page and not in criteria.csv" % key for key in shown]
        unlike += unlike_first_screen(judge, rows)
        unlike += unlike_sentences(judge, rows, verdicts) + unlike_sums(judge, rows, texts)
    if unlike:
        end += "; %d more differences on the page" % len(unlike)
    for text in lines + ["differs: %s" % one for one in unlike] + [end % counts]:
        show(text)
    return differing + len(unlike)


def show(line: str, to: Optional[TextIO] = None) -> None:
    """Print a line; what a terminal cannot show, or would obey, is replaced."""
    code = (to or sys.stdout).encoding or "ascii"
    line = "".join(c if c.isprintable() else "?" for c in line)
    print(line.encode(code, "backslashreplace").decode(code), file=to or sys.stdout)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description="Judge the criteria of a Siteproof page again.")
    parser.add_argument("page", help="PAGE.html, or the folder with its .csv files")
    parser.add_argument("--save", metavar="DIR", help="save the .csv files, too")
    parser.add_argument("--perflogs", metavar="DIR", default="", help="compare with its files, too")
    options = parser.parse_args()
    try:
        texts, rows = read(options.page)
        for name in TABLES if options.save else ():
            path = os.path.join(options.save, name + ".csv")
            with open(path, "w", encoding="utf-8", newline="") as table:
                table.write(texts[name])
        return 1 if recompute(texts, rows, options.perflogs) else 0
    except OSError as error:
        show("recompute: %s" % error, sys.stderr)
    except Exception as error:  # a table may be damaged in any way
        what = "recompute: %s: not a page of Siteproof with criteria, or damaged: %s %s"
        show(what % (options.page, type(error).__name__, error), sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
