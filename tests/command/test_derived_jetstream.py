"""What follows from a campaign on Jetstream: inventory, ledger, ratios, changes, availability.

The campaign is made up as the checks would keep it; a FAIL comes from another measured value.
"""

from datetime import UTC, datetime

import pytest
import yaml
from campaigns import Campaign, as_stated
from clone import TOP
from derived_values import emulate, run, verdicts

from siteproof import files, sites
from siteproof.record import availability_log
from siteproof.record import samples as record_samples
from siteproof.record.availability_log import ProbeResult


@pytest.fixture
def perflogs(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return files.perflogs()


def blade(node):
    return (
        {
            "cpu.model": "E5-2680 v3",
            "cpu.cores": "24",
            "cpu.sockets": "2",
            "cpu.threads": "24",
            "memory.total": "131700000 kB",
            "host.name": node,
            "memory.swap": "0 kB",
            "disk.sda.size": "200049647616 B",
        }
        | ({f"disk.sd{x}.size": "4000787030016 B" for x in "bcdefghijklm"} if "-s" in node else {})
        | ({"memory.total": "65800000 kB"} if "-m" in node or "-s" in node else {})
        | system_disks("185.781 GB" if "-s" in node else "372.093 GB")
        | (ports(int(node[-3:])) if "-c" in node else {})
    )


def system_disks(size):
    return {f"raid.controller0.disk.32:{n}": f"SATA SSD {size} INTEL Onln" for n in (0, 1)}


def ports(number):
    """A blade's ports: sixteen blades share the two switches of a chassis."""
    found = {}
    for card in (1, 2):
        found[f"nic.em{card}.speed"] = "10000 Mb/s"
        found[f"lldp.em{card}.switch"] = f"mxl-{(number - 1) // 16}-{card}"
        found[f"lldp.em{card}.switch_description"] = "Dell MXL 9.9(0.0)"
    return found


def jetstream(perflogs, **changes):
    got = {"describe": blade, "random": 40, "serial": 210, "before": 205} | changes
    system = sites.load("jetstream-iu")
    old = Campaign(system, hours=24 * 40, name="before", place=1)
    volume = {"file_system": "volume", "inside": "vm", "cached": "no", "program": "dd"}
    old.nodes(
        ["instances"],
        {"BlockStorage.read": got["before"], "BlockStorage.write": 120},
        storage_version="hammer",
        **volume,
    )
    old.write(perflogs)
    made = Campaign(system, name="after", place=2)
    instances = system.expected("instances")
    made.describe(
        ["compute", "management", "storage", "instances"],
        lambda node: as_stated(system, node) if node in instances else got["describe"](node),
    )
    made.nodes(
        ["instances"],
        {"BlockStorage.read": got["serial"], "BlockStorage.write": 120},
        storage_version="jewel",
        **volume,
    )
    made.nodes(
        ["instances"],
        {"RandomIo.read": got["random"], "RandomIo.write": 12},
        **volume | {"program": "fio"},
    )
    made.write(perflogs)


@pytest.fixture(scope="module")
def bought(tmp_path_factory):
    """A data folder of a campaign in which all is as it was bought; no test changes it."""
    folder = tmp_path_factory.mktemp("bought")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SITEPROOF_DATA", str(folder))
        jetstream(files.perflogs())
    return folder


@pytest.fixture(scope="module")
def found_good(bought):
    """Its verdicts, on which the program that a page carries agrees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SITEPROOF_DATA", str(bought))
        return verdicts("jetstream-iu", again=True)


LESS = {  # criteria, each with what one blade or storage node lacks
    "JS-2-PEAK": ("iu-c001", "cpu.cores", "20"),
    "JS-2-TOTALS-CORES-M630": ("iu-c001", "cpu.cores", "20"),
    "JS-2-TOTALS-RAM-M630": ("iu-c002", "memory.total", "98000000 kB"),
    "JS-2-TOTALS-DISK": ("iu-s01", "disk.sdb.size", "0 B"),
    "JS-2-TOTALS-CPUS-M630": ("iu-c001", "cpu.sockets", "1"),
    "JS-2-TOTALS-SYSDISK-R630": ("iu-m01", "raid.controller0.disk.32:0", "SATA SSD 185 GB Onln"),
    "JS-3.1.1-SYS-UPLINKS": ("iu-c001", "lldp.em1.switch", "mxl-1-1"),
}
ALL = [*LESS, "JS-2-TOTALS-PEAK-M630", "JS-5.1.2.1-CEPH"]


def test_jetstreams_campaign_has_what_was_bought(found_good):
    wanted = [*ALL, "JS-2-COUNTS-M630", "JS-2-COUNTS-R630", "JS-2-TOTALS-RAM-R730"]
    wanted += ["JS-2-TOTALS-CPUS-R730", "JS-2-TOTALS-SYSDISK-R730"]
    assert found_good.words(wanted) == dict.fromkeys(wanted, "PASS")


def test_less_than_was_bought_fails_and_fails_nothing_else(perflogs):
    less = {
        node: {key: value for n, key, value in LESS.values() if n == node}
        for node, *_ in LESS.values()
    }
    jetstream(perflogs, describe=lambda node: blade(node) | less.get(node, {}))
    wanted = dict.fromkeys(ALL, "PASS") | dict.fromkeys(LESS, "FAIL")
    assert verdicts("jetstream-iu").words(ALL) == wanted


def test_fewer_cores_of_all_and_a_slower_volume_fail_and_fail_nothing_else(perflogs):
    jetstream(perflogs, describe=lambda node: blade(node) | {"cpu.cores": "20"}, serial=150)
    changed = {"JS-2-PEAK", "JS-2-TOTALS-CORES-M630", "JS-2-TOTALS-PEAK-M630", "JS-5.1.2.1-CEPH"}
    kept = set(ALL) - changed
    wanted = dict.fromkeys(ALL, "FAIL") | dict.fromkeys(kept, "PASS")
    assert verdicts("jetstream-iu").words(ALL) == wanted


def test_a_milestone_before_the_one_that_it_needs_fails_with_its_name(
    bought, found_good, monkeypatch
):
    monkeypatch.setenv("SITEPROOF_DATA", str(bought))
    assert found_good["JS-T1-TIMELINE-ORDER"]["verdict"] == "FAIL"
    text = run("why", "JS-T1-TIMELINE-ORDER", "--system", "jetstream-iu").output
    assert "precedes" in text


def test_a_value_that_decides_nothing_is_shown_nevertheless(found_good):
    one = found_good["JS-5.1.2.1-RANDRATIO-R"]
    assert one["verdict"] == "SKIP"
    assert one["nodes"][0]["value"].startswith("0.190")


# ---- sections of the description


def sections(system):
    """The criteria on sections of the description that the site states facts of."""
    found = sites.load(system).criteria
    return {
        k: c
        for k, c in found.items()
        if c.metric == "SystemDescription.section_drift" and not (c.report_only or c.not_here)
    }


def test_jetstreams_hosts_are_as_its_report_describes_them_in_every_section(perflogs):
    site = sites.load("jetstream-iu")
    jetstream(perflogs, describe=lambda node: as_stated(site, node))
    found = verdicts("jetstream-iu")
    assert {k: v for k, v in found.words(sections("jetstream-iu")).items() if v != "PASS"} == {}


FIELD = {  # of each section one field that another value breaks
    "JS-3.1.1-SYS": "system.product_name",
    "JS-3.1.2-SYS": "memory.dimm.x3",
    "JS-3.1.3-SYS": "memory.total",
    "JS-3.1.4-SYS": "cpu.model",
    "JS-3.1.8-SYS": "nic.x0.firmware",
    "JS-3.1.9-SYS": "lldp.x1.switch_description",
    "JS-3.2.1-SYS": "lldp.x0.switch_description",
    "JS-3.2.3-SYS": "nic.x1.driver_version",
    "JS-3.2.6-SYS": "mount./",
}


def test_a_field_that_is_another_fails_its_section_and_is_named_with_its_node(perflogs):
    site = sites.load("jetstream-iu")

    def describe(node):
        fields = as_stated(site, node)
        wrong = dict.fromkeys(FIELD.values(), "another") if node == "iu-c007" else {}
        return fields | wrong

    jetstream(perflogs, describe=describe)
    found = verdicts("jetstream-iu")
    assert found.words(FIELD) == dict.fromkeys(FIELD, "FAIL")
    assert [one["node"] for one in found["JS-3.1.4-SYS"]["nodes"] if one["verdict"] == "FAIL"] == [
        "iu-c007"
    ]
    text = run("why", "JS-3.1.4-SYS", "--system", "jetstream-iu").output
    assert "iu-c007 follows from: cpu.model: expected *E5-2680 v3 @ 2.50GHz*, found another" in text


def test_what_no_node_could_read_is_a_skip_by_name(perflogs):
    site = sites.load("jetstream-iu")

    def describe(node):
        fields = {k: v for k, v in as_stated(site, node).items() if not k.startswith("memory.dimm")}
        return fields | {"unreadable memory.dimm": "needs root"}

    jetstream(perflogs, describe=describe)
    one = verdicts("jetstream-iu")["JS-3.1.2-SYS"]
    assert one["verdict"] == "SKIP"
    assert "needs root" in one["why"]


# ---- availability


OF_SYSTEM, OF_GATEWAY = "JS-4.1.3-UPTIME14", "JS-4.3-GWAVAIL"
PROBES = """
probes:
  login: {kind: tcp, target: '127.0.0.1:22', interval: 5 min}
  seagrid: {kind: tcp, target: '127.0.0.1:23', interval: 5 min, gateway: true}
"""


def only_criteria_on_availability(site):
    """Those of both sites, asked of one; no others, which need time and are not looked at."""
    for path in site.glob("criteria*.yaml"):
        path.write_text("{}\n")
    every = yaml.safe_load((TOP / "site-config/jetstream/criteria.yaml").read_text())
    kept = {key: every[key] for key in (OF_SYSTEM, OF_GATEWAY)}
    for one in kept.values():
        del one["over"]
    (site / "criteria.yaml").write_text(yaml.safe_dump(kept))


def probed(perflogs, tmp_path, monkeypatch, down=0, gateway_down=0, missed=range(0)):
    """Rounds every five minutes for 15 days; the last rounds of each are down."""
    emulate(tmp_path, monkeypatch, "jetstream-iu")
    only_criteria_on_availability(tmp_path / "sites/jetstream-iu")
    path = tmp_path / "sites/jetstream-iu/system.yaml"
    path.write_text(path.read_text().partition("\nprobes:")[0] + PROBES)
    now = int(datetime.now(UTC).timestamp())
    rounds = range(15 * 288, -1, -1)
    targets = {"login": ("127.0.0.1:22", down), "seagrid": ("127.0.0.1:23", gateway_down)}
    lines = {}
    for number in (one for one in rounds if one not in missed):
        at = now - 300 * number
        day = availability_log.text_of(at)[:10]
        for name, (target, lost) in targets.items():
            up = number >= lost
            one = ProbeResult(at, name, name, "tcp", target, up, 300, 0.01, "" if up else "refused")
            lines.setdefault(day, []).append(one.line())
    folder = perflogs / "jetstream-iu" / availability_log.FOLDER
    folder.mkdir(parents=True)
    for day, found in lines.items():
        (folder / f"{day}.login1{availability_log.SUFFIX}").write_bytes(b"".join(found))


AVAILABILITY = {
    "kept": ({}, "PASS", "PASS"),
    "a day down": ({"down": 288, "gateway_down": 288}, "FAIL", "PASS"),
    "the gateway half a day down": ({"gateway_down": 144}, "PASS", "FAIL"),
    "three days of rounds missed": ({"missed": range(1000, 1864)}, "INCOMPLETE", "INCOMPLETE"),
}


@pytest.mark.parametrize("name", AVAILABILITY)
def test_fourteen_days_of_probes_answer_the_availability(perflogs, tmp_path, monkeypatch, name):
    changes, system, gateway = AVAILABILITY[name]
    probed(perflogs, tmp_path, monkeypatch, **changes)
    found = verdicts("jetstream-iu")
    assert found[OF_SYSTEM]["verdict"] == system
    assert found[OF_GATEWAY]["verdict"] == gateway
    if system == "INCOMPLETE":
        assert found[OF_SYSTEM]["findings"][0]["text"].startswith("264.008 of 336 h")


# ---- broken inputs


def test_a_broken_input_costs_its_own_criteria_and_is_named(perflogs):
    jetstream(perflogs)
    (path,) = perflogs.rglob("*.fields.json.gz")
    path.write_bytes(b"broken")
    found = verdicts("jetstream-iu")
    assert found["JS-2-TOTALS-CORES-M630"]["verdict"] == "INCOMPLETE"
    assert path.name in found["JS-2-TOTALS-CORES-M630"]["why"]
    assert found["JS-5.1.2.1-CEPH"]["verdict"] == "PASS"


def test_the_past_is_looked_through_for_the_change_and_not_read_as_a_whole(perflogs, monkeypatch):
    """Thirty sessions lie between the newest and the last under the other version."""
    jetstream(perflogs)
    volume = {"file_system": "volume", "inside": "vm", "cached": "no", "program": "dd"}
    for number in range(30):
        made = Campaign(sites.load("jetstream-iu"), hours=23 - number / 2, place=10 + number)
        made.nodes(
            ["instances"],
            {"BlockStorage.read": 205, "BlockStorage.write": 120, "BlockStorage.variation": 1},
            storage_version="jewel",
            **volume,
        )
        made.write(perflogs)
    read, reader = [], record_samples.read

    def counted(path, *words, **keys):
        read.append(path)
        return reader(path, *words, **keys)

    monkeypatch.setattr(record_samples, "read", counted)
    one = verdicts("jetstream-iu")["JS-5.1.2.1-CEPH"]
    assert (one["verdict"], one["nodes"][0]["value"]) == ("PASS", "0")
    assert len(read) < 20
