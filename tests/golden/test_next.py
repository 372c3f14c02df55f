"""Every `next:` that a recording holds is a command that can be copied as it is."""

import functools
import os
import re
import shlex
import shutil
from unittest import mock

import click
import pytest
import record

from siteproof import cli, errors

NEXT = re.compile(r"(?:^|; |\. )[Nn]ext: (.+)$", re.MULTILINE)
WITH_VALUE = ("-c", "-n", "-S", "--system", "--mode")  # of reframe, and -r


def _printed():
    pages = [*record.RECORDED.glob("*/*.txt"), record.CLONE / "docs/operator.md"]
    texts = [path.read_text(encoding="utf-8") for path in pages if path.parent.name != "help"]
    return sorted({found for text in texts for found in NEXT.findall(text)})


def _parse(words):
    """Let click parse a command of ours, group by group; it calls nothing."""
    command, context = cli.group, None
    while True:
        name = words[0] if context else "siteproof"
        context = command.make_context(name, words[1:], parent=context)
        rest = [*context._protected_args, *context.args]
        if not isinstance(command, click.Group) or not rest:
            for_reframe = command.name == "gate" and context.params["options"]
            if for_reframe and not context.params["retest"]:
                raise click.UsageError("options of ReFrame without --retest")
            return
        name, command, rest = command.resolve_command(context, rest)
        words = [name, *rest]


def _parse_reframe(words):
    while words:
        if words[0] != "-r" and (words[0] not in WITH_VALUE or len(words) == 1):
            return f"reframe: {words[0]}"
        words = words[1 if words[0] == "-r" else 2 :]
    return ""


def _copied(line):
    """What is wrong with a line that somebody copies with nothing after it; empty if it runs."""
    words = shlex.split(line)
    measures = words[0].startswith("SITEPROOF_CAMPAIGN=")
    program, *rest = words[measures:]
    if program == "reframe":
        return _parse_reframe(rest)
    if measures or program != "siteproof":
        return "it is not a command"
    record.forget_help()
    with mock.patch.dict(os.environ):
        try:
            _parse([program, *rest])
        except (click.ClickException, errors.UserError) as error:
            return str(error)
    return ""


def test_each_next_command_can_be_copied_with_nothing_after_it():
    lines = _printed()
    assert len(lines) > 20
    wrong = {line: why for line in lines if (why := _copied(line))}
    assert not wrong


@functools.cache
def told(of, line):
    """What a command that only reads prints of a set."""
    return record.shared(of).told(tuple(shlex.split(line)))


def following(text):
    return NEXT.findall(text)[-1]


def test_where_all_is_measured_and_something_failed_nothing_is_measured_again():
    for command in ("verdict", "report --brief"):
        text = told("year", f"{command} --system here --campaign winter")
        assert following(text) == "siteproof nodes --campaign winter --system here", command


@pytest.mark.parametrize(("of", "system"), [("year", "here"), ("campaign", "testbed")])
def test_compare_without_arguments_is_what_the_page_compares(of, system):
    compared = told(of, f"compare --system {system}")
    page = told(of, f"report --brief --system {system}")
    before = re.search(r"^A: (.*?), B: ", compared, re.MULTILINE)[1]
    assert re.search(r"Worse since (?:campaign |session )?(\S+?)[ :]", page)[1] == before
    assert "no metric is in both" not in compared


def test_where_a_median_is_the_same_compare_says_in_how_many_nodes_it_is_worse():
    text = told("campaign", "compare --system testbed")
    assert "\nsame, 3 worse" in text
    assert "; single nodes or pairs are worse in 4 of these " in " ".join(text.split())


def test_nodes_name_the_comparison_that_tells_what_nodes_lost():
    text = told("campaign", "nodes --system testbed --campaign after")
    named = re.search(r"^against before: siteproof (.+)$", text, re.MULTILINE)[1]
    assert "worst node006 -56.5 %, node003 -56.5 %" in told("campaign", named)


NEAR = {
    "why n06": "n006",
    "compare autum winter": "autumn",
    "verdict --campaign wintre": "winter",
    "trend why uw2mex": "uw2mee",
    "trend --node n0022": "n002",
    "describe n0022": "n002",
    "history --metric Stream.trid": "Stream.triad",
}


