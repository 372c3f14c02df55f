"""Every parser against recorded outputs, and against damage that nobody has recorded yet."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from importlib import import_module
from types import ModuleType

import pytest
import recorded
from clone import TOP
from hypothesis import given
from hypothesis import strategies as st
from random_cases import cases
from recorded import OUTPUTS, good, proofs, words

from siteproof import units
from siteproof.errors import OutputError
from siteproof.parsers import Reading, blas, host_parameters, hpl, likwid, stream, values
from siteproof.parsers import lines as of_node
from siteproof.parsers.iperf3 import intervals

ALL_OUTPUTS = recorded.all_of()
TOOLS = sorted(
    name
    for name in {output.tool for output in ALL_OUTPUTS}
    if hasattr(import_module(f"siteproof.parsers.{name}"), "parse")
)


def parser(tool: str) -> ModuleType:
    return import_module(f"siteproof.parsers.{tool}")


def conditions(tool: str, text: str) -> dict[str, str]:
    """A parser has none where the output holds nothing that its values depend on."""
    module = parser(tool)
    found: dict[str, str] = module.conditions(text) if hasattr(module, "conditions") else {}
    return found


def expected(tool: str, text: str) -> str:
    """What the parser makes of a text, as it stands in a .expected file."""
    module = parser(tool)
    if not hasattr(module, "parse"):
        return "".join(f"{key} = {value}\n" for key, value in module.describe(text).items())
    try:
        lines = [
            " ".join([r.metric, str(r.value), r.unit, *(f"{k}={v}" for k, v in r.dims.items())])
            for r in module.parse(text)
        ]
    except OutputError as error:
        return f"OutputError {error.status}: {error}\n"
    lines += [f"{key} = {value}" for key, value in sorted(conditions(tool, text).items())]
    if tool in ("description", "health", "host_parameters"):
        named = getattr(module, "unreadable", of_node.unreadable)
        lines += [f"unreadable {key} = {why}" for key, why in named(text).items()]
    return "".join(f"{line}\n" for line in lines)


@cache
def metrics(tool: str) -> frozenset[str]:
    """The figures, not texts, that a tool's good outputs give."""
    return frozenset(
        reading.metric
        for text in good(tool)
        for reading in parser(tool).parse(text)
        if reading.unit != "text"
    )


def proven(tool: str) -> frozenset[str]:
    """Those of which a second figure in the output tells whether a digit is right."""
    return frozenset() if "any" in words(tool, "metrics") else metrics(tool) - words(tool, "alone")


MEASURING = [tool for tool in TOOLS if metrics(tool)]


def attempt(tool: str, text: str) -> list[Reading]:
    """The readings, none if the output is refused. Any other exception is a failure."""
    module = parser(tool)
    assert all(v.isprintable() for v in conditions(tool, text).values())
    try:
        readings = module.parse(text)
    except OutputError as error:
        assert error.status in {"parse", "invalid", "generic"}
        assert str(error).isprintable(), "a message must not carry what an output holds"
        return []
    for reading in readings:
        looks_right(tool, reading)
    return readings


def looks_right(tool: str, reading: Reading) -> None:
    assert reading.unit in units.UNITS
    if reading.unit == "text":
        assert isinstance(reading.value, str) and len(reading.value) <= 500
        assert f"{reading.metric}{reading.value}".isprintable()
        return
    free = "any" in words(tool, "metrics")
    assert free or reading.metric in metrics(tool)
    assert isinstance(reading.value, Decimal) and reading.value.is_finite()
    may_be_nothing = free or reading.metric in words(tool, "zero")
    assert (
        reading.value > 0
        or (reading.value == 0 and may_be_nothing)
        or (reading.metric in words(tool, "negative"))
    )


@pytest.mark.parametrize("output", ALL_OUTPUTS, ids=lambda output: output.name)
def test_recorded_output_gives_what_stands_beside_it(output):
    assert expected(output.tool, output.text) == output.expected


def test_every_expectation_belongs_to_an_output_and_says_where_it_comes_from():
    assert {output.beside for output in ALL_OUTPUTS} == set(OUTPUTS.glob("*/*.expected"))
    assert [output.name for output in ALL_OUTPUTS if len(output.said("origin")) != 1] == []


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


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_good_output_with_its_proof(tool):
    assert good(tool)
    assert all(proofs(output) for output in recorded.all_of(tool) if output.good)


@pytest.mark.parametrize("tool", TOOLS)
def test_without_a_line_of_the_proof_there_is_no_reading(tool):
    for output in recorded.all_of(tool):
        lines = output.text.splitlines(keepends=True)
        for proof in proofs(output) if output.good else ():
            kept = [line for line in lines if proof not in line]
            assert kept != lines, proof
            assert attempt(tool, "".join(kept)) == [], proof


