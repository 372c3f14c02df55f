"""An answer that was measured on other hardware than the node has now is no answer."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import fleets
import nets
import pytest
from asked import ask
from clone import TOP
from fleets import names, run_of
from rows import rows

from siteproof import sites
from siteproof.checks import missing
from siteproof.record import descriptions, samples
from siteproof.verdict.judgement import judge_system

ALL = tuple(names(4))
FIELDS = {
    "system.board.serial": "B{n}",
    "system.product.uuid": "4c4c4544-0000-0000-0000-00000000000{n}",
    "nic.eth0.mac": "02:00:00:00:00:0{n}",
    "nic.ib0.mac": "00:00:10:87:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:00:00:0{n}",
    "nic.vf0.mac": "5a:00:00:00:00:0{n}",
    "nic.vf0.function_of": "0000:01:00.0",
    "memory.dimm.1_A1": "16 GiB, DDR4 3200, at 3200, maker part",
    "memory.dimm.1_A1.serial": "D{n}",
    "memory.total": "32000000 kB",
    "memory.numa.node0": "32000000 kB cpus 0-15 distance 10",
    "cpu.model": "EPYC 1",
    "cpu.threads": "16",
    "cpu.smt.active": "1",
}


class Four:
    """Four nodes that are described and measured, a session a day."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.perflogs = folder, folder / "perflogs"
        monkeypatch.setenv("SITEPROOF_DATA", str(folder))
        fleets.load(folder / "sites", monkeypatch, count=4, criteria=fleets.CRITERIA)
        begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=20)
        monkeypatch.setattr(fleets, "START", begin)

    def keep(self, found):
        samples.write(self.perflogs, found[0].header, found)

    def measured(self, run, nodes=ALL, value=100, **keys):
        self.keep(run_of(dict.fromkeys(nodes, value), run, expected=",".join(nodes), **keys))

    def described(self, run, changes=None, nodes=ALL, **keys):
        """Describe nodes, those in `changes` with other fields; None: not read."""
        keys = {"expected": ",".join(nodes), **keys}
        looked = run_of(dict.fromkeys(nodes, 9), run, descriptions.COUNT, "count", **keys)
        kept = {}
        for node in nodes:
            own = {name: text.format(n=node[-1]) for name, text in FIELDS.items()}
            own |= (changes or {}).get(node, {})
            kept[node] = {name: text for name, text in own.items() if text is not None}
        descriptions.write(self.perflogs, looked[0].header, kept)
        self.keep(looked)

    def state(self):
        """The verdict, its reason, and the nodes that are UNTESTED."""
        (line,) = json.loads(ask("verdict", "--json")[1])["criteria"]
        nodes = json.loads(ask("nodes", "--json")[1])["nodes"]
        untested = [one["node"] for one in nodes if one["state"] == "UNTESTED"]
        return line["verdict"], line["findings"], untested


@pytest.fixture
def four(tmp_path, monkeypatch):
    return Four(tmp_path, monkeypatch)


# ---- what is other hardware, and what is not

ONE = {
    "board": {"system.board.serial": "B9"},
    "network card": {"nic.eth0.mac": "02:00:00:00:00:99"},
    "InfiniBand card": {
        "nic.ib0.mac": "00:00:10:87:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:00:00:99"
    },
    "DIMM": {"memory.dimm.1_A1.serial": "D9"},
    "DIMM is gone": {"memory.total": "16000000 kB"},
    "processor": {"cpu.model": "EPYC 2"},
    "SMT": {"cpu.threads": "8"},
    "NUMA layout": {"memory.numa.node0": "32000000 kB cpus 0-7 distance 10 12"},
}
NOTHING = {
    "nothing": {},
    "not read now": {"system.board.serial": None},
    "a virtual function has another address": {"nic.vf0.mac": "5e:00:00:00:00:99"},
    "InfiniBand's queue pair": {
        "nic.ib0.mac": "00:00:11:99:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:00:00:03"
    },
    "memory that a new kernel takes": {"memory.total": "31900000 kB"},
    "a setting": {"sysctl.vm.swappiness": "60"},
}


