"""What a node reports of its processor becomes a condition, with what the site says of the rest."""

from types import SimpleNamespace

from rows import rows

from siteproof.collect import outcome

REAL, SOFTWARE = {"host": "node001"}, {"host": "node002", "emulated": "processor"}


@rows(
    "link, accounts, by",
    [
        ({}, [REAL], None),
        ({"emulated": "netem"}, [REAL], None),  # the job has that by itself
        ({}, [SOFTWARE], "processor"),
        ({}, [REAL, SOFTWARE], "processor"),
        ({"emulated": "netem"}, [SOFTWARE], "netem, processor"),
        ({}, [{"emulated": "anything"}], "processor"),
    ],
)
def test_one_end_whose_processor_is_software_is_enough(link, accounts, by):
    found = outcome.emulated(SimpleNamespace(conditions=link), *accounts)
    assert found == ({"emulated": by} if by else {})
