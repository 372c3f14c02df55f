"""Whose result it is, on a real Slurm with a munged on every node."""

import pytest
from bed_suite import HONEST, RECORDED

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
# A node that leaves the raw files of another one, before that one has any of its own.
FORGER = f"""
me=$(cat /proc/sys/kernel/hostname)
forge() {{
    victim=$1; forged=$stage/raw/.forged-$1
    mkdir $forged
    cp meta facts $forged
    sed -i "s/^node=.*/node=$victim/; s/^host=.*/host=$victim/" $forged/meta
    printf 'swap_after=0\\nexit=0\\nend=%s\\n' $(date +%s) >>$forged/meta
    printf 'program=likwid-bench\\narray_bytes=80000000\\n' >>$forged/facts
    cat '{RECORDED}' >$forged/stdout
    : >$forged/stderr
    (cd $forged && $2)
    mv $forged $stage/raw/$victim
}}
seal_it() {{ . $stage/account.sh; seal $victim $victim; }}
excuse() {{ echo 'none: munge is not installed' >origin; }}
[ $2 = copy ] || exit 0
case $me in
node001) forge node002 true ;;
node003) forge node004 seal_it ;;
node005) forge node006 excuse ;;
node002 | node004 | node006) until [ -d $stage/raw/$me ]; do sleep 0.1; done ;;
esac
{HONEST}"""


def test_a_node_cannot_speak_for_another(suite):
    """Not without a credential, not with one of its own host, and not with an excuse.

    That each result bears the credential of its own node is in test_campaigns_slurm.py.
    """
    suite.likwid(FORGER)
    done = suite.reframe("-n", "Stream", "-S", "nodes=node[001-007]")
    assert suite.measured("Stream.triad") == ["node001", "node003", "node005", "node007"]
    lost = suite.lost()
    told = {
        "node002": "no credential of node002",
        "node004": "made on 10.",
        "node006": "not installed",
    }
    assert sorted(lost) == sorted(told), done.stdout
    for node, words in told.items():
        assert lost[node].startswith("generic: ") and words in lost[node], lost
