"""Whose result it is, on a real Slurm with a munged on every node."""

import pytest
from test_run_slurm import NODES, RECORDED, Suite

from siteproof.record.sessions import Sessions

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
HONEST = f"[ $2 = copy ] || exit 0; cat '{RECORDED}'"
# On node001: raw files of node002 are there before it has any of its own.
FORGER = f"""
me=$(cat /proc/sys/kernel/hostname)
if [ $me = node002 ]; then
    until [ -d $stage/raw/node002 ]; do sleep 0.1; done
elif [ $me = node001 ] && [ $2 = copy ]; then
    mkdir $stage/raw/.forged
    cp meta facts $stage/raw/.forged
    sed -i 's/^node=.*/node=node002/; s/^host=.*/host=node002/' $stage/raw/.forged/meta
    printf 'swap_after=0\\nexit=0\\nend=%s\\n' $(date +%s) >>$stage/raw/.forged/meta
    printf 'program=likwid-bench\\narray_bytes=80000000\\n' >>$stage/raw/.forged/facts
    cat '{RECORDED}' >$stage/raw/.forged/stdout
    : >$stage/raw/.forged/stderr
    FORGE
    mv $stage/raw/.forged $stage/raw/node002
fi
{HONEST}"""
SEAL = """cd $stage/raw/.forged
    . $stage/account.sh
    seal node002 node002
    cd - >/dev/null"""


@pytest.fixture
def suite(testbed, tmp_path):
    return Suite(testbed, tmp_path)


def test_each_result_bears_the_credential_of_its_own_node(suite):
    suite.likwid(HONEST)
    done = suite.reframe("-n", "HostParameters", "-n", "Stream")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert suite.measured("HostParameters.mismatches") == NODES, done.stdout
    assert suite.measured("Stream.triad") == NODES, done.stdout + str(suite.lost())
    assert {s.header.provenance["origin"] for s in suite.samples()} == {"munge"}


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (":", "no credential of node002"),
        (SEAL, "made on 10."),
        ("echo 'none: munge is not installed' >$stage/raw/.forged/origin", "not installed"),
    ],
    ids=["no credential", "of its own host", "an excuse"],
)
def test_a_node_cannot_speak_for_another(suite, forge, told):
    suite.likwid(FORGER.replace("FORGE", forge))
    suite.reframe("-n", "Stream", "-S", "nodes=node[001-003]")
    assert "node002" not in suite.measured("Stream.triad")
    assert suite.lost()["node002"].startswith("generic: ")
    assert told in suite.lost()["node002"]
    assert {"node001", "node003"} <= set(suite.measured("Stream.triad"))


def test_pairs_bear_the_credentials_of_both_ends(suite):
    done = suite.reframe("-n", "PathMtu", "-S", "nodes=node[001-002]")
    found = [
        s
        for s in Sessions(suite.data / "perflogs", "testbed").of(lambda _: True)
        if s.status == "ok"
    ]
    assert found, done.stdout + done.stderr
    assert {s.header.provenance["origin"] for s in found} == {"munge"}
