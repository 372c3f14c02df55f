"""The rule of answers and its second version (tests/support/plain_answers.py) agree.

A history that differs is made smaller while it still differs, and printed.
"""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import made_histories
import plain_answers
import pytest
from plain_answers import Answers, Criterion, History, Job, Line, Waiver
from random_cases import sources

from siteproof.errors import UserError, UserErrors
from siteproof.export.documents import nodes_exit_code
from siteproof.gate.decision import KEEP_OUT, decide
from siteproof.gate.reports import waived
from siteproof.nodes import states
from siteproof.verdict.judgement import judge_system


def commands(history, folder):
    """What verdict, nodes and gate give of a history; units that a waiver covers are left out.

    A history is written with the times and days of this moment: it is asked again where a day, or
    more than a few seconds, passed before the last answer.
    """
    while True:
        began = datetime.now(UTC)
        found = answers_of_today(history, folder)
        ended = datetime.now(UTC)
        if ended.date() == began.date() and ended - began < timedelta(seconds=30):
            return found


def answers_of_today(history, folder):
    made_histories.write(history, folder)
    try:
        judged = judge_system("here", to_now=True)
        report = states.report(judged, states.lately(judged))
    except (UserError, UserErrors):
        return Answers({}, {}, {}, [], (2, 2, 2))
    decision = decide(report.nodes, waived(judged, datetime.now(UTC).date()), KEEP_OUT)
    return Answers(
        {one.id: str(one.verdict) for one in judged.verdicts},
        {
            one.id: {n.node: str(n.verdict) for n in one.nodes if not n.waived}
            for one in judged.verdicts
        },
        {node: str(one.state) for node, one in report.nodes.items()},
        sorted(decision.out),
        (
            int(judged.exit_code),
            int(nodes_exit_code(report.nodes.values())),
            int(bool(decision.out)),
        ),
    )


def differences(history, folder):
    """The fields of the answers that differ, each as the plain version and the commands have it."""
    plain, found = plain_answers.answers(history), commands(history, folder)
    both = {one.name: (getattr(plain, one.name), getattr(found, one.name)) for one in fields(plain)}
    if history.pairs:  # what pairs say of their ends is attribution, which the plain one lacks
        codes = plain.codes[:1], found.codes[:1]
        both = {"criteria": both["criteria"], "units": both["units"], "codes": codes}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    return tmp_path


def smaller(history):
    """The histories with one job, criterion, waiver, node or line less."""
    for name in ("jobs", "criteria", "waivers"):
        for part in getattr(history, name) if name != "criteria" else history.criteria[1:]:
            left = tuple(one for one in getattr(history, name) if one is not part)
            yield replace(history, **{name: left})
    for node in history.nodes[bool(history.pairs) :] if len(history.nodes) > 2 else ():
        yield without_node(history, node)
    for job in history.jobs:
        for line in job.lines:
            left = replace(job, lines=tuple(one for one in job.lines if one is not line))
            yield replace(history, jobs=tuple(left if one is job else one for one in history.jobs))


def without_node(history, node):
    def others(nodes):
        return tuple(one for one in nodes if one != node)

    return replace(
        history,
        partitions={name: others(nodes) for name, nodes in history.partitions.items()},
        waivers=tuple(
            replace(one, nodes=others(one.nodes)) for one in history.waivers if others(one.nodes)
        ),
        pairs={
            link: tuple(pair for pair in pairs if node not in pair.split(">"))
            for link, pairs in history.pairs.items()
        },
        jobs=tuple(
            replace(
                job,
                expected=others(job.expected),
                boards=tuple(board for board in job.boards if board[0] != node),
                lines=tuple(line for line in job.lines if node not in (line.node, line.peer)),
            )
            for job in history.jobs
            if others(job.expected)
        ),
    )


def smallest(history, folder):
    """The history made smaller as long as it differs in no other way."""
    known = set(differences(history, folder))
    while True:
        for one in smaller(history):
            left = set(differences(one, folder)) if made_histories.allowed(one) else set()
            if left and left <= known:
                history = one
                break
        else:
            return history


def text(history, folder):
    """A history and how it differs, to read."""
    parts = [*history.criteria, *history.waivers, *history.jobs]
    found = [
        f"{name}\n  plain   {plain}\n  product {product}"
        for name, (plain, product) in differences(history, folder).items()
    ]
    return "\n".join([f"nodes {history.nodes}", *map(str, parts), *found])


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=pytest.mark.weekly)])
def test_both_versions_agree_on_random_histories(folder, count):
    for chance in sources("two versions", count):
        history = made_histories.made(chance)
        if differences(history, folder):
            pytest.fail(text(smallest(history, folder), folder))