@rows("name", list(ONE))
@pytest.mark.deep
def test_what_was_measured_on_other_hardware_is_no_answer(tmp_path, monkeypatch, name):
    four = Four(tmp_path, monkeypatch)
    four.described(1)
    four.measured(1)
    assert four.state() == ("PASS", [], [])
    four.described(2, {"n003": ONE[name]})
    verdict, (why,), untested = four.state()
    assert (verdict, why["kind"], untested) == ("INCOMPLETE", "replaced", ["n003"])
    ((field, after),) = ONE[name].items()
    held = why["details"]
    assert (held["what"], held["after"]) == (field, after)
    assert held["before"] == FIELDS[field].format(n=3)
    assert f"measured before {field} changed" in " ".join(ask("nodes")[1].split())
    waiver = "W: {nodes: n003, waives: all, problem: p, owner: o, expires: 2199-01-01}\n"
    (four.folder / "sites/here/waivers.yaml").write_text(waiver)
    assert four.state()[0] == "INCOMPLETE", "no waiver covers it"
    code, text = ask("gate")
    assert (code, "n003" in text) == (1, True)
    four.measured(3, ["n003"])
    assert four.state() == ("PASS", [], [])


@rows("name", list(NOTHING))
def test_what_is_no_other_hardware(tmp_path, monkeypatch, name):
    four = Four(tmp_path, monkeypatch)
    four.described(1)
    four.measured(1)
    four.described(2, {"n003": NOTHING[name]})
    assert four.state() == ("PASS", [], [])


# ---- on which nodes


def swapped(one, other):
    return {n: {"system.board.serial": f"B{m[-1]}"} for n, m in ((one, other), (other, one))}


@rows(
    "changes, untested",
    [
        (dict.fromkeys(ALL, {"cpu.threads": "8"}), list(ALL)),
        (swapped("n001", "n002"), ["n001", "n002"]),
        ({"n004": {"cpu.threads": "8", "system.board.serial": "B9"}}, ["n004"]),
    ],
)
def test_each_node_that_changed_is_measured_again(tmp_path, monkeypatch, changes, untested):
    four = Four(tmp_path, monkeypatch)
    four.described(1)
    four.measured(1)
    four.described(2)
    four.described(3, changes)
    assert four.state()[0::2] == ("INCOMPLETE", untested)
    monkeypatch.setattr(missing.session, "current", lambda: SimpleNamespace(campaign=""))
    stream = missing.Planned("Stream", "maintenance")
    missing._sessions.cache_clear()
    assert missing.nodes(sites.load("here"), ["compute"], stream) == set(untested)


def test_an_input_of_other_hardware_is_measured_again(four, monkeypatch):
    derived = "HostParameters.buffer_shortage, at_most: 0 B"
    criteria = fleets.CRITERIA.replace("Stream.triad, at_least: 60 MB/s", derived)
    (four.folder / "sites/here/criteria.yaml").write_text(criteria)
    monkeypatch.setattr(missing.session, "current", lambda: SimpleNamespace(campaign=""))
    four.described(1)
    read = run_of(
        dict.fromkeys(ALL, 0), 1, "HostParameters.mismatches", "count", expected=",".join(ALL)
    )
    four.keep(read)
    planned = missing.Planned("HostParameters", "maintenance")
    for changes, untested in (({}, set()), ({"n003": ONE["board"]}, {"n003"})):
        four.described(2, changes)
        missing._sessions.cache_clear()
        assert missing.nodes(sites.load("here"), ["compute"], planned) == untested


def test_a_change_before_the_answer_or_of_an_unknown_day_is_none(four):
    four.described(1)
    four.described(2, swapped("n001", "n002"))
    four.measured(2)
    four.described(3, swapped("n001", "n002"))
    assert four.state() == ("PASS", [], [])


def test_a_metric_that_is_no_headline_keeps_its_node_out_too(four):
    criteria = fleets.CRITERIA.replace("Stream.triad", "Stream.copy")
    (four.folder / "sites/here/criteria.yaml").write_text(criteria)
    four.described(1)
    four.measured(1)
    four.keep(run_of(dict.fromkeys(ALL, 100), 2, "Stream.copy", expected=",".join(ALL)))
    assert four.state() == ("PASS", [], [])
    four.described(3, {"n003": ONE["board"]})
    assert four.state()[0::2] == ("INCOMPLETE", ["n003"])


