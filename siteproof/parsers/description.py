"""What a node is, as checks/system/description.sh prints it: text in, a text a field out.

It passes the lines of other tools on as `raw TOOL LINE`, as only the login side has Python. Their
formats: lldpd 1.0 (lldpctl -f keyvalue), storcli and perccli 7 (JSON), smartctl 7 (-i), nvidia-smi
(--query-gpu, CSV), rocm-smi of ROCm 4 to 6 (JSON), ceph versions (JSON), lctl get_param, ipmitool
1.8 (mc info), racadm 8 (get of a group of the BIOS).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from siteproof.errors import OutputError
from siteproof.parsers import Reading, nvidia_smi, values
from siteproof.parsers.values import Object

Fields = dict[str, str]
# The columns that description.sh asks nvidia-smi for, in this order; the first numbers the GPUs.
NVIDIA = (
    "index",
    "name",
    "uuid",
    "serial",
    "pci",
    "driver",
    "vbios",
    "memory",
    "ecc",
    "link_width",
)
_LLDP = {
    "chassis.name": "switch",
    "chassis.descr": "switch_description",
    "chassis.mgmt-ip": "switch_address",
    "port.ifname": "port",
    "port.local": "port",
    "port.descr": "port_description",
    "vlan.vlan-id": "vlan",
}
_RAID = {
    "product name": "product_name",
    "model": "product_name",
    "serial number": "serial",
    "firmware version": "fw_version",
    "fw version": "fw_version",
    "firmware package build": "fw_package_build",
    "fw package build": "fw_package_build",
    "bios version": "bios_version",
    "driver name": "driver",
    "driver version": "driver_version",
    "on board memory size": "memory",
}
_SMART = {
    "model family": "smart_family",
    "device model": "smart_model",
    "model number": "smart_model",
    "vendor": "smart_vendor",
    "product": "smart_model",
    "revision": "smart_firmware",
    "firmware version": "smart_firmware",
    "user capacity": "smart_capacity",
    "total nvm capacity": "smart_capacity",
    "rotation rate": "smart_rotation",
    "form factor": "smart_form_factor",
    "transport protocol": "smart_transport",
    "sata version is": "smart_transport",
    "serial number": "smart.serial",
}
_ROCM = {
    "card series": "name",
    "card model": "model",
    "card sku": "sku",
    "vbios version": "vbios",
    "unique id": "uuid",
    "serial number": "serial",
    "pci bus": "pci",
    "vram total memory (b)": "memory",
}
_BMC = {
    "firmware revision": "firmware",
    "ipmi version": "ipmi",
    "manufacturer id": "maker",
    "product id": "product",
}
NONE = {"", "N/A", "[N/A]", "[Not Supported]", "Not Supported", "0"}
_PART = re.compile(r"[^A-Za-z0-9_:@/-]+")
_PAIR = re.compile(r"lldp\.([^.=]{1,15}(?:\.[0-9]{1,4})?)\.([a-zA-Z0-9.-]{1,60})=(.*)")
_VERSION = re.compile(r"ceph version (\S{1,40})")
_BYTE = re.compile(r"0x[0-9a-f]{2}")
_CARD = re.compile(r"card([0-9]{1,3})")


def fields(tool: str, printed: Sequence[str]) -> Fields:
    """The fields in what a tool has printed, the first of each name. Raises OutputError: none."""
    kind, _, of = tool.partition(".")
    if kind not in READERS:
        raise OutputError("no reader of this tool")
    reader, _ = READERS[kind]
    found: Fields = {}
    for name, value in reader(printed, _name(of)):
        if value:
            found.setdefault(name[: values.LONGEST], value[: values.LONGEST])
    if not found:
        raise OutputError(f"{kind}: its output is not understood")
    return found


Pairs = Iterator[tuple[str, str]]


def _lldp(printed: Sequence[str], _of: str) -> Pairs:
    """The neighbour of each interface; several of one interface are joined."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for line in _logical(printed):
        match = _PAIR.fullmatch(line)
        if match and match[2] in _LLDP:
            found[f"lldp.{_name(match[1])}.{_LLDP[match[2]]}"][match[3]] = None
    for name, texts in found.items():
        yield name, " | ".join(texts)


def _logical(printed: Sequence[str]) -> Iterator[str]:
    """A switch describes itself in several lines, of which lldpctl names only the first."""
    joined = ""
    for line in printed:
        if line.startswith("lldp.") or len(joined) > values.MAX_LINE:
            yield joined
            joined = line
        else:
            joined = f"{joined} {line}"
    yield joined


