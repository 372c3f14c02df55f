"""JUnit XML for Jenkins and GitLab: a suite for each check, a case for each criterion.

Jenkins sorts by classname, and its xUnit plugin refuses properties of a case, so they are
properties of the suite. GitLab shows classname, name and the text of a failure, not its message;
of several cases with the same name it keeps the first. Nodes are lines of a case, as 320 nodes as
cases of each criterion would hide the few that matter.

The file has a failure or an error if, and only if, the exit code of `siteproof verdict` is not 0.
INCOMPLETE is therefore an error. PENDING and SKIP are skipped cases, and the case "every criterion
was decided" is then an error.

The time of a case is that of the jobs that answer it: each from the end of the job before it in its
session to its own end, so that the times of a session's jobs add up to the session's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from siteproof import nodesets
from siteproof.answers.criterion import CriterionVerdict, NodeVerdict
from siteproof.errors import harmless
from siteproof.export.documents import answers, common
from siteproof.record.finding import UNDECIDED, Verdict, most_severe, of_status
from siteproof.record.pair_units import ends
from siteproof.record.samples import Header, Sample
from siteproof.units import count
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.tally import Tally
from siteproof.wording import tallies
from siteproof.wording.verdicts import bound, reasons, value, why

TAGS = {
    Verdict.FAIL: "failure",
    Verdict.ERROR: "error",
    Verdict.REGRESSED: "failure",
    Verdict.INCOMPLETE: "error",
    Verdict.PENDING: "skipped",
    Verdict.SKIP: "skipped",
}
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}
Job = tuple[str, str]  # session and job
LISTED = 50  # nodes of a criterion that have a line, the worst first
DECIDED = "every criterion was decided"
ENDED_WELL = "every other check ended well on each node"


def text(judged: Judgement, *, per_node: bool = False) -> str:
    """The document. per_node: with a case for each node of each criterion."""
    top = Element("testsuites", name=f"siteproof {judged.site.system.system}")
    seconds = _seconds(judged)
    by_check = sorted(judged.verdicts, key=_check)
    for check, group in groupby(by_check, key=_check):
        suite = SubElement(top, "testsuite", name=check)
        _fill(suite, judged, list(group), seconds, per_node=per_node)
    _decided(top, judged)
    for suite in top:
        _count(suite, [suite])
    _count(top, list(top))
    del top.attrib["skipped"]  # the schema knows it of a suite only
    _time(top, judged.samples)
    _harmless(top)
    ElementTree.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(top).decode() + "\n"


def _check(result: CriterionVerdict) -> str:
    return result.criterion.metric.partition(".")[0]


def _fill(
    suite: Element,
    judged: Judgement,
    results: Sequence[CriterionVerdict],
    seconds: Mapping[Job, float],
    *,
    per_node: bool,
) -> None:
    """The properties and cases of a check."""
    found = [sample for result in results for sample in answers(result)]
    if found:
        newest = max(datetime.fromisoformat(s.header.time) for s in found)
        suite.set("timestamp", newest.strftime("%Y-%m-%dT%H:%M:%S"))
        _time(suite, found)
    properties = SubElement(suite, "properties")
    for result in results:
        for name, fact in _facts(judged, result).items():
            SubElement(properties, "property", name=f"{result.id}.{name}", value=fact)
    for result in results:
        case = _case(suite, judged, result)
        _took(case, answers(result), seconds)
        for node in result.nodes if per_node else ():
            _node_case(suite, judged, result, node)


def _facts(judged: Judgement, result: CriterionVerdict) -> dict[str, str]:
    """The properties of a criterion, as texts; those that are empty are left out."""
    worst, found = result.worst, answers(result)
    facts = {
        "verdict": str(result.verdict),
        "metric": result.criterion.metric,
        "value": value(worst, result.criterion) if worst else "",
        "unit": worst.sample.unit if worst and worst.sample else "",
        "bound": bound(judged, result),
        "source": result.criterion.source,
        "nodes_ok": str(result.ok) if result.nodes else "",
        "nodes_expected": str(result.units) if result.nodes else "",
        "measured": max((s.header.time for s in found), default=""),
        "sessions": " ".join(sorted({s.header.session for s in found})),
        "conditions": ", ".join(f"{k} {v}" for k, v in sorted(common(found).items())),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _case(suite: Element, judged: Judgement, result: CriterionVerdict) -> Element:
    case = _new(suite, judged, _name(result))
    worst, tally = result.worst, Tally.of(judged.site, result)
    parts = [value(worst, result.criterion)] if worst else []
    if not result.criterion.report_only:
        parts.append(f"bound {bound(judged, result)}")
    parts += [*tallies.counts(tally), *tallies.reasons(tally)]
    if result.by_rounding:
        parts.append("passes only by rounding")
    bad = [n for n in result.nodes if n.verdict is not Verdict.PASS]
    _add_result(case, result.verdict, "; ".join(parts), _lines(result, bad))
    facts = [f"{name}: {fact}" for name, fact in _facts(judged, result).items()]
    listed = _lines(result, result.nodes) if len(result.nodes) > 1 else []
    SubElement(case, "system-out").text = "\n".join([*facts, *listed])
    return case


def _name(result: CriterionVerdict) -> str:
    return f"{result.id}: {result.criterion.description}"


def _new(suite: Element, judged: Judgement, name: str) -> Element:
    classname = f"{judged.site.system.system}.{suite.get('name')}"
    return SubElement(suite, "testcase", classname=classname, name=name)


def _node_case(
    suite: Element, judged: Judgement, result: CriterionVerdict, node: NodeVerdict
) -> None:
    at = f" at {node.point}" if result.criterion.report_only and node.point else ""
    case = _new(suite, judged, f"{_name(result)} [{node.node}{at}]")
    line = _line(result, node)
    _add_result(case, node.verdict, f"{line}; bound {bound(judged, result)}", [])
    SubElement(case, "system-out").text = line


def _add_result(case: Element, verdict: Verdict, message: str, lines: Iterable[str]) -> None:
    """Why a case did not pass: as message, and as text because GitLab shows no message."""
    if verdict in TAGS:
        first = f"{verdict}: {message}"
        added = SubElement(case, TAGS[verdict], type=str(verdict), message=first)
        added.text = "\n".join([first, *lines])


def _lines(result: CriterionVerdict, nodes: Sequence[NodeVerdict]) -> list[str]:
    """A line for each node, the worst first; beyond LISTED the others as a set."""
    lines = [_line(result, node) for node in nodes[:LISTED]]
    rest = [node.node for node in nodes[LISTED:]]
    if rest and all(len(ends(unit)) == 1 for unit in rest):
        lines.append(f"and {len(rest)} more: {nodesets.of(rest)}")
    elif rest:  # no set of pairs is short
        lines.append(f"and {len(rest)} more, such as {rest[0]}")
    return lines


def _line(result: CriterionVerdict, node: NodeVerdict) -> str:
    shown = value(node, result.criterion) if node.value is not None else ""
    why = reasons(node.findings)
    return f"{node.node}: {', '.join(filter(None, (str(node.verdict), shown, why)))}"


def _decided(top: Element, judged: Judgement) -> None:
    """A case that is an error where some criterion, or every one, is undecided."""
    suite = SubElement(top, "testsuite", name="verdict")
    case = _new(suite, judged, DECIDED)
    lacking = [r for r in judged.verdicts if r.verdict in UNDECIDED and not r.excused]
    if lacking or judged.most_severe is None:
        lines = [", ".join(filter(None, (f"{r.id}: {r.verdict}", why(r)))) for r in lacking]
        _add_result(case, Verdict.INCOMPLETE, _undecided(lacking, judged), lines)
    SubElement(case, "system-out").text = judged.chosen
    if judged.failed_besides:
        _checks(_new(suite, judged, ENDED_WELL), judged.failed_besides)


def _undecided(lacking: Sequence[CriterionVerdict], judged: Judgement) -> str:
    if not lacking:
        return "nothing was decided at all"
    words = " or ".join(v for v in UNDECIDED if any(r.verdict is v for r in lacking))
    return f"{len(lacking)} of {len(judged.verdicts)} criteria are {words}"


def _checks(case: Element, failed: Sequence[Sample]) -> None:
    """How checks failed that no criterion has decided, a line each."""
    worst = most_severe(of_status(attempt.status) for attempt in failed) or Verdict.ERROR
    lines = [f"{one.node}: {one.header.check}: {one.why or one.status}" for one in failed]
    _add_result(case, worst, f"{count(len(lines), 'check')} failed", lines)


def _count(element: Element, suites: Sequence[Element]) -> None:
    element.set("tests", str(sum(len(suite.findall("testcase")) for suite in suites)))
    for name, tag in COUNTED.items():
        element.set(name, str(sum(len(suite.findall(f"testcase/{tag}")) for suite in suites)))


def _time(element: Element, samples: Iterable[Sample]) -> None:
    """How long the sessions took, from their start to the end of their last job, with queueing."""
    spans: dict[str, float] = {}
    for head in {id(sample.header): sample.header for sample in samples}.values():
        if head.began is not None:
            spans[head.session] = max(spans.get(head.session, 0.0), _end(head) - head.began)
    if spans:
        element.set("time", f"{sum(spans.values()):.0f}")


def _seconds(judged: Judgement) -> dict[Job, float]:
    """How long each job took, by session and job: since the one before it in its session ended."""
    all_known = judged.sessions.headers if judged.sessions else [s.header for s in judged.samples]
    known = sorted({(h.session, _end(h), h.job, h.began) for h in all_known if h.began is not None})
    found: dict[Job, float] = {}
    last: dict[str, float] = {}  # end of a session's job
    for session, end, job, began in known:
        span = max(0.0, end - last.get(session, began))
        found[session, job] = found.get((session, job), 0.0) + span
        last[session] = end
    return found


def _end(head: Header) -> float:
    return datetime.fromisoformat(head.time).timestamp()


def _took(case: Element, found: Iterable[Sample], seconds: Mapping[Job, float]) -> None:
    jobs = {(sample.header.session, sample.header.job) for sample in found}
    if known := [seconds[job] for job in jobs if job in seconds]:
        case.set("time", f"{sum(known):.0f}")


def _harmless(top: Element) -> None:
    """Remove the characters that XML 1.0 cannot represent, such as ESC."""
    for element in top.iter():
        for name, attribute in element.attrib.items():
            element.set(name, harmless(attribute))
        if element.text:
            element.text = "\n".join(map(harmless, element.text.split("\n")))