@pytest.mark.parametrize("tool", TOOLS)
def test_no_output_at_all_cannot_be_read(tool):
    with pytest.raises(OutputError) as error:
        parser(tool).parse("")
    assert error.value.status == "parse"


@pytest.mark.deep
@pytest.mark.parametrize("tool", TOOLS)
def test_an_output_cut_after_any_line_gives_the_whole_answer_or_none(tool):
    for text in good(tool):
        whole = parser(tool).parse(text)
        lines = text.splitlines(keepends=True)
        for end in range(len(lines)):
            cut = attempt(tool, "".join(lines[:end]))
            # Where several tests of likwid-bench follow each other, a cut between two of them
            # leaves a complete output of the first; the check then misses the second's metric.
            several = "yes" in words(tool, "parts")
            assert cut in ([], whole) or (several and cut == whole[: len(cut)])


@pytest.mark.parametrize("tool", TOOLS)
@cases(150)
@given(data=st.data())
def test_an_output_cut_anywhere_gives_the_whole_answer_or_none(tool, data):
    text = data.draw(st.sampled_from(good(tool)))
    cut = attempt(tool, text[: data.draw(st.integers(0, len(text)))])
    assert cut == parser(tool).parse(text)[: len(cut)]


@pytest.mark.parametrize("tool", TOOLS)
@cases(150)
@given(data=st.data())
def test_an_output_whose_beginning_is_lost_gives_the_whole_answer_or_none(tool, data):
    text = data.draw(st.sampled_from(good(tool)))
    rest = attempt(tool, text[data.draw(st.integers(0, len(text))) :])
    assert {r.metric for r in rest} <= {r.metric for r in parser(tool).parse(text)}


@pytest.mark.parametrize("tool", TOOLS)
@cases(300)
@given(data=st.data())
def test_flipped_bytes_give_readings_or_an_output_error(tool, data):
    text = data.draw(st.sampled_from(good(tool)))
    damaged = bytearray(text.encode("utf-8"))
    flips = st.tuples(st.integers(0, len(damaged) - 1), st.integers(1, 255))
    for at, bits in data.draw(st.lists(flips, min_size=1, max_size=8)):
        damaged[at] ^= bits
    attempt(tool, damaged.decode("utf-8", errors="replace"))


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if proven(tool)])
@cases(300)
@given(data=st.data())
def test_one_digit_changed_in_a_figure_never_moves_it_far(tool, data):
    text = data.draw(st.sampled_from(good(tool)))
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    at = data.draw(st.sampled_from(digits))
    damaged = text[:at] + data.draw(st.sampled_from("0123456789")) + text[at + 1 :]
    true = {(r.metric, *r.dims.items()): r.value for r in parser(tool).parse(text)}
    for reading in attempt(tool, damaged):
        key = (reading.metric, *reading.dims.items())
        # A message of few bytes has a time and no bandwidth (0.00) that could agree with it.
        alone = reading.metric == "latency" and ("bandwidth", *key[1:]) not in true
        if reading.metric in proven(tool) and key in true and not alone:
            assert abs(reading.value / true[key] - 1) < Decimal(1), reading


@pytest.mark.parametrize("tool", TOOLS)
@cases(150)
@given(text=st.text(max_size=400))
def test_random_text_gives_no_reading(tool, text):
    assert attempt(tool, text) == []


@pytest.mark.parametrize("tool", MEASURING)
@cases(150)
@given(data=st.data())
def test_a_text_put_where_a_number_stands_never_raises_another_error(tool, data):
    text = data.draw(st.sampled_from(good(tool)))
    words = set(text.replace("=", " ").split())
    number = data.draw(st.sampled_from([w for w in words if w[0].isdigit()]))
    strange = data.draw(
        st.sampled_from(
            ["nan", "-inf", "1e999", "9" * 5000, "1,5", "٣", "²", "0x10", "1_0", "--", "1e-99", "0"]
        )
    )
    attempt(tool, text.replace(number, strange))


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_output_twice_is_refused(tool):
    for text in good(tool):
        assert attempt(tool, text + "\n" + text) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_the_output_of_another_tool_is_refused(tool):
    for other in {*TOOLS} - {tool}:
        # HPCC's file holds a whole output of HPL.
        texts = [
            output.text
            for output in recorded.all_of(other)
            if output.good or output.path.stem == "garbage"
        ]
        assert tool in words(other, "holds") or all(attempt(tool, t) == [] for t in texts), other


@pytest.mark.parametrize("value", ["0.5", "12023.7", "7.239e+01", "3.0515E+04", "1"])
def test_a_figure_keeps_the_digits_that_were_printed(value):
    assert values.positive("it", value) == Decimal(value)
    assert str(values.positive("it", value)) == str(Decimal(value))


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("nan", "invalid"),
        ("-nan", "invalid"),
        ("inf", "invalid"),
        ("-Infinity", "invalid"),
        ("0", "invalid"),
        ("0.000e+00", "invalid"),
        ("-1.5", "invalid"),
        ("1,5", "parse"),
        ("1.234,5", "parse"),
        ("", "parse"),
        ("1e999", "parse"),
        ("٣", "parse"),
        ("1_0", "parse"),
        (" 1", "parse"),
        ("0x1p3", "parse"),
        ("9" * 99, "parse"),
    ],
)
def test_what_is_no_positive_figure_is_refused(value, status):
    with pytest.raises(OutputError) as error:
        values.positive("it", value)
    assert error.value.status == status


