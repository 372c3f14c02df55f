"""Programs over growing numbers of nodes: efficiency, plateau, and whether all give one result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction

from siteproof.analysis import plateau as curves
from siteproof.answers.attempts import APPLICATION, refusal
from siteproof.curves import run_findings
from siteproof.record.finding import Finding, Kind, note
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Sample, expected_nodes
from siteproof.sites import Criterion
from siteproof.sites.key_types import parse_tolerance
from siteproof.units import convert, count, with_unit
from siteproof.verdict.derived.given import Given, Lack, NoValue, Result, answering, in_unit, middle

NODES = "nodes"
OF_POINT = (NODES, "tasks", "n", "p", "q", "atoms", "memory_share")  # differ from point to point
UNDECIDED = (Kind.PLATEAU_BEYOND, Kind.PLATEAU_UNKNOWN)
MAX_NAMED = 4  # results that differ
ByNodes = dict[int, list[Sample]]


def efficiency(given: Given) -> Iterator[Result]:
    """Of each number of nodes but the smallest that ran, at which the criterion wants it."""
    for metric, found in _curves(given):
        unit = given.site.catalogue[metric].unit
        rates = {n: middle(own, unit) for n, own in found.items()}
        base = min(rates)
        for n, share in curves.efficiency(rates).items():
            own, first = found[n], found[base]
            if n == base or not _wanted(given.criterion, own[0]):
                continue
            why = f"{_shown(rates[n], unit)} on {n}, {_shown(rates[base], unit)} on {_nodes(base)}"
            yield given.sample(convert(share, "x", given.unit), [*own, *first], why, whole=first)


def plateau(given: Given) -> Iterator[Result]:
    """The knee of a curve, as that of a sweep."""
    for metric, found in _curves(given):
        values = {n: [float(one.number) for one in own] for n, own in found.items()}
        shape = curves.find(curves.points({float(n): each for n, each in values.items()}))
        every = [one for own in found.values() for one in own]
        if isinstance(shape.plateau, curves.At):
            best = _shown(Fraction(shape.peak.median), given.site.catalogue[metric].unit)
            why = f"the best is {best} on {_nodes(int(shape.peak.x))}"
            yield given.sample(Fraction(int(shape.plateau.x)), every, why, whole=every)
            continue
        yield Lack(_undecided(given.criterion, shape, max(found)))


def _undecided(criterion: Criterion, shape: curves.CurveShape, largest: int) -> Finding:
    """Why a curve has no plateau; first, that no run had as many nodes as a criterion requires."""
    if criterion.kind == "at_least" and (needed := criterion.bound_value().value) > largest:
        text = "the largest run was on {largest:n node}; {needed} are required"
        return note(text, metric=criterion.metric, largest=largest, needed=f"{needed}")
    reasons = run_findings.of_shape(NODES, shape)
    return next(one for one in reasons if one.kind in UNDECIDED)


def share_of_nodes(given: Given) -> Iterator[Result]:
    """Of the point on all nodes of its job: a part of what each of these has reached by itself."""
    metric, alone = given.inputs
    every = [own for curve in _each_curve(given, metric) for own in curve.values()]
    if not any(map(_on_all_nodes, every)):
        raise given.missing([f"{metric} on all nodes of a job"])
    for own in filter(_on_all_nodes, every):
        yield _share(given, metric, alone, own)


def _share(given: Given, metric: str, alone: str, own: Sequence[Sample]) -> Result:
    unit, each = given.site.catalogue[metric].unit, _of_single_nodes(given, alone, own[0])
    rate, total = middle(own, unit), Fraction(sum(middle(one, unit) for one in each))
    why = f"{_shown(rate, unit)} of {_shown(total, unit)}, the sum of {_nodes(len(each))}"
    parts = [one for of_node in each for one in of_node]
    return given.sample(convert(rate / total, "x", given.unit), [*own, *parts], why, whole=parts)


def _on_all_nodes(own: Sequence[Sample]) -> bool:
    return len(_nodes_of_job(own[0])) == _number(own[0])


def _nodes_of_job(sample: Sample) -> Collection[str]:
    """Those of the second job, if there was one."""
    return expected_nodes(sample.header.provenance.get(NODES, "").rpartition("; ")[2])


def _of_single_nodes(given: Given, metric: str, of_all: Sample) -> list[list[Sample]]:
    """What each node of a job has reached by itself with the same program. Raises NoValue."""
    program, found = of_all.conditions.get("program"), _alike(given, metric)
    each = {
        node: [s for s in found.get(node, []) if s.conditions.get("program") == program]
        for node in sorted(_nodes_of_job(of_all))
    }
    if lacking := [f"{metric} of {node}" for node, own in each.items() if not own]:
        raise given.missing(lacking)
    return list(each.values())


def differing_results(given: Given) -> Iterator[Result]:
    """How many results differ from that on the fewest nodes, of all environments; and where."""
    metric = given.inputs[0]
    wanted = _of_all_points(given, metric)
    right = [s for s in given.of_check(wanted) if s.metric == metric and s.status == "ok"]
    jobs = grouped(
        ((s.conditions.get(APPLICATION, ""), s.header.partition, s.header.environment), s)
        for s in right
        if refusal(wanted, s) is None
    )
    newest = [one for own in jobs.values() for one in _of_newest_job(own)]
    for name, own in grouped((s.conditions.get(APPLICATION, ""), s) for s in newest).items():
        stated = given.site.system.scaling.get(name)
        if len(own) > 1 and stated:
            yield _differing(given, own, stated.tolerance)
    if not newest or len(newest) == len(jobs) == 1:
        raise given.missing([f"{metric} on a second number of nodes or in another environment"])


def _differing(given: Given, own: Sequence[Sample], tolerance: str) -> Result:
    first, *others = sorted(own, key=lambda s: (_number(s), s.header.environment))
    right, share = in_unit(first, "x"), parse_tolerance(tolerance)
    wrong = [s for s in others if abs(in_unit(s, "x") - right) > share * abs(right)]
    named = "; ".join(map(_where, [first, *wrong[:MAX_NAMED]]))
    more = f"; {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
    why = f"{named}{more}" if wrong else f"{len(own)} results within {tolerance} of {first.value}"
    return given.sample(Fraction(len(wrong)), own, why, whole=own)


def _where(sample: Sample) -> str:
    library = sample.conditions.get("mpi", "")
    place = ", ".join(filter(None, (sample.header.environment, library)))
    return f"{sample.value} on {_nodes(_number(sample))} ({place})"


def _of_newest_job(samples: Sequence[Sample]) -> list[Sample]:
    last = max(s.header.job_order for s in samples)
    return [s for s in samples if s.header.job_order == last]


def _curves(given: Given) -> list[tuple[str, ByNodes]]:
    """Of each input that has them, the samples on two numbers of nodes or more. Raises NoValue."""
    every = [(metric, own) for metric in given.inputs for own in _each_curve(given, metric)]
    found = [(metric, own) for metric, own in every if len(own) > 1]
    if not found:
        failed = [s for own in _alike(given, given.inputs[0]).values() for s in own]
        if failed and not every:
            raise NoValue(given.broken(failed))
        raise given.missing([f"{' or '.join(given.inputs)} on two numbers of nodes"])
    return found


def _each_curve(given: Given, metric: str) -> list[ByNodes]:
    """Of each application the values of an input, of its newest job, by the number of nodes."""
    found = _alike(given, metric).values()
    good = [s for own in found for s in own if s.status == "ok" and _number(s)]
    each = grouped((s.conditions.get(APPLICATION, ""), s) for s in good).values()
    return [grouped((_number(s), s) for s in own) for own in each]


def _alike(given: Given, metric: str) -> dict[str, list[Sample]]:
    """What counts of an input on any number of nodes, by its unit."""
    wanted = _of_all_points(given, metric)
    return answering(wanted, given.of_check(wanted))


def _of_all_points(given: Given, metric: str) -> Criterion:
    """A criterion that selects an input's samples on any number of nodes."""
    wanted = given.input(metric)
    rules = {name: rule for name, rule in wanted.conditions.items() if name not in OF_POINT}
    return wanted.like(conditions=rules)


def _wanted(criterion: Criterion, sample: Sample) -> bool:
    """Whether a criterion is on the sample's number of nodes."""
    have = {**sample.dims, **sample.conditions}
    rules: Iterable[str] = criterion.conditions.keys() & set(OF_POINT)
    return all(criterion.conditions[name].met_by(have.get(name, "")) for name in rules)


def _number(sample: Sample) -> int:
    """On how many nodes it was measured; 0 where it does not say so."""
    text = {**sample.conditions, **sample.dims}.get(NODES, "")
    return int(text) if text.isdecimal() else 0


def _nodes(number: int) -> str:
    return count(number, "node")


def _shown(rate: Fraction, unit: str) -> str:
    return with_unit(f"{float(rate):.6g}", unit)
