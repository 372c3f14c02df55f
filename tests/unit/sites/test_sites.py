"""Loading a site: what is written is what the program sees."""

import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner
from clone import SITES, TOP
from rows import rows

from siteproof.cli.sites import sites
from siteproof.errors import UserError, UserErrors
from siteproof.sites import Expected, Hardware, folder, load, manual, names
from siteproof.units import Quantity

SHIPPED = sorted(path.parent.name for path in (TOP / "site-config").glob("*/system.yaml"))
# Where a criterion that a quick run may answer comes from: no contract is among them.
FLOORS = ("Siteproof's floor for any machine", "test bed, 2.", "test bed with a WAN, ")


@pytest.fixture
def fixtures(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))


@pytest.fixture
def shipped(monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)


def test_the_smallest_example(fixtures):
    site = load("smallest")
    assert site.system.mode == "maintenance"
    assert site.partition("all").scheduler == "slurm"
    assert list(site.expected("compute")) == ["n1", "n2"]
    assert site.hardware_of("compute") == Hardware()
    assert site.parameters("compute").by_name() == {}
    criterion = site.criteria["S-1"]
    assert (criterion.scope, criterion.step, criterion.phase) == ("every node", None, "performance")
    assert site.roles_of(criterion) == ["compute"]
    assert site.baselines == {}


def test_the_fullest_example(fixtures):
    site = load("fullest")
    hardware = site.hardware_of("compute")
    assert hardware.peak == Quantity(Decimal("806.4"), "GFLOPS")
    assert hardware.nics["em1"].mtu == 9000
    assert site.system.file_systems["scratch"].shared
    assert site.system.environments["intel"].variables["DEBUG"] == "no"
    assert site.criteria["F-HPL"].trials == 3
    assert site.criteria["F-MTBF"].kind == "report_only"
    assert site.criteria["F-RAID"].met("RAID0 pairs", "text")
    assert not site.criteria["F-RAID"].met("RAID0", "text")
    assert site.baselines["F-BASE-HPL"].taken == date(2026, 11, 21)


def test_the_fullest_example_has_every_key(fixtures):
    """A new key is shown in the example, or this fails."""
    for file in ("system.yaml", "criteria.yaml", "baselines.yaml"):
        text = (SITES / "fullest" / file).read_text()
        text += "over: sum\n"  # of a system with members, which is a file of its own
        missing = [
            key.place
            for key in manual.keys(file)
            if f"{key.place.rpartition('.')[2]}:" not in text and not key.place.endswith("fallback")
        ]
        assert missing == []


def test_every_key_has_one_sentence():
    for file in manual.FILES:
        for key in manual.keys(file):
            assert key.sentence[:1].isupper() or key.sentence[:1] in "'s", key
            assert key.sentence.endswith("."), key


def test_numbers_and_words_stay_as_written_except_for_reframe(fixtures):
    site = load("fullest")
    named = site.parameters("compute").by_name()
    assert named["nic.em1.flow_control"] == Expected(exact="off")
    assert named["bond.bond0.members"] == Expected(exact="em1 em2")
    assert site.partition("compute").reframe == {"processor": {"num_cpus": 24}}
    assert site.partition("compute").extras == {"mem_per_node": 128000}


def test_a_node_in_two_roles_belongs_to_the_first(fixtures):
    site = load("fullest")
    assert site.role_of("iu-c001") == "compute"
    assert site.role_of("login2") == "login"
    assert site.role_of("stranger") is None
    assert len(site.promised(site.criteria["F-MTU"])) == 322


def test_the_inventory_cannot_be_changed_by_its_user(fixtures):
    site = load("smallest")
    site.expected("compute").clear()
    assert len(site.expected("compute")) == 2


