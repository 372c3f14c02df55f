"""Completion in a real bash, zsh and fish: what each offers for a word.

bash and zsh by the function that they call, fish by its own `complete`.
"""

import shlex
import shutil

import pytest
from clone import TOP

BASH = """
eval "$(_SITEPROOF_COMPLETE=bash_source siteproof)"
complete -p siteproof >&2
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_siteproof_completion siteproof
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# In a script there is no line editor: what it would be given is printed.
ZSH = """
compdef() {{ echo complete "$@" >&2 }}
compadd() {{ print -l -- $completions }}
_describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}
eval "$(_SITEPROOF_COMPLETE=zsh_source siteproof)"
words=({words}) CURRENT=${{#words}}
_siteproof_completion
"""
FISH = """
_SITEPROOF_COMPLETE=fish_source siteproof | source
complete siteproof >&2
complete -C {line} | string replace -r '\\t.*' ''
"""
SHELLS = {
    "bash": (["bash", "--norc", "-c"], BASH),
    "zsh": (["zsh", "--no-rcs", "-c"], ZSH),
    "fish": (["fish", "--no-config", "-c"], FISH),
}


@pytest.fixture(params=SHELLS)
def offered(request, world):
    """What a shell offers for the last word, which may be empty."""
    if not shutil.which(request.param):
        pytest.skip(f"{request.param.upper()} NOT TESTED: it is not installed")
    command, script = SHELLS[request.param]

    def ask(*words):
        quoted = shlex.join(["siteproof", *words])
        line = shlex.quote(" ".join(["siteproof", *words]))
        done = world.run(*command, script.format(words=quoted, line=line))
        assert "complete" in done.err, done.err
        return done.out.split()

    return ask


def test_commands(offered):
    assert offered("ver") == ["verdict"]
    assert {"lint", "sites", "port", "why"} <= set(offered(""))


def test_options(offered):
    assert offered("verdict", "--cam") == ["--campaign"]


@pytest.mark.parametrize(
    "words", [("lint", ""), ("sites", ""), ("port", ""), ("verdict", "--system", "")]
)
def test_names_of_sites(world, offered, words):
    world.site("testbed")
    assert {"testbed", "thishost"} <= set(offered(*words))


@pytest.mark.parametrize("command", ["nodes", "trend"])
def test_metrics(world, offered, command):
    assert {"Stream.triad", "Stream.copy"} <= set(offered(command, "--metric", "Stream."))


def test_a_matrix_is_offered_metrics_of_pairs_only(world, offered):
    found = offered("matrix", "")
    assert "TcpBandwidth.throughput" in found
    assert "Stream.triad" not in found


def test_sweeps(world, offered):
    assert offered("sweep", "ior_") == ["ior_ranks", "ior_tasks", "ior_transfer"]


def test_criteria_and_nodes(world, offered):
    world.site("testbed")
    assert offered("why", "HERE-S") == ["HERE-STREAM"]
    words = ("why", "--system", "testbed", "node00")
    assert offered(*words) == [f"node00{number}" for number in range(1, 9)]


def test_a_broken_site_breaks_no_completion(world, offered):
    world.site(system="][")
    assert offered("why", "HERE") == []
    assert "lint" in offered("li")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("plan", "--mode", ""), {"quick", "maintenance", "acceptance"}),
        (("plan", "--mode", "q"), {"quick"}),
        (("plan", "-n", "Hpl", "--mode", "acc"), {"acceptance"}),
    ],
)
def test_modes_of_a_plan(offered, words, found):
    assert set(offered(*words)) == found


def test_systems_of_a_plan(world, offered):
    world.site("testbed")
    assert offered("plan", "--system", "testb") == ["testbed"]


def test_the_docs_have_the_line_of_each_shell():
    page = (TOP / "docs/sites.md").read_text().replace("\\|", "|")
    for shell, (_, script) in SHELLS.items():
        line = next(line for line in script.splitlines() if "_SITEPROOF_COMPLETE" in line)
        assert f"`{line}`" in page, shell
