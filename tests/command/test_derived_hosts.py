"""Hosts of Magellan and ExTENCI against what their sites state: PASS, or FAIL by one value."""

import pytest
from campaigns import Campaign, as_stated
from derived_values import of, verdicts

from siteproof import files, sites


@pytest.fixture
def perflogs(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return files.perflogs()


def guest(node):
    flags = {"cpu.flag.sse4_2": "yes", "cpu.flag.aes": "yes"}
    if node.startswith("lbl"):
        nics = {f"nic.eth{n}.speed": "10000 Mb/s" for n in range(4)}
        nics |= {f"nic.eth{n}.pci": f"0000:0{n}:00.0" for n in range(4)}
        return nics | {"cpu.cores": "16"}
    drivers = {f"nic.eth{n}.driver": "virtio_net" for n in range(4)}
    drivers |= {f"nic.eth{n}.pci": f"virtio{n}" for n in range(4)}
    small = {"cpu.cores": "8", "cpu.threads": "8", "memory.total": "24600000 kB"}
    return small | drivers | flags | {"disk.sda.size": "500107862016 B"}


def magellan(perflogs, describe=guest):
    made = Campaign(sites.load("magellan"))
    made.describe(["compute", "hypervisors", "instances", "receivers", "gpu"], describe)
    made.write(perflogs)


def other(key, value, of):
    """Without a value: the field is not there."""

    def describe(node):
        fields = guest(node)
        if node == of:
            fields.pop(key) if value is None else fields.update({key: value})
        return fields

    return describe


MAGELLAN = {
    "MAG-INST-VCPUS": other("cpu.threads", "4", "vm01"),
    "MAG-INST-VNICS": other("nic.eth3.pci", None, "vm02"),
    "MAG-INST-DRIVER": other("nic.eth0.driver", "e1000", "vm03"),
    "MAG-SINKS": lambda node: (
        guest(node)
        | (
            {
                "nic.eth0.speed": "1000 Mb/s",
                "nic.eth1.speed": "1000 Mb/s",
                "nic.eth2.speed": "1000 Mb/s",
            }
            if node == "lbl1"
            else {}
        )
    ),
    "MAG-CPUFLAGS": other("cpu.flag.aes", None, "vm04"),
    "MAG-HW-CORES": other("cpu.cores", "4", "mag-c007"),
    "MAG-HW-MEMORY": other("memory.total", "12300000 kB", "mag-c007"),
    "MAG-HW-DISK": lambda node: guest(node) | {"disk.sda.size": "250059350016 B"},
}


def test_magellans_hosts_and_instances_are_those_of_its_slides(perflogs):
    magellan(perflogs)
    found = verdicts("magellan", again=True)
    wanted = [*MAGELLAN, "MAG-HW-COMPUTE", "MAG-HW-GPU"]
    assert found.words(wanted) == dict.fromkeys(wanted, "PASS")


@pytest.mark.parametrize("key", MAGELLAN)
def test_an_instance_or_host_that_is_another_fails(perflogs, key):
    magellan(perflogs, MAGELLAN[key])
    assert of("magellan", key, again=key == next(iter(MAGELLAN))) == "FAIL"


def extenci(perflogs, **changes):
    got = {"mtu": lambda pair: 9000, "buffer": "16777216", "back": 900} | changes
    made = Campaign(sites.load("extenci"), mode="acceptance")
    made.pairs("psc", "PathMtu.device", got["mtu"], program="ping")
    for link in ("psc", "psc-tacc"):
        made.pairs(
            link,
            "TcpBandwidth.throughput",
            lambda pair: got["back"] if "tacc" in pair.partition(">")[0] else 940,
            unit="Mb/s",
            program="iperf3",
            duration="300",
            at_once="1",
            streams="1",
        )
        made.pairs(
            link,
            "TcpBandwidth.cpu_sender",
            40,
            program="iperf3",
            duration="300",
            at_once="1",
            streams="1",
        )
    made.nodes(
        ["in_table", "in_table_mgs1"],
        {
            "HostParameters.mismatches": 0,
            "HostParameters.sysctl.net.core.rmem_max": got["buffer"],
            "HostParameters.sysctl.net.core.wmem_max": "16777216",
        },
    )
    made.write(perflogs)


def test_extencis_pairs_are_alike_at_both_ends(perflogs):
    extenci(perflogs)
    assert of("extenci", "EXT-HOST-MTUPAIR") == "PASS"
    extenci(perflogs, mtu=lambda pair: 1500 if pair.startswith("mgs.") else 9000)
    assert of("extenci", "EXT-HOST-MTUPAIR") == "FAIL"


def test_a_direction_that_is_slower_is_the_asymmetry(perflogs):
    extenci(perflogs, back=470)
    one = verdicts("extenci")["EXT-ASYM"]
    assert [node["value"] for node in one["nodes"]] == ["0.5"]


HOSTS = {
    "EXT-HOST-HOST": ("host.name", "stranger"),
    "EXT-HOST-OS": ("os.release", "Debian 12"),
    "EXT-HOST-NIC": ("nic.eth0.driver", "e1000"),
}


@pytest.mark.parametrize("key", [None, *HOSTS])
def test_extencis_hosts_are_those_of_its_table(perflogs, key):
    site = sites.load("extenci")
    made = Campaign(site)

    def describe(node):
        field, value = HOSTS.get(key, ("", ""))
        return as_stated(site, node) | (
            {field: value} if field and node == "oss00w.psc.jwan" else {}
        )

    made.describe(["in_table", "in_table_mgs1"], describe)
    made.write(perflogs)
    found = verdicts("extenci")
    wanted = {one: "FAIL" if one == key else "PASS" for one in HOSTS}
    assert found.words(HOSTS) == wanted
