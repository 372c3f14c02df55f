"""The storage checks on a real Slurm cluster whose nodes share a file system."""

import shutil

import pytest
from clone import PATIENCE, TOP
from test_run_slurm import NODES, Suite, left_results

from siteproof.analysis.listings import differing
from siteproof.record import descriptions

pytest_plugins = ["testbed_fixture"]
pytestmark = pytest.mark.testbed

SMALL = ("-S", "BlockStorage.size=8", "-S", "DataIntegrity.size=8")
SCRATCH = "path: /var/tmp, kind: any, shared: true"


@pytest.fixture
def suite(testbed, tmp_path):
    """The suite with a site of its own, whose shared file system is a folder of the test's."""
    suite = Suite(testbed, tmp_path)
    suite.disk = tmp_path / "disk"
    suite.disk.mkdir()
    suite.site = tmp_path / "sites" / "testbed"
    shutil.copytree(TOP / "site-config/testbed", suite.site)
    share(suite, at_once=3)
    yield suite
    testbed.run(["scancel", "--user=root"])
    suite.wait_for(lambda: not suite.jobs())
    suite.wait_for(lambda: testbed.command("status").returncode == 0)


def share(suite, at_once):
    """The shared file system of the site: so many nodes use it at once."""
    path = suite.site / "system.yaml"
    text = path.read_text()
    assert SCRATCH in text
    path.write_text(
        text.replace(SCRATCH, f"path: {suite.disk}, kind: any, shared: true, at_once: {at_once}")
    )


def reframe(suite, *words, **kw):
    return suite.reframe(*SMALL, *words, before=f"SITEPROOF_SITES='{suite.site.parent}'", **kw)


def start(suite, *words):
    return suite.start(*SMALL, *words, before=f"SITEPROOF_SITES='{suite.site.parent}'")


def conditions(suite, file_system):
    """Of the samples of a file system."""
    return [
        s.conditions
        for s in suite.samples()
        if s.status == "ok" and s.conditions["file_system"] == file_system
    ]


def left(suite):
    return sorted(path.name for path in suite.disk.iterdir())


def writes(suite):
    """When each node's dd began to write and ended to read, by node."""
    found = {}
    for line in (suite.folder / "spans").read_text().splitlines():
        node, moment = line.split()
        found.setdefault(node, []).append(float(moment))
    return [(min(times), max(times)) for times in found.values()]


def timed_dd(suite):
    """A dd that notes when it ran, and takes half a second longer."""
    suite.likwid(
        f"""
        note() {{ echo "$(hostname) $(date +%s.%N)" >>'{suite.folder}/spans'; }}
        case "$*" in *count=8*|*if=*/test.1*) ;; *) exec {shutil.which("dd")} "$@" ;; esac
        note; {shutil.which("dd")} "$@"; code=$?; sleep 0.5; note; exit $code""",
        name="dd",
    )


def test_all_nodes_measure_every_file_system_and_a_shared_one_by_turns(suite):
    timed_dd(suite)
    done = reframe(suite, "-n", "BlockStorage.*scratch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.measured("BlockStorage.write") == NODES
    assert {c["at_once"] for c in conditions(suite, "scratch")} == {"3"}
    spans = writes(suite)
    assert len(spans) == len(NODES)
    at_once = max(sum(a <= begin < b for a, b in spans) for begin, _ in spans)
    assert at_once == 3
    assert left(suite) == []


def test_a_file_system_of_each_nodes_own_is_measured_by_all_at_once(suite):
    done = reframe(suite, "-n", "BlockStorage.*memory|DataIntegrity.*memory")
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.measured("BlockStorage.write") == NODES
    assert suite.measured("DataIntegrity.errors") == NODES
    found = conditions(suite, "memory")
    assert {(c["at_once"], c["kind"]) for c in found} == {("1", "tmpfs")}
    assert {c["read_by"] for c in found if "read_by" in c} == {"same"}


def test_what_a_node_writes_another_one_reads(suite):
    done = reframe(suite, "-n", "DataIntegrity.*scratch")
    assert done.returncode == 0, done.stdout + done.stderr
    errors = {s.node: s.value for s in suite.samples() if s.metric == "DataIntegrity.errors"}
    assert sorted(errors) == NODES
    assert set(errors.values()) == {0}
    assert {c["read_by"] for c in conditions(suite, "scratch")} == {"other"}
    assert left(suite) == []


def listings(suite):
    """What each node has listed, by Namespace's samples of the newest session."""
    sample = next(s for s in suite.samples() if s.metric == "Namespace.paths")
    return descriptions.read(descriptions.path_of(suite.data / "perflogs", sample.header))


@pytest.mark.parametrize("lost", [False, True])
def test_a_path_that_a_node_does_not_see_is_found_by_comparing_the_listings(suite, lost):
    for name in ("a", "a/b", "lost"):
        (suite.disk / name).mkdir()
    if lost:
        find = shutil.which("find")
        suite.likwid(
            f"""
            case "$(hostname)" in
            node003) {find} "$@" | tr '\\0' '\\n' | grep -v lost | tr '\\n' '\\0' ;;
            *) exec {find} "$@" ;; esac """,
            name="find",
        )
    done = reframe(suite, "-n", "Namespace.*scratch")
    assert done.returncode == 0, done.stdout + done.stderr
    digests = {s.node: s.value for s in suite.samples() if s.metric == "Namespace.digest"}
    assert sorted(digests) == NODES
    assert len(set(digests.values())) == 1 + lost
    assert differing(listings(suite), 8) == ({"lost": ["node003"]} if lost else {})


def test_files_changed_on_their_way_are_found_by_the_reader_and_named(suite):
    dd = shutil.which("dd")
    suite.likwid(
        f"""
        case "$(hostname) $*" in node004*test.3*nocache*)
            printf X | {dd} of="${{1#of=}}" bs=1 seek=999 conv=notrunc 2>/dev/null ;; esac
        exec {dd} "$@" """,
        name="dd",
    )
    reframe(suite, "-n", "DataIntegrity.*scratch")
    wrong = {s.node: s.value for s in suite.samples() if s.metric == "DataIntegrity.wrong"}
    assert wrong == {"node005": "test.3 FAILED"}


def test_the_reader_of_a_node_that_died_is_not_failed_and_its_files_go_at_the_next_start(
    suite, testbed
):
    dd = shutil.which("dd")
    suite.likwid(
        f"""
        case "$(hostname) $*" in node002*test.2*nocache*) sleep 1000 ;; esac
        exec {dd} "$@" """,
        name="dd",
    )
    share_all(suite)
    running = start(
        suite,
        "-n",
        "DataIntegrity.*scratch",
        "-S",
        "DataIntegrity.time_limit=60s",
        "-S",
        "nodes=node[001-003]",
    )
    suite.wait_for(lambda: list(suite.disk.glob("*.node002.1*/test.2")))
    testbed.power_off("node002")
    try:
        out = running.communicate(timeout=PATIENCE)[0]
    finally:
        testbed.power_on("node002")
    lost = suite.lost()
    assert lost["node002"].startswith("node_lost"), out
    assert "interrupted: node002 has not written its files" in lost["node003"], out
    assert set(lost) <= {"node002", "node003"}, out
    assert any("node002" in name for name in left(suite))
    (suite.programs / "dd").unlink()
    assert left_results(suite)
    done = reframe(suite, "-n", "BlockStorage.*scratch", "-S", "nodes=node001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert left(suite) == []


def share_all(suite):
    """All nodes at once, so that the dead one delays nobody."""
    path = suite.site / "system.yaml"
    path.write_text(path.read_text().replace("at_once: 3", "at_once: 8"))
