"""Nodes and partitions of slurm.conf, as `scontrol show` prints them: text in, records out.

Both forms are read: one record a line (`scontrol -o`), and several lines a record.

Whether Slurm would start a job, before one is submitted that would wait for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError, harmless
from siteproof.slurm import client
from siteproof.slurm.records import NOT_SET, unusable

_FIELD = re.compile(r"(?:^|\s)([A-Za-z]\w*)=")
# What people write comes last, and may hold what looks like a field.
_FREE = re.compile(r"\s(?:Reason|Comment|Extra|InstanceId|InstanceType)=")
# name, type and number; a type may begin with, or be, digits: gpu:1g.5gb:7, gpu:3090:8.
_GRES = re.compile(
    r"([A-Za-z_][\w.-]*(?::(?:\w[\w.-]*(?=:)|[A-Za-z_][\w.-]*))?)(?::no_consume)?"
    r"(?::([0-9]{1,12})([kKmMgGtT]?))?(?:\([^)]*\))?"
)
_SHARES = ("mps", "shard")  # a GPU once more, in parts
_FEATURE = re.compile(r"[!-~]{1,100}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
NOTHING = ("", "(null)", "N/A", "None")
_ALWAYS = {  # what Slurm prints of each, so that a record without it is cut off
    "NodeName": ("CoresPerSocket", "Sockets", "State", "ThreadsPerCore"),
    "PartitionName": ("Nodes", "State"),
}


@dataclass(frozen=True)
class ConfiguredNode:
    """A node of slurm.conf.

    architecture: empty for a node that was never up. processors: CPUs, 0 where Slurm prints none.
    memory: MiB, 0 where slurm.conf has none. gres: (kind, how many), such as ("gpu:a100", "4").
    unread: GRES in another form.
    absent: the node does not exist yet (FUTURE), or belongs to a cloud that does not run it now.
    """

    name: str
    architecture: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    processors: int
    memory: int
    features: frozenset[str]
    gres: tuple[tuple[str, str], ...]
    unread: tuple[str, ...]
    absent: bool


@dataclass(frozen=True)
class ConfiguredPartition:
    """A partition of slurm.conf.

    limit: MaxTime as Slurm prints it. min_nodes, max_nodes: of one job. restricted: what it asks
    of a job.
    """

    name: str
    nodes: NodeSet
    up: bool
    default: bool
    hidden: bool
    limit: str
    min_nodes: int
    max_nodes: int
    restricted: tuple[str, ...]

    @property
    def is_closed(self) -> bool:
        """Whether most users, or a job of one node, may not use it."""
        asked = any(key.startswith(("Allow", "ReqResv")) for key in self.restricted)
        return self.hidden or asked or self.min_nodes > 1


def parse_nodes(text: str) -> dict[str, ConfiguredNode]:
    """Read `scontrol show nodes`. Raises UserError if there is none, or one is not understood."""
    found: dict[str, ConfiguredNode] = {}
    for fields in _records(text, "NodeName"):
        name = fields["NodeName"]
        if not name or not nodesets.is_name(name):
            raise UserError("scontrol show nodes", f"'{name[:40]}' is not a valid name")
        if name in found:
            raise UserError("scontrol show nodes", f"lists node {name} twice")
        memory = _number(fields, "RealMemory", 0)
        found[name] = ConfiguredNode(
            name=name,
            architecture=_word(fields.get("Arch", "")),
            sockets=_number(fields, "Sockets", 1),  # of all boards
            cores_per_socket=_number(fields, "CoresPerSocket", 1),
            threads_per_core=_number(fields, "ThreadsPerCore", 1),
            processors=_number(fields, "CPUTot", 0),
            memory=memory if memory > NOT_SET else 0,
            features=frozenset(_words(fields.get("AvailableFeatures", fields.get("Features", "")))),
            gres=tuple(_gres(fields.get("Gres", ""))),
            unread=tuple(p for p in _parts(fields.get("Gres", "")) if not _GRES.fullmatch(p)),
            absent=_is_absent(fields),
        )
    if not found:
        hint = "Save the output of 'scontrol show nodes'"
        raise UserError("scontrol show nodes", "lists no node", hint=hint)
    return found


def parse_partitions(text: str) -> dict[str, ConfiguredPartition]:
    """Read `scontrol show partitions`. Raises UserError if there is none, or a set is not valid."""
    found = {}
    for fields in _records(text, "PartitionName"):
        name = fields["PartitionName"]
        if not _WORD.fullmatch(name):
            what = f"'{name[:40]}' is not a name that Siteproof hands on to Slurm"
            raise UserError("scontrol show partitions", what, "letters, digits, _, ., + and -")
        nodes = fields.get("Nodes", "")
        try:
            members = nodesets.parse("" if nodes in NOTHING else nodes)
        except ValueError as error:
            raise UserError("scontrol show partitions", f"partition {name}: {error}") from None
        found[name] = ConfiguredPartition(
            name=name,
            nodes=members,
            up=fields.get("State", "UP") == "UP",
            default=fields.get("Default", "NO") == "YES",
            hidden="YES" in (fields.get("Hidden"), fields.get("RootOnly")),
            limit=harmless(fields.get("MaxTime", "UNLIMITED")),
            min_nodes=_most(fields.get("MinNodes", "0")),
            max_nodes=_most(fields.get("MaxNodes", "")),
            restricted=tuple(_restricted(fields)),
        )
    if not found:
        hint = "Save the output of 'scontrol show partitions'"
        raise UserError("scontrol show partitions", "lists no partition", hint=hint)
    return found


def _records(text: str, key: str) -> Iterator[dict[str, str]]:
    """Each record as its fields; it begins at a line with the key. Raises UserError: cut off."""
    for block in re.split(rf"^(?={key}=)", text, flags=re.MULTILINE):
        if not block.startswith(f"{key}="):
            continue
        body = _FREE.split(f"{block} ", maxsplit=1)[0]
        marks = list(_FIELD.finditer(body))
        ends = [mark.start() for mark in marks[1:]] + [len(body)]
        fields = {
            mark[1]: " ".join(body[mark.end() : end].split())
            for mark, end in reversed(list(zip(marks, ends, strict=True)))
        }
        # Only a list of nodes may be empty.
        present = [name for name, text in fields.items() if text or name == "Nodes"]
        if absent := [name for name in _ALWAYS[key] if name not in present]:
            what = f"{key}={fields[key][:40]} is cut off: no {', '.join(absent)}"
            raise UserError("scontrol show", what, hint="Save the whole output")
        yield fields


def _number(fields: dict[str, str], name: str, otherwise: int) -> int:
    """A number of a record. Raises UserError for what is none."""
    text = fields.get(name, "")
    if text in NOTHING:
        return otherwise
    if not (text.isascii() and text.isdigit() and len(text) < 13):
        what = f"{name} '{text[:40]}' of {fields.get('NodeName')} is not a whole number"
        raise UserError("scontrol show nodes", what)
    return int(text)


def _most(text: str) -> int:
    """MinNodes or MaxNodes as a number; UNLIMITED is as many as a site may have."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else nodesets.MAX_NODES


