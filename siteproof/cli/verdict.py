"""siteproof verdict: Show for each criterion whether the system meets it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from siteproof.cli.shared import (
    SET_ASIDE,
    Entry,
    forms,
    print_answer,
    print_left_out,
    print_plain,
    print_records,
    print_wrapped,
    which_answers,
)
from siteproof.export import documents
from siteproof.export.documents import dumps
from siteproof.record.finding import RANKS, Verdict
from siteproof.units import count
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.verdict.tally import Standing, Tally, of_all
from siteproof.wording import tallies, verdicts
from siteproof.wording.findings import warning

COLUMNS = (
    "verdict",
    "criterion",
    "worst value",
    "worst node",
    "limit",
    "margin",
    *Standing,
    "expected",
    "waived",
    "age",
    "why",
    "source",
)


@click.command()
@which_answers
@forms(documents.Verdicts)
def verdict(system: str, since: str, campaign: str, as_of: str, form: str) -> None:
    """Show for each criterion whether the system meets it.

    Each criterion is answered, node by node and pair by pair, by the newest measurement that
    matches its conditions, from any session. A newer failure replaces an older PASS. An answer
    that is older than the criterion's max_age (7d), or than a recorded change of kernel, firmware
    or software lock, is INCOMPLETE. With --since or --campaign only these sessions count, and ages
    count from the newest of them. SITEPROOF_CAMPAIGN=NAME in the environment of a run names its
    campaign.

    A criterion that the mode of the newest session does not answer, and that was met when it was
    measured last, is counted with that day, and does not decide: those of acceptance after a
    maintenance evening.

    A check that failed on a node, in any mode, and has not ended well since is a warning, and
    counts as a criterion does.

    Exit code: 0 every criterion in force was decided and is met; 1 a FAIL, ERROR or REGRESSED; 2
    wrong usage or input; 3 nothing failed, but something is INCOMPLETE or PENDING, or a SKIP
    without a waiver or not_here; or nothing was decided; or a file was left out, or a stage
    directory set aside, that could hold a failure.

    \b
    siteproof verdict --since 2026-11-21T18:00
    """
    judged = judge_system(system, since=since, name=campaign, as_of=as_of, whole=True)
    print_left_out(*judged.all_sessions, aside=False)
    if form == "json":
        click.echo(dumps(documents.verdict(judged)))
    elif form == "plain":
        found = [Tally.of(judged.site, result) for result in judged.verdicts]
        print_plain(COLUMNS, map(_plain, found))
    else:
        _print(judged)
    raise SystemExit(judged.exit_code)


def _print(judged: Judgement) -> None:
    found = sorted(of_all(judged.site, judged.verdicts), key=lambda t: RANKS[t.result.verdict])
    print_wrapped(verdicts.heading(judged))
    style = "none" if verdicts.published_only(judged) else ""
    print_records([_record(alike, style) for alike in tallies.alike(found)])
    print_wrapped(*_remarks(judged))
    print_answer(verdicts.last_line(judged), verdicts.next_command(judged))


def _plain(tally: Tally) -> tuple[str, ...]:
    """The cells of COLUMNS; empty where there is none."""
    result = tally.result
    cells = (
        *(str(result.verdict), result.id, tallies.value(tally)),
        tally.worst.node if tally.worst else "",
        *(tallies.limit(tally), tallies.margin(tally)),
        *(str(len(units)) for units in tally.standings.values()),
        str(tally.expected),
        str(sum(unit.waived for units in tally.standings.values() for unit in units)),
        *(verdicts.age(result), "; ".join(tallies.reasons(tally)), result.criterion.source),
    )
    return tuple("" if cell == tallies.NOTHING else cell for cell in cells)


def _remarks(judged: Judgement) -> Iterator[str]:
    """What limits the trust in the verdict, what is missing, and how many criteria wait."""
    for why in judged.warnings:
        yield f"warning: {warning(why)}"
    if judged.site.gaps:
        gaps = count(len(judged.site.gaps), "gap")
        lint = f"siteproof lint --system {judged.site.name}"
        yield f"warning: the site has {gaps}; '{lint}' lists what is missing"
    for metric in judged.unjudged:
        yield f"measured, but no criterion covers it: {metric}"
    if skipped := [r.id for r in judged.verdicts if r.verdict is Verdict.SKIP and not r.excused]:
        yield (
            f"could not be measured here: {', '.join(skipped)}; if that is expected, give the "
            "criterion 'not_here: REASON', or write a waiver"
        )
    for line in judged.set_aside:
        yield f"{SET_ASIDE}{line}"
    for name in judged.members:
        yield f"the criteria of {name} itself: siteproof verdict --system {name}"
    yield from verdicts.other_modes_lines(judged)
    yield verdicts.answered_line(judged)


def _record(alike: Sequence[Tally], style: str) -> Entry:
    """A criterion with its value, limit and counts; of several the reason that they share."""
    first, result = alike[0], alike[0].result
    if len(alike) > 1:
        names = ", ".join(tally.result.id for tally in alike)
        head = [str(result.verdict), f"{len(alike)} criteria"]
        return Entry(head, [*tallies.lack(first), names], style)
    head = [str(result.verdict), result.id]
    own = tallies.is_of_the_verdict(first)
    if first.worst and own:
        head += [tallies.value(first), tallies.limit(first), tallies.margin(first)]
    elif not result.criterion.report_only:
        head.append(tallies.limit(first))
    by_rounding = "passes only by rounding" if result.by_rounding else ""
    old = f"age {verdicts.age(result)}" if result.age is not None else ""
    phrases = [
        *tallies.counts(first),
        tallies.worst(first) if own else tallies.worst_of_others(first),
        *tallies.members(first),
        by_rounding,
        old,
        *tallies.reasons(first),
    ]
    return Entry(head, list(filter(None, phrases)), style)
