"""Values that follow from a campaign, as the commands show them: PASS, FAIL, or missing by name.

Each campaign is of a shipped site, with values as its checks would keep them; a FAIL comes from
another measured value, and never from another bound.
"""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import recomputed
from campaigns import Campaign, as_stated
from click.testing import CliRunner
from documents_checked import check

from siteproof import cli, files, sites
from siteproof.record import probe_log
from siteproof.record import samples as record_samples
from siteproof.record.probe_log import ProbeResult
from siteproof.report import recompute
from siteproof.verdict import judgement

TCP = {"program": "nuttcp", "at_once": "1", "streams": "1", "mtu": "1500"}
OSU = {"program": "osu", "mpi": "openmpi", "transport": "tcp"}
HPL = {"program": "xhpl", "blas": "mkl"}
SIZES = [{"size": "8"}, {"size": "65536"}]


@pytest.fixture
def perflogs(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return files.perflogs()


def run(*words):
    done = CliRunner().invoke(cli.group, words, prog_name="siteproof")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def verdicts(system):
    """Verdict and reasons of each criterion, by `siteproof verdict --json`."""
    record = json.loads(run("verdict", "--system", system, "--json").output)
    recomputed.must_agree(judgement.judge_system(system), files.perflogs())
    return {one["id"]: one for one in record["criteria"]}


def of(system, key):
    return verdicts(system)[key]["verdict"]


# ---- NASA: ways to virtualise a network


def nasa(perflogs, **changes):
    """Ten trials a way, OSU by size, LINPACK. changes: other values."""
    got = {
        "bare": 9415,
        "software": 140,
        "paravirtual": 6000,
        "sriov": 9380,
        "trials": 10,
        "osu": (900, 910),
        "latency": (20, 19.5),
        "hpl": {"bare": 75, "sriov": 74, "paravirtual": 70},
    } | changes
    made = Campaign(sites.load("nebula-sriov"), place=got.get("place", 1))
    for link in ("bare", "software", "paravirtual", "sriov"):
        made.pairs(
            link, "TcpBandwidth.throughput", got[link], trials=got["trials"], unit="Mb/s", **TCP
        )
    for link, bandwidth, latency in zip(("bare", "sriov"), got["osu"], got["latency"], strict=True):
        made.pairs(link, "MpiPingPong.bandwidth_by_size", bandwidth, dims=SIZES, **OSU)
        made.pairs(link, "MpiPingPong.latency_by_size", latency, dims=SIZES, **OSU)
    for role, rate in got["hpl"].items():
        made.nodes([role], {"Hpl.gflops": rate}, **HPL)
    made.write(perflogs)
    return made


NASA = {
    "NASA-NUTTCP-BM": {"bare": 9000},
    "NASA-RATIO-SRIOV": {"sriov": 8700},
    "NASA-TRIALS": {"trials": 11},
    "NASA-OSU-BW": {"osu": (900, 890)},
    "NASA-OSU-LAT": {"latency": (20, 21)},
    "NASA-LINPACK-BARE": {"hpl": {"bare": 70, "sriov": 74, "paravirtual": 70}},
    "NASA-LINPACK-VIRTUAL": {"hpl": {"bare": 75, "sriov": 69, "paravirtual": 70}},
}


def test_nasas_campaign_keeps_every_order_of_its_report(perflogs):
    nasa(perflogs)
    found = verdicts("nebula-sriov")
    assert {key: found[key]["verdict"] for key in NASA} == dict.fromkeys(NASA, "PASS")


@pytest.mark.parametrize("key", NASA)
def test_another_value_breaks_the_one_criterion_that_it_is_of(perflogs, key):
    nasa(perflogs, **NASA[key])
    assert of("nebula-sriov", key) == "FAIL"


@pytest.mark.parametrize("use", ["input", "whole"])
def test_another_input_than_that_of_a_derived_value_is_found_on_the_page(perflogs, use):
    nasa(perflogs)
    texts = recomputed.texts(judgement.judge_system("nebula-sriov"), perflogs)
    rows = recompute.rows_of(texts, "samples")
    keys = {row["criterion"] for row in rows if row["use"] == use}
    assert {"NASA-RATIO-SRIOV", "NASA-OSU-BW"} <= keys
    for key in sorted(keys - {"NASA-TRIALS"}):  # which counts its inputs
        changed = recomputed.changed(
            texts,
            "samples",
            "value",
            lambda old: str(Decimal(old) * 3),
            lambda row, key=key: (row["criterion"], row["use"]) == (key, use),
        )
        differing, printed = recomputed.again(changed)
        assert differing == 1 and "its inputs give" in printed, printed


def test_fewer_trials_than_required_are_missing_and_no_failure(perflogs):
    nasa(perflogs, trials=9)
    found = verdicts("nebula-sriov")["NASA-NUTTCP-BM"]
    assert (found["verdict"], found["findings"][0]["kind"]) == ("INCOMPLETE", "trials_missing")


def test_a_way_that_was_not_measured_is_named(perflogs):
    made = nasa(perflogs)
    for path in perflogs.rglob("*.jsonl"):
        if '"link":"bare"' in path.read_text():
            path.unlink()
    found = verdicts("nebula-sriov")["NASA-RATIO-SRIOV"]
    (why,) = found["findings"]
    assert (found["verdict"], why["kind"]) == ("INCOMPLETE", "input_missing")
    assert "r710-2>r710-1" in why["details"]["input"] and made


def test_why_shows_the_chain_to_the_figures_that_the_tool_printed(perflogs):
    nasa(perflogs)
    text = run("why", "NASA-RATIO-SRIOV", "--system", "nebula-sriov").output
    assert "9.38 Gb/s of 9.415 Gb/s (link bare)" in text
    assert "TcpBandwidth.throughput of r710-2>r710-1" in text and "9415, 9415" in text


def test_the_documents_of_derived_values_keep_to_their_schema(perflogs):
    nasa(perflogs)
    system = ("--system", "nebula-sriov", "--json")
    check("verdict", run("verdict", *system).output)
    record = check("why", run("why", "NASA-RATIO-SRIOV", *system).output)
    (sample,) = record["samples"]
    assert sample["follows"].startswith("TcpBandwidth.throughput: 9.38 Gb/s of 9.415 Gb/s")
    assert {one["value"] for one in sample["inputs"]} == {"9380", "9415"}


def test_values_under_conditions_that_differ_are_not_compared(perflogs):
    nasa(perflogs)
    made = Campaign(sites.load("nebula-sriov"), hours=0.5, place=2)
    made.pairs("sriov", "TcpBandwidth.throughput", 9400, unit="Mb/s", **TCP | {"streams": "4"})
    made.write(perflogs)
    found = verdicts("nebula-sriov")["NASA-RATIO-SRIOV"]
    assert (found["verdict"], found["findings"][0]["kind"]) == ("INCOMPLETE", "inputs_differ")


# ---- SC11: the wide area compared with the local one


def described(node):
    cores = "6" if "oss" in node else "12"
    return {
        "cpu.model": "E5645",
        "cpu.cores": cores,
        "cpu.threads": cores,
        "memory.total": "24000000 kB",
        "nic.eth2.speed": "10000 Mb/s",
        "nic.eth2.mtu": "9000",
        "nic.eth2.driver": "bna",
        "nic.eth2.pci": "0000:03:00.0",
        "host.name": node,
        "disk.sda.size": "500107862016 B",
    }


ENDS = [
    f"{end}_{kind}"
    for end in ("seattle", "indianapolis")
    for kind in ("clients", "storage", "metadata")
]


def sc11(perflogs, **changes):
    got = {
        "near": 98,
        "far": 96.5,
        "ior": (9700, 6620),
        "lnet": (11900, 9600),
        "minutes": 30,
        "describe": described,
    } | changes
    made = Campaign(sites.load("sc11-wan"), minutes=got["minutes"])
    for link in ("lan-together", "wan-together"):
        rate = got["near"] if link.startswith("lan") else got["far"]
        made.whole(
            "TcpBandwidth.aggregate",
            rate,
            dims={"link": link, "direction": "out"},
            link=link,
            program="iperf3",
            at_once="30",
            streams="1",
        )
    for place, ior, lnet in zip(("seattle", "indianapolis"), got["ior"], got["lnet"], strict=True):
        for tasks in ("1", "30"):
            for metric in ("Ior.read", "Ior.write"):
                made.whole(
                    metric,
                    1200 if tasks == "1" else ior,
                    dims={"tasks": tasks, "tasks_per_node": "1"},
                    file_system=place,
                    program="ior",
                    api="POSIX",
                    layout="file_a_task",
                )
        for clients, servers in (("1", "8"), ("10", "10")):
            for metric in ("Lnet.read", "Lnet.write"):
                made.whole(
                    metric,
                    1200 if clients == "1" else lnet,
                    dims={},
                    file_system=place,
                    program="lnet_selftest",
                    clients=clients,
                    servers=servers,
                )
    made.describe(ENDS, got["describe"])
    made.write(perflogs)


def without_flags(node):
    return described(node) | ({"nic.eth2.mtu": "1500"} if node.startswith("ind-oss") else {})


SC11 = {
    "SC11-WANRATIO-IPERF30": {"far": 90},
    "SC11-WANRATIO-IOR30": {"ior": (9700, 6000)},
    "SC11-WANRATIO-LNET10": {"lnet": (11900, 9000)},
    "SC11-IDENT": {"describe": without_flags},
    "SC11-WINDOW": {"minutes": 21 * 60},
}


def test_sc11s_campaign_keeps_what_the_wide_area_must_retain(perflogs):
    sc11(perflogs)
    found = verdicts("sc11-wan")
    wanted = [
        *SC11,
        "SC11-WANRATIO-IOR1",
        "SC11-WANRATIO-LNET1",
        "SC11-HW-CLIENTS-SEA",
        "SC11-HW-STORAGE-IND",
    ]
    assert {key: found[key]["verdict"] for key in wanted} == dict.fromkeys(wanted, "PASS")


@pytest.mark.parametrize("key", SC11)
def test_another_value_over_the_wide_area_breaks_its_criterion(perflogs, key):
    sc11(perflogs, **SC11[key])
    assert of("sc11-wan", key) == "FAIL"


def test_the_field_in_which_both_ends_differ_is_named(perflogs):
    sc11(perflogs, describe=without_flags)
    assert "object_server nic.eth2.mtu" in run("why", "SC11-IDENT", "--system", "sc11-wan").output


# ---- Jetstream: inventory, ledger, ratios, changes


def blade(node):
    return (
        {
            "cpu.model": "E5-2680 v3",
            "cpu.cores": "24",
            "cpu.threads": "24",
            "memory.total": "131700000 kB",
            "host.name": node,
            "memory.swap": "0 kB",
            "disk.sda.size": "200049647616 B",
        }
        | ({f"disk.sd{x}.size": "4000787030016 B" for x in "bcdefghijklm"} if "-s" in node else {})
        | ({"memory.total": "65800000 kB"} if "-m" in node or "-s" in node else {})
    )


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
    made.describe(["compute", "management", "storage"], got["describe"])
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


def smaller(key, value, of="iu-c001"):
    return lambda node: blade(node) | ({key: value} if node == of else {})


JETSTREAM = {
    "JS-2-PEAK": {"describe": smaller("cpu.cores", "20")},
    "JS-2-TOTALS-CORES-M630": {"describe": smaller("cpu.cores", "20")},
    "JS-2-TOTALS-PEAK-M630": {"describe": lambda node: blade(node) | {"cpu.cores": "20"}},
    "JS-2-TOTALS-RAM-M630": {"describe": smaller("memory.total", "98000000 kB")},
    "JS-2-TOTALS-DISK": {"describe": smaller("disk.sdb.size", "0 B", "iu-s01")},
    "JS-5.1.2.1-CEPH": {"serial": 150},
}


def test_jetstreams_campaign_has_what_was_bought(perflogs):
    jetstream(perflogs)
    found = verdicts("jetstream-iu")
    wanted = [*JETSTREAM, "JS-2-COUNTS-M630", "JS-2-COUNTS-R630", "JS-2-TOTALS-RAM-R730"]
    assert {key: found[key]["verdict"] for key in wanted} == dict.fromkeys(wanted, "PASS")


@pytest.mark.parametrize("key", JETSTREAM)
def test_less_than_was_bought_fails(perflogs, key):
    jetstream(perflogs, **JETSTREAM[key])
    assert of("jetstream-iu", key) == "FAIL"


def test_a_milestone_before_the_one_that_it_needs_fails_with_its_name(perflogs):
    jetstream(perflogs)
    found = verdicts("jetstream-iu")
    assert found["JS-T1-TIMELINE-ORDER"]["verdict"] == "FAIL"
    text = run("why", "JS-T1-TIMELINE-ORDER", "--system", "jetstream-iu").output
    assert "precedes" in text


def test_a_value_that_decides_nothing_is_shown_nevertheless(perflogs):
    jetstream(perflogs)
    one = verdicts("jetstream-iu")["JS-5.1.2.1-RANDRATIO-R"]
    assert one["verdict"] == "SKIP"
    assert one["nodes"][0]["value"].startswith("0.190")


# ---- Magellan and ExTENCI


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
    found = verdicts("magellan")
    wanted = [*MAGELLAN, "MAG-HW-COMPUTE", "MAG-HW-GPU"]
    assert {key: found[key]["verdict"] for key in wanted} == dict.fromkeys(wanted, "PASS")


@pytest.mark.parametrize("key", MAGELLAN)
def test_an_instance_or_host_that_is_another_fails(perflogs, key):
    magellan(perflogs, MAGELLAN[key])
    assert of("magellan", key) == "FAIL"


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


# ---- what is emulated


def emulate(tmp_path, monkeypatch, site, conditions=""):
    """The site with another key of the criterion."""
    folder = tmp_path / "sites" / site
    folder.mkdir(parents=True)
    for path in (sites.folder() / site).glob("*.*"):
        text = path.read_text()
        if conditions:
            text = text.replace("    mtu: 9000\n", "    mtu: 9000\n    emulated: netem\n", 1)
            text = text.replace(
                "  metric: TcpBandwidth.retention\n",
                f"  metric: TcpBandwidth.retention\n  conditions: {conditions}\n",
            )
        (folder / path.name).write_text(text)
    monkeypatch.setenv("SITEPROOF_SITES", str(folder.parent))


@pytest.mark.parametrize(("rule", "verdict"), [("", "INCOMPLETE"), ("{emulated: netem}", "PASS")])
def test_what_is_emulated_answers_only_what_asks_for_no_more(
    perflogs, tmp_path, monkeypatch, rule, verdict
):
    made = Campaign(sites.load("sc11-wan"))
    for link in ("lan-together", "wan-together"):
        made.whole(
            "TcpBandwidth.aggregate",
            98,
            dims={"link": link},
            link=link,
            program="iperf3",
            at_once="30",
            streams="1",
            emulated="netem",
        )
    made.write(perflogs)
    emulate(tmp_path, monkeypatch, "sc11-wan", rule)
    assert of("sc11-wan", "SC11-WANRATIO-IPERF30") == verdict


def test_published_values_derive_nothing(perflogs):
    for system in ("sc11-wan", "nebula-sriov"):
        run("import", "--system", system)
        found = verdicts(system)
        derived = {
            k
            for k, c in sites.load(system).criteria.items()
            if sites.load(system).catalogue[c.metric].derived_from
        }
        assert not {k for k in derived if found[k]["verdict"] in ("PASS", "FAIL")}


# ---- what was bought


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
    assert {found[key]["verdict"] for key in sections("jetstream-iu")} == {"PASS"}


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
    assert {key: found[key]["verdict"] for key in FIELD} == dict.fromkeys(FIELD, "FAIL")
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
    assert {one: found[one]["verdict"] for one in HOSTS} == wanted


def future(perflogs):
    """The environments that the case study wants to measure next."""
    for number, name in enumerate(
        ("infiniband", "openstack", "eucalyptus", "xen", "redhat", "suse")
    ):
        made = Campaign(
            sites.load("nebula-sriov"), hours=24 * 9 - number, place=1 + number, environment=name
        )
        link, metric = (
            ("bare", "MpiPingPong.bandwidth")
            if not number
            else ("sriov", "TcpBandwidth.throughput")
        )
        made.pairs(
            link,
            metric,
            900,
            unit="" if not number else "Mb/s",
            **OSU | {"program": "osu" if not number else "nuttcp"},
        )
        made.write(perflogs)


@pytest.mark.parametrize(("changes", "code"), [({}, 0), ({"bare": 9000}, 1)])
def test_nasas_contract_ends_with_0_and_with_another_value_with_1(perflogs, changes, code):
    future(perflogs)
    site = sites.load("nebula-sriov")
    nasa(perflogs, place=9, **changes)
    made = Campaign(site, place=10, hours=0.5)
    made.describe(list(site.system.nodes), lambda node: as_stated(site, node))
    made.write(perflogs)
    done = run("verdict", "--system", "nebula-sriov")
    assert done.exit_code == code, done.output


# ---- availability


PROBES = """
probes:
  login: {kind: tcp, target: '127.0.0.1:22', interval: 5 min}
  seagrid: {kind: tcp, target: '127.0.0.1:23', interval: 5 min, gateway: true}
"""


def probed(perflogs, tmp_path, monkeypatch, down=0, gateway_down=0, missed=range(0)):
    """Rounds every five minutes for 15 days; the last rounds of each are down."""
    emulate(tmp_path, monkeypatch, "jetstream-iu")
    with (tmp_path / "sites/jetstream-iu/system.yaml").open("a") as file:
        file.write(PROBES)
    now = int(datetime.now(UTC).timestamp())
    rounds = range(15 * 288, -1, -1)
    targets = {"login": ("127.0.0.1:22", down), "seagrid": ("127.0.0.1:23", gateway_down)}
    lines = {}
    for number in (one for one in rounds if one not in missed):
        at = now - 300 * number
        day = probe_log.text_of(at)[:10]
        for name, (target, lost) in targets.items():
            up = number >= lost
            one = ProbeResult(at, name, name, "tcp", target, up, 300, 0.01, "" if up else "refused")
            lines.setdefault(day, []).append(one.line())
    folder = perflogs / "jetstream-iu" / probe_log.FOLDER
    folder.mkdir(parents=True)
    for day, found in lines.items():
        (folder / f"{day}.login1{probe_log.SUFFIX}").write_bytes(b"".join(found))


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
    assert found["JS-4.1.3-UPTIME14"]["verdict"] == system
    assert found["JS-4.3-GWAVAIL"]["verdict"] == gateway
    if system == "INCOMPLETE":
        assert found["JS-4.1.3-UPTIME14"]["findings"][0]["kind"] == "hours_missing"


# ---- the whole contract of SC11


TUNED = {
    "max_rpcs_in_flight": (5, 8, 128),
    "peer_credits": (4, 8, 64),
    "credits": (6, 64, 2048),
    "max_dirty_mb": (4, 32, 256),
}
KINDS = (
    "tcp_rmem",
    "tcp_wmem",
    "rmem_max",
    "wmem_max",
    "netdev_max_backlog",
    "txqueuelen",
    "mtu",
    "flow_control",
)


def everything_else(perflogs):
    """What SC11 promises beyond the values that are derived."""
    made = Campaign(sites.load("sc11-wan"), place=2, hours=0.5, minutes=60)
    for link, trip in (("lan-seattle", 0.2), ("lan-indianapolis", 0.2), ("wan", 50.4)):
        made.pairs(link, "Latency.round_trip", trip * 1000, program="ping")
        made.pairs(link, "TcpBandwidth.throughput", 9.9, program="iperf3", at_once="1", streams="1")
    clients = ["seattle_clients"]
    for place, best, lasting in (("seattle", 8.8, 7.9), ("indianapolis", 6.2, 5.6)):
        made.nodes(
            clients,
            {"IorSingle.read": 1200, "IorSingle.write": 1200},
            file_system=place,
            program="ior",
        )
        made.nodes(clients, {"Lustre.osts_up": 30}, file_system=place, program="lfs")
        for metric, value in (("peak", best), ("sustained", lasting), ("nodes", 30)):
            made.whole(f"Workload.{metric}", value, file_system=place, applications="8", nodes="30")
    made.nodes(ENDS, {f"HostParameters.{kind}_mismatches": 0 for kind in KINDS})
    for name, (points, first, last) in TUNED.items():
        made.whole(
            "Tuning.points", points, **{"parameter": name, "from": str(first), "to": str(last)}
        )
    made.whole("Tuning.samples", 3)
    made.write(perflogs)


@pytest.mark.parametrize(("changes", "code"), [({}, 0), ({"far": 90}, 1)])
def test_sc11s_contract_ends_with_0_and_with_another_value_with_1(perflogs, changes, code):
    sc11(perflogs, **changes)
    everything_else(perflogs)
    done = run("verdict", "--system", "sc11-wan")
    assert done.exit_code == code, done.output


# ---- broken inputs


def test_a_broken_input_costs_its_own_criteria_and_is_named(perflogs):
    jetstream(perflogs)
    (path,) = perflogs.rglob("*.fields.json.gz")
    path.write_bytes(b"broken")
    found = verdicts("jetstream-iu")
    assert found["JS-2-TOTALS-CORES-M630"]["verdict"] == "INCOMPLETE"
    assert path.name in found["JS-2-TOTALS-CORES-M630"]["why"]
    assert found["JS-5.1.2.1-CEPH"]["verdict"] == "PASS"


def test_a_size_in_place_of_a_rate_is_no_input(perflogs):
    nasa(perflogs)
    made = Campaign(sites.load("nebula-sriov"), hours=0.5, place=2)
    made.pairs("sriov", "TcpBandwidth.throughput", 9400, trials=10, unit="GiB", **TCP)
    made.write(perflogs)
    assert of("nebula-sriov", "NASA-RATIO-SRIOV") == "INCOMPLETE"
    assert of("nebula-sriov", "NASA-TRIALS") == "PASS"


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

    def counted(path, *rest):
        read.append(path)
        return reader(path, *rest)

    monkeypatch.setattr(record_samples, "read", counted)
    one = verdicts("jetstream-iu")["JS-5.1.2.1-CEPH"]
    assert (one["verdict"], one["nodes"][0]["value"]) == ("PASS", "0")
    assert len(read) < 20


def test_a_failed_trial_among_good_ones_is_a_missing_trial_and_no_error(perflogs):
    nasa(perflogs)
    (path,) = (
        p
        for p in perflogs.rglob("*.jsonl")
        if '"link":"sriov"' in p.read_text() and "Tcp" in p.name
    )
    *lines, last = path.read_text().splitlines()
    failed = {k: v for k, v in json.loads(last).items() if k not in ("value", "unit")}
    lines.append(json.dumps(failed | {"status": "timeout", "why": "60 s"}, separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n")
    assert of("nebula-sriov", "NASA-RATIO-SRIOV") == "PASS"
