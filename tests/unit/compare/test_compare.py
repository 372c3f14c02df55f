"""Before and after: the direction, the noise, and what is in one of them only."""

from decimal import Decimal
from itertools import product

import fleets
import pytest
import reasons
from fleets import names, run_of

from siteproof import sites
from siteproof.analysis import before_after as rules
from siteproof.analysis.before_after import Effect
from siteproof.compare import comparison
from siteproof.compare.published import results
from siteproof.record import descriptions, series
from siteproof.record.samples import Sample
from siteproof.record.sessions import Sessions
from siteproof.wording.findings import change


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Compares two lists of samples of a site of eight nodes."""
    site = fleets.load(tmp_path / "sites", monkeypatch)
    return lambda a, b: comparison.compare(site, a, b, tmp_path / "perflogs")


def row(found, name="Stream.triad"):
    (one,) = [r for r in found.rows if r.name == name]
    return one


# ---- the rule alone


def test_a_tuning_that_helped_one_figure_and_spoilt_others():
    for what, before, after, told, word in (
        ("parallel write", 885, 1253, "+41.6 %", "better (one value)"),
        ("single read", 239, 95, "-60.3 %", "worse (one value)"),
        ("single write", 96, 68, "-29.2 %", "worse (one value)"),
        ("parallel read", 14611, 14217, "-2.7 %", "undecidable (one value)"),
    ):
        found = rules.compare([before], [after], "higher")
        assert (f"{found.change:+.1%}".replace("%", " %"), found.text) == (told, word), what


@pytest.mark.parametrize("site", ["jetstream-iu", "jetstream-tacc"])
def test_a_rerun_with_nothing_changed_is_undecidable(site, monkeypatch, tmp_path):
    """Where the rule for one value comes from: April and May 2016 in Table 2."""
    found = of_published(site, monkeypatch, tmp_path, "acceptance-2016-04", "review-2016-05")
    assert {r.name: r.change.text for r in found.rows} == {
        "BlockStorage.read": "undecidable (one value)",
        "BlockStorage.write": "undecidable (one value)",
    }


def of_published(name, monkeypatch, tmp_path, *campaigns):
    """Two campaigns of what a site's report states, compared."""
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    site, perflogs = sites.load(name), tmp_path / "perflogs"
    path = site.folder / "published.csv"
    results.keep(path, results.read_published(path).values(), perflogs)
    everything = Sessions(perflogs, name).of(lambda _: True)
    sides = ([s for s in everything if s.header.campaign == c] for c in campaigns)
    return comparison.compare(site, *sides, perflogs)


def test_the_tuning_of_jetstream_by_its_own_table(monkeypatch, tmp_path):
    found = of_published("jetstream-tacc", monkeypatch, tmp_path, "before-tuning", "after-tuning")
    told = [
        (r.name, r.change.before, r.change.after, r.unit, change(r.change.change), r.change.text)
        for r in found.rows
        if r.unit != "tasks"
    ]
    assert told == [
        ("IorSingle.read", 239, 95, "MB/s", "-60.3 %", "worse (one value)"),
        ("IorSingle.write", 96, 68, "MB/s", "-29.2 %", "worse (one value)"),
        ("Ior.read_max", 14611, 14217, "MB/s", "-2.7 %", "undecidable (one value)"),
        ("Ior.write_max", 885, 1253, "MB/s", "+41.6 %", "better (one value)"),
    ]
    landmarks = {r.name: (r.change.before, r.change.after) for r in found.rows if r.unit == "tasks"}
    assert landmarks == {"Ior.write_max_tasks": (48, 32), "Ior.write_plateau": (32, 32)}
    differences = "stated unknown vs more than"  # 128 tasks, and more than 166: the end is unknown
    assert reasons.comparisons(found.not_comparable) == [
        (f"Ior.read_{name}", "system", differences) for name in ("max_tasks", "plateau")
    ]
    assert not (found.only_a or found.only_b or found.changed)


def test_trap_J22_a_mean_is_not_compared_with_a_maximum(monkeypatch, tmp_path):
    found = of_published("jetstream-tacc", monkeypatch, tmp_path, "june-2016", "after-tuning")
    assert found.rows == []
    assert reasons.comparisons(found.not_comparable[:1]) == [
        ("IorSingle.read", "system", "published mean vs maximum")
    ]


