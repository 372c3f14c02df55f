"""Each derived metric of the catalogue says how it is computed, by a function that is there."""

from importlib import import_module

from siteproof import sites
from siteproof.sites import catalogue
from siteproof.verdict.derived import inventory, moved_files, rates


def expressions():
    found = {name: one.computed for name, one in catalogue.read()[0].items() if one.computed}
    return {name: computed.partition(" of ") for name, computed in found.items()}


def test_what_the_catalogue_derives_has_a_function():
    for name, (function, _, _) in expressions().items():
        module, _, called = function.partition(".")
        assert callable(getattr(import_module(f"siteproof.verdict.derived.{module}"), called)), name


def test_what_a_function_is_asked_for_is_one_of_its_choices():
    asked = {}
    for function, _, of in expressions().values():
        asked.setdefault(function, set()).add(of)
    assert asked["inventory.total"] | asked["inventory.each"] == inventory.AMOUNTS.keys()
    assert asked["moved_files.rate"] == moved_files.CHOICES.keys()
    assert asked["rates.trials"] == rates.STATISTICS.keys()
    assert asked["moved_files.failures"] == {"login", "timeout", "checksum", "gen"}
    assert asked["inventory.missed"] == {"", "section", "hosts.csv"}
    assert asked["bookkeeping.ledger"] == {"", "order"}


def test_no_derived_metric_is_measured_as_well():
    metrics = catalogue.read()[0]
    assert [name for name in expressions() if metrics[name].check] == []


def test_every_shipped_criterion_that_compares_names_its_other_side():
    lacking = [
        key
        for name in sites.names()
        for site in [sites.load(name, whole=True)]
        for key, one in site.criteria.items()
        if (sides := site.catalogue[one.metric].compared_by) and sides != ["campaign"]
        if not one.against
    ]
    assert lacking == []
