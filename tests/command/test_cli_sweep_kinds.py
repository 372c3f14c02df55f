"""`siteproof sweep`: CSV and JSON, and other kinds of sweeps: knobs, windows, messages, fio's."""

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal

import pytest
import sweeps_made
from documents_checked import check
from sweeps_made import failed, of
from test_cli_sweep import BOTH, swept, write_rate

from siteproof.record.samples import Sample

__all__ = ["swept"]  # a fixture


def test_csv_has_a_line_a_point(swept):
    swept.keep(of(swept.file, BOTH))
    rows = list(csv.DictReader(io.StringIO(swept.ask("--csv").out)))
    assert len(rows) == 22
    row = next(r for r in rows if (r["metric"], r["at"]) == ("Ior.write", "332"))
    assert (row["median"], row["tasks_per_node"], row["bound_by"], row["repetitions"]) == (
        "3328.0",
        "2",
        "the link of 2 servers",
        "3",
    )


def test_json_never_gives_a_number_for_what_was_not_reached(swept):
    swept.keep(of(swept.file, BOTH))
    told = check("sweep", swept.ask("--json").out)
    found = {(c["metric"], c["line"]): c for c in told["runs"][0]["curves"]}
    read, write = (found[f"Ior.{name}", "best of all"] for name in ("read", "write"))
    assert (read["plateau"], read["plateau_reached"]) == (">498", False)
    assert (write["plateau"], write["plateau_reached"]) == (32, True)
    assert told["runs"][0]["tasks_per_node"]["Ior.write"] == {
        "most": 3,
        "compared_at": "the same nodes",
    }


def findings(swept, *words):
    """The findings of `--json` by their kind."""
    held = {}
    for one in check("sweep", swept.ask("--json", *words).out)["findings"]:
        held.setdefault(one["kind"], []).append(one)
    return held


def test_json_has_a_finding_for_each_point_without_a_value(swept):
    swept.keep(
        [
            *of(swept.file, BOTH, points=range(1, 32)),
            failed(swept.file, 32, "timeout"),
            failed(swept.file, 33, "interrupted"),
        ]
    )
    found = findings(swept)
    (broke,), (interrupted,) = found["no_value"], found["interrupted"]
    assert (broke["status"], broke["message"]) == ("timeout", "because")
    assert broke["subject"] == "tasks=332 tasks_per_node=2 trial=3"
    assert interrupted["subject"] == "tasks=498 tasks_per_node=3 trial=3"
    for one in (broke, interrupted):
        assert (one["details"]["session"], one["details"]["place"]) == ("s0001", "scratch")
        assert one["check"] == "Ior"
    assert "not_measured" not in found
    assert findings(swept, "--with", "s0001")["no_value"] == [broke], "the same run, once"


def test_json_has_a_finding_for_each_missing_point(swept):
    swept.keep(of(swept.file, BOTH, points=range(1, 32)))
    subjects = [one["subject"] for one in findings(swept)["not_measured"]]
    assert subjects == ["tasks=332 tasks_per_node=2 trial=3", "tasks=498 tasks_per_node=3 trial=3"]


def test_json_says_which_plateau_was_not_reached_and_which_rate_is_above_its_bound(swept):
    swept.keep(of(swept.file, BOTH))
    found = findings(swept)
    beyond = {one["metric"]: one["details"] for one in found["plateau_beyond"]}
    assert beyond["Ior.read [best of all]"]["last"] == 498
    assert beyond["Ior.read [best of all]"]["gain"] == pytest.approx(1)
    assert not any("Ior.write [best" in metric for metric in beyond)
    (above,) = found["above_bound"]
    assert above["metric"] == "Ior.read [best of all]"
    assert above["details"]["share"] == pytest.approx(3.92, abs=0.01)


