"""Every parser against recorded outputs; test_damaged_outputs.py has the damage to them."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest
import recorded
from clone import TOP
from hypothesis import given
from hypothesis import strategies as st
from parsed import TOOLS, attempt, expected, metrics, parser
from random_cases import cases
from recorded import OUTPUTS, good, proofs, words

from siteproof.errors import OutputError
from siteproof.parsers import (
    Reading,
    blas,
    description,
    host_parameters,
    hpl,
    likwid,
    stream,
    values,
)
from siteproof.parsers.iperf3 import intervals


@pytest.mark.parametrize("tool", sorted({output.tool for output in recorded.all_of()}))
def test_recorded_output_gives_what_stands_beside_it(tool):
    pairs = {output.name: output for output in recorded.all_of(tool)}
    found = {name: expected(tool, output.text) for name, output in pairs.items()}
    assert found == {name: output.expected for name, output in pairs.items()}


def test_every_expectation_belongs_to_an_output_and_says_where_it_comes_from():
    outputs = recorded.all_of()
    assert {output.beside for output in outputs} == set(OUTPUTS.glob("*/*.expected"))
    assert [output.name for output in outputs if len(output.said("origin")) != 1] == []


def test_every_parser_of_a_tool_has_recorded_outputs():
    parsers = {
        path.stem
        for path in (TOP / "siteproof/parsers").glob("*.py")
        if "\ndef parse(" in path.read_text()
    }
    assert parsers == set(TOOLS)


def test_every_word_of_an_expectation_is_a_metric_or_a_tool():
    for tool in TOOLS:
        named = words(tool, "alone") | words(tool, "zero") | words(tool, "negative")
        assert named <= metrics(tool), tool
        assert words(tool, "holds") <= {*TOOLS} - {tool}, tool


def test_every_tool_has_a_good_output_with_its_proof():
    proven = [[proofs(output) for output in recorded.all_of(t) if output.good] for t in TOOLS]
    assert [
        tool for tool, found in zip(TOOLS, proven, strict=True) if not (found and all(found))
    ] == []


@pytest.mark.deep
def test_without_a_line_of_the_proof_there_is_no_reading():
    wrong = []
    for output in recorded.all_of():
        lines = output.text.splitlines(keepends=True)
        for proof in proofs(output) if output.tool in TOOLS and output.good else ():
            kept = [line for line in lines if proof not in line]
            if kept == lines or attempt(output.tool, "".join(kept)):
                wrong.append((output.name, proof))
    assert wrong == []


def test_no_output_at_all_cannot_be_read():
    for tool in TOOLS:
        with pytest.raises(OutputError) as error:
            parser(tool).parse("")
        assert error.value.status == "parse", tool


def test_a_figure_keeps_the_digits_that_were_printed():
    for value in ("0.5", "12023.7", "7.239e+01", "3.0515E+04", "1"):
        assert values.positive("it", value) == Decimal(value)
        assert str(values.positive("it", value)) == str(Decimal(value))


def test_what_is_no_positive_figure_is_refused():
    invalid = ("nan", "-nan", "inf", "-Infinity", "0", "0.000e+00", "-1.5")
    no_number = ("1,5", "1.234,5", "", "1e999", "٣", "1_0", " 1", "0x1p3", "9" * 99)
    for value in invalid + no_number:
        with pytest.raises(OutputError) as error:
            values.positive("it", value)
        assert error.value.status == ("invalid" if value in invalid else "parse"), value


def test_stream_needs_twenty_clock_ticks():
    text = good("stream")[0]
    ticks = text.partition("   (= ")[2].partition(" ")[0]
    assert len(stream.parse(text.replace(f"(= {ticks} clock", "(= 20 clock"))) == 4
    with pytest.raises(OutputError, match="19 clock ticks"):
        stream.parse(text.replace(f"(= {ticks} clock", "(= 19 clock"))


def test_of_likwids_tests_those_in_double_precision_that_stream_has_are_triad():
    text = (OUTPUTS / "likwid/5.2.2-stream.txt").read_text()
    assert text.count("Test: stream\n") == 1
    for test in (
        *("stream", "stream_avx", "stream_avx512_fma", "stream_mem", "stream_mem_sse_fma"),
        "stream_sse",
    ):
        variant = text.replace("Test: stream\n", f"Test: {test}\n")
        assert [r.metric for r in likwid.parse(variant)] == ["triad"], test
        assert likwid.conditions(variant)["triad_kernel"] == test
    for test in (
        *("triad", "triad_mem_avx512", "stream_sp", "stream_sp_mem_avx_fma", "daxpy", "update"),
        *("copyx", "load", "sum", "clcopy", "stream_", "peakflops_avx"),
    ):
        with pytest.raises(OutputError, match="not a kernel of STREAM"):
            likwid.parse(text.replace("Test: stream\n", f"Test: {test}\n"))


def test_intervals_of_iperf3_are_of_the_clients_clock_and_leave_out_what_was_omitted():
    text = (OUTPUTS / "iperf3/3.12-tcp_omit.txt").read_text()
    begin = Decimal(json.loads(text)["start"]["timestamp"]["timesecs"])
    rows = intervals(text)
    assert [row.start for row in rows] == [begin + 1 + Decimal(s) for s in ("2.8e-05", "1.002895")]
    assert all(abs(row.seconds - 1) < Decimal("0.01") for row in rows)
    sent = json.loads(text)["end"]["sum_sent"]["bytes"]
    assert abs(sum(row.bits for row in rows) / (8 * sent) - 1) < Decimal("0.001")


def test_intervals_of_thirty_streams_are_their_sums():
    text = (OUTPUTS / "iperf3/3.12-tcp_30_streams.txt").read_text()
    assert len(intervals(text)) == 5
    assert sum(row.bits for row in intervals(text)) > 5 * 10 * 10**9


@cases(200)
@given(data=st.data())
def test_intervals_of_a_damaged_output_are_intervals_or_an_output_error(data):
    text = data.draw(st.sampled_from(good("iperf3")))
    at = data.draw(st.integers(0, len(text) - 1))
    try:
        rows = intervals(text[:at] + data.draw(st.characters()) + text[at + 1 :])
    except OutputError:
        return
    assert all(figure.is_finite() for row in rows for figure in (row.start, row.seconds, row.bits))


def test_a_burst_that_nuttcp_misread_shows_in_what_was_sent():
    sent = {
        name: {
            r.metric: r.value
            for r in parser("nuttcp").parse((OUTPUTS / f"nuttcp/{name}.txt").read_text())
        }["sent"]
        for name in ("6.1.2-udp_burst_misread", "8.2.2-udp_burst_parse", "8.2.2-udp_burst_jitter")
    }
    achieved = {name for name, rate in sent.items() if abs(rate / 300 - 1) < Decimal("0.05")}
    assert achieved == {"8.2.2-udp_burst_parse", "8.2.2-udp_burst_jitter"}


def test_hpl_counts_a_residual_as_wrong_above_sixteen_whatever_the_threshold():
    text = next(t for t in good("hpl") if "0.0031608" in t)
    raised = text.replace("                16.0", "                99.0")
    assert hpl.parse(raised)
    with pytest.raises(OutputError, match="not below 16.0") as error:
        hpl.parse(raised.replace("0.0031608", "  16.0000"))
    assert error.value.status == "invalid"


def test_a_reading_and_a_refusal_hold_no_control_character():
    found = Reading("a\x1b", "b\x07", "text", {"c\x7f": "d\x85"})
    assert found == Reading("a?", "b?", "text", {"c?": "d?"})
    assert Reading("a", Decimal("1.50"), "MB/s\0").unit == "MB/s?"
    assert str(OutputError("x\x1b[31m: \u202e é")) == "x?[31m: ? é"


@given(text=st.text(max_size=300))
def test_no_control_character_of_a_host_comes_through(text):
    lines = f"sysctl a.b = {text}\nunreadable c {text}\nend host parameters\n"
    attempt("host_parameters", lines)
    for key, why in values.unreadable(lines).items():
        assert f"{key}{why}".isprintable()


def test_a_line_of_ten_megabytes_is_cut():
    text = "nic eth0 alias " + "x" * 10**7 + "\nend host parameters\n"
    assert [len(str(r.value)) for r in host_parameters.parse(text)] == [500]


ALL = {"avx", "avx2", "fma", "avx512f"}


def test_a_kernel_that_leaves_out_what_the_processor_offers_is_named():
    without = ALL - {"avx512f"}
    of_missing = {
        "avx512f": [
            (kernel, ALL) for kernel in ("Haswell", "Zen", "zen3", "generic", "AVX2", "def")
        ],
        "avx2": [(k, without) for k in ("Prescott", "Core2", "Nehalem", "Sandybridge", "SSE4.2")],
        "avx": [("Prescott", {"avx"})],
        "": [  # it uses all, or nobody knows it
            *[(kernel, ALL) for kernel in ("SkylakeX", "Cooperlake", "AVX-512", "zen4", "")],
            *[(kernel, without) for kernel in ("Haswell", "Zen", "def")],
            ("Sandybridge", {"avx"}),
            ("Sandybridge", {"avx", "avx2"}),
            ("Nehalem", {"sse4_2"}),
            ("SkylakeX", {"avx"}),
            ("Prescott", set()),
            ("neoversen1", {"asimd", "sve"}),
        ],
    }
    for missing, rows in of_missing.items():
        wrong = [row for row in rows if blas.unused_instructions(*row) != missing]
        assert wrong == [], missing


@given(text=st.text(max_size=300))
def test_describing_the_blas_of_any_text_gives_text(text):
    known = {"blas", "blas_library", "blas_version", "blas_kernel"}
    assert set(blas.describe(f"{text}\nCore: Haswell\n/lib/libblas.so.3 {text}")) <= known


def test_long_lines_of_iors_text_are_read_at_once():
    text = next(one.text for one in recorded.all_of("ior") if one.name.endswith("3.1.0-text"))
    blanks = " " * 1_000_000
    long = text.replace("Summary:", f"api: {blanks}x\nab{blanks}x\nSummary:", 1)
    assert long != text
    began = time.process_time()
    assert expected("ior", long) == expected("ior", text)
    assert time.process_time() - began < 2  # it took 4 s


def test_nvidia_smi_names_neither_a_gpu_nor_a_field_of_a_description():
    without_number = ", ".join(["no gpu", *description.NVIDIA[1:]])
    for printed in ([without_number], ["index, own name", "0, x"]):
        with pytest.raises(OutputError, match="nvidia: its output is not understood"):
            description.fields("nvidia", printed)
