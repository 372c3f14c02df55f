#!/usr/bin/env python3
"""Judge the criteria of a Siteproof report again, from the values that its page carries.

    python3 recompute.py PAGE.html               or the folder with the saved .csv files
    python3 recompute.py PAGE.html --save DIR    save the .csv files, too
    python3 recompute.py PAGE.html --perflogs DIR    compare files and values with the perflogs, too

It needs Python 3.6 and nothing else, and shares no line with Siteproof. All arithmetic is exact.
A line a criterion; exit code 0: all agree, 1: a verdict, a count or a value differs, 2: bad file.

Taken as given, as the tables state it: which samples answer a criterion (the newest that meet its
conditions), which units owe a value, the status that the tool's own validation gave, facts of the
hardware, which nodes waivers and baselines cover, updates of software, what evidence shows, and
derived values whose inputs are not in the tables; the last two are counted in the last line.
"""

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import re
import sys
import urllib.parse
from datetime import datetime, timedelta
from fractions import Fraction
from gzip import decompress as gunzip
from statistics import median
from typing import Dict, List, Optional, Sequence, Set, TextIO, Tuple
from xml.sax.saxutils import unescape

Row = Dict[str, str]
ORDER = ["FAIL", "ERROR", "REGRESSED", "INCOMPLETE", "PENDING", "SKIP", "PASS"]  # worst first
OF_STATUS = {"node_lost": "INCOMPLETE", "interrupted": "INCOMPLETE", "tool_missing": "SKIP"}
WRONG, MIDDLES = ("invalid", "checksum"), ("median", "mean")  # wrong answers; scopes
HOUR, ONE = timedelta(hours=1), Fraction(1)
TABLES = ("criteria", "units", "samples", "jobs", "baselines", "waivers")
POWERS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
POWERS.update({"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50})
SIZES = {"ns": ONE / 10**9, "us": ONE / 10**6, "ms": ONE / 1000, "s": ONE, "min": ONE * 60}
SIZES.update({"h": ONE * 3600, "d": ONE * 86400, "%": ONE / 100, "x": ONE})
SIZES.update(dict.fromkeys(("count", "nodes", "tasks", "ranks", "packets", "VMs"), ONE))
SIZES["instances"] = ONE
NUMBER = "[+-]?[0-9]{1,60}([.][0-9]{1,60})?([eE][+-]?[0-9]{1,2})?"
ALLOWED = {  # in these columns; a number may be empty, or a text where the unit says so
    "value": NUMBER,
    "bound": NUMBER,
    "step": NUMBER,
    "expires": "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "kind": "at_least|at_most|equals|report_only",
    "use": "answer|lacking|input|whole|published",
}
UNIT = re.compile("([KMGTP]i|[kMGTP]?)(B|B/s|b/s|bit/s|FLOPS|Hz|IOPS|[a-z-]+/s)")


class BadFile(Exception):
    """The file is not a page of Siteproof, or it is damaged."""


def read(place: str) -> Tuple[Dict[str, str], Dict[str, List[str]]]:
    """The text of each table, and the verdicts that the page shows of each criterion."""
    texts = {}
    if os.path.isdir(place):
        for name in TABLES:
            with open(os.path.join(place, name + ".csv"), encoding="utf-8", newline="") as table:
                texts[name] = table.read()
        return texts, {}
    with open(place, encoding="utf-8") as handle:
        page = handle.read()
    for name, kind, data in re.findall('<a download="([^"]*)" href="data:([^",]*),([^"]*)"', page):
        if name.split(".")[0] in texts:
            raise BadFile("it has %s twice" % name)
        coded = kind.endswith("base64")
        found = base64.b64decode(data) if coded else urllib.parse.unquote_to_bytes(data)
        texts[name.split(".")[0]] = (gunzip(found) if name.endswith(".gz") else found).decode()
    cells = 'data-of="criterion"[^>]*>(.*?)</th>.*?data-of="verdict"[^>]*>(.*?)</td>'
    rows = [
        row for row in (re.search(cells, part, re.DOTALL) for part in page.split("</tr>")) if row
    ]
    quotes = {"&#34;": '"', "&#39;": "'"}
    words = [[unescape(re.sub("<[^>]*>", "", c), quotes) for c in row.groups()] for row in rows]
    shown = {}  # type: Dict[str, List[str]]
    for key, verdict in words:
        shown.setdefault(key.strip(), []).append((verdict.split() or [""])[-1])
    return texts, shown


def rows_of(texts: Dict[str, str], name: str, *key: str) -> List[Row]:
    """The rows of a table, without the apostrophes that keep a spreadsheet from computing.

    key: the columns in which no two rows may be the same.
    """
    if name not in texts:
        raise BadFile("it has no table " + name)
    mark = "(^|[;,|\t\n\r\"])'(?=[=+\\-@'\t\r\uff1d])"
    lines = csv.reader(io.StringIO(texts[name], newline=""), strict=True)
    columns, *rows = [[re.sub(mark, r"\1", cell) for cell in line] for line in lines]
    if any(len(row) != len(columns) for row in rows):
        raise BadFile("a row of table %s has another length" % name)
    found = [dict(zip(columns, row)) for row in rows]
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
            if not free and not re.fullmatch(ALLOWED[column], text):
                where = (name, line, column, text[:40])
                raise BadFile("%s.csv, row %d, column %s: '%s' is not allowed" % where)


def size(unit: str) -> Fraction:
    """A unit in bytes, operations, seconds, or parts of one."""
    found = UNIT.fullmatch(unit)
    if unit in SIZES or not found:
        return SIZES[unit]
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


def meets(rule: Row, value: Fraction, unit: str, facts: str) -> bool:
    """Whether a value meets the bound of a criterion or baseline. facts: `peak=806 GFLOPS; …`."""
    own = rule["bound_unit"]
    if rule["bound_of"]:  # a share of a fact, such as 80 % of peak
        fact, of = dict(f.split("=") for f in facts.split("; "))[rule["bound_of"]].split()
        value = convert(value, unit, of) / Fraction(fact) / convert(ONE, own, "x")
    else:
        value = convert(value, unit, own)
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
        self.value, self.unit, self.facts = None, "", ""  # type: Optional[Fraction], str, str


def rank(one: Outcome) -> int:
    """The place of its verdict; the worst is 0."""
    return ORDER.index(one.verdict)


def without_value(sample: Row) -> Outcome:
    """The outcome of a measurement that has no value, by its status."""
    verdict = "FAIL" if sample["status"] in WRONG else OF_STATUS.get(sample["status"], "ERROR")
    return Outcome(verdict, sample["status"], sample)


class Judge:
    """All tables; judges one criterion after the other."""

    def __init__(self, texts: Dict[str, str]) -> None:
        self.criteria = rows_of(texts, "criteria", "criterion")
        self.units = rows_of(texts, "units", "criterion", "unit")
        self.jobs = {row["job"]: row for row in rows_of(texts, "jobs", "job")}
        self.baselines = {row["baseline"]: row for row in rows_of(texts, "baselines", "baseline")}
        self.waivers = {row["waiver"]: row for row in rows_of(texts, "waivers", "waiver")}
        self.samples = {}  # type: Dict[Tuple[str, str, str], List[Row]]
        for row in rows_of(texts, "samples"):
            self.samples.setdefault((row["criterion"], row["unit"], row["use"]), []).append(row)
        self.must_be_whole()

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

    def of(self, rule: Row, unit: str, use: str) -> List[Row]:
        """The samples of a unit that have one use."""
        return self.samples.get((rule["criterion"], unit, use), [])

    def criterion(self, rule: Row) -> Tuple[str, List[Outcome], Dict[str, Outcome]]:
        """The verdict, the outcomes that are counted, and that of each unit."""
        if rule["report_only"]:
            return "SKIP", [], {}
        if rule["has_check"] == "no":
            return "SKIP" if rule["not_here"] else "PENDING", [], {}
        units = {r["unit"]: r for r in self.units if r["criterion"] == rule["criterion"]}
        each = self.each(rule, units)
        waived = [name for name, row in units.items() if self.waived(rule, row, each[name])]
        each.update((name, Outcome("SKIP", "waived", each[name].sample)) for name in waived)
        deciding = [one for name, one in each.items() if name not in waived]
        if rule["scope"] in MIDDLES and deciding:
            deciding = [self.middle(rule, deciding)]
        counted = deciding + [each[name] for name in waived]
        if waived and not deciding:
            return "SKIP", counted, each
        return self.decide(rule, units, deciding, counted), counted, each

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
        each = {name: self.timely(rule, row, self.unit(rule, row)) for name, row in units.items()}
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
        elif rule["answered_by"] == "evidence":
            final = verdict.replace("INCOMPLETE", "PENDING")
        else:
            return verdict
        for one in deciding:
            one.verdict = final
        return final

    def unit(self, rule: Row, row: Row) -> Outcome:
        """One node, pair or link: the trials of its newest job, by their other dimensions."""
        answers = self.of(rule, row["unit"], "answer")
        if not answers:
            return Outcome("INCOMPLETE", "no value")
        groups = {}  # type: Dict[str, List[Row]]
        for sample in answers:
            if sample["status"] == "ok":
                groups.setdefault(sample["group"], []).append(sample)
        failed = [without_value(s) for s in answers if s["status"] != "ok"]
        worst = min(failed, key=rank) if failed else None
        if worst and (not groups or worst.why in WRONG):
            return worst
        lacking = [without_value(s) for s in self.of(rule, row["unit"], "lacking")]
        for one in lacking:
            one.verdict = one.verdict.replace("SKIP", "INCOMPLETE")
        found = [self.trials(rule, trials, row["facts"]) for trials in groups.values()] + lacking
        sign = -1 if rule["kind"] == "at_most" else 1  # of equal verdicts the worst value
        return min(found, key=lambda one: (rank(one), sign * (one.value or 0)))

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
        """An answer that is too old, or from before an update, is INCOMPLETE."""
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
        """Median or mean of all units, once each has a value."""
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
        return Outcome("FAIL", values[0]["value"] + " published", values[0])

    def of_all(self, rule: Row, facts: List[str]) -> str:
        """What a published value of all units together shows of a criterion without an answer."""
        values = self.of(rule, "", "published")
        return "FAIL" if values and self.misses(rule, values[0], facts) else "INCOMPLETE"

    def derived(self, rule: Row) -> Tuple[List[str], int]:
        """The derived values that do not follow from their inputs; how many have no inputs."""
        wrong, given = [], 0
        units = [row["unit"] for row in self.units if row["criterion"] == rule["criterion"]]
        answers = [s for unit in units for s in self.of(rule, unit, "answer")]
        for answer in answers if rule["derivation"] else []:
            inputs = self.of(rule, answer["unit"], "input")
            if answer["status"] != "ok" or rule["derivation"] == "given":
                given += answer["status"] == "ok"
                continue
            if not inputs:
                wrong.append("%s: the table lacks its inputs" % (answer["unit"] or "all"))
                continue
            whole, value = self.of(rule, answer["unit"], "whole"), answer["value"]
            exact = derive(rule, inputs, whole, answer["value_unit"])
            if abs(Fraction(value) - exact) > abs(exact) * Fraction(6, 10**12):  # it has 12 digits
                what = "%s: the value is %s, its inputs give %.12g"
                wrong.append(what % (answer["unit"] or "all", value, float(exact)))
        return wrong, given


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
    worst = min(counted, key=rank).why if counted else rule["report_only"] or "nothing to judge"
    return "%s: %s" % (many, worst) if many else worst


def differences(judge: Judge, rule: Row, shown: Dict[str, List[str]]) -> Tuple[str, str, List[str]]:
    """The verdict on a criterion, what it rests on, and what the page states otherwise."""
    verdict, counted, each = judge.criterion(rule)
    found = []
    on_page = shown.get(rule["criterion"], [])
    found += ["the page shows %s" % one for one in on_page if one != rule["stated"]]
    met = len([one for one in counted if one.verdict in ("PASS", "REGRESSED")])
    if rule["met"] and (rule["met"], rule["of"]) != (str(met), str(len(counted))):
        stated = (rule["met"], rule["of"], met, len(counted))
        found.append("stated is that %s of %s meet it, recomputed %s of %s" % stated)
    for row in [row for row in judge.units if row["criterion"] == rule["criterion"]]:
        own = each.get(row["unit"])
        if own and row["stated"] not in ("", own.verdict):
            found.append("%s: stated %s, recomputed %s" % (row["unit"], row["stated"], own.verdict))
    return verdict, in_words(rule, counted), found


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


def recompute(texts: Dict[str, str], shown: Dict[str, List[str]], top: str = "") -> int:
    """Print a line a criterion, and each difference; how many there are. top: perflogs."""
    judge, differing, given, evidence = Judge(texts), 0, 0, 0
    lines = []
    for rule in judge.criteria:
        verdict, why, found = differences(judge, rule, shown)
        wrong, without = judge.derived(rule)
        given += without
        evidence += rule["answered_by"] == "evidence"
        differing += bool(found or wrong or verdict != rule["stated"])
        line = (rule["criterion"], rule["stated"], verdict, why)
        lines.append("%-24s stated %-10s  recomputed %-10s  %s" % line)
        lines += ["    differs: %s" % text for text in found + wrong]
    total, keys = len(judge.criteria), {rule["criterion"] for rule in judge.criteria}
    counts = (total, total - differing, differing, given, evidence)
    end = "%d criteria: %d agree, %d differ; "
    end += "taken as given: %d derived values, evidence of %d criteria"
    unlike = unlike_perflogs(judge, top)
    unknown = ["%s is on the page and not in criteria.csv" % key for key in shown.keys() - keys]
    for text in lines + ["differs: %s" % one for one in unlike + unknown] + [end % counts]:
        show(text)
    return differing + len(unlike + unknown)


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
        texts, shown = read(options.page)
        for name in TABLES if options.save else ():
            path = os.path.join(options.save, name + ".csv")
            with open(path, "w", encoding="utf-8", newline="") as table:
                table.write(texts[name])
        return 1 if recompute(texts, shown, options.perflogs) else 0
    except OSError as error:
        show("recompute: %s" % error, sys.stderr)
    except Exception as error:  # a table may be damaged in any way
        what = "recompute: %s: not a page of Siteproof with criteria, or damaged: %s %s"
        show(what % (options.page, type(error).__name__, error), sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
