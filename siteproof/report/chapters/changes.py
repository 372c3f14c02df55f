"""What became better or worse since the last time, and what else changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from siteproof.analysis.before_after import Word
from siteproof.compare import accepted, comparison
from siteproof.compare.comparison import Comparison, Row
from siteproof.record.samples import Header
from siteproof.record.series import CONTRACTUAL
from siteproof.report.material import Material
from siteproof.report.phrases import count, counted, few, figure, nodes, share, when
from siteproof.report.sections import Section, Table
from siteproof.trend import Alert, Moment
from siteproof.wording.findings import full

WORST = 3  # nodes of a row
NAMED = 3  # figures that a sentence names
NODES_FELL = "nodes fell"  # the fleet's median is not worse
MOST = 60  # lines of one kind
NEWS = (Word.WORSE, Word.CHANGED, Word.UNDECIDABLE, Word.BETTER)


@dataclass(frozen=True)
class Since:
    """What is compared with. name: of a campaign or session; words: why that one."""

    name: str
    words: str
    result: Comparison


def chapter(material: Material) -> Section:
    """The comparison with the last time, and what the whole history shows."""
    since, tables, points = material.once(last_time), [], []
    if since:
        tables = _tables(since.result)
        for title, lines in (
            ("Changed beside the figures", since.result.changed),
            ("Not comparable", since.result.not_comparable),
            ("Measured then and not now", since.result.only_a),
            ("Measured now and not then", since.result.only_b),
        ):
            points += [f"{title}: {full(why)}" for why in lines[:MOST]]
            points += [f"{title}: {len(lines) - MOST} more"] if len(lines) > MOST else []
    parts = [_of_history(material)] if material.judged.samples else []
    return Section(
        "changes",
        "What changed since the last time",
        brief(material),
        tables,
        points=points,
        sections=parts,
    )


def brief(material: Material) -> str:
    """What became worse since the last time."""
    since = material.once(last_time)
    if since is None:
        why = (
            "There is no earlier measurement to compare with."
            if material.judged.samples
            else "Nothing was measured, so nothing is compared."
        )
        return " ".join([why, *_steps(material)])
    rows, told = since.result.rows, [f"Compared with {since.words}:"]
    worse = [_worse(row) for row in rows if row.change.word is Word.WORSE]
    fell = [f"{row.name} of {_worst(row)}" for row in rows if row.worst]
    if not rows:
        told.append("no figure is in both.")
    elif not worse:
        told.append(f"none of {count(len(rows), 'figure')} is worse as a whole.")
    else:
        verb = "is" if len(worse) == 1 else "are"
        told.append(
            f"{len(worse)} of {count(len(rows), 'figure')} {verb} worse: {few(worse, NAMED, '; ')}."
        )
    if fell:
        told.append(f"Nodes that fell by themselves: {few(fell, NAMED, '; ')}.")
    return " ".join([*told, *_steps(material)])


def last_time(material: Material) -> Since | None:
    """What was accepted last before what is judged; else the last that measured the same.

    A campaign stands beside the last campaign, a session beside the last of any kind.
    """
    mine = [h for h in material.sessions.headers if h.session in set(material.names)]
    if not mine:
        return None
    start, kinds = min(h.order for h in mine), {_kind(h) for h in mine}
    earlier = [
        h
        for h in material.sessions.headers
        if h.order < start
        and h.session not in set(material.names)
        and not (h.campaign and h.campaign in {m.campaign for m in mine})
    ]
    for record in reversed(material.accepted):
        known = [h for h in earlier if h.session in set(record.sessions)]
        if known:
            words = f"{record.name}, accepted by {record.who} on {when(record.when)}"
            return _compared(material, record.name, words, known)
    wanted = [h for h in earlier if _kind(h) in kinds]
    if any(h.campaign for h in mine):
        wanted = [h for h in wanted if h.campaign] or wanted
    if not wanted:
        return None
    name = accepted.names(wanted)[-1]
    known = [h for h in earlier if name in (h.campaign, h.session)]
    word = "campaign" if any(h.campaign == name for h in known) else "session"
    words = f"{word} {name} of {when(max(h.time for h in known))}"
    return _compared(material, name, words, known)


def _kind(header: Header) -> tuple[str, str, str]:
    mode = CONTRACTUAL[0] if header.mode in CONTRACTUAL else header.mode
    return header.check, header.environment, mode


def _compared(material: Material, name: str, words: str, known: Sequence[Header]) -> Since:
    material.progress(f"comparing with {name}")
    ids = {id(h) for h in known}
    before = material.sessions.of(lambda h: id(h) in ids)
    result = comparison.compare(material.site, before, material.judged.samples, material.perflogs)
    return Since(name, words, result)


def _tables(result: Comparison) -> list[Table]:
    """A line a figure that is not the same; the others are counted."""
    shown = [r for r in result.rows if r.change.word in NEWS or r.worst]
    counts = counted((word, sum(r.change.word is word for r in result.rows)) for word in Word)
    left = f" {len(shown) - MOST} lines are left out here." if len(shown) > MOST else ""
    note = (
        f"Of {count(len(result.rows), 'figure')}: {counts}. Medians over the nodes; noise is "
        "the robust standard error of the change. Undecidable: smaller than what one value "
        f"can show. 'siteproof compare' has all.{left}"
    )
    rows = [
        (
            _word(r),
            r.name,
            r.role,
            figure(r.change.before, r.unit),
            figure(r.change.after, r.unit),
            share(r.change.change),
            "unknown" if r.change.one_value else _noise(r),
            str(len(r.nodes)),
            _worst(r) or "-",
        )
        for r in shown[:MOST]
    ]
    columns = ("word", "metric", "role", "before", "now", "change", "noise", "n", "fell most")
    return [
        Table(
            columns,
            rows,
            note,
            ("before", "now", "change", "noise", "n"),
            "Figures that are not the same",
        )
    ]


def _word(row: Row) -> str:
    """What became of it; where only single nodes fell, that."""
    return NODES_FELL if row.worst and row.change.word is not Word.WORSE else str(row.change.word)


def _noise(row: Row) -> str:
    return share(row.change.noise).lstrip("+")


def _worst(row: Row) -> str:
    return few([f"{node} {share(change)}" for node, change in row.worst], WORST)


def _worse(row: Row) -> str:
    return (
        f"{row.name} {share(row.change.change)} ({figure(row.change.before, row.unit)} -> "
        f"{figure(row.change.after, row.unit)}, {row.role}, {count(len(row.nodes), 'value')})"
    )


def _steps(material: Material) -> list[str]:
    """A sentence on what the whole history shows, if it shows something."""
    if not material.judged.samples:
        return []
    found = material.survey
    still = [a for a in (*found.fleet, *found.alerts, *found.drifts) if a.open]
    told = few(
        [
            f"{a.series_name} {share(a.relative)} on {_where(a)} from {when(_since(a).time)}"
            for a in still
        ],
        NAMED,
        "; ",
    )
    return (
        [
            f"Over all runs {count(len(still), 'change')} for the worse still "
            f"{'holds' if len(still) == 1 else 'hold'}: {told}."
        ]
        if still
        else []
    )


def _since(alert: Alert) -> Moment:
    """Since when it holds: a drift since its first run."""
    return alert.last_before if alert.kind == "drift" else alert.first_after


def _of_history(material: Material) -> Section:
    """Every change of a level that the whole history shows, worse ones first."""
    found = material.survey
    alerts = [*found.fleet, *found.alerts, *found.drifts]
    alerts.sort(key=lambda a: (not a.open, not a.worse))
    still = sum(a.open for a in alerts)
    lead = (
        f"{count(len(alerts), 'change')} in {count(found.points, 'value')} of {found.series} "
        f"series, {still} of them worse, still so, and not acknowledged."
    )
    if not found.series:
        lead = "The history holds no series that could show a change."
    rows = [_alert(a) for a in alerts[:MOST]]
    columns = (
        "state",
        "kind",
        "metric",
        "where",
        "before",
        "after",
        "change",
        "between",
        "confidence",
        "what else changed there",
    )
    left = f"{len(alerts) - MOST} more; 'siteproof trend' has them." if len(alerts) > MOST else ""
    tables = (
        [Table(columns, rows, left, ("before", "after", "change"), "Changes of a level")]
        if rows
        else []
    )
    seasons = [str(one) for one in found.seasons]
    points = [
        f"Acknowledged: {a.series_name} on {_where(a)} by {a.ack.who}: {a.ack.why}"
        for a in found.acknowledged
        if a.ack
    ]
    points += [f"A rhythm, no step: {text}" for text in seasons[:MOST]]
    points += [f"Not judged: {text}" for text in few(found.gaps, MOST, "\n").split("\n") if text]
    refused = material.history.refused
    points += [f"Left out of the history: {line}" for line in refused[:MOST]]
    points += (
        [f"Left out of the history: {len(refused) - MOST} more files"]
        if len(refused) > MOST
        else []
    )
    return Section("history", "Over the whole history", lead, tables, points=points)


def _alert(alert: Alert) -> tuple[str, ...]:
    word = "worse" if alert.worse else "better" if alert.improved else "changed"
    state = f"{word}, made good {when(alert.made_good.time)}" if alert.made_good else word
    sure = f"{alert.confidence}, provisional" if alert.provisional else alert.confidence
    return (
        state,
        alert.kind,
        alert.series_name,
        _where(alert),
        figure(alert.before, alert.unit),
        figure(alert.after, alert.unit),
        share(alert.relative),
        f"{when(alert.last_before.time)} and {when(alert.first_after.time)}",
        f"{sure} (n {alert.n_after})"
        if alert.kind == "drift"
        else f"{sure} (n {alert.n_before} and {alert.n_after})",
        few(list(map(full, alert.changed)), WORST, "; ") or "nothing recorded",
    )


def _where(alert: Alert) -> str:
    names = nodes(alert.nodes)
    return names if alert.place in ("", names) else f"{alert.place}: {names}"
