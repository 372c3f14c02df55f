"""What a sweep says, in sentences: the lines below its table, and above its figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from siteproof.analysis.before_after import Word
from siteproof.analysis.plateau import At, Beyond, Finding, Unknown
from siteproof.analysis.scaling import Packing
from siteproof.curves.best_setting import Setting
from siteproof.curves.bounds import WINDOWS
from siteproof.curves.measured import ALL, TASKS, Curve, Row, least_fair
from siteproof.curves.run_findings import Axis, SweepReport
from siteproof.record.point import OWN
from siteproof.units import size, with_unit

STARVED = 0.5  # of the fastest rank's rate: a slower rank is worth a line


def headlines(report: SweepReport) -> list[str]:
    """The sentences of a run, figure by figure."""
    parts = [text for lines in report.groups for text in of_group(report, lines)]
    for figure, packing in report.packings.items():
        parts.append(f"{figure}: {of_packing(packing)}")
    parts += [of_setting(setting) for setting in report.settings]
    shown = {lines[0].metric for lines in report.groups}
    if cached := sorted(
        shown & {s.metric for s in report.run.good if s.conditions.get("cached") == "yes"}
    ):
        parts.append(f"{', '.join(cached)}: cached, as memory could hold the files of some points")
    if report.path is not None and report.axis.name in WINDOWS:
        parts.append(
            f"the path holds {size(int(report.path))}, its rate times its round trip: "
            "smaller windows cannot fill it"
        )
    return parts


def of_group(report: SweepReport, lines: Sequence[Curve]) -> Iterator[str]:
    """Each curve's sentence; with a best of all, only of those that span a doubling."""
    whole = next((c for c in lines if c.line == ALL), None)
    for curve in lines:
        if whole is None or curve.finding and curve.finding.gain is not None:
            yield f"{curve.name}: {'; '.join(of_curve(report.axis, curve))}"
        if whole in (None, curve) and (limits := report.bounds_of(curve, curve.best)):
            tight = limits[0]
            more = ", more than it can carry: a cache, or a wrong description"
            yield (
                f"{curve.name}: {per_cent(tight.share)} of the model's bound, {tight.what} "
                f"({with_unit(number(tight.limit), curve.unit)}){more * (tight.share > 1)}"
            )
    unfair = [worst for curve in lines if (worst := least_fair(curve))]
    row, share = min(unfair, key=lambda worst: worst[1], default=(None, 1.0))
    if row and share < STARVED:
        yield (
            f"{lines[0].metric}: ranks differ at {at(report.axis, row.label)}: the slowest "
            f"has {per_cent(share)} of the fastest's rate"
        )


def of_curve(axis: Axis, curve: Curve) -> list[str]:
    """The peak, and what the curve does before and after it."""
    parts = [_best(axis, curve, curve.best)]
    first = curve.rows[0].point.x
    return parts + (of_finding(axis, curve.finding, first) if curve.finding else [])


def _best(axis: Axis, curve: Curve, best: Row) -> str:
    word = "lowest" if curve.better == "lower" else "highest"
    if curve.better == "neither":
        word = "largest"
    parts = f"{word} {with_unit(number(best.point.median), curve.unit)} at {at(axis, best.label)}"
    if len(best.point.values) > 1:
        parts += f" (median of {len(best.point.values)})"
    if axis.name == TASKS and curve.better == "higher" and best.tasks > 1:
        parts += f", {number(best.per_task)} a task"
        first = curve.rows[0]
        if first.tasks == 1:
            parts += f" against {number(first.point.median)} of one"
    return parts


def of_finding(axis: Axis, finding: Finding, first: float) -> list[str]:
    """Plateau, fit and decline, each with what makes it doubtful. first: place of the curve."""
    parts = [_plateau(axis, finding, first)]
    if finding.fit and (finding.doubtful or not isinstance(finding.plateau, Beyond)):
        parts.append(f"a rising and a flat line meet at {at(axis, finding.fit.x)}")
    if isinstance(finding.decline, At):
        parts.append(f"falls from {at(axis, finding.decline.x)} on")
    elif isinstance(finding.decline, Unknown):
        parts.append(f"whether it falls after the peak: {finding.decline}")
    if finding.doubtful and finding.noise is not None:
        parts.append(f"a rough one, as runs differ by {per_cent(finding.noise)}")
    return parts


def _plateau(axis: Axis, finding: Finding, first: float) -> str:
    place = finding.plateau
    if isinstance(place, At) and place.x == first > 1:
        return f"plateau from {at(axis, place.x)} on, or before: it is the first point"
    if isinstance(place, At):
        return f"plateau from {at(axis, place.x)} on, the first within 5 % of it"
    if isinstance(place, Unknown):
        return f"plateau {place}"
    return (
        f"plateau not reached: >{at(axis, place.last)}, the last doubling gained "
        f"{per_cent(finding.gain or 0)}"
    )


def of_packing(packing: Packing) -> str:
    """How many tasks a node carries, and what was compared."""
    each = ", ".join(
        f"{loss.tasks_per_node} a node {change(-loss.usual)}"
        + (f" (worst {change(-loss.worst)}, with {loss.worst_at} tasks)" * (loss.places > 1))
        for loss in packing.losses
    )
    lose = "tasks a node lose" if packing.most != 1 else "task a node loses"
    return f"{packing.most} {lose} at most 5 % against one, with {packing.compared_at}: {each}"


def of_setting(setting: Setting) -> str:
    """The best setting of some knobs, and whether it is better than the machine's own values."""
    place = ", ".join(f"{key} {value}" for key, value in setting.place)
    knobs = ", ".join(f"{key} {value}" for key, value in setting.knobs if value != OWN)
    parts = (
        f"{setting.metric} [{place}]: best of {setting.settings} settings "
        f"{knobs or 'as the machine has them'}: {with_unit(number(setting.value), setting.unit)}"
    )
    if setting.change is None:
        return parts
    size = "" if setting.change.change is None else f"{change(setting.change.change)}, "
    return (
        f"{parts}, {size}{setting.change.told} than as the machine has them"
        if (setting.change.word is Word.BETTER)
        else (f"{parts}, {size}which is no clear gain over the machine's own values")
    )


def change(share: float) -> str:
    """A change with its sign."""
    return "+" * (share > 0) + per_cent(share)


def at(axis: Axis, value: str | float) -> str:
    """A place on the axis with its unit: 32 tasks, 1 MiB, depth 4."""
    if isinstance(value, float):
        value = f"{value:.4g}" if value < 10_000 else f"{value:.0f}"
    if axis.kind == "size" and value.isdigit():
        return size(int(value))
    if axis.name == TASKS:
        return f"{value} task{'s' * (value != '1')}"
    return f"{axis.name} {value}"


def number(value: float) -> str:
    """A figure for people: four significant digits, and no exponent."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def per_cent(share: float) -> str:
    """A share; below a tenth of a per cent it is nothing that matters."""
    return f"{100 * share:.3g} %" if abs(share) >= 0.0005 else "0 %"
