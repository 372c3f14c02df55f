"""Descriptions: kept once beside the samples, read back whole, and compared node by node."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import time
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path

import pytest
from clone import PATIENCE, TOP
from documents_checked import check, kinds
from hypothesis import given, settings
from hypothesis import strategies as st
from last_lines import answer_lines

from siteproof.compare.accepted import Acceptance
from siteproof.errors import UserError
from siteproof.parsers import description
from siteproof.record import descriptions, samples
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions

pytest_plugins = ["testbed_fixture"]

ON_NODE = TOP / "siteproof/checks/on_node"

HEAD = Header(
    "20261121T000000Z-1",
    "thishost",
    "node",
    "system",
    "SystemDescription",
    "7",
    "2026-11-21T00:00:00+00:00",
    mode="quick",
)
NODES = [f"node{number:03}" for number in range(1, 9)]


def counted(fields, header=HEAD):
    """The samples that say that each node has been described."""
    return [
        sample
        for node, said in fields.items()
        for sample in (
            Sample(header, node, descriptions.COUNT, Decimal(len(said)), "count"),
            Sample(header, node, descriptions.DIGEST, descriptions.digest(said), "text"),
        )
    ]


def keep(folder, fields, header=HEAD):
    """Fields and samples as the collector leaves them."""
    descriptions.write(folder, header, fields)
    read = {
        node: {name: value for name, value in own.items() if not name.startswith("unreadable ")}
        for node, own in fields.items()
    }
    samples.write(folder, header, counted(read, header))


names = st.text("abc.", min_size=1, max_size=5)


@settings(max_examples=50)
@given(
    fields=st.dictionaries(
        st.sampled_from(NODES), st.dictionaries(names, st.sampled_from(["1", "2", ""])), max_size=5
    )
)
def test_what_was_written_is_read_back_whatever_differs(tmp_path_factory, fields):
    folder = tmp_path_factory.mktemp("perflogs")
    descriptions.write(folder, HEAD, fields)
    assert descriptions.read(descriptions.path_of(folder, HEAD)) == fields


def test_the_newest_description_of_each_node_counts(tmp_path):
    later = replace(HEAD, session="20261122T000000Z-1", time="2026-11-22T00:00:00+00:00")
    keep(tmp_path, {"a": {"x": "1"}, "b": {"x": "1"}})
    keep(tmp_path, {"b": {"x": "2"}}, later)
    found = Sessions(tmp_path, "thishost").of(lambda _: True)
    assert descriptions.of(found, tmp_path) == {"a": {"x": "1"}, "b": {"x": "2"}}


def test_what_could_not_be_read_stands_apart_from_the_fields(tmp_path):
    said = {"a": {"x": "1"}}
    descriptions.write(tmp_path, HEAD, {"a": {"x": "1", "unreadable memory.dimm": "needs root"}})
    assert descriptions.of(counted(said), tmp_path) == said
    assert descriptions.with_unreadable(counted(said), tmp_path)[1] == {
        "a": {"memory.dimm": "needs root"}
    }


def test_without_a_description_there_is_none(tmp_path):
    failed = Sample(HEAD, "a", "SystemDescription.*", status="timeout", why="hung")
    assert descriptions.of([failed], tmp_path) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b"{}")[:-6],
        gzip.compress(b"no json"),
        gzip.compress(b"[]"),
        gzip.compress(b'{"siteproof":1,"common":{"x":1},"nodes":{}}'),
        gzip.compress(b'{"siteproof":1,"common":{},"nodes":{"a":[]}}'),
        gzip.compress(b'{"siteproof":2,"common":{},"nodes":{}}'),
        gzip.compress(b'{"siteproof":1,"common":{},"nodes":{"a":{"x":"other"}}}'),
        gzip.compress(b'{"siteproof":1,"common":{},"nodes":{"b":{"x":"1"}}}'),
        gzip.compress(b"x" * 100)[:12] + b"\x00" * 20,
    ],
    ids=[
        "empty",
        "no gzip",
        "cut",
        "no json",
        "no object",
        "number",
        "list",
        "version",
        "other",
        "node missing",
        "broken inside",
    ],
)
def test_fields_that_are_broken_or_not_those_measured_are_refused_by_file(tmp_path, content):
    path = descriptions.path_of(tmp_path, HEAD)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(UserError, match="fields.json.gz"):
        descriptions.of(counted({"a": {"x": "1"}}), tmp_path)


def test_fields_that_are_gone_are_told_by_file(tmp_path):
    with pytest.raises(UserError, match="fields.json.gz"):
        descriptions.of(counted({"a": {"x": "1"}}), tmp_path)


def test_no_escape_sequence_of_a_kept_file_reaches_a_reader(tmp_path):
    path = descriptions.path_of(tmp_path, HEAD)
    path.parent.mkdir(parents=True)
    path.write_bytes(
        gzip.compress(
            json.dumps(
                {"siteproof": 1, "common": {"x": "\x1b[31m"}, "nodes": {"a": {"y\x07": "\x1b"}}}
            ).encode()
        )
    )
    assert descriptions.read(path) == {"a": {"x": "?[31m", "y?": "?"}}


def test_320_nodes_with_3000_fields_stay_far_below_five_megabytes(tmp_path):
    dice = random.Random(1)
    common = {f"package.lib{n}": f"{dice.random()}-1+deb12u{n}" for n in range(3000)}
    size = 0
    for job in range(5):
        header = replace(HEAD, job=str(job))
        fields = {
            f"node{job * 64 + n:03}": common
            | {f"nic.eth{i}.mac": f"{dice.getrandbits(48):012x}" for i in range(4)}
            | {f"memory.dimm.{i}.serial": f"{dice.getrandbits(32):08x}" for i in range(16)}
            for n in range(64)
        }
        keep(tmp_path, fields, header)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.*") if path.is_file())
    begun = time.process_time()
    read = descriptions.of(Sessions(tmp_path, "thishost").of(lambda _: True), tmp_path)
    assert (len(read), len(read["node000"])) == (320, 3020)
    assert size < 10**6
    assert time.process_time() - begun < 20


# The command, on descriptions made by hand


def fleet(world, **changed):
    """Eight described nodes of the site testbed; changed: fields of a node, None to leave out."""
    world.site("testbed")
    fields = {node: {"cpu.model": "EPYC", "sysctl.vm.swappiness": "60"} for node in NODES}
    for node, own in changed.items():
        if own is None:
            del fields[node]
        else:
            fields[node] |= own
    keep(world.data / "perflogs", fields, replace(HEAD, system="testbed", partition="compute"))
    return world.siteproof("describe", "--system", "testbed")


def asked(world, *words):
    """The answer of `describe` as JSON."""
    done = world.siteproof("describe", *words, "--system", "testbed", "--json")
    read = check("describe", done.out)
    assert read["exit_code"] == done.code
    return read


def test_eight_nodes_alike(world):
    done = fleet(world)
    assert (done.code, answer_lines(done.out)[-1]) == (0, "8 nodes alike")
    assert "cpu.model = EPYC" in done.out


def test_an_odd_node_is_named_with_field_found_and_majority(world):
    done = fleet(world, node003={"sysctl.vm.swappiness": "10"})
    assert done.code == 1
    (why,) = asked(world)["findings"]
    assert (why["kind"], why["subject"]) == ("field_differs", "node003")
    assert why["details"] == {
        "field": "sysctl.vm.swappiness",
        "found": "10",
        "majority": "60",
        "role": "compute",
    }
    assert answer_lines(done.out)[-1] == "node003 odd in up to 1 field, 7 nodes alike"
    alone = world.siteproof("describe", "node003", "--system", "testbed")
    assert alone.code == 1
    assert "sysctl.vm.swappiness = 10  [odd: majority 60]" in alone.out
    read = asked(world, "node003")
    assert (kinds(read), read["fields"]["sysctl.vm.swappiness"]) == (
        [("field_differs", "node003")],
        "10",
    )
    assert asked(world, "node001")["findings"] == []
    assert world.siteproof("describe", "node001", "--system", "testbed").code == 0


def test_a_node_that_was_not_described_is_incomplete(world):
    done = fleet(world, node005=None)
    assert done.code == 3
    assert kinds(asked(world)) == [("not_measured", "node005")]
    assert kinds(asked(world, "node005")) == [("not_measured", "node005")]
    assert answer_lines(done.out)[-1] == "node005 not described, 7 nodes alike"


def test_two_nodes_that_differ_have_no_majority(world):
    odd = {"cpu.model": "Xeon"}
    done = fleet(world, **dict.fromkeys(NODES[4:], odd))
    assert done.code == 1
    found = [(why["subject"], why["details"]["found"]) for why in asked(world)["findings"]]
    assert found == [("node[001-004]", "EPYC"), ("node[005-008]", "Xeon")]


def test_what_has_changed_since_the_last_acceptance_is_told_once(world):
    before = replace(
        HEAD,
        system="testbed",
        partition="compute",
        mode="acceptance",
        session="20261101T000000Z-1",
        time="2026-11-01T00:00:00+00:00",
    )
    record = Acceptance("autumn", [before.session], "eva", "all well", before.time, {}, [], [])
    accepted = world.data / "perflogs" / "testbed" / "accepted" / "20261101T010000Z.json"
    accepted.parent.mkdir(parents=True)
    accepted.write_text(json.dumps({"siteproof": 1, **asdict(record)}))
    keep(
        world.data / "perflogs",
        {node: {"cpu.model": "EPYC", "sysctl.vm.swappiness": "30"} for node in NODES},
        before,
    )
    done = fleet(world)
    assert "since autumn, accepted by eva: 1 change, 8 nodes compared" in done.out
    (why,) = asked(world)["findings"]
    assert (why["kind"], why["subject"]) == ("changed", "node[001-008]")
    assert why["details"] == {"what": "sysctl.vm.swappiness", "before": "30", "after": "60"}


def test_without_any_description_nothing_is_alike(world):
    world.data.mkdir()
    done = world.siteproof("describe", "--system", "thishost")
    assert done.code == 3
    assert "reframe -c checks/ -r -n SystemDescription" in done.out


@pytest.mark.parametrize("words", [["node999"], ["--against", "none"], ["--campaign", "none"]])
def test_strangers_are_refused_in_a_line(world, words):
    fleet(world)
    assert world.siteproof("describe", "--system", "testbed", *words).code == 2


def test_what_grew_around_a_campaign_is_told(world):
    fleet(world)
    for hour, count in ((1, 3), (2, 8)):
        header = replace(
            HEAD,
            system="testbed",
            partition="compute",
            check="Health",
            job=str(hour),
            time=f"2026-11-21T0{hour}:00:00+00:00",
        )
        samples.write(
            world.data / "perflogs",
            header,
            [
                Sample(header, "node002", "Health.edac_ce", Decimal(count), "count"),
                Sample(header, "node002", "Health.boot", "b", "text"),
            ],
        )
    told = world.siteproof("describe", "--system", "testbed")
    (why,) = asked(world)["findings"]
    assert (why["kind"], why["subject"]) == ("counter_grew", "node002")
    assert why["details"] == {"counter": "edac_ce", "by": "5"}
    assert told.code == 0


# Facts that the site states

STATED = {
    "gpu.count": "0",
    "sysctl.kernel.ostype": "Linux",
    "nic.eth0.mtu": "9000",
    "nic.lo.mtu": "65536",
    "nic.eth0.speed": "10000 Mb/s",
}


def test_nodes_as_stated_are_a_pass(world):
    fleet(world, **dict.fromkeys(NODES, STATED))
    done = world.siteproof("describe", "--facts", "--system", "testbed")
    assert (done.code, answer_lines(done.out)[-1]) == (0, "8 nodes as stated")
    assert "  namespace: 32 as stated" in done.out.splitlines()
    assert asked(world, "--facts")["findings"] == []


def test_nodes_that_are_not_as_stated_are_named_with_field_expected_and_found(world):
    slow = STATED | {"nic.eth0.speed": "1000 Mb/s"}
    fleet(world, **{**dict.fromkeys(NODES, STATED), "node003": slow, "node005": slow})
    done = world.siteproof("describe", "--facts", "--system", "testbed")
    assert done.code == 1
    assert answer_lines(done.out)[-2:] == [
        "  not as stated: node[003,005]: namespace: nic.eth0.speed is 1000 Mb/s, "
        "stated is 10000 Mb/s",
        "node[003,005] not as stated, 6 nodes as stated",
    ]
    (why,) = asked(world, "--facts")["findings"]
    assert (why["kind"], why["subject"]) == ("fact_differs", "node[003,005]")
    assert why["details"] == {
        "section": "namespace",
        "field": "nic.eth0.speed",
        "expected": "10000 Mb/s",
        "found": "1000 Mb/s",
    }
    assert world.siteproof("describe", "--facts", "node001", "--system", "testbed").code == 0
    assert world.siteproof("describe", "--facts", "node003", "--system", "testbed").code == 1
    assert world.siteproof("describe", "--facts", "node999", "--system", "testbed").code == 2


def test_what_was_not_read_or_described_is_incomplete(world):
    unread = {name: value for name, value in STATED.items() if "speed" not in name}
    unread["unreadable nic.eth0.speed"] = "needs root"
    fleet(world, **{**dict.fromkeys(NODES, STATED), "node004": unread, "node008": None})
    done = world.siteproof("describe", "--facts", "--system", "testbed")
    assert done.code == 3
    assert answer_lines(done.out)[-1] == (
        "node004 not read, node008 not described, 6 nodes as stated"
    )
    found = {why["kind"]: why for why in asked(world, "--facts")["findings"]}
    assert found["fact_not_read"]["message"] == "nic.eth0.speed: needs root"
    assert found["not_measured"]["subject"] == "node008"


def test_a_site_that_states_nothing_of_a_node_is_no_pass(world):
    system = world.site("testbed") / "system.yaml"
    text = system.read_text()
    facts = text[text.index("    facts:") : text.index("nodes:")]
    system.write_text(text.replace(facts, ""))
    fields = {node: {"cpu.model": "EPYC"} for node in NODES[1:]}
    keep(world.data / "perflogs", fields, replace(HEAD, system="testbed", partition="compute"))
    done = world.siteproof("describe", "--facts", "--system", "testbed")
    assert "compute: 7 of 8 nodes described" in done.out
    assert (done.code, answer_lines(done.out)[-1]) == (
        3,
        "the site states no facts of a described node",
    )


# This machine, and the test bed


def test_this_machine_is_as_its_site_states_it(world):
    assert world.reframe("-r", "-n", "SystemDescription").code == 0
    done = world.siteproof("describe", "--facts")
    assert (done.code, answer_lines(done.out)[-1]) == (0, "1 node as stated")


def test_this_machine_describes_itself_in_seconds(world):
    begun = sum(os.times()[2:4])
    done = world.reframe("-r", "-n", "SystemDescription|Health")
    assert done.code == 0, done.out + done.err
    assert sum(os.times()[2:4]) - begun < 60  # s of processor: others may keep it busy
    told = world.siteproof("describe")
    assert (told.code, answer_lines(told.out)[-1]) == (0, "1 node described")
    found = Sessions(world.data / "perflogs", "thishost").of(lambda _: True)
    fields = descriptions.of(found, world.data / "perflogs")["localhost"]
    assert fields["kernel.release"] == os.uname().release
    assert fields["sysctl.kernel.ostype"] == "Linux"
    assert not [name for name in fields if "boot_id" in name or "stable_secret" in name]


def test_a_script_needs_neither_root_nor_other_tools_and_says_what_did(world):
    world.without("ethtool", "dpkg-query", "rpm", "dmidecode", "gcc", "mpirun", "python3")
    for script in ("description", "health"):
        folder = world.folder / script
        folder.mkdir(mode=0o777)
        done = subprocess.run(
            ["sh", TOP / f"checks/system/{script}.sh", ON_NODE],
            cwd=folder,
            text=True,
            env={"PATH": str(world.path), "LC_ALL": "C"},
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0
        assert done.stdout.endswith(f"end {script}\n")
        assert "not installed" in done.stdout
        assert done.stderr == ""
        assert len(done.stdout) < 500_000


TOOLS = {
    "dmidecode": r"""Handle 0x1, DMI type 17\n\tSize: 16 GB\n\tLocator: DIMM A1\n\tType: DDR4
