"""The timetable of a link: each pair in its turn, nobody twice at once; and nodes that walk it."""

import shutil
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest
from clone import SITES, wait_for
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st
from left_in import left_in

from siteproof.checks import timetable
from siteproof.checks.timetable import Timetable
from siteproof.collect import raw
from siteproof.collect.pair_turns import name, server_of, worth_repeating
from siteproof.errors import UserError
from siteproof.sites import load, pairs
from siteproof.slurm.records import Node
from siteproof.slurm.spelling import node_state

SCRIPTS = Path(timetable.__file__).with_name("on_node")
some = st.sets(st.integers(1, 12), min_size=1).map(
    lambda numbers: NodeSet(",".join(f"n{n}" for n in numbers), resolver=RESOLVER_NOGROUP)
)
patterns = st.one_of(
    st.sampled_from(["star", "all", "together"]), st.integers(1, 15).map("random:{}".format)
)


def read(lines):
    """(round, turn, client, server, port) of each line."""
    rows = [line.split() for line in lines]
    return [(int(r), int(t), c, s, int(p)) for r, t, c, s, p, _ in rows]


def lines(table, left=None):
    return read(
        table.lines(
            range(len(table.turns)) if left is None else left, name, lambda node: f"{node}-ib"
        )
    )


@given(pattern=patterns, servers=some, clients=some, trials=st.integers(1, 4), data=st.data())
def test_each_pair_once_a_trial_and_nobody_twice_at_once(pattern, servers, clients, trials, data):
    laid = pairs.rounds(pattern, servers, clients, 7)
    table = Timetable(laid, trials, 5)
    asked = {pair for together in laid for pair in together}
    rows = lines(table)
    assert Counter((table.turns[t][0], c, s) for _, t, c, s, _ in rows) == {
        (trial if trials > 1 else 0, *pair): 1 for trial in range(1, trials + 1) for pair in asked
    }
    for number in {row[0] for row in rows}:
        at_once = [row for row in rows if row[0] == number]
        ports = [(s, p) for *_, s, p in at_once]
        assert len(ports) == len(set(ports))
        busy = [end for _, _, *ends, _ in at_once for end in ends]
        assert pattern == "together" or len(busy) == len(set(busy))
        assert len(at_once) <= table.at_once
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    # the limit covers the last round, wherever it begins
    after_last = table.launch + (max((r for r, *_ in rows), default=-1) + 1) * table.turn
    assert table.length == after_last + timetable.SPARE
    left = data.draw(st.sets(st.sampled_from(range(len(table.turns)))) if rows else st.just(set()))
    rest = lines(table, left)
    assert {t for _, t, *_ in rest} == left
    assert {r for r, *_ in rest} == set(range(len({r for r, t, *_ in rows if t in left})))


def test_a_round_has_time_for_late_nodes_and_clocks_that_differ():
    """Worst case: the client's clock is behind, it is as late as it may be; and the opposite."""
    table = Timetable([[("c", "s")]], 1, 30)
    latest_end = timetable.LEAD + timetable.LATE + table.seconds + timetable.SKEW
    assert latest_end <= table.turn - timetable.KILL, "the server is ended before its client"
    assert timetable.LEAD - timetable.SKEW >= 1, "a client that is early finds no server"


def test_the_address_is_as_the_link_says():
    assert Timetable([[("c", "s")]], 1, 5).lines([0], name, lambda node: f"{node}-ib") == [
        f"0 00000 c s {timetable.FIRST_PORT} s-ib"
    ]


# ---- whom -S nodes asks for


@pytest.fixture
def example(monkeypatch):
    """Its link lan: servers node[001-002], clients node[001-008], a star."""
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))
    return load("example")


def asked(site, spec, pattern="star", busy=()):
    states = {
        f"node00{n}": Node(f"node00{n}", node_state("allocated" if n in busy else "idle"))
        for n in range(1, 9)
    }
    found = timetable.rounds(
        site, site.system.links["lan"], pattern, spec, 1, states if busy else None
    )
    return [f"{c[-1]}{s[-1]}" for together in found for c, s in together]


def test_a_client_brings_its_server_along(example):
    assert asked(example, "node[003-004]") == ["31", "42"]
    assert asked(example, "node[003-004]", "all") == ["34"] or asked(
        example, "node[003-004]", "all"
    ) == ["43"]


def test_a_count_is_of_clients_that_are_idle_with_their_servers(example):
    assert asked(example, "3") == ["12", "31", "42"]
    assert asked(example, "3", busy=(1,)) == ["42", "62", "82"]


def test_idle_is_pairs_of_two_idle_nodes(example):
    assert asked(example, "idle", busy=(2, 5)) == ["31", "71"]
    assert asked(example, "idle", "together", busy=(2, 5)) == ["31", "71"]


