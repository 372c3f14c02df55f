"""What a refusal of a tool's output says: what the tool itself printed, and what is needed."""

from importlib import import_module

import pytest
import recorded
import yaml
from clone import OUTPUTS, TOP
from rows import rows
from tools import OWN

from siteproof.collect import outcome
from siteproof.collect.raw import Execution, Raw
from siteproof.errors import OutputError
from siteproof.record.manifest import Manifest

OWN_SCRIPTS = yaml.safe_load((TOP / "tests/support/tools.yaml").read_text())[OWN]["outputs"]
MIXED = ["lustre", "sha256sum", "path_mtu"]  # printed by a script of Siteproof around the tool
TOOLS = sorted({output.tool for output in recorded.all_of()} - {*OWN_SCRIPTS, *MIXED})
REFUSED = [
    o for o in recorded.all_of() if o.tool in TOOLS and o.expected.startswith("OutputError parse")
]


def refusal(tool, stdout, stderr=""):
    """Why the output of one run of a tool gives no value."""
    job = Manifest(
        session="20261121T120000Z-00001ab",
        system="here",
        partition="node",
        environment="system",
        check="Probe",
        mode="quick",
        expected="here",
        metrics=["rate"],
        parsers={tool: tool},
    )
    run = Execution({}, 0, stdout, stderr)
    with pytest.raises(OutputError) as error:
        outcome.parse(run, Raw({}, {"program": tool}, "", ""), job)
    return str(error.value)


@rows("tool", TOOLS)
def test_the_parser_of_a_tool_names_what_it_reads(tool):
    assert import_module(f"siteproof.parsers.{tool}").NEEDS


@rows("output", REFUSED)
def test_every_refusal_names_what_is_needed_and_quotes_the_tool(output):
    parser = import_module(f"siteproof.parsers.{output.tool}")
    stream = getattr(parser, "STREAM", "stdout")
    texts = (output.text, "") if stream == "stdout" else ("", output.text)
    why = refusal(output.tool, *texts)
    assert why.endswith(f"; needed: {parser.NEEDS}")
    assert "it printed" in why
    assert why.isprintable() and len(why) < 600


@rows(
    "tool, name, stderr, said",
    [
        ("fio", "3.33-terse", "", "3;fio-3.33;x;0;0"),
        ("fio", "3.33-bad_rw", "fio: failed parsing rw=nosuch\n", "fio: failed parsing rw=nosuch"),
        ("fio", "3.33-json_and_text", "", "x: (g=0): rw=read"),  # and not '"error" : 0'
        ("fio", "3.33-gtod_reduce", "", "--gtod_reduce"),
        ("iperf3", "3.17-json_stream", "", "more than one output in one file"),
        ("osu", "7.5-between_gpus", "", "'H H'"),
        ("perftest", "4.5-all_sizes", "", "-s, not -a"),
        ("osu", "5.3-mbw_mr", "", "Multiple Bandwidth / Message Rate"),
        ("nuttcp", "6.1.2-usage", "", "Usage: nuttcp"),
    ],
)
def test_what_was_printed_instead_is_quoted(tool, name, stderr, said):
    assert said in refusal(tool, (OUTPUTS / f"{tool}/{name}.txt").read_text(), stderr)


def test_what_fio_said_on_stderr_is_quoted_where_stdout_is_empty():
    why = refusal("fio", "", "fio: unrecognized option '--nosuch'\n")
    assert "it printed 'fio: unrecognized option '--nosuch''" in why


def test_a_usage_error_of_ior_is_in_its_own_words():
    text = (OUTPUTS / "ior/4.1.0-bad_option.txt").read_text()
    assert refusal("ior", text) == "ior: Error invalid argument: --nosuch"


def test_a_tool_that_printed_nothing_is_said_to_have():
    assert "it printed nothing" in refusal("iperf3", "")


def test_what_is_quoted_can_steer_no_terminal_and_is_short():
    why = refusal("fio", "", "fio: error: \x1b]0;owned\x07" + "x" * 10_000)
    assert why.isprintable() and len(why) < 400
