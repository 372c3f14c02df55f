"""The sweeps of fio and of MPI's messages: for real on this machine, and what must not count."""

import json
import os
import shutil
import time
from decimal import Decimal
from pathlib import Path

import pytest
from clone import TOP

from siteproof.collect.derive import Measured, network, storage
from siteproof.collect.raw import Execution, Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading
from siteproof.sweeps import reading

NOTHING = Raw({}, {}, "", "")
MPI = all(shutil.which(program) for program in ("mpirun", "python3"))


# ---- what is shipped


def test_the_shipped_sweeps_cover_what_they_promise(monkeypatch):
    monkeypatch.delenv(reading.VARIABLE, raising=False)
    found = reading.load()
    fio = [p.values for p in found["fio_depth"].points]
    assert {p["block"] for p in fio} == {"4096", "65536", "1048576", "4194304"}
    assert {int(p["depth"]) for p in fio} == {1, 2, 4, 8, 16, 32, 64}
    assert len(fio) == 4 * 7 * 2
    messages = {(p.tasks, p.nodes, p.values["size"]) for p in found["mpi_messages"].points}
    assert messages == {(2, 2, "4194304"), (2, 1, "4194304")}


# ---- fio: what counts


def fio_readings(verified=100, block="4096", direction="read", pattern="randread"):
    dims = {"phase": pattern, "block": block}
    return [
        Reading("read_bytes", Decimal(verified), "B", {"phase": "verify", "block": "1048576"}),
        Reading(direction, Decimal(5), "MB/s", dims),
        Reading(f"{direction}_iops", Decimal(7), "IOPS", dims),
        Reading(f"{direction}_p99", Decimal(9), "us", dims),
        Reading(f"{direction}_bytes", Decimal(1), "B", dims),
    ]


ASKED = {"size": 100, "block": "4096", "depth": "8", "pattern": "randread"}


def test_the_figures_of_a_point_have_no_dimension_of_their_own():
    found, kept = storage.fio_sweep(
        Measured(fio_readings(), {"depth": "8", "engine": "libaio"}, NOTHING, ASKED)
    )
    assert [(r.metric, r.value, r.unit, r.dims) for r in found] == [
        ("rate", 5, "MB/s", {}),
        ("iops", 7, "IOPS", {}),
        ("p99", 9, "us", {}),
    ]
    assert kept == {"engine": "libaio"}  # the depth is the point's


@pytest.mark.parametrize(
    ("changed", "depth", "told"),
    [
        ({"verified": 99}, "8", "99 of 100 bytes were verified"),
        ({"block": "8192"}, "8", "randread was not in blocks of 4096 bytes"),
        ({"direction": "write"}, "8", "randread was not in blocks of 4096 bytes"),
        ({"pattern": "randwrite"}, "8", "no result of randread"),
        ({}, "1", "depth: 1, expected 8"),
    ],
)
def test_fio_that_did_something_else_gives_no_figure(changed, depth, told):
    with pytest.raises(OutputError, match=told) as refused:
        storage.fio_sweep(Measured(fio_readings(**changed), {"depth": depth}, NOTHING, ASKED))
    assert refused.value.status == "invalid"


# ---- messages: what counts


SIZES = [
    Reading("latency", Decimal("1.5e-06"), "s", {"size": "8"}),
    Reading("bandwidth", Decimal("5.33"), "MB/s", {"size": "8"}),
    Reading("latency", Decimal("2.5"), "us", {"size": "16"}),
]


def placed(*nodes):
    return Raw(
        {},
        {},
        "",
        "",
        [Execution({}, 0, "".join(f"rank {i} on {node}\n" for i, node in enumerate(nodes)), "")],
    )


@pytest.mark.parametrize(("per_node", "nodes", "sat"), [("1", "a b", "ab"), ("2", "a", "aa")])
def test_every_size_is_a_figure_in_us(per_node, nodes, sat):
    found, kept = network.message_sweep(
        Measured(SIZES, {"nodes": nodes, "mpi": "x"}, placed(*sat), {"tasks_per_node": per_node})
    )
    assert [(r.metric, str(r.value), r.unit, r.dims["size"]) for r in found] == [
        ("latency", "1.5", "us", "8"),
        ("bandwidth", "5.33", "MB/s", "8"),
        ("latency", "2.5", "us", "16"),
    ]
    assert kept == {"mpi": "x"}