# ---- what was found, each as small as it is


def job(place, *lines, expected=("n001",), number=1, check="Stream", day=None, **keys):
    """A job of maintenance; a line is a node, or a node and a status."""
    made = [line if isinstance(line, Line) else failed(line, check) for line in lines]
    given = {"mode": "maintenance", "environment": "system", "partition": "compute", **keys}
    day = 7 - place if day is None else day
    return Job(place, number, check, day, expected=expected, lines=tuple(made), **given)


def failed(status, check="Stream", node="n001"):
    return Line(node, f"{check}.*", status)


def value(number=101, node="n001", **keys):
    return Line(node, "Stream.triad", "ok", number, **keys)


def history_of(*jobs, nodes=("n001",), waivers=(), criteria=("C-ONE",), **keys):
    partitions = {"compute": nodes, "debug": nodes}
    criteria = [Criterion(name, "Stream.triad", 100, **keys) for name in criteria]
    known = partitions, ("system", "gnu"), ("Stream", "Hpl")
    limits = (("Stream", made_histories.BANDWIDTH),)
    return History(*known, tuple(criteria), tuple(waivers), jobs, limits=limits)


TWO, THREE, LOST = ("n001", "n002"), ("n001", "n002", "n003"), {"readable": False}
FOUND = {
    "failures of two checks, and a waiver of one of them": history_of(
        *(job(1, "generic"), job(2, value()), job(3, "killed", check="Hpl")),
        job(3, Line("n001", "Hpl.share_of_peak", "ok", 101), number=2, check="Hpl"),
        waivers=(Waiver(("n001",), "C-ONE"),),
    ),
    "a waiver of all, and a wrong answer in one of two sessions that failed": history_of(
        *(job(1, "node_lost"), job(1, "invalid", number=2, environment="gnu"), job(2, "login")),
        *(job(3, value()), job(3, value(), number=2, environment="gnu")),
        waivers=(Waiver(("n001",), "all"),),
    ),
    "nothing but a tool that is missing": history_of(job(1, "tool_missing")),
    "a tool that is missing on one node of two": history_of(
        job(1, "tool_missing"), job(2, value(node="n002"), expected=("n002",)), nodes=TWO
    ),
    "two criteria on a metric, one of which is waived": history_of(
        nodes=TWO, waivers=[Waiver(("n001",), "C-ONE")], criteria=("C-ONE", "C-TWO")
    ),
    "a wrong answer among trials": history_of(
        job(1, Line("n001", "Stream.triad", "invalid", trial=1), value(trial=2))
    ),
    "the median of trials": history_of(
        job(1, value(101, trial=1), value(101, trial=2), value(50, trial=3))
    ),
    "a trial that broke is missing": history_of(
        job(1, value(trial=1), Line("n001", "Stream.triad", "killed", trial=2))
    ),
    "a success in another partition": history_of(
        job(1, "timeout", partition="debug"), job(2, value())
    ),
    "a failure that is too old": history_of(job(1, "killed", day=9)),
    "a failure, then a job without a line of the node": history_of(
        job(1, "checksum"), job(2, value(node="n002"), expected=TWO), nodes=TWO
    ),
    "a failure, then a damaged file": history_of(job(1, "checksum"), job(2, **LOST)),
    "a value, then a file without any line": history_of(job(1, value()), job(2)),
    "flapping, then a damaged file": history_of(
        job(1, "killed"), job(2, "killed"), job(3, value()), job(4, **LOST)
    ),
    "a failure that answers in an environment that is gone": history_of(
        job(1, "invalid", environment="gone")
    ),
    "a criterion failed, and its check ended well under other conditions": history_of(
        job(1, "killed"),
        job(2, value(), conditions=(("version", "8"),)),
        conditions=(("version", "4"),),
    ),
    "a waiver covers a criterion, and a wrong answer of the same job is another": history_of(
        job(
            *(1, value(made_histories.TOO_MUCH), Line("n001", "Stream.copy", "checksum")),
            expected=TWO,
        ),
        waivers=(Waiver(TWO, "C-ONE", ("invalid",)),),
        nodes=TWO,
    ),
    "a check whose tool is missing was interrupted, and another one was measured": history_of(
        job(1, Line("n001", "Hpl.share_of_peak", "ok", 101), check="Hpl"),
        *(job(2, "tool_missing"), job(3, "interrupted")),
    ),
    "no promised tool is there, and another check was measured": history_of(
        job(1, "tool_missing"), job(2, Line("n001", "Hpl.share_of_peak", "ok", 101), check="Hpl")
    ),
    "a tool is missing, and a file of an environment that is gone has no line": history_of(
        job(1, check="Hpl", environment="gone"), job(2, "tool_missing")
    ),
    "a tool is missing, and a file of that session, of an environment that is gone, is empty": (
        history_of(job(1, "tool_missing"), job(1, number=2, check="Hpl", environment="gone"))
    ),
    "a tool is missing, and that session has a value of an environment that is gone": history_of(
        job(1, "tool_missing"),
        job(
            *(1, Line("n001", "Hpl.share_of_peak", "ok", 101)),
            **{"number": 2, "check": "Hpl", "environment": "gone"},
        ),
    ),
    "a tool is missing, and another check was measured in an environment that is gone": history_of(
        job(1, Line("n001", "Hpl.share_of_peak", "ok", 101), check="Hpl", environment="gone"),
        job(2, "tool_missing"),
    ),
    "a node of a job with two causes, one of which all others have": history_of(
        job(
            *(1, failed("timeout"), Line("n001", "Stream.copy", "parse")),
            *(failed("timeout", node=node) for node in THREE[1:]),
            expected=THREE,
        ),
        nodes=THREE,
    ),
    "flapping, then a failure that all nodes of a job have": history_of(
        *(job(1, "killed", mode="quick"), job(2, value()), job(3, "generic", mode="quick")),
        job(4, *(failed("generic", node=node) for node in THREE), expected=THREE, mode="quick"),
        nodes=THREE,
    ),
    "a tool is missing where it failed on another node": history_of(
        job(1, "tool_missing", failed("checksum", node="n002"), expected=TWO), nodes=TWO
    ),
    "a tool that was missing on one node of two is a failure now and then": history_of(
        job(1, "tool_missing", value(node="n002"), expected=TWO),
        *(job(2, "checksum"), job(3, value()), job(3, value(node="n002"), number=2)),
        nodes=TWO,
    ),
    "a tool is missing that was there earlier in the session": history_of(
        job(1, value()),
        job(1, "tool_missing", failed("tool_missing", node="n002"), number=2, expected=TWO),
        job(1, Line("n002", "Hpl.share_of_peak", "ok", 101), number=3, check="Hpl"),
        nodes=TWO,
    ),
    "all nodes of a job fail alike in an environment that is gone": history_of(
        job(
            *(1, *(failed("generic", node=node) for node in THREE)),
            **{"expected": THREE, "environment": "gone"},
        ),
        nodes=THREE,
    ),
    "a waiver covers a failure, and there is a value under other conditions": history_of(
        job(1, "killed"),
        job(1, value(), number=2, conditions=(("version", "8"),)),
        conditions=(("version", "4"),),
        waivers=(Waiver(("n001",), "C-ONE"),),
    ),
    "all nodes of a job fail, then one has a value under other conditions": history_of(
        job(1, *(failed("login", node=node) for node in THREE), expected=THREE),
        job(2, value(), conditions=(("version", "8"),)),
        conditions=(("version", "4"),),
        nodes=THREE,
    ),
    "two wrong answers of a session, one of which a waiver names": history_of(
        *(job(1, "invalid"), job(1, "checksum", number=2), job(2, value())),
        *(job(3, "killed", check="Hpl"), job(4, failed("killed", "Hpl"), check="Hpl")),
        job(5, Line("n001", "Hpl.share_of_peak", "ok", 101), check="Hpl"),
        waivers=(Waiver(("n001",), "all", ("checksum",)),),
    ),
    "a tool is missing on all nodes but one, where something else failed": history_of(
        job(
            *(1, "generic", *(failed("tool_missing", node=node) for node in THREE[1:])),
            expected=THREE,
        ),
        nodes=THREE,
    ),
    "a wrong answer that is too old, and a waiver that does not name it": history_of(
        job(1, "checksum", day=8, environment="gone"),
        waivers=(Waiver(("n001",), "all", ("invalid",)),),
    ),
    "a value below its bound beside a failed trial, in a job in which all nodes broke": history_of(
        job(
            *(1, value(99.5, trial=1), Line("n001", "Stream.triad", "killed", trial=2)),
            *(failed("killed", node=node) for node in THREE[1:]),
            expected=THREE,
        ),
        nodes=THREE,
    ),
    "a value in a mode that no criterion accepts": history_of(job(1, value(), mode="quick")),
    "a cause that all nodes of a job have": history_of(
        job(1, *(failed("timeout", node=node) for node in THREE), expected=THREE), nodes=THREE
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_differed_once_agrees(folder, name):
    assert not differences(FOUND[name], folder)
