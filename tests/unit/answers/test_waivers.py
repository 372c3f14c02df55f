"""Waivers: what they excuse, how long, and each mistake in their file told in a line."""

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

import pytest
from clone import SITES
from test_agreement import criterion, site
from test_agreement import samples as three

from siteproof.answers.criterion import judge
from siteproof.answers.expected import waived
from siteproof.checks import missing
from siteproof.record import samples
from siteproof.record.finding import WRONG, Kind, Verdict
from siteproof.record.samples import Header, Sample
from siteproof.sites import Baseline, Criterion, Hardware, Waiver, load, manual
from siteproof.sites.site import examine
from siteproof.wording.verdicts import why

NODES = {node: Hardware() for node in ("n1", "n2", "n3")}
HEAD = Header(
    "s1", "here", "all", "system", "Stream", "1", "2026-11-21T00:00:00+00:00", mode="acceptance"
)
WAIVER = Waiver(nodes="n1", waives="all", problem="fan", owner="me", expires="2999-12-31")
WAIVED = {"n1": [("W", WAIVER)]}


def sample(node, value):
    return Sample(HEAD, node, "Stream.triad", Decimal(value), "GB/s")


def verdict(values, waived=None, baselines=None, **keys):
    criterion = Criterion(
        **{
            "description": "d",
            "metric": "Stream.triad",
            "source": "s",
            "scope": "every node",
            "at_least": "65 GB/s",
            **keys,
        }
    )
    found = [
        sample(n, v) if v.isdigit() else Sample(HEAD, n, "Stream.*", status=v, why="x")
        for n, v in values.items()
    ]
    return judge("C", criterion, found, NODES, baselines, waived)


def naming(*statuses):
    return WAIVER.model_copy(update={"wrong_answers": list(statuses)})


def keyed(*waivers):
    return [(f"W-{number}", waiver) for number, waiver in enumerate(waivers)]


def of(result, node):
    return next(n for n in result.nodes if n.node == node)


def excuse(judged):
    """The waiver that excuses a node, or the criterion: its key, and what it says."""
    (why,) = judged.findings
    assert why.kind is Kind.WAIVED
    return why.waived_by, why["problem"], why["owner"], why["until"]


BY_W = ("W", "fan", "me", "2999-12-31")


# ---- what they excuse


def test_what_a_waived_node_misses_is_skip_and_the_others_decide():
    for bad in ({"n1": "60"}, {"n1": "timeout"}, {"n1": "node_lost"}, {}, {"n1": "tool_missing"}):
        result = verdict(bad | {"n2": "70", "n3": "70"}, WAIVED)
        assert (of(result, "n1").verdict, excuse(of(result, "n1"))) == (Verdict.SKIP, BY_W), bad
        assert (result.verdict, result.ok, excuse(result)) == (Verdict.PASS, 2, BY_W), bad


def test_a_wrong_answer_is_waived_by_the_name_of_its_status_only():
    for status, scope in product(WRONG, ("every node", "median")):
        values = {"n1": status, "n2": "70", "n3": "70"}
        other = naming(*(word for word in WRONG if word != status))
        for waivers in ([WAIVER], [other], [other, WAIVER]):
            result = verdict(values, {"n1": keyed(*waivers)}, scope=scope)
            assert result.verdict is Verdict.FAIL, (status, scope)
            why = result.findings[-1]
            assert (why.kind, why.status, why.message) == (Kind.WRONG_ANSWER, status, "x")
            assert why.check == "Stream"
        result = verdict(values, {"n1": keyed(naming(status), WAIVER)}, scope=scope)
        assert (result.verdict, of(result, "n1").verdict) == (Verdict.PASS, Verdict.SKIP), status
        assert excuse(of(result, "n1"))[0] == "W-0", "the one that names the status"


def test_where_some_nodes_are_waived_and_no_other_has_the_tool_nobody_answers_for_it():
    result = verdict(dict.fromkeys(NODES, "tool_missing"), WAIVED)
    assert (result.verdict, result.excused) == (Verdict.SKIP, False)


def test_a_waived_regression_is_skip():
    usual = Baseline(metric="Stream.triad", at_least="90 GB/s", source="s", taken="2026-01-01")
    result = verdict({"n1": "70", "n2": "95", "n3": "95"}, WAIVED, {"n1": [usual]})
    assert (of(result, "n1").verdict, result.verdict) == (Verdict.SKIP, Verdict.PASS)


def test_a_waived_node_that_keeps_its_promise_passes():
    result = verdict({"n1": "70", "n2": "70", "n3": "70"}, WAIVED)
    assert (of(result, "n1").verdict, result.ok) == (Verdict.PASS, 3)


def test_a_waiver_hides_no_other_nodes_failure():
    result = verdict({"n1": "60", "n2": "60", "n3": "70"}, WAIVED)
    assert (result.verdict, of(result, "n2").verdict) == (Verdict.FAIL, Verdict.FAIL)
    assert [(why.kind, why.subject) for why in result.findings] == [(Kind.MISSES_BOUND, "n2")]