def test_each_job_records_the_processor_of_its_nodes(four):
    four.measured(1, provenance={"processor": "EPYC 1"})
    four.measured(2, ["n001"], provenance={"processor": "EPYC 1"})
    assert four.state() == ("PASS", [], [])
    other = {"processor": "EPYC 2"}
    four.keep(run_of({"n002": 9}, 3, "Hpl.gflops", "GFLOPS", expected="n002", provenance=other))
    verdict, (why,), untested = four.state()
    assert (verdict, why["details"]["what"]) == ("INCOMPLETE", "processor")
    assert "n002" in untested


FLAGS = """\
FLAGS: {description: d, metric: Instance.missing_flags, nodes: [guest], at_most: 0 count,
  against: {nodes: compute}, source: s, max_age: none, conditions: {mode: maintenance}}
"""


def test_the_processor_of_its_hosts_is_not_that_of_a_guest(four):
    """A guest that was described after its hosts has had its own processor all the time."""
    path = four.folder / "sites/here/system.yaml"
    guest = "nodes:\n  guest: {set: 'n[003-004]'}"
    text = path.read_text().replace("n[001-004]", "n[001-002]").replace("nodes:", guest, 1)
    path.write_text(text.replace("role: compute", "role: [compute, guest]"))
    (four.folder / "sites/here/criteria.yaml").write_text(FLAGS)
    has = {"cpu.flag.avx": ""}
    four.described(1, dict.fromkeys(ALL[:2], has), ALL[:2], provenance={"processor": "EPYC"})
    for run in (1, 2):
        given = {"job": "2", "provenance": {"processor": "QEMU"}}
        four.described(run, dict.fromkeys(ALL[2:], has), ALL[2:], **given)
    assert four.state()[0] == "PASS", four.state()


def test_an_input_is_answered_for_each_node_by_the_newest_session_that_has_it(four):
    """A description of one node alone hides no older ones of the others."""
    criteria = "CORES: {description: d, metric: Instance.vcpus, nodes: [compute], equals: 16 count,"
    criteria += " source: s, max_age: none, conditions: {mode: maintenance}}\n"
    (four.folder / "sites/here/criteria.yaml").write_text(criteria)
    four.described(1)
    assert four.state()[0] == "PASS", four.state()
    four.described(2, nodes=["n003"])
    assert four.state()[0] == "PASS", four.state()


def test_a_miss_on_other_hardware_is_no_answer_either(four):
    four.described(1)
    four.measured(1, value=10)
    assert four.state()[0] == "FAIL"
    four.described(2, dict.fromkeys(ALL, {"system.board.serial": "B9"}))
    verdict, (why,), untested = four.state()
    assert (verdict, why["details"]["answer"], untested) == ("INCOMPLETE", "FAIL", list(ALL))


def test_a_pair_is_replaced_with_either_of_its_ends(four, monkeypatch):
    criteria = nets.TCP.replace("source:", "max_age: none, source:")
    nets.load(four.folder / "sites", monkeypatch, criteria=criteria)
    four.described(1, nodes=["n2", "n3", "s1"])
    pairs = {}
    for sample in nets.star(run=2):
        pairs.setdefault(sample.header.check, []).append(sample)
    for found in pairs.values():
        four.keep(found)
    four.described(3, {"n3": {"nic.eth0.mac": "02:00:00:00:00:99"}}, nodes=["n2", "n3", "s1"])
    (result,) = judge_system("here").verdicts
    old = {unit.node for unit in result.nodes if unit.too_old}
    assert (result.verdict, old) == ("INCOMPLETE", {"n3>s1", "s1>n3"})


@pytest.mark.deep
def test_a_page_with_replaced_hardware_is_honest(four):
    four.described(1)
    four.measured(1)
    four.described(2, {"n003": ONE["board"]})
    waiver = "W: {nodes: n003, waives: all, problem: p, owner: o, expires: 2199-01-01}\n"
    (four.folder / "sites/here/waivers.yaml").write_text(waiver)
    page = four.folder / "page.html"
    assert ask("report", "--output", str(page))[0] == 0
    script = TOP / "siteproof/report/recompute.py"
    command = [sys.executable, script, page]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