@rows(
    "ask, what",
    [
        (lambda s: s.expected("compte"), "no role 'compte' (did you mean 'compute'?)"),
        (lambda s: s.partition("al"), "no partition 'al' (did you mean 'all'?)"),
        (lambda s: load("smalest"), "no site 'smalest' (did you mean 'smallest'?)"),
        (lambda s: load("../sites/smallest"), "no site '../sites/smallest'"),
    ],
)
def test_an_unknown_name_is_told_with_the_known_ones(ask, what, fixtures):
    with pytest.raises(UserError, match="Allowed: ") as caught:
        ask(load("smallest"))
    assert what in str(caught.value)


def test_a_broken_sister_does_not_stop_a_site(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    shutil.copytree(SITES / "smallest", tmp_path / "smallest")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "system.yaml").write_text("system: [")
    assert load("smallest").name == "smallest"
    with pytest.raises(UserErrors):
        load("broken")
    assert names() == ["broken", "smallest"]


def test_a_folder_of_sites_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"cannot be read.*SITEPROOF_SITES"):
        names()


def test_the_folder_of_the_clone_is_the_default(shipped):
    assert folder() == TOP / "site-config"
    assert names() == SHIPPED
    assert {"testbed", "thishost"} <= set(SHIPPED)  # those that the tests and 'make run' measure


@rows("name", SHIPPED)
@pytest.mark.deep
def test_a_shipped_site_loads(name, shipped):
    site = load(name, whole=True)
    assert site.system.system == name
    for criterion in site.criteria.values():
        unit = site.catalogue[criterion.metric].unit
        for part in site.members.values() or [site]:
            for role in part.roles_of(criterion):
                criterion.limits(unit, part.hardware_of(role))


def test_a_quick_run_never_answers_a_contract(shipped):
    quick = {
        (name, key): criterion.source
        for name in SHIPPED
        for key, criterion in load(name, whole=True).criteria.items()
        if criterion.conditions["mode"].met_by("quick")
    }
    assert {key: source for key, source in quick.items() if not source.startswith(FLOORS)} == {}
    assert {"thishost", "testbed", "testbed-wan"} <= {name for name, _ in quick}


def test_the_catalogue_names_what_the_checks_yield(shipped):
    metrics = load("thishost").catalogue
    checks = {name: metric.check for name, metric in metrics.items() if metric.check}
    assert {n.partition(".")[0] for n in checks} == set(checks.values())
    heads = {n for n, metric in metrics.items() if metric.headline}
    assert {"Hpl.gflops", "Stream.triad", "HostParameters.mismatches"} <= heads <= set(checks)


@rows(
    "rule, yes, no",
    [
        ("4096  87380 16777216", "4096\t87380\t16777216", "4096 87380 16777215"),
        ("off", "off", "on"),
        ("0.50", "0.5", "0.51"),
        ({"at_least": "300000"}, "300000", "299999"),
        ({"at_least": "4096 87380 16777216"}, "4096 131072 16777216", "4096 131072 1048576"),
        ({"at_least": "4096 87380 16777216"}, "8192 87380 16777217", "16777216"),
        ({"at_most": "10"}, "-1", "11"),
        ({"at_most": "10"}, "10.0", "none"),
        ({"at_least": "1"}, "1", "nan"),
        ({"at_least": "1", "at_most": "3"}, "2", "4"),
        ({"at_least": "5"}, "5.14", "5.14.0-503"),
        ({"pattern": "cubic*"}, "cubic2", "bbr"),
        ({"about": "100", "tolerance": "3 %"}, "103", "104"),
        ({"at_most": "18446744073709551615"}, "18446744073709551614", "18446744073709551616"),
        (["cubic", "bbr"], "bbr", "reno"),
    ],
)
def test_expected_value(rule, yes, no):
    expected = Expected.model_validate(rule)
    assert expected.met_by(yes)
    assert not expected.met_by(no)
    assert Expected(**expected.model_dump(exclude_none=True)) == expected