\tSpeed: 2133 MT/s\n\tManufacturer: Hynix\n\tSerial Number: 123\n\tPart Number: HMA
Handle 0x2, DMI type 4\n\tExternal Clock: 9600 MHz
Handle 0x3, DMI type 4\n\tExternal Clock: Unknown\n""",
    "mpiname": r"MVAPICH2 1.7rc1 2011-07-21 ch3:mrail\n\n",  # as MVAPICH2 prints it
    "nvidia-smi": r"0, 3, 1\n1, [N/A], [N/A]\n",  # after its manual
    "chronyc": r"System time     : 0.000004217 seconds slow of NTP time\nLeap status : Normal\n",
    "ethtool": r"NIC statistics:\n  rx_pause: 7\n  tx_prio3_pause: 3\n  tx_prio4_pause: 2\n",
}


MKL = {"": "10", "_MINOR": "2", "_UPDATE": "6"}


@pytest.mark.parametrize("awk", ["mawk", "gawk"])
def test_what_other_tools_tell_is_read_by_any_awk(tmp_path, awk):
    if not Path("/usr/bin", awk).exists():
        pytest.skip(f"{awk} is not installed")
    for name, text in TOOLS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{text}'\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "awk").symlink_to(f"/usr/bin/{awk}")
    defines = "".join(f"#define __INTEL_MKL{n}__ {v}\n" for n, v in MKL.items())
    (tmp_path / "include").mkdir()
    (tmp_path / "include/mkl.h").write_text(f"#define __INTEL_MKL_BUILD_DATE 20100622\n{defines}")
    env = {"PATH": f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    env["MKLROOT"] = f"{tmp_path}"
    told = ""
    for script in ("description", "health"):
        done = subprocess.run(
            ["sh", TOP / f"checks/system/{script}.sh", ON_NODE],
            cwd=tmp_path,
            text=True,
            env=env,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.stderr == ""
        told += done.stdout
    assert "count time_offset = -0.004217\n" in told
    assert "count gpu.0.ecc_corrected = 3\ncount gpu.0.ecc_uncorrected = 1\n" in told
    assert "unreadable gpu.1.ecc the GPU counts no errors\n" in told
    assert "field tool.mkl = 10.2.6\n" in told
    assert "field tool.mpiname = MVAPICH2 1.7rc1 2011-07-21 ch3:mrail\n" in told
    assert "nic.eth0" not in told or "count nic.eth0.tx_pause = 5\n" in told
    if os.geteuid() == 0:
        assert "memory.dimm.1_DIMM_A1 = 16 GB, DDR4 2133 MT/s, at , Hynix HMA\n" in told
        assert "field cpu.external_clock = 9600 MHz \n" in told


def tool(folder, name, text):
    """A program of this name in front of all others, which is a script."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def of_tools(folder, call):
    """What other_tools.sh prints for a call of one of its functions."""
    start = "root=$(id -u); has() { command -v $1 >/dev/null; }"
    start += "; field() { echo field $1 = $2; }; unreadable() { echo unreadable $1 $2; }"
    return subprocess.run(
        ["sh", "-c", f"{start}; . {ON_NODE}/other_tools.sh; {call}"],
        cwd=folder,
        text=True,
        env={"PATH": f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        capture_output=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 0, Tesla", "raw nvidia 0, Tesla\n"),
        ("echo no driver; exit 9", "unreadable gpu nvidia-smi: no driver\n"),
        ("exit 6", "unreadable gpu nvidia-smi: failed with exit code 6\n"),
        (
            "trap '' TERM; while :; do sleep 1; done",
            "unreadable gpu nvidia-smi gave no answer in 1 s\n",
        ),
        ("exec cat /dev/zero", "unreadable gpu nvidia-smi prints more than 1 MB\n"),
    ],
)
def test_a_tool_that_fails_or_hangs_is_named_and_costs_seconds(tmp_path, script, told):
    tool(tmp_path, "nvidia-smi", script)
    begun = time.monotonic()
    done = of_tools(tmp_path, "raw nvidia gpu 1 nvidia-smi")
    assert time.monotonic() - begun < 10
    assert done.stdout == told
    assert not list(tmp_path.glob("raw.*"))


