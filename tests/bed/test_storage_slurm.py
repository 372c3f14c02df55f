"""The storage checks on a real Slurm cluster whose nodes share a file system.

Two sessions are measured: all is well; and a node does not see a folder, and another one's files
are changed on their way.
"""

import shutil

import pytest
from bed_suite import NODES, Suite, all_idle, finish
from testbed_fixture import until

from siteproof.record import descriptions
from siteproof.verdict.derived.bookkeeping import differing

pytestmark = pytest.mark.testbed

SMALL = ("-S", "BlockStorage.size=8", "-S", "DataIntegrity.size=8")
SCRATCH = "path: /var/tmp, kind: any, shared: true"
DD, FIND = shutil.which("dd"), shutil.which("find")


class Storage(Suite):
    """With a site of its own, whose shared file system is a folder of the test's."""

    def __init__(self, testbed, folder, at_once=3):
        super().__init__(testbed, folder)
        self.disk = folder / "disk"
        for name in ("a", "a/b", "lost"):
            (self.disk / name).mkdir(parents=True)
        shared = f"path: {self.disk}, kind: any, shared: true, at_once: {at_once}"
        self.edit("system.yaml", (SCRATCH, shared))

    def conditions(self, file_system):
        """Of the samples of a file system."""
        good = [s for s in self.samples() if s.status == "ok"]
        return [s.conditions for s in good if s.conditions["file_system"] == file_system]

    def values(self, metric, file_system="scratch"):
        """By node."""
        of_it = [s for s in self.samples() if s.metric == metric]
        return {s.node: s.value for s in of_it if s.conditions["file_system"] == file_system}

    def left(self):
        """What is on the shared file system but for what was there before."""
        return sorted(path.name for path in self.disk.iterdir() if path.name not in ("a", "lost"))

    def listings(self):
        """What each node has listed."""
        sample = next(s for s in self.samples() if s.metric == "Namespace.paths")
        return descriptions.read(descriptions.path_of(self.data / "perflogs", sample.header))

    def spans(self):
        """When each node's dd began to write and ended to read on the shared file system."""
        found = {}
        for line in (self.folder / "spans").read_text().splitlines():
            node, moment = line.split()
            found.setdefault(node, []).append(float(moment))
        return [(min(times), max(times)) for times in found.values()]


@pytest.fixture(scope="module")
def well(testbed, tmp_path_factory):
    """All of it. A dd on the shared file system notes when it ran, and takes half a second more."""
    suite = Storage(testbed, tmp_path_factory.mktemp("storage"))
    suite.likwid(
        f"""
        note() {{ echo "$(hostname) $(date +%s.%N)" >>'{suite.folder}/spans'; }}
        case "$*" in
        *of={suite.disk}/*/test.1*count=8*|*if={suite.disk}/*/test.1*) ;;
        *) exec {DD} "$@" ;; esac
        note; {DD} "$@"; code=$?; sleep 0.5; note; exit $code""",
        name="dd",
    )
    checks = "(BlockStorage|DataIntegrity|Namespace).*scratch|(BlockStorage|DataIntegrity).*memory"
    done = suite.reframe(*SMALL, "-n", checks)
    assert done.returncode == 0, done.stdout + done.stderr
    yield suite
    all_idle(testbed)


def test_all_nodes_measure_every_file_system_and_a_shared_one_by_turns(well):
    assert sorted(well.values("BlockStorage.write")) == NODES
    assert {c["at_once"] for c in well.conditions("scratch") if "at_once" in c} == {"3"}
    spans = well.spans()
    assert len(spans) == len(NODES)
    at_once = max(sum(a <= begin < b for a, b in spans) for begin, _ in spans)
    assert at_once == 3
    assert well.left() == []


def test_a_file_system_of_each_nodes_own_is_measured_by_all_at_once(well):
    assert sorted(well.values("BlockStorage.write", "memory")) == NODES
    assert sorted(well.values("DataIntegrity.errors", "memory")) == NODES
    found = well.conditions("memory")
    assert {(c["at_once"], c["kind"]) for c in found} == {("1", "tmpfs")}
    assert {c["read_by"] for c in found if "read_by" in c} == {"same"}


def test_what_a_node_writes_another_one_reads(well):
    assert well.values("DataIntegrity.errors") == dict.fromkeys(NODES, 0)
    assert {c["read_by"] for c in well.conditions("scratch") if "read_by" in c} == {"other"}


def test_nodes_that_see_the_same_paths_have_one_digest(well):
    digests = well.values("Namespace.digest")
    assert sorted(digests) == NODES
    assert len(set(digests.values())) == 1
    assert differing(well.listings(), 8) == {}


@pytest.fixture(scope="module")
def wrong(testbed, tmp_path_factory):
    """Node003 does not see a folder; a file of node004 is changed on its way to its reader."""
    suite = Storage(testbed, tmp_path_factory.mktemp("wrong"), at_once=8)
    suite.likwid(
        f"""
        case "$(hostname)" in
        node003) {FIND} "$@" | tr '\\0' '\\n' | grep -v lost | tr '\\n' '\\0' ;;
        *) exec {FIND} "$@" ;; esac """,
        name="find",
    )
    suite.likwid(
        f"""
        case "$(hostname) $*" in node004*test.3*nocache*)
            printf XXXXXXXX | {DD} of="${{1#of=}}" bs=1 seek=999 conv=notrunc 2>/dev/null ;; esac
        exec {DD} "$@" """,
        name="dd",
    )
    suite.done = suite.reframe(*SMALL, "-n", "(DataIntegrity|Namespace).*scratch")
    yield suite
    all_idle(testbed)


def test_a_path_that_a_node_does_not_see_is_found_by_comparing_the_listings(wrong):
    digests = wrong.values("Namespace.digest")
    assert sorted(digests) == NODES, wrong.done.stdout
    assert len(set(digests.values())) == 2
    assert differing(wrong.listings(), 8) == {"lost": ["node003"]}


def test_files_changed_on_their_way_are_found_by_the_reader_and_named(wrong):
    assert wrong.values("DataIntegrity.wrong") == {"node005": "test.3 FAILED"}, wrong.done.stdout


@pytest.mark.long
def test_the_reader_of_a_node_that_died_is_not_failed_and_its_files_go_at_the_next_start(
    testbed, tmp_path
):
    suite = Storage(testbed, tmp_path, at_once=8)  # at once, so that the dead one delays nobody
    suite.likwid(
        f"""
        case "$(hostname) $*" in node002*test.2*nocache*) sleep 1000 ;; esac
        exec {DD} "$@" """,
        name="dd",
    )
    words = ("-n", "DataIntegrity.*scratch", "-S", "DataIntegrity.time_limit=60s")
    running = suite.start(*SMALL, *words, "-S", "nodes=node[001-003]")
    until(lambda: [*suite.disk.glob("*.node002.1*/test.2")], "files of node002", suite.left)
    testbed.power_off("node002")
    try:
        out = finish(running)
    finally:
        testbed.power_on("node002")
    lost = suite.lost()
    assert lost["node002"].startswith("node_lost"), out
    assert "interrupted: node002 has not written its files" in lost["node003"], out
    assert set(lost) <= {"node002", "node003"}, out
    assert any("node002" in name for name in suite.left())
    (suite.programs / "dd").unlink()
    assert suite.left_results()
    done = suite.reframe(*SMALL, "-n", "BlockStorage.*scratch", "-S", "nodes=node001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.left() == []
    suite.end()
