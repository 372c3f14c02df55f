"""Values that follow from a campaign, as the commands show them: PASS, FAIL, or missing by name.

Each campaign is of a shipped site, with values as its checks would keep them; a FAIL comes from
another measured value, and never from another bound.
"""

import json

import pytest
from campaigns import Campaign, as_stated
from derived_values import emulate, of, run, verdicts
from documents_checked import check

from siteproof import files, sites

TCP = {"program": "nuttcp", "at_once": "1", "streams": "1", "mtu": "1500"}
OSU = {"program": "osu", "mpi": "openmpi", "transport": "tcp"}
LINPACK = {"application": "linpack", "nodes": "2"}
SIZES = [{"size": "8"}, {"size": "65536"}]


@pytest.fixture
def perflogs(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return files.perflogs()


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
        made.whole("Workload.printed_alone", rate, dims=LINPACK, file_system=role)
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
    found = verdicts("nebula-sriov", again=True)
    assert found.words(NASA) == dict.fromkeys(NASA, "PASS")


@pytest.mark.parametrize("key", NASA)
def test_another_value_breaks_the_one_criterion_that_it_is_of(perflogs, key):
    nasa(perflogs, **NASA[key])
    assert of("nebula-sriov", key, again=key == next(iter(NASA))) == "FAIL"


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
    assert found["verdict"] == "INCOMPLETE" and why["text"].startswith("derived from ")
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
    (why,) = found["findings"]
    assert found["verdict"] == "INCOMPLETE"
    assert why["text"].startswith("the sides cannot be compared: ")


# ---- SC11: the wide area compared with the local one


def described(node):
    return as_stated(sites.load("sc11-wan"), node) | {
        "cpu.threads": "6" if "oss" in node else "12",
        "nic.eth2.speed": "10000 Mb/s",
        "nic.eth2.mtu": "9000",
        "nic.eth2.driver": "bna",
        "nic.eth2.pci": "0000:03:00.0",
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
                    stripe_count="30",
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
    found = verdicts("sc11-wan", again=True)
    wanted = [
        *SC11,
        "SC11-WANRATIO-IOR1",
        "SC11-WANRATIO-LNET1",
        "SC11-HW-CLIENTS-SEA",
        "SC11-HW-STORAGE-IND",
    ]
    assert found.words(wanted) == dict.fromkeys(wanted, "PASS")


@pytest.mark.parametrize("key", SC11)
def test_another_value_over_the_wide_area_breaks_its_criterion(perflogs, key):
    sc11(perflogs, **SC11[key])
    assert of("sc11-wan", key, again=key == next(iter(SC11))) == "FAIL"


def test_the_field_in_which_both_ends_differ_is_named(perflogs):
    sc11(perflogs, describe=without_flags)
    assert "object_server nic.eth2.mtu" in run("why", "SC11-IDENT", "--system", "sc11-wan").output


# ---- what is emulated


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
        run("import", "--system", system, "--apply")
        found = verdicts(system)
        derived = {
            k
            for k, c in sites.load(system).criteria.items()
            if sites.load(system).catalogue[c.metric].derived_from
        }
        assert not {"PASS", "FAIL"} & set(found.words(derived).values())


FUTURE = (
    {"ib.mlx4_0.port1.link_layer": "InfiniBand"},
    {"system.product_name": "OpenStack Nova"},
    {"nic.eth0.mac": "d0:0d:2a:41:08:5f"},  # of Eucalyptus
    {"kernel.hypervisor": "xen"},
    {"os.release": "Red Hat Enterprise Linux Server release 6.1 (Santiago)"},
    {"os.release": "SUSE Linux Enterprise Server 11 (x86_64)"},
)


def future(perflogs, environments=FUTURE):
    """The environments that the case study wants to measure next."""
    site = sites.load("nebula-sriov")
    for number, fields in enumerate(environments):
        made = Campaign(site, hours=24 * 9 - number, place=1 + number)
        made.describe(["bare", "sriov"], lambda node, own=fields: as_stated(site, node) | own)
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


def test_what_was_measured_in_an_environment_is_known_by_its_nodes_and_not_by_its_name(perflogs):
    nasa(perflogs, place=9)
    future(perflogs, (*FUTURE[:3], {"kernel.hypervisor": "kvm"}, *FUTURE[4:]))
    found = verdicts("nebula-sriov")["NASA-FUTURE"]
    (why,) = found["findings"]
    assert (found["verdict"], why["details"]["input"]) == ("INCOMPLETE", "Xen of vf-2>vf-1")


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
            stripe_count="30",
            program="ior",
        )
        targets = {"Lustre.osts_up": 30, "Lustre.targets_of_servers": "14x2 2x1"}
        made.nodes(clients, targets, file_system=place, program="lfs")
        for metric, value in (("peak", best), ("sustained", lasting), ("nodes", 30)):
            mix = {"applications": "8", "nodes": "30", "mix": "8+7+6+3+2+2+1+1"}
            made.whole(f"Workload.{metric}", value, file_system=place, **mix)
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


def test_a_size_in_place_of_a_rate_is_no_input(perflogs):
    nasa(perflogs)
    made = Campaign(sites.load("nebula-sriov"), hours=0.5, place=2)
    made.pairs("sriov", "TcpBandwidth.throughput", 9400, trials=10, unit="GiB", **TCP)
    made.write(perflogs)
    assert of("nebula-sriov", "NASA-RATIO-SRIOV") == "INCOMPLETE"
    assert of("nebula-sriov", "NASA-TRIALS") == "PASS"


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
