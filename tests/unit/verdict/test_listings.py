"""Paths that are not the same from every node."""

from siteproof.verdict.derived.bookkeeping import differing


def test_equal_listings_differ_in_no_path():
    assert differing({"n1": {"a", "a/b"}, "n2": {"a/b", "a"}}, 2) == {}


def test_a_path_that_a_node_lacks_is_named_with_the_node():
    listings = {"n1": {"a", "b"}, "n2": {"a"}, "n3": {"b", "c"}}
    assert differing(listings, 1) == {"a": ["n3"], "b": ["n2"], "c": ["n1", "n2"]}


def test_paths_below_what_all_have_listed_are_not_compared():
    assert differing({"n1": {"a", "a/b", "a/b/c"}, "n2": {"a", "a/b"}}, 2) == {}
    assert differing({"n1": {"a", "a/b", "a/b/c"}, "n2": {"a", "a/b"}}, 3) == {"a/b/c": ["n2"]}


def test_one_node_alone_differs_from_nothing():
    assert differing({"n1": {"a"}}, 1) == {}
    assert differing({}, 1) == {}
