"""Each derived metric of the catalogue has its function, and each function its metric."""

from siteproof import sites
from siteproof.derivations import registry
from siteproof.sites import catalogue


def test_what_the_catalogue_derives_has_a_function_and_the_other_way_round():
    metrics = catalogue.read()[0]
    derived = {name for name, one in metrics.items() if one.derived_from}
    assert derived == set(registry.TABLE)


def test_no_derived_metric_is_measured_as_well():
    metrics = catalogue.read()[0]
    assert [name for name in registry.TABLE if metrics[name].check] == []


def test_every_shipped_criterion_that_compares_names_its_other_side():
    lacking = [
        key
        for name in sites.names()
        for site in [sites.load(name)]
        for key, one in site.criteria.items()
        if (sides := site.catalogue[one.metric].compared_by) and sides != ["campaign"]
        if not one.against
    ]
    assert lacking == []
