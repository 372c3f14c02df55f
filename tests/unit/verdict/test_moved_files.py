"""Transfers of a day: rates, grades, the four classes of failures, and several services at once."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from siteproof import sites
from siteproof.answers import implausible
from siteproof.links import matrix
from siteproof.record import samples
from siteproof.record.samples import Header, Sample
from siteproof.verdict import judgement

SERVICES = """
mesh: {warn: 50 MB/s, critical: 25 MB/s}
services:
  near: {kind: http, address: 'http://near/', here: psc, there: ufl}
  far: {kind: http, address: 'http://far/', here: psc, there: fnal}
  page: {kind: web, address: 'http://page/'}
"""
CRITERION = """
{key}:
  description: made up
  metric: {metric}
  subject: service
  {bound}
  source: a test
  conditions: {{mode: [quick, maintenance, acceptance]{more}}}
"""


class World:
    """A site with three services, and the jobs of their tests."""

    def __init__(self, folder, monkeypatch):
        self.data, self.number = folder / "data", 0
        site = folder / "sites/here"
        site.mkdir(parents=True)
        text = (sites.site.SUPPLIED / "thishost/system.yaml").read_text()
        text = text.replace("system: thishost", "system: here", 1)
        (site / "system.yaml").write_text(text + SERVICES)
        (site / "baselines.yaml").write_text("{}\n")
        self.criteria = site / "criteria.yaml"
        monkeypatch.setenv("SITEPROOF_SITES", str(folder / "sites"))
        monkeypatch.setenv("SITEPROOF_DATA", str(self.data))

    def tested(self, service, *found, hours=1.0):
        """A job: rates as (sender, receiver, MB/s), failures as (step, status)."""
        self.number += 1
        when = datetime.now(UTC) - timedelta(hours=hours)
        head = Header(
            f"{when:%Y%m%dT%H%M%SZ}-{self.number:07x}",
            *("here", "node", "system", "Service", str(self.number)),
            when.isoformat(timespec="seconds"),
            mode="acceptance",
            conditions={"service": service, "kind": "http"},
            place=self.number,
        )
        failed = [one for one in found if len(one) == 2]
        made = [Sample(head, "", "Service.failures", value(len(failed)), "count", why=why(failed))]
        for step, status in failed:
            dims = {"step": step}
            made.append(Sample(head, "", "Service.*", status=status, why=status, dims=dims))
        for sender, receiver, rate in (one for one in found if len(one) == 3):
            dims = {"sender": sender, "receiver": receiver, "files": "1"}
            made.append(Sample(head, "", "Service.rate", value(rate), "MB/s", dims=dims))
        samples.write(self.data / "perflogs", head, made)

    def judged(self, metric, bound="report_only: a test", more=""):
        """The verdict on a criterion on a metric, its value, and the reason."""
        text = CRITERION.format(key="X", metric=metric, bound=bound, more=more)
        self.criteria.write_text(text)
        judged = judgement.judge_system("here", since="365d")
        (one,) = judged.verdicts
        nodes = one.nodes
        sample = nodes[0].sample if nodes else None
        return one.verdict.value, sample.value if sample else None, sample.why if sample else ""


def value(number):
    return Decimal(str(number))


def why(failed):
    return "; ".join(f"{step}: {status}" for step, status in failed)


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def test_best_slowest_and_mean_are_of_the_newest_day_of_each_service(world):
    world.tested("near", ("psc", "ufl", 900), hours=72)
    world.tested("near", ("psc", "ufl", 30), ("ufl", "psc", 60))
    world.tested("far", ("psc", "fnal", 90))
    found = {m: world.judged(f"Transfer.{m}")[1] for m in ("highest", "lowest", "average")}
    assert found == {"highest": 90, "lowest": 30, "average": 60}


def test_the_grade_is_that_of_the_worst_pair(tmp_path, monkeypatch):
    for rate, grade in (
        ("24.99", "below 25 MB/s"),
        ("25", "25 to 50 MB/s"),
        ("50", "25 to 50 MB/s"),
        ("50.01", "above 50 MB/s"),
    ):
        world = World(tmp_path / rate, monkeypatch)
        world.tested("near", ("psc", "ufl", rate), ("ufl", "psc", 400))
        assert world.judged("Transfer.grade")[:2] == ("SKIP", grade), rate


def test_a_sustained_rate_says_how_much_that_is_a_day(world):
    world.tested("near", ("psc", "ufl", 1000))
    verdict, number, reason = world.judged("Transfer.sustained", "at_least: 1 GB/s")
    assert (verdict, number) == ("PASS", 1)
    assert reason.endswith("86.4 TB a day")


CLASSES = [
    ("login", "login_failures"),
    ("timeout", "timeouts"),
    ("checksum", "checksum_failures"),
    ("generic", "generic_errors"),
    ("killed", "generic_errors"),
]


def test_each_failure_is_of_one_of_four_classes(tmp_path, monkeypatch):
    for status, metric in CLASSES:
        world = World(tmp_path / status, monkeypatch)
        world.tested("near", ("put", status))
        world.tested("far", ("psc", "fnal", 90))
        for other in {name for _, name in CLASSES}:
            found = world.judged(f"Transfer.{other}", "equals: 0 count")
            assert found[:2] == (("FAIL", 1) if other == metric else ("PASS", 0)), (status, other)


def test_a_transfer_that_was_not_tested_is_no_success(world):
    world.tested("near", ("psc", "ufl", 90))
    assert world.judged("Transfer.timeouts", "equals: 0 count")[0] == "INCOMPLETE"
    world.tested("far", ("put", "tool_missing"))
    assert world.judged("Transfer.timeouts", "equals: 0 count")[0] == "INCOMPLETE"


def test_what_fails_when_all_files_have_arrived_is_no_failed_transfer(world):
    world.tested("near", ("psc", "ufl", 90), ("clean", "generic"))
    world.tested("far", ("psc", "fnal", 90))
    assert world.judged("Transfer.generic_errors", "equals: 0 count")[0] == "PASS"


def test_of_several_services_each_must_work(world):
    of_both = ", service: [near, far]"
    world.tested("near", ("psc", "ufl", 90))
    assert world.judged("Transfer.failed_services", "equals: 0 count", of_both)[0] == "INCOMPLETE"
    assert world.judged("Service.failures", "equals: 0 count", of_both)[0] == "INCOMPLETE"
    world.tested("far", ("put", "generic"))
    assert world.judged("Transfer.failed_services", "equals: 0 count", of_both)[0] == "FAIL"
    assert world.judged("Service.failures", "equals: 0 count", of_both)[0] == "FAIL"
    world.tested("far", ("psc", "fnal", 90))
    assert world.judged("Transfer.failed_services", "equals: 0 count", of_both)[0] == "PASS"
    assert world.judged("Service.failures", "equals: 0 count", of_both)[0] == "PASS"


def test_a_criterion_on_one_service_is_not_answered_by_another(world):
    world.tested("near", ("psc", "ufl", 90))
    world.tested("far", ("put", "login"))
    one = ", service: near"
    assert world.judged("Service.failures", "equals: 0 count", one)[0] == "PASS"
    assert world.judged("Service.rate", "at_least: 50 MB/s", one)[0] == "PASS"


def test_a_service_that_the_site_does_not_have_waits_for_a_check(world):
    world.tested("near", ("psc", "ufl", 90))
    assert world.judged("Service.failures", "equals: 0 count", ", service: x")[0] == "PENDING"


def test_the_daily_matrix_has_both_directions_and_each_failure(world):
    world.tested("near", ("psc", "ufl", 30), ("ufl", "psc", 60))
    world.tested("near", ("login", "login"))
    world.tested("far", ("get", "checksum"))
    world.criteria.write_text("{}\n")
    site = sites.load("here")
    found, _ = matrix.select(site, implausible.sessions_of(site), "Service.rate", days=True)
    days = matrix.by_day(site, found, "Service.rate")
    cells = {pair: next(iter(of_pair.values())) for pair, of_pair in days.items()}
    assert set(cells) == {("psc", "ufl"), ("ufl", "psc"), ("fnal", "psc")}
    assert (cells["psc", "ufl"].average, dict(cells["psc", "ufl"].errors)) == (30, {"login": 1})
    assert dict(cells["fnal", "psc"].errors) == {"checksum": 1}
    assert cells["fnal", "psc"].average is None