def _raid(printed: Sequence[str], _of: str) -> Pairs:
    """Controllers, their virtual disks and their disks."""
    whole, _ = values.load("storcli", "\n".join(printed))
    for number, controller in enumerate(values.rows("storcli", whole, "Controllers")):
        data = controller.get("Response Data")
        if not isinstance(data, dict):
            continue
        prefix = f"raid.controller{number}"
        for part in (data, *(part for part in data.values() if isinstance(part, dict))):
            for key, value in part.items():
                if key.lower() in _RAID and isinstance(value, str):
                    yield f"{prefix}.{_RAID[key.lower()]}", " ".join(value.split())
        yield from _listed(data, "VD LIST", f"{prefix}.virtual", "DG/VD", ("TYPE", "Size", "State"))
        columns = ("Intf", "Med", "Size", "Model", "State")
        yield from _listed(data, "PD LIST", f"{prefix}.disk", "EID:Slt", columns)


def _listed(data: Object, key: str, prefix: str, number: str, columns: Sequence[str]) -> Pairs:
    rows = data.get(key)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            text = " ".join(str(row.get(column, "?")).strip() for column in columns)
            yield f"{prefix}.{_name(str(row.get(number, '?')))}", text


def _smart(printed: Sequence[str], disk: str) -> Pairs:
    return _keyed(printed, f"disk.{disk}", _SMART)


def _keyed(printed: Sequence[str], prefix: str, names: Fields) -> Pairs:
    """The lines `KEY: VALUE` whose key, in lower case, has a name."""
    for line in printed:
        key, _, value = line.partition(":")
        if name := names.get(key.strip().lower()):
            yield f"{prefix}.{name}", value.strip()


def _nvidia(printed: Sequence[str], _of: str) -> Pairs:
    for gpu, column, cell in nvidia_smi.cells([",".join(NVIDIA), *printed]):
        if not gpu.isdecimal() or column not in NVIDIA:  # a line of the output may be a heading
            raise OutputError("nvidia: its output is not understood")
        if cell not in NONE:
            yield f"gpu.{gpu[:3]}.{column}", cell


def _rocm(printed: Sequence[str], _of: str) -> Pairs:
    """A GPU an object; the names of its values have changed their case between versions."""
    whole, _ = values.load("rocm", "\n".join(printed).lstrip())
    system = whole.get("system")
    driver = system.get("Driver version", "") if isinstance(system, dict) else ""
    for card, fields in whole.items():
        match = _CARD.fullmatch(card)
        if not match or not isinstance(fields, dict):
            continue
        prefix = f"gpu.{match[1]}"
        for key, value in fields.items():
            name, text = _ROCM.get(key.lower()), str(value)
            if name and text not in NONE:
                yield f"{prefix}.{name}", f"{text} B" if name == "memory" else text
        yield f"{prefix}.driver", str(driver)


def _ceph(printed: Sequence[str], _of: str) -> Pairs:
    """The versions of the servers, and how many run each."""
    whole, _ = values.load("ceph", "\n".join(printed))
    for kind, versions in whole.items():
        if kind != "overall" and isinstance(versions, dict):
            counts: Counter[str] = Counter()
            for text, number in versions.items():
                match = _VERSION.match(text)
                if match and str(number).isdecimal():
                    counts[match[1]] += int(str(number)[:9])
            texts = [f"{version} ({count})" for version, count in sorted(counts.items())]
            yield f"server.ceph.{_name(kind)}", " ".join(texts)


def _lustre(printed: Sequence[str], _of: str) -> Pairs:
    """`lustre: 2.5.3` and more, or from 2.11 on the version alone."""
    for line in printed:
        key, colon, value = line.partition(":")
        if not colon:
            yield "server.lustre", line.strip()
        elif key.strip() == "lustre":
            yield "server.lustre", value.strip()


def _bmc(printed: Sequence[str], _of: str) -> Pairs:
    """Maker and firmware of the management controller; bytes of the maker's own follow last."""
    yield from _keyed(printed, "bmc", _BMC)
    own = " ".join(line.strip() for line in printed if _BYTE.fullmatch(line.strip()))
    yield "bmc.firmware_own", own


def _racadm(printed: Sequence[str], _of: str) -> Pairs:
    """The settings of the BIOS, of which # precedes those that cannot be changed alone."""
    for line in printed:
        key, _, value = line.lstrip("#").partition("=")
        if not line.startswith("["):
            yield f"bios.setting.{_name(key.strip())}", value.partition("(Pending")[0].strip()


