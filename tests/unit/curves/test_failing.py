"""From which number of servers on a cloud fails, as its sweep shows it."""

from decimal import Decimal

import pytest
from fleets import header

from siteproof import sites
from siteproof.curves import run_findings, sweep_runs
from siteproof.curves.run_findings import FirstFailure
from siteproof.record.samples import Sample
from siteproof.sweeps import reading
from siteproof.wording import sweep_results

SWEEP = """\
description: Servers
tool: openstack
axes: {servers: [16, 32, 64, 128], networks: [1, 4]}
fixed: {batch: 4, rate: unlimited}
against: servers
lines: networks
point_limit: 10m
"""
NO_HOST = "no valid host"


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "my_servers.yaml").write_text(SWEEP)
    monkeypatch.setenv(reading.VARIABLE, str(tmp_path))
    return reading.examine()[0]["my_servers"]


def of(file, failures):
    """Samples of all points. failures: by servers and networks, a number by cause."""
    head = header(
        1,
        "Cloud",
        conditions={
            "sweep": file.name,
            "sweep_hash": file.hash,
            "service": "cloud",
            "kind": "openstack",
            "batch": "4",
        },
    )
    found = []
    for point in file.points:
        dims, servers = point.own_dims, int(point.values["servers"])
        causes = failures.get((servers, int(point.values["networks"])), {}) or {"none": 0}
        ran = servers - sum(causes.values())
        found.append(Sample(head, "", "Cloud.instances", Decimal(ran), "VMs", dims=dims))
        found += [
            Sample(head, "", "Cloud.failures", Decimal(n), "count", dims={**dims, "cause": cause})
            for cause, n in causes.items()
        ]
    return found


def test_where_nothing_failed_that_is_reported_with_the_last_place(file):
    found = run_findings.first_failures(of(file, {}), "servers", "networks")
    assert found == [
        FirstFailure("1", None, 0, 0, "", (), "128"),
        FirstFailure("4", None, 0, 0, "", (), "128"),
    ]


def test_the_first_number_that_fails_has_its_commonest_cause(file):
    made = of(file, {(64, 4): {NO_HOST: 12, "network": 2}, (128, 4): {"quota": 90}})
    assert run_findings.first_failures(made, "servers", "networks")[1] == FirstFailure(
        "4", "64", 14, 64, NO_HOST, [], "128"
    )


def test_a_larger_number_that_did_not_fail_is_named(file):
    made = of(file, {(32, 1): {"timeout": 1}, (128, 1): {"timeout": 3}})
    assert run_findings.first_failures(made, "servers", "networks")[0].without == ["64"]


def test_the_failures_of_a_point_are_one_number_of_the_curve(file):
    made = of(file, {(64, 4): {NO_HOST: 12, "network": 2}})
    totals = {
        (s.dims["servers"], s.dims["networks"]): int(s.number)
        for s in run_findings.folded(made)
        if s.metric == "Cloud.failures"
    }
    assert len(totals) == 8
    assert totals["64", "4"] == 14
    assert all("cause" not in s.dims for s in run_findings.folded(made))


def test_the_sweep_prints_plateau_failures_and_cause(file, monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    site = sites.load("jetstream-iu")
    made = of(file, {(64, 4): {NO_HOST: 14, "network": 2}, (128, 4): {NO_HOST: 80}})
    run = sweep_runs.collect(made)[0]
    assert run.place == "cloud"
    (report,) = run_findings.reports(site, run, file)
    texts = sweep_results.headlines(report)
    assert [text for text in texts if text.startswith("Cloud.failures")] == [
        "Cloud.failures [networks 1]: no server failed, up to 128 servers",
        "Cloud.failures [networks 4]: servers fail from 64 servers on, there 16 of 64; "
        "the first cause is no valid host",
    ]
    (instances,) = [t for t in texts if t.startswith("Cloud.instances [networks 4]")]
    assert "highest 48 VMs at 64 servers; plateau from 64 servers on" in instances
