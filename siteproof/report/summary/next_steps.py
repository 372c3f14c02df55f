"""The next commands, ready to copy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from siteproof.record.severity import Verdict
from siteproof.report import summary
from siteproof.report.material import Material
from siteproof.report.phrases import nodes
from siteproof.report.summary import Step, fleet
from siteproof.units import count
from siteproof.wording.verdicts import next_command, own, own_command, published_only, rerun


def steps(material: Material) -> list[Step]:
    """What to call next; nothing that acts where a moment of the past is shown."""
    judged = material.judged
    found = list(_gate(material)) if not (judged.past or judged.late) else []
    if rerun(judged):
        found.append(Step(rerun(judged), "measures what failed or is missing"))
    found += _why(material)
    proven = [alert for alert in material.open_changes if not alert.provisional]
    if proven and not judged.past:
        command = own(material.system, "trend", "ack", proven[0].id)
        found.append(Step(f'{command} --why "..."', "if the change is to stay"))
    if judged.most_severe is Verdict.PASS and judged.campaign:
        command = own(material.system, "accept", judged.campaign)
        found.append(Step(f'{command} --why "..."', "later ones are compared with it"))
    return found or [Step(next_command(judged), "")] * bool(next_command(judged))


def _gate(material: Material) -> Iterator[Step]:
    """Keep the bad nodes out, and test them again, where Slurm can do so."""
    out = material.gate.out
    partitions = material.site.system.partitions.values()
    if not (out and material.measured and any(p.scheduler == "slurm" for p in partitions)):
        return
    gate = own_command(material.judged, "gate")
    what = f"shows how {count(len(out), 'node')} would be kept out; with --apply it is done"
    yield Step(gate, what)
    checks = sorted({check for node in out for check in _checks(material, node)})
    if checks:
        again = f"{gate} --retest --apply -- -n {shlex.quote('|'.join(checks))}"
        yield Step(again, f"after repair: tests {nodes(out)} again")


def _checks(material: Material, node: str) -> Iterable[str]:
    """The checks for which a node stays out."""
    found = material.gate.rulings[node].findings
    return {why.check or why.metric.partition(".")[0] for why in found} - {""}


def _why(material: Material) -> Iterator[Step]:
    """Ask about the first node that failed."""
    judged = material.judged
    bad = [n for n, one in material.once(fleet.classes).items() if one.look == summary.BAD]
    if bad and not published_only(judged):
        yield Step(own_command(judged, "why", bad[0]), "all that is known of it")