@pytest.mark.parametrize(
    ("per_node", "nodes", "sat"),
    [
        ("1", "a b", "aa"),
        ("1", "a b", "ba"),
        ("2", "a", "ab"),
        ("1", "a", "aa"),
        ("1", "", "ab"),
        ("2", "a", "a"),
        ("1", "a b", ""),
    ],
)
def test_ranks_that_sat_elsewhere_give_no_figure(per_node, nodes, sat):
    with pytest.raises(OutputError) as refused:
        network.message_sweep(
            Measured(SIZES, {"nodes": nodes}, placed(*sat), {"tasks_per_node": per_node})
        )
    assert refused.value.status == "invalid"


# ---- for real


@pytest.fixture
def sweep(world):
    """Runs a sweep of these lines; its file system is a folder of the test's own."""
    folder = Path(f"/var/tmp/siteproof-pytest-{os.getpid()}-{time.time_ns()}")
    folder.mkdir()
    world.edit("system", "path: /var/tmp", f"path: {folder}")
    world.edit("system", "features: [hpcc, likwid]", "features: [hpcc, likwid, mpi4py]")
    own = world.folder / "sweeps"
    own.mkdir()

    def run(text, *words):
        (own / "small.yaml").write_text(text)
        done = world.run(
            "reframe",
            "-c",
            "sweeps/",
            "-n",
            "^Small",
            "-r",
            "-S",
            "mode=quick",
            *words,
            SITEPROOF_SWEEPS=str(own),
        )
        assert len(world.samples()) == 1, str(done)
        (path,) = world.samples()
        header, *lines = map(json.loads, path.read_text().splitlines())
        return done, header, lines

    yield run
    world.end_processes()
    assert list(folder.iterdir()) == []
    folder.rmdir()


FIO = """\
description: Small
tool: fio
axes: {block: [4 KiB, 1 MiB], depth: [1, 4], pattern: [randread]}
against: depth
lines: block
point_limit: 30s
"""


@pytest.mark.tool("fio")
@pytest.mark.skipif(not shutil.which("fio"), reason="NOT TESTED: no fio")
def test_a_sweep_of_fio_on_a_disk_of_this_machine(sweep):
    done, header, lines = sweep(FIO, "-S", "size=8")
    assert done.code == 0, done
    assert len(lines) == 4 * 3
    points = {
        (s["dims"]["block"], s["dims"]["depth"]): Decimal(s["value"])
        for s in lines
        if s["metric"] == "FioSweep.rate"
    }
    assert set(points) == {(b, d) for b in ("4096", "1048576") for d in ("1", "4")}
    assert points["1048576", "1"] > points["4096", "1"]  # a request costs, whatever its size
    assert (
        header["conditions"].items()
        >= {"program": "fio", "sweep": "small", "engine": "libaio", "direct": "yes"}.items()
    )


@pytest.mark.skipif(not shutil.which("fio"), reason="NOT TESTED: no fio")
def test_a_disk_that_loses_data_gives_no_figure_of_any_point(sweep, world):
    """The file is spoilt between fio's writing and its reading back."""
    world.fake(
        "fio",
        """
        case "$*" in *--verify=*)
            /usr/bin/fio "$@" --do_verify=0 >/dev/null
            printf spoilt | dd of=test.1 bs=1 seek=5000000 conv=notrunc 2>/dev/null
            exec /usr/bin/fio "$@" --verify_only ;;
        esac
        exec /usr/bin/fio "$@" """,
    )
    done, _, lines = sweep(FIO.replace("[1, 4]", "4"), "-S", "size=8")
    assert done.code == 1
    assert {line["metric"] for line in lines} == {"FioSweep.*"}
    assert {line["status"] for line in lines} == {"invalid"}
    assert len(lines) == 2