def _words(text: str) -> list[str]:
    return [part for part in text.split(",") if part not in NOTHING and _FEATURE.fullmatch(part)]


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else ""


def _gres(text: str) -> Iterator[tuple[str, str]]:
    """`gpu:a100:4(S:0-1),nvme:1T` as ("gpu:a100", "4"), ("nvme", "1T")."""
    for part in _parts(text):
        match = _GRES.fullmatch(part)
        if match and match[1].partition(":")[0] not in _SHARES:
            yield match[1], f"{match[2] or 1}{match[3] or ''}"


def _parts(text: str) -> list[str]:
    """The parts of GRES between commas that are not in parentheses."""
    return [] if text in NOTHING else re.split(r",(?![^(]*\))", text)


def _is_absent(fields: dict[str, str]) -> bool:
    """A node of a cloud keeps the flag CLOUD while it runs; POWERED_DOWN and the like say more."""
    flags = set(fields.get("State", "").split("+"))
    runs = fields.get("Arch") and not any(flag.startswith("POWER") for flag in flags)
    return "FUTURE" in flags or ("CLOUD" in flags and not runs)


def _restricted(fields: dict[str, str]) -> Iterator[str]:
    """Which keys of a partition do not admit every job."""
    for key in ("ReqResv", "RootOnly", "Hidden"):
        if fields.get(key) == "YES":
            yield f"{key}=YES"
    if fields.get("MinNodes", "0") not in ("0", "1", *NOTHING):
        yield f"MinNodes={harmless(fields['MinNodes'])[:20]}"
    for key in ("AllowAccounts", "AllowGroups", "AllowQos", "AllocNodes"):
        if fields.get(key, "ALL") not in ("ALL", *NOTHING):
            yield f"{key}={harmless(fields[key])[:60]}"
    if fields.get("QoS", "N/A") not in NOTHING:
        yield f"QoS={harmless(fields['QoS'])[:60]}"


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
    known = parse_partitions(client.configured()[1])
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