def test_more_values_decide_what_one_does_not():
    before, after = [14611, 14600, 14620, 14590], [14217, 14200, 14230, 14190]
    assert rules.compare(before, after, "higher").text == "worse"
    noisy = [14611, 13600, 15620, 14590], [14217, 13200, 15230, 14190]
    assert rules.compare(*noisy, "higher").text == "same"


WORDS = [
    ([5, 5], [5, 5], "higher", "same"),
    ([0, 0], [0, 0], "lower", "same"),
    ([0, 0], [3, 3], "lower", "worse"),
    ([3, 3], [0, 0], "lower", "better"),
    ([0], [1], "lower", "worse"),
    ([10, 10], [20, 20], "neither", "changed"),
    ([100, 100], [101.9, 101.9], "higher", "same"),
    ([100, 100], [103, 103], "lower", "worse"),
    ([5], [5], "higher", "same"),
]


def test_the_word_follows_the_direction():
    for before, after, better, word in WORDS:
        assert rules.compare(before, after, better).effect == word, (before, after, better)


def test_the_worst_node_lost_more_than_its_sisters():
    before = {n: 100.0 for n in "abcdef"}
    after = {**{n: 90.0 for n in "abcdef"}, "c": 60.0}
    assert rules.worst(before, after, "higher") == [("c", pytest.approx(-0.4))]
    assert rules.worst(before, {n: 110.0 for n in "abcdef"} | {"c": 150.0}, "lower")[0][0] == "c"
    assert rules.worst(before, {"z": 1.0}, "higher") == []
    assert rules.worst({"a": 0.0}, {"a": 1.0}, "higher") == []
    assert rules.worst(before, after, "neither") == []


def test_a_node_that_is_not_below_the_others_is_as_they_are_whatever_it_was():
    after = {"a": 101.0, "b": 100.0, "c": 99.0, "d": 100.5, "e": 60.0}
    assert rules.as_others(after, "higher") == set("abcd")
    assert rules.as_others({n: 1 / v for n, v in after.items()}, "lower") == set("abcd")
    assert rules.as_others({"a": 1.0, "b": 1.0, "c": 1.0}, "higher") == set()


# ---- two campaigns


def test_the_same_twice_is_the_same(beside):
    found = beside(run_of(dict.fromkeys(names(8), 100)), run_of(dict.fromkeys(names(8), 100), 2))
    assert row(found).change.effect is Effect.SAME
    assert not (found.not_comparable or found.only_a or found.only_b or found.changed)


def test_a_fall_is_told_with_its_share_and_the_nodes_that_lost_most(beside):
    after = {**dict.fromkeys(names(8), 90), "n005": 50}
    found = row(beside(run_of(dict.fromkeys(names(8), 100)), run_of(after, 2)))
    assert (found.change.before, found.change.after) == (100, 90)
    assert found.change.change == pytest.approx(-0.1)
    assert found.change.effect is Effect.WORSE
    assert found.worst == [("n005", pytest.approx(-0.5))]


def test_what_is_on_one_side_only_is_told_and_not_mixed_in(beside):
    a = run_of({**dict.fromkeys(names(8)[:6], 100), "n008": 500})
    b = [
        *run_of(dict.fromkeys(names(8)[:7], 100), 2),
        *run_of({"n001": 5}, 2, "Hpl.gflops", "GFLOPS"),
    ]
    found = beside(a, b)
    assert str(row(found).nodes) == "n[001-006]"
    assert row(found).change.before == 100
    assert reasons.measured(found.only_a) == [("Stream.triad", "n008")]
    assert reasons.measured(found.only_b) == [("Hpl.gflops", "n001"), ("Stream.triad", "n007")]


def test_no_node_in_both_is_not_comparable(beside):
    found = beside(run_of({"n001": 100}), run_of({"n002": 100}, 2))
    assert reasons.comparisons(found.not_comparable) == [("Stream.triad", "compute", None)]