def test_more_requests_at_a_time_without_direct_access_are_refused(sweep, world):
    """libaio on the page cache has one request at a time, whatever its depth says."""
    world.fake("dd", 'case "$*" in *direct*) exit 1 ;; esac; exec /bin/dd "$@"')
    done, _, lines = sweep(FIO.replace("[1, 4]", "4"), "-S", "size=8")
    assert done.code == 1
    assert {line["status"] for line in lines} == {"generic"}
    assert all("takes no O_DIRECT" in line["why"] for line in lines)


def test_without_fio_each_point_says_so(sweep, world):
    world.without("fio")
    _, _, lines = sweep(FIO, "-S", "size=8")
    assert {line["status"] for line in lines} == {"tool_missing"}


@pytest.mark.skipif(not MPI, reason="NOT TESTED: no mpirun")
def test_messages_of_all_sizes_between_two_ranks_of_this_machine(sweep):
    pytest.importorskip("mpi4py")
    done, header, lines = sweep(
        """\
description: Small
tool: messages
axes: {tasks: 2, tasks_per_node: 2, size: [64 KiB]}
against: size
point_limit: 1m
""",
        "-S",
        "program=mpi4py",
    )
    assert done.code == 0, done
    latency = {
        int(s["dims"]["size"]): Decimal(s["value"])
        for s in lines
        if s["metric"] == "MessageSweep.latency"
    }
    assert sorted(latency) == [2**n for n in range(17)]
    # Which of two is longer, a busy machine decides: it may hold up any message for a while.
    assert min(latency.values()) > 0
    assert {s["unit"] for s in lines} == {"us", "MB/s"}
    assert "size" not in header["conditions"]


@pytest.mark.skipif(not MPI, reason="NOT TESTED: no mpirun")
def test_messages_need_two_ranks(sweep):
    pytest.importorskip("mpi4py")
    done, _, lines = sweep(
        """\
description: Small
tool: messages
axes: {size: [64 KiB]}
against: size
point_limit: 1m
""",
        "-S",
        "program=mpi4py",
    )
    assert done.code == 1
    assert "messages need two ranks (tasks: 2), and the point has 1" in lines[0]["why"]


@pytest.mark.skipif(not MPI, reason="NOT TESTED: no mpirun")
@pytest.mark.parametrize("program", ["mpi4py", "imb"])
def test_five_collectives_of_all_sizes_over_the_ranks_of_a_point(program, sweep, world):
    pytest.importorskip("mpi4py")
    if program == "imb":
        if not (installed := shutil.which("IMB-MPI1")):
            pytest.skip("NOT TESTED: IMB-MPI1 is not installed")
        (world.bin / "IMB-MPI1").symlink_to(installed)
    done, header, lines = sweep(
        """\
description: Small
tool: collectives
axes: {tasks: [2], tasks_per_node: 2, size: [64 B]}
against: size
point_limit: 1m
""",
        "-S",
        f"program={program}",
    )
    assert done.code == 0, [line.get("why") for line in lines]
    sizes = {}
    for line in lines:
        sizes.setdefault(line["metric"], []).append(line["dims"].get("size"))
    whole = ["16", "32", "64", "8"]
    assert {name.partition(".")[2]: sorted(found, key=str) for name, found in sizes.items()} == {
        "barrier": [None],
        **dict.fromkeys(("bcast", "allreduce", "allgather", "alltoall"), whole),
    }
    assert header["conditions"]["program"] == program


def test_what_measures_messages_shares_how_it_chooses_notes_and_starts():
    scripts = {p.name: p.read_text() for p in (TOP / "checks/network").glob("*.sh")}
    of_messages = {name: text for name, text in scripts.items() if "/messages.sh" in text}
    assert len(of_messages) >= 5
    for text in of_messages.values():
        assert '. "$1/messages.sh"' in text
        assert not {"choose_program", "note_program"} & set(text.split())
    assert [name for name in of_messages if "start()" in of_messages[name]] == ["mpi_ping_pong.sh"]
