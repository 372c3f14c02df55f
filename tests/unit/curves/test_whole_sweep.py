"""What a whole sweep gives the contract: highest rate, plateau, tasks on a node; and when nothing.

The sites are Jetstream's own, the rates those of the report's Table 2 where it prints some.
"""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
import sweeps_made
from reasons import kinds
from rows import rows
from sweeps_made import failed, of

from siteproof import sites
from siteproof.curves import whole_sweep
from siteproof.record import samples
from siteproof.record.finding import Kind
from siteproof.record.sessions import Sessions
from siteproof.verdict import judgement

SEED = sweeps_made.TASKS.replace("32, 64, 128, 166", "32, 48, 64, 96, 128, 166")
RANKS = """\
description: Tasks on an instance
tool: ior
axes: {tasks: [24, 48], tasks_per_node: [1, 2, 3, 4]}
fixed: {api: POSIX, layout: file_a_task, transfer: 1 MiB, block: 1 GiB}
against: tasks_per_node
lines: tasks
point_limit: 5m
"""


def write(tasks, per_node):
    return min(105 * tasks, 3325)


def read(tasks, per_node):
    return min(281 * tasks, 29766)


BOTH = {"Ior.write": write, "Ior.read": read}


@pytest.fixture(scope="module")
def site():
    """Jetstream's, with the criteria that speak of a whole sweep; nobody changes it."""
    with pytest.MonkeyPatch.context() as own:
        own.delenv("SITEPROOF_SITES", raising=False)
        whole = sites.load("jetstream-iu")
    of_sweeps = {key: one for key, one in whole.criteria.items() if key.endswith(OF_SWEEPS)}
    return replace(whole, criteria=of_sweeps)


OF_SWEEPS = ("IORPAR-R", "IORPAR-W", "PLATEAU-R", "PLATEAU-W", "RANKS3")


@pytest.fixture
def swept(site, tmp_path, monkeypatch):
    """`file` a sweep as the seed's; `run` makes samples of it on Jetstream."""

    class Made:
        file = sweeps_made.write_sweep(tmp_path / "sweeps", monkeypatch, SEED)

        @staticmethod
        def run(figures=BOTH, file=None, **keys):
            return of(file or Made.file, figures, **WHERE, **keys)

        @staticmethod
        def verdicts(found, only=OF_SWEEPS):
            asked = {key: one for key, one in site.criteria.items() if key.endswith(only)}
            given = whole_sweep.of_all(site, found)
            judged = judgement.judge_samples(
                replace(site, criteria=asked), [*found, *given.samples], "these", given
            )
            return {v.id.removeprefix("JS-5.1.2.1-"): v for v in judged.verdicts}

        @staticmethod
        def ranks(found):
            return Made.verdicts(found, ("RANKS3",))["RANKS3"]

    Made.site = site
    return Made


WHERE = {
    "system": "jetstream-iu",
    "partition": "instances",
    "environment": "virtual",
    "place": "volume",
}


def values(derived):
    return {s.metric: (s.value, s.unit) for s in derived.samples}


def test_a_whole_sweep_gives_maxima_plateaus_and_tasks_a_node(swept):
    given = whole_sweep.of_all(swept.site, swept.run())
    assert values(given) == {
        "Ior.read_max": (Decimal(29766), "MiB/s"),
        "Ior.write_max": (Decimal(3325), "MiB/s"),
        "Ior.read_plateau": (Decimal(128), "tasks"),
        "Ior.write_plateau": (Decimal(32), "tasks"),
        "Ior.tasks_per_node": (Decimal(3), "ranks"),
    }
    highest = next(s for s in given.samples if s.metric == "Ior.read_max")
    for name, value in {
        "tasks_from": "1",
        "tasks_to": "498",
        "tasks_per_node_from": "1",
        "tasks_per_node_to": "3",
        "repetitions": "3",
        "layout": "file_a_task",
        "file_system": "volume",
        "sweep": "made_tasks",
    }.items():
        assert highest.conditions[name] == value
    assert (highest.node, dict(highest.dims), highest.header.expected) == ("", {}, "")
    assert highest.why == "at 128 tasks"


def test_every_derived_sample_survives_being_written(swept, tmp_path):
    given = whole_sweep.of_all(swept.site, swept.run(cv=0.01)).samples
    path = samples.write(tmp_path, given[0].header, given)
    assert {s.key: s.value for s in samples.read(path)} == {s.key: s.value for s in given}


def test_its_conditions_are_those_that_a_criterion_may_name(swept):
    for sample in whole_sweep.of_all(swept.site, swept.run()).samples:
        known = {*swept.site.catalogue[sample.metric].conditions, "program", "mode", "sweep_hash"}
        assert set(sample.conditions) | set(sample.dims) <= known


def test_trap_J23_a_plateau_that_is_not_reached_is_no_number(swept):
    given = whole_sweep.of_all(swept.site, swept.run({"Ior.read": lambda t, k: 80.0 * t}))
    assert "Ior.read_plateau" not in values(given)
    why = given.reason("Ior.read_plateau", ["s0001"])
    assert (why.kind, why.metric) == (Kind.PLATEAU_BEYOND, "Ior.read_plateau")
    assert (why["sweep"], why["axis"], why["last"]) == ("made_tasks", "tasks", 498)
    assert given.reason("Ior.read_plateau", ["s0002"]) is None


