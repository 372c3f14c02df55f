"""Whether the nodes see the data folder: tested before the first job of a session is submitted.

One step of a second over the idle nodes of each partition reads a fresh token in the session's
folder and writes a file next to it. srun returns the answer, so it needs no shared file system. No
session waits for busy nodes: they are tested when a job on them has left no result.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from siteproof import files, nodesets
from siteproof.checks import loading, selection, session
from siteproof.errors import UserError, harmless
from siteproof.slurm import client
from siteproof.slurm.records import unusable

SCRIPT = Path(__file__).with_name("on_node") / "data_folder.sh"
SEEN = "seen"
ONLY_SBATCH = ("--get-user-env", "--export")  # srun lacks the first, and a step needs its PATH
_ANSWERS = {
    "unseen": "not seen by",
    "unwritable": "not writable on",
    "silent": "its file system does not respond on",
    "other": "another folder with that name on",
}
REMEDY = "SITEPROOF_DATA must name a folder that all nodes mount and {user} may write"


def look(cases: Sequence[Any], options: Sequence[str] = ()) -> None:
    """Note the nodes that cannot see the data folder; where none can, the run ends here.

    options: what -J adds to each job.
    """
    active = session.current()
    answers: dict[str, str] = {}
    for name in sorted({case.partition.name for case in cases}):
        of_it = [case for case in cases if case.partition.name == name]
        if active.site.partition(name).scheduler != "local":
            words = _words(of_it[0].partition.access, options)
            with suppress(UserError):  # no Slurm, or no such reservation: each check reports it
                answers |= _ask(_free(_wanted(of_it), words), words)
    blind = _noted(answers)
    if blind and len(blind) == len(answers):
        remedy = REMEDY.format(user=files.user())
        loading.refuse(UserError(active.folder, summary(blind), hint=remedy))
    if blind:
        loading.report(f"{active.folder}: {summary(blind)}; these nodes are not measured")


def again(partition: Any, nodes: NodeSet, options: Sequence[str]) -> dict[str, str]:
    """Test the nodes that were busy before the first job; the blind ones with the reason."""
    active = session.current()
    unknown = nodesets.of(set(nodes) - active.seen - set(active.blind))
    if not unknown:
        return {}
    try:
        able = unknown - nodesets.of(unusable(unknown, client.node_states()))
    except UserError:
        return {}
    blind = _noted(_ask(able, _words(partition.access, options)))
    return {node: active.blind[node] for node in blind}


def summary(blind: Mapping[str, str]) -> str:
    """What is wrong on which nodes, as node sets."""
    of_each = {
        problem: nodesets.of(node for node, found in blind.items() if found == answer)
        for answer, problem in _ANSWERS.items()
    }
    return "; ".join(f"{problem} {nodes}" for problem, nodes in of_each.items() if nodes)


def read(text: str, nodes: Iterable[str]) -> dict[str, str]:
    """The first answer of each of these nodes; other lines are ignored."""
    known, found = set(nodes), dict[str, str]()
    for line in text.splitlines():
        node, _, answer = line.strip().partition(" ")
        if node in known and (answer == SEEN or answer in _ANSWERS):
            found.setdefault(node, answer)
    return found


def _noted(answers: Mapping[str, str]) -> dict[str, str]:
    """The blind nodes of these; the session remembers all."""
    active = session.current()
    blind = {node: answer for node, answer in answers.items() if answer != SEEN}
    active.seen.update(answers.keys() - blind.keys())
    active.blind.update({node: f"{active.folder} {summary({node: blind[node]})}" for node in blind})
    return blind


def _words(access: Iterable[str], options: Iterable[str]) -> list[str]:
    """Options of jobs as words of a command line."""
    found = [part for option in access for part in shlex.split(option)]
    return [*(part for part in found if not part.startswith(ONLY_SBATCH)), *options]


def _ask(nodes: NodeSet, words: Sequence[str]) -> dict[str, str]:
    """The answers of nodes; none if they are busy or Slurm refuses."""
    if not nodes:
        return {}
    active = session.current()
    folder = active.folder / "stage" / active.name / f".sight-{secrets.token_hex(4)}"
    token = secrets.token_hex(16)
    try:
        folder.mkdir(parents=True)
        (folder / "token").write_text(f"{token}\n", encoding="utf-8")
        script = ["sh", "-c", SCRIPT.read_text(encoding="utf-8"), "sight", str(folder), token]
        named, names = [*words, "--job-name=siteproof-sight"], set(nodes)
        done = client.on_each(nodes, named, script, lambda text: len(read(text, names)))
        found = read(done.stdout, nodes)
        if not found:
            why = harmless(" ".join(done.stderr.split())[-200:]) or "no answer"
            loading.report(f"{active.folder}: unknown whether {nodes} can see it: {why}")
        for node, answer in found.items():
            if answer == SEEN and not (folder / node).is_file():
                found[node] = "other"
        return found
    except OSError as error:
        loading.report(f"{active.folder}: cannot test whether nodes see it: {error.strerror}")
        return {}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wanted(cases: Sequence[Any]) -> NodeSet:
    """The nodes of a partition that `-S nodes` selects, over all cases."""
    site = session.current().site
    inventory = site.nodes_of(cases[0].partition.name)
    wanted = nodesets.of()
    for spec in {str(getattr(case.check, "nodes", "all")) for case in cases}:
        try:
            wanted |= selection.select(spec, inventory, client.first_look())
        except UserError:  # of a link's nodes, or refused by the check
            return inventory
    return wanted


def _free(wanted: NodeSet, words: Sequence[str]) -> NodeSet:
    """Those of the nodes on which a step can start at once."""
    if own := client.allocation() & wanted:
        return own
    states = client.first_look()
    within = next((w.partition("=")[2] for w in words if w.startswith("--reservation=")), "")
    reserved = client.reserved(within) if within else nodesets.of()
    bad = unusable(wanted, states, outside=not within)
    return nodesets.of(
        node
        for node in wanted
        if node not in bad and (node in reserved if within else states[node].state.idle)
    )
