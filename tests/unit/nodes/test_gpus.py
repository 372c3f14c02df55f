"""A GPU is a unit of its own: judged, compared with all GPUs of the fleet, waived, and drained."""

import json
import re
from datetime import date
from decimal import Decimal

import gpus_made
import pytest
from fleets import header
from gpus_made import CHECK, CRITERIA, METRIC, even, run_of

from siteproof import sites
from siteproof.answers.criterion import judge
from siteproof.answers.expected import covered
from siteproof.record import pair_units
from siteproof.record.finding import Verdict
from siteproof.record.samples import Sample
from siteproof.sites.promise import Waiver
from siteproof.verdict.judgement import judge_samples

WAIVER = """\
W-FAN: {nodes: n017, gpus: '3', waives: GPU-PRODUCT, problem: fan, owner: ops, expires: 2999-12-31}
"""
TRANSFERS = """\
GPU-LINKS: {description: Every two GPUs, metric: GpuProbe.transfer, subject: gpu,
  at_least: 20 GB/s, source: contract, max_age: none}
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    def load(**keys):
        monkeypatch.setenv("SITEPROOF_SITES", str(gpus_made.write_site(tmp_path, **keys)))
        return sites.load("here")

    return load


@pytest.fixture
def fleet(world, monkeypatch):
    """The made fleet of 40 nodes, of 8 GPUs each; gives the output of a command on it."""

    def made(waivers=""):
        gpus_made.write_site(world.folder, waivers=waivers)
        gpus_made.keep(world.data / "perflogs", gpus_made.fleet())
        return lambda *words: world.inside(*words, "--system", "here").out

    return made


def verdicts(site, found):
    (result,) = judge_samples(site, found, "all").verdicts
    return {unit.node: unit.verdict for unit in result.nodes}, result.verdict


# ---- one criterion


def test_every_gpu_that_devices_state_owes_a_value(site):
    units, whole = verdicts(site(nodes=2, count=4), run_of(even(2, 4)))
    assert len(units) == 8 and set(units.values()) == {whole} == {Verdict.PASS}
    units, whole = verdicts(site(nodes=2, count=5), run_of(even(2, 4)))
    assert whole is Verdict.ERROR
    assert {unit for unit, one in units.items() if one is not Verdict.PASS} == {
        "n001 gpu4",
        "n002 gpu4",
    }


def test_a_gpu_that_was_good_before_and_is_missing_now_is_not_good(site):
    site = site(nodes=2)
    units, whole = verdicts(site, [*run_of(even(2)), *run_of(even(2, n001_gpu7=None), 2)])
    assert (whole, units.pop("n001 gpu7")) == (Verdict.ERROR, Verdict.ERROR)
    assert set(units.values()) == {Verdict.PASS}


def test_a_failure_of_a_node_is_one_of_each_of_its_gpus(site):
    site = site(nodes=2)
    failed = {unit: value for unit, value in even(2).items() if not unit.startswith("n001")}
    units, whole = verdicts(site, [*run_of(even(2)), *run_of({**failed, "n001": "timeout"}, 2)])
    assert whole is Verdict.ERROR
    assert {unit for unit, one in units.items() if one is Verdict.ERROR} == {
        f"n001 gpu{gpu}" for gpu in range(8)
    }


def test_a_node_without_a_line_leaves_each_of_its_gpus_without_an_answer(site):
    site, keys = site(nodes=2), {"expected": "n[001-002]"}
    only = {unit: value for unit, value in even(2).items() if unit.startswith("n002")}
    units, whole = verdicts(site, [*run_of(even(2)), *run_of(only, 2, **keys)])
    assert whole is Verdict.INCOMPLETE
    assert {unit for unit, one in units.items() if one is Verdict.INCOMPLETE} == {
        f"n001 gpu{gpu}" for gpu in range(8)
    }


def test_a_value_that_names_no_gpu_answers_for_none(site):
    of_node = run_of({"n001": Decimal(19000)})
    assert "gpu" not in of_node[0].dims
    assert verdicts(site(nodes=1), of_node)[1] is Verdict.INCOMPLETE


def test_the_median_of_all_gpus_is_one_value(site):
    criteria = CRITERIA.replace("subject: gpu,", "subject: gpu, scope: median,")
    (result,) = judge_samples(site(nodes=3, criteria=criteria), run_of(even(3)), "all").verdicts
    assert [unit.node for unit in result.nodes] == ["median of 24"]
    assert result.verdict is Verdict.PASS


def test_transfers_between_gpus_owe_each_direction_of_each_two(site):
    site = site(nodes=1, count=3, criteria=TRANSFERS)
    criterion = site.criteria["GPU-LINKS"]
    head, metric, value = header(1, CHECK, conditions={}), criterion.metric, Decimal(25)
    found = [
        Sample(head, "n001", metric, value, "GB/s", dims={"gpu": gpu, "peer_gpu": peer})
        for gpu, peer in (("0", "1"), ("1", "0"), ("0", "2"), ("1", "2"), ("2", "0"))
    ]
    owed, *_ = covered(site, "GPU-LINKS", criterion, found, date(2026, 11, 2))
    result = judge("GPU-LINKS", criterion, found, owed)
    bad = {unit.node for unit in result.nodes if unit.verdict is not Verdict.PASS}
    assert (len(owed), bad) == (6, {"n001 gpu2>gpu1"})


def test_a_unit_names_node_and_gpus():
    for unit, node, gpus in (
        ("n017 gpu3", "n017", ("3",)),
        ("n017 gpu3>gpu5", "n017", ("3", "5")),
        ("n017", "n017", ()),
        ("a>b over gpu3", "a>b over gpu3", ()),
    ):
        assert (pair_units.node_of(unit), pair_units.gpus_of(unit)) == (node, gpus)


def test_a_waiver_of_a_gpu_covers_that_gpu_alone():
    keys = {"waives": "all", "problem": "fan", "owner": "ops", "expires": "2999-12-31"}
    waiver = Waiver(nodes="n017", gpus="3,5", **keys)
    covers = [waiver.is_of(u) for u in ("n017 gpu3", "n017 gpu4", "n017", "n017 gpu1>gpu5")]
    assert covers == [True, False, False, True]
    assert str(waiver.units) == "n017 gpu[3,5]"


# ---- mistakes


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("criteria", "subject: gpu", "subject: node", f"'{METRIC}' is of GPUs"),
        ("criteria", METRIC, "Stream.triad", "'Stream.triad' is not of GPUs"),
        ("system", "devices: {gpu: {count: 8}}", "sockets: 2", "no GPU is stated of compute"),
    ],
)
def test_a_criterion_on_gpus_that_cannot_be_judged_is_a_mistake(
    site, tmp_path, file, old, new, said
):
    site()
    path = tmp_path / f"sites/here/{file}.yaml"
    path.write_text(path.read_text().replace(old, new).replace("17000 GFLOPS", "1 GFLOPS"))
    with pytest.raises(sites.site.UserErrors) as refused:
        sites.load("here")
    assert said in str(refused.value)


# ---- the made fleet: a slow GPU, a missing one, a wrong answer


def lines(text):
    return re.sub(r"\n {6,}", "  ", text)


def test_verdict_and_nodes_name_each_bad_gpu_and_no_other(fleet):
    ask = fleet()
    verdict = lines(ask("verdict"))
    assert "GPUs: 317 passed  2 failed n009 gpu2,n017 gpu3  1 without a value n005 gpu7" in verdict
    assert "worst n017 gpu3" in verdict
    nodes = lines(ask("nodes"))
    for said in (
        "FAILED  n005 gpu7  GpuProbe of gpu7: no value: it is missing",
        "FAILED  n009 gpu2  GpuProbe of gpu2: wrong answer: invalid",
        "FAILED  n017 gpu3  GPU-PRODUCT, GpuProbe.gflops  16300 GFLOPS",
        "nodes of here: 3 FAILED, 37 OK of 40",
    ):
        assert said in nodes
    assert "GpuProbe.gflops of gpu3: 16300 GFLOPS is 14.2 % below the fleet median" in lines(
        ask("why", "n017")
    ).replace("  z", " z")
    assert ask("nodes", "--metric", METRIC, "--plain").splitlines()[1].startswith("n017 gpu3\t")


def test_the_gate_keeps_the_nodes_out_but_for_the_gpu_that_a_waiver_names(fleet):
    answer = json.loads(fleet(WAIVER)("gate", "--json"))
    out = {one["node"] for one in answer["nodes"] if not one["back"]}
    assert out == {"n005", "n009"}


def test_files_for_programs_have_the_gpu_and_the_page_agrees_with_itself(fleet, world):
    ask = fleet(WAIVER)
    assert 'node="n017",gpu="3"' in ask("export", "openmetrics")
    assert "[n017 gpu3]" in ask("export", "junit", "--per-node")
    (criterion,) = json.loads(ask("verdict", "--json"))["criteria"]
    units = {unit["node"]: unit["verdict"] for unit in criterion["nodes"]}
    assert (len(units), units["n005 gpu7"]) == (320, "ERROR")
    ask("report", "--output", str(world.folder / "page.html"))
    done = world.run("python3", "-I", gpus_made.RECOMPUTE, world.folder / "page.html")
    assert (done.code, "1 agree, 0 differ" in done.out) == (0, True)


def test_what_a_gpu_lost_against_its_own_past_is_a_change_and_leaves_it_out_of_the_baseline(world):
    gpus_made.write_site(world.folder, nodes=6)
    fell = {"n002_gpu3": Decimal("17200.0")}
    runs = [run_of(even(6, seed=run, **(fell if run > 14 else {})), run) for run in range(1, 27)]
    gpus_made.keep(world.data / "perflogs", runs)
    changes = world.inside("trend", "--system", "here").out
    assert "worse  GpuProbe.gflops  n002 gpu3  -9.6 %" in changes
    proposed = world.inside("calibrate", "--system", "here")
    assert "+  scope: every gpu" in proposed.out
    assert "n002 gpu3 is not stable" in proposed.err


def test_a_node_that_was_never_measured_is_named_once_and_not_for_each_of_its_gpus(world):
    gpus_made.write_site(world.folder, nodes=6)
    world.data.mkdir()
    answer = world.inside("nodes", "--system", "here").out
    assert f"UNTESTED  n[001-006]\n      {METRIC} of gpu[0-7]: not measured\n" in answer