def test_json_says_that_ranks_differ_that_memory_may_have_helped_and_what_was_left_out(swept):
    rates = {
        "Ior.write": write_rate,
        "Ior.write_slowest": lambda t, k: 2.0,
        "Ior.write_fastest": lambda t, k: 11.0,
    }
    first = {"points": "3", "left_out": f"4-{len(swept.file.points)}"}
    made = of(swept.file, rates, points=range(1, 4), provenance=first)
    swept.keep([replace(s, own_conditions={**s.own_conditions, "cached": "yes"}) for s in made])
    found = findings(swept)
    (unfair,), (cached,), (large,) = (
        found[kind] for kind in ("ranks_differ", "cached", "points_too_large")
    )
    assert (unfair["metric"], unfair["details"]["share"]) == ("Ior.write", pytest.approx(2 / 11))
    assert cached["metric"] == "Ior.write"
    assert large["details"]["count"] == len(swept.file.points) - 3


def test_json_says_that_the_sweep_file_has_changed_and_that_one_repetition_shows_no_fall(swept):
    swept.keep(of(swept.file, {"Ior.write": lambda t, k: 100.0 if t < 64 else 50.0}))
    path = swept.folder / "sweeps" / "made_tasks.yaml"
    path.unlink()
    assert findings(swept)["sweep_file_changed"][0]["details"]["sweep"] == "made_tasks"


def test_a_sweep_without_doubts_has_no_findings(swept):
    swept.keep(of(swept.file, {"Ior.write": lambda t, k: min(104.0 * t, 3328.0)}))
    assert json.loads(swept.ask("--json").out)["findings"] == []


KNOBS = """\
description: Two knobs
tool: ior
axes: {tasks: [4]}
fixed: {api: POSIX, layout: file_a_task, transfer: 1 MiB, block: 1 GiB}
knobs:
  one_at_a_time: {knob.lustre.osc.a: [8, 16], knob.lustre.osc.b: [32, 64]}
  corners: true
against: knob.lustre.osc.a
repetitions: 3
point_limit: 5m
"""


def knob_rates(swept, file, gain):
    """The samples of a sweep of knobs; gain: a value, by the settings of a and b."""
    found = of(file, {"Ior.write": lambda t, k: 100.0}, cv=0.01)
    return [
        sweeps_made.times(s, gain(s.dims["knob.lustre.osc.a"], s.dims["knob.lustre.osc.b"]))
        for s in found
    ]


def test_each_knob_turned_alone_has_its_own_table_and_the_best_setting_is_told(swept, monkeypatch):
    file = sweeps_made.write_sweep(swept.folder / "sweeps", monkeypatch, KNOBS, "made_knobs")
    swept.keep(knob_rates(swept, file, lambda a, b: 1 + 0.2 * (a == "16") * (b == "64")))
    done = swept.ask(name="made_knobs")
    assert done.code == 0, done
    told = next(line for line in done.out.splitlines() if "best of" in line)
    assert told.strip().startswith(
        "Ior.write [tasks 4, tasks_per_node 1]: best of 9 settings lustre.osc.a 16, "
        "lustre.osc.b 64: "
    )
    assert told.endswith(" %, better than as the machine has them")
    cells = [line.split() for line in done.out.splitlines()]
    heads = [row[0] for row in cells if row[1:2] == ["median"]]
    assert heads == ["knob.lustre.osc.a", "knob.lustre.osc.b"]
    first = [row[0] for row in cells if row and row[0] in ("own", "8", "16", "32", "64")]
    assert first == ["own", "8", "16", "own", "32", "64"]
    assert swept.ask("--figure", swept.folder / "k.svg", name="made_knobs").code == 0
    assert ">own</text>" in (swept.folder / "k.svg").read_text()


def test_the_best_setting_within_the_noise_is_no_gain(swept, monkeypatch):
    file = sweeps_made.write_sweep(swept.folder / "sweeps", monkeypatch, KNOBS, "made_knobs")
    swept.keep(knob_rates(swept, file, lambda a, b: 1.0))
    assert "which is no clear gain over the machine's own values" in (
        swept.ask(name="made_knobs").out
    )


