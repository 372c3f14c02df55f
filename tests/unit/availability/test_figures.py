"""What the metrics of availability that a criterion names are in a made period."""

import shutil
from fractions import Fraction

import pytest
import shipped
from clone import TOP
from test_overview import (
    BEGIN,
    DAY,
    END,
    PROBES,
    STEP,
    H,
    bare,
    event,
    events,
    moment,
    probes,
    read,
    site,
    windows,
)

from siteproof.availability.definitions import overall
from siteproof.availability.overview import figures, verdict_of
from siteproof.errors import UserError
from siteproof.record.finding import Kind, Verdict
from siteproof.sites import load

__all__ = ["bare", "site"]


def test_all_nodes_down_is_a_system_down_though_its_services_answer(site, tmp_path):
    for name in ("login", "portal", "galaxy"):
        probes(tmp_path, name)
    events(tmp_path, [event(f"node00{n}", 10, 34, "DOWN*") for n in range(1, 9)])
    made = figures(site, tmp_path, moment(BEGIN), moment(END))
    assert made["Availability.overall"].value == 100 * Fraction(312, 336)
    assert verdict_of(site.criteria["E-UP"], made["Availability.overall"]) is Verdict.FAIL


def test_each_metric_of_a_made_window(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, down=[(100, 108.4)])
    probes(tmp_path, "galaxy", down=[(100, 116.8)])
    site = windows(site, "2026-11-05T04:00Z,2026-11-05T08:00Z,,all,2026-10-25T00:00Z,me,Firmware")
    made = figures(site, tmp_path, moment(BEGIN), moment(END))
    down = Fraction(17 * STEP, H)  # 17 bad rounds
    assert {name: one.value for name, one in made.items()} == {
        "Availability.overall": 100 * (1 - down / 336),
        "Availability.scheduled": 100 * (336 - down) / (336 - 4),
        "Availability.downtime": 720 * down / 336,
        "Availability.continuous": Fraction(455, 48),  # 227.5 h, after the stop
        "Availability.gateway_gap": 100 * (Fraction(34 * STEP, H) - down) / 336,
    }
    assert [(one.unit, not one.missing) for one in made.values()] == [
        ("%", True),
        ("%", True),
        ("h/month", True),
        ("d", True),
        ("pp", True),
    ]
    up = made["Availability.overall"]
    assert up.conditions == {"window_hours": "336", "interval": str(STEP)}
    verdicts = {key: verdict_of(one, made[one.metric]) for key, one in contract(site).items()}
    assert verdicts == {"E-UP": Verdict.PASS, "E-GAP": Verdict.FAIL, "E-DOWN": None}


def contract(site):
    return {key: one for key, one in site.criteria.items() if one.metric.startswith("Avail")}


@pytest.mark.parametrize(("rounds", "verdict"), [(84, Verdict.PASS), (85, Verdict.FAIL)])
def test_95_per_cent_of_14_days_leave_16_8_hours(site, tmp_path, rounds, verdict):
    """84 bad rounds of twelve minutes are 16.8 h, and exactly 95 %."""
    for name in ("login", "portal"):
        probes(tmp_path, name, down=[(100, 100 + Fraction(rounds, 5))], step=720)
    made = figures(site, tmp_path, moment(BEGIN), moment(END))
    up = made["Availability.overall"]
    assert up.value == 100 * (1 - Fraction(rounds, 5) / 336)
    assert verdict_of(site.criteria["E-UP"], up) is verdict


def test_a_longer_period_with_a_gap_still_has_its_336_hours(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name, gaps=[(10, 12)], end=END + DAY)
    last = moment(END + DAY)
    up = figures(site, tmp_path, moment(BEGIN), last)["Availability.overall"]
    assert (bool(up.missing), up.measured_hours > 336) == (True, True)
    assert verdict_of(site.criteria["E-UP"], up) is Verdict.PASS


def test_a_site_without_probes_or_gateways_has_a_reason_and_no_value(site, tmp_path):
    for name in ("login", "portal"):
        probes(tmp_path, name)
    made = figures(site, tmp_path, moment(BEGIN), moment(END))
    gap = made["Availability.gateway_gap"]
    assert (gap.value, gap.subject, gap.why.kind) == (None, "galaxy", Kind.NOTE)
    path = site.folder / "system.yaml"
    path.write_text(path.read_text().partition("probes:")[0])
    bare = load("example")
    for one in figures(bare, tmp_path, moment(BEGIN), moment(END)).values():
        assert (one.value, one.why.kind, one.measured_hours) == (None, Kind.NOTE, 0)


def test_node_events_alone_show_no_service_and_answer_no_criterion(bare, tmp_path):
    events(tmp_path, [])
    assert overall([read(bare, tmp_path).whole]) == 1
    for one in figures(bare, tmp_path, moment(BEGIN), moment(END)).values():
        assert (one.value, one.why.kind) == (None, Kind.NOTE)


def test_a_site_of_which_nothing_was_recorded_has_nothing(site, tmp_path):
    found = read(site, tmp_path)
    assert found.measured_hours() == 0
    assert found.missing() == ((BEGIN, END),)
    assert overall([found.whole]) is None


def test_a_period_has_a_zone_and_an_end_after_its_begin(site, tmp_path):
    with pytest.raises(UserError, match="is not after"):
        figures(site, tmp_path, moment(END), moment(BEGIN))


@pytest.mark.parametrize(
    ("down", "of_gateway", "verdicts"),
    [
        (13, 19, (Verdict.PASS, Verdict.PASS)),  # 96.13 % and 94.35 %
        (13, 21, (Verdict.PASS, Verdict.FAIL)),  # 93.75 %, 2.38 points less
        (17, 17, (Verdict.FAIL, Verdict.PASS)),  # 94.94 %
    ],
)
def test_the_criteria_of_jetstream_pass_and_fail_by_what_was_measured(
    tmp_path, monkeypatch, down, of_gateway, verdicts
):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    name = "jetstream-iu"
    folder = shutil.copytree(TOP / "site-config" / name, tmp_path / "sites" / name)
    path = folder / "system.yaml"
    path.write_text(path.read_text().partition("\nprobes:")[0] + PROBES)
    (tmp_path / name).mkdir()
    (tmp_path / "example").symlink_to(name)
    for service, hours in (("login", down), ("portal", down), ("galaxy", of_gateway)):
        probes(tmp_path, service, down=[(100, 100 + hours)])
    made = figures(load(name), tmp_path, moment(BEGIN), moment(END))
    site = shipped.site("jetstream")
    keys = ("JS-4.1.3-UPTIME14", "JS-4.3-GWAVAIL", "JS-4.1.3-MTBF")
    found = [verdict_of(site.criteria[key], made[site.criteria[key].metric]) for key in keys]
    assert found == [*verdicts, None]
    assert made["Availability.downtime"].value == 720 * Fraction(down, 336)
