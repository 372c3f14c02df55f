"""Published landmarks: where a curve turns, from sources that print the curve without numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from siteproof.published.figures import Stated, figures, is_exact, is_number, number, what, when
from siteproof.record.samples import Sample
from siteproof.sites import Site

LANDMARK = "landmark"
_KINDS = ("read", "write")


def table(site: Site, samples: Iterable[Sample]) -> Stated | None:
    """The landmarks of each sweep, with what contradicts itself."""
    stated = list(samples)
    grouped: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in stated:
        if sample.own_conditions.get("published") == LANDMARK:
            grouped.setdefault((when(sample), sample.header.campaign, what(sample)), []).append(
                sample
            )
    if not grouped:
        return None
    rows = [
        (
            date,
            campaign,
            name,
            site.catalogue[held[0].metric].description if held[0].metric in site.catalogue else "",
            figures(held),
        )
        for (date, campaign, name), held in grouped.items()
    ]
    note = "Landmarks that the source states; no curve of its was printed with numbers. "
    return Stated(
        "Published landmarks of curves",
        ("date", "campaign", "metric", "it is", "landmark"),
        rows,
        note + " ".join(f"{told}." for told in remarks(stated)),
    )


def remarks(samples: Iterable[Sample]) -> list[str]:
    """What the landmarks of one campaign say beside each other, one sentence each.

    A plateau that begins beyond the maximum, and the rate of each task where the maximum is.
    """
    campaigns: dict[str, dict[str, Sample]] = {}
    for sample in samples:
        if is_number(sample) and sample.metric.startswith("Ior."):
            campaigns.setdefault(sample.header.campaign, {})[sample.metric] = sample
    return [told for name, held in campaigns.items() for told in _of_campaign(name, held)]


def _of_campaign(name: str, held: dict[str, Sample]) -> Iterator[str]:
    for kind in _KINDS:
        most, tasks, plateau = (
            held.get(f"Ior.{kind}_{rest}") for rest in ("max", "max_tasks", "plateau")
        )
        if tasks is None or not is_exact(tasks):
            continue
        if plateau and is_exact(plateau) and plateau.number > tasks.number:
            yield (
                f"{name}: the plateau of {kind} begins at {plateau.value} tasks, beyond the "
                f"maximum at {tasks.value}"
            )
        if most and tasks.number:
            each = Fraction(most.number) / Fraction(tasks.number)
            yield (
                f"{name}: {kind} at its maximum is {number(each, 3)} {most.unit} for each of "
                f"{tasks.value} tasks"
            )
