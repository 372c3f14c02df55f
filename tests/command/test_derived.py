"""Figures that follow from a campaign, as the commands show them: PASS, FAIL, or missing by name.

Each campaign is of a shipped site, with values as its checks would keep them; a FAIL comes from
another measured value, and never from another bound.
"""

import json

import pytest
from campaigns import Campaign
from click.testing import CliRunner

from siteproof import cli, files, sites

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
    made = Campaign(sites.load("nebula-sriov"))
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
