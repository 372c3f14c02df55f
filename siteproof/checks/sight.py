"""Whether the nodes see the data folder: asked before the first job of a session is submitted.

One step of a second over the idle nodes of each partition reads a fresh token in the session's
folder and writes a file beside it. srun brings the answer, so it needs no common file system. No
session waits for nodes that are busy: they are asked when a job over them has left no result.
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

from siteproof import nodesets
from siteproof.checks import loading, selection, session
from siteproof.errors import UserError, harmless
from siteproof.slurm import client
from siteproof.slurm.records import unusable

SCRIPT = Path(__file__).with_name("on_node") / "sight.sh"
SEEN = "seen"
_WORDS = {
    "unseen": "not seen by",
    "unwritable": "not writable on",
    "silent": "a dead file system on",
    "other": "another folder of that name on",
}
REMEDY = "SITEPROOF_DATA must name a folder that all nodes mount and {user} may write"


def look(cases: Sequence[Any], said: Sequence[str] = ()) -> None:
    """Note the nodes that cannot see the data folder; where none can, the run ends here.

    said: what -J adds to each job.
    """
    active = session.current()
    answers: dict[str, str] = {}
    for name in sorted({case.partition.name for case in cases}):
        of_it = [case for case in cases if case.partition.name == name]
        if active.site.partition(name).scheduler != "local":
            words = _words(of_it[0].partition.access, said)
            with suppress(UserError):  # no Slurm, or no such reservation: each check tells
                answers |= _ask(_free(_wanted(of_it), words), words)
    blind = _noted(answers)
    if blind and len(blind) == len(answers):
        remedy = REMEDY.format(user=session.user())
        loading.refuse(UserError(active.folder, tell(blind), hint=remedy))
    if blind:
        loading.tell(f"{active.folder}: {tell(blind)}, where nothing is measured")


def again(partition: Any, nodes: NodeSet, said: Sequence[str]) -> dict[str, str]:
    """Ask those that were busy before the first job; of the blind ones, why nothing is measured."""
    active = session.current()
    unknown = nodesets.of(set(nodes) - active.seen - set(active.blind))
    try:
        able = (
            unknown - nodesets.of(unusable(unknown, client.node_states())) if unknown else unknown
        )
    except UserError:
        return {}
    blind = _noted(_ask(able, _words(partition.access, said)))
    return {node: active.blind[node] for node in blind}


def tell(blind: Mapping[str, str]) -> str:
    """What is wrong on which nodes, folded."""
    return "; ".join(
        f"{words} {nodesets.of(node for node, found in blind.items() if found == answer)}"
        for answer, words in _WORDS.items()
        if answer in blind.values()
    )


def read(text: str, asked: Iterable[str]) -> dict[str, str]:
    """The first answer of each node; a word or a node that was not asked for is none."""
    known = set(asked)
    found: dict[str, str] = {}
    for line in text.splitlines():
        node, _, answer = line.strip().partition(" ")
        if node in known and (answer == SEEN or answer in _WORDS):
            found.setdefault(node, answer)
    return found


def _noted(answers: Mapping[str, str]) -> dict[str, str]:
    """The blind nodes of these; the session remembers all."""
    active = session.current()
    blind = {node: answer for node, answer in answers.items() if answer != SEEN}
    active.seen.update(answers.keys() - blind.keys())
    active.blind.update({node: f"{active.folder} {tell({node: blind[node]})}" for node in blind})
    return blind


def _words(access: Iterable[str], said: Iterable[str]) -> list[str]:
    """Options of jobs as words of a command line."""
    return [*(word for option in access for word in shlex.split(option)), *said]


def _ask(nodes: NodeSet, words: Sequence[str]) -> dict[str, str]:
    """The answers of nodes; of none where they are busy or Slurm refuses."""
    if not nodes:
        return {}
    active = session.current()
    folder = active.folder / "stage" / active.name / f".sight-{secrets.token_hex(4)}"
    token = secrets.token_hex(16)
    try:
        folder.mkdir(parents=True)
        (folder / "token").write_text(f"{token}\n", encoding="utf-8")
        script = ["sh", "-c", SCRIPT.read_text(encoding="utf-8"), "sight", str(folder), token]
        done = client.on_each(
            nodes,
            [*words, "--job-name=siteproof-sight"],
            script,
            lambda text: len(read(text, nodes)),
        )
        found = read(done.stdout, nodes)
        if not found:
            why = harmless(" ".join(done.stderr.split())[-200:]) or "no answer"
            loading.tell(f"{active.folder}: not known whether {nodes} can see it: {why}")
        return {
            node: "other" if answer == SEEN and not (folder / node).is_file() else answer
            for node, answer in found.items()
        }
    except OSError as error:
        loading.tell(f"{active.folder}: no node can be asked whether it sees it: {error.strerror}")
        return {}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wanted(cases: Sequence[Any]) -> NodeSet:
    """The nodes of a partition that `-S nodes` asks for, over all cases."""
    site = session.current().site
    inventory = site.expected(site.partition(cases[0].partition.name).role)
    wanted = nodesets.of()
    for spec in {str(getattr(case.check, "nodes", "all")) for case in cases}:
        try:
            wanted |= selection.select(spec, inventory, client.first_look())
        except UserError:  # of a link's nodes, or refused by the check
            return inventory
    return wanted


def _free(wanted: NodeSet, words: Sequence[str]) -> NodeSet:
    """Those of the nodes on which a step can start at once."""
    if held := client.allocation() & wanted:
        return held
    states = client.first_look()
    within = next((w.partition("=")[2] for w in words if w.startswith("--reservation=")), "")
    reserved = client.reserved(within) if within else nodesets.of()
    bad = unusable(wanted, states, outside=not within)
    return nodesets.of(
        node
        for node in wanted
        if node not in bad and (node in reserved if within else states[node].state.idle)
    )
