"""What the five reports state, judged: who misses, who keeps, and what cannot be said."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from documents_checked import check
from last_lines import answer_lines

from siteproof import sites
from siteproof.answers.criterion import Verdict
from siteproof.compare.published import results
from siteproof.compare.published.results import Answer
from siteproof.nodes import states
from siteproof.record import samples
from siteproof.record.finding import Kind
from siteproof.record.samples import Sample
from siteproof.sites import site_tables
from siteproof.verdict.judgement import judge_samples

SEEDS = ("jetstream-iu", "jetstream-tacc", "sc11-wan", "magellan", "extenci", "nebula-sriov")
STORAGE = ("BlockStorage", "IorSingle")


@pytest.fixture(scope="module")
def seed(tmp_path_factory):
    """A site by its name and the samples of what is published of it, both read once."""
    held, folder = {}, tmp_path_factory.mktemp("perflogs")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SITEPROOF_SITES", raising=False)
        for name in SEEDS:
            site = sites.load(name)
            path = site.folder / "published.csv"
            results.keep(path, results.read_published(path, name).values(), folder)
            held[name] = site, results.read(folder, name)
    return held.__getitem__


def judged_on(seed, name, *keys):
    """The verdicts on all that is published of a site, of these criteria, by their names."""
    site, stated = seed(name)
    few = replace(site, criteria={key: site.criteria[key] for key in keys or site.criteria})
    return {v.id: v for v in judge_samples(few, stated, "all").verdicts}


def table(seed, name, title):
    """The rows of a table, each by its columns."""
    (found,) = [t for t in results.tables(*seed(name)) if t.title.startswith(title)]
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def judged(seed, name, answer, checks=None):
    return {
        (one.criterion_id, one.sample.header.campaign, str(one.sample.value))
        for one in results.judged(*seed(name))
        if one.answer is answer and (not checks or one.sample.metric.startswith(checks))
    }


# ---- seed 000: Jetstream


def test_five_figures_of_storage_miss_their_target_and_no_other_does(seed):
    assert judged(seed, "jetstream-tacc", Answer.MISSES, STORAGE) == {
        ("JS-4.1.2-READ", "review-2016-05", "198"),
        ("JS-4.1.2-WRITE", "review-2016-05", "90"),
        ("JS-5.1.2.1-IORSINGLE-W", "before-tuning", "96"),
        ("JS-5.1.2.1-IORSINGLE-R", "after-tuning", "95"),
        ("JS-5.1.2.1-IORSINGLE-W", "after-tuning", "68"),
    }
    assert judged(seed, "jetstream-iu", Answer.MISSES, STORAGE) == set()
    assert len(judged(seed, "jetstream-tacc", Answer.KEEPS, STORAGE)) == 8
    assert len(judged(seed, "jetstream-iu", Answer.KEEPS, STORAGE)) == 10


def test_apart_from_storage_only_what_was_tuned_later_and_slips_of_the_pen_miss(seed):
    def rest(name):
        return judged(seed, name, Answer.MISSES) - judged(seed, name, Answer.MISSES, STORAGE)

    slips = {
        ("JS-2-TOTALS-CORES-M630", "", "15360"),  # both sites
        ("JS-2-TOTALS-CORES-R730", "", "960"),  # twice the 40 * 12 of its processors
        ("JS-2-TOTALS-RAM-R730", "", "1.2"),  # 20 * 64 GB
        ("JS-2-TOTALS-SYSDISK-R730", "", "16"),  # 20 * 2 * 200 GB
    }
    assert rest("jetstream-iu") == slips | {  # the goal of May 2016, the mean of 2015
        ("JS-5.1.1.4-TCP", "performance-pass", "1.0")
    }
    assert rest("jetstream-tacc") == slips | {
        ("JS-5.1.1.4-UDP", "network-before-tuning", "0.9"),
        ("JS-5.1.1.4-BURSTS", "network-before-tuning", "15"),
        ("JS-5.1.1.4-BURSTS", "network-before-tuning", "20"),
        ("JS-5.1.1.4-BURSTL", "network-before-tuning", "60"),
    }


def test_the_other_unit_turns_one_of_the_five_and_is_told(seed):
    rows = table(seed, "jetstream-tacc", "Published values against")
    told = {r["value"]: r["remarks"] for r in rows if "MiB/s" in r["remarks"]}
    assert told == {"maximum 96 MB/s": "read as MiB/s it would be 100.7 MB/s, and keep it"}
    rows = table(seed, "jetstream-iu", "Other published")
    assert [
        (r["value"], r["in the tool's unit"])
        for r in rows
        if r["metric"].startswith("Ior.read_max ")
    ] == [("29766 MB/s", "31212 MB/s, +4.86 %")]


def test_memory_printed_in_TB_is_what_the_blades_have_in_GiB(seed):
    rows = table(seed, "jetstream-iu", "Published values against")
    (ram,) = [r for r in rows if r["value"] == "40 TB"]
    assert (ram["answer"], ram["remarks"]) == (
        Answer.KEEPS,
        "40 TiB is what the bound is, rounded as printed",
    )


def test_a_mean_that_keeps_a_promise_on_each_node_says_that_theirs_are_not_published(seed):
    rows = table(seed, "jetstream-iu", "Published values against")
    (hpl,) = [r for r in rows if r["criterion"] == "JS-4.1.1-HPL"]
    assert (hpl["answer"], hpl["value"]) == (Answer.KEEPS, "mean 697 GFLOPS")
    assert hpl["remarks"] == "per-node values not published; not stated: memory_share"


def test_means_and_maxima_of_one_metric_are_told_apart(seed):
    """Jetstream acceptance report, Table 2: rows to June are means, those of August maxima."""
    rows = table(seed, "jetstream-iu", "Published values against")
    assert {r["value"] for r in rows if r["criterion"] == "JS-5.1.2.1-IORSINGLE-R"} == {
        "mean 279 MB/s",
        "maximum 281 MB/s",
    }


def ratios(seed, name):
    """Ratio and value of each, with what is printed and the remark."""
    return {
        (r["ratio"].partition(" ")[0], r["worked out"]): (r["printed"], r["remark"])
        for r in table(seed, name, "Ratios")
    }


def test_random_access_is_worked_out_and_shown_with_the_stated_order(seed):
    for name, read, write in (
        ("jetstream-iu", "0.1868 x", "0.09827 x"),
        ("jetstream-tacc", "0.2389 x", "0.07968 x"),
    ):
        found = ratios(seed, name)
        assert found["RandomIo.read", read] == ("~ 0.2 x", ""), name
        assert found["RandomIo.write", write] == ("~ 0.1 x", ""), name


def test_landmarks_are_labelled_and_what_contradicts_itself_is_named(seed):
    found = ratios(seed, "jetstream-iu")
    assert found["Ior.read_plateau", "1.005 x"] == ("", "396 is beyond 394")
    assert found["Ior.read_max", "75.5 MB/s for each of 394"] == ("", "")
    assert found["Ior.write_max", "8.03 MB/s for each of 414"] == ("", "")
    landmarks = [
        {r["value"] for r in table(seed, name, "Other published") if r["it is a"] == "landmark"}
        for name in ("jetstream-iu", "jetstream-tacc")
    ]
    assert "350 to 400 tasks" in landmarks[0]
    assert "> 166 tasks" in landmarks[1]


# ---- what verdict says of them


STREAM, READ, WRITE = "JS-4.1.1-STREAM", "JS-5.1.2.1-IORSINGLE-R", "JS-5.1.2.1-IORSINGLE-W"
OF_CAMPAIGN = {
    "review-2016-05": {"JS-4.1.2-READ": "FAIL", "JS-4.1.2-WRITE": "FAIL"},
    "before-tuning": {READ: "INCOMPLETE", WRITE: "FAIL"},
    "after-tuning": {READ: "FAIL", WRITE: "FAIL"},
    "performance-pass": {"JS-4.1.1-HPL": "INCOMPLETE", STREAM: "INCOMPLETE"},
}


def test_a_figure_that_misses_fails_and_one_that_keeps_decides_nothing(seed):
    site, stated = seed("jetstream-tacc")
    for campaign, verdicts in OF_CAMPAIGN.items():
        few = replace(site, criteria={key: site.criteria[key] for key in verdicts})
        chosen = [s for s in stated if s.header.campaign == campaign]
        found = {v.id: v for v in judge_samples(few, chosen, campaign).verdicts}
        assert {key: one.verdict for key, one in found.items()} == verdicts
        for key in verdicts:
            (why,) = found[key].findings
            assert (why.kind, why["own"]) == (Kind.PUBLISHED, 0), (campaign, key)
            assert why["keeps"] == ("no" if verdicts[key] == "FAIL" else "yes"), (campaign, key)
        if campaign == "review-2016-05":
            (why,) = found["JS-4.1.2-READ"].findings
            assert (why["source"], why.value, why.unit) == ("mean", "198", "MB/s")


@pytest.mark.deep
def test_of_two_campaigns_of_one_date_the_one_further_down_is_the_later(seed):
    """After tuning bears the date of before, and is what the tuning led to."""
    found = judged_on(seed, "jetstream-tacc", READ, WRITE)
    assert {key: v.findings[0].value for key, v in found.items()} == {READ: "95", WRITE: "68"}
    assert {v.verdict for v in found.values()} == {Verdict.FAIL}


def test_without_any_session_verdict_speaks_of_what_others_published(world):
    world.site("jetstream-iu")
    world.data.mkdir()
    world.inside("import", "--system", "jetstream-iu", "--apply")
    done = world.inside("verdict", "--system", "jetstream-iu", "--json")
    found = json.loads(done.out)
    assert found["samples_of"] == "published values; no session yet"
    assert done.code == 3  # nothing is decided: what keeps a promise is a mean or a maximum
    (hpl,) = [c for c in found["criteria"] if c["id"] == "JS-4.1.1-HPL"]
    (why,) = hpl["findings"]
    assert (hpl["verdict"], why["kind"], why["value"]) == ("INCOMPLETE", "published", "697")
    assert (why["details"]["source"], why["details"]["keeps"]) == ("mean", "yes")


@pytest.mark.deep
def test_no_published_figure_of_any_seed_passes_a_criterion_or_is_told_as_measured(seed):
    failed = {}
    for name in SEEDS:
        judged = judge_samples(*seed(name), "all")
        assert Verdict.PASS not in {v.verdict for v in judged.verdicts}, name
        assert judged.unjudged == [], name
        nodes = [n for v in judged.verdicts for n in v.nodes]
        failed[name] = sum(n.verdict is Verdict.FAIL for n in nodes)
        if name == "jetstream-tacc":
            misses = {v.id for v in judged.verdicts if v.verdict is Verdict.FAIL}
            assert misses == {READ, WRITE}
    assert failed == dict.fromkeys(SEEDS, 0) | {"extenci": 4}, "only of them there are values"


def test_a_pair_whose_own_published_rate_misses_fails_alone(seed):
    (found,) = judged_on(seed, "extenci", "EXT-IPERF-INT").values()
    assert found.verdict is Verdict.FAIL
    assert {n.node: str(n.sample.value) for n in found.nodes if n.verdict is Verdict.FAIL} == {
        "mds00w.psc.jwan>mds01w.psc.jwan": "940",
        "mds01w.psc.jwan>mds00w.psc.jwan": "939",
        "mds02w.psc>oss01w.psc.jwan": "978",
        "mds02w.psc>mds00w.psc.jwan": "978",
    }


def test_a_published_rate_makes_no_node_good_and_keeps_none_out(seed):
    nodes = states.report(judge_samples(*seed("extenci"), "all")).nodes
    assert {nodes[name].state for name in ("mds00w.psc.jwan", "mgs.jwan")} == {
        states.State.UNTESTED
    }


def test_published_is_a_command_whose_last_line_answers(world):
    world.site("jetstream-tacc")
    world.data.mkdir()
    done = world.inside("published", "--system", "jetstream-tacc")
    assert (done.code, "siteproof import --system jetstream-tacc" in done.err) == (2, True)
    world.inside("import", "--system", "jetstream-tacc", "--apply")
    done = world.inside("published", "--system", "jetstream-tacc")
    assert done.code == 1
    assert " ".join(map(str.strip, answer_lines(done.out)[-2:])) == (
        "published of jetstream-tacc: 120 values and texts; with a criterion: 13 misses "
        "(BlockStorage 2, UdpBurst 3, UdpBandwidth 1, IorSingle 3, Inventory 4), 33 keeps"
    )
    read = check("published", world.inside("published", "--system", "jetstream-tacc", "--json").out)
    assert len(read["figures"]) == 46
    assert [why["kind"] for why in read["findings"]] == ["misses_bound"] * 13


def test_published_for_programs_has_one_header_and_says_where_nothing_is_judged(world):
    world.site("jetstream-tacc")
    world.data.mkdir()
    world.inside("import", "--system", "jetstream-tacc", "--apply")
    ask = ("published", "--system", "jetstream-tacc", "--plain")
    header, *rows = world.inside(*ask, "--all").out.splitlines()
    assert header == "table\trow\tcolumn\tvalue"
    assert header not in rows
    assert len({row.split("\t")[0] for row in rows}) > 1  # tables
    for criteria in (world.sites / "jetstream-tacc").glob("criteria*.yaml"):
        criteria.write_text("{}\n")
    done = world.inside(*ask)
    assert (done.code, done.out) == (3, "")
    assert done.err == "siteproof: no published value has a criterion; --all prints all\n"


# ---- the form


def test_a_bound_and_a_range_stay_what_they_are():
    for text, told in (
        ("113.1", [("113.1", "")]),
        (">166", [("166", site_tables.MORE)]),
        ("166<", [("166", site_tables.MORE)]),
        ("<25", [("25", site_tables.LESS)]),
        ("~60", [("60", site_tables.ABOUT)]),
        ("15-20", [("15", site_tables.LOW), ("20", site_tables.HIGH)]),
        ("-5", [("-5", "")]),
    ):
        assert site_tables.parts(text) == told, text


def test_every_file_of_a_seed_imports_and_reads_back(seed):
    for name in SEEDS:
        _, stated = seed(name)
        assert {s.header.mode for s in stated} == {"published"}, name
        assert len({s.key + (s.header.check,) for s in stated}) == len(stated), name
        assert all(s.header.provenance["source"] for s in stated), name


def test_a_failure_is_no_zero(seed):
    _, stated = seed("extenci")
    failed = [s for s in stated if s.status != "ok"]
    assert {s.value for s in failed} == {None}
    assert not any(s.value == Decimal(0) for s in stated)
    assert {s.why for s in failed if s.status == "generic"} == {
        "printed as 'gen'",
        "printed as 'N/A'; no transfer of the day succeeded, so there is no mean",
    }


def test_what_is_printed_sorted_keeps_its_place_and_no_order_in_time(seed):
    _, stated = seed("nebula-sriov")
    ranks = sorted((s for s in stated if s.dims.get("link") == "bare"), key=lambda s: s.trial)
    assert [s.trial for s in ranks] == list(range(10))
    assert {s.own_conditions["published"] for s in ranks} == {"rank"}
    assert (str(ranks[0].value), str(ranks[-1].value)) == ("4418.8401", "9415.2675")


def test_samples_are_written_and_read_without_loss(seed, tmp_path):
    _, stated = seed("extenci")
    header = stated[0].header
    mine = [s for s in stated if s.header == header]
    path = samples.write(tmp_path, header, mine)
    assert sorted(samples.read(path), key=lambda s: s.key) == sorted(mine, key=lambda s: s.key)


def test_what_was_published_years_before_hides_no_nodes_past(seed):
    site, stated = seed("jetstream-tacc")
    node = "tacc-c001"

    def run(day):
        head = replace(
            stated[0].header,
            session=f"202601{day}T000000Z",
            check="Stream",
            time=f"2026-01-{day}T00:00:00+00:00",
            mode="maintenance",
            job="1",
        )
        return Sample(head, node, "Stream.triad", Decimal(100), "MB/s")

    class Known:
        headers = [run("01").header, *(s.header for s in stated)]

        @staticmethod
        def paths(wanted):
            return {}

        @staticmethod
        def of(wanted, **_):
            return [s for s in (run("01"), *stated) if wanted(s.header)]

    found = [run("02"), *stated]
    judged = judge_samples(replace(site, criteria={}), found, "all")
    told = states.lately(replace(judged, sessions=Known))
    assert [kind.header.session for kind in told.kinds] == ["20260101T000000Z"]