def test_what_cannot_be_had_is_told(example):
    for spec, busy, why in (
        ("9", (), "9 clients requested, 7 have an idle pair"),
        ("0", (), "0 clients requested"),
        ("4", (1,), "4 clients requested, 3 have an idle pair"),
        ("idle", (1, 2), "no pair has two idle nodes"),
        ("1", (1, 2), "no pair has two idle nodes"),
        ("node099", (), "node099 is not in the inventory"),
        ("node002", (), "node002 has no pair of this link"),  # a server alone
        ("node[", (), "is not a node set"),
        ("9" * 5000, (), "clients requested"),
    ):
        with pytest.raises(UserError) as caught:
            asked(example, spec, busy=busy)
        assert why in str(caught.value), spec


# ---- pair.sh as nodes run it: each a process with its own name, all in one folder

FAKE = """
if [ "$SIDE" = server ]; then
    trap 'rm -f "$WORLD/$ADDRESS.$PORT"; exit 0' TERM
    echo "$PEER" >"$WORLD/$ADDRESS.$PORT"
    while :; do sleep 0.05; done
fi
echo program=fake >>facts
run at=begin -- cat "$WORLD/$ADDRESS.$PORT"
sleep "$SECONDS_OF_TURN"
run at=end -- cat "$WORLD/$ADDRESS.$PORT"
"""


class Walk:
    """Nodes in one folder. lead, late, kill: seconds, shorter than those of real links."""

    def __init__(self, folder, rounds, lead=3, late=3, skew=0, kill=3, seconds=1):
        self.folder, self.table = folder / "stage", Timetable(rounds, 1, seconds)
        self.turn = lead + late + skew + kill + seconds
        self.world = folder / "world"
        for path in (self.world, self.folder / "raw"):
            path.mkdir(parents=True)
        for script in ("pair.sh", "account.sh", "network.sh"):
            shutil.copy(SCRIPTS / script, self.folder)
        (self.folder / "measure.sh").write_text(FAKE)
        self.values = {
            "SITEPROOF_NODE": "nobody",
            "SITEPROOF_TURN": self.turn,
            "SITEPROOF_LEAD": lead,
            "SITEPROOF_LATE": late,
            "SITEPROOF_KILL": kill,
            "SECONDS_OF_TURN": seconds,
            "WORLD": self.world,
        }

    def job(self, attempt=1, left=None, after=1):
        """Write what a job reads; round 0 begins so many seconds from now."""
        turns = range(len(self.table.turns)) if left is None else left
        (self.folder / "settings").write_text(
            "".join(
                f"{k}='{v}'; export {k}\n"
                for k, v in {**self.values, "SITEPROOF_ATTEMPT": attempt}.items()
            )
        )
        (self.folder / "timetable").write_text(
            "".join(f"{line}\n" for line in self.table.lines(turns, name, str))
        )
        (self.folder / f"begin.{attempt}").write_text(f"{int(time.time()) + 1 + after}\n")

    def walk(self, nodes=None, late=(), ahead=None):
        """Let the nodes walk. late: by node, seconds; ahead: by node, seconds of its clock."""
        running = []
        for node in nodes or self.table.ends:
            path = "/usr/bin:/bin"
            if node in (ahead or {}):
                clock = self.folder.parent / f"clock-{node}"
                clock.mkdir(exist_ok=True)
                (clock / "date").write_text(
                    f'#!/bin/sh\nexec /bin/date -d "{ahead[node]} seconds" "$@"\n'
                )
                (clock / "date").chmod(0o755)
                path = f"{clock}:{path}"
            wait = dict(late).get(node, 0)
            running.append(
                subprocess.Popen(
                    ["sh", "-c", f"sleep {wait}; exec sh ./pair.sh"],
                    cwd=self.folder,
                    env={"PATH": path, "SLURMD_NODENAME": node, "SLURM_JOB_ID": "7"},
                )
            )
        for one in running:
            assert one.wait(120) == 0

    def served(self, number):
        """Whether client and server met, for all of the client's time."""
        left = left_in(self.folder / "raw" / name(number))
        return [run.exit for run in left.runs] == [0, 0] and all(
            run.stdout.strip() == self.table.turns[number][1] for run in left.runs
        )

    def inode(self, number):
        """Of a turn's result: whether it is still the same."""
        return (self.folder / "raw" / name(number)).stat().st_ino

    def done(self):
        """The turns with a result of the client."""
        return [n for n in range(len(self.table.turns)) if (self.folder / "raw" / name(n)).is_dir()]


def star(*clients):
    return [[(client, "s")] for client in clients]


def walk_all(folder):
    everyone = NodeSet("n[1-4]", resolver=RESOLVER_NOGROUP)
    walk = Walk(folder, pairs.rounds("all", everyone, everyone, 0))
    walk.job()
    walk.walk()
    return walk