def test_a_tool_that_no_signal_ends_is_not_waited_for(tmp_path):
    tool(tmp_path, "timeout", "exec sleep 20")  # as timeout waits for a process in state D
    begun = time.monotonic()
    done = of_tools(tmp_path, "raw nvidia gpu 1 nvidia-smi >told 2>&1; cat told")
    assert "unreadable gpu nvidia-smi gave no answer in 1 s" in (tmp_path / "told").read_text()
    assert done.returncode == 0
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    ("call", "tools", "told"),
    [
        ("neighbours", [], "unreadable lldp lldpctl is not installed"),
        ("raid", ["perccli64"], "unreadable raid.controller needs root"),
        ("servers", ["lctl"], "unreadable server.lustre lctl: no module"),
    ],
)
def test_a_reader_without_its_tool_or_root_says_so(tmp_path, call, tools, told):
    for name in tools:
        tool(tmp_path, name, "echo no module >&2; exit 2")
    done = of_tools(tmp_path, f"root=1000; {call}")
    assert done.stdout.splitlines() == [told]


YUM = """
bash.x86_64            4.2.46-20.el7_2      updates
openssl-libs.x86_64    1:1.0.1e-51.el7_2.1  updates
python-backports-ssl_match_hostname.noarch
                       3.4.0.2-4.el7        base
Obsoleting Packages
a.noarch               2-1                  updates"""