def test_the_reason_that_most_nodes_have_is_given_and_the_others_are_counted():
    result = verdict({"n1": "generic", "n2": "timeout", "n3": "timeout"})
    assert (result.verdict, result.others) == (Verdict.ERROR, 1)
    assert result.findings[0].status == "timeout"
    assert why(result).endswith(" (and 1 other reason)")


def test_a_criterion_of_which_every_node_is_waived_is_skip():
    result = verdict({"n1": "60", "n2": "60", "n3": "60"}, dict.fromkeys(NODES, [("W", WAIVER)]))
    assert (result.verdict, excuse(result), result.excused) == (Verdict.SKIP, BY_W, True)
    assert result.others == 0


def test_a_waived_node_is_left_out_of_a_median():
    for value, otherwise in (("10", Verdict.FAIL), ("timeout", Verdict.ERROR)):
        values = {"n1": value, "n2": "66", "n3": "70"}
        result = verdict(values, WAIVED, scope="mean", subject="system")
        assert (result.verdict, result.worst.node) == (Verdict.PASS, "mean of 2"), value
        assert verdict(values, scope="mean", subject="system").verdict is otherwise


# ---- how long, and of what


def waiver(**keys):
    return Waiver(
        **{
            "nodes": "n[1-2]",
            "waives": "all",
            "problem": "fan",
            "owner": "me",
            "expires": "2026-11-21",
            **keys,
        }
    )


def test_it_holds_until_the_end_of_its_last_day():
    days = [date(2026, 11, day) for day in (20, 21, 22)]
    assert [waiver().holds(today) for today in days] == [True, True, False]


def test_it_speaks_of_a_criterion_a_metric_or_all():
    names = ("all", "TB-STREAM", "Stream.triad", "TB-HPL")
    speaks = [waiver(waives=name).covers("TB-STREAM", "Stream.triad") for name in names]
    assert speaks == [True, True, True, False]


@pytest.fixture
def fullest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SITEPROOF_SITES", "site-config")
    return shutil.copytree(SITES / "fullest", tmp_path / "site-config" / "fullest")


def test_the_fullest_example_has_every_key(fullest):
    text = (fullest / "waivers.yaml").read_text()
    assert all(f"{k.place.rpartition('.')[2]}:" in text for k in manual.keys("waivers.yaml"))
    site = load("fullest")
    found = waived(site, "F-HPL", "Hpl.gflops", date(2026, 11, 21))
    fan, gpu = (("W-FAN", site.waivers["W-FAN"]), ("W-GPU", site.waivers["W-GPU"]))
    assert found == {"iu-c007": [fan], "iu-c008": [fan], "iu-c009": [gpu]}
    assert tuple(site.waivers["W-FAN"].wrong_answers) == WRONG
    assert waived(site, "F-HPL", "Hpl.gflops", date(3000, 1, 1)) == {}


def test_a_site_without_the_file_waives_nothing(fullest):
    (fullest / "waivers.yaml").unlink()
    assert load("fullest").waivers == {}


# ---- mistakes

MISTAKES = [
    (
        "nodes: iu-c[007-008]",
        "nodes: iu-c[007-999]",
        "iu-c[321-999] not in any role in W-FAN.nodes",
    ),
    ("nodes: iu-c[007-008]", "nodes: 'iu-c[007'", "bad node set"),
    ("nodes: iu-c[007-008]", "nodes: '@all'", "groups are not looked up"),
    ("nodes: iu-c[007-008]", "nodes: ''", "an empty node set in W-FAN.nodes"),
    ("waives: F-HPL", "waives: F-HPLL", "(did you mean 'F-HPL'?)"),
    ("waives: F-HPL", "waives: everything", "'everything' is neither a criterion nor a metric"),
    ("[invalid, checksum, unhealthy]", "[timeout]", "'timeout'"),
    ("[invalid, checksum, unhealthy]", "invalid", "W-FAN.wrong_answers"),
    ("expires: 2999-12-31", "expires: soon", "'soon' is not a date in W-FAN.expires"),
    ("  expires: 2999-12-31\n", "", "missing key 'expires' in W-FAN"),
    ("  owner: A. Colleague\n", "", "missing key 'owner' in W-FAN"),
    ("owner: A. Colleague", "owner: ' '", "an empty text in W-FAN.owner"),
    ("problem: Fan", "problm: Fan", "unknown key 'problm' (did you mean 'problem'?) in W-FAN"),
    ("problem: Fan at half speed, spare part ordered", 'problem: "a\\eb"', "a control character"),
    ("ticket: HD-4711", "ticket: [1]", "a list is not text in W-FAN.ticket"),
    ("W-", "- W-", "not a mapping of keys in waivers.yaml"),
]


@pytest.mark.deep
def test_each_mistake_is_told_with_file_and_line(fullest):
    path = fullest / "waivers.yaml"
    whole = path.read_text()
    for old, new, told in MISTAKES:
        assert old in whole
        path.write_text(whole.replace(old, new))
        site, documents = examine("fullest")
        lines = [str(e) for document in documents for e in document.sorted_mistakes()]
        assert site is None, new
        assert any(told in line for line in lines), (told, lines)
        assert all(line.startswith("site-config/fullest/waivers.yaml:") for line in lines), lines


