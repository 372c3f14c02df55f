"""Groups of nodes where the site names none: the switches that Slurm named for the job."""

from dataclasses import replace
from decimal import Decimal

import fleets
import nets

from siteproof import sites
from siteproof.links import matrix
from siteproof.record.samples import SWITCHES, Sample

LEAVES = ("n[1-2]", "n[3-4]", "n[5-6]")


def test_the_switch_that_explains_bad_pairs_is_named_as_slurm_has_it(tmp_path, monkeypatch):
    folder = nets.write_site(tmp_path / "sites", count=6)
    monkeypatch.setenv("SITEPROOF_SITES", str(folder))
    site = sites.load("here")
    named = " ".join(f"leaf{n}={nodes}" for n, nodes in enumerate(LEAVES, 1))
    head = fleets.header(1, "Bisection")
    head = replace(head, provenance={SWITCHES: f"{named} broken=n[1"})
    found = [
        Sample(
            head,
            f"n{a}",
            "Bisection.pair",
            Decimal(100 if a < 5 and b < 5 else 50),
            "MB/s",
            dims={"peer": f"n{b}"},
        )
        for a in range(1, 7)
        for b in range(1, 7)
        if a != b
    ]
    groups = matrix.groups_of(site, found)
    assert {name: len(nodes) for name, nodes in groups.items()} == dict.fromkeys(
        ("leaf1", "leaf2", "leaf3"), 2
    )
    (one,) = matrix.collect(site, found, "Bisection.pair")
    assert one.groups == ["leaf3"] and len(one.between) == 3