@pytest.mark.parametrize(
    ("name", "script", "recent", "told"),
    [
        ("yum", f"cat <<'E'{YUM}\nE\nexit 100", "echo x", "field packages.pending = 3"),
        ("yum", "exit 0", "echo x", "field packages.pending = 0"),
        ("yum", "cat; exit 0", "echo x", "field packages.pending = 0"),  # it may ask for a key
        ("yum", "exit 1", "echo x", "unreadable packages.pending yum failed"),
        (
            "apt-get",
            "echo Inst bash [5.2] 5.3; echo Conf bash",
            "echo x",
            "field packages.pending = 1",
        ),
        (
            "apt-get",
            "exit 0",
            ":",
            "unreadable packages.pending the lists of packages are older than a week",
        ),
    ],
)
def test_updates_that_are_pending_are_counted_where_the_lists_are_new(
    tmp_path, name, script, recent, told
):
    tool(tmp_path, name, script)
    tool(tmp_path, "find", recent)
    for program in ("head", "awk", "timeout", "cat", "sh", "id"):
        (tmp_path / program).symlink_to(shutil.which(program))
    done = of_tools(tmp_path, f"PATH={tmp_path}; echo Inst of whom | pending")
    assert done.stdout.splitlines() == [told]


def test_the_gpus_of_two_makers_are_read(tmp_path):
    """After the manuals of nvidia-smi and rocm-smi, which prints one line."""
    cards = ", ".join(
        f'"card{n}": {{"Card series": "AMD Instinct MI100", "VBIOS version": "113-D"}}'
        for n in range(2)
    )
    tool(tmp_path, "rocm-smi", f'echo \'{{{cards}, "system": {{"Driver version": "6.3.6"}}}}\'')
    cells = "Tesla M2070, GPU-1, 03222, 00000000:06:00.0, 319.82, 70.00, 5375 MiB, Enabled, 16"
    tool(tmp_path, "nvidia-smi", f'case "$*" in *=index,name,uuid,*) echo "7, {cells}" ;; esac')
    done = of_tools(tmp_path, "gpus")
    lines = done.stdout.splitlines()
    assert [line.startswith("raw rocm") for line in lines].count(True) == 3
    text = done.stdout.replace("field gpu.count 0", "field gpu.count = 0") + "end description\n"
    fields = {r.metric: r.value for r in description.parse(text)}
    assert fields["gpu.0.name"] == fields["gpu.1.name"] == "AMD Instinct MI100"
    assert (fields["gpu.1.driver"], fields["gpu.7.name"]) == ("6.3.6", "Tesla M2070")
    assert fields["gpu.7.link_width"] == "16"
    assert description.unreadable(text) == {}


