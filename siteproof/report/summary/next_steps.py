"""The next commands, ready to copy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from siteproof.report import summary
from siteproof.report.material import Material
from siteproof.report.phrases import nodes
from siteproof.report.summary import Step, fleet
from siteproof.severity import Verdict
from siteproof.trend import Alert
from siteproof.units import count
from siteproof.verdict.judgement import Judgement
from siteproof.wording.verdicts import next_command, published_only, rerun


def steps(material: Material, alerts: Sequence[Alert]) -> list[Step]:
    """What to call next; nothing that acts where a moment of the past is shown."""
    judged = material.judged
    found = list(_gate(material)) if not (judged.past or judged.late) else []
    if rerun(judged):
        found.append(Step(rerun(judged), "measures what failed or is missing"))
    found += _why(material)
    proven = [alert for alert in alerts if not alert.provisional]
    if proven and not judged.past:
        words = ["siteproof", "trend", "ack", proven[0].id, "--system", material.system]
        found.append(Step(f'{shlex.join(words)} --why "..."', "if the change is to stay"))
    if judged.most_severe is Verdict.PASS and judged.campaign:
        words = ["siteproof", "accept", judged.campaign, "--system", material.system]
        found.append(Step(f'{shlex.join(words)} --why "..."', "later ones are compared with it"))
    return found or [Step(next_command(judged), "")] * bool(next_command(judged))


def _gate(material: Material) -> Iterator[Step]:
    """Keep the bad nodes out, and test them again, where Slurm can do so."""
    out = material.gate.out
    partitions = material.site.system.partitions.values()
    if not (out and material.measured and any(p.scheduler == "slurm" for p in partitions)):
        return
    words = ["siteproof", "gate", *_of(material.judged)]
    what = f"shows how {count(len(out), 'node')} would be kept out; with --apply it is done"
    yield Step(shlex.join(words), what)
    checks = sorted({check for node in out for check in _checks(material, node)})
    if checks:
        again = [*words, "--retest", "--apply", "--", "-n", "|".join(checks)]
        yield Step(shlex.join(again), f"after repair: tests {nodes(out)} again")


def _checks(material: Material, node: str) -> Iterable[str]:
    """The checks for which a node stays out."""
    found = material.gate.rulings[node].findings
    return {why.check or why.metric.partition(".")[0] for why in found} - {""}


def _why(material: Material) -> Iterator[Step]:
    """Ask about the first node that failed."""
    judged = material.judged
    bad = [n for n, one in material.once(fleet.classes).items() if one.look == summary.BAD]
    if bad and not published_only(judged):
        words = ["siteproof", "why", bad[0], *_of(judged)]
        yield Step(shlex.join(words), "all that is known of it")


def _of(judged: Judgement) -> list[str]:
    """Which system and campaign a command is about."""
    campaign = ["--campaign", judged.campaign] if judged.campaign else []
    return ["--system", judged.site.system.system, *campaign]