def test_stream_needs_twenty_clock_ticks():
    text = good("stream")[0]
    ticks = text.partition("   (= ")[2].partition(" ")[0]
    assert len(stream.parse(text.replace(f"(= {ticks} clock", "(= 20 clock"))) == 4
    with pytest.raises(OutputError, match="19 clock ticks"):
        stream.parse(text.replace(f"(= {ticks} clock", "(= 19 clock"))


@pytest.mark.parametrize(
    "test",
    [
        "triad",
        "triad_mem_avx512",
        "stream_sp",
        "stream_sp_mem_avx_fma",
        "daxpy",
        "update",
        "copyx",
        "load",
        "sum",
        "clcopy",
        "stream_",
        "peakflops_avx",
    ],
)
def test_a_likwid_test_that_is_no_kernel_of_stream_is_refused(test):
    text = next(t for t in good("likwid") if "Test: stream\n" in t)
    with pytest.raises(OutputError, match="not a kernel of STREAM"):
        likwid.parse(text.replace("Test: stream\n", f"Test: {test}\n"))


@pytest.mark.parametrize(
    "test",
    ["stream", "stream_avx", "stream_avx512_fma", "stream_mem", "stream_mem_sse_fma", "stream_sse"],
)
def test_all_double_precision_variants_of_likwids_stream_are_triad(test):
    text = (
        (OUTPUTS / "likwid/5.2.2-stream.txt")
        .read_text()
        .replace("Test: stream\n", f"Test: {test}\n")
    )
    assert [r.metric for r in likwid.parse(text)] == ["triad"]
    assert likwid.conditions(text)["triad_kernel"] == test


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


@given(text=st.text(max_size=300))
def test_no_control_character_of_a_host_comes_through(text):
    lines = f"sysctl a.b = {text}\nunreadable c {text}\nend host parameters\n"
    attempt("host_parameters", lines)
    for key, why in of_node.unreadable(lines).items():
        assert f"{key}{why}".isprintable()


def test_a_line_of_ten_megabytes_is_cut():
    text = "nic eth0 alias " + "x" * 10**7 + "\nend host parameters\n"
    assert [len(str(r.value)) for r in host_parameters.parse(text)] == [500]


ALL = {"avx", "avx2", "fma", "avx512f"}


@pytest.mark.parametrize(
    ("kernel", "flags", "missing"),
    [
        ("Haswell", ALL, "avx512f"),
        ("Zen", ALL, "avx512f"),
        ("zen3", ALL, "avx512f"),
        ("generic", ALL, "avx512f"),
        ("AVX2", ALL, "avx512f"),
        ("def", ALL, "avx512f"),
        ("Prescott", ALL - {"avx512f"}, "avx2"),
        ("Core2", ALL - {"avx512f"}, "avx2"),
        ("Nehalem", ALL - {"avx512f"}, "avx2"),
        ("Sandybridge", ALL - {"avx512f"}, "avx2"),
        ("SSE4.2", ALL - {"avx512f"}, "avx2"),
        ("Prescott", {"avx"}, "avx"),
    ],
)
def test_a_kernel_that_leaves_out_what_the_processor_offers_is_named(kernel, flags, missing):
    assert blas.unused_instructions(kernel, flags) == missing


@pytest.mark.parametrize(
    ("kernel", "flags"),
    [
        ("SkylakeX", ALL),
        ("Cooperlake", ALL),
        ("AVX-512", ALL),
        ("zen4", ALL),
        ("Haswell", ALL - {"avx512f"}),
        ("Zen", ALL - {"avx512f"}),
        ("def", ALL - {"avx512f"}),
        ("Sandybridge", {"avx"}),
        ("Sandybridge", {"avx", "avx2"}),
        ("Nehalem", {"sse4_2"}),
        ("SkylakeX", {"avx"}),
        ("Prescott", set()),
        ("", ALL),
        ("neoversen1", {"asimd", "sve"}),
    ],
)
def test_a_kernel_that_uses_all_or_that_nobody_knows_is_not_named(kernel, flags):
    assert blas.unused_instructions(kernel, flags) == ""


@given(text=st.text(max_size=300))
def test_describing_the_blas_of_any_text_gives_text(text):
    known = {"blas", "blas_library", "blas_version", "blas_kernel"}
    assert set(blas.describe(f"{text}\nCore: Haswell\n/lib/libblas.so.3 {text}")) <= known