def test_names_and_addresses_are_looked_up_both_ways(tmp_path):
    tool(tmp_path, "ip", "echo '2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0'")
    tool(
        tmp_path,
        "getent",
        'case "$*" in "ahosts n7") echo "192.0.2.7 STREAM n7.example";; '
        '"hosts 192.0.2.7") echo "192.0.2.7 n9.example n9";; '
        '"ahosts n9.example") echo "192.0.2.9 STREAM n9.example";; *) exit 2;; esac',
    )
    done = of_tools(tmp_path, "look_up n7 | sed 's/^/raw names /'")
    text = f"field a.b = c\n{done.stdout}end description\n"
    fields = {r.metric: r.value for r in description.parse(text)}
    assert fields["address.eth0.1"] == "192.0.2.7"
    assert fields["dns.consistent"] == (
        "192.0.2.7 is n9.example and not n7; n9.example has not the address 192.0.2.7"
    )


@pytest.mark.testbed
def test_one_node_with_another_sysctl_is_named_on_the_test_bed(testbed, tmp_path):
    data = tmp_path / "data"
    data.mkdir()

    def run(*words):
        said = " ".join(f"'{word}'" for word in words)
        return testbed.run(
            ["sh", "-c", f"cd '{TOP}' && . ./activate && SITEPROOF_DATA='{data}' {said}"]
        )

    measure = ("reframe", "-c", "checks/", "-r", "-n", "SystemDescription|Health")
    key = "net.ipv4.tcp_timestamps"
    done = run(*measure)
    assert done.returncode == 0, done.stdout + done.stderr
    told = run("siteproof", "describe")
    assert answer_lines(told.stdout)[-1] == "8 nodes alike", told.stdout
    told = run("siteproof", "describe", "--facts")
    assert (told.returncode, answer_lines(told.stdout)[-1]) == (0, "8 nodes as stated"), told.stdout
    testbed.run(["ip", "link", "set", "eth0", "mtu", "1500"], node="node005")
    testbed.run(["sysctl", "-w", f"{key}=0"], node="node003")
    try:
        done = run(*measure)
    finally:
        testbed.run(["sysctl", "-w", f"{key}=1"], node="node003")
        testbed.run(["ip", "link", "set", "eth0", "mtu", "9000"], node="node005")
    assert done.returncode == 0, done.stdout + done.stderr
    found = check("describe", run("siteproof", "describe", "--json").stdout)["findings"]
    (why,) = [w for w in found if w["kind"] == "field_differs" and w["subject"] == "node003"]
    assert why["subject"] == "node003"
    assert (why["details"]["field"], why["details"]["found"]) == (f"sysctl.{key}", "0")
    told = run("siteproof", "describe")
    assert told.returncode == 1
    assert answer_lines(told.stdout)[-1].endswith("6 nodes alike")
    told = run("siteproof", "describe", "--facts")
    assert told.returncode == 1
    assert "not as stated: node005: namespace: nic.eth0.mtu is 1500, stated is 9000" in told.stdout
    assert answer_lines(told.stdout)[-1] == "node005 not as stated, 7 nodes as stated"
