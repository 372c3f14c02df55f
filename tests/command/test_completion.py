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


def test_each_shell_offers_commands_and_the_values_of_an_option(world, offered):
    world.site("testbed")
    assert offered("ver") == ["verdict"]
    assert {"testbed", "thishost"} <= set(offered("verdict", "--system", ""))


@pytest.fixture
def asked(world):
    """What the command itself answers to the function of bash, without a shell."""

    def ask(*words):
        line = {"COMP_WORDS": shlex.join(["siteproof", *words]), "COMP_CWORD": str(len(words))}
        done = world.inside(_SITEPROOF_COMPLETE="bash_complete", **line)
        assert (done.code, done.err) == (0, ""), done
        return [row.partition(",")[2] for row in done.out.splitlines() if row]

    return ask


ALL_OF = [  # words, and what is offered at least
    (("",), {"lint", "sites", "port", "why"}),
    (("lint", "--system", ""), {"testbed", "thishost"}),
    (("sites", ""), {"testbed", "thishost"}),
    (("port", ""), {"testbed", "thishost"}),
    (("nodes", "--metric", "Stream."), {"Stream.triad", "Stream.copy"}),
    (("trend", "--metric", "Stream."), {"Stream.triad", "Stream.copy"}),
    (("matrix", ""), {"TcpBandwidth.throughput"}),
]
JUST = [  # words, and all that is offered
    (("verdict", "--cam"), ["--campaign"]),
    (("sweep", "ior_"), ["ior_ranks", "ior_tasks", "ior_transfer"]),
    (("why", "HERE-S"), ["HERE-STREAM"]),
    (("why", "--system", "testbed", "node00"), [f"node00{number}" for number in range(1, 9)]),
    (("plan", "--mode", ""), ["quick", "maintenance", "acceptance"]),
    (("plan", "--mode", "q"), ["quick"]),
    (("plan", "-n", "Hpl", "--mode", "acc"), ["acceptance"]),
    (("plan", "--system", "testb"), ["testbed"]),
]


def test_commands_options_sites_metrics_sweeps_criteria_nodes_and_modes_are_offered(world, asked):
    world.site("testbed")
    found = {words: asked(*words) for words, _ in [*ALL_OF, *JUST]}
    assert not {words: found[words] for words, least in ALL_OF if not least <= {*found[words]}}
    assert not {
        words: found[words] for words, whole in JUST if sorted(found[words]) != sorted(whole)
    }
    assert "Stream.triad" not in found["matrix", ""], "it has metrics of pairs only"


def test_a_broken_site_breaks_no_completion(world, asked):
    world.site(system="][")
    assert asked("why", "HERE") == []
    assert "lint" in asked("li")


def test_the_docs_have_the_line_of_each_shell():
    page = (TOP / "docs/sites.md").read_text().replace("\\|", "|")
    for shell, (_, script) in SHELLS.items():
        line = next(line for line in script.splitlines() if "_SITEPROOF_COMPLETE" in line)
        assert f"`{line}`" in page, shell
