"""Whether Slurm would start a job, before one is submitted that would wait for ever."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError, harmless
from siteproof.slurm import client, configured
from siteproof.slurm.records import unusable

_LICENCE = re.compile(r"^LicenseName=(\S+) Total=(\d{1,9}) Used=\d+ Free=(\d{1,9})\b", re.MULTILINE)


def refuse(words: Sequence[str], wanted: NodeSet) -> dict[str, str]:
    """Raise UserError where no job with these options would start on any of the nodes now.

    words: of sbatch. Returns the nodes that can take no job, each with the reason.
    """
    within = value_of(words, "--reservation")
    lost = unusable(wanted, client.node_states(), outside=not within)
    if within:
        others = wanted - client.reserved(within)
        lost |= dict.fromkeys(others, f"not in the reservation {within}")
    _refuse_partitions(value_of(words, "--partition", "-p"))
    if len(lost) == len(wanted):
        raise UserError("Slurm", f"no node can take a job: {folded(lost)}")
    _refuse_licences(value_of(words, "--licenses", "-L"))
    able = wanted - nodesets.of(lost)
    client.would_start([*words, "--nodes=1", f"--nodelist={able[0]}"])
    return lost


def value_of(words: Sequence[str], *names: str) -> str:
    """The value of an option of sbatch, the last one where it is given twice; empty without it."""
    found = ""
    for option, following in zip(words, [*words[1:], ""], strict=False):
        for name in names:
            is_short = not name.startswith("--")
            if option == name:
                found = following
            elif option.startswith(f"{name}="):
                found = option.partition("=")[2]
            elif is_short and option.startswith(name):
                found = option.removeprefix(name)
    return found


def folded(lost: Mapping[str, str]) -> str:
    """Nodes and why they can take no job, those of one reason as a set."""
    reasons: dict[str, list[str]] = {}
    for node, why in lost.items():
        reasons.setdefault(why, []).append(node)
    return "; ".join(f"{nodesets.of(nodes)} {harmless(why)}" for why, nodes in reasons.items())


def _refuse_partitions(names: str) -> None:
    """A job waits where none of its partitions is up, with the reason PartitionDown."""
    known = configured.parse_partitions(client.configured()[1])
    wanted = names.split(",") if names else [name for name, one in known.items() if one.default]
    there = [known[name] for name in wanted if name in known]
    if there and not any(one.up for one in there):
        what = f"is not UP in Slurm, so jobs would wait: see 'scontrol show partition {wanted[0]}'"
        raise UserError(f"partition {wanted[0]}", what)


def _refuse_licences(names: str) -> None:
    if not names:
        return
    known = {name: (int(free), of) for name, of, free in _LICENCE.findall(client.licences())}
    for wanted in re.split("[,;|]", names):
        name, _, number = wanted.partition(":")
        free, of = known.get(name, (None, ""))
        if free is not None and free < (int(number) if number.isdecimal() else 1):
            raise UserError(f"licence {name}", f"{free} of {of} are free, so jobs would wait")