@rows(
    "spoil",
    [
        lambda swept: swept.run(points=range(1, 39)),
        lambda swept: [*swept.run(points=range(1, 39)), failed(swept.file, 39, **WHERE)],
    ],
)
def test_an_incomplete_sweep_gives_nothing_and_says_so(swept, spoil):
    given = whole_sweep.of_all(swept.site, spoil(swept))
    assert given.samples == []
    why = given.reason("Ior.tasks_per_node", ["s0001"])
    assert why.kind is Kind.NOTE
    assert dict(why.details) == {
        "sweep": "made_tasks",
        "session": "s0001",
        "done": 38,
        "planned": 39,
    }


def test_a_resumed_sweep_is_whole_and_stands_in_the_session_that_ended_it(swept):
    found = [*swept.run(points=range(1, 30)), *swept.run(points=range(30, 40), run=2, resumes=1)]
    given = whole_sweep.of_all(swept.site, found).samples
    assert {s.header.session for s in given} == {"s0002"}
    assert len(given) == 5


def test_a_changed_sweep_file_gives_nothing_as_nobody_knows_what_is_missing(swept):
    found = swept.run()
    changed = [
        replace(s, header=replace(s.header, conditions={**s.header.conditions, "sweep_hash": "0"}))
        for s in found
    ]
    assert whole_sweep.of_all(swept.site, changed).samples == []


def test_a_changed_sweep_file_takes_nothing_back_where_the_samples_show_that_all_is_there(swept):
    def old(points):
        return [
            replace(
                s,
                header=replace(
                    s.header,
                    provenance={"points": "39"},
                    conditions={**s.header.conditions, "sweep_hash": "0"},
                ),
            )
            for s in swept.run(points=points)
        ]

    assert len(whole_sweep.of_all(swept.site, old(range(1, 40))).samples) == 5
    assert whole_sweep.of_all(swept.site, old(range(1, 39))).samples == []


def test_shared_files_are_another_figure(swept, tmp_path, monkeypatch):
    text = SEED.replace("layout: file_a_task", "layout: shared")
    shared = sweeps_made.write_sweep(tmp_path / "sweeps", monkeypatch, text, "made_shared")
    found = [
        replace(s, header=replace(s.header, conditions={**s.header.conditions, "layout": "shared"}))
        for s in swept.run(file=shared)
    ]
    assert whole_sweep.of_all(swept.site, found).samples == []


def test_each_transfer_size_has_a_maximum_of_its_own(swept, tmp_path, monkeypatch):
    text = SEED.replace("tasks_per_node: [1]}", "tasks_per_node: [1], transfer: [64 KiB, 1 MiB]}")
    text = text.replace(
        "{tasks: [332], tasks_per_node: [2]}",
        "{tasks: [332], tasks_per_node: [2], transfer: [64 KiB, 1 MiB]}",
    )
    text = text.replace(
        "{tasks: [498], tasks_per_node: [3]}",
        "{tasks: [498], tasks_per_node: [3], transfer: [64 KiB, 1 MiB]}",
    )
    text = text.replace(", transfer: 1 MiB, block", ", block")
    both = sweeps_made.write_sweep(tmp_path / "sweeps", monkeypatch, text, "made_transfers")
    found = [
        replace(s, value=s.value / 2 if s.dims["transfer"] == "65536" else s.value)
        for s in swept.run(file=both)
    ]
    given = {
        (s.metric, s.dims.get("transfer")): s.value
        for s in whole_sweep.of_all(swept.site, found).samples
    }
    assert given["Ior.read_max", "1048576"] == 2 * given["Ior.read_max", "65536"] == 29766


def ranks(loss):
    """Rates of which each further task on a node costs a share."""
    return lambda t, k: 100.0 * t * (1 - loss * (k - 1))


@rows(
    "loss, most, verdict",
    [
        (0.0, 4, "PASS"),
        (0.02, 3, "PASS"),
        (0.025, 3, "PASS"),
        (0.026, 2, "FAIL"),
        (0.06, 1, "FAIL"),
    ],
)
@pytest.mark.deep
def test_RANKS3_compares_the_same_tasks_where_a_sweep_has_them(
    swept, tmp_path, monkeypatch, loss, most, verdict
):
    file = sweeps_made.write_sweep(tmp_path / "sweeps", monkeypatch, RANKS, "made_ranks")
    found = swept.run({"Ior.write": ranks(loss), "Ior.read": ranks(0)}, file=file)
    given = whole_sweep.of_all(swept.site, found).samples
    assert [(s.metric, s.value) for s in given] == [("Ior.tasks_per_node", most)]
    assert given[0].conditions["compared_at"] == "the same tasks"
    assert given[0].why == ("by Ior.write" if loss else "by Ior.read")
    result = swept.ranks(found)
    assert (str(result.verdict), [n.node for n in result.nodes]) == (verdict, ["jetstream-iu"])


