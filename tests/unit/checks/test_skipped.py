"""What the end of a run says of the tests that were skipped; how often ReFrame looks at a job."""

from clone import TOP
from reframe.core.exceptions import SkipTestError

from siteproof import sites
from siteproof.checks import progress, session, settings

SKIPPED = [
    ("Latency", SkipTestError("the site names no links")),
    ("Ior", progress.Lacking("no environment of s:p offers ior", "'siteproof build io'")),
    ("PathMtu", SkipTestError("the site names no links")),
    ("IorSingle", progress.Lacking("tool missing: ior is not installed", "'siteproof build io'")),
    ("Hpcg", progress.Lacking("tool missing: xhpcg is not installed", "")),
    ("Ior", progress.Lacking("no environment of s:q offers ior", "'siteproof build io'")),
]


def test_what_a_command_brings_comes_first_and_a_reason_once():
    assert progress.skipped_lines(SKIPPED, 80) == [
        "  'siteproof build io' brings Ior, IorSingle",
        "  the site names no links: Latency, PathMtu",
        "  tool missing: xhpcg is not installed: Hpcg",
    ]


def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost():
    many = [(f"Check{n}", SkipTestError("the site names no links")) for n in range(30)]
    lines = progress.skipped_lines(many, 40)
    assert max(map(len, lines)) <= 40
    assert " ".join(lines).split()[-1] == "Check29"
    assert sum(line.count("Check") for line in lines) == 30


def test_a_missing_program_names_the_packages_that_bring_it():
    assert session.remedy(["fio", "is", "not", "installed"]) == (
        "'setup/packages run' or 'siteproof build io'"
    )
    assert session.remedy(["lmp"]) == session.remedy(["nwchem"]) == "'setup/packages apps'"
    assert session.remedy(["xhpcg"]) == ""


def test_an_installed_copy_without_setup_names_no_packages(monkeypatch, tmp_path):
    monkeypatch.setattr(session.installed, "SUITE", tmp_path)
    assert session.remedy(["lmp"]) == ""


def test_reframe_looks_at_a_process_of_this_machine_more_often_than_at_slurm(monkeypatch, tmp_path):
    monkeypatch.setenv("SITEPROOF_SITES", str(TOP / "site-config"))
    rates = {}
    for name in ("thishost", "testbed"):
        (general,) = settings.build(session.Session(sites.load(name), tmp_path))["general"]
        rates[name] = general["poll_rate_min"], general["poll_rate_max"]
    assert rates == {"thishost": (1.0, 10.0), "testbed": (0.1, 1.0)}
