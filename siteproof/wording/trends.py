"""The sentences and cells of `siteproof trend` and `siteproof calibrate`, from data.

What a soak showed, in words: its failures by class, its speeds, and the rounds that lack one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from siteproof.analysis.steps import POWER
from siteproof.availability.overview import percent
from siteproof.availability.soak import Event, Round, Soak, Speed, Tally
from siteproof.errors import harmless
from siteproof.record.finding import Finding
from siteproof.sites import Site
from siteproof.trend.alerts import CONFIRMS, TWO_LEVELS, Alert, Rhythm, Survey
from siteproof.trend.finds import SHORTEST
from siteproof.trend.gaps import LASTING, Sensitivity
from siteproof.units import count, with_unit
from siteproof.wording import findings
from siteproof.wording.findings import change, quantity
from siteproof.wording.in_bounds_unit import levels
from siteproof.wording.verdicts import own

NAMES = {"drift": " drift", "episode": " for a while", "scatter": " scatter"}
MAX_SET = 30  # characters of a node set in the first line of a change
TOO_SHORT = f"too little history, a step needs {SHORTEST} runs of a node"
MAX_CAUSES = 4  # lines of what else changed; 'trend why' has all of them


def head(alert: Alert) -> tuple[str, ...]:
    """The first line of a change: state, metric, place, size, since when, id."""
    names = f"{len(alert.nodes)} nodes" if len(str(alert.nodes)) > MAX_SET else str(alert.nodes)
    return (
        word(alert),
        alert.series_name,
        f"fleet {alert.place}" if alert.of_fleet else names,
        change(alert.relative),
        f"since {alert.begin.time:%Y-%m-%d}",
        alert.id,
    )


def word(alert: Alert) -> str:
    """One word on a change, as it stands now."""
    if alert.provisional:
        return "provisional"
    if alert.past:
        return "past"
    return "drift" if alert.kind == "drift" and alert.worse else direction(alert)


def phrases(site: Site, alert: Alert) -> list[str]:
    """What is printed below: from and to, how certain, what is known, and what else changed."""
    names = str(alert.nodes)
    before, after, its_unit = levels(site, alert.metric, alert.before, alert.after, alert.unit)
    in_rack = alert.place not in (alert.role, names) and not alert.of_fleet
    found = [
        names if len(names) > MAX_SET and not alert.of_fleet else "",
        f"in {alert.place}" if in_rack else "",
        f"{before} -> {with_unit(after, its_unit)}, {alert.confidence.replace('above ', '>')}",
        state(alert) if state(alert) not in (word(alert), "worse drift") else "",
        *(() if alert.ends else causes(alert)),
    ]
    return list(filter(None, found))


def plain(site: Site, alert: Alert) -> tuple[str, ...]:
    """The cells of COLUMNS."""
    before, after, its_unit = levels(site, alert.metric, alert.before, alert.after, alert.unit)
    return (
        *(alert.id, word(alert), alert.metric, alert.series_name, str(alert.nodes), alert.place),
        *(before, after, its_unit, change(alert.relative), alert.confidence),
        *(str(alert.n_before), str(alert.n_after)),
        *(str(alert.last_before), str(alert.first_after), state(alert)),
        "; ".join(findings.full(why) for why in alert.changed),
    )


COLUMNS = (
    *("id", "state", "metric", "series", "nodes", "place", "before", "after", "unit", "change"),
    *("confidence", "runs before", "runs after", "last before", "first after", "remark"),
    "what else changed",
)


def state(alert: Alert) -> str:
    """Whether a change is worse, and proven, and still there."""
    if alert.provisional:
        return f"provisional: {min(alert.n_after, CONFIRMS - 1)} of {CONFIRMS} runs{unit(alert)}"
    text = direction(alert) + NAMES.get(alert.kind, "") + unit(alert)
    if alert.kind == "episode":
        text += f", {count(alert.n_after, 'run')}"
    if alert.meets:
        text += f", meets its bound on {alert.meets}"
    if alert.ends:
        text += f", ends the gain of {alert.ends}: now as the others"
    if alert.made_good:
        text += f", {'recovered' if alert.worse else 'until'} {alert.made_good}"
    return text


def unit(alert: Alert) -> str:
    """The question whether a unit was mistaken."""
    return f", unit? factor {alert.unit_factor:.6g}" if alert.unit_factor else ""


def direction(alert: Alert) -> str:
    """Worse, better, or other where no direction is good."""
    if alert.worse:
        return "worse"
    return "better" if alert.improved else "other"


def causes(alert: Alert) -> list[str]:
    """What else changed, a few lines of it."""
    lines = [findings.full(why) for why in alert.changed[:MAX_CAUSES]]
    more = len(alert.changed) - len(lines)
    return [*lines, f"{more} more, see 'trend why'"] if more > 0 else lines


def sentence(site: Site, alert: Alert) -> str:
    """A change in one line."""
    before, after, its_unit = levels(site, alert.metric, alert.before, alert.after, alert.unit)
    return harmless(
        f"{alert.id} {alert.series_name} of {alert.nodes} ({alert.place}): "
        f"{before} -> {with_unit(after, its_unit)}, "
        f"{change(alert.relative)}, "
        f"since {alert.begin}"
    )


def evidence(alert: Alert) -> list[tuple[str, str]]:
    """Lines about one change, each with its name."""
    provisional = f"; provisional until {CONFIRMS} confirm" if alert.provisional else ""
    before, after = alert.last_before, alert.first_after
    first, last = alert.earliest, alert.latest
    uncertain = (first, last) != (before, after)
    conditions = ", ".join(f"{k} {v}" for k, v in alert.series.conditions)
    is_drift, runs = alert.kind == "drift", str(alert.n_before)  # which is over all of its runs
    size = f", {alert.severity:.1f} times the scatter of a run" if alert.severity else ""
    return [
        ("kind", f"{alert.kind}, {direction(alert)}; {alert.confidence}{size}"),
        ("runs", runs if is_drift else f"{runs} before, {alert.n_after} after{provisional}"),
        ("first" if is_drift else "last before", f"{before} UTC, session {before.session}"),
        ("last" if is_drift else "first after", f"{after} UTC, session {after.session}"),
        *([("between", f"{first} and {last} UTC, with 99 %")] if uncertain else []),
        ("environment", alert.environment),
        ("conditions", conditions or "none"),
        *(("changed", findings.full(why)) for why in alert.changed),
    ]


def acknowledged(site: Site, alert: Alert) -> str:
    """An acknowledged change, by whom and why."""
    assert alert.ack is not None
    return f"{sentence(site, alert)}; by {alert.ack.who} on {alert.ack.when[:10]}: {alert.ack.why}"


def pattern(rhythm: Rhythm) -> str:
    """The recurring pattern of a series."""
    if rhythm.pattern == TWO_LEVELS:
        return "alternates between two levels"
    return f"{rhythm.pattern}, lowest {rhythm.lowest}, highest {rhythm.highest}"


def swing(rhythm: Rhythm) -> str:
    """A recurring pattern in one line."""
    size = f"{rhythm.size * 100:.1f} % wide"
    return f"{rhythm.series_name} of {rhythm.nodes}: {pattern(rhythm)}, {size}"


LASTS = {"3": "of 3 runs", "10": "of 10 runs", LASTING: "lasting"}  # by key of `smallest`


def sensitivity(found: Sequence[Sensitivity]) -> str:
    """From which size on a lasting change is found, in one line."""
    if not found:
        return "no series has enough runs for a change to be found"
    sizes = [f"{share(one.smallest[LASTING])} ({one.series_name})" for one in found]
    ends = sizes[0] if len(sizes) == 1 else f"{sizes[-1]} to {sizes[0]}"
    chance = f"{POWER * 100:.0f} % probability"
    return f"the smallest lasting change that is found with {chance}: {ends}"


def sensitivity_cells(one: Sensitivity) -> tuple[str, ...]:
    """A row of the table of the smallest changes."""
    sizes = (share(one.smallest[last]) for last in LASTS)
    return (
        *(one.series_name, one.role, str(len(one.nodes)), str(one.runs)),
        *(share(one.scatter), *sizes),
    )


def share(part: float) -> str:
    """A share in per cent; a dash where there is none."""
    return f"{part:.1%}".replace("%", " %") if isfinite(part) else "-"


def gaps(found: Iterable[Finding]) -> list[str]:
    """What could not be judged, a line each."""
    return [harmless(findings.sentence(gap)) for gap in found]


def last_lines(system: str, seen: Survey, asked: Mapping[str, str]) -> tuple[str, str]:
    """How much was looked at, and whether anything got worse; then the next command."""
    head = f"{count(seen.series, 'series', 'series')} with {count(seen.points, 'run')} of {system}"
    if not seen.long_enough:
        return f"{head}: {TOO_SHORT}", f"reframe -c checks/ -r --system {system}"
    worse = [a for a in seen.all if a.open]
    proven = sum(not a.provisional for a in worse)
    text = "nothing proven got worse"
    if proven:
        text = f"{count(proven, 'change')} for the worse, not acknowledged"
    provisional = f", {len(worse) - proven} provisional" if len(worse) > proven else ""
    known = f", {len(seen.acknowledged)} acknowledged" if seen.acknowledged else ""
    # The evidence for the first that is proven; of one node what it has lost by itself.
    by_node = bool(asked.get("--node"))
    first = min(worse, key=lambda a: (a.provisional, a.of_fleet and by_node), default=None)
    following = own(system, "report", **{"--since": asked.get("--since", "")})
    if first:
        following = own(system, "trend", "why", first.id)
    return f"{head}: {text}{provisional}{known}", following


def after(system: str, alert: Alert) -> str:
    """The command after the evidence for a change: what is wrong with its first node now.

    What the whole fleet has lost, or a link, a person acknowledges if it is to stay.
    """
    if alert.nodes and not alert.of_fleet:
        return own(system, "why", alert.nodes[0])
    return own(system, "trend", "ack", alert.id, "--why", "TEXT") if alert.open else ""


FAILURES = ("class", "failures", "subjects", "hours", "MTBF, h", "bound, h")
SPEEDS = ("metric", "nodes", "rounds", "first", "last", "change", "effect", "drift")
ROUNDS = ("session", "begin", "end", "asked", "answered", "no answer", "no record")
UNKNOWN = "-"


def failure_row(one: Tally) -> tuple[str, ...]:
    """A row of FAILURES."""
    if one.failures is None:
        return (one.kind, "not known", *4 * (UNKNOWN,))
    times = (one.mtbf_hours, one.mtbf_bound_hours)
    hours = (UNKNOWN if at is None else f"{at:.1f}" for at in times)
    return (one.kind, str(one.failures), str(one.subjects), f"{one.hours:.1f}", *hours)


def speed_row(one: Speed) -> tuple[str, ...]:
    """A row of SPEEDS."""
    ends = (UNKNOWN if at is None else quantity(at, one.unit) for at in (one.first, one.last))
    drift = UNKNOWN if one.drift is None else change(one.drift)
    if one.drift is not None and not one.drifts:
        drift = f"none ({drift})"
    return (
        *(one.metric, str(one.nodes), str(one.rounds), *ends),
        *(change(one.change), one.effect, drift),
    )


def round_row(one: Round) -> tuple[str, ...]:
    """A row of ROUNDS."""
    times = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (one.begin, one.end))
    left = str(one.asked - one.answered)
    return (
        *(one.session, *times, str(len(one.asked)), str(len(one.answered))),
        *(left or UNKNOWN, ", ".join(one.lacking) or UNKNOWN),
    )


def open_rounds(soak: Soak) -> list[str]:
    """A line for each round that is not whole."""
    found = []
    for one in soak.rounds:
        left = one.asked - one.answered
        parts = [f"no answer of {left}"] if left else []
        parts += [f"no record of {', '.join(one.lacking)}"] if one.lacking else []
        if parts:
            found.append(f"{one.begin:%Y-%m-%d %H:%M} UTC, {one.session}: {'; '.join(parts)}")
    return found


def event(one: Event) -> str:
    """n005: wrong answer, Hpl, 2 results, 2026-11-07 23:20 to 2026-11-08 00:20 UTC: a reason."""
    times = " to ".join(dict.fromkeys(f"{at:%Y-%m-%d %H:%M}" for at in (one.begin, one.end)))
    results = count(one.results, "result") if one.results else ""
    text = ", ".join(filter(None, (one.kind, one.check, results, f"{times} UTC")))
    return f"{one.subject}: {text}{f': {one.why}' if one.why else ''}"


def answer(soak: Soak) -> str:
    """40 rounds, 34 with all answers; 103.2 node-hours under load: no failure.

    Then the classes that are not known, what share of the measured time the nodes were up, and
    how much was measured if it is not all.
    """
    known = soak.known
    failures = sum(one.failures or 0 for one in soak.tallies)
    unknown = ", ".join(one.kind for one in soak.tallies if one.failures is None)
    share = known.definitions.node_overall
    failed = count(failures, "failure") if failures else "no failure"
    parts = [
        f"{count(len(soak.rounds), 'round')}, {soak.whole_rounds} with all answers",
        f"{soak.node_hours:.1f} node-hours under load: {failed}",
    ]
    if unknown:
        parts.append(f"not known: {unknown}")
    if share is not None:
        hours = f", {known.measured_hours():.1f} of {known.period_hours:.1f} h"
        up = f"the nodes were up for {percent(share)} of the measured time"
        parts.append(f"{up}{hours if known.missing() else ''}")
    return "; ".join(parts)