def test_another_problem_is_not_comparable_and_the_difference_is_named(beside):
    small = run_of({"n001": 90}, 1, "Hpl.gflops", "GFLOPS", conditions={"n": "3000"})
    large = run_of({"n001": 700}, 2, "Hpl.gflops", "GFLOPS", conditions={"n": "92736"})
    found = beside(small, large)
    assert found.rows == []
    assert reasons.comparisons(found.not_comparable) == [
        ("Hpl.gflops", "compute", "n 3000 vs 92736")
    ]


def test_a_block_more_of_a_problem_is_comparable(beside):
    a = run_of({"n001": 700}, 1, "Hpl.gflops", "GFLOPS", conditions={"n": "92736"})
    b = run_of({"n001": 700}, 2, "Hpl.gflops", "GFLOPS", conditions={"n": "92928"})
    assert row(beside(a, b), "Hpl.gflops").change.effect is Effect.SAME


def test_an_acceptance_is_compared_with_a_maintenance_and_not_with_a_quick_run(beside):
    a = run_of({"n001": 100}, mode="acceptance")
    assert len(beside(a, run_of({"n001": 100}, 2)).rows) == 1
    found = beside(a, run_of({"n001": 100}, 2, mode="quick"))
    assert reasons.comparisons(found.not_comparable) == [
        ("Stream.triad", "compute", "mode maintenance vs quick")
    ]


def test_other_software_is_a_change_and_no_hindrance(beside):
    a = run_of(
        {"n001": 100},
        conditions={"blas_kernel": "Haswell", "program": "xhpl"},
        provenance={"kernel": "6.1", "suite": "a", "user": "ann"},
    )
    b = run_of(
        {"n001": 150},
        2,
        conditions={"blas_kernel": "SkylakeX", "program": "xhpl"},
        provenance={"kernel": "6.12", "suite": "a", "user": "bob"},
    )
    found = beside(a, b)
    assert row(found).change.effect is Effect.BETTER
    assert reasons.changes(found.changed) == [
        ("kernel", "6.1", "6.12", ""),
        ("Stream blas_kernel", "Haswell", "SkylakeX", ""),
    ]


def test_one_node_with_several_runs_shows_its_own_noise(beside):
    a = [s for run, v in enumerate([100, 101, 99], 1) for s in run_of({"n001": v}, run)]
    b = [s for run, v in enumerate([90, 91, 89], 5) for s in run_of({"n001": v}, run)]
    found = row(beside(a, b)).change
    assert found.text == "worse"
    assert 0 < found.noise < 0.02


def test_a_failure_is_no_value(beside):
    a = run_of(dict.fromkeys(names(2), 100))
    b = [*run_of({"n001": 100}, 2), fleets.broken("n002", "invalid", 2)]
    found = beside(a, b)
    assert reasons.measured(found.only_a) == [("Stream.triad", "n002")]


def parameters(run, **values):
    head = fleets.header(run, "HostParameters")
    return [
        Sample(head, n, "HostParameters.sysctl.net.core.rmem_max", text, "text")
        for n, text in values.items()
    ]


def test_a_host_parameter_that_changed_is_told_once_with_its_nodes(beside):
    a = parameters(1, n001="212992", n002="212992", n003="5", n004="9")
    b = parameters(2, n001="16777216", n002="16777216", n003="5")
    assert reasons.changes(beside(a, b).changed) == [
        ("HostParameters.sysctl.net.core.rmem_max", "212992", "16777216", "n[001-002]")
    ]


def test_firmware_that_changed_is_told_once_with_its_nodes(beside, tmp_path):
    sides = []
    for run, version in ((1, "1.9"), (2, "2.1")):
        head = fleets.header(run, "SystemDescription")
        descriptions.write(
            tmp_path / "perflogs", head, {n: {"bios.version": version} for n in names(8)}
        )
        sides.append([Sample(head, n, descriptions.COUNT, Decimal(1), "count") for n in names(8)])
    assert reasons.changes(beside(*sides).changed) == [("bios.version", "1.9", "2.1", "n[001-008]")]


def test_nothing_beside_nothing_is_nothing(beside):
    assert beside([], []) == comparison.Comparison()


