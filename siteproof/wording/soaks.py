"""What a soak showed, in words: its failures by class, its speeds, and the rounds that lack one."""

from __future__ import annotations

from siteproof.availability.load_speeds import Speed
from siteproof.availability.overview import percent
from siteproof.availability.rounds import Round
from siteproof.availability.soak import Event, Soak, Tally
from siteproof.units import count
from siteproof.wording.amounts import change, quantity

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
