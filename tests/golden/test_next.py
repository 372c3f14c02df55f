"""Every `next:` that a recording holds is a command that can be copied as it is."""

import os
import re
import shlex
import shutil
from unittest import mock

import click
import pytest
import record

from siteproof import cli

NEXT = re.compile(r"(?:^|; |\. )[Nn]ext: (.+)$", re.MULTILINE)
WITH_VALUE = ("-c", "-n", "-S", "--system", "--mode")  # of reframe, and -r


def _printed():
    recorded = sorted(record.RECORDED.glob("*/*.txt"))
    pages = {path: path.read_text(encoding="utf-8") for path in recorded}
    of_commands = {path: text for path, text in pages.items() if path.parent.name != "help"}
    return sorted({found for text in of_commands.values() for found in NEXT.findall(text)})


def _parse(words):
    """Let click parse a command of ours, group by group; it calls nothing."""
    command, context = cli.group, None
    while True:
        name = words[0] if context else "siteproof"
        context = command.make_context(name, words[1:], parent=context)
        rest = [*context._protected_args, *context.args]
        if not isinstance(command, click.Group) or not rest:
            if command.name == "gate":  # what follows its options goes to ReFrame
                assert not context.params["options"] or context.params["retest"]
            return
        name, command, rest = command.resolve_command(context, rest)
        words = [name, *rest]


def _parse_reframe(words):
    while words:
        assert words[0] == "-r" or words[0] in WITH_VALUE and len(words) > 1
        words = words[1 if words[0] == "-r" else 2 :]


def test_there_are_next_commands():
    assert len(_printed()) > 20


@pytest.mark.parametrize("line", _printed())
def test_a_next_command_can_be_copied_with_nothing_after_it(line):
    words = shlex.split(line)
    if words[0].startswith("SITEPROOF_CAMPAIGN="):
        words = words[1:]
        assert words[0] == "reframe"
    assert words[0] in ("siteproof", "reframe")
    if words[0] == "reframe":
        _parse_reframe(words[1:])
    else:
        record.forget_help()
        with mock.patch.dict(os.environ):
            _parse(words)


def told(tmp_path, of, line):
    return record.World(of, tmp_path).told(tuple(line.split()))


def following(text):
    return NEXT.findall(text)[-1]


@pytest.mark.parametrize("command", ["verdict", "report --brief"])
def test_where_all_is_measured_and_something_failed_nothing_is_measured_again(tmp_path, command):
    text = told(tmp_path, "year", f"{command} --system here --campaign winter")
    assert following(text) == "siteproof nodes --campaign winter --system here"


def test_the_campaign_that_was_chosen_by_default_is_the_one_that_goes_on(tmp_path):
    text = told(tmp_path, "campaign", "verdict --system testbed --campaign before")
    assert following(text).startswith("SITEPROOF_CAMPAIGN=before reframe ")


def test_where_the_nodes_are_hardly_at_fault_the_gate_does_not_offer_to_keep_them_out(tmp_path):
    text = told(tmp_path, "campaign", "gate --system testbed --campaign after")
    assert "\n--limit 86% --capacity 88% keeps all of them out\n" in text
    assert following(text) == "siteproof why TB-PARAMETERS --campaign after --system testbed"


@pytest.mark.parametrize(("of", "system"), [("year", "here"), ("campaign", "testbed")])
def test_compare_without_arguments_is_what_the_page_compares(tmp_path, of, system):
    world = record.World(of, tmp_path)
    compared = world.told(("compare", "--system", system))
    page = world.told(("report", "--brief", "--system", system))
    before = re.search(r"^A: (.*?), B: ", compared, re.MULTILINE)[1]
    assert re.search(r"Worse since (?:campaign |session )?(\S+?)[ :]", page)[1] == before
    assert "no metric is in both" not in compared


def test_where_a_median_is_the_same_compare_says_in_how_many_nodes_it_is_worse(tmp_path):
    text = told(tmp_path, "campaign", "compare --system testbed")
    assert "\nsame, 3 worse" in text
    assert "; single nodes or pairs are worse in 4 of these " in " ".join(text.split())