def test_the_pairs_of_a_bisection_are_one_metric_whose_worst_pairs_are_named(beside):
    def bisection(run, slow):
        head = fleets.header(run, "Bisection", conditions={"program": "mpi4py", "tasks": "8"})
        for a, b in product(names(8), repeat=2):
            value = Decimal(slow if (a, b) == ("n002", "n007") else 1000)
            dims = {"tasks": "8", "from": a, "to": b}
            if a != b:
                yield Sample(head, "", "Bisection.pair", value, "MB/s", dims=dims)

    found = beside(list(bisection(1, 1000)), list(bisection(2, 400)))
    (pairs,) = found.rows
    assert (pairs.name, pairs.change.effect) == ("Bisection.pair [tasks 8]", Effect.SAME)
    assert pairs.worst == [("n002>n007", pytest.approx(-0.6))]


# ---- two sessions of a sweep


def swept(run, curve, trials=(0, 1, 2), noise=0.01, **conditions):
    """A session of a sweep: each task count with some trials around its rate."""
    head = fleets.header(
        run, "Ior", conditions={"program": "ior", "sweep": "ior_tasks_of_mine", **conditions}
    )
    return [
        Sample(
            head,
            "",
            "Ior.write",
            Decimal(f"{rate * (1 + noise * (t - 1)):.2f}"),
            "MiB/s",
            trial=t + 1,
            dims={"tasks": str(tasks), "tasks_per_node": "1"},
        )
        for tasks, rate in curve.items()
        for t in trials
    ]


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """The sweep whose axis the figures are against."""
    (tmp_path / "ior_tasks_of_mine.yaml").write_text(
        "description: Mine\ntool: ior\naxes: {tasks: [1, 2]}\nagainst: tasks\npoint_limit: 1m\n"
        "fixed: {transfer: 1 MiB, block: 1 MiB}\n"
    )
    monkeypatch.setenv("SITEPROOF_SWEEPS", str(tmp_path))


def test_two_sessions_of_a_sweep_point_by_point_and_by_their_highest(beside, tasks):
    a = swept(1, {1: 100, 2: 200, 4: 300, 8: 290}, sweep_hash="a")
    b = swept(2, {1: 100, 2: 150, 4: 280, 8: 400, 16: 900}, sweep_hash="b")
    found = beside(a, b)
    words = {r.name: str(r.change.effect) for r in found.rows}
    assert words == {
        "Ior.write [tasks 1, tasks_per_node 1]": "same",
        "Ior.write [tasks 2, tasks_per_node 1]": "worse",
        "Ior.write [tasks 4, tasks_per_node 1]": "worse",
        "Ior.write [tasks 8, tasks_per_node 1]": "better",
        "Ior.write [tasks_per_node 1], highest of 4: tasks 4 -> 8": "better",
    }
    best = row(found, "Ior.write [tasks_per_node 1], highest of 4: tasks 4 -> 8").change
    assert (best.before, best.after) == (300, 400)
    assert reasons.measured(found.only_b) == [("Ior.write [tasks 16, tasks_per_node 1]", "here")]


def test_of_a_sweep_that_is_gone_only_the_points_are_compared(beside):
    found = beside(swept(1, {1: 100, 2: 200}), swept(2, {1: 100, 2: 200}))
    assert [r.name for r in found.rows] == [
        "Ior.write [tasks 1, tasks_per_node 1]",
        "Ior.write [tasks 2, tasks_per_node 1]",
    ]


def test_a_sweep_without_repetitions_decides_only_what_is_clear(beside):
    found = beside(swept(1, {1: 100, 2: 200}, [1]), swept(2, {1: 90, 2: 120}, [1]))
    assert (
        row(found, "Ior.write [tasks 1, tasks_per_node 1]").change.text == "undecidable (one value)"
    )
    assert row(found, "Ior.write [tasks 2, tasks_per_node 1]").change.text == "worse (one value)"


def test_the_figures_of_a_sweep_are_no_node_of_the_fleet(beside, tmp_path, monkeypatch):
    site = fleets.load(tmp_path / "sites", monkeypatch)
    assert series.collect(site, swept(1, {1: 100})) == {}
    assert len(series.collect(site, swept(1, {1: 100}), of_system=True)) == 1