def test_the_list_of_sites_ends_in_this_machine(fixtures, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SYSTEM", "smallest")
    lines = CliRunner().invoke(sites, []).output.splitlines()
    assert "smallest  The least that a site must say; 2 compute; 1 criterion" in lines
    assert lines[-1] == "this machine: smallest; next: siteproof sites smallest"


def test_a_site_is_shown_with_nodes_and_criteria(fixtures):
    result = CliRunner().invoke(sites, ["fullest"])
    assert result.exit_code == 0
    assert "compute  iu-c[001-320]  A blade with two processors" in result.output
    assert "F-HPL  The nodes are fast (contract, 1.1)" in result.output


def test_the_manual_has_all_keys(fixtures):
    output = CliRunner().invoke(sites, ["--keys"]).output
    for place in (
        "recognise.hostname",
        "parameters.NAME.nic.NAME.mtu",
        "ID.rounding (*)"[:11],
        "ID.taken (*)",
        "VALUE.at_least",
    ):
        assert f"\n  {place}" in output
    assert "One of: slurm, local." in output


def test_a_broken_site_is_listed_as_broken(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "system.yaml").write_text("system: [")
    output = CliRunner().invoke(sites, []).output
    assert "broken  3 mistakes, see 'siteproof lint --system broken'" in output


# ---- a site's own checks

OWN_METRIC = (
    "MyTest.rate: {description: d, check: MyTest, file: my.py, unit: GB/s, better: higher}\n"
)
ON_IT = "E-OWN: {description: d, metric: MyTest.rate, at_least: 5 GB/s, source: s}\n"


@pytest.fixture
def with_checks(tmp_path, monkeypatch):
    """The smallest site, with a folder of checks outside of the clone and of the site."""
    site = shutil.copytree(SITES / "smallest", tmp_path / "sites/smallest")
    (tmp_path / "own").mkdir()
    with (site / "system.yaml").open("a") as file:
        file.write("checks: [../../own]\n")
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    return tmp_path / "own"


def mistakes():
    with pytest.raises(UserErrors) as caught:
        load("smallest")
    return [str(error) for error in caught.value.errors]


def test_a_criterion_may_name_a_metric_of_the_sites_own_checks(with_checks, tmp_path):
    (with_checks / "catalogue.yaml").write_text(OWN_METRIC)
    with (tmp_path / "sites/smallest/criteria.yaml").open("a") as file:
        file.write(ON_IT)
    site = load("smallest")
    assert str(site.criteria["E-OWN"].bound) == "5 GB/s"
    metric = site.catalogue["MyTest.rate"]
    assert metric.is_of_site
    assert Path(metric.file).resolve() == with_checks / "my.py"
    assert not site.catalogue["Stream.triad"].is_of_site
    assert load("smallest").catalogue == site.catalogue  # read twice, it is no double


def test_without_a_catalogue_a_folder_of_checks_has_no_metric(with_checks):
    assert not [m for m in load("smallest").catalogue.values() if m.is_of_site]


def test_a_site_cannot_describe_a_check_of_siteproof(with_checks):
    text = OWN_METRIC.replace("MyTest", "Stream")
    (with_checks / "catalogue.yaml").write_text(text + text.replace("rate", "triad"))
    for name, told in zip(("rate", "triad"), mistakes(), strict=True):
        assert f"'Stream.{name}' is of a check in another catalogue" in told


def test_a_mistake_in_a_sites_catalogue_has_its_place(with_checks):
    (with_checks / "catalogue.yaml").write_text(OWN_METRIC.replace("GB/s", "furlongs"))
    (told,) = mistakes()
    assert "own/catalogue.yaml:1: unknown unit 'furlongs'" in told


def test_a_partition_that_names_no_environments_has_all_of_them(with_checks):
    assert load("smallest").system.partitions["all"].environments == ["system"]


def test_a_site_describes_no_features(with_checks):
    (with_checks / "catalogue.yaml").write_text(f"{OWN_METRIC}features: {{}}\n")
    (told,) = mistakes()
    assert "features, which a site's own checks need not describe" in told


def test_a_folder_of_checks_that_is_missing_is_a_mistake(with_checks):
    with_checks.rmdir()
    (told,) = mistakes()
    assert "system.yaml:" in told
    assert "'../../own' is not a folder in checks. Allowed: a folder with ReFrame tests" in told