def test_a_metric_may_be_waived(fullest):
    path = fullest / "waivers.yaml"
    path.write_text(path.read_text().replace("waives: F-HPL", "waives: Hpl.gflops"))
    assert load("fullest").waivers["W-FAN"].waives == "Hpl.gflops"


def test_a_broken_inventory_says_nothing_of_the_waivers_nodes(fullest):
    path = fullest / "system.yaml"
    path.write_text(path.read_text().replace("iu-c[001-320]", "iu-c[001-3"))
    _, documents = examine("fullest")
    assert not any("waivers.yaml" in str(e) for d in documents for e in d.sorted_mistakes())


# ---- the verdict


CRITERION = """HERE-PARAMETERS:
  description: The machine is configured as the site says
  metric: HostParameters.mismatches
  at_most: 0 count
  conditions: {mode: [quick, maintenance, acceptance]}
  max_age: none
  source: here
"""


def test_the_verdict_honours_a_waiver_until_it_expires(world):
    head = Header(
        "s1",
        "thishost",
        "node",
        "system",
        "HostParameters",
        "1",
        datetime.now(UTC).isoformat(timespec="seconds"),
        mode="quick",
    )
    samples.write(
        world.data / "perflogs",
        head,
        [Sample(head, "localhost", "HostParameters.mismatches", Decimal(2), "count")],
    )
    for expires, word, told in (
        ("2999-12-31", "SKIP", "waived until 2999-12-31 by me: fan"),
        ("2020-01-01", "FAIL", "waiver W of me expired on 2020-01-01: fan"),
    ):
        waiver = f"{{nodes: localhost, waives: all, problem: fan, owner: me, expires: {expires}}}"
        world.site(criteria=CRITERION, baselines="{}\n", waivers=f"W: {waiver}\n")
        done = world.inside("verdict")
        assert done.out.splitlines()[1].startswith(f"{word}  HERE-PARAMETERS"), done
        assert told in " ".join(done.out.split()), done


# ---- what ReFrame compares with


def lines_of(described, values, mode="acceptance"):
    """The lines that ReFrame gets of n1, n2 and n3, by name."""
    measured = three(list(map(Decimal, values)), "GB/s")
    found = missing.compared(described, "Check", "figure", mode, measured)
    return {name: (value, bound) for name, value, _, bound in found}


def test_a_node_has_a_name_of_its_own_in_reframes_database_where_it_has_one_value():
    described = site({"C": criterion(at_least="15 GB/s")}, "GB/s")
    measured = three([Decimal(20), Decimal(10), Decimal(30)], "GB/s")

    def each(samples):
        found = missing.of_each_node(described, "Check", "figure", samples)
        return {name: value for name, value, *_ in found}

    assert each(measured) == {"figure@n1": 20, "figure@n2": 10, "figure@n3": 30}
    assert each([*measured, replace(measured[0], dims={"block": "4096"})]) == {}


def test_reframe_compares_the_worst_node_that_is_not_waived():
    described = site({"C": criterion(at_least="15 GB/s")}, "GB/s")
    for waives, expires, worst in (
        ("all", "2999-01-01", 20),
        ("C", "2999-01-01", 20),
        ("Check.figure", "2999-01-01", 20),
        ("D", "2999-01-01", 10),
        ("all", "2001-01-01", 10),
    ):
        described.waivers["W"] = waiver(nodes="n1", waives=waives, expires=expires)
        lines = lines_of(described, (10, 20, 30))
        assert lines == {"figure": (worst, (15.0, 0.0, None))}, (waives, expires)


def test_where_no_node_decides_reframe_has_a_figure_and_no_bound():
    described = site({"C": criterion(at_least="15 GB/s")}, "GB/s")
    described.waivers["W"] = waiver(nodes="n[1-3]", expires="2999-01-01")
    assert lines_of(described, (10, 14)) == {"figure": (10.0, missing.UNBOUNDED)}
    assert lines_of(described, (10, 20)) == {"figure": (20.0, (15.0, 0.0, None))}


def test_a_waived_node_is_left_out_of_reframes_mean():
    described = site({"C": criterion(at_least="15 GB/s", scope="mean")}, "GB/s")
    described.waivers["W"] = waiver(nodes="n1", expires="2999-01-01")
    assert lines_of(described, (1, 20, 30))["figure_mean"] == (25.0, (15.0, 0.0, None))


def test_a_node_is_excused_from_a_baseline_where_it_is_from_all_criteria():
    usual = Baseline(metric="Check.figure", at_least="20 GB/s", source="s", taken="2026-11-21")
    one, other = criterion(at_least="5 GB/s"), criterion(at_least="6 GB/s")
    for criteria, low in (({"C": one}, 5.0), ({"C": one, "D": other}, 20.0), ({}, 20.0)):
        described = site(criteria, "GB/s", baselines={"B": usual})
        described.waivers["W"] = waiver(nodes="n1", waives="C", expires="2999-01-01")
        lines = lines_of(described, (10, 30, 40), "maintenance")
        assert lines == {"figure": (10.0, (low, 0.0, None))}, criteria
