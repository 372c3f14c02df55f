"""The record: what is written is read again, and what is broken is named with file and line."""

import json
from decimal import Decimal
from itertools import product

import pytest
from refusals import refusal

from siteproof.record import samples
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions

HEADER = Header(
    "20261121T000000Z-abc",
    "testbed",
    "compute",
    "system",
    "Stream",
    "12",
    "2026-11-21T00:10:00+00:00",
    mode="acceptance",
    expected="node[001-002]",
    conditions={"program": "stream"},
    provenance={"suite": "1234"},
)
GOOD = Sample(HEADER, "node001", "Stream.triad", Decimal("17542.0"), "MB/s")
ODD = Sample(
    HEADER,
    "node002",
    "Stream.triad",
    Decimal("17001.5"),
    "MB/s",
    own_conditions={"program": "likwid-bench"},
    dims={"size": "8"},
    trial=2,
)
BROKEN = Sample(HEADER, "node003", "Stream.*", status="node_lost", why="down: no power")


def write(folder, text):
    path = folder / "testbed" / "compute" / "s.Stream.1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_what_is_written_is_read_again_digit_by_digit(tmp_path):
    path = samples.write(tmp_path, HEADER, [GOOD, ODD, BROKEN])
    assert sorted(samples.read(path), key=lambda s: s.node) == [GOOD, ODD, BROKEN]
    assert '"17542.0"' in path.read_text()


def test_writing_twice_leaves_one_file_with_the_same_bytes(tmp_path):
    path = samples.write(tmp_path, HEADER, [GOOD, BROKEN])
    before = path.read_bytes()
    samples.write(tmp_path, HEADER, [BROKEN, GOOD])
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(samples.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        samples.write(tmp_path, HEADER, [GOOD])
    assert not list((tmp_path / "testbed" / "compute").iterdir())


def test_a_half_written_file_is_invisible_to_readers(tmp_path):
    samples.write(tmp_path, HEADER, [GOOD])
    (tmp_path / "testbed" / "compute" / ".x.tmp").write_text("half a li")
    found = Sessions(tmp_path, "testbed").of(lambda _: True)
    assert [sample for sample in found if sample.status != "lost"] == [GOOD]


def test_a_broken_line_is_named_with_file_and_line(tmp_path):
    for line, told in (
        ('{"node":"n","metric":"m","value":"1,5","unit":"s"}', "'1,5' is not a number"),
        ('{"node":"n","metric":"m","value":"NaN","unit":"s"}', "not a value that any tool prints"),
        ('{"node":"n","metric":"m"}', "without value or unit"),
        ('{"node":"n","value":"1","unit":"s"}', "without node or metric"),
        ('{"node":"n","metric":"m","status":"fine"}', "unknown status 'fine'"),
        ('{"node":"n","met', "broken line"),
        ("[1]", "broken line"),
    ):
        good = samples.write(tmp_path, HEADER, [GOOD]).read_text()
        path = write(tmp_path, good + line + "\n")
        refused = refusal(samples.read, path)
        assert "jsonl:3: " in refused and told in refused, line


def test_a_broken_header_is_named(tmp_path):
    for head, told in (
        ("", "broken line"),
        ("{}", "header without"),
        ('{"siteproof":1,"session":"s"}', "header without system"),
        (
            '{"siteproof":9,"session":"s","system":"t","partition":"p","environment":"e","check":"c",'
            '"job":"1","time":"t"}',
            "another version",
        ),
        (
            '{"siteproof":1,"session":"s","system":"t","partition":"p","environment":"e","check":"c",'
            '"job":"1","time":"t","colour":"red"}',
            "unknown key 'colour'",
        ),
    ):
        refused = refusal(samples.read, write(tmp_path, head))
        assert "jsonl:1: " in refused and told in refused, head


LINES = (
    '{"node":"n1","metric":"Stream.triad","value":"17542.0","unit":"MB/s"}',
    '{"node":"n1","metric":"Stream.triad","value":"-0.50","unit":"MB/s"}',
    '{"node":"n1","metric":"Stream.triad","value":"007","unit":"MB/s"}',
    '{"node":"n1","metric":"A.name","value":"12","unit":"text"}',
    '{"node":"","metric":"A.b","value":"1e3","unit":"s"}',
    '{"node":"n1","metric":"A.b","value":"1","unit":"s","trial":2}',
    '{"node":"n1","metric":"A.b","value":"1","unit":"s","dims":{"size":"8"}}',
    '{"node":"n1","metric":"A.b","value":"1","unit":"s","conditions":{"blas":"x"}}',
    '{"node":"n1","metric":"A.\\u001b","value":"1","unit":"s"}',
    '{"node":"n1","metric":"A.é","value":"1","unit":"s"}',
    '{"node":"n1","metric":"A.b","status":"timeout","why":"late"}',
)


def test_a_line_gives_the_same_sample_however_it_is_spaced(tmp_path):
    for line in LINES:
        head = samples.dump(HEADER, []).decode()
        spaced = json.dumps(json.loads(line), indent=None, separators=(", ", " : "))
        one, other = (samples.read(write(tmp_path, f"{head}{text}\n")) for text in (line, spaced))
        assert one == other, line
        assert len(one) == 1, line


def test_a_line_with_a_number_may_be_wrong(tmp_path):
    for line, told in (
        ('{"node":"-n","metric":"A.b","value":"1","unit":"s"}', "'-n' is not the name of a node"),
        ('{"node":"n","metric":"A.b","value":"1","unit":"furlong"}', "unknown unit 'furlong'"),
    ):
        text = samples.dump(HEADER, [GOOD]).decode() + line + "\n"
        assert f"jsonl:3: {told}" in refusal(samples.read, write(tmp_path, text)), line


def test_a_node_that_differs_keeps_its_own_conditions():
    assert ODD.conditions["program"] == "likwid-bench"
    assert GOOD.conditions == {"program": "stream", "mode": "acceptance"}


def test_a_figure_of_which_each_digit_would_cost_time_is_refused(tmp_path):
    for digits in ("1." + "0" * 900_000, "0E-999999", "0E+999999999", "1E+51", "9" * 300):
        path = samples.write(tmp_path, HEADER, [GOOD])
        path.write_text(path.read_text().replace("17542.0", digits))
        refused = refusal(samples.read, path)
        assert "jsonl:2: " in refused, digits[:20]
        assert "is not a value that any tool prints" in refused, digits[:20]


def test_a_line_of_any_depth_is_one_error(tmp_path):
    path = samples.write(tmp_path, HEADER, [GOOD])
    head = path.read_text().splitlines()[0]
    keys = ("value", "status", "why", "trial")
    for case in product((60, 600, 985, 5000), (r'"\u001b"', '"b"'), keys):
        depth, inmost, key = case
        deep = '{"a":' * depth + inmost + "}" * depth
        line = f'"node":"n1","metric":"Stream.triad","value":"1","unit":"MB/s","{key}":{deep}'
        path.write_text(f"{head}\n{{{line}}}\n")
        assert "broken line" in refusal(samples.read, path), case
