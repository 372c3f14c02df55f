"""Completion in a real bash: what it offers for a word, by the function that bash calls."""

import shutil

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="no bash")

COMPLETE = """
eval "$(_SITEPROOF_COMPLETE=bash_source siteproof)"
complete -p siteproof >&2
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_siteproof_completion siteproof
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(world, *words):
    """What bash offers for the last word, which may be empty."""
    quoted = " ".join(f"'{word}'" for word in ("siteproof", *words))
    done = world.run("bash", "--norc", "-c", COMPLETE.format(words=quoted))
    assert "complete" in done.err, done.err
    return done.out.split()


def test_commands(world):
    assert offered(world, "ver") == ["verdict"]
    assert {"lint", "sites", "port", "why"} <= set(offered(world, ""))


def test_options(world):
    assert offered(world, "verdict", "--cam") == ["--campaign"]


@pytest.mark.parametrize(
    "words", [("lint", ""), ("sites", ""), ("port", ""), ("verdict", "--system", "")]
)
def test_names_of_sites(world, words):
    world.site("testbed")
    assert {"testbed", "thishost"} <= set(offered(world, *words))


@pytest.mark.parametrize("command", ["nodes", "trend"])
def test_metrics(world, command):
    assert {"Stream.triad", "Stream.copy"} <= set(offered(world, command, "--metric", "Stream."))


def test_a_matrix_is_offered_metrics_of_pairs_only(world):
    found = offered(world, "matrix", "")
    assert "TcpBandwidth.throughput" in found
    assert "Stream.triad" not in found


def test_sweeps(world):
    assert offered(world, "sweep", "ior_") == ["ior_ranks", "ior_tasks", "ior_transfer"]


def test_criteria_and_nodes(world):
    world.site("testbed")
    assert offered(world, "why", "HERE-S") == ["HERE-STREAM"]
    words = ("why", "--system", "testbed", "node00")
    assert offered(world, *words) == [f"node00{number}" for number in range(1, 9)]


def test_a_broken_site_breaks_no_completion(world):
    world.site(system="][")
    assert offered(world, "why", "HERE") == []
    assert "lint" in offered(world, "li")