def test_a_window_that_cannot_fill_the_path_is_bound_by_itself(swept, monkeypatch):
    text = """\
description: Windows
tool: tcp
axes: {window: [1 MiB, 4 MiB, 16 MiB, 64 MiB, 128 MiB]}
fixed: {tasks: 2, streams: 1}
against: window
point_limit: 1m
"""
    file = sweeps_made.write_sweep(swept.folder / "sweeps", monkeypatch, text, "made_windows")
    swept.keep(sweeps_made.over_link(file, lambda window: min(0.9 * window * 8 / 0.05, 9.4e9)))
    done = swept.ask(name="made_windows")
    assert done.code == 0, done
    rows = [line.split() for line in done.out.splitlines()]
    sizes = [row for row in rows if row[1:2] == ["MiB"]]
    assert [(" ".join(row[:2]), " ".join(row[-2:])) for row in sizes] == [
        ("1 MiB", "90 %"),
        ("4 MiB", "90 %"),
        ("16 MiB", "90 %"),
        ("64 MiB", "94 %"),
        ("128 MiB", "94 %"),
    ]
    assert "plateau from 64 MiB on" in done.out
    assert "94 % of the model's bound, the link (10 Gb/s)" in done.out
    assert "the path holds 59.6 MiB, its rate times its round trip" in done.out


def test_a_latency_has_a_lowest_value_and_no_plateau(swept, monkeypatch):
    text = """\
description: Messages
tool: messages
axes: {tasks: [2], size: [4 MiB]}
against: size
point_limit: 1m
"""
    file = sweeps_made.write_sweep(swept.folder / "sweeps", monkeypatch, text, "made_messages")
    swept.keep(sweeps_made.messages(file, [1, 1024, 2**20, 2**22]))
    done = swept.ask(name="made_messages")
    assert done.code == 0, done
    assert "MessageSweep.latency: lowest 2.001 us at 1 B" in done.out
    latency = next(line for line in done.out.splitlines() if "MessageSweep.latency: low" in line)
    assert "plateau" not in latency
    assert "a task" not in done.out


def test_a_time_over_several_tasks_is_not_divided_by_them(swept, monkeypatch):
    text = """\
description: Collectives
tool: collectives
axes: {tasks: [2, 4], size: [64 KiB]}
against: tasks
point_limit: 1m
"""
    file = sweeps_made.write_sweep(swept.folder / "sweeps", monkeypatch, text, "made_collectives")
    told = {"sweep": file.name, "sweep_hash": file.hash}
    head = sweeps_made.header(1, "Collectives", conditions=told)
    swept.keep(
        [
            Sample(head, "", "Collectives.barrier", Decimal(5), "us", dims=point.own_dims)
            for point in file.points
        ]
    )
    done = swept.ask(name="made_collectives")
    assert done.code == 0 and "Collectives.barrier, us" in done.out, done
    assert "a task" not in done.out


REAL = """\
description: Requests at a time
tool: fio
axes: {depth: [1, 2, 4]}
fixed: {block: 4 KiB, pattern: randread}
against: depth
point_limit: 30s
"""


@pytest.mark.tool("ReFrame", "fio")
def test_a_real_sweep_of_fio_is_measured_and_told(world):
    own = world.folder / "own"
    own.mkdir()
    (own / "real_depth.yaml").write_text(REAL)
    where = {"SITEPROOF_SWEEPS": str(own)}
    ran = world.run(
        "reframe",
        "-c",
        "sweeps/",
        "-r",
        "-S",
        "size=8",
        "--mode",
        "quick",
        "-n",
        "^RealDepth",
        **where,
    )
    assert ran.code == 0, str(ran)
    target = world.folder / "real.svg"
    done = world.inside("sweep", "real_depth", "--figure", target, **where)
    assert done.code == 0, str(done)
    assert "3 of 3 points" in done.out
    assert "FioSweep.iops: highest " in done.out
    assert "FioSweep.p99: lowest " in done.out
    rows = list(
        csv.DictReader(io.StringIO(world.inside("sweep", "real_depth", "--csv", **where).out))
    )
    assert {row["at"] for row in rows} == {"1", "2", "4"}
    assert all(float(row["median"]) > 0 for row in rows)
    assert ">FioSweep.iops, IOPS</text>" in target.read_text()