def test_RANKS3_of_a_sweep_over_nodes_compares_the_same_nodes(swept):
    found = swept.run(
        {"Ior.write": lambda t, k: 3000.0 if k < 3 else 2849.0, "Ior.read": lambda t, k: 3000.0}
    )
    result = swept.ranks(found)
    assert str(result.verdict) == "FAIL"
    assert result.nodes[0].sample.conditions["compared_at"] == "the same nodes"


def test_criteria_of_an_incomplete_sweep_are_incomplete_and_say_why(swept):
    result = swept.ranks(swept.run(points=range(1, 39)))
    (why,) = result.findings
    assert (str(result.verdict), why.kind) == ("INCOMPLETE", Kind.NOTE)
    assert (why["done"], why["planned"]) == (38, 39)
    assert all(node.findings == (why,) for node in result.nodes)


def test_a_failed_point_of_the_sweep_is_an_error_and_one_of_another_check_none(swept):
    lost = failed(swept.file, 39, **WHERE)
    assert str(swept.ranks([*swept.run(points=range(1, 39)), lost]).verdict) == "ERROR"
    other = replace(
        lost, header=replace(lost.header, time="2999-01-01T00:00:00+00:00", conditions={})
    )
    assert str(swept.ranks([*swept.run(), other]).verdict) == "PASS"


def test_without_a_sweep_it_was_not_measured(swept):
    result = swept.ranks([])
    assert (str(result.verdict), kinds(result)) == ("INCOMPLETE", [Kind.NOT_MEASURED])


def test_what_is_only_reported_decides_nothing(swept):
    found = swept.verdicts(swept.run(), OF_SWEEPS[:4])
    assert {key: str(one.verdict) for key, one in found.items()} == dict.fromkeys(
        OF_SWEEPS[:4], "SKIP"
    )


def test_the_verdict_rebuilds_derived_figures_from_what_is_kept(world, monkeypatch):
    """And the points of a sweep, also one that failed, accuse no node."""
    world.data.mkdir()
    world.site("jetstream-iu")
    file = sweeps_made.write_sweep(world.folder / "sweeps", monkeypatch, SEED)
    found = of(file, BOTH, **WHERE)
    samples.write(world.data / "perflogs", found[0].header, found)
    where = {"SITEPROOF_SWEEPS": str(world.folder / "sweeps")}
    then = ("--as-of", found[0].header.time)
    done = world.siteproof("verdict", "--system", "jetstream-iu", "--json", *then, **where)
    told = {c["id"]: c for c in json.loads(done.out)["criteria"]}
    assert told["JS-5.1.2.1-RANKS3"]["verdict"] == "PASS"
    assert told["JS-5.1.2.1-RANKS3"]["nodes"][0]["value"] == "3"
    asked = ("why", "JS-5.1.2.1-RANKS3", "--system", "jetstream-iu", *then)
    why = world.siteproof(*asked, **where).out
    assert "jetstream-iu: PASS, 3 ranks" in why
    kept = [s.metric for s in Sessions(world.data / "perflogs", "jetstream-iu").of(lambda _: True)]
    assert set(kept) == {"Ior.read", "Ior.write"}
    again = [*of(file, BOTH, points=[1, 2], run=2, **WHERE), failed(file, 3, run=2, **WHERE)]
    samples.write(world.data / "perflogs", again[0].header, again)
    done = world.siteproof("nodes", "--system", "jetstream-iu", "--json", **where)
    assert json.loads(done.out)["states"]["FAILED"] == ""


def test_compare_tells_what_became_of_a_whole_sweep(world, monkeypatch):
    world.data.mkdir()
    world.site("jetstream-iu")
    file = sweeps_made.write_sweep(world.folder / "sweeps", monkeypatch, SEED)
    for run, factor in ((1, 1.0), (2, 1.5)):
        found = [
            sweeps_made.times(s, factor if s.metric == "Ior.write" else 1.0)
            for s in of(file, BOTH, run=run, **WHERE)
        ]
        samples.write(world.data / "perflogs", found[0].header, found)
    done = world.siteproof(
        "compare",
        "s0001",
        "s0002",
        "--system",
        "jetstream-iu",
        "--json",
        SITEPROOF_SWEEPS=str(world.folder / "sweeps"),
    )
    told = {
        row["metric"]: (row["a"], row["b"], row["verdict"]) for row in json.loads(done.out)["rows"]
    }
    assert told["Ior.write_max"] == (3325, 4987.5, "better (one value)")
    assert told["Ior.read_max"] == (29766, 29766, "same (one value)")


def test_a_capped_run_answers_nothing_for_the_whole_sweep(swept):
    found = swept.run(points=[1, 12, 23])  # one task, three times
    capped = [
        replace(s, header=replace(s.header, conditions={**s.header.conditions, "cap": "tasks=1"}))
        for s in found
    ]
    made = whole_sweep.of_all(swept.site, capped)
    assert not [s for s in made.samples if s.metric.endswith("_max")]
    [reason] = {why.kind for _, why in made.lacks}
    assert reason is Kind.SWEEP_CAPPED
    assert {why.get("caps") for _, why in made.lacks} == {"tasks 1"}