def _names(printed: Sequence[str], _of: str) -> Pairs:
    """The node's name and addresses, looked up both ways, and whether they agree.

    Lines: `own NAME`, `on ADDRESS INTERFACE`, `forward NAME ADDRESS`, `reverse ADDRESS NAME…`.
    """
    own, on = "", []
    forward: dict[str, set[str]] = defaultdict(set)
    reverse: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for kind, first, *rest in (line.split() for line in printed if len(line.split()) > 1):
        if kind == "own":
            own = first.lower()
        elif kind == "on" and rest:
            on.append(first)
            counts[rest[0]] += 1
            yield f"address.{_name(rest[0])}.{counts[rest[0]]}", first
        elif kind == "forward" and rest:
            forward[first.lower()].add(rest[0])
        elif kind == "reverse":
            reverse[first] = [name.lower() for name in rest]
    if not own:
        raise OutputError("names: the node has no name")
    yield "dns.own.addresses", " ".join(sorted(forward[own]))
    for address, names in sorted(reverse.items()):
        yield f"dns.own.name.{address}", " ".join(names) or "none"
    yield "dns.consistent", "; ".join(_contradictions(own, on, forward, reverse)) or "yes"


def _contradictions(
    own: str, on: Sequence[str], forward: dict[str, set[str]], reverse: dict[str, list[str]]
) -> Iterator[str]:
    """What a name server, or /etc/hosts, and the node's interfaces contradict each other in."""
    if not forward.get(own):
        yield f"{own} has no address"
    for address in sorted(forward.get(own, ())):
        names = reverse.get(address, [])
        if address not in on:
            yield f"{address} of {own} is on no interface"
        elif not names:
            yield f"{address} of {own} has no name"
        elif not any(_same_host(name, own) for name in names):
            yield f"{address} is {names[0]} and not {own}"
    for address in on:  # further interfaces may have names of their own, such as node1-ib
        for name in reverse.get(address, [])[:1]:
            if forward.get(name) and address not in forward[name]:
                yield f"{name} has not the address {address}"


def _same_host(one: str, other: str) -> bool:
    """Whether two names are of one host: equal as far as both go, mgs and mgs.jwan.example."""
    return all(a == b for a, b in zip(one.split("."), other.split("."), strict=False))


def _name(text: str) -> str:
    """A text as part of a field's name: without blanks and what a name never has."""
    return _PART.sub("_", text)[:60]


# By tool, its reader, and the fields that are missing if its output is not understood.
READERS: dict[str, tuple[Callable[[Sequence[str], str], Pairs], str]] = {
    "lldp": (_lldp, "lldp"),
    "raid": (_raid, "raid.controller"),
    "smart": (_smart, "disk.smart"),
    "nvidia": (_nvidia, "gpu"),
    "rocm": (_rocm, "gpu"),
    "ceph": (_ceph, "server.ceph"),
    "lustre": (_lustre, "server.lustre"),
    "names": (_names, "dns"),
    "bmc": (_bmc, "bmc"),
    "racadm": (_racadm, "bios.setting"),
}


MAX_FIELDS = 50_000  # no node has as many, and no broken one fills the memory

_FIELD = re.compile(r"field (\S+) =(?: (.*))?")
_RAW = re.compile(r"raw (\S{1,40})(?: (.*))?")


def parse(text: str) -> list[Reading]:
    """One text reading a field, such as `cpu.model` or `sysctl.vm.swappiness`.

    Raises OutputError if the end is missing, a field has two values, or there is no field.
    """
    matches = filter(None, map(_FIELD.fullmatch, values.whole(text, "description")))
    fields_of_node = values.texts("description", ((match[1], match[2]) for match in matches))
    found = {reading.metric: reading for reading in fields_of_node}
    for name, value in _of_tools(text)[0].items():
        found.setdefault(name, Reading(name, value, "text"))
    if not 0 < len(found) <= MAX_FIELDS:
        raise OutputError(f"description: {len(found)} fields")
    return list(found.values())


def unreadable(text: str) -> dict[str, str]:
    """What the node could not read, and why; also tools whose output is not understood."""
    return values.unreadable(text) | _of_tools(text)[1]


def _of_tools(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The fields that tools have printed, and the tools that printed something else."""
    printed: dict[str, list[str]] = defaultdict(list)
    for match in map(_RAW.fullmatch, values.harmless(text)):
        if match:
            printed[match[1]].append(match[2] or "")
    found: dict[str, str] = {}
    strange: dict[str, str] = {}
    for tool, of_tool in printed.items():
        try:
            found |= fields(tool, of_tool)
        except OutputError as error:
            _, covered = READERS.get(tool.partition(".")[0], (None, tool))
            strange[covered] = str(error)
    return found, strange
