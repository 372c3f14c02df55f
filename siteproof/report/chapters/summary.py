"""The first questions of a reader, each answered in a few sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from siteproof.errors import UserError, UserErrors
from siteproof.judge.criterion import CriterionVerdict
from siteproof.judge.severity import Verdict
from siteproof.published import table_cells
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.report.chapters import changes, conditions, criteria, nodes, untested
from siteproof.report.material import Material
from siteproof.report.phrases import few, period, when
from siteproof.report.sections import Section, Table
from siteproof.units import count
from siteproof.wording.verdicts import published_only, rerun

ONLY_PUBLISHED = "PUBLISHED"
UNDECIDED = "UNDECIDED"  # no criterion at all, or none that decides anything
MEANING = {
    Verdict.FAIL: "It did not pass: a criterion is not met",
    Verdict.ERROR: "It did not pass: a measurement broke",
    Verdict.REGRESSED: "Every criterion is met, and a value is worse than its baseline",
    Verdict.INCOMPLETE: "Nothing failed, and something that a criterion requires is not measured",
    Verdict.PENDING: "Nothing failed, and something waits for a person or for a check",
    Verdict.SKIP: "Nothing failed, and something could not be measured here",
    Verdict.PASS: "It passed: every criterion that can be decided is met",
}
STEPS = {  # what to do about criteria with a verdict
    Verdict.FAIL: "Repair what misses {}, or record a waiver in waivers.yaml.",
    Verdict.ERROR: "Find out why the measurement of {} broke, and repeat it.",
    Verdict.REGRESSED: "Find out what changed for {}.",
    Verdict.INCOMPLETE: "Measure what is missing of {}.",
    Verdict.PENDING: "No check decides {}: a person must, or a check must be written.",
    Verdict.SKIP: "Install the tools for {}, or state not_here in criteria.yaml.",
}
MAX_NAMES = 4


def next_steps(material: Material) -> str:
    """What to do about each verdict, and the command that measures what failed or is missing."""
    verdicts = material.judged.verdicts
    if not verdicts:
        return "Write what the system must reach into criteria.yaml of the site."
    texts = []
    for verdict, step in STEPS.items():
        names = [r.id for r in verdicts if r.verdict is verdict and _decides(r)]
        if names:
            texts.append(step.format(few(names, MAX_NAMES)))
    if not texts:
        return "Nothing has to be repaired; 'siteproof accept' records who accepts this and why."
    if command := rerun(material.judged):
        texts.append(f"This measures what failed or is missing: {command}")
    return " ".join(texts)


def _decides(result: CriterionVerdict) -> bool:
    return not (result.excused or result.criterion.report_only)


QUESTIONS: tuple[tuple[str, Callable[[Material], str], str], ...] = (
    ("What is to be done?", next_steps, "criteria"),
    ("Which nodes stay out, and why?", nodes.brief, "nodes"),
    ("What got worse since the last time?", changes.brief, "changes"),
    ("What was not tested?", untested.brief, "untested"),
    ("Under which conditions was HPL run?", conditions.brief, "conditions"),
)


def chapter(material: Material) -> Section:
    """The questions that a reader has first, with their answers."""
    passed = f"{mark(material)}. {_meaning(material)}. {criteria.brief(material)}"
    rows = [("Did it pass?", passed, "criteria")]
    rows += [(question, _answer(answer, material), where) for question, answer, where in QUESTIONS]
    return Section("summary", "In short", "", [Table(("question", "answer", "see"), rows)])


def mark(material: Material) -> str:
    """The most severe verdict on any criterion that decides something, if anything was measured."""
    if published_only(material.judged):
        return ONLY_PUBLISHED
    return str(material.judged.most_severe or UNDECIDED)


def headline(material: Material) -> str:
    """The result in a sentence, and how many nodes stay out."""
    text = _meaning(material)
    if material.judged.verdicts:
        text += f" ({criteria.counts(material)})"
    if published_only(material.judged):
        return f"{text}."
    return f"{text}. {_answer(nodes.short, material)}"


def _answer(brief: Callable[[Material], str], material: Material) -> str:
    """The answer; the error where a file that it needs is broken."""
    try:
        return brief(material)
    except (UserError, UserErrors) as error:
        return f"This cannot be answered: {error}"


def facts(material: Material) -> list[tuple[str, str]]:
    """System, what is judged, when, with which suite, by whom, and on how many nodes."""
    judged = material.judged
    heads = list({id(s.header): s.header for s in judged.samples}.values())
    own = [h for h in heads if h.mode != PUBLISHED]
    inventory = {
        node for role in material.site.system.nodes for node in material.site.expected(role)
    }

    sessions = count(len({h.session for h in own}), "session")
    rows = [
        ("System", material.site.system.description),
        (
            "Judged",
            f"{judged.chosen} ({sessions}, {count(len(own), 'job')})" if own else judged.chosen,
        ),
        ("Measured", period([h.time for h in own])),
        ("Mode", few(sorted({h.mode or "none" for h in heads}), MAX_NAMES) or "-"),
        ("Nodes", f"{len(material.measured)} of {len(inventory)} have a value"),
        ("Suite", few(_provenance(own, "suite"), MAX_NAMES)),
        ("Measured by", few(_provenance(own, "user"), MAX_NAMES)),
        ("Published", _stated([s for s in judged.samples if s.header.mode == PUBLISHED])),
        ("Accepted", _answer(_accepted, material)),
        ("Made", when(material.now)),
    ]
    return [(name, text) for name, text in rows if text]


def _provenance(heads: Sequence[Header], name: str) -> list[str]:
    return sorted({h.provenance[name] for h in heads if h.provenance.get(name)})


def _stated(found: Sequence[Sample]) -> str:
    """How many values others have published, of which days, and in which documents."""
    if not found:
        return ""
    order = sorted(found, key=lambda s: s.header.time)
    first, last = table_cells.when(order[0]), table_cells.when(order[-1])
    days = dict.fromkeys((first.partition("/")[0], last.rpartition("/")[2]))
    sources = {
        source.partition(", ")[0]
        for s in found
        for source in s.header.provenance.get("source", "").split("; ")
    } - {""}
    number = count(len(found), "value or text", "values and texts")
    by = few(sorted(sources), MAX_NAMES, "; ") or "no source given"
    return f"{number} of {' to '.join(days)}, by {by}"


def _accepted(material: Material) -> str:
    if not material.accepted:
        return "nothing yet"
    last = material.accepted[-1]
    return f"{last.name} on {when(last.when)}"


def _meaning(material: Material) -> str:
    verdict = mark(material)
    if verdict == ONLY_PUBLISHED:
        return "Nothing was measured here; these are values that others have published"
    if verdict != UNDECIDED:
        return MEANING[Verdict(verdict)]
    if material.judged.verdicts:
        return "Nothing is decided: no criterion could be"
    return "Nothing is decided: the site has no criteria"