def walk_together(folder):
    walk = Walk(folder, [[(f"n{n}", "s") for n in range(5)]])
    walk.job()
    walk.walk()
    return walk


def walk_twice(folder, late):
    """A node of the first job is late, and what came to nothing is in a second job.

    Its turn may begin until the eighth second, and the next one begins with the twelfth.
    """
    walk = Walk(folder, star("a", "b"))
    walk.job()
    walk.walk(late={late: 10})
    walk.first = {n: (walk.served(n), walk.inode(n)) for n in walk.done()}
    walk.left = [n for n in range(2) if worth_repeating(walk.folder, n)]
    walk.job(attempt=2, left=walk.left)
    walk.walk(nodes=["a", "s"])
    return walk


def walk_hanging(folder):
    walk = Walk(folder, star("a", "b"))
    walk.job()
    hang = '[ "$(cat "$WORLD/$ADDRESS.$PORT")" != a ] || sleep 99\n'
    (walk.folder / "measure.sh").write_text(FAKE.replace("echo program", f"{hang}echo program"))
    walk.walk()
    return walk


WALKS = {
    "all": walk_all,
    "together": walk_together,
    "late client": partial(walk_twice, late="a"),
    "late server": partial(walk_twice, late="s"),
    "hanging": walk_hanging,
}


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """What a walk has left; all walk at the same time, as they wait for most of it."""
    with ThreadPoolExecutor(len(WALKS)) as pool:
        begun = {
            name: pool.submit(walk, tmp_path_factory.mktemp("walk")) for name, walk in WALKS.items()
        }
        yield lambda name: begun[name].result()


@pytest.mark.long  # by real seconds, which a busy machine does not keep; the bed walks, too
def test_all_pairs_meet_and_no_node_is_in_two_turns_at_once(walked):
    walk = walked("all")
    assert walk.done() == list(range(6))
    assert all(walk.served(n) for n in walk.done())
    spans = {node: [] for node in walk.table.ends}
    for number, (_, client, server) in enumerate(walk.table.turns):
        for node, folder in ((client, name(number)), (server, server_of(number))):
            left = left_in(walk.folder / "raw" / folder)
            spans[node].append((left.number("start"), left.number("end")))
            assert left.meta["node"] == node
    for of_node in spans.values():
        of_node.sort()
        assert all(end <= start for (_, end), (start, _) in zip(of_node, of_node[1:], strict=False))
    assert list(walk.world.iterdir()) == [], "a server outlived its turn"


@pytest.mark.long  # by real seconds, which a busy machine does not keep; the bed walks, too
def test_all_together_meet_on_their_own_ports(walked):
    walk = walked("together")
    assert [walk.served(n) for n in walk.done()] == [True] * 5


@pytest.mark.long  # by real seconds, which a busy machine does not keep; the bed walks, too
def test_a_late_node_costs_its_turns_and_a_second_job_measures_only_those(walked):
    walk = walked("late client")
    assert ([*walk.first], walk.left) == ([1], [0])
    assert [walk.served(n) for n in walk.done()] == [True, True]
    assert walk.first[1] == (True, walk.inode(1))


@pytest.mark.long  # by real seconds, which a busy machine does not keep; the bed walks, too
def test_a_late_server_serves_what_is_left_and_the_rest_is_repeated(walked):
    walk = walked("late server")
    assert ([met for met, _ in walk.first.values()], walk.left) == ([False, True], [0])
    assert [walk.served(n) for n in walk.done()] == [True, True]


@pytest.mark.long  # by real seconds, which a busy machine does not keep; the bed walks, too
def test_a_client_that_hangs_is_ended_and_its_successor_is_not_late(walked):
    walk = walked("hanging")
    assert left_in(walk.folder / "raw" / name(0)).number("exit") == raw.ENDED
    assert walk.served(1)


@pytest.mark.long  # by real seconds, which a busy machine does not keep; the bed walks, too
def test_clocks_may_differ_by_two_seconds(tmp_path):
    """Three pairs of clocks, each in a folder of its own, at the same time.

    The clocks are this machine's: if it is busy, an end can come too late, and none too early. So
    a pair that did not meet tries again; one whose clocks differ by more would never meet.
    """

    def met(ahead):
        walk = Walk(Path(mkdtemp(dir=tmp_path)), star("a"), timetable.LEAD, skew=timetable.SKEW)
        walk.job(after=3)
        walk.walk(ahead=ahead)
        return [walk.served(n) for n in walk.done()] == [True]

    clocks = [{"s": 2}, {"a": 2}, {"a": 1, "s": -1}]
    with ThreadPoolExecutor() as pool:
        tried = pool.map(lambda ahead: wait_for(partial(met, ahead)), clocks)
        assert list(tried) == [True] * 3