def test_nodes_name_the_comparison_that_tells_what_nodes_lost(tmp_path):
    world = record.World("campaign", tmp_path)
    text = world.told(("nodes", "--system", "testbed", "--campaign", "after"))
    named = re.search(r"^against before: siteproof (.+)$", text, re.MULTILINE)[1]
    assert "worst node006 -56.5 %, node003 -56.5 %" in world.told(tuple(shlex.split(named)))


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("why n06", "n006"),
        ("compare autum winter", "autumn"),
        ("verdict --campaign wintre", "winter"),
        ("trend why uw2mex", "uw2mee"),
        ("trend --node n0022", "n002"),
        ("describe n0022", "n002"),
        ("history --metric Stream.trid", "Stream.triad"),
    ],
)
def test_a_name_that_is_nearly_right_gets_the_nearest(tmp_path, line, near):
    text = told(tmp_path, "year", f"{line} --system here")
    assert text.startswith("exit code 2")
    assert f"(did you mean '{near}'?)" in text


def test_every_node_that_why_allows_is_named(tmp_path):
    assert "n[001-008]" in told(tmp_path, "year", "why n06 --system here")


@pytest.mark.parametrize("line", ["why C-HPL --system here", "trend why uw2mee --system here"])
def test_an_explanation_ends_with_the_next_command(tmp_path, line):
    text = told(tmp_path, "year", line)
    assert following(text).startswith("siteproof ")


def test_a_brief_report_of_nothing_is_one_line_and_the_command_that_measures(tmp_path):
    world = record.World("thishost", tmp_path)
    shutil.rmtree(world.data / "perflogs" / "thishost")
    text = world.told(("report", "--brief", "--system", "thishost"))
    *answer, command = text.splitlines()[2:]
    told_of = (
        "thishost: no session yet that could answer a criterion; 3 criteria, nothing to report"
    )
    assert " ".join(" ".join(answer).split()) == told_of
    assert command.startswith("next: reframe -c checks/ -r --system thishost ")


def test_where_nothing_is_missing_plan_says_so_of_pairs_too(tmp_path):
    text = told(tmp_path, "campaign", "plan --system testbed -S nodes=missing --all")
    assert "nothing is not in the inventory" not in text
    missing = text.partition("nothing is missing: ")[2].partition("no environment offers")[0]
    assert "TcpBandwidth lan on compute" in missing


def test_a_new_site_without_slurm_names_the_saved_files(tmp_path):
    text = told(tmp_path, "campaign", "sites new far --describe")
    assert text.startswith("exit code 2")
    assert "scontrol: not found on PATH. " in text
    assert "--nodes FILE --partitions FILE" in text


def test_what_scontrol_prints_on_several_lines_is_not_run_together(tmp_path):
    world = record.World("campaign", tmp_path)
    scontrol = world.data / "bin" / "scontrol"
    scontrol.write_text("#!/bin/sh\nprintf 'error: no host\\nerror: no conf\\n' >&2; exit 1\n")
    scontrol.chmod(0o755)
    text = world.told(("sites", "new", "far"))
    assert "scontrol: error: no host; error: no conf. " in text


LISTS = [
    *("history", "history --columns", "history --sql 'SELECT 1'", "sites", "sites {}"),
    *("accept --list --system {}", "evidence --list --system {}", "availability --system {}"),
    *("verdict --system {}", "nodes --system {}", "gate --system {}", "trend --system {}"),
    *("compare --system {}", "describe --system {}", "describe --facts --system {}"),
    *("nodes --system {} --since 30d", "report --brief --system {}", "plan --system {}"),
]
OF_ONE = ["describe node006", "describe node008 --since 30d", "why node005", "why TB-STREAM"]


@pytest.fixture(scope="module", params=[("year", "here"), ("campaign", "testbed")])
def world_of(request, tmp_path_factory):
    of, system = request.param
    return record.World(of, tmp_path_factory.mktemp(of)), system


@pytest.mark.parametrize("line", [*LISTS, *OF_ONE])
def test_the_next_command_runs_as_it_is_printed(world_of, line):
    world, system = world_of
    if line in OF_ONE:
        line = f"{line} --system testbed"
        if system != "testbed":
            return
    words = shlex.split(following(world.told(tuple(shlex.split(line.format(system))))))
    if words[0] == "siteproof":
        told_next = world.told(tuple(words[1:]))
        assert not told_next.startswith("exit code 2"), told_next


@pytest.mark.parametrize(
    ("line", "told_next"),
    [
        ("describe node008 --since 30d", "why node008 --since 30d"),
        ("describe --facts --since 30d", "describe --facts --all --since 30d"),
        ("matrix TcpBandwidth.throughput --link lan --since 30d", "nodes --since 30d"),
    ],
)
def test_a_next_command_speaks_of_the_same_time(tmp_path, line, told_next):
    text = told(tmp_path, "campaign", f"{line} --system testbed")
    assert following(text) == f"siteproof {told_next} --system testbed"
