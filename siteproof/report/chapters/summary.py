"""What a reader asks first, each answered in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from siteproof.errors import UserError, UserErrors
from siteproof.judge.severity import Verdict
from siteproof.published import table_cells
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.report.chapters import changes, conditions, criteria, nodes, untested
from siteproof.report.material import Material
from siteproof.report.phrases import few, period, when
from siteproof.report.sections import Section, Table
from siteproof.units import count

UNDECIDED = "UNDECIDED"  # no criterion at all, or none that decides anything
MEANING = {
    Verdict.FAIL: "It did not pass: a promise is not kept",
    Verdict.ERROR: "It did not pass: a measurement broke",
    Verdict.REGRESSED: "No promise is broken, and a figure is worse than its own baseline",
    Verdict.INCOMPLETE: "Nothing failed, and something that was promised has not been measured",
    Verdict.PENDING: "Nothing failed, and something waits for a person or for a check",
    Verdict.SKIP: "Nothing failed, and something could not be measured here",
    Verdict.PASS: "It passed: every criterion that can be decided is kept",
}
QUESTIONS: tuple[tuple[str, Callable[[Material], str], str], ...] = (
    ("Which nodes stay out, and why?", nodes.brief, "nodes"),
    ("What got worse since the last time?", changes.brief, "changes"),
    ("What was not tested?", untested.brief, "untested"),
    ("Under which conditions was HPL run?", conditions.brief, "conditions"),
)
MAX_NAMES = 4


def chapter(material: Material) -> Section:
    """The five questions."""
    passed = f"{mark(material)}. {_meaning(material)}. {criteria.brief(material)}"
    rows = [("Did it pass?", passed, "criteria")]
    rows += [(question, _answer(answer, material), where) for question, answer, where in QUESTIONS]
    return Section("summary", "In short", "", [Table(("question", "answer", "see"), rows)])


def mark(material: Material) -> str:
    """The most severe verdict on any criterion that decides something."""
    return str(material.judged.most_severe or UNDECIDED)


def headline(material: Material) -> str:
    """What became of it, in a sentence, and how many nodes stay out."""
    told = (
        f"{_meaning(material)} ({criteria.counts(material)})."
        if material.judged.verdicts
        else f"{_meaning(material)}."
    )
    modes = {s.header.mode for s in material.judged.samples}
    if modes == {PUBLISHED}:
        return f"{told} All of it was published by others; this suite has measured nothing of it."
    return f"{told} {_answer(nodes.short, material)}"


def _answer(brief: Callable[[Material], str], material: Material) -> str:
    """The answer; where a file that it needs is broken, that, and the others stand."""
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
    """How many figures others have published, of which days, and in which documents."""
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
    told = count(len(found), "figure or text", "figures and texts")
    by = few(sorted(sources), MAX_NAMES, "; ") or "no source given"
    return f"{told} of {' to '.join(days)}, by {by}"


def _accepted(material: Material) -> str:
    if not material.accepted:
        return "nothing yet"
    last = material.accepted[-1]
    return f"{last.name} on {when(last.when)}"


def _meaning(material: Material) -> str:
    word = mark(material)
    if word == UNDECIDED:
        return (
            "Nothing is decided: no criterion that can be"
            if material.judged.verdicts
            else "Nothing is decided: the site promises nothing"
        )
    return MEANING[Verdict(word)]