def test_a_name_that_is_nearly_right_gets_the_nearest():
    for line, near in NEAR.items():
        text = told("year", f"{line} --system here")
        assert text.startswith("exit code 2"), line
        assert f"(did you mean '{near}'?)" in text, line
    assert "n[001-008]" in told("year", "why n06 --system here"), "every node that why allows"


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


def test_where_nothing_is_missing_plan_says_so_of_pairs_too():
    text = told("campaign", "plan --system testbed -S nodes=missing --all")
    assert "nothing is not in the inventory" not in text
    missing = text.partition("nothing is missing: ")[2].partition("no environment offers")[0]
    assert "TcpBandwidth lan on compute" in missing


def test_a_new_site_without_slurm_names_the_saved_files():
    text = told("campaign", "sites new far --describe")
    assert text.startswith("exit code 2")
    assert "scontrol: not found on PATH. " in text
    assert "--nodes FILE --partitions FILE" in text


def test_what_scontrol_prints_on_several_lines_is_not_run_together(tmp_path):
    world = record.World("thishost", tmp_path)
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


@pytest.mark.parametrize(
    ("of", "system", "more"), [("year", "here", []), ("campaign", "testbed", OF_ONE)]
)
def test_each_next_command_runs_as_it_is_printed(of, system, more):
    lines = [line.format(system) for line in LISTS]
    lines += [f"{line} --system testbed" for line in more]
    commands = {line: following(told(of, line)) for line in lines}
    ours = {line: one for line, one in commands.items() if one.startswith("siteproof ")}
    assert len(ours) > len(lines) / 2
    answers = {line: told(of, one.removeprefix("siteproof ")) for line, one in ours.items()}
    assert not {line: text for line, text in answers.items() if text.startswith("exit code 2")}


SAME_TIME = {
    "describe node008 --since 30d": "why node008 --since 30d",
    "describe --facts --since 30d": "describe --facts --all --since 30d",
    "matrix TcpBandwidth.throughput --link lan --since 30d": "why node005 --since 30d",
    "nodes --since 30d": "gate --since 30d",
    "nodes --as-of 2026-11-23": "gate --as-of 2026-11-23",
    "gate --since 30d": "why TB-PARAMETERS --since 30d",
    "gate --as-of 2026-11-23": "why TB-PARAMETERS --as-of 2026-11-23",
    "why TB-PARAMETERS --since 30d": "why node004 --since 30d",
    "verdict --as-of 2026-11-23": "nodes --as-of 2026-11-23",
    "report --brief --as-of 2026-11-23": "nodes --as-of 2026-11-23",
}


def test_a_next_command_judges_the_same():
    for line, told_next in SAME_TIME.items():
        text = told("campaign", f"{line} --system testbed")
        assert following(text) == f"siteproof {told_next} --system testbed", line


def test_each_header_has_what_ages_count_from():
    for line in ("verdict", "nodes", "gate", "why n002", "why C-HPL", "report --brief"):
        whole = told("year", f"{line} --system here")
        assert "here: campaign winter, 2026-11-20 02:15 UTC; ages count from now" in whole, line
        of_campaign = told("year", f"{line} --system here --campaign winter")
        assert "; ages count from then" in of_campaign, line


ACTS = ("reframe ", "SITEPROOF_CAMPAIGN=", "siteproof trend ack ", "siteproof accept ")
BEGINS = {
    "year": ["verdict", "nodes", "gate", "trend", "trend --node n007", "compare", "why C-UPTIME"],
    "campaign": ["verdict --as-of 2026-11-23", "nodes", "gate", "describe", "why TB-STREAM-ANY"],
}


@pytest.mark.parametrize(("of", "system"), [("year", "here"), ("campaign", "testbed")])
def test_next_commands_lead_to_one_that_acts_or_to_the_end(of, system):
    begins = [*BEGINS[of], *(["matrix TcpBandwidth.throughput"] * (of == "campaign"))]
    for begin in begins:
        chain = [f"siteproof {begin} --system {system}"]
        while not chain[-1].startswith(ACTS) and "--apply" not in chain[-1]:
            found = NEXT.findall(told(of, chain[-1].removeprefix("siteproof ")))
            if not found or found[-1].startswith("siteproof report"):
                break
            assert found[-1] not in chain, chain
            chain.append(found[-1])
