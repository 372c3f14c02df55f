"""The reason for a value that misses its bound: the field that differs, expected and found."""

from decimal import Decimal

import fleets
import pytest
from fleets import names
from reasons import reasons
from rows import rows

from siteproof.record.finding import Kind
from siteproof.record.samples import Sample
from siteproof.verdict.judgement import judge_samples
from siteproof.wording import findings

SETTINGS = """\
    variables: {OMPI_MCA_mpi_yield_when_idle: '1'}
    prepare_cmds: [export UCX_TLS=rc]
"""
OWN = {"env.OMPI_MCA_mpi_yield_when_idle": "1", "env.UCX_TLS": "rc", "window_warning": "small"}
ENVIRONMENT = f"  system:\n    description: Installed\n{SETTINGS}"
HOST = """\
C:
  {description: d, metric: HostParameters.%s, at_most: 0 count, source: s, scope: every node,
   max_age: none}
"""
MTU = ("nic.em1.mtu", "expected 9000, found 1500")
WMEM = ("sysctl.net.ipv4.tcp_wmem", "expected 4096, found 1")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    fleets.load(tmp_path / "sites", monkeypatch)

    def load(criteria=fleets.CRITERIA):
        folder = fleets.write_site(tmp_path / "sites", criteria=criteria)
        path = folder / "here/system.yaml"
        text = path.read_text()
        path.write_text(text.replace("  system: {description: Installed}\n", ENVIRONMENT))
        return fleets.sites.load("here")

    return load


def host(wrong, metric):
    """HostParameters of eight nodes; n003 has these parameters wrong."""
    head = fleets.header(1, "HostParameters", conditions=OWN)
    for node in names(8):
        bad = wrong if node == "n003" else ()
        yield Sample(head, node, f"HostParameters.{metric}", Decimal(len(bad)), "count")
        for parameter, text in bad:
            dims = {"parameter": parameter}
            yield Sample(head, node, "HostParameters.mismatch", text, "text", dims=dims)


@rows(
    "metric, wrong, named",
    [
        ("mismatches", [MTU], [MTU]),
        ("mismatches", [MTU, WMEM], [MTU, WMEM]),
        ("mtu_mismatches", [MTU, WMEM], [MTU]),
        ("tcp_wmem_mismatches", [MTU, WMEM], [WMEM]),
    ],
)
def test_the_parameter_that_differs_is_the_reason(site, metric, wrong, named):
    (result,) = judge_samples(site(HOST % metric), list(host(wrong, metric)), "all").verdicts
    assert result.verdict == "FAIL"
    missed, *others = result.findings
    assert missed.kind is Kind.MISSES_BOUND and missed.subject == "n003"
    assert [(why["parameter"], why.value) for why in others] == named
    assert (
        "nic.em1.mtu: expected 9000, found 1500" in findings.sentence(others[0]) or metric[0] == "t"
    )


def test_of_many_parameters_the_first_are_named(site):
    wrong = [(f"nic.em{n}.mtu", MTU[1]) for n in range(9)]
    found = list(host(wrong, "mismatches"))
    (result,) = judge_samples(site(HOST % "mismatches"), found, "all").verdicts
    assert [why.kind for why in result.findings[1:]] == [Kind.PARAMETER_DIFFERS] * 5 + [
        Kind.FIELDS_DIFFER
    ]


@rows(
    "common, own, expected",
    [
        ({}, {}, []),
        (
            {"mtu": "9000"},
            {"mtu": "1500"},
            [(Kind.CONDITION_DIFFERS, {"condition": "mtu", "found": "1500", "majority": "9000"})],
        ),
        ({"blas_warning": "slow"}, {"blas_warning": "slower"}, []),
        (
            {"env.OMP_NUM_THREADS": "2", "env.KMP_X": "1"},
            {},
            [(Kind.NOTE, {"variables": "KMP_X=1 OMP_NUM_THREADS=2"})],
        ),
    ],
)
def test_what_the_site_sets_and_warnings_are_no_reason(site, common, own, expected):
    head = fleets.header(
        1, expected="n[001-008]", conditions={"program": "stream", **OWN, **common}
    )
    found = [
        Sample(
            head,
            node,
            "Stream.triad",
            Decimal(10 if node == "n003" else 100),
            "MB/s",
            own_conditions=own if node == "n003" else {},
        )
        for node in names(8)
    ]
    (result,) = judge_samples(site(), found, "all").verdicts
    assert result.verdict == "FAIL"
    assert reasons(result) == [(Kind.MISSES_BOUND, {}), *expected]
