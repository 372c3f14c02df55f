"""A second job of a check, where a node has put something in the way of its files."""

from types import SimpleNamespace

from rows import rows

from siteproof.checks.job import JobCheck
from siteproof.errors import UserError


@rows(
    "submitted, broken, expected", [(False, True, False), (True, True, True), (True, False, True)]
)
def test_what_a_node_puts_in_the_way_costs_the_second_job_and_no_more(submitted, broken, expected):
    check = SimpleNamespace(plan=SimpleNamespace(jobs=["1"]), display_name="Stream")

    def submit_again(_nodes):
        check.plan.jobs += ["2"] * submitted
        if broken:
            raise UserError("settings", "not written: something there is not a regular file")

    check.submit_again = submit_again
    assert JobCheck.could_submit_again(check, "n1") is expected
